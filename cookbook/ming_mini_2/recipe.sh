#!/usr/bin/env bash
# Train Ming-mini 2 in one call, on one GPU or two, and pack what it has learnt.
#
#   OUT=run SECONDS_OF_TRAINING=1400 bash cookbook/ming_mini_2/recipe.sh
#
# The call ends SECONDS_OF_TRAINING after it begins, and packs. On THINKER_GPU the thinker is trained
# for THINKER_SECONDS beside the teachers, and what is left of the time is for learning to draw, if
# that is DRAWING_LEAST seconds or more. On SPEECH_GPU the CTC recogniser is trained for
# RECOGNISER_SECONDS, the VAE with its perceptual loss for VAE_SECONDS, its encoder on recordings for
# ENCODER_SECONDS, and the talker for all that is left. Clips are made from the first second on:
# resynthesised ones for both halves, and for the thinker the teachers' own speech and the first
# recipe's steady voices; Kokoro speaks on CLIPS_GPU. Makers of data have a lower priority than
# trainings. A part that fails does not end the others.
#
# HALVES=thinker trains the thinking half alone: it has all of the time, and the GPU beside the
# teachers; `pack` takes the speaking half of the bundled checkpoint. There is no drawing then.
# HALVES=voices leaves the thinker as it is bundled: drawing and voices have all of the time.
# HALVES=speech leaves drawing as well, and begins with the bundled VAE. With two GPUs the talker begins
# on THINKER_GPU with that VAE's latents, and goes on with the new ones when the new VAE is trained.
#
# EXPORT has all that is learnt so far in at most six files below 16 MB, anew every EXPORT_SECONDS:
# a machine that ends early leaves weights that `export --restore` and `pack` make a checkpoint of.
# The results are in OUT, and the model that a server loads in OUT/checkpoint. Needs what
# `voices/bundle_teachers.sh` lists. OUT/texts.jsonl and OUT/thinker/model may be there already.
#
# LEXICON is WordNet's folder, or the JSON file that `python -m cookbook.ming_mini.lexicon` makes;
# VOCABULARY a file of `voices.vocabulary`, where `wordfreq` is not installed.
# CLIP_PROCESSES of the CORES make clips, DATA_CORES are for the thinker's other data, PICTURE_CORES
# make what drawing is learnt from. Of the clips in steady voices, which one process makes faster than
# any other, there are at most STEADY_HOURS. Of the others NATURAL_PROCESSES and LOCKED_PROCESSES are
# for clips of the two forms; resynthesised ones are made for LOCKED_SECONDS. MPS is the folder of the
# pipes of NVIDIA's MPS (CUDA_MPS_PIPE_DIRECTORY), which lets the teachers and the talker compute on
# one GPU at the same time.
# SPEECH_VAE and IMAGE_VAE are folders of weights that an earlier run left (OUT/speech, OUT/image/vae):
# the talker and the drawing begin with them, and have the time of those trainings. RECOGNISER is the
# folder of an earlier run's recogniser (OUT/recogniser). With SPEECH_VAE none is trained, and without
# that folder the decoder goes on without one. With VAE_SECONDS=0 only
# the encoder of the bundled VAE is trained, and goes on beside the talker, which has nearly all of
# the time: that suits one GPU. The encoder of SPEECH_VAE is not trained again.
# THINKER_SETTINGS are further settings of `thinker/recipe.sh`, DRAWING_SETTINGS of
# `image/recipe.sh`; VAE_OPTIONS, DECODER_OPTIONS and TALKER_OPTIONS are further options of their
# trainings.
set -euo pipefail

OUT=${OUT:?a folder for the results}
TIME=${SECONDS_OF_TRAINING:-1400}
HALVES=${HALVES:-both}
# A training keeps two cores busy.
case $HALVES in
    both) own=$((TIME * 4 / 7)) busy=4 ;;
    # The first clips, the held-out data and the end of the training take the rest.
    thinker) own=$((TIME - TIME / 12)) busy=2 DRAWING_LEAST=$((TIME + 1)) ;;
    voices) own=0 busy=4 NATURAL_PROCESSES=0 ;;
    speech) own=0 busy=4 NATURAL_PROCESSES=0 DRAWING_LEAST=$((TIME + 1)) ;;
    *) echo "HALVES must be both, thinker, voices or speech, not $HALVES" >&2; exit 2 ;;
