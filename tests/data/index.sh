#!/bin/bash
# index.sh - what opening data finds, kept in the cache (key keep_index, TRAINYARD_CACHE_DIR, `trainyard cache`): the second
# training is the first one's, to the last bit and the last warning, and whatever differs is looked at again.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/index
mkdir -p "$W/data/train" "$W/data/validation"
cp examples/digits/model.onnx "$W/model.onnx"
rows() { # SEED N
    awk -v seed="$1" -v n="$2" 'BEGIN { srand(seed); for (r = 0; r < n; r++) { printf "{\"image\": [%d", int(17 * rand());
        for (c = 1; c < 64; c++) printf ", %d", int(17 * rand()); printf "], \"label\": %d}\n", r % 10 } }'
}
rows 1 200 >"$W/data/train/part.jsonl"
rows 2 40 >"$W/data/validation/part.jsonl"
sed -i '7s/label.*/label": "seven"}/' "$W/data/train/part.jsonl"
cat >"$W/train.yaml" <<'YAML'
model: model.onnx
inputs: {image: image}
loss: {softmax_cross_entropy: {logits: logits, labels: label}}
metrics: [accuracy]
batch_size: 16
epochs: 2
threads: 1
data:
  train:
    channel: train
    on_bad: skip
    fields:
      image: {shape: [1, 8, 8], normalize: standard}
      label: {type: int64}
  validation: {channel: validation}
