#!/bin/bash
# label_size.sh - which columns of a table are labels, as the ContentType of a channel says it, in File and in Pipe mode.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash

# Rows of three features and their sums in front: two labels.
rows() { awk 'BEGIN { for (i = 0; i < 64; i++) { a = i % 7; b = i % 5; c = i % 3; printf "%d,%d,%d,%d,%d\n", a + b, b - c, a, b, c } }'; }
# tree NAME COLUMNS OUT CONTENT_TYPE [MODE]: so many features become OUT numbers; nothing of the data is declared.
tree() {
    begin "$1"
    mkdir -p "$ML/input/data/train"
    echo '{"train": {"ContentType": "'"$4"'", "TrainingInputMode": "'"${5:-File}"'"}}' >"$ML/input/config/inputdataconfig.json"
    cat >"$ML/code/model.c" <<C
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_var x = ty_input(net, "x", "f32[batch,$2]");
    ty_output(net, "y", ty_linear(net, "out", x, $3));
}
C
    printf 'model: model.c\nloss: %s\nbatch_size: 8\nepochs: 2\nseed: 3\ndata: {train: {shuffle: false%s}}\n' \
        "${LOSS:-mse}" "${FIELDS:+, fields: $FIELDS}" >"$ML/code/train.yaml"
    rows | eval "${FILTER:-cat}" >"$ML/input/data/train/part.csv"
}
losses() { grep -oE '"split":"train","loss":[0-9.e-]+' "$ML/output/data/metrics.jsonl"; }
pipe_it() {
    mv "$ML/input/data/train/part.csv" "$SCRATCH/part.csv"
    rmdir "$ML/input/data/train"
    mkfifo "$ML/input/data/train_0" "$ML/input/data/train_1"
    (for n in 0 1; do cat "$SCRATCH/part.csv" >"$ML/input/data/train_$n"; done) &
    feeder=$!
}
both() { # NAME COLUMNS OUT TYPE FIELDS: what is found is what is declared, and in Pipe mode too
    FIELDS=$5 tree "$1_declared" "$2" "$3" text/csv
    run --log_every=1
    same "declared" 0 $rc
    wanted=$(losses)
    tree "$1_found" "$2" "$3" "$4"
    run --log_every=1
    same "found" 0 $rc
    same "the same losses" "$wanted" "$(losses)"
    tree "$1_pipe" "$2" "$3" "$4" Pipe
    pipe_it
    run --log_every=1 --data.train.pipe_timeout=60
    same "in Pipe mode" 0 $rc
    same "the same losses there" "$wanted" "$(losses)"
    kill $feeder 2>/dev/null
    wait $feeder 2>/dev/null
}
both two 3 2 "text/csv; label_size=2" '{x: {columns: 2-4}, y: {columns: 0-1}}'
FILTER="cut -d, -f1,3-" both one 3 1 "text/csv;label_size=1;charset=utf-8" '{x: {columns: 1-3}, y: {columns: 0}}'
FILTER="cut -d, -f1,3-" both usual 3 1 "text/csv" '{x: {columns: 1-3}, y: {columns: 0}}'
# No label: what the model makes is its loss.
FILTER="cut -d, -f3-" LOSS="{mean: {output: y}}" both none 3 1 "text/csv;label_size=0" '{x: {columns: 0-2}}'

# Fields that are declared without columns are the labels, and the rest; columns that are declared count.
bare() { # NAME CONTENT_TYPE FIELDS [MODE]
    FIELDS=$3 tree "$1" 3 2 "$2" "${4:-File}"
    [ "${4:-File}" = File ] || pipe_it
    run --log_every=1 --data.train.pipe_timeout=60
    [ "${4:-File}" = File ] || { kill $feeder 2>/dev/null; wait $feeder 2>/dev/null; }
}
bare given text/csv '{x: {columns: 2-4}, y: {columns: 0-1}}'
same "columns" 0 $rc
wanted=$(losses)
for mode in File Pipe; do
    bare bare_$mode "text/csv;label_size=2" '{y: {}, x: {}}' $mode
    same "none, $mode mode" 0 $rc
    same "the same losses, $mode mode" "$wanted" "$(losses)"
    has "they are told" "$W/err" 'field "y": columns 0-1: label_size=2 of the content type'
done
bare half "text/csv;label_size=2" '{x: {columns: 2-4}, y: {}}'
same "columns of the others alone" "0 $wanted" "$rc $(losses)"
bare against "text/csv;label_size=1" '{x: {columns: 2-4}, y: {columns: 0-1}}'
same "other columns than the labels" "0 $wanted" "$rc $(losses)"
has "that is told" "$W/err" 'field "y" has columns 0-1, and the channel'
bare three "text/csv;label_size=2" '{x: {}, z: {}, y: {}}'
ok "two fields for the rest" test $rc != 0
has "both are named" "$W/err" 'does not say which columns fields "z" and "x" are'
bare no_label "text/csv;label_size=0" '{x: {}, y: {}}'
ok "a label, and none is said" test $rc != 0
has "it is named" "$W/err" 'no column is left for field "y"'

tree refused 3 1 "text/csv;label_size=0"
run
ok "a loss that needs a target" test $rc != 0
has "what is missing" "$W/err" "no field is left for the target"
has "why" "$W/err" "label_size=0 of the content type: no column is a target"
tree broken 3 1 "text/csv;label_size=two"
run
ok "no number" test $rc != 0
has "its words" "$W/err" 'label_size: expected a number of columns'
tree many 3 1 "text/csv;label_size=5"
run
ok "nothing but labels" test $rc != 0
has "how many there are" "$W/err" "label_size=5 of the channel's content type, and the table has 5 columns"
tree other 3 2 "text/csv;label_size=2"
echo '{"train": {"ContentType": "text/csv;label_size=2"}, "test": {"ContentType": "text/csv;label_size=1"}}' >"$ML/input/config/inputdataconfig.json"
cp -r "$ML/input/data/train" "$ML/input/data/test"
sed -i 's/^data: .*/data: {train: {}, validation: {channel: test}}/' "$ML/code/train.yaml"
run
ok "channels that differ" test $rc != 0
has "both are named" "$W/err" "its content type says label_size=1, and that of data.train label_size=2"
finish_tests