esac
THINKER_SECONDS=${THINKER_SECONDS:-$own}
RECOGNISER=${RECOGNISER:-}
RECOGNISER_SECONDS=${RECOGNISER_SECONDS:-$((TIME / 7))}
[ -z "$RECOGNISER" ] || RECOGNISER_SECONDS=0
VAE_SECONDS=${VAE_SECONDS:-$((TIME / 4))}
ENCODER_SECONDS=${ENCODER_SECONDS:-$((TIME / 8))}
DRAWING_LEAST=${DRAWING_LEAST:-360}
SPEECH_VAE=${SPEECH_VAE:-}
[ -z "$SPEECH_VAE" ] || ENCODER_SECONDS=0
IMAGE_VAE=${IMAGE_VAE:-}
for folder in $SPEECH_VAE $IMAGE_VAE; do
    compgen -G "$folder/*vae-*.safetensors" > /dev/null || { echo "no weights of a VAE in $folder" >&2; exit 2; }
done
[ -z "$RECOGNISER" ] || compgen -G "$RECOGNISER/ctc_recogniser-*.safetensors" > /dev/null ||
    { echo "no weights of a recogniser in $RECOGNISER" >&2; exit 2; }
LEXICON=${LEXICON:-/usr/share/wordnet}
VOCABULARY=${VOCABULARY:-}
CORES=${CORES:-$(nproc --all)}
data=$((CORES * 2 / 5 > 0 ? CORES * 2 / 5 : 1)) pictures=$((data / 4 + 1))
# Pictures are made before anything else is trained.
[ "$HALVES" != voices ] || data=0 pictures=$((CORES / 2 + 1))
[ "$HALVES" != speech ] || data=0 pictures=0
DATA_CORES=${DATA_CORES:-$data}
PICTURE_CORES=${PICTURE_CORES:-$pictures}
DEVICE=${DEVICE:-cuda}
GPUS=$(nvidia-smi -L 2> /dev/null | wc -l || true)
CLIP_PROCESSES=${CLIP_PROCESSES:-$((CORES - DATA_CORES - busy))}
THINKER_GPU=${THINKER_GPU:-0}
SPEECH_GPU=${SPEECH_GPU:-$((GPUS > 1 ? 1 : 0))}
DECODER_GPU=${DECODER_GPU:-$THINKER_GPU}
CLIPS_GPU=${CLIPS_GPU:-$THINKER_GPU}
# With teachers on the thinker's GPU, twelve keep it busy, and each takes 2.5 GB of its memory.
[ "$own" = 0 ] || [ "$GPUS" = 0 ] || [ "$CLIPS_GPU" != "$THINKER_GPU" ] ||
    CLIP_PROCESSES=$((CLIP_PROCESSES > 13 ? 13 : CLIP_PROCESSES))
