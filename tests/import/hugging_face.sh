#!/bin/bash
# hugging_face.sh - Hugging Face's models, small and random, as ONNX (hugging_face.py), as folders
# (hugging_face_folders.py) and as TensorFlow SavedModels
# (hugging_face_tf.py). `make hugging-face` runs it; tests/run does so where there is a Python for it: TY_HF_VENV names a
# virtual environment with torch, onnx, onnxscript and transformers, TY_HF_TF_VENV one with tensorflow, tf-keras and
# transformers before 5. With TY_HF_INSTALL=1 they are made under build/ (5 GB).
cd "$(dirname "$0")/../.." || exit 1
. tests/import/judge.bash

if [ "${TY_HF_INSTALL:-}" = 1 ]; then
    [ -n "${TY_HF_VENV:-}" ] || venv "$PWD/build/hugging-face-venv" torch onnx onnxscript 'transformers<5'
    [ -n "${TY_HF_TF_VENV:-}" ] || venv "$PWD/build/hugging-face-tf-venv" tensorflow-cpu tf-keras 'transformers<5'
fi
judge hugging_face.py "${TY_HF_VENV:-build/hugging-face-venv}" "torch and transformers"
judge hugging_face_folders.py "${TY_HF_VENV:-build/hugging-face-venv}" "torch and transformers"
judge hugging_face_tf.py "${TY_HF_TF_VENV:-build/hugging-face-tf-venv}" "tensorflow and transformers"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
