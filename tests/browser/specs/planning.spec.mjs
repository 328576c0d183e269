import { execFileSync } from "node:child_process";

import { boxes, cardOf, cards, details, expect, test, verdict } from "../fixtures.mjs";

/** The word on the edge of each card; null without one. */
const badges = (page) => cards(page).evaluateAll((all) => all.map((card) => card.dataset.badge ?? null));

for (const [model, title] of [
  ["Llama 3.1 70B", "Llama 3.1 70B"],
  ["Qwen3 235B", "Qwen3 235B-A22B"],
]) {
  test(`how many H100 or B200 train ${title} on 10T tokens, by keyboard only`, async ({ page }) => {
    await page.goto("/");
    await expect(verdict(page)).toHaveText(/^[\d,]+ B200 GPUs take about [\d.]+ days and cost \$[\d.]+M with GPUs reserved for 3 years, or \$[\d.]+M on demand\.$/);
    await page.locator("#ask-model").focus();
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type(model);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await expect(page.locator("#ask-tokens")).toBeFocused();
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type("10T");
    await page.keyboard.press("Enter");
    await expect(details(page)).toContainText(title);
    for (const card of [cards(page).nth(0), cards(page).nth(1)]) {
      await expect(card.locator(".hero")).toHaveText(/^[\d,]+ GPUs( \+ [\d,]+ spare)?$/);
      await expect(card.locator(".mini.main > div").nth(0)).toHaveText(/^Time\d+ days \d+–\d+$/);
      await expect(card.locator(".mini.main > div").nth(1)).toHaveText(/^Cost\$[\d.]+M \$[\d.]+–[\d.]+M$/);
      // A reservation is longer than the run.
      await expect(card.locator(".mini.main > div").nth(2)).toHaveText(/^On demand\$[\d.]+M \$[\d.]+–[\d.]+M$/);
      await expect(card.locator(".layout-line")).toContainText("MBS");
    }
  });
}

test("the card of the headline's GPU type is marked, and why it comes first is said once", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-70b&t=10T&gs=h100,b200&by=60d");
  const rest = page.locator(".verdict-line > p").first();
  await expect(rest).toContainText(/B200 needs \d+\s% fewer GPUs than H100 and (probably )?costs \d+\s% less/);
  await expect(rest).not.toContainText("comes first because");
  await expect(page.locator(".answer-foot > small")).toContainText(
    "first: the fewest GPUs, of the GPU types that don't clearly cost more than the cheapest",
  );
  // Cards have the order of the ranking.
  await expect.poll(() => badges(page)).toEqual(["Best", null]);
  await expect(cards(page).first().getByRole("heading")).toContainText("B200");
});

test("a plan that exceeds the budget or misses the deadline is the nearest, not the best one", async ({ page }) => {
  for (const limit of ["by=60d&bud=100k", "by=2d&nr=1024"]) {
    await page.goto(`/?v=1&m=llama3.1-70b&t=10T&gs=h100,b200&${limit}`);
    await expect(cards(page).first().locator(".missed").first()).toBeVisible();
    await expect.poll(async () => (await badges(page)).filter(Boolean), limit).toEqual(["Nearest"]);
    await expect(page.locator(".answer")).not.toContainText(/\bbest\b/i);
    await expect(page.locator(".shown").first()).not.toContainText("Best plan");
  }
});

test("the headline says how long the launch script takes, if it doesn't run the plan as planned", async ({ page }) => {
  const rest = page.locator(".verdict-line > p").first();
  await page.goto("/?v=1&m=mixtral-8x7b&t=10T&gs=b200&by=60d");
  await expect(rest).toContainText(/^These figures are for the launch scripts: on B200, \d+\s% longer than planned/);
  await expect(page.locator(".launch-fit")).toContainText("without fused kernels for experts");
  // Megatron-Bridge's recipe runs the planned software.
  await page.goto("/?v=1&m=qwen3-235b-a22b&t=10T&gs=gb300&by=60d");
  await expect(details(page)).toContainText("Qwen3 235B-A22B on");
  await page.getByRole("tab", { name: "Launch" }).click();
  await expect(page.locator("[data-script]")).toContainText("./scripts/training/train.sh");
  await expect(rest).not.toContainText("launch script");
});

