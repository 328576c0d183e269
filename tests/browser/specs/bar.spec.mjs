import { readFileSync } from "node:fs";

import { boxes, expect, expectAccessible, test } from "../fixtures.mjs";

const verdict = (page) => page.locator("#verdict");
const cards = (page) => page.locator(".gpu-card");
const details = (page) => page.locator("#headline");
const chart = (page) => page.locator(".chart-keys");
const rule = (page) => page.getByRole("slider", { name: "Deadline" });

/** Types a text into a field of the question bar and leaves the field. */
async function enter(page, id, text) {
  await page.locator(id).fill(text);
  await page.keyboard.press("Enter");
}

/** Waits until the answers belong to the question. */
async function answered(page) {
  await expect(page.locator(".plan .answer")).toHaveAttribute("aria-busy", "false");
  await expect(page.locator(".plan .answer.stale")).toHaveCount(0);
}

const CONFIG = {
  architectures: ["MixtralForCausalLM"],
  model_type: "mixtral",
  _name_or_path: "acme/mixture",
  hidden_size: 4096,
  intermediate_size: 14336,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  num_local_experts: 8,
  num_experts_per_tok: 2,
  vocab_size: 32000,
  max_position_embeddings: 4096,
};

test("in a field of the bar, the undo key takes back the change of the question too", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  const tokens = page.locator("#ask-tokens");
  await tokens.press("ControlOrMeta+a");
  await tokens.pressSequentially("2T");
  await tokens.press("Enter");
  await expect(page).toHaveURL(/t=2T/);
  await answered(page);
  await expect(tokens).toBeFocused();
  await tokens.press("ControlOrMeta+z");
  await expect(tokens).toHaveValue("10T");
  await expect(page).not.toHaveURL(/t=2T/);
  // What is not asked yet is the browser's to undo.
  await tokens.press("End");
  await tokens.pressSequentially("0");
  await expect(tokens).toHaveClass(/typed/);
  await tokens.press("ControlOrMeta+z");
  await expect(tokens).not.toHaveValue(/0T0/);
  await expect(page).not.toHaveURL(/t=2T/);
});

test("the first answer fills the cards in their final order, with little growth and no text that changes its meaning", async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.addInitScript(() => {
    window.seen = { names: [], foots: [], heights: [] };
    const add = (list, text) => text && list.at(-1) !== text && list.push(text);
    const look = () => {
      const names = [...document.querySelectorAll(".gpu-card h2")].map((name) => name.textContent);
      add(window.seen.names, names.join());
      add(window.seen.foots, document.querySelector(".answer-foot > small")?.textContent);
      add(window.seen.heights, document.querySelector(".cards-row")?.offsetHeight);
      requestAnimationFrame(look);
    };
    look();
  });
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await answered(page);
  const { names, foots, heights } = await page.evaluate(() => window.seen);
  expect(names).toEqual([(await cards(page).locator("h2").allTextContents()).join()]);
  // What the launch scripts run is known last, and follows in brackets.
  const meanings = foots.map((foot) => foot.replace(/ \(the launch scripts? runs? [^)]+\)/, ""));
  expect(new Set(meanings).size, foots.join("\n")).toBe(1);
  expect(Math.max(...heights) - Math.min(...heights)).toBeLessThan(60);
});

test("Back undoes one typed value at a time, in the bar and in the drawer", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await enter(page, "#ask-tokens", "5T");
  await enter(page, "#ask-tokens", "2T");
  await enter(page, "#ask-price", "3");
  await page.goBack();
  await expect(page.locator("#ask-price")).toHaveValue("");
  await expect(page.locator("#ask-tokens")).toHaveValue("2T");
  await page.goBack();
  await expect(page.locator("#ask-tokens")).toHaveValue("5T");
  await page.goBack();
  await expect(page.locator("#ask-tokens")).toHaveValue("10T");
  await answered(page);
  // In the drawer, the keys typed into a field are one entry.
  await page.getByText("All settings").click();
  await page.locator(".drawer details").evaluateAll((sections) => sections.forEach((section) => (section.open = true)));
  await page.locator("#field-overhead").pressSequentially("12");
  await page.locator("#field-restart-time").pressSequentially("20m");
  await expect(page).toHaveURL(/restart=20m/);
  await page.goBack();
  await expect(page.locator("#field-restart-time")).toHaveValue("");
  await expect(page.locator("#field-overhead")).toHaveValue("12");
  await page.goBack();
  await expect(page.locator("#field-overhead")).toHaveValue("");
});

