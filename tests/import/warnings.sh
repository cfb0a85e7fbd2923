#!/bin/bash
# `trainyard check` tells what an export has lost, in words and in JSON, and nothing where nothing is lost.
set -u
cd "$(dirname "$0")/../.." || exit 1
models=${TY_SHARED:-../shared}/data/models/onnx
trainyard=${TY_BIN:-build/bin}/trainyard
if [ ! -f "$models/light/light_resnet50.onnx" ]; then
    echo "skip: no models in $models"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
passed=0 failed=0

# holds NAME TEXT WORDS; lacks NAME TEXT WORDS
holds() { if [[ $2 == *"$3"* ]]; then passed=$((passed + 1)); else echo "FAIL $1: no \"$3\" in: $2"; failed=$((failed + 1)); fi; }
lacks() { if [[ $2 != *"$3"* ]]; then passed=$((passed + 1)); else echo "FAIL $1: \"$3\" in: $2"; failed=$((failed + 1)); fi; }

text=$("$trainyard" check "$models/light/light_resnet50.onnx")
holds text "$text" 'warning: weights made by nodes are constants and are not trained: node #239 "n0" (Conv) and 53 more'
holds text "$text" 'warning: running statistics of batch norm are no initializers'
holds text "$text" '= help: export'
holds json "$("$trainyard" check --json "$models/light/light_resnet50.onnx")" '"weights made by nodes are constants'
lacks mnist-8 "$("$trainyard" check "$models/mnist-8/model.onnx")" 'warning'
holds mnist-8 "$("$trainyard" check --json "$models/mnist-8/model.onnx")" '"warnings": []'
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
