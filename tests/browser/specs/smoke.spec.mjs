import { expect, expectAccessible, test } from "../fixtures.mjs";

for (const [path, heading] of [
  ["/", "B200"],
  ["/benchmarks", "Benchmarks"],
  ["/recipes", "Benchmarks"],
  ["/results", "Results"],
  ["/compare", "Compare"],
  ["/run", "Run"],
  ["/history", "History"],
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
  const navigation = page.getByRole("navigation");
  for (const [name, heading] of [
    ["Benchmarks", "Benchmarks"],
    ["Results", "Results"],
    ["Plan", "B200"],
  ]) {
    await navigation.getByRole("link", { name }).click();
    await expect(page.getByRole("heading", { level: 1 })).toContainText(heading);
    await expect(navigation.locator("[aria-current=page]")).toHaveText(name);
  }
});

for (const [path, program] of [
  ["/", "planner"],
  ["/results", "results"],
]) {
  test(`each file of ${path} is fetched once`, async ({ page }) => {
    const paths = [];
    page.on("request", (request) => paths.push(new URL(request.url()).pathname));
    await page.goto(path);
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    // The page's own program first, then its workers and the details of the plan.
    const programs = () => paths.filter((path) => path.endsWith(".wasm")).map((path) => path.split("-")[1]);
    const workers = program === "planner" ? ["search", "details", "worker"] : ["worker"];
    await expect.poll(() => programs().sort()).toEqual([program, ...workers].sort());
    await page.waitForTimeout(1000);
    // The icon is fetched twice, for the tab and for the header; API requests may repeat.
    const files = paths.filter((path) => path !== "/icon.svg" && !path.startsWith("/api/"));
    expect(files).toEqual([...new Set(files)]);
  });
}
