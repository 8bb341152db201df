import { expect, it } from "vitest";
import type { Job } from "../api/types";
import { fill } from "../i18n";
import type { NodeSlice } from "../live/objects";
import { messagesFor } from "../ui/fields";
import { pageOf, sharesText, workloadOf } from "./amounts";
import { addMonths, windowOf } from "./invoices";
import { inOrder } from "./queues";
import { colours, groupOf } from "./slice-colours";
import { groupSlices } from "./slices";
import { grantedPercent, mostIdle, periodOf } from "./usage";

const gib = 2 ** 30;
function slice(change: Partial<NodeSlice> = {}, part: Partial<NodeSlice["parts"][number]> = {}): NodeSlice {
  return {
    node: "n1",
    name: "a",
    account: "root",
    owner_uid: 0,
    exclusive: false,
    created_ns: 5,
    labels: {},
    parts: [{ uuid: "GPU-1", index: 0, quota_bytes: 4 * gib, charged_bytes: gib, share_bp: 2000, ...part }],
    ...change,
  } as unknown as NodeSlice;
}
it("groups slices with sums and the earliest time", () => {
  const slices = [
    slice({ idle_seconds: 60 }),
    slice({ name: "b", idle_seconds: 59, created_ns: 3, labels: { team: "x" } }),
    slice({ name: "c", account: "alice", owner_uid: 1000 }),
  ];
  const [root, alice] = groupSlices(slices, "account");
  expect(root).toMatchObject({
    key: "root",
    quota: 8 * gib,
    charged: 2 * gib,
    share: 4000,
    since: 3,
    idle: 1, // A minute without a kernel.
  });
  expect(alice?.key).toBe("alice");
  expect(groupSlices(slices, "user").map((g) => g.key)).toEqual(["uid 0", "uid 1000"]);
  expect(groupSlices(slices, "label:team").map((g) => [g.key, g.slices.length])).toEqual([
    ["-", 2],
    ["x", 1],
  ]);
});

it("formats the shares of parts as carve ps does", () => {
  const second = { ...slice().parts[0]!, share_bp: 1000 };
  expect(sharesText(slice())).toBe("20%");
  expect(sharesText(slice({}, { share_bp: 0 }))).toBe("-");
  expect(sharesText(slice({ parts: [slice().parts[0]!, second] }))).toBe("20%,10%");
});

it("finds the object that a slice belongs to, and its page", () => {
  const labels = { "carve.dev/kind": "service", "carve.dev/name": "demo" };
  expect(workloadOf(slice({ labels }))).toEqual({ kind: "service", name: "demo" });
  expect(workloadOf(slice())).toEqual({ kind: "", name: "" });
  expect([pageOf("Service", "a b"), pageOf("Budget", "x"), pageOf("pod", "x")]).toEqual([
    "/services/a%20b",
    "/invoices",
    "",
  ]);
});

it("computes the window of a month with an exclusive end", () => {
  expect(windowOf("2026-12")).toEqual({ from: "2026-12-01T00:00:00Z", to: "2027-01-01T00:00:00Z" });
  expect(addMonths("2026-01", -1)).toBe("2025-12");
});

it("colours slices by the time since their last kernel", () => {
  const names = [0, 59, 60, 600, 3600, 86_400].map((idle_seconds) =>
    groupOf(slice({ idle_seconds }), "idle"),
  );
  expect(names).toEqual(["busy", "busy", "≥ 1m", "≥ 10m", "≥ 1h", "≥ 1d"]);
  expect([...colours([], "idle").keys()]).toEqual([...new Set(names)]);
});

it("lists waiting jobs in their order, then running and ended ones", () => {
  const job = (name: string, position: number, finishedAt: string, submittedAt = "") =>
    ({ metadata: { name }, status: { position, finishedAt, submittedAt } }) as unknown as Job;
  const jobs = [
    job("ended", 0, "t"),
    job("second", 2, ""),
    job("old", 0, "", "1"),
    job("first", 1, ""),
    job("new", 0, "", "2"),
  ];
  expect(inOrder(jobs).map((j) => j.metadata.name)).toEqual(["first", "second", "new", "old", "ended"]);
});

it("shows an error at its field without the path", () => {
  const errors = [
    { field: "spec.gpu.compute", message: "spec.gpu.compute: 1.5 is wrong" },
    { field: "spec.run", message: "is required" },
  ];
  expect(messagesFor(errors, ["spec.gpu"])).toEqual(["1.5 is wrong"]);
  expect(messagesFor(errors, ["spec.gp"])).toEqual([]);
});

it("fills values into texts", () => {
  expect(fill("{n} of {all}, {x}", { n: 1, all: 2 })).toBe("1 of 2, {x}");
});

it("shows the ten groups with the most idle hours, and the granted part of the devices", () => {
  const items = Array.from({ length: 12 }, (_, i) => ({
    key: `a${i}`,
    idle_gpu_hours: `${i}.5`,
    gpu_hours: "1",
  }));
  const top = mostIdle(items as unknown as Parameters<typeof mostIdle>[0]);
  expect(top.length).toBe(10);
  expect(top[0]?.key).toBe("a11");
  const day = (granted: string, usable?: string) => ({
    from: "",
    to: "",
    granted_device_hours: granted,
    ...(usable && { usable_device_hours: usable }),
  });
  expect(grantedPercent([day("9"), day("3", "8"), day("1", "8")])).toBe(25);
  expect(grantedPercent([day("9")])).toBeNull();
  expect(periodOf(1, Date.parse("2026-11-02T00:00:00.500Z"))).toEqual({
    from: "2026-11-01T00:00:00Z",
    to: "2026-11-02T00:00:01Z",
  });
});
