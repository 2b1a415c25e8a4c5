#!/usr/bin/env bash
# What is measured on GPUs, a phase or several at a time: ci/gpu_speed.sh quick fp8 tune_fp8 ...
# Results go to $OUT (default benchmarks/results); $PYTHON is the interpreter (default python3).
# SGLang's options that depend on what is installed beside it: $SGLANG_ARGS (JSON).
# Results are named after the GPU: $CARD, by default h100, h200 or what else nvidia-smi names.
#
# `int4_all` runs everything for four bits in steps that each have a limit. It starts none that
# might not end within $BUDGET_S seconds (540), and goes on where it stopped when it is called again:
#     ci/gpu_speed.sh int4_all    # until it says that all is done; $WORK remembers the steps
# `speech_sharing` (four bits) and `beside_images` serve the whole system as processes usually share a
# GPU, and then under NVIDIA's Multi-Process Service; $SHARING names others of own, mps and mps_first.
# `beside_images` with $CHATS=1 also measures chats of a system that draws.
# What was measured is in $OUT/int4_results.tar.gz, with which $RESUME goes on on another machine.
# $DEVICE=cpu with $SMALL=1 rehearses the steps that need no GPU.
set -uo pipefail
cd "$(dirname "$0")/.."
. ci/ready.sh
PYTHON=${PYTHON:-python3} OUT=${OUT:-benchmarks/results} WORK=${WORK:-/tmp/gpu_speed}
SGLANG_ARGS=${SGLANG_ARGS:-'{"attention_backend":"triton","sampling_backend":"pytorch","grammar_backend":"none"}'}
CLIENTS=${CLIENTS:-1,8,16,32,64} PORT=${PORT:-8123} DEVICE=${DEVICE:-cuda}
CARD=${CARD:-$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -1 | awk '{print tolower($2)}')}
CARD=${CARD:-cpu} IN_MEMORY=${IN_MEMORY:-/dev/shm} WEIGHTS=${WEIGHTS:-fp8}
SIZE=${SMALL:+--small --device $DEVICE} TILINGS=${TILINGS:-sglang_omni/models/ming/thinker/int4/tilings}
export PYTHONUNBUFFERED=1
# Children find `benchmarks` by it: the whole-system checkpoint is drawn by a package of ours.
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
mkdir -p "$OUT" "$WORK"
# Where containers have the driver's tools.
PATH="$PATH:/usr/local/nvidia/bin"
for tool in curl tar; do
    command -v $tool > /dev/null || { echo "there is no $tool"; exit 1; }
done
"$PYTHON" - <<'CHECK' || exit 1
from importlib.metadata import entry_points
assert entry_points(group="sglang.srt.plugins"), "sglang_omni is not installed: SGLang finds no plug-in"
CHECK

thinker() { # NAME OPTIONS...
    local name=$1; shift
    timeout "${RUN_S:-440}" "$PYTHON" -m benchmarks.thinker.decoding --server-args "$SGLANG_ARGS" --out "$OUT/$name.json" "$@" \
        > "$OUT/$name.log" 2>&1
    local status=$?
    grep -E "clients|ready|failed|percent" "$OUT/$name.log" || tail -25 "$OUT/$name.log"
    return $status
}

