// Debian's Chromium, and pages that fail the test on a script error or a violation of the policy.
import AxeBuilder from "@axe-core/playwright";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";
import type { Role, Stack } from "./stack.ts";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });

// Refusals are part of the flows; the browser reports each as an error.
const expected_errors =
  /Failed to load resource: the server responded with a status of (401|403|404|409|412|422|503)|net::ERR_/;

export interface Session {
  context: BrowserContext;
  page: Page;
  errors: string[];
}

export async function signIn(
  browser: Browser,
  stack: Stack,
  role: Role = "operator",
  options: BrowserContextOptions = {},
): Promise<Session> {
  const context = await browser.newContext({
    viewport: { width: 1360, height: 900 },
    locale: "en-US",
    colorScheme: "light",
    ...options,
  });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !expected_errors.test(message.text())) errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(error.message));
  const secret = stack.secretOf(role);
  if ("code" in secret) await page.goto(`${stack.url}/login?code=${secret.code}`);
  else {
    await page.goto(`${stack.url}/login`);
    await page.getByLabel(/One-time code or token|一次性验证码或令牌/).fill(secret.token);
    await page.locator("form button[type=submit]").click();
  }
  await page.locator("nav").first().waitFor({ state: "attached" });
  return { context, page, errors };
}

const checked_tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

// Returns the violations of WCAG 2.2 AA, one line each; of one rule only if it is given.
export async function violations(page: Page, rule?: string): Promise<string[]> {
  const axe = new AxeBuilder({ page: page as never });
  const { violations } = await (rule ? axe.withRules([rule]) : axe.withTags(checked_tags)).analyze();
  return violations.flatMap((v) =>
    v.nodes.map(
      (node) => `${v.id}: ${node.target.join(" ")}: ${node.failureSummary?.split("\n")[1]?.trim() ?? ""}`,
    ),
  );
}
