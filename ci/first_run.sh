#!/usr/bin/env bash
# A new user's first minutes: clone, `make serve`, open the page, ask what the start screen proposes
# and hear the answer; then the command that it prints for speech. Fails when the first spoken answer
# takes more than three minutes. Usage: ci/first_run.sh [PORT [FOLDER FOR PICTURES]]
#
# The page is opened in the system's Chromium by what `ci/browser.sh` has installed.
set -euo pipefail
port=${1:-8642}
pictures=$(realpath -m "${2:-.cache/first_run}")
source=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
export XDG_CACHE_HOME=$scratch/cache XDG_STATE_HOME=$scratch/state
cd "$scratch"

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
SECONDS=0
git clone --quiet "$source" clone
cd clone
say "cloned $(git rev-parse --short HEAD)"
make serve ARGS="--port $port" > "$scratch/log" 2>&1 &
server=$!
until [ -x .venv/bin/sgl-omni ] || ! kill -0 $server 2>/dev/null; do sleep 1; done
say "installed"
until grep -q '^Stop ' "$scratch/log" || ! kill -0 $server 2>/dev/null; do sleep 1; done
grep -q '^Stop ' "$scratch/log" || { tail -n 20 "$scratch/log"; exit 1; }
say "ready:"
grep -A 20 '^sglang-omni' "$scratch/log" | sed "s|$scratch|...|; s/^/          /"
url=$(sed -n 's/^Open *//p' "$scratch/log")
question=$(sed -n 's/^Try *"\(.*\)"/\1/p' "$scratch/log")
say "open $url, write: $question"
PYTHONPATH=$source/.cache/browser .venv/bin/python ci/first_answer.py "$url" "$question" "$pictures" |
    sed 's/^/          /'
took=$SECONDS
say "answered"
bash -c "$(sed -n 's/^Hear *//p' "$scratch/log")"
say "the printed command: $(.venv/bin/python -c 'import soundfile; i = soundfile.info("hello.wav"); print(i.samplerate, "Hz,", i.channels, "channel,", i.subtype + ",", round(i.duration, 2), "s")')"
pkill -INT --parent $server || true
wait $server || true
say "stopped; left running: $(pgrep --full --count "$scratch" || true)"
rm -rf "$scratch"
[ "$took" -lt 180 ]
