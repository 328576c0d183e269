import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { test as base } from "@playwright/test";

import { writeServiceWorker } from "../../../web/build/offline.mjs";
import { expect, test } from "../fixtures.mjs";
import { Server } from "../server.mjs";
import { StaticHost } from "../static-host.mjs";

const DIST = join(import.meta.dirname, "../../../dist");

// Without the fixture that listens to the console: Chromium writes every failed request there.
const plain = base.extend({
  server: async ({}, use) => {
    const server = await Server.start();
    await use(server);
    server.end();
  },
  /** Starts a host of files. */
  publishOn: async ({}, use) => {
    const hosts = [];
    await use(async (...where) => {
      hosts.push(await StaticHost.start(...where));
      return hosts.at(-1);
    });
    await Promise.all(hosts.map((host) => host.end()));
  },
});

test.use({ serviceWorkers: "allow" });
plain.use({ serviceWorkers: "allow" });

/** Waits until a service worker controls the page, which means that its cache is complete. */
const copied = (page) => page.waitForFunction(() => navigator.serviceWorker.controller?.state === "activated");

/** Returns the paths in each cache. */
const caches = (page) =>
  page.evaluate(async () => {
    const contents = {};
    for (const name of await window.caches.keys()) {
      const requests = await (await window.caches.open(name)).keys();
      contents[name] = requests.map(({ url }) => new URL(url).pathname);
    }
    return contents;
  });

/** Returns the figures that the Plan page shows, once everything is answered and they stay the same for a second. */
async function figures(page) {
  let shown = [];
  await expect(page.locator("[data-memory]").first()).toBeVisible();
  await expect(page.locator('[aria-busy="true"]')).toHaveCount(0);
  await expect(async () => {
    const read = async () => (await page.locator("main").innerText()).match(/\d[\d,.]*\s(days|GiB|%)/g);
    shown = await read();
    expect(shown).not.toBeNull();
    await page.waitForTimeout(1000);
    expect(await read()).toEqual(shown);
  }).toPass();
  return shown;
}

/** Returns a copy of the app in a folder, without compressed files, which would have to follow each change. */
function copyOfApp() {
  const folder = mkdtempSync(join(tmpdir(), "trainplan-app-"));
  cpSync(DIST, folder, { recursive: true, filter: (path) => !/\.(br|gz)$/.test(path) });
  return folder;
}

/** Changes all pages of an app. */
function changePages(folder, change) {
  for (const path of readdirSync(folder, { recursive: true }).filter((path) => path.endsWith(".html"))) {
    writeFileSync(join(folder, path), change(readFileSync(join(folder, path), "utf8")));
  }
}

const styleOf = (folder) => readdirSync(folder).find((name) => /^style-.*\.css$/.test(name));

/** Gives an app another style sheet, and returns its name. */
function publish(folder, hash) {
  const [old, style] = [styleOf(folder), `style-${hash}.css`];
  writeFileSync(join(folder, style), readFileSync(join(folder, old)) + `/* ${hash} */\n`);
  rmSync(join(folder, old));
  changePages(folder, (html) => html.replaceAll(old, style));
  writeServiceWorker(folder);
  return style;
}

test("Plan works without a network after its first load", async ({ page, context }) => {
  await page.goto("/");
  const online = await figures(page);
  await copied(page);
  await context.setOffline(true);
  await page.reload();
  expect(await figures(page)).toEqual(online);
  await page.goto("/benchmarks");
  await expect(page.locator("table.matrix tbody tr")).toHaveCount(50);
  await page.goto("/nothing/here");
  await expect(page.getByText("Page not found")).toBeVisible();
});

test("the server sends the service worker so that browsers check for a new one", async ({ request }) => {
  const answer = await request.get("/sw.js");
  expect(answer.status()).toBe(200);
  expect(answer.headers()["content-type"]).toMatch(/^text\/javascript/);
  expect(answer.headers()["cache-control"]).toBe("no-cache");
});

plain("pages of a server say that it does not answer, and requests to it are never cached", async ({ page, server }) => {
  await page.goto(`${server.url}/results`);
  await expect(page.getByText("No runs on the server yet")).toBeVisible();
  await copied(page);
  await page.route("**/api/v1/runs?*", (route) => route.fulfill({ status: 503, body: "mocked" }));
  const mocked = page.waitForResponse("**/api/v1/runs?*");
  await page.reload();
  expect(await (await mocked).text()).toBe("mocked");
  await page.unroute("**/api/v1/runs?*");

  server.end();
  await page.reload();
  await expect(page.getByText("The server does not answer. Retrying…")).toBeVisible();
  await page.goto(`${server.url}/history`);
  await expect(page.getByText("The server does not answer. Retrying…")).toBeVisible();
  await page.goto(server.url);
  await figures(page);
  for (const paths of Object.values(await caches(page))) {
    expect(paths.filter((path) => path.startsWith("/api"))).toEqual([]);
  }
});

plain("a new build replaces the old one, unless it is incomplete", async ({ page, publishOn }) => {
  const app = copyOfApp();
  const first = styleOf(app);
  const host = await publishOn(app);
  const sheets = () => page.locator("link[rel=stylesheet]").evaluateAll((links) => links.map(({ href }) => href).join());
  const inCaches = async () => Object.values(await caches(page)).map((paths) => paths.filter((path) => path.includes("/style-")));
  await page.goto(host.url);
  await copied(page);
  expect(await inCaches()).toEqual([[`/${first}`]]);

  const second = publish(app, "0000000000000002");
  await page.reload();
  expect(await sheets()).toContain(second);
  await expect.poll(inCaches).toEqual([[`/${second}`]]);

  // The new service worker is on the host already, its pages are not.
  const third = publish(app, "0000000000000003");
  changePages(app, (html) => html.replaceAll(third, second));
  const states = await page.evaluate(async () => {
    const registration = await navigator.serviceWorker.getRegistration();
    await registration.update();
    const next = registration.installing;
    while (next && next.state === "installing") await new Promise((resolve) => setTimeout(resolve, 20));
    return [next?.state, registration.active.state];
  });
  expect(states).toEqual(["redundant", "activated"]);

  await host.end();
  await page.reload();
  expect(await sheets()).toContain(second);
  await figures(page);
});

plain("a copy of the app in a folder of a host keeps to that folder", async ({ page, publishOn }) => {
  const app = copyOfApp();
  for (const name of readdirSync(app).filter((name) => /^(boot|worker)-.*\.js$/.test(name))) {
    const code = readFileSync(join(app, name), "utf8");
    writeFileSync(join(app, name), code.replace(/(['"])\/(?=trainplan-)/g, "$1/plans/"));
  }
  changePages(app, (html) => html.replace(/((?:href|src|content)=")\//g, "$1/plans/"));
  writeServiceWorker(app);
  const host = await publishOn(app, "/plans/");
  await page.goto(`${host.url}/plans/`);
  await copied(page);
  const [[name, paths], ...others] = Object.entries(await caches(page));
  expect(others).toEqual([]);
  expect(name).toContain("/plans/");
  expect(paths).toContain("/plans/");
  expect(paths.filter((path) => !path.startsWith("/plans/"))).toEqual([]);
  await host.end();
  await page.reload();
  await expect(page).toHaveTitle(/Trainplan/);
});