test("a changed question dims everything until every GPU type is answered", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  // Records each state in which only some parts are dimmed.
  await page.evaluate(() => {
    const parts = [".answer", ".front", ".layouts", "#details"].map((part) => document.querySelector(part));
    window.dimmed = [];
    const record = () => window.dimmed.push(parts.map((part) => part.classList.contains("stale")).join());
    for (const part of parts) new MutationObserver(record).observe(part, { attributeFilter: ["class"] });
  });
  const before = await verdict(page).textContent();
  await enter(page, "#ask-tokens", "20T");
  await expect(verdict(page)).not.toHaveText(before);
  await answered(page);
  const states = new Set(await page.evaluate(() => window.dimmed));
  expect([...states].sort()).toEqual(["false,false,false,false", "true,true,true,true"]);
});

test("an invalid value keeps the last answer, dimmed and named as such", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await answered(page);
  // What the launch scripts make of the plans comes last.
  await expect(page.locator("#details")).toHaveAttribute("data-scripts", /n=/);
  const before = (await cards(page).first().boundingBox()).y;
  await enter(page, "#ask-deadline", "soon");
  const top = async () => (await cards(page).first().boundingBox()).y;
  await expect(page.locator(".slot-problem")).toBeVisible();
  // One message, which moves nothing.
  await expect(page.locator(".problems")).toHaveCount(1);
  expect(await top()).toBe(before);
  await expect(page.getByText("Until then, the page answers the last valid question.")).toBeVisible();
  for (const part of [".answer", ".front", ".layouts", "#details"]) {
    await expect(page.locator(part).first()).toHaveClass(/stale/);
  }
  await page.goBack();
  await answered(page);
  await expect(page.locator("#details")).not.toHaveClass(/stale/);
});

test("a model of one's own is imported from the list of models", async ({ page }) => {
  // The browser reports choosers only some time after the first listener is added.
  page.on("filechooser", () => {});
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await page.locator("#ask-model").click();
  await page.locator("#ask-model").fill("no such model");
  const own = page.getByRole("option", { name: /^Your own: import/ });
  await expect(own).toBeVisible();
  await expect(page.getByRole("option", { name: "No match" })).toBeVisible();
  await expectAccessible(page);
  await page.keyboard.press("ArrowDown");
  await expect(own).toHaveAttribute("aria-selected", "true");
  const chooser = page.waitForEvent("filechooser", { timeout: 60_000 });
  await page.keyboard.press("Enter");
  await (await chooser).setFiles({ name: "config.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(CONFIG)) });
  await expect(page.locator("#ask-model")).toHaveValue(/mixture/);
  await expect(page.locator(".model-size")).toHaveText("46.7B, 12.9B active");
  await expect(page).toHaveURL(/m=own/);
  // How the file was read is said, until another model is chosen.
  const notice = page.locator(".details > .notice");
  await expect(notice).toContainText("How the file was read:");
  await expect(notice).toContainText("Training sequence length");
  await page.locator("#ask-model").fill("Llama 3.1 8B");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/m=llama3\.1-8b/);
  await expect(notice).toHaveCount(0);
});

test("an imported model without a name has that of its file, or of its kind", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  const { _name_or_path, ...nameless } = CONFIG;
  const buffer = Buffer.from(JSON.stringify(nameless));
  for (const [name, title] of [["our-mixture.json", "our-mixture, 46.7B"], ["config.json", "mixtral, 46.7B"]]) {
    await page.locator("#ask-config").setInputFiles({ name, mimeType: "application/json", buffer });
    await expect(page.locator("#ask-model")).toHaveValue(title);
    await expect(page.locator(".model-size")).toHaveText("12.9B active");
  }
});

