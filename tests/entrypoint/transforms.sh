#!/bin/bash
# transforms.sh - texts, holes and categories in the data: learnt with the training data, kept with the model, applied
# wherever the model goes.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/transforms
mkdir -p "$W"
cat >"$W/model.c" <<'E2'
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_var n = ty_input(net, "numbers", "f32[batch,2]"), sex = ty_input(net, "sex", "f32[batch,2]");
    ty_var port = ty_input(net, "port", "i64[batch]"), cabin = ty_input(net, "cabin", "i64[batch]");
    ty_var both = ty_input(net, "both", "i64[batch]"), age = ty_input(net, "age", "f32[batch,4]");
    ty_var p = ty_embedding(net, "port", port, 4, 4), c = ty_embedding(net, "cabin", cabin, 50, 4);
    ty_var x = ty_embedding(net, "both", both, 100, 4);
    ty_var all = ty_concat(net, 1, n, sex, age, p, c, x);
    ty_output(net, "logits", ty_linear(net, "out", ty_relu(net, ty_linear(net, "hidden", all, 16)), 2));
}
E2
# Passengers: names with quotes and commas, holes in age, cabin and port. The same as a table and as JSON Lines.
passengers() { # SEED ROWS CSV JSONL
    awk -v seed="$1" -v rows="$2" -v csv="$3" -v json="$4" 'BEGIN {
        srand(seed); split("S S S S S C C Q", ports, " ")
        print "survived,name,sex,age,fare,port,cabin" >csv
        for (i = 0; i < rows; i++) {
            sex = rand() < 0.5 ? "male" : "female"; age = rand() < 0.3 ? "" : sprintf("%.1f", 5 + 60 * rand())
            fare = sprintf("%.2f", -30 * log(1 - rand())); port = rand() < 0.05 ? "" : ports[1 + int(8 * rand())]
            cabin = rand() < 0.4 ? "" : "C" int(100 * rand()); yes = (sex == "female") * 1.5 + (fare > 30) > 1 ? "yes" : "no"
            printf "%s,\"O\"\"Neil, Mr. %d\",%s,%s,%s,%s,%s\n", yes, i, sex, age, fare, port, cabin >csv
            printf "{\"survived\": \"%s\", \"sex\": \"\\u00%x%s\", \"fare\": %s", yes, sex == "male" ? 109 : 102,
                substr(sex, 2), fare >json
            printf ", \"numbers\": [%s, %s]", age == "" ? "null" : age, fare >json
            if (age != "") printf ", \"age\": %s", age >json
            printf ", \"port\": %s, \"cabin\": %s}\n", port == "" ? "null" : "\"" port "\"",
                cabin == "" ? "null" : "\"" cabin "\"" >json
        }
    }'
}
passengers 1 400 "$W/train.csv" "$W/train.jsonl"
passengers 2 100 "$W/test.csv" "$W/test.jsonl"
recipe() { # FORMAT NUMBERS
    cat <<E2
model: model.c
loss: {softmax_cross_entropy: {logits: logits, labels: survived}}
optimizer: {adamw: {lr: 1e-2}}
batch_size: 50
epochs: 3
log_every: 1
data:
  train:
    path: train.$1
    fields:
      both: {cross: [port, cabin], hash: 100}
$2
      sex: {vocabulary: [male, female], oov: 0, one_hot: auto}
      age: {buckets: {quantiles: 4}, missing: median, one_hot: auto}
      port: {vocabulary: auto, missing: most_frequent}
      cabin: {hash: 50, missing: none}
      survived: {classes: auto}
  validation: {path: test.$1, fields: same}
metrics: [accuracy]
E2
}
recipe csv '      numbers: {columns: "age,fare", missing: mean, normalize: standard}' >"$W/train.yaml"
train() { # ARGUMENT...: from within $W
    [[ " $* " != *" --fresh "* ]] || rm -rf "$W/run"
    (cd "$W" && timeout -k 5 600 "$BIN/trainyard" train "$@") >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
losses() { grep -oE '"(loss|accuracy)":[0-9.e-]+' "$W/run/output/data/metrics.jsonl"; }

case_name=train
train train.yaml --fresh
same "exit" 0 $rc
has "classes are in the log" "$W/err" 'field "survived": classes, 2 ids: no yes'
has "words too" "$W/err" 'field "port": vocabulary, 4 ids'
ok "what was learnt lies beside the model" test -f "$W/run/model/preprocessing.json"
has "words by frequency" "$W/run/model/preprocessing.json" '"words": ["S", "C", "Q"]'
has "labels in alphabetical order" "$W/run/model/preprocessing.json" '"words": ["no", "yes"]'
has "most frequent" "$W/run/model/preprocessing.json" '"missing": "S"'
first=$(losses)
accuracy=$(losses | grep accuracy | tail -1 | cut -d: -f2)
ok "it has learnt something ($accuracy)" awk -v a="$accuracy" 'BEGIN {exit !(a > 0.7)}'

case_name=resume
train train.yaml --fresh --epochs=2
train train.yaml --epochs=3
same "exit" 0 $rc
same "a resumed run ends as one that was not interrupted" "$(tail -3 <<<"$first")" "$(losses | tail -3)"

case_name=json
recipe jsonl '      numbers: {missing: mean, normalize: standard}' >"$W/json.yaml"
train json.yaml --fresh
same "exit" 0 $rc
same "JSON Lines give the same" "$first" "$(losses)"
train json.yaml --fresh --data.train.shuffle=false
in_order=$(losses)
train json.yaml --fresh --data.train.shuffle=false --data.train.access=stream --data.validation.access=stream
same "exit" 0 $rc
has "a stream of files is looked at before" "$W/err" 'transforms that learn: looked at 400 records in 1 files'
same "and gives the same" "$in_order" "$(losses)"
tail -n +2 "$W/train.csv" >"$W/rows.csv"
by_number='--data.train.fields={both: {cross: [port, cabin], hash: 100}, numbers: {columns: "3,4", missing: mean, normalize: standard}, sex: {columns: 2, vocabulary: [male, female], oov: 0, one_hot: auto}, age: {columns: 3, buckets: {quantiles: 4}, missing: median, one_hot: auto}, port: {columns: 5, vocabulary: auto, missing: most_frequent}, cabin: {columns: 6, hash: 50, missing: none}, survived: {columns: 0, classes: auto}}'
tail -n +2 "$W/test.csv" >"$W/test_rows.csv"
train train.yaml --fresh --data.train.shuffle=false --data.train.access=stream --data.train.path=rows.csv \
    --data.validation.path=test_rows.csv "$by_number"
same "exit" 0 $rc
same "rows of a table without a header too" "$in_order" "$(losses)"
train train.yaml --fresh

case_name=kept
cp "$W/run/model/preprocessing.json" "$W/kept.json"
{ head -1 "$W/train.csv"; tail -n 120 "$W/train.csv"; } >"$W/part.csv"
train train.yaml --fresh --data.train.path=part.csv --data.train.preprocessing=kept.json --max_steps=2
same "exit" 0 $rc
ok "what was learnt before is taken, whatever the data" cmp "$W/kept.json" "$W/run/model/preprocessing.json"

case_name=before
(cd "$W" && "$BIN/trainyard" data stats train.csv --recipe=train.yaml --preprocessing=before.json) >"$W/out" 2>"$W/err"
same "exit" 0 $?
settled() { tr -d '\n' <"$1" | grep -oE '"settled": *\{[^}]*\}'; }
same "data stats learns what training learns" "$(settled "$W/kept.json")" "$(settled "$W/before.json")"
train train.yaml --fresh --data.train.path=part.csv --data.train.preprocessing=before.json --max_steps=2
same "training takes it" 0 $rc
ok "to the same end" cmp "$W/kept.json" "$W/run/model/preprocessing.json"
(cd "$W" && "$BIN/trainyard" data stats train.csv --preprocessing=x.json) >"$W/out" 2>"$W/err"
same "without a recipe: refused" 2 $?

case_name=refused
bad() { # NAME TEXT ARGUMENT...
    train train.yaml --fresh --max_steps=1 "${@:3}"
    ok "$1: refused" test $rc -ne 0
    has "$1: says so" "$W/err" "$2"
}
sed '7s/^[a-z]*,/maybe,/' "$W/test.csv" >"$W/bad.csv"
bad "a label that training has not seen" 'bad.csv:7' --data.validation.path=bad.csv
has "a label that training has not seen: its name" "$W/err" '"maybe" is none of its 2 classes'
sed '9s/female\|male/unknown/' "$W/train.csv" >"$W/bad.csv"
bad "a word beside a closed vocabulary" '"unknown" is none of its 2 words' --data.train.path=bad.csv
sed '5s/,\([CSQ]\),/,NA,/' "$W/train.csv" >"$W/bad.csv"
bad "a hole" 'a value is missing' --data.train.path=bad.csv '--data.train.fields.port={vocabulary: auto}'
bad "a cross of numbers" 'expected one integer' '--data.train.fields.both={cross: [port, numbers], hash: 9}'
bad "a cross of what is not there" 'which is no field' '--data.train.fields.both={cross: [port, nothing], hash: 9}'
bad "two ways to an id" 'give one of them' '--data.train.fields.cabin={hash: 5, vocabulary: auto}'
bad "a vocabulary wider than its table" 'its transforms make 200 ids' '--data.train.fields.cabin={hash: 200, missing: x}'
bad "normalizing words" 'cannot be normalized' '--data.train.fields.port={vocabulary: auto, normalize: standard}'

case_name=run
train train.yaml --fresh
(cd "$W" && "$BIN/trainyard" run run/model/model.c --data test.csv --output-dir predictions) >"$W/out" 2>"$W/err"
same "raw rows" 0 $?
has "labels are written" "$W/out" 'logits.labels.txt'
agree=$(paste -d, <(tail -n +2 "$W/test.csv" | cut -d, -f1) "$W/predictions/logits.labels.txt" | awk -F, '{n += $1 == $2} END {print n / NR}')
same "the labels are as right as the evaluation said" "$(losses | grep accuracy | tail -1 | cut -d: -f2)" "$agree"
cut -d, -f 2- "$W/test.csv" >"$W/unlabelled.csv"
(cd "$W" && "$BIN/trainyard" run run/model/model.c --data unlabelled.csv --output-dir again) >"$W/out" 2>"$W/err"
ok "rows without labels give the same" cmp "$W/predictions/logits.npy" "$W/again/logits.npy"
rm "$W/run/model/preprocessing.json"
(cd "$W" && "$BIN/trainyard" run run/model/model.c --data test.csv) >"$W/out" 2>"$W/err"
ok "without preprocessing.json: refused" test $? -ne 0
has "without preprocessing.json: says so" "$W/err" 'preprocessing.json'

case_name=found
cat >"$W/iris.c" <<'E2'
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_output(net, "logits", ty_linear(net, "out", ty_input(net, "x", "f32[batch,2]"), 3));
}
E2
awk 'BEGIN {srand(3); split("setosa versicolor virginica", n, " "); print "length,width,species"
    for (i = 0; i < 150; i++) {k = i % 3; printf "%.1f,%.1f,%s\n", 1 + 2 * k + rand(), k + rand(), n[k + 1]}}' >"$W/iris.csv"
