#!/bin/bash
# hugging_face.sh - Hugging Face's models, small and random, as ONNX (hugging_face.py) and as TensorFlow SavedModels
# (hugging_face_tf.py). `make hugging-face` runs it; tests/run does so where there is a Python for it: TY_HF_VENV names a
# virtual environment with torch, onnx, onnxscript and transformers, TY_HF_TF_VENV one with tensorflow, tf-keras and
# transformers before 5. With TY_HF_INSTALL=1 they are made under build/ (5 GB).
cd "$(dirname "$0")/../.." || exit 1
export TRAINYARD_CACHE_DIR=none PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
passed=0 failed=0 skipped=0

# venv FOLDER PACKAGE... - makes it once.
venv() {
    mkdir -p build
    flock "$1.lock" bash -c '[ -e "$1/complete" ] || { python3 -m venv "$1" && "$1/bin/pip" install -q "${@:2}" &&
        touch "$1/complete"; }' - "$@" >&2
}

# judge SCRIPT FOLDER WHAT
judge() {
    local out
    if ! [ -x "$2/bin/python" ]; then
        echo "skip: no Python with $3 (see tests/import/hugging_face.sh)"
        skipped=$((skipped + 1))
        return
    fi
    out=$("$2/bin/python" "tests/import/$1" "${TY_BIN:-build/bin}/trainyard" 2>build/hugging-face.log)
    echo "$out" | grep -E '^(ok|FAILED) '
    if ! [[ $out =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then
        tail -3 build/hugging-face.log
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
}

if [ "${TY_HF_INSTALL:-}" = 1 ]; then
    [ -n "${TY_HF_VENV:-}" ] || venv "$PWD/build/hugging-face-venv" torch onnx onnxscript 'transformers<5'
    [ -n "${TY_HF_TF_VENV:-}" ] || venv "$PWD/build/hugging-face-tf-venv" tensorflow-cpu tf-keras 'transformers<5'
fi
judge hugging_face.py "${TY_HF_VENV:-build/hugging-face-venv}" "torch and transformers"
judge hugging_face_tf.py "${TY_HF_TF_VENV:-build/hugging-face-tf-venv}" "tensorflow and transformers"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
