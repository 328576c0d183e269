import { readFileSync } from "node:fs";

import { expect, expectAccessible, test } from "../fixtures.mjs";

const rows = (page) => page.locator("table.matrix tbody tr");
const cells = (page, name) => page.locator(`table.matrix td[data-label="${name}"]`);
const facet = (page, key) => page.locator(`.facet[data-facet="${key}"]`);
const value = (page, key, title) => facet(page, key).locator("label").filter({ hasText: new RegExp(`^${title}[\\d,]+$`) });
/** Opens a facet and selects a value. */
const select = async (page, key, title) => {
  const open = facet(page, key).getByRole("button").first();
  if ((await open.getAttribute("aria-expanded")) === "false") await open.click();
  // As people do: on the text, which moves the focus.
  await value(page, key, title).locator("span").click();
};
const count = async (page, key, title) => Number((await value(page, key, title).locator("small").textContent()).replaceAll(",", ""));

test("every measured run and recipe is listed, the best first, a page at a time", async ({ page }) => {
  await page.goto("/benchmarks");
  const line = page.getByText(/^[\d,]+ of [\d,]+ shown: [\d,]+ measured runs and \d+ recipes that nobody measured$/);
  const [shown, all, measured, only] = (await line.textContent()).match(/[\d,]+/g).map((text) => Number(text.replaceAll(",", "")));
  expect(measured + only).toBe(shown);
  expect(await count(page, "meas", "measured")).toBe(measured);
  expect(await count(page, "meas", "recipe only")).toBe(only);
  expect(await count(page, "kind", "named models")).toBe(shown);
  await expect(rows(page)).toHaveCount(50);
  // Tokens per second would put the smallest models first.
  await expect(page.getByRole("columnheader", { name: "TFLOPS/GPU" })).toHaveAttribute("aria-sort", "descending");
  await expect(page.getByText("Sorted by TFLOPS/GPU, highest first.")).toBeVisible();
  const speeds = (await cells(page, "TFLOPS/GPU").allTextContents()).map((text) => Number(text.replaceAll(",", "")));
  expect(speeds).toEqual(speeds.toSorted((a, b) => b - a));
  await expect(rows(page).filter({ hasText: "proxy" })).toHaveCount(0);
  await page.getByRole("button", { name: "Show 50 more" }).click();
  await expect(rows(page)).toHaveCount(100);
  const kinds = await Promise.all(["named models", "unnamed shapes", "tiny models"].map((kind) => count(page, "kind", kind)));
  expect(kinds.reduce((sum, kind) => sum + kind)).toBe(all);
  await select(page, "kind", "tiny models");
  await expect(line).toHaveText(new RegExp(`^${(shown + kinds[2]).toLocaleString("en")} of `));
  await expect(page).toHaveURL(/\/benchmarks\?v=1&kind=named(,|%2C)tiny$/);
  await expect(page.locator(".chart .scatterlayer .trace").first()).toBeVisible();
  await expectAccessible(page);
});

test("facets count what the other facets leave, and the address keeps them", async ({ page }) => {
  await page.goto("/benchmarks");
  await expect(rows(page)).toHaveCount(50);
  const before = await count(page, "d", "NVFP4");
  await select(page, "gpu", "GB200");
  await select(page, "gpu", "GB300");
  await expect(page).toHaveURL(/[?&]gpu=gb200(,|%2C)gb300/);
  expect(await count(page, "d", "NVFP4")).toBeLessThanOrEqual(before);
  const nvfp4 = await count(page, "d", "NVFP4");
  const h100 = await count(page, "gpu", "H100");
  expect(h100, "a facet does not narrow itself").toBeGreaterThan(100);
  await select(page, "d", "NVFP4");
  await expect(rows(page)).toHaveCount(Math.min(nvfp4, 50));
  await page.reload();
  await expect(rows(page)).toHaveCount(Math.min(nvfp4, 50));
  await page.getByRole("link", { name: "Clear filters" }).click();
  await expect(rows(page)).toHaveCount(50);
});

