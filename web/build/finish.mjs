// Runs after Trunk, on the folder that becomes `dist`: adds Plotly and the licences, and writes a page for each route. For
// a release it also minifies the scripts and the styles, and adds a strict content security policy that works on any static host, a service
// worker and compressed files.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

import { minify } from "terser";

import { writeServiceWorker } from "./offline.mjs";

// A page for each route, for hosts that serve files only. An unknown path opens the planner, which shows "Page not found".
// Links to /search, which was once a separate page, still work.
const PLANNER_PAGES = ["index.html", "search/index.html", "404.html"];
// Links to /recipes, which is what the page was called, still work.
const BENCHMARKS_PAGES = ["benchmarks/index.html", "recipes/index.html"];
const RESULTS_PAGES = ["results", "compare", "run", "history"].map((page) => `${page}/index.html`);
const PLANNER_GLUE = /trainplan-planner-[0-9a-f]+\.js/;
const COMPRESSED = new Set([".css", ".csv", ".html", ".js", ".json", ".svg", ".txt", ".wasm", ".webmanifest"]);

const web = join(import.meta.dirname, "..");
const dist = process.env.TRUNK_STAGING_DIR;
const isRelease = process.env.TRUNK_PROFILE === "release";

const trunks = await minifyPlanner(readFileSync(join(dist, "index.html"), "utf8"));
const plotly = addPlotly(forPaper(trunks));
const palette = await addPalette();
const programs = {};
for (const name of ["worker", "search", "details", "benchmarks", "results"]) programs[name] = await program(name);
// The programs that a page starts later: its workers, and the details of the Plan page.
const planner = ["worker", "search", "details"].reduce(addStart, plotly);
const benchmarks = addBenchmarks(openProgram(planner, "benchmarks"));
const results = openProgram(planner, "results");
for (const [html, pages] of [[withoutStyles(planner, "runs"), PLANNER_PAGES], [benchmarks, BENCHMARKS_PAGES], [results, RESULTS_PAGES]]) {
  const page = isRelease ? shortened(addPolicy(moveInlineScript(html))) : html;
  for (const path of pages) {
    mkdirSync(join(dist, path, ".."), { recursive: true });
    writeFileSync(join(dist, path), page);
  }
}
addLicences();
addNoServer();
if (isRelease) {
  shortenStyles();
  writeServiceWorker(dist);
  compress();
}

/** Returns a page without comments and indentation. */
function shortened(html) {
  return html.replace(/<!--[^]*?-->/g, "").replace(/\n\s+/g, "\n");
}

/** Removes comments, line breaks and needless spaces from the styles. None of their strings contains any. */
function shortenStyles() {
  for (const file of readdirSync(dist).filter((file) => extname(file) === ".css")) {
    const styles = readFileSync(join(dist, file), "utf8");
    const short = styles
      .replace(/\/\*[^]*?\*\//g, "")
      .replace(/\s+/g, " ")
      .replace(/ ?([{};,>]) ?/g, "$1")
      .replace(/: /g, ":")
      .replace(/;}/g, "}");
    writeFileSync(join(dist, file), short.trim());
  }
}

/** Returns the page with the styles of paper only for paper, so that they never delay the first answers. */
function forPaper(html) {
  return replaceOnce(html, /<link[^>]*href="(\/print-[0-9a-f]+\.css)"[^>]*>/, (_, path) => `<link rel="stylesheet" href="${path}" media="print">`);
}