test("Enter in a list keeps the focus in its field", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await page.locator("#ask-gpu").focus();
  await page.keyboard.type("h200");
  await page.keyboard.press("Enter");
  await expect(page.locator("#ask-gpu")).toBeFocused();
  await expect(page.getByRole("button", { name: "Remove H200" })).toBeVisible();
  await expect(page.locator("#ask-gpu")).toHaveAttribute("aria-expanded", "false");
  await page.keyboard.press("ArrowDown");
  await expect(page.locator("#ask-gpu")).toHaveAttribute("aria-expanded", "true");
});

test("the chart's points are reached, read out and chosen with the keyboard", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await answered(page);
  await expect(page.locator(".front .main-svg").first()).toBeVisible();
  await chart(page).focus();
  const readout = page.locator(".chart-note [aria-live]");
  await page.keyboard.press("ArrowRight");
  await expect(readout).toHaveText(/^[\d,]+ × B200: \d+ days \(\d+–\d+\)( at the predicted speed, \d+ days \(\d+–\d+\) at the measured speed of NeMo .+)?\. .* MBS \d+/);
  await page.keyboard.press("ArrowUp");
  await expect(readout).toHaveText(/^[\d,]+ × H100: /);
  const first = await readout.textContent();
  await page.keyboard.press("ArrowRight");
  await expect(readout).not.toHaveText(first);
  await expectAccessible(page);
  const [count] = (await readout.textContent()).split(" × ");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(new RegExp(`[?&]n=${count.replaceAll(",", "")}(&|$)`));
  // The table says that it is for another number of GPUs.
  await expect(page.locator(".other-count")).toContainText(`runs on ${count} GPUs`);
  await expect(chart(page)).toBeFocused();
});

test("the question never hides what has the focus", async ({ page }) => {
  // Smooth scrolling passes under the bar.
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await answered(page);
  await page.locator("#details a, #details button").last().focus();
  for (let step = 0; step < 40; step += 1) {
    await page.keyboard.press("Shift+Tab");
    const hidden = await page.evaluate(() => {
      const focused = document.activeElement;
      const bar = document.querySelector(".question").getBoundingClientRect();
      const box = focused.getBoundingClientRect();
      const isInside = focused.closest(".question, .scroll, pre") || box.height > 300;
      return !isInside && box.top < bar.bottom && box.bottom > bar.top && bar.top <= 0 ? focused.outerHTML.slice(0, 120) : null;
    });
    expect(hidden).toBeNull();
  }
});

test("the deadline is dragged, or moved with the arrow keys", async ({ page }) => {
  await page.goto("/?v=1&gs=b200&by=60d");
  await expect(details(page)).toBeVisible();
  await answered(page);
  await expect(rule(page)).toHaveAttribute("aria-valuenow", "60");
  await rule(page).focus();
  await page.keyboard.press("ArrowUp");
  await expect(page.locator("#ask-deadline")).toHaveValue("61d");
  await page.keyboard.press("ArrowUp");
  await expect(page.locator("#ask-deadline")).toHaveValue("62d");
  // The slow end of the range is just in time.
  await expect(cards(page).first().locator(".mini.main .note").first()).toHaveText(/–(60|61|62)$/);
  await expect(rule(page)).toBeFocused();
  // The keys in a row are one entry in the history.
  await page.goBack();
  await expect(page.locator("#ask-deadline")).toHaveValue("60d");
  await answered(page);
  await rule(page).scrollIntoViewIfNeeded();
  const handle = await rule(page).locator("span").first().boundingBox();
  await page.mouse.move(handle.x + handle.width / 2, handle.y + handle.height / 2);
  await page.mouse.down();
  await page.mouse.move(handle.x + handle.width / 2, handle.y - 30, { steps: 5 });
  await expect(rule(page)).not.toHaveAttribute("aria-valuenow", "60");
  const days = await rule(page).getAttribute("aria-valuenow");
  await expect(page.locator("#ask-deadline")).toHaveValue("60d");
  await page.mouse.up();
  expect(Number(days)).toBeGreaterThan(60);
  await expect(page.locator("#ask-deadline")).toHaveValue(`${days}d`);
  await expect(page.locator(".verdict-line > p").first()).toContainText(`the deadline of ${days} days 9 times in 10`);
  await page.locator(".segments").getByRole("button", { name: "Cost", exact: true }).click();
  await expect(rule(page)).toHaveCount(0);
  await page.locator("#ask-goal").selectOption("gpus");
  await page.locator(".segments").getByRole("button", { name: "Days", exact: true }).click();
  await expect(page).not.toHaveURL(/by=/);
  await expect(rule(page)).toHaveCount(0);
});

