/** Imports point one way: `README.md` has the order of the folders. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "vitest";

const SOURCES = "src";
const FOLDERS = ["text", "server", "audio", "state", "actions", "views"];
const IMPORT = /^(?:import|export)(?! type )[^;]*? from "(\.[^"]+)";$/gm;

/** The modules that each module imports. */
const imports = new Map<string, string[]>();
for (const name of readdirSync(SOURCES, { recursive: true, encoding: "utf8" })) {
  if (!/\.tsx?$/.test(name)) continue;
  const text = readFileSync(join(SOURCES, name), "utf8");
  const found = [...text.matchAll(IMPORT)].map(([, path = ""]) => join(dirname(name), path));
  imports.set(normalize(name), found.map(normalize));
}

test("no folder imports from one that comes after it", () => {
  const rank = (name: string) => FOLDERS.indexOf(name.split("/")[0] ?? "");
  const wrong = [...imports].flatMap(([name, found]) =>
    found
      .filter((other) => rank(name) >= 0 && rank(other) > rank(name))
      .map((other) => [name, other]),
  );
  assert.ok(imports.size > 40);
  assert.deepEqual(wrong, []);
});

test("no module imports itself by way of others", () => {
  const done = new Set<string>();
  const visit = (name: string, path: string[]): void => {
    assert.ok(!path.includes(name), [...path, name].join(" → "));
    if (done.has(name)) return;
    for (const other of imports.get(name) ?? []) visit(other, [...path, name]);
    done.add(name);
  };
  for (const name of imports.keys()) visit(name, []);
});
