#!/usr/bin/env bash
# A new user's first minutes: clone, `make serve`, paste the printed line, hear speech.
# Fails when that takes more than three minutes. Usage: ci/first_run.sh [PORT]
set -euo pipefail
port=${1:-8642}
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
until grep -q '^Open ' "$scratch/log" || ! kill -0 $server 2>/dev/null; do sleep 1; done
say "$(grep '^Open ' "$scratch/log" || tail -n 5 "$scratch/log")"
paste=$(sed -n 's/^Hear *//p' "$scratch/log")
say "$paste"
bash -c "$paste"
took=$SECONDS
say "$(.venv/bin/python -c 'import soundfile; i = soundfile.info("hello.wav"); print(i.samplerate, "Hz,", i.channels, "channel,", i.subtype + ",", round(i.duration, 2), "s")')"
pkill -INT --parent $server || true
wait $server || true
say "stopped; left running: $(pgrep --full --count "$scratch" || true)"
rm -rf "$scratch"
[ "$took" -lt 180 ]
