#!/bin/bash
# lora.sh - low-rank adapters: the losses and weights of lora_judge.py, which computes them by itself; resumed, on ranks,
# on a GPU that tests/fakes stands in for; what they refuse; and what a model file has of them.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/gpu.bash
. tests/entrypoint/trained.bash
JUDGE=$PWD/tests/entrypoint/lora_judge.py
folder lora || exit 1
gpu() { LD_LIBRARY_PATH=$FAKES/gpu:$FAKES TY_FAKE_GPUS=${GPUS:-$CARD} "$@"; }
cat >model.c <<'C'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_var x = ty_relu(net, ty_linear(net, "hidden", ty_input(net, "x", "f32[batch,4]"), 6));
    ty_var y = ty_matmul(net, x, ty_parameter(net, "mix", ty_dims(6, 6), ty_normal(0, 0.5)));
    ty_output(net, "y", ty_linear(net, "out", y, 1));
}
C
awk 'BEGIN { srand(3); for (i = 0; i < 12; i++) { a = rand(); b = rand() - 0.5; c = rand(); d = rand() - 0.5
    printf "%.4f,%.4f,%.4f,%.4f,%.4f\n", a, b, c, d, a * b + c - 2 * d } }' >data.csv
cat >train.yaml <<'Y'
model: model.c
loss: {mse: {target: t}}
optimizer: {sgd: {lr: 0.1}}
batch_size: 12
epochs: 15
seed: 9
log_every: 1
data:
  train: {path: data.csv, format: csv, shuffle: false, fields: {x: {columns: 0-3}, t: {columns: 4, shape: [1]}}}
checkpoint: {every: 5 steps, keep: 3}
Y
LORA="--lora.rank=2 --lora.alpha=3 --lora.weights=[hidden.weight,mix] --lora.train=[out.weight]"

# ---- the numbers ----
train --device=cpu --optimizer.sgd.lr=0 --max_steps=1
same "the weights that it begins with" 0 $rc
cp run/model/model.safetensors first.safetensors
train --device=cpu $LORA
same "with adapters" 0 $rc
# 2 (6 + 4) + 2 (6 + 6) + 6 numbers, of 30 + 36 + 7.
has "so many numbers are trained" "$W/err" "50 numbers trained"
numbers >cpu
python3 "$JUDGE" first.safetensors data.csv 15 0.1 3 9 >judged
grep '^loss' judged | cut -d' ' -f2 >expected
sed 's/.* loss=\([-0-9.e+]*\) .*/\1/' cpu >found
same "so many losses" 15 "$(wc -l <found)"
close() { paste "$1" "$2" | awk -v t="$3" '{ d = $1 - $2; if (d < 0) d = -d; if (d > t) bad = 1; n++ } END { exit bad || !n }'; }
ok "the losses of the judge" close expected found 2e-6
ok "which fall" awk 'NR == 1 { a = $1 } END { exit !($1 < 0.8 * a) }' found
weight() { # FILE NAME: its numbers, a line each
    python3 - "$1" "$2" <<'P'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", data[:8])[0]
w = json.loads(data[8:8 + n])[sys.argv[2]]["data_offsets"]
print(*(f"{v:.9g}" for v in struct.unpack(f"<{(w[1] - w[0]) // 4}f", data[8 + n + w[0]:8 + n + w[1]])), sep="\n")
P
}
for name in hidden.weight mix out.weight; do
    grep "^$name " judged | tr ' ' '\n' | tail -n +2 >expected
    weight run/model/model.safetensors $name >found
    ok "$name has what was learnt" close expected found 2e-6
    weight first.safetensors $name >before
    ok "which is something" test "$(cmp -s found before && echo same)" = ""
done
lacks "factors are no weights of the model" run/model/model.safetensors lora_
weight run/model/model.safetensors hidden.bias >found
weight first.safetensors hidden.bias >before
ok "weights that stay are there" cmp -s before found
WEIGHTS=$(weights)

# ---- other ways to run ----
train --device=cpu $LORA --max_steps=7
again --device=cpu $LORA
same "resumed, the same bits" "$WEIGHTS" "$(weights)"
train --device=cpu $LORA --debug=interpret
numbers >other
alike "interpreted" cpu other
train --device=cpu $LORA --accumulate=3 --batch_size=4
same "of several batches a step" 0 $rc
train --device=cpu $LORA --processes_per_host=2 --threads=1
numbers >other
alike "two ranks" cpu other
train --device=cpu $LORA --processes_per_host=2 --threads=1 --optimizer=adam --distributed.optimizer_sharding=true
same "moments in parts" 0 $rc
train --device=cpu $LORA --precision=bfloat16
same "in bfloat16" 0 $rc
ok "it learns" awk '/^step=1 / { split($3, a, "=") } /^step=15 / { split($3, b, "=") } END { exit !(b[2] < 0.8 * a[2]) }' "$W/out"
train --device=cpu $LORA --ema.decay=0.5
same "with averages" 0 $rc
rm -rf run
gpu again $LORA
same "on a GPU" 0 $rc
numbers >other
alike "the numbers of the CPU" cpu other
"$BIN/trainyard" plan train.yaml $LORA >"$W/out" 2>"$W/err" </dev/null
same "planned" 0 $?

# ---- a model file ----
mkdir -p onnx && cp "$MODEL" onnx/model.onnx
digits 64 1 >onnx/train.csv
cat >onnx/train.yaml <<'Y'
model: model.onnx
loss: {softmax_cross_entropy: {logits: logits, labels: label}}
batch_size: 16
data:
  train: {path: train.csv, format: csv, fields: {image: {columns: 0-63, shape: [1, 8, 8], scale: 0.0625}, label: {columns: 64}}}
Y
(cd onnx && "$BIN/trainyard" train train.yaml --device=cpu --lora.rank=4 '--lora.weights=["*weight"]') >"$W/out" 2>"$W/err" </dev/null
same "an ONNX file" 0 $?
has "what stays is read where it lies" "$W/err" "mapped files "
"$BIN/trainyard" model diff "$MODEL" onnx/run/model/model.onnx >diff 2>&1
python3 - "$MODEL" onnx/run/model/model.onnx >changed <<'P'
import sys
a, b = (open(p, "rb").read() for p in sys.argv[1:])
print("same size" if len(a) == len(b) else f"{len(a)} {len(b)} bytes")
P
has "has the size that it had" changed "same size"
has "other numbers in its matrices" diff "weight"
lacks "and the same in all else" diff "bias"

# ---- what cannot be ----
refused "no such weight" 'lora.weights: the model has no weight "hiden.weight"' --lora.rank=2 --lora.weights=[hiden.weight]
refused "no matrix" "lora.weights: none of them is a matrix that a product reads" --lora.rank=2 '--lora.weights=["*.bias"]'
refused "no weights" "weights" --lora.rank=2
cat >tied.c <<'C'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_var table = ty_parameter(net, "table", ty_dims(6, 4), ty_normal(0, 0.5));
    ty_var x = ty_matmul(net, ty_input(net, "x", "f32[batch,4]"), ty_transpose(net, table, ty_dims(1, 0)));
    ty_var y = ty_add(net, x, ty_reduce_sum(net, table, ty_dims(1), 0));
    ty_output(net, "y", ty_linear(net, "out", y, 1));
}
C
refused "a table that is read in two ways" '"table" is read by more than products' --model=tied.c --lora.rank=2 --lora.weights=[table]
finish_tests