for (const theme of ["light", "dark"]) {
  test(`the chart is saved as a PNG in the colours of the ${theme} theme`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: theme });
    await page.goto("/");
    await expect(page.locator(".front .main-svg").first()).toBeVisible();
    await answered(page);
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save as PNG" }).click();
    const file = await download;
    expect(file.suggestedFilename()).toBe("plans.png");
    const image = readFileSync(await file.path());
    expect(image.subarray(1, 4).toString()).toBe("PNG");
    expect([image.readUInt32BE(16), image.readUInt32BE(20)]).toEqual([2400, 1350]);
    const corner = await page.evaluate(async (source) => {
      const picture = new Image();
      picture.src = source;
      await picture.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [picture.width, picture.height];
      const context = canvas.getContext("2d");
      context.drawImage(picture, 0, 0);
      return [...context.getImageData(4, 4, 1, 1).data];
    }, `data:image/png;base64,${image.toString("base64")}`);
    expect(corner).toEqual(theme === "dark" ? [26, 30, 37, 255] : [255, 255, 255, 255]);
  });
}

test("seven GPU types have full rows of cards and colours of their own", async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto("/?v=1&gs=a100,h100,h200,gh200,b200,gb200,b300,gb300&nr=512");
  await expect(cards(page)).toHaveCount(8);
  await answered(page);
  const colours = await cards(page).evaluateAll((all) => all.map((card) => getComputedStyle(card).borderTopColor));
  expect(new Set(colours.slice(1)).size).toBeGreaterThanOrEqual(7);
  await page.getByRole("button", { name: "Remove GB300" }).click();
  await expect(cards(page)).toHaveCount(7);
  await answered(page);
  for (const width of [1440, 1100, 800]) {
    await page.setViewportSize({ width, height: 900 });
    const rows = await cards(page).evaluateAll((all) => {
      const right = all[0].parentElement.getBoundingClientRect().right;
      const last = new Map(all.map((card) => [Math.round(card.getBoundingClientRect().top), card.getBoundingClientRect().right]));
      return [...last.values()].map((end) => Math.abs(end - right) < 2);
    });
    expect(rows, `rows at ${width} px`).not.toContain(false);
  }
});

test("on a phone, targets are large enough and the layouts show every column", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await answered(page);
  const small = await page.locator(".plan > :not(#details)").evaluateAll((parts) =>
    parts.flatMap((part) => [...part.querySelectorAll("button, a, select, summary, input:not([hidden])")])
      .filter((target) => target.checkVisibility() && target.getBoundingClientRect().height < 39.5)
      .map((target) => `${target.textContent || target.id}: ${target.getBoundingClientRect().height}`));
  expect(small).toEqual([]);
  const table = await page.locator(".layouts .scroll").boundingBox();
  for (const column of ["Days", "Cost", "Free GiB", "In time"]) {
    const head = await page.locator(".layout-table").getByRole("columnheader", { name: column }).boundingBox();
    expect(head.x + head.width, column).toBeLessThanOrEqual(table.x + table.width + 1);
  }
  // The first three, until all are asked for.
  const rows = page.locator(".layout-table tbody tr:not(.variant)").filter({ visible: true });
  await expect(rows).toHaveCount(3);
  await expectAccessible(page);
  await page.getByText("All layouts").click();
  expect(await rows.count()).toBeGreaterThan(3);
});

