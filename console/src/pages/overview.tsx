// The fleet at a glance: problems first, what runs where, and what would fit now.
import { useMemo, useState } from "react";
import { Link, useSearchParams } from "wouter";
import type { Node } from "../api/types";
import { useT } from "../i18n";
import { type NodeSlice, useLive, useNodes, useObjects, useSlices } from "../live/objects";
import { Button, Empty, LinkButton, Page, Panel, Status } from "../ui/basics";
import { SelectField } from "../ui/fields";
import { bytes, share } from "../ui/format";
import { type Column, DataTable } from "../ui/table";
import { GrantedCell, ShareCell, SliceLink } from "./amounts";
import { FleetMap, type MapDevice } from "./fleet-map";
import { ProblemList, useProblems } from "./problems";
import type { ColourBy } from "./slice-colours";
import { WhatFits } from "./what-fits";

// Above this number the map shows groups of devices by node pool and model.
const max_mapped_devices = 256;

interface Group {
  pool: string;
  model: string;
  devices: MapDevice[];
}

function devicesOf(nodes: Node[]): (MapDevice & { pool: string })[] {
  return nodes
    .flatMap((node) =>
      node.status.devices.map((d) => ({
        node: node.metadata.name,
        pool: node.spec.pool || "-",
        index: d.index,
        uuid: d.uuid,
        name: d.name,
        usableBytes: d.usableBytes,
        freeBytes: d.freeBytes,
        freeShareBp: d.freeShareBp,
        slices: d.slices,
        maxSlices: d.maxSlices,
        exclusiveTo: d.exclusiveTo,
        problem:
          node.status.agent?.reachability === "unreachable"
            ? "unreachable"
            : d.health.state !== "ok"
              ? d.health.state
              : node.status.state !== "Running"
                ? node.status.state
                : "",
      })),
    )
    .sort(
      (a, b) =>
        Number(a.problem === "") - Number(b.problem === "") ||
        a.node.localeCompare(b.node, "en", { numeric: true }) ||
        a.index - b.index,
    );
}

function Figures({ devices, slices }: { devices: MapDevice[]; slices: NodeSlice[] }) {
  const t = useT();
  const services = [...useObjects("Service"), ...useObjects("Application")];
  const jobs = useObjects("Job");
  const usable = devices.reduce((sum, d) => sum + d.usableBytes, 0);
  const free = devices.reduce((sum, d) => sum + d.freeBytes, 0);
  const freeShare = devices.reduce((sum, d) => sum + d.freeShareBp, 0);
  const figures: [string, string][] = [
    [t("Devices"), String(devices.length)],
    [t("Slices"), String(devices.reduce((sum, d) => sum + d.slices, 0) || slices.length)],
    [t("Memory granted"), `${bytes(usable - free)} / ${bytes(usable)}`],
    [t("Compute granted"), `${share(devices.length * 10000 - freeShare)} / ${share(devices.length * 10000)}`],
    [
      t("Services ready"),
      `${services.filter((s) => s.status.readyReplicas >= s.status.desiredReplicas && s.status.desiredReplicas > 0).length} / ${services.length}`,
    ],
    [t("Jobs waiting"), String(jobs.filter((j) => j.status.phase === "Queued").length)],
  ];
  return (
    <div className="figures">
      {figures.map(([name, value]) => (
        <div className="figure" key={name}>
          <strong>{value}</strong>
          <span>{name}</span>
        </div>
      ))}
    </div>
  );
}

function DeviceTable({ devices, slices }: { devices: MapDevice[]; slices: NodeSlice[] }) {
  const t = useT();
  const columns = useMemo<Column<MapDevice>[]>(
    () => [
      {
        key: "device",
        header: t("Device"),
        cell: (d) => <Link href={`/nodes/${encodeURIComponent(d.node)}`}>{`${d.node} · ${d.index}`}</Link>,
        sortBy: (d) => `${d.node} ${d.index}`,
        text: (d) => `${d.node} ${d.name} ${d.uuid}`,
      },
      { key: "model", header: t("Model"), cell: (d) => d.name, sortBy: (d) => d.name },
      {
        key: "state",
        header: t("State"),
        cell: (d) => <Status state={d.problem || "ok"} tone={d.problem ? "bad" : "ok"} />,
        sortBy: (d) => d.problem,
      },
      {
        key: "memory",
        header: t("Memory granted"),
        cell: (d) => <GrantedCell granted={d.usableBytes - d.freeBytes} usable={d.usableBytes} />,
        sortBy: (d) => d.usableBytes - d.freeBytes,
      },
      {
        key: "compute",
        header: t("Compute granted"),
        cell: (d) => <ShareCell granted={10000 - d.freeShareBp} whole={10000} />,
        sortBy: (d) => 10000 - d.freeShareBp,
      },
      {
        key: "slices",
        header: t("Slices"),
        cell: (d) => (
          <span className="link-list">
            {slices
              .filter((s) => s.parts.some((p) => p.uuid === d.uuid))
              .map((s) => (
                <SliceLink key={s.name} node={s.node} name={s.name} />
              ))}
          </span>
        ),
        sortBy: (d) => d.slices,
        text: (d) =>
          slices
            .filter((s) => s.parts.some((p) => p.uuid === d.uuid))
            .map((s) => s.name)
            .join(" "),
      },
    ],
    [t, slices],
  );
  return (
    <DataTable label={t("Devices")} columns={columns} rows={devices} rowKey={(d) => d.uuid} empty={null} />
  );
}

