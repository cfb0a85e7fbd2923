#!/bin/bash
# pictures.sh - hosts with pictures of their own learn one mean of all of them, from folders, from records and of streams.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/gpu.bash
. tests/dist/trees.bash
need_mpi "several hosts"

# pictures FOLDER FROM TO: grey digits with a class for each folder; brighter ones come later.
pictures() {
    local i
    for ((i = $2; i < $3; i++)); do
        mkdir -p "$1/$((i % 10))"
        { printf 'P5 8 8 255\n' && printf "\\x$(printf %x $((33 + i)))%.0s" {1..64}; } >"$1/$((i % 10))/$(printf %03d "$i").pgm"
    done
}
kept() { grep -oE '"(mean|std)": [^]]*' "$1/model/preprocessing.json"; }
field='image: {image: {size: [8, 8], mean: auto, std: auto}}, label: {classes: auto}'

tree pictures 2
pictures "$W/all" 0 80
pictures "$W/part-1" 0 30
pictures "$W/part-2" 30 80
printf 'model: model.c\nloss: mse\ndata: {train: {path: all, fields: {%s}}}\n' "$field" >"$W/all.yaml"
"$BIN/trainyard" data stats "$W/all" --recipe="$W/all.yaml" --preprocessing="$W/all.json" >"$W/out" 2>&1
same "one host with all of them" 0 $?
wanted=$(grep -oE '"(mean|std)": [^]]*' "$W/all.json")
ok "has a mean and a deviation" test "$(wc -l <<<"$wanted")" = 2
for n in 1 2; do
    "$BIN/trainyard" data pack "$W/part-$n" --out="$W/packed-$n" >"$W/out" 2>&1
    echo '{"train": {"S3DistributionType": "ShardedByS3Key"}}' >"$W/algo-$n/input/config/inputdataconfig.json"
    rm -r "$W/algo-$n/input/data/test"
    sed -i '/^  validation:/d; /^metrics:/d' "$W/algo-$n/code/train.yaml"
done
for how in "part random" "packed random" "packed stream"; do
    read -r data access <<<"$how"
    for n in 1 2; do
        rm -rf "$W/algo-$n/input/data/train" "$W/algo-$n/checkpoints" "$W/algo-$n/model" "$W/algo-$n/output"
        cp -r "$W/$data-$n" "$W/algo-$n/input/data/train"
        sed -i "s/^  train: .*/  train: {channel: train, access: $access, fields: {$field}}/" "$W/algo-$n/code/train.yaml"
    done
    hosts_run --processes_per_host=2 --max_steps=2
    same "$how: exit statuses" "0 0" "$statuses"
    same "$how: the mean of all" "$wanted" "$(kept "$W/algo-1")"
done
finish_tests
