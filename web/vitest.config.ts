/** Tests of the modules that need no page; `tests/globals.ts` has what they need of a browser. */

import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { setupFiles: ["tests/globals.ts"] },
});
