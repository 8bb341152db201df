// Nodes: the list, and one node with its devices, settings, labels and slices.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useParams } from "wouter";
import { get, path } from "../api/client";
import type { Node } from "../api/types";
import { useT } from "../i18n";
import { type NodeDevice, useDevices, useNode, useNodes } from "../live/objects";
import { Age, Banner, Code, Empty, ErrorPanel, Facts, Loading, Page, Panel, Status, Tag } from "../ui/basics";
import { bytes, clock } from "../ui/format";
import { type Column, DataTable } from "../ui/table";
import { GrantedCell, ObjectLink, ShareCell, SliceLink } from "./amounts";
import { DeviceCharts } from "./history-charts";
import { NodeActions } from "./node-actions";
import { LabelsPanel, SettingsPanel } from "./node-settings";
import { NotFound } from "./not-found";
import { ObjectEvents } from "./object-events";

const hrefOf = (node: Node) => `/nodes/${encodeURIComponent(node.metadata.name)}`;
export const stateOf = (node: Node) =>
  node.status.agent?.reachability === "unreachable" ? "unreachable" : node.status.state;

export interface SettingValue {
  desired: string;
  effective: string;
  blockedBy: string[];
}
export const settingText = (setting: SettingValue) =>
  setting.desired === setting.effective
    ? setting.effective || "-"
    : `${setting.effective} → ${setting.desired}`;

export function NodesPage() {
  const t = useT();
  const nodes = useNodes();
  const columns = useMemo<Column<Node>[]>(
    () => [
      {
        key: "name",
        header: t("Name"),
        cell: (n) => <Link href={hrefOf(n)}>{n.metadata.name}</Link>,
        sortBy: (n) => n.metadata.name,
        text: (n) => n.metadata.name,
      },
      {
        key: "state",
        header: t("State"),
        cell: (n) => (
          <span className="tags">
            <Status state={stateOf(n)} />
            {!n.spec.schedulable && <Tag>{n.spec.draining ? t("draining") : t("cordoned")}</Tag>}
            {n.spec.restarting && <Tag>{t("restarting")}</Tag>}
          </span>
        ),
        sortBy: stateOf,
        text: stateOf,
      },
      {
        key: "pool",
        header: t("Node pool"),
        cell: (n) =>
          n.spec.pool ? <Link href={`/pools/${encodeURIComponent(n.spec.pool)}`}>{n.spec.pool}</Link> : "-",
        sortBy: (n) => n.spec.pool,
        text: (n) => n.spec.pool,
      },
      {
        key: "gpu",
        header: "GPU",
        cell: (n) =>
          n.status.devices.length
            ? `${n.status.gpus} × ${[...new Set(n.status.devices.map((d) => d.name))].join(", ")}`
            : n.status.gpus,
        sortBy: (n) => n.status.gpus,
        text: (n) => n.status.devices.map((d) => d.name).join(" "),
      },
      {
        key: "slices",
        header: t("Slices"),
        numeric: true,
        cell: (n) => n.status.slices,
        sortBy: (n) => n.status.slices,
      },
      {
        key: "memory",
        header: t("Memory granted"),
        cell: (n) => (
          <GrantedCell
            granted={n.status.devices.reduce((s, d) => s + d.usableBytes - d.freeBytes, 0)}
            usable={n.status.devices.reduce((s, d) => s + d.usableBytes, 0)}
          />
        ),
        sortBy: (n) => n.status.devices.reduce((s, d) => s + d.usableBytes - d.freeBytes, 0),
      },
      {
        key: "units",
        header: t("Memory units"),
        cell: (n) => (
          <span className="nowrap">{`${n.status.gpuMemUnits.allocated}/${n.status.gpuMemUnits.capacity} × ${n.status.gpuMemUnits.unit}`}</span>
        ),
      },
      {
        key: "policy",
        header: t("Policy"),
        cell: (n) => settingText(n.status.policy),
        sortBy: (n) => n.status.policy.effective,
      },
      {
        key: "version",
        header: t("Agent"),
        cell: (n) => n.status.agent?.version || "-",
        sortBy: (n) => n.status.agent?.version ?? "",
      },
      {
        key: "seen",
        header: t("Last response"),
        numeric: true,
        cell: (n) =>
          n.status.agent?.reachability === "unreachable" ? (
            <Age since={n.status.agent.lastSeenAt} />
          ) : (
            t("now")
          ),
      },
    ],
    [t],
  );
  return (
    <Page title={t("Nodes")}>
      <Panel flush>
        <DataTable
          label={t("Nodes")}
          columns={columns}
          rows={nodes}
          rowKey={(n) => n.metadata.name}
          empty={
            <Empty title={t("No node")}>
              {t("The controller has no node. Start it with --node NAME=SOCKET for each agent.")}
            </Empty>
          }
        />
      </Panel>
    </Page>
  );
}