test("the most tokens on some GPUs by a deadline are a goal, and follow the limits", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-8b&t=1T&gs=h100&nr=64&by=60d");
  await answered(page);
  await page.locator("#ask-goal").selectOption("Most tokens: GPU count + deadline");
  await expect(page).toHaveURL(/obj=most-tokens/);
  await expect(page).toHaveURL(/&t=/);
  await answered(page);
  const most = async () => {
    const text = await page.locator("#ask-tokens").inputValue();
    expect(text).toMatch(/^[\d.]+[BT]$/);
    return Number.parseFloat(text) * (text.endsWith("T") ? 1000 : 1);
  };
  const before = await most();
  await expect(page.locator(".verdict-line > p").first()).toContainText(/^The limits allow [\d.]+[BT] tokens, rounded down\./);
  await expect(verdict(page)).toHaveText(/^64 H100 GPUs take/);
  await expect(cards(page).first()).toHaveAttribute("data-badge", "Best");
  await enter(page, "#ask-gpu-range", "128");
  await expect(page).toHaveURL(/nr=128/);
  await expect(page).toHaveURL(/&t=/);
  await answered(page);
  expect(await most()).toBeGreaterThan(1.5 * before);
  // A link has the number. Without it, the page finds it again.
  const link = new URL(page.url());
  const tokens = link.searchParams.get("t");
  link.searchParams.delete("t");
  await page.goto(link.href);
  await expect(page.locator("#ask-tokens")).toHaveValue(tokens);
  await expect(page.locator("#ask-goal")).toHaveValue("tokens-by-deadline");
  await page.locator("#ask-goal").selectOption("deadline");
  await expect(page).not.toHaveURL(/obj=/);
});

test("the purchase form changes the assumed price", async ({ page }) => {
  await page.goto("/?v=1&gs=h100,b200&by=60d");
  await answered(page);
  await expect(cards(page).first().locator("header")).toContainText("reserved");
  await page.locator("#ask-purchase").selectOption("owned");
  await expect(page).toHaveURL(/buy=owned/);
  await expect(cards(page).first().locator("header")).toContainText("owned");
  await page.goBack();
  await expect(page.locator("#ask-purchase")).toHaveValue("reserved");
});

test("a chosen form of purchase stays with every goal, and the form in the bar is the one that is used", async ({ page }) => {
  await page.goto("/?v=1&gs=b200&by=60d");
  await answered(page);
  const purchase = page.locator("#ask-purchase");
  const header = cards(page).first().locator("header");
  const share = cards(page).first().locator("p", { hasText: "in all. The cost above" });
  for (const goal of ["deadline", "budget"]) {
    await page.locator("#ask-goal").selectOption(goal);
    await answered(page);
    await expect(purchase).toHaveValue("reserved");
    await expect(header).toContainText("reserved for 3 years, one quote");
    // The run is shorter than the reservation.
    await expect(share).toHaveText(/^GPUs reserved for 3 years cost \$[\d.]+M in all\. The cost above is the run's share of that\.( The budget pays only for that share\.)?$/);
  }
  // The budget that is filled in is enough for the run, and the page says that the reservation costs more.
  await expect(verdict(page)).toHaveText(/^[\d,]+ B200 GPUs take /);
  await expect(page.locator(".verdict-line > p").first()).toContainText(
    /GPUs reserved for 3 years cost \$[\d.]+M in all, more than the budget of \$[\d.]+[kM], which covers only the run's share\./,
  );
  await page.getByText("About the costs").click();
  await expect(page.locator(".more p")).toContainText(
    /On demand, the run costs \$[\d.]+M \(\$[\d.]+–[\d.]+M\)/,
  );
  await expect(verdict(page)).toContainText(
    / if you already hold GPUs reserved for 3 years; on demand, the run costs \$[\d.]+M(, more than the budget)?\.$/,
  );
  // The days are not green.
  await expect(page.locator('[data-figure="days"]')).toHaveClass(/doubtful/);
  await page.getByRole("button", { name: "Use on-demand prices" }).click();
  await expect(page).toHaveURL(/buy=on-demand/);
  for (const goal of ["deadline", "budget"]) {
    await page.locator("#ask-goal").selectOption(goal);
    await answered(page);
    if (goal === "deadline") await expect(verdict(page)).toContainText("(GPUs on demand).");
    await expect(purchase).toHaveValue("on-demand");
    await expect(header).toContainText("on demand");
    await expect(share).toHaveCount(0);
  }
});

test("owned GPUs at a price of 0 cost their energy and storage, and the link keeps their number, form and price", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-8b&t=1T&gs=h100&nr=64&by=60d");
  await answered(page);
  await page.locator("#ask-purchase").selectOption("owned");
  await enter(page, "#ask-price", "0");
  await expect(page).toHaveURL(/price=0/);
  await answered(page);
  for (const again of [false, true]) {
    if (again) await page.reload();
    await answered(page);
    await expect(page).toHaveURL(/nr=64/);
    await expect(page).toHaveURL(/buy=owned/);
    await expect(page.locator("#ask-gpu-range")).toHaveValue("64");
    await expect(page.locator("#ask-purchase")).toHaveValue("owned");
    await expect(page.locator("#ask-price")).toHaveValue("0");
    await expect(page.locator(".slot-problem")).toHaveCount(0);
    await expect(cards(page).first().locator("header")).toContainText("$0 per GPU-hour; only energy and storage are counted");
    await expect(cards(page).first().locator(".mini.main > div").nth(1)).toHaveText(/^Cost\$[1-9][\d.,]*k? \$[1-9]/);
    await expect(verdict(page)).toHaveText(/^64 H100 GPUs take about [\d.]+ days and cost \$[1-9][\d.,]*k?\.$/);
  }
  // The details, and a budget, count the same.
  await expect(page.locator('[data-figure="cost"]').first()).toHaveText(/^\$[1-9]/);
  await page.locator("#ask-goal").selectOption("gpus-for-budget");
  await answered(page);
  await expect(page.locator("#ask-price")).toHaveValue("0");
  await expect(verdict(page)).toHaveText(/^64 H100 GPUs take [\d.]+ days and cost \$[1-9]/);
});

