#!/usr/bin/env bash
# The sources of the page in web/: format, types, tests of the modules that need no browser, and
# that the page in the package is what they build. Needs Node.js 20 and npm, and npm's registry.
#
#   ci/page.sh           checks
#   ci/page.sh --build   writes the page, and the licences of what is in it
set -euo pipefail
cd "$(dirname "$0")/../web"
package=../sglang_omni/entrypoints/playground
npm ci --silent
if [ "${1:-}" = --build ]; then
    npm run --silent format
    npm run --silent build
    node licenses.mjs > $package/licenses.txt
    exit
fi
npm run --silent check
npm run --silent test
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
npm run --silent build -- --logLevel warn --outDir "$built" --emptyOutDir
node licenses.mjs | diff - $package/licenses.txt
diff -r "$built" $package/page || { echo "the page is older than web/: ci/page.sh --build" >&2; exit 1; }
echo "the page is what web/ builds"
