#!/bin/bash
# The examples written in C train: the loss falls to where it must, and the model is there.
set -u
cd "$(dirname "$0")/../.." || exit 1
bin=${TY_BIN:-build/bin} shared=${TY_SHARED:-../shared}
work=$(mktemp -d "${TMPDIR:-/tmp}/examples-XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

check() { # WHAT COMMAND...
    if "${@:2}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
        tail -n 15 "$work/log"
    fi
}

# below NAME LIMIT: the last validation loss in the log is under LIMIT.
below() {
    local loss
    loss=$(grep -o 'val_loss=[0-9.e+-]*' "$work/log" | tail -n 1 | cut -d= -f2)
    awk -v loss="${loss:-nan}" -v limit="$1" 'BEGIN {exit !(loss + 0 > 0 && loss + 0 < limit)}'
}

# example NAME LIMIT SETTINGS...
example() {
    local name=$1 limit=$2
    shift 2
    "$bin/trainyard" train "examples/$name/train.yaml" "--data-dir=$work/$name" "--output-dir=$work/$name.run" "$@" \
        >"$work/log" 2>&1 </dev/null
    check "$name ends well" test $? = 0
    check "$name: validation loss under $limit" below "$limit"
    check "$name leaves model.c" test -s "$work/$name.run/model/model.c"
    check "$name leaves its weights" test -s "$work/$name.run/model/model.safetensors"
}

text=/usr/share/common-licenses/GPL-3
if [ -r "$text" ]; then
    mkdir -p "$work/gpt-c/train" "$work/gpt-c/test"
    head -c 15000 "$text" >"$work/gpt-c/train/1.txt"
    tail -c +18001 "$text" >"$work/gpt-c/train/2.txt"
    tail -c +15001 "$text" | head -c 3000 >"$work/gpt-c/test/text.txt"
    example gpt-c 3.2 --max_steps=60
else
    echo "skip: $text is not there"
    skipped=$((skipped + 4))
fi
clicks=$shared/data/criteo-ctr/raw.train.tiny.csv
if [ -r "$clicks" ]; then
    examples/deepfm-c/data "$clicks" "$work/deepfm-c"
    example deepfm-c 0.52
else
    echo "skip: $clicks is not there"
    skipped=$((skipped + 4))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