test("a proxy says how many of the model's layers it has", async ({ page }) => {
  await page.goto("/benchmarks?v=1&m=llama3.1-70b&src=simumax-b200");
  await expect(rows(page).first().locator("th")).toContainText("proxy, 12 of 80 layers");
});

test("a number column sorts its best values first, proxies last, and a note explains an MFU above 100 % once", async ({ page }) => {
  await page.goto("/benchmarks?v=1&m=llama3.1-405b&gpu=h100");
  await page.getByRole("button", { name: "Step, s" }).click();
  await expect(page.getByRole("columnheader", { name: "Step, s" })).toHaveAttribute("aria-sort", "ascending");
  await expect(page.getByText("Sorted by Step, s, lowest first.")).toBeVisible();
  await page.getByRole("button", { name: "Tokens/s/GPU" }).click();
  await expect(page.getByRole("columnheader", { name: "Tokens/s/GPU" })).toHaveAttribute("aria-sort", "descending");
  await expect(rows(page).first()).not.toContainText("proxy");
  await page.goto("/benchmarks?v=1&d=nvfp4&sort=-mfu");
  expect(Number(await cells(page, "MFU of BF16, %").first().textContent())).toBeGreaterThan(100);
  const note = page.getByText("An MFU above 100 % exceeds the GPU’s BF16 peak, as runs in FP8 and NVFP4 can.");
  await expect(note).toHaveCount(1);
  await page.goto("/benchmarks?v=1&m=llama3.1-405b&gpu=h100&d=bf16");
  await expect(rows(page).first()).toBeVisible();
  await expect(note).toHaveCount(0);
});

test("a list of values hides those without runs, and closes when it is left", async ({ page }) => {
  await page.goto("/benchmarks");
  const open = facet(page, "n").getByRole("button").first();
  await open.click();
  const list = facet(page, "n").locator("li:visible");
  await expect(list.first()).toBeVisible();
  for (const text of await list.locator("small").allTextContents()) expect(text).not.toBe("0");
  const shown = await list.count();
  await facet(page, "n").getByRole("button", { name: /^Show \d+ more without runs$/ }).click();
  expect(await list.count()).toBeGreaterThan(shown);
  await page.keyboard.press("Escape");
  await expect(open).toHaveAttribute("aria-expanded", "false");
  await expect(open).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(open).toHaveAttribute("aria-expanded", "true");
  await expectAccessible(page);
  await page.getByRole("heading", { level: 1 }).click();
  await expect(open).toHaveAttribute("aria-expanded", "false");
  await select(page, "gpu", "B200");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Remove the filter GPU type: B200" }).click();
  await expect(page).toHaveURL(/\/benchmarks(\?v=1)?$/);
});

test("a measured run opens in Plan with its measured step time beside the prediction", async ({ page }) => {
  // No recipe of its layout was published with a number.
  await page.goto("/benchmarks?v=1&m=llama3.1-8b&gpu=gb200&d=mxfp8&src=megatron-bridge");
  const step = Number(await cells(page, "Step, s").first().textContent());
  await rows(page).first().getByRole("link", { name: /^Plan/ }).click();
  await expect(page.locator(".answers .basis").first()).toContainText("Measured:");
  const figure = page.locator('[data-figure="step-time"]');
  await expect(figure).toContainText(/measured: [\d.]+\u00a0s/);
  const shown = Number((await figure.textContent()).match(/measured: ([\d.]+)/)[1]);
  expect(Math.abs(shown / step - 1)).toBeLessThan(0.01);
  await expect(page.getByRole("table", { name: /^Predicted figures/ })).toContainText("Measured");
  await page.locator("#ask-tokens").fill("2T");
  await page.keyboard.press("Enter");
  await expect(figure).toContainText("measured:");
});

