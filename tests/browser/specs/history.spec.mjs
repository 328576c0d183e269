import { expect, expectAccessible } from "../fixtures.mjs";
import { carried, test } from "../server.mjs";

/** Fourteen runs, from the ninth on slower; gives their ids. */
async function nights(server, cluster = "eos") {
  const ids = [];
  for (let run = 0; run < 14; run++) {
    const seconds = (run < 8 ? 12.3 : 13.3) + 0.03 * Math.sin(run * 5);
    ids.push(await server.put(seconds, { carried: carried("llama-405b", run + 1, cluster), log: false }));
  }
  return ids;
}

test("a change of the step time is marked, in the chart and in its table", async ({ page, server }) => {
  const ids = await nights(server);
  await server.put(12.4, { carried: carried("other", 1, "oci"), log: false });
  await page.goto("/history");
  const line = page.getByRole("region", { name: "llama3.1-405b/h100/fp8/512@25.04 on eos", exact: true });
  await expect(line.locator(".notice.wrong")).toHaveText(
    /^Slower since \d{4}-\d\d-\d\d: 13\.\d+ s per step, [78]\.\d\s% above the usual 12\.\d+ s\. First run after the change$/,
  );
  const rules = line.getByText(/^\d of 4 limits exceeded$/);
  await rules.click();
  await expect(line.getByText(/Exceeded: step times changed by \+8\.\d\s% on \d{4}-\d\d-\d\d \d\d:\d\d UTC/)).toBeVisible();
  for (const name of ["Runs", "Usual", "Change", "Regression", "Published"]) {
    await expect(line.locator(".legendtext").filter({ hasText: name })).toBeVisible();
  }
  await line.getByText("Show data").click();
  const table = line.getByRole("table");
  await expect(line.getByText("Show data: 14 runs")).toBeVisible();
  await expect(table.locator("tbody tr")).toHaveCount(14);
  await expect(table.locator("tbody tr").filter({ hasText: /\+8\.\d\s% from here on/ })).toHaveCount(1);
  await expect(table.locator("tbody tr").first()).toContainText("Regression");
  await expectAccessible(page);
  // What changed leads to the run at which it did, and to what was before it.
  const since = line.locator(".notice.wrong").getByRole("link");
  await expect(since).toHaveText("First run after the change");
  await expect(since).toHaveAttribute("href", `/run?v=1&id=${ids[8]}`);
  const around = line.getByRole("link", { name: "Compare before and after the change" });
  await expect(around).toHaveAttribute("href", `/compare?v=1&ids=${ids[7]},${ids[13]}`);
  await expect(line.getByRole("link", { name: "Compare the two newest runs" })).toHaveAttribute("href", `/compare?v=1&ids=${ids[12]},${ids[13]}`);
  await page.getByLabel("Cluster").fill("nowhere");
  await page.getByLabel("Cluster").press("Enter");
  await expect(page.getByText("No runs with Cluster “nowhere”.")).toBeVisible();
  await page.getByLabel("Cluster").fill("oc");
  await page.getByLabel("Cluster").press("Enter");
  await expect(page).toHaveURL("/history?v=1&cluster=oc");
  await expect(page.getByRole("heading", { level: 2 })).toHaveCount(1);
  await expect(page.getByRole("heading", { level: 2 })).toHaveText("llama3.1-405b/h100/fp8/512@25.04 on oci");
  await page.getByRole("link", { name: "Compare the only run with its plan" }).click();
  await expect(page.locator(".headline")).toContainText("nightly/other#1 (job 71) runs at");
});