# One makes clips in steady voices. The talker has no use for natural ones.
teachers=$((CLIP_PROCESSES > 2 ? CLIP_PROCESSES - 1 : 2))
natural=$(((teachers + 2) / 3))
[ "$HALVES" = both ] || natural=$(((teachers + 1) / 2))
NATURAL_PROCESSES=${NATURAL_PROCESSES:-$natural}
LOCKED_PROCESSES=${LOCKED_PROCESSES:-$((teachers - NATURAL_PROCESSES))}
LOCKED_SECONDS=${LOCKED_SECONDS:-$TIME}
STEADY_HOURS=${STEADY_HOURS:-4}
HOURS=${HOURS:-80}
NUM_TEXTS=${NUM_TEXTS:-40000}
CHUNK_CLIPS=${CHUNK_CLIPS:-200}
SEED=${SEED:-1}
DATA=${DATA:-${TMPDIR:-/tmp}/ming_mini_2}
EXPORT=${EXPORT:-$OUT/exported}
EXPORT_SECONDS=${EXPORT_SECONDS:-60}
# The packed checkpoint that the thinker begins with has all the words that a tokenizer may have.
# Pictures, films and clips take 29 GB beside twelve teachers' 30 GB. Two processes make 0.9 shards of
# speech a second: fewer would have no clip of the last minutes.
stored="PICTURE_SHARDS=200 FILM_SHARDS=40 SPEECH_SHARDS=$((THINKER_SECONDS * 7 / 10))"
read -r -a THINKER <<< "${THINKER_SETTINGS:-TOKENS=98304 RATE=1.3e-3 SAMPLED=100 $stored}"
read -r -a DRAWING <<< "${DRAWING_SETTINGS:-}"
# Discriminators make a step four times as long, so only the decoder is trained with them, later.
bundled=sglang_omni/checkpoints/ming-mini
read -r -a VAE <<< "${VAE_OPTIONS:---budget 110 --adversarial-from 2 --perceptual 4}"
[ "$HALVES" != speech ] || VAE=(--start "$bundled/talker/vae/model.safetensors" "${VAE[@]}")
read -r -a DECODER <<< "${DECODER_OPTIONS:---adversarial-from 0.05 --peak 4e-4 --perceptual 4}"
# What the VAE's trainings take the perceptual loss from, as soon as there is one.
recogniser=()
[ -z "$RECOGNISER" ] || recogniser=(--recogniser "$RECOGNISER")
read -r -a TALKER <<< "${TALKER_OPTIONS:---start $bundled/talker/model.safetensors}"
here=cookbook.ming_mini_2

mkdir -p "$OUT/clips" "$EXPORT" "$DATA"
OUT=$(cd "$OUT" && pwd) EXPORT=$(cd "$EXPORT" && pwd)
# The thinker that drawing is learnt with: the folder of its tokenizer, and what it is when trained.
model=$OUT/thinker/model trained=$OUT/thinker/checkpoint
trains_thinker() { [ "$own" != 0 ]; }
trains_thinker || model=$bundled trained=$bundled
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
left() { echo $((TIME - SECONDS)); }
on_gpu() { # GPU: what a program on it needs in its environment
    echo "CUDA_VISIBLE_DEVICES=$1"
    [ -z "${MPS:-}" ] || [ "$1" != "$CLIPS_GPU" ] || echo "CUDA_MPS_PIPE_DIRECTORY=$MPS"
}
sooner() { echo $(($1 < $2 ? $1 : $2)); }

python -m "$here.pack" --unpack
if trains_thinker && [ ! -f "$OUT/texts.jsonl" ]; then
    python -m "$here.thinker.spoken_texts" --output "$OUT/texts.jsonl" --count "$NUM_TEXTS" \
        --seed "$SEED" --lexicon "$LEXICON"
fi
make_clips() { # form, seconds, processes, hours
    local place texts=()
    mapfile -t place < <(on_gpu "$CLIPS_GPU")
    # What a thinker must understand takes most of the texts, and only there is one to learn it.
    ! trains_thinker || texts=(--texts "$OUT/texts.jsonl")
    [ -z "$VOCABULARY" ] || texts+=(--vocabulary "$VOCABULARY")
    env "${place[@]}" nice -n 10 python -m "$here.voices.corpus" \
        --output "$OUT/clips/$1" --form "$1" --hours "$4" --seconds "$2" --seed "$SEED" \
        --lexicon "$LEXICON" --processes "$3" --chunk-clips "$CHUNK_CLIPS" \
        "${texts[@]}" > "$OUT/clips-$1.log" 2>&1 & running+=($!)
}
! trains_thinker ||
    make_clips natural "$(sooner "$THINKER_SECONDS" "$(left)")" "$NATURAL_PROCESSES" "$HOURS"
make_clips locked "$(sooner "$LOCKED_SECONDS" "$(left)")" "$LOCKED_PROCESSES" "$HOURS"

