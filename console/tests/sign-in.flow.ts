// Sign-in, sign-out and roles.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch, signIn } from "./support/browser.ts";
import { Stack } from "./support/stack.ts";

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

it("signs in with the code of the address, and removes it from the address", async () => {
  const { context, page, errors } = await signIn(browser, stack);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  expect(page.url()).toBe(`${stack.url}/`);
  const [cookie] = await context.cookies();
  expect(cookie).toMatchObject({
    name: `carve_session_${new URL(stack.url).port}`,
    httpOnly: true,
    sameSite: "Strict",
  });
  expect(await page.evaluate(() => document.cookie)).toBe("");
  expect(errors).toEqual([]);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect((await context.request.get(`${stack.url}/v1/nodes`)).status()).toBe(401);
  await context.close();
});

it("keeps the session in a new tab and after a reload, and none for the cookie alone", async () => {
  const { context, page } = await signIn(browser, stack);
  expect((await context.request.get(`${stack.url}/v1/nodes`)).status()).toBe(401);
  const other = await context.newPage();
  await other.goto(`${stack.url}/nodes`);
  await other.getByRole("heading", { name: "Nodes" }).waitFor();
  await page.close();
  await other.reload();
  await other.getByRole("heading", { name: "Nodes" }).waitFor();
  await other.close();
  // No tab has the key any more.
  const last = await context.newPage();
  await last.goto(`${stack.url}/nodes`);
  await last.getByRole("heading", { name: "Sign in" }).waitFor();
  await context.close();
});

it("explains a wrong code, and accepts a token", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${stack.url}/login?code=wrong`);
  await page.getByRole("alert").getByText("the code is unknown").waitFor();
  const token = stack.carve("token", "create", "mine", "--role", "viewer").trim();
  await page.getByLabel("One-time code or token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByText("viewer").waitFor();
  await context.close();
});

it("returns to the sign-in when the session ends", async () => {
  const { context, page } = await signIn(browser, stack);
  await context.clearCookies();
  await page.goto(`${stack.url}/nodes`);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await context.close();
});

it("disables for a viewer what the controller would refuse", async () => {
  stack.carve("apply", "-f", await stackDocument());
  const { context, page } = await signIn(browser, stack, "viewer");
  await page.goto(`${stack.url}/services/seen`);
  for (const name of ["Update", "Scale", "Stop"])
    expect(await page.getByRole("button", { name, exact: true }).isDisabled(), name).toBe(true);
  await page.goto(`${stack.url}/services`);
  await page.getByRole("link", { name: "seen" }).waitFor();
  expect(await page.getByRole("link", { name: "Create service" }).count()).toBe(0);
  await page.goto(`${stack.url}/nodes/n1`);
  for (const name of ["Cordon", "Drain", "Restart", "Add label"])
    expect(await page.getByRole("button", { name, exact: true }).isDisabled(), name).toBe(true);
  await page.goto(`${stack.url}/tokens`);
  await page.getByText("Only operators see tokens").waitFor();
  const refused = await page.evaluate(async () => {
    const headers = { "Carve-Page-Key": sessionStorage.getItem("carve-page-key") ?? "" };
    return (await fetch("/v1/services/seen/stop", { method: "POST", body: "{}", headers })).status;
  });
  expect(refused).toBe(403);
  await context.close();
});

it("enables for a user its own objects and no operator's action", async () => {
  const { context, page } = await signIn(browser, stack, "user");
  await page.goto(`${stack.url}/services/seen`);
  expect(await page.getByRole("button", { name: "Scale", exact: true }).isEnabled()).toBe(true);
  await page.goto(`${stack.url}/nodes/n1`);
  expect(await page.getByRole("button", { name: "Drain", exact: true }).isDisabled()).toBe(true);
  await page.goto(`${stack.url}/queues`);
  await page.getByText("An operator creates queues").waitFor();
  await context.close();
});

async function stackDocument(): Promise<string> {
  const { writeFileSync } = await import("node:fs");
  const file = `${stack.folder}/seen.json`;
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: "carve.dev/v1",
      kind: "Service",
      metadata: { name: "seen" },
      spec: { replicas: 1, run: { command: ["sleep", "600"] } },
    }),
  );
  return file;
}
