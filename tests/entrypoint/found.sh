#!/bin/bash
# found.sh - a model file in the place of a recipe, and data whose fields nobody has declared.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/found
mkdir -p "$W"
examples/digits/data "$W/raw" || exit 1
cp examples/digits/model.onnx "$W/digits.onnx"
model=$(realpath "$W/digits.onnx")
train() { # ARGUMENT...: from within $W
    rm -rf "$W/run"
    (cd "$W" && timeout -k 5 600 "$BIN/trainyard" train "$@" --fresh --max_steps=4 --log_every=1 --seed=3) >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
losses() { grep -oE "\"split\":\"train\",\"loss\":[0-9.e-]+" "$W/run/output/data/metrics.jsonl"; }
# The same data in every form: what fields are found is then told by the losses.
{
    seq -f 'pixel%g' 0 63 | paste -sd,
    cut -d, -f 1-64 "$W/raw/train.csv"
} | paste -d, - <(echo label; cut -d, -f 65 "$W/raw/train.csv") >"$W/named.csv"
cut -d, -f 65 "$W/raw/train.csv" | paste -d, - <(cut -d, -f 1-64 "$W/raw/train.csv") >"$W/first.csv"
mkdir "$W/arrays"
python=
for path in $(type -ap python3); do
    [ -z "$python" ] && "$path" -c 'import numpy' 2>/dev/null && python=$path
done
"$python" - "$W" <<'E2' || exit 1
import sys
import numpy as np
w = sys.argv[1]
rows = np.loadtxt(f"{w}/raw/train.csv", delimiter=",", dtype=np.float32)
x, y = rows[:, :64].reshape(-1, 1, 8, 8), rows[:, 64].astype(np.int64)
np.savez(f"{w}/both.npz", x=x, y=y)
np.save(f"{w}/arrays/pixels.npy", x)
np.save(f"{w}/arrays/label.npy", y)
np.savez(f"{w}/three.npz", a=x, b=x, y=y)
E2
cat >"$W/declared.yaml" <<E2
model: digits.onnx
loss: softmax_cross_entropy
data: {train: {path: raw/train.csv, fields: {image: {columns: 0-63}, label: {columns: 64}}}}
E2

case_name=same
train declared.yaml
same "declared fields" 0 $rc
wanted=$(losses)
ok "four losses to compare with" test "$(wc -l <<<"$wanted")" = 4
loss=--loss=softmax_cross_entropy
check() { # NAME ARGUMENT...: trains and arrives at the same losses
    train digits.onnx $loss "${@:2}"
    same "$1: exit" 0 $rc
    same "$1: losses" "$wanted" "$(losses)"
}
check "the last column" --data=raw/train.csv --target=-1
check "a column by its usual name" --data=named.csv
check "a column by the name that is given" --data=named.csv --target=label
check "the first column" --data=first.csv
check "arrays of an archive" --data=both.npz
check "arrays, a file each" --data=arrays
check "the target by name" --data=arrays --target=label
(cd "$W" && timeout 600 "$BIN/trainyard" check digits.onnx --recipe declared.yaml) >"$W/out" 2>&1
has "check knows declared fields" "$W/out" "raw/train.csv"
sed -i 's/, fields.*/}}/; s/train.csv/train.csv, target: 64/' "$W/declared.yaml"
(cd "$W" && timeout 600 "$BIN/trainyard" check digits.onnx --recipe declared.yaml) >"$W/out" 2>&1
has "and finds others" "$W/out" "raw/train.csv"

case_name=refused
train digits.onnx --data=raw/train.csv --target=-1
has "no loss" "$W/err" 'key "loss" is missing'
train digits.onnx $loss --data=raw/train.csv --target=label
has "a name and no header" "$W/err" "no header"
train digits.onnx $loss --data=raw/train.csv --target=0-3
has "several columns" "$W/err" "expected one column, found 4"
train digits.onnx $loss --data=three.npz
has "two arrays for one input" "$W/err" "nothing feeds the model input"
train digits.onnx $loss --data=nowhere.csv
has "no file" "$W/err" "nowhere.csv"
cat >"$W/two.c" <<'E2'
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_var a = ty_input(net, "a", "f32[batch,1]"), b = ty_input(net, "b", "f32[batch,1]");
    ty_output(net, "sum", ty_linear(net, "out", ty_concat(net, 1, a, b), 1));
}
E2
train two.c --loss=mse --data=raw/train.csv
has "a table for two inputs" "$W/err" "cannot be told"
cat >"$W/layers.json" <<'E2'
{"class_name": "Sequential", "config": {"name": "s", "layers": [
  {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [null, 8, 8, 1]}},
  {"class_name": "AugMix", "config": {"name": "mixed"}},
  {"class_name": "Flatten", "config": {"name": "flat"}},
  {"class_name": "Dense", "config": {"name": "out", "units": 10}}]}}
E2
printf 'model: layers.json\nloss: softmax_cross_entropy\ndata: {train: {path: raw/train.csv, target: "64"}}\n' >"$W/layers.yaml"
train layers.yaml
has "a layer that is not known" "$W/err" "unknown layer class AugMix"
printf 'b,extra,a,outcome\n1,x,2,3\n4,y,5,9\n' >"$W/two.csv"
case_name=columns
train two.c --loss=mse --data=two.csv --batch_size=2
same "columns of the inputs' names, text between them: exit" 0 $rc

case_name=heads
cat >"$W/heads.c" <<'E2'
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_var x = ty_input(net, "x", "f32[batch,1]");
    ty_output(net, "far", ty_linear(net, "one", x, 1));
    ty_output(net, "kind", ty_linear(net, "two", x, 3));
}
E2
cat >"$W/heads.yaml" <<'Y'
model: heads.c
loss: [{mse: {output: far}}, {softmax_cross_entropy: {logits: kind}}]
metrics: [{accuracy: {output: kind}}, {mae: {output: far}}]
batch_size: 2
data:
  train: {channel: ., format: csv, fields: {x: {columns: 0}, far: {columns: 1}, kind: {columns: 2}}}
  validation: {channel: ., format: csv, fields: same}
Y
mkdir -p "$W/heads" && printf '1,2,0\n2,4,1\n3,6,2\n4,8,0\n' >"$W/heads/rows.csv"
train heads.yaml --data-dir=heads
same "a metric reads the target of the loss on its output: exit" 0 $rc
finish_tests