test("the last GPU type can be removed, and another one is asked for", async ({ page }) => {
  await page.goto("/?v=1&gs=h200&nr=512");
  await answered(page);
  await page.getByRole("button", { name: "Remove H200" }).click();
  await expect(page.getByRole("button", { name: /^Remove / })).toHaveCount(0);
  await expect(page.locator(".slot-problem")).toContainText("Add a GPU type.");
  // The list would cover the message.
  await expect(page.locator("#ask-gpu")).toHaveAttribute("aria-expanded", "false");
  // Until then, the page answers the last question, and says so.
  await expect(page.getByText("Until then, the page answers the last valid question.")).toBeVisible();
  for (const part of [".answer", ".front", ".layouts", "#details"]) {
    await expect(page.locator(part).first()).toHaveClass(/stale/);
  }
  await page.keyboard.press("Escape");
  await expectAccessible(page);
  await page.getByRole("button", { name: "Add B200" }).click();
  await expect(page.locator(".slot-problem")).toHaveCount(0);
  await expect(page).toHaveURL(/gs=b200/);
  await answered(page);
  await expect(verdict(page)).toHaveText(/^512 B200 GPUs take /);
  // The removed one can be added again, too.
  await page.getByRole("button", { name: "Remove B200" }).click();
  await page.locator("#ask-gpu").fill("b200");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("button", { name: "Remove B200" })).toBeVisible();
  await expect(page.locator(".answer")).not.toHaveClass(/stale/);
});

test("tokens may be written in words, a name finds the measured model, and an unknown one goes back to the previous", async ({ page }) => {
  await page.goto("/?v=1&m=qwen3-235b-a22b&t=14.8%20trillion&gs=h100&by=60d");
  await answered(page);
  await expect(page.locator(".slot-problem")).toHaveCount(0);
  await page.locator("#ask-model").fill("deepseek");
  await page.keyboard.press("Enter");
  await expect(page.locator("#ask-model")).toHaveValue("DeepSeek-V3");
});

test("models with the typed size come before those whose size contains it", async ({ page }) => {
  await page.goto("/");
  await answered(page);
  await page.locator("#ask-model").fill("8B");
  const options = page.getByRole("option");
  await expect(options.first()).toContainText("Llama 3.1 8B");
  const titles = await options.allTextContents();
  const place = (title) => titles.findIndex((text) => text.startsWith(title));
  expect(place("Qwen3 8B")).toBeGreaterThan(0);
  // It has 14.8B parameters.
  expect(place("Qwen3 14B")).toBeGreaterThan(place("Qwen3 8B"));
  expect(place("Megatron 1008B")).toBeGreaterThan(place("Qwen3 8B"));
});

