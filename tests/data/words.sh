#!/bin/bash
# words.sh - lists of texts in Parquet and Arrow: the same batches, training and predictions as of the same rows in JSON
# Lines; looks at the data, conversion, what happens where no field is declared; refusals.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/words
golden=$PWD/tests/golden/words
mkdir -p "$W/parquet" "$W/arrow" "$W/saved"
cp "$golden"/lists?.parquet "$W/parquet"
cp "$golden"/lists?.arrow "$W/arrow"
cp "$golden"/saved/* "$W/saved"
cp "$golden/words.jsonl" "$W"
cat >"$W/words.c" <<'C'
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_var ids = ty_input(net, "words", "i64[batch,8]");
    ty_output(net, "logits", ty_linear(net, "out", ty_flatten(net, ty_embedding(net, "all", ids, 15, 4), 1), 5));
}
C
sed 's/"words"/"tags"/' "$W/words.c" >"$W/tags.c"
recipe() { # PATH: to PATH.yaml
    cat >"$W/${1%.jsonl}.yaml" <<E2
model: words.c
loss: {softmax_cross_entropy: {logits: logits, labels: label}}
batch_size: 12
data:
  train:
    path: $1
    fields:
      words: {member: tokens, vocabulary: auto, missing: most_frequent, max_length: 8}
      label: {classes: auto}
E2
}
train() { # RECIPE ARGUMENT...: from within $W
    rm -rf "$W/run"
    (cd "$W" && timeout -k 5 600 "$BIN/trainyard" train "$@" --fresh --log_every=1 --seed=3) >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
losses() { grep -oE "\"split\":\"train\",\"loss\":[0-9.e-]+" "$W/run/output/data/metrics.jsonl"; }
batch() { # PATH: all rows in $got
    (cd "$W" && "$BIN/trainyard" data head "$1" --rows=100 --recipe="${1%.jsonl}.yaml") >"$W/out" 2>"$W/err"
    rc=$?
    got=$(grep -E '^  (words|label) ' "$W/out")
}
for data in words.jsonl parquet arrow saved; do recipe $data; done

case_name=same
batch words.jsonl
same "in JSON Lines" 0 $rc
wanted=$got
same "all rows" 120 "$(wc -l <<<"$wanted")"
for data in parquet arrow saved; do
    batch $data
    same "a batch of $data" "$wanted" "$got"
done
train words.yaml --epochs=2
same "training on JSON Lines" 0 $rc
same "ten steps" 10 "$(losses | wc -l)"
wanted=$(losses)
cp -r "$W/run" "$W/kept.words.jsonl"
for data in parquet arrow saved; do
    train $data.yaml --epochs=2
    same "training on $data" 0 $rc
    same "losses of $data, shuffled" "$wanted" "$(losses)"
    cp -r "$W/run" "$W/kept.$data"
done
train words.yaml --max_steps=5 --data.train.shuffle=false
wanted=$(losses)
for data in parquet arrow; do
    for processes in 1 2; do
        train $data.yaml --max_steps=5 --data.train.access=stream --data.train.shuffle=false --processes_per_host=$processes
        same "$data as a stream, by $processes" 0 $rc
        [ $processes = 1 ] && same "losses of a stream" "$wanted" "$(losses)"
    done
done

# What was learnt stays with the model.
case_name=predicted
predict() { # OF DATA: told.DATA by what was trained on OF
    "$BIN/trainyard" run "$W/kept.$1/model/model.c" --data "$W/$2" --output-dir "$W/told.$2" >"$W/out" 2>&1
    same "of $2" 0 $?
}
predict words.jsonl words.jsonl
for data in parquet arrow saved; do
    predict parquet $data
    ok "as of JSON Lines" cmp "$W/told.words.jsonl/logits.npy" "$W/told.$data/logits.npy"
done

case_name=look
"$BIN/trainyard" data check "$W/parquet" >"$W/out" 2>&1
same "check" 0 $?
has "how many" "$W/out" "60 samples, 2 files"
has "lists" "$W/out" "lists of texts    0 to 300 texts, mean 9.2, the longest at $W/parquet/lists1.parquet: row 20  10 empty"
lacks "nothing is left out" "$W/out" "left out"
"$BIN/trainyard" data check "$W/saved" --json >"$W/out" 2>&1
has "as JSON" "$W/out" '"least_texts": 0, "most_texts": 300, "empty": 10, "not_utf8": 0'
"$BIN/trainyard" data stats "$W/arrow" >"$W/out" 2>&1
same "stats" 0 $?
has "how many, as numbers" "$W/out" "tokens (texts)"
has "how long they are in all" "$W/out" "tokens (characters)"
"$BIN/trainyard" data head "$W/parquet" --rows=6 >"$W/out" 2>&1
same "head" 0 $?
has "a list" "$W/out" "tokens list  of 5 texts"
"$BIN/trainyard" data check "$golden/album.parquet" >"$W/out" 2>&1
same "lists of pictures" 0 $?
has "are left out" "$W/out" "left out, neither numbers nor texts: album.bytes"
"$BIN/trainyard" data convert "$W/parquet" "$W/made" >"$W/out" 2>&1
same "convert" 0 $?
python3 tests/data/examples.py plain "$W"/made/*.tfrecord >"$W/got" 2>&1
has "texts as they stand" "$W/got" "tokens bytes [b'lamb']"
"$BIN/trainyard" data plan "$W/parquet.yaml" >"$W/out" 2>&1
same "plan" 0 $?

# Nobody says what becomes of words: they are passed over.
case_name=undeclared
for data in parquet saved; do
    train tags.c "--loss={softmax_cross_entropy: {logits: logits, labels: label}}" --batch_size=12 --data=$data --max_steps=2
    same "$data: what the model takes is enough" 0 $rc
    lacks "$data: nothing is said of words" "$W/err" tokens
done

case_name=refused
sed '/vocabulary/s/{.*/{member: tokens}/' "$W/parquet.yaml" >"$W/plain.yaml"
train plain.yaml
same "no transform" 78 $rc
has "what they are" "$W/err" 'column "tokens" holds lists of texts, which feed no model as they are'
has "what to say" "$W/err" "words: {vocabulary: auto, max_length: 128}"
sed 's/, missing: most_frequent//' "$W/arrow.yaml" >"$W/nulls.yaml"
train nulls.yaml
same "a word is null" 65 $rc
has "where" "$W/err" "lists1.arrow: row 4"
finish_tests
