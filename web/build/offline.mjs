// Writes the service worker of a finished build: `sw.js` with the list of its files.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

const NAME = "sw.js";
// As in the server (assets.rs): files with a hash in their names never change.
const HASH = /[-_.][0-9a-f]{12,}[-_.]/;

/** Writes the service worker of the app in a folder. Call it again whenever a file in the folder changes. */
export function writeServiceWorker(folder) {
  const hashed = {};
  const others = {};
  const pages = {};
  const addresses = new Map();
  for (const path of appFiles(folder)) {
    const digest = createHash("sha256").update(readFileSync(join(folder, path))).digest("base64");
    const route = path === "index.html" ? "" : path.match(/^(.*)\/index\.html$/)?.[1];
    if (HASH.test(path)) {
      hashed[path] = `sha256-${digest}`;
    } else if (!path.endsWith(".html")) {
      others[path] = `sha256-${digest}`;
    } else if (route !== undefined) {
      // Several routes have the same page, which is stored once.
      const address = addresses.get(digest) ?? (route ? `${route}/` : "");
      addresses.set(digest, address);
      others[address] = `sha256-${digest}`;
      pages[route] = address;
    }
  }
  const template = readFileSync(join(import.meta.dirname, NAME), "utf8");
  const version = createHash("sha256").update(JSON.stringify([template, hashed, others, pages])).digest("hex").slice(0, 16);
  const constants = { HASHED: hashed, OTHERS: others, PAGES: pages, VERSION: version };
  const script = Object.entries(constants).reduce((script, [name, value]) => {
    const empty = new RegExp(`^const ${name} = .*;$`, "m");
    if (!empty.test(script)) throw new Error(`${NAME} has no constant ${name}`);
    return script.replace(empty, () => `const ${name} = ${JSON.stringify(value, null, 2)};`);
  }, template);
  writeFileSync(join(folder, NAME), script);
}

/** Returns the paths of the app's files, sorted, without their compressed copies and the pages in place of the API. */
function appFiles(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((path) => path !== NAME && !path.startsWith("api/") && !/\.(br|gz)$/.test(path))
    .sort();
}