test("while plans are searched again by launch scripts, cards say that their figures may change", async ({ page }) => {
  await page.addInitScript(() => {
    window.checking = [];
    const look = () => {
      window.checking.push(document.querySelector(".gpu-card.provisional .checking")?.textContent ?? "");
      requestAnimationFrame(look);
    };
    look();
  });
  await page.goto("/?v=1&m=mixtral-8x7b&t=10T&gs=b200&by=60d");
  await expect(page.locator(".verdict-line > p").first()).toContainText("These figures are for the launch scripts");
  expect(await page.evaluate(() => window.checking)).toContain("Checking the launch script; figures may change …");
  await expect(page.locator(".provisional")).toHaveCount(0);
  await expect(page.locator(".checking")).toHaveText([""]);
});

test("a card says what its launch script does, and the verdict doesn't say that such a plan meets the deadline", async ({ page }) => {
  await page.goto("/?v=1&m=mixtral-8x7b&t=10T&gs=b200,h100&by=60d");
  await expect(details(page)).toBeVisible();
  const noted = cards(page).filter({ has: page.locator(".card-note") });
  await expect(noted.first().locator(".card-note")).toHaveText(/^The launch script takes .+. These figures include that\.$/);
  await expect(noted.first().locator(".days > small")).toHaveText(/^Meets the deadline (about|more than|less than) \d+ times? in 10( at the predicted speed.*, .+ in 10 at the measured speed.*: .+ \(.+\))?$/);
  const rest = await page.locator(".verdict-line > p").first().textContent();
  expect(rest).toMatch(/launch scripts?\b/);
  if (rest.includes("misses the deadline")) expect(rest).not.toContain("The plans meet the deadline");
});

test("the best plan is one whose launch script reaches the goal", async ({ page }) => {
  // The fastest layout uses FSDP, which no release runs for this model, and Megatron-LM runs it more slowly than planned.
  await page.goto("/?v=1&m=llama3.1-70b&t=10T&gs=gb200&nr=1408&by=30d");
  await expect(cards(page).first().locator(".layout-line")).not.toContainText("FSDP");
  await expect.poll(() => badges(page)).toEqual(["Best"]);
  await expect(page.locator(".answer")).not.toContainText("miss");
  await expect(details(page)).toBeVisible();
});

test("headline, card, table and details have the figures of the launch script, as on the command line", async ({ page }) => {
  const question = ["--model", "mixtral-8x7b", "--tokens", "10T", "--gpu", "b200", "--deadline", "60d"];
  const told = JSON.parse(execFileSync(process.env.TRAINPLAN_BIN, ["search", ...question, "--format", "json"], { encoding: "utf8" }));
  const { best, script } = told.answers[0];
  expect(script.slowdown).toBeGreaterThan(1.1);
  const days = `${Math.round(best.days)} days`;
  await page.goto("/?v=1&m=mixtral-8x7b&t=10T&gs=b200&by=60d");
  await expect(page.locator(".verdict-line > p").first()).toContainText(/These figures are for the launch scripts: on B200, \d+\s% longer than planned/);
  expect(await verdict(page).textContent()).toContain(`${best.gpus} B200 GPUs take about ${days} and cost `);
  const card = cards(page).first();
  await expect(card.locator(".hero")).toContainText(String(best.gpus));
  expect(await card.locator(".mini.main > div").first().textContent()).toContain(days);
  await expect(card).toContainText("These figures include that");
  await expect(page.locator(".layout-table tbody tr").first()).toContainText(`${Math.round(best.days)} `);
  await expect(page.locator(".answers header small")).toHaveText(new RegExp(`^Proposed plan · ${days.replace(" ", "\\s")} · `));
  await expect(page.locator("#details")).toContainText("All figures are for the launch script, which runs Megatron-LM without fused kernels for experts.");
  for (const tab of ["Time", "Memory", "Scaling"]) {
    await page.getByRole("tab", { name: tab }).click();
    await expect(page.locator(".predicted-for"), tab).toContainText("Predicted for the launch script, which runs Megatron-LM without fused kernels");
  }
});

