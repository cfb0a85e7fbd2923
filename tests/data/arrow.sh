#!/bin/bash
# arrow.sh - Arrow's files, as Hugging Face's datasets save them: the same training as from Parquet, by number and as a
# stream; looks at the data, conversion, refusals.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/arrow
mkdir -p "$W/columns" "$W/pictures"
cp examples/digits/model.onnx "$W/digits.onnx"
cp tests/golden/parquet/digits.parquet "$W/columns"
cp -r tests/golden/arrow/digits "$W/saved"
train() { # RECIPE ARGUMENT...: from within $W
    rm -rf "$W/run"
    (cd "$W" && timeout -k 5 600 "$BIN/trainyard" train "$@" --log_every=1 --seed=3) >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
losses() { grep -oE "\"split\":\"train\",\"loss\":[0-9.e-]+" "$W/run/output/data/metrics.jsonl"; }
recipe() { # NAME PATH FIELDS
    printf 'model: digits.onnx\nloss: softmax_cross_entropy\nbatch_size: 32\ndata: {train: {path: %s, fields: %s}}\n' "$2" "$3" >"$W/$1.yaml"
}
recipe columns columns '{image: {columns: 0-63, scale: 0.0625}, label: {columns: label}}'
recipe saved saved '{image: {scale: 0.0625}, label: {}}'

case_name=same
train columns.yaml --fresh --max_steps=6
same "from Parquet" 0 $rc
wanted=$(losses)
train saved.yaml --fresh --max_steps=6
same "as datasets save it" 0 $rc
same "losses, shuffled" "$wanted" "$(losses)"
train columns.yaml --fresh --max_steps=9 --data.train.shuffle=false
wanted=$(losses)
for processes in 1 2; do
    train saved.yaml --fresh --max_steps=9 --data.train.access=stream --data.train.shuffle=false --processes_per_host=$processes
    same "as a stream, by $processes" 0 $rc
    [ $processes = 1 ] && same "losses" "$wanted" "$(losses)"
done
train digits.onnx --loss=softmax_cross_entropy --data=saved --fresh --max_steps=1
same "no fields declared" 0 $rc

case_name=look
"$BIN/trainyard" data check "$W/saved" >"$W/out" 2>&1
same "check" 0 $?
has "how many" "$W/out" "320 samples, 2 files"
"$BIN/trainyard" data check tests/golden/arrow/file.arrow >"$W/out" 2>&1
same "all types" 0 $?
has "what is left out" "$W/out" "left out, neither numbers nor texts: map"
has "lists of texts" "$W/out" "tags        lists of texts    0 to 3 texts"
"$BIN/trainyard" data check tests/golden/arrow/views.arrow >"$W/out" 2>&1
same "views" 0 $?
has "texts of views" "$W/out" "0 to 53 characters, mean 15.8, the longest at tests/golden/arrow/views.arrow: row 4"
has "views of lists" "$W/out" "runs, away"
"$BIN/trainyard" data check tests/golden/arrow/polars.arrow >"$W/out" 2>&1
same "as polars writes it" 0 $?
has "categories" "$W/out" "mean 21.6, the longest at tests/golden/arrow/polars.arrow: row 1"
"$BIN/trainyard" data head tests/golden/arrow/other.arrow --rows=2 >"$W/out" 2>&1
has "a dictionary's text" "$W/out" "words text  of 2 characters"
"$BIN/trainyard" data convert "$W/saved" "$W/made" >"$W/out" 2>&1
same "convert" 0 $?
recipe made made '{image: {scale: 0.0625}, label: {}}'
train made.yaml --fresh --max_steps=9 --data.train.shuffle=false
same "losses of what was converted" "$wanted" "$(losses)"

case_name=refused
head -c 9000 tests/golden/arrow/digits/data-00000-of-00002.arrow >"$W/cut.arrow"
"$BIN/trainyard" data check "$W/cut.arrow" >"$W/out" 2>&1
same "cut short" 65 $?
has "where" "$W/out" "cut.arrow"
finish_tests
