/** Builds the page into the Python package, where the server reads its files. */

import { defineConfig } from "vite";

const PAGE = "../sglang_omni/entrypoints/playground/page";

export default defineConfig({
  base: "./",
  // The server has the page at "/" and its files under "/playground/".
  experimental: {
    renderBuiltUrl: (name, { hostType }) =>
      hostType === "html" ? `playground/${name}` : { relative: true },
  },
  build: {
    outDir: PAGE,
    emptyOutDir: true,
    assetsDir: "",
    modulePreload: false,
    target: "es2023",
    rolldownOptions: {
      input: {
        main: "index.html",
        playback_worklet: "src/audio/playback_worklet.ts",
        microphone_worklet: "src/audio/microphone_worklet.ts",
      },
      // Names without hashes: the server tells browsers when a file has changed.
      output: {
        entryFileNames: "[name].js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
});
