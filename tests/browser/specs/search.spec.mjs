import { expect, expectAccessible, test } from "../fixtures.mjs";

const verdict = (page) => page.locator("#verdict");
const rows = (page) => page.locator(".layout-table th a");

test("a first visit shows an answered question, and a plan opens on the Plan page", async ({ page }) => {
  await page.goto("/search");
  await expect(verdict(page)).toContainText("B200 needs");
  await expect(rows(page)).toHaveCount(10);
  await expect(page.locator(".gpu-card")).toHaveCount(2);
  await expectAccessible(page);
  const layout = await rows(page).nth(1).textContent();
  await rows(page).nth(1).click();
  await expect(page).toHaveURL(/\/\?v=1&m=llama3\.1-70b/);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Llama 3.1 70B");
  // The plan's own micro batch size and degrees are those of the row.
  const typed = async (label) => page.getByLabel(label, { exact: true }).inputValue();
  expect(layout).toContain(`PP ${await typed("PP")}`);
  await page.goBack();
  await expect(verdict(page)).toContainText("B200 needs");
});

test("another deadline is answered, and an invalid one keeps the answer", async ({ page }) => {
  await page.goto("/search?v=1&by=60d&gs=b200");
  await expect(verdict(page)).toContainText("within 60 days");
  await page.locator("#ask-deadline").fill("soon");
  await page.keyboard.press("Enter");
  await expect(page.locator(".slot-problem")).toContainText("60d or 8w");
  await expect(verdict(page)).toContainText("within 60 days");
  await page.getByRole("button", { name: "Use 60d" }).click();
  await expect(page.locator(".slot-problem")).toHaveCount(0);
});

test("a deadline that can't be met names the fastest plan", async ({ page }) => {
  await page.goto("/search?v=1&m=llama3.1-405b&t=15T&gs=h100&by=2d");
  await expect(verdict(page)).toContainText("No plan finishes within 2 days");
  await expect(page.locator(".gpu-card .missed")).toContainText("This is its fastest plan.");
});

test("another GPU type's layouts are listed", async ({ page }) => {
  await page.goto("/search");
  await expect(page.locator("#layouts-title")).toContainText("B200");
  await page.getByRole("button", { name: "Show layouts" }).click();
  await expect(page.locator("#layouts-title")).toContainText("H100");
  await expect(page).toHaveURL(/show=h100/);
});
