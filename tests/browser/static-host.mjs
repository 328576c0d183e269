// A host of files alone, on which the app may be published. It prefers compressed files, and records what it sends.

import { readFile, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";

const TYPES = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".txt": "text/plain",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
};

export class StaticHost {
  /** The files sent so far: path, size of the body in bytes, and time in milliseconds since 1970. */
  sent = [];

  /** Serves a folder, below a path that ends with a slash. */
  static async start(folder, base = "/") {
    const host = new StaticHost();
    host.server = createServer((request, response) => host.answer(folder, base, request, response));
    await new Promise((resolve) => host.server.listen(0, "127.0.0.1", resolve));
    host.url = `http://127.0.0.1:${host.server.address().port}`;
    return host;
  }

  /** Stops at once: open connections are closed. */
  async end() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  async answer(folder, base, request, response) {
    const { pathname } = new URL(request.url, this.url);
    const inside = pathname.startsWith(base) && !pathname.includes("..");
    const path = inside ? await found(folder, pathname.slice(base.length)) : null;
    if (path === null) {
      response.writeHead(404, { "content-type": "text/html" }).end(await readFile(join(folder, "404.html")));
      return;
    }
    const accepted = request.headers["accept-encoding"] ?? "";
    const compressed = /\bbr\b/.test(accepted) ? await readFile(join(folder, `${path}.br`)).catch(() => null) : null;
    const content = compressed ?? (await readFile(join(folder, path)));
    // As in the server (assets.rs).
    const isHashed = /[-_.][0-9a-f]{12,}[-_.]/.test(path);
    response.writeHead(200, {
      "content-type": TYPES[extname(path)] ?? "application/octet-stream",
      "cache-control": isHashed ? "public, max-age=31536000, immutable" : "no-cache",
      ...(compressed && { "content-encoding": "br" }),
    });
    response.end(content, () => this.sent.push({ path, bytes: content.length, at: Date.now() }));
  }
}

/** Returns the path of the file or page at an address, or null. */
async function found(folder, path) {
  for (const candidate of [path, join(path, "index.html")]) {
    const entry = await stat(join(folder, candidate)).catch(() => null);
    if (entry?.isFile()) return candidate;
  }
  return null;
}
