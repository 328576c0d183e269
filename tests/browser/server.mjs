// A server for a single test, and helpers to upload runs to it.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { test as base } from "./fixtures.mjs";

const binary = process.env.TRAINPLAN_BIN;

/** Playwright's `test` with its own `server`; `options` are additional arguments of `serve`. */
export const test = base.extend({
  options: [[], { option: true }],
  server: async ({ options }, use) => {
    const server = await Server.start(options);
    await use(server);
    server.end();
  },
  baseURL: async ({ server }, use) => use(server.url),
});

/** Returns the part of a result that `trainplan run` adds. */
export const carried = (run, repeat = 1, cluster = "eos") => ({
  campaign: "nightly",
  run,
  repeat,
  cluster,
  jobs: [{ id: "71", name: "pretrain", state: "COMPLETED", exit_code: 0, nodes: "n[1-64]" }],
  launch: { release: "25.04", style: "launch-sh", script_sha256: "0".repeat(64), steps: 50, comparable: { yes: true, reasons: [] } },
  plan: {
    step_time_s: { low: 11.4, mid: 12.0, high: 12.9 },
    memory_bytes: 6e10,
    capacity_bytes: 8e10,
    basis: "published",
    calibration: "trainplan 0.1.0",
  },
});

export class Server {
  runs = 0;
  data = mkdtempSync(join(tmpdir(), "trainplan-data-"));

  static async start(options = []) {
    const server = new Server();
    server.process = spawn(binary, ["serve", "--listen", "127.0.0.1:0", "--data-dir", server.data, ...options]);
    for await (const line of createInterface({ input: server.process.stderr })) {
      server.url ??= line.match(/http:\/\/127\.0\.0\.1:\d+/)?.[0];
      server.token = line.match(/#token=(\w+)/)?.[1];
      if (server.token) break;
    }
    return server;
  }

  end() {
    this.process.kill();
  }

  /** Uploads a run and returns its id; that of a campaign's run can be given. Steps take `seconds`, give or take `wave`. With `nan`, it isn't scored. */
  async put(seconds, { id, carried, gpus = 512, gbs = gpus / 2, wave = 0.1, log = true, steps = 50, name, nan = false } = {}) {
    // Each log differs by its learning rate: equal logs are the same run.
    const run = this.runs++;
    const folder = mkdtempSync(join(tmpdir(), "trainplan-"));
    const path = join(folder, name ?? `log-acct.pretrain_llama3.1_405b_fp8_${gpus}_${71 + run}_0.out`);
    const lines = Array.from({ length: steps }, (_, step) => {
      const time = step === 0 ? 4 * seconds : step === steps - 1 ? seconds : seconds + wave * Math.sin(step * step * 1.7);
      const loss = nan && step === 0 ? "nan" : (12 - step / 10 + 0.05 * Math.sin(step * 3)).toFixed(3);
      return (
        `Training epoch 0, iteration ${step}/${steps - 1} | lr: ${run}e-06 | global_batch_size: ${gbs} | global_step: ${step} | ` +
        `reduced_train_loss: ${loss} | train_step_timing in s: ${time.toFixed(3)} | ` +
        `consumed_samples: ${gbs * (step + 1)}\n`
      );
    });
    writeFileSync(path, lines.join(""));
    // 4: the log was not scored. It is saved all the same.
    const { status, stderr } = spawnSync(binary, ["parse", path, "--save", folder]);
    if (status !== 0 && status !== 4) throw new Error(`parse: ${stderr}`);
    const file = join(folder, readdirSync(folder).find((name) => name.endsWith(".result.json")));
    const parsed = JSON.parse(readFileSync(file, "utf8"));
    const result = { ...parsed, id: id ?? parsed.id };
    const body = Buffer.from(JSON.stringify(carried ? { ...result, carried } : result));
    const digest = createHash("sha256").update(body).digest("base64");
    await this.send("PUT", `/runs/${result.id}`, body, { "content-digest": `sha-256=:${digest}:` });
    if (log) {
      await this.send("PUT", `/runs/${result.id}/log`, readFileSync(path), { "upload-offset": "0", "upload-complete": "?1" });
    }
    return result.id;
  }

  /** Returns the file of the only stored log. */
  blob() {
    const name = readdirSync(join(this.data, "blobs"), { recursive: true }).find((name) => name.endsWith(".zst"));
    return join(this.data, "blobs", name);
  }

  /** Uploads files with `trainplan upload`. */
  upload(...files) {
    const env = { ...process.env, TRAINPLAN_TOKEN: this.token, TRAINPLAN_DATA_DIR: mkdtempSync(join(tmpdir(), "trainplan-")) };
    return execFileSync(binary, ["upload", ...files, "--to", this.url, "--format", "csv"], { env, stdio: "pipe" }).toString();
  }

  async send(method, path, body, headers = {}) {
    const authorization = `Bearer ${this.token}`;
    const response = await fetch(`${this.url}/api/v1${path}`, { method, body, headers: { authorization, ...headers } });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response;
  }
}
