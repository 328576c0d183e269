import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { expect, expectAccessible, test } from "../fixtures.mjs";

/** A NeMo 2 log of `steps` steps of `seconds`; the answers follow by plain arithmetic. */
function log({ steps = 50, seconds = 12.37, gbs = 256, loss = (step) => 12 - step / 10 }) {
  const lines = ["[NeMo I] rank 0 is here", "\u001b[32msome colour\u001b[0m"];
  for (let step = 0; step < steps; step++) {
    lines.push(
      `Training epoch 0, iteration ${step}/${steps - 1} | lr: 1e-06 | global_batch_size: ${gbs} | global_step: ${step} | ` +
        `reduced_train_loss: ${loss(step).toFixed(3)} | train_step_timing in s: ${seconds} | consumed_samples: ${gbs * (step + 1)}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

/** An experiments/ tree on disk, as a folder to choose. */
function tree(files) {
  const root = join(mkdtempSync(join(tmpdir(), "trainplan-")), "experiments");
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

const name = (gpus, job) => `log-acct.pretrain_llama3.1_405b_fp8_${gpus}_${job}_0.out`;
const row = (page, text) => page.locator("table.reports tbody tr").filter({ hasText: text });
const cell = (row, label) => row.locator(`td[data-label="${label}"]`);
const files = (page) => page.locator("[data-files]");

test("a log is scored beside the published number, saved, and read again", async ({ page }) => {
  await page.goto("/results");
  await expectAccessible(page);
  await files(page).setInputFiles({ name: name(512, 71), mimeType: "text/plain", buffer: Buffer.from(log({})) });
  const scored = row(page, name(512, 71));
  await expect(cell(scored, "Status")).toHaveText("scored");
  await expect(cell(scored, "Recipe")).toHaveText("llama3.1-405b/h100/fp8/512@25.04");
  await expect(cell(scored, "Tokens/s")).toHaveText("169,535");
  await expect(cell(scored, "MFU, %")).toContainText("44.4");
  await expect(cell(scored, "Of published, %")).toHaveText("100.0");
  await expect(cell(scored, "Predicted, s")).toContainText(/[\d.]+\s%\sof\sit/);
  await expect(page.locator(".chart .main-svg").first()).toBeVisible();
  await expectAccessible(page);

  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save result files" }).click();
  const saved = await (await download).path();
  const result = JSON.parse(readFileSync(saved, "utf8"));
  expect(result.version).toBe(1);
  expect(result.log.steps.label).toHaveLength(50);
  // The file was made just now.
  expect(Math.abs(Date.now() - Date.parse(result.source.written_at))).toBeLessThan(60_000);

  await page.getByRole("button", { name: "Clear" }).click();
  await expect(scored).toHaveCount(0);
  await files(page).setInputFiles({
    name: `${result.id}.result.json`,
    mimeType: "application/json",
    buffer: readFileSync(saved),
  });
  await expect(cell(row(page, name(512, 71)), "Tokens/s")).toHaveText("169,535");
});

test("a folder's batch output is left out beside its training log, and odd names stay names", async ({ page }) => {
  const experiment = "pretrain_llama3.1_405b_fp8_512";
  const root = tree({
    [`${experiment}/log-acct.${experiment}_71_0.out`]: log({}),
    [`${experiment}/sbatch_acct.${experiment}_71.out`]: "submitted\n",
    [`alone/sbatch_acct.${experiment}_72.out`]: "submitted\n",
    "odd/log <b>&amp;\"'.out": log({ seconds: 13 }),
  });
  await page.goto("/results");
  await page.locator("[data-folder]").setInputFiles(root);
  await expect(page.getByRole("status").first()).toContainText("Read 3 of 3");
  await expect(row(page, "sbatch_acct")).toHaveCount(1);
  await expect(page.locator(".chart .legendtext").filter({ hasText: `log <b>&amp;"'` }).first()).toBeVisible();
});

test("logs compressed with gzip are the same runs, and the logs of a restarted job are joined", async ({ page }) => {
  const experiment = "pretrain_llama3.1_405b_fp8_512";
  const whole = log({});
  const lines = whole.split("\n");
  const root = tree({
    [`whole/log-acct.${experiment}_71_0.out.gz`]: gzipSync(whole),
    // Slurm started the job again after step 31, which it had reached before it saved step 29.
    [`parts/log-acct.${experiment}_72_0.out`]: `${lines.slice(0, 34).join("\n")}\n`,
    [`parts/log-acct.${experiment}_72_1.out.gz`]: gzipSync(lines.slice(32).join("\n")),
    "cut/train.log.gz": gzipSync(whole).subarray(0, 300),
    "other/train.log.zst": Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 4, 0, 1, 0, 0]),
  });
  await page.goto("/results");
  await page.locator("[data-folder]").setInputFiles(root);
  await expect(page.getByRole("status").first()).toContainText("Read 4 of 4");
  await expect(cell(row(page, "_71_0.out.gz"), "Tokens/s")).toHaveText("169,535");
  const joined = row(page, "_72_1.out.gz");
  await expect(cell(joined, "Tokens/s")).toHaveText("169,535");
  await expect(page.getByText("Joined from 2 logs of a restarted job")).toBeVisible();
  await expect(row(page, "experiments/cut/")).toContainText("The compressed file is damaged or cut off.");
  await expect(cell(row(page, "experiments/other/"), "Status")).toHaveText("unreadable");
  await expect(row(page, "_72_0.out")).toHaveCount(0);

  // The id is that of the text, as on the command line.
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save result files" }).click();
  const saved = readFileSync(await (await download).path(), "utf8");
  expect(saved).toContain(createHash("sha256").update(whole).digest("hex"));
});

