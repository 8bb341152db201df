// The colours of slices in the fleet's map.
import type { NodeSlice } from "../live/objects";
import { achievedOf, workloadText } from "./amounts";

export type ColourBy = "account" | "workload" | "utilization" | "idle";

const palette = ["--s1", "--s2", "--s3", "--s4", "--s5", "--s6", "--s7", "--s8"];
// Names with the least time without a kernel, in seconds.
const idle_steps: [string, number][] = [
  ["busy", 0],
  ["≥ 1m", 60],
  ["≥ 10m", 600],
  ["≥ 1h", 3600],
  ["≥ 1d", 86_400],
];
const idle_colours = ["--s1", "--s7", "--s3", "--s5", "--line-strong"];
const utilization_steps = [0, 2500, 5000, 7500];
const utilization_colours = ["--line-strong", "--s7", "--s1", "--s3", "--s5"];

// Returns the legend entry of a slice.
export function groupOf(slice: NodeSlice, by: ColourBy): string {
  if (by === "account") return slice.account || "-";
  if (by === "workload") return workloadText(slice) === "-" ? slice.name : workloadText(slice);
  if (by === "idle") return idle_steps.filter(([, least]) => slice.idle_seconds >= least).at(-1)![0];
  const achieved = achievedOf(slice);
  const step = utilization_steps.filter((least) => achieved > least).length;
  return ["0%", "≤ 25%", "≤ 50%", "≤ 75%", "> 75%"][step]!;
}

// Returns the colour variable of each group, in the order of the groups' names.
export function colours(slices: NodeSlice[], by: ColourBy): Map<string, string> {
  if (by === "utilization")
    return new Map(
      ["0%", "≤ 25%", "≤ 50%", "≤ 75%", "> 75%"].map((name, i) => [name, utilization_colours[i]!]),
    );
  if (by === "idle") return new Map(idle_steps.map(([name], i) => [name, idle_colours[i]!]));
  const names = [...new Set(slices.map((slice) => groupOf(slice, by)))].sort();
  return new Map(names.map((name, i) => [name, palette[i % palette.length]!]));
}
