#!/usr/bin/env bash
# What is measured of the talker on one GPU, a phase or several: ci/gpu_talker.sh tests steps serve ...
# Results go to $OUT (default benchmarks/results); $PYTHON is the interpreter (default python3).
# SGLang's options that depend on what is installed beside it: $SGLANG_ARGS (JSON).
set -uo pipefail
cd "$(dirname "$0")/.."
. ci/ready.sh
PYTHON=${PYTHON:-python3} OUT=${OUT:-benchmarks/results} WORK=${WORK:-/tmp/gpu_talker}
SGLANG_ARGS=${SGLANG_ARGS:-'{"attention_backend":"triton","sampling_backend":"pytorch","grammar_backend":"none"}'}
PORT=${PORT:-8124}
export PYTHONUNBUFFERED=1
mkdir -p "$OUT" "$WORK"

run() { # NAME MODULE OPTIONS...: its last lines, or what went wrong
    local name=$1 module=$2; shift 2
    timeout "${RUN_S:-300}" "$PYTHON" -m "benchmarks.$module" --out "$OUT/$name.json" "$@" \
        > "$OUT/$name.log" 2>&1
    local status=$?
    tail -"${LINES_SHOWN:-16}" "$OUT/$name.log" | cut -c1-400
    return $status
}

# The released shapes of the speaking half, the tiny thinker beside it.
serve() { # NAME OPTIONS OF THE CHECKPOINT...
    local folder=$WORK/$1; shift
    [ -f "$folder/config.json" ] || "$PYTHON" -m benchmarks.synthetic.speech_checkpoint "$folder" "$@"
    "$PYTHON" -m sglang_omni serve --version v1 --model-path "$folder" --port "$PORT" \
        --text-only --talker.slots 704 --thinker.server_args "$SGLANG_ARGS" --thinker.mem_fraction_static 0.1 \
        --thinker.max_total_tokens 8192 --thinker.max_running_requests 8 ${SERVE_OPTIONS:-} \
        > "$OUT/server.log" 2>&1 & server=$!
    wait_ready "$PORT" $server 200 || { tail -30 "$OUT/server.log"; kill $server 2> /dev/null; return 1; }
}

ask() { run "$1" serving.speech --url "http://127.0.0.1:$PORT" "${@:2}" || tail -5 "$OUT/server.log"; }

for phase in "$@"; do
    echo "=== $phase $(date +%T)"
    case $phase in
    tests) "$PYTHON" -m pytest tests/engines/speech tests/cookbook -m gpu -q -W ignore 2>&1 | tail -12 ;;
    steps) run talker_h200 talker.steps ;;
    first) run talker_h200_first talker.steps --batches 1 8 64 ;;
    deep) run talker_h200_deep talker.steps --shape deep --batches 1 ;;
    profile) # where the time of a step goes
        run talker_profile_h200_1 talker.profile --batch 1
        run talker_profile_h200_128 talker.profile --batch 128
        run talker_profile_h200_deep talker.profile --shape deep --batch 1 ;;
    tune) # how kernels are best cut; every candidate is compiled first, by eight processes
        "$PYTHON" -m benchmarks.talker.tune_kernels --compile 8 && run talker_tune_h200 talker.tune_kernels ;;
    fp8) run talker_h200_fp8 talker.steps --fp8 --batches 16 32 64 128 ;;
    parity) run talker_parity_h200 talker.parity --requests 400 ;;
    parity_fp8) run talker_parity_h200_fp8 talker.parity --fp8 --requests 400 ;;
    parity_trained) run talker_parity_h200_trained talker.parity --model "$MODEL" --requests 400 ;;
    serve) # time to first audio, what streaming costs, and listeners in real time
        serve speech || continue
        ask speech_h200 --clients 1,16,64 --processes 4
        ask speech_h200_listeners --listeners "${LISTENERS:-600}" --duration "${DURATION:-30}" --processes 8
        ask speech_h200_128 --clients 128 --processes 8
        ask speech_h200_whole --clients 128 --processes 8 --whole
        kill $server; wait $server 2> /dev/null ;;
    barge_in) # how fast a realtime answer falls silent
        serve talkative --talkative || continue
        run barge_in_h200 serving.barge_in --url "ws://127.0.0.1:$PORT" --rounds 40
        kill $server; wait $server 2> /dev/null ;;
    *) echo "no phase $phase"; exit 2 ;;
    esac
done
