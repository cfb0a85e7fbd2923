#!/bin/bash
# zoo.sh [all] - networks that people bring: of torchvision and Hugging Face as PyTorch's exporters write them
# (zoo_torch.py), of keras.applications (zoo_keras.py), beside PyTorch and Keras. `make zoo` runs all; tests/run a few,
# where there is a Python for it: TY_ZOO_VENV names a virtual environment with torch, torchvision, transformers, onnx,
# onnxscript and safetensors, TY_ZOO_KERAS_VENV one with tensorflow. With TY_ZOO_INSTALL=1 they are made under build/
# (8 GB).
cd "$(dirname "$0")/../.." || exit 1
export TRAINYARD_CACHE_DIR=none PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
few=(-inference resnet18 swin_v2_t bert_words albert) few_of_keras=(MobileNetV2)
[ "${1:-}" = all ] && few=() few_of_keras=()
passed=0 failed=0 skipped=0

# venv FOLDER PACKAGE... - makes it once.
venv() {
    mkdir -p build
    flock "$1.lock" bash -c '[ -e "$1/complete" ] || { python3 -m venv "$1" && "$1/bin/pip" install -q "${@:2}" &&
        touch "$1/complete"; }' - "$@" >&2
}

# judge SCRIPT FOLDER WHAT ARGUMENT...
judge() {
    local out
    if ! [ -x "$2/bin/python" ]; then
        echo "skip: no Python with $3 (see tests/import/zoo.sh)"
        skipped=$((skipped + 1))
        return
    fi
    out=$("$2/bin/python" "tests/import/$1" "${TY_BIN:-build/bin}/trainyard" "${@:4}" 2>build/zoo.log)
    echo "$out" | grep -E '^(ok|skip:|FAILED) '
    if ! [[ $out =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped ]]; then
        tail -3 build/zoo.log
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
}

if [ "${TY_ZOO_INSTALL:-}" = 1 ]; then
    [ -n "${TY_ZOO_VENV:-}" ] || venv "$PWD/build/zoo-venv" torch torchvision transformers onnx onnxscript safetensors
    [ -n "${TY_ZOO_KERAS_VENV:-}" ] || venv "$PWD/build/zoo-keras-venv" tensorflow-cpu
fi
judge zoo_torch.py "${TY_ZOO_VENV:-build/zoo-venv}" "torchvision and transformers" "${few[@]}"
judge zoo_keras.py "${TY_ZOO_KERAS_VENV:-build/zoo-keras-venv}" "tensorflow" "${few_of_keras[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