test("links of the Recipes page still work", async ({ page }) => {
  await page.goto("/recipes?v=1&m=llama3.1-70b&d=fp8&rel=25.04&meas=yes&sort=-step-time");
  await expect(page).toHaveURL("/benchmarks?v=1&m=llama3.1-70b&d=fp8&rel=25.04&meas=yes&sort=-step-time");
  await expect(page.getByRole("columnheader", { name: "Step, s" })).toHaveAttribute("aria-sort", "descending");
  await expect(cells(page, "Step, s").first()).toHaveText("10.15");
  await page.getByRole("button", { name: "Step, s" }).click();
  await expect(cells(page, "Step, s").first()).toHaveText("9.86");
});

test("a release of recipes shows the references of its recipes, apart from a product with the same version", async ({ page }) => {
  await page.goto("/benchmarks?v=1&m=deepseek-v3&gpu=gb300&rel=26.06.01");
  await expect(page.getByRole("button", { name: "Remove the filter Release: DGX Cloud recipes 26.06.01" })).toBeVisible();
  await expect(cells(page, "Step, s").first()).toHaveText("13.13");
  await expect(cells(page, "Step, s").filter({ hasText: /\d/ })).toHaveCount(1);
  await expect(cells(page, "Source").first()).toContainText("reference of DGX Cloud recipes 26.06.01");
  await select(page, "rel", "Megatron-Bridge 26\\.06\\.01");
  await expect(page).toHaveURL(/rel=26\.06\.01(,|%2C)megatron-bridge(@|%40)26\.06\.01/);
  await expect(cells(page, "Step, s").filter({ hasText: /\d/ })).toHaveCount(2);
});

test("what was not measured comes last however the table is sorted", async ({ page }) => {
  for (const sort of ["mfu", "-mfu"]) {
    await page.goto(`/benchmarks?v=1&m=nemotron4-340b&src=dgxc-seed&sort=${sort}`);
    await expect(cells(page, "MFU of BF16, %").first()).not.toHaveText("–");
    await expect(cells(page, "MFU of BF16, %").last()).toHaveText("–");
  }
});

