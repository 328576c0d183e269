import { readFileSync } from "node:fs";

import { expect, expectAccessible, test as plain } from "../fixtures.mjs";
import { carried, test } from "../server.mjs";

const row = (page, text) => page.locator("table.reports tbody tr").filter({ hasText: text });
const cell = (row, label) => row.locator(`td[data-label="${label}"]`);
const headline = (page) => page.locator(".headline");

test("without ids the newest comparison is drawn, with plan, published number, curves and differences", async ({ page, server }) => {
  await server.put(12.9);
  const before = await server.put(12.3, { carried: carried("llama-405b") });
  await server.put(12.5, { gpus: 1024 });
  const newest = await server.put(12.9, { carried: carried("llama-405b-new") });
  await page.goto("/compare");
  await expect(headline(page)).toContainText(/nightly\/llama-405b-new#1 takes 4\.8\d\s% longer per step than nightly\/llama-405b#1 \(\d/);
  await expect(headline(page)).toContainText("runs at 95.9 % of the published speed and 93.1 % of the planned speed, within the interval (steady mean).");
  await expect(row(page, "llama-405b#1")).toBeVisible();
  const other = row(page, "llama-405b-new#1");
  await expect(cell(row(page, "llama-405b#1"), "Against reference")).toHaveText("reference");
  await expect(cell(other, "Against reference")).toContainText(/\+4\.8\d\s%\+4\.\d\d to \+5\.\d\d\s%, slower/);
  await expect(cell(other, "Step time, s")).toHaveText(/^12\.89\d*12\.8\d+–12\.9\d+, scored 12\.9$/);
  await expect(cell(other, "MFU, %")).toHaveText(/42\.\drecipe, peak 1,979 TFLOPS/);
  await expect(cell(other, "Of published, %")).toHaveText("95.9of 12.37 s");
  await expect(cell(other, "Planned, s")).toHaveText("1211.4–12.9, 93.1 % of it");
  for (const name of ["llama-405b#1", "llama-405b-new#1", "Planned", "Planned (range)", "Published", "Scored steps (49)"]) {
    await expect(page.locator(".chart").first().locator(".legendtext").filter({ hasText: name }).first()).toBeVisible();
  }
  await expect(page.getByText("2 outliers are off the scale. Show data lists all values.")).toBeVisible();
  const differing = page.getByRole("region", { name: "Different settings", exact: true });
  await expect(differing.getByRole("row", { name: /^Run in the campaign/ })).toContainText("llama-405b-new");
  await expect(differing).not.toContainText("GBS");
  // Logs of two runs always differ.
  await expect(differing).not.toContainText("SHA-256");
  // On a phone the values are below each other.
  const { width, height } = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  for (const value of await differing.locator("tr").filter({ hasText: "Run in the campaign" }).locator("td").all()) {
    const box = await value.boundingBox();
    expect(box.x + box.width).toBeLessThanOrEqual(390);
  }
  await page.setViewportSize({ width, height });
  await page.getByText(/Show \d+ identical settings/).click();
  await expect(page.getByRole("region", { name: "Identical settings" })).toContainText("GBS");
  await page.locator("summary", { hasText: "Show data" }).first().click();
  await expect(page.getByRole("region", { name: "Step time, s by step; Planned 12; Published 12.37" }).locator("tbody tr")).toHaveCount(50);
  await expectAccessible(page);

  await page.getByRole("button", { name: "Make reference" }).click();
  await expect(page).toHaveURL(`/compare?v=1&ids=${newest},${before}`);
  await expect(headline(page)).toContainText(/nightly\/llama-405b#1 takes 4\.6\d\s% less per step than nightly\/llama-405b-new#1/);
  await page.goBack();
  await expect(headline(page)).toContainText("longer");
});

test("the newest run is the one that ran last, in whatever order runs arrive", async ({ page, server }) => {
  const ran = (run, started) => {
    const made = carried(run);
    return { ...made, jobs: [{ ...made.jobs[0], started }] };
  };
  await server.put(12.9, { carried: ran("third", "2026-11-28T12:38:00Z") });
  await server.put(12.3, { carried: ran("second", "2026-11-28T12:37:00Z") });
  await server.put(12.4, { carried: ran("first", "2026-11-28T12:35:00Z") });
  await page.goto("/results");
  await expect(page.getByRole("heading", { name: "Newest run: nightly/third#1" })).toBeVisible();
  await expect(headline(page)).toContainText(/nightly\/third#1 takes 4\.\d+\s% longer per step than nightly\/second#1/);
});

test("unlike runs are flagged loudly, and window, convention and scale stand in the address", async ({ page, server }) => {
  const small = await server.put(12.4);
  const large = await server.put(12.4, { gpus: 1024 });
  await page.goto(`/compare?v=1&w=20-29&ids=${small},${large}&y=log`);
  await expect(page.locator(".verdict .notice.wrong")).toContainText("GBS 512 (reference 256), GPUs 1024 (reference 512)");
  await expect(page.locator('[data-verdict="not_comparable"]')).toBeVisible();
  await expect(page.locator(".verdict").getByText("is not comparable with")).toHaveCount(1);
  await expect(page.locator(".verdict")).not.toContainText("confidence interval");
  await expect(cell(row(page, "Remove").first(), "Scored")).toContainText("20–29");
  await expect(page.getByRole("button", { name: "Logarithmic" })).toHaveAttribute("aria-pressed", "true");
  await page.getByRole("button", { name: "Linear" }).click();
  await page.locator("#field-convention").selectOption("full");
  await expect(cell(row(page, "Remove").first(), "MFU, %")).toContainText("full");
  await expect(page).toHaveURL(`/compare?v=1&c=full&w=20-29&ids=${small},${large}`);
  await expectAccessible(page);
});

test("runs that can't be compared are listed in one box, which is open", async ({ page, server }) => {
  const ids = [await server.put(12.4), await server.put(12.5)];
  for (const gpus of [1024, 256, 128, 64]) ids.push(await server.put(12.4, { gpus }));
  await page.goto(`/compare?v=1&ids=${ids.join(",")}`);
  const box = page.locator(".verdict .notice.wrong");
  await expect(box).toHaveCount(1);
  const summary = box.getByText("4 of 5 runs are not comparable with the reference");
  await expect(headline(page)).toContainText(/^1 of 5 runs shows no difference from .+ \(job\s71\)\. 4 are not comparable: .+ and 1 more\./);
  await expect(summary).toBeVisible();
  await expect(box.getByText("GPUs 1024 (reference 512)")).toBeVisible();
  await summary.click();
  await expect(box.getByText("GPUs 1024 (reference 512)")).toBeHidden();
  await summary.click();
  // The figures of such runs are in small print.
  await expect(cell(row(page, "Remove").last(), "Against reference")).toHaveText(/^not comparable/);
  await expect(box.getByRole("listitem")).toHaveCount(4);
  // The colour is that of the worst verdict.
  await expect(page.locator('[data-verdict="not_comparable"]')).toBeVisible();
  await expectAccessible(page);
});

test("runs are added, removed and saved, and a single run is compared with its plan", async ({ page, server }) => {
  const ids = [];
  for (const [name, seconds] of [["a", 12.2], ["b", 12.4], ["c", 12.9]]) ids.push(await server.put(seconds, { carried: carried(name) }));
  await page.goto(`/compare?v=1&ids=${ids[0]}`);
  await expect(headline(page)).toHaveText("nightly/a#1 (job 71) runs at 101.5 % of the published speed and 98.4 % of the planned speed, within the interval (steady mean).");
  await expect(page.getByRole("button", { name: "Remove" })).toHaveCount(0);
  for (const id of ids.slice(1)) await page.getByLabel("Add a run").selectOption(id);
  await expect(page).toHaveURL(`/compare?v=1&ids=${ids.join(",")}`);
  await expect(headline(page)).toContainText(/^Both runs are slower than nightly\/a#1: nightly\/b#1 \(\+1\.\d\s%\) and nightly\/c#1 \(\+5\.\d\s%\)\./);

  await page.getByText("Export", { exact: true }).click();
  const csv = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as CSV" }).click();
  const lines = readFileSync(await (await csv).path(), "utf8").trim().split("\n");
  expect(lines).toHaveLength(4);
  expect(lines[3]).toContain("slower");
  const json = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as JSON" }).click();
  const saved = JSON.parse(readFileSync(await (await json).path(), "utf8"));
  expect(saved.verdict).toBe("slower");
  const menu = page.locator("details.menu");
  await expect(menu).toHaveAttribute("open");
  await page.evaluate(() => {
    addEventListener("keydown", ({ defaultPrevented }) => {
      window.isTaken = defaultPrevented;
    });
  });
  await page.keyboard.press("Escape");
  await expect(menu).not.toHaveAttribute("open");
  expect(await page.evaluate(() => window.isTaken)).toBe(true);
  await expect(menu.locator("summary")).toBeFocused();
  await menu.locator("summary").click();
  await expect(menu).toHaveAttribute("open");
  await headline(page).click();
  await expect(menu).not.toHaveAttribute("open");
  // The server says the very same.
  const served = await (await server.send("GET", `/compare?ids=${ids.join(",")}`)).json();
  expect(served).toEqual(saved);

  for (const [title, name] of [["Step time, s", "curve-step-time.png"], ["Loss", "curve-loss.png"]]) {
    const chart = page.getByRole("region", { name: title, exact: true });
    await expect(chart.locator(".main-svg").first()).toBeVisible();
    const png = page.waitForEvent("download");
    await chart.getByRole("button", { name: "Save as PNG" }).click();
    const file = await png;
    expect(file.suggestedFilename()).toBe(name);
    const image = readFileSync(await file.path());
    expect(image.subarray(1, 4).toString()).toBe("PNG");
    expect([image.readUInt32BE(16), image.readUInt32BE(20)]).toEqual([2400, 1350]);
  }

  await page.getByRole("button", { name: "Copy link" }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(`${server.url}/compare?v=1&ids=${ids.join(",")}`);

  // One is faster than the new reference and one is slower: the colour is that of the worse.
  await page.getByRole("button", { name: /^Make reference ?: nightly\/b#1$/ }).click();
  await expect(headline(page)).toContainText(/^1 of 2 runs is slower than nightly\/b#1: nightly\/c#1 \(\+4\.\d\s%\)\. 1 is faster: nightly\/a#1 \(/);
  await expect(page.locator(".verdict")).toHaveAttribute("data-verdict", "slower");
  await page.goBack();
  await expect(headline(page)).toContainText("slower than nightly/a#1");
  await page.getByRole("button", { name: "Remove nightly/b#1" }).click();
  await expect(page).toHaveURL(`/compare?v=1&ids=${ids[0]},${ids[2]}`);
});

test("repeats are pooled, and the comparison is copied as Markdown and saved as one file", async ({ page, server, context }) => {
  const ids = [];
  for (const [name, repeat, seconds] of [["a", 1, 12.2], ["a", 2, 12.3], ["a", 3, 12.25], ["b", 1, 12.9], ["b", 2, 13.0]]) {
    ids.push(await server.put(seconds, { carried: carried(name, repeat) }));
  }
  await page.goto(`/compare?v=1&ids=${ids.join(",")}`);
  await expect(headline(page)).toContainText(/nightly\/b#1 \+ 1 repeat takes 5\.\d\d\s% longer per step than nightly\/a#1 \+ 2 repeats \(/);
  const repeats = page.getByRole("region", { name: "Repeats" });
  await expect(repeats.getByRole("row", { name: /^nightly\/b#1 \+ 1 repeat .+ slower$/ })).toBeVisible();
  await expect(page.getByText(/Run-to-run variation of 0\.\d\d\s%, from 5 runs, is included\./)).toBeVisible();
  await expectAccessible(page);

  await expect(page.getByRole("button", { name: "Copy Markdown" })).toBeHidden();
  await page.getByText("Export", { exact: true }).click();
  await expectAccessible(page);
  await page.getByRole("button", { name: "Copy Markdown" }).click();
  await expect(page.getByRole("button", { name: "Copied" })).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain("### Runs compared with nightly/a#1 + 2 repeats");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as HTML" }).click();
  const file = await context.newPage();
  const complaints = [];
  file.on("console", (message) => complaints.push(message.text()));
  await file.setContent(readFileSync(await (await download).path(), "utf8"));
  await expect(file.getByRole("heading", { name: "Runs compared with nightly/a#1 + 2 repeats" })).toBeVisible();
  await expect(file.getByRole("img", { name: "Step time, s by step" })).toBeVisible();
  await expectAccessible(file);
  expect(complaints).toEqual([]);
});

test("the tables of a saved comparison fit the page", async ({ page, context, server }) => {
  const ids = [];
  for (const repeat of [1, 2, 3, 4, 5, 6, 7, 8]) {
    const run = carried("llama-405b-with-a-new-network-driver-and-a-long-name", repeat);
    ids.push(await server.put(12 + repeat / 10, { carried: run }));
  }
  await page.goto(`/compare?v=1&ids=${ids.join(",")}`);
  await page.getByText("Export", { exact: true }).click();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as HTML" }).click();
  const file = await context.newPage();
  await file.setViewportSize({ width: 1200, height: 900 });
  await file.setContent(readFileSync(await (await download).path(), "utf8"));
  await file.locator("details").evaluateAll((all) => all.forEach((one) => one.setAttribute("open", "")));
  const hidden = await file.locator(".wide").evaluateAll((all) => all.map((one) => one.scrollWidth - one.clientWidth));
  expect(Math.max(...hidden)).toBe(0);
});

test("runs are chosen on the Results page, dropped ones beside those of the server", async ({ page, server }) => {
  const served = await server.put(12.4, { carried: carried("llama-405b") });
  await page.goto("/results");
  const text = Array.from(
    { length: 50 },
    (_, step) =>
      `Training epoch 0, iteration ${step}/49 | global_batch_size: 256 | global_step: ${step} | reduced_train_loss: 5.0 | train_step_timing in s: ${13 + 0.01 * Math.sin(step)}`,
  ).join("\n");
  await page.locator("[data-files]").setInputFiles({
    name: "log-acct.pretrain_llama3.1_405b_fp8_512_900_0.out",
    mimeType: "text/plain",
    buffer: Buffer.from(`${text}\n`),
  });
  await page.getByLabel("Select llama-405b on eos").or(row(page, "llama-405b on eos").getByRole("checkbox")).first().check();
  await row(page, "_900_0.out").getByRole("checkbox").check();
  await expectAccessible(page);
  await page.getByRole("link", { name: "Compare 2 runs" }).click();
  await expect(page).toHaveURL(new RegExp(`/compare\\?v=1&ids=${served},`));
  await expect(headline(page)).toContainText("pretrain_llama3.1_405b_fp8_512 takes 4.9");

  // Others have only what the server has.
  await page.getByRole("button", { name: "Copy link" }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(`${server.url}/compare?v=1&ids=${served}`);
  await expect(page.getByText("Only in this tab, so not in the link: pretrain_llama3.1_405b_fp8_512.")).toBeVisible();

  // The dropped log is still there, as a separate run.
  await row(page, "pretrain_llama3.1_405b").getByRole("link").click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("pretrain_llama3.1_405b_fp8_512 (job 900)");
  await expect(page.getByRole("button", { name: "Copy link" })).toBeDisabled();
  await expect(page.getByText("These logs are only in this tab.")).toBeVisible();
  await page.getByRole("navigation").getByRole("link", { name: "Results" }).click();
  await expect(row(page, "_900_0.out")).toBeVisible();
});

test("a run that is not there is said, and left out by a click", async ({ page, server }) => {
  page.removeAllListeners("console");
  const id = await server.put(12.4);
  const gone = "018f0000-0000-7000-8000-000000000000";
  await page.goto(`/compare?v=1&ids=${gone},${id}`);
  await expect(page.locator(".notice.wrong")).toContainText(`The server has no run ${gone}.Remove from comparison`);
  await expect(row(page, "pretrain_llama3.1_405b")).toBeVisible();
  await page.getByRole("button", { name: "Remove from comparison" }).click();
  await expect(page).toHaveURL(`/compare?v=1&ids=${id}`);
  await expect(page.locator(".notice.wrong")).toHaveCount(0);
});

const log = (seconds) =>
  Array.from({ length: 50 }, (_, step) => `Training epoch 0, iteration ${step}/49 | global_batch_size: 256 | train_step_timing in s: ${seconds + 0.01 * Math.sin(step)}\n`).join("");

test("the newest run is not compared with logs of other workloads", async ({ page, server }) => {
  await page.goto(`${server.url}/results`);
  await page.locator("[data-files]").setInputFiles(
    [["bare", 256], ["other", 128]].map(([name, gbs]) => ({
      name: `${name}.log`,
      mimeType: "text/plain",
      buffer: Buffer.from(log(12.5).replaceAll("global_batch_size: 256", `global_batch_size: ${gbs}`)),
    })),
  );
  await expect(page.getByRole("heading", { name: /^Newest run: / })).toBeVisible();
  await expect(headline(page)).toContainText(/^12\.5\d* s per step/);
  await expect(page.locator(".verdict")).not.toContainText("comparable");
  await expect(page.getByRole("link", { name: "Open comparison" })).toHaveCount(0);
});

plain("all logs that are dropped are compared, also without a recipe", async ({ page }) => {
  await page.goto("/compare");
  await page.locator("[data-files]").setInputFiles(
    [["before", 12.5], ["after", 12.1], ["again", 12.6]].map(([name, seconds]) => ({
      name: `${name}.log`,
      mimeType: "text/plain",
      buffer: Buffer.from(log(seconds)),
    })),
  );
  const names = page.locator("table.reports tbody th");
  await expect(names).toContainText(["before", "after", "again"]);
  await expect(headline(page)).toContainText("before");
});

plain("long names are short in the headline and break in the table of differences", async ({ page }) => {
  await page.goto("/compare");
  const name = (variant) => `trial_gpus8_on_the_new_cluster_with_a_very_long_name_that_would_fill_the_headline_${variant}_of_the_same_model`;
  await page.locator("[data-files]").setInputFiles(
    ["older", "newer"].map((variant, place) => ({
      name: `${name(variant)}.log`,
      mimeType: "text/plain",
      buffer: Buffer.from(log(12 + place)),
    })),
  );
  await expect(headline(page)).toContainText("headline_newer");
  await expect(headline(page)).toContainText("headline_older");
  await expect(headline(page)).not.toContainText("trial_gpus8");
  await expect(headline(page)).toHaveAttribute("title", new RegExp(name("newer")));
  const differing = page.getByRole("region", { name: "Different settings", exact: true });
  await expect(differing.locator("thead")).toContainText(name("newer"));
  expect(await differing.evaluate((scroll) => scroll.scrollWidth - scroll.clientWidth)).toBe(0);
});

plain("where nobody has runs, files can be dropped, and are compared", async ({ page }) => {
  await page.goto("/compare");
  await expect(page.getByRole("region", { name: "How to begin" })).toContainText("Drop logs or result files below");
  await expect(page.locator(".drop")).toBeVisible();
  await expectAccessible(page);
  await page.locator("[data-files]").setInputFiles(
    [[1, 12.5], [2, 12.1]].map(([job, seconds]) => ({
      name: `log-acct.pretrain_llama3.1_405b_fp8_512_${job}_0.out`,
      mimeType: "text/plain",
      buffer: Buffer.from(log(seconds)),
    })),
  );
  await expect(headline(page)).toContainText(/fp8_512 \(job 2\) takes 3\.\d+\s% less per step than job 1 \(/);
});
