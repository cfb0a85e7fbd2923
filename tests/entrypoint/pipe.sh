#!/bin/bash
# pipe.sh - training from streams: channels in Pipe mode fed through FIFOs as the platform feeds them, FastFile mode, and
# files read from end to end. The same bits whichever way the bytes come, also after an end at any batch, and every job
# that cannot work refused at once and by name.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/pipe.bash
export TRAINYARD_CACHE_DIR=$SCRATCH/cache
PIPES='{"train": {"TrainingInputMode": "Pipe", "ContentType": "application/x-tfrecord"}, "test": {"TrainingInputMode": "Pipe", "ContentType": "application/x-tfrecord"}}'
IN_ORDER=--data.train.shuffle=false

# piped NAME [ROWS]: the same job in Pipe mode.
piped() {
    streams "$@"
    rm -r "$ML/input/data/train" "$ML/input/data/test"
    modes "$PIPES"
}
# go EPOCHS EVALUATIONS [ARGS...]: run beside feeders of so many passes.
go() {
    feed train "$1"
    feed test "$2"
    run "${@:3}"
    unfed
}
# evaluated: what was told of the validation data.
evaluated() { python3 -c '
import json, sys
for line in open(sys.argv[1]):
    l = json.loads(line)
    if l.get("split") == "validation":
        print(l["step"], l["loss"], l["accuracy"])' "$ML/output/data/metrics.jsonl"; }

# ---- the same bits ----
streams numbers
run $IN_ORDER
same "by number" 0 $rc
WANTED=$(bits "$ML")
EVALUATED=$(evaluated)
same "three evaluations" 3 "$(echo "$EVALUATED" | wc -l)"

streams files
run $IN_ORDER --data.train.access=stream --data.validation.access=stream
same "files as a stream" 0 $rc
same "the bits of a run by number" "$WANTED" "$(bits "$ML")"
same "and its evaluations" "$EVALUATED" "$(evaluated)"
has "what is read, and why" "$W/err" "data.train is read as a stream: the recipe says so"
has "in the banner" "$W/err" "as many steps as the stream has of 16 rows, 3 epochs"
has "the length of an epoch, when it is known" "$W/err" "epoch 0 of data.train had 112 samples"

streams fast
modes '{"train": {"TrainingInputMode": "FastFile"}, "test": {"TrainingInputMode": "FastFile"}}'
run $IN_ORDER
same "FastFile" 0 $rc
same "has the same bits" "$WANTED" "$(bits "$ML")"
has "and is a stream" "$W/err" "FastFile mode fetches what is read"

piped pipes
go 3 3 $IN_ORDER
same "Pipe mode" 0 $rc
same "has the same bits" "$WANTED" "$(bits "$ML")"
same "and evaluates the same" "$EVALUATED" "$(evaluated)"
has "in the banner" "$W/err" "a stream of tfrecord, channel train in Pipe mode"

# Last batches that are not full: 112 samples are 7 batches of 16, 6 of 18 and a rest.
for how in drop pad join; do
    streams "rest_$how"
    run $IN_ORDER --batch_size=18 --data.train.remainder=$how --data.train.access=random
    same "a rest by number, $how" 0 $rc
    [ $how = pad ] || REST=$(bits "$ML")
    piped "rest_pipe_$how"
    go 3 3 $IN_ORDER --batch_size=18 --data.train.remainder=$how
    same "a rest in Pipe mode, $how" 0 $rc
    # Rows of its own fill a stream's last batch: which, only pad shows.
    [ $how = pad ] || same "and its bits" "$REST" "$(bits "$ML")"
done

# ---- shuffled ----
streams shuffled
run --data.train.access=stream --data.train.shuffle=40
same "a buffer for shuffling" 0 $rc
SHUFFLED=$(bits "$ML")
ok "makes another order" test "$SHUFFLED" != "$WANTED"
piped shuffled_pipe
go 3 3 --data.train.shuffle=40
same "which is the same in Pipe mode" "$SHUFFLED" "$(bits "$ML")"

# ---- an end at any batch ----
# Two epochs of four steps; each run ends after so many, with a checkpoint, and the next goes on in a new container.
SMALL="--epochs=2 --data.train.shuffle=24 --log_every=1"
streams small 64
# shellcheck disable=SC2086
run $SMALL --data.train.access=stream
SWEPT=$(bits "$ML")
for case in "files --data.train.access=stream" "pipes"; do
    read -r what settings <<<"$case"
    wrong=
    for ((k = 1; k <= 7; k++)); do
        if [ "$what" = pipes ]; then piped "ends_${what}_$k" 64; else streams "ends_${what}_$k" 64; fi
        for last in "--max_steps=$k" ""; do
            # shellcheck disable=SC2086
            if [ "$what" = pipes ]; then go 2 3 $SMALL $last; else run $SMALL $settings $last; fi
            [ $rc = 0 ] || wrong+=" status $rc at $k;"
        done
        grep -q "resuming at step $k from" "$W/err" || wrong+=" not resumed at $k;"
        [ "$(bits "$ML")" = "$SWEPT" ] || wrong+=" other bits after $k;"
    done
    same "an end at any batch, $what" "" "$wrong"
done
has "which says what is passed over" "$SCRATCH/ends_pipes_1/err" "passing over 1 batches of epoch 0"
# Two epochs of four steps and one that is not full.
for how in join pad; do
    streams "rest_$how"_whole 72
    # shellcheck disable=SC2086
    run $SMALL --data.train.access=stream --data.train.remainder=$how
    SWEPT=$(bits "$ML")
    wrong=
    for k in 3 4 5 9; do
        streams "rest_${how}_$k" 72
        for last in "--max_steps=$k" ""; do
            # shellcheck disable=SC2086
            run $SMALL --data.train.access=stream --data.train.remainder=$how $last
            [ $rc = 0 ] || wrong+=" status $rc at $k;"
        done
        grep -q "resuming at step $k from" "$W/err" || wrong+=" not resumed at $k;"
        [ "$(bits "$ML")" = "$SWEPT" ] || wrong+=" other bits after $k;"
    done
    same "an end before, at and behind a rest, $how" "" "$wrong"
done

# The second epoch gives nothing, so that it cannot be at its end by then. (Checkpoints come and go: a line stays.)
piped killed
mkfifo "$ML/input/data/train_1"
sleep 1000 >"$ML/input/data/train_1" &
stalled=$!
feed train 1
feed test 3
start --data.train.shuffle=40 --checkpoint.every=1 --log_every=1
ok "the fifth step" until_true 60 grep -q '^step=5 ' "$W/out"
worker=$(children_of "$pid" | head -1)
ok "is killed" kill -KILL "$worker"
finish
kill "$stalled" 2>/dev/null
unfed
ok "which is told" test -s "$ML/output/failure"
rm -f "$ML"/output/failure*
go 3 4 --data.train.shuffle=40 --checkpoint.every=1
same "a killed worker" 0 $rc
has "is gone on with from its checkpoint" "$W/err" "checkpoint: resuming at step"
same "goes on to the same bits" "$SHUFFLED" "$(bits "$ML")"

# ---- a stop while a FIFO gives nothing ----
piped stalled
mkfifo "$ML/input/data/train_0"
{ head -c 30000 "$W/train/a.tfrecord" && exec sleep 1000; } >"$ML/input/data/train_0" &
stalled=$!
feed test 3
start $IN_ORDER --checkpoint.every=1 --log_every=1 --data_threads=1
ok "the third step" until_true 60 grep -q '^step=3 ' "$W/out"
sleep 1 # it waits for the bytes of a batch by now; if not yet, this holds all the same
begun=$SECONDS
kill -TERM "$pid"
finish
kill "$stalled" 2>/dev/null
unfed
same "is a stop as any other" 143 $rc
ok "and does not wait for the limit of two minutes" test $((SECONDS - begun)) -lt 60

# ---- steps over several batches ----
streams micro
run $IN_ORDER --accumulate=2 --data.train.access=random
MICRO=$(bits "$ML")
piped micro_pipe
go 3 3 $IN_ORDER --accumulate=2
same "two batches a step" "$MICRO" "$(bits "$ML")"
has "what is left over at the end" "$W/err" "make no whole step of 2: they are left out"

# ---- lengths ----
streams length
run --data.train.access=stream --schedule=cosine
same "a schedule over a run of unknown length" 78 $rc
has "is refused by name" "$W/err" "schedule depends on how long an epoch is, and data.train is a stream"
has "with what to write" "$W/err" "data.train.samples: N"
run $IN_ORDER --data.train.access=stream --schedule=cosine --data.train.samples=112
same "and told its length" 0 $rc
SAID=$(bits "$ML")
streams length_numbers
run $IN_ORDER --schedule=cosine
same "has the bits of a run by number" "$SAID" "$(bits "$ML")"
streams length_wrong
run --data.train.access=stream --data.train.samples=100
has "a length that is wrong is told" "$W/err" "epoch 0 of data.train had 112 samples, and data.train.samples says 100"
streams length_auto
run --data.train.access=stream --batch_size=auto
same "batch_size auto over an unknown length" 78 $rc
has "is refused" "$W/err" "batch_size: auto, and data.train is a stream"
streams length_fast
modes '{"train": {"TrainingInputMode": "FastFile"}, "test": {"TrainingInputMode": "FastFile"}}'
run --schedule=cosine
same "FastFile with such a schedule is read by number" 0 $rc
lacks "and is no stream" "$W/err" "data.train is read as a stream"

# ---- what cannot work ----
piped random
run --data.train.access=random
same "a FIFO by number" 78 $rc
has "is refused" "$W/err" "access: random, and channel \"train\" is in Pipe mode"
piped absent
run --data.train.pipe_timeout=1
ok "a FIFO that does not come" test $rc -ne 0
has "is named" "$W/err" "train_0"
piped nameless
sed -i 's/, fields: {image.*$/}/' "$ML/code/train.yaml"
run
same "a FIFO whose fields nobody names" 78 $rc
has "is refused" "$W/err" "is in Pipe mode, and data.train declares no fields"
piped headed
run --data.train.header=yes
same "a FIFO with a header" 78 $rc
has "is refused" "$W/err" "header: yes, and data.train is read as a stream"
piped labels
# The perceptron knows ten classes.
sed -i 's/, 24)), 10));/, 24)), 9));/' "$ML/code/model.c"
go 3 3 $IN_ORDER
ok "a label beyond the last class" test $rc -ne 0
has "is refused where it is read" "$W/err" "label"
lacks "and not as a loss that is no number" "$W/err" "the loss is"
# Commands that look at a job take no epoch away from it.
piped looked
rm "$ML/input/config/inputdataconfig.json"
mkfifo "$ML/input/data/train_0" "$ML/input/data/test_0"
"$BIN/trainyard" check "$ML/code/model.c" --recipe="$ML/code/train.yaml" --data-dir="$ML/input/data" >"$W/out" 2>"$W/err"
has "check says what it does not know" "$W/out" "it is a channel in Pipe mode"
"$BIN/trainyard" plan "$ML/code/train.yaml" --data-dir="$ML/input/data" >"$W/out" 2>"$W/err"
same "plan" 78 $?
has "says what it needs" "$W/err" "say --data.train.path=FILE"
"$BIN/trainyard" plan "$ML/code/train.yaml" --data-dir="$ML/input/data" --data.train.path="$W/train" --data.validation.path="$W/test" \
    --data.train.access=stream >"$W/out" 2>"$W/err"
same "and with that it plans" 0 $?
has "as many steps as there are" "$W/out" "as many steps as the stream has"
# A command beside a feeder, and a step of it again.
unfed
feed train 3
feed test 3
(cd "$W" && "$BIN/trainyard" train "$ML/code/train.yaml" --data-dir="$ML/input/data" --output-dir="$W/here" $IN_ORDER --checkpoint.every=4 \
    --data.train.format=tfrecord >"$W/out" 2>"$W/err")
same "trainyard train finds FIFOs in its data folder" 0 $?
unfed
same "and has the same bits" "$WANTED" "$(bits "$W/here")"
feed train 2
feed test 2
"$BIN/trainyard" replay 10 "$ML/code/train.yaml" --data-dir="$ML/input/data" --output-dir="$W/here" $IN_ORDER --checkpoint.every=4 \
    --data.train.format=tfrecord >"$W/out" 2>"$W/err"
same "replay of a step from FIFOs" 0 $?
unfed
has "which it was" "$W/out" "epoch 1"
finish_tests
