#!/bin/bash
# split.sh - data.validation.split: the training of two files that hold the two parts; on ranks, resumed; and refused.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/trained.bash
folder split || exit 1
cat >model.c <<'C'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_output(net, "y", ty_linear(net, "only", ty_input(net, "x", "f32[batch,2]"), 1));
}
C
awk 'BEGIN { for (i = 0; i < 80; i++) print i "," i % 7 "," i * 0.03 - i % 7 }' >all.csv
cat >train.yaml <<'Y'
model: model.c
loss: {mse: {target: t}}
optimizer: {sgd: {lr: 1e-5}}
batch_size: 8
epochs: 3
seed: 5
log_every: 1
data:
  train: {path: all.csv, format: csv, shuffle: false, fields: {x: {columns: 0-1}, t: {columns: 2, shape: [1]}}}
  validation: {split: 0.2}
metrics: [mae]
checkpoint: {every: 5 steps, keep: 2}
Y
train --device=cpu
same "a split" 0 $rc
has "what is split off is told" "$W/err" "  validation  16 samples, split off"
has "and what is left" "$W/err" "  train       64 samples"
has "which are trained on" "$W/err" "24 steps of 8 rows"
numbers >split
WEIGHTS=$(weights)

# Which ones they are, by a run that stops at each of them: samples that cannot be evaluated.
"$BIN/trainyard" evaluate train.yaml --device=cpu --json >"$W/out" 2>"$W/err" </dev/null
same "evaluated" 16 "$(python3 -c "import json; print(json.load(open('out'))['samples'])")"
: >validation.csv
for i in $(seq 1 80); do
    awk -v n="$i" 'NR == n { sub(/,[^,]*$/, ",1e30") } { print }' all.csv >one.csv
    "$BIN/trainyard" evaluate train.yaml --device=cpu --data.train.path=one.csv --json >"$W/out" 2>"$W/err" </dev/null
    python3 -c "import json, sys; sys.exit(not json.load(open('out'))['values']['mae'] > 1e20)" && sed -n "${i}p" all.csv >>validation.csv
done
same "16 of them" 16 "$(wc -l <validation.csv)"
ok "not the last ones" test "$(tail -16 all.csv | sha256sum)" != "$(sha256sum <validation.csv)"
grep -vxFf validation.csv all.csv >train.csv
same "and the others" 64 "$(wc -l <train.csv)"
train --device=cpu --data.train.path=train.csv --data.validation.split=0 --data.validation.path=validation.csv
same "two files" 0 $rc
numbers >files
same "are trained alike" "$(cat split)" "$(cat files)"
same "to the same weights" "$WEIGHTS" "$(weights)"

train --device=cpu --max_steps=9
again --device=cpu
same "resumed" "$WEIGHTS" "$(weights)"
train --device=cpu --max_steps=9
again --device=cpu --data.validation.split=0.3
same "another split is other data" 65 $rc
train --device=cpu --seed=6
ok "another seed, too" test "$WEIGHTS" != "$(weights)"
train --device=cpu --processes_per_host=2 --threads=1
same "two ranks" 0 $rc
same "with the same evaluations" "$(grep -c '^val' split)" "$(grep -c '^val' "$W/out")"
sed '/validation:/d' train.yaml >alone.yaml
"$BIN/trainyard" train alone.yaml --validation_split=0.25 --device=cpu --max_steps=2 --output-dir=other >"$W/out" 2>"$W/err" </dev/null
has "as Keras calls it" "$W/err" "  validation  20 samples, split off"
"$BIN/trainyard" data plan train.yaml >"$W/out" 2>"$W/err" </dev/null
has "planned with what is left" "$W/out" "8 batches an epoch: 64 samples"
"$BIN/trainyard" check model.c --recipe train.yaml >"$W/out" 2>&1 </dev/null
same "checked" 0 $?

refused "with files of its own" "is split from data.train, and has no path of its own" --data.validation.path=all.csv
refused "of the training data" "split is of data.validation" --data.train.split=0.2
refused "as a stream" "data.validation.split: data.train is read as a stream" --data.train.access=stream
finish_tests
