#!/bin/bash
# evaluate.sh - `trainyard evaluate`: the loss and metrics that training had of the model that it wrote.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
case_name=evaluate W=$SCRATCH/evaluate
export TRAINYARD_CACHE_DIR=$SCRATCH/cache
mkdir -p "$W/data/train" "$W/data/test" && cd "$W" || exit 1
ty() { # COMMAND ARGUMENT...
    timeout -k 5 600 "$BIN/trainyard" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
digits 160 1 >data/train/part.csv
digits 50 2 >data/test/part.csv
digits 30 3 >other.csv
cp "$MODEL" model.onnx
cat >model.c <<'C'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_var x = ty_flatten(net, ty_input(net, "image", "f32[batch,1,8,8]"), 1);
    ty_output(net, "logits", ty_linear(net, "out", x, 10));
}
C
cat >train.yaml <<'Y'
model: model.onnx
inputs: {image: image}
loss: {softmax_cross_entropy: {logits: logits, labels: label}}
optimizer: {adamw: {lr: 3e-3}}
batch_size: 16
epochs: 2
device: cpu
data:
  train: {channel: train, fields: {image: {columns: 0-63, shape: [1, 8, 8], scale: 0.0625}, label: {columns: 64}}}
  validation: {channel: test, fields: same}
metrics: [accuracy, f1, {top_k: {k: 3}}]
Y
# value NAME FILE: of the last evaluation of a training, or of the command's JSON.
trained() { grep '^val ' out | tail -1 | grep -o "val_$1=[-0-9.e+]*" | cut -d= -f2; }
measured() { python3 -c "import json, sys; print('%.9g' % json.load(open('out'))['values'][sys.argv[1]])" "$1"; }

for model in onnx c; do
    rm -rf run
    ty train train.yaml --data-dir=data --model=model.$model
    same "trained" 0 $rc
    for what in loss accuracy f1 top_3; do eval "was_$what=$(trained $what)"; done
    ty evaluate train.yaml run/model/model.$model --data-dir=data --json
    same "evaluated" 0 $rc
    for what in loss accuracy f1 top_3; do
        eval "expected=\$was_$what"
        same "the $what of the training (model.$model)" "$expected" "$(measured $what)"
    done
    same "its samples" 50 "$(python3 -c "import json; print(json.load(open('out'))['samples'])")"
done
ty evaluate train.yaml --data-dir=data
same "the recipe's own model" 0 $rc
has "which is named" out "  model       ./model.onnx (onnx"
has "with its accuracy" out "  accuracy    "
ok "it has learnt nothing" test "$(sed -n 's/^  loss *//p' out)" != "$was_loss"
ty evaluate train.yaml run/model/model.c --data-dir=data --data.validation.path=other.csv
has "other data" out "train.yaml: 30 samples of data.validation, in batches of 16"
ok "nothing is written" test ! -e run2 -a ! -e checkpoints
ty evaluate train.yaml none.onnx --data-dir=data
same "no such model" 74 $rc
has "is said" err "none.onnx: No such file or directory"
sed '/validation:/d; /^metrics/d' train.yaml >alone.yaml
ty evaluate alone.yaml --data-dir=data
same "nothing to evaluate on" 78 $rc
has "is said, too" err "has no data.validation to evaluate on"
ty evaluate
same "no recipe" 2 $rc
finish_tests