test("a card has no row without a value, and owned GPUs name the price of electricity in the report", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-8b&t=1T&gs=h100,b200&nr=64&price=h100%3D0");
  await expect(details(page)).toBeVisible();
  const [h100, b200] = ["H100", "B200"].map((name) => cards(page).filter({ has: page.getByRole("heading", { name }) }));
  await expect(b200.locator(".mini.main")).toContainText("On demand");
  await expect(h100.locator(".mini.main")).not.toContainText("On demand");
  await expect(page.locator(".assumptions")).toContainText(/Electricity: 0\.0929 USD per kWh/);
});

test("the launch tab says which parts of the layout come from the recipe", async ({ page }) => {
  await page.goto("/?v=1&r=qwen3-235b-a22b/h100/bf16/256@bridge-main&tab=launch");
  await expect(page.locator("[data-script]")).not.toContainText("-ep ");
  await expect(page.locator(".launch")).toContainText(/From the recipe, so not in the script: .*PP 8 · EP 32 · .*Pipeline split counted\./);
});

test("launch styles and releases are listed once", async ({ page }) => {
  await page.goto("/?v=1&m=deepseek-v3&t=1T&gs=gb300&nr=256");
  await page.getByRole("tab", { name: "Launch" }).click();
  await expect(page.locator("[data-script]")).toContainText("./scripts/training/train.sh");
  for (const field of ["style", "release"]) {
    const options = page.locator(`#field-${field} option`);
    await expect(options.first()).toHaveText(/ \(default\)$/);
    const listed = (await options.allTextContents()).map((text) => text.replace(" (default)", ""));
    expect(listed, field).toEqual([...new Set(listed)]);
  }
});

test("a suggested change with which the plan still misses the goal says so", async ({ page }) => {
  const change = cards(page).first().locator(".card-changes button");
  await page.goto("/?v=1&m=llama3.1-70b&t=10T&gs=h100&nr=7&by=60d");
  await expect(change).toHaveText(/^Use [\d,]+ GPUs$/);
  await page.goto("/?v=1&m=llama3.1-70b&t=10T&gs=h100&nr=7&by=0.05d");
  await expect(change).toHaveText(/^Use [\d,]+ GPUs \(misses the goal\)$/);
});

test("a limit that only measured software misses is named where the range ends within it", async ({ page }) => {
  await page.goto("/?v=1&m=qwen3-235b-a22b&nr=448&by=60d");
  const card = cards(page).filter({ has: page.locator(".missed", { hasText: "May miss the deadline of 60 days" }) }).first();
  await expect(card.locator(".missed").first()).toHaveText(
    /^May miss the deadline of 60 days\.( At the predicted speed: \d+ days \(\d+–\d+\), \$[\d.]+M; at the measured speed of Megatron-Bridge .+: \d+ days \(\d+–\d+\), \$[\d.]+M\.)?$/,
  );
  // The figures are those of the test that decides.
  const end = Number((await card.locator(".mini.main > div").nth(0).locator(".note").textContent()).split("–")[1]);
  expect(end).toBeGreaterThan(60);
  if ((await card.locator(".missed").first().textContent()).includes("At the predicted speed")) {
    await expect(card.locator(".days > small")).toContainText(/ at the measured speed of Megatron-Bridge .+$/);
    // The card, its row and what a star saves are of the same scenario.
    await expect(card).toContainText(/Figures at the measured speed of Megatron-Bridge/);
    const days = (await card.locator(".mini.main > div").first().locator("dd").first().textContent()).split(" ")[0];
    const row = page.locator(".layout-table tbody tr").first();
    await expect(row.getByRole("rowheader")).toContainText("at the measured speed of Megatron-Bridge");
    await expect(row.locator(".of-days")).toContainText(new RegExp(`^${days} `));
    await expect(verdict(page)).toContainText(/^No plan finishes within 60 days both at the predicted speed, 9 times in 10, and at the measured speed\./);
    // The details name both scenarios, and don't say by their colour that the plan is in time.
    const tile = page.locator('[data-figure="days"]');
    await expect(page.locator(".with-software")).toContainText(/At the predicted speed\. At the measured speed of Megatron-Bridge .+: \d+ days \(\d+–\d+\), \$[\d.]+[kM]\. May miss the deadline of 60\sdays\./);
    await expect(tile).toHaveClass(/doubtful/);
    // All tiles of a row are as high as a figure and its range, and no higher.
    expect((await tile.locator("..").boundingBox()).height).toBeLessThan(130);
    await expect(page.locator(".answers header small")).toContainText(/ · \d+\sdays with Megatron-Bridge/);
    const beside = {
      Time: /^Predicted for .+\. At the measured speed of Megatron-Bridge .+, a step takes [\d.]+\ss instead of [\d.]+\ss, and the run \d+ days \(\d+–\d+\) instead of \d+ days \(\d+–\d+\)\.$/,
      Memory: /^Predicted for [^.]+(\.\d+[^.]*)*\.$/,
      Scaling: /^Predicted for .+\. At the measured speed of Megatron-Bridge .+, this plan reaches [\d,]+ tokens per second per GPU instead of [\d,]+\.$/,
    };
    for (const [tab, text] of Object.entries(beside)) {
      await page.getByRole("tab", { name: tab }).click();
      await expect(page.locator(".predicted-for"), tab).toHaveText(text);
    }
  }
});

