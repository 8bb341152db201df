// The form of a node pool and its document.
import { pairsText, readPairs } from "./number";

export interface PoolForm {
  name: string;
  type: string;
  labels: string; // KEY=VALUE lines
  taints: string; // KEY=VALUE:EFFECT lines
  labelSync: boolean;
  sharing: boolean;
  bestEffort: string;
}
export const new_pool: PoolForm = {
  name: "",
  type: "eas",
  labels: "",
  taints: "",
  labelSync: false,
  sharing: true,
  bestEffort: "allow",
};

export interface Taint {
  key: string;
  value: string;
  effect: string;
}
export function readTaints(text: string): Taint[] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const colon = line.lastIndexOf(":");
      const pair = colon < 0 ? line : line.slice(0, colon);
      const equals = pair.indexOf("=");
      return {
        key: (equals < 0 ? pair : pair.slice(0, equals)).trim(),
        value: equals < 0 ? "" : pair.slice(equals + 1).trim(),
        effect: colon < 0 ? "" : line.slice(colon + 1).trim(),
      };
    });
}
export const taintsText = (taints: Taint[]) =>
  taints.map((taint) => `${taint.key}=${taint.value}:${taint.effect}`).join("\n");

export function poolSpec(form: PoolForm) {
  const labels = Object.fromEntries(
    Object.entries(readPairs(form.labels)).map(([key, value]) => [key, value.trim()]),
  );
  return {
    type: form.type,
    labels,
    taints: readTaints(form.taints),
    labelSync: form.labelSync,
    sharing: form.sharing,
    bestEffort: form.bestEffort,
  };
}

export const poolDocument = (form: PoolForm) => ({
  apiVersion: "carve.dev/v1",
  kind: "Pool",
  metadata: { name: form.name.trim() },
  spec: poolSpec(form),
});

export function readPool(
  name: string,
  spec: {
    type: string;
    labels: Record<string, string>;
    taints: Taint[];
    labelSync: boolean;
    sharing: boolean;
    bestEffort: string;
  },
): PoolForm {
  return {
    name,
    type: spec.type,
    labels: pairsText(spec.labels),
    taints: taintsText(spec.taints),
    labelSync: spec.labelSync,
    sharing: spec.sharing,
    bestEffort: spec.bestEffort,
  };
}
