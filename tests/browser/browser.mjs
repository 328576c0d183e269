// Starts Debian's Chromium without its background traffic.

const args = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"];
// Chromium's sandbox does not work for root, which CI often runs as.
if (process.getuid() === 0) args.push("--no-sandbox");

export const launchOptions = { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args };