/** A log of Megatron-LM with its arguments, which don't name the GPU type. */
function megatronLog() {
  const given = {
    bf16: "True", consumed_train_samples: 0, context_parallel_size: 1, expert_model_parallel_size: 1,
    expert_tensor_parallel_size: 4, ffn_hidden_size: 28672, fp16: "False", fp8: "None", global_batch_size: 128,
    group_query_attention: "True", hidden_size: 8192, kv_channels: 128, micro_batch_size: 1, num_attention_heads: 64,
    num_experts: "None", num_layers: 80, num_query_groups: 8, padded_vocab_size: 128512, pipeline_model_parallel_size: 4,
    recompute_granularity: "None", seq_length: 8192, swiglu: "True", tensor_model_parallel_size: 4, train_iters: 50,
    untie_embeddings_and_output_weights: "True", virtual_pipeline_model_parallel_size: 5, world_size: 64,
  };
  const steps = Array.from({ length: 50 }, (_, step) =>
    ` [2026-10-05 10:49:15] iteration ${step + 1}/ 50 | consumed samples: ${(step + 1) * 128} | elapsed time per iteration (ms): 10600.0 | ` +
    "learning rate: 3.0E-06 | global batch size: 128 | lm loss: 1.2E+01 | loss scale: 1.0 | grad norm: 1.2 |");
  return [
    "using world size: 64, data-parallel size: 4, tensor-model-parallel size: 4",
    "------------------------ arguments ------------------------",
    ...Object.entries(given).map(([key, value]) => `  ${key} ${".".repeat(48 - key.length)} ${value}`),
    "-------------------- end of arguments ---------------------",
    ...steps,
  ].join("\n");
}

test("the files beside a log in a folder are read, unless they may be those of another log", async ({ page }) => {
  const config = "model:\n  tensor_model_parallel_size: 4\n";
  const run = tree({
    "run/log-acct.own_71_0.out": megatronLog(),
    "run/configs/ConfigContainer.yaml": config,
    "run/llmb-config_71.yaml": "model_info:\n  gpu_type: h100\n",
    "run/llmb-config_70.yaml": "model_info:\n  gpu_type: b200\n",
    "run/env_71.log": "HF_TOKEN=sesame\nNCCL_ALGO=Ring\n",
  });
  await page.goto("/results");
  await page.locator("[data-folder]").setInputFiles(run);
  await expect(row(page, "_71_0.out")).toHaveCount(1);
  await expect(page.locator("table.reports tbody tr")).toHaveCount(1);
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save result files" }).click();
  const result = JSON.parse(readFileSync(await (await download).path(), "utf8"));
  expect(result.job.settings).toEqual({
    bridge_config: { "model.tensor_model_parallel_size": "4" },
    llmb_config: { "model_info.gpu_type": "h100" },
    environment: { NCCL_ALGO: "Ring" },
  });

  await page.getByRole("button", { name: "Clear" }).click();
  const two = tree({
    "two/log-acct.own_72_0.out": megatronLog(),
    "two/log-acct.own_73_0.out": `${megatronLog()}\n`,
    "two/configs/ConfigContainer.yaml": config,
  });
  await page.locator("[data-folder]").setInputFiles(two);
  const ambiguous = "2 logs: configs/ConfigContainer.yaml beside the log is ignored: it may be that of another log in the folder.";
  await expect(page.getByText(ambiguous)).toBeVisible();
});

