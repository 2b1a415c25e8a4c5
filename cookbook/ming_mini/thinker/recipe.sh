#!/usr/bin/env bash
# Train the thinking half of Ming-mini on one GPU: data by all cores beside the training.
#
#   OUT=run SECONDS_OF_TRAINING=900 CORES=16 bash cookbook/ming_mini/thinker/recipe.sh
#
# Needs flite and espeak-ng on PATH, and WordNet or LEXICON, the JSON file that
# `python -m cookbook.ming_mini.lexicon` makes of it. Shards go to DATA (20 GB at most).
# PAUSE ends the training of this call after so many seconds; the next call with the same OUT and
# DATA goes on. START is a folder with the weights of an earlier run, to train them further, or a
# packed checkpoint, whose tokenizer is then kept.
set -euo pipefail

OUT=${OUT:?a folder for the results}
DATA=${DATA:-${TMPDIR:-/tmp}/ming_mini_data}
LEXICON=${LEXICON:-/usr/share/wordnet}
TIME=${SECONDS_OF_TRAINING:-900}
CORES=${CORES:-$(nproc --all)}
DEVICE=${DEVICE:-cuda}
TOKENS=${TOKENS:-49152}
SEED=${SEED:-1}
PAUSE=${PAUSE:-$TIME}
HELD_OUT=${HELD_OUT:-480}
PICTURE_SHARDS=${PICTURE_SHARDS:-260}
SPEECH_SHARDS=${SPEECH_SHARDS:-1000}
SIGNS=${SIGNS:-192}
START=${START:-}
begin=(--text-only 0.03 --warm-up 1000)
[ -z "$START" ] || begin=(--start "$START" --text-only 0 --warm-up 100)
status=0

run() { local module=$1; shift; python -m "cookbook.ming_mini.thinker.$module" "$@"; }
make() { run make --model "$OUT/model" --lexicon "$LEXICON" --seed "$SEED" "$@"; }
few() { echo $((CORES / 8 > 0 ? CORES / 8 : 1)); }
most() { echo $((CORES - 4 * $(few) > 0 ? CORES - 4 * $(few) : 1)); }
# Data is made until a minute before the end of a call: what is begun by then is still finished.
making=$((PAUSE > 120 ? PAUSE - 60 : PAUSE))

if [ ! -f "$OUT/model/tokenizer.json" ]; then
    if [ -f "$START/tokenizer.json" ]; then
        mkdir -p "$OUT/model"
        cp "$START"/{config,preprocessor_config,tokenizer,tokenizer_config,special_tokens_map}.json \
            "$OUT/model"
    else
        run layout --output "$OUT/model" --lexicon "$LEXICON"
    fi
fi
if [ ! -d "$DATA/held_out" ]; then
    for kind in text picture speech; do
        # Of texts more, since some of their tasks are few in a hundred.
        many=1; [ $kind = text ] && many=5
        make --kind "$kind" --split held_out --output "$DATA/held_out.new" --shards 8 \
            --groups $((many * HELD_OUT / 8)) --processes $((CORES / 3 > 0 ? CORES / 3 : 1)) &
    done
    wait
    mv "$DATA/held_out.new" "$DATA/held_out"
fi

mkdir -p "$DATA/train"
make --kind text --output "$DATA/train" --processes "$(few)" --shards 100000 \
    --seconds "$making" > "$OUT/text.log" 2>&1 &
# They lie unpacked on the device: a shard of pictures takes 120 MB there, one of clips 13 MB.
make --kind picture --output "$DATA/train" --processes $((2 * $(few))) --shards "$PICTURE_SHARDS" \
    --seconds "$making" > "$OUT/picture.log" 2>&1 &
make --kind speech --output "$DATA/train" --processes "$(most)" --shards "$SPEECH_SHARDS" \
    --seconds "$making" > "$OUT/speech.log" 2>&1 &

run train --model "$OUT/model" --shards "$DATA/train" --held-out "$DATA/held_out" \
    --output "$OUT/weights" --seconds "$TIME" --pause "$PAUSE" --tokens "$TOKENS" --device "$DEVICE" \
    --seed "$SEED" "${begin[@]}" --shares 0.27,0.41,0.32 --signs "$SIGNS" \
    --test-seconds 120 | tee -a "$OUT/train.log" || status=$?
if [ $status -eq 3 ]; then
    echo "paused: the same command goes on"
    exit 0
fi
[ $status -eq 0 ] || exit $status
wait
run ablate --model "$OUT/model" --weights "$OUT/weights" --held-out "$DATA/held_out" \
    --device "$DEVICE" --out "$OUT/ablation.json"
run pack --model "$OUT/model" --weights "$OUT/weights" --output "$OUT/checkpoint"