test("an amount may be typed with a dollar sign, which is shown once", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-8b&t=1T&gs=h100&by=60d&bud=1M");
  await answered(page);
  await enter(page, "#ask-budget", "$4M");
  await expect(page).toHaveURL(/bud=(\$|%24)4M/);
  await expect(page.locator("#ask-budget")).toHaveValue("4M");
  await expect(page.locator(".ask-summary span")).toHaveText(/for \$4M$/);
});

for (const width of [1280, 1440]) {
  test(`the question is one line on a window of ${width} px`, async ({ page }) => {
    await page.setViewportSize({ width, height: 900 });
    for (const goal of ["by=60d", "bud=4M", "nr=1024"]) {
      await page.goto(`/?v=1&m=qwen3-235b-a22b&t=10T&gs=h100,b200&${goal}`);
      const slots = page.locator(".ask > .slot");
      await expect(slots).toHaveCount(5);
      const asked = await boxes(slots);
      expect(new Set(asked.map(({ top }) => Math.round(top))).size, goal).toBe(1);
      const bar = await page.locator(".ask").boundingBox();
      expect(asked.at(-1).right, goal).toBeLessThanOrEqual(bar.x + bar.width + 1);
    }
  });
}

for (const width of [390, 768, 1440, 1920]) {
  test(`no field of the question is cut on a window of ${width} px`, async ({ page }) => {
    await page.setViewportSize({ width, height: 900 });
    for (const question of ["gs=h100&nr=1024&by=60d", "gs=h100&nr=512,1024,2048&by=2027-03-01&bud=4M&odds=even&buy=on-demand"]) {
      await page.goto(`/?v=1&m=qwen3-235b-a22b&t=10T&${question}`);
      await expect(page.locator("#ask-deadline")).toHaveCount(1);
      if (width < 720) await page.locator("#ask-open").click();
      const cut = await page.locator(".ask").evaluate((ask) =>
        [...ask.querySelectorAll("select, input[type=text]")].filter((field) => {
          if (field.tagName === "INPUT") return field.scrollWidth > field.clientWidth;
          const shown = field.offsetWidth;
          field.style.cssText = "flex: none; max-width: none; width: max-content";
          const needed = field.offsetWidth;
          field.style.cssText = "";
          return needed > shown + 1;
        }).map((field) => field.id));
      expect(cut, question).toEqual([]);
    }
  });
}

for (const width of [1280, 1440]) {
  test(`five GPU types with one to three limits take two lines on a window of ${width} px`, async ({ page }) => {
    await page.setViewportSize({ width, height: 900 });
    const many = "h100,h200,b200,gb200,gb300";
    for (const goal of ["nr=1024&by=60d&bud=4M", "by=60d&bud=4M", "nr=1024&bud=4M", "by=60d"]) {
      await page.goto(`/?v=1&m=qwen3-235b-a22b&t=10T&gs=${many}&${goal}`);
      const slots = page.locator(".ask > .slot");
      await expect(slots).toHaveCount(5);
      const asked = await boxes(slots);
      // No slot breaks within itself either.
      expect(new Set(asked.map(({ top }) => Math.round(top))).size, goal).toBe(2);
      expect(new Set(asked.map(({ height }) => Math.round(height))).size, goal).toBe(1);
    }
  });
}

test("a text that is typed and not asked yet is marked", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await answered(page);
  const tokens = page.locator("#ask-tokens");
  const dimmed = () => page.locator(".answer").evaluate((answer) => getComputedStyle(answer).opacity !== "1");
  await tokens.fill("125T");
  await expect(tokens).toHaveClass(/typed/);
  expect(await dimmed()).toBe(true);
  await tokens.fill("10T");
  await expect(tokens).not.toHaveClass(/typed/);
  await enter(page, "#ask-tokens", "12T");
  await expect(tokens).not.toHaveClass(/typed/);
  expect(await dimmed()).toBe(false);
});

test("the first arrow down after typing stays on the first match", async ({ page }) => {
  await page.goto("/");
  await answered(page);
  await page.locator("#ask-model").fill("kimi k2");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/m=kimi-k2(&|$)/);
});

