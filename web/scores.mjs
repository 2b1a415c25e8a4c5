/** Writes Lighthouse's scores of a page to a file; `ci/page_scores.sh` runs this beside Lighthouse. */

import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { launch } from "chrome-launcher";
import lighthouse, { desktopConfig } from "lighthouse";

const LEAST = 95;
const CATEGORIES = ["accessibility", "best-practices"];

const [url, out] = process.argv.slice(2);
const chrome = await launch({ chromeFlags: ["--headless=new", "--no-sandbox"] });
const options = { port: chrome.port, logLevel: "error", onlyCategories: CATEGORIES };
const scores = {};
let version = "";
for (const [device, config] of [
  ["desktop", desktopConfig],
  ["phone", undefined],
]) {
  const { lhr } = await lighthouse(url, options, config);
  version = lhr.lighthouseVersion;
  scores[device] = Object.fromEntries(
    CATEGORIES.map((name) => [name, Math.round(100 * lhr.categories[name].score)]),
  );
}
await chrome.kill();
const machine = { device: cpus()[0].model, devices: cpus().length, commit: process.env.COMMIT };
const found = { lighthouse: version, url: new URL(url).pathname, machine, scores };
writeFileSync(out, `${JSON.stringify(found, null, 1)}\n`);
console.log(JSON.stringify(scores));
const all = Object.values(scores).flatMap(Object.values);
process.exit(all.every((score) => score >= LEAST) ? 0 : 1);
