import { readFileSync } from "node:fs";

import { boxes, cards, details, expect, expectAccessible, test, verdict } from "../fixtures.mjs";

test("saved plans stand side by side, survive a reload and can be exported", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  for (const card of [0, 1]) await cards(page).nth(card).getByRole("button", { name: /^Save/ }).click();
  const saved = page.getByRole("region", { name: "Saved plans" }).first();
  await expect(saved.getByRole("columnheader")).toHaveCount(2);
  // Both train the same model, on different GPUs.
  await expect(saved.locator("tr.differs").filter({ hasText: "Precision" })).toBeVisible();
  await expect(saved.getByRole("columnheader").first()).toContainText(/Llama 3\.1 70B · .*MBS/);
  await expect(saved.locator("tbody tr:not(.differs)")).toHaveCount(0);
  await saved.getByRole("button", { name: "Only differences" }).click();
  await expect(saved.locator("tbody tr:not(.differs)").filter({ hasText: "10T" })).toBeVisible();
  await expectAccessible(page);
  await page.reload();
  await expect(saved.getByRole("columnheader")).toHaveCount(2);
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "CSV", exact: true }).click();
  const lines = readFileSync(await (await download).path(), "utf8").trim().split("\n");
  expect(lines).toHaveLength(3);
  expect(lines[0]).toContain("model,tokens,gpu,gpus,");
  expect(lines[1]).toMatch(/^Llama 3.1 70B,10000000000000,/);
  await page.getByRole("button", { name: "Copy as Markdown" }).click();
  await expect(page.getByRole("button", { name: "Copied" })).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain("| Llama 3.1 70B |");
  await page.getByRole("button", { name: /^Remove [\d,]+ × H100$/ }).click();
  await expect(saved.getByRole("columnheader")).toHaveCount(1);
});

test("a link carries the plans that are compared, and leaves the recipient's own plans alone", async ({ page, browser, baseURL }) => {
  await page.goto("/?v=1&m=llama3.1-8b&t=1T&gs=h100,b200&by=20d&price=3");
  await expect(details(page)).toBeVisible();
  for (const card of [0, 1]) await cards(page).nth(card).getByRole("button", { name: /^Save/ }).click();
  const panel = (of) => of.getByRole("region", { name: "Saved plans" }).first();
  await expect(panel(page).getByRole("columnheader")).toHaveCount(2);
  const rows = (of) => panel(of).locator("tbody tr").allInnerTexts();
  // The rows say what the launch scripts do, once that is known.
  await expect(page.locator("#details")).toHaveAttribute("data-scripts", /n=/);
  const saved = await rows(page);
  await page.getByRole("button", { name: "Copy comparison link" }).click();
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toContain("plans=");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  // Another person's browser.
  const context = await browser.newContext({ baseURL, serviceWorkers: "block" });
  const other = await context.newPage();
  await other.goto(link);
  await expect(panel(other).getByRole("columnheader")).toHaveCount(2);
  await expect(panel(other).getByRole("status")).toContainText("They are kept in the link");
  await expect.poll(() => rows(other)).toEqual(saved);
  // A plan that is added there is kept in the link, too.
  await other.locator('.layout-table .save[aria-pressed="false"]').first().click();
  await expect(other.getByRole("status").filter({ hasText: "Added" })).toContainText("3 of 4 plans in the link.");
  await other.reload();
  await expect(panel(other).getByRole("columnheader")).toHaveCount(3);
  await other.goto("/");
  await expect(details(other)).toBeVisible();
  await expect(panel(other)).toHaveCount(0);
  await context.close();
});

test("the copied link holds the whole plan, whatever is assumed later", async ({ page, context }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await expect(page.locator('[data-figure="cost"]')).toContainText("$");
  await page.getByRole("button", { name: "Copy link" }).click();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const query = new URL(link).searchParams;
  expect(["m", "t", "gs", "by", "gpu", "n", "gbs", "d"].filter((key) => !query.has(key))).toEqual([]);
  const other = await context.newPage();
  await other.goto(link);
  await expect(verdict(other)).toHaveText(await verdict(page).textContent());
});

test("saving says what happened, and why a fifth plan is not saved", async ({ page }) => {
  await page.goto("/?v=1&gs=b200&nr=512");
  // A star on each of the best layouts, and on the published one.
  const stars = page.locator(".layout-table .save");
  await expect(page.locator(".layout-table").getByText("Published layout")).toHaveCount(1);
  await expect(stars.nth(4)).toBeVisible();
  await stars.nth(0).click();
  const note = page.getByRole("status").filter({ hasText: "plans" });
  await expect(note).toContainText("Saved: Llama 3.1 70B on 512 × B200. 1 of 4 plans.");
  for (const row of [1, 2, 3]) await stars.nth(row).click();
  // It says why it can't, so it is not disabled for everybody, but Playwright would wait for a click.
  await stars.nth(4).press("Enter");
  await expect(note).toContainText("Remove one to save another.");
  await expect(stars.nth(4)).toHaveAttribute("aria-pressed", "false");
  await note.getByRole("button", { name: "See saved plans" }).click();
  await expect(page.locator("#saved-title")).toBeFocused();
  await expectAccessible(page);
});