test("what comes in appears by itself, on History and where the newest are compared, and what is open stays open", async ({ page, server }) => {
  await server.put(12.4, { carried: carried("llama-405b", 1), log: false });
  await page.goto("/history");
  await page.getByText("Show data: 1 run").click();
  const rows = page.locator("table.times tbody tr");
  await expect(rows).toHaveCount(1);
  await server.put(12.5, { carried: carried("llama-405b", 2), log: false });
  await expect(rows).toHaveCount(2);
  await expect(rows.first()).toBeVisible();
  await expect(page.getByRole("link", { name: "Compare the two newest runs" })).toBeVisible();
  await page.goto("/compare");
  await expect(page.locator(".headline")).toContainText("llama-405b#2");
  await server.put(12.6, { carried: carried("llama-405b", 3), log: false });
  await expect(page.locator(".headline")).toContainText("llama-405b#3");
});

test("Results says what takes longer than it should, until that is over", async ({ page, server }) => {
  await page.goto("/results");
  await server.put(12.4, { carried: carried("other", 1, "oci"), log: false });
  await expect(page.locator("table.reports tbody tr")).toHaveCount(1);
  const regressions = page.getByRole("region", { name: "Regressions" });
  await expect(regressions).toHaveCount(0);
  await nights(server);
  await expect(regressions.locator("p")).toHaveText(/^Regression of llama3.1-405b\/h100\/fp8\/512@25.04 on eos\. Slower since .* per step, .* above the usual 1\d\..*\.$/);
  await expectAccessible(page);
  await regressions.getByRole("link").click();
  await expect(page).toHaveURL("/history?v=1&recipe=llama3.1-405b/h100/fp8/512@25.04&cluster=eos");
  await expect(page.getByText("Slower since ").first()).toBeVisible();
  await page.goto("/results");
  await expect(regressions).toBeVisible();
  await server.put(12.3, { carried: carried("llama-405b", 15), log: false });
  await expect(regressions).toHaveCount(0);
  await page.goto("/history?v=1&cluster=eos");
  // Runs that were too slow when they arrived stay marked.
  await page.getByText("Show data").click();
  await expect(page.locator("table.times tbody tr").filter({ hasText: "Regression" })).toHaveCount(6);
  await page.getByText("Within all 4 limits").click();
  await expect(page.getByText(/Step times changed by \+7\.\d\s% on .*; a later run took 12\.\d+ s, as before the change\./)).toBeVisible();
});

test("of many regressions Results tells three at once, and the others on request", async ({ page, server }) => {
  for (const cluster of ["ams", "eos", "fra", "oci"]) await server.put(13.5, { carried: carried("llama-405b", 1, cluster), log: false });
  await page.goto("/results");
  const regressions = page.getByRole("region", { name: "Regressions" }).getByRole("link");
  await expect(regressions).toHaveCount(3);
  await page.getByText("1 more").click();
  await expect(regressions).toHaveCount(4);
});

test("a regression is acknowledged with a reason, and Results lists it no more until that is withdrawn", async ({ page, server }) => {
  await server.put(13.5, { carried: carried("llama-405b", 1), log: false });
  await page.goto(`/history#token=${server.token}`);
  const line = page.getByRole("region", { name: "llama3.1-405b/h100/fp8/512@25.04 on eos", exact: true });
  const reason = line.getByLabel("Why it was slow, or what is being done about it");
  await reason.fill("A switch was replaced.");
  await expectAccessible(page);
  await reason.press("Enter");
  await expect(line.getByText(/^Acknowledged by .+ at \d{4}-\d\d-\d\d \d\d:\d\d UTC: A switch was replaced\.$/)).toBeVisible();
  await expect(reason).toHaveCount(0);
  await expect(line.locator(".notice")).toContainText("Slower than published: ");
  await expect(line.locator(".notice.wrong")).toHaveCount(0);
  await page.goto("/results");
  await expect(page.locator("table.reports tbody tr")).toHaveCount(1);
  const regressions = page.getByRole("region", { name: "Regressions" });
  await expect(regressions).toHaveCount(0);
  await page.goto("/history");
  await line.getByRole("button", { name: "Withdraw" }).click();
  await expect(reason).toBeFocused();
  await page.goto("/results");
  await expect(regressions).toBeVisible();
});

