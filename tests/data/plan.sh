#!/bin/bash
# plan.sh - `trainyard data plan`: what a job will do with its data, before there is a job.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/plan
mkdir -p "$W/data/train" "$W/data/test"
plan() {
    timeout -k 5 300 "$BIN/trainyard" data plan "$W/train.yaml" --data-dir="$W/data" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
for i in $(seq 100); do echo "$i,$((i % 3)),0.5"; done >"$W/data/train/a.csv"
cp "$W/data/train/a.csv" "$W/data/test"
printf 'int x;\n' >"$W/model.c"
cat >"$W/train.yaml" <<'Y'
model: model.c
loss: {mse: {}}
batch_size: 16
epochs: 3
data:
  train: {channel: train, fields: {x: {columns: "0,2"}, y: {columns: 1}}}
  validation: {channel: test, fields: {x: {columns: "0,2"}, y: {columns: 1}}}
Y

case_name=files
plan
same "exit" 0 $rc
has "the section" "$W/out" "data.train: File mode, csv, 1 file"
has "access" "$W/out" "by number"
has "batches" "$W/out" "6 batches an epoch: 100 samples"
has "evaluation pads" "$W/out" "7 batches an epoch: 100 samples"
same "stages in their order" "shard cache shuffle batch parse repeat prefetch" \
    "$(grep -oE '^  (shard|cache|shuffle|batch|parse|repeat|prefetch) ' "$W/out" | head -n 7 | xargs)"
same "each with a reason" 16 "$(grep -c 'because: ' "$W/out")"
plan --hosts=2 --processes=2 --json
same "JSON: exit" 0 $rc
same "rows of a rank" 4 "$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["train"]["rows_of_rank"])' "$W/out")"

case_name=refusals
plan --hosts=3
same "a batch that cannot be divided" 1 $rc
has "is told" "$W/out" "problem: batch_size 16 cannot be divided among 3 ranks"
plan --mode=Tape
same "no mode" 2 $rc
plan --hosts=0
same "no hosts" 2 $rc

case_name=pipe
plan --mode=Pipe --processes=2
has "a channel for each process" "$W/out" "each of the 2 processes of a host needs a channel of its own, train, train-1"
has "whose part" "$W/out" "rank 0 takes part 1 of 2"
plan --mode=Pipe
same "exit" 0 $rc
has "a stream" "$W/out" "as a stream"
has "why" "$W/out" "Pipe mode has no other order"
has "a buffer" "$W/out" "a buffer of"
has "a FIFO each" "$W/out" "3 epochs, a FIFO each"

# FastFile fetches what is read: formats of records stream, pictures of MXNet among them.
case_name=fast
rm -r "$W/data/train" "$W/data/test"
mkdir -p "$W/data/train"
python3 - "$W/data/train/a.rec" <<'P'
import struct, sys
with open(sys.argv[1], "wb") as f:
    for i in range(50):
        body = struct.pack("<IfQQ", 0, i % 3, i, 0) + b"P5 4 4 255\n" + bytes(16)
        f.write(struct.pack("<II", 0xCED7230A, len(body)) + body + bytes(-len(body) % 4))
P
sed -i '/validation/d; s/fields: .*/fields: {x: {member: image, image: {}}, y: {member: label}}}/' "$W/train.yaml"
plan --mode=FastFile
same "exit" 0 $rc
has "of MXNet's records" "$W/out" "FastFile mode, mxnet"
has "as a stream" "$W/out" "as a stream"
has "why" "$W/out" "FastFile mode fetches what is read"

finish_tests
