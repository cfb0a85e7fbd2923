#!/bin/bash
# cli.sh - `trainyard`: help, usage errors, versions, settings with their origins, start-up time.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/cli
mkdir -p "$W"
ty() {
    timeout -k 5 600 "$BIN/trainyard" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}

case_name=help
ty
same "no arguments: short help" 0 $rc
has "on stdout" "$W/out" "usage: trainyard"
for word in --help -h help; do
    ty $word
    same "$word" 0 $rc
    has "$word" "$W/out" "commands"
    same "$word: nothing on stderr" "" "$(cat "$W/err")"
done
for command in train check plan run compile cache version explain; do
    ty help $command
    same "help $command" 0 $rc
    cp "$W/out" "$W/page"
    ty $command --help
    same "$command --help: the same page" "$(cat "$W/page")" "$(cat "$W/out")"
    ty $command x y -h
    same "$command ... -h" 0 $rc
done
ty help recipe
same "help recipe" 0 $rc
for key in batch_size 'optimizer:' one_cycle learning_rate 'default 0.999' checkpoint reducing_gap; do
    has "names $key" "$W/out" "$key"
done
same "no line is wider than 160" "" "$(awk 'length > 160' "$W/out")"

case_name=help_key
key() { # TOPIC TEXT...
    ty help "$1"
    same "help $1" 0 $rc
    for text in "${@:2}"; do has "help $1" "$W/out" "$text"; done
}
key shuffle "data.train, data.validation: where samples come from" "a new order in every epoch"
key data.validation.shuffle "a new order in every epoch"
key data.train.fields.age.max_length "lists of any length get this one"
same "of one section alone" 1 "$(grep -c max_length "$W/out")"
key fields "a map, a list or same" "normalize "
key --batch_size "rows of a batch" "default 32"
key adamw "optimizer: adamw:" weight_decay
key optimizer "One of" adamw
key learning_rate "another name of optimizer.*.lr" "adamw"
key label_smoothing "loss: softmax_cross_entropy, keras_categorical_crossentropy"
key recipe.cache "folder of compiled kernels"
key image.crop "data.train.fields.NAME.image"
ty help help
same "help help: the list" 0 $rc

case_name=usage
usage() { # TEXT ARGS...: exit 2, on stderr
    local text=$1
    shift
    ty "$@"
    same "$*: exit" 2 $rc
    has "$*" "$W/err" "$text"
    same "$*: nothing on stdout" "" "$(cat "$W/out")"
}
usage 'did you mean "train"?' trian x.yaml
usage 'lists the commands' frobnicate
usage 'did you mean "check"?' help chek
usage 'did you mean "shuffle"?' help shufle
usage 'no key of a recipe' help optimizer.adamw.zzzzzzzz
usage 'RECIPE' train
usage 'unexpected argument "b"' check a b
usage 'did you mean "--batch"?' check a --bach 3
usage 'needs a value' check a --batch
usage 'takes no value' check a --json=yes
usage 'codes look like' explain banana
usage 'codes look like' explain E9999

case_name=explain
for status in $(sed -n 's/^ERROR_CODE([A-Z_]*, *[0-9]*, *\([0-9]*\),.*/\1/p' base/error_codes.def | sort -u); do
    [ "$status" = 1 ] || { ty explain "$status"; has "exit status $status" "$W/out" "exit status $status: "; }
done
ty explain E0107
same "E0107" 0 $rc
has "E0107" "$W/out" "typing mistake"
ty explain E0100
has "the tool has a status of its own for it" "$W/out" 'exit status: 64 of `train`, 2 of `trainyard`'
ty explain 107
has "a bare number" "$W/out" "E0107"

case_name=version
ty version
same "one line" 1 "$(wc -l <"$W/out")"
cp "$W/out" "$W/one"
ty --version
same "--version" "$(cat "$W/one")" "$(cat "$W/out")"
ty version --verbose
same "first line" "$(cat "$W/one")" "$(head -1 "$W/out")"
has "compiler" "$W/out" "compiler"
ty version --json
has "json" "$W/out" '"version": "'
for words in version "cache list --dir=$W" "train absent.yaml"; do
    TY_LOG=loud ty $words
    same "$words: log lines of a wrong kind" 2 $rc
    has "$words: told" "$W/err" "TY_LOG=loud: expected debug, info"
done
if [ "${TY_VARIANT:-release}" = release ]; then
    # Of 20 each, one after the other: what this shell, its machine and a program that does nothing take is in both.
    best=999999 least=999999
    for _ in $(seq 20); do
        begun=$(date +%s%N)
        "$BIN/trainyard" version >/dev/null
        took=$((($(date +%s%N) - begun) / 1000))
        [ $took -lt $best ] && best=$took
        begun=$(date +%s%N)
        /bin/true
        took=$((($(date +%s%N) - begun) / 1000))
        [ $took -lt $least ] && least=$took
    done
    ok "starts in 5 ms, or in four times what /bin/true takes: $best us, $least us" test $best -lt $((least > 1250 ? 4 * least : 5000))
else
    skip "start-up time" "only a release build is quick"
fi

case_name=origin
mkdir -p "$W/job"
cat >"$W/job/train.yaml" <<'Y'
model: model.onnx
loss: {softmax_cross_entropy: {logits: logits, labels: label}}
optimizer: {adamw: {lr: 1e-3}}
batch_size: 64
data:
  train: {channel: train, fields: {image: {columns: 0-63}, label: {columns: 64}}}
Y
ty train "$W/job/train.yaml" --origin --lr=0.5 --epochs 7
same "exit" 0 $rc
has "from the file" "$W/out" "train.yaml:4"
ok "an alias" grep -qE '^optimizer\.adamw\.lr +0\.5 +argument --lr$' "$W/out"
ok "two words" grep -qE '^epochs +7 +argument --epochs$' "$W/out"
ok "a default" grep -qE '^seed +1 +default$' "$W/out"
ty train "$W/job/train.yaml" --origin --lerning_rate=1
same "unknown setting" 78 $rc
has "unknown setting" "$W/err" 'did you mean "learning_rate"?'
has "its origin" "$W/err" '--> argument --lerning_rate'
ty train "$W/job/absent.yaml" --origin
same "no such recipe" 66 $rc
has "names it" "$W/err" absent.yaml
sed -i 's/batch_size/bach_size/' "$W/job/train.yaml"
ty train "$W/job/train.yaml" --origin
same "unknown key" 78 $rc
has "the form" "$W/err" 'error[E0107]: '
has "the place" "$W/err" 'train.yaml:4'
has "carets and suggestion" "$W/err" '^^^^^^^^^ did you mean "batch_size"?'

case_name=colour
lacks "no colour into a file" "$W/err" $'\033'
CLICOLOR_FORCE=1 ty train "$W/job/train.yaml" --origin
has "forced" "$W/err" $'\033[1;31merror'
CLICOLOR_FORCE=1 NO_COLOR=1 ty train "$W/job/train.yaml" --origin
lacks "NO_COLOR wins" "$W/err" $'\033'

case_name=check
ty check "$W/absent.onnx"
same "no such model" 66 $rc
ty check "$W/absent.onnx" --json
has "as JSON" "$W/out" '{"error": {"code": "E0700"'
head -c 3000 /dev/urandom >"$W/noise.onnx"
ty check "$W/noise.onnx"
same "no model" 65 $rc
has "says so" "$W/err" "error[E03"

finish_tests
