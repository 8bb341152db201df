// From `carve up` to a sliced service, an application, a Spark job and its invoice. The address that `carve up`
// prints is opened; everything else is a click, or text typed into a field that was clicked. The run is recorded in
// build/logs/console-journey.zip: npx playwright-core show-trace FILE
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch } from "./support/browser.ts";
import { build, Stack, until } from "./support/stack.ts";

const stack = new Stack();
let browser: Browser;
let context: BrowserContext;
let page: Page;
beforeAll(async () => {
  const address = await stack.beginWithUp();
  browser = await launch();
  context = await browser.newContext({ viewport: { width: 1360, height: 900 }, locale: "en-US" });
  context.setDefaultTimeout(15_000);
  await context.tracing.start({ screenshots: true, snapshots: true, title: "from carve up to an invoice" });
  page = await context.newPage();
  await page.goto(address);
});
afterAll(async () => {
  mkdirSync(join(build, "logs"), { recursive: true });
  await context?.tracing.stop({ path: join(build, "logs/console-journey.zip") });
  await browser?.close();
  await stack.end();
});

const click = (role: "link" | "button", name: string) =>
  page.getByRole(role, { name, exact: true }).first().click();
async function type(label: string, text: string) {
  const field = page.getByRole("main").or(page.getByRole("dialog")).last().getByLabel(label).first();
  await field.click({ clickCount: 3 }); // Selects what is there.
  await page.keyboard.type(text);
}
const serve = "cd $(mktemp -d) && exec python3 -m http.server --bind 127.0.0.1 $PORT";

// The Spark that ./test installs for the stage `engines`.
const engines =
  process.env.CARVE_ENGINES ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "carve/engines");
const lib = join(engines, "lib");
const spark_home = existsSync(lib)
  ? readdirSync(lib)
      .map((python) => join(lib, python, "site-packages/pyspark"))
      .find((folder) => existsSync(folder))
  : undefined;

const path = `${join(engines, "bin")}:/usr/bin:/bin`;
const pi = join(spark_home ?? "", "examples/src/main/python/pi.py");

it("deploys a sliced PAI-EAS service", async () => {
  await click("link", "Services");
  await click("link", "Create service");
  await type("Service name", "demo_eas");
  await type("Command", serve);
  await type("Single-GPU Memory (GiB)", "4");
  await type("Computing Power per GPU (%)", "20");
  await page.getByText("All 1 fit now").waitFor();
  await click("button", "Deploy");
  await page.getByRole("heading", { name: "demo_eas" }).waitFor();
  await page.getByText("1 / 1").first().waitFor();
  const slices = await stack.agentSlices();
  expect(slices.map((s) => s.parts[0].quota_bytes)).toEqual([4 * 2 ** 30]);
});

it("creates an application", async () => {
  await click("link", "Applications");
  await click("link", "Create application");
  await click("button", "Next: application configuration");
  await type("Name", "chat");
  await type("Command", `sh -c '${serve}'`);
  await type("GPU compute", "0.30");
  await type("GPU memory (MiB)", "2048");
  await page.getByText("All 1 fit now").waitFor();
  await click("button", "OK");
  await page.getByRole("heading", { name: "chat" }).waitFor();
  await page.getByText("1 / 1").first().waitFor();
});

it.skipIf(!spark_home)("submits a Spark job to a new queue", async () => {
  await click("link", "Queues");
  await click("link", "Create queue");
  await type("Name", "etl");
  await click("button", "Create queue");
  await page.getByRole("heading", { name: "etl" }).waitFor();
  await click("link", "Submit job");
  await page.getByLabel(/^Spark/).check();
  await type("Name", "pi");
  await type("Application with its arguments", pi);
  await type("Folder of Spark", spark_home!);
  await type("Python", join(engines, "bin/python3"));
  await type("Working directory", stack.folder);
  await type("Environment variables", `PATH=${path}`);
  await type("emr.serverless.mgpu.core", "10");
  await type("emr.serverless.mgpu.memory", "1000");
  await page.getByText("fit now").first().waitFor();
  await click("button", "Submit job");
  await page.getByRole("heading", { name: "pi" }).waitFor();
  await page.getByText("Succeeded").first().waitFor({ timeout: 120_000 });
  const job = await stack.controllerGet("/v1/jobs/pi");
  expect(job.status.phase).toBe("Succeeded");
});

it.skipIf(!spark_home)("shows the job's invoice with its formula", async () => {
  await click("link", "Invoices");
  await click("button", "Set tariff");
  const dialog = page.getByRole("dialog");
  await type("Name", "first");
  await type("Price per GPU-hour", "0.30");
  await dialog.getByRole("button", { name: "Set tariff" }).click();
  await page.getByRole("row", { name: /^first/ }).waitFor();
  await page.getByLabel("Sums by").selectOption("job");
  const row = page.getByRole("row", { name: /^default\/pi/ });
  await row.waitFor();
  await row.getByRole("link", { name: /pi/ }).waitFor();
  // The page shows the figures of `carve bill`. The job has ended, so they no longer change.
  const [, lines, granted, used, price] = await until("the job's sum", () =>
    stack
      .carve("bill", "--by", "job")
      .split("\n")
      .find((line) => line.startsWith("default/pi"))
      ?.split(/ {2,}/),
  );
  expect([lines, Number(price) > 0]).toEqual(["2", true]); // The driver and an executor.
  for (const figure of [granted, used, price])
    await row.getByText(figure!, { exact: true }).first().waitFor();
});

it.skipIf(!spark_home)("stores what carve submit stores", async () => {
  const stored = async () => {
    const { metadata, spec } = await stack.controllerGet("/v1/jobs/pi");
    return { labels: metadata.labels, annotations: metadata.annotations, account: metadata.account, spec };
  };
  const fromConsole = await stored();
  stack.carve("delete", "job/pi");
  const parameters = Object.entries(fromConsole.spec.parameters).flatMap(([key, value]) => [
    "--conf",
    `${key}=${value}`,
  ]);
  const words = ["submit", "spark", "-q", "etl", "--name", "pi", "--spark-home", spark_home!, ...parameters];
  stack.carveIn({ PATH: path }, ...words, "--", pi);
  expect(await stored()).toEqual(fromConsole);
  stack.carve("delete", "job/pi");
});
