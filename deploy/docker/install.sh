#!/bin/sh
# Install the server of a source tree into a new environment, with the versions that were tested.
#   sh install.sh SOURCE TARGET
set -eu
source=$1 target=$2
python3 -m venv "$target"
"$target/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check uv
"$target/bin/uv" pip install --quiet --no-cache --compile-bytecode --python "$target/bin/python" \
    --constraints "$source/requirements.lock" "$source"
