#!/usr/bin/env bash
# The complete harness on the default small model, offline, from the bundled fixtures: every task but
# Chinese speech, which that model does not have, every modality, closed and open loops, tables and
# plots. Usage: ci/bench.sh [OUT]
# $URL asks a running server instead of starting one; $PYTHON is the interpreter. The run is held to
# the gates in $GATES (default ci/gates/bench.json, made by ci/calibrate.sh; empty: none), where it
# was made on the machine that they are of. Fails where a gate is not met or a request failed.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-build/bench} PYTHON=${PYTHON:-.venv/bin/python} port=${PORT:-8765}
gates=${GATES-ci/gates/bench.json} status=0
mkdir -p "$out"
if [ -z "${URL:-}" ]; then
    "$PYTHON" -m sglang_omni serve --version v1 --port "$port" > "$out/server.log" 2>&1 &
    server=$!
    trap 'kill -INT $server 2> /dev/null; wait $server || true' EXIT
    URL=http://127.0.0.1:$port
    for _ in $(seq 180); do
        curl -sf "$URL/ready" > /dev/null && break
        kill -0 $server || { tail -n 20 "$out/server.log"; exit 1; }
        sleep 1
    done
fi
# Of the default model alone; the same items every time, with about six of 96 as slack, and two of
# the fifty first prompts, of which it answers 47.
if [ -n "${server:-}" ]; then
    "$PYTHON" -m cookbook.ming_mini.evaluation.quality --suite mini --url "$URL" --seed 5 --count 96 --show 0 \
        --lexicon ci/gates/words.json --gates ci/gates/quality.json --out "$out/quality.json" || status=1
    "$PYTHON" -m cookbook.ming_mini_2.thinker.evaluation.first_prompts --url "$URL" --at-least 45 \
        --out "$out/first_prompts.json" || status=1
fi
"$PYTHON" -m benchmarks.evaluation.evaluate --preset bench --url "$URL" --out "$out/runs" \
    --recogniser pocketsphinx --system "${SYSTEM:-$(nproc) cores, Ming-mini}" || status=$?
"$PYTHON" -m benchmarks.evaluation.report "$out/runs" --plots "$out/plots" --without-published | tee "$out/report.md"
if [ -z "$gates" ] || [ ! -f "$gates" ]; then
    echo "not checked: no gates${gates:+ in $gates}"
else
    "$PYTHON" -m benchmarks.evaluation.gates check "$out/runs" --gates "$gates" | tee "$out/gates.txt" ||
        case $? in
        3) ;; # Made on another machine, which it has said.
        *) status=1 ;;
        esac
fi
echo "in $SECONDS s: $out"
exit $status
