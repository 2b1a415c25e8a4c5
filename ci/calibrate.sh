#!/usr/bin/env bash
# Gates for ci/bench.sh from five runs of it, on a machine that does nothing else meanwhile: about
# twenty minutes on two cores. Usage: ci/calibrate.sh [OUT]
# The gates go to $GATES (default ci/gates/bench.json). Two cores that others share measure no
# times: gates are what stays (failures, accuracy, word errors, growth of the rate with clients), and
# have a fifth of slack, since a task has four to twelve samples. ARGS="" keeps times and rates, too.
# What is there of a run that was cut off is kept.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-build/calibrate} PYTHON=${PYTHON:-.venv/bin/python}
gates=${GATES-ci/gates/bench.json} runs=()
mkdir -p "$out"
for run in 1 2 3 4 5; do
    GATES='' ci/bench.sh "$out/$run" > "$out.$run.log" 2>&1 || { tail -n 20 "$out.$run.log"; exit 1; }
    tail -n 1 "$out.$run.log"
    runs+=("$out/$run/runs")
done
# shellcheck disable=SC2086
"$PYTHON" -m benchmarks.evaluation.gates calibrate "${runs[@]}" ${ARGS---steady --slack 0.2} --out "$gates"
