#!/bin/bash
# bad.sh - bad records in a training: refused, or left out, counted and named in the log, the metrics and the summary.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash

spoil() { sed -i -E "$1" "$ML/input/data/train/part.csv"; }
bits_of() { sha256sum <"$ML/model/model.safetensors"; }
on_bad() { sed -i "s/train: {channel: train,/train: {channel: train, $1,/" "$ML/code/train.yaml"; }

perceptron refused
spoil '5s/$/,1/'
run
ok "a row with another number of fields: status $rc" test $rc = 65
has "its place" "$ML/output/failure" "part.csv:5"

perceptron left_out
spoil '5s/$/,1/; 9s/^[0-9]+/many/'
on_bad 'on_bad: skip, max_bad: 2'
run
same "exit" 0 $rc
has "the first in the log" "$W/err" "bad record left out (number 1): $ML/input/data/train/part.csv:5"
has "the second" "$W/err" "bad record left out (number 2): $ML/input/data/train/part.csv:9"
has "the banner" "$W/err" "318 samples, 1 file, 43.1 KB csv, 2 bad records left out"
has "metric lines" "$W/out" "bad_records=2"
has "the file of metrics" "$ML/output/data/metrics.jsonl" '"bad_records":2'
has "the summary" "$W/err" "bad records 2 left out of data.train, the first: $ML/input/data/train/part.csv:5"
left_out=$(bits_of)

# The same rows without the bad ones train the same model, to the last bit.
perceptron taken_out
spoil '5d; 9d'
run
same "exit" 0 $rc
same "the model" "$left_out" "$(bits_of)"

perceptron too_many
spoil '5s/$/,1/; 9s/^[0-9]+/many/; 11s/,/;/g'
on_bad 'on_bad: skip, max_bad: 2'
run
ok "one too many: status $rc" test $rc = 65
has "the limit" "$ML/output/failure" "one bad record more than the 2 that may be left out"
has "its place" "$ML/output/failure" "part.csv:11"

# In a stream they are seen when their batch has been cut: it has fewer rows then, and the rest as before.
perceptron streamed
spoil '5s/$/,1/; 9s/^[0-9]+/many/'
on_bad 'access: stream, on_bad: skip, max_bad: 2'
run
same "exit" 0 $rc
has "metric lines" "$W/out" "bad_records="
has "the summary" "$W/err" "left out of data.train, the first: $ML/input/data/train/part.csv:"
perceptron streamed_too_many
spoil '5s/$/,1/; 9s/^[0-9]+/many/; 11s/,/;/g'
on_bad 'access: stream, on_bad: skip, max_bad: 2'
run
ok "one too many: status $rc" test $rc = 65
has "the limit" "$ML/output/failure" "more than the 2 that may be left out"

case_name=check
data() {
    "$BIN/trainyard" data "$@" >"$W/out" 2>"$W/err"
    rc=$?
}
data check "$ML/input/data/train/part.csv" --skip-bad=3 --json
same "exit" 0 $rc
has "how many" "$W/out" '"bad_records": 2'
data check "$ML/input/data/train/part.csv" --skip-bad=many
same "no number" 2 $rc
finish_tests
