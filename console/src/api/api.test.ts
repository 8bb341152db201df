import { afterEach, expect, it, vi } from "vitest";
import { ApiError, call, path, warningTexts, withQuery } from "./client";
import { Conflict, type Editable, saveObject } from "./edit";

afterEach(() => vi.unstubAllGlobals());

// Answers the calls with these responses, in order, and records them.
function answer(...responses: [status: number, body: unknown, headers?: Record<string, string>][]) {
  const calls: { method: string; target: string; headers: Record<string, string>; body: unknown }[] = [];
  vi.stubGlobal("fetch", async (target: string, options: RequestInit) => {
    calls.push({
      method: options.method ?? "",
      target,
      headers: options.headers as Record<string, string>,
      body: options.body ? JSON.parse(options.body as string) : null,
    });
    const [status, body, headers] = responses[calls.length - 1] ?? [500, {}];
    return new Response(JSON.stringify(body), { status, headers: headers ?? {} });
  });
  return calls;
}

const object = (replicas: number): Editable => ({
  metadata: { labels: {}, annotations: {} },
  spec: { replicas },
});
const stale = { type: "carve:stale", title: "stale", status: 412, detail: "read it again", reasons: [] };

it("encodes names in paths and leaves empty parameters out", () => {
  expect(path`/v1/nodes/${"a/b"}/slices/${"x y"}`).toBe("/v1/nodes/a%2Fb/slices/x%20y");
  expect(withQuery("/v1/bills", { by: "label:a", account: "", lines: true, idle: false })).toBe(
    "/v1/bills?by=label%3Aa&lines=true",
  );
});

it("reads several warnings from one header", () => {
  expect(warningTexts('299 - "a, b", 299 - "a \\"c\\""')).toEqual(["a, b", 'a "c"']);
  expect(warningTexts(null)).toEqual([]);
});

it("makes a Problem of every failure", async () => {
  answer([
    409,
    { type: "carve:blocked", title: "blocked", status: 409, detail: "two slices", blockedBy: ["a", "b"] },
  ]);
  await expect(call("GET", "/v1/x")).rejects.toMatchObject({
    problem: { type: "carve:blocked", blockedBy: ["a", "b"], reasons: [] },
  });
  vi.stubGlobal(
    "fetch",
    async () => new Response("<html>bad gateway</html>", { status: 502, statusText: "Bad Gateway" }),
  );
  await expect(call("GET", "/v1/x")).rejects.toMatchObject({
    problem: { type: "carve:unavailable", status: 502 },
  });
  vi.stubGlobal("fetch", async () => Promise.reject(new TypeError("failed")));
  await expect(call("GET", "/v1/x")).rejects.toMatchObject({
    problem: { type: "carve:no-response", status: 0 },
  });
});

it("saves with the version of the object that it has just read", async () => {
  const calls = answer([200, object(1), { ETag: '"7"' }], [200, object(2)]);
  await saveObject("PUT", "/v1/services/a", object(1), object(2));
  expect(calls[1]).toMatchObject({ method: "PUT", headers: { "If-Match": '"7"' }, body: object(2) });
});

it("repeats the change if only the status has changed", async () => {
  const calls = answer(
    [200, object(1), { ETag: '"7"' }],
    [412, stale],
    [200, object(1), { ETag: '"8"' }],
    [200, object(2)],
  );
  await saveObject("PUT", "/v1/services/a", object(1), object(2));
  expect(calls[3]?.headers["If-Match"]).toBe('"8"');
});

it("reports a conflict, and sends nothing, if another user has changed the spec", async () => {
  const calls = answer([200, object(5), { ETag: '"7"' }]);
  await expect(saveObject("PUT", "/v1/services/a", object(1), object(2))).rejects.toBeInstanceOf(Conflict);
  expect(calls).toHaveLength(1);
});

it("gives up after several attempts", async () => {
  answer(
    ...Array.from({ length: 20 }, (_, i): [number, unknown, Record<string, string>] =>
      i % 2 === 0 ? [200, object(1), { ETag: '"7"' }] : [412, stale, {}],
    ),
  );
  await expect(saveObject("PUT", "/v1/services/a", object(1), object(2))).rejects.toBeInstanceOf(ApiError);
});