train_thinker() { # more settings
    env CUDA_VISIBLE_DEVICES="$THINKER_GPU" OUT="$OUT/thinker" CLIPS="$OUT/clips" \
        TEXTS="$OUT/texts.jsonl" LEXICON="$LEXICON" CORES="$DATA_CORES" DEVICE="$DEVICE" \
        SECONDS_OF_TRAINING="$(sooner "$THINKER_SECONDS" "$(left)")" SEED="$SEED" \
        DATA="$DATA/thinker" "${THINKER[@]}" "$@" bash cookbook/ming_mini_2/thinker/recipe.sh
}
learn_to_draw() { # step, checkpoint, more settings
    local step=$1 checkpoint=$2 place; shift 2
    mapfile -t place < <(on_gpu "$THINKER_GPU")
    env "${place[@]}" OUT="$OUT/image" CHECKPOINT="$checkpoint" STEP="$step" \
        DATA="$DATA/pictures" DEVICE="$DEVICE" SEED="$SEED" CORES="$PICTURE_CORES" \
        TESTED=64 "${DRAWING[@]}" "$@" bash cookbook/ming_mini_2/image/recipe.sh
}
take_weights() { # from an earlier run's folder, to this one's
    mkdir -p "$2"
    find "$1" -maxdepth 1 \( -name '*vae-*.safetensors' -o -name latents.json \) -exec cp -t "$2" {} +
}
make_pictures() {
    renice -n 10 "$BASHPID" > /dev/null
    until [ -f "$model/tokenizer.json" ]; do sleep 1; done
    learn_to_draw 0 "$model"
}
train_drawing() {
    if [ "$(left)" -lt "$DRAWING_LEAST" ]; then
        echo "$(left) s are left: too few to learn to draw"
        return
    fi
    if [ -n "$IMAGE_VAE" ]; then
        take_weights "$IMAGE_VAE" "$OUT/image/vae"
    else
        learn_to_draw 1 "$trained" VAE_SECONDS=$(($(left) * 2 / 5))
    fi
    # The examples are prepared before the training, and it is tested behind it. Where the first step
    # took all that was left, there is an error.
    learn_to_draw 2 "$trained" SECONDS_OF_TRAINING=$(($(left) * 11 / 12 - 90))
}
train_voices() { # program, GPU, folder, seconds, more options
    local program=$1 gpu=$2 folder=$3 seconds=$4 place; shift 4
    mapfile -t place < <(on_gpu "$gpu")
    env "${place[@]}" python -m "$here.voices.$program" \
        --corpus "$OUT/clips/locked" --output "$folder" --seconds "$seconds" --device "$DEVICE" \
        --seed "$SEED" "$@"
}
train_decoder() { # seconds
    train_voices train_vae "$DECODER_GPU" "$OUT/decoder" "$1" --decoder-of "$OUT/speech" \
        "${recogniser[@]}" "${DECODER[@]}" > "$OUT/train_decoder.log" 2>&1
    take_weights "$OUT/decoder" "$OUT/speech"
}
train_first_talker() { # seconds
    train_voices train_talker "$THINKER_GPU" "$OUT/first_talker" "$1" \
        --vae "$bundled/talker/vae/model.safetensors" "${TALKER[@]}" \
        > "$OUT/train_first_talker.log" 2>&1
}
train_speech() {
    local seconds decoder='' encoder='' first='' keeps_vae='' status=0
    if [ -n "$SPEECH_VAE" ]; then
        take_weights "$SPEECH_VAE" "$OUT/speech"
    elif [ "$VAE_SECONDS" = 0 ]; then
        keeps_vae=yes
        mkdir -p "$OUT/speech"
        cp "$bundled/talker/vae/model.safetensors" "$OUT/speech/vae-1.safetensors"
    else
        if [ "$HALVES" = speech ] && [ "$THINKER_GPU" != "$SPEECH_GPU" ]; then
            train_first_talker $((RECOGNISER_SECONDS + VAE_SECONDS)) & first=$!
        fi
        if [ -z "$RECOGNISER" ]; then
            train_voices train_ctc_recogniser "$SPEECH_GPU" "$OUT/recogniser" \
                "$RECOGNISER_SECONDS" > "$OUT/train_recogniser.log" 2>&1
            recogniser=(--recogniser "$OUT/recogniser")
        fi
        train_voices train_vae "$SPEECH_GPU" "$OUT/speech" "$VAE_SECONDS" "${recogniser[@]}" \
            "${VAE[@]}" > "$OUT/train_vae.log" 2>&1
        # The last start that is given counts.
        [ -z "$first" ] || ! wait "$first" || TALKER+=(--start "$OUT/first_talker")
    fi
    if [ "$ENCODER_SECONDS" != 0 ]; then
        train_voices train_encoder "$SPEECH_GPU" "$OUT/speech" "$ENCODER_SECONDS" \
            --vae "$OUT/speech" > "$OUT/train_encoder.log" 2>&1
    fi
    # They take some seconds to begin and to save.
    seconds=$(($(left) - TIME / 70))
    if [ -z "$keeps_vae" ]; then
        train_decoder $((seconds - TIME / 70)) & decoder=$!
    elif [ "$ENCODER_SECONDS" != 0 ]; then
        # There are many more recordings now, and the latents that it aims at stay.
        train_voices train_encoder "$SPEECH_GPU" "$OUT/encoder" $((seconds - TIME / 70)) \
            --vae "$OUT/speech" --peak 4e-4 > "$OUT/train_encoder_on.log" 2>&1 & encoder=$!
    fi
    train_voices train_talker "$SPEECH_GPU" "$OUT/speech" "$seconds" --vae "$OUT/speech" \
        "${TALKER[@]}" > "$OUT/train_talker.log" 2>&1 || status=$?
    [ -z "$decoder" ] || wait "$decoder" || status=$?
    if [ -n "$encoder" ]; then
        if wait "$encoder"; then take_weights "$OUT/encoder" "$OUT/speech"; else status=1; fi
    fi
    return "$status"
}
thinking() {
    if trains_thinker; then
        # If the memory does not suffice, it goes on from what was saved, with smaller steps.
        { train_thinker || [ -d "$trained" ] || train_thinker TOKENS=49152; } \
            > "$OUT/thinker.log" 2>&1
    elif [ "$HALVES" != speech ]; then
        make_pictures > "$OUT/pictures.log" 2>&1
    fi
    train_drawing > "$OUT/drawing.log" 2>&1
}