test("the GPU type is given where a log doesn't name it, and the MFU follows", async ({ page }) => {
  await page.goto("/results");
  const file = { name: "train.log", mimeType: "text/plain", buffer: Buffer.from(megatronLog()) };
  await page.locator("[data-files]").setInputFiles([file]);
  const row = page.locator("tbody tr").first();
  await expect(row).toContainText("10.6");
  await expect(page.getByText("The log doesn't contain the GPU type").first()).toBeVisible();
  await page.getByText("Change window, FLOPs convention, recipe or GPU").click();
  await page.locator("#field-gpu").fill("h100");
  await expect(page.getByText("The log doesn't contain the GPU type")).toHaveCount(0);
  // 98,922 tokens per second of 64 H100 are 75.2 % of their BF16 peak.
  await expect(row).toContainText("75.2");
});

test("what is typed wrong is said once, in its field, with what to use instead", async ({ page }) => {
  await page.goto("/results");
  const file = (name, seconds) => ({ name, mimeType: "text/plain", buffer: Buffer.from(log({ seconds })) });
  await files(page).setInputFiles([file(name(512, 72), 12.37), file(name(512, 73), 13)]);
  await expect(page.getByText("Read 2 of 2 files; 2 scored")).toBeVisible();
  await page.getByText("Change window, FLOPs convention, recipe or GPU").click();
  for (const [id, wrong, right] of [["field-gpu", "h10", "h100"], ["field-recipe", "llama3.1-405b/h100/fp8/51", "llama3.1-405b/h100/fp8/512@25.04"]]) {
    const field = page.locator(`#${id}`);
    await field.fill(wrong);
    await expect(field).toHaveAttribute("aria-invalid", "true");
    await expect(page.locator(`#${id}-note .error`)).toBeVisible();
    await expect(page.locator(".error")).toHaveCount(1);
    await expect(page.locator(".notice.wrong")).toHaveCount(0);
    await expect(page.locator("table.reports")).not.toContainText(wrong + '"');
    await expect(cell(row(page, name(512, 72)), "Tokens/s")).toHaveText("169,535");
    await expect(page.locator(`#${id}-note button`).first()).toBeVisible();
    await field.fill(right);
    await expect(field).toHaveAttribute("aria-invalid", "false");
  }
  await expectAccessible(page);
});

test("scored logs come first, below one line to drop more, and columns without values are left out", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("/results");
  // It is high once the page knows that there is nothing else to show.
  await expect(page.getByRole("heading", { name: "What to drop" })).toBeVisible();
  const before = (await page.locator(".drop").boundingBox()).height;
  await files(page).setInputFiles({ name: "a.out", mimeType: "text/plain", buffer: Buffer.from("nothing\n") });
  await expect(cell(row(page, "a.out"), "Status")).toHaveText("no data");
  await expect(cell(row(page, "a.out"), "Tokens/s")).toHaveCount(0);
  expect((await page.locator(".drop").boundingBox()).height).toBeLessThan(before);
  await files(page).setInputFiles({ name: name(512, 71), mimeType: "text/plain", buffer: Buffer.from(log({})) });
  await expect(page.locator("table.reports tbody tr").first()).toContainText(name(512, 71));
  await expect(page.locator("#field-window")).toBeHidden();
});

test("files can be dropped", async ({ page }) => {
  await page.goto("/results");
  const transfer = await page.evaluateHandle(
    ([name, text]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([text], name, { type: "text/plain" }));
      transfer.items.add(new File(["nothing"], "other.txt", { type: "text/plain" }));
      return transfer;
    },
    [name(512, 70), log({})],
  );
  await page.locator(".drop").dispatchEvent("dragover", { dataTransfer: transfer });
  await page.locator(".drop").dispatchEvent("drop", { dataTransfer: transfer });
  await expect(cell(row(page, name(512, 70)), "Status")).toHaveText("scored");
  await expect(cell(row(page, "other.txt"), "Status")).toHaveText("no data");
});