test("a deadline that can't be met offers changes that meet it, and Ctrl-Z takes one back", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-8b&t=1T&gs=h100&by=5d&nr=64");
  await expect(verdict(page)).toHaveText(/^No plan finishes within 5 days 9 times in 10. The nearest takes about \d+ days \(\d+–\d+\), on 64 H100 GPUs.$/);
  const change = cards(page).getByRole("button", { name: /^Allow [\d.]+ days$/ });
  await expect(cards(page).getByRole("button", { name: /^(Use [\d,]+ GPUs|Train on [\d.]+[BT] tokens)$/ })).toHaveCount(2);
  await change.click();
  await expect(verdict(page)).toHaveText(/^64 H100 GPUs take about \d+ days and cost \$[\d.]+[kM] with GPUs reserved for 3 years, or \$[\d.]+[kM] on demand\.$/);
  await page.keyboard.press("ControlOrMeta+z");
  await expect(verdict(page)).toContainText("No plan finishes within 5 days");
  // Nothing is left to undo: the page stays.
  await page.keyboard.press("ControlOrMeta+z");
  await page.keyboard.press("ControlOrMeta+Shift+z");
  await expect(verdict(page)).toHaveText(/^64 H100 GPUs take about/);
});

for (const types of ["h100", "h100,b200,gb300"]) {
  test(`a deadline and a budget that can't both be met are explained by one plan, on ${types}`, async ({ page }) => {
    await page.goto(`/?v=1&m=llama3.1-70b&t=10T&gs=${types}&by=60d&bud=50K`);
    const says =
      /^No plan finishes within 60 days for at most \$50k (?:9 times in 10|both at the predicted speed, .+ measured speed)\. The cheapest that finishes in time (?:costs up to \$[\d.]+M|is predicted to cost up to \$[\d.]+M, but would cost \$[\d.]+M at the measured speed of .+), on ([\d,]+) (\w+) GPUs\.$/;
    await expect(verdict(page)).toHaveText(says);
    // Where launch scripts differ from the plans, another one may come nearest.
    await expect(page.locator("#details")).toHaveAttribute("data-scripts", /n=/);
    await expect(page.locator("#details[data-by-scripts]")).toHaveCount(0);
    const [, gpus, type] = (await verdict(page).textContent()).match(says);
    const card = cards(page).filter({ has: page.getByRole("heading", { name: type, exact: true }) });
    await expect(card).toHaveCount(1);
    await expect(card.locator(".hero strong")).toHaveText(gpus);
    await expect(card.locator(".missed").first()).toHaveText(
      /^Exceeds the budget of \$50k, which is enough for [\d.]+B tokens on [\d,]+ GPUs\.$/,
    );
    // It is in time at the slow end of its range, too.
    const days = await card.locator(".mini.main > div").nth(0).locator(".note").textContent();
    expect(Number(days.split("–")[1])).toBeLessThanOrEqual(60);
    // The layouts list the same plan first, and it is the one that is shown.
    await expect(page.locator("#layouts-title")).toContainText(`Best layouts on ${gpus} × ${type}`);
    const row = page.locator(".layout-table tbody tr").first();
    await expect(row).toHaveClass(/selected/);
    await expect(row.locator(".of-days small")).toHaveText(days);
    await expect(card.locator(".layout-line")).toContainText(await row.locator(".row-button").textContent());
    // The first key shows where the chart marks it.
    const chart = page.locator(".chart-keys");
    await expect(chart.locator(".scatterlayer .trace").first()).toBeVisible();
    // The chart is drawn a few times only while plans stream in.
    await expect(async () => {
      await chart.blur();
      await chart.focus();
      await page.keyboard.press("End");
      await expect(page.locator(".chart-note [aria-live]")).toContainText(`${gpus} × ${type}: `, { timeout: 1000 });
    }).toPass();
    await expect(page.locator(".chart-note [aria-live]")).toContainText(`(${days})`);
  });
}