test("a row shows the held-out error and its source, and opens in Plan where Plan can describe it", async ({ page }) => {
  // Its layout is that of a recipe without a published number.
  await page.goto("/benchmarks?v=1&m=llama3.1-405b&gpu=gb200&d=mxfp8&src=megatron-bridge");
  const row = rows(page).first();
  await expect(row.locator('[data-label="Prediction error"]')).toHaveText(/^[+−]?\d+\.\d %$/);
  await expect(row.getByRole("link", { name: /^Source: Megatron-Bridge/ })).toHaveAttribute("href", /^https:\/\/github\.com\//);
  await row.getByRole("link", { name: /^Plan Llama 3.1 405B on 256 GB200/ }).click();
  await expect(page).toHaveURL(/^[^?]*\/\?v=1&m=llama3.1-405b&gpu=gb200&n=256/);
  await expect(page.locator("#headline")).toContainText("Llama 3.1 405B on 256 × GB200");
  await page.goto("/benchmarks?v=1&m=nemotron-3-ultra-550b");
  await expect(rows(page).first()).toContainText("The model's architecture isn't published");
  await expect(rows(page).first().getByRole("link", { name: /^Plan/ })).toHaveCount(0);
});

test("a number that Megatron-Bridge published for a recipe of another release is listed once, and opens the recipe", async ({ page }) => {
  await page.goto("/benchmarks?v=1&m=llama3.1-405b&gpu=gb300&d=nvfp4");
  const run = rows(page).filter({ has: page.getByRole("cell", { name: "34.13", exact: true }) });
  await expect(run).toHaveCount(1);
  await expect(run.getByRole("link", { name: "Source: Megatron-Bridge 26.04.01" })).toHaveAttribute("href", /\/Megatron-Bridge\//);
  await run.getByRole("link", { name: /^Plan/ }).click();
  await expect(page).toHaveURL("/?v=1&r=llama3.1-405b/gb300/nvfp4/256@26.06.01");
});

test("the chart changes its quantity, and a chosen point is named", async ({ page }) => {
  await page.goto("/benchmarks?v=1&gpu=h100,b200&y=mfu&x=gpu&colour=precision");
  await expect(page.locator(".chart").first().locator(".scatterlayer .trace").first()).toBeVisible();
  await expect(page.locator(".chart").first()).toContainText("MFU, % of the BF16 peak");
  await page.getByLabel("Show", { exact: true }).first().selectOption("cost");
  await expect(page.locator(".chart").first()).toContainText("$ per 1M tokens");
  await expect(page).toHaveURL(/[?&]y=cost/);
  await page.locator(".chart").first().locator(".scatterlayer .point").first().hover({ force: true });
  await page.mouse.down();
  await page.mouse.up();
  await expect(page.locator(".picked-run")).toContainText("tokens/s per GPU");
});

test("the scaling chart compares releases by one convention", async ({ page }) => {
  await page.goto("/recipes?v=1&m=nemotron4-340b&d=bf16&meas=yes&q=mfu-full");
  const scaling = page.getByRole("region", { name: "How published recipes scale" });
  await expect(scaling.locator(".scatterlayer .trace")).toHaveCount(2);
  await scaling.getByText("Show data").click();
  const table = scaling.locator("table.numbers");
  await expect(table).toContainText("MFU, % (same counting)");
  await expect(table.getByRole("row", { name: /^256/ })).toContainText("50.0");
  await page.locator("#quantity").selectOption("mfu-recipe");
  await expect(table.getByRole("row", { name: /^256/ })).toContainText("58.6");
});

test("the names of lines in the scaling chart do not overlap", async ({ page }) => {
  await page.goto("/benchmarks");
  const scaling = page.getByRole("region", { name: "How published recipes scale" });
  const names = scaling.locator(".annotation-text-g text");
  for (const quantity of ["tokens-per-gpu", "mfu-full"]) {
    await page.locator("#quantity").selectOption(quantity);
    await expect(scaling.locator(".chart")).toContainText(quantity === "mfu-full" ? "MFU, %" : "Tokens per second per GPU");
    await expect(names.first()).toBeVisible();
    const boxes = await names.evaluateAll((all) => all.map((name) => name.getBoundingClientRect().toJSON()));
    expect(boxes.length).toBeGreaterThan(10);
    const chart = await scaling.locator(".chart").boundingBox();
    for (const [place, one] of boxes.entries()) {
      expect(one.top).toBeGreaterThanOrEqual(chart.y);
      for (const other of boxes.slice(place + 1)) {
        const isBeside = one.right <= other.left || other.right <= one.left;
        // The space above and below the letters may overlap.
        const isAbove = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) < 2;
        expect(isBeside || isAbove, JSON.stringify([one, other])).toBe(true);
      }
    }
  }
});

test("no match and wrong values say so and lead back", async ({ page }) => {
  await page.goto("/benchmarks?v=1&m=llama3.1&gpu=a100");
  await expect(page.getByText("No runs match these filters.")).toBeVisible();
  await page.getByRole("link", { name: "Show all runs" }).click();
  await expect(rows(page)).toHaveCount(50);
  await page.goto("/benchmarks?v=1&gpu=h1000&d=bf16");
  await expect(page.getByText('Unknown GPU "h1000"')).toBeVisible();
  await page.getByRole("button", { name: "Use H100" }).click();
  await expect(rows(page)).toHaveCount(50);
  await expect(page).toHaveURL("/benchmarks?v=1&gpu=h100&d=bf16");
});

test("the listed runs are saved as CSV", async ({ page }) => {
  await page.goto("/benchmarks?v=1&gpu=b300");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download CSV" }).click(),
  ]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\n");
  expect(lines[0]).toMatch(/^id,source,release,model/);
  expect(lines.length).toBe((await count(page, "gpu", "B300")) + 1);
});

