// Services and applications: lists, and the page of one with its rollout, replicas, logs and revisions.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { call, get, path, post } from "../api/client";
import { useRights } from "../api/session";
import { path_of, type Revision, type Workload } from "../api/types";
import { useT } from "../i18n";
import { useObject, useObjects } from "../live/objects";
import {
  Age,
  Banner,
  Button,
  Code,
  Empty,
  ErrorPanel,
  Facts,
  json,
  Labels,
  LinkButton,
  Loading,
  Meter,
  Page,
  Panel,
  Status,
  Tabs,
  Warnings,
} from "../ui/basics";
import { ActionMenu, ConfirmDialog, useAction } from "../ui/dialog";
import { Diff } from "../ui/diff";
import { SelectField, TextField } from "../ui/fields";
import { clock } from "../ui/format";
import { LogView } from "../ui/logs";
import { type Column, DataTable, type Selection } from "../ui/table";
import { SliceLink } from "./amounts";
import { EditDialog, targetOf } from "./edit-document";
import { NotFound } from "./not-found";
import { ObjectEvents } from "./object-events";

type WorkloadKind = "Service" | "Application";
const folder = (kind: WorkloadKind) => `/${path_of[kind]}`;
const hrefOf = (w: Workload) => `${folder(w.kind as WorkloadKind)}/${encodeURIComponent(w.metadata.name)}`;
const verbTarget = (w: Workload, verb: string) =>
  `/v1/${path_of[w.kind as WorkloadKind]}/${encodeURIComponent(w.metadata.name)}/${verb}?namespace=${encodeURIComponent(w.metadata.namespace)}`;
const shownName = (w: Workload) => w.metadata.annotations["eas.carve.dev/name"] ?? w.metadata.name;

function useColumns(): Column<Workload>[] {
  const t = useT();
  return useMemo(
    () => [
      {
        key: "name",
        header: t("Name"),
        cell: (w) => <Link href={hrefOf(w)}>{shownName(w)}</Link>,
        sortBy: (w) => w.metadata.name,
        text: (w) => `${w.metadata.name} ${shownName(w)}`,
      },
      {
        key: "status",
        header: t("Status"),
        cell: (w) => <Status state={w.status.phase} />,
        sortBy: (w) => w.status.phase,
        text: (w) => w.status.phase,
      },
      {
        key: "ready",
        header: t("Ready"),
        numeric: true,
        cell: (w) => `${w.status.readyReplicas}/${w.status.desiredReplicas}`,
        sortBy: (w) => w.status.readyReplicas,
      },
      { key: "gpu", header: "GPU", cell: (w) => w.status.gpu || "-", sortBy: (w) => w.status.memoryBytes },
      {
        key: "revision",
        header: t("Revision"),
        numeric: true,
        cell: (w) => w.status.revision,
        sortBy: (w) => w.status.revision,
      },
      {
        key: "restarts",
        header: t("Restarts"),
        numeric: true,
        cell: (w) => w.status.restarts,
        sortBy: (w) => w.status.restarts,
      },
      {
        key: "endpoint",
        header: t("Endpoint"),
        cell: (w) => (w.status.endpoint ? <span className="mono nowrap">{w.status.endpoint}</span> : "-"),
        text: (w) => w.status.endpoint,
      },
      {
        key: "account",
        header: t("Account"),
        cell: (w) => w.metadata.account,
        sortBy: (w) => w.metadata.account,
        text: (w) => w.metadata.account,
      },
      {
        key: "age",
        header: t("Age"),
        numeric: true,
        cell: (w) => <Age since={w.metadata.createdAt} />,
        sortBy: (w) => w.metadata.createdAt,
      },
    ],
    [t],
  );
}

