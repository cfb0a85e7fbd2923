#!/bin/bash
# onnx.sh - ONNX files that `trainyard model convert` writes, judged by onnx.checker and ONNX Runtime: exports of PyTorch, examples,
# training cases. TY_ONNX_VENV names a virtual environment with onnx, onnxruntime and numpy; with TY_ONNX_INSTALL=1 one is made
# under build/. OPSETS: which are written (default: the usual one).
cd "$(dirname "$0")/../.." || exit 1
made=build/export-venv
python=${TY_ONNX_VENV:-$made}/bin/python
if [ -z "${TY_ONNX_VENV:-}" ] && [ "${TY_ONNX_INSTALL:-}" = 1 ] && [ ! -x "$python" ]; then
    python3 -m venv $made && $made/bin/pip install -q onnx onnxruntime numpy >&2 || rm -rf $made
fi
if ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
    echo "skip: no onnx and onnxruntime (TY_ONNX_VENV or TY_ONNX_INSTALL=1, see tests/export/onnx.sh)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
export TRAINYARD_CACHE_DIR=none
shopt -s nullglob
exec "$python" tests/export/judge.py "$(realpath "${TY_BIN:-build/bin}")/trainyard" "${OPSETS:-20}" examples/digits/model.onnx \
    examples/gpt-c/model.c examples/deepfm-c/model.c tests/fuzz/corpus/step/*.onnx tests/golden/raise/*.onnx \
    "${TY_SHARED:-../shared}"/data/{train,keras}-cases/*/ "${TY_SHARED:-../shared}"/data/models/onnx/{mnist-8,super_resolution_10}/*.onnx
