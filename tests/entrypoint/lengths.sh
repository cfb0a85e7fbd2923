#!/bin/bash
# lengths.sh - samples of any length in programs of several lengths (data.train.length_buckets): the numbers of one
# program of the longest, with the same batches; resumed, on several ranks, on GPUs that tests/fakes stands in for.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/gpu.bash
. tests/entrypoint/trained.bash
folder lengths || exit 1
gpu() { LD_LIBRARY_PATH=$FAKES/gpu:$FAKES TY_FAKE_GPUS=${GPUS:-$CARD} "$@"; }
SOME=--data.train.length_buckets=[8,16,24]

# Means over what the mask shows: what rows are filled up with changes nothing but roundings.
cat >model.c <<'C'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_var ids = ty_input(net, "ids", "i64[batch,length]"), mask = ty_unsqueeze(net, ty_input(net, "mask", "f32[batch,length]"), 2);
    ty_var x = ty_relu(net, ty_linear(net, "hidden", ty_embedding(net, "words", ids, 50, 12), 12));
    ty_var sum = ty_reduce_sum(net, ty_mul(net, x, mask), ty_dims(1), 0), n = ty_reduce_sum(net, mask, ty_dims(1), 0);
    ty_output(net, "logits", ty_linear(net, "out", ty_div(net, sum, n), 2));
}
C
lines() { # N SEED
    awk -v n="$1" -v seed="$2" 'BEGIN {
        srand(seed)
        for (i = 0; i < n; i++) {
            k = 1 + int(rand() * rand() * 39.99); ids = ""; mask = ""; few = 0
            for (j = 0; j < k; j++) {
                id = 1 + int(rand() * 49); few += id < 25
                ids = ids (j ? "," : "") id; mask = mask (j ? "," : "") 1
            }
            printf "{\"ids\":[%s],\"mask\":[%s],\"label\":%d}\n", ids, mask, (2 * few > k)
        }
    }'
}
lines 330 1 >train.jsonl
lines 120 2 >test.jsonl
cat >train.yaml <<'Y'
model: model.c
loss: softmax_cross_entropy
optimizer: {adamw: {lr: 1e-2}}
batch_size: 16
epochs: 3
log_every: 1
data:
  train:
    path: train.jsonl
    fields: {ids: {max_length: 40, type: int64}, mask: {max_length: 40}, label: {type: int64, shape: []}}
  validation: {path: test.jsonl}
metrics: [accuracy]
checkpoint: {every: 5 steps, keep: 3}
Y

train --device=cpu
same "rows of one length" 0 $rc
plain=$(numbers)
train --device=cpu --data.train.length_buckets=40
same "batches of like lengths, in one program" 0 $rc
numbers >one
ok "which are other batches" test "$plain" != "$(cat one)"
same "evaluations are of all samples" 3 "$(grep -c '^val' one)"
train --device=cpu $SOME
same "in programs of their own" 0 $rc
numbers >some
alike "the same numbers" one some
has "what that saves is told" "$W/err" "of 40 long on average"
WEIGHTS=$(weights)
train --device=cpu $SOME,40]
train --device=cpu --data.train.length_buckets=[8,16,24,40]
same "the longest may be said" "$WEIGHTS" "$(weights)"
train --device=cpu --data.train.length_buckets=auto
same "or all chosen" 0 $rc
next() { sed -n 's/.* average, \([0-9]*\) up to the next bucket.*/\1/p' "$W/err"; }
chosen=$(next)
numbers >auto
same "with as many steps" "$(grep -c step= one)" "$(grep -c step= auto)"
train --device=cpu --data.train.length_buckets=[8,16,24,32] --max_steps=1
ok "which fit the data" test "${chosen:-99}" -le "$(next)"

# What a batch keeps are its columns, where they are filled up at the beginning too, and with another value.
for filling in "side=left" "pad=49"; do
    train --device=cpu $SOME --data.train.fields.ids.$filling --data.train.fields.mask.${filling/49/0}
    same "filled up: $filling" 0 $rc
    numbers >other
    alike "the numbers are those ($filling)" one other
done

