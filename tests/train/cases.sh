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

# As a step of three replicas that all have the case's batch, the numbers are the same.
for backend in --interpreter '' '--replicas 3'; do
    tests/train-cases $backend "$cases" >"$scratch/log" 2>&1
    grep -v '^ok ' "$scratch/log" | head -n 100
    read -r p _ f _ s _ < <(tail -n 1 "$scratch/log" | tr -d ',')
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
done

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