test("the question asks how likely the deadline must be met, and the plan for the other chance is named", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-8b&t=10T&gs=h100&by=20d");
  await expect(page.locator(".verdict-line > p").first()).toContainText("The plan meets the deadline of 20 days 9 times in 10 at the predicted speed, and ");
  const sure = (await verdict(page).textContent()).match(/^[\d,]+/)[0];
  await page.locator("#ask-chance").selectOption("5 times in 10");
  await expect(page).toHaveURL(/odds=even/);
  const safe = cards(page).locator(".other-chance button");
  await expect(safe).toHaveText(`${sure} GPUs`);
  await expect(safe).toHaveText(/^[\d,]+ GPUs$/);
  const best = await verdict(page).textContent();
  const count = (await safe.textContent()).replace(" GPUs", "");
  const rest = page.locator(".verdict-line > p").first();
  await expect(rest).toContainText(`${count} H100 GPUs would meet the deadline 9 times in 10.`);
  await safe.click();
  await expect(details(page)).toContainText(`on ${count} × H100`);
  await expect(verdict(page)).toHaveText(new RegExp(`^${count} H100 GPUs take about \\d+ days and cost \\$`));
  await expect(rest).toContainText(/The plan meets the deadline of 20 days (about|more than) 9 times in 10\./);
  await expect(rest).toContainText(best);
  await page.getByRole("button", { name: "Show the best plan" }).click();
  await expect(verdict(page)).toHaveText(best);
});

test("a price reaches the cards and the table, and what is saved from it", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  const cost = page.locator(".layout-table tbody tr").first().locator("td").nth(1);
  const before = await cost.textContent();
  await page.locator("#ask-price").fill("4");
  await page.keyboard.press("Enter");
  await expect(cost).not.toHaveText(before);
  const best = (await verdict(page).textContent()).match(/^([\d,]+) (\w+) GPUs/);
  const card = cards(page).filter({ has: page.getByRole("heading", { name: best[2], exact: true }) });
  await expect(cost).toContainText(await card.locator(".mini.main dd:not(.note)").nth(1).textContent());
});

test("a number of GPUs may have a comma", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-8b&t=1T&gs=h100&nr=64");
  await expect(details(page)).toBeVisible();
  await page.locator("#ask-gpu-range").fill("1,024");
  await page.keyboard.press("Enter");
  await expect(verdict(page)).toHaveText(/^1,024 H100 GPUs take/);
  // Those who have 1,024 in all lack the spare ones.
  const lacking = "This takes 1,072 GPUs in all: 1,024 for training and 48 spare. If you have 1,024 in all:";
  await expect(cards(page).first().getByText(lacking)).toBeVisible();
  await cards(page).first().getByRole("button", { name: "Set Spare nodes to 0" }).click();
  await expect(page).toHaveURL(/spare=0/);
  await expect(cards(page).first().getByText("in all:")).toHaveCount(0);
  await page.goBack();
  await cards(page).first().getByRole("button", { name: "Use 976 GPUs" }).click();
  await expect(page.locator("#ask-gpu-range")).toHaveValue("976");
  await expect(verdict(page)).toHaveText(/^976 H100 GPUs take/);
});

