import { execFileSync } from "node:child_process";

import { expect, expectAccessible, test } from "../fixtures.mjs";

const RECIPE = "llama3.1-405b/h100/fp8/512@25.04";

/** Returns what the command line prints for the same scenario. */
function commandLine(...args) {
  const options = { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] };
  return execFileSync(process.env.TRAINPLAN_BIN, args, options);
}

const figure = (page, name) => page.locator(`[data-figure="${name}"]`);
const field = (page, label) => page.getByLabel(label, { exact: true });

test("a recipe opens in Plan with its published figures, and its script and link can be copied", async ({ page }) => {
  await page.goto("/benchmarks?v=1&m=llama3.1-405b&gpu=h100&n=512&d=fp8&src=dgxc-seed");
  await page.getByRole("link", { name: "Plan Llama 3.1 405B on 512 × H100, FP8" }).click();
  await expect(page.locator("#headline")).toHaveText("Llama 3.1 405B on 512 × H100, FP8");
  await expect(page).toHaveURL(`/?v=1&r=${RECIPE}`);
  await page.getByText("All settings").click();

  await expect(figure(page, "step-time")).toHaveText("12.37 s");
  await expect(figure(page, "tokens-per-s")).toHaveText("170k");
  await expect(figure(page, "mfu")).toHaveText("44.4 %");
  await expect(figure(page, "days")).toHaveText("68 days");
  await expect(page.getByTitle("MFU (convention: recipe, peak: 1,979 TFLOPS)")).toHaveText("MFU");
  await page.locator("#ask-tokens").fill("15T");
  await page.keyboard.press("Enter");
  await expect(figure(page, "days")).toHaveText("1,024 days");
  await expect(page.getByText("TP 8 · PP 8 · CP 2 · DP 4 · VP 8")).toBeVisible();

  await page.getByRole("button", { name: "1024", exact: true }).click();
  await expect(page.locator("#headline")).toHaveText("Llama 3.1 405B on 1,024 × H100, FP8");
  await expect(figure(page, "step-time")).toHaveText("12.42 s");

  await page.getByRole("tab", { name: "Launch" }).click();
  await page.getByRole("button", { name: "Copy script" }).click();
  await expect(page.getByRole("button", { name: "Copied" })).toBeVisible();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toBe(commandLine("launch", "--recipe", "llama3.1-405b/h100/fp8/1024@25.04"));

  await page.getByRole("button", { name: "Copy link" }).click();
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toContain("/?v=1&");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  await page.goto("about:blank");
  await page.goto(link);
  await expect(figure(page, "step-time")).toHaveText("12.42 s");
  await expect(figure(page, "days")).toHaveText("514 days");
  await expect(page.locator("#ask-tokens")).toHaveValue("15T");
});

