#!/usr/bin/env bash
# Teach a packed checkpoint of Ming-mini 2 to draw: examples, VAE, transformer, image folders.
#
#   OUT=run CHECKPOINT=run/checkpoint STEP=1 bash cookbook/ming_mini_2/image/recipe.sh
#
# STEP 0 makes examples alone. STEP 1 makes them with all cores and trains the VAE, which needs no thinker but its tokenizer;
# 2 trains query tokens, connector and transformer with the thinker of CHECKPOINT; 3 adds the image
# folders to CHECKPOINT. Steps 1 and 2 continue in another call if PAUSE seconds ended one: the same
# command goes on. START_VAE and START are folders of weights (of OUT/vae and OUT/drawing) to begin
# with, without the optimizer's state. SPLIT_BYTES is the most that a file of weights takes.
# RECORD=--no-record runs every step eagerly instead of from CUDA graphs; COMPILE=--no-compile does
# not compile the transformer's blocks. The share READING of step 2 is for reading prompts, and 0
# with START, where that was learnt. PEAK is its highest rate, EDITS the share of its drawing steps
# that edit.
set -euo pipefail

OUT=${OUT:?a folder for the results}
CHECKPOINT=${CHECKPOINT:?a checkpoint with the thinker}
STEP=${STEP:?0, 1, 2 or 3}
DATA=${DATA:-${TMPDIR:-/tmp}/ming_mini_2_pictures}
CORES=${CORES:-$(nproc --all)}
DEVICE=${DEVICE:-cuda}
SIZES=${SIZES:-mini_2}
SEED=${SEED:-0}
DRAW=${DRAW:-120000}
EDIT=${EDIT:-80000}
VAE_SECONDS=${VAE_SECONDS:-540}
SECONDS_OF_TRAINING=${SECONDS_OF_TRAINING:-720}
PAUSE=${PAUSE:-100000}
VAE_BATCH=${VAE_BATCH:-256}
VAE_WHOLE=${VAE_WHOLE:-64}
READ_BATCH=${READ_BATCH:-256}
DRAW_BATCH=${DRAW_BATCH:-64}
READING=${READING:-0.25}
PEAK=${PEAK:-1e-3}
EDITS=${EDITS:-0.4}
TESTED=${TESTED:-128}
START_VAE=${START_VAE:-}
START=${START:-}
SPLIT_BYTES=${SPLIT_BYTES:-15000000}
RECORD=${RECORD:---record}
COMPILE=${COMPILE:---compile}

run() { local module=$1; shift; python -m "cookbook.ming_mini_2.image.$module" "$@"; }
start=()
status=0
mkdir -p "$OUT"

make_examples() {
    [ ! -d "$DATA" ] || return 0
    run make --model "$CHECKPOINT" --output "$DATA.new" --sizes "$SIZES" --draw "$DRAW" \
        --edit "$EDIT" --processes "$CORES" --seed "$SEED"
    mv "$DATA.new" "$DATA"
}

case $STEP in
0)
    make_examples ;;
1)
    make_examples
    [ -z "$START_VAE" ] || start=(--start "$START_VAE")
    run train_vae --examples "$DATA" --output "$OUT/vae" --sizes "$SIZES" --seconds "$VAE_SECONDS" \
        --pause "$PAUSE" --batch "$VAE_BATCH" --whole "$VAE_WHOLE" --seed "$SEED" --device "$DEVICE" \
        --split-bytes "$SPLIT_BYTES" "$RECORD" "${start[@]}" | tee -a "$OUT/vae.log" ;;
2)
    make_examples
    [ -z "$START" ] || start=(--start "$START")
    run train --checkpoint "$CHECKPOINT" --examples "$DATA" --vae "$OUT/vae" \
        --output "$OUT/drawing" --sizes "$SIZES" --seconds "$SECONDS_OF_TRAINING" --pause "$PAUSE" \
        --reading-until "$READING" --read "$READ_BATCH" --draw "$DRAW_BATCH" --tested "$TESTED" \
        --peak "$PEAK" --edits "$EDITS" --seed "$SEED" "$COMPILE" --device "$DEVICE" --split-bytes "$SPLIT_BYTES" "$RECORD" "${start[@]}" \
        | tee -a "$OUT/drawing.log" || status=$?
    # 3: paused; the same command goes on.
    [ $status -eq 3 ] || exit $status ;;
3)
    run pack --weights "$OUT/drawing" --vae "$OUT/vae" --checkpoint "$CHECKPOINT" --sizes "$SIZES" ;;
*)
    echo "STEP must be 0, 1, 2 or 3, not $STEP"; exit 2 ;;
esac
