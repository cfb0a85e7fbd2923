#!/bin/bash
# best.sh - evaluations that end a run, and the weights of the best one: against runs that end there by themselves.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/trained.bash
folder best || exit 1
# The weight goes to 10; what is measured wants 5, which it passes.
cat >model.c <<'C'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_output(net, "y", ty_linear(net, "only", ty_input(net, "x", "f32[batch,2]"), 1));
}
C
awk 'BEGIN {for (i = 0; i < 64; i++) print i / 64 "," i % 3 "," 10 * i / 64}' >train.csv
awk 'BEGIN {for (i = 0; i < 64; i++) print i / 64 "," i % 3 "," 5 * i / 64}' >test.csv
cat >train.yaml <<'Y'
model: model.c
loss: {mse: {target: t}}
optimizer: {sgd: {lr: 4e-3, momentum: 0.5}}
batch_size: 8
epochs: 20
seed: 3
data:
  train: {path: train.csv, format: csv, fields: {x: {columns: 0-1}, t: {columns: 2, shape: [1]}}}
  validation: {path: test.csv, fields: same}
metrics: [mae]
checkpoint: {every: 1 epoch, keep: 1}
Y
steps_of() { ls "$1/checkpoints" | sed 's/step-0*//' | tr '\n' ' '; }
said() { sed -n "s/.*\"$2\":\([-0-9.a-z\"]*\).*/\1/p" "$1/model/model.json" | head -1; }

# The course of a whole run, from which the rest follows: the steps of its evaluations and their losses.
again
same "a run to the end" 0 $rc
has "of all steps" "$W/err" "complete: 160 steps"
lacks "which says no more" "$W/err" "early_stopping"
sed -n 's/^val step=\([0-9]*\) .*val_loss=\([-0-9.e+]*\) .*/\1 \2/p' "$W/out" >course
same "evaluations" 20 "$(wc -l <course)"
best=$(sort -g -k2 course | head -1 | cut -d' ' -f1) last=160
ok "the best is one in the middle ($best)" test "$best" -gt 8 -a "$best" -lt 120
same "the newest checkpoint stays, as ever" "160 " "$(steps_of run)"
whole=$(weights run)
train --max_steps="$best"
at_best=$(weights run)
best_loss=$(sed -n 's/^val step=.* val_loss=\([-0-9.e+]*\) .*/\1/p' "$W/out" | tail -1)
rm -rf run
ok "the two differ" test "$at_best" != "$whole"

again --early_stopping.patience=3 --early_stopping.metric=loss
same "a run that evaluations end" 0 $rc
end=$((best + 24))
has "after three more" "$W/err" "complete: $end steps, and no better evaluation for long enough (early_stopping)"
has "the log says so" "$W/err" "step $end: loss is no better after 3 evaluations: the run ends (early_stopping)"
has "and whose weights are written" "$W/err" "  weights     of step $best, the best evaluation"
same "which are those" "$at_best" "$(weights run)"
same "the best checkpoint stays beside the newest" "$best $end " "$(steps_of run)"
ok "the model says of which step it is" grep -q "\"step\": *$best\b" run/model/model.json
ok "and what was measured of it" grep -q "$(printf '%.5s' "$best_loss")" run/model/model.json
has "so does the summary" "$W/err" "  validation  loss $(printf '%.5g' "$best_loss") mae"
again --early_stopping.patience=3 --early_stopping.metric=loss
same "once more" 0 $rc
has "nothing is left" "$W/err" "nothing is left to train: no evaluation was better for long enough: more patience goes on"
same "the same weights" "$at_best" "$(weights run)"
has "with what is measured of them anew" "$W/err" "  validation  loss $(printf '%.5g' "$best_loss") mae"
again --early_stopping.patience=4 --early_stopping.metric=loss
has "more patience goes on" "$W/err" "complete: $((best + 32)) steps, and"
same "from where it was" "$at_best" "$(weights run)"
has "it is counted on" "$W/err" "loss is no better after 4 evaluations"

