import { expect, expectAccessible } from "../fixtures.mjs";
import { carried, test } from "../server.mjs";

test("a change of the step time is marked, in the chart and in its table", async ({ page, server }) => {
  for (let run = 0; run < 14; run++) {
    const seconds = (run < 8 ? 12.3 : 13.3) + 0.03 * Math.sin(run * 5);
    await server.put(seconds, { carried: carried("llama-405b", run + 1), log: false });
  }
  await server.put(12.4, { carried: carried("other", 1, "oci"), log: false });
  await page.goto("/history");
  const line = page.getByRole("region", { name: "llama3.1-405b/h100/fp8/512@25.04 on eos", exact: true });
  await expect(line.locator(".notice.wrong").first()).toContainText("Regression: ");
  await expect(line.locator(".notice.wrong")).toContainText(/Runs take \+8\.\d % since \d{4}-\d\d-\d\d \d\d:\d\d UTC/i);
  for (const name of ["Runs", "Usual", "Change", "Regression", "Published"]) {
    await expect(line.locator(".legendtext").filter({ hasText: name })).toBeVisible();
  }
  await line.getByText("The chart's numbers").click();
  const table = line.getByRole("table");
  await expect(table.locator("tbody tr")).toHaveCount(14);
  await expect(table.locator("tbody tr").filter({ hasText: "From here on +8." })).toHaveCount(1);
  await expect(table.locator("tbody tr").first()).toContainText("Regression");
  await expectAccessible(page);
  await page.getByLabel("Cluster").fill("nowhere");
  await page.getByLabel("Cluster").press("Enter");
  await expect(page.getByText("Cluster “nowhere” matches no run.")).toBeVisible();
  await page.getByLabel("Cluster").fill("oc");
  await page.getByLabel("Cluster").press("Enter");
  await expect(page).toHaveURL("/history?v=1&cluster=oc");
  await expect(page.getByRole("heading", { level: 2 })).toHaveCount(1);
  await expect(page.getByRole("heading", { level: 2 })).toHaveText("llama3.1-405b/h100/fp8/512@25.04 on oci");
  await page.getByRole("link", { name: "See the only run beside its plan" }).click();
  await expect(page.locator(".headline")).toContainText("nightly/other#1 (job 71) runs at");
});
