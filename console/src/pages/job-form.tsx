// Submission of a Spark, Ray or custom job with the two parameters of mGPU.
import { type FormEvent, useMemo, useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import { call, postDocument } from "../api/client";
import { useRights } from "../api/session";
import type { Applied, Doc } from "../api/types";
import {
  core_key,
  type Engine,
  type JobForm,
  jobDocument,
  memory_key,
  new_job,
  type QueueGpu,
} from "../forms/job";
import { useT } from "../i18n";
import { useObjects } from "../live/objects";
import { Banner, Button, Empty, ErrorPanel, json, LinkButton, Page, Panel, Warnings } from "../ui/basics";
import { useToast } from "../ui/dialog";
import {
  Checkbox,
  FieldErrors,
  OtherErrors,
  RadioGroup,
  SelectField,
  TextArea,
  TextField,
} from "../ui/fields";
import { PreviewPanel, usePreview } from "./preview";

const shown_paths = [
  "metadata.name",
  "spec.queue",
  "spec.computeGroup",
  core_key,
  memory_key,
  "spec.parameters",
  "spec.run",
  "spec.tasks",
  "spec.workers",
  "spec.engineHome",
  "spec.python",
  "spec.priority",
  "spec.retries",
  "spec.deadlineSeconds",
];
type Set = (change: Partial<JobForm>) => void;

function PastedParameters({ set }: { set: Set }) {
  const t = useT();
  const [text, setText] = useState("");
  const [warnings, setWarnings] = useState<string[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [found, setFound] = useState<Record<string, string>>({});
  const read = async () => {
    setError(null);
    try {
      const reply = await call<Doc<"JobParameters">>("POST", "/v1/parameters", { body: text });
      setWarnings(reply.value.warnings);
      setFound(reply.value.parameters as Record<string, string>);
      set({ parameters: reply.value.parameters as Record<string, string> });
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <>
      <TextArea
        label={t("Further parameters")}
        value={text}
        onChange={setText}
        rows={4}
        placeholder={"set emr.serverless.mgpu.core=30; -- percent"}
        help={t(
          "KEY=VALUE, 'KEY': 'VALUE' or set KEY = VALUE; # and -- begin comments. They replace the parameters of the fields above.",
        )}
      />
      <div className="form-foot">
        <Button disabled={text.trim() === ""} onClick={() => void read()}>
          {t("Read parameters")}
        </Button>
        {Object.keys(found).length > 0 && (
          <Button
            onClick={() => {
              setFound({});
              set({ parameters: {} });
            }}
          >
            {t("Remove {n} parameters", { n: Object.keys(found).length })}
          </Button>
        )}
      </div>
      <Warnings texts={warnings} />
      <ErrorPanel error={error} />
    </>
  );
}

function GpuFields({ form, set, gpu }: { form: JobForm; set: Set; gpu: QueueGpu }) {
  const t = useT();
  if (gpu === "none") return <Banner tone="idle">{t("Jobs of this queue get no device.")}</Banner>;
  return (
    <>
      <Checkbox
        label={t("The programs need a GPU")}
        value={form.usesGpu}
        onChange={(usesGpu) => set({ usesGpu })}
      />
      {form.usesGpu && gpu === "mgpu" && (
        <div className="row-fields">
          <TextField
            label={core_key}
            kind="number"
            value={form.core}
            onChange={(core) => set({ core })}
            isRequired
            paths={[core_key, `spec.parameters.${core_key}`]}
            help={t("percent of one device's compute for each program, 5 to 99")}
          />
          <TextField
            label={memory_key}
            kind="number"
            value={form.memory}
            onChange={(memory) => set({ memory })}
            isRequired
            paths={[memory_key, `spec.parameters.${memory_key}`]}
            help={t("MiB for each program")}
          />
        </div>
      )}
      {form.usesGpu && gpu === "gpu" && (
        <TextField
          label={t("Devices per program")}
          kind="number"
          value={form.devices}
          onChange={(devices) => set({ devices })}
          isRequired
          help={t("whole devices")}
        />
      )}
      {form.usesGpu && form.engine === "spark" && (
        <TextField
          label="spark.task.resource.gpu.amount"
          kind="number"
          value={form.taskAmount}
          onChange={(taskAmount) => set({ taskAmount })}
          help={t("0.1 lets 10 tasks of an executor share its slice")}
        />
      )}
    </>
  );
}

function Form({ queueName }: { queueName: string }) {
  const t = useT();
  const show = useToast();
  const [, navigate] = useLocation();
  const { mayChange } = useRights();
  const queues = useObjects("Queue");
  const [form, setForm] = useState<JobForm>({ ...new_job, queue: queueName });
  const [error, setError] = useState<unknown>(null);
  const [wasTried, setTried] = useState(false);
  const queue = queues.find((q) => q.metadata.name === form.queue);
  const gpu = (queue?.spec.gpu as QueueGpu | undefined) ?? "mgpu";
  const set: Set = (change) => {
    setError(null);
    setForm((old) => ({ ...old, ...change }));
  };
  const text = useMemo(() => json(jobDocument(form, gpu)), [form, gpu]);
  const preview = usePreview(text, { route: "/v1/jobs", isEnabled: mayChange });
  const shownError = error ?? (wasTried ? preview.error : null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    setError(null);
    try {
      const applied = await postDocument<{ items: Applied[] }>("/v1/jobs", text);
      const made = applied.items[0]!;
      for (const warning of made.warnings) show("warn", warning);
      show("ok", t("{name} submitted", { name: made.name }));
      navigate(`/jobs/${encodeURIComponent(made.name)}`);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <FieldErrors error={shownError}>
      <div className="with-aside">
        <form className="stack" onSubmit={(event) => void submit(event)} noValidate>
          <Panel title={t("Job")}>
            <RadioGroup
              label={t("Engine")}
              value={form.engine}
              onChange={(engine) => set({ engine: engine as Engine })}
              options={[
                { value: "custom", label: t("Custom"), help: t("any program, as one or more tasks") },
                { value: "spark", label: "Spark", help: t("a driver and executors") },
                { value: "ray", label: "Ray", help: t("a head and workers for this program") },
              ]}
            />
            <div className="row-fields">
              <SelectField
                label={t("Queue")}
                value={form.queue}
                onChange={(next) =>
                  set({
                    queue: next,
                    computeGroup:
                      queues.find((q) => q.metadata.name === next)?.spec.computeGroups[0] ?? "default",
                  })
                }
                options={queues.map((q) => ({
                  value: q.metadata.name,
                  label: `${q.metadata.name} (${q.spec.gpu === "mgpu" ? "mGPU" : q.spec.gpu === "gpu" ? "GPU" : "CPU"})`,
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
              label={t("Name")}
              value={form.name}
              onChange={(name) => set({ name })}
              paths={["metadata.name"]}
              help={t("empty for ENGINE-NUMBER")}
            />
            <TextArea
              label={form.engine === "spark" ? t("Application with its arguments") : t("Command")}
              value={form.command}
              onChange={(command) => set({ command })}
              rows={3}
              isRequired
              paths={["spec.run.command", "spec.run"]}
              help={t("a program and its arguments, quoted as in a shell")}
            />
            <div className="row-fields">
              <TextField
                label={t("Working directory")}
                value={form.workdir}
                onChange={(workdir) => set({ workdir })}
                paths={["spec.run.workdir"]}
              />
              {form.engine === "custom" && (
                <TextField
                  label={t("Tasks")}
                  kind="number"
                  value={form.tasks}
                  onChange={(tasks) => set({ tasks })}
                  paths={["spec.tasks"]}
                  help={t("copies of the program that run at the same time")}
                />
              )}
              {form.engine === "ray" && (
                <TextField
                  label={t("Workers")}
                  kind="number"
                  value={form.workers}
                  onChange={(workers) => set({ workers })}
                  paths={["spec.workers"]}
                />
              )}
            </div>
            {form.engine !== "custom" && (
              <div className="row-fields">
                <TextField
                  label={form.engine === "spark" ? t("Folder of Spark") : t("Folder of the program ray")}
                  value={form.engineHome}
                  onChange={(engineHome) => set({ engineHome })}
                  isRequired
                  paths={["spec.engineHome"]}
                />
                <TextField
                  label={t("Python")}
                  value={form.python}
                  onChange={(python) => set({ python })}
                  paths={["spec.python"]}
                  help={t("empty for python3")}
                />
              </div>
            )}
            <TextArea
              label={t("Environment variables")}
              value={form.env}
              onChange={(env) => set({ env })}
              rows={2}
              paths={["spec.run.env"]}
              help={t("one NAME=VALUE per line")}
            />
          </Panel>
          <Panel title={t("GPU parameters")}>
            <GpuFields form={form} set={set} gpu={gpu} />
            <PastedParameters set={set} />
          </Panel>
          <Panel title={t("Order and limits")}>
            <div className="row-fields">
              <TextField
                label={t("Priority")}
                kind="number"
                value={form.priority}
                onChange={(priority) => set({ priority })}
                paths={["spec.priority"]}
                help={t("a higher number runs first")}
              />
              <TextField
                label={t("Retries")}
                kind="number"
                value={form.retries}
                onChange={(retries) => set({ retries })}
                paths={["spec.retries"]}
              />
              <TextField
                label={t("Deadline (s)")}
                kind="number"
                value={form.deadline}
                onChange={(deadline) => set({ deadline })}
                paths={["spec.deadlineSeconds"]}
                help={t("from its admission; empty for none")}
              />
            </div>
          </Panel>
          <OtherErrors known={shown_paths} />
          <ErrorPanel error={shownError} />
          <div className="form-foot">
            <Button kind="primary" type="submit" disabled={!mayChange}>
              {t("Submit job")}
            </Button>
            <LinkButton href="/jobs">{t("Cancel")}</LinkButton>
          </div>
        </form>
        <PreviewPanel
          preview={preview}
          text={text}
          cli={`carve submit ${form.engine} -q ${form.queue} ...`}
        />
      </div>
    </FieldErrors>
  );
}

export function JobFormPage() {
  const t = useT();
  const queues = useObjects("Queue");
  const [parameters] = useSearchParams();
  const wanted = parameters.get("queue") ?? queues[0]?.metadata.name ?? "";
  return (
    <Page title={t("Submit job")} crumbs={[[t("Jobs"), "/jobs"]]}>
      {queues.length === 0 ? (
        <Panel>
          <Empty
            title={t("No queues")}
            action={<LinkButton href="/queues/new">{t("Create queue")}</LinkButton>}
          >
            {t("Jobs wait in a queue, and there is no queue yet.")}
          </Empty>
        </Panel>
      ) : (
        <Form queueName={wanted} />
      )}
    </Page>
  );
}
