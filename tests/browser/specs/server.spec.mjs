import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { test as plain } from "@playwright/test";

import { boxes, expect, expectAccessible, test as base } from "../fixtures.mjs";
import { test as owned } from "../server.mjs";

const binary = process.env.TRAINPLAN_BIN;

/** A server of its own, with what `store` puts into its data directory. */
const test = base.extend({
  store: async ({}, use) => use(new Store()),
  baseURL: async ({ store }, use) => {
    const server = spawn(binary, ["serve", "--listen", "127.0.0.1:0", "--data-dir", store.data]);
    for await (const line of createInterface({ input: server.stderr })) {
      const url = line.match(/http:\/\/127\.0\.0\.1:\d+/);
      if (!url) continue;
      await use(url[0]);
      break;
    }
    server.kill();
  },
});

class Store {
  data = mkdtempSync(join(tmpdir(), "trainplan-data-"));
  runs = 0;

  /** Puts the result of a run of so many seconds per step into the store; `carried` is what the runner adds to it, `name` that of its log. */
  put(seconds, carried, name = `log-acct.pretrain_llama3.1_405b_fp8_512_${71 + this.runs++}_0.out`) {
    const folder = mkdtempSync(join(tmpdir(), "trainplan-"));
    const log = join(folder, name);
    const steps = Array.from({ length: 50 }, (_, step) =>
      `Training epoch 0, iteration ${step}/49 | lr: 1e-06 | global_batch_size: 256 | global_step: ${step} | ` +
        `reduced_train_loss: ${(12 - step / 10).toFixed(3)} | train_step_timing in s: ${seconds} | consumed_samples: ${256 * (step + 1)}\n`,
    );
    writeFileSync(log, steps.join(""));
    execFileSync(binary, ["parse", log, "--save", folder], { stdio: "pipe" });
    const file = join(folder, readdirSync(folder).find((name) => name.endsWith(".result.json")));
    if (carried) writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), carried }));
    execFileSync(binary, ["import", file, "--data-dir", this.data], { stdio: "pipe" });
  }
}

const carried = (run, repeat = 1) => ({
  campaign: "nightly",
  run,
  repeat,
  cluster: "eos",
  jobs: [{ id: "71", name: "pretrain", state: "COMPLETED", exit_code: 0, nodes: "n[1-64]" }],
  launch: { release: "25.04", style: "launch-sh", script_sha256: "0".repeat(64), steps: 50, comparable: { yes: true, reasons: [] } },
  plan: {
    step_time_s: { low: 11.4, mid: 12.0, high: 12.9 },
    memory_bytes: 6e10,
    capacity_bytes: 8e10,
    basis: "published",
    calibration: "trainplan 0.1.0",
  },
});

/** A run of the server or a dropped log. */
const row = (page, text) => page.locator("table.reports tbody tr").filter({ hasText: text });
const cell = (row, label) => row.locator(`td[data-label="${label}"]`);

