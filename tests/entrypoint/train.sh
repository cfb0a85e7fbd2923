#!/bin/bash
# train.sh - the built-in trainer from outside: a whole job, its files, stopping, resuming, the numbers of PyTorch.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash

job whole
run
same "status" 0 $rc
for file in model/model.onnx model/model.safetensors model/model.json output/data/metrics.jsonl output/success; do
    ok "$file" test -e "$ML/$file"
done
ok "no failure file" test ! -e "$ML/output/failure"
ok "events of training" compgen -G "$ML/output/tensorboard/train/events.out.tfevents.*" >/dev/null
ok "events of validation" compgen -G "$ML/output/tensorboard/validation/events.out.tfevents.*" >/dev/null
ok "and what bounds the rate" grep -qa "input/bottleneck" "$ML"/output/tensorboard/train/events.out.tfevents.*
same "60 steps" 60 "$(grep -c '^step=' "$W/out")"
ok "metric lines are as documented" grep -qE '^step=60 epoch=3 loss=[-+0-9.e]+ lr=0\.001 grad_norm=[-+0-9.e]+ samples_per_s=[-+0-9.e]+ data_ms=[-+0-9.e]+$' "$W/out"
same "an evaluation an epoch" 3 "$(grep -cE '^val step=[0-9]+ epoch=[0-9]+ val_loss=[-+0-9.e]+ val_accuracy=[-+0-9.e]+$' "$W/out")"
lacks "stdout holds nothing else" <(grep -vE '^(val )?step=' "$W/out") "="
ok "it learned" awk -F'val_accuracy=' '/^val step=60/ {exit !($2 >= 0.9)}' "$W/out"
same "newest checkpoints are kept" "step-00000050 step-00000055 step-00000060" "$(ls "$ML/checkpoints" | tr '\n' ' ' | sed 's/ $//')"
for word in 'memory      peak' 'announced were' 'input wait' 'trainyard run'; do
    has "summary: $word" "$W/err" "$word"
done
same "nothing half-written" "" "$(leftovers)"
WHOLE=$(bits "$ML") WHOLE_TREE=$ML

run
same "again: nothing left to do" 0 $rc
has "and it says from where" "$W/err" "resuming at step 60 of 60"
has "and that nothing is left" "$W/err" "nothing is left to train"
same "the same model" "$WHOLE" "$(bits "$ML")"

job twice
run
same "the same run gives the same bits" "$WHOLE" "$(bits "$ML")"

job settings
hyper '{"epochs": "2", "learning_rate": "0.004", "batch-size": "32", "model_dir": "s3://b/k", "sagemaker_region": "\"eu-west-1\""}'
run train --optimizer.adamw.lr=0.002
same "status" 0 $rc
has "hyperparameters change the recipe" "$W/out" "step=20 epoch=2"
has "arguments win over hyperparameters" "$W/out" " lr=0.002 "

job unknown_hyperparameter
hyper '{"epocs": "2"}'
run
same "status" 78 $rc
has "suggestion" "$ML/output/failure" 'did you mean "epochs"?'
has "origin" "$ML/output/failure" 'hyperparameter "epocs"'

for place in channel_config channel_model named program; do
    job "recipe_in_$place"
    case $place in
    channel_*)
        channel=${place#channel_}
        mkdir "$ML/input/data/$channel"
        mv "$ML/code/"* "$ML/input/data/$channel/"
        echo '{"train": {}, "test": {}, "'$channel'": {}}' >"$ML/input/config/inputdataconfig.json"
        hyper '{}'
        ;;
    named)
        mv "$ML/code/train.yaml" "$ML/code/other.yaml"
        hyper '{"recipe": "other.yaml"}'
        ;;
    program)
        mkdir "$W/source"
        mv "$ML/code/"* "$W/source/"
        tar -czf "$W/sourcedir.tar.gz" -C "$W/source" .
        hyper '{"sagemaker_program": "\"train.yaml\"", "sagemaker_submit_directory": "\"'"$W/sourcedir.tar.gz"'\""}'
        ;;
    esac
    sed -i 's/epochs: 3/epochs: 1/' "$ML"/*/*.yaml "$ML"/input/data/*/*.yaml 2>/dev/null
    run
    same "found" 0 $rc
done

