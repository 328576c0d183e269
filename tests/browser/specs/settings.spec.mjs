import { cardOf, cards, details, expect, expectAccessible, test, verdict } from "../fixtures.mjs";

test("a lock that no layout can hold is named, without a word about a launch script", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-70b&t=10T&gs=h100&by=60d&lock=tp%3D16");
  await expect(cards(page).first()).toContainText("TP 16 is too large: jobs use 8 GPUs of an NVLink domain, so TP is at most 8.");
  await expect(page.locator(".answer")).not.toContainText("launch script");
  await expect(page.locator(".answer")).not.toContainText("for ×");
});

test("a lock that contradicts the model is refused with what works, and can be cleared", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-70b&t=10T&gs=h100&by=60d&lock=tp%3D3");
  await expect(page.locator(".slot-problem")).toContainText("attention heads (64) can't be divided by TP 3. Use 2 or 4.");
  await page.getByRole("button", { name: "Clear it" }).click();
  await expect(page.locator(".slot-problem")).toHaveCount(0);
  await expect(cards(page).first()).toBeVisible();
});

test("a custom GPU joins the question", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-70b&t=10T&gs=h100&nr=1024");
  await expect(details(page)).toBeVisible();
  await page.getByText("All settings").click();
  await page.locator(".drawer details").evaluateAll((sections) => sections.forEach((section) => (section.open = true)));
  await page.locator("#gpu-hbm_gb").fill("141");
  await expect(cards(page).first()).toContainText("of 141 GiB free");
});

test("a lock asks for the best plan with it", async ({ page }) => {
  await page.goto("/?v=1&m=llama3.1-70b&t=10T&gs=h100%2Cb200&by=60d");
  await cardOf(page, "H100").getByRole("button", { name: "Show this plan" }).click();
  await expect(details(page)).toBeVisible();
  await page.getByText("All settings").click();
  await page.locator("#field-tp").fill("3");
  // Otherwise unchanged, the plan can't run: the attention heads can't be divided by 3.
  await expect(verdict(page)).toHaveText("This plan can't run.");
  await page.locator("#field-tp").fill("2");
  // What differs from the best plan on H100 is kept.
  await page.getByRole("button", { name: /^Find the best plan with TP 2/ }).click();
  await expect(cardOf(page, "H100").locator(".layout-line")).toContainText("TP 2");
  await expect(page.getByRole("button", { name: "Show the best plan" })).toHaveCount(0);
  await expect(page.locator(".layout-table tbody tr").first()).toContainText("TP 2");
});

test("a lock follows the value that is typed into its field", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await page.getByText("All settings").click();
  await page.locator("#field-tp").fill("8");
  await page.getByRole("button", { name: "Lock TP", exact: true }).click();
  await expect(page.locator(".locks")).toContainText("TP 8");
  await page.locator("#field-tp").fill("4");
  await expect(page.locator(".locks")).toContainText("TP 4");
  await expect(page.getByRole("button", { name: "Lock TP", exact: true })).toHaveText("Locked: 4");
});

test("the button beside the headline opens all settings", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await page.getByRole("button", { name: "Settings", exact: true }).click();
  await expect(page.locator(".drawer")).toHaveAttribute("open", "");
  await expect(page.locator("#all-settings")).toBeFocused();
});

for (const width of [1600, 1024]) {
  test(`Escape closes the settings in a window of ${width} pixels and returns the focus`, async ({ page }) => {
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/");
    await expect(details(page)).toBeVisible();
    const drawer = page.locator(".drawer");
    const heading = page.locator("#all-settings");
    const closes = async (focused = heading) => {
      await expect(drawer).toHaveAttribute("open", "");
      await page.keyboard.press("Escape");
      await expect(drawer).not.toHaveAttribute("open");
      await expect(focused).toBeFocused();
    };
    const button = page.getByRole("button", { name: "Settings", exact: true });
    await button.click();
    await closes(button);
    await heading.press("Enter");
    await page.locator("#field-tp").focus();
    await closes();
    await heading.press("Enter");
    await heading.evaluate((summary) => summary.blur());
    await closes();
    // Elsewhere, Escape leaves them open.
    await heading.press("Enter");
    await page.locator("#ask-tokens").focus();
    await page.keyboard.press("Escape");
    await expect(drawer).toHaveAttribute("open", "");
  });
}