test("the window and the convention are the reader's choice, and stand in the address", async ({ page }) => {
  const slow = log({}).replace(/iteration 49\/49 (.*)in s: 12.37/, "iteration 49/49 $1in s: 24.74");
  await page.goto("/results?v=1&w=35-44");
  await files(page).setInputFiles({ name: name(512, 72), mimeType: "text/plain", buffer: Buffer.from(slow) });
  const scored = row(page, name(512, 72));
  await expect(cell(scored, "Tokens/s")).toHaveText("169,535");
  // The fields are open because one of them is set.
  await page.locator("#field-window").fill("last");
  await expect(cell(scored, "Tokens/s")).toHaveText("84,768");
  await expect(page).toHaveURL("/results?v=1&w=last");
  await page.locator("#field-convention").selectOption("full");
  await expect(cell(scored, "MFU, %")).toContainText("22.0");
  await page.locator("#field-window").fill("44-35");
  await expect(page.locator("#field-window-note")).toContainText("44-35");
  await page.locator("#field-window").fill("abc");
  await expect(page.locator("#field-window-note")).toHaveText("'abc' is not a window: use 'last' or a range of steps such as '35-44'.");
  await expectAccessible(page);
});

test("the software that all rows assume is named once", async ({ page }) => {
  await page.goto("/results");
  // Without a recipe, by a model, a GPU type, GPUs and a batch that the log states.
  const stated = (gbs) => `trainplan scenario: v=1&m=llama3.1-8b&gpu=h100&n=8&gbs=${gbs}&d=bf16\n`;
  const steps = (gbs) => Array.from({ length: 50 }, (_, index) => {
    const step = index + 1;
    return `iteration ${step}/50 | consumed samples: ${step * gbs} | elapsed time per iteration (ms): ${9000 + (step % 7)}.0 | global batch size: ${gbs} | lm loss: 1.2E+01 |\n`;
  }).join("");
  const all = [64, 128].map((gbs) => ({ name: `train-${gbs}.log`, mimeType: "text/plain", buffer: Buffer.from(stated(gbs) + steps(gbs)) }));
  await files(page).setInputFiles(all);
  await expect(row(page, "train-64.log")).toHaveCount(1);
  await expect(page.getByText("2 logs: The prediction assumes Megatron-LM 0.14")).toHaveCount(1);
  await expect(cell(row(page, "train-64.log"), "Predicted, s")).toHaveText(/%\sof\sit$/);
  await expect(row(page, "train-64.log").locator(".remark").filter({ hasText: "assumes" })).toHaveCount(0);
});

test("what can't be scored is a row with its reason", async ({ page }) => {
  await page.goto("/results");
  const buffers = {
    "empty.out": Buffer.alloc(0),
    "binary.out": Buffer.from(Array.from({ length: 5000 }, (_, index) => (index * 7919) % 256)),
    "short.out": Buffer.from(log({ steps: 20 })),
    "oom.out": Buffer.from("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"),
    "nan.out": Buffer.from(log({ loss: () => Number.NaN })),
    "broken.result.json": Buffer.from('{"version": 1}'),
  };
  const all = Object.entries(buffers).map(([name, buffer]) => ({ name, mimeType: "text/plain", buffer }));
  await files(page).setInputFiles(all);
  await expect(page.locator("table.reports tbody tr")).toHaveCount(6);
  await expect(page.getByRole("status").first()).toContainText("Read 6 of 6");
  for (const name of Object.keys(buffers)) {
    const remark = row(page, name).locator(".remark").first();
    await expect(remark, name).not.toBeEmpty();
  }
  await expect(cell(row(page, "oom.out"), "Status")).toHaveText("failed");
  await expect(cell(row(page, "nan.out"), "Status")).toHaveText("invalid");
  await expect(cell(row(page, "empty.out"), "Status")).toHaveText(/no data|unreadable/);
  await expect(cell(row(page, "broken.result.json"), "Status")).toHaveText("unreadable");
});

