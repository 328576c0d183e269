import { readFileSync } from "node:fs";

import { expect, expectAccessible } from "../fixtures.mjs";
import { carried, test } from "../server.mjs";

test("a run shows its score, where it comes from, and its log", async ({ page, server }) => {
  const id = await server.put(12.4, { carried: carried("llama-405b") });
  await page.goto("/results");
  await page.locator("table.reports").getByRole("link", { name: "llama-405b on eos" }).click();
  await expect(page).toHaveURL(`/run?v=1&id=${id}`);
  await expect(page).toHaveTitle("nightly/llama-405b#1 · Trainplan");
  const figure = (label) => page.locator(".figure").filter({ hasText: label });
  await expect(figure("Step time, s")).toContainText("12.4");
  await expect(figure("MFU, %")).toContainText("recipe of 1,979 TFLOPS");
  await expect(figure("Planned, s")).toContainText("took 3.3 % more");
  const known = page.getByRole("region", { name: "What is known of the run" });
  for (const text of ["llama3.1-405b/h100/fp8/512@25.04", "COMPLETED", "launch-sh", "trainplan 0.1.0"]) await expect(known).toContainText(text);
  await page.getByText("Versions of the score").click();
  await expect(page.getByRole("row", { name: /Parser \d+ scored 12.4 .* as uploaded/ })).toBeVisible();
  await expectAccessible(page);

  const lines = page.locator(".lines li");
  await expect(lines).toHaveCount(50);
  await expect(page.getByText("Lines 1 to 50 of 50")).toBeVisible();
  await page.getByLabel("Find in the log").fill("iteration 42/");
  await page.getByRole("button", { name: "Find" }).click();
  await expect(lines).toHaveCount(1);
  await expect(lines.first()).toHaveAttribute("id", "L43");
  await expect(page).toHaveURL(`/run?v=1&id=${id}&find=iteration+42/`);
  const log = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save the whole log" }).click();
  expect(readFileSync(await (await log).path(), "utf8").split("\n")).toHaveLength(51);
  const result = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save result file" }).click();
  expect(JSON.parse(readFileSync(await (await result).path(), "utf8")).id).toBe(id);

  await page.goto(`/run?id=${id}#L12`);
  await expect(page.locator("#L12")).toBeInViewport();
  await page.getByRole("link", { name: "Compare with…" }).click();
  await expect(page).toHaveURL(`/compare?v=1&ids=${id}`);
});

test("a run without its log on the server says so, and an unknown one too", async ({ page, server }) => {
  page.removeAllListeners("console");
  const id = await server.put(12.4, { log: false });
  await page.goto(`/run?id=${id}`);
  await expect(page.getByText("The server has no log of this run.")).toBeVisible();
  await page.goto("/run?id=018f0000-0000-7000-8000-000000000000");
  await expect(page.locator(".notice.wrong")).toContainText("There is no such run");
});
