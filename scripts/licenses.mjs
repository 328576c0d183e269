#!/usr/bin/env node
// Collects the licences of the packages in the program and the web app in runner/data/licenses.json, for `trainplan licenses`
// and the web app's licenses.txt.
//
//   scripts/licenses.mjs          writes the file; run `make licenses` after a change of dependencies
//   scripts/licenses.mjs --check  fails if the file and the lock files list different packages

import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const file = join(root, "runner", "data", "licenses.json");
const PROGRAM = "program";
const WEB_APP = "web app";
const TARGETS = {
  [PROGRAM]: { crate: "trainplan", triples: ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] },
  [WEB_APP]: { crate: "trainplan-web", triples: ["wasm32-unknown-unknown"] },
};

// C libraries within crates that have another licence than the crate.
const INSIDE = {
  "libsqlite3-sys": {
    name: "SQLite",
    license: "blessing",
    version: (folder) => read(folder, "sqlite3/sqlite3.h").match(/#define SQLITE_VERSION +"([^"]+)"/)[1],
    texts: (folder) => [read(folder, "sqlite3/sqlite3.h").match(/\*\* (The author disclaims[^]*?)\n\*\*\*/)[1].replace(/^\*\*/gm, "")],
  },
  "zstd-sys": {
    name: "Zstandard",
    license: "BSD-3-Clause",
    version: (folder) => folder.match(/zstd\.([\d.]+)/)[1],
    texts: (folder) => [read(folder, "zstd/LICENSE")],
  },
};

const shipped = packages();
if (process.argv[2] === "--check") {
  check();
} else {
  write();
}

/** Every package that is shipped, from the lock files alone: {name, version, parts, from}. */
function packages() {
  const found = new Map();
  const add = (from, name, version, part) => {
    const key = `${name} ${version}`;
    if (!found.has(key)) found.set(key, { name, version, parts: [], from });
    found.get(key).parts.push(part);
  };
  for (const [part, { crate, triples }] of Object.entries(TARGETS)) {
    // Build and test dependencies are not shipped.
    const targets = triples.flatMap((triple) => ["--target", triple]);
    const tree = cargo("tree", "--package", crate, ...targets, "--edges", "normal,no-proc-macro", "--prefix", "none");
    const lines = tree.split("\n").map((line) => line.replace(/ \(\*\)$/, "")); // marks a package that is listed above
    for (const line of new Set(lines)) {
      const [name, version, path] = line.split(" ");
      if (name && !path) add("crate", name, version.slice(1), part);
    }
    add("toolchain", "Rust standard library", read(root, "rust-toolchain.toml").match(/^channel = "(.+)"/m)[1], part);
  }
  for (const [path, { version, dev }] of Object.entries(JSON.parse(read(root, "web/package-lock.json")).packages)) {
    if (path && !dev) add("npm", path.replace(/^.*node_modules\//, ""), version, WEB_APP);
  }
  return [...found.values()].sort((a, b) => order(a.name, b.name) || order(a.version, b.version));
}

/** Fails if the file and the lock files differ. */
function check() {
  const key = ({ name, version, parts }) => `${name} ${version} (${parts.join(", ")})`;
  const inside = new Set(Object.values(INSIDE).map(({ name }) => name));
  const listed = JSON.parse(read(file)).packages.filter(({ name }) => !inside.has(name)).map(key);
  const locked = shipped.map(key);
  const lines = [
    ...locked.filter((each) => !listed.includes(each)).map((each) => `  missing: ${each}`),
    ...listed.filter((each) => !locked.includes(each)).map((each) => `  no longer shipped: ${each}`),
  ];
  if (lines.length) {
    console.error(`runner/data/licenses.json is out of date. Run \`make licenses\`.\n${lines.join("\n")}`);
    process.exit(1);
  }
}

/** Writes the file: a line for every package, then a line for every text. */
function write() {
  const texts = [];
  const known = new Map();
  const numberOf = (text) => {
    // Texts that differ only in line breaks are equal.
    const key = text.replace(/\s+/g, " ").trim();
    if (!known.has(key)) {
      known.set(key, texts.length);
      texts.push(tidy(text));
    }
    return known.get(key);
  };
  const rows = withLicences().map(({ name, version, license, parts, texts }) => {
    const numbers = [...new Set(texts.map(numberOf))];
    return { name, version, license, parts, texts: numbers };
  });
  const lines = (values) => values.map((value) => `    ${JSON.stringify(value)}`).join(",\n");
  writeFileSync(file, `{\n  "packages": [\n${lines(rows)}\n  ],\n  "texts": [\n${lines(texts)}\n  ]\n}\n`);
  console.error(`licenses: ${rows.length} packages, ${texts.length} texts, in runner/data/licenses.json`);
}

/** The shipped packages with their licences, and those that are inside of them. */
function withLicences() {
  const triples = Object.values(TARGETS).flatMap(({ triples }) => triples);
  const metadata = cargo("metadata", "--format-version", "1", ...triples.flatMap((triple) => ["--filter-platform", triple]));
  const crates = new Map(JSON.parse(metadata).packages.map((crate) => [`${crate.name} ${crate.version}`, crate]));
  return shipped.flatMap((each) => {
    if (each.from === "toolchain") return { ...each, ...standardLibrary() };
    if (each.from === "npm") {
      const folder = join(root, "web", "node_modules", each.name);
      const { license, author } = JSON.parse(read(folder, "package.json"));
      return { ...each, license, texts: textsOf(folder, each, license, [author?.name ?? author]) };
    }
    const { license, license_file, authors, manifest_path } = crates.get(`${each.name} ${each.version}`);
    const folder = join(manifest_path, "..");
    const expression = license?.replace(/ *\/ */g, " OR ") ?? `see ${license_file}`;
    const inside = INSIDE[each.name];
    return [
      { ...each, license: expression, texts: textsOf(folder, each, expression, authors) },
      ...(inside ? [{ ...each, ...inside, version: inside.version(folder), texts: inside.texts(folder) }] : []),
    ];
  });
}

/** Returns the licence texts in a package's folder, or replacements. */
function textsOf(folder, { name, version }, license, authors) {
  const texts = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /^(un)?(licen[sc]e|copying|copyright|notice)/i.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !/\.(rs|py|js)$|\/node_modules\//.test(path))
    .sort()
    .map((path) => read(path))
    // Of a choice with the GPL we take the other licence.
    .filter((text) => !/^\s*GNU (LESSER )?GENERAL PUBLIC/.test(text) || /^\(?L?GPL/.test(license));
  if (texts.length) return texts;
  // Some packages lack the text of a standard licence.
  const holder = authors.filter(Boolean).map((author) => author.replace(/ *<.*>/, "")).join(", ") || `the authors of ${name}`;
  if (/\bMIT\b/.test(license)) return [read(root, "LICENSE-MIT").replace(/^Copyright.*$/m, `Copyright (c) ${holder}`)];
  if (/\bApache-2\.0\b/.test(license)) return [read(root, "LICENSE-APACHE")];
  console.error(`licenses: ${name} ${version} (${license}) has no licence text`);
  return [];
}

/** The Rust standard library's licences and those of the crates in it, from the page that the toolchain brings. */
function standardLibrary() {
  const sysroot = execFileSync("rustc", ["--print", "sysroot"], { cwd: root, encoding: "utf8" }).trim();
  const page = read(sysroot, "share/doc/rust/COPYRIGHT-library.html");
  const [own, others] = page.slice(page.indexOf('<h2 id="short-version">')).split(/^.*<h2 id="out-of-tree-dependencies">.*$/m);
  const notices = [...others.matchAll(/<pre>([^]*?)<\/pre>/g)].map(([, notice]) => plain(notice));
  return { license: "Apache-2.0 OR MIT", texts: [plain(own), ...notices] };
}

/** HTML as text. */
function plain(html) {
  const letters = { lt: "<", gt: ">", amp: "&", quot: '"' };
  return html
    .replace(/<[^>]*>/g, "")
    .replace(/&#(x?)([0-9a-f]+);/gi, (_, hex, digits) => String.fromCodePoint(parseInt(digits, hex ? 16 : 10)))
    .replace(/&(lt|gt|amp|quot);/g, (_, name) => letters[name])
    .replace(/\n\s*\n+/g, "\n\n");
}

/** A text without what is only noise in it. */
function tidy(text) {
  const lines = text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n").split("\n").map((line) => line.trimEnd());
  return lines.join("\n").replace(/^\n+|\n+$/g, "");
}

function read(...path) {
  return readFileSync(join(...path), "utf8");
}

function cargo(...args) {
  return execFileSync("cargo", [...args, "--locked"], { cwd: root, encoding: "utf8", maxBuffer: 1 << 28 });
}

/** Alike on every machine, whatever its language. */
function order(a, b) {
  return a < b ? -1 : Number(a > b);
}
