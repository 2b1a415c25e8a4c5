#!/usr/bin/env bash
# Train both halves of Ming-mini 2 in one call, on one GPU or two.
#
#   OUT=run SECONDS_OF_TRAINING=1500 bash cookbook/ming_mini_2/recipe.sh
#
# Clips are made from the first second on: resynthesised ones for both halves, and the teachers' own
# speech for the thinker. It is trained all the time, on THINKER_GPU; the VAE for VAE_SECONDS, and
# then the talker, on SPEECH_GPU. Makers of data have a lower priority than trainings. The results
# are in OUT/thinker and OUT/speech, and the model that a server loads in OUT/checkpoint. Needs what
# `voices/bundle_teachers.sh` lists.
#
# LEXICON is WordNet's folder, or the JSON file that `python -m cookbook.ming_mini.lexicon` makes.
# CLIP_PROCESSES of the CORES make clips, DATA_CORES are for the thinker's other data.
# THINKER_SETTINGS are further settings of `thinker/recipe.sh`; VAE_OPTIONS and TALKER_OPTIONS are
# further options of their trainings.
set -euo pipefail

OUT=${OUT:?a folder for the results}
TIME=${SECONDS_OF_TRAINING:-1500}
VAE_SECONDS=${VAE_SECONDS:-$((TIME / 3 < 420 ? TIME / 3 : 420))}
LEXICON=${LEXICON:-/usr/share/wordnet}
CORES=${CORES:-$(nproc --all)}
DATA_CORES=${DATA_CORES:-$((CORES / 4 > 0 ? CORES / 4 : 1))}
DEVICE=${DEVICE:-cuda}
GPUS=$(nvidia-smi -L 2> /dev/null | wc -l || true)
CLIP_PROCESSES=${CLIP_PROCESSES:-$((CORES - DATA_CORES > 4 ? CORES - DATA_CORES - 3 : 1))}
# With teachers on the GPU, twelve keep it busy, and each takes 2.5 GB of its memory.
[ "$GPUS" = 0 ] || CLIP_PROCESSES=$((CLIP_PROCESSES > 12 ? 12 : CLIP_PROCESSES))
THINKER_GPU=${THINKER_GPU:-0}
SPEECH_GPU=${SPEECH_GPU:-$((GPUS > 1 ? 1 : 0))}
HOURS=${HOURS:-80}
NUM_TEXTS=${NUM_TEXTS:-30000}
CHUNK_CLIPS=${CHUNK_CLIPS:-200}
SEED=${SEED:-1}
SPLIT_BYTES=${SPLIT_BYTES:-15000000}
read -r -a THINKER <<< "${THINKER_SETTINGS:-}"
read -r -a VAE <<< "${VAE_OPTIONS:-}"
read -r -a TALKER <<< "${TALKER_OPTIONS:-}"
here=cookbook.ming_mini_2

mkdir -p "$OUT/clips"
OUT=$(cd "$OUT" && pwd)
# One thread for each process that makes data.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
# Each job is a group of processes, which ends as a whole.
set -m
running=()
stop() {
    for one in "${running[@]}"; do kill -- "-$one" 2> /dev/null || true; done
    running=()
    wait
}
trap stop EXIT

if [ ! -f "$OUT/texts.jsonl" ]; then
    python -m "$here.thinker.spoken_texts" --output "$OUT/texts.jsonl" --count "$NUM_TEXTS" \
        --seed "$SEED" --lexicon "$LEXICON"
fi
make_clips() { # form, processes
    CUDA_VISIBLE_DEVICES=$THINKER_GPU nice -n 10 python -m "$here.voices.corpus" \
        --output "$OUT/clips/$1" --form "$1" --hours "$HOURS" --seconds "$TIME" --seed "$SEED" \
        --texts "$OUT/texts.jsonl" --lexicon "$LEXICON" --processes "$2" \
        --chunk-clips "$CHUNK_CLIPS" > "$OUT/clips-$1.log" 2>&1 & running+=($!)
}
make_clips natural "$((CLIP_PROCESSES / 4 + 1))"
make_clips free "$CLIP_PROCESSES"

train_thinker() {
    env CUDA_VISIBLE_DEVICES="$THINKER_GPU" OUT="$OUT/thinker" CLIPS="$OUT/clips" \
        TEXTS="$OUT/texts.jsonl" LEXICON="$LEXICON" CORES="$DATA_CORES" DEVICE="$DEVICE" \
        SECONDS_OF_TRAINING="$TIME" SEED="$SEED" SPLIT_BYTES="$SPLIT_BYTES" "${THINKER[@]}" \
        bash cookbook/ming_mini_2/thinker/recipe.sh > "$OUT/thinker.log" 2>&1
}
train_voices() { # program, seconds, more options
    local program=$1 seconds=$2; shift 2
    CUDA_VISIBLE_DEVICES=$SPEECH_GPU python -m "$here.voices.$program" \
        --corpus "$OUT/clips/free" --output "$OUT/speech" --seconds "$seconds" --device "$DEVICE" \
        --seed "$SEED" --split-bytes "$SPLIT_BYTES" "$@" > "$OUT/$program.log" 2>&1
}
train_speech() {
    train_voices train_vae "$VAE_SECONDS" "${VAE[@]}"
    train_voices train_talker "$((TIME - VAE_SECONDS))" --vae "$OUT/speech" "${TALKER[@]}"
}

until compgen -G "$OUT/clips/*/chunk-*.npz" > /dev/null; do
    kill -0 "${running[@]}" || { cat "$OUT"/clips-*.log; exit 1; }
    sleep 1
done
train_thinker & thinker=$!
train_speech & speech=$!
running+=("$thinker" "$speech")
wait "$speech" || { tail -n 20 "$OUT/train_vae.log" "$OUT/train_talker.log"; exit 1; }
wait "$thinker" || { tail -n 20 "$OUT/thinker.log"; exit 1; }
stop
python -m "$here.thinker.pack" --model "$OUT/thinker/model" --weights "$OUT/thinker/weights" \
    --output "$OUT/checkpoint"
python -m "$here.voices.pack" --weights "$OUT/speech" --output "$OUT/checkpoint" --form free
