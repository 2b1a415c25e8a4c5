#!/usr/bin/env bash
# The page at / in headless Chromium with a fake microphone: text, files, voice turns, barge-in,
# voices, images, keys, errors, a server that goes away, phone and desktop, light and dark, barriers for
# keyboards and screen readers; before real servers on the tiny checkpoint and the bundled model as
# well; and the documentation at /docs. Any complaint of the browser fails it. Needs a Chromium
# (Debian: apt-get install chromium; $CHROMIUM names another one). What drives it is
# installed in .cache/browser, for this alone. Screenshots: .cache/playground, or
# $SGLANG_OMNI_SCREENSHOTS. Arguments go to pytest. About seven minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
driver=.cache/browser
packages="playwright==1.65.2 axe-playwright-python==0.1.8"
if [ "$(cat "$driver/installed" 2>/dev/null)" != "$packages" ]; then
  # shellcheck disable=SC2086
  "$python" -m uv pip install --quiet --python "$python" --target "$driver" $packages
  echo "$packages" >"$driver/installed"
fi
if [ -z "${CHROMIUM:-$(command -v chromium chromium-browser google-chrome | head -1)}" ]; then
  echo "there is no Chromium: apt-get install chromium, or set CHROMIUM" >&2
  exit 1
fi
export PYTHONPATH="$PWD/$driver${PYTHONPATH:+:$PYTHONPATH}"
exec "$python" -m pytest -m browser "$@"
