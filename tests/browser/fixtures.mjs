import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { test as base, expect } from "@playwright/test";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// What Playwright writes to the console in place of the service worker.
const BLOCKED = "Service Worker registration blocked by Playwright";

/** Playwright's `test`. It fails on console warnings and errors, and on requests to any other host. */
export const test = base.extend({
  page: async ({ page, baseURL }, use) => {
    const complaints = [];
    page.on("console", (message) => {
      if (message.text() === BLOCKED) return;
      if (["warning", "error"].includes(message.type())) complaints.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => complaints.push(`uncaught: ${error.stack}`));
    await page.route(
      (url) => url.origin !== baseURL && url.protocol.startsWith("http"),
      (route) => {
        complaints.push(`request to another host: ${route.request().url()}`);
        return route.abort();
      },
    );
    await use(page);
    expect(complaints, "the page's complaints").toEqual([]);
  },
});

export { expect };

/** The answer's sentence on the Plan page. */
export const verdict = (page) => page.locator("#verdict");

/** The cards of the GPU types on the Plan page. */
export const cards = (page) => page.locator(".gpu-card");

/** The card of the GPU type with this name. */
export const cardOf = (page, name) => cards(page).filter({ has: page.getByRole("heading", { name, exact: true }) });

/** The heading of the shown plan. */
export const details = (page) => page.locator("#headline");

/** The rectangles of all elements that `locator` finds, measured at one time: whatever moves the page in between can't part them. */
export const boxes = (locator) =>
  locator.evaluateAll((elements) => elements.map((element) => element.getBoundingClientRect().toJSON()));

/** Expects that axe finds no serious violations in the current state of the page. */
export async function expectAccessible(page) {
  // Evaluated by Playwright, because the content security policy forbids it as a script element.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  const serious = violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`);
  expect(serious, "serious accessibility violations").toEqual([]);
}
