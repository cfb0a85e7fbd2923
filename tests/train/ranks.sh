#!/bin/bash
# Every training case in ../shared, its batch divided among two and three CPU programs on threads of one process, arrives at
# the numbers recorded for the whole batch, and all ranks end with the same bits (train_cases asks for both). Batch norm uses
# the statistics of all; a batch that cannot be divided is left out.
set -u
cd "$(dirname "$0")/../.." || exit 1
cases=${TY_SHARED:-../shared}/data/train-cases
tool=${TY_BUILD:-build/release}/tools/train_cases
passed=0 failed=0 skipped=0
if [ ! -d "$cases" ]; then
    echo "skip: no training cases in $cases"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# On this case's way a number stands within rounding of a ReLU's border: with a rate larger by a millionth a single program
# leaves the recorded way too. With one that is smaller by as much all stay on it.
border=cnn_group_instance_norm
mkdir -p "$scratch/border" "$scratch/cache"
cp -r "$cases/$border" "$scratch/border/"
chmod -R u+w "$scratch/border"
sed -i 's/lr: 0\.01,/lr: 0.00999999,/' "$scratch/border/$border/recipe.yaml"

# ranks N [--shard] FOLDER [NAME...]
ranks() {
    "$tool" --ranks "$1" --cache "$scratch/cache" "${@:2}" >"$scratch/log" 2>&1
    grep -vE '^ok |^skip: .* rows for |^[0-9T:.-]+Z I |passed, ' "$scratch/log" | head -n 60
    read -r p _ f _ s _ < <(tail -n 1 "$scratch/log" | tr -d ',')
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
}
ranks 2 "$cases" $(ls "$cases" | grep -vE "^($border|README.*)\$")
ranks 2 "$scratch/border"
# Each with the moments of its part of the weights.
ranks 2 --shard "$cases" mlp_relu linear_regression cnn_batchnorm gpt_tied deepfm lstm_char vae_two_losses
# The batches of most cases are powers of two: those that three ranks can share.
ranks 3 "$cases"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
