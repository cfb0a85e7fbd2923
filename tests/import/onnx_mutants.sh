#!/bin/bash
# Damaged model files are taken or refused in good order: tests/tools/onnx_mutants.c on the models in ../shared.
#
#     onnx_mutants.sh [COUNT]      1,000 without one; `make mutants` runs 10,000
set -u
cd "$(dirname "$0")/../.." || exit 1
models=${TY_SHARED:-../shared}/data/models/onnx
tool=build/${TY_VARIANT:-release}/tools/onnx_mutants
files=()
for path in "$models"/{mnist-8,mnist_softmax,super_resolution_10,dummy-transformer}/model.onnx \
            "$models"/tiny-random-gpt2/past.onnx "$models"/light/*.onnx; do
    [ -f "$path" ] && files+=("$path")
done
if [ ${#files[@]} = 0 ]; then
    echo "skip: no models in $models"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
[ -x "$tool" ] || make -s variant="${TY_VARIANT:-release}" "$tool" >&2 || exit 1
exec "$tool" -n "${1:-1000}" "${files[@]}"
