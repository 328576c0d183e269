#!/usr/bin/env node
// Adds up what a browser fetches before the first answers stand, in brotli bytes, and fails above the budget.
//
// The list is the page's own: all that `dist/index.html` links to. Plotly comes with the first chart, after the answers.

import { statSync, readFileSync } from "node:fs";
import { join } from "node:path";

const BUDGET = 350_000;
const dist = join(import.meta.dirname, "..", "dist");

const page = readFileSync(join(dist, "index.html"), "utf8");
const linked = [...page.matchAll(/(?:href|src)="\/([^"]+)"/g)].map(([, path]) => path);
const plotly = page.match(/name="plotly-src"[^>]* content="\/([^"]+)"/)[1];

const size = (path) => statSync(join(dist, `${path}.br`)).size;
const line = (bytes, what) => console.log(`${bytes.toLocaleString("en").padStart(9)}  ${what}`);

let total = 0;
for (const path of ["index.html", ...new Set(linked)]) {
  total += size(path);
  line(size(path), path);
}
line(total, `before the first answers (budget ${BUDGET.toLocaleString("en")} bytes in brotli)`);
line(total + size(plotly), "with Plotly");

if (total > BUDGET) {
  console.error(`The page is ${total - BUDGET} bytes over its budget.`);
  process.exit(1);
}
