// Create and edit of a node pool: edit > labels, with the synchronisation switch and its warning.
import { type FormEvent, useState } from "react";
import { useLocation, useParams } from "wouter";
import { path, post } from "../api/client";
import { Conflict, type Editable, saveObject } from "../api/edit";
import { useRights } from "../api/session";
import type { Pool } from "../api/types";
import { new_pool, type PoolForm, poolDocument, poolSpec, readPool } from "../forms/pool";
import { useT } from "../i18n";
import { useObject } from "../live/objects";
import { Banner, Button, Code, ErrorPanel, json, LinkButton, Page, Panel } from "../ui/basics";
import { useToast } from "../ui/dialog";
import { FieldErrors, OtherErrors, SelectField, SwitchField, TextArea, TextField } from "../ui/fields";
import { ConflictPanel } from "./conflict";
import { NotFound } from "./not-found";

const paths = [
  "metadata.name",
  "spec.type",
  "spec.labels",
  "spec.taints",
  "spec.labelSync",
  "spec.sharing",
  "spec.bestEffort",
];

function Form({ pool }: { pool?: Pool }) {
  const t = useT();
  const show = useToast();
  const [, navigate] = useLocation();
  const { mayOperate } = useRights();
  const [opened, setOpened] = useState<Pool | undefined>(pool);
  const [form, setForm] = useState<PoolForm>(() =>
    pool ? readPool(pool.metadata.name, pool.spec) : new_pool,
  );
  const [error, setError] = useState<unknown>(null);
  const [conflict, setConflict] = useState<Pool | null>(null);
  const set = (change: Partial<PoolForm>) => setForm({ ...form, ...change });
  const document = poolDocument(form);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setError(null);
    try {
      if (opened) {
        const body = {
          ...document,
          metadata: {
            ...document.metadata,
            labels: opened.metadata.labels,
            annotations: opened.metadata.annotations,
          },
          spec: poolSpec(form),
        };
        const saved = await saveObject<Editable>(
          "PUT",
          path`/v1/pools/${opened.metadata.name}`,
          opened,
          body,
        );
        for (const warning of saved.warnings) show("warn", warning);
        show("ok", t("{name} changed", { name: form.name }));
      } else {
        await post("/v1/documents", document, { create: true });
        show("ok", t("{name} created", { name: form.name }));
      }
      navigate(`/pools/${encodeURIComponent(form.name.trim())}`);
    } catch (problem) {
      if (problem instanceof Conflict) setConflict(problem.current as Pool);
      else setError(problem);
    }
  };
  return (
    <FieldErrors error={error}>
      <div className="with-aside">
        <form className="stack" onSubmit={(event) => void submit(event)} noValidate>
          {conflict && opened && (
            <Panel>
              <ConflictPanel
                loaded={opened}
                current={conflict}
                takeTheirs={() => {
                  setOpened(conflict);
                  setForm(readPool(conflict.metadata.name, conflict.spec));
                  setConflict(null);
                }}
                keepMine={() => {
                  setOpened(conflict);
                  setConflict(null);
                }}
              />
            </Panel>
          )}
          <Panel title={t("Basic information")}>
            <TextField
              label={t("Name")}
              value={form.name}
              onChange={(name) => set({ name })}
              isRequired
              isDisabled={pool !== undefined}
              paths={["metadata.name"]}
            />
            <SelectField
              label={t("Type")}
              value={form.type}
              onChange={(type) => set({ type })}
              paths={["spec.type"]}
              options={[
                { value: "eas", label: t("EAS Resource Group") },
                { value: "lingjun", label: t("Resource Quota") },
                { value: "ecs", label: t("ECS instances") },
                { value: "public", label: t("Public Resources") },
                { value: "vci", label: t("Elastic containers (VCI)") },
              ]}
              help={t(
                "PAI-EAS services are sliced only in the first two. Public resources and elastic containers cannot be sliced.",
              )}
            />
            <SwitchField
              label={t("Sharing")}
              value={form.sharing}
              onChange={(sharing) => set({ sharing })}
              help={t("Slices may be created on the nodes of the pool.")}
            />
            <SelectField
              label={t("Slices without a share")}
              value={form.bestEffort}
              onChange={(bestEffort) => set({ bestEffort })}
              options={[
                { value: "allow", label: t("allowed (best effort)") },
                { value: "refuse", label: t("refused") },
              ]}
            />
          </Panel>
          <Panel title={t("Node labels and taints")}>
            <TextArea
              label={t("Labels")}
              value={form.labels}
              onChange={(labels) => set({ labels })}
              rows={4}
              paths={["spec.labels"]}
              placeholder="carve.dev/compute-policy=fixed-share"
              help={t("one KEY=VALUE per line")}
            />
            <TextArea
              label={t("Taints")}
              value={form.taints}
              onChange={(taints) => set({ taints })}
              rows={2}
              paths={["spec.taints"]}
              placeholder="team=vision:NoSchedule"
              help={t("one KEY=VALUE:EFFECT per line")}
            />
            <SwitchField
              label={t("Update labels and taints of nodes automatically")}
              value={form.labelSync}
              onChange={(labelSync) => set({ labelSync })}
            />
            {!form.labelSync && (
              <Banner tone="warn">
                {t(
                  "Configure with care: existing nodes keep their labels, so their compute policy may differ from the pool's.",
                )}
              </Banner>
            )}
            <p className="help">
              {t(
                "A changed compute policy takes effect when the nodes have been restarted. Running slices keep their policy.",
              )}
            </p>
          </Panel>
          <OtherErrors known={paths} />
          <ErrorPanel error={error} />
          <div className="form-foot">
            <Button kind="primary" type="submit" disabled={!mayOperate || conflict !== null}>
              {pool ? t("Save") : t("Create node pool")}
            </Button>
            <LinkButton href={pool ? `/pools/${encodeURIComponent(pool.metadata.name)}` : "/pools"}>
              {t("Cancel")}
            </LinkButton>
          </div>
        </form>
        <div className="aside">
          <Panel title={t("Document that will be sent")}>
            <Code>{json(document)}</Code>
            <p className="help">
              {t("The command line stores the same document:")} <code>carve apply -f pool.json</code>
            </p>
          </Panel>
        </div>
      </div>
    </FieldErrors>
  );
}

export function PoolFormPage() {
  const t = useT();
  const { name } = useParams<{ name?: string }>();
  const pool = useObject("Pool", decodeURIComponent(name ?? ""));
  if (name && !pool) return <NotFound what={`pool/${name}`} />;
  return (
    <Page
      title={pool ? t("Edit {name}", { name: pool.metadata.name }) : t("Create node pool")}
      crumbs={[[t("Node pools"), "/pools"]]}
    >
      <Form key={name ?? ""} {...(pool && { pool })} />
    </Page>
  );
}
