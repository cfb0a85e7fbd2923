#!/bin/bash
# judge.sh [MODELS [ARGUMENT...]] - random Keras models, trained here and by Keras: tests/keras/judge.py. `make keras-judge` takes 40, a
# run of all tests 5. TY_TF_VENV names a virtual environment with tensorflow (its CPU form is enough), keras, h5py and onnx,
# and onnxruntime if its results shall be looked at too; with TY_TF_INSTALL=1 one is made under build/ (1.5 GB).
cd "$(dirname "$0")/../.." || exit 1
made=$PWD/build/keras-venv
python=${TY_TF_VENV:-$made}/bin/python
if [ -z "${TY_TF_VENV:-}" ] && [ "${TY_TF_INSTALL:-}" = 1 ]; then
    mkdir -p build
    flock "$made.lock" bash -c '[ -e "$1/complete" ] || { python3 -m venv "$1" &&
        "$1/bin/pip" install -q tensorflow-cpu h5py onnx onnxruntime safetensors && touch "$1/complete"; }' - "$made" >&2
fi
if ! [ -x "$python" ]; then
    echo "skip: no TensorFlow and Keras (TY_TF_VENV or TY_TF_INSTALL=1, see tests/keras/judge.sh)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
export TRAINYARD_CACHE_DIR=none PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
exec "$python" tests/keras/judge.py "$(realpath "${TY_BIN:-build/bin}")/trainyard" --models "${1:-5}" "${@:2}" 2> >(grep -v 'absl::\|port.cc' >&2)
