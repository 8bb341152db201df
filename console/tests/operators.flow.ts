// Changes of nodes, queues, budgets, tokens and revisions, each with its effect.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch, signIn } from "./support/browser.ts";
import { ask, Stack, until } from "./support/stack.ts";

const stack = new Stack();
let browser: Browser;
beforeAll(async () => {
  await stack.begin();
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await stack.end();
});

function apply(document: unknown) {
  const path = join(stack.folder, "document.json");
  writeFileSync(path, JSON.stringify(document));
  stack.carve("apply", "-f", path);
}
const get = stack.controllerGet;

it("changes a node's policy: shows what is pending and what blocks it, and restarts the node", async () => {
  stack.carve("slice", "create", "--name", "held", "--memory", "2GiB");
  const { context, page, errors } = await signIn(browser, stack);
  await page.goto(`${stack.url}/nodes/n1`);
  await page.getByRole("button", { name: "Add label" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Label", { exact: true }).selectOption("carve.dev/compute-policy");
  await dialog.getByLabel("Value").selectOption("native-burst-share");
  await dialog.getByRole("button", { name: "Add label" }).click();
  const row = page.getByRole("row", { name: /^Compute policy/ });
  await row.getByText("native-burst-share").waitFor();
  await row.getByRole("link", { name: "held" }).waitFor();
  await page.getByRole("button", { name: "Restart" }).click();
  await dialog.getByText("held").waitFor();
  await dialog.getByLabel("End these slices now").check();
  await dialog.getByRole("button", { name: "Restart" }).click();
  await until(
    "the new policy",
    async () => (await get("/v1/nodes/n1")).status.policy.effective === "native-burst-share",
  );
  expect((await ask(stack.agentSocket, "/v1/node")).value.policy.effective).toBe("native-burst-share");
  expect((await stack.agentSlices()).map((s) => s.name)).not.toContain("held");
  // The value of a system label is immutable; the refusal is shown in the dialog.
  await until("a running node", async () => (await get("/v1/nodes/n1")).status.state === "Running");
  await page.getByRole("button", { name: "Add label" }).click();
  await dialog.getByLabel("Label", { exact: true }).selectOption("carve.dev/compute-policy");
  await dialog.getByLabel("Value").selectOption("fixed-share");
  await dialog.getByRole("button", { name: "Add label" }).click();
  await dialog.getByRole("alert").waitFor();
  expect((await get("/v1/nodes/n1")).metadata.labels["carve.dev/compute-policy"]).toBe("native-burst-share");
  expect(errors).toEqual([]);
  await context.close();
});

it("cordons, drains and uncordons a node", async () => {
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/nodes/n1`);
  await page.getByRole("button", { name: "Cordon" }).click();
  await until("a cordoned node", async () => (await get("/v1/nodes/n1")).spec.schedulable === false);
  await page.getByRole("button", { name: "Uncordon" }).click();
  await until("a schedulable node", async () => (await get("/v1/nodes/n1")).spec.schedulable === true);
  await page.getByRole("button", { name: "Drain" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
  await until("a draining node", async () => (await get("/v1/nodes/n1")).spec.draining === true);
  await page.getByRole("button", { name: "Uncordon" }).click();
  await until("a schedulable node", async () => (await get("/v1/nodes/n1")).spec.draining === false);
  await context.close();
});

it("creates a pool, adds the node, and shows the drift of a pool without synchronisation", async () => {
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/pools/new`);
  await page.getByLabel("Name").fill("a10");
  await page.getByRole("textbox", { name: "Labels" }).fill("zone=a");
  await page.getByRole("button", { name: "Create node pool" }).click();
  await page.getByText("No node is in this pool").waitFor();
  await page.goto(`${stack.url}/nodes/n1`);
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Change node pool" }).click();
  await page.getByRole("dialog").getByLabel("Node pool").selectOption("a10");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await until("the pool's label", async () => (await get("/v1/nodes/n1")).metadata.labels.zone === "a");
  await page.goto(`${stack.url}/pools/a10/edit`);
  await page.getByText("Configure with care").waitFor();
  await page.getByRole("textbox", { name: "Labels" }).fill("zone=b");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("row", { name: "n1 zone b a" }).waitFor();
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByText("Update labels and taints of nodes automatically").click();
  await page.getByRole("button", { name: "Save" }).click();
  await until("the new label", async () => (await get("/v1/nodes/n1")).metadata.labels.zone === "b");
  await page.getByRole("heading", { name: "a10", exact: true }).waitFor();
  await until("no drift", async () => (await page.getByText("Drift: labels").count()) === 0);
  await context.close();
});

it("creates a queue with the mGPU switch and stores what carve apply stores", async () => {
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/queues/new`);
  await page.getByLabel("Name").fill("train");
  await page.getByLabel("Guaranteed memory").fill("10GiB");
  await page.getByLabel("Guaranteed compute").fill("50%");
  await page.getByText("mGPU", { exact: true }).click();
  await page.getByLabel("Guaranteed devices").waitFor();
  await page.getByText("mGPU", { exact: true }).click();
  const text = await page
    .locator("section", { hasText: "Document that will be sent" })
    .locator("pre")
    .innerText();
  await page.getByRole("button", { name: "Create queue" }).click();
  await page.getByRole("heading", { name: "train" }).waitFor();
  const { spec } = await get("/v1/queues/train");
  expect(spec).toMatchObject({ gpu: "mgpu", quota: { memory: "10GiB", compute: "50%" } });
  stack.carve("delete", "queue", "train");
  apply(JSON.parse(text));
  expect((await get("/v1/queues/train")).spec).toEqual(spec);
  await context.close();
});

it("shows why a job waits, and cancels it", async () => {
  stack.carve("slice", "create", "--name", "held", "--memory", "1GiB", "--compute", "50%");
  const parameters = {
    "emr.serverless.mgpu.core": 80,
    "emr.serverless.mgpu.memory": 1000,
    "serverless.custom.job.gpu.enabled": true,
    "serverless.custom.job.task.gpus": 1,
  };
  const conf = Object.entries(parameters).flatMap(([key, value]) => ["--conf", `${key}=${value}`]);
  stack.carve(
    "submit",
    "custom",
    "-q",
    "train",
    "--name",
    "waits",
    "--tasks",
    "2",
    ...conf,
    "--",
    "sleep",
    "600",
  );
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/queues/train`);
  const row = page.getByRole("row", { name: /^waits 1 Queued/ });
  const reason = await until("a reason", async () => (await get("/v1/jobs/waits")).status.reason);
  await row.getByText(reason).waitFor();
  await page.getByRole("link", { name: "waits" }).click();
  await page.getByText("position 1:").waitFor();
  await page.getByRole("button", { name: "Cancel job" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel job" }).click();
  await until("a cancelled job", async () => (await get("/v1/jobs/waits")).status.phase === "Cancelled");
  await context.close();
});

it("updates a service, compares its revisions and returns to the first", async () => {
  apply({
    apiVersion: "carve.dev/v1",
    kind: "Service",
    metadata: { name: "demo" },
    spec: { replicas: 1, gpu: { memory: "1GiB", share: "10%" }, run: { command: ["sleep", "600"] } },
  });
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/services/demo`);
  await page.getByRole("button", { name: "Update" }).click();
  const field = page.getByRole("dialog").getByLabel("spec");
  await field.fill((await field.inputValue()).replace('"600"', '"601"'));
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await until("revision 2", async () => (await get("/v1/services/demo")).status.revision === 2);
  await page.goto(`${stack.url}/services/demo/revisions`);
  await page.locator(".diff ins", { hasText: '"601"' }).waitFor();
  await page.getByRole("button", { name: "Return to it" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Return to it" }).click();
  await until(
    "the first command",
    async () => (await get("/v1/services/demo")).spec.run.command[1] === "600",
  );
  await context.close();
});

it("scales, stops and starts a service, and deletes it", async () => {
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/services/demo`);
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Autoscale" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("The number of replicas follows").selectOption("gpuUtilization");
  await dialog.getByLabel("Most replicas").fill("3");
  await dialog.getByRole("button", { name: "Save" }).click();
  await until("autoscaling", async () => (await get("/v1/services/demo")).spec.autoscale?.max === 3);
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await dialog.getByRole("button", { name: "Stop" }).click();
  await until("a stopped service", async () => (await get("/v1/services/demo")).status.phase === "Stopped");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await until("a running service", async () => (await get("/v1/services/demo")).status.phase === "Running");
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.getByText("No services yet").waitFor();
  await context.close();
});

it("updates an application with its form", async () => {
  apply({
    apiVersion: "carve.dev/v1",
    kind: "Application",
    metadata: { name: "chat", labels: { team: "a" } },
    spec: {
      replicas: 1,
      terminationGracePeriodSeconds: 1,
      gpu: { type: "mGPU", compute: "0.1", memory: "1024" },
      run: { command: ["sleep", "600"], env: { A: "1" } },
    },
  });
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/applications/chat/edit`);
  await page.getByLabel("GPU memory (MiB)").fill("2048");
  await page.getByLabel("Environment variables").fill("A=2");
  await page.getByRole("button", { name: "OK" }).click();
  await page.getByRole("heading", { name: "chat" }).waitFor();
  const { spec, metadata } = await get("/v1/applications/chat");
  expect(spec).toMatchObject({
    terminationGracePeriodSeconds: 1,
    gpu: { memory: "2048" },
    run: { command: ["sleep", "600"], env: { A: "2" } },
  });
  expect(metadata.labels).toEqual({ team: "a" });
  await until("the new size", async () =>
    (await stack.agentSlices()).some(
      (s) => s.labels["carve.dev/name"] === "chat" && s.parts[0].quota_bytes === 2 * 2 ** 30,
    ),
  );
  await context.close();
});

it("shows the invoice of a slice with its formula, saves it as CSV, and sets a budget", async () => {
  apply({
    apiVersion: "carve.dev/v1",
    kind: "Tariff",
    metadata: { name: "autumn" },
    spec: { currency: "EUR", from: "2026-01-01", pricePerGpuHour: "0.30" },
  });
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/invoices?by=service`);
  await page
    .getByText(/ h( \(.*\))? x 10 x max\(/)
    .first()
    .waitFor();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download CSV" }).click();
  const stream = await (await download).createReadStream();
  let csv = "";
  for await (const chunk of stream) csv += chunk;
  expect(csv.split("\n")[0]).toContain("gpu_hours");
  expect(csv).toContain("chat");
  await page.getByRole("button", { name: "Set budget" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Account").fill("research");
  await dialog.getByRole("button", { name: "Set budget" }).click();
  await dialog.getByRole("alert").first().waitFor(); // The limit is missing.
  await dialog.getByLabel("Number").fill("200");
  await dialog.getByRole("button", { name: "Set budget" }).click();
  await page.getByRole("row", { name: /^research/ }).waitFor();
  expect((await get("/v1/budgets/research")).spec.gpuHours).toBe("200");
  await context.close();
});

it("creates a token, shows it once, and deletes it", async () => {
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/tokens`);
  await page.getByRole("button", { name: "Create token" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("ci");
  await dialog.getByLabel("Account").fill("root");
  await dialog.getByRole("button", { name: "Create token" }).click();
  await dialog.getByText("only root may create tokens whose programs run as root").waitFor();
  await dialog.getByLabel("Account").fill("daemon");
  await dialog.getByRole("button", { name: "Create token" }).click();
  expect(await dialog.locator("pre").innerText()).toMatch(/^carve_/);
  await dialog.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Delete token ci" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await until(
    "no token",
    async () => !(await get("/v1/tokens")).items.some((x: { name: string }) => x.name === "ci"),
  );
  await context.close();
});

it("begins the charts with the history, and shows who held slices, who changed objects, and the cost by user", async () => {
  stack.carve("slice", "create", "--name", "kept", "--memory", "2GiB", "--account", "history");
  await until("a history of the slice", async () => {
    const history = await get("/v1/history?object=slice/n1/kept&metric=quota_bytes").catch(() => null);
    return history?.series?.[0]?.values.some((value: number | null) => value === 2 * 2 ** 30);
  });
  const { context, page, errors } = await signIn(browser, stack);
  const read = page.waitForResponse((response) =>
    response.url().includes("/v1/history?object=slice%2Fn1%2Fkept"),
  );
  await page.goto(`${stack.url}/slices/n1/kept`);
  expect((await read).status()).toBe(200);
  await page.getByRole("img", { name: "Memory over time" }).waitFor();
  const week = page.waitForResponse(
    (response) => response.url().includes("/v1/history") && response.status() === 200,
  );
  await page.getByLabel("Period").selectOption("week");
  await week;
  const ofDevice = page.waitForResponse((response) =>
    response.url().includes("/v1/history?object=device%2Fn1%2F0"),
  );
  await page.goto(`${stack.url}/nodes/n1`);
  expect((await ofDevice).status()).toBe(200);
  await page.getByRole("img", { name: "Memory of the device over time" }).waitFor();

  await page.goto(`${stack.url}/slices`);
  await page.getByRole("row", { name: /^history/ }).waitFor();
  const held = (await get("/v1/allocations?by=account")).items.find(
    (i: { key: string }) => i.key === "history",
  );
  expect(held.held).toBe(1);
  await page.goto(`${stack.url}/slices?by=user`);
  await page.getByRole("row", { name: /^Select uid 0 root/ }).waitFor();
  await page.goto(`${stack.url}/invoices?by=user`);
  await page.getByRole("row", { name: /^root/ }).first().waitFor();
  stack.carve("slice", "rm", "kept");
  await until("the slice's end", async () => !(await stack.agentSlices()).some((s) => s.name === "kept"));

  apply({ apiVersion: "carve.dev/v1", kind: "Queue", metadata: { name: "by" }, spec: { gpu: "mgpu" } });
  await page.goto(`${stack.url}/events?kind=Queue`);
  await page.getByRole("row", { name: /queue\/by.*Created.*root/ }).waitFor();
  expect(errors).toEqual([]);
  await context.close();
});