# The same bits after an interruption, and with another way to run.
train --device=cpu $SOME --max_steps=23
again --device=cpu $SOME
same "resumed" "$WEIGHTS" "$(weights)"
train --device=cpu $SOME --max_steps=23
again --device=cpu --data.train.length_buckets=[8,24]
same "other buckets are other batches" 65 $rc
has "which is said" "$W/err" "data.train.length_buckets"
train --device=cpu $SOME --debug=true
same "checked, the same bits" "$WEIGHTS" "$(weights)"
train --device=cpu $SOME --debug=interpret --max_steps=9
same "interpreted" 0 $rc
numbers | head -9 >interpreted
head -9 some >first
alike "the same numbers" first interpreted
train --device=cpu $SOME --accumulate=3
numbers >accumulated
train --device=cpu --data.train.length_buckets=40 --accumulate=3
numbers >other
alike "steps of several batches, each in its program" other accumulated
for settings in "--precision=bfloat16" "--precision=float16" "--ema.decay=0.9" "--sparse_rows=true --optimizer=adam" \
    "--update_every=2"; do
    train --device=cpu $SOME $settings
    numbers >accumulated
    train --device=cpu --data.train.length_buckets=40 $settings
    numbers >other
    same "$settings" 0 $rc
    alike "the same numbers with $settings" other accumulated
done
train --device=cpu $SOME --data.train.remainder=join
same "with a last batch that is not full" 0 $rc
train --device=cpu $SOME --data.train.shuffle=false
numbers >ordered
train --device=cpu --data.train.shuffle=false
numbers >other
alike "in the order of the files" other ordered

# Ranks run programs of the same length in the same step.
for more in "" --distributed.optimizer_sharding=true; do
    train --device=cpu --processes_per_host=2 --threads=1 $SOME $more
    same "two ranks $more" 0 $rc
    numbers >ranks
    alike "the numbers of one" one ranks
done

# ---- GPUs ----
for way in "" --strategy=mirrored --processes_per_host=2; do
    GPUS="$CARD;$CARD"
    [ "$way" ] || GPUS=$CARD
    rm -rf run
    gpu again $SOME $way
    same "on GPUs $way" 0 $rc
    numbers >gpus
    alike "the numbers of the CPU" one gpus
done
train --device=cpu --data.train.length_buckets=40 --accumulate=3
numbers >other
for streams in behind ahead; do
    rm -rf run
    TY_FAKE_STREAMS=$streams GPUS=$CARD gpu again $SOME --accumulate=3
    numbers >accumulated
    alike "steps of several batches on a GPU, streams $streams" other accumulated
done
TY_FAKE_TRACE=$W/trace GPUS=$CARD gpu train $SOME --max_steps=12
between=$(awk '/captured/ { seen = NR } { line[NR] = $1 } END { for (i = seen + 1; i <= NR; i++) print line[i] }' "$W/trace" | sed '/^unpin/,$d')
same "nothing is allocated while training" "" "$(grep -xE 'alloc|free|module' <<<"$between" | head -1)"

# ---- kernels that were compiled before ----
"$BIN/trainyard" compile train.yaml $SOME --device=cpu --output compiled >"$W/out" 2>"$W/err" </dev/null
same "compiled for all lengths" 0 $?
TRAINYARD_CACHE_DIR=$W/none train --device=cpu $SOME --compiled=compiled
same "and run from there" 0 $rc
same "the same bits" "$WEIGHTS" "$(weights)"
"$BIN/trainyard" plan train.yaml $SOME >"$W/out" 2>"$W/err" </dev/null
same "planned" 0 $?
has "of the longest rows" "$W/out" "  lengths     rows of 40; steps for 8, 16, 24 are compiled beside this one"
"$BIN/trainyard" profile train.yaml $SOME --steps=3 >"$W/out" 2>"$W/err" </dev/null
same "profiled" 0 $?
has "of the longest rows, too" "$W/out" "  lengths     rows of 40; steps for 8, 16, 24"

# ---- what cannot be ----
refused "longer than rows" "41 is longer than the longest row, 40" --data.train.length_buckets=[8,41]
refused "not rising" "expected rising lengths from 1, found 8" --data.train.length_buckets=[16,8]
refused "as a stream" "data that are read as a stream have no lengths beforehand" $SOME --data.train.access=stream
sed "s/,length]/,40]/g" model.c >fixed.c
train --device=cpu $SOME --model=fixed.c
same "a model of one length" 65 $rc
has "is said" "$W/err" "data.train.length_buckets: rows of 24"
has "with what to do" "$W/err" "must be free (dynamic), not 40"
finish_tests
