#!/bin/bash
# data.sh - `trainyard data`: what data are said to be, and the same numbers in another format.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/data
mkdir -p "$W"
data() {
    timeout -k 5 300 "$BIN/trainyard" data "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
printf 'a,name,b,label\n1,x,0.5,2\n2,y,,4\n3,z,0.5,6\n4,x,0.5,8\n' >"$W/table.csv"
printf '1 7:0.5 300:1\n0 2:4 9:-1\n' >"$W/clicks.libsvm"

case_name=check
data check "$W/table.csv"
same "exit" 0 $rc
has "format and samples" "$W/out" "4 samples, 1 file, "
has "a column" "$W/out" "a      f32[]"
has "a missing value and its place" "$W/out" "1 missing, first at $W/table.csv:3"
has "text" "$W/out" "1 to 1 characters, mean 1.0, the longest at $W/table.csv:2"
has "a range" "$W/out" "label  f32[]             2 to 8"
printf ',a,b\n0,0.5,nan\n1,x,3\n' >"$W/index.csv" # as pandas writes its index
data check "$W/index.csv"
has "a column without a name" "$W/out" "Unnamed: 0  f32[]             0 to 1"
has "a NaN and its place" "$W/out" "b           f32[]             3 to 3  1 not finite, first at $W/index.csv:2"
data stats "$W/table.csv" --target=name
same "a target of texts: exit" 2 $rc
has "says what there is" "$W/err" "a text becomes one by --recipe=FILE"
printf 'model: m.onnx\nloss: {mse: {}}\ndata: {train: {path: x, fields: {n: {columns: name, classes: auto}}}}\n' >"$W/r.yaml"
data check "$W/table.csv" --recipe="$W/r.yaml"
has "fields as a recipe declares them" "$W/out" "  n  i64[]             0 to 2"
data head "$W/table.csv" --recipe="$W/r.yaml" --rows=1
has "their samples" "$W/out" "  n i64[]  0"
data check "$W/clicks.libsvm" --json
same "JSON: exit" 0 $rc
has "its samples" "$W/out" '"samples": 2'
has "a dense row" "$W/out" '"type": "f32[300]"'
data check "$W/clicks.libsvm" --index-base=zero
has "another base" "$W/out" "f32[301]"
printf '1 7:x\n' >"$W/bad.libsvm"
data check "$W/bad.libsvm"
ok "a fault: status $rc" test $rc != 0
has "its place" "$W/err" "bad.libsvm:1"
data chek "$W/table.csv"
same "an unknown verb" 2 $rc
has "a suggestion" "$W/err" "trainyard data check"
data head "$W/table.csv" --json
same "an option of another verb" 2 $rc

case_name=lines
cat >"$W/rows.jsonl" <<'J'
{"age": 50, "city": null, "tags": ["x", "why"], "more": {"k": 1}, "label": "no"}
{"age": 6, "city": "Oslo", "tags": ["", "y"], "more": {"k": 1}, "label": "yes", "fare": 2.5}
J
data check "$W/rows.jsonl"
same "exit" 0 $rc
has "several texts of a sample" "$W/out" "tags   texts             0 to 3 characters, mean 1.2, the longest at $W/rows.jsonl:1  1 empty"
has "a text that is missing in the first" "$W/out" "city   text              0 to 4 characters"
has "a number that the first has not" "$W/out" "fare   f32[]             1 missing, first at $W/rows.jsonl:1"
has "what is left out" "$W/out" "left out, neither numbers nor texts: more"
data head "$W/rows.jsonl" --rows=1
has "texts in samples" "$W/out" "  tags texts  of 1 3 characters"
cat >"$W/lines.yaml" <<'Y'
model: m.onnx
loss: {mse: {}}
data: {train: {path: x, fields: {numbers: {columns: "age,fare", missing: mean, normalize: standard}}}}
Y
data check "$W/rows.jsonl" --recipe="$W/lines.yaml"
ok "columns of what is no table: status $rc" test $rc != 0
has "the place" "$W/err" "--> $W/rows.jsonl"
has "what to say instead" "$W/err" "columns are of tables: a field of jsonlines data is one value, by its name, or member: NAME"
sed -i 's/columns: "age,fare"/member: ages/' "$W/lines.yaml"
data check "$W/rows.jsonl" --recipe="$W/lines.yaml"
has "a name that no record has" "$W/err" 'no record has a value called "ages"'

case_name=head
data head "$W/table.csv" --rows 2
same "two samples" 2 "$(grep -c '^/' "$W/out")"
has "the second's place" "$W/out" "table.csv:3"
has "its values" "$W/out" "label f32[]  4"

case_name=stats
printf '{"a": 3, "b": 1}\n{"a": null, "b": 2}\n{"b": 2}\n{"a": 5, "b": 0}\n' >"$W/gaps.jsonl"
data stats "$W/gaps.jsonl"
has "what is missing counts as no number" "$W/out" "a                3            4            1            5    0.0%"
has "and is told" "$W/out" "a      is missing in 50 % of the samples"
printf 'a,b\n3,1\n,2\n3,0\n' >"$W/gaps.csv"
data stats "$W/gaps.csv"
has "also where the others are one number" "$W/out" "a      is missing in 33.3 % of the samples, and the same in all others"
data stats "$W/table.csv" --svg "$W/stats.svg"
same "exit" 0 $rc
has "a field that follows the target" "$W/out" "follows the target (correlation 1.0000)"
has "a constant one" "$W/out" "is the same in all samples"
ok "the picture is XML" xmllint --noout "$W/stats.svg"
data stats "$W/table.csv" --json
mean=$(grep -o '"name": "label".*' "$W/out" | grep -o '"mean": [0-9.]*')
same "the mean of 2, 4, 6, 8" '"mean": 5' "${mean%.0}"
data stats "$W/table.csv" --target=price
same "an unknown target" 2 $rc

# What says that there is no value is declared: in the recipe, on the command line, and from then on with the model.
case_name=missing
printf 'a,kind,y\n1,red,3\n-1,n/a,5\n3,-,7\n5,blue,-1\n' >"$W/marked.csv"
data check "$W/marked.csv"
same "a number like any other" 0 $rc
lacks "nothing is missing" "$W/out" "missing"
data check "$W/marked.csv" --missing-values=-1,n/a,-
has "a number" "$W/out" "1 missing, first at $W/marked.csv:3"
has "in another column" "$W/out" "1 missing, first at $W/marked.csv:5"
cat >"$W/marked.yaml" <<'Y'
model: none.c
loss: mse
data:
  train:
    path: marked.csv
    missing_values: [-1, n/a, "-"]
    fields: {a: {missing: mean}, kind: {vocabulary: auto, missing: none}, y: {missing: 0}}
Y
data stats "$W/marked.csv" --recipe="$W/marked.yaml" --preprocessing="$W/marked.json"
same "of a recipe" 0 $rc
has "kept with what was learnt" "$W/marked.json" '"missing_values": ["-1", "n/a", "-"]'
has "a mean without them" "$W/marked.json" '"missing": [3.0]'
has "words without them" "$W/marked.json" '"words": ["none", "red", "blue"]'
data convert "$W/marked.csv" "$W/marked" --missing-values=-1,n/a,-
data check "$W/marked"
has "converted: no feature" "$W/out" "1 missing, first at"
sed -i 's/^    missing_values.*/    missing_values: {a: 1}/' "$W/marked.yaml"
data stats "$W/marked.csv" --recipe="$W/marked.yaml"
ok "no list" test $rc != 0
has "what is expected" "$W/err" "missing_values: expected a list of texts and numbers"

case_name=convert
data convert "$W/clicks.libsvm" "$W/records"
same "exit" 0 $rc
data head "$W/records"
has "label, ids and values" "$W/out" "ids i64[2]  7 300"
has "negative numbers" "$W/out" "values f32[2]  4 -1"
cut -d, -f1,3- "$W/table.csv" >"$W/numbers.csv"
data convert "$W/numbers.csv" "$W/small" --file-bytes 100
same "small files" 4 "$(find "$W/small" -name 'part-*.tfrecord' | wc -l)"
data check "$W/small"
has "a missing number has no feature" "$W/out" '1 missing, first at'
data convert "$W/table.csv" "$W/text"
same "text goes along: exit" 0 $rc
finish_tests