test("what the server has is shown beside its prediction, and what comes later comes by itself", async ({ page, store }) => {
  store.put("12.37", carried("llama-405b"));
  store.put("13.5", carried("llama-405b", 2));
  store.put("12.9");
  await page.goto("/results");
  const first = row(page, "llama-405b on eosnightly");
  await expect(first.getByRole("rowheader")).toContainText("llama-405b on eosnightly/");
  await expect(cell(first, "Tokens/s")).toHaveText("169,535");
  await expect(cell(first, "Of published, %")).toHaveText("100.0");
  await expect(page.getByRole("button", { name: "Of published, %" })).toHaveAttribute("title", "Speed as a percentage of the published speed; below 100 is slower");
  await expect(cell(first, "Predicted, s")).toHaveText("1211.4–12.9, 97.0 % of it");
  await expect(cell(row(page, "llama-405b#2 on eos"), "Predicted, s")).toContainText("88.9 % of it");
  // No campaign launched it, so it has the prediction for its scenario.
  await expect(cell(row(page, "(job 73)"), "Predicted, s")).toHaveText(/^[\d.]+–[\d.]+, [\d.]+\s%\sof\sit$/);
  // The newest comparison is drawn already.
  await expect(page.getByRole("region", { name: "Newest" })).toContainText("pretrain_llama3.1_405b_fp8_512 takes 4.44 % less per step than nightly/llama-405b#2");
  await expect(page.locator(".chart .legendtext").filter({ hasText: "nightly/llama-405b" }).first()).toBeVisible();
  await expect(page.locator("table.reports tbody tr")).toHaveCount(3);
  // What is above leaves room for them on the first screen.
  await page.setViewportSize({ width: 1440, height: 900 });
  await expect(page.locator("table.reports tbody tr").first()).toBeInViewport({ ratio: 0.8 });
  await expectAccessible(page);

  store.put("12.5", carried("llama-405b", 3));
  await expect(row(page, "llama-405b#3 on eos")).toBeVisible();
  await expect(page.locator("table.reports tbody tr")).toHaveCount(4);
});

test("without a prediction there is no column for it, and dropped files are listed with the server's", async ({ page, store }) => {
  store.put("12.9", undefined, "train.log");
  await page.goto("/results");
  await expect(row(page, "train.log")).toBeVisible();
  await expect(page.getByRole("columnheader", { name: "Predicted, s" })).toHaveCount(0);
  await page.locator("[data-files]").setInputFiles({ name: "own.log", mimeType: "text/plain", buffer: Buffer.from("nothing\n") });
  await expect(cell(row(page, "own.log"), "Status")).toHaveText("no data");
  await expect(page.locator("table.reports tbody tr")).toHaveCount(2);
});

test("on a phone a run is a few lines: its name, what people look for first, and the rest", async ({ page, store }) => {
  store.put("12.37", carried("llama-405b"));
  for (const seconds of ["12.9", "13.1", "13.3"]) store.put(seconds);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("/results");
  const run = row(page, "(job 72)");
  await expect(run.getByRole("rowheader").getByRole("link")).toBeVisible();
  await expect(cell(run, "Status")).toBeHidden();
  await expect(cell(run, "Predicted, s")).toContainText(/[\d.]+\s%\sof\sit/);
  await expect(cell(row(page, "llama-405b on eos"), "Predicted, s")).toContainText("97.0 % of it");
  const figures = await boxes(run.locator(["Step time, s", "MFU, %", "Of published, %"].map((label) => `td[data-label="${label}"]`).join()));
  expect(figures).toHaveLength(3);
  expect(new Set(figures.map(({ y }) => Math.round(y))).size, "lines of the figures").toBe(1);
  expect((await run.boundingBox()).height).toBeLessThan(190);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  await expectAccessible(page);
  // A name without a place to break is not wider than the page.
  await run.getByRole("link").click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("(job 72)");
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
});

owned("a run that ended without a result reads as ended and leaves, and one that went silent says since when", async ({ page, server }) => {
  const id = (run) => `018f0000-0000-7000-8000-00000000000${run}`;
  const say = (run, state) => {
    const word = { campaign: "nightly", run: `run-${run}`, repeat: 1, cluster: "eos", state, step: 12, steps: 50, at: "2026-11-21T12:34:00Z" };
    return server.send("POST", `/runs/${id(run)}/progress`, JSON.stringify(word));
  };
  /** Has it be so many minutes since the server heard of a run. */
  const age = (run, minutes) => {
    const time = new Date(Date.now() - minutes * 60_000).toISOString();
    const update = "import sqlite3, sys; store = sqlite3.connect(sys.argv[1], timeout=60); store.execute('UPDATE progress SET received_at = ? WHERE id = ?', sys.argv[2:]); store.commit()";
    execFileSync("python3", ["-c", update, join(server.data, "store.sqlite"), time, id(run)]);
  };
  await say(1, "running");
  await say(2, "running");
  await say(3, "cancelled");
  age(2, 190);
  await page.goto("/results");
  const running = page.getByRole("region", { name: "Running now", exact: true });
  const ended = page.getByRole("region", { name: "Ended without a result", exact: true });
  await expect(running.locator("tbody tr")).toHaveCount(2);
  await expect(running.getByRole("row", { name: /run-1/ })).toContainText("just now");
  await expect(running.getByRole("row", { name: /run-2/ })).toContainText("3 h ago");
  await expect(ended.locator("tbody tr")).toHaveCount(1);
  await expect(ended.getByRole("row", { name: /run-3/ })).toContainText(/cancelled.*12 of 50.*2026-11-21 12:34 UTC/);
  await expectAccessible(page);
  age(3, 61);
  await say(1, "ran out of memory");
  await expect(ended.getByRole("row", { name: /run-1/ })).toContainText("ran out of memory");
  await expect(ended.locator("tbody tr")).toHaveCount(1);
  await expect(running.locator("tbody tr")).toHaveCount(1);
});

