import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, expectAccessible } from "../fixtures.mjs";
import { carried, test } from "../server.mjs";

test("a run shows its score, where it comes from, and its log", async ({ page, server }) => {
  const id = await server.put(12.4, { carried: carried("llama-405b") });
  await page.goto("/results");
  await page.locator("table.reports").getByRole("link", { name: "llama-405b on eos" }).click();
  await expect(page).toHaveURL(`/run?v=1&id=${id}`);
  await expect(page.getByRole("navigation").locator("[aria-current=page]")).toHaveText("Results");
  // So do another night's runs of the same name.
  await expect(page).toHaveTitle("nightly/llama-405b#1 (job 71) · Trainplan");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("nightly/llama-405b#1 (job 71)");
  const figure = (label) => page.locator(".figure").filter({ hasText: label });
  // The mean of the steps after the warm-up, with its interval and the scored step.
  await expect(figure("Step time, s")).toContainText("scored 12.4");
  await expect(figure("Step time, s")).toContainText(/12\.39\d*12\.3\d+–12\.4\d+/);
  await expect(figure("MFU, %")).toContainText("recipe, peak 1,979 TFLOPS");
  await expect(figure("Planned, s")).toContainText("96.8 % of it");
  const known = page.getByRole("region", { name: "Settings of the run" });
  for (const text of ["llama3.1-405b/h100/fp8/512@25.04", "COMPLETED", "launch-sh", "trainplan 0.1.0"]) await expect(known).toContainText(text);
  await page.getByText("Scoring history").click();
  await expect(page.getByRole("row", { name: /Parser \d+ scored llama3.1-405b\/h100\/fp8\/512@25.04 12.4 .* as uploaded/ })).toBeVisible();
  await page.setViewportSize({ width: 375, height: 812 });
  const scores = page.getByRole("region", { name: "What each version of the parser made of the log" });
  expect(await scores.evaluate((region) => region.scrollWidth - region.clientWidth), "sideways").toBe(0);
  await page.setViewportSize({ width: 1280, height: 720 });
  for (const label of ["Comparable with the published number", "Job 1 nodes", "Run in the campaign"]) {
    await expect(known.getByRole("rowheader", { name: label })).toBeVisible();
  }
  const origin = page.locator(".origin");
  await expect(origin.locator(`[title="${id}"]`)).toHaveText(id.slice(0, 13));
  await expect(origin).toContainText(/20[\d-]+ [\d:]+ UTC/);
  await expect(origin).toContainText("pretrain_llama3.1_405b_fp8_512_71_0.out");
  await expect(origin.getByRole("link", { name: "History of this recipe" })).toHaveAttribute("href", "/history?v=1&recipe=llama3.1-405b/h100/fp8/512@25.04");
  await expectAccessible(page);

  const lines = page.locator(".lines li");
  await expect(lines).toHaveCount(50);
  await expect(page.getByText("Lines 1 to 50 of 50")).toBeVisible();
  await page.getByLabel("Find in the log").fill("iteration 42/");
  await page.getByRole("button", { name: "Find" }).click();
  await expect(lines).toHaveCount(1);
  await expect(lines.first()).toHaveAttribute("id", "L43");
  await expect(page.getByText('1 line contains "iteration 42/"', { exact: true })).toBeVisible();
  await expect(page).toHaveURL(`/run?v=1&id=${id}&find=iteration+42/`);
  const log = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save log" }).click();
  expect(readFileSync(await (await log).path(), "utf8").split("\n")).toHaveLength(51);
  const result = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save result file" }).click();
  expect(JSON.parse(readFileSync(await (await result).path(), "utf8")).id).toBe(id);

  await page.goto(`/run?id=${id}#L12`);
  await expect(page.locator("#L12")).toBeInViewport();
  await page.getByRole("link", { name: "Compare with…" }).click();
  await expect(page).toHaveURL(`/compare?v=1&ids=${id}`);
});

for (const [what, harm, said] of [
  ["damaged", (file) => writeFileSync(file, "no log"), "The server's copy of this log is damaged; upload the log again to replace it."],
  ["missing", (file) => rmSync(file), "The server lost its copy of this log; upload the log again to replace it."],
]) {
  test(`a run whose stored log is ${what} says so in place of its lines`, async ({ page, server }) => {
    const id = await server.put(12.4);
    harm(server.blob());
    await page.goto(`/run?v=1&id=${id}`);
    const log = page.getByRole("region", { name: "Log" });
    await expect(log.getByRole("status")).toHaveText(said);
    await expect(log.getByRole("alert")).toHaveCount(0);
    await expect(page.getByRole("region", { name: "Score" })).toContainText("12.4");
    await expectAccessible(page);
    await log.getByRole("link", { name: "upload the log again" }).click();
    await expect(page).toHaveURL("/results");
  });
}

