#!/usr/bin/env bash
# Train the speaking half on one GPU, in three steps that can each be called again to go on.
#
#   OUT=run STEP=1 SECONDS_OF_STEP=560 bash cookbook/ming_mini_2/voices/speak_recipe.sh
#
# STEP=1 makes clips on all CORES for SECONDS_OF_STEP; the next call makes more of them. STEP=2
# trains the VAE and STEP=3 the talker for SECONDS_OF_STEP in all, at most PAUSE of them in one
# call; the same call goes on. Clips are made beside both on all cores but four, up to HOURS. STEP=4
# packs the folder OUT/checkpoint.
# TEXTS is a file of `thinker.spoken_texts`, which the clips say as well.
# FORM is locked, free or natural (`synthesize.py`). START is a folder with averaged weights, to go
# on where the state of a run is lost. SPLIT_BYTES is the size of the pieces of averaged weights.
# LEXICON is WordNet's folder, or the JSON file that `python -m cookbook.ming_mini.lexicon` makes;
# VOCABULARY a file of `vocabulary.py`, where `wordfreq` is not installed.
set -euo pipefail

OUT=${OUT:?a folder for the results}
STEP=${STEP:?1 for clips, 2 for the VAE, 3 for the talker, 4 to pack}
CORPUS=${CORPUS:-$OUT/corpus}
LEXICON=${LEXICON:-/usr/share/wordnet}
CORES=${CORES:-$(nproc --all)}
HOURS=${HOURS:-60}
TIME=${SECONDS_OF_STEP:-560}
PAUSE=${PAUSE:-$TIME}
DEVICE=${DEVICE:-cuda}
FORM=${FORM:-locked}
TEXTS=${TEXTS:-}
SEED=${SEED:-1}
SPLIT_BYTES=${SPLIT_BYTES:-15728640}
VAE=${VAE:-$OUT/weights}
CHUNK_CLIPS=${CHUNK_CLIPS:-400}
read -r -a MORE <<< "${OPTIONS:-}"
start=()
[ -z "${START:-}" ] || start=(--start "$START")
texts=()
[ -z "$TEXTS" ] || texts=(--texts "$TEXTS")
[ -z "${VOCABULARY:-}" ] || texts+=(--vocabulary "$VOCABULARY")

run() { local module=$1; shift; python -m "cookbook.ming_mini_2.voices.$module" "$@"; }
make_clips() {
    run corpus --output "$CORPUS" --hours "$HOURS" --seconds "$1" --seed "$SEED" --form "$FORM" \
        --lexicon "$LEXICON" --processes "$2" --chunk-clips "$CHUNK_CLIPS" "${texts[@]}"
}
train() {
    local module=$1; shift
    make_clips "$PAUSE" $((CORES > 5 ? CORES - 4 : 1)) > "$OUT/corpus-$module.log" 2>&1 &
    local making=$!
    trap "kill $making 2> /dev/null || true; wait $making || true" EXIT
    run "$module" --corpus "$CORPUS" --output "$OUT/weights" --seconds "$TIME" --pause "$PAUSE" \
        --device "$DEVICE" --seed "$SEED" --split-bytes "$SPLIT_BYTES" "${start[@]}" "$@" \
        "${MORE[@]}" | tee -a "$OUT/$module.log"
}

mkdir -p "$OUT"
# One thread for each process that renders; training uses the GPU.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
case $STEP in
    1) make_clips "$TIME" "$CORES" ;;
    2) train train_vae ;;
    3) train train_talker --vae "$VAE" ;;
    4) run pack --weights "$OUT/weights" --output "$OUT/checkpoint" --form "$FORM" ;;
    *) echo "STEP must be 1, 2, 3 or 4, not $STEP" >&2; exit 2 ;;
esac