test("the batch follows a typed GPU count, and an invalid count suggests one that works", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}`);
  await page.getByText("All settings").click();
  const gpus = page.locator("#field-gpus");
  await gpus.fill("1024");
  await expect(page.getByText("GBS 256 → 512 (follows)")).toBeVisible();
  await expect(figure(page, "step-time"), "a published recipe again").toHaveText("12.42 s");

  await gpus.fill("4096");
  await expect(page.getByText("Predicted, not measured.")).toBeVisible();

  await gpus.fill("500");
  await expect(page.locator("#field-gpus-note .error")).toContainText("128");
  await expect(page.locator(".answers .notice.wrong")).toContainText("128");
  await expect(gpus).toHaveAttribute("aria-invalid", "true");
  await expect(gpus).toHaveValue("500");
  await expectAccessible(page);
  await page.locator("#field-gpus-note").getByRole("button", { name: "Use 512" }).click();
  await expect(gpus).toHaveValue("512");
  await expect(figure(page, "step-time")).toHaveText("12.37 s");
  await expect(page.getByText("Changed from the recipe")).toBeHidden();
});

test("typing keeps the cursor and adds one history entry", async ({ page }) => {
  await page.goto("/benchmarks?v=1&m=llama3.1-405b&gpu=h100&n=512&d=fp8&src=dgxc-seed");
  await page.getByRole("link", { name: "Plan Llama 3.1 405B on 512 × H100, FP8" }).click();
  await page.getByText("All settings").click();
  await page.locator("#field-seq-len").pressSequentially("16384", { delay: 20 });
  await expect(page.locator("#field-seq-len")).toHaveValue("16384");
  await expect(page.getByText("Sequence length 8,192 → 16,384")).toBeVisible();
  await page.goBack();
  await expect(page.locator("#field-seq-len")).toHaveValue("");
  await page.goBack();
  await expect(page).toHaveURL("/benchmarks?v=1&m=llama3.1-405b&gpu=h100&n=512&d=fp8&src=dgxc-seed");
});

test("figures in the browser are the same as on the command line", async ({ page }) => {
  for (const recipe of ["nemotron4-15b/h100/bf16/2048@25.04", "nemotron-h-56b/h100/fp8/64@25.05"]) {
    const metrics = JSON.parse(commandLine("metrics", "--recipe", recipe, "--format", "json"));
    await page.goto(`/?v=1&r=${recipe}`);
    await page.getByText("Show the maths: from step time").click();
    const shown = await page.locator("details.maths").first().getByRole("row").allInnerTexts();
    for (const line of metrics.explain.filter(({ numbers }) => numbers)) {
      expect(shown.join("\n")).toContain(line.numbers);
    }
    await expect(figure(page, "mfu")).toHaveText(`${(metrics.mfu * 100).toPrecision(3)} %`);
  }
});

test("a proxy has no time to train", async ({ page }) => {
  await page.goto("/?v=1&r=llama3.1-405b/h100/bf16/64@25.04");
  await expect(page.locator("#headline")).toContainText("proxy of 30 layers");
  await expect(figure(page, "days")).toHaveText("–");
  await expect(figure(page, "step-time")).toHaveText("10.1 s");
});

test("an unmeasured recipe is predicted, and accepts a step time or an MFU", async ({ page }) => {
  await page.goto("/?v=1&r=nemotron4-340b/gb200/fp8/256@25.12");
  await expect(page.getByText("Predicted, not measured.")).toBeVisible();
  await page.getByRole("tab", { name: "Scaling" }).click();
  await expect(page.getByText("there is no published scaling to compare with")).toBeVisible();
  await expect(page.locator(".scaling table.numbers")).toContainText("Predicted, same batch");
  await page.getByRole("tab", { name: "Time" }).click();
  await field(page, "Step time").fill("40%");
  await expect(figure(page, "mfu")).toHaveText("40.0 %");
  await expect(page.getByText("Assumed MFU. Calculated from an MFU of 40.0 %, not predicted.")).toBeVisible();
  await field(page, "Step time").fill("10 s");
  await expect(page.locator("#field-step-time-note .error")).toBeVisible();
  await expect(page.getByText("The calculator failed to start")).toHaveCount(0);
  await field(page, "Step time").fill("5");
  await expect(page.getByText("Your step time.")).toBeVisible();
  await expect(page.locator(".estimate").getByRole("columnheader", { name: "Yours" })).toBeVisible();
});

test("the scaling chart is drawn with a table, and the theme is remembered", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}&tab=scaling`);
  await expect(page.locator(".scaling .chart .main-svg").first()).toBeVisible();
  await expect(page.locator(".scaling .chart .scatterlayer .trace")).toHaveCount(5);
  await page.locator("#quantity").selectOption("mfu-recipe");
  await expect(page.locator(".scaling table.numbers")).toContainText("43.7");
  await page.getByRole("button", { name: /Colours/ }).click();
  await page.getByRole("button", { name: /Colours/ }).click();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
});

