/** The words of the page: none is left over. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "vitest";
import { en } from "../src/text/en.ts";

const SOURCES = "src";

test("every word is used", () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" });
  const code = files
    .filter((name) => /\.tsx?$/.test(name) && !name.startsWith("text"))
    .map((name) => readFileSync(join(SOURCES, name), "utf8"))
    .join("\n");
  // The names of the views are also the keys of their words.
  const unused = Object.keys(en).filter((key) => !new RegExp(`\\.${key}\\b|"${key}"`).test(code));
  assert.deepEqual(unused, []);
});