test("a plan that doesn't fit says so in the headline", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-70b&gpu=b200&n=536&d=mxfp8&mbs=2&gbs=1072&fsdp=on&t=10T&gs=h100%2Cb200&by=60d");
  await expect(verdict(page)).toHaveText("Your plan on 536 B200 GPUs doesn't fit in memory.");
  await expect(page.locator(".verdict-line > p").first()).toContainText("a GPU needs");
});

test("the headline describes a plan that no search found", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-70b&gpu=b200&n=256&d=mxfp8&tp=2&pp=4&vp=5&gbs=1024&t=10T&gs=b200&by=60d");
  await expect(verdict(page)).toHaveText(/^256 B200 GPUs take about \d+ days and cost \$/);
  await expect(page.locator(".verdict-line > p").first()).toContainText("The plan misses the deadline of 60 days.");
  const days = (await page.locator('[data-figure="days"]').textContent()).match(/^\d+/)[0];
  await expect(verdict(page)).toContainText(`about ${days} days`);
});

test("a GPU type keeps its colour and its shape whatever it is compared with", async ({ page }) => {
  const mark = async () => {
    const card = cards(page).filter({ has: page.getByRole("heading", { name: "B200", exact: true }) });
    await expect(card.locator(".hero")).toHaveText(/GPUs/);
    const colour = await card.evaluate((card) => getComputedStyle(card).borderTopColor);
    return [colour, await card.locator("h2 .gpu-sign").textContent()];
  };
  await page.goto("/?v=1&gs=h100,b200&nr=512");
  const beside = await mark();
  await page.goto("/?v=1&gs=b200&nr=512");
  expect(await mark()).toEqual(beside);
  const chip = page.getByRole("button", { name: "Remove B200" }).locator(".gpu-sign");
  expect([await chip.evaluate((sign) => getComputedStyle(sign).color), await chip.textContent()]).toEqual(beside);
});

test("ten tokens are refused, and what was meant is offered", async ({ page }) => {
  await page.goto("/?v=1&t=10&gs=b200&nr=512");
  await page.getByRole("button", { name: "Use 10T" }).first().click();
  await expect(page.locator("#ask-tokens")).toHaveValue("10T");
  await expect(verdict(page)).toContainText("512 B200 GPUs take");
});

test("a campaign of a plan that can't run is not offered", async ({ page }) => {
  await page.goto("/?v=1&r=llama3.1-405b/h100/fp8/512@25.04&tab=launch");
  const campaign = page.getByRole("button", { name: "Download campaign" });
  await expect(campaign).toBeEnabled();
  await page.getByText("All settings").click();
  await page.locator("#field-tp").fill("3");
  await expect(campaign).toBeDisabled();
  for (const part of [".answer", ".front", ".layouts", "#details"]) {
    await expect(page.locator(part).first()).toHaveClass(/stale/);
  }
});

test("the maths go on from the step time to failures, checkpoints and cost", async ({ page }) => {
  await page.goto("/?v=1&by=60d&gs=b200");
  await page.getByText("Show the maths: failures").click();
  const maths = page.locator("details.maths").filter({ hasText: "days with failures" });
  const days = maths.getByRole("row", { name: /^days with failures/ }).getByRole("cell").first();
  const shown = Number.parseInt(await page.locator('[data-figure="days"]').innerText());
  expect(Math.round(Number.parseFloat(await days.innerText()))).toBe(shown);
  await expect(maths.getByRole("row", { name: /^total cost in/ })).toHaveCount(1);
});