test("a plan that was chosen is shared by its link", async ({ page, context }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await page.locator(".row-button").nth(4).click();
  await expect(page.locator(".row-button").nth(4)).toHaveAttribute("aria-pressed", "true");
  await expect(page.locator(".figures").first()).toHaveText(/days/);
  const other = await context.newPage();
  await other.goto(page.url());
  await expect(other.locator(".figures").first()).toHaveText(/days/);
  const figures = (of) => of.locator(".figures").first().innerText();
  await expect.poll(async () => (await figures(other)) === (await figures(page))).toBe(true);
});

test("a link to the former Search page opens the same question", async ({ page }) => {
  await page.goto("/search?v=1&by=45d&gs=b200");
  await expect(page.locator(".verdict-line > p").first()).toContainText(
    /The plan meets the deadline of 45 days 9 times in 10 at the predicted speed, and (about|more than) \d times in 10 at the measured speed of .+ \(\d+ days\), where 5 times in 10 is required\./,
  );
  await expect(cards(page).first().locator(".days > small")).toHaveText(
    /^Meets the deadline .+ in 10 at the predicted speed \(9 required\), .+ in 10 at the measured speed \(5 required\): \d+ days \(\d+–\d+\)$/,
  );
  await expect(page).toHaveURL(/\/\?v=1&gs=b200&by=45d|\/\?v=1&by=45d&gs=b200/);
});

for (const [width, height] of [[1440, 900], [390, 844]]) {
  test(`the note about a saved plan covers nothing to click on a window of ${width} px`, async ({ page }) => {
    await page.setViewportSize({ width, height });
    await page.goto("/");
    await expect(details(page)).toBeVisible();
    await expect(page.getByRole("button", { name: "Copy link" })).toBeVisible();
    await cards(page).first().getByRole("button", { name: /^Save/ }).click();
    await expect(page.locator(".passing p")).toContainText("Saved:");
    const covered = await page.locator(".passing:has(p)").evaluate((note) => {
      const own = note.getBoundingClientRect();
      const controls = [...document.querySelectorAll("a, button, input, select, summary")];
      const isCovered = (control) => {
        const box = control.getBoundingClientRect();
        const overlaps = box.left < own.right && box.right > own.left && box.top < own.bottom && box.bottom > own.top;
        return overlaps && box.width > 0 && control.checkVisibility() && !note.contains(control);
      };
      return controls.filter(isCovered).map((control) => control.textContent);
    });
    expect(covered).toEqual([]);
  });
}

test("a note is dismissed by its button and by Escape", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  const notes = page.locator(".passing p");
  // Sooner than it disappears by itself.
  const gone = () => expect(notes).toHaveCount(0, { timeout: 2000 });
  await cards(page).first().locator(".save").click();
  await notes.getByRole("button", { name: "Dismiss" }).click();
  await gone();
  await cards(page).first().locator(".save").click();
  await expect(notes).toHaveCount(1);
  await page.keyboard.press("Escape");
  await gone();
});

test("Escape dismisses a note before it closes the settings", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  const [notes, drawer] = [page.locator(".passing p"), page.locator(".drawer")];
  await page.locator("#all-settings").press("Enter");
  await cards(page).first().locator(".save").click();
  await expect(notes).toHaveCount(1);
  await page.locator("#field-tp").focus();
  await page.keyboard.press("Escape");
  await expect(notes).toHaveCount(0, { timeout: 2000 });
  await expect(drawer).toHaveAttribute("open", "");
  await page.keyboard.press("Escape");
  await expect(drawer).not.toHaveAttribute("open");
});

test("Escape closes the command palette before it dismisses a note", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  const [notes, palette] = [page.locator(".passing p"), page.getByRole("dialog", { name: "Commands" })];
  // The first time, it is fetched; the note stays only for seconds.
  await page.keyboard.press("Control+k");
  await expect(palette).toBeVisible();
  await page.keyboard.press("Escape");
  await cards(page).first().locator(".save").click();
  await page.keyboard.press("Control+k");
  await expect(palette).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(palette).toBeHidden();
  await expect(notes).toHaveCount(1);
  await page.keyboard.press("Escape");
  await expect(notes).toHaveCount(0, { timeout: 2000 });
});

test("two notes at once are drawn one above the other", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await expect(page.locator(".shown")).toBeVisible();
  await cards(page).first().getByRole("button", { name: /^Save/ }).click();
  await page.getByRole("button", { name: "Show this plan" }).first().click();
  const notes = page.locator(".passing p");
  await expect(notes).toHaveCount(2);
  const [saved, shown] = await boxes(notes);
  expect(shown.y + shown.height).toBeLessThanOrEqual(saved.y);
});