profile_traces() { # FOLDER NAME
    if compgen -G "$1/*.gz" > /dev/null; then
        "$PYTHON" -m benchmarks.thinker.profile "$1"/*.gz --out "$OUT/$2.json" | cut -c1-120
    fi
}

# The whole system on one card: the thinker with $WEIGHTS, encoders and talker beside it.
draw_system() {
    local folder="$WORK/system_$WEIGHTS${IMAGES:+_images}"
    [ -f "$folder/complete" ] && return
    "$PYTHON" -m benchmarks.synthetic.system_checkpoint "$folder" "--$WEIGHTS" --force \
        $SIZE ${LAYERS:+--layers $LAYERS} ${IMAGES:+--images} && touch "$folder/complete"
}

serve() { # NAME: starts the server; end_server ends it
    local name=$1 images=
    # On a GPU an image engine is started only if it is asked for.
    [ -z "${IMAGES:-}" ] || images="--image.enabled always"
    draw_system || return 1
    SGLANG_EXTERNAL_MODEL_PACKAGE=benchmarks.synthetic.random_models "$PYTHON" -m sglang_omni serve \
        --version v1 --model-path "$WORK/system_$WEIGHTS${IMAGES:+_images}" --port "$PORT" --thinker.server_args "$SGLANG_ARGS" \
        --thinker.max_total_tokens ${KV_TOKENS:-65536} --thinker.max_running_requests 64 --thinker.mem_fraction_static 0.93 \
        --talker.min_patches 10 --talker.max_patches 10 --talker.slots 64 \
        --image_encoder.max_patches 16384 --request-timeout 120 \
        --thinker.step_deadline_s 60 $images ${SERVE_OPTIONS:-} \
        > "$OUT/$name.server.log" 2>&1 & server=$!
    wait_ready "$PORT" $server "${READY_S:-240}" || {
        tail -30 "$OUT/$name.server.log"
        end_server
        return 1
    }
    # What is left of the card, and how many tokens of KV cache there are.
    nvidia-smi --query-gpu=name,memory.used,memory.total --format=csv > "$OUT/$name.memory.csv" 2> /dev/null
    curl -sf "http://127.0.0.1:$PORT/metrics" | grep kv_tokens > "$OUT/$name.kv_tokens.txt"
}

end_server() {
    kill $server 2> /dev/null
    wait $server 2> /dev/null
}

ask() { # NAME OPTIONS OF THE BENCHMARK...
    local name=$1 status precision=FP8; shift
    [ "$WEIGHTS" != int4 ] || precision="four bits"
    timeout "${ASK_S:-200}" "$PYTHON" -m benchmarks.serving.chats --url "http://127.0.0.1:$PORT" \
        --system "${SYSTEM:-1 x ${CARD^^}, thinker in $precision, all on one card}" --processes "${PROCESSES:-8}" \
        --out "$OUT/$name.json" "$@" > "$OUT/$name.log" 2>&1
    status=$?
    grep -v '^{' "$OUT/$name.log"
    return $status
}

serve_and_ask() { # NAME OPTIONS OF THE BENCHMARK...
    local status
    serve "$1" || return 1
    ask "$@"
    status=$?
    [ $status = 0 ] || tail -30 "$OUT/$1.server.log"
    end_server
    return $status
}

# NVIDIA's Multi-Process Service: processes share the GPU at once instead of taking turns.
start_mps() {
    export CUDA_MPS_PIPE_DIRECTORY="$WORK/mps/pipe" CUDA_MPS_LOG_DIRECTORY="$WORK/mps/log"
    mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
    # It serves all GPUs: clients choose theirs by its number among all.
    env -u CUDA_VISIBLE_DEVICES nvidia-cuda-mps-control -d
}
tell_mps() { echo "$*" | nvidia-cuda-mps-control; }
end_mps() {
    tell_mps quit
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

# As a process of its own while a server starts: the thinker comes to the GPU last, $MPS_LATE_S
# seconds after the start, and its kernels then wait for those of the others.
lower_the_thinker() { sleep "${MPS_LATE_S:-12}" && tell_mps set_default_client_priority 1; }

# Runs a command while processes share the GPU in a way: own, mps or mps_first.
share_gpu() { # WAY COMMAND...
    local way=$1 status=0 late=
    shift
    case $way in
    own) ;;
    mps) start_mps ;;
    mps_first) start_mps && { lower_the_thinker & late=$!; } ;;
    *) echo "no way $way to share a GPU"; return 2 ;;
    esac || { echo "NVIDIA's Multi-Process Service did not start"; return 1; }
    "$@" || status=1
    [ -z "$late" ] || wait "$late" || status=1
    [ "$way" = own ] || { end_mps; tail -5 "$WORK"/mps/log/*.log 2> /dev/null; }
    return $status
}

serve_spoken_answers() { # NAME: text and speech for 1, 16 and 32 clients
    WEIGHTS=int4 serve_and_ask "$1" --kinds text speech --clients "${SHARING_CLIENTS:-1,16,32}"
}

# With $CHATS, a text, a picture and speech for 1 and 16 clients are measured first.
speak_beside_images() { # NAME
    local status=0
    IMAGES=1 serve "$1" || return 1
    [ -z "${CHATS:-}" ] || ask "$1_chats" --clients 1,16 || status=1
    timeout "${ASK_S:-240}" "$PYTHON" -m benchmarks.serving.speech_beside_images \
        --url "http://127.0.0.1:$PORT" --out "$OUT/$1.json" ${IMAGE_OPTIONS:-} \
        --system "1 x ${CARD^^}, thinker in $WEIGHTS${LAYERS:+ with $LAYERS layers}, all on one card" || status=1
    [ $status = 0 ] || tail -30 "$OUT/$1.server.log"
    end_server
    return $status
}

# Tilings measured before on this machine, for a tree that was replaced since.
keep_tilings() { [ ! -d "$TILINGS" ] || tar -C "$TILINGS" -czf "$OUT/int4_tilings.tar.gz" .; }
install_tilings() {
    local kept="$WORK/results/int4_tilings.tar.gz"
    [ ! -f "$kept" ] || { mkdir -p "$TILINGS" && tar -C "$TILINGS" -xzf "$kept"; }
}

# The steps of int4_all and their limits in seconds, in order.
INT4_STEPS=${INT4_STEPS:-int4_parity:300 tune_int4:240 int4:520 draw_int4:100 system_int4:480 planned_int4:500}

run_steps() { # NAME:SECONDS...; removing $WORK/done/NAME repeats one
    local step name limit before outcome started=$SECONDS ran=0 failed=0 done="$WORK/done"
    mkdir -p "$done" "$WORK/results"
    [ -z "${RESUME:-}" ] || [ -f "$WORK/resumed" ] || { tar -C "$WORK" -xzf "$RESUME" && touch "$WORK/resumed"; }
    for step in "$@"; do
        name=${step%:*} limit=${step#*:}
        [ -f "$done/$name" ] && { echo "--- $name was $(cat "$done/$name")"; continue; }
        if [ $ran = 1 ] && [ $((SECONDS - started + limit)) -gt "${BUDGET_S:-540}" ]; then
            echo "--- $name may take $limit s, of which $((${BUDGET_S:-540} - SECONDS + started)) are left: call again"
            return $failed
        fi
        before=$SECONDS outcome=done ran=1
        OUT="$WORK/results" timeout -k 10 "$limit" "$PWD/ci/gpu_speed.sh" "$name" || { outcome=failed; failed=1; }
        echo "$outcome after $((SECONDS - before)) s" > "$done/$name"
        echo "--- $name $(cat "$done/$name")"
        # One file, after each step, so that nothing is lost; a step may have been ended.
        OUT="$WORK/results" keep_tilings
        tar -C "$WORK" -czf "$OUT/int4_results.tar.gz" results done
    done
    echo "--- all is done"
    return $failed
}

install_tilings
failed=0
for phase in "$@"; do
    echo "=== $phase $(date +%T)"
    case $phase in
    quick) # kernels against plain rules, then four layers of the real width, ours alone
        "$PYTHON" -m pytest tests/models/ming/thinker/test_{kernels,step_kernels,attention}.py -m gpu -q -W ignore |
            tail -5 || exit 1
        thinker quick_fp8 --fp8 --layers 4 --systems plug-in --clients 1,8 --tokens 64 --rounds 1 ;;
    parity) "$PYTHON" -m pytest tests/engines/thinker/test_gpu.py -m gpu -q -W ignore | tail -8 ;;
    fp8) # beside SGLang's own with and without DeepGEMM, where it is installed
        RUN_S=${RUN_S:-580} thinker thinker_${CARD}_fp8 --fp8 --clients "$CLIENTS" $SIZE || failed=1 ;;
    fp8_ours) thinker "${NAME:-thinker_${CARD}_fp8_step}" --fp8 --clients "$CLIENTS" --systems plug-in ;;
    tp2) thinker thinker_${CARD}_tp2_bf16 --tp 2 --clients "$CLIENTS" ;;
    tp2_ours) thinker "${NAME:-thinker_${CARD}_tp2_bf16_tuned}" --tp 2 --clients "$CLIENTS" --systems plug-in ;;
    tp2_fp8) thinker thinker_${CARD}_tp2_fp8 --tp 2 --fp8 --clients "$CLIENTS" ;;
    tp4) thinker thinker_${CARD}_tp4_bf16 --tp 4 --clients "$CLIENTS" ;;
    tune_fp8 | tune_bf16)
        "$PYTHON" -m benchmarks.thinker.tune_moe --tp ${TP:-1 2 4} $([ $phase = tune_fp8 ] && echo --fp8) \
            --out "$OUT/tune_moe_${CARD}_${phase#tune_}.json" 2>&1 | tee "$OUT/$phase.log" |
            grep -E "^tp|compiled|configurations"
        tar -C sglang_omni/engines/thinker -czf "$OUT/moe_kernels.tar.gz" moe_kernels ;;
    tune_few_rows) # products of a decode step's rows with weights in eight bits
        "$PYTHON" -m benchmarks.thinker.tune_small_batch_gemm --compile 8 &&
            "$PYTHON" -m benchmarks.thinker.tune_small_batch_gemm --out "$OUT/tune_few_rows_$CARD.json" ;;
    tune_attention) # attention of a decode step
        "$PYTHON" -m benchmarks.thinker.tune_attention --compile 8 &&
            "$PYTHON" -m benchmarks.thinker.tune_attention --out "$OUT/tune_attention_$CARD.json" ;;
    tune_experts) # products of a decode step's experts
        "$PYTHON" -m benchmarks.thinker.tune_decode_moe --compile 8 &&
            "$PYTHON" -m benchmarks.thinker.tune_decode_moe --out "$OUT/tune_experts_$CARD.json" ;;
    int4_parity) # kernels for four bits against the plain form, and a small model
        "$PYTHON" -m pytest -m gpu -W ignore -q tests/models/ming/thinker/int4/test_kernels.py \
            tests/engines/thinker/test_gpu.py -k "not eight_bits and not greedy_tokens_agree" 2>&1 |
            tee "$OUT/int4_parity_$CARD.log" | tail -15
        [ "${PIPESTATUS[0]}" = 0 ] || failed=1 ;;
    tune_int4) # products of experts in four bits, at any number of rows
        "$PYTHON" -m benchmarks.thinker.int4_kernels --out "$OUT/int4_kernels.json" > "$OUT/int4_kernels.log" 2>&1
        tail -1 "$OUT/int4_kernels.log"
        "$PYTHON" -m benchmarks.thinker.tune_int4 --out "$OUT/tune_int4_$CARD.json" || failed=1
        keep_tilings ;;
    int4) # the thinker in four bits beside SGLang's own, and the kernels of its steps
        traces="$WORK/traces_int4" profile=
        mkdir -p "$traces"
        [ "$DEVICE" = cpu ] || profile="--profile $traces --profiled plug-in"
        RUN_S=${RUN_S:-500} thinker "thinker_${CARD}_int4" --int4 --clients "${INT4_CLIENTS:-1,16,32,64}" --tokens "${TOKENS:-128}" \
            $profile $SIZE || failed=1
        profile_traces "$traces" "thinker_profile_${CARD}_int4" ;;
    int4_ours)
        thinker "${NAME:-thinker_${CARD}_int4_ours}" --int4 --clients "${INT4_CLIENTS:-1,16,32,64}" --systems plug-in $SIZE || failed=1 ;;
    draw_int4) WEIGHTS=int4 draw_system || failed=1 ;;
    system_int4) # text, a picture and speech, then speech for other numbers of clients
        WEIGHTS=int4 name="serving_${CARD}_int4"
        if serve "$name"; then
            ask "$name" --clients 1,16 && ask "${name}_speech" --kinds speech --clients 4,32 || failed=1
            [ $failed = 0 ] || tail -30 "$OUT/$name.server.log"
            end_server
        else
            failed=1
        fi ;;
    planned_int4) # as --placement auto starts it, all files in memory, with a KV cache of either precision
        folder="$IN_MEMORY/system_int4_files"
        [ -f "$folder/complete" ] || {
            "$PYTHON" -m benchmarks.synthetic.system_checkpoint "$folder" --int4 --thinker-files --force $SIZE &&
                touch "$folder/complete"
        } || failed=1
        for precision in auto fp8_e4m3; do
            [ "$DEVICE$precision" != cpufp8_e4m3 ] || continue
            timeout "${START_S:-200}" "$PYTHON" -m benchmarks.serving.planned_start --model-path "$folder" \
                --out "$OUT/planned_start_${CARD}_int4_$precision.json" -- ${PLAN:---placement auto} \
                --thinker.kv_cache_dtype $precision --thinker.server_args "$SGLANG_ARGS" \
                --talker.min_patches 10 --talker.max_patches 10 2>&1 | tail -45
            [ "${PIPESTATUS[0]}" = 0 ] || failed=1
        done ;;
    speech_sharing) # spoken answers while thinker and talker share the GPU in different ways
        for way in ${SHARING:-own mps}; do
            echo "--- $way"
            share_gpu "$way" serve_spoken_answers "sharing_${CARD}_$way" || failed=1
        done ;;
    speech_int4) WEIGHTS=int4 serve_and_ask "serving_${CARD}_int4_speech" --kinds speech --clients 1,4,16,32 || failed=1 ;;
    int4_all) run_steps $INT4_STEPS || failed=1 ;;
    step_kernels) # a decode step's own kernels, each against what it stands for
        SGLANG_MOE_CONFIG_DIR=$PWD/sglang_omni/engines/thinker/moe_kernels \
            "$PYTHON" -m benchmarks.thinker.decode_kernels --out "$OUT/step_kernels_$CARD.json" | grep -v rows: ;;
    profile) # the kernels of a decode step, ours and SGLang's
        mkdir -p "$WORK/traces"
        thinker thinker_profiled_$CARD "--$WEIGHTS" --clients "$CLIENTS" --rounds 1 --profile "$WORK/traces"
        profile_traces "$WORK/traces" "thinker_profile_${CARD}_$WEIGHTS" ;;
    system) serve_and_ask serving_${CARD}_$WEIGHTS --clients 1,16 ;;
    beside_images) # speech while images are drawn on the same card; with $LAYERS, beside a part of the thinker
        for way in ${SHARING:-own mps}; do
            echo "--- $way"
            share_gpu "$way" speak_beside_images "speech_beside_images_${CARD}_${WEIGHTS}_$way" || failed=1
        done ;;
    speech) serve_and_ask serving_${CARD}_${WEIGHTS}_speech --kinds speech --clients 1,4,16,32 ;;
    *) echo "no phase $phase"; exit 2 ;;
    esac
done
exit $failed
