import { expect, expectAccessible, test } from "../fixtures.mjs";

const RECIPE = "llama3.1-405b/h100/fp8/512@25.04";

/** The config.json of Llama 3.1 8B, under another name. */
const CONFIG = {
  _name_or_path: "someone/Small-8B",
  model_type: "llama",
  hidden_size: 4096,
  intermediate_size: 14336,
  max_position_embeddings: 8192,
  num_attention_heads: 32,
  num_hidden_layers: 32,
  num_key_value_heads: 8,
  vocab_size: 128256,
  tie_word_embeddings: false,
};

const estimate = (page) => page.locator("section.estimate");
const figure = (page, name) => page.locator(`[data-figure="${name}"]`);
const fit = (page) => page.locator("[data-memory]");
const stepTime = (page) => estimate(page).getByRole("row", { name: "Step time, s" });
const charts = (page) => estimate(page).locator(".chart .main-svg");

/** Returns the rows of a chart's table, as arrays of texts. */
async function numbers(page, title) {
  const table = estimate(page).getByRole("table", { name: new RegExp(`^${title}`), includeHidden: true });
  return table.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
}

/** Returns the seconds of a text such as "5.90 s" or "12.4 ms". */
const secondsOf = (text) => Number.parseFloat(text.replace("−", "-")) * (text.endsWith("ms") ? 1e-3 : 1);

/** Expects that nothing is wider than the window or the settings, which may lie over the page, once the charts are resized. */
const expectNarrow = (page) =>
  expect.poll(() => page.evaluate(() => {
    const frames = [document.documentElement, ...document.querySelectorAll(".drawer")];
    return Math.max(...frames.map((frame) => frame.scrollWidth - frame.clientWidth));
  }), page.url()).toBeLessThanOrEqual(0);

const openAll = (page) =>
  page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));

const pasteConfig = async (page, config) => {
  await page.getByText("Import a config.json or a probe of your cluster").click();
  await page.getByLabel("Drop the file here, or paste its contents").fill(config);
};

test("the estimate shows the prediction beside the published figures, with time and memory by part", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}`);
  await expect(stepTime(page)).toBeVisible();
  const [predicted, , published, difference] = await stepTime(page).getByRole("cell").allTextContents();
  expect(published).toBe("12.4");
  expect(Math.abs(Number(predicted) / 12.37 - 1)).toBeLessThan(0.4);
  expect(difference).toMatch(/^[+−]?\d+\.\d %$/);
  await expect(estimate(page).getByRole("row", { name: /^MFU/ })).toContainText("44.4");
  await expect(page.getByText("Published measurement. Source: DGX Cloud recipes 25.04.")).toBeVisible();
  await expect(fit(page)).toHaveText(/^✓ Fits, with \d+\.\d of 80\sGiB free on the fullest stage \(\d of 8\)\.$/);
  await expect(charts(page).last()).toBeVisible();

  const time = await numbers(page, "Where the time goes");
  const seconds = time.map(([, , time]) => secondsOf(time)).reduce((sum, next) => sum + next);
  // The predicted step time is rounded to three digits.
  expect(Math.abs(seconds / Number(predicted) - 1)).toBeLessThan(0.01);
  // Measured runs make the step shorter than by the physical model.
  expect(time.at(-1)[0]).toBe("Correction");
  expect(time.at(-1)[1]).toMatch(/^−\d\.\d+\s%$/);
  await page.getByRole("tab", { name: "Evidence" }).click();
  await expect(estimate(page)).toContainText(/(High|Medium|Low|Lowest) confidence: /);
  await page.getByRole("tab", { name: "Memory" }).click();
  await expect(charts(page).last()).toBeVisible();
  const memory = await numbers(page, "Memory per GPU");
  expect(memory.map(([stage]) => stage)).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((stage) => `Stage ${stage}`));
  for (const [, ...parts] of memory) {
    const together = Number(parts.pop());
    expect(Math.abs(parts.reduce((sum, part) => sum + Number(part), 0) - together)).toBeLessThan(0.5);
    expect(together).toBeLessThan(80);
  }
});

test("an unmeasured scenario is predicted, and another layout changes the parts of its time", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}&n=4096`);
  await expect(page.getByText("Predicted, not measured.")).toBeVisible();
  await expect(figure(page, "days")).toHaveText(/^[\d,.]+\sdays \([\d,.]+–[\d,.]+\)$/);
  const before = await numbers(page, "Where the time goes");
  await page.locator("#field-tp").fill("4");
  await expect(page.getByText("TP 8 → 4")).toBeVisible();
  await expect(estimate(page)).toHaveAttribute("aria-busy", "false");
  const after = await numbers(page, "Where the time goes");
  const tensor = (rows) => secondsOf(rows.find(([part]) => part === "Tensor parallel")[2]);
  expect(tensor(after)).toBeLessThan(tensor(before));
});

