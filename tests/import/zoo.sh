#!/bin/bash
# zoo.sh [all] - networks that people bring: of torchvision, timm and Hugging Face as PyTorch's exporters write them
# (zoo_torch.py), of keras.applications (zoo_keras.py), beside PyTorch and Keras. `make zoo` runs all; tests/run a few,
# where there is a Python for it: TY_ZOO_VENV names a virtual environment with torch, torchvision, timm, transformers,
# onnx, onnxscript and safetensors, TY_ZOO_KERAS_VENV one with tensorflow. With TY_ZOO_INSTALL=1 they are made under build/
# (8 GB).
cd "$(dirname "$0")/../.." || exit 1
. tests/import/judge.bash
few=(-inference resnet18 swin_v2_t bert_words albert) few_of_keras=(MobileNetV2)
[ "${1:-}" = all ] && few=() few_of_keras=()

if [ "${TY_ZOO_INSTALL:-}" = 1 ]; then
    [ -n "${TY_ZOO_VENV:-}" ] || venv "$PWD/build/zoo-venv" torch torchvision timm transformers onnx onnxscript safetensors
    [ -n "${TY_ZOO_KERAS_VENV:-}" ] || venv "$PWD/build/zoo-keras-venv" tensorflow-cpu
fi
judge zoo_torch.py "${TY_ZOO_VENV:-build/zoo-venv}" "torchvision, timm and transformers" "${few[@]}"
judge zoo_keras.py "${TY_ZOO_KERAS_VENV:-build/zoo-keras-venv}" "tensorflow" "${few_of_keras[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
