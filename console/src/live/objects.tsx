// Hooks that read the objects of the watch, and the documents of agents, which are polled because the
// controller does not stream them.
import { keepPreviousData, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from "react";
import { get, path } from "../api/client";
import type { Device, Job, Kind, Node, Objects, RayCluster, Slice } from "../api/types";
import { type ConnectionState, noObjects, type ObjectMaps, startWatch } from "./watch";

interface Live {
  state: ConnectionState;
  isLoaded: boolean;
}
const LiveContext = createContext<Live>({ state: "connecting", isLoaded: false });

export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [live, setLive] = useState<Live>({ state: "connecting", isLoaded: false });
  useEffect(
    () =>
      startWatch({
        changed: (update) => {
          client.setQueryData<ObjectMaps>(["objects"], (maps) => update(maps ?? noObjects()));
          setLive((old) => (old.isLoaded ? old : { ...old, isLoaded: true }));
        },
        state: (state) => {
          setLive((old) => (old.state === state ? old : { ...old, state }));
          if (state === "live") void client.invalidateQueries({ queryKey: ["node"] });
        },
      }),
    [client],
  );
  return <LiveContext.Provider value={live}>{children}</LiveContext.Provider>;
}

export const useLive = () => useContext(LiveContext);

const none = noObjects();
// The cache entry that the watch writes; it is never fetched.
const watched = {
  queryKey: ["objects"],
  queryFn: () => none,
  enabled: false,
  staleTime: Number.POSITIVE_INFINITY,
  structuralSharing: false,
} as const;

export function useObjects<K extends Kind>(kind: K): Objects[K][] {
  const { data } = useQuery({
    ...watched,
    select: (maps: ObjectMaps) => maps[kind] as ReadonlyMap<string, Objects[K]>,
  });
  return useMemo(
    () =>
      [...((data ?? none[kind]) as ReadonlyMap<string, Objects[K]>).values()].sort((a, b) =>
        a.metadata.name < b.metadata.name ? -1 : 1,
      ),
    [data, kind],
  );
}

export function useObject<K extends Kind>(
  kind: K,
  name: string,
  namespace = "default",
): Objects[K] | undefined {
  const { data } = useQuery({
    ...watched,
    select: (maps: ObjectMaps) => (maps[kind] as ReadonlyMap<string, Objects[K]>).get(`${namespace}/${name}`),
  });
  return data;
}

const poll_ms = 2000; // The controller polls its agents at this interval, too.

export const useNodes = (): Node[] => useObjects("Node");
export const useNode = (name: string): Node | undefined => useNodes().find((n) => n.metadata.name === name);
export const useJobs = (): Job[] => useObjects("Job");
export const useRayClusters = (): RayCluster[] => useObjects("RayCluster");

export const isReachable = (node: Node) => node.status.agent?.reachability !== "unreachable";

export type NodeSlice = Slice & { node: string };
export type NodeDevice = Device & { node: string };
export interface NodeProblem {
  node: string;
  message: string;
}
interface NodeLists<T> {
  items: T[];
  problems: NodeProblem[]; // The nodes that did not answer.
  isLoading: boolean;
  updatedAt: number; // The last answer of any node, in ms since 1970.
}

// Polls a list of each node; `nodes` limits the nodes. An element whose values have not changed stays the same
// object, so that its row is not rendered again.
function useNodeLists<T>(
  what: "slices" | "devices",
  nodes: string[] | undefined,
): NodeLists<T & { node: string }> {
  const all = useObjects("Node");
  const names = all.map((n) => n.metadata.name).filter((name) => !nodes || nodes.includes(name));
  const combine = useCallback(
    (
      results: {
        data?: (T & { node: string })[] | undefined;
        error: Error | null;
        isPending: boolean;
        dataUpdatedAt: number;
      }[],
    ) => ({
      items: results.flatMap((r) => r.data ?? []),
      problems: results.flatMap((r) => (r.error ? [{ node: "", message: r.error.message }] : [])),
      isLoading: results.some((r) => r.isPending),
      updatedAt: Math.max(0, ...results.map((r) => r.dataUpdatedAt)),
    }),
    [],
  );
  return useQueries({
    queries: names.map((node) => ({
      queryKey: ["node", node, what],
      queryFn: async ({ signal }: { signal: AbortSignal }) => {
        const found = await get<Record<string, T[]>>(path`/v1/nodes/${node}/${what}`, {}, signal);
        return (found[what] ?? []).map((item) => ({ ...item, node }));
      },
      refetchInterval: poll_ms,
    })),
    combine,
  });
}

export function useSlices(nodes?: string[]) {
  const { items, ...rest } = useNodeLists<Slice>("slices", nodes);
  return { slices: items as NodeSlice[], ...rest };
}
export function useDevices(nodes?: string[]) {
  const { items, ...rest } = useNodeLists<Device>("devices", nodes);
  return { devices: items as NodeDevice[], ...rest };
}

export function useSlice(node: string, name: string) {
  return useQuery({
    queryKey: ["node", node, "slice", name],
    queryFn: ({ signal }) => get<Slice>(path`/v1/nodes/${node}/slices/${name}`, {}, signal),
    refetchInterval: poll_ms,
    placeholderData: keepPreviousData,
    retry: false,
  });
}