test("a scenario that does not fit shows by how much, and changes that make it fit", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-405b&gpu=h100&n=64&gbs=64&tp=8&tab=memory");
  await expect(fit(page)).toHaveText(/^✕ Doesn't fit: a GPU needs \d[\d.]*\sGiB; it has 80\sGiB\.$/);
  await expect(fit(page)).toHaveAttribute("data-memory", "does-not-fit");
  await expect(estimate(page).getByText(/^Every GPU$/).first()).toBeAttached();
  await expectAccessible(page);

  await page.goto(`/?v=1&r=${RECIPE}&n=4096&tp=4`);
  await expect(page.getByText("Changes that make it fit")).toBeVisible();
  await page.getByRole("button", { name: /s per step$/ }).first().click();
  await expect(fit(page)).toHaveAttribute("data-memory", "fits");
  await expect(page.getByText("Changes that make it fit")).toBeHidden();
});

test("the evidence lists the nearest measured runs with their sources, step times and errors", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}&tab=evidence`);
  const table = page.getByRole("table", { name: "Nearest measured runs" });
  await expect(table.getByRole("columnheader")).toHaveText(["Run and layout", "Measured", "Predicted without it", "Similarity"]);
  const nearest = table.locator("tbody tr").first();
  await expect(nearest.getByRole("rowheader")).toContainText("405B on 512 H100");
  await expect(nearest.locator('[data-label="Similarity"]')).toHaveText("100 % · same layout");
  await expect(nearest.locator('[data-label="Measured"]')).toHaveText(/^12\.37\ss\s+331 tokens\/s per GPU$/);
  await expect(nearest.locator('[data-label="Predicted without it"]')).toHaveText(/^1\d\.\d+\ss\s+[+−]\d+\.\d %$/);
  const source = nearest.getByRole("link", { name: "DGX Cloud recipes 25.04" });
  await expect(source).toHaveAttribute("href", "https://github.com/NVIDIA/dgxc-benchmarking/blob/v25.04/llama3.1/README.md");
  await expect(source).toHaveAttribute("rel", /\bnoopener\b/);
  await expect(nearest.getByRole("rowheader")).toContainText("Measured by DGX Cloud recipes 25.04");
  await expectAccessible(page);
  // Beside the chart, all columns are in sight.
  await page.setViewportSize({ width: 1440, height: 900 });
  const frame = page.getByRole("region", { name: "Nearest measured runs" });
  await expect.poll(() => frame.evaluate((frame) => frame.scrollWidth - frame.clientWidth)).toBeLessThanOrEqual(0);
});

test("the tabs keep their places when another one is selected", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}`);
  const places = () => page.getByRole("tab").evaluateAll((tabs) => tabs.map((tab) => tab.getBoundingClientRect().left));
  await expect(page.getByRole("tab", { name: "Time" })).toHaveAttribute("aria-selected", "true");
  const before = await places();
  await page.getByRole("tab", { name: "Evidence" }).click();
  await expect(page.getByRole("tab", { name: "Evidence" })).toHaveAttribute("aria-selected", "true");
  expect(await places()).toEqual(before);
});

