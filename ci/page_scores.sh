#!/usr/bin/env bash
# Lighthouse's scores of the page for accessibility and best practices, on a desktop and a phone.
#
#   ci/page_scores.sh http://127.0.0.1:8000 benchmarks/results/page_lighthouse.json
#
# Fails below 95. Needs a running server, a Chromium ($CHROME_PATH), Node.js 20 and npm.
set -euo pipefail
cd "$(dirname "$0")/.."
url=${1:?the address of a server}
out=$(realpath "${2:?a file for the scores}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CHROME_PATH=${CHROME_PATH:-$(command -v chromium chromium-browser google-chrome | head -1)}
COMMIT=$(git rev-parse --short HEAD)
export COMMIT
cp web/scores.mjs "$work"
cd "$work"
npm install --silent lighthouse@13.5.0
node scores.mjs "$url" "$out"
