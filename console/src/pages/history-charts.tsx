// Charts of a slice and of a device over time. They begin with the controller's history and continue with the
// samples that the page polls.
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import type { Slice } from "../api/types";
import { useT } from "../i18n";
import { joined, type Period, type Point, period_seconds, seriesOf, useHistory } from "../live/history";
import type { NodeDevice } from "../live/objects";
import { Panel } from "../ui/basics";
import type { Series } from "../ui/chart";
import { SelectField } from "../ui/fields";
import { bytes } from "../ui/format";
import { chargedOf, quotaOf, shareOf } from "./amounts";

const Chart = lazy(() => import("../ui/chart"));
const memory_steps = Array.from({ length: 20 }, (_, i) => 2 ** (22 + i)); // 4 MiB to 2 TiB
const max_samples = 1800; // An hour of polls.
const max_gap_seconds = 15;

const memoryText = (v: number) => (v % 2 ** 20 === 0 ? bytes(v) : `${(v / 2 ** 30).toFixed(1)} GiB`);
const percentText = (v: number) => `${(v / 100).toFixed(0)}%`;

// Waiting and throttled time between two answers, as basis points of the time between them.
function rate(after: number, before: number, elapsed_ns: number): number {
  return elapsed_ns > 0 ? Math.min(10000, Math.max(0, ((after - before) / elapsed_ns) * 10000)) : 0;
}

const total = (slice: Slice, of: (part: Slice["parts"][number]) => number) =>
  slice.parts.reduce((sum, part) => sum + of(part), 0);