function DevicesPanel({ node }: { node: Node }) {
  const t = useT();
  const { devices, problems, updatedAt } = useDevices([node.metadata.name]);
  const columns = useMemo<Column<NodeDevice>[]>(
    () => [
      { key: "index", header: "#", cell: (d) => d.index, sortBy: (d) => d.index },
      {
        key: "name",
        header: t("Model"),
        cell: (d) => (
          <span className="nowrap" title={`${d.uuid}, PCI ${d.pci_id}`}>
            {d.name}
            {d.simulated && <span className="muted"> ({t("simulated")})</span>}
          </span>
        ),
        sortBy: (d) => d.name,
      },
      {
        key: "health",
        header: t("Health"),
        cell: (d) => (
          <>
            <Status state={d.health.state} />
            {d.health.reason && <div className="help">{d.health.reason}</div>}
          </>
        ),
        sortBy: (d) => d.health.state,
      },
      {
        key: "memory",
        header: t("Memory granted"),
        cell: (d) => (
          <GrantedCell granted={d.granted_bytes} usable={d.usable_bytes} used={d.used_in_slices_bytes} />
        ),
        sortBy: (d) => d.granted_bytes,
      },
      {
        key: "compute",
        header: t("Compute granted"),
        cell: (d) => <ShareCell granted={d.share_granted_bp} whole={10000} />,
        sortBy: (d) => d.share_granted_bp,
      },
      {
        key: "utilization",
        header: t("Utilization"),
        numeric: true,
        cell: (d) => `${d.utilization_percent}%`,
        sortBy: (d) => d.utilization_percent,
      },
      {
        key: "slices",
        header: t("Slices"),
        numeric: true,
        cell: (d) => `${d.slices}/${d.max_slices}`,
        sortBy: (d) => d.slices,
      },
      {
        key: "commitment",
        header: t("Commitment"),
        cell: (d) => <Status state={d.commitment} tone={d.commitment === "normal" ? "ok" : "warn"} />,
      },
      {
        key: "compute-level",
        header: t("Enforcement"),
        cell: (d) =>
          d.compute ? (d.compute.level === "none" ? d.compute.reason || "none" : d.compute.level) : "-",
      },
      {
        key: "readings",
        header: t("Readings"),
        cell: (d) => (
          <span className="nowrap">
            {d.readings
              ? [
                  d.readings.temperature_celsius !== undefined && `${d.readings.temperature_celsius} °C`,
                  d.readings.power_milliwatts !== undefined &&
                    `${(d.readings.power_milliwatts / 1000).toFixed(0)} W`,
                  d.readings.sm_clock_mhz !== undefined && `${d.readings.sm_clock_mhz} MHz`,
                ]
                  .filter(Boolean)
                  .join(", ")
              : "-"}
          </span>
        ),
      },
    ],
    [t],
  );
  return (
    <>
      <Panel title={t("Devices")} flush>
        {problems.map((p) => (
          <ErrorPanel key={p.message} error={new Error(p.message)} />
        ))}
        <DataTable
          label={t("Devices")}
          columns={columns}
          rows={devices}
          rowKey={(d) => d.uuid}
          empty={<Empty title={t("No devices")}>{t("The agent reports no device.")}</Empty>}
        />
      </Panel>
      <DeviceCharts devices={devices} updatedAt={updatedAt} />
    </>
  );
}

interface Diagnosis {
  memory: string;
  compute: string;
  checks: { name: string; status: string; detail: string; fix: string }[];
}

