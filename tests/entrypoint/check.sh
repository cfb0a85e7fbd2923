#!/bin/bash
# check.sh - `trainyard check`: what a model is, in text and JSON; faults; exit statuses; arithmetic against PyTorch's.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/check
mkdir -p "$W"
ty() {
    timeout -k 5 600 "$BIN/trainyard" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
golden() { # WHAT: $W/out is tests/golden/check/WHAT, byte for byte (GOLDEN=write makes it so)
    [ "${GOLDEN:-}" = write ] && cp "$W/out" "tests/golden/check/$1"
    same "$1" "" "$(diff "tests/golden/check/$1" "$W/out" | head -20)"
}
# number KEY...: the value of nested keys of the JSON in $W/out
number() {
    local text key
    text=$(cat "$W/out")
    for key in "$@"; do
        [[ $text == *"\"$key\": "* ]] || { echo missing; return; }
        text=${text#*"\"$key\": "}
    done
    echo "${text%%[,\}]*}"
}

# Byte for byte where nothing but a product is counted: how other operations are taken apart is the compiler's affair.
case_name=text
ty check tests/fuzz/corpus/step/logistic_regression.onnx
same "can be trained" 0 $rc
same "nothing on stderr" "" "$(cat "$W/err")"
golden logistic_regression.txt
ty check examples/digits/model.onnx
same "digits" 0 $rc
costs() { grep -oE '^  (forward|training)|products [^,]*|convolutions [^,]*|^  (conv[12]|hidden|out) .*' "$1"; }
cp "$W/out" "$W/two_rows"
ok "a layer is a line" grep -qE '^  conv2 +Conv +f32\[N,32,4,4\] +4,608 +147 k +295 k *$' "$W/out"
has "composites" "$W/out" "found       2 batch norm"
ty check examples/digits/model.onnx --batch 64
same "a sample costs the same in any batch" "$(costs "$W/two_rows")" "$(costs "$W/out")"
ty check examples/digits/model.onnx --all
has "--all" "$W/out" "MaxPool"

case_name=json
ty check tests/fuzz/corpus/step/logistic_regression.onnx --json
same "exit" 0 $rc
golden logistic_regression.json

# PyTorch's exporter writes each module with all that it lies in; a layer is the innermost one.
case_name=modules
model=${TY_SHARED:-../shared}/data/train-cases/llama_gqa/model.onnx
if [ -f "$model" ]; then
    ty check "$model"
    ok "the innermost module, once" grep -qE '^  layers\.0\.q +' "$W/out"
    lacks "no path of modules" "$W/out" "layers/"
else
    skip "names of nested modules" "no $model"
fi

ty check examples/gpt-c/model.c
same "a model in C" 0 $rc
ok "its layers by the names of their weights" grep -qE '^  h\.0\.mlp\.up +linear +f32\[N,64,256\] +16,640 ' "$W/out"
ok "or by the line" grep -qE '^  model\.c:[0-9]+ +matmul ' "$W/out"

case_name=faults
sed 's/MaxPool/MaxPoop/g' examples/digits/model.onnx >"$W/two.onnx"
(cd "$W" && timeout 600 "$BIN/trainyard" check two.onnx >out 2>err)
same "cannot be trained" 65 $?
golden two_faults.txt
ty check "$W/two.onnx" --json
same "the same status" 65 $rc
same "both" 2 "$(number n_faults)"
has "not trainable" "$W/out" '"trainable": false'
has "what to do" "$W/out" '"help": "did the exporter mean MaxPool?"'

case_name=recipe
ty check examples/digits/model.onnx --recipe examples/digits/train.yaml
same "fits" 0 $rc
has "says so" "$W/out" "the recipe fits"

# Data are looked at where they are: types and shapes, from headers and first rows.
case_name=data
has "not here" "$W/out" 'data.train was not looked at: where channel "train" lies is not known here'
mkdir -p "$W/data/train" "$W/data/test"
for i in $(seq 200); do
    (for k in $(seq 64); do printf '%d,' $((k * i % 17)); done; echo $((i % 10)))
done >"$W/data/train/digits.csv"
head -20 "$W/data/train/digits.csv" >"$W/data/test/digits.csv"
ty check examples/digits/model.onnx --recipe examples/digits/train.yaml --data-dir "$W/data"
same "fits" 0 $rc
has "says so" "$W/out" "all of it can be trained, and recipe and data fit"
has "names it" "$W/out" "data.validation fits: csv, $W/data/test"
ty check examples/digits/model.onnx --recipe examples/digits/train.yaml --data-dir "$W/data" --json
has "in JSON" "$W/out" '"looked_at": true'
cut -d, -f1-60 "$W/data/test/digits.csv" >"$W/short.csv" && mv "$W/short.csv" "$W/data/test/digits.csv"
ty check examples/digits/model.onnx --recipe examples/digits/train.yaml --data-dir "$W/data"
same "too few columns" 78 $rc
has "says where" "$W/err" "data.validation: "
has "says what" "$W/err" "the data have 60 columns"
cp "$W/data/train/digits.csv" "$W/data/test/digits.csv"
sed 's/0-63, shape: .1, 8, 8./0-48, shape: [1, 7, 7]/' examples/digits/train.yaml >"$W/seven.yaml"
cp examples/digits/model.onnx "$W/model.onnx"
ty check "$W/model.onnx" --recipe "$W/seven.yaml" --data-dir "$W/data"
same "another shape" 65 $rc
has "names both" "$W/err" '"image" is f32[batch,1,8,8], but field "image" gives f32[64,1,7,7]'
rm "$W/data/train/digits.csv" && rmdir "$W/data/train"
ty check examples/digits/model.onnx --recipe examples/digits/train.yaml --data-dir "$W/data"
has "gone" "$W/out" "data.train was not looked at: $W/data/train is not there"

case_name=recipe
sed 's/{logits: logits/{logits: logit/' examples/digits/train.yaml >"$W/train.yaml"
ty check examples/digits/model.onnx --recipe "$W/train.yaml"
same "another output" 78 $rc
has "names it" "$W/err" '"logit"'

case_name=arguments
for bad in "--batch 0" "--batch x" "--dim seq" "--dim seq=0"; do
    ty check examples/digits/model.onnx $bad
    same "$bad" 2 $rc
done

# Products and convolutions of a sample, forward and with the gradient, by torch.utils.flop_counter (torch 2.15; attention by
# its MATH back end, so that its products are seen): the counts must agree to the last one. Digits is in the tree; the
# others are the benchmark's workloads, where bench/compare has written them, or under TY_WORKS. One number is not torch's:
# the LSTM's gradient goes on to the states before the first step, a product of 2 * 256 * 1024 for each of its two layers,
# which torch leaves out (357662720).
case_name=torch
agrees() { # MODEL FORWARD TRAINING
    ty check "$1" --json
    local work forward=0 training=0
    for work in products convolutions recurrent; do
        [[ $(number by_work "$work" forward) == missing ]] && continue
        forward=$(echo "$forward + $(number by_work $work forward)" | sed 's/\.0//g' | { read -r e; echo $(($e)); })
        training=$(echo "$training + $(number by_work $work training)" | sed 's/\.0//g' | { read -r e; echo $(($e)); })
    done
    same "$1: forward" "$2" "$forward"
    same "$1: training" "$3" "$training"
}
agrees examples/digits/model.onnx 183552 532224
works=${TY_WORKS:-build/bench/works}
while read -r name forward training; do
    if [ -f "$works/$name/model.onnx" ]; then
        agrees "$works/$name/model.onnx" "$forward" "$training"
    else
        skip "$name" "no $works/$name/model.onnx (bench/compare writes it)"
    fi
done <<'WORKS'
mlp 1337344 3209216
cnn 23984896 71565312
lstm 119570432 358711296
deepfm 340032 1020096
chargpt 6052577280 18157731840
gpt2 15963095040 47889285120
bert 22348434432 67045303296
resnet50 8178368512 24299077632
WORKS

# 100 MB and 443 nodes. CPU time, since others may use the machine; ten times, since clocks of processes are coarse.
case_name=speed
if [ "${TY_VARIANT:-release}" != release ]; then
    skip "ready in 100 ms" "only a release build is quick"
elif [ ! -f "$works/resnet50/model.onnx" ]; then
    skip "ready in 100 ms" "no $works/resnet50/model.onnx"
else
    TIMEFORMAT='%U %S'
    took=$({ time for _ in 1 2 3 4 5 6 7 8 9 10; do "$BIN/trainyard" check "$works/resnet50/model.onnx" >/dev/null; done; } 2>&1)
    read -r user system <<<"$took"
    ms=$(((10#${user/./} + 10#${system/./}) / 10))
    ok "ready in 100 ms: $ms" test "$ms" -lt 100
fi

finish_tests