test("a tree of 300 logs is read while the page answers", async ({ page }) => {
  const logs = {};
  for (let job = 0; job < 300; job++) {
    const gpus = [512, 1024, 2048][job % 3];
    logs[`run${job}/${name(gpus, 1000 + job)}`] = log({ gbs: gpus / 2, seconds: 12 + job / 1000 });
    if (job % 50 === 0) logs[`run${job}/notes.md`] = "not a log";
  }
  await page.goto("/results");
  // How long the page lets a tick wait, at worst, while it reads.
  await page.evaluate(() => {
    window.worst = 0;
    let last = performance.now();
    setInterval(() => {
      const now = performance.now();
      window.worst = Math.max(window.worst, now - last);
      last = now;
    }, 10);
  });
  await page.locator("[data-folder]").setInputFiles(tree(logs));
  await expect(page.getByRole("status").first()).toContainText("Read 300 of 300", { timeout: 240_000 });
  const scored = page.locator('table.reports tr[data-status="scored"]');
  await expect(scored).toHaveCount(100);
  await page.getByRole("button", { name: "Show 100 more" }).click();
  await expect(scored).toHaveCount(200);
  await page.getByRole("button", { name: "Show all 300" }).click();
  await expect(scored).toHaveCount(300);
  await expect(page.getByRole("button", { name: /^Show all/ })).toHaveCount(0);
  const worst = await page.evaluate(() => window.worst);
  test.info().annotations.push({ type: "worst wait", description: `${Math.round(worst)} ms` });

  const archive = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save result files" }).click();
  const listed = execFileSync("tar", ["-tf", await (await archive).path()], { encoding: "utf8" }).trim().split("\n");
  expect(new Set(listed).size, "every log is a result of its own").toBe(300);

  const csv = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as CSV" }).click();
  const lines = readFileSync(await (await csv).path(), "utf8").trim().split("\n");
  expect(lines).toHaveLength(301);
  const json = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as JSON" }).click();
  const reports = JSON.parse(readFileSync(await (await json).path(), "utf8"));
  expect(reports).toHaveLength(300);
  expect(reports.every(({ status, tokens_per_s }) => status === "scored" && tokens_per_s > 0)).toBe(true);
});

test("reading can be stopped, and what was read stays", async ({ page }) => {
  // Large enough that reading it takes longer than a click.
  const filler = "filler that is not a step, over and over again, to the end of the file\n".repeat(1_000_000);
  const root = tree({ "a.out": log({}), "b-large.out": log({}), "c-later.out": log({}) });
  for (let part = 0; part < 10; part++) appendFileSync(join(root, "b-large.out"), filler);
  await page.goto("/results");
  await files(page).setInputFiles(["a.out", "b-large.out", "c-later.out"].map((name) => join(root, name)));
  await expect(cell(row(page, "a.out"), "Status")).toHaveText("scored");
  await page.getByRole("button", { name: "Stop" }).click();
  await expect(page.getByRole("status").first()).toContainText("Read 3 of 3");
  await expect(page.getByText(/^2 logs: Reading was stopped/)).toBeVisible();
  for (const name of ["b-large.out", "c-later.out"]) await expect(row(page, name)).toContainText("not read");
  await expect(cell(row(page, "a.out"), "Steps")).toHaveText("50");
});

test("no chart is fetched before the first log, and files are not lost without a question", async ({ page }) => {
  const paths = [];
  page.on("request", (request) => paths.push(new URL(request.url()).pathname));
  await page.goto("/results");
  expect(paths.filter((path) => path.endsWith(".js") && path.includes("plotly"))).toEqual([]);
  await files(page).setInputFiles({ name: name(512, 5), mimeType: "text/plain", buffer: Buffer.from(log({})) });
  await expect(cell(row(page, name(512, 5)), "Status")).toHaveText("scored");
  const asked = page.waitForEvent("dialog");
  const leaving = page.getByRole("navigation").getByRole("link", { name: "Plan" }).click();
  expect((await asked).type()).toBe("beforeunload");
  await (await asked).accept();
  await leaving;
  await expect(page.getByRole("heading", { level: 1 })).toContainText("B200");
});

