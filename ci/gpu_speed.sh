#!/usr/bin/env bash
# What is measured on GPUs, a phase or several at a time: ci/gpu_speed.sh quick fp8 tune_fp8 ...
# Results go to $OUT (default benchmarks/results); $PYTHON is the interpreter (default python3).
# SGLang's options that depend on what is installed beside it: $SGLANG_ARGS (JSON).
set -uo pipefail
cd "$(dirname "$0")/.."
. ci/ready.sh
PYTHON=${PYTHON:-python3} OUT=${OUT:-benchmarks/results} WORK=${WORK:-/tmp/gpu_speed}
SGLANG_ARGS=${SGLANG_ARGS:-'{"attention_backend":"triton","sampling_backend":"pytorch","grammar_backend":"none"}'}
CLIENTS=${CLIENTS:-1,8,16,32,64} PORT=${PORT:-8123}
export PYTHONUNBUFFERED=1
# Children find `benchmarks` by it: the whole-system checkpoint is drawn by a package of ours.
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
mkdir -p "$OUT" "$WORK"
for tool in curl tar; do
    command -v $tool > /dev/null || { echo "there is no $tool"; exit 1; }
done
"$PYTHON" - <<'CHECK' || exit 1
from importlib.metadata import entry_points
assert entry_points(group="sglang.srt.plugins"), "sglang_omni is not installed: SGLang finds no plug-in"
CHECK

thinker() { # NAME OPTIONS...
    local name=$1; shift
    timeout "${RUN_S:-420}" "$PYTHON" -m benchmarks.thinker.decoding --server-args "$SGLANG_ARGS" --out "$OUT/$name.json" "$@" \
        > "$OUT/$name.log" 2>&1
    local status=$?
    grep -E "clients|ready|failed|percent" "$OUT/$name.log" || tail -25 "$OUT/$name.log"
    return $status
}

# The whole system on one card: the thinker in FP8, encoders and talker beside it.
serve_and_ask() { # NAME OPTIONS OF THE BENCHMARK...
    local name=$1 pid; shift
    [ -f "$WORK/system/config.json" ] ||
        "$PYTHON" -m benchmarks.synthetic.system_checkpoint "$WORK/system" --fp8 ${LAYERS:+--layers $LAYERS} --force
    SGLANG_EXTERNAL_MODEL_PACKAGE=benchmarks.synthetic.random_models "$PYTHON" -m sglang_omni serve \
        --version v1 --model-path "$WORK/system" --port "$PORT" --thinker.server_args "$SGLANG_ARGS" \
        --thinker.max_total_tokens 65536 --thinker.max_running_requests 64 --thinker.mem_fraction_static 0.93 \
        --talker.min_patches 10 --talker.max_patches 10 --talker.slots 64 \
        --image_encoder.max_patches 16384 --request-timeout 120 \
        --thinker.step_deadline_s 60 ${SERVE_OPTIONS:-} \
        > "$OUT/$name.server.log" 2>&1 & pid=$!
    wait_ready "$PORT" $pid 240 || {
        tail -30 "$OUT/$name.server.log"
        kill $pid 2> /dev/null
        wait $pid
        return 1
    }
    timeout "${ASK_S:-200}" "$PYTHON" -m benchmarks.serving.chats --url "http://127.0.0.1:$PORT" \
        --system "${SYSTEM:-1 x H200, thinker FP8, all on one card}" --processes 8 \
        --out "$OUT/$name.json" "$@" | grep -v '^{' || tail -30 "$OUT/$name.server.log"
    kill $pid; wait $pid 2> /dev/null
}

for phase in "$@"; do
    echo "=== $phase $(date +%T)"
    case $phase in
    quick) # kernels against plain rules, then four layers of the real width, ours alone
        "$PYTHON" -m pytest tests/models/ming/thinker/test{,_step}_kernels.py -m gpu -q -W ignore |
            tail -5 || exit 1
        thinker quick_fp8 --fp8 --layers 4 --systems plug-in --clients 1,8 --tokens 64 --rounds 1 ;;
    parity) "$PYTHON" -m pytest tests/engines/thinker/test_gpu.py -m gpu -q -W ignore | tail -8 ;;
    fp8) thinker thinker_h200_fp8 --fp8 --clients "$CLIENTS" ;;
    fp8_ours) thinker "${NAME:-thinker_h200_fp8_step}" --fp8 --clients "$CLIENTS" --systems plug-in ;;
    tp2) thinker thinker_h200_tp2_bf16 --tp 2 --clients "$CLIENTS" ;;
    tp2_ours) thinker "${NAME:-thinker_h200_tp2_bf16_tuned}" --tp 2 --clients "$CLIENTS" --systems plug-in ;;
    tp2_fp8) thinker thinker_h200_tp2_fp8 --tp 2 --fp8 --clients "$CLIENTS" ;;
    tp4) thinker thinker_h200_tp4_bf16 --tp 4 --clients "$CLIENTS" ;;
    tune_fp8 | tune_bf16)
        "$PYTHON" -m benchmarks.thinker.tune_moe --tp ${TP:-1 2 4} $([ $phase = tune_fp8 ] && echo --fp8) \
            --out "$OUT/tune_moe_h200_${phase#tune_}.json" 2>&1 | tee "$OUT/$phase.log" |
            grep -E "^tp|compiled|configurations"
        tar -C sglang_omni/engines/thinker -czf "$OUT/moe_kernels.tar.gz" moe_kernels ;;
    tune_few_rows) # products of a decode step's rows with weights in eight bits
        "$PYTHON" -m benchmarks.thinker.tune_small_batch_gemm --compile 8 &&
            "$PYTHON" -m benchmarks.thinker.tune_small_batch_gemm --out "$OUT/tune_few_rows_h200.json" ;;
    tune_experts) # products of a decode step's experts
        "$PYTHON" -m benchmarks.thinker.tune_decode_moe --compile 8 &&
            "$PYTHON" -m benchmarks.thinker.tune_decode_moe --out "$OUT/tune_experts_h200.json" ;;
    tune_int4) # products of experts in four bits, at any number of rows
        "$PYTHON" -m benchmarks.thinker.tune_int4 --compile 8 &&
            "$PYTHON" -m benchmarks.thinker.tune_int4 --out "$OUT/tune_int4.json"
        tar -C sglang_omni/models/ming/thinker/int4 -czf "$OUT/int4_tilings.tar.gz" tilings ;;
    step_kernels) # a decode step's own kernels, each against what it stands for
        SGLANG_MOE_CONFIG_DIR=$PWD/sglang_omni/engines/thinker/moe_kernels \
            "$PYTHON" -m benchmarks.thinker.decode_kernels --out "$OUT/step_kernels_h200.json" | grep -v rows: ;;
    profile) # the kernels of a decode step, ours and SGLang's
        mkdir -p "$WORK/traces"
        thinker thinker_profiled_h200 --fp8 --clients "$CLIENTS" --rounds 1 --profile "$WORK/traces"
        "$PYTHON" -m benchmarks.thinker.profile "$WORK"/traces/*.gz \
            --out "$OUT/thinker_profile_h200_fp8.json" | cut -c1-120 ;;
    system) serve_and_ask serving_h200_fp8 --clients 1,16 ;;
    speech) serve_and_ask serving_h200_fp8_speech --kinds speech --clients 1,4,16,32 ;;
    *) echo "no phase $phase"; exit 2 ;;
    esac
done