test("a cleared field has its usual value again", async ({ page }) => {
  await page.goto("/");
  await answered(page);
  await page.locator("#ask-tokens").fill("");
  await page.keyboard.press("Tab");
  await expect(page.locator("#ask-tokens")).toHaveValue("10T");
  await page.locator("#ask-model").fill("");
  await page.keyboard.press("Enter");
  await expect(page.locator("#ask-model")).toHaveValue("Llama 3.1 70B");
  await expect(verdict(page)).toContainText("take about");
});

test("on a phone, Escape closes the list, then the sheet, and the focus goes back to its button", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("/");
  await answered(page);
  await page.locator("#ask-open").click();
  await page.locator("#ask-model").click();
  await expect(page.getByRole("listbox").first()).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("listbox")).toHaveCount(0);
  await expect(page.locator("#ask-tokens")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.locator("#ask-tokens")).toBeHidden();
  await expect(page.locator("#ask-open")).toBeFocused();
});

test("numbers of the cards have three digits at most, and the layouts have a cost", async ({ page }) => {
  await page.goto("/");
  await answered(page);
  const energy = cards(page).first().locator(".mini > div").filter({ hasText: "Energy" });
  await expect(energy).toHaveText(/^Energy[\d.,]+ [GM]Wh [\d.,]+–[\d.,]+$/);
  await expect(energy).toBeHidden();
  // One switch opens the figures of all cards, so that they can be read across.
  await cards(page).first().getByRole("button", { name: "More figures" }).click();
  for (const card of await cards(page).all()) {
    await expect(card.getByRole("button", { name: "More figures" })).toHaveAttribute("aria-expanded", "true");
    await expect(card.locator(".more-figures")).toBeVisible();
  }
  await expectAccessible(page);
  // Each row begins on a separate line, in the first column of its list.
  for (const list of await cards(page).first().locator(".mini").all()) {
    const names = await boxes(list.locator("dt"));
    expect(new Set(names.map(({ x }) => Math.round(x))).size).toBe(1);
    expect(new Set(names.map(({ y }) => Math.round(y))).size).toBe(names.length);
  }
  // Ranges are in a column of their own.
  const ranges = await boxes(cards(page).first().locator(".mini.main .note"));
  expect(new Set(ranges.map(({ x }) => Math.round(x))).size).toBe(1);
  const texts = (await cards(page).first().locator(".mini").allInnerTexts()).join("\n");
  // GPUs are counted exactly.
  const numbers = texts.replace(/[\d,]+ GPUs|\+[\d,]+ spare|BF16/g, "").match(/\d[\d,.]*/g);
  for (const number of numbers) {
    expect(number.replace(/[.,]/g, "").replace(/^0+|0+$/g, "").length, number).toBeLessThanOrEqual(3);
  }
  await expect(page.locator(".layout-table tbody tr").first()).toContainText(/\$[\d.]+M/);
  await page.locator(".layout-table").getByRole("button", { name: "Cost" }).click();
  await expect(page).toHaveURL(/order=cost/);
});

test("Undo and the commands are beside the headline, and a problem is explained before its repair", async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto("/");
  await answered(page);
  await page.getByRole("button", { name: /^Commands/ }).click();
  await expect(page.getByRole("dialog", { name: "Commands" })).toBeVisible();
  await page.keyboard.press("Escape");
  const bar = page.locator("form.question");
  const { height } = await bar.boundingBox();
  await page.locator("#ask-deadline").fill("soon");
  await page.keyboard.press("Enter");
  const problem = page.locator(".slot-problem");
  await expect(problem).toHaveText(/^Deadline must be .*Use 60 days$/);
  // The fields stay on one line, above the problem.
  const line = (await problem.boundingBox()).height;
  expect((await bar.boundingBox()).height).toBeLessThan(height + line + 20);
  const undo = await page.getByRole("button", { name: "Undo" }).boundingBox();
  const edge = await bar.boundingBox();
  expect(undo.y - (edge.y + edge.height)).toBeLessThan(40);
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page.locator("#ask-deadline")).toHaveValue("60d");
});
