import { expect, test } from "../fixtures.mjs";

const rows = (page) => page.locator("table.matrix tbody tr");
const cells = (page, name) => page.locator(`table.matrix td[data-label="${name}"]`);

test("the matrix filters, sorts and keeps both in its address", async ({ page }) => {
  await page.goto("/recipes");
  await expect(rows(page)).toHaveCount(123);
  await page.getByLabel("Model").selectOption("llama3.1-70b");
  await expect(rows(page)).toHaveCount(12);
  await page.getByLabel("Precision").selectOption("fp8");
  await expect(rows(page)).toHaveCount(6);

  await page.getByRole("button", { name: "Step, s" }).click();
  await expect(cells(page, "Step, s").first()).toHaveText("9.86");
  await page.getByRole("button", { name: "Step, s" }).click();
  await expect(cells(page, "Step, s").first()).toHaveText("10.15");
  await expect(page.getByRole("columnheader", { name: "Step, s" })).toHaveAttribute("aria-sort", "descending");
  await expect(page).toHaveURL("/recipes?v=1&m=llama3.1-70b&d=fp8&sort=-step-time");

  await page.reload();
  await expect(rows(page)).toHaveCount(6);
  await expect(cells(page, "Step, s").first()).toHaveText("10.15");
});

test("what was not measured comes last however the table is sorted", async ({ page }) => {
  for (const sort of ["mfu", "-mfu"]) {
    await page.goto(`/recipes?v=1&sort=${sort}`);
    await expect(cells(page, "MFU, %").first()).not.toHaveText("–");
    await expect(cells(page, "MFU, %").last()).toHaveText("–");
  }
});

test("the chart follows the filter and compares releases by one convention", async ({ page }) => {
  await page.goto("/recipes?v=1&m=nemotron4-340b&d=bf16&meas=yes");
  await expect(page.locator(".chart .scatterlayer .trace")).toHaveCount(2);
  const table = page.locator("table.numbers");
  await expect(table).toContainText("MFU, % (same counting)");
  await expect(table.getByRole("row", { name: /^256/ })).toContainText("49.98");
  await page.locator("#quantity").selectOption("mfu-recipe");
  await expect(table.getByRole("row", { name: /^256/ })).toContainText("58.56");
});

test("no match and wrong values say so and lead back", async ({ page }) => {
  await page.goto("/recipes?v=1&m=llama3.1&gpu=gb200");
  await expect(page.getByText("No recipes match these filters.")).toBeVisible();
  await page.getByRole("link", { name: "Show all recipes" }).click();
  await expect(rows(page)).toHaveCount(123);

  await page.goto("/recipes?v=1&gpu=h1000&d=bf16");
  await expect(page.locator("#field-gpu-note")).toContainText('Unknown GPU "h1000"');
  await page.locator("#field-gpu-note").getByRole("button", { name: "Use h100" }).click();
  await expect(rows(page)).toHaveCount(38);
});

test("works with the keyboard alone", async ({ page }) => {
  await page.goto("/recipes");
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeFocused();
  const matrix = page.locator("table.matrix");
  await matrix.getByRole("button", { name: "GPUs" }).focus();
  await page.keyboard.press("Enter");
  await expect(matrix.getByRole("columnheader", { name: "GPUs" })).toHaveAttribute("aria-sort", "ascending");
  await page.getByRole("link", { name: /^Plan / }).first().focus();
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/^[^?]*\/\?v=1&r=/);
});
