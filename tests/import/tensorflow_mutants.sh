#!/bin/bash
# Damaged TensorFlow files are taken or refused in good order: tests/tools/tf_mutants.c on the models in ../shared and
# on our own small ones.
#
#     tensorflow_mutants.sh [COUNT]      400 without one; `make mutants` runs 4,000
set -u
cd "$(dirname "$0")/../.." || exit 1
tool=build/${TY_VARIANT:-release}/tools/tf_mutants
shared=${TY_SHARED:-../shared}/data
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tar -xJf tests/golden/tensorflow/files.tar.xz -C "$scratch" || exit 1
tar -xJf tests/golden/tensorflow/scene.tar.xz -C "$scratch" scene || exit 1
cp tests/golden/tensorflow/ops.pb "$scratch"
files=()
for path in "$scratch"/*/saved_model.pb "$scratch"/*/variables/variables.* "$scratch"/*.pb \
            "$shared"/models/savedmodel/{counter_tf1,half_plus_two_tf1,half_plus_two_tf2}/00000123/{saved_model.pb,variables/variables.*} \
            "$shared"/models/savedmodel/{mnist_lr_tf1,kws_dscnn_tf2}/{saved_model.pb,variables/variables.index} \
            "$shared"/keras-cases/module_momentum/saved_model/{saved_model.pb,variables/variables.index} \
            "$shared"/keras-cases/frozen_graph_mlp/model.pb; do
    [ -f "$path" ] && files+=("$path")
done
[ -x "$tool" ] || make -s variant="${TY_VARIANT:-release}" "$tool" >&2 || exit 1
TMPDIR=$scratch "$tool" -n "${1:-400}" "${files[@]}"
