// Starts Debian's Chromium without its background traffic.

import { existsSync } from "node:fs";

const args = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"];
// Chromium's sandbox does not work for root, which CI often runs as.
if (process.getuid() === 0) args.push("--no-sandbox");

// The shell has no windows to draw, so that a test takes a quarter less time.
const shell = "/usr/bin/chromium-headless-shell";
const installed = existsSync(shell) ? shell : "/usr/bin/chromium";

export const launchOptions = { executablePath: process.env.CHROMIUM ?? installed, args };
