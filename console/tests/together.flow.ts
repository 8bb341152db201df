// Two users who edit one object, a controller that is killed, and flows with the keyboard only.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch, signIn } from "./support/browser.ts";
import { Stack, until } from "./support/stack.ts";

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

it("shows the second editor the first one's change", async () => {
  apply({ apiVersion: "carve.dev/v1", kind: "Pool", metadata: { name: "a10" }, spec: { type: "eas" } });
  const first = await signIn(browser, stack);
  const second = await signIn(browser, stack);
  for (const { page } of [first, second]) {
    await page.goto(`${stack.url}/pools/a10/edit`);
    await page.getByRole("textbox", { name: "Labels" }).waitFor();
  }
  await first.page.getByRole("textbox", { name: "Labels" }).fill("zone=first");
  await first.page.getByRole("button", { name: "Save" }).click();
  await first.page.getByRole("heading", { name: "a10", exact: true }).waitFor();
  await second.page.getByRole("textbox", { name: "Labels" }).fill("zone=second");
  await second.page.getByRole("button", { name: "Save" }).click();
  await second.page.getByText("Another user has changed this object").waitFor();
  await second.page.locator(".diff ins", { hasText: '"zone": "first"' }).waitFor();
  expect((await stack.controllerGet("/v1/pools/a10")).spec.labels).toEqual({ zone: "first" });
  await second.page.getByRole("button", { name: "Apply mine to the current version" }).click();
  await second.page.getByRole("button", { name: "Save" }).click();
  await second.page.getByRole("heading", { name: "a10", exact: true }).waitFor();
  expect((await stack.controllerGet("/v1/pools/a10")).spec.labels).toEqual({ zone: "second" });
  await first.context.close();
  await second.context.close();
});

it("saves although the object's status has changed meanwhile", async () => {
  apply({
    apiVersion: "carve.dev/v1",
    kind: "Service",
    metadata: { name: "busy" },
    spec: { replicas: 1, run: { command: ["sleep", "1"] } },
  });
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/services/busy`);
  await page.getByRole("button", { name: "Update" }).click();
  const before = (await stack.controllerGet("/v1/services/busy")).metadata.resourceVersion;
  const spec = JSON.parse(await page.getByLabel("spec").inputValue());
  // The program ends every second. This changes the status, and so the version, but not what the user edits.
  await until(
    "another version",
    async () => (await stack.controllerGet("/v1/services/busy")).metadata.resourceVersion !== before,
  );
  await page.getByLabel("spec").fill(JSON.stringify({ ...spec, replicas: 2 }));
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect((await stack.controllerGet("/v1/services/busy")).spec.replicas).toBe(2);
  stack.carve("delete", "service/busy");
  await context.close();
});

it("reports that the controller is gone, and reconnects", async () => {
  const { context, page, errors } = await signIn(browser, stack);
  await page.goto(`${stack.url}/services`);
  await page.getByText("No services yet").waitFor();
  await stack.killController();
  await page.getByText("The controller does not respond.").waitFor();
  await page.getByRole("heading", { name: "Services" }).waitFor();
  // An attempt to reconnect fails first.
  await page.waitForEvent("requestfailed", (request) => request.url().includes("/v1/watch"));
  await stack.startController();
  await page.getByText("Connected to the controller again.").waitFor();
  apply({
    apiVersion: "carve.dev/v1",
    kind: "Service",
    metadata: { name: "after" },
    spec: { replicas: 1, run: { command: ["sleep", "600"] } },
  });
  await page.getByRole("link", { name: "after" }).waitFor();
  stack.carve("delete", "service/after");
  await page.getByText("No services yet").waitFor();
  expect(errors).toEqual([]);
  await context.close();
});

// Presses Tab until the element with the focus has this name.
async function tabTo(page: Page, name: string) {
  for (let i = 0; i < 80; i++) {
    const found = await page.evaluate((wanted) => {
      const element = document.activeElement as HTMLElement | null;
      const label = element?.id ? document.querySelector(`label[for="${element.id}"]`)?.textContent : "";
      return [label, element?.getAttribute("aria-label"), element?.textContent].some(
        (text) => text?.trim().replace(/ \*$/, "") === wanted,
      );
    }, name);
    if (found) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not reach '${name}'`);
}

it("creates a node pool with the keyboard only", async () => {
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/`);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.keyboard.press("Tab");
  await tabTo(page, "Node pools1");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Node pools" }).waitFor();
  await tabTo(page, "Create node pool");
  await page.keyboard.press("Enter");
  await page.getByLabel("Name").waitFor();
  await tabTo(page, "Name");
  await page.keyboard.type("typed");
  await tabTo(page, "Labels");
  await page.keyboard.type("zone=b");
  await tabTo(page, "Create node pool");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "typed" }).waitFor();
  expect((await stack.controllerGet("/v1/pools/typed")).spec.labels).toEqual({ zone: "b" });
  await context.close();
});

it("stops a slice with the keyboard only", async () => {
  stack.carve("slice", "create", "--name", "held", "--memory", "2GiB");
  const { context, page } = await signIn(browser, stack);
  await page.goto(`${stack.url}/slices/n1/held`);
  await page.getByRole("heading", { name: "held" }).waitFor();
  await tabTo(page, "Stop");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  // The dialog keeps the focus and Escape returns it to the button.
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await until("the focus on Stop", () => page.evaluate(() => document.activeElement?.textContent === "Stop"));
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await tabTo(page, "Cancel");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await until("the slice's end", async () => !(await stack.agentSlices()).some((s) => s.name === "held"));
  await context.close();
});
