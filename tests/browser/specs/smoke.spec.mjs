import { expect, expectAccessible, test } from "../fixtures.mjs";

for (const [path, heading] of [
  ["/", "Llama 3.1 405B"],
  ["/recipes", "recipes"],
]) {
  test(`${path} opens by its address`, async ({ page }) => {
    await page.goto(path);
    await expect(page).toHaveTitle(/Trainplan/);
    await expect(page.getByRole("heading", { level: 1 })).toContainText(heading);
    await expectAccessible(page);
  });
}

test("the navigation leads from page to page", async ({ page }) => {
  await page.goto("/");
  await page.getByRole("navigation").getByRole("link", { name: "Recipes" }).click();
  await expect(page).toHaveURL(/\/recipes/);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Published recipes");
});

test("each file of the app is fetched once", async ({ page }) => {
  const paths = [];
  page.on("request", (request) => paths.push(new URL(request.url()).pathname));
  await page.goto("/", { waitUntil: "networkidle" });
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  // The page's own first; the worker's comes after it.
  const programs = paths.filter((path) => path.endsWith(".wasm")).map((path) => path.split("-")[1]);
  expect(programs).toEqual(["web", "worker"]);
  // The icon is asked for twice, as the tab's and as the header's.
  const files = paths.filter((path) => path !== "/icon.svg");
  expect(files).toEqual([...new Set(files)]);
});