/** Adds Plotly, and its address for the app, which loads it with the first chart. */
function addPlotly(html) {
  const from = join(web, "node_modules", "plotly.js-basic-dist-min");
  const script = writeHashed("plotly", readFileSync(join(from, "plotly-basic.min.js")));
  return replaceOnce(html, /(<meta name="plotly-src"[^>]* content=")"/, (_, tag) => `${tag}/${script}"`);
}

/** Adds the script and the styles of the command palette, which the script on every page fetches, and returns the script's name. */
async function addPalette() {
  const styles = writeHashed("palette", readFileSync(join(web, "..", "static", "palette.css")), ".css");
  const script = readFileSync(join(import.meta.dirname, "palette.js"), "utf8");
  return writeHashed("palette", await minified(replaceOnce(script, /"palette\.css"/, () => JSON.stringify(styles))));
}

/** Adds the measured runs and recipes, and their address for the page, which fetches them while its program starts. */
function addBenchmarks(html) {
  const data = readFileSync(join(web, "..", "shared", "data", "benchmarks.csv"));
  const name = writeHashed("benchmarks", data, ".csv");
  const named = replaceOnce(html, /(<meta name="benchmarks-src" content=")"/, (_, tag) => `${tag}/${name}"`);
  const preload = `<link rel="preload" as="fetch" crossorigin href="/${name}">`;
  return replaceOnce(named, /<\/head>/, (head) => `${preload}${head}`);
}

/** Adds the licences of the app and its dependencies, which must be distributed with it. */
function addLicences() {
  const root = join(web, "..");
  const { packages, texts } = JSON.parse(readFileSync(join(root, "runner", "data", "licenses.json"), "utf8"));
  const contained = packages.filter(({ parts }) => parts.includes("web app"));
  const sections = [
    ...["LICENSE-APACHE", "LICENSE-MIT"].map((name) => ["Trainplan", readFileSync(join(root, name), "utf8").trim()]),
    ...texts.map((text, number) => {
      const under = contained.filter(({ texts }) => texts.includes(number));
      return [under.map(({ name, version }) => `${name} ${version}`).join("\n"), text];
    }),
  ];
  const shown = sections.filter(([names]) => names).map(([names, text]) => `${names}\n\n${text}\n`);
  writeFileSync(join(dist, "licenses.txt"), shown.join(`\n${"=".repeat(80)}\n`));
}

/** Adds pages at the first addresses that the app requests from a server, so that a static host causes no console errors. */
function addNoServer() {
  for (const path of ["api/v1/runs", "api/v1/history"]) {
    mkdirSync(join(dist, path), { recursive: true });
    writeFileSync(join(dist, path, "index.html"), "<!doctype html><title>No server</title><p>Only files are served here.</p>\n");
  }
}

/** Adds a script that starts a program, and its address for the app. */
function addStart(html, name) {
  const { wasm, glue } = programs[name];
  const start = `import init from "/${glue}";\nawait init({ module_or_path: "/${wasm}" });\n`;
  const script = writeHashed(name, start);
  return replaceOnce(html, new RegExp(`(<meta name="${name}-src" content=")"`), (_, tag) => `${tag}/${script}"`);
}

/** Returns the page with another program instead of the planner, which Trunk put there, and without the planner's styles. */
function openProgram(html, name) {
  const { wasm, glue } = programs[name];
  const [plannerGlue] = html.match(PLANNER_GLUE);
  const [plannerWasm] = html.match(/trainplan-planner-[0-9a-f]+_bg\.wasm/);
  const opened = html.replaceAll(plannerWasm, wasm).replaceAll(plannerGlue, glue);
  return withoutStyles(opened, "plan");
}

/** Returns the page without the link to a style sheet. */
function withoutStyles(html, name) {
  return replaceOnce(html, new RegExp(`<link[^>]*href="/${name}-[0-9a-f]+\\.css"[^>]*>`), () => "");
}

/** Minifies the script of the program that Trunk put on the page. */
async function minifyPlanner(html) {
  const [glue] = html.match(PLANNER_GLUE);
  return html.replaceAll(glue, writeHashed("trainplan-planner", await minified(take(glue))));
}

/** Adds hashes to the file names of a program that Trunk did not put on the page, so that browsers never cache an old one. */
async function program(name) {
  const stem = `trainplan-${name}`;
  return {
    wasm: writeHashed(stem, take(`${stem}_bg.wasm`), ".wasm"),
    glue: writeHashed(stem, await minified(take(`${stem}.js`))),
  };
}

/** Returns the content of a file in `dist` and removes it. */
function take(file) {
  const content = readFileSync(join(dist, file));
  rmSync(join(dist, file));
  return content;
}

/** Returns a script of wasm-bindgen, which is written to be read, in a quarter fewer bytes. */
async function minified(script) {
  if (!isRelease) return script;
  return (await minify(script.toString(), { module: true, compress: { passes: 2 } })).code;
}

/**
 * Moves Trunk's inline script to a file, because a policy would have to list the hash of an inline script. The file also
 * registers the service worker, reports changes of the system's theme, and opens the command palette.
 */
function moveInlineScript(html) {
  const script = readFileSync(join(import.meta.dirname, "register.js"), "utf8").replace(/^\s*\/\/.*\n/gm, "");
  const register = replaceOnce(script, /"\.\/palette\.js"/, () => `"/${palette}"`);
  return replaceOnce(
    html,
    /<script type="module"[^>]*>([^<]+)<\/script>/,
    (_, code) => `<script type="module" src="/${writeHashed("boot", `${code}\n${register}`)}"></script>`,
  );
}

/** Adds the policy, which the server sends as a header but a static host may not. */
function addPolicy(html) {
  const policy = readFileSync(join(web, "csp.txt"), "utf8").trim();
  return replaceOnce(
    html,
    /<meta charset="utf-8">/,
    (charset) => `${charset}<meta http-equiv="Content-Security-Policy" content="${policy}">`,
  );
}

function compress() {
  for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !COMPRESSED.has(extname(entry.name))) continue;
    const file = join(entry.parentPath, entry.name);
    const content = readFileSync(file);
    // Short distances of their own make WebAssembly 0.14 % smaller.
    const params = {
      [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
      [constants.BROTLI_PARAM_NDIRECT]: 15,
    };
    writeFileSync(`${file}.br`, brotliCompressSync(content, { params }));
    writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
  }
}

/** Writes a file under a name that changes with its content, and returns the name. */
function writeHashed(stem, content, extension = ".js") {
  const name = `${stem}-${createHash("sha256").update(content).digest("hex").slice(0, 16)}${extension}`;
  writeFileSync(join(dist, name), content);
  return name;
}

/** Replaces the only match of a pattern. Fails if there is not exactly one, because Trunk's output has changed. */
function replaceOnce(html, pattern, replacement) {
  const found = html.match(new RegExp(pattern, "g"))?.length ?? 0;
  if (found !== 1) throw new Error(`There are ${found} matches of ${pattern}, not one`);
  return html.replace(pattern, replacement);
}
