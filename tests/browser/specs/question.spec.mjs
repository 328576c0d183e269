import { expect, expectAccessible, test, verdict } from "../fixtures.mjs";

const rows = (page) => page.locator(".layout-table .row-button");

test("a first visit shows an answered question, and a layout can be chosen and left again", async ({ page }) => {
  await page.goto("/");
  await expect(verdict(page)).toHaveText(/^[\d,]+ B200 GPUs take about [\d.]+ days and cost \$[\d.]+M with GPUs reserved for 3 years, or \$[\d.]+M on demand\.$/);
  // The best, at most ten, and the published one.
  await expect(page.locator(".layout-table").getByText("Published layout")).toHaveCount(1);
  expect(await rows(page).count()).toBeGreaterThan(5);
  await rows(page).nth(3).click();
  await expect(rows(page).nth(3)).toHaveAttribute("aria-pressed", "true");
  await expect(page).toHaveURL(/by=60d/);
  await page.goBack();
  await expect(page).toHaveURL("/");
  await expect(rows(page).first()).toHaveAttribute("aria-pressed", "true");
  await expectAccessible(page);
});

test("another deadline is answered, and an invalid one keeps the answer", async ({ page }) => {
  await page.goto("/?v=1&by=60d&gs=b200");
  const answer = /^[\d,]+ B200 GPUs take about 5\d days/;
  await expect(verdict(page)).toHaveText(answer);
  await page.locator("#ask-deadline").fill("soon");
  await page.keyboard.press("Enter");
  await expect(page.locator(".slot-problem")).toContainText("60d, 8w or 2mo");
  await expect(verdict(page)).toHaveText(answer);
  await page.getByRole("button", { name: "Use 60 days" }).click();
  await expect(page.locator(".slot-problem")).toHaveCount(0);
});

test.describe("where the date is not that of UTC", () => {
  test.use({ timezoneId: "Pacific/Kiritimati" });
  test("the days to a date are counted from the local date", async ({ page }) => {
    await page.clock.setFixedTime(new Date("2026-11-28T20:00:00Z"));
    await page.goto("/?v=1&by=60d&gs=b200");
    await page.locator("#ask-deadline").fill("2020-01-01");
    await page.keyboard.press("Enter");
    await expect(page.locator(".slot-problem")).toContainText("after today, 2026-11-29");
  });
});

test("a deadline may be a date, which the link keeps", async ({ page }) => {
  const later = new Date(Date.now() + 90 * 86_400_000);
  const date = new Date(later.getTime() - later.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
  await page.goto(`/?v=1&by=${date}&gs=b200`);
  await expect(page.locator("#ask-deadline")).toHaveValue(date);
  await expect(page.locator(".verdict-line > p").first()).toContainText(
    // Midnight may pass meanwhile.
    /the deadline of (89|90) days/,
  );
  await page.locator(".layout-table .row-button").nth(3).click();
  await expect(page).toHaveURL(new RegExp(`by=${date}`));
  await page.locator("#ask-deadline").fill("2020-01-01");
  await page.keyboard.press("Enter");
  await expect(page.locator(".slot-problem")).toContainText("must be a date from 1d to 3650d after today, 20");
});