test("the printed report holds the question and the answer on a page", async ({ page }) => {
  await page.goto("/?v=1&by=60d&gs=b200");
  await expect(details(page)).toBeVisible();
  await page.emulateMedia({ media: "print" });
  await expect(page.locator(".printed").first()).toContainText("Question: Llama 3.1 70B");
  await expect(page.locator(".printed").first()).toContainText(/Prices: B200 \$[\d.]+ per GPU-hour, reserved for 3 years/);
  for (const name of ["Price of the B200", "Failures", "Recovery from a failure", "Spare nodes, paid for as well", "Checkpoints", "Free memory"]) {
    await expect(page.locator(".assumptions p").filter({ hasText: `${name}: ` })).toBeVisible();
  }
  await expect(page.locator(".question")).toBeHidden();
  // Of the details, the figures of the shown plan are printed.
  await expect(page.locator('[data-figure="failures"]')).toContainText("goodput");
  await expect(page.locator(".drawer")).toBeHidden();
  await expect(page.getByRole("tab").first()).toBeHidden();
  await expect(verdict(page)).toBeVisible();
  const pdf = (await page.pdf({ format: "A4" })).toString("latin1");
  expect(pdf.match(/\/Type \/Page\b/g)).toHaveLength(1);
});

test("layouts that miss the deadline say so, as far as the question asks", async ({ page }) => {
  await page.goto("/?v=1&gs=b200&by=60d&odds=even");
  const rows = page.locator(".layout-table tbody tr");
  // The published layout, which may be one of a hidden row's, is always shown.
  await expect(rows.filter({ hasText: "Published layout" })).toHaveCount(1);
  expect(await rows.count()).toBeGreaterThanOrEqual(4);
  for (const row of await rows.all()) {
    const days = Number.parseFloat(await row.locator("td").first().textContent());
    await expect(row.locator("td", { hasText: / in 10$/ })).toHaveClass(days > 60 ? /late/ : "number of-goal");
  }
  await expect(page.getByRole("columnheader", { name: "In time" })).toBeVisible();
  await page.goto("/?v=1&gs=b200&nr=512");
  await expect(rows.filter({ hasText: "Published layout" })).toHaveCount(1);
  await expect(page.locator(".layouts .late")).toHaveCount(0);
  // Layouts that differ only in VP, the split or the batch are hidden at first.
  const fold = page.getByRole("button", { name: /^\d+ variants?$/ }).first();
  const [hidden, before] = [Number.parseInt(await fold.textContent()), await rows.count()];
  await fold.click();
  await expect(rows).toHaveCount(before + hidden);
  await expect(page.getByRole("columnheader", { name: "MFU" })).toBeVisible();
});

test("a card is marked while its plan is shown, and says so if another plan of its GPU type is", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await expect(page.locator(".gpu-card.selected h2")).toHaveText(/B200/);
  await expect(page.locator(".other-shown")).toHaveCount(0);
  const chart = page.locator(".chart-keys");
  await expect(chart.locator(".scatterlayer .trace").first()).toBeVisible();
  await chart.focus();
  // The first key only shows the cursor, at the shown plan.
  for (const key of ["End", "End", "Enter"]) await page.keyboard.press(key);
  await expect(page.locator(".other-shown")).toHaveText(/^Shown: another plan, on [\d,]+ GPUs$/);
  await expect(page.locator(".gpu-card.selected")).toHaveCount(0);
});

test("on a phone the best card comes first, and the chart is as wide as the page", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  const top = async (card) => (await card.boundingBox()).y;
  const [first, second] = [cards(page).nth(0), cards(page).nth(1)];
  await expect(first).toHaveAttribute("data-badge", "Best");
  expect(await top(first)).toBeLessThan(await top(second));
  await expect(second.locator(".range-key")).toHaveText(/^80 % rangedeadline/);
  await expect(second.locator(".scale")).toHaveText(/^0\d+ days$/);
  const chart = page.locator(".front .chart");
  await expect(chart.locator(".scatterlayer .trace").first()).toBeVisible();
  expect((await chart.locator(".nsewdrag").boundingBox()).width).toBeGreaterThan(250);
  // Labels of the axis stay level.
  for (const label of await chart.locator(".xtick text").all()) {
    expect(await label.getAttribute("transform")).not.toContain("rotate(90");
  }
});

