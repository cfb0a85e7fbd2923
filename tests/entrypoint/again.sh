#!/bin/bash
# again.sh - the same training once more: anew, with another setting, and after it was refused.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
case_name=again W=$SCRATCH/again
export TRAINYARD_CACHE_DIR=$SCRATCH/cache
mkdir -p "$W" && cd "$W" || exit 1
train() { # ARGUMENT...
    timeout -k 5 600 "$BIN/trainyard" train train.yaml "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
cat >model.c <<'C'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_output(net, "y", ty_linear(net, "only", ty_input(net, "x", "f32[batch,2]"), 1));
}
C
awk 'BEGIN {for (i = 0; i < 64; i++) print i / 64 "," i % 3 "," i % 5}' >data.csv
cat >train.yaml <<'Y'
model: model.c
loss: {mse: {target: t}}
optimizer: {sgd: {lr: 1e-3}}
batch_size: 8
epochs: 2
seed: 3
log_every: 1
data:
  train: {path: data.csv, format: csv, fields: {x: {columns: 0-1}, t: {columns: 2, shape: [1]}}}
  validation: {path: data.csv, fields: same}
Y
metrics=run/output/data/metrics.jsonl events=run/output/tensorboard

train --batch_size=none
same "refused" 78 $rc
ok "a refused training leaves no folder" test ! -e run
train --data.train.path=none.csv
same "refused later" 66 $rc
ok "neither" test ! -e run
mkdir run
train --data.train.path=none.csv
ok "a folder that was there stays" test -d run

train
same "a run" 0 $rc
same "its first step" 1 "$(grep -c '"step":1,.*"split":"train"' $metrics)"
cp -r run before
train
has "nothing is left to do" "$W/err" "nothing is left to train"
touch $events/train/events.txt
train --fresh
same "once more" 0 $rc
same "its first step alone" 1 "$(grep -c '"step":1,.*"split":"train"' $metrics)"
same "one run" 1 "$(grep -c '"run":' $metrics)"
for split in train validation; do
    same "one event file of $split" 1 "$(find $events/$split -name 'events.out.tfevents.*' | wc -l)"
done
ok "what has another name stays" test -e $events/train/events.txt
has "the log says so" "$W/err" "removed metrics.jsonl and 4 event files of earlier runs (--fresh)"

refused() { # WHAT MESSAGE ARGUMENT...
    train "${@:3}"
    same "$1: refused" 65 $rc
    has "$1: is named" "$W/err" "error[E0510]: $2"
}
made="as the checkpoint of step 16 was made with, found"
refused "another batch size" "expected batch_size 8, $made batch_size 16" --batch_size=16
refused "two settings" "expected seed 3 and data.train.shuffle true, $made seed 4 and data.train.shuffle false" --seed=4 \
    --data.train.shuffle=false
refused "another scale" "expected data.train.fields.x f32[2] (" --data.train.fields.x.scale=2
has "a scale: is told" "$W/err" "$made data.train.fields.x f32[2] * 2 + 0 ("
same "a scale: and nothing else" 1 "$(grep -o 'data.train.fields[^ ]* f32' "$W/err" | sort -u | wc -l)"
refused "other columns" "expected data.train.fields.x f32[2] (" --data.train.fields.x.columns=1-2
sed 's/ t: {/ u: {/; s/target: t/target: u/' train.yaml >renamed.yaml && cp train.yaml kept.yaml && mv renamed.yaml train.yaml
refused "another name" "expected data.train.fields.* x+t, $made data.train.fields.* x+u"
mv kept.yaml train.yaml
refused "a stream" "expected data.train.access random, $made data.train.access stream" --data.train.access=stream
bytes=$(wc -c <data.csv)
sed -n 1,56p data.csv >part && mv part data.csv
refused "other data" "expected data.train.samples 64 and data.train 1 file of $bytes bytes ("
finish_tests