function BulkBar({ chosen, clear }: { chosen: Workload[]; clear: () => void }) {
  const t = useT();
  const [verb, setVerb] = useState<"stop" | "start" | "restart" | null>(null);
  if (chosen.length === 0) return null;
  const titles = {
    stop: t("Stop {n} objects?", { n: chosen.length }),
    start: t("Start {n} objects?", { n: chosen.length }),
    restart: t("Restart {n} objects?", { n: chosen.length }),
  };
  const names = { stop: t("Stop"), start: t("Start"), restart: t("Restart") };
  return (
    <div className="bulk">
      <span className="muted">{t("{n} selected", { n: chosen.length })}</span>
      {(["stop", "start", "restart"] as const).map((name) => (
        <Button key={name} onClick={() => setVerb(name)}>
          {names[name]}
        </Button>
      ))}
      {verb && (
        <ConfirmDialog
          title={titles[verb]}
          verb={names[verb]}
          isDangerous={verb === "stop"}
          act={async () => {
            for (const w of chosen) await post(verbTarget(w, verb));
            clear();
          }}
          onClose={() => setVerb(null)}
        >
          <ul>
            {chosen.map((w) => (
              <li key={w.metadata.uid}>{`${w.kind.toLowerCase()}/${w.metadata.name}`}</li>
            ))}
          </ul>
        </ConfirmDialog>
      )}
    </div>
  );
}

function WorkloadsPage({ kind }: { kind: WorkloadKind }) {
  const t = useT();
  const rows = useObjects(kind) as Workload[];
  const columns = useColumns();
  const { mayChange } = useRights();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const selection: Selection | undefined = mayChange ? { selected, change: setSelected } : undefined;
  const create = mayChange && (
    <LinkButton href={`${folder(kind)}/new`} kind="primary">
      {kind === "Service" ? t("Create service") : t("Create application")}
    </LinkButton>
  );
  return (
    <Page title={kind === "Service" ? t("Services") : t("Applications")} actions={create}>
      <Panel flush>
        <DataTable
          label={kind === "Service" ? t("Services") : t("Applications")}
          columns={columns}
          rows={rows}
          rowKey={(w) => `${w.metadata.namespace}/${w.metadata.name}`}
          {...(selection && { selection })}
          toolbar={
            <BulkBar
              chosen={rows.filter((w) => selected.has(`${w.metadata.namespace}/${w.metadata.name}`))}
              clear={() => setSelected(new Set())}
            />
          }
          empty={
            <Empty
              title={kind === "Service" ? t("No services yet") : t("No applications yet")}
              action={create}
            >
              {kind === "Service"
                ? t(
                    "A service is a set of identical replicas of one program, each with its own slice of a GPU, behind one address.",
                  )
                : t("An application is a service in the form of Volcengine's AI applications.")}
            </Empty>
          }
        />
      </Panel>
    </Page>
  );
}
export const ServicesPage = () => <WorkloadsPage kind="Service" />;
export const ApplicationsPage = () => <WorkloadsPage kind="Application" />;

