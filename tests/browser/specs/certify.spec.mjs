// The page that `trainplan certify --report` writes.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { expect, expectAccessible, test } from "../fixtures.mjs";

const binary = process.env.TRAINPLAN_BIN;

const CLUSTERS = `version = 1

[cluster.alpha]
ssh = "alpha-login"
account = "research"
partition = "batch"
gpu = "h100"

[cluster.alpha.release."26.06.01"]
install-path = "/lustre/llmb"
`;

// Writes a round that is over, with one run for each plan and its events.
const FILL = `
import json, sqlite3, sys
journal = sqlite3.connect(sys.argv[1], timeout=60)
journal.execute("INSERT INTO round (id, campaign, cluster, ssh, sha256, begun_ms, ended_ms) VALUES ('r', 'certify-h100-64-26.06.01', 'alpha', 'login', '0', 1, 2)")
for position, (plan, events) in enumerate(json.load(sys.stdin)):
    journal.execute("INSERT INTO run (id, round, position, plan) VALUES (?, 'r', ?, ?)", [str(position), position, json.dumps(plan)])
    for event in events:
        journal.execute("INSERT INTO event (run, at_ms, event) VALUES (?, 1, ?)", [str(position), json.dumps(event)])
journal.commit()
`;

const plan = (name, recipe, repeat = 1, repeats = 1) => ({
  name,
  repeat,
  repeats,
  after: [],
  singleton: false,
  queue_budget_s: null,
  recipe: `${recipe}/64@26.06.01`,
  scenario: "m=llama3.1-8b",
  gpus: 64,
  script: "",
  is_job: false,
  secrets: [],
  job_names: ["train"],
  experiment_dir: "/x",
  log_glob: "/x/*.out",
  launched: { release: "26.06.01", style: "llmb-run", script_sha256: "0".repeat(64), steps: 50, comparable: { yes: true, reasons: [] } },
  predicted: {
    step_time_s: { low: 9, mid: 9.4, high: 9.9 },
    memory_bytes: 6e10,
    capacity_bytes: 8e10,
    basis: "modelled",
    calibration: "trainplan 0.1.0",
  },
  baseline_s: null,
});

const scored = (seconds) => [{ event: "parsed", status: "scored", step_time_s: seconds }];

/** Writes the report of a certification and returns its address. */
const report = () => {
  const folder = mkdtempSync(join(tmpdir(), "trainplan-certify-"));
  const [clusters, data, file] = ["clusters.toml", "data", "alpha.html"].map((name) => join(folder, name));
  writeFileSync(clusters, CLUSTERS);
  execFileSync(binary, ["jobs", "list", "--data-dir", data], { stdio: "pipe" });
  const runs = [
    [plan("llama3.1-70b-fp8", "llama3.1-70b/h100/fp8", 1, 2), scored(20)],
    [plan("llama3.1-70b-fp8", "llama3.1-70b/h100/fp8", 2, 2), scored(20.2)],
    [plan("gpt-oss-120b-bf16", "gpt-oss-120b/h100/bf16"), scored(25)],
    [plan("llama3.1-8b-bf16", "llama3.1-8b/h100/bf16"), [{ event: "failed", why: "no log was found" }]],
  ];
  execFileSync("python3", ["-c", FILL, join(data, "journal.sqlite3")], { input: JSON.stringify(runs) });
  const more = ["--clusters", clusters, "--data-dir", data, "--report", file];
  const { status, stderr } = spawnSync(binary, ["certify", "--cluster", "alpha", "--gpus", "64", ...more]);
  // One run has no score.
  expect(status, `${stderr}`).toBe(4);
  return pathToFileURL(file).href;
};

for (const colorScheme of ["light", "dark"]) {
  test(`the report of a certification is accessible in ${colorScheme} and fits each width`, async ({ page }) => {
    await page.emulateMedia({ colorScheme });
    await page.goto(report());
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Certification of alpha");
    await expect(page.locator(".headline")).toContainText("1 of 3 runs passed, 1 is slow, 1 was not scored.");
    const runs = page.getByRole("region", { name: "Runs" });
    await expect(runs.locator("tbody tr")).toHaveCount(3);
    await expect(runs.getByRole("row", { name: /^gpt-oss-120b-bf16/ })).toContainText("Below 95 % of the published speed.");
    // A bar reaches the line where the run passed, and ends before it where the run is slow.
    const ends = await runs.locator(".bar").evaluateAll((bars) =>
      bars.map((bar) => bar.querySelector("rect").getBoundingClientRect().right - bar.querySelector("line").getBoundingClientRect().left),
    );
    expect(ends).toHaveLength(2);
    expect(ends[0]).toBeGreaterThan(0);
    expect(ends[1]).toBeLessThan(0);
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 844 });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      await expectAccessible(page);
    }
  });
}