train iris.c --loss=softmax_cross_entropy --data=iris.csv --target=species --fresh --batch_size=30 --epochs=2
same "labels that are texts" 0 $rc
has "become classes" "$W/err" 'field "species": classes, 3 ids: setosa versicolor virginica'
train iris.c --loss=softmax_cross_entropy --data=iris.csv --target=width --fresh
ok "other texts are refused" test $rc -ne 0
has "other texts: what to do" "$W/err" 'species: {vocabulary: auto}'

case_name=lines
awk 'BEGIN {srand(5); split("red green blue grey", c, " ")
    for (i = 0; i < 200; i++) {
        printf "%s", i % 20 ? "" : "\n"
        for (n = 1 + int(4 * rand()); n > 0; n--) printf "%s%s", c[1 + int(4 * rand())], (n > 1 ? " " : "\n")
    }}' >"$W/lines.txt"
cat >"$W/lines.c" <<'E2'
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_var words = ty_embedding(net, "words", ty_input(net, "words", "i64[batch,4]"), 5, 8);
    ty_output(net, "logits", ty_linear(net, "out", ty_flatten(net, words, 1), 3));
}
E2
cat >"$W/lines.yaml" <<'E2'
model: lines.c
loss: {softmax_cross_entropy: {logits: logits, labels: whole}}
optimizer: {adamw: {lr: 1e-2}}
batch_size: 20
epochs: 1
log_every: 1
data:
  train:
    path: lines.txt
    format: lines
    fields:
      words: {member: text, split: " ", vocabulary: auto, max_length: 4}
      whole: {member: text, hash: 3}
E2
rows() { # what `trainyard run` makes of the lines
    (cd "$W" && "$BIN/trainyard" run run/model/model.c --data lines.txt --output-dir predictions) >"$W/out" 2>"$W/err"
    grep -o 'f32\[[0-9]*,3\]' "$W/out"
}
train lines.yaml --fresh --data.train.shuffle=false
same "exit" 0 $rc
has "each line is a sample, but for blank ones" "$W/err" '200 samples, 1 file'
same "the model takes lines" 'f32[200,3]' "$(rows)"
first=$(losses)
cp "$W/run/model/preprocessing.json" "$W/kept.json"
train lines.yaml --fresh --data.train.shuffle=false --data.train.access=stream --data.train.preprocessing=kept.json
same "lines that stream by give the same" "$first" "$(losses)"
train lines.yaml --fresh --data.train.blank_lines=true '--data.train.fields.words.missing=""' \
    '--data.train.fields.whole.missing=""' --data.train.fields.words.oov=0
same "exit" 0 $rc
has "blank lines too, where asked for" "$W/err" '210 samples, 1 file'
same "the model takes them too" 'f32[210,3]' "$(rows)"
finish_tests
