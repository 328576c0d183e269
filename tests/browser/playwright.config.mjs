import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { defineConfig } from "@playwright/test";

import { launchOptions } from "./browser.mjs";

if (!process.env.TRAINPLAN_BIN) throw new Error("Set TRAINPLAN_BIN to the path of the trainplan binary.");

// teardown.mjs removes this folder. Playwright's workers read this file as well and inherit these variables.
process.env.TRAINPLAN_SCRATCH ??= mkdtempSync(join(tmpdir(), "trainplan-browser-"));
process.env.TMPDIR = process.env.TRAINPLAN_SCRATCH;

export default defineConfig({
  testDir: "specs",
  globalTeardown: "./teardown.mjs",
  fullyParallel: true,
  workers: 2,
  forbidOnly: Boolean(process.env.CI),
  reporter: "list",
  // Long enough for a busy machine; other tests measure speed.
  timeout: 300_000,
  expect: { timeout: 60_000 },
  // On a free port, which the server prints, and with an empty data directory.
  webServer: {
    command: `"${process.env.TRAINPLAN_BIN}" serve --listen 127.0.0.1:0 --data-dir "$(mktemp -d)"`,
    wait: { stderr: /(?<TRAINPLAN_URL>http:\/\/127\.0\.0\.1:\d+)/ },
  },
  use: {
    baseURL: process.env.TRAINPLAN_URL,
    launchOptions,
    permissions: ["clipboard-read", "clipboard-write"],
    // Recording takes a quarter of the time. TRACE=on records what led to a failure.
    trace: process.env.TRACE ? "retain-on-failure" : "off",
    // It would answer in place of the server and of the tests' own answers. offline.spec.mjs tests it.
    serviceWorkers: "block",
  },
});
