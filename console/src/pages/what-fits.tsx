// "What fits now?": the placement engine of each node answers for the memory and the share of two sliders.
import { keepPreviousData, useQueries } from "@tanstack/react-query";
import { useCallback, useEffect, useState } from "react";
import { path, post } from "../api/client";
import { useRights } from "../api/session";
import type { Explanation, Node } from "../api/types";
import { useT } from "../i18n";
import { Banner, Panel, Status } from "../ui/basics";
import { Range } from "../ui/fields";
import { bytes } from "../ui/format";

const step_bytes = 256 * 2 ** 20;
const delay_ms = 80;
const max_asked_nodes = 64; // Each node is asked by a request of its own.

export function useDelayed<T>(value: T, ms = delay_ms): T {
  const [delayed, setDelayed] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return delayed;
}

export interface NodeAnswer {
  node: string;
  answer: Explanation | undefined;
  problem: string;
}

// Asks the engine of each node; the previous answer stays until the next one arrives.
export function useExplain(
  nodes: string[],
  request: { memory_bytes: number; share_bp?: number },
  isEnabled: boolean,
): NodeAnswer[] {
  const combine = useCallback(
    (results: { data?: Explanation | undefined; error: Error | null }[]) =>
      results.map((r, i) => ({ node: nodes[i]!, answer: r.data, problem: r.error?.message ?? "" })),
    [nodes],
  );
  return useQueries({
    queries: nodes.map((node) => ({
      queryKey: ["node", node, "explain", request],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        post<Explanation>(path`/v1/nodes/${node}/explain`, request, {}, signal),
      placeholderData: keepPreviousData,
      enabled: isEnabled,
      refetchInterval: 5000,
      gcTime: 10_000,
    })),
    combine,
  });
}

export function WhatFits({ nodes }: { nodes: Node[] }) {
  const t = useT();
  const { mayChange } = useRights();
  const usable = Math.max(step_bytes, ...nodes.flatMap((n) => n.status.devices.map((d) => d.usableBytes)));
  const steps = Math.floor(usable / step_bytes);
  const [memory, setMemory] = useState(16);
  const [compute, setCompute] = useState(20);
  const delayed = useDelayed({ memory, compute }.memory * 1000 + compute);
  const request = {
    memory_bytes: Math.floor(delayed / 1000) * step_bytes,
    ...(delayed % 1000 > 0 ? { share_bp: (delayed % 1000) * 100 } : {}),
  };
  const running = nodes.filter((n) => n.status.state === "Running").map((n) => n.metadata.name);
  const names = running.slice(0, max_asked_nodes);
  const nameKey = names.join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the names, not the array, decide
  const stable = useCallback(() => names, [nameKey])();
  const answers = useExplain(stable, request, mayChange);
  const fitting = answers.reduce((sum, a) => sum + (a.answer?.devices.filter((d) => d.fits).length ?? 0), 0);
  const isAnswered = answers.some((a) => a.answer || a.problem);
  return (
    <Panel title={t("What fits now?")}>
      {!mayChange ? (
        <Banner tone="idle">
          {t("The placement engine answers callers with the role user or operator.")}
        </Banner>
      ) : (
        <>
          <div className="columns">
            <Range
              label={t("Memory")}
              value={memory}
              min={1}
              max={Math.max(steps, 1)}
              step={1}
              onChange={setMemory}
              text={bytes(memory * step_bytes)}
            />
            <Range
              label={t("Compute share")}
              value={compute}
              min={0}
              max={100}
              step={1}
              onChange={setCompute}
              text={compute === 0 ? t("best effort") : `${compute}%`}
            />
          </div>
          <p role="status">
            <strong>
              {isAnswered
                ? fitting > 0
                  ? t("Fits on {n} of {all} devices", {
                      n: fitting,
                      all: answers.reduce((sum, a) => sum + (a.answer?.devices.length ?? 0), 0),
                    })
                  : t("Fits on no device")
                : t("Loading…")}
            </strong>
          </p>
          {running.length > names.length && (
            <p className="help">
              {t("The first {n} of {all} running nodes are asked.", { n: names.length, all: running.length })}
            </p>
          )}
          <ul className="fits grid">
            {answers.flatMap(({ node, answer, problem }) =>
              problem
                ? [
                    <li key={node}>
                      <span>{node}</span>
                      <Status state="unavailable">{problem}</Status>
                    </li>,
                  ]
                : (answer?.devices ?? []).map((device) => (
                    <li key={device.uuid}>
                      <span>
                        {node}, {t("device {n}", { n: device.index })}
                      </span>
                      <span>
                        <Status state={device.fits ? "ok" : "no"} tone={device.fits ? "ok" : "idle"}>
                          {device.fits
                            ? answer!.chosen.includes(device.index)
                              ? t("fits, would be chosen")
                              : t("fits")
                            : t("does not fit")}
                        </Status>
                        {!device.fits && <span className="muted"> {device.message}</span>}
                      </span>
                    </li>
                  )),
            )}
          </ul>
        </>
      )}
    </Panel>
  );
}