test("a link with errors shows them and keeps the other fields", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}&n=1024&tp=x&gpuz=1&t=15T`);
  await expect(page.locator(".notice.wrong").filter({ hasText: "gpuz" })).toBeVisible();
  await expect(page.locator("#field-tp")).toHaveValue("x");
  await expect(page.locator("#field-tp-note")).toContainText("whole number");
  await expect(page.locator("#field-gpus")).toHaveValue("1024");
  await expect(page.locator("#ask-tokens")).toHaveValue("15T");

  await page.goto(`/?v=9&r=${RECIPE}&n=1024&hue=blue`);
  const notices = page.locator(".notice.wrong");
  await expect(notices.filter({ hasText: "A newer version of Trainplan made this link" })).toContainText("Unknown parts are ignored");
  await expect(notices.filter({ hasText: "hue=blue" })).toBeVisible();
  await expect(page.locator("#field-gpus")).toHaveValue("1024");

  await page.goto("/?v=1&r=llama3.1-405b/h100/fp8/500@25.04");
  await page.getByRole("button", { name: `Use ${RECIPE}` }).first().click();
  await expect(figure(page, "step-time")).toHaveText("12.37 s");
});

test("fields that llmb-run reads from its own configuration say so", async ({ page }) => {
  await page.goto("/?v=1&r=llama3.1-405b/gb200/fp8/256@26.06.01&tab=launch");
  const account = field(page, "Slurm account");
  await expect(account).toHaveAttribute("placeholder", "as llmb-run is set up");
  await field(page, "Launch style").selectOption("launch-sh");
  await expect(account).toHaveAttribute("placeholder", "$SBATCH_ACCOUNT");
});

test("launch options change the script and show their warnings", async ({ page }) => {
  await page.goto(`/?v=1&r=${RECIPE}&tab=launch`);
  const script = page.locator("[data-script]");
  await field(page, "Slurm account").fill("research team");
  await expect(page.locator("#field-account-note .error")).toBeVisible();
  await expect(script).toBeHidden();
  await field(page, "Slurm account").fill("research");
  await expect(script).toContainText("export SBATCH_ACCOUNT=research");
  await page.getByText("Steps, profiling and checkpoints").click();
  await page.getByLabel("Nsight profile").check();
  await expect(script).toContainText("export ENABLE_PROFILE=true");
  await expect(page.getByText("A second job is submitted")).toBeVisible();
  await expect(page.locator("p", { hasText: "Not comparable with a published number" })).toBeVisible();

  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download", exact: true }).click();
  expect((await download).suggestedFilename()).toMatch(/^launch-pretrain_llama3\.1_405b_fp8_512.*\.sh$/);

  await page.getByText("All settings").click();
  await field(page, "TP").fill("4");
  await expect(page.getByText("This script uses Megatron-LM directly:")).toBeVisible();
  await expect(script).toContainText("--tensor-model-parallel-size 4");
  await expectAccessible(page);
  await page.getByText("More about the cluster").click();
  // Only releases that launch the plan are offered.
  await expect(page.locator("#field-release option")).not.toHaveCount(0);
  await expect(page.locator('#field-release option[value="25.04"]')).toHaveCount(0);
  await page.goto(`/?v=1&r=${RECIPE}&tp=4&rel=25.04&tab=launch`);
  await expect(page.getByText("Can't generate a launch script yet:")).toBeVisible();
  await expectAccessible(page);
});

for (const width of [360, 768, 1280, 1920]) {
  test(`the Plan and Benchmarks pages fit a width of ${width} px`, async ({ page }) => {
    await page.setViewportSize({ width, height: 900 });
    for (const path of ["/", "/benchmarks", "/?v=1&n=500&tp=x"]) {
      await page.goto(path);
      await expect(page.locator(".chart .main-svg").first()).toBeVisible();
      await page.evaluate(() => document.querySelectorAll("details:not(.drawer)").forEach((details) => (details.open = true)));
      if (path === "/") await expect(page.locator(".estimate .chart .main-svg").last()).toBeVisible();
      const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      expect(content, path).toBeLessThanOrEqual(window);
      // The settings may lie over the page.
      const beyond = await page.locator(".drawer").evaluateAll((drawers) =>
        drawers.map((drawer) => (drawer.open = true) && drawer.scrollWidth - drawer.clientWidth));
      expect(Math.max(0, ...beyond), path).toBe(0);
    }
  });
}

for (const colorScheme of ["light", "dark"]) {
  test(`the Plan and Benchmarks pages are accessible in ${colorScheme}, with all details open`, async ({ page }) => {
    await page.emulateMedia({ colorScheme });
    for (const path of ["/", "/?v=1&n=1024&tp=4", "/benchmarks", "/recipes?v=1&m=llama3.1&sort=-mfu"]) {
      await page.goto(path);
      await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
      await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
      await expectAccessible(page);
    }
  });
}
