#!/bin/bash
# Recurrent layers, attention and operations of keras.ops arrive where Keras arrived: losses, gradients, evaluation and
# final weights of three steps (tests/golden/sequences/make.py), in the interpreter and compiled. What cannot be done is
# refused by name.
set -u
cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=0 skipped=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tar -xf tests/golden/sequences/cases.tar.xz -C "$scratch" || exit 1

# judge OPTION...
judge() {
    tests/train-cases "$@" "$scratch/cases" >"$scratch/log" 2>&1
    grep -v '^ok ' "$scratch/log" | head -n 60
    read -r p _ f _ s _ < <(tail -n 1 "$scratch/log" | tr -d ',')
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
}
judge --interpreter
judge

# The judge can say no.
sed -i 's/lr: 0\.05/lr: 0.0502/' "$scratch/cases/masked/recipe.yaml"
if tests/train-cases "$scratch/cases" masked >"$scratch/log" 2>&1; then
    echo "FAILED: a rate changed by four thousandths was not noticed"
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi

# refused NAME SED WORDS: the configuration of recurrent that SED changes must be refused with these words.
config=$scratch/config
mkdir "$config" && (cd "$config" && python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall()' \
    "$scratch/cases/recurrent/model.keras") || exit 1
refused() {
    sed "$2" "$config/config.json" >"$scratch/one.json"
    if "$TY_BIN/trainyard" check "$scratch/one.json" >"$scratch/log" 2>&1 || ! grep -qF "$3" "$scratch/log"; then
        echo "FAILED: $1: expected a refusal with \"$3\", found"
        head -n 12 "$scratch/log"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}
refused stateful 's/"stateful": false/"stateful": true/' 'states that outlive a batch are not kept'
refused cell 's/"LSTMCell"/"PeepholeCell"/' 'PeepholeCell'
refused merge 's/"merge_mode": "mul"/"merge_mode": "max"/' 'merge_mode'
refused both_forward 's/"go_backwards": true/"go_backwards": false/g' 'go in different directions'
refused activation 's/"activation": "elu"/"activation": "elv"/' 'elv'
refused operation 's/"class_name": "Tanh"/"class_name": "WhileLoop"/' 'WhileLoop'
refused axis 's/"class_name": "Stack", "config": {"name": "stack", "axis": -1/&7/' 'axis'

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