function DoctorPanel({ node }: { node: Node }) {
  const t = useT();
  const doctor = useQuery({
    queryKey: ["node", node.metadata.name, "doctor"],
    queryFn: () => get<Diagnosis>(path`/v1/nodes/${node.metadata.name}/doctor`),
    staleTime: 30_000,
  });
  return (
    <Panel title={t("Diagnosis")}>
      {doctor.isPending ? (
        <Loading />
      ) : doctor.error ? (
        <ErrorPanel error={doctor.error} />
      ) : (
        <div className="table-scroll">
          <table>
            <tbody>
              {doctor.data.checks.map((check) => (
                <tr key={check.name}>
                  <th scope="row">{check.name}</th>
                  <td>
                    <Status state={check.status} />
                  </td>
                  <td className="cell-message">
                    {check.detail}
                    {check.fix && <div className="help">{t("fix: {fix}", { fix: check.fix })}</div>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

export function NodePage() {
  const t = useT();
  const { name = "" } = useParams<{ name: string }>();
  const node = useNode(decodeURIComponent(name));
  if (!node) return <NotFound what={`node/${name}`} />;
  const agent = node.status.agent;
  return (
    <Page
      title={node.metadata.name}
      crumbs={[[t("Nodes"), "/nodes"]]}
      actions={<NodeActions node={node} />}
      lead={
        <>
          <Status state={stateOf(node)} />
          {node.status.state === "Starting" && (
            <span>{t("about {s} s remain", { s: node.status.readyInSeconds })}</span>
          )}
          {!node.spec.schedulable && <span>{node.spec.cordoned || t("cordoned")}</span>}
        </>
      }
    >
      {agent?.problem && <Banner tone="bad">{agent.problem}</Banner>}
      <DevicesPanel node={node} />
      <div className="columns">
        <SettingsPanel node={node} />
        <LabelsPanel node={node} />
      </div>
      <Panel title={t("Slices")}>
        {node.status.sliceList.length === 0 ? (
          <p className="muted">{t("No slice runs on this node.")}</p>
        ) : (
          <table>
            <thead>
              <tr>
                <th scope="col">{t("Slice")}</th>
                <th scope="col">{t("Service or job")}</th>
              </tr>
            </thead>
            <tbody>
              {node.status.sliceList.map((slice) => (
                <tr key={slice.name}>
                  <th scope="row">
                    <SliceLink node={node.metadata.name} name={slice.name} />
                  </th>
                  <td>
                    {slice.workload ? (
                      <ObjectLink
                        kind={slice.kind}
                        name={slice.workload}
                      >{`${slice.kind}/${slice.workload}`}</ObjectLink>
                    ) : (
                      "-"
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Panel>
      <Panel title={t("Properties")}>
        <Facts
          rows={[
            [
              t("Node pool"),
              node.spec.pool && (
                <Link href={`/pools/${encodeURIComponent(node.spec.pool)}`}>{node.spec.pool}</Link>
              ),
            ],
            [t("Instance type"), node.spec.instanceType],
            [
              t("Memory units"),
              `${node.status.gpuMemUnits.allocated}/${node.status.gpuMemUnits.capacity} × ${node.status.gpuMemUnits.unit}`,
            ],
            [t("CPU"), node.status.cpuMilli ? String(node.status.cpuMilli / 1000) : ""],
            [t("Host memory"), node.status.memoryBytes ? bytes(node.status.memoryBytes) : ""],
            [t("Agent"), agent?.version],
            [t("Agent since"), agent?.startedAt ? clock(agent.startedAt) : ""],
            [t("Last response"), agent?.lastSeenAt ? clock(agent.lastSeenAt) : ""],
            [t("Socket"), agent?.socket && <span className="mono">{agent.socket}</span>],
          ]}
        />
        {node.status.links?.length > 1 && (
          <>
            <h3>{t("Links between devices")}</h3>
            <Code>{node.status.links.join("\n")}</Code>
          </>
        )}
      </Panel>
      <DoctorPanel node={node} />
      <Panel title={t("Events")} flush>
        <ObjectEvents target={path`/v1/nodes/${node.metadata.name}/events`} />
      </Panel>
    </Page>
  );
}