# ---- stopping and resuming ----
# stop_at STEP SIGNAL: a run that is told to stop once its log shows that step. It may be past the end by then.
reached() { awk -F'[= ]' -v n="$1" '/^step=/ && $2 >= n {found = 1} END {exit !found}' "$W/out" || ! kill -0 "$pid"; }
stop_at() {
    start train --log_every=1 "${@:3}"
    until_true 60 reached "$1" || fail "step $1 was not reached"
    kill "-$2" "$pid" 2>/dev/null
    finish
}
# takes_term PID: the names of the threads that do not block TERM. oneDNN's sgemm keeps its stack pointer in the heap: the
# frame of a handler would be written there. (Who waits in sigwait counts as not blocking.)
takes_term() {
    local thread
    for thread in /proc/"$1"/task/*; do
        [ $((0x$(sed -n 's/^SigBlk:\t//p' "$thread/status") & 0x4000)) != 0 ] || cat "$thread/comm"
    done
}
job unreachable_by_signals
start train --log_every=1 --max_steps=100000 --epochs=100000
until_true 60 reached 7
worker=$(children_of "$pid" | head -1)
ok "several threads" test "$(ls "/proc/$worker/task" | wc -l)" -ge 3
same "one thread of the trainer takes signals" ty-signals "$(takes_term "$worker")"
kill -TERM "$pid"
finish
same "143" 143 $rc

job stopped
stop_at 7 TERM --max_steps=100000 --epochs=100000
same "143" 143 $rc
ok "a stop is no failure" test ! -e "$ML/output/failure"
has "the weights so far are there" "$ML/model/model.json" '"step"'
has "it says so" "$W/err" "on request"
ok "a checkpoint of the last step" test "$(ls "$ML/checkpoints" | tail -1)" = \
    "$(printf 'step-%08d' "$(grep -c '^step=' "$W/out")")"

job stopped_by_int
stop_at 7 INT --max_steps=100000 --epochs=100000
same "130" 130 $rc

# Long enough that a stop finds it at work, however quick the machine.
job long
run train --epochs=20
LONG=$(bits "$ML") LONG_TREE=$ML
# A slow machine may see a step only when the run is near its end: again, then.
for try in 1 2 3 4 5; do
    job interrupted_$try
    stops=0
    while stop_at $((stops * 40 + 3)) TERM --epochs=20 && [ $rc = 143 ] && [ $stops -lt 20 ]; do
        stops=$((stops + 1))
    done
    [ $stops -lt 2 ] || break
done
ok "it was interrupted $stops times" test $stops -ge 2
same "and came to its end" 0 $rc
has "it resumed" "$W/err" "resuming at step"
same "the same bits as a run never interrupted" "$LONG" "$(bits "$ML")"
same "checkpoints too" "$(sha256sum <"$LONG_TREE/checkpoints/step-00000400/rank-00000.bin")" \
    "$(sha256sum <"$ML/checkpoints/step-00000400/rank-00000.bin")"
same "metrics.jsonl is whole" 0 "$(grep -vcE '^\{.*\}$' "$ML/output/data/metrics.jsonl")"

job accumulated
run train --accumulate=2
ACCUMULATED=$(bits "$ML")
job accumulated_interrupted
stop_at 4 TERM --accumulate=2
stop_at 13 TERM --accumulate=2
run train --accumulate=2
same "with accumulation, the same bits" "$ACCUMULATED" "$(bits "$ML")"

job stopped_while_compiling
printf '#!/bin/sh\ntouch %s/compiling; exec sleep 1000\n' "$W" >"$W/slow-cc"
chmod +x "$W/slow-cc"
CC=$W/slow-cc start
ok "compiling" until_true 20 test -e "$W/compiling"
kill -TERM "$pid"
finish
same "143" 143 $rc
ok "no failure file" test ! -e "$ML/output/failure"
ok "no model" test ! -e "$ML/model/model.json"

# A signal to the group finds no compiler that is started right behind it. One that does not listen is as one that did not
# hear. What it has started goes with it: the whole is over long before the platform's patience is.
OURS=$(printf '%07d' $$) # what is looked for among all processes sleeps for a time of our own
printf '#!/bin/sh\ntrap "" TERM\necho >>%s/compiling\nsleep 1%s & wait; sleep 1%s\n' "$SCRATCH" "$OURS" "$OURS" >"$SCRATCH/deaf-cc"
chmod +x "$SCRATCH/deaf-cc"
gone_early() { # SECONDS-BEFORE
    ok "within a few seconds" test $((SECONDS - $1)) -lt 30
    ok "nobody is left" not_running "sleep 1$OURS"
    rm -f "$SCRATCH/compiling"
}
deaf_case() {
    local before
    CC=$SCRATCH/deaf-cc start
    ok "compiling" until_true 20 test -e "$SCRATCH/compiling"
    before=$SECONDS
    kill -TERM "$pid"
    finish
    same "143" 143 $rc
    ok "no failure file" test ! -e "$ML/output/failure"
    gone_early $before
}
job deaf_compiler_of_kernels
deaf_case
has "and it says so" "$W/err" "stopped on request in phase"
perceptron deaf_compiler_of_the_model
deaf_case
job deaf_compiler_by_hand
mkdir "$W/data"
mv "$ML/input/data/train" "$ML/input/data/test" "$W/data"
(cd "$W" && CC=$SCRATCH/deaf-cc exec "$BIN/trainyard" train "$ML/code/train.yaml" --data-dir=data >out 2>err </dev/null) &
pid=$!
ok "compiling" until_true 20 test -e "$SCRATCH/compiling"
before=$SECONDS
kill -INT "$pid"
kill -TERM "$pid"
finish
ok "the first signal's status" test $rc = 130 -o $rc = 143
has "and it says so" "$W/err" "stopped on request in phase"
gone_early $before
begin deaf_compiler_of_a_program
printf '#!/bin/sh\ntrap "" TERM\necho >>%s/compiling\nexec sleep 1%s\n' "$SCRATCH" "$OURS" >"$SCRATCH/deaf-cc"
echo 'int main(void) { return 0; }' >"$ML/code/train.c"
hyper '{"sagemaker_program": "train.c"}'
deaf_case

job damaged_checkpoint
run train --max_steps=30
truncate -s -10 "$ML/checkpoints/step-00000030/rank-00000.bin"
printf 'x' | dd of="$ML/checkpoints/step-00000025/rank-00000.bin" bs=1 seek=2000 conv=notrunc 2>/dev/null
run
same "status" 0 $rc
has "the newest valid one is taken" "$W/err" "resuming at step 20 of 60"
has "with the reasons" "$W/err" "step-00000030"
has "with the reasons" "$W/err" "step-00000025"
same "the same bits in the end" "$WHOLE" "$(bits "$ML")"

job other_data
run train --max_steps=10
run train --max_steps=20 --seed=2
same "a checkpoint of another order of samples is refused" 65 $rc
has "with a way out" "$ML/output/failure" "start anew"

# Two tables of one shape: states keep their names and sizes whichever is updated by rows.
job other_tables
cat >"$ML/code/model.c" <<'C'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_var ids = ty_input(net, "ids", "i64[batch,64]");
    ty_var a = ty_embedding(net, "a", ids, 64, 1, .weight = ty_normal(0, 0.01));
    ty_var b = ty_embedding(net, "b", ids, 64, 1, .weight = ty_normal(5, 0.01));
    ty_output(net, "sum", ty_reduce_sum(net, ty_mul(net, a, b), ty_dims(1, 2), false));
}
C
cat >"$ML/code/train.yaml" <<'Y'
model: model.c
loss: {mse: {output: sum, target: label}}
optimizer: {adam: {lr: 1e-3}}
batch_size: 16
epochs: 3
data: {train: {channel: train, fields: {ids: {columns: 0-63, type: int64}, label: {columns: 64, shape: []}}}}
checkpoint: {every: 5 steps, keep: 3}
Y
run train --max_steps=10 '--sparse_rows=["a*"]'
same "status" 0 $rc
run train --max_steps=20 '--sparse_rows=["b*"]'
same "a checkpoint of other tables is refused" 65 $rc
has "and says which settings" "$ML/output/failure" "sparse_rows"
run train --max_steps=20
same "so is one where tables were updated by rows" 65 $rc
run train --max_steps=20 '--sparse_rows=["a*"]'
same "with its own settings it goes on" 0 $rc
has "where it was" "$W/err" "resuming at step 10 of 20"

job fresh
"$BIN/trainyard" train "$ML/code/train.yaml" --data-dir "$ML/input/data" --output-dir "$W/run" --max_steps=10 >"$W/out" 2>"$W/err"
same "trainyard train" 0 $?
"$BIN/trainyard" train "$ML/code/train.yaml" --data-dir "$ML/input/data" --output-dir "$W/run" --fresh >"$W/out" 2>"$W/err"
same "trainyard train --fresh" 0 $?
has "starts anew" "$W/out" "step=1 "
same "the same bits as in a container" "$WHOLE" "$(bits "$W/run")"

# ---- the trained model at work ----
case_name=infer
npy() { # SHAPE BYTES FILE: zeros
    local header="{'descr': '<f4', 'fortran_order': False, 'shape': $1, }"
    { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header"; head -c "$2" /dev/zero; } >"$3"
}
npy '(3, 1, 8, 8)' 768 "$W/zeros.npy"
"$BIN/trainyard" run "$WHOLE_TREE/model/model.onnx" --input image="$W/zeros.npy" --output-dir "$W/p" >"$W/out" 2>"$W/err"
same "trainyard run" 0 $?
has "says what it wrote" "$W/out" "f32[3,10]"
same "size of the result" 248 "$(stat -c %s "$W/p/logits.npy")"
same "equal rows, equal results" "$(tail -c 120 "$W/p/logits.npy" | head -c 40 | sha256sum)" "$(tail -c 40 "$W/p/logits.npy" | sha256sum)"
"$BIN/trainyard" run "$WHOLE_TREE/model/model.onnx" --input "$W/zeros.npy" --output-dir "$W/p" --json >"$W/out" 2>"$W/err"
has "--json, name left out" "$W/out" '"logits": {"type": "f32[3,10]"'
"$BIN/trainyard" run "$WHOLE_TREE/model/model.onnx" --input x="$W/zeros.npy" >"$W/out" 2>"$W/err"
same "no such input" 2 $?
has "no such input" "$W/err" "inputs: image"
npy '(3, 64)' 768 "$W/flat.npy"
"$BIN/trainyard" run "$WHOLE_TREE/model/model.onnx" --input image="$W/flat.npy" --output-dir "$W/p" >"$W/out" 2>"$W/err"
same "wrong shape" 65 $?

# ---- the numbers of PyTorch ----
CASES=${TY_SHARED:-../shared}/data/train-cases
# flatten SOURCE TARGET: joins the first two axes of an array [batches, rows, ...], in place of the header's text.
flatten() {
    local shape a b rest new
    shape=$(head -c 128 "$1" | tr -d '\0' | grep -aoE '\([0-9, ]+\)')
    IFS=', ' read -r a b rest <<<"$(tr -d '()' <<<"$shape")"
    new="($((a * b)),${rest:+ $rest}), }"
    LC_ALL=C sed "1s/$shape, }/$(printf '%-*s' $((${#shape} + 3)) "$new")/" "$1" >"$2"
}
if [ -d "$CASES/mlp_relu" ]; then
    begin pytorch
    mkdir "$W/data"
    cp "$CASES/mlp_relu/model.onnx" "$W/"
    flatten "$CASES/mlp_relu/x0.npy" "$W/data/x0.npy"
    flatten "$CASES/mlp_relu/y.npy" "$W/data/y.npy"
    cat >"$W/train.yaml" <<'Y'
model: model.onnx
inputs: {x0: x}
loss: {softmax_cross_entropy: {logits: output, labels: label}}
optimizer: {adam: {lr: 0.01}}
schedule: {step: {step_size: 5, gamma: 0.5}}
batch_size: 16
epochs: 2
max_steps: 15
log_every: 1
data:
  train: {path: data, fields: {x: {file: x0.npy}, label: {file: y.npy}}, shuffle: false}
Y
    "$BIN/trainyard" train "$W/train.yaml" --output-dir "$W/run" >"$W/out" 2>"$W/err"
    same "status" 0 $?
    awk '/"losses": \[/ {on = 1; next} /\]/ {on = 0} on {gsub(/[ ,]/, ""); print}' "$CASES/mlp_relu/expected.json" >"$W/wanted"
    sed -nE 's/^step=.* loss=([^ ]+) .*/\1/p' "$W/out" >"$W/found"
    same "15 losses" "15 15" "$(wc -l <"$W/wanted") $(wc -l <"$W/found")"
    same "each within 1e-4" "" "$(paste "$W/wanted" "$W/found" | awk '{d = ($1 - $2) / $1; if (d < 0) d = -d; if (!(d < 1e-4)) print}')"
else
    skip "losses of PyTorch" "no $CASES"
fi

finish_tests
