#!/bin/bash
# optimizers.sh - the optimizers' state in files that we write, against Keras' own: tests/keras/optimizers.py, in the virtual
# environment of tests/keras/judge.sh (TY_TF_VENV).
cd "$(dirname "$0")/../.." || exit 1
python=${TY_TF_VENV:-$PWD/build/keras-venv}/bin/python
if ! [ -x "$python" ]; then
    echo "skip: no TensorFlow and Keras (TY_TF_VENV or TY_TF_INSTALL=1, see tests/keras/judge.sh)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TRAINYARD_CACHE_DIR=none PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
"$python" tests/keras/optimizers.py "$(realpath "${TY_BIN:-build/bin}")/trainyard" "$work" 2> >(grep -v 'absl::\|port.cc' >&2)