test("many pipeline stages are grouped into few bars", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-405b&gpu=b200&n=1024&gbs=1024&pp=32&ps=counted&tp=4&d=fp8&tab=memory");
  await expect(charts(page).last()).toBeVisible();
  const stages = (await numbers(page, "Memory per GPU")).map(([stage]) => stage);
  expect(stages.length).toBeLessThanOrEqual(16);
  expect(stages[0]).toBe("Stage 1");
  expect(stages[1]).toMatch(/^Stages 2–\d+$/);
  expect(stages.at(-1)).toMatch(/32$/);
});

test("options change the estimate and can be reset", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}`);
  await expect(fit(page)).toBeVisible();
  const fits = await fit(page).textContent();
  await page.getByText("All settings").click();
  await page.getByText("Recomputation, sharding, software").click();
  await page.locator("#field-recompute").selectOption("full");
  await expect(page.getByRole("button", { name: "Recompute none → full" })).toBeVisible();
  await expect(fit(page)).not.toHaveText(fits);
  await page.locator("#field-gemm-tflops").fill("quick");
  await expect(page.locator("#field-gemm-tflops-note .error")).toBeVisible();
  await page.locator("#field-gemm-tflops").fill("650");
  await expect(page).toHaveURL(/rc=full.*gemm=650/);
  await page.getByRole("button", { name: "Back to the recipe" }).click();
  await expect(fit(page)).toHaveText(fits);
  await expect(page).toHaveURL(`/?v=1&r=${RECIPE}`);
});

test("a pasted config.json is planned, and its link contains the model", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}`);
  await page.getByText("All settings").click();
  await pasteConfig(page, "{ nonsense");
  await expect(page.getByText("The file is not valid JSON")).toBeVisible();
  await page.getByLabel("Drop the file here, or paste its contents").fill(JSON.stringify({ ...CONFIG, strange_layers: 3 }));
  await expect(page.getByText("Imported Small-8B.")).toBeVisible();
  await expect(page.getByText("strange_layers")).toBeVisible();
  await expect(page.locator("#headline")).toHaveText("Small-8B on 512 × H100, FP8");
  await expect(page).toHaveURL(/m=own/);
  await expect(figure(page, "step-time")).toHaveText(/\d\ss\s/);
  await expect(page.getByText("Predicted, not measured.")).toBeVisible();
  await expectAccessible(page);
  await openAll(page);
  await expectNarrow(page);
  const predicted = await figure(page, "step-time").textContent();

  const link = page.url();
  await page.goto("about:blank");
  await page.goto(link);
  await expect(page.locator("#headline")).toHaveText("Small-8B on 512 × H100, FP8");
  await expect(figure(page, "step-time")).toHaveText(predicted);
  await expect(page.locator("#field-model")).toHaveValue(/^own:title=Small-8B,/);
});

