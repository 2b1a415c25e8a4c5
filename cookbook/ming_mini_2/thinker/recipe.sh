#!/usr/bin/env bash
# Train the thinking half of Ming-mini 2 on one GPU: data by all cores beside the training.
#
#   OUT=run CLIPS=clips TEXTS=texts.jsonl SECONDS_OF_TRAINING=900 CORES=16 \
#       bash cookbook/ming_mini_2/thinker/recipe.sh
#
# CLIPS is a folder of `chunk-*.npz` (`clip_folder.py`), which may grow during the run, and TEXTS what
# they say (`spoken_texts.py`). Needs WordNet or LEXICON, the JSON file that
# `python -m cookbook.ming_mini.lexicon` makes of it. Shards go to DATA (20 GB at most).
# PAUSE ends the training of this call after so many seconds; the next call with the same OUT and
# DATA goes on. START is the packed checkpoint to begin with, or the weights of an earlier run that
# `export` wrote. With SPLIT_BYTES the averaged weights are also written to OUT/exported, in bf16, in
# files below that size, at the end of every call.
set -euo pipefail

OUT=${OUT:?a folder for the results}
CLIPS=${CLIPS:?a folder of clips}
TEXTS=${TEXTS:?the texts of the clips}
DATA=${DATA:-${TMPDIR:-/tmp}/ming_mini_2_data}
LEXICON=${LEXICON:-/usr/share/wordnet}
TIME=${SECONDS_OF_TRAINING:-900}
CORES=${CORES:-$(nproc --all)}
DEVICE=${DEVICE:-cuda}
TOKENS=${TOKENS:-49152}
SEED=${SEED:-1}
PAUSE=${PAUSE:-$TIME}
SIZES=${SIZES:-mini_2}
WORDS_OF=${WORDS_OF:-sglang_omni/checkpoints/ming-mini}
START=${START-$WORDS_OF}
SAMPLED=${SAMPLED:-8000}
HELD_OUT=${HELD_OUT:-480}
GROUPS_A_SHARD=${GROUPS_A_SHARD:-}
PICTURE_SHARDS=${PICTURE_SHARDS:-300}
SPEECH_SHARDS=${SPEECH_SHARDS:-1000}
FILM_SHARDS=${FILM_SHARDS:-60}
SIGNS=${SIGNS:-96}
TEST_SECONDS=${TEST_SECONDS:-120}
RATE=${RATE:-2e-3}
SPLIT_BYTES=${SPLIT_BYTES:-}
start=()
[ -z "$START" ] || start=(--start "$START")
size=()
[ -z "$GROUPS_A_SHARD" ] || size=(--groups "$GROUPS_A_SHARD")
status=0

run() { local module=$1; shift; python -m "cookbook.ming_mini_2.thinker.$module" "$@"; }
make() {
    run make --model "$OUT/model" --lexicon "$LEXICON" --seed "$SEED" --clips "$CLIPS" \
        --texts "$TEXTS" "$@"
}
few() { echo $((CORES / 6 > 0 ? CORES / 6 : 1)); }
most() { echo $((CORES - 5 * $(few) > 0 ? CORES - 5 * $(few) : 1)); }
# Data is made until a minute before the end of a call: what is begun by then is still finished.
making=$((PAUSE > 120 ? PAUSE - 60 : PAUSE))
makers=()
trap '[ ${#makers[@]} -eq 0 ] || kill "${makers[@]}" 2>/dev/null || true' EXIT

mkdir -p "$OUT"
if [ ! -f "$OUT/model/tokenizer.json" ]; then
    run layout --output "$OUT/model" --lexicon "$LEXICON" --start "$WORDS_OF" --sizes "$SIZES" \
        --sampled "$SAMPLED"
fi
if [ ! -d "$DATA/held_out" ]; then
    held_out() { # kind, and how many times as many groups as of pictures
        make --kind "$1" --split held_out --output "$DATA/held_out.new" --shards 4 \
            --groups $(($2 * HELD_OUT / 4 + 1)) --processes $((CORES / 4 > 0 ? CORES / 4 : 1))
    }
    held_out_clips() { # Among the first clips there may be none that is held out.
        for _ in 1 2 3; do
            if held_out speech 1; then return 0; fi
            sleep 5
        done
        echo "no clip is held out yet: the training is not tested with speech"
    }
    # Of texts more, since some of their tasks are few in a hundred.
    held_out text 5 & waiting=($!)
    held_out picture 1 & waiting+=($!)
    held_out film 1 & waiting+=($!)
    held_out_clips & waiting+=($!)
    for one in "${waiting[@]}"; do wait "$one"; done
    mv "$DATA/held_out.new" "$DATA/held_out"
fi

mkdir -p "$DATA/train"
make_beside() { # kind, processes, shards
    make --kind "$1" --output "$DATA/train" --processes "$2" --shards "$3" "${size[@]}" \
        --seconds "$making" > "$OUT/$1.log" 2>&1 & makers+=($!)
}
make_beside text "$(most)" 100000
# They lie unpacked on the device: a shard of pictures takes 80 MB there, one of films 130 MB.
make_beside picture $((2 * $(few))) "$PICTURE_SHARDS"
make_beside speech $((2 * $(few))) "$SPEECH_SHARDS"
make_beside film "$(few)" "$FILM_SHARDS"

run train --model "$OUT/model" --shards "$DATA/train" --held-out "$DATA/held_out" \
    --output "$OUT/weights" --seconds "$TIME" --pause "$PAUSE" --tokens "$TOKENS" --device "$DEVICE" \
    --seed "$SEED" "${start[@]}" --text-only 0 --warm-up 200 --rate "$RATE" --signs "$SIGNS" \
    --test-seconds "$TEST_SECONDS" | tee -a "$OUT/train.log" || status=$?
[ $status -eq 0 ] || [ $status -eq 3 ] || exit $status
failed=0
for one in "${makers[@]}"; do wait "$one" || failed=1; done
makers=()
if [ -n "$SPLIT_BYTES" ]; then
    run export --weights "$OUT/weights" --output "$OUT/exported" --split-bytes "$SPLIT_BYTES"
fi
if [ $status -eq 3 ]; then
    echo "paused: the same command goes on"
    exit 0
fi
run pack --model "$OUT/model" --weights "$OUT/weights" --output "$OUT/checkpoint"
[ $failed -eq 0 ] || { echo "a maker failed, see $OUT/*.log"; exit 1; }
