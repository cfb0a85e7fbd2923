#!/bin/bash
# Damaged files of Keras are taken or refused in good order: tests/tools/keras_mutants.c on the files of tests/golden/keras and
# those in ../shared.
#
#     keras_mutants.sh [COUNT]      300 without one; `make mutants` runs 8,000
set -u
cd "$(dirname "$0")/../.." || exit 1
data=${TY_SHARED:-../shared}/data
tool=build/${TY_VARIANT:-release}/tools/keras_mutants
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xJf tests/golden/keras/files.tar.xz -C "$work" || exit 1
files=("$work"/{trained,untrained,types,types_1_10,old_group}.keras "$work"/{trained,cut_names}.h5)
for path in "$data"/keras-cases/{mlp_activations,gru_masked,abalone_branches}/model.keras \
            "$data"/keras-cases/cnn_legacy_h5/model.h5 "$data"/models/keras/nested_container/*.keras; do
    [ -f "$path" ] && files+=("$path")
done
[ -x "$tool" ] || make -s variant="${TY_VARIANT:-release}" "$tool" >&2 || exit 1
"$tool" -n "${1:-300}" "${files[@]}"
