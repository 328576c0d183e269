// How Debian's Chromium is started: kept from everything it does besides showing our pages.

const args = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"];
// Root, as in many a CI, gets no sandbox from Chromium.
if (process.getuid() === 0) args.push("--no-sandbox");

export const launchOptions = { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args };
