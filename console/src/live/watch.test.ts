import { expect, it } from "vitest";
import type { Service } from "../api/types";
import { applyChanges, type Change, noObjects, withStatus } from "./watch";

const service = (name: string, replicas = 1) =>
  ({ kind: "Service", metadata: { name, namespace: "default" }, spec: { replicas } }) as unknown as Service;
const change = (type: Change["type"], object: Service): Change => ({ type, object });

it("replaces the map of a changed kind and keeps the others", () => {
  const first = applyChanges(
    noObjects(),
    [change("added", service("a")), change("added", service("b"))],
    true,
  );
  const second = applyChanges(
    first,
    [change("modified", service("a", 3)), change("deleted", service("b"))],
    false,
  );
  expect([...second.Service.keys()]).toEqual(["default/a"]);
  expect(second.Service.get("default/a")?.spec.replicas).toBe(3);
  expect(first.Service.size).toBe(2);
  expect(second.Node).toBe(first.Node);
});
it("drops objects that are missing from a whole list, which the stream reports after it was too old", () => {
  const first = applyChanges(
    noObjects(),
    [change("added", service("a")), change("added", service("b"))],
    true,
  );
  expect([...applyChanges(first, [change("added", service("b"))], true).Service.keys()]).toEqual([
    "default/b",
  ]);
});
it("ignores kinds that it does not know", () => {
  const object = { kind: "Gadget", metadata: { name: "x", namespace: "default" } } as unknown as Service;
  expect(applyChanges(noObjects(), [change("added", object)], false)).toEqual(noObjects());
});
it("completes the status of an object that has none yet", () => {
  const pool = { kind: "Pool", metadata: { name: "a" }, status: { nodes: 2 } };
  expect(withStatus(pool).status).toEqual({
    nodes: 2,
    gpus: 0,
    runningGpuNodes: 0,
    drift: [],
    slicing: { available: false, checks: [], failed: "", easProblem: "" },
  });
  expect(withStatus({ kind: "Service" }).status).toMatchObject({
    phase: expect.any(String),
    conditions: [],
    replicaList: [],
    warnings: [],
  });
  expect(withStatus({ kind: "Node" }).status).not.toHaveProperty("agent");
});