function GroupTable({ groups }: { groups: Group[] }) {
  const t = useT();
  const sum = (g: Group, of: (d: MapDevice) => number) => g.devices.reduce((total, d) => total + of(d), 0);
  const columns: Column<Group>[] = [
    {
      key: "pool",
      header: t("Node pool"),
      cell: (g) => (
        <Link href={`/?pool=${encodeURIComponent(g.pool)}&model=${encodeURIComponent(g.model)}`}>
          {g.pool}
        </Link>
      ),
      sortBy: (g) => g.pool,
    },
    { key: "model", header: t("Model"), cell: (g) => g.model, sortBy: (g) => g.model },
    {
      key: "devices",
      header: t("Devices"),
      numeric: true,
      cell: (g) => g.devices.length,
      sortBy: (g) => g.devices.length,
    },
    {
      key: "problems",
      header: t("Problems"),
      numeric: true,
      cell: (g) => g.devices.filter((d) => d.problem).length,
      sortBy: (g) => g.devices.filter((d) => d.problem).length,
    },
    {
      key: "slices",
      header: t("Slices"),
      numeric: true,
      cell: (g) => sum(g, (d) => d.slices),
      sortBy: (g) => sum(g, (d) => d.slices),
    },
    {
      key: "memory",
      header: t("Memory granted"),
      cell: (g) => (
        <GrantedCell
          granted={sum(g, (d) => d.usableBytes - d.freeBytes)}
          usable={sum(g, (d) => d.usableBytes)}
        />
      ),
      sortBy: (g) => sum(g, (d) => d.usableBytes - d.freeBytes),
    },
    {
      key: "compute",
      header: t("Compute granted"),
      cell: (g) => (
        <ShareCell granted={sum(g, (d) => 10000 - d.freeShareBp)} whole={g.devices.length * 10000} />
      ),
      sortBy: (g) => sum(g, (d) => 10000 - d.freeShareBp),
    },
  ];
  return (
    <DataTable
      label={t("Devices by node pool and model")}
      columns={columns}
      rows={groups}
      rowKey={(g) => `${g.pool}\n${g.model}`}
      empty={null}
    />
  );
}

function MapPanel({ nodes }: { nodes: Node[] }) {
  const t = useT();
  const [parameters, setParameters] = useSearchParams();
  const [by, setBy] = useState<ColourBy>("workload");
  const pool = parameters.get("pool") ?? "";
  const model = parameters.get("model") ?? "";
  const isTable = parameters.get("view") === "table";
  const all = useMemo(() => devicesOf(nodes), [nodes]);
  const devices = useMemo(
    () => all.filter((d) => (!pool || d.pool === pool) && (!model || d.name === model)),
    [all, pool, model],
  );
  const isGrouped = devices.length > max_mapped_devices;
  const names = useMemo(
    () => (isGrouped ? [] : [...new Set(devices.map((d) => d.node))]),
    [devices, isGrouped],
  );
  const { slices } = useSlices(names);
  const groups = useMemo(() => {
    const map = new Map<string, Group>();
    for (const device of devices) {
      const key = `${device.pool}\n${device.name}`;
      const group = map.get(key) ?? { pool: device.pool, model: device.name, devices: [] };
      group.devices.push(device);
      map.set(key, group);
    }
    return [...map.values()];
  }, [devices]);
  const setView = (view: string) =>
    setParameters(
      (old) => {
        const next = new URLSearchParams(old);
        if (view) next.set("view", view);
        else next.delete("view");
        return next;
      },
      { replace: true },
    );
  return (
    <Panel
      title={pool ? t("Fleet: {pool}, {model}", { pool, model }) : t("Fleet")}
      actions={
        !isGrouped && (
          <div className="map-tools">
            {pool && <LinkButton href="/">{t("Whole fleet")}</LinkButton>}
            {!isTable && (
              <SelectField
                label={t("Colour by")}
                value={by}
                onChange={(value) => setBy(value as ColourBy)}
                options={[
                  { value: "workload", label: t("Service or job") },
                  { value: "account", label: t("Account") },
                  { value: "utilization", label: t("Utilization") },
                  { value: "idle", label: t("Idle time") },
                ]}
              />
            )}
            <Button aria-pressed={!isTable} kind={isTable ? "plain" : "primary"} onClick={() => setView("")}>
              {t("Map")}
            </Button>
            <Button
              aria-pressed={isTable}
              kind={isTable ? "primary" : "plain"}
              onClick={() => setView("table")}
            >
              {t("Table")}
            </Button>
          </div>
        )
      }
    >
      <Figures devices={devices} slices={slices} />
      {isGrouped ? (
        <GroupTable groups={groups} />
      ) : isTable ? (
        <DeviceTable devices={devices} slices={slices} />
      ) : (
        <FleetMap devices={devices} slices={slices} by={by} />
      )}
    </Panel>
  );
}

export function Overview() {
  const t = useT();
  const nodes = useNodes();
  const problems = useProblems();
  const { state } = useLive();
  if (nodes.length === 0)
    return (
      <Page title={t("Overview")}>
        <Panel>
          <Empty title={t("No node")}>
            {t("The controller has no node. Start it with --node NAME=SOCKET for each agent.")}
          </Empty>
        </Panel>
      </Page>
    );
  return (
    <Page
      title={t("Overview")}
      lead={
        <Status state={state === "live" ? "ok" : state} tone={state === "live" ? "ok" : "warn"}>
          {state === "live" ? t("live") : t("not live")}
        </Status>
      }
    >
      {problems.length > 0 && (
        <Panel title={t("Needs attention")} flush>
          <div className="table-scroll">
            <ProblemList problems={problems} />
          </div>
        </Panel>
      )}
      <MapPanel nodes={nodes} />
      <WhatFits nodes={nodes} />
    </Page>
  );
}