test("the focus moves from an acknowledged alert to the next one, and from the last one to the heading", async ({ page, server }) => {
  for (const cluster of ["ams", "eos", "fra"]) await server.put(13.5, { carried: carried("llama-405b", 1, cluster), log: false });
  await page.goto(`/history#token=${server.token}`);
  const lines = page.getByRole("region").filter({ has: page.locator("form.identify") });
  await expect(lines).toHaveCount(3);
  const names = await lines.evaluateAll((lines) => lines.map((line) => line.getAttribute("aria-label")));
  const buttonOf = (name) => page.getByRole("region", { name, exact: true }).getByRole("button", { name: "Acknowledge" });
  const acknowledge = async (name, left) => {
    const reason = page.getByRole("region", { name, exact: true }).getByLabel("Why it was slow, or what is being done about it");
    await reason.fill("A switch was replaced.");
    await reason.press("Enter");
    await expect(lines).toHaveCount(left);
  };
  await acknowledge(names[1], 2);
  await expect(buttonOf(names[2])).toBeFocused();
  // Open regressions are first.
  await expect(page.getByRole("heading", { level: 2 })).toHaveText([names[0], names[2], names[1]]);
  await acknowledge(names[2], 1);
  await expect(buttonOf(names[0])).toBeFocused();
  await acknowledge(names[0], 0);
  await expect(page.getByRole("heading", { name: "History", level: 1 })).toBeFocused();
});

test("a regression stays open while later runs are not scored, and the page says why they were not", async ({ page, server }) => {
  const slow = await server.put(13.5, { carried: carried("llama-405b", 1), log: false });
  await server.put(12.4, { carried: carried("llama-405b", 2), log: false, nan: true });
  await page.goto(`/history#token=${server.token}`);
  const open = page.getByRole("region", { name: "Open regressions" });
  await expect(open).toContainText("1 open regression");
  await expect(open).toContainText("llama3.1-405b/h100/fp8/512@25.04 on eos: Slower than published: ");
  await expect(open.getByRole("link", { name: "Run nightly/llama-405b", exact: true })).toHaveAttribute("href", `/run?v=1&id=${slow}`);
  const line = page.getByRole("region", { name: "llama3.1-405b/h100/fp8/512@25.04 on eos", exact: true });
  await expect(line.locator(".notice.warn")).toHaveText(/^The newest run was not scored\. The loss is NaN or infinite at step 0/);
  await expect(line.getByText("Last comparable run: limit exceeded")).toBeVisible();
  await expect(line.locator(".legendtext").filter({ hasText: "Not compared" })).toBeVisible();
  await line.getByText("Show data").click();
  const newest = line.getByRole("table").locator("tbody tr").first();
  await expect(newest).toContainText("not scored");
  await expect(newest).toContainText("The loss is NaN or infinite at step 0");
  await expectAccessible(page);
  await page.goto("/results");
  await expect(page.getByRole("region", { name: "Regressions" })).toBeVisible();
  await page.goto("/history");
  await open.getByRole("link", { name: "llama3.1-405b/h100/fp8/512@25.04 on eos" }).click();
  await expect(page).toHaveURL(/cluster=eos/);
  await line.getByLabel("Why it was slow, or what is being done about it").fill("A switch was replaced.");
  await line.getByRole("button", { name: "Acknowledge" }).click();
  await expect(open).toHaveCount(0);
  await expect(line.getByText(/^Acknowledged by .+: A switch was replaced\.$/)).toBeVisible();
});

test("a later run within the limits ends an open regression", async ({ page, server }) => {
  await server.put(13.5, { carried: carried("llama-405b", 1), log: false });
  await page.goto("/history");
  const open = page.getByRole("region", { name: "Open regressions" });
  await expect(open).toBeVisible();
  await server.put(12.4, { carried: carried("llama-405b", 2), log: false });
  await expect(page.locator("table.times tbody tr")).toHaveCount(2);
  await expect(open).toHaveCount(0);
});
