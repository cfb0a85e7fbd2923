#!/bin/bash
# memory.sh - data_memory: what a training on a stream really takes beside one that keeps nothing, and what is said of it.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/pipe.bash
export TRAINYARD_CACHE_DIR=$SCRATCH/cache

# 8,000 records of SageMaker's of 16 KB each, of which the model reads the least part: 128 MB.
heavy() {
    perceptron "$1"
    rm -r "$ML/input/data/test" "$ML"/input/data/train/*
    python3 - "$ML/input/data/train/a.recordio" <<'P'
import random, struct, sys
def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])
def part(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data
def entry(number, name, kind, value):
    return part(number, part(1, name) + part(2, part(kind, value)))
r = random.Random(3)
records = []
for i in range(400):
    image = struct.pack("<64f", *(r.random() for _ in range(64)))
    body = (entry(1, b"image", 2, part(1, image)) + entry(2, b"values", 7, part(1, varint(i % 10))) +
            entry(1, b"note", 9, part(1, bytes(16000))))
    records.append(struct.pack("<II", 0xCED7230A, len(body)) + body + bytes(-len(body) % 4))
with open(sys.argv[1], "wb") as f:
    for _ in range(20):
        f.write(b"".join(records))
P
    modes '{"train": {}}'
    sed -i -e '/validation:/d' -e 's/^  train: .*/  train: {channel: train, format: recordio, access: stream, fields: {image: {shape: [1, 8, 8]}, label: {type: int64}}}/' \
        "$ML/code/train.yaml"
}
peak() { # KiB
    grep -o 'memory      peak [^,]*' "$W/err" | awk '{split("B KiB MiB GiB", u, " "); for (i in u) if (u[i] == $4) printf "%d", $3 * 1024 ^ (i - 2)}'
}

heavy bounded
run --max_steps=400 --data.train.shuffle=false
same "as they come" 0 $rc
plain=$(peak)
rm -rf "$ML"/model/* "$ML"/checkpoints/* "$ML"/output/*
run --max_steps=400 --data.train.shuffle=8000 --data_memory="32 MiB"
same "shuffled, within 32 MiB" 0 $rc
bounded=$(peak)
has "the log says what takes how much" "$W/err" "up to 16.0 MiB in the shuffle buffer, of 32.0 MiB (data_memory)"
if [ "${TY_VARIANT:-release}" = release ]; then
    ok "it took $bounded KiB, without a buffer $plain KiB: no more than the buffer's 16 MiB, 5 % and what chance adds" \
        test $((bounded - plain)) -lt $((16 * 1024 * 21 / 20 + 14000))
    ok "and it had a buffer" test $((bounded - plain)) -gt 8000
    rm -rf "$ML"/model/* "$ML"/checkpoints/* "$ML"/output/*
run --max_steps=400 --data.train.shuffle=8000
    same "without a limit" 0 $rc
    ok "a buffer that is not bounded shows in the same way: $(($(peak) - plain)) KiB" test $(($(peak) - plain)) -gt 60000
else
    skip "what it really takes" "sanitizers take memory of their own"
fi
rm -rf "$ML"/model/* "$ML"/checkpoints/* "$ML"/output/*
run --max_steps=4 --data.train.shuffle=8000 --data_memory="8 MiB"
ok "too little for what is read: status $rc" test $rc -ne 0
has "and it says what is" "$W/err" "are for what is read and for the shuffle buffer"

case_name=plan
timeout -k 5 60 "$BIN/trainyard" data plan "$ML/code/train.yaml" --data-dir="$ML/input/data" >"$W/out" 2>"$W/err"
has "the plan names the parts" "$W/out" "of blocks that are read, up to 1.0 GiB in the shuffle buffer, data_memory is not said"

# LibSVM's rows are as wide as the largest index: without any limit said, batches that cannot be are refused, not tried.
case_name=wide
mkdir -p "$SCRATCH/wide"
cat >"$SCRATCH/wide/model.c" <<'C'
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_var x = ty_input(net, "x", "f32[batch,1000000]");
    ty_output(net, "y", ty_linear(net, "out", x, 1));
}
C
printf '1 1:1 2:1\n0 1000000:1\n' >"$SCRATCH/wide/rows.libsvm"
printf 'model: model.c\nloss: mse\nbatch_size: 4194304\ndata: {train: {path: rows.libsvm, remainder: pad, fields: {%s}}}\n' \
    'x: {member: features}, y: {member: label}' >"$SCRATCH/wide/train.yaml"
(cd "$SCRATCH/wide" && timeout -k 5 120 "$BIN/trainyard" train train.yaml) >"$W/out" 2>"$W/err" </dev/null
ok "wide rows in large batches: status $?" test $? -ne 0
has "how much it would be" "$W/err" "3 batches of 15.3 TiB each, 4194304 rows of 3.8 MiB, are more than the memory of this run"
has "what to do" "$W/err" "fields ids and values, each with max_length: N"

finish_tests
