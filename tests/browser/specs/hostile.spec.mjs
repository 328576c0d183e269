import { createHash } from "node:crypto";

import { expect } from "../fixtures.mjs";
import { carried, test } from "../server.mjs";

// A text that a log, a campaign or an upload could contain. Pages must show it as text.
const HOSTILE = `<img src=x onerror="window.ran=1"><script>window.ran=2</script>"'\`\${window.ran=3}<svg onload=window.ran=4> javascript:window.ran=5`;

/** Uploads a result with this text in each text field that the server accepts it in. */
async function putHostile(server) {
  const made = await server.put(12.4, { carried: carried("run"), log: false });
  const result = await (await server.send("GET", `/runs/${made}`)).json();
  result.id = "018f0000-0000-7000-8000-00000000bad1";
  const text = `${HOSTILE} text`;
  result.source.path = `/x/${HOSTILE}/log.out`;
  result.name.experiment = text;
  result.provenance.program = text;
  result.identity.doubts = [text];
  result.identity.conflicts = [text];
  result.comparable = { yes: false, reasons: [text] };
  result.carried = {
    ...result.carried,
    campaign: text,
    run: text,
    cluster: text,
    jobs: [{ id: text, name: text, state: text, exit_code: 0, nodes: text }],
    launch: { ...result.carried.launch, style: text, release: text, comparable: { yes: false, reasons: [text] } },
    plan: { ...result.carried.plan, basis: text, calibration: text },
  };
  const log = Array.from({ length: 50 }, (_, step) => `step ${step} ${HOSTILE}\n`).join("");
  result.source.sha256 = createHash("sha256").update(log).digest("hex");
  const body = Buffer.from(JSON.stringify(result));
  const digest = createHash("sha256").update(body).digest("base64");
  await server.send("PUT", `/runs/${result.id}`, body, { "content-digest": `sha-256=:${digest}:` });
  await server.send("PUT", `/runs/${result.id}/log`, log, { "upload-offset": "0", "upload-complete": "?1" });
  const progress = {
    campaign: text, run: text, repeat: 1, cluster: text, recipe: text, state: text, step: 1, steps: 2, step_time_s: 1,
    jobs: [text], at: "2026-11-21T16:15:00Z",
  };
  const live = "/runs/018f0000-0000-7000-8000-00000000bad2/progress";
  await server.send("POST", live, JSON.stringify(progress), { "content-type": "application/json" });
  return { made, id: result.id };
}

test("HTML and scripts in text fields are shown as text", async ({ page, server }) => {
  const { made, id } = await putHostile(server);
  let asked = 0;
  page.on("dialog", (dialog) => (asked++, dialog.dismiss()));
  page.on("request", (request) => {
    if (new URL(request.url()).pathname.endsWith("/x")) asked++;
  });
  const pages = {
    "/results": "table.reports tbody tr",
    [`/run?id=${id}`]: ".lines li",
    [`/run?id=${id}#L7`]: ".lines li",
    [`/compare?v=1&ids=${made},${id}`]: "table",
    "/history": "h1",
  };
  for (const [path, settled] of Object.entries(pages)) {
    await page.goto(path);
    await expect(page.locator(settled).first()).toBeVisible();
    if (path !== "/history") await expect(page.getByText("<script>window.ran=2</script>").first()).toBeVisible();
    expect(await page.evaluate(() => window.ran), path).toBeUndefined();
    expect(await page.locator("main img, main script, main svg[onload]").count(), path).toBe(0);
  }
  expect(asked).toBe(0);
});