test("charts name logs by what tells them apart, and a chart takes the room of one that goes", async ({ page }) => {
  const file = (job) => `log-research.pretrain_llama3.1_405b_fp8_512_${job}_0.out`;
  const withoutLoss = (seconds) => log({ seconds }).replaceAll(/reduced_train_loss: [\d.]+ \| /g, "");
  const root = tree({
    [`a/${file(2014)}`]: log({}),
    [`b/${file(2015)}`]: withoutLoss(12.4),
    [`b/${file(2016)}`]: withoutLoss(12.5),
  });
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto("/results");
  await page.locator("[data-folder]").setInputFiles(root);
  await expect(page.getByRole("status").first()).toContainText("Read 3 of 3");
  const charts = page.locator(".curves .chart");
  await expect(charts).toHaveCount(2);
  await expect(charts.first().locator(".legendtext")).toHaveText(["…512_2014", "…512_2015", "…512_2016"]);
  const curves = page.locator(".curves");
  await curves.locator("summary", { hasText: "Show data" }).first().click();
  await expect(curves.getByRole("columnheader", { name: file(2014) }).first()).toBeVisible();
  const width = () => charts.first().evaluate((chart) => chart.clientWidth);
  const before = await width();
  // A log that is selected alone, to identify it, leaves the others in the charts.
  await row(page, "_2015_0.out").getByRole("checkbox").check();
  await expect(page.getByRole("region", { name: "Selected runs" })).toBeVisible();
  await expect(charts).toHaveCount(2);
  // Neither of the two has a loss.
  await row(page, "_2016_0.out").getByRole("checkbox").check();
  await expect(charts).toHaveCount(1);
  expect(await width()).toBeGreaterThan(1.5 * before);
  const isFilled = (chart) => Math.abs(chart.querySelector(".main-svg").getBoundingClientRect().width - chart.clientWidth) <= 1;
  await expect.poll(() => charts.first().evaluate(isFilled)).toBe(true);
});

test("what ran is set for the selected logs alone", async ({ page }) => {
  const root = tree({ "a/one.out": log({}), "a/two.out": log({ seconds: 13 }), "b/three.out": log({ seconds: 14 }) });
  const id = "llama3.1-405b/h100/fp8/512@25.04";
  await page.goto("/results");
  await page.locator("[data-folder]").setInputFiles(root);
  await expect(page.getByRole("status").first()).toContainText("Read 3 of 3");
  await expect(page.getByRole("columnheader", { name: "Select" })).toHaveCount(1);
  const recipes = () => page.locator('table.reports tbody td[data-label="Recipe"]').allTextContents();
  const selected = page.getByRole("region", { name: "Selected runs" });

  await row(page, "one.out").getByRole("checkbox").check();
  await selected.getByRole("button", { name: "Identify the run" }).click();
  await expectAccessible(page);
  const recipe = selected.getByLabel("Recipe");
  await recipe.fill("llama3.1-405b/h100/fp8/512@25.05");
  await selected.getByRole("button", { name: "Set for 1 log" }).click();
  await expect(selected.getByRole("alert")).toContainText("25.05");
  // The suggested recipes are buttons that fill the field.
  await selected.getByRole("alert").getByRole("button").first().click();
  await expect(recipe).toHaveValue(/^llama3\.1-405b\/h100\//);
  await recipe.fill(id);
  await recipe.press("Enter");
  await expect.poll(recipes).toEqual([id, "–", "–"]);
  await expect(cell(row(page, "one.out"), "Tokens/s")).toHaveText("169,535");
  // A row whose recipe is not known has a button for it.
  await expect(row(page, "one.out").getByRole("button")).toHaveCount(0);
  const identify = row(page, "two.out").getByRole("button", { name: /^Identify the run/ });
  await identify.scrollIntoViewIfNeeded();
  const scrolled = () => page.evaluate(() => Math.round(scrollY));
  const before = await scrolled();
  await identify.click();
  await expect(row(page, "two.out").getByRole("checkbox")).toBeChecked();
  await expect(row(page, "one.out").getByRole("checkbox")).not.toBeChecked();
  await expect(recipe).toBeFocused();
  // The form is in view, and the row too.
  expect(await scrolled()).toBe(before);
  await expect(recipe).toBeInViewport();
  await selected.getByRole("button", { name: "Clear selection" }).click();
  await row(page, "one.out").getByRole("checkbox").check();
  await expect(recipe).toHaveCount(0);

  // The run's own page and the result file know it too.
  await row(page, "one.out").getByRole("link", { name: "one.out" }).click();
  await expect(page.getByText(id).first()).toBeVisible();
  await page.goBack();

  await selected.getByRole("button", { name: "Select the whole folder" }).click();
  await selected.getByRole("button", { name: "Identify the run" }).click();
  await selected.getByLabel("Recipe").fill(id);
  await selected.getByRole("button", { name: "Set for 2 logs" }).click();
  await expect.poll(recipes).toEqual([id, id, "–"]);
  await selected.getByRole("button", { name: "Identify the run" }).click();
  await selected.getByRole("button", { name: "Reset to what the logs say" }).click();
  // A column without values is not shown.
  await expect.poll(recipes).toEqual([]);
});
