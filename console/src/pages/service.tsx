import { useMemo } from "react";
import { Link, useParams } from "wouter";
import { path } from "../api/client";
import { path_of, type Workload } from "../api/types";
import { useT } from "../i18n";
import { useObject } from "../live/objects";
import {
  Banner,
  Code,
  Empty,
  Facts,
  json,
  Labels,
  Meter,
  Page,
  Panel,
  Status,
  Tabs,
  Warnings,
} from "../ui/basics";
import { clock } from "../ui/format";
import { LogView } from "../ui/logs";
import { type Column, DataTable } from "../ui/table";
import { SliceLink } from "./amounts";
import { NotFound } from "./not-found";
import { ObjectEvents } from "./object-events";
import { Actions } from "./service-actions";
import { Revisions } from "./service-revisions";
import { folder, hrefOf, shownName, verbTarget, type WorkloadKind } from "./services";

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
export function Replicas({ workload }: { workload: Workload }) {
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