YAML
export HOME=$W/home TRAINYARD_CACHE_DIR=$W/cache TRAINYARD_INDEX_MS=0
ty() {
    timeout -k 5 600 "$BIN/trainyard" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
train() {
    rm -rf "$W/run"
    ty train "$W/train.yaml" --data-dir="$W/data" --output-dir="$W/run" --fresh --progress=none "$@"
    same "exit" 0 $rc
}
# What a training says and leaves, without times and what the cache is for.
said() {
    { sed -E 's/^[0-9T:.-]+Z //' "$W/err" | grep -E ' data: ' | grep -v 'index of the data'
      sed -E 's/ [a-z_]*(_ms|_s|_mb|_pct)=[^ ]*//g; s/ eta_s=[^ ]*//g' "$W/out" | grep loss=; } >"$1.said"
    cat "$W/run/model/model.safetensors" "$W/run/model/preprocessing.json" | sha256sum >>"$1.said"
}
from_cache() { grep -c "index of the data from the cache (made 20" "$W/err"; }
kept() { grep -c "index of the data kept in the cache" "$W/err"; }
indexes() { ls "$W/cache/data" 2>/dev/null | grep -c '\.index$'; }
aged() { sleep 0.05; } # a file that was written just now is not trusted to show it if it is written again

case_name=off
TRAINYARD_CACHE_DIR=none train
said "$W/walked"
has "a bad record is told" "$W/err" "bad record left out (number 1): $W/data/train/part.jsonl:7"
train --data.train.keep_index=false
same "keep_index: false: nothing is kept" 0 "$(indexes)"
same "nor said" 0 "$(kept)"
TRAINYARD_INDEX_MS=60000 train
same "what was quick is not kept" 0 "$(indexes)"

case_name=second
aged
train
same "two are kept" 2 "$(kept)"
same "both are there" 2 "$(indexes)"
said "$W/first"
train
same "both are used" 2 "$(from_cache)"
same "none is written" 0 "$(kept)"
said "$W/second"
ok "the first run is that without a cache" cmp "$W/walked.said" "$W/first.said"
ok "and the second, warnings and all" cmp "$W/walked.said" "$W/second.said"
has "there were warnings" "$W/second.said" "part.jsonl:7"

case_name=commands
ty cache list
has "list: what it is" "$W/out" "index of data  jsonlines, $W/data/train/part.jsonl"
same "list: indexes and kernels" 1 "$(grep -c '^'"$W"'/cache: [3-9] entries' "$W/out")"
ty cache why-miss "$W/train.yaml" --data-dir="$W/data"
has "why-miss: there" "$W/out" "data.train: the cache has the index of these data (made 20"
has "why-miss: both" "$W/out" "data.validation: the cache has"
ty cache why-miss "$W/train.yaml" --data-dir="$W/data" --data.train.on_bad=skip --data.train.max_bad=7
has "why-miss: the recipe" "$W/out" "data.train: no index of these data, but one of others: bad records: then left out, at most 100, now left out, at most 7"
same "why-miss writes nothing" 2 "$(indexes)"

case_name=other_recipe
train --data.train.max_bad=7
same "another declaration, which is that of both: looked at again" 2 "$(kept)"
has "and says which" "$W/err" "made anew: bad records: then left out, at most 100, now left out, at most 7"

case_name=other_files
touch "$W/data/train/part.jsonl"
aged
train
same "touched: looked at again" 1 "$(kept)"
has "and says which" "$W/err" "made anew: $W/data/train/part.jsonl: then "
said "$W/touched"
ok "with the same end" cmp "$W/walked.said" "$W/touched.said"
rows 3 10 >>"$W/data/train/part.jsonl"
aged
train
same "longer, and with other means, which make the validation data other ones" 2 "$(kept)"
has "all of it" "$W/err" "209 samples"
cp "$W/data/train/part.jsonl" "$W/data/train/.other"
sed -i '3s/"label": [0-9]/"label": 9/' "$W/data/train/.other"
touch -r "$W/data/train/part.jsonl" "$W/data/train/.other"
mv "$W/data/train/.other" "$W/data/train/part.jsonl"
aged
train
same "replaced, with the same size and time" 1 "$(kept)"
rows 4 5 >"$W/data/train/second.jsonl"
aged
train
same "another file, and other means" 2 "$(kept)"
has "and says so" "$W/err" "made anew: files: then 1, now 2"

case_name=damaged
train
same "before" 2 "$(from_cache)"
for file in "$W"/cache/data/*.index; do
    printf X | dd of="$file" bs=1 seek=3000 conv=notrunc 2>/dev/null
done
train
has "told" "$W/err" "the kept index of the data is damaged and made anew"
same "made anew" 2 "$(kept)"
train
same "and used" 2 "$(from_cache)"
chmod 500 "$W/cache/data"
touch "$W/data/train/part.jsonl"
aged
if [ "$(id -u)" != 0 ]; then
    train
    has "a folder that cannot be written costs a line" "$W/err" "the index of the data is not kept"
fi
chmod 700 "$W/cache/data"

case_name=at_once
ty cache clear
has "clear" "$W/out" "removed"
same "cleared" 0 "$(indexes)"
two() { "$BIN/trainyard" train "$W/train.yaml" --data-dir="$W/data" --output-dir="$W/run-$1" --fresh --progress=none >"$W/out-$1" 2>"$W/err-$1"; }
two 1 & first=$!
two 2 & second=$!
wait $first; same "one" 0 $?
wait $second; same "the other" 0 $?
ok "the same weights" cmp "$W/run-1/model/model.safetensors" "$W/run-2/model/model.safetensors"
train
same "and what they left is used" 2 "$(from_cache)"
ok "with the same weights" cmp "$W/run-1/model/model.safetensors" "$W/run/model/model.safetensors"

# Who goes on opens the same data with the index, and is where it was.
case_name=resumed
train --max_steps=24
cp "$W/run/model/model.safetensors" "$W/whole"
train --max_steps=10 --checkpoint.every=10
ty train "$W/train.yaml" --data-dir="$W/data" --output-dir="$W/run" --progress=none --max_steps=24
has "goes on" "$W/err" "step 10"
same "with the index" 2 "$(from_cache)"
ok "to the same weights" cmp "$W/whole" "$W/run/model/model.safetensors"
finish_tests