base("what is empty says what to do next", async ({ page }) => {
  await page.goto("/results");
  await expect(page.getByText("No runs on the server yet")).toBeVisible();
  const begin = page.getByRole("region", { name: "How to begin" });
  await expect(begin.getByRole("link", { name: "Plan a run" })).toHaveAttribute("href", "/?tab=launch");
  await expectAccessible(page);
  await page.locator("[data-files]").setInputFiles({ name: "own.log", mimeType: "text/plain", buffer: Buffer.from("nothing\n") });
  await expect(begin).toHaveCount(0);
  await page.getByRole("button", { name: "Clear" }).click();
  await expect(page.getByLabel("Recipe", { exact: true })).toHaveCount(0);
  await page.goto("/history");
  await expect(page.getByText("No history yet")).toBeVisible();
  await expect(page.getByText(`TRAINPLAN_SERVER=${new URL(page.url()).origin} trainplan upload experiments/`)).toBeVisible();
  await expectAccessible(page);
});

base.describe("a host of files alone", () => {
  base.use({
    baseURL: async ({}, use) => {
      const dist = join(import.meta.dirname, "../../../dist");
      const host = spawn("python3", ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", dist]);
      for await (const line of createInterface({ input: host.stdout })) {
        await use(`http://127.0.0.1:${line.match(/port (\d+)/)[1]}`);
        break;
      }
      host.kill();
    },
  });

  base("is not asked for results it doesn't have", async ({ page }) => {
    const answered = page.waitForResponse("**/api/v1/runs/**");
    await page.goto("/results/");
    expect((await answered).status()).toBe(200);
    await expect(page.getByText("Drop training logs here")).toBeVisible();
    await page.goto("/history/");
    await expect(page.getByText("The history needs a server, which collects runs over time.")).toBeVisible();
  });
});

// Without the fixture that listens to the console: Chromium writes every answer of 400 and above there.
plain("a host without results is silent, and a server that fails is heard", async ({ page }) => {
  const error = page.locator("p.error");
  const silent = [
    { status: 404, contentType: "text/html", body: "<!doctype html><title>nothing here</title>" },
    { status: 200, contentType: "text/html", body: "<!doctype html><title>the app</title>" },
  ];
  for (const answer of silent) {
    await page.route("**/api/v1/**", (route) => route.fulfill(answer));
    const answered = page.waitForResponse("**/api/v1/**");
    await page.goto("/results");
    await answered;
    await page.waitForTimeout(300);
    await expect(error).toHaveCount(0);
    await expect(page.locator("table.reports")).toHaveCount(0);
    await page.unroute("**/api/v1/**");
  }
  const problem = { title: "Service Unavailable", status: 503, detail: "another program kept the store locked" };
  await page.route("**/api/v1/**", (route) =>
    route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify(problem) }),
  );
  await page.goto("/results");
  await expect(error).toContainText("another program kept the store locked", { ignoreCase: true });
});