test("a window is always shown with who chose it", async ({ page, server }) => {
  const ids = [await server.put(12.4), await server.put(12.5)];
  await page.goto(`/run?v=1&id=${ids[0]}`);
  const score = page.getByRole("region", { name: "Score" });
  await expect(score).toContainText("Step 49 is scored, the last in the log, as release 25.04 does. Choose others under Window.");
  await page.getByText("Change window, FLOPs convention, recipe or GPU").click();
  await page.getByLabel("Window", { exact: true }).fill("20-29");
  await expect(score).toContainText("Steps 20–29 are scored, as you chose.");
  await page.goto(`/compare?v=1&ids=${ids.join(",")}`);
  const windows = page.locator('table.reports td[data-label="Scored"]');
  await expect(windows).toHaveText(["step 49 (release 25.04)", "step 49 (release 25.04)"]);
});

test("the verdict says how near a run comes to the published speed", async ({ page, server }) => {
  for (const [seconds, verdict] of [[12.4, "as_published"], [13.2, "below_published"], [16.4, "far_below_published"]]) {
    await page.goto(`/run?v=1&id=${await server.put(seconds)}`);
    await expect(page.locator(".verdict")).toHaveAttribute("data-verdict", verdict);
    await expect(page.locator(".figure").filter({ hasText: "Predicted, s" })).toContainText(/[\d.]+\s%\sof\sit/);
    // What could explain it is named where a run is clearly slower than predicted.
    const why = page.locator(".notice").filter({ hasText: "longer than predicted (" });
    if (verdict === "far_below_published") await expect(why).toContainText("computation at");
    if (verdict === "as_published") await expect(why).toHaveCount(0);
  }
});

test("lines of a log are marked by the address, and by clicks that make one", async ({ page, server }) => {
  const id = await server.put(12.4, { steps: 1200 });
  const marked = page.locator(".lines li:has([aria-current])");
  const numbers = () => marked.evaluateAll((lines) => lines.map(({ id }) => id));
  await page.goto(`/run?v=1&id=${id}#L20-L24`);
  await expect(marked).toHaveCount(5);
  await expect(page.locator("#L20")).toBeInViewport();
  const line = (number) => page.getByRole("link", { name: `Line ${number}`, exact: true });
  await line(22).click();
  await expect(page).toHaveURL(`/run?v=1&id=${id}#L22`);
  await line(19).click({ modifiers: ["Shift"] });
  await expect(page).toHaveURL(`/run?v=1&id=${id}#L19-L22`);
  expect(await numbers()).toEqual(["L19", "L20", "L21", "L22"]);
  await expectAccessible(page);
  await page.getByRole("button", { name: "Copy link to selection" }).click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toBe(`${server.url}/run?v=1&id=${id}#L19-L22`);

  // What is elsewhere in the log is fetched: on the same page, on another piece of it, and afresh.
  await page.evaluate(() => (location.hash = "#L700-L701"));
  await expect(page.getByText("Lines 501 to 1,000", { exact: true })).toBeVisible();
  await expect(page.locator("#L700")).toBeInViewport();
  await page.getByRole("button", { name: "Next lines" }).click();
  await expect(page.getByText("Lines 1,001 to 1,200 of 1,200")).toBeVisible();
  await expect(marked).toHaveCount(0);
  await page.goto("about:blank");
  await page.goto(`/run?v=1&id=${id}&from=501#L1100`);
  await expect(page.locator("#L1100")).toBeInViewport();
  expect(await numbers()).toEqual(["L1100"]);

  // From what was found to what is around it.
  await page.getByLabel("Find in the log").fill("iteration 80");
  await page.getByRole("button", { name: "Find" }).click();
  await expect(page.getByText('11 lines contain "iteration 80"', { exact: true })).toBeVisible();
  await line(805).click();
  await page.getByRole("button", { name: "Show in context" }).click();
  await expect(page).toHaveURL(`/run?v=1&id=${id}#L805`);
  await expect(page.locator("#L804")).toBeInViewport();
  expect(await numbers()).toEqual(["L805"]);
  await page.getByLabel("Find in the log").fill("nowhere");
  await page.getByRole("button", { name: "Find" }).click();
  await expect(page.getByText('No line contains "nowhere"', { exact: true })).toBeVisible();
});

