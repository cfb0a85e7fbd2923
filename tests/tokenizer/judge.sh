#!/bin/bash
# Our tokenizers beside Hugging Face's on 10,000 texts (judge.py). Needs a Python with `tokenizers` and `sentencepiece`:
# TY_TOKENIZERS_VENV, or TY_TOKENIZERS_INSTALL=1 makes one.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${TY_BUILD:-build/release}
venv=${TY_TOKENIZERS_VENV:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/tokenizers-XXXXXX")
trap 'rm -rf "$work"' EXIT
if [ -z "$venv" ] && [ -n "${TY_TOKENIZERS_INSTALL:-}" ]; then
    venv=$work/venv
    python3 -m venv "$venv" && "$venv/bin/pip" install -q tokenizers sentencepiece numpy || exit 1
fi
if [ -z "$venv" ]; then
    echo "skip: no Python with tokenizers: set TY_TOKENIZERS_VENV or TY_TOKENIZERS_INSTALL=1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
"$venv/bin/python" tests/tokenizer/judge.py "$build/tools/tokenize" "$work" "${TY_TOKENIZERS_LINES:-10000}" | tee "$work/out"
passed=$(grep -cE ': ([0-9]+) of \1 texts agree' "$work/out")
failed=$(grep -E 'texts agree' "$work/out" | grep -cvE ': ([0-9]+) of \1 texts agree')
grep -q '^all agree$' "$work/out" || failed=$((failed + 1))
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
