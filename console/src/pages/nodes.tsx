// Nodes: the list, and one node with its devices, settings, labels and slices.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link, useParams } from "wouter";
import { call, get, path, post } from "../api/client";
import { useRights } from "../api/session";
import type { Node } from "../api/types";
import { useT } from "../i18n";
import { type NodeDevice, useDevices, useNode, useNodes, useObjects } from "../live/objects";
import {
  Age,
  Banner,
  Button,
  Code,
  Empty,
  ErrorPanel,
  Facts,
  Loading,
  Page,
  Panel,
  Status,
  Tag,
} from "../ui/basics";
import { ActionMenu, ConfirmDialog, useAction } from "../ui/dialog";
import { Checkbox, SelectField, TextField } from "../ui/fields";
import { bytes, clock } from "../ui/format";
import { type Column, DataTable } from "../ui/table";
import { GrantedCell, ObjectLink, ShareCell, SliceLink } from "./amounts";
import { NotFound } from "./not-found";
import { ObjectEvents } from "./object-events";

const hrefOf = (node: Node) => `/nodes/${encodeURIComponent(node.metadata.name)}`;
export const stateOf = (node: Node) =>
  node.status.agent?.reachability === "unreachable" ? "unreachable" : node.status.state;

interface SettingValue {
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
  const { devices, problems } = useDevices([node.metadata.name]);
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
  );
}

// The system labels and their values (docs/pools.md).
const system_labels: Record<string, string[]> = {
  "carve.dev/compute-policy": ["fixed-share", "guaranteed-burst-share", "native-burst-share"],
  "carve.dev/mode": ["memory-and-compute", "memory", "none", "exclusive"],
  "carve.dev/placement": ["binpack", "spread"],
  "carve.dev/memory-unit": ["1GiB", "128MiB"],
};

function AddLabel({ node, onClose }: { node: Node; onClose: () => void }) {
  const t = useT();
  const [kind, setKind] = useState("other");
  const [key, setKey] = useState("");
  const [value, setValue] = useState("");
  const [isWhenFree, setWhenFree] = useState(false);
  const values = system_labels[kind];
  const name = kind === "other" ? key.trim() : kind;
  return (
    <ConfirmDialog
      title={t("Add label to {name}", { name: node.metadata.name })}
      verb={t("Add label")}
      act={() =>
        call("PATCH", path`/v1/nodes/${node.metadata.name}`, {
          body: { metadata: { labels: { [name]: value } } },
          query: { whenFree: isWhenFree },
        })
      }
      onClose={onClose}
    >
      <SelectField
        label={t("Label")}
        value={kind}
        onChange={(next) => {
          setKind(next);
          setValue(system_labels[next]?.[0] ?? "");
        }}
        options={[
          { value: "other", label: t("another key") },
          ...Object.keys(system_labels).map((label) => ({
            value: label,
            label: `${label} (${t("system label")})`,
          })),
        ]}
      />
      {kind === "other" && <TextField label={t("Key")} value={key} onChange={setKey} isRequired />}
      {values ? (
        <SelectField
          label={t("Value")}
          value={value}
          onChange={setValue}
          options={values.map((v) => ({ value: v, label: v }))}
        />
      ) : (
        <TextField label={t("Value")} value={value} onChange={setValue} />
      )}
      {values && (
        <p className="help">
          {t(
            "The value of a system label cannot be changed while the node has it: remove the label, restart the node, and add it again, or change it through its node pool.",
          )}
        </p>
      )}
      {kind === "carve.dev/memory-unit" && (
        <Checkbox
          label={t("When free: take effect when no slice was requested in units")}
          value={isWhenFree}
          onChange={setWhenFree}
        />
      )}
    </ConfirmDialog>
  );
}