test("what a log is a run of is said on its page, and kept", async ({ page, server }) => {
  const recipe = "llama3.1-405b/h100/fp8/512@25.04";
  const id = await server.put(12.4, { name: "train.log" });
  await page.goto(`/run?id=${id}`);
  const status = page.getByRole("region", { name: "Score" });
  const keep = page.getByRole("button", { name: "Save for everyone" });
  await expect(page.getByText("The log doesn't name its model")).toBeVisible();
  // What does not fit is said so.
  await page.getByText("Change window, FLOPs convention, recipe or GPU").click();
  await page.getByLabel("Recipe").fill("llama3.1-405b/h100/fp8/1024@25.04");
  await page.getByLabel("Recipe").press("Enter");
  const verdict = page.getByRole("region", { name: "Verdict" });
  await expect(verdict).toContainText("No measurement is published for llama3.1-405b/h100/fp8/1024@25.04 with GBS 256 instead of 512.");
  await expect(verdict).toContainText(/ of the predicted speed, (within|outside) the 80/);
  await page.getByLabel("Recipe").fill("llama3.1-405b/h100/fp8/512");
  await page.getByLabel("Recipe").press("Enter");
  await expect(status).toContainText("llama3.1-405b");
  // Who may only read can't keep it so.
  await expect(page.getByText("Users with the scope admin can save it for everyone.")).toBeVisible();
  await expect(keep).toHaveCount(0);

  await page.goto(`/run?id=${id}&r=llama3.1-405b/h100/fp8/512#token=${server.token}`);
  await expectAccessible(page);
  await keep.click();
  await expect(keep).toHaveCount(0);
  await expect(page).toHaveURL(`/run?v=1&id=${id}`);
  await expect(status).toContainText(recipe);
  await page.reload();
  await expect(status).toContainText(recipe);
  await page.getByText("Scoring history").click();
  await expect(page.getByRole("row", { name: /as uploaded/ })).toBeVisible();
  await page.goto(`/results?recipe=${recipe}`);
  await expect(page.locator(`a[href*="${id}"]`).first()).toBeVisible();
});

test("a run without its log on the server says so, and an unknown one too", async ({ page, server }) => {
  page.removeAllListeners("console");
  const id = await server.put(12.4, { log: false });
  await page.goto(`/run?id=${id}`);
  await expect(page.getByText("The server has no log of this run.")).toBeVisible();
  await page.goto("/run");
  await expect(page.getByText("Choose a run on the Results page.")).toBeVisible();
  await expect(page.locator(".notice.wrong")).toHaveCount(0);
  await page.goto("/run?id=018f0000-0000-7000-8000-000000000000");
  await expect(page.locator(".notice.wrong")).toContainText("The server has no run 018f0000-0000-7000-8000-000000000000. All results");
});

test("a run that was not scored says why once, and leads to the line that tells it", async ({ page, server }) => {
  const folder = mkdtempSync(join(tmpdir(), "trainplan-"));
  const log = join(folder, "train.log");
  const lines = Array.from({ length: 12 }, (_, step) => `Training epoch 0, iteration ${step}/49 | global_batch_size: 256 | train_step_timing in s: 12.4\n`);
  writeFileSync(log, `${lines.join("")}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n`);
  server.upload(log);
  const { items } = await (await server.send("GET", "/runs")).json();
  await page.goto(`/run?id=${items[0].id}`);
  const line = page.locator(".headline").getByRole("link", { name: "line 13" });
  await expect(page.locator('.verdict[data-verdict="failed"]')).toBeVisible();
  await expect(page.getByText("ran out of memory")).toHaveCount(1);
  await line.click();
  await expect(page.locator(".lines li:has([aria-current])")).toHaveAttribute("id", "L13");

  // One that was scored, of what is not known.
  writeFileSync(log, Array.from({ length: 50 }, (_, step) => `Training epoch 0, iteration ${step}/49 | train_step_timing in s: 12.4\n`).join(""));
  server.upload(log);
  const { items: [newest] } = await (await server.send("GET", "/runs")).json();
  await page.goto(`/run?id=${newest.id}`);
  await expect(page.locator(".headline")).toHaveText("12.4 s per step.");
  await expect(page.getByRole("region", { name: "Verdict" })).toContainText("No published number to compare with.");

  // One that was scored, and failed after that.
  const scored = Array.from({ length: 46 }, (_, step) => `iteration ${step + 1}/50 | elapsed time per iteration (ms): 12400.0 | lm loss: 3.1 |\n`);
  writeFileSync(log, `${scored.join("")}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n`);
  server.upload(log);
  const { items: [failed] } = await (await server.send("GET", "/runs")).json();
  expect([failed.status, failed.ending]).toEqual(["scored", "failed"]);
  await page.goto(`/run?id=${failed.id}`);
  await expect(page.locator('.verdict[data-verdict="failed"]')).toBeVisible();
  await expect(page.locator(".headline")).toContainText("failed after step 46: a GPU ran out of memory");
  await expect(page.getByRole("region", { name: "Score" })).toContainText("scored, then failed");
});
