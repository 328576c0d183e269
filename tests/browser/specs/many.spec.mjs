import { execFileSync } from "node:child_process";
import { join } from "node:path";

import { expect, expectAccessible } from "../fixtures.mjs";
import { carried, test } from "../server.mjs";

// Copies a stored run many times, each copy with another id, time and step time. The page loads the whole results of the newest, so
// these have files of their own: frames of Zstandard that are not compressed.
const COPY = `
import hashlib, sqlite3, struct, sys
def frame(data):
    blocks = [data[start:start + 100_000] for start in range(0, len(data), 100_000)]
    header = lambda place, block: struct.pack("<I", len(block) << 3 | (place == len(blocks) - 1))[:3]
    packed = b"".join(header(place, block) + block for place, block in enumerate(blocks))
    return bytes.fromhex("28b52ffda0") + struct.pack("<I", len(data)) + packed
store = sqlite3.connect(sys.argv[1], timeout=60)
text, times = sys.stdin.read(), int(sys.argv[2])
names = [row[1] for row in store.execute("PRAGMA table_info(runs)")]
first = dict(zip(names, store.execute("SELECT * FROM runs").fetchone()))
insert = f"INSERT INTO runs ({','.join(names)}) VALUES ({','.join('?' * len(names))})"
[(file,)] = store.execute("SELECT file FROM results WHERE id = ?", [first["id"]])
for run in range(times):
    at = f"2026-01-01T{run // 3600:02}:{run // 60 % 60:02}:{run % 60:02}.000000Z"
    row = first | {
        "id": f"018f0000-0000-7000-8000-{run:012x}",
        "received_at": at,
        "ran_at": at,
        "run": f"copy-{run}",
        "cluster": "oci" if run % 100 == 0 else "eos",
        "step_time_s": 12 + run / 10000,
    }
    own = file
    if run >= times - 200:
        data = text.replace(first["id"], row["id"]).encode()
        own, row["sha256"] = frame(data), hashlib.sha256(data).hexdigest()
    store.execute(insert, [row[name] for name in names])
    store.execute("INSERT INTO results (id, file) VALUES (?, ?)", [row["id"], own])
store.commit()
`;

const copy = async (server, times) => {
  const [{ id }] = (await (await server.send("GET", "/runs")).json()).items;
  const input = await (await server.send("GET", `/runs/${id}?upload=true`)).text();
  execFileSync("python3", ["-c", COPY, join(server.data, "store.sqlite"), `${times}`], { input });
};

test("of ten thousand runs only one page is loaded", async ({ page, server }) => {
  await server.put(12.4, { carried: carried("newest"), log: false });
  await copy(server, 10_000);
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
  // Summaries are loaded by page, whole results for the charts only.
  expect(lists.length).toBeLessThanOrEqual(4);
  expect(files.length).toBeLessThanOrEqual(4);

  await page.getByLabel("Cluster").fill("oci");
  await page.getByLabel("Cluster").blur();
  await expect(rows.first()).toContainText("copy-9900 on oci");
  expect(await rows.count()).toBeLessThanOrEqual(50);
  expect(await page.locator("*").count()).toBeLessThan(5000);
});

test("a click on a column's heading sorts all pages by it, and Back undoes it", async ({ page, server }) => {
  await server.put(14, { carried: carried("newest"), log: false });
  await copy(server, 120);
  await page.goto("/results");
  const first = page.locator("table.reports tbody tr").first();
  const head = (name) => page.getByRole("columnheader", { name });
  await expect(first).toContainText("newest on eos");
  await expect(head("Received")).toHaveAttribute("aria-sort", "descending");
  await head("Step time, s").getByRole("button").click();
  await expect(first).toContainText("copy-0 on oci");
  await expect(page).toHaveURL("/results?v=1&sort=step_time_s");
  await expect(head("Step time, s")).toHaveAttribute("aria-sort", "ascending");
  await expect(head("Received")).toHaveAttribute("aria-sort", "none");
  await expectAccessible(page);
  await page.getByRole("button", { name: "Next page" }).click();
  await expect(first).toContainText("copy-50 on eos");
  await head("Step time, s").getByRole("button").press("Enter");
  await expect(first).toContainText("newest on eos");
  await expect(head("Step time, s")).toHaveAttribute("aria-sort", "descending");
  await page.goBack();
  await expect(first).toContainText("copy-50 on eos");
  await page.goBack();
  await expect(first).toContainText("copy-0 on oci");
  await page.goBack();
  await expect(page).toHaveURL("/results");
  await expect(first).toContainText("newest on eos");
  await page.goto("/results?v=1&sort=size");
  await expect(first).toContainText("newest on eos");
});

test("a filter matches parts of names, and the page names a filter that matches nothing", async ({ page, server }) => {
  await server.put(12.4, { carried: carried("newest"), log: false });
  await copy(server, 120);
  await page.goto("/results");
  const rows = page.locator("table.reports tbody tr");
  const fill = async (label, text) => {
    await page.getByLabel(label, { exact: true }).fill(text);
    await page.getByLabel(label, { exact: true }).press("Enter");
  };
  await fill("Recipe", "LLAMA fp8");
  await fill("Cluster", "oc");
  await expect(rows).toHaveCount(2);
  await expect(page).toHaveURL("/results?v=1&recipe=LLAMA+fp8&cluster=oc");
  await fill("Recipe", "llama99");
  await expect(page.getByText("No runs with Recipe “llama99”.")).toBeVisible();
  await expectAccessible(page);
  await page.getByRole("button", { name: "Clear Recipe" }).click();
  await expect(rows).toHaveCount(2);
  // A GPU filter matches the start of the name only: B200 must not match GB200.
  await fill("GPU", "H1");
  await expect(rows).toHaveCount(2);
  await fill("GPU", "100");
  await expect(page.getByText("No runs with GPU “100”.")).toBeVisible();
  await expect(page.getByText("No runs with Cluster “oc”.")).toHaveCount(0);
  await page.getByRole("button", { name: "Show all runs" }).click();
  await expect(rows).toHaveCount(50);
});

test("a filter applies while typing, keeps the focus and adds no history entries", async ({ page, server }) => {
  await server.put(12.4, { carried: carried("newest"), log: false });
  await copy(server, 120);
  await page.goto("/benchmarks");
  await page.goto("/results");
  const rows = page.locator("table.reports tbody tr");
  const cluster = page.getByLabel("Cluster", { exact: true });
  await cluster.pressSequentially("oci", { delay: 350 });
  await expect(rows).toHaveCount(2);
  await expect(page).toHaveURL("/results?v=1&cluster=oci");
  await cluster.pressSequentially("x");
  await expect(page.getByText("No runs with Cluster “ocix”.")).toBeVisible();
  for (let letter = 0; letter < 4; letter++) await cluster.press("Backspace");
  await expect(rows).toHaveCount(50);
  await expect(cluster).toBeFocused();
  await page.goBack();
  await expect(page).toHaveURL("/benchmarks");
});
