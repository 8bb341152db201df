// Queues: the list, one queue with its jobs in order and the reasons why they wait, and the form.
import { type FormEvent, useMemo, useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { call, path, post } from "../api/client";
import { useRights } from "../api/session";
import type { Job, Queue } from "../api/types";
import { numberOrText } from "../forms/number";
import { useT } from "../i18n";
import { useJobs, useObject, useObjects, useRayClusters } from "../live/objects";
import { Button, Code, Empty, ErrorPanel, Facts, json, LinkButton, Page, Panel, Status } from "../ui/basics";
import { ConfirmDialog } from "../ui/dialog";
import {
  Checkbox,
  FieldErrors,
  OtherErrors,
  RadioGroup,
  SelectField,
  SwitchField,
  TextField,
} from "../ui/fields";
import { bytes, share } from "../ui/format";
import { type Column, DataTable } from "../ui/table";
import { EditDialog } from "./edit-document";
import { useJobColumns } from "./job-columns";
import { NotFound } from "./not-found";
import { ObjectEvents } from "./object-events";

const hrefOf = (queue: Queue) => `/queues/${encodeURIComponent(queue.metadata.name)}`;

export function QueuesPage() {
  const t = useT();
  const queues = useObjects("Queue");
  const { mayOperate } = useRights();
  const columns = useMemo<Column<Queue>[]>(
    () => [
      {
        key: "name",
        header: t("Name"),
        cell: (q) => <Link href={hrefOf(q)}>{q.metadata.name}</Link>,
        sortBy: (q) => q.metadata.name,
        text: (q) => q.metadata.name,
      },
      {
        key: "gpu",
        header: "GPU",
        cell: (q) => (q.spec.gpu === "mgpu" ? "mGPU" : q.spec.gpu === "gpu" ? "GPU" : t("none")),
        sortBy: (q) => q.spec.gpu,
      },
      {
        key: "pool",
        header: t("Node pool"),
        cell: (q) =>
          q.spec.pool ? (
            <Link href={`/pools/${encodeURIComponent(q.spec.pool)}`}>{q.spec.pool}</Link>
          ) : (
            t("any node")
          ),
        sortBy: (q) => q.spec.pool,
      },
      {
        key: "weight",
        header: t("Weight"),
        numeric: true,
        cell: (q) => q.spec.weight,
        sortBy: (q) => q.spec.weight,
      },
      {
        key: "waiting",
        header: t("Waiting"),
        numeric: true,
        cell: (q) => q.status.waiting,
        sortBy: (q) => q.status.waiting,
      },
      {
        key: "running",
        header: t("Running"),
        numeric: true,
        cell: (q) => q.status.running,
        sortBy: (q) => q.status.running,
      },
      {
        key: "slices",
        header: t("Slices"),
        numeric: true,
        cell: (q) => q.status.slices,
        sortBy: (q) => q.status.slices,
      },
      {
        key: "memory",
        header: t("Memory"),
        numeric: true,
        cell: (q) => bytes(q.status.memoryBytes),
        sortBy: (q) => q.status.memoryBytes,
      },
      {
        key: "compute",
        header: t("Compute"),
        numeric: true,
        cell: (q) => share(q.status.computeBp),
        sortBy: (q) => q.status.computeBp,
      },
    ],
    [t],
  );
  const create = mayOperate && (
    <LinkButton href="/queues/new" kind="primary">
      {t("Create queue")}
    </LinkButton>
  );
  return (
    <Page title={t("Queues")} actions={create}>
      <Panel flush>
        <DataTable
          label={t("Queues")}
          columns={columns}
          rows={queues}
          rowKey={(q) => q.metadata.name}
          empty={
            <Empty title={t("No queues")} action={create}>
              {mayOperate
                ? t("Jobs wait in a queue until their slices fit. Create a queue to submit jobs.")
                : t("Jobs wait in a queue until their slices fit. An operator creates queues.")}
            </Empty>
          }
        />
      </Panel>
    </Page>
  );
}

const quotaText = (queue: Queue) => {
  const quota = queue.spec.quota as Queue["spec"]["quota"] | undefined;
  if (!quota) return "";
  return quota.devices ? String(quota.devices) : [quota.memory, quota.compute].filter(Boolean).join(", ");
};

// Waiting jobs in their order first, then running ones, then those that have ended.
export function inOrder(jobs: Job[]): Job[] {
  const rank = (job: Job) => (job.status.position > 0 ? 0 : job.status.finishedAt === "" ? 1 : 2);
  return [...jobs].sort(
    (a, b) =>
      rank(a) - rank(b) ||
      a.status.position - b.status.position ||
      b.status.submittedAt.localeCompare(a.status.submittedAt),
  );
}

export function QueuePage() {
  const t = useT();
  const [, navigate] = useLocation();
  const { name = "" } = useParams<{ name: string }>();
  const queue = useObject("Queue", decodeURIComponent(name));
  const allJobs = useJobs();
  const clusters = useRayClusters().filter((c) => c.spec.queue === queue?.metadata.name);
  const jobs = useMemo(
    () => inOrder(allJobs.filter((j) => j.spec.queue === queue?.metadata.name)),
    [allJobs, queue],
  );
  const columns = useJobColumns(false);
  const { mayOperate, mayChange } = useRights();
  const [open, setOpen] = useState<"edit" | "delete" | null>(null);
  if (!queue) return <NotFound what={`queue/${name}`} />;
  const submit = mayChange && (
    <LinkButton href={`/jobs/new?queue=${encodeURIComponent(queue.metadata.name)}`} kind="primary">
      {t("Submit job")}
    </LinkButton>
  );
  return (
    <Page
      title={queue.metadata.name}
      crumbs={[[t("Queues"), "/queues"]]}
      lead={t("{waiting} waiting, {running} running", {
        waiting: queue.status.waiting,
        running: queue.status.running,
      })}
      actions={
        <>
          {submit}
          <Button disabled={!mayOperate} onClick={() => setOpen("edit")}>
            {t("Edit")}
          </Button>
          <Button disabled={!mayOperate} onClick={() => setOpen("delete")}>
            {t("Delete")}
          </Button>
        </>
      }
    >
      <Panel title={t("Jobs in order")} flush>
        <DataTable
          label={t("Jobs in order")}
          columns={columns}
          rows={jobs}
          rowKey={(j) => `${j.metadata.namespace}/${j.metadata.name}`}
          empty={
            <Empty title={t("No jobs in this queue")} action={submit}>
              {t("A job waits here until all of its slices fit.")}
            </Empty>
          }
        />
      </Panel>
      <Panel title={t("Properties")}>
        <Facts
          rows={[
            ["GPU", queue.spec.gpu === "mgpu" ? "mGPU" : queue.spec.gpu],
            [t("Node pool"), queue.spec.pool || t("any node")],
            [t("Weight"), queue.spec.weight],
            [t("Guaranteed quota"), quotaText(queue)],
            [t("Running jobs at most"), queue.spec.maxRunning || t("no limit")],
            [t("Slices at most"), queue.spec.maxSlices || t("no limit")],
            [t("Backfill"), queue.spec.backfill ? t("on") : t("off")],
            [t("Only the vendor's steps"), queue.spec.strict ? t("on") : t("off")],
            [t("Billing"), queue.spec.billing],
            [t("Compute groups"), queue.spec.computeGroups.join(", ")],
            [
              t("Ray clusters"),
              clusters.length
                ? clusters.map((c) => (
                    <Link key={c.metadata.name} href={`/rayclusters/${encodeURIComponent(c.metadata.name)}`}>
                      {c.metadata.name}{" "}
                    </Link>
                  ))
                : "",
            ],
          ]}
        />
      </Panel>
      <Panel title={t("Events")} flush>
        <ObjectEvents target={path`/v1/queues/${queue.metadata.name}/events`} />
      </Panel>
      {open === "edit" && <EditDialog object={queue} onClose={() => setOpen(null)} />}
      {open === "delete" && (
        <ConfirmDialog
          title={t("Delete {name}?", { name: queue.metadata.name })}
          verb={t("Delete")}
          isDangerous
          act={async () => {
            await call("DELETE", path`/v1/queues/${queue.metadata.name}`);
            navigate("/queues");
          }}
          onClose={() => setOpen(null)}
        >
          <p>{t("A queue with unfinished jobs is not deleted.")}</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}

interface QueueForm {
  name: string;
  hasGpu: boolean;
  isShared: boolean; // mGPU
  pool: string;
  weight: string;
  quotaDevices: string;
  quotaMemory: string;
  quotaCompute: string;
  maxRunning: string;
  maxSlices: string;
  strict: boolean;
  backfill: boolean;
  billing: string;
}

function queueDocument(form: QueueForm) {
  const gpu = !form.hasGpu ? "none" : form.isShared ? "mgpu" : "gpu";
  const quota =
    gpu === "gpu"
      ? form.quotaDevices.trim()
        ? { devices: numberOrText(form.quotaDevices) }
        : null
      : form.quotaMemory.trim() || form.quotaCompute.trim()
        ? { memory: form.quotaMemory.trim(), compute: form.quotaCompute.trim() }
        : null;
  return {
    apiVersion: "carve.dev/v1",
    kind: "Queue",
    metadata: { name: form.name.trim() },
    spec: {
      gpu,
      ...(form.pool ? { pool: form.pool } : {}),
      weight: numberOrText(form.weight),
      ...(quota ? { quota } : {}),
      ...(form.maxRunning.trim() ? { maxRunning: numberOrText(form.maxRunning) } : {}),
      ...(form.maxSlices.trim() ? { maxSlices: numberOrText(form.maxSlices) } : {}),
      ...(form.strict ? { strict: true } : {}),
      ...(form.backfill ? { backfill: true } : {}),
      billing: form.billing,
    },
  };
}

export function QueueFormPage() {
  const t = useT();
  const [, navigate] = useLocation();
  const pools = useObjects("Pool");
  const { mayOperate } = useRights();
  const [error, setError] = useState<unknown>(null);
  const [form, setForm] = useState<QueueForm>({
    name: "",
    hasGpu: true,
    isShared: true,
    pool: "",
    weight: "1",
    quotaDevices: "",
    quotaMemory: "",
    quotaCompute: "",
    maxRunning: "",
    maxSlices: "",
    strict: false,
    backfill: false,
    billing: "onDemand",
  });
  const set = (change: Partial<QueueForm>) => setForm({ ...form, ...change });
  const document = queueDocument(form);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setError(null);
    try {
      await post("/v1/documents", document, { create: true });
      navigate(`/queues/${encodeURIComponent(form.name.trim())}`);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <Page title={t("Create queue")} crumbs={[[t("Queues"), "/queues"]]}>
      <FieldErrors error={error}>
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
              <RadioGroup
                label={t("Queue type")}
                value={form.hasGpu ? "gpu" : "none"}
                onChange={(value) => set({ hasGpu: value === "gpu" })}
                options={[
                  { value: "none", label: t("CPU queue"), help: t("Jobs get no device.") },
                  {
                    value: "gpu",
                    label: t("GPU queue"),
                    help: t("Jobs get whole devices, or parts of devices with mGPU."),
                  },
                ]}
              />
              {form.hasGpu && (
                <SwitchField
                  label="mGPU"
                  value={form.isShared}
                  onChange={(isShared) => set({ isShared })}
                  help={t(
                    "Jobs request a percentage of the compute and an amount of memory. It cannot be changed after the queue is created.",
                  )}
                />
              )}
              <SelectField
                label={t("Node pool")}
                value={form.pool}
                onChange={(pool) => set({ pool })}
                options={[
                  { value: "", label: t("any node") },
                  ...pools.map((p) => ({ value: p.metadata.name, label: p.metadata.name })),
                ]}
                paths={["spec.pool"]}
              />
            </Panel>
            <Panel title={t("Capacity and order")}>
              <div className="row-fields">
                <TextField
                  label={t("Weight")}
                  kind="number"
                  value={form.weight}
                  onChange={(weight) => set({ weight })}
                  paths={["spec.weight"]}
                  help={t("relative to other queues: 1 to 1000")}
                />
                {form.hasGpu && !form.isShared && (
                  <TextField
                    label={t("Guaranteed devices")}
                    kind="number"
                    value={form.quotaDevices}
                    onChange={(quotaDevices) => set({ quotaDevices })}
                    paths={["spec.quota.devices"]}
                  />
                )}
                {form.hasGpu && form.isShared && (
                  <>
                    <TextField
                      label={t("Guaranteed memory")}
                      value={form.quotaMemory}
                      onChange={(quotaMemory) => set({ quotaMemory })}
                      placeholder="40GiB"
                      paths={["spec.quota.memory"]}
                    />
                    <TextField
                      label={t("Guaranteed compute")}
                      value={form.quotaCompute}
                      onChange={(quotaCompute) => set({ quotaCompute })}
                      placeholder="250%"
                      paths={["spec.quota.compute"]}
                    />
                  </>
                )}
              </div>
              <div className="row-fields">
                <TextField
                  label={t("Running jobs at most")}
                  kind="number"
                  value={form.maxRunning}
                  onChange={(maxRunning) => set({ maxRunning })}
                  paths={["spec.maxRunning"]}
                  help={t("empty for no limit")}
                />
                <TextField
                  label={t("Slices at most")}
                  kind="number"
                  value={form.maxSlices}
                  onChange={(maxSlices) => set({ maxSlices })}
                  paths={["spec.maxSlices"]}
                  help={t("empty for no limit")}
                />
              </div>
              <Checkbox
                label={t("Backfill")}
                value={form.backfill}
                onChange={(backfill) => set({ backfill })}
                help={t("A later job may start before the first one if it does not delay it.")}
              />
              {form.isShared && (
                <Checkbox
                  label={t("Only the vendor's steps")}
                  value={form.strict}
                  onChange={(strict) => set({ strict })}
                  help={t("5, 10, ... 95 and 99 percent, and 256 MiB or more")}
                />
              )}
              <SelectField
                label={t("Billing")}
                value={form.billing}
                onChange={(billing) => set({ billing })}
                options={[
                  { value: "onDemand", label: t("on demand") },
                  { value: "prepaid", label: t("prepaid") },
                ]}
              />
            </Panel>
            <OtherErrors known={["metadata.name", "spec"]} />
            <ErrorPanel error={error} />
            <div className="form-foot">
              <Button kind="primary" type="submit" disabled={!mayOperate}>
                {t("Create queue")}
              </Button>
              <LinkButton href="/queues">{t("Cancel")}</LinkButton>
            </div>
          </form>
          <div className="aside">
            <Panel title={t("Document that will be sent")}>
              <Code>{json(document)}</Code>
              <p className="help">
                {t("The command line stores the same document:")} <code>carve apply -f queue.json</code>
              </p>
            </Panel>
            {!mayOperate && (
              <Panel>
                <Status state="no" tone="warn">
                  {t("Only operators create queues.")}
                </Status>
              </Panel>
            )}
          </div>
        </div>
      </FieldErrors>
    </Page>
  );
}
