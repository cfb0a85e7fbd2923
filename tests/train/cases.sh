#!/bin/bash
# Every training case in ../shared arrives at the recorded numbers, compiled, in the interpreter, and shared by replicas; and the judge can say
# no: with a rate changed by a thousandth, or one weight moved, a case must fail.
set -u
cd "$(dirname "$0")/../.." || exit 1
cases=${TY_SHARED:-../shared}/data/train-cases
passed=0 failed=0 skipped=0
if [ ! -d "$cases" ]; then
    echo "skip: no training cases in $cases"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# One case with a number within rounding of a ReLU's border: with a rate larger by a millionth a single program leaves the
# recorded way too, and so do three replicas, whose sums are rounded otherwise. With one smaller by as much all stay on it.
border=cnn_group_instance_norm
mkdir -p "$scratch/shared_out"
for folder in "$cases"/*/; do ln -s "$(realpath "$folder")" "$scratch/shared_out/"; done
rm "$scratch/shared_out/$border"
cp -r "$cases/$border" "$scratch/shared_out/"
chmod -R u+w "$scratch/shared_out/$border"
sed -i 's/lr: 0\.01,/lr: 0.00999999,/' "$scratch/shared_out/$border/recipe.yaml"

# judge FOLDER [OPTION...]
judge() {
    tests/train-cases "${@:2}" "$1" >"$scratch/log" 2>&1
    grep -v '^ok ' "$scratch/log" | head -n 100
    read -r p _ f _ s _ < <(tail -n 1 "$scratch/log" | tr -d ',')
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
}
judge "$cases" --interpreter
judge "$cases"
# As a step of three replicas that all have the case's batch, the numbers are the same.
judge "$scratch/shared_out" --replicas 3

# refused NAME FILE SED: the copy of linear_regression that SED changes in FILE must fail.
refused() {
    rm -rf "$scratch/cases"
    mkdir -p "$scratch/cases"
    cp -r "$cases/linear_regression" "$scratch/cases/changed"
    chmod -R u+w "$scratch/cases"
    sed -i -E "$3" "$scratch/cases/changed/$2"
    if tests/train-cases --interpreter "$scratch/cases" >"$scratch/log" 2>&1; then
        echo "FAIL $1: a wrong case passed"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}
refused 'rate' recipe.yaml 's/lr: 0\.05,/lr: 0.05005,/'
refused 'evaluation' expected.json 's/("eval_loss_after": 0\.1168)3/\14/'
refused 'parameters' expected.json 's/"parameters": 11/"parameters": 12/'
refused 'clip' recipe.yaml '$a clip: {type: global_norm, max: 0.1}'

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
