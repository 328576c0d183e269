#!/usr/bin/env node
// Measures how fast the pages of results in dist/ react with 500 runs, and with one run of 500,000 steps, and prints the slowest
// interaction of each kind with its aim. It never fails on a time, because times depend on the machine.
//
//   scripts/results-speed.mjs [--runs N] [--steps N] [--slowdown N]

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { launchOptions } from "../tests/browser/browser.mjs";
import { chromium } from "../tests/browser/node_modules/@playwright/test/index.mjs";
import { StaticHost } from "../tests/browser/static-host.mjs";

const AIM = 100;
const { values: options } = parseArgs({
  options: {
    runs: { type: "string", default: "500" },
    steps: { type: "string", default: "500000" },
    slowdown: { type: "string", default: "1" },
  },
});

const host = await StaticHost.start(join(import.meta.dirname, "..", "dist"));
const browser = await chromium.launch(launchOptions);
const folder = mkdtempSync(join(tmpdir(), "trainplan-speed-"));
row("interaction", "slowest", "aim");
row("---", "---:", "---:");
await measure(`${options.runs} runs`, Number(options.runs), 50);
await measure(`a run of ${Number(options.steps).toLocaleString("en")} steps`, 1, Number(options.steps));
rmSync(folder, { recursive: true });
await browser.close();
await host.end();

/** Drops runs on Results, and measures what people do with them there, on Compare and on Run. */
async function measure(what, runs, steps) {
  const page = await open();
  const began = Date.now();
  const files = Array.from({ length: runs }, (_, run) => log(run, steps));
  await page.locator("[data-files]").setInputFiles(files);
  const status = page.getByRole("status").first();
  await status.filter({ hasText: `Read ${runs.toLocaleString("en")} of` }).waitFor({ timeout: 600_000 });
  console.log(`${what}: read in ${((Date.now() - began) / 1000).toFixed(1)} s, with other events of the page:`);
  row("  while reading", ms(await slowest(page)), "");
  const step = async (name, act) => {
    await page.evaluate(() => (window.events = []));
    await act();
    await page.waitForTimeout(1000);
    const slow = await slowest(page);
    row(`  ${name}`, slow ? ms(slow) : "< 16 ms", ms(AIM), slow > AIM);
  };
  const head = page.getByRole("columnheader", { name: "Step time, s" }).getByRole("button");
  if (await head.count()) await step("sort by step time", () => head.click());
  await page.getByText("Change window, FLOPs convention, recipe or GPU").click();
  const window = page.locator("#field-window");
  await step("type a window", async () => {
    await window.click();
    await page.keyboard.type("11-44", { delay: 100 });
    await page.keyboard.press("Tab");
  });
  const boxes = page.locator("table.reports tbody").getByRole("checkbox");
  await step("select a run", () => boxes.first().check());
  if (runs > 1) await step("select another run", () => boxes.nth(1).check());
  const compare = page.getByRole("link", { name: /^(Compare|Open)/ }).first();
  if (await compare.count()) {
    await step("open Compare", () => compare.click());
    await step("logarithmic scale", () => page.getByRole("button", { name: "Logarithmic" }).click());
    await step("show data", () => page.locator("summary", { hasText: "Show data" }).first().click());
  }
  await page.context().close();
}

async function open() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.addInitScript(() => {
    window.events = [];
    const keep = ({ interactionId, duration, name }) => interactionId && window.events.push({ duration, name });
    new PerformanceObserver((list) => list.getEntries().forEach(keep)).observe({ type: "event", durationThreshold: 16 });
  });
  const session = await context.newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: Number(options.slowdown) });
  await page.goto(`${host.url}/results`);
  await page.locator("[data-files]").waitFor({ state: "attached" });
  return page;
}

function slowest(page) {
  return page.evaluate(() => Math.max(0, ...window.events.map(({ duration }) => duration)));
}

/** Returns the path of a log of release 25.04. */
function log(run, steps) {
  const path = join(folder, `log-acct.pretrain_llama3.1_405b_fp8_512_${1000 + run}_0.out`);
  const line = (step) =>
    `Training epoch 0, iteration ${step}/${steps - 1} | lr: ${run}e-06 | global_batch_size: 256 | global_step: ${step} | ` +
    `reduced_train_loss: ${(12 - (10 * step) / steps).toFixed(3)} | train_step_timing in s: ${(12 + run / 1000 + 0.1 * Math.sin(step * step)).toFixed(3)}\n`;
  writeFileSync(path, Array.from({ length: steps }, (_, step) => line(step)).join(""));
  return path;
}

function row(name, measured, aim, isOver = false) {
  console.log(`| ${name.padEnd(40)} | ${String(measured).padStart(10)} | ${String(aim).padStart(8)} |${isOver ? " over" : ""}`);
}

function ms(value) {
  return `${Math.round(value).toLocaleString("en")} ms`;
}
