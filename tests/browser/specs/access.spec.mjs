import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, expectAccessible } from "../fixtures.mjs";
import { carried, test } from "../server.mjs";

const row = (page, text) => page.locator("table.reports tbody tr").filter({ hasText: text });

test.describe("a server with private runs", () => {
  test.use({ options: [["--read", "private"], { option: true }] });

  test("asks for a token, which is kept in the tab but not in the address", async ({ page, server }) => {
    // Chromium logs each response with a status of 400 or above.
    page.removeAllListeners("console");
    await server.put(12.4, { carried: carried("llama-405b") });
    await page.goto("/results");
    const token = page.getByLabel("Token", { exact: true });
    await expect(token).toBeVisible();
    await expectAccessible(page);
    await token.fill("tp_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(token).toBeVisible();
    await token.fill(server.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(row(page, "llama-405b on eos")).toBeVisible();
    await page.reload();
    await expect(row(page, "llama-405b on eos")).toBeVisible();
    await page.getByRole("button", { name: "Sign out" }).click();
    await expect(token).toBeVisible();

    await page.goto("/history");
    await page.goto(`/results#token=${server.token}`);
    await expect(row(page, "llama-405b on eos")).toBeVisible();
    expect(page.url()).toBe(`${server.url}/results`);
  });

  test("keeps the browser signed in if chosen, until the user signs out", async ({ page, server, context }) => {
    page.removeAllListeners("console");
    await server.put(12.4, { carried: carried("llama-405b") });
    await page.goto("/results");
    const stays = page.getByLabel("Stay signed in on this browser");
    const signIn = async (stay) => {
      await page.getByLabel("Token", { exact: true }).fill(server.token);
      await expect(stays).not.toBeChecked();
      if (stay) await stays.check();
      await page.getByRole("button", { name: "Sign in" }).click();
      await expect(row(page, "llama-405b on eos")).toBeVisible();
    };
    await signIn(false);
    const other = await context.newPage();
    await other.goto("/results");
    await expect(other.getByLabel("Token", { exact: true })).toBeVisible();
    await page.getByRole("button", { name: "Sign out" }).click();
    await signIn(true);
    await expect(row(other, "llama-405b on eos")).toBeVisible();
    const third = await context.newPage();
    await third.goto("/results");
    await expect(row(third, "llama-405b on eos")).toBeVisible();
    await third.getByRole("button", { name: "Sign out" }).click();
    for (const tab of [page, other, third]) await expect(tab.getByLabel("Token", { exact: true })).toBeVisible();
    await page.reload();
    await expect(stays).toBeVisible();
    expect(await page.evaluate(() => localStorage.getItem("token") ?? sessionStorage.getItem("token"))).toBeNull();
  });

  test("shows shared runs to guests with a link, until it is revoked", async ({ page, server, browser }) => {
    page.removeAllListeners("console");
    const id = await server.put(12.4, { carried: carried("shown") });
    await server.put(12.5, { carried: carried("hidden") });
    await page.goto(`/run?id=${id}#token=${server.token}`);
    await page.getByText("Share with an expiring link").click();
    await page.getByRole("button", { name: "Create link" }).click();
    const link = await page.locator(".secret").textContent();
    expect(link).toMatch(/\/run\?v=1&id=[0-9a-f-]+#share=tps_\w+$/);
    await expect(page.getByText("1 run, expires")).toBeVisible();
    await expectAccessible(page);

    const guest = await (await browser.newContext()).newPage();
    await guest.goto(link);
    await expect(guest.getByRole("heading", { level: 1 })).toHaveText("nightly/shown#1 (job 71)");
    await expect(guest.locator(".lines li")).toHaveCount(50);
    expect(guest.url()).not.toContain("share");
    await expect(guest.getByText(/^Shared view: 1 run until 20[\d-]+ [\d:]+ UTC\.$/)).toBeVisible();
    for (const name of ["Share with an expiring link", "Compare with…"]) await expect(guest.getByText(name)).toHaveCount(0);
    const pages = guest.getByRole("navigation").getByRole("link");
    await expect(pages).toHaveText(["Plan", "Benchmarks", "Shared with you"]);
    await expectAccessible(guest);
    await guest.goto("/results");
    await expect(guest.locator("table.reports")).toHaveCount(0);
    await guest.goto("/");
    await pages.filter({ hasText: "Shared with you" }).click();
    await expect(guest.getByRole("heading", { level: 1 })).toHaveText("nightly/shown#1 (job 71)");
    await guest.getByRole("button", { name: "Leave shared view" }).click();
    await expect(guest.getByLabel("Token", { exact: true })).toBeVisible();
    await expect(pages.filter({ hasText: "Results" })).toBeVisible();

    await page.getByRole("button", { name: "Revoke" }).click();
    await expect(page.getByText("1 run, expires")).toHaveCount(0);
    await expect(page.locator(".secret")).toHaveCount(0);
    const late = await (await browser.newContext()).newPage();
    await late.goto(link);
    await expect(late.getByText("This share link has expired or was revoked")).toBeVisible();
    await expect(late.locator("form.sign-in")).toHaveCount(0);
    await late.getByRole("button", { name: "Leave shared view" }).click();
    await expect(late.getByLabel("Token", { exact: true })).toBeVisible();
  });

  test("shows guests a link from a run back to the shared comparison", async ({ page, server, browser }) => {
    const ids = [await server.put(12.4, { carried: carried("a") }), await server.put(12.6, { carried: carried("b") })];
    await page.goto(`/compare?v=1&w=20-29&ids=${ids.join(",")}#token=${server.token}`);
    await page.getByText("Share with an expiring link").click();
    await page.getByRole("button", { name: "Create link" }).click();
    const guest = await (await browser.newContext()).newPage();
    await guest.goto(await page.locator(".secret").textContent());
    await expect(guest.getByText("Shared view: 2 runs until")).toBeVisible();
    await expect(guest.getByRole("link", { name: "Back to the comparison" })).toHaveCount(0);
    await row(guest, "nightly/").first().getByRole("link").click();
    await expect(guest.getByRole("heading", { level: 1 })).toHaveText("nightly/a#1 (job 71)");
    await guest.getByRole("link", { name: "Back to the comparison" }).click();
    await expect(guest).toHaveURL(`${server.url}/compare?v=1&w=20-29&ids=${ids.join(",")}`);
    await expect(row(guest, "b#1")).toBeVisible();
  });
});

test("sharing asks for a token once if the user is not signed in", async ({ page, server }) => {
  page.removeAllListeners("console");
  const id = await server.put(12.4);
  await page.goto(`/compare?v=1&ids=${id}`);
  await page.getByText("Share with an expiring link").click();
  const token = page.getByLabel("Token", { exact: true });
  await expect(token).toHaveCount(1);
  await token.fill(server.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Create link" }).click();
  await expect(page.locator(".secret")).toBeVisible();
  await expect(token).toHaveCount(0);
});

test("running jobs show their progress, and new results appear without a reload", async ({ page, server }) => {
  await server.put(12.3, { carried: carried("first") });
  await page.goto("/results");
  await expect(row(page, "first on eos")).toBeVisible();
  await expect(page.getByRole("heading", { name: "Running now" })).toHaveCount(0);
  const say = (step) =>
    server.send(
      "POST",
      "/runs/018f0000-0000-7000-8000-000000000001/progress",
      JSON.stringify({
        campaign: "nightly", run: "llama-405b", repeat: 2, cluster: "eos", recipe: null, state: "running",
        step, steps: 50, step_time_s: 12.43, planned_s: 12, jobs: ["812"], at: "2026-11-21T16:15:00Z",
      }),
      { "content-type": "application/json" },
    );
  await say(23);
  const live = page.getByRole("row", { name: /nightly\/llama-405b#2/ });
  await expect(live).toContainText("23 of 50");
  await expect(live).toContainText("eos, job 812");
  await expectAccessible(page);
  await say(24);
  await expect(live).toContainText("24 of 50");
  await server.put(12.4, { carried: carried("second") });
  await expect(row(page, "second on eos")).toBeVisible();
  await expect(page.locator(".headline")).toContainText("nightly/second#1");
});

test("runs are filtered by the server, a page at a time", async ({ page, server }) => {
  for (let run = 0; run < 52; run++) await server.put(12 + run / 100, { carried: carried(`r${run}`, 1, run % 2 ? "eos" : "oci"), log: false });
  await page.goto("/results");
  await expect(page.locator("table.reports tbody tr")).toHaveCount(50);
  await page.getByRole("button", { name: "Older runs" }).click();
  await expect(page.locator("table.reports tbody tr")).toHaveCount(2);
  await page.reload();
  await expect(row(page, "r0 on oci")).toBeVisible();
  await page.getByRole("button", { name: "Newest runs" }).click();
  await expect(row(page, "r51 on eos")).toBeVisible();
  await page.getByLabel("Cluster").fill("oci");
  await page.getByLabel("Cluster").press("Enter");
  await expect(page.locator("table.reports tbody tr")).toHaveCount(26);
  await expect(page).toHaveURL("/results?v=1&cluster=oci");
  await page.getByLabel("Status").selectOption("failed");
  await expect(page.getByText("No runs match these filters.")).toBeVisible();
  await page.getByRole("button", { name: "Show all runs" }).click();
  await expect(page.locator("table.reports tbody tr")).toHaveCount(50);
});

test("uploads of `trainplan upload` appear without a reload, and only once", async ({ page, server }) => {
  await server.put(12.3, { carried: carried("first") });
  await page.goto("/results");
  await expect(row(page, "first on eos")).toBeVisible();
  const folder = mkdtempSync(join(tmpdir(), "trainplan-"));
  const result = await (await server.send("GET", "/runs?limit=1")).json();
  const file = await (await server.send("GET", `/runs/${result.items[0].id}`)).json();
  file.id = "018f0000-0000-7000-8000-000000000abc";
  file.carried.run = "nightly-run";
  writeFileSync(join(folder, "one.result.json"), JSON.stringify(file));
  expect(server.upload(join(folder, "one.result.json"))).toContain("new");
  await expect(row(page, "nightly-run on eos")).toBeVisible();
  expect(server.upload(join(folder, "one.result.json"))).toContain("known");
  await expect(row(page, "nightly-run on eos")).toHaveCount(1);
});

test("users with an upload token upload dropped runs with their logs, once each", async ({ page, server }) => {
  // Chromium logs each response with a status of 400 or above.
  page.removeAllListeners("console");
  const before = await server.put(12.3);
  await page.goto("/results");
  // Larger than one piece of an upload.
  const filler = `[NeMo I] ${"nothing of interest ".repeat(50)}\n`.repeat(9000);
  const lines = Array.from(
    { length: 50 },
    (_, step) => `Training epoch 0, iteration ${step}/49 | global_batch_size: 256 | global_step: ${step} | train_step_timing in s: 12.4 | consumed_samples: ${256 * (step + 1)}\n`,
  );
  const log = { name: "log-acct.pretrain_llama3.1_405b_fp8_512_4711_0.out", mimeType: "text/plain", buffer: Buffer.from(filler + lines.join("")) };
  const empty = { name: "empty.out", mimeType: "text/plain", buffer: Buffer.from("nothing\n") };
  await page.locator("[data-files]").setInputFiles([log, empty]);
  const dropped = page.getByRole("region", { name: "Results", exact: true }).getByRole("link", { name: log.name });
  await expect(dropped).toBeVisible();
  const upload = page.getByRole("button", { name: "Upload to this server" });
  await expect(page.getByText("Read 2 of 2 files")).toBeVisible();
  await expect(upload).toBeDisabled();
  await expect(page.getByText("Uploading needs a token with the scope upload.")).toBeVisible();

  await page.goto("about:blank");
  await page.goto(`/results#token=${server.token}`);
  await page.locator("[data-files]").setInputFiles([log, empty]);
  await expect(page.getByText("Read 2 of 2 files")).toBeVisible();
  expect((await (await server.send("GET", "/runs")).json()).items).toHaveLength(1);
  await upload.click();
  await expect(page.getByText("Uploaded: 1.", { exact: true })).toBeVisible();
  await expect(upload).toBeFocused();
  // Both rows are one run: selecting one selects the other.
  await expect(row(page, log.name)).toContainText("Also on the server: this opens the stored run.");
  await row(page, log.name).getByRole("checkbox").check();
  await expect(row(page, "(job 4711)").getByRole("checkbox")).toBeChecked();
  await expect(page.getByRole("link", { name: "Compare 1 run with its plan" })).toBeVisible();
  await expectAccessible(page);
  const { items } = await (await server.send("GET", "/runs")).json();
  const run = items.find(({ path }) => path === log.name);
  expect(items).toHaveLength(2);
  const there = await (await server.send("GET", `/runs/${run.id}/log`)).arrayBuffer();
  expect(Buffer.from(there).equals(log.buffer)).toBe(true);
  // The server rejects another result with an id it already has, and accepts the others.
  const other = await (await server.send("GET", `/runs/${before}`)).json();
  other.comparable = { yes: false, reasons: ["it was profiled"] };
  await page.locator("[data-files]").setInputFiles([{ name: "other.result.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(other)) }]);
  await expect(page.getByText("Read 3 of 3 files")).toBeVisible();
  await upload.click();
  await expect(page.getByText("Uploaded: 0, already on the server: 1, refused: 1.", { exact: true })).toBeVisible();
  await expect(page.locator(".notice.wrong")).toContainText("pretrain_llama3.1_405b_fp8_512_71_0.out: ");
  // The run is on the server now, so a link to it works.
  await page.getByRole("region", { name: "Results on the server" }).getByRole("link", { name: "(job 4711)" }).click();
  await expect(page.getByRole("button", { name: "Copy link", exact: true })).toBeEnabled();
  await expect(page.getByRole("heading", { name: "Log" })).toBeVisible();
});

test("an upload carries the recipe that was set, and names the runs that still have none", async ({ page, server }) => {
  // Chromium logs each response with a status of 400 or above.
  page.removeAllListeners("console");
  const log = (seconds) => `[NeMo I 2026-05-01 10:00:12 rank:0] started\n` + Array.from(
    { length: 50 },
    (_, step) => `Training epoch 0, iteration ${step}/49 | global_batch_size: 256 | global_step: ${step} | train_step_timing in s: ${seconds} | consumed_samples: ${256 * (step + 1)}\n`,
  ).join("");
  const file = (name, seconds) => ({ name, mimeType: "text/plain", buffer: Buffer.from(log(seconds)) });
  const recipes = async () => (await (await server.send("GET", "/runs")).json()).items.map(({ recipe }) => recipe);
  const recipe = "llama3.1-405b/h100/fp8/512@25.04";
  const upload = page.getByRole("button", { name: "Upload to this server" });
  const start = async (query) => {
    // Left first, so that the token in the address is read again.
    await page.goto("about:blank");
    await page.goto(`/results?v=1${query}#token=${server.token}`);
  };
  await start("&w=35-44");
  await page.locator("[data-files]").setInputFiles([file("one.log", 12.4)]);
  await expect(page.getByText("Read 1 of 1 files")).toBeVisible();
  await upload.click();
  await expect(page.getByText(/^Not in History: one\.log\. Unknown: Model, GPU.*\. Set this, or the recipe, and upload again\.$/)).toBeVisible();
  expect(await recipes()).toEqual([null]);

  // The server corrects the run that it has, and gets the new one with its recipe.
  await start(`&r=${recipe}&w=35-44`);
  await page.locator("[data-files]").setInputFiles([file("one.log", 12.4), file("two.log", 12.5)]);
  await expect(page.getByText("Read 2 of 2 files")).toBeVisible();
  await upload.click();
  await expect(page.getByText("Uploaded: 1, corrected: 1.", { exact: true })).toBeVisible();
  await expect(page.getByText("Not in History")).toHaveCount(0);
  expect(await recipes()).toEqual([recipe, recipe]);
  const there = page.getByRole("region", { name: "Results on the server" });
  await expect(there.locator('tbody td[data-label="Recipe"]')).toHaveText([recipe, recipe]);
  // Runs are dated by their logs.
  await expect(there.locator('tbody td[data-label="Ran"]')).toHaveText(["2026-05-01 10:00 UTC", "2026-05-01 10:00 UTC"]);
  await there.getByRole("link", { name: "two.log" }).click();
  await expect(page.getByText("2026-05-01 10:00 by the log's clock")).toBeVisible();
  await page.goto("/history");
  await expect(page.getByText("Show data: 2 runs")).toBeVisible();
});

test("a dropped log and the stored run of the same log are one run, with what the campaign recorded", async ({ page, server }) => {
  // The campaign's run of the log has its own id.
  const id = "018f0000-0000-7000-8000-000000000abd";
  await server.put(12.4, { id, carried: carried("llama-405b") });
  const buffer = Buffer.from(await (await server.send("GET", `/runs/${id}/log`)).arrayBuffer());
  const name = "log-acct.pretrain_llama3.1_405b_fp8_512_4714_0.out";
  await page.goto(`/results#token=${server.token}`);
  await expect(row(page, "llama-405b on eos")).toBeVisible();
  await page.locator("[data-files]").setInputFiles([{ name, mimeType: "text/plain", buffer }]);
  await expect(row(page, name)).toContainText("Also on the server: this opens the stored run.");
  await row(page, "llama-405b on eos").getByRole("checkbox").check();
  await expect(row(page, name).getByRole("checkbox")).toBeChecked();
  // Uploading the log makes no second run.
  await page.getByRole("button", { name: "Upload to this server" }).click();
  await expect(page.getByText("Uploaded: 0, already on the server: 1.", { exact: true })).toBeVisible();
  expect((await (await server.send("GET", "/runs")).json()).items).toHaveLength(1);

  await row(page, name).getByRole("link", { name }).click();
  await expect(page).toHaveURL(new RegExp(`/run\\?.*id=${id}`));
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("nightly/llama-405b#1 (job 71)");
  await expect(page.locator(".lines li")).toHaveCount(50);
  await expect(page.getByRole("button", { name: "Copy link", exact: true })).toBeEnabled();
});

/** Returns a log a little larger than this number of upload pieces. */
const inPieces = (pieces, job) => {
  const filler = `[NeMo I] ${"nothing of interest ".repeat(50)}\n`.repeat(pieces * 4300);
  const step = "Training epoch 0, iteration 49/49 | global_batch_size: 256 | global_step: 49 | train_step_timing in s: 12.4 | consumed_samples: 12800\n";
  return { name: `log-acct.pretrain_llama3.1_405b_fp8_512_${job}_0.out`, mimeType: "text/plain", buffer: Buffer.from(filler + step) };
};

test("an upload shows its progress and resumes after a lost connection", async ({ page, server }) => {
  page.removeAllListeners("console");
  const logs = [inPieces(2, 4711), inPieces(1, 4712)];
  await page.goto(`/results#token=${server.token}`);
  await page.locator("[data-files]").setInputFiles(logs);
  await expect(page.getByText("Read 2 of 2 files")).toBeVisible();
  const offsets = [];
  let goOn;
  const isSeen = new Promise((resolve) => (goOn = resolve));
  let breaks = 0;
  await page.route("**/api/v1/runs/*/log", (route) => {
    const offset = Number(route.request().headers()["upload-offset"]);
    offsets.push(offset);
    if (offset === 0 || breaks === 2) return route.continue();
    breaks += 1;
    return route.abort("connectionreset");
  });
  // A retry starts with the result.
  await page.route("**/api/v1/runs/*", async (route) => {
    if (breaks > 0) await isSeen;
    await route.continue();
  });
  await page.getByRole("button", { name: "Upload to this server" }).click();
  const uploading = (percent) => page.getByText(`Uploading file 1 of 2: ${percent} %; connection lost, retrying`, { exact: true });
  await expect(uploading(32)).toBeVisible();
  // Screen readers announce quarters only.
  await expect(page.locator("[aria-live]").filter({ has: uploading(25) })).toBeAttached();
  await expect(page.getByRole("progressbar", { name: "Upload" })).toHaveJSProperty("value", 32);
  await expectAccessible(page);
  goOn();
  await expect(page.getByText("Uploaded: 2.", { exact: true })).toBeVisible();
  await expect(page.getByRole("progressbar")).toHaveCount(0);
  expect(offsets.filter((offset) => offset === 0), "the beginning of each log, once").toHaveLength(2);
  for (const log of logs) {
    const { items } = await (await server.send("GET", "/runs")).json();
    const there = await (await server.send("GET", `/runs/${items.find(({ path }) => path === log.name).id}/log`)).arrayBuffer();
    expect(Buffer.from(there).equals(log.buffer), log.name).toBe(true);
  }
});

test("an upload without answers fails after a few tries, and the next one resumes it", async ({ page, server }) => {
  page.removeAllListeners("console");
  const log = inPieces(2, 4713);
  await page.goto(`/results#token=${server.token}`);
  await page.locator("[data-files]").setInputFiles(log);
  const offsets = [];
  await page.route("**/api/v1/runs/*/log", (route) => {
    const offset = Number(route.request().headers()["upload-offset"]);
    offsets.push(offset);
    return offset > 0 ? route.abort() : route.continue();
  });
  const upload = page.getByRole("button", { name: "Upload to this server" });
  await upload.click();
  await expect(page.locator(".notice.wrong")).toContainText("the server did not answer. Upload again to continue.");
  expect(offsets.filter((offset) => offset > 0)).toHaveLength(4);
  await page.unroute("**/api/v1/runs/*/log");
  await upload.click();
  await expect(page.getByText("Uploaded: 1.", { exact: true })).toBeVisible();
  const { items } = await (await server.send("GET", "/runs")).json();
  const there = await (await server.send("GET", `/runs/${items[0].id}/log`)).arrayBuffer();
  expect(Buffer.from(there).equals(log.buffer)).toBe(true);
});

test("an administrator deletes a run, with its log, on its page", async ({ page, server }) => {
  page.removeAllListeners("console");
  const id = await server.put(12.4);
  await page.goto(`/run?id=${id}`);
  await expect(page.locator(".lines li")).toHaveCount(50);
  const summary = page.getByText("Delete this run");
  await expect(summary).toHaveCount(0);
  await page.goto("about:blank");
  await page.goto(`/run?id=${id}#token=${server.token}`);
  await summary.click();
  await expect(page.getByText("This deletes the result and the raw log permanently.")).toBeVisible();
  await expectAccessible(page);
  await page.getByRole("button", { name: "Delete permanently" }).click();
  await expect(page.getByText("The run and its log were deleted.")).toBeVisible();
  await expect(page.locator(".lines")).toHaveCount(0);
  await expect(server.send("GET", `/runs/${id}`)).rejects.toThrow(": 404 ");
  await page.getByRole("link", { name: "All results" }).click();
  await expect(page.getByText("No runs on the server yet")).toBeVisible();
  await page.goBack();
  await expect(page.locator(".notice.wrong")).toContainText(`The server has no run ${id}.`);
});
