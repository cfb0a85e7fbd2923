#!/bin/bash
# replay.sh - where a NaN or an infinity came from: `trainyard replay`, the key `debug`, and the platform's debug switch.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
TOOL=$(realpath "${TY_BUILD:-build/${TY_VARIANT:-release}}/tools/json_value")
DIGITS=$(realpath examples/digits-c)
value() { "$TOOL" "$W/out" "$@"; } # of the JSON on stdout
ty() {
    timeout -k 5 "${LIMIT:-600}" "$BIN/trainyard" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
export TRAINYARD_CACHE_DIR=$SCRATCH/cache

# A training in its own folder: 400 rows in order, 4 a step. Row 150 is row 2 of step 38.
# training NAME LOSS OPTIMIZER T ORDINARY ODD: model.c comes from stdin
training() {
    case_name=$1 W=$SCRATCH/$1
    mkdir -p "$W/data/train"
    cd "$W" || exit 1
    { echo '#include <trainyard/model.h>' && cat; } >model.c
    awk -v ordinary="$5" -v odd="$6" 'BEGIN {for (i = 0; i < 400; i++) print i == 150 ? odd : ordinary}' >data/train/train.csv
    cat >train.yaml <<Y
model: model.c
inputs: {x: x}
loss: $2
optimizer: $3
batch_size: 4
data: {train: {channel: train, format: csv, shuffle: false, fields: {x: {columns: 0-2, shape: [3]}, t: $4}}}
checkpoint: {every: 10 steps, keep: 2}
log_every: 1
Y
}
replay() { ty replay "$@" --data-dir=data; }

# exp(101) is beyond the largest float32.
training overflow '{mse: {target: t}}' '{sgd: {lr: 1e-9}}' '{columns: 3, shape: [1]}' 0.1,0.2,0.3,1 50,50,1,1 <<'C'
void model(ty_net *net)
{
    ty_var x = ty_input(net, "x", "f32[batch,3]");
    x = ty_linear(net, "first", x, 5, .weight = ty_ones(), .no_bias = true);
    ty_output(net, "y", ty_linear(net, "last", ty_exp(net, x), 1, .weight = ty_filled(1e-3)));
}
C
ty train train.yaml --data-dir=data
same "training fails" 65 $rc
has "it says how to go on" "$W/err" '`trainyard replay 38 RECIPE` names the first layer'
before=$(find . -type f | sort | xargs sha256sum | grep -v -e ./out -e ./err)
replay 38 train.yaml
same "a wrong step" 65 $rc
has "which" "$W/out" "step 38 (epoch 0, batch 37, 4 rows)"
has "from the checkpoint before it" "$W/out" "run/checkpoints/step-00000030"
has "what lies between" "$W/out" "7 steps before it"
has "operation, type and index" "$W/out" "forward: exp, f32[4,5] at [2, 0], sample 150 (data/train/train.csv:151)"
has "how many" "$W/out" "20 numbers, 5 inf"
has "its operand" "$W/out" "f32[4,5] dot of first: 20 numbers, 0.6 to 101"
lacks "nothing else is to blame" "$W/out" "first nan"
replay 38 train.yaml --json
same "as JSON" "65 38 37 30 true" "$rc $(value step) $(value batch) $(value checkpoint_step) $(value wrong)"
same "the find" "inf exp forward f32[4,5] 2 0" "$(value first 0 found) $(value first 0 op) $(value first 0 phase) $(value first 0 type) $(value first 0 index '*' | tr '\n' ' ' | sed 's/ $//')"
same "the model's line" model.c:6 "$(value first 0 layer)"
same "the range of its operand" "101.0 0" "$(value first 0 operands 0 most) $(value first 0 operands 0 n_inf)"
same "once" 0 "$(value first 1 found >/dev/null 2>&1; echo $(($? == 0)))"
replay 38 train.yaml --json --debug=interpret
same "interpreted, the same find" "65 inf exp 2" "$rc $(value first 0 found) $(value first 0 op) $(value first 0 index 0)"
replay 37 train.yaml
same "the step before is fine" 0 $rc
has "and it is said" "$W/out" "nothing is wrong"
replay 5 train.yaml
same "before the first checkpoint" 0 $rc
has "the weights are the model's" "$W/out" "the model's own weights"
same "nothing is written" "$before" "$(find . -type f | sort | xargs sha256sum | grep -v -e ./out -e ./err)"
replay 39 train.yaml
same "a step that was never reached" 65 $rc
has "fails before it" "$W/err" "before the step to replay: the loss is inf at step 38"
replay 101 train.yaml
same "a step that never comes" 2 $rc
has "which do" "$W/err" "this recipe makes steps 1 to 100"
for step in 0 -3 x ''; do
    replay "$step" train.yaml
    same "step \"$step\"" 2 $rc
done
replay 38 train.yaml --seed=7
same "another seed" 65 $rc
has "is another run" "$W/err" "expected seed 1, as the checkpoint of step 30 was made with, found seed 7"
ty train train.yaml --data-dir=data --debug=true --fresh
same "debug: true fails too" 65 $rc
has "with the place" "$W/err" "layer model.c:6, forward: exp, f32[4,5] at [2, 0], sample 150"
ok "and leaves dumps" test -s run/output/data/compiler/graph.0.step.txt -a -s run/output/data/compiler/kernels.last.txt
ty train train.yaml --data-dir=data --debug=interpret --fresh
same "debug: interpret fails too" 65 $rc
has "with the place as well" "$W/err" "layer model.c:6, forward: exp, f32[4,5] at [2, 0], sample 150"

# sqrt'(0) is infinite, and 0 of its mean squared error's gradient times it is a NaN: the loss of that step is finite.
training gradient '{mse: {target: t}}' '{sgd: {lr: 1e-9}}' '{columns: 0-2, shape: [3]}' 0.1,0.2,0.3 0,0,0 <<'C'
void model(ty_net *net)
{
    ty_var x = ty_input(net, "x", "f32[batch,3]");
    ty_output(net, "y", ty_sqrt(net, ty_linear(net, "first", x, 3, .weight = ty_ones(), .no_bias = true)));
}
C
ty train train.yaml --data-dir=data --debug=true
same "training fails" 65 $rc
has "at the step" "$W/err" "not finite after step 38, its loss still is"
replay 38 train.yaml --json
same "a gradient" "65 nan gradient model.c:5 2 0" "$rc $(value first 0 found) $(value first 0 phase) $(value first 0 layer) $(value first 0 index '*' | tr '\n' ' ' | sed 's/ $//')"
ok "of a finite loss" awk "BEGIN {exit !($(value loss) > 0)}"

# w <- w (1 - 2 lr), and the loss is w^2: with lr = 1e4 it passes the largest float32 where |w| > 1.8e19.
training rate '{mse: {target: t}}' '{sgd: {lr: 1e4}}' '{columns: 1, shape: [1]}' 1,0,0 1,0,0 <<'C'
void model(ty_net *net)
{
    ty_var x = ty_input(net, "x", "f32[batch,3]");
    ty_output(net, "y", ty_linear(net, "first", x, 1, .weight = ty_ones(), .no_bias = true));
}
C
step=$(awk 'BEGIN {w = 1; for (s = 1; w * w < 3.4e38; s++) w *= 1 - 2e4; print s}')
ty train train.yaml --data-dir=data
has "the step by arithmetic: $step" "$W/err" "the loss is inf at step $step "
replay "$step" train.yaml --json
same "in the loss" "inf loss mul forward" "$(value first 0 found) $(value first 0 layer) $(value first 0 op) $(value first 0 phase)"
ok "of a difference that is finite" awk "BEGIN {x = $(value first 0 operands 0 least); exit !(x * x > 3.4e38)}"

# Weights that were never finite, inputs that are not.
training input '{mse: {target: t}}' '{sgd: {lr: 1e-3}}' '{columns: 0-2, shape: [3]}' 0.1,0.2,0.3 0,nan,0 <<'C'
void model(ty_net *net)
{
    ty_output(net, "y", ty_linear(net, "first", ty_input(net, "x", "f32[batch,3]"), 3));
}
C
replay 38 train.yaml --json
same "an input is named" "65 nan input x 2 1" "$rc $(value first 0 found) $(value first 0 op) $(value first 0 layer) $(value first 0 index '*' | tr '\n' ' ' | sed 's/ $//')"
has "with its row" "$W/out" "train.csv:151"
training weight '{mse: {target: t}}' '{sgd: {lr: 1e-3}}' '{columns: 0-2, shape: [3]}' 0.1,0.2,0.3 0,1,0 <<'C'
#include <math.h>
void model(ty_net *net)
{
    ty_var x = ty_linear(net, "first", ty_input(net, "x", "f32[batch,3]"), 3, .no_bias = true);
    ty_output(net, "y", ty_linear(net, "second", x, 3, .weight = ty_filled(1), .bias = ty_filled(NAN)));
}
C
replay 1 train.yaml --json
same "a weight is named" "65 nan state second.bias 0" "$rc $(value first 0 found) $(value first 0 op) $(value first 0 layer) $(value first 0 index '*' | tr '\n' ' ' | sed 's/ $//')"

# x / exp(x) is 0 where exp(x) is infinite: nobody is harmed.
training harmless '{mse: {target: t}}' '{sgd: {lr: 1e-9}}' '{columns: 0-2, shape: [3]}' 0.1,0.2,0.3 500,0,0 <<'C'
void model(ty_net *net)
{
    ty_var x = ty_linear(net, "first", ty_input(net, "x", "f32[batch,3]"), 3, .weight = ty_ones(), .no_bias = true);
    ty_output(net, "y", ty_linear(net, "last", ty_div(net, x, ty_exp(net, x)), 3));
}
C
echo 'frozen: [first.weight]' >>train.yaml
ty train train.yaml --data-dir=data --debug=interpret
same "training goes on" 0 $rc
has "and warns" "$W/err" "is not finite, which reaches neither loss nor weights"
same "once" 1 "$(grep -c 'is not finite, which' "$W/err")"
replay 38 train.yaml --debug=interpret
same "no fault" 0 $rc
has "it is shown" "$W/out" "forward: exp, f32[4,3] at [2, 0]"
has "as what it is" "$W/out" "which reaches neither the loss nor a weight"
cd "$DIGITS/../.." || exit 1

# The step is the one that was: shuffled batches, dropout, several micro-batches.
. tests/entrypoint/job.bash
job exact
run train --log_every=1 --accumulate=2
same "training" 0 $rc
for step in 1 27 28 30; do
    line=$(grep "^step=$step " "$W/log" 2>/dev/null || grep "^step=$step " "$W/out")
    [ -e "$W/log" ] || cp "$W/out" "$W/log"
    ty replay $step "$ML/code/train.yaml" --data-dir="$ML/input/data" --output-dir="$ML" --log_every=1 --accumulate=2
    same "step $step" 0 $rc
    has "has the loss that it had, digit for digit" "$W/out" "loss        $(sed 's/.* loss=\([^ ]*\) .*/\1/' <<<"$line"), lr"
done
ty replay 28 "$ML/code/train.yaml" --data-dir="$ML/input/data" --output-dir="$ML" --accumulate=2 --json
whole=$(value loss)
ty replay 28 "$ML/code/train.yaml" --data-dir="$ML/input/data" --output-dir="$ML" --accumulate=2 --json --debug=interpret
ok "interpreted it is as good as equal: $whole, $(value loss)" awk "BEGIN {d = $whole / $(value loss) - 1; exit !(d * d < 1e-8)}"
WHOLE=$(bits "$ML")
job checked
run train --accumulate=2 --debug=true
same "debug: true trains" 0 $rc
same "the same bits" "$WHOLE" "$(bits "$ML")"
lacks "the platform did not ask" "$W/err" "Training Compiler"

# The switch of the platform's former compiler.
for given in 'true true yes' 'true false no' 'false true no'; do
    read -r enabled debug dumps <<<"$given"
    job "platform-$enabled-$debug"
    hyper "{\"max_steps\": \"2\", \"sagemaker_training_compiler_enabled\": \"$enabled\", \"sagemaker_training_compiler_debug_mode\": \"$debug\"}"
    run
    same "status" 0 $rc
    has "what people look for" "$W/err" "Found configuration for Training Compiler"
    same "dumps" $dumps "$([ -s "$ML/output/data/compiler/graph.0.step.txt" ] && echo yes || echo no)"
    same "debug mode is said" $dumps "$(grep -qF 'Training Compiler set to debug mode' "$W/err" && echo yes || echo no)"
done

finish_tests
