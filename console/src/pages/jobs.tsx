// Jobs: the list, and one job with its programs, parameters, logs and events.
import { useMemo, useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { call, path, post } from "../api/client";
import { useRights } from "../api/session";
import type { Job, RayCluster } from "../api/types";
import { useT } from "../i18n";
import { useJobs, useObjects } from "../live/objects";
import {
  Banner,
  Button,
  Code,
  Empty,
  Facts,
  json,
  Labels,
  LinkButton,
  Page,
  Panel,
  Status,
  Tabs,
  Warnings,
} from "../ui/basics";
import { ConfirmDialog } from "../ui/dialog";
import { amount, clock } from "../ui/format";
import { LogView } from "../ui/logs";
import { type Column, DataTable } from "../ui/table";
import { SliceLink } from "./amounts";
import { targetOf } from "./edit-document";
import { jobHref, useJobColumns } from "./job-columns";
import { NotFound } from "./not-found";
import { ObjectEvents } from "./object-events";
import { inOrder } from "./queues";

export function JobsPage() {
  const t = useT();
  const jobs = useJobs();
  const queues = useObjects("Queue");
  const rows = useMemo(() => inOrder(jobs), [jobs]);
  const columns = useJobColumns(true);
  const { mayChange, mayOperate } = useRights();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [isCancelling, setCancelling] = useState(false);
  const chosen = jobs.filter((j) => selected.has(j.metadata.name) && j.status.finishedAt === "");
  const submit = mayChange && queues.length > 0 && (
    <LinkButton href="/jobs/new" kind="primary">
      {t("Submit job")}
    </LinkButton>
  );
  const createQueue = mayOperate && queues.length === 0 && (
    <LinkButton href="/queues/new" kind="primary">
      {t("Create queue")}
    </LinkButton>
  );
  return (
    <Page title={t("Jobs")} actions={submit || createQueue}>
      <Panel flush>
        <DataTable
          label={t("Jobs")}
          columns={columns}
          rows={rows}
          rowKey={(j) => j.metadata.name}
          {...(mayChange && { selection: { selected, change: setSelected } })}
          toolbar={
            chosen.length > 0 && (
              <div className="bulk">
                <span className="muted">{t("{n} selected", { n: chosen.length })}</span>
                <Button kind="danger" onClick={() => setCancelling(true)}>
                  {t("Cancel jobs")}
                </Button>
              </div>
            )
          }
          empty={
            <Empty title={t("No jobs")} action={submit || createQueue}>
              {queues.length === 0
                ? t("Jobs wait in a queue, and there is no queue yet.")
                : t("A job is one or more programs that run to completion, each in its own slice.")}
            </Empty>
          }
        />
      </Panel>
      {isCancelling && (
        <ConfirmDialog
          title={t("Cancel {n} jobs?", { n: chosen.length })}
          verb={t("Cancel {n} jobs", { n: chosen.length })}
          isDangerous
          act={async () => {
            for (const job of chosen)
              await post(path`/v1/jobs/${job.metadata.name}/cancel?namespace=${job.metadata.namespace}`);
            setSelected(new Set());
          }}
          onClose={() => setCancelling(false)}
        >
          <p>{t("Their programs end, and their slices are released.")}</p>
          <ul>
            {chosen.map((job) => (
              <li key={job.metadata.uid}>
                {job.metadata.name} <span className="muted">{job.status.phase}</span>
              </li>
            ))}
          </ul>
        </ConfirmDialog>
      )}
    </Page>
  );
}

type Pod = Job["status"]["pods"][number];
export function PodsTable({ pods, reason }: { pods: Pod[]; reason: string }) {
  const t = useT();
  const columns = useMemo<Column<Pod>[]>(
    () => [
      {
        key: "program",
        header: t("Program"),
        cell: (p) => `${p.role} ${p.index}`,
        sortBy: (p) => `${p.role} ${p.index}`,
        text: (p) => `${p.role} ${p.index} ${p.slice} ${p.node}`,
      },
      { key: "state", header: t("State"), cell: (p) => <Status state={p.state} />, sortBy: (p) => p.state },
      {
        key: "slice",
        header: t("Slice"),
        cell: (p) => (p.slice && p.node ? <SliceLink node={p.node} name={p.slice} /> : p.slice || "-"),
        sortBy: (p) => p.slice,
      },
      {
        key: "node",
        header: t("Node"),
        cell: (p) => (p.node ? <Link href={`/nodes/${encodeURIComponent(p.node)}`}>{p.node}</Link> : "-"),
        sortBy: (p) => p.node,
      },
      {
        key: "attempt",
        header: t("Attempt"),
        numeric: true,
        cell: (p) => p.attempt + 1,
        sortBy: (p) => p.attempt,
      },
      { key: "exit", header: t("Exit"), cell: (p) => p.exit || "-" },
    ],
    [t],
  );
  return (
    <DataTable
      label={t("Programs")}
      columns={columns}
      rows={pods}
      rowKey={(p) => `${p.role}-${p.index}`}
      empty={
        <Empty title={t("No program runs")}>{reason || t("It occupies no device while it waits.")}</Empty>
      }
    />
  );
}

export const podOptions = (pods: Pod[]) =>
  pods.map((p) => ({ value: `role=${p.role}&replica=${p.index}`, label: `${p.role} ${p.index}` }));

export function DashboardFacts({ object }: { object: Job | RayCluster }) {
  const t = useT();
  if (!object.status.dashboard) return null;
  return (
    <Panel title={t("Ray's dashboard")}>
      <p>
        <span className="mono">{object.status.dashboard}</span>
      </p>
      <p className="help">
        {t(
          "The address is on the controller's machine. This controller does not forward it to browsers on other machines.",
        )}
      </p>
      {object.status.dashboardToken && (
        <p>
          RAY_AUTH_TOKEN: <span className="mono">{object.status.dashboardToken}</span>
        </p>
      )}
    </Panel>
  );
}

function Parameters({ job }: { job: Job }) {
  const t = useT();
  const derived = new Map(job.status.derived.map((d) => [d.key, d]));
  const keys = [...new Set([...Object.keys(job.spec.parameters), ...derived.keys()])].sort();
  return (
    <Panel title={t("Parameters")}>
      {keys.length === 0 ? (
        <p className="muted">{t("No parameters, or they are shown only to the job's owner.")}</p>
      ) : (
        <div className="table-scroll">
          <table>
            <tbody>
              {keys.map((key) => (
                <tr key={key}>
                  <th scope="row" className="mono">
                    {key}
                  </th>
                  <td className="mono">{job.spec.parameters[key] ?? derived.get(key)?.value}</td>
                  <td className="muted">{derived.get(key)?.reason ?? ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function JobActions({ job }: { job: Job }) {
  const t = useT();
  const [, navigate] = useLocation();
  const { mayChangeOf } = useRights();
  const [open, setOpen] = useState<"cancel" | "delete" | null>(null);
  const isDisabled = !mayChangeOf(job.metadata.account);
  const name = job.metadata.name;
  return (
    <>
      <Button
        kind="danger"
        disabled={isDisabled || job.status.finishedAt !== "" || job.spec.cancelled}
        onClick={() => setOpen("cancel")}
      >
        {t("Cancel job")}
      </Button>
      <Button disabled={isDisabled} onClick={() => setOpen("delete")}>
        {t("Delete")}
      </Button>
      {open === "cancel" && (
        <ConfirmDialog
          title={t("Cancel {name}?", { name })}
          verb={t("Cancel job")}
          isDangerous
          act={() =>
            post(
              `/v1/jobs/${encodeURIComponent(name)}/cancel?namespace=${encodeURIComponent(job.metadata.namespace)}`,
            )
          }
          onClose={() => setOpen(null)}
        >
          <p>{t("Its programs end, and its slices are released.")}</p>
        </ConfirmDialog>
      )}
      {open === "delete" && (
        <ConfirmDialog
          title={t("Delete {name}?", { name })}
          verb={t("Delete")}
          isDangerous
          act={async () => {
            await call("DELETE", targetOf(job));
            navigate("/jobs");
          }}
          onClose={() => setOpen(null)}
        >
          <p>{t("Its programs end, and its logs are removed.")}</p>
        </ConfirmDialog>
      )}
    </>
  );
}

export function JobPage() {
  const t = useT();
  const { name = "", tab = "" } = useParams<{ name: string; tab: string }>();
  const job = useJobs().find((j) => j.metadata.name === decodeURIComponent(name));
  if (!job) return <NotFound what={`job/${name}`} />;
  const href = jobHref(job);
  const { status, spec } = job;
  const tabs = [
    { label: t("Overview"), id: "" },
    { label: t("Logs"), id: "logs" },
    { label: t("Events"), id: "events" },
    { label: t("Document"), id: "document" },
  ].map(({ label, id }) => ({ label, href: id ? `${href}/${id}` : href, isCurrent: tab === id }));
  return (
    <Page
      title={job.metadata.name}
      crumbs={[[t("Jobs"), "/jobs"]]}
      lead={
        <>
          <Status state={status.phase} />
          <span>{status.gpu}</span>
        </>
      }
      actions={<JobActions job={job} />}
    >
      <Tabs tabs={tabs} />
      <Warnings texts={status.warnings} />
      {tab === "" && (
        <div className="stack">
          {status.reason && (
            <Banner tone={status.phase === "Queued" ? "busy" : "warn"}>
              {status.position > 0 && <strong>{t("position {n}", { n: status.position })}: </strong>}
              {status.reason}
            </Banner>
          )}
          <Panel title={t("Programs")} flush>
            <PodsTable pods={status.pods} reason={status.reason} />
          </Panel>
          <DashboardFacts object={job} />
          <Panel title={t("Properties")}>
            <Facts
              rows={[
                [
                  t("Queue"),
                  <Link key="q" href={`/queues/${encodeURIComponent(spec.queue)}`}>
                    {spec.queue}
                  </Link>,
                ],
                [t("Compute group"), spec.computeGroup],
                [t("Engine"), spec.engine],
                [t("Priority"), spec.priority],
                [t("Retries"), spec.retries],
                [t("Deadline"), spec.deadlineSeconds ? `${spec.deadlineSeconds} s` : t("none")],
                [t("Submitted"), status.submittedAt ? clock(status.submittedAt) : ""],
                [t("Admitted"), status.admittedAt ? clock(status.admittedAt) : ""],
                [t("Finished"), status.finishedAt ? clock(status.finishedAt) : ""],
                [t("Exit status"), status.finishedAt ? status.exitStatus : ""],
                [t("GPU-hours"), status.gpuHours ? amount(status.gpuHours) : ""],
                [t("Account"), job.metadata.account],
                [t("Labels"), <Labels key="l" labels={job.metadata.labels} />],
              ]}
            />
            {spec.run.command.length > 0 && <Code>{spec.run.command.join(" ")}</Code>}
          </Panel>
          <Parameters job={job} />
        </div>
      )}
      {tab === "logs" && (
        <Panel flush>
          <LogView target={path`/v1/jobs/${job.metadata.name}/logs`} pods={podOptions(status.pods)} />
        </Panel>
      )}
      {tab === "events" && (
        <Panel flush>
          <ObjectEvents target={path`/v1/jobs/${job.metadata.name}/events`} />
        </Panel>
      )}
      {tab === "document" && (
        <Panel title={t("Stored object")}>
          <Code>{json(job)}</Code>
        </Panel>
      )}
    </Page>
  );
}
