#!/usr/bin/env bash
# What takes too long for every change: every fault of every engine, long fuzzing, a soak of 500
# requests, overload at four times capacity, FP8 through SGLang's own loaders. A quarter of an hour
# on two cores. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
"${PYTHON:-.venv/bin/python}" -m pytest -m "faults or soak or long" -W ignore "$@"
