// The documents of the controller's API, from the generated schema. A response has every field of its
// document, so the types of what the console reads have no optional fields, except those that FORMAT.md calls
// absent.
import type { components } from "./schema";

type Full<T> = T extends (infer U)[]
  ? Full<U>[]
  : T extends Record<string, never>
    ? Record<string, unknown>
    : T extends object
      ? { [K in keyof T]-?: Full<NonNullable<T[K]>> }
      : T;

type Schemas = components["schemas"];
export type Doc<K extends keyof Schemas> = Full<Schemas[K]>;

type Replace<T, P> = Omit<T, keyof P> & P;
// T with the fields K that may be absent, as std::optional fields of the C++ structs are.
type Absent<T, K extends keyof T> = Omit<T, K> & Partial<Pick<T, K>>;

export type Service = Replace<
  Doc<"Service">,
  { spec: Absent<Doc<"Service">["spec"], "gpu" | "port" | "targetPort" | "autoscale"> }
>;
export type Application = Replace<Doc<"Application">, { spec: Absent<Doc<"Application">["spec"], "port"> }>;
export type Node = Replace<Doc<"Node">, { status: Absent<Doc<"Node">["status"], "agent"> }>;
export type Pool = Doc<"Pool">;
export type Queue = Replace<Doc<"Queue">, { spec: Absent<Doc<"Queue">["spec"], "quota"> }>;
export type Job = Replace<Doc<"Job">, { status: Absent<Doc<"Job">["status"], "exitStatus"> }>;
export type RayCluster = Doc<"RayCluster">;
export type Tariff = Doc<"Tariff">;
export type Budget = Doc<"Budget">;
type SlicePart = Absent<Doc<"Slice">["parts"][number], "compute">;
export type Slice = Replace<Absent<Doc<"Slice">, "holder">, { parts: SlicePart[] }>;
export type Device = Absent<Doc<"DeviceList">["devices"][number], "compute" | "arbitration" | "readings">;
export type Bill = Doc<"Bill">;
export type MetricHistory = Replace<
  Doc<"MetricHistory">,
  { series: Replace<Doc<"MetricHistory">["series"][number], { values: (number | null)[] }>[] }
>;
export type Allocations = Replace<
  Doc<"Allocations">,
  { days: Absent<Doc<"Allocations">["days"][number], "usable_device_hours">[] }
>;
export type InvoiceLine = Bill["lines"][number];
export type Slicing = Doc<"Slicing">;
export type Applied = Doc<"AppliedList">["items"][number];
export type Explanation = Doc<"Explanation">;
export type ObjectEvent = Doc<"ObjectEventList">["items"][number];
export type Revision = Absent<Doc<"RevisionList">["items"][number], "gpu">;
export type Token = Doc<"TokenList">["items"][number];
export type Condition = Service["status"]["conditions"][number];
export type Workload = Service | Application;

// The kinds of objects that the watch streams, with their paths.
export interface Objects {
  Service: Service;
  Application: Application;
  Node: Node;
  Pool: Pool;
  Queue: Queue;
  Job: Job;
  RayCluster: RayCluster;
  Tariff: Tariff;
  Budget: Budget;
}
export type Kind = keyof Objects;
export const path_of: Record<Kind, string> = {
  Service: "services",
  Application: "applications",
  Node: "nodes",
  Pool: "pools",
  Queue: "queues",
  Job: "jobs",
  RayCluster: "rayclusters",
  Tariff: "tariffs",
  Budget: "budgets",
};
export const kinds = Object.keys(path_of) as Kind[];

// A Problem of the API (RFC 9457). `errors` and `blockedBy` are absent for most types.
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  reasons: string[];
  errors?: { field: string; value: string; message: string }[];
  blockedBy?: string[];
}
