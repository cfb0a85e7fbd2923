#!/bin/sh
# Kernels as they are printed for a GPU, run on the host by fibers (compiler/target/cuda/head.c), threads of a block in
# three orders: random graphs against the interpreter, and trainings of all kinds.
#     grid.sh --all      all trainings, each in all three orders (`make grid`)
cd "$(dirname "$0")/.." || exit 1
tools=${TY_BUILD:-build/release}/tools
cases=${TY_SHARED:-../shared}/data/train-cases
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0

add() { # counts of the last line
    set -- $(tail -n 1 "$log")
    passed=$((passed + ${1:-0})) failed=$((failed + ${3:-1})) skipped=$((skipped + ${5:-0}))
}
for order in 0 1 2; do
    TY_GRID_ORDER=$order "$tools/graphs" --grid --first $((1 + 20 * order)) --count 20 >"$log" 2>&1
    grep -v ' passed, ' "$log"
    add
done
orders=1 names='cnn_batchnorm gpt_tied gru_char deepfm vae_two_losses'
[ "${1:-}" = --all ] && orders='0 1 2' names=
if [ -d "$cases" ]; then
    for order in $orders; do
        TY_GRID_ORDER=$order "$tools/train_cases" --grid "$cases" $names >"$log" 2>&1
        grep -v '^ok ' "$log" | grep -v ' passed, '
        add
    done
else
    echo "skip: trainings on the grid: $cases is not there"
    skipped=$((skipped + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