test("the table fits a window of 1440 pixels", async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto("/benchmarks");
  await expect(rows(page)).toHaveCount(50);
  const table = page.getByRole("region", { name: "Runs", exact: true });
  // The page scrolls, not a frame in it, and the headings stay in view.
  expect(await table.evaluate((scroll) => scroll.scrollHeight - scroll.clientHeight)).toBe(0);
  await rows(page).nth(40).scrollIntoViewIfNeeded();
  expect((await page.getByRole("columnheader", { name: "Source" }).boundingBox()).y).toBeGreaterThanOrEqual(0);
  // A source takes two lines at most, as the other cells of its row, and its title has all of it.
  const source = cells(page, "Source").first();
  expect((await source.getByRole("link").boundingBox()).height).toBeLessThan(44);
  await expect(source).toHaveAttribute("title", await source.getByRole("link").textContent());
  expect(await table.evaluate((scroll) => scroll.scrollWidth - scroll.clientWidth)).toBe(0);
});

test("on a tablet the plot has room, and each run is a card with all of its figures", async ({ page }) => {
  await page.setViewportSize({ width: 768, height: 1024 });
  await page.goto("/benchmarks");
  await expect(rows(page)).toHaveCount(15);
  const chart = page.locator(".chart").first();
  await expect(chart.locator(".scatterlayer .trace").first()).toBeVisible();
  expect((await chart.locator(".nsewdrag").boundingBox()).height).toBeGreaterThanOrEqual(320);
  const table = page.getByRole("region", { name: "Runs", exact: true });
  expect(await table.evaluate((scroll) => scroll.scrollWidth - scroll.clientWidth)).toBe(0);
});

test("a phone gets a short page with the filters closed", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("/benchmarks");
  await expect(rows(page)).toHaveCount(15);
  await expect(page.locator(".facets")).toBeHidden();
  await page.getByText("Filters", { exact: true }).click();
  // The lists of values are closed.
  expect((await page.locator(".facets").boundingBox()).height).toBeLessThan(240);
  await page.getByText("Filters", { exact: true }).click();
  await expect(page.locator(".facets")).toBeHidden();
  // A card has the main figures, and a button shows the others.
  const first = (name) => rows(page).first().locator(`[data-label="${name}"]`);
  await expect(first("Tokens/s/GPU")).toBeVisible();
  await expect(first("Layout")).toBeHidden();
  await rows(page).first().getByRole("button", { name: "More" }).click();
  await expect(first("Layout")).toBeVisible();
  await expect(first("Source")).toBeVisible();
  await rows(page).first().getByRole("button", { name: "Less" }).click();
  await expect(first("Layout")).toBeHidden();
  // So has the figure that the cards are sorted by.
  await expect(first("Step, s")).toBeHidden();
  await page.getByLabel("Sort by").selectOption("Step, s");
  await expect(page).toHaveURL(/[?&]sort=step-time/);
  await expect(first("Step, s")).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThan(6_000);
  await expectAccessible(page);
});

test("charts take the colours of the system's theme when it changes", async ({ page }) => {
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto("/benchmarks");
  const tick = page.locator(".chart .xtick text").first();
  await expect(tick).toHaveCSS("fill", "rgb(21, 24, 29)");
  await page.emulateMedia({ colorScheme: "dark" });
  await expect(tick).toHaveCSS("fill", "rgb(232, 234, 238)");
});

test("works with the keyboard alone", async ({ page }) => {
  await page.goto("/benchmarks?v=1&m=llama3.1-8b");
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeFocused();
  const matrix = page.locator("table.matrix");
  await matrix.getByRole("button", { name: "GPUs" }).focus();
  await page.keyboard.press("Enter");
  await expect(matrix.getByRole("columnheader", { name: "GPUs" })).toHaveAttribute("aria-sort", "ascending");
  await page.getByRole("link", { name: /^Plan / }).first().focus();
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/^[^?]*\/\?v=1&/);
});
