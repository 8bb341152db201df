// From a form to its effect in the agent, and the equality of what the console and the command line store.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch, signIn } from "./support/browser.ts";
import { build, Stack, until } from "./support/stack.ts";

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

const serve = "cd $(mktemp -d) && exec python3 -m http.server --bind 127.0.0.1 $PORT";
const shownDocument = (page: Page) =>
  page.locator("section", { hasText: "Document that will be sent" }).locator("pre").innerText();
const stored = async (path: string) => {
  const { metadata, spec } = await stack.controllerGet(path);
  return {
    name: metadata.name,
    labels: metadata.labels,
    annotations: metadata.annotations,
    account: metadata.account,
    spec,
  };
};
function file(text: string): string {
  const path = join(stack.folder, "document.json");
  writeFileSync(path, text);
  return path;
}

it("has the API's description that the controller serves", async () => {
  const { readFileSync } = await import("node:fs");
  const snapshot = JSON.parse(readFileSync(new URL("../openapi.json", import.meta.url), "utf8"));
  expect(await stack.controllerGet("/openapi.json"), "run: npm run openapi").toEqual(snapshot);
});

it("deploys a PAI-EAS service whose slices the agent grants, and stores what carve eas create stores", async () => {
  const { context, page, errors } = await signIn(browser, stack);
  await page.goto(`${stack.url}/services/new`);
  // The order of PAI's console.
  const order = [
    "Region",
    "Workspace",
    "Resource Type",
    "GPU Slicing",
    "Single-GPU Memory (GiB)",
    "Computing Power per GPU (%)",
  ];
  const tops = await Promise.all(
    order
      .map(async (label) => (await page.getByLabel(label).boundingBox())!)
      .map(async (box) => (await box).y * 10_000 + (await box).x),
  );
  expect(tops).toEqual([...tops].sort((a, b) => a - b));

  await page.getByRole("button", { name: "Deploy" }).click();
  await page.getByText("is required with GPU slicing").first().waitFor();
  await page.getByLabel("Service name").fill("demo_eas");
  await page.getByLabel("Command").fill(serve);
  await page.getByLabel("Instances").fill("2");
  await page.getByLabel("Single-GPU Memory (GiB)").fill("abc");
  await page.getByLabel("Computing Power per GPU (%)").fill("101");
  // The controller's messages are at their fields.
  await page.locator(".field", { hasText: "Single-GPU Memory" }).getByText("is not a whole number").waitFor();
  await page
    .locator(".field", { hasText: "Computing Power" })
    .getByText("101 is not a whole number from 1 to 100")
    .waitFor();
  await page.getByLabel("Single-GPU Memory (GiB)").fill("4");
  await page.getByLabel("Computing Power per GPU (%)").fill("20");
  await page.getByText("All 2 fit now").waitFor();
  const text = await shownDocument(page);
  await page.getByRole("button", { name: "Deploy" }).click();
  await page.getByRole("heading", { name: "demo_eas" }).waitFor();

  const slices = await until("two slices", async () => {
    const list = (await stack.agentSlices()).filter((s) => s.labels["carve.dev/name"] === "demo-eas");
    return list.length === 2 && list;
  });
  for (const slice of slices) {
    expect(slice.parts[0]).toMatchObject({ quota_bytes: 4 * 2 ** 30, share_bp: 2000 });
    expect(slice.policy).toBe("fixed-share");
  }
  await page.getByText("2 / 2").first().waitFor();

  const fromConsole = await stored("/v1/services/demo-eas");
  expect(fromConsole.spec.source.document).toBe(text);
  stack.carve("delete", "service/demo-eas");
  stack.carve("eas", "create", "--no-wait", file(text));
  expect(await stored("/v1/services/demo-eas")).toEqual(fromConsole);
  expect(errors).toEqual([]);
  await context.close();
});

it("updates the service in place, with the fields that the form does not show", async () => {
  const document = JSON.parse((await stack.controllerGet("/v1/services/demo-eas")).spec.source.document);
  document.metadata.rolling_strategy = { max_surge: 1 };
  stack.carve("eas", "modify", "demo_eas", "-s", file(JSON.stringify(document)), "--no-wait");
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/services/demo-eas/edit`);
  expect(await page.getByLabel("Service name").isDisabled()).toBe(true);
  await page.getByLabel("Single-GPU Memory (GiB)").fill("5");
  await page.getByRole("button", { name: "Update" }).click();
  await page.getByRole("heading", { name: "demo_eas" }).waitFor();
  await until(
    "the new size",
    async () =>
      (await stack.agentSlices()).filter((s) => s.parts[0].quota_bytes === 5 * 2 ** 30).length === 2,
  );
  const source = JSON.parse((await stack.controllerGet("/v1/services/demo-eas")).spec.source.document);
  expect(source.metadata).toMatchObject({
    gpu_memory: 5,
    gpu_core_percentage: 20,
    rolling_strategy: { max_surge: 1 },
  });
  await context.close();
});

it("disables slicing with the failing check, and enables it without a reload", async () => {
  stack.carve("node", "stop", "n1");
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/services/new`);
  const box = page.getByLabel("GPU Slicing");
  await until("a disabled option", () => box.isDisabled());
  await page.getByText("node n1 is Stopped").first().waitFor();
  await page.getByRole("link", { name: "Why is the GPU slicing option missing?" }).waitFor();
  stack.carve("node", "start", "n1");
  await until("an enabled option", () => box.isEnabled());
  await page.getByLabel("Resource Type").selectOption("public");
  await until("a disabled option", () => box.isDisabled());
  await page.getByText("public resources cannot be sliced").first().waitFor();
  await context.close();
});