test("the card and the shown plan name the same days, and a plan that misses the deadline says so", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  const best = await cardOf(page, "B200").locator(".mini.main dd").first().textContent();
  const range = await cardOf(page, "B200").locator(".mini.main .note").first().textContent();
  await expect(page.locator('[data-figure="days"]')).toContainText(`${best} (${range})`);
  await expect(page.locator(".figure.main dt")).toHaveText("10T tokens, with failures");
  const alone = await page.locator('[data-figure="days-without-failures"]').textContent();
  expect(Number.parseFloat(alone)).toBeLessThan(Number.parseFloat(best));
  await expect(page.locator('[data-figure="cost"]')).toContainText("$");
  await page.goto("/?v=1&m=llama3.1-70b&gpu=b200&n=256&d=mxfp8&tp=2&pp=4&vp=5&gbs=1024&t=10T&gs=b200&by=60d");
  await expect(page.getByText("Misses the deadline of 60 days.", { exact: true })).toBeVisible();
  await expect(page.getByText("The plan misses the deadline of 60 days.")).toBeVisible();
});

test("a chosen plan is announced, with a way to it", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await expect(page.locator(".shown")).toBeVisible();
  await page.getByRole("button", { name: "Show this plan" }).first().click();
  const notice = page.getByRole("status").filter({ hasText: "is shown below." });
  await expect(notice).toContainText("H100");
  await notice.getByRole("button", { name: "See it" }).click();
  await expect(page.locator("#headline")).toBeFocused();
  await expect(page.locator("#headline")).toBeInViewport();
  await expect(notice).toHaveCount(0);
});

test("on a wide screen, the shown plan is beside the layouts, and its heading stays in sight", async ({ page }) => {
  // Smooth scrolling takes a while.
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  const [chosen, shown] = await boxes(page.locator(".pair, .shown"));
  expect(shown.x).toBeGreaterThan(chosen.x + chosen.width);
  expect(Math.abs(shown.y - chosen.y)).toBeLessThan(2);
  await page.locator(".row-button").nth(7).click();
  await expect(page.locator(".row-button").nth(7)).toHaveAttribute("aria-pressed", "true");
  await expect(details(page)).toBeInViewport();
  const bar = await page.locator(".question").boundingBox();
  expect((await details(page).boundingBox()).y).toBeGreaterThanOrEqual(bar.y + bar.height);
  await expect(page.getByRole("status").filter({ hasText: "is shown below." })).toHaveCount(0);
  // The list of layouts is as high as they are, and follows the longest tab.
  const layouts = page.locator(".layouts");
  const { height } = await layouts.boundingBox();
  await page.getByRole("tab", { name: "Launch" }).click();
  await expect(page.locator("[data-script]")).toBeVisible();
  expect((await layouts.boundingBox()).height).toBe(height);
  await page.locator(".drawer > summary").scrollIntoViewIfNeeded();
  await expect(page.locator(".row-button").nth(7)).toBeInViewport();
});

test("the plan under the pointer is named above the chart, and nothing covers the chart", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  const chart = page.locator(".front .chart");
  await expect(chart.locator(".scatterlayer .trace").first()).toBeVisible();
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.locator(".nsewdrag").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await expect(page.locator(".reading li")).toHaveCount(2);
  await expect(page.locator(".reading")).toContainText(/× H100: [\d,.]+ days/);
  await expect(chart.locator(".hoverlayer .hovertext, .hoverlayer .legend")).toHaveCount(0);
  await page.mouse.move(5, 5);
  await expect(page.locator(".reading")).toHaveCount(0);
  // The keys clear what the pointer left.
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await expect(page.locator(".reading li")).toHaveCount(2);
  await page.locator(".chart-keys").focus();
  await page.keyboard.press("ArrowRight");
  await expect(page.locator(".reading")).toHaveCount(0);
  await expect(chart.locator(".spikeline")).toHaveCount(0);
});

test("768 GPUs, not a power of two, have a plan, whose batch is shown", async ({ page }) => {
  await page.goto("/?v=1&gs=b200&nr=768");
  await expect(verdict(page)).toContainText("768 B200 GPUs take");
  await expect(cards(page).first().locator(".more-figures")).toContainText("Tokens per step");
});
