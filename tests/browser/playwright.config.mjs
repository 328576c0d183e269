import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { defineConfig } from "@playwright/test";

import { launchOptions } from "./browser.mjs";

if (!process.env.TRAINPLAN_BIN) throw new Error("TRAINPLAN_BIN must name the trainplan binary to test");

// What the tests and their servers put into temporary folders goes with them. The workers read this file too, with these variables.
process.env.TRAINPLAN_SCRATCH ??= mkdtempSync(join(tmpdir(), "trainplan-browser-"));
process.env.TMPDIR = process.env.TRAINPLAN_SCRATCH;

export default defineConfig({
  testDir: "specs",
  globalTeardown: "./teardown.mjs",
  fullyParallel: true,
  workers: 2,
  forbidOnly: Boolean(process.env.CI),
  reporter: "list",
  // Generous: the machine may be busy, and speed is measured elsewhere.
  timeout: 300_000,
  expect: { timeout: 60_000 },
  // The server takes a free port and says which, and has no results of anyone's.
  webServer: {
    command: `"${process.env.TRAINPLAN_BIN}" serve --listen 127.0.0.1:0 --data-dir "$(mktemp -d)"`,
    wait: { stderr: /(?<TRAINPLAN_URL>http:\/\/127\.0\.0\.1:\d+)/ },
  },
  use: {
    baseURL: process.env.TRAINPLAN_URL,
    launchOptions,
    permissions: ["clipboard-read", "clipboard-write"],
    trace: "retain-on-failure",
  },
});
