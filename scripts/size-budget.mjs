#!/usr/bin/env node
// Adds up the bytes (brotli) that a browser fetches before the first answers are shown, and fails above a budget.
//
// The files are those that the page links to, without the styles of paper, which browsers fetch last. Plotly is fetched later, with the
// first chart.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

// One page of each program, with its budget; its other pages fetch the same files. The Plan page loads the program of the
// details later. Benchmarks links to its data, which is part of its first answers.
const PAGES = { "index.html": 350_000, "benchmarks/index.html": 323_000, "results/index.html": 353_000 };
// The worker that searches for plans, with its script.
const SEARCH_BUDGET = 150_000;
const dist = join(import.meta.dirname, "..", "dist");

const size = (path) => statSync(join(dist, `${path}.br`)).size;
const line = (bytes, what) => console.log(`${bytes.toLocaleString("en").padStart(9)}  ${what}`);

for (const [path, budget] of Object.entries(PAGES)) {
  const page = readFileSync(join(dist, path), "utf8");
  const linked = [...page.matchAll(/(?:href|src)="\/([^"]+)"(?! media="print")/g)].map(([, path]) => path);
  const plotly = page.match(/name="plotly-src"[^>]* content="\/([^"]+)"/)[1];
  const files = [path, ...new Set(linked)];
  const total = files.reduce((sum, file) => sum + size(file), 0);

  for (const file of files) line(size(file), file);
  line(total, `before the first answers (budget ${budget.toLocaleString("en")} bytes in brotli)`);
  line(total + size(plotly), "with Plotly");

  if (total > budget) {
    console.error(`${path} is ${total - budget} bytes over its budget.`);
    process.exitCode = 1;
  }
}

const search = readdirSync(dist).filter((file) => /^trainplan-search-.*\.(js|wasm)$/.test(file));
const bytes = search.reduce((sum, file) => sum + size(file), 0);
line(bytes, `the search worker (budget ${SEARCH_BUDGET.toLocaleString("en")})`);
if (bytes > SEARCH_BUDGET) {
  console.error(`The search worker is ${bytes - SEARCH_BUDGET} bytes over its budget.`);
  process.exitCode = 1;
}