function Rollout({ workload }: { workload: Workload }) {
  const t = useT();
  const { status } = workload;
  const desired = status.desiredReplicas;
  const progressing = status.conditions.find((c) => c.type === "Progressing");
  return (
    <Panel title={t("Rollout")}>
      <div className="figures">
        <div className="figure">
          <strong>{`${status.readyReplicas} / ${desired}`}</strong>
          <span>{t("replicas ready")}</span>
        </div>
        <div className="figure">
          <strong>{`${status.updatedReplicas} / ${desired}`}</strong>
          <span>{t("available at revision {n}", { n: status.revision })}</span>
        </div>
        <div className="figure">
          <strong>{status.restarts}</strong>
          <span>{t("restarts")}</span>
        </div>
      </div>
      <Meter
        label={t("{n} of {all} replicas run revision {revision}", {
          n: status.updatedReplicas,
          all: desired,
          revision: status.revision,
        })}
        whole={Math.max(desired, 1)}
        parts={[
          { value: status.updatedReplicas, tone: "used" },
          { value: Math.max(status.readyReplicas - status.updatedReplicas, 0), tone: "granted" },
        ]}
      />
      {progressing?.status === "False" && (
        <Banner tone="bad">{progressing.message || progressing.reason}</Banner>
      )}
      <table>
        <thead>
          <tr>
            <th scope="col">{t("Condition")}</th>
            <th scope="col">{t("Status")}</th>
            <th scope="col">{t("Message")}</th>
          </tr>
        </thead>
        <tbody>
          {status.conditions.map((c) => {
            const isGood = (c.status === "True") !== ["Degraded", "ScalingLimited"].includes(c.type);
            return (
              <tr key={c.type}>
                <th scope="row">{c.type}</th>
                <td>
                  <Status state={c.status} tone={isGood ? "ok" : "warn"} />
                </td>
                <td className="cell-message">{c.message || c.reason}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Panel>
  );
}

type Replica = Workload["status"]["replicaList"][number];
function Replicas({ workload }: { workload: Workload }) {
  const t = useT();
  const columns = useMemo<Column<Replica>[]>(
    () => [
      { key: "index", header: "#", cell: (r) => r.index, sortBy: (r) => r.index },
      { key: "state", header: t("State"), cell: (r) => <Status state={r.state} />, sortBy: (r) => r.state },
      {
        key: "slice",
        header: t("Slice"),
        cell: (r) =>
          r.node && r.devices.length > 0 ? <SliceLink node={r.node} name={r.slice} /> : r.slice || "-",
        sortBy: (r) => r.slice,
      },
      {
        key: "node",
        header: t("Node"),
        cell: (r) => (r.node ? <Link href={`/nodes/${encodeURIComponent(r.node)}`}>{r.node}</Link> : "-"),
        sortBy: (r) => r.node,
      },
      {
        key: "revision",
        header: t("Revision"),
        numeric: true,
        cell: (r) => r.revision,
        sortBy: (r) => r.revision,
      },
      { key: "port", header: t("Port"), numeric: true, cell: (r) => r.port || "-" },
      {
        key: "restarts",
        header: t("Restarts"),
        numeric: true,
        cell: (r) => r.restarts,
        sortBy: (r) => r.restarts,
      },
      { key: "exit", header: t("Last exit"), cell: (r) => r.lastExit || "-" },
    ],
    [t],
  );
  return (
    <Panel title={t("Replicas")} flush>
      <DataTable
        label={t("Replicas")}
        columns={columns}
        rows={workload.status.replicaList}
        rowKey={(r) => r.slice || String(r.index)}
        empty={
          <Empty title={t("No replicas")}>
            {workload.spec.stopped
              ? t("It is stopped. Start it to run its replicas.")
              : t("The conditions above give the reason.")}
          </Empty>
        }
      />
    </Panel>
  );
}

const revisionText = (r: Revision) =>
  json({ gpu: r.gpu, command: r.command, image: r.image, restartedAt: r.restartedAt });

function Revisions({ workload }: { workload: Workload }) {
  const t = useT();
  const { mayChangeOf } = useRights();
  const revisions = useQuery({
    queryKey: [
      "revisions",
      workload.kind,
      workload.metadata.name,
      workload.status.revision,
      workload.metadata.generation,
    ],
    queryFn: () => get<{ items: Revision[] }>(verbTarget(workload, "revisions")),
  });
  const [compared, setCompared] = useState<number | null>(null);
  const [undone, setUndone] = useState<number | null>(null);
  const { run } = useAction();
  const items = useMemo(
    () => [...(revisions.data?.items ?? [])].sort((a, b) => b.revision - a.revision),
    [revisions.data],
  );
  if (revisions.isPending) return <Loading />;
  if (revisions.error) return <ErrorPanel error={revisions.error} />;
  const newest = items[0];
  const left = items.find((r) => r.revision === compared) ?? items[1];
  return (
    <div className="stack">
      <Panel flush>
        <div className="table-scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">{t("Revision")}</th>
                <th scope="col">{t("Created")}</th>
                <th scope="col">GPU</th>
                <th scope="col">{t("Program")}</th>
                <th scope="col">{t("Actions")}</th>
              </tr>
            </thead>
            <tbody>
              {items.map((r) => (
                <tr key={r.revision}>
                  <th scope="row">
                    {r.revision} {r === newest && <span className="muted">({t("current")})</span>}
                  </th>
                  <td className="nowrap">{clock(r.createdAt)}</td>
                  <td>
                    {r.gpu
                      ? `${r.gpu.memory || (r.gpu.exclusive ? t("whole device") : "-")} ${r.gpu.share}`
                      : "-"}
                  </td>
                  <td className="mono">{(r.image ? [r.image] : r.command).join(" ").slice(0, 80)}</td>
                  <td>
                    {r !== newest && (
                      <span className="actions">
                        <Button kind="quiet" onClick={() => setCompared(r.revision)}>
                          {t("Compare")}
                        </Button>
                        <Button
                          kind="quiet"
                          disabled={!mayChangeOf(workload.metadata.account)}
                          onClick={() => setUndone(r.revision)}
                        >
                          {t("Return to it")}
                        </Button>
                      </span>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Panel>
      {left && newest && left !== newest && (
        <Panel title={t("From revision {a} to revision {b}", { a: left.revision, b: newest.revision })}>
          <Diff label={t("Difference")} before={revisionText(left)} after={revisionText(newest)} />
        </Panel>
      )}
      {undone !== null && (
        <ConfirmDialog
          title={t("Return to revision {n}?", { n: undone })}
          verb={t("Return to it")}
          act={() =>
            run(
              () => post(verbTarget(workload, "undo"), { revision: undone }),
              t("Revision {n} is rolled out again", { n: undone }),
            )
          }
          onClose={() => setUndone(null)}
        >
          <p>
            {t(
              "A new revision with the spec of revision {n} replaces the replicas one by one. The number of replicas stays.",
              { n: undone },
            )}
          </p>
        </ConfirmDialog>
      )}
    </div>
  );
}

function ScaleDialog({ workload, onClose }: { workload: Workload; onClose: () => void }) {
  const t = useT();
  const [replicas, setReplicas] = useState(String(workload.spec.replicas));
  return (
    <ConfirmDialog
      title={t("Scale {name}", { name: shownName(workload) })}
      verb={t("Scale")}
      act={() => call("PATCH", targetOf(workload), { body: { spec: { replicas: Number(replicas) } } })}
      onClose={onClose}
    >
      <TextField
        label={t("Replicas")}
        kind="number"
        value={replicas}
        onChange={setReplicas}
        help={t("0 to 64; now {n}", { n: workload.spec.replicas })}
      />
    </ConfirmDialog>
  );
}

function AutoscaleDialog({ workload, onClose }: { workload: Workload; onClose: () => void }) {
  const t = useT();
  const now = "autoscale" in workload.spec ? workload.spec.autoscale : undefined;
  const [metric, setMetric] = useState<string>(now?.metric ?? "off");
  const [min, setMin] = useState(String(now?.min ?? 1));
  const [max, setMax] = useState(String(now?.max ?? 2));
  const [target, setTarget] = useState(String(now?.target ?? 10));
  const autoscale =
    metric === "off" ? null : { min: Number(min), max: Number(max), metric, target: Number(target) };
  return (
    <ConfirmDialog
      title={t("Autoscale {name}", { name: shownName(workload) })}
      verb={t("Save")}
      act={() => call("PATCH", targetOf(workload), { body: { spec: { autoscale } } })}
      onClose={onClose}
    >
      <SelectField
        label={t("The number of replicas follows")}
        value={metric}
        onChange={setMetric}
        options={[
          { value: "off", label: t("nothing: autoscaling is off") },
          { value: "qps", label: t("requests per second") },
          { value: "concurrency", label: t("simultaneous requests") },
          { value: "gpuUtilization", label: t("percent of its share that a replica uses") },
        ]}
      />
      {metric !== "off" && (
        <div className="row-fields">
          <TextField label={t("Fewest replicas")} kind="number" value={min} onChange={setMin} />
          <TextField label={t("Most replicas")} kind="number" value={max} onChange={setMax} />
          <TextField label={t("Target per replica")} kind="number" value={target} onChange={setTarget} />
        </div>
      )}
    </ConfirmDialog>
  );
}

function Actions({ workload }: { workload: Workload }) {
  const t = useT();
  const [, navigate] = useLocation();
  const { mayChangeOf } = useRights();
  const { run } = useAction();
  const [open, setOpen] = useState<"scale" | "autoscale" | "stop" | "restart" | "delete" | "edit" | null>(
    null,
  );
  const isDisabled = !mayChangeOf(workload.metadata.account);
  const isService = workload.kind === "Service";
  const isEas = isService && "source" in workload.spec && workload.spec.source?.dialect === "eas";
  const name = shownName(workload);
  const close = () => setOpen(null);
  return (
    <>
      <Button
        kind="primary"
        disabled={isDisabled}
        onClick={() => (isEas || !isService ? navigate(`${hrefOf(workload)}/edit`) : setOpen("edit"))}
      >
        {t("Update")}
      </Button>
      <Button disabled={isDisabled} onClick={() => setOpen("scale")}>
        {t("Scale")}
      </Button>
      {workload.spec.stopped ? (
        <Button
          disabled={isDisabled}
          onClick={() => void run(() => post(verbTarget(workload, "start")), t("{name} starts", { name }))}
        >
          {t("Start")}
        </Button>
      ) : (
        <Button disabled={isDisabled} onClick={() => setOpen("stop")}>
          {t("Stop")}
        </Button>
      )}
      <ActionMenu
        label={t("More")}
        actions={[
          { id: "restart", label: t("Restart"), isDisabled, act: () => setOpen("restart") },
          ...(isService
            ? [{ id: "autoscale", label: t("Autoscale"), isDisabled, act: () => setOpen("autoscale") }]
            : []),
          { id: "edit", label: t("Edit the spec"), isDisabled, act: () => setOpen("edit") },
          { id: "delete", label: t("Delete"), isDisabled, act: () => setOpen("delete") },
        ]}
      />
      {open === "scale" && <ScaleDialog workload={workload} onClose={close} />}
      {open === "autoscale" && <AutoscaleDialog workload={workload} onClose={close} />}
      {open === "edit" && <EditDialog object={workload} onClose={close} />}
      {open === "stop" && (
        <ConfirmDialog
          title={t("Stop {name}?", { name })}
          verb={t("Stop")}
          isDangerous
          act={() => post(verbTarget(workload, "stop"))}
          onClose={close}
        >
          <p>
            {t("Its {n} replicas end and release their slices. The object stays and can be started again.", {
              n: workload.status.replicas,
            })}
          </p>
        </ConfirmDialog>
      )}
      {open === "restart" && (
        <ConfirmDialog
          title={t("Restart {name}?", { name })}
          verb={t("Restart")}
          act={() => post(verbTarget(workload, "restart"))}
          onClose={close}
        >
          <p>{t("A new revision replaces every replica, one by one.")}</p>
        </ConfirmDialog>
      )}
      {open === "delete" && (
        <ConfirmDialog
          title={t("Delete {name}?", { name })}
          verb={t("Delete")}
          isDangerous
          act={async () => {
            await call("DELETE", targetOf(workload));
            navigate(folder(workload.kind as WorkloadKind));
          }}
          onClose={close}
        >
          <p>
            {t("Its {n} replicas end, and its revisions and logs are removed.", {
              n: workload.status.replicas,
            })}
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

function Details({ workload }: { workload: Workload }) {
  const t = useT();
  const { spec, status, metadata } = workload;
  const autoscale = "autoscale" in spec ? spec.autoscale : undefined;
  const policy = spec.gpu && "policy" in spec.gpu ? spec.gpu.policy : "";
  return (
    <Panel title={t("Properties")}>
      <Facts
        rows={[
          ["GPU", status.gpu],
          [t("Policy"), policy || t("the node's")],
          [
            t("Node pool"),
            spec.pool ? (
              <Link key="p" href={`/pools/${encodeURIComponent(spec.pool)}`}>
                {spec.pool}
              </Link>
            ) : (
              t("any node")
            ),
          ],
          [t("Endpoint"), status.endpoint && <span className="mono">{status.endpoint}</span>],
          [
            t("Autoscale"),
            autoscale
              ? t("{min} to {max} replicas, {metric} {target} each", {
                  min: autoscale.min,
                  max: autoscale.max,
                  metric: autoscale.metric,
                  target: autoscale.target,
                })
              : t("off"),
          ],
          [t("Account"), metadata.account],
          [t("Labels"), <Labels key="labels" labels={metadata.labels} />],
          [t("Created"), clock(metadata.createdAt)],
          [
            t("CPU"),
            spec.cpu?.request || spec.cpu?.limit
              ? `${spec.cpu.request || "-"} / ${spec.cpu.limit || "-"}`
              : "",
          ],
          [
            t("Host memory"),
            spec.memory?.request || spec.memory?.limit
              ? `${spec.memory.request || "-"} / ${spec.memory.limit || "-"}`
              : "",
          ],
        ]}
      />
    </Panel>
  );
}

function DocumentTab({ workload }: { workload: Workload }) {
  const t = useT();
  const source = "source" in workload.spec ? workload.spec.source : undefined;
  return (
    <div className="stack">
      {source?.document && (
        <Panel title={t("Document as it was sent ({dialect})", { dialect: source.dialect })}>
          <Code>{source.document}</Code>
        </Panel>
      )}
      <Panel title={t("Stored object")}>
        <Code>{json(workload)}</Code>
      </Panel>
    </div>
  );
}

function WorkloadPage({ kind }: { kind: WorkloadKind }) {
  const t = useT();
  const { name = "", tab = "" } = useParams<{ name: string; tab: string }>();
  const workload = useObject(kind, decodeURIComponent(name)) as Workload | undefined;
  if (!workload) return <NotFound what={`${kind.toLowerCase()}/${name}`} />;
  const href = hrefOf(workload);
  const tabs = [
    { label: t("Overview"), id: "" },
    { label: t("Logs"), id: "logs" },
    { label: t("Revisions"), id: "revisions" },
    { label: t("Events"), id: "events" },
    { label: t("Document"), id: "document" },
  ].map(({ label, id }) => ({ label, href: id ? `${href}/${id}` : href, isCurrent: tab === id }));
  return (
    <Page
      title={shownName(workload)}
      crumbs={[[kind === "Service" ? t("Services") : t("Applications"), folder(kind)]]}
      actions={<Actions workload={workload} />}
      lead={
        <>
          <Status state={workload.status.phase} />
          <span>{workload.status.gpu}</span>
        </>
      }
    >
      <Tabs tabs={tabs} />
      <Warnings texts={workload.status.warnings} />
      {tab === "" && (
        <div className="stack">
          <Rollout workload={workload} />
          <Replicas workload={workload} />
          <Details workload={workload} />
        </div>
      )}
      {tab === "logs" && (
        <Panel flush>
          <LogView
            target={path`/v1/${path_of[kind]}/${workload.metadata.name}/logs`}
            pods={workload.status.replicaList.map((r) => ({
              value: `replica=${r.index}`,
              label: t("replica {n}", { n: r.index }),
            }))}
          />
        </Panel>
      )}
      {tab === "revisions" && <Revisions workload={workload} />}
      {tab === "events" && (
        <Panel flush>
          <ObjectEvents target={verbTarget(workload, "events")} />
        </Panel>
      )}
      {tab === "document" && <DocumentTab workload={workload} />}
    </Page>
  );
}
export const ServicePage = () => <WorkloadPage kind="Service" />;
export const ApplicationPage = () => <WorkloadPage kind="Application" />;