test("a config.json can be dropped and chosen", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}`);
  await page.getByText("All settings").click();
  await page.getByText("Import a config.json or a probe of your cluster").click();
  const transfer = await page.evaluateHandle((config) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([config], "config.json", { type: "application/json" }));
    return transfer;
  }, JSON.stringify(CONFIG));
  await page.locator(".drawer .drop").dispatchEvent("drop", { dataTransfer: transfer });
  await expect(page.locator("#headline")).toContainText("Small-8B");
  const buffer = Buffer.from(JSON.stringify({ ...CONFIG, _name_or_path: "someone/Other-8B" }));
  await page.locator("[data-config]").setInputFiles({ name: "config.json", mimeType: "application/json", buffer });
  await expect(page.locator("#headline")).toContainText("Other-8B");
});

/** A probe of H100 with slow matrix multiplications. */
const PROBE = {
  schema_version: 1,
  kind: "trainplan-probe",
  measured_at: "2026-11-27T14:00:00Z",
  cluster: "alpha",
  device: "NVIDIA H100 80GB HBM3",
  accelerator: "cuda",
  torch: "2.6.0",
  cuda: "12.6",
  nccl: null,
  backend: null,
  nodes: 1,
  ranks_per_node: 1,
  memory: { total_bytes: 85024112640, free_bytes: 84000000000 },
  matmuls: [{ precision: "bf16", m: 8192, n: 8192, k: 8192, tflops: 640 }],
  attention: [],
  memory_gbps: 2900,
  launch_us: 6,
  collectives: [],
  ranks: [],
  skipped: [],
  seconds: 60,
};

/** Drops a file anywhere on the page, once the details are drawn. */
const dropFile = async (page, name, content) => {
  const transfer = await page.evaluateHandle(
    ([name, content]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([content], name, { type: "application/json" }));
      return transfer;
    },
    [name, JSON.stringify(content)],
  );
  await page.locator("body").dispatchEvent("drop", { dataTransfer: transfer });
};

test("a dropped probe adapts the estimate to the cluster, for its GPU type only", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}`);
  await expect(stepTime(page)).toBeVisible();
  const before = await figure(page, "step-time").textContent();
  await dropFile(page, "alpha.probe.json", PROBE);
  const notice = page.getByRole("alert");
  await expect(notice).toContainText("Imported cluster alpha (H100).");
  await expect(notice).toContainText("BF16 matrix multiplication: 640 TFLOPS, 89.9 % of what a healthy machine reaches.");
  await expect(page).toHaveURL(/[?&]cf=1%2Cmatmul%3D0\.899/);
  await expect(figure(page, "step-time")).not.toHaveText(before);

  await page.goto("/?v=1&r=llama3.1-405b/gb300/fp8/256@26.06.01");
  await expect(stepTime(page)).toBeVisible();
  await dropFile(page, "alpha.probe.json", PROBE);
  await expect(page.getByRole("alert")).toHaveText("This file can't be used: The probe measured H100, but the plan is for GB300.");
  await dropFile(page, "broken.json", { ...PROBE, launch_us: -1 });
  await expect(page.getByRole("alert")).toContainText("launch_us is -1. It must be from 0 to");
});

test("a question is about the GPU type of the probe", async ({ page }) => {
  await page.goto("/");
  await expect(page.locator("#headline")).toContainText("Llama 3.1 70B on");
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
  await dropFile(page, "alpha.probe.json", PROBE);
  await expect(page).toHaveURL(/cf=1%2Cmatmul%3D0\.899.*gs=h100$/);
  await expect(page.getByRole("button", { name: "Remove B200" })).toHaveCount(0);
  await expect(page.locator("#headline")).toContainText("× H100");
  // The new answer does not move it out of sight.
  await expect(page.getByRole("alert")).toContainText("Imported cluster alpha (H100).");
  await expect(page.getByRole("alert")).toContainText("Only H100 was measured, so other GPU types are removed from the question. Undo brings them back.");
  await expect(page.getByRole("alert")).toBeInViewport({ ratio: 1 });
});

test("the page has one verdict about memory", async ({ page }) => {
  await page.goto("/?v=1&r=llama3.1-405b/gb200/fp8/256@26.06.01&pp=8&vp=4&tab=launch");
  await expect(fit(page)).toHaveAttribute("data-memory", "too-close");
  await expect(page.locator("[data-script]")).toBeVisible();
  await expect(page.locator(".launch-fit.wrong")).toBeHidden();
  await expect(page.locator("section.launch")).not.toContainText(/does not fit|too close to call/i);
});