it("creates an application and stores what carve apply stores", async () => {
  const { context, page, errors } = await signIn(browser, stack);
  await page.goto(`${stack.url}/applications/new`);
  await page.getByRole("button", { name: "Next: application configuration" }).click();
  await page.getByLabel("Name").first().fill("chat");
  await page.getByLabel("Command").fill(`sh -c '${serve}'`);
  await page.getByLabel("Replicas").fill("1");
  await page.getByLabel("GPU compute").fill("1.5");
  await page.getByRole("button", { name: "OK" }).click();
  await page.locator(".field", { hasText: "GPU compute" }).getByText("1.5").waitFor();
  await page.getByLabel("GPU compute").fill("0.30");
  await page.getByLabel("GPU memory (MiB)").fill("2048");
  await page.getByLabel(/^fixed-share/).check();
  await page.getByText("All 1 fit now").waitFor();
  const text = await shownDocument(page);
  await page.getByRole("button", { name: "OK" }).click();
  await page.getByRole("heading", { name: "chat" }).waitFor();
  const slice = await until("a slice", async () =>
    (await stack.agentSlices()).find((s) => s.labels["carve.dev/name"] === "chat"),
  );
  expect(slice.parts[0]).toMatchObject({ quota_bytes: 2 * 2 ** 30, share_bp: 3000 });
  const fromConsole = await stored("/v1/applications/chat");
  stack.carve("delete", "application/chat");
  stack.carve("apply", "-f", file(text));
  expect(await stored("/v1/applications/chat")).toEqual(fromConsole);
  expect(errors).toEqual([]);
  await context.close();
});

it("submits a job and stores what carve submit stores", async () => {
  stack.carve(
    "apply",
    "-f",
    file(
      JSON.stringify({
        apiVersion: "carve.dev/v1",
        kind: "Queue",
        metadata: { name: "train" },
        spec: { gpu: "mgpu" },
      }),
    ),
  );
  const { context, page, errors } = await signIn(browser, stack);
  await page.goto(`${stack.url}/jobs/new?queue=train`);
  await page.getByLabel("Name", { exact: true }).fill("same");
  await page.getByLabel("Command").fill("sh -c 'echo out; sleep 600'");
  await page.getByLabel("Working directory").fill(stack.folder);
  await page.getByLabel("Environment variables").fill("PATH=/usr/bin:/bin");
  await page.getByLabel("Tasks").fill("2");
  await page.getByLabel("emr.serverless.mgpu.core").fill("4");
  await page.getByRole("button", { name: "Submit job" }).click();
  await page
    .locator(".field", { hasText: "emr.serverless.mgpu.core" })
    .getByText("5 to 99")
    .first()
    .waitFor();
  await page.getByLabel("emr.serverless.mgpu.core").fill("10");
  await page.getByLabel("emr.serverless.mgpu.memory").fill("1000");
  await page.getByText("All 2 fit now").or(page.getByText("Nothing new needs a place")).first().waitFor();
  await page.getByRole("button", { name: "Submit job" }).click();
  await page.getByRole("heading", { name: "same" }).waitFor();
  await until(
    "the job's slices",
    async () =>
      (await stack.agentSlices()).filter(
        (s) => s.labels["carve.dev/name"] === "same" && s.parts[0].quota_bytes === 1000 * 2 ** 20,
      ).length === 2,
  );
  await page.goto(`${stack.url}/jobs/same/logs`);
  await page.getByText("same-task-0 out").waitFor();
  const fromConsole = await stored("/v1/jobs/same");
  stack.carve("delete", "job/same");
  const { execFileSync } = await import("node:child_process");
  execFileSync(
    "env",
    [
      "-i",
      "PATH=/usr/bin:/bin",
      join(build, "bin/carve"),
      "--socket",
      stack.agentSocket,
      "--controller",
      stack.controllerSocket,
      "submit",
      "custom",
      "-q",
      "train",
      "--name",
      "same",
      "--tasks",
      "2",
      "--conf",
      "serverless.custom.job.gpu.enabled=true",
      "--conf",
      "serverless.custom.job.task.gpus=1",
      "--conf",
      "emr.serverless.mgpu.core=10",
      "--conf",
      "emr.serverless.mgpu.memory=1000",
      "--",
      "sh",
      "-c",
      "echo out; sleep 600",
    ],
    { cwd: stack.folder },
  );
  expect(await stored("/v1/jobs/same")).toEqual(fromConsole);
  stack.carve("delete", "job/same");
  expect(errors).toEqual([]);
  await context.close();
});

it("resizes and stops a selected slice, with a preview of the refusal", async () => {
  stack.carve("slice", "create", "--name", "held", "--memory", "2GiB", "--compute", "10%");
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/slices/n1/held`);
  await page.getByRole("button", { name: "Resize" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Memory per device").fill("40GiB");
  await dialog.getByText("would be refused").waitFor();
  await dialog.getByLabel("Memory per device").fill("3GiB");
  await dialog.getByText("fits", { exact: true }).waitFor();
  await dialog.getByRole("button", { name: "Resize" }).click();
  await until("the new size", async () =>
    (await stack.agentSlices()).some((s) => s.name === "held" && s.parts[0].quota_bytes === 3 * 2 ** 30),
  );
  await page.goto(`${stack.url}/slices`);
  await page.getByLabel("Select n1/held").check();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("dialog").getByText("n1/held").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Stop 1 slices" }).click();
  await until("the slice's end", async () => !(await stack.agentSlices()).some((s) => s.name === "held"));
  await context.close();
});
