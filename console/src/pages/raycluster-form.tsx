// Creation of a Ray cluster with mGPU core and memory of its workers.
import { type FormEvent, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { postDocument } from "../api/client";
import { useRights } from "../api/session";
import type { Applied } from "../api/types";
import {
  new_raycluster,
  type QueueGpu,
  type RayClusterForm,
  rayClusterDocument,
  type WorkerGroup,
} from "../forms/job";
import { useT } from "../i18n";
import { useObjects } from "../live/objects";
import { Button, Empty, ErrorPanel, json, LinkButton, Page, Panel } from "../ui/basics";
import { useToast } from "../ui/dialog";
import { FieldErrors, OtherErrors, SelectField, TextArea, TextField } from "../ui/fields";
import { PreviewPanel, usePreview } from "./preview";

export function RayClusterFormPage() {
  const t = useT();
  const show = useToast();
  const [, navigate] = useLocation();
  const queues = useObjects("Queue").filter((q) => q.spec.gpu !== "none");
  const { mayChange } = useRights();
  const [form, setForm] = useState<RayClusterForm>({
    ...new_raycluster,
    queue: queues[0]?.metadata.name ?? "",
  });
  const [error, setError] = useState<unknown>(null);
  const [wasTried, setTried] = useState(false);
  const queue = queues.find((q) => q.metadata.name === form.queue);
  const gpu = (queue?.spec.gpu as QueueGpu | undefined) ?? "mgpu";
  const text = useMemo(() => json(rayClusterDocument(form, gpu)), [form, gpu]);
  const preview = usePreview(text, { isNew: true, isEnabled: mayChange && queues.length > 0 });
  const set = (change: Partial<RayClusterForm>) => {
    setError(null);
    setForm({ ...form, ...change });
  };
  const setGroup = (index: number, change: Partial<WorkerGroup>) =>
    set({ workers: form.workers.map((g, i) => (i === index ? { ...g, ...change } : g)) });
  const shownError = error ?? (wasTried ? preview.error : null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    setError(null);
    try {
      const applied = await postDocument<{ items: Applied[] }>("/v1/documents", text, {
        dialect: "carve",
        create: true,
      });
      show("ok", t("{name} created", { name: form.name }));
      navigate(`/rayclusters/${encodeURIComponent(applied.items[0]!.name)}`);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <Page title={t("Create Ray cluster")} crumbs={[[t("Ray clusters"), "/rayclusters"]]}>
      {queues.length === 0 ? (
        <Panel>
          <Empty
            title={t("No queues")}
            action={<LinkButton href="/queues/new">{t("Create queue")}</LinkButton>}
          >
            {t("A Ray cluster belongs to a GPU queue, and there is none yet.")}
          </Empty>
        </Panel>
      ) : (
        <FieldErrors error={shownError}>
          <div className="with-aside">
            <form className="stack" onSubmit={(event) => void submit(event)} noValidate>
              <Panel title={t("Basic information")}>
                <TextField
                  label={t("Name")}
                  value={form.name}
                  onChange={(name) => set({ name })}
                  isRequired
                  paths={["metadata.name"]}
                />
                <div className="row-fields">
                  <SelectField
                    label={t("Queue")}
                    value={form.queue}
                    onChange={(next) => set({ queue: next })}
                    options={queues.map((q) => ({
                      value: q.metadata.name,
                      label: `${q.metadata.name} (${q.spec.gpu === "mgpu" ? "mGPU" : "GPU"})`,
                    }))}
                    paths={["spec.queue"]}
                  />
                  <SelectField
                    label={t("Compute group")}
                    value={form.computeGroup}
                    onChange={(computeGroup) => set({ computeGroup })}
                    options={(queue?.spec.computeGroups ?? ["default"]).map((g) => ({ value: g, label: g }))}
                    paths={["spec.computeGroup"]}
                  />
                </div>
                <TextField
                  label={t("Folder of the program ray")}
                  value={form.engineHome}
                  onChange={(engineHome) => set({ engineHome })}
                  isRequired
                  placeholder="/opt/ray/bin"
                  paths={["spec.engineHome"]}
                  help={t("on the nodes: dirname $(command -v ray)")}
                />
              </Panel>
              <Panel
                title={t("Workers")}
                actions={
                  <Button
                    disabled={form.workers.length >= 16}
                    onClick={() =>
                      set({ workers: [...form.workers, { replicas: "1", core: "30", memory: "4096" }] })
                    }
                  >
                    {t("Add group")}
                  </Button>
                }
              >
                {form.workers.map((group, i) => (
                  <div className="row-fields" key={i}>
                    <TextField
                      label={t("Workers of group {n}", { n: i + 1 })}
                      kind="number"
                      value={group.replicas}
                      onChange={(replicas) => setGroup(i, { replicas })}
                      paths={[`spec.workers[${i}].replicas`]}
                    />
                    {gpu === "mgpu" && (
                      <>
                        <TextField
                          label={t("mGPU core (%)")}
                          kind="number"
                          value={group.core}
                          onChange={(core) => setGroup(i, { core })}
                          paths={[`spec.workers[${i}].mgpuCore`]}
                          help={t("5 to 99, per worker")}
                        />
                        <TextField
                          label={t("mGPU memory (MiB)")}
                          kind="number"
                          value={group.memory}
                          onChange={(memory) => setGroup(i, { memory })}
                          paths={[`spec.workers[${i}].mgpuMemory`]}
                          help={t("per worker")}
                        />
                      </>
                    )}
                    {form.workers.length > 1 && (
                      <Button
                        kind="quiet"
                        onClick={() => set({ workers: form.workers.filter((_, j) => j !== i) })}
                      >
                        {t("Remove group {n}", { n: i + 1 })}
                      </Button>
                    )}
                  </div>
                ))}
              </Panel>
              <Panel title={t("Parameters")}>
                <TextArea
                  label={t("Parameters of Ray")}
                  value={form.parameters}
                  onChange={(parameters) => set({ parameters })}
                  rows={2}
                  paths={["spec.parameters"]}
                  placeholder="carve.ray.worker.cpus=2"
                  help={t("one KEY=VALUE per line")}
                />
                <TextArea
                  label={t("Environment variables")}
                  value={form.env}
                  onChange={(env) => set({ env })}
                  rows={2}
                  paths={["spec.env"]}
                  help={t("one NAME=VALUE per line")}
                />
              </Panel>
              <OtherErrors known={["metadata.name", "spec"]} />
              <ErrorPanel error={shownError} />
              <div className="form-foot">
                <Button kind="primary" type="submit" disabled={!mayChange}>
                  {t("Create Ray cluster")}
                </Button>
                <LinkButton href="/rayclusters">{t("Cancel")}</LinkButton>
              </div>
            </form>
            <PreviewPanel preview={preview} text={text} cli="carve apply -f raycluster.json" />
          </div>
        </FieldErrors>
      )}
    </Page>
  );
}
