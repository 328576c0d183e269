// Takes screenshots of pages, in three widths, light and dark, and writes them to screenshots/.
//
//   node screenshots.mjs URL...

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { chromium } from "@playwright/test";

import { launchOptions } from "./browser.mjs";

const folder = join(import.meta.dirname, "screenshots");
const views = {
  wide: { width: 1920, height: 1080 },
  usual: { width: 1280, height: 800 },
  narrow: { width: 360, height: 740 },
};

mkdirSync(folder, { recursive: true });
const browser = await chromium.launch(launchOptions);
for (const url of process.argv.slice(2)) {
  const { pathname, search } = new URL(url);
  const name = `${pathname}${search}`.replace(/[^a-z0-9]+/gi, "-").replace(/^-|-$/g, "") || "index";
  for (const [width, viewport] of Object.entries(views)) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await browser.newPage({ viewport, colorScheme });
      await page.goto(url);
      // Not until the network is idle: pages keep a stream of events open.
      await page.waitForTimeout(3000);
      const path = join(folder, `${name}-${width}-${colorScheme}.png`);
      await page.screenshot({ path, fullPage: true });
      await page.close();
      console.log(path);
    }
  }
}
await browser.close();