test("a custom GPU changes what fits", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}`);
  await page.getByText("All settings").click();
  await page.getByText("Custom GPU").click();
  await page.getByLabel("Memory, GiB", { exact: true }).fill("96");
  await expect(fit(page)).toContainText("of 96 GiB");
  await expect(page).toHaveURL(/gpu=h100%3Ahbm_gb%3D96/);
  await expect(page.locator("#field-gpu")).toHaveValue("h100:hbm_gb=96");
  await page.getByLabel("Memory, GiB", { exact: true }).fill("much");
  await expect(page.locator("#field-gpu-note .error")).toBeVisible();
  await page.getByLabel("Memory, GiB", { exact: true }).fill("");
  await expect(fit(page)).toContainText("of 80 GiB");
});

test("custom software changes the estimate, and its text is in the link", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}`);
  await page.getByText("All settings").click();
  await page.getByText("Recomputation, sharding, software").click();
  await page.getByText("Custom software").click();
  const known = await figure(page, "step-time").textContent();
  await page.getByLabel("Overlaps DP", { exact: true }).selectOption("no");
  await expect(page).toHaveURL(/stack=nemo-2%3Aoverlaps_dp%3Dno/);
  await expect(figure(page, "step-time")).not.toHaveText(known);
  await expect(page.locator("#field-stack")).toHaveValue("nemo-2:overlaps_dp=no");
  await page.getByLabel("Gradient, bytes", { exact: true }).fill("much");
  await expect(page.locator("#field-stack-note .error")).toContainText("must be a number from 0 to 100");
  await page.getByRole("button", { name: "Reset to NeMo 2" }).click();
  await expect(page).not.toHaveURL(/stack=/);
  await expect(figure(page, "step-time")).toHaveText(known);
});

test("a plan without a recipe keeps the values of the recipe", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}`);
  await page.getByText("All settings").click();
  await page.getByRole("button", { name: "Plan without a recipe" }).click();
  await expect(page).toHaveURL(/m=llama3.1-405b/);
  await expect(page.locator("#field-gbs")).toHaveValue("256");
  await expect(page.getByText("TP 8 · PP 8 · CP 2 · DP 4 · VP 8")).toBeVisible();
  await expect(stepTime(page)).toBeVisible();
  await page.locator("#field-gbs").fill("");
  await expect(page.locator("#field-gbs-note .error")).toContainText("GBS");
  await expect(page.getByText("The figures above are those of the previous one.")).toBeVisible();
  await page.getByRole("button", { name: "Start from a recipe" }).click();
  await expect(figure(page, "step-time")).toHaveText("12.37 s");
});

test("the estimate belongs to the last typed value", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}`);
  await page.getByText("All settings").click();
  const gpus = page.locator("#field-gpus");
  for (const count of ["640", "768", "896", "2560", "3072", "4096"]) await gpus.fill(count);
  await expect(estimate(page)).toHaveAttribute("aria-busy", "false");
  const shown = await figure(page, "step-time").textContent();
  await page.goto("about:blank");
  await page.goto(`/?v=1&r=${RECIPE}&n=4096`);
  await expect(figure(page, "step-time")).toHaveText(shown);
});

test("without a worker, the page shows an error and the figures at the recipe's MFU", async ({ page }) => {
  await page.addInitScript(() => delete window.Worker);
  await page.goto(`/?v=1&r=${RECIPE}&n=4096`);
  await expect(estimate(page)).toContainText("The calculator failed to start. Reload the page.");
  await expect(figure(page, "mfu")).toHaveText("44.4 %");
  await expect(page.getByText("Calculated from the recipe's published MFU of 44.4 % instead.")).toBeVisible();
});

for (const colorScheme of ["light", "dark"]) {
  test(`the estimate is accessible in ${colorScheme} and fits each width`, async ({ page }) => {
    await page.emulateMedia({ colorScheme });
    for (const query of [`r=${RECIPE}&n=4096&tp=4`, "m=llama3.1-8b&gpu=h100:hbm_gb=96&n=64&gbs=512"]) {
      await page.goto(`/?v=1&${query}`);
      await expect(charts(page).last()).toBeVisible();
      await openAll(page);
      await expectAccessible(page);
      for (const width of [360, 1280, 3840]) {
        await page.setViewportSize({ width, height: 900 });
        await expectNarrow(page);
      }
    }
  });
}
