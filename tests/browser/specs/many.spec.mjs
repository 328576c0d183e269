import { execFileSync } from "node:child_process";
import { join } from "node:path";

import { expect } from "../fixtures.mjs";
import { carried, test } from "../server.mjs";

// Copies a stored run ten thousand times, each with another id, time and step time.
const COPY = `
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], timeout=60)
names = [row[1] for row in store.execute("PRAGMA table_info(runs)")]
first = dict(zip(names, store.execute("SELECT * FROM runs").fetchone()))
insert = f"INSERT INTO runs ({','.join(names)}) VALUES ({','.join('?' * len(names))})"
for run in range(10000):
    row = first | {
        "id": f"018f0000-0000-7000-8000-{run:012x}",
        "received_at": f"2026-01-01T{run // 3600:02}:{run // 60 % 60:02}:{run % 60:02}.000000Z",
        "run": f"copy-{run}",
        "cluster": "oci" if run % 100 == 0 else "eos",
        "step_time_s": 12 + run / 10000,
    }
    store.execute(insert, [row[name] for name in names])
    store.execute("INSERT INTO results SELECT ?, file FROM results WHERE id = ?", [row["id"], first["id"]])
store.commit()
`;

test("ten thousand runs cost no more than the page that is shown", async ({ page, server }) => {
  await server.put(12.4, { carried: carried("newest"), log: false });
  execFileSync("python3", ["-c", COPY, join(server.data, "store.sqlite")]);
  const lists = [];
  const files = [];
  page.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname === "/api/v1/runs") lists.push(search);
    if (/^\/api\/v1\/runs\/[0-9a-f-]+$/.test(pathname)) files.push(pathname);
  });
  await page.goto("/results");
  const rows = page.locator("table.reports tbody tr");
  await expect(rows.first()).toContainText("newest on eos");
  await expect(page.locator(".headline")).toContainText("nightly/newest#1");
  expect(await rows.count()).toBeLessThanOrEqual(50);
  // Summaries come page by page, and whole results only for what is drawn.
  expect(lists.length).toBeLessThanOrEqual(4);
  expect(files.length).toBeLessThanOrEqual(4);

  await page.getByLabel("Cluster").fill("oci");
  await page.getByLabel("Cluster").blur();
  await expect(rows.first()).toContainText("copy-9900 on oci");
  expect(await rows.count()).toBeLessThanOrEqual(50);
  expect(await page.locator("*").count()).toBeLessThan(5000);
});
