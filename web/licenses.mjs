/** Writes the licences of the packages in the page: node licenses.mjs > LICENSES_OF_THE_PAGE. */

import { readFileSync, readdirSync } from "node:fs";

const PACKAGES = ["preact", "@preact/signals", "@preact/signals-core", "marked"];

for (const name of PACKAGES) {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((found) => /^licen[cs]e/i.test(found));
  const text = readFileSync(`${folder}/${file}`, "utf8").trim();
  console.log(`${name} ${version} (${license})\n\n${text}\n`);
}