// Collects a sample of each answer since the page was opened. `sampleOf` also gets the answer before.
function useSamples<T>(
  answer: T | undefined,
  updatedAt: number,
  sampleOf: (now: T, before: T | null, elapsed_ns: number) => Point["values"],
): Point[] {
  const [samples, setSamples] = useState<{ list: Point[]; last: T | null; at: number }>({
    list: [],
    last: null,
    at: 0,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: each answer is one sample
  useEffect(() => {
    if (!answer || updatedAt === 0) return;
    setSamples((old) => ({
      list: [
        ...old.list,
        { time: updatedAt / 1000, values: sampleOf(answer, old.last, (updatedAt - old.at) * 1e6) },
      ].slice(-max_samples),
      last: answer,
      at: updatedAt,
    }));
  }, [updatedAt]);
  return samples.list;
}

// The points to draw: those of the period, with the page's samples if it is the last hour.
function usePoints(object: string, period: Period, samples: Point[], since_ns = 0) {
  const history = useHistory(object, period, since_ns);
  return useMemo(() => {
    if (period !== "hour") return history.data ?? [];
    const oldest = (samples.at(-1)?.time ?? 0) - period_seconds.hour;
    return joined(
      (history.data ?? []).filter((point) => point.time >= oldest),
      samples,
      max_gap_seconds,
    );
  }, [history.data, samples, period]);
}

function PeriodField({ period, change }: { period: Period; change: (period: Period) => void }) {
  const t = useT();
  return (
    <SelectField
      label={t("Period")}
      hidesLabel
      value={period}
      onChange={(value) => change(value as Period)}
      options={[
        { value: "hour", label: t("last hour") },
        { value: "day", label: t("last day") },
        { value: "week", label: t("last 7 days") },
      ]}
    />
  );
}

interface Line extends Series {
  metric: string;
}

function HistoryChart({
  label,
  lines,
  points,
  format,
  steps,
}: {
  label: string;
  lines: Line[];
  points: Point[];
  format: (value: number) => string;
  steps?: number[];
}) {
  const data = useMemo(
    () => [points.map((p) => p.time), ...lines.map((line) => seriesOf(points, line.metric))],
    [points, lines],
  );
  return (
    <Suspense fallback={<div className="chart" />}>
      <Chart label={label} series={lines} data={data} format={format} {...(steps && { steps })} />
    </Suspense>
  );
}

function sliceValues(slice: Slice, before: Slice | null, elapsed_ns: number): Point["values"] {
  const counted = (of: (part: Slice["parts"][number]) => number) =>
    before ? rate(total(slice, of), total(before, of), elapsed_ns) : 0;
  return {
    charged_bytes: chargedOf(slice),
    quota_bytes: quotaOf(slice),
    achieved_bp: total(slice, (p) => p.compute?.achieved_1s_bp ?? 0),
    share_bp: shareOf(slice),
    waiting_bp: counted((p) => p.compute?.waiting_ns ?? 0),
    throttled_bp: counted((p) => p.compute?.throttled_ns ?? 0),
  };
}

export function SliceCharts({ slice, node, updatedAt }: { slice: Slice; node: string; updatedAt: number }) {
  const t = useT();
  const [period, setPeriod] = useState<Period>("hour");
  const samples = useSamples(slice, updatedAt, sliceValues);
  const points = usePoints(`slice/${node}/${slice.name}`, period, samples, slice.created_ns);
  const memory = useMemo<Line[]>(
    () => [
      { metric: "charged_bytes", label: t("used"), colour: "--s1" },
      { metric: "quota_bytes", label: t("quota"), colour: "--bad", isThreshold: true },
    ],
    [t],
  );
  const hasShare = shareOf(slice) !== 0;
  const compute = useMemo<Line[]>(
    () => [
      { metric: "achieved_bp", label: t("used"), colour: "--s1" },
      // A slice without a share has no line.
      { metric: hasShare ? "share_bp" : "", label: t("share"), colour: "--bad", isThreshold: true },
      { metric: "waiting_bp", label: t("contended"), colour: "--s3" },
      { metric: "throttled_bp", label: t("throttled"), colour: "--s4" },
    ],
    [t, hasShare],
  );
  return (
    <div className="columns">
      <Panel title={t("Memory")} actions={<PeriodField period={period} change={setPeriod} />}>
        <HistoryChart
          label={t("Memory over time")}
          lines={memory}
          points={points}
          format={memoryText}
          steps={memory_steps}
        />
      </Panel>
      <Panel title={t("Compute")}>
        <HistoryChart label={t("Compute over time")} lines={compute} points={points} format={percentText} />
      </Panel>
    </div>
  );
}

const deviceValues = (device: NodeDevice): Point["values"] => ({
  used_bytes: device.used_bytes,
  granted_bytes: device.granted_bytes,
  utilization_percent: device.utilization_percent,
  power_milliwatts: device.readings?.power_milliwatts ?? null,
});

export function DeviceCharts({ devices, updatedAt }: { devices: NodeDevice[]; updatedAt: number }) {
  const t = useT();
  const [period, setPeriod] = useState<Period>("hour");
  const [uuid, setUuid] = useState("");
  const device = devices.find((d) => d.uuid === uuid) ?? devices[0];
  if (!device) return null;
  return (
    <Panel
      title={t("Device over time")}
      actions={
        <>
          <SelectField
            label={t("Device")}
            hidesLabel
            value={device.uuid}
            onChange={setUuid}
            options={devices.map((d) => ({ value: d.uuid, label: `${d.index} · ${d.name}` }))}
          />
          <PeriodField period={period} change={setPeriod} />
        </>
      }
    >
      <DeviceLines key={`${device.uuid} ${period}`} device={device} period={period} updatedAt={updatedAt} />
    </Panel>
  );
}

function DeviceLines({
  device,
  period,
  updatedAt,
}: {
  device: NodeDevice;
  period: Period;
  updatedAt: number;
}) {
  const t = useT();
  const samples = useSamples(device, updatedAt, deviceValues);
  const points = usePoints(`device/${device.node}/${device.index}`, period, samples);
  const memory = useMemo<Line[]>(
    () => [
      { metric: "used_bytes", label: t("used"), colour: "--s1" },
      { metric: "granted_bytes", label: t("Granted"), colour: "--bad", isThreshold: true },
    ],
    [t],
  );
  const utilization = useMemo<Line[]>(
    () => [{ metric: "utilization_percent", label: t("Utilization"), colour: "--s1" }],
    [t],
  );
  const power = useMemo<Line[]>(
    () => [{ metric: "power_milliwatts", label: t("Power"), colour: "--s3" }],
    [t],
  );
  const hasPower = points.some((point) => (point.values.power_milliwatts ?? null) !== null);
  return (
    <div className="columns">
      <HistoryChart
        label={t("Memory of the device over time")}
        lines={memory}
        points={points}
        format={memoryText}
        steps={memory_steps}
      />
      <HistoryChart
        label={t("Utilization of the device over time")}
        lines={utilization}
        points={points}
        format={(v) => `${v.toFixed(0)}%`}
      />
      {hasPower && (
        <HistoryChart
          label={t("Power of the device over time")}
          lines={power}
          points={points}
          format={(v) => `${(v / 1000).toFixed(0)} W`}
        />
      )}
    </div>
  );
}