think() {
    thinking & thinking=$!
    running+=("$thinking")
}
makers=("${running[@]}")
trains_thinker || think
until compgen -G "$OUT/clips/*/chunk-*.npz" > /dev/null; do
    kill -0 "${makers[@]}" || { cat "$OUT"/clips-*.log; exit 1; }
    sleep 1
done
# After the first clips, since the training is tested with those.
! trains_thinker || make_clips steady "$(sooner "$THINKER_SECONDS" "$(left)")" 1 "$STEADY_HOURS"
nice -n 10 python -m "$here.export" --run "$OUT" --output "$EXPORT" --every "$EXPORT_SECONDS" \
    > "$OUT/export.log" 2>&1 & running+=($!)
! trains_thinker || think
speech=
if [ "$HALVES" != thinker ]; then
    train_speech & speech=$!
    running+=("$speech")
fi
if [ "$HALVES" = both ] && [ "$DRAWING_LEAST" -le "$TIME" ]; then
    make_pictures > "$OUT/pictures.log" 2>&1 & running+=($!)
fi
failed=0
if [ -n "$speech" ]; then
    wait "$speech" || { failed=1; tail -n 20 "$OUT"/train_*.log || true; }
fi
wait "$thinking" || { failed=1; tail -n 20 "$OUT/thinker.log" "$OUT/drawing.log" || true; }
stop
python -m "$here.pack" --run "$OUT" --output "$OUT/checkpoint"
exit "$failed"
