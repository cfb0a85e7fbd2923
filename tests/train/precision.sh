#!/bin/bash
# The training cases in mixed precision: the curve of losses within 1 % of what PyTorch recorded in float32, a single loss
# within 3 %. Two cases are left out, which no rounding to 16 bits can follow: in conv3d_motion single batches jump by half
# of the loss, and in words_scatter_topk the rounding decides what is among the largest.
set -u
cd "$(dirname "$0")/../.." || exit 1
cases=${TY_SHARED:-../shared}/data/train-cases
if [ ! -d "$cases" ]; then
    echo "skip: no training cases in $cases"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0
names=$(cd "$cases" && for f in */recipe.yaml; do echo "${f%/*}"; done | grep -vx -e conv3d_motion -e words_scatter_topk)
for precision in bfloat16 float16; do
    # shellcheck disable=SC2086
    tests/train-cases --precision $precision 0.01 "$cases" $names >"$log" 2>&1
    grep -v '^ok ' "$log" | head -n 60
    read -r p _ f _ < <(tail -n 1 "$log" | tr -d ',')
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
done
# The judge can say no: 16 bits are not within a millionth.
if tests/train-cases --precision bfloat16 0.000001 "$cases" linear_regression >"$log" 2>&1; then
    echo "FAIL: rounding to 16 bits did not show"
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