test("the command palette finds and runs commands", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  await page.keyboard.press("?");
  const palette = page.getByRole("dialog", { name: "Commands" });
  await expect(palette).toBeVisible();
  await expectAccessible(page);
  await page.keyboard.type("chart energy");
  await page.keyboard.press("Enter");
  await expect(palette).toBeHidden();
  await expect(page).toHaveURL(/y=energy/);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("memory");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("tab", { name: "Memory" })).toHaveAttribute("aria-selected", "true");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("saved plans");
  await expect(palette.getByRole("option")).toHaveText(["Go to the saved plans (none is saved yet: a star saves one)"]);
  await page.keyboard.press("Enter");
  await expect(page.locator(".gpu-card .save").first()).toBeFocused();
  await page.locator("#ask-tokens").focus();
  await page.keyboard.type("?");
  await expect(palette).toBeHidden();
});

test("commands are found on every page", async ({ page }) => {
  const palette = page.getByRole("dialog", { name: "Commands" });
  for (const path of ["/benchmarks", "/compare"]) {
    await page.goto(path);
    // The keys are heard once the program has started.
    await expect(async () => {
      await page.keyboard.press("Control+k");
      await expect(palette).toBeVisible({ timeout: 1000 });
    }).toPass();
    await expectAccessible(page);
    await page.keyboard.type("go plan");
    await expect(palette.getByRole("option")).toHaveText(["Go to Plan"]);
    await page.keyboard.press("Enter");
    await expect(page).toHaveURL(/\/(\?.*)?$/);
    await expect(page.locator("#verdict")).toBeVisible();
  }
});

test("a locked value is kept by the search, and removing the lock restores the best plan", async ({ page }) => {
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  const best = await cardOf(page, "B200").locator(".layout-line").textContent();
  await page.getByText("All settings").click();
  await page.locator("#field-tp").fill("8");
  await page.getByRole("button", { name: "Lock TP", exact: true }).click();
  await expect(page.locator(".locks")).toContainText("TP 8");
  await expect(cardOf(page, "B200").locator(".layout-line")).toContainText("TP 8");
  await page.locator(".locks button").click();
  await expect(cardOf(page, "B200").locator(".layout-line")).toHaveText(best);
});

test("steppers change the layout, and the memory follows", async ({ page }) => {
  await page.goto("/?v=1&r=llama3.1-405b/h100/fp8/512@25.04&tab=memory");
  await expect(page.locator(".fit")).toContainText("free");
  const before = await page.locator(".fit").textContent();
  await expect(page.locator(".estimate")).toContainText(/A checkpoint takes up 5,\d+ GB: 14 bytes per parameter/);
  await page.getByRole("button", { name: "Halve CP" }).click();
  await expect(page).toHaveURL(/cp=1/);
  await expect(page.locator(".fit")).not.toHaveText(before);
});

test("a wrong value of a search is marked in the drawer, which opens itself", async ({ page }) => {
  await page.goto("/?v=1&obj=cheap");
  await expect(page.locator("#field-objective-note .error")).toBeVisible();
});

test("on a phone, the settings cover the page until they are closed", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("/");
  await expect(details(page)).toBeVisible();
  const button = page.getByRole("button", { name: "Settings", exact: true });
  await button.click();
  const heading = page.locator("#all-settings");
  await expect(heading).toBeFocused();
  expect((await page.locator(".drawer").boundingBox()).width).toBe(390);
  // What is covered takes no focus.
  await expect(verdict(page)).toBeHidden();
  await expect(button).toBeHidden();
  await expectAccessible(page);
  await heading.click();
  await expect(button).toBeFocused();
  await expect(verdict(page)).toBeVisible();
});