function LabelsPanel({ node }: { node: Node }) {
  const t = useT();
  const { mayOperate } = useRights();
  const [isAdding, setAdding] = useState(false);
  const [removed, setRemoved] = useState<string | null>(null);
  const entries = Object.entries(node.metadata.labels);
  return (
    <Panel
      title={t("Labels")}
      actions={
        <Button disabled={!mayOperate} onClick={() => setAdding(true)}>
          {t("Add label")}
        </Button>
      }
    >
      {entries.length === 0 ? (
        <p className="muted">{t("No labels. Without a system label the node has the default value.")}</p>
      ) : (
        <table>
          <tbody>
            {entries.map(([key, value]) => (
              <tr key={key}>
                <th scope="row" className="mono">
                  {key}
                </th>
                <td className="mono">{value}</td>
                <td className="numeric">
                  <Button
                    kind="quiet"
                    disabled={!mayOperate}
                    onClick={() => setRemoved(key)}
                    aria-label={t("Remove label {key}", { key })}
                  >
                    {t("Remove")}
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {node.status.removedLabels.length > 0 && (
        <Banner tone="warn">
          {t("Removed labels wait for a restart of the node: {labels}", {
            labels: node.status.removedLabels.join(", "),
          })}
        </Banner>
      )}
      {node.status.taints.length > 0 && (
        <p>
          {t("Taints")}:{" "}
          {node.status.taints.map((taint) => (
            <Tag key={taint}>{taint}</Tag>
          ))}
        </p>
      )}
      {isAdding && <AddLabel node={node} onClose={() => setAdding(false)} />}
      {removed && (
        <ConfirmDialog
          title={t("Remove label {key}?", { key: removed })}
          verb={t("Remove")}
          isDangerous
          act={() =>
            call("PATCH", path`/v1/nodes/${node.metadata.name}`, {
              body: { metadata: { labels: { [removed]: null } } },
            })
          }
          onClose={() => setRemoved(null)}
        >
          <p>
            {removed in system_labels
              ? t(
                  "A system label takes effect until the node is restarted. Then the node has the default value.",
                )
              : t("The label is removed from node {name}.", { name: node.metadata.name })}
          </p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

function SettingsPanel({ node }: { node: Node }) {
  const t = useT();
  const settings: [string, SettingValue][] = [
    [t("Compute policy"), node.status.policy],
    [t("Isolation mode"), node.status.mode],
    [t("Memory unit"), node.status.memoryUnit],
  ];
  return (
    <Panel title={t("Settings")}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t("Setting")}</th>
            <th scope="col">{t("Desired")}</th>
            <th scope="col">{t("Effective")}</th>
            <th scope="col">{t("Blocked by")}</th>
          </tr>
        </thead>
        <tbody>
          {settings.map(([name, setting]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{setting.desired || "-"}</td>
              <td>
                {setting.desired === setting.effective ? (
                  setting.effective || "-"
                ) : (
                  <Status state="pending" tone="warn">
                    {setting.effective || "-"}
                  </Status>
                )}
              </td>
              <td>
                {setting.blockedBy.length ? (
                  <span className="link-list">
                    {setting.blockedBy.map((name) => (
                      <SliceLink key={name} node={node.metadata.name} name={name} />
                    ))}
                  </span>
                ) : (
                  "-"
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <Facts
        rows={[
          [t("Placement"), node.status.placement],
          [t("Policy per slice"), node.status.hasPolicyPerSlice ? t("yes") : t("no")],
          [t("Best effort"), node.status.admitsBestEffort ? t("allowed") : t("refused")],
          [t("Contexts count against"), node.status.contextsInSlice ? t("the slice") : t("the reserve")],
        ]}
      />
    </Panel>
  );
}

function PoolDialog({ node, onClose }: { node: Node; onClose: () => void }) {
  const t = useT();
  const pools = useObjects("Pool");
  const [pool, setPool] = useState(node.spec.pool);
  return (
    <ConfirmDialog
      title={t("Node pool of {name}", { name: node.metadata.name })}
      verb={t("Save")}
      act={() => call("PATCH", path`/v1/nodes/${node.metadata.name}`, { body: { spec: { pool } } })}
      onClose={onClose}
    >
      <SelectField
        label={t("Node pool")}
        value={pool}
        onChange={setPool}
        options={[
          { value: "", label: t("none") },
          ...pools.map((p) => ({ value: p.metadata.name, label: p.metadata.name })),
        ]}
        help={t("The node gets the labels and taints of the pool.")}
      />
    </ConfirmDialog>
  );
}

type Open = "restart" | "drain" | "stop" | "pool" | "end" | null;
function NodeActions({ node }: { node: Node }) {
  const t = useT();
  const { mayOperate } = useRights();
  const { run } = useAction();
  const [open, setOpen] = useState<Open>(null);
  const [isForced, setForced] = useState(false);
  const name = node.metadata.name;
  const isDisabled = !mayOperate;
  const close = () => {
    setOpen(null);
    setForced(false);
  };
  const unmanaged = node.status.sliceList.filter((s) => !s.workload);
  const sliceItems = (slices: Node["status"]["sliceList"]) => (
    <ul>
      {slices.map((s) => (
        <li key={s.name}>
          {s.name}
          {s.workload && <span className="muted"> ({`${s.kind}/${s.workload}`})</span>}
        </li>
      ))}
    </ul>
  );
  return (
    <>
      {node.spec.schedulable ? (
        <Button
          disabled={isDisabled}
          onClick={() =>
            void run(
              () => call("PATCH", path`/v1/nodes/${name}`, { body: { spec: { schedulable: false } } }),
              t("{name} gets no new slices", { name }),
            )
          }
        >
          {t("Cordon")}
        </Button>
      ) : (
        <Button
          disabled={isDisabled}
          onClick={() =>
            void run(
              () => call("PATCH", path`/v1/nodes/${name}`, { body: { spec: { schedulable: true } } }),
              t("{name} gets new slices again", { name }),
            )
          }
        >
          {t("Uncordon")}
        </Button>
      )}
      <Button disabled={isDisabled} onClick={() => setOpen("drain")}>
        {t("Drain")}
      </Button>
      <Button disabled={isDisabled} onClick={() => setOpen("restart")}>
        {t("Restart")}
      </Button>
      <ActionMenu
        label={t("More")}
        actions={[
          { id: "pool", label: t("Change node pool"), isDisabled, act: () => setOpen("pool") },
          node.spec.stopped
            ? {
                id: "start",
                label: t("Start"),
                isDisabled,
                act: () => void run(() => post(path`/v1/nodes/${name}/start`), t("{name} starts", { name })),
              }
            : { id: "stop", label: t("Stop"), isDisabled, act: () => setOpen("stop") },
          { id: "end", label: t("End all slices"), isDisabled, act: () => setOpen("end") },
        ]}
      />
      {open === "drain" && (
        <ConfirmDialog
          title={t("Drain {name}?", { name })}
          verb={t("Drain")}
          act={() => post(path`/v1/nodes/${name}/drain`)}
          onClose={close}
        >
          <p>
            {t(
              "The node gets no new slices, and the replicas of services move to other nodes when a new replica is ready there.",
            )}
          </p>
          {unmanaged.length > 0 && (
            <Banner tone="warn">
              {t("These slices belong to no service or job and stay:")}{" "}
              {unmanaged.map((s) => s.name).join(", ")}
            </Banner>
          )}
        </ConfirmDialog>
      )}
      {open === "restart" && (
        <ConfirmDialog
          title={t("Restart {name}?", { name })}
          verb={t("Restart")}
          isDangerous={isForced}
          act={() => post(path`/v1/nodes/${name}/restart`, {}, { force: isForced })}
          onClose={close}
        >
          <p>
            {t(
              "The desired settings take effect when the running slices have ended. Until then the node rejects new slices.",
            )}
          </p>
          {node.status.sliceList.length > 0 && (
            <>
              <p>{t("Slices that block the restart:")}</p>
              {sliceItems(node.status.sliceList)}
              <Checkbox label={t("End these slices now")} value={isForced} onChange={setForced} />
            </>
          )}
        </ConfirmDialog>
      )}
      {open === "stop" && (
        <ConfirmDialog
          title={t("Stop {name}?", { name })}
          verb={t("Stop")}
          isDangerous
          act={() => post(path`/v1/nodes/${name}/stop`)}
          onClose={close}
        >
          <p>{t("The node rejects new slices and is shown as Stopped. Running slices continue.")}</p>
        </ConfirmDialog>
      )}
      {open === "end" && (
        <ConfirmDialog
          title={t("End all slices of {name}?", { name })}
          verb={t("End {n} slices", { n: node.status.sliceList.length })}
          isDangerous
          act={() => post(path`/v1/nodes/${name}/end-slices`)}
          onClose={close}
        >
          {sliceItems(node.status.sliceList)}
        </ConfirmDialog>
      )}
      {open === "pool" && <PoolDialog node={node} onClose={close} />}
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
