#!/bin/bash
# parquet.sh - Parquet tables: the same training as from CSV, as a stream too; looks at the data, what is kept for the
# model, refusals.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/parquet
mkdir -p "$W/columns" "$W/table"
examples/digits/data "$W/raw" || exit 1
cp examples/digits/model.onnx "$W/digits.onnx"
cp tests/golden/parquet/digits.parquet "$W/columns" # the first 320 rows of the table, of 100 in a row group
{ # with the names of the Parquet's columns
    seq -f 'p%g' 0 63 | tr '\n' ','
    echo label
    head -320 "$W/raw/train.csv"
} >"$W/table/digits.csv"
train() { # RECIPE ARGUMENT...: from within $W
    rm -rf "$W/run"
    (cd "$W" && timeout -k 5 600 "$BIN/trainyard" train "$@" --log_every=1 --seed=3) >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
losses() { grep -oE "\"split\":\"train\",\"loss\":[0-9.e-]+" "$W/run/output/data/metrics.jsonl"; }

case_name=same
fields='fields: {image: {columns: 0-63, scale: 0.0625}, label: {columns: label}}'
for name in table columns; do
    printf 'model: digits.onnx\nloss: softmax_cross_entropy\nbatch_size: 32\ndata: {train: {path: %s, %s}}\n' $name "$fields" >"$W/$name.yaml"
    train $name.yaml --fresh --max_steps=6
    same "$name" 0 $rc
    [ $name = table ] && wanted=$(losses)
done
same "losses, shuffled" "$wanted" "$(losses)"
train columns.yaml --fresh --max_steps=6 --processes_per_host=2
same "on two processes" 0 $rc

# Row groups one after the other: in their order they train what samples by number do.
case_name=stream
train columns.yaml --fresh --max_steps=9 --data.train.shuffle=false
same "by number" 0 $rc
wanted=$(losses)
for processes in 1 2; do
    train columns.yaml --fresh --max_steps=9 --data.train.access=stream --data.train.shuffle=false --processes_per_host=$processes
    same "by $processes" 0 $rc
    [ $processes = 1 ] && same "losses" "$wanted" "$(losses)"
done
has "why" "$W/err" "data.train is read as a stream: the recipe says so"
mkdir -p "$W/large"
python3 tests/data/parquet_write.py "$W/large/a.parquet" 64 8000 12 || exit 1
python3 tests/data/parquet_write.py "$W/large/b.parquet" 64 8000 12 || exit 1
printf 'model: digits.onnx\nloss: softmax_cross_entropy\nbatch_size: 1000\ndata: {train: {path: large, shuffle: false, %s}}\n' \
    'fields: {image: {columns: 0-63}, label: {columns: label}}' >"$W/large.yaml"
peak() { # KiB
    grep -o 'memory      peak [^,]*' "$W/err" | awk '{split("B KiB MiB GiB", u, " "); for (i in u) if (u[i] == $4) printf "%d", $3 * 1024 ^ (i - 2)}'
}
# Looked at file by file: what is told is of all, the memory that of one.
case_name=looks
mkdir -p "$W/several" "$W/other"
for i in 1 2 3 4 5 6; do cp "$W/large/a.parquet" "$W/several/$i.parquet"; done
"$BIN/trainyard" data check "$W/large/a.parquet" >"$W/one" 2>"$W/err"
"$BIN/trainyard" data check "$W/several" >"$W/out" 2>"$W/err"
same "several" 0 $?
has "all samples" "$W/out" "576,000 samples, 6 files"
ok "their ranges" test "$(tail -n +2 "$W/one")" = "$(tail -n +2 "$W/out")"
(ulimit -v 150000 && "$BIN/trainyard" data check "$W/several" >"$W/out" 2>"$W/err")
same "in little memory" 0 $?
(ulimit -v 150000 && "$BIN/trainyard" data head "$W/several" >"$W/out" 2>"$W/err")
same "the first rows, too" 0 $?
ok "five of them" test "$(grep -c '1.parquet: row' "$W/out")" = 5
sed 's/large, /several, /' "$W/large.yaml" >"$W/several.yaml"
(ulimit -v 150000 && cd "$W" && "$BIN/trainyard" data plan several.yaml >"$W/out" 2>"$W/err")
same "a plan" 0 $?
has "its samples" "$W/out" "576 batches an epoch: 576,000 samples"
cp "$W/columns/digits.parquet" "$W/other/1.parquet"
cp "$W/large/a.parquet" "$W/other/2.parquet"
"$BIN/trainyard" data check "$W/other" >"$W/out" 2>&1
same "files of other columns" 65 $?
has "which" "$W/out" "2.parquet"
has "which column" "$W/out" 'the file has no column "p0"'

case_name=stream
train large.yaml --fresh
same "by number" 0 $rc
held=$(peak) wanted=$(losses)
train large.yaml --fresh --memory=90MiB
same "in little memory" 0 $rc
has "why" "$W/err" "data.train is read as a stream: decoded, its columns take more than half of the memory"
same "losses of the whole epoch" "$wanted" "$(losses)"
same "all of it" 192 "$(losses | wc -l)"
[ "${TY_VARIANT:-release}" = release ] &&
    ok "48 MB are not held: it took $(peak) KiB, by number $held KiB" test $((held - $(peak))) -gt 30000
train large.yaml --fresh --memory=90MiB --epochs=2 --schedule=cosine
same "a schedule over the whole run, whose length the footers say" 0 $rc
has "a stream" "$W/err" "data.train is read as a stream: decoded"
"$BIN/trainyard" data plan "$W/large.yaml" >"$W/out" 2>&1
has "a plan" "$W/out" "because: decoded, its columns take less than half of the memory"
has "where it lies" "$W/out" "decoded columns, in memory"
"$BIN/trainyard" data plan "$W/large.yaml" --mode=FastFile >"$W/out" 2>&1
has "FastFile, too" "$W/out" "because: decoded, its columns take less than half of the memory"

case_name=look
"$BIN/trainyard" data check "$W/columns" >"$W/out" 2>&1
same "check" 0 $?
has "how many" "$W/out" "320 samples, 1 file"
"$BIN/trainyard" data stats "$W/columns" --json >"$W/out" 2>&1
same "stats" 0 $?
ok "all ten classes" grep -qE '"classes of label": \{("[0-9]": [0-9]+(, )?){10}\}' "$W/out"
cp tests/golden/parquet/table1.parquet "$W"
"$BIN/trainyard" data head "$W/table1.parquet" --rows=2 >"$W/out" 2>&1
same "head" 0 $?
has "a text" "$W/out" "label"
"$BIN/trainyard" data convert "$W/table1.parquet" "$W/made" >"$W/out" 2>&1
same "convert" 0 $?
python3 tests/data/examples.py plain "$W"/made/*.tfrecord >"$W/got" 2>&1
same "three records" 3 "$(wc -l <"$W/got")"
has "numbers and texts" "$W/got" "label bytes [b'x']"
has "integers" "$W/got" "n int [7]"
"$BIN/trainyard" data check tests/golden/parquet/lists.parquet >"$W/out" 2>&1
same "lists of several lengths" 0 $?
"$BIN/trainyard" data convert tests/golden/parquet/lists.parquet "$W/lists" >"$W/out" 2>&1
same "lists" 0 $?
python3 tests/data/examples.py plain "$W"/lists/*.tfrecord >"$W/got" 2>&1
has "as long as they are" "$W/got" "ids int [1, 2, 3]"
has "or of one" "$W/got" "ids int [4]"

# A table of pictures, as data sets are published, needs no declaration.
case_name=pictures
"$BIN/trainyard" data stats tests/golden/parquet/pictures.parquet >"$W/out" 2>&1
same "stats" 0 $?
has "sizes" "$W/out" "image (width)"
has "formats" "$W/out" "PNM"

# What fields were made of stays with the model, which takes CSV or Parquet then.
case_name=kept
train columns.yaml --fresh --max_steps=2 --data.train.fields.label.classes=auto
same "classes" 0 $rc
kept=$(find "$W/run" -name preprocessing.json | head -1)
has "names" "$kept" '"words": ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]'
"$BIN/trainyard" run "${kept%/*}/model.onnx" --data "$W/columns" --output-dir "$W/told" >"$W/out" 2>&1
same "run" 0 $?

# Lists of any length are as long as the model's input of their name, if nobody says otherwise.
case_name=lengths
mkdir -p "$W/ragged"
cp tests/golden/parquet/lists.parquet "$W/ragged"
cat >"$W/words.c" <<'C'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_var ids = ty_input(net, "ids", "i64[batch,2]");
    ty_output(net, "y", ty_linear(net, "out", ty_flatten(net, ty_embedding(net, "words", ids, 10, 4), 1), 2));
}
C
printf 'model: words.c\nloss: {mse: {target: same}}\nbatch_size: 3\nepochs: 3\ndata: {train: {path: ragged}}\n' >"$W/words.yaml"
train words.yaml --fresh
same "undeclared" 0 $rc
has "told" "$W/err" 'field "ids": lists are filled up with 0, or cut, to the 2 numbers that the model takes'
wanted=$(losses)
printf 'model: words.c\nloss: {mse: {target: same}}\nbatch_size: 3\nepochs: 3\ndata: {train: {path: ragged, fields: {ids: {max_length: 2}, same: {}}}}\n' >"$W/words.yaml"
train words.yaml --fresh
same "declared" 0 $rc
same "losses" "$wanted" "$(losses)"

case_name=refused
head -c 3000 "$W/columns/digits.parquet" >"$W/cut.parquet"
"$BIN/trainyard" data check "$W/cut.parquet" >"$W/out" 2>&1
same "a file that was cut" 65 $?
has "its place" "$W/out" "cut.parquet"
has "what is wrong" "$W/out" "the file does not end with PAR1"
sed 's/columns: label/columns: lable/' "$W/columns.yaml" >"$W/wrong.yaml"
train wrong.yaml --fresh --max_steps=1
has "a column that is none" "$W/err" "lable"
finish_tests