# A run that is interrupted ends where it would have.
train --early_stopping.patience=3 --early_stopping.metric=loss --max_steps=$((best + 12)) --evaluate_every="8 steps"
ok "interrupted" test -e "run/checkpoints/step-000000$((best + 12))"
same "the best so far is written" "$at_best" "$(weights run)"
train --early_stopping.patience=3 --early_stopping.metric=loss --max_steps=$((best + 16))
again --early_stopping.patience=3 --early_stopping.metric=loss
has "and resumed, it ends there" "$W/err" "complete: $end steps, and"
same "with these weights" "$at_best" "$(weights run)"

# The best one's checkpoint is damaged, or gone.
train --early_stopping.patience=3 --early_stopping.metric=loss --export.weights=last
same "the last weights, if those are wanted" 0 $rc
lacks "without a word" "$W/err" "  weights "
ok "which are others" test "$(weights run)" != "$at_best"
same "then the best one is not kept" "$end " "$(steps_of run)"
at_end=$(weights run)
again --early_stopping.patience=3 --early_stopping.metric=loss
same "gone" 0 $rc
has "it is said" "$W/err" "the checkpoint of the best evaluation, step $best, is gone: the last weights are written"
same "and they are" "$at_end" "$(weights run)"
train --early_stopping.patience=3 --early_stopping.metric=loss
printf x | dd of="run/checkpoints/step-$(printf %08d "$best")/rank-00000.bin" bs=1 seek=200 conv=notrunc 2>"$W/dd"
again --early_stopping.patience=3 --early_stopping.metric=loss
same "damaged" 0 $rc
has "it is said, too" "$W/err" "the checkpoint of the best evaluation, step $best, cannot be read: "
same "and the last weights are whole" "$at_end" "$(weights run)"

# Without an early end.
train --export.weights=best
same "the best of a whole run" 0 $rc
has "by the first metric" "$W/err" "  weights     of step "
has "to its end" "$W/err" "complete: 160 steps"
by_mae=$(sed -n 's/^val step=\([0-9]*\) .*val_mae=\([-0-9.e+]*\).*/\1 \2/p' "$W/out" | sort -g -k2 | head -1 | cut -d' ' -f1)
same "both are kept" "$by_mae 160 " "$(steps_of run)"
train --early_stopping.patience=1 --early_stopping.mode=max --early_stopping.metric=mae
has "higher may be better" "$W/err" "complete: 16 steps, and"
train --early_stopping.patience=2 --early_stopping.metric=loss --early_stopping.min_delta=1000
has "by so much" "$W/err" "complete: 24 steps, and"
train --early_stopping.patience=1 --early_stopping.min_delta=1000 --early_stopping.start_from="3 epochs"
has "from so many epochs on" "$W/err" "complete: 40 steps, and"
train --early_stopping.patience=1 --early_stopping.min_delta=1000 --early_stopping.start_from="25 steps"
has "or steps" "$W/err" "complete: 40 steps, and"

# What it cannot be.
train --early_stopping.patience=1 --early_stopping.metric=accuracy
same "no such metric" 78 $rc
has "is said" "$W/err" '"metrics" has no "accuracy" for early_stopping'
sed '/validation:/d; /^metrics/d' train.yaml >alone.yaml
for key in "early_stopping.patience=1" "export.weights=best"; do
    "$BIN/trainyard" train alone.yaml --$key >"$W/out" 2>"$W/err" </dev/null
    same "nothing to evaluate on" 78 $?
    has "is said" "$W/err" "needs data.validation"
done

# Two ranks decide alike, and read what each has written.
for sharded in false true; do
    train --processes_per_host=2 --threads=1 --checkpoint.sharded=$sharded --max_steps="$best"
    same "two ranks" 0 $rc
    both=$(weights run)
    train --processes_per_host=2 --threads=1 --checkpoint.sharded=$sharded --early_stopping.patience=3 \
        --early_stopping.metric=loss
    same "two ranks that end early" 0 $rc
    has "there, too" "$W/err" "complete: $end steps, and"
    same "the best weights of both (sharded $sharded)" "$both" "$(weights run)"
    same "kept" "$best $end " "$(steps_of run)"
done
finish_tests
