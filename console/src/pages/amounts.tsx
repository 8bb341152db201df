// Amounts of slices, as the table of `carve ps` computes them, and the workload that a slice belongs to.
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Slice } from "../api/types";
import { Meter } from "../ui/basics";
import { bytes, share } from "../ui/format";

export const quotaOf = (slice: Slice) => slice.parts.reduce((sum, part) => sum + part.quota_bytes, 0);
export const chargedOf = (slice: Slice) => slice.parts.reduce((sum, part) => sum + part.charged_bytes, 0);
export const shareOf = (slice: Slice) => slice.parts.reduce((sum, part) => sum + part.share_bp, 0);
// Of its own parts' time in the last 60 s, in basis points of one device.
export const achievedOf = (slice: Slice) =>
  slice.parts.reduce((sum, part) => sum + (part.compute?.achieved_60s_bp ?? 0), 0);
// A slice that has run no kernel for a minute.
export const isIdle = (slice: Slice) => slice.idle_seconds >= 60;

// "30%", "30%,10%" for different parts, "-" for best effort.
export function sharesText(slice: Slice): string {
  const shares = slice.parts.map((part) => part.share_bp);
  if (slice.exclusive) return "100%";
  if (shares.every((bp) => bp === 0)) return "-";
  return shares.every((bp) => bp === shares[0]) ? share(shares[0]!) : shares.map(share).join(",");
}

export interface WorkloadName {
  kind: string; // "service", "job", ...; empty for a slice of `carve run`.
  name: string;
}
export function workloadOf(slice: Slice): WorkloadName {
  const kind = slice.labels["carve.dev/kind"];
  const name = slice.labels["carve.dev/name"];
  if (slice.holder?.pod?.name)
    return { kind: "pod", name: `${slice.holder.pod.namespace}/${slice.holder.pod.name}` };
  return kind && name ? { kind, name } : { kind: "", name: "" };
}
export const workloadText = (slice: Slice) => {
  const { kind, name } = workloadOf(slice);
  return kind ? `${kind}/${name}` : "-";
};

const pages: Record<string, string> = {
  service: "services",
  application: "applications",
  node: "nodes",
  pool: "pools",
  queue: "queues",
  job: "jobs",
  raycluster: "rayclusters",
  "ray-cluster": "rayclusters",
};
// The page of an object, by the kind in lower case; empty if there is none.
export function pageOf(kind: string, name: string): string {
  const folder = pages[kind.toLowerCase()];
  if (kind.toLowerCase() === "tariff" || kind.toLowerCase() === "budget") return "/invoices";
  return folder ? `/${folder}/${encodeURIComponent(name)}` : "";
}

export function ObjectLink({ kind, name, children }: { kind: string; name: string; children?: ReactNode }) {
  const href = pageOf(kind, name);
  return href ? <Link href={href}>{children ?? name}</Link> : <>{children ?? name}</>;
}

export function WorkloadLink({ slice }: { slice: Slice }) {
  const { kind, name } = workloadOf(slice);
  return kind ? <ObjectLink kind={kind} name={name}>{`${kind}/${name}`}</ObjectLink> : <>-</>;
}

export const SliceLink = ({ node, name }: { node: string; name: string }) => (
  <Link href={`/slices/${encodeURIComponent(node)}/${encodeURIComponent(name)}`}>{name}</Link>
);

// "1.2 GiB / 4 GiB" with a bar.
export function MemoryCell({ used, granted }: { used: number; granted: number }) {
  const text = `${bytes(used)} / ${bytes(granted)}`;
  return (
    <span className="amounts">
      <Meter
        label={text}
        whole={granted}
        parts={[{ value: used, tone: used > granted * 0.95 ? "bad" : "used" }]}
      />
      <span>{text}</span>
    </span>
  );
}

// "20 GiB granted of 22.2 GiB": of a device or of several.
export function GrantedCell({
  granted,
  usable,
  used = 0,
}: {
  granted: number;
  usable: number;
  used?: number;
}) {
  const text = `${bytes(granted)} / ${bytes(usable)}`;
  return (
    <span className="amounts">
      <Meter
        label={text}
        whole={usable}
        parts={[
          { value: used, tone: "used" },
          { value: Math.max(granted - used, 0), tone: "granted" },
        ]}
      />
      <span>{text}</span>
    </span>
  );
}

export function ShareCell({ granted, whole, text }: { granted: number; whole: number; text?: string }) {
  const shown = text ?? `${share(granted)} / ${share(whole)}`;
  return (
    <span className="amounts">
      <Meter label={shown} whole={whole} parts={[{ value: granted, tone: "granted" }]} />
      <span>{shown}</span>
    </span>
  );
}
