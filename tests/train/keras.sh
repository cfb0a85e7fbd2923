#!/bin/bash
# Every Keras and TensorFlow training case in ../shared arrives at the recorded numbers, compiled and in the interpreter; and
# the judge can say no: with one number of the file or of what is expected changed, a case must fail.
set -u
cd "$(dirname "$0")/../.." || exit 1
cases=${TY_SHARED:-../shared}/data/keras-cases
tool=tests/train-cases
passed=0 failed=0 skipped=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# judge OPTION... FOLDER
judge() {
    "$tool" "$@" >"$scratch/log" 2>&1
    grep -v '^ok ' "$scratch/log" | head -n 100
    read -r p _ f _ s _ < <(tail -n 1 "$scratch/log" | tr -d ',')
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
}
# Cases of our own (tests/keras/make_cases.py): constraints, penalties, averages that overwrite, masks, names of outputs.
mkdir -p "$scratch/own"
tar -xzf tests/golden/keras/cases.tar.gz -C "$scratch/own"
judge --interpreter "$scratch/own"
judge "$scratch/own"

if [ ! -d "$cases" ]; then
    echo "skip: no training cases in $cases"
    echo "$passed passed, $failed failed, $((skipped + 1)) skipped"
    [ "$failed" -eq 0 ]
    exit
fi
judge --interpreter "$cases"
judge "$cases"

# refused NAME CASE FILE SED: the copy of a case that SED changes in FILE must fail.
refused() {
    rm -rf "$scratch/cases"
    mkdir -p "$scratch/cases"
    cp -r "$cases/$2" "$scratch/cases/changed"
    chmod -R u+w "$scratch/cases"
    cp "$scratch/cases/changed/$3" "$scratch/before"
    sed -i -E "$4" "$scratch/cases/changed/$3"
    if cmp -s "$scratch/before" "$scratch/cases/changed/$3"; then
        echo "FAIL $1: nothing was changed"
        failed=$((failed + 1))
    elif "$tool" --interpreter "$scratch/cases" >"$scratch/log" 2>&1; then
        echo "FAIL $1: a wrong case passed"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}
refused 'rate' accumulate_ema expected.json 's/0\.18181819/0.18182819/'
refused 'evaluation' gru_masked expected.json '/"eval_after"/,/\}/s/("loss": [0-9]\.[0-9]{3})[0-9]/\19999/'
refused 'weight' mlp_activations expected.json 's/("parameters": 64)26/\127/'
refused 'class weights' penguins_class_weight recipe.yaml 's/1: 2\.0/1: 2.001/'
refused 'sample weights' abalone_branches recipe.yaml '/^sample_weight/d'
refused 'batches' siamese_two_outputs recipe.yaml 's/left: x0\.npy, right: x1/left: x1.npy, right: x0/'

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
