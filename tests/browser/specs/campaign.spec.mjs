import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, test } from "../fixtures.mjs";

/** Returns what `trainplan run --dry-run` prints for the plan's campaign, on a cluster with these GPUs. */
async function dryRun(page, gpu) {
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download campaign" }).click();
  const saved = await download;
  expect(saved.suggestedFilename()).toBe("planned.campaign.toml");
  const folder = mkdtempSync(join(tmpdir(), "trainplan-"));
  const [campaign, clusters] = [join(folder, "planned.campaign.toml"), join(folder, "clusters.toml")];
  await saved.saveAs(campaign);
  const profile = `ssh = "login"\ngpu = "${gpu}"\naccount = "a"\npartition = "p"\n`;
  writeFileSync(clusters, `version = 1\n\n[cluster.my-cluster]\n${profile}`);
  const args = ["run", campaign, "--dry-run", "--clusters", clusters, "--format", "json"];
  const runs = JSON.parse(execFileSync(process.env.TRAINPLAN_BIN, args, { stdio: "pipe" }).toString());
  expect(runs).toHaveLength(1);
  return { run: runs[0], text: readFileSync(campaign, "utf8"), args };
}

test("a plan is downloaded as a campaign that `trainplan run` accepts", async ({ page }) => {
  await page.goto("/?v=1&r=llama3.1-405b/h100/fp8/512&tab=launch");
  const { run, text } = await dryRun(page, "h100");
  expect(run.recipe).toBe("llama3.1-405b/h100/fp8/512@25.04");
  expect(run.cluster).toBe("my-cluster");
  expect(text).toContain("# Run it with: trainplan run");
  expect(text).toContain('recipe = "llama3.1-405b/h100/fp8/512@25.04"');
});

test("the campaign contains the changed fields, and secrets by reference only", async ({ page }) => {
  const env = encodeURIComponent("NCCL_DEBUG=INFO\nHF_TOKEN=$MY_TOKEN");
  await page.goto(`/?v=1&r=llama3.1-70b/h100/bf16/64&gbs=512&ms=20&part=fast&env=${env}&tab=launch`);
  const { run, text } = await dryRun(page, "h100");
  expect(text).toContain("gbs = 512");
  expect(text).toContain("max-steps = 20");
  expect(text).toContain('HF_TOKEN = "$MY_TOKEN"');
  expect(run.steps).toBe(20);
  expect(run.launch.script).toContain("NCCL_DEBUG");
  expect(run.launch.script).toContain("fast");
});

test("the campaign of a scenario without a recipe uses Megatron-LM", async ({ page }) => {
  await page.goto("/?v=1&m=mixtral-8x7b&gpu=h100&n=64&d=bf16&gbs=512&ep=8&tab=launch");
  const { run, text } = await dryRun(page, "h100");
  expect(text).toContain('style = "megatron-lm"');
  expect(run.gpus).toBe(64);
  expect(run.launch.style).toBe("megatron-lm");
});
