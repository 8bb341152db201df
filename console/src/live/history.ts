// The history of slices and devices, which the controller keeps for a week, joined with the samples that a page
// takes while it is open.
import { useQuery } from "@tanstack/react-query";
import { get } from "../api/client";
import type { MetricHistory } from "../api/types";

export type Period = "hour" | "day" | "week";
export const period_seconds: Record<Period, number> = { hour: 3600, day: 86_400, week: 7 * 86_400 };

// The values of one time, by the names of the metrics; null if there was no sample.
export interface Point {
  time: number; // Seconds
  values: Record<string, number | null>;
}

// Returns the points of a history. The values of several devices are added up.
export function pointsOf(history: MetricHistory): Point[] {
  const begin = Date.parse(history.from) / 1000;
  const points: Point[] = [];
  for (const { metric, values } of history.series)
    values.forEach((value, i) => {
      points[i] ??= { time: begin + i * history.step_seconds, values: {} };
      const before = points[i].values[metric];
      points[i].values[metric] = value === null ? (before ?? null) : value + (before ?? 0);
    });
  const first = points.findIndex((point) => Object.values(point.values).some((value) => value !== null));
  return first < 0 ? [] : points.slice(first);
}

// Returns the points before the first sample, then the samples. A gap of `max_gap` seconds between the two is
// shown as one.
export function joined(points: Point[], samples: Point[], max_gap: number): Point[] {
  const first = samples[0];
  if (!first) return points;
  const before = points.filter((point) => point.time < first.time);
  const last = before.at(-1);
  const gap = last && first.time - last.time > max_gap ? [{ time: last.time + 1, values: {} }] : [];
  return [...before, ...gap, ...samples];
}

export const seriesOf = (points: Point[], metric: string) =>
  points.map((point) => point.values[metric] ?? null);

// The history of an object: "slice/NODE/NAME" or "device/NODE/INDEX". The last hour is read once, because the
// page continues it with its own samples; longer periods are read again every minute.
export function useHistory(object: string, period: Period, since_ns = 0) {
  return useQuery({
    queryKey: ["history", object, period],
    queryFn: ({ signal }) => {
      const from = Math.max(Date.now() / 1000 - period_seconds[period], since_ns / 1e9);
      const text = new Date(Math.floor(from) * 1000).toISOString().replace(/\.\d+Z$/, "Z");
      return get<MetricHistory>("/v1/history", { object, from: text }, signal);
    },
    select: pointsOf,
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: period === "hour" ? false : 60_000,
    retry: false,
  });
}
