#!/bin/bash
# text.sh - language models from outside: plain text, files of tokens, a tokenizer that stays with the model.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
export OMP_NUM_THREADS=1 TRAINYARD_CACHE_DIR=$SCRATCH/cache # networks of one shape share their kernels
golden=tests/golden/tokenizer

# text NAME LINES...: a GPT of examples/gpt-c, smaller, on words that come again and again; LINES go below data.train.
text() {
    begin "$1"
    mkdir -p "$ML/input/data/train" "$ML/input/data/test"
    echo '{"train": {}, "test": {}}' >"$ML/input/config/inputdataconfig.json"
    echo '{}' >"$ML/input/config/hyperparameters.json"
    sed 's/T = 64, C = 64, HEADS = 4, LAYERS = 2, V = 128/T = 16, C = 32, HEADS = 2, LAYERS = 1, V = 512/; s/batch,64/batch,16/' \
        examples/gpt-c/model.c >"$ML/code/model.c"
    awk 'BEGIN {for (i = 0; i < 400; i++) printf "%s hello world it'"'"'s a user of the words%s", i % 10, i % 7 ? " " : "\n"}' \
        >"$ML/input/data/train/a.txt"
    head -c 3000 "$ML/input/data/train/a.txt" >"$ML/input/data/test/b.txt"
    cat >"$ML/code/train.yaml" <<EOF
model: model.c
loss: {softmax_cross_entropy: {logits: logits, labels: next}}
optimizer: {adamw: {lr: 3e-3}}
batch_size: 8
epochs: 20
max_steps: 24
data:
  train:
    window: 16
    fields: {ids: {member: inputs}, next: {member: targets}}
$(printf '    %s\n' "${@:2}")
  validation: {channel: test, fields: same}
seed: 1
EOF
}
loss() { grep -o 'val_loss=[0-9.e+-]*' "$W/out" | tail -n 1 | cut -d= -f2; }
not_0() { ! "$@" >/dev/null 2>&1; }
weights() { sha256sum <"$ML/model/model.safetensors"; }

text characters
run
same "status" 0 $rc
ok "it learned" awk -v l="$(loss)" 'BEGIN {exit !(l + 0 > 0 && l + 0 < 3.5)}'
has "the numbers of characters stay with the model" "$ML/model/tokenizer.json" '"WordLevel"'
has "and are on its list" "$ML/model/model.json" tokenizer.json
printf 'Q' >>"$ML/input/data/test/b.txt"
rm -rf "$ML/model" "$ML/checkpoints" "$ML/output"
run
same "a character that the training data lack" 65 $rc
has "is named" "$W/err" 'the character "Q" (U+0051) is not in the training data'

text tokenizer "tokenizer: gpt2.json" "end_token: <|endoftext|>"
cp $golden/gpt2.json "$ML/code/"
run
same "status" 0 $rc
ok "it learned" awk -v l="$(loss)" 'BEGIN {exit !(l + 0 > 0 && l + 0 < 3.5)}'
ok "the tokenizer stays with the model" cmp $golden/gpt2.json "$ML/model/tokenizer.json"
with_text=$(weights)
data=$ML/input/data

text tokens "tokenizer: gpt2.json"
cp $golden/gpt2.json "$ML/code/"
for part in train test; do
    rm "$ML/input/data/$part/"*
    ok "tokens of $part" "$BIN/trainyard" data tokenize "$data/$part" "$ML/input/data/$part/all.bin" \
        --tokenizer=$golden/gpt2.json '--end-token=<|endoftext|>' >"$W/said"
done
has "it says how many" "$W/said" "as uint16, from 1 file in"
run
same "status" 0 $rc
same "the same model as from text" "$with_text" "$(weights)"
printf '\377\377' >>"$ML/input/data/train/all.bin"
rm -rf "$ML/model" "$ML/checkpoints" "$ML/output"
run
same "a token beyond the tokenizer's" 65 $rc
has "is named" "$W/err" "is 65535, but the tokenizer's last one is 419"
sed -i '/tokenizer:/d' "$ML/code/train.yaml"
run
same "and without a tokenizer" 65 $rc
has "by the model's table" "$W/err" "found 65535"

text random "symbols: bytes" "starts: random" "stride: 8"
run
whole=$(weights)
rm -rf "$ML/model" "$ML/checkpoints" "$ML/output"
hyper '{"max_steps": "11"}'
run
same "status" 0 $rc
hyper '{}'
rm -rf "$ML/model"
run
has "it goes on" "$W/err" "resuming at step 11"
same "random places are the same after a resume" "$whole" "$(weights)"

# Sentences of a table: ids, and where they are.
text sentences
cat >"$ML/code/model.c" <<'EOF'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_var ids = ty_input(net, "ids", "i64[batch,12]");
    ty_var mask = ty_input(net, "mask", "f32[batch,12]");
    ty_var x = ty_embedding(net, "words", ids, 512, 8); /* [B,12,8] */
    x = ty_mul(net, x, ty_reshape(net, mask, ty_dims(-1, 12, 1)));
    ty_output(net, "logits", ty_linear(net, "out", ty_reshape(net, x, ty_dims(-1, 96)), 2));
}
EOF
awk 'BEGIN {print "text,label"; for (i = 0; i < 64; i++) print (i % 2 ? "\"hello, world of words\"," : "it is the user of them,") i % 2}' \
    >"$ML/input/data/train/a.csv"
rm "$ML/input/data/train/a.txt"
cp $golden/bert.json "$ML/code/tok.json"
cat >"$ML/code/train.yaml" <<'EOF'
model: model.c
loss: {softmax_cross_entropy: {logits: logits, labels: label}}
optimizer: {adamw: {lr: 3e-2}}
batch_size: 16
epochs: 10
data:
  train:
    fields:
      ids: {columns: text, tokenizer: tok.json, max_length: 12}
      mask: {columns: text, tokenizer: tok.json, tokens: mask, max_length: 12, type: float32}
      label: {columns: label, type: int64}
seed: 1
EOF
run
same "status" 0 $rc
ok "it learned" awk '/^step=40 / {split($3, l, "="); seen = 1; exit !(l[2] < 0.2)} END {if (!seen) exit 1}' "$W/out"
ok "the tokenizer stays with the model" cmp $golden/bert.json "$ML/model/tokenizer.json"
has "which says that it is used" "$ML/model/preprocessing.json" '"tokenizer"'

begin refused
ok "tokenize needs to know how" not_0 "$BIN/trainyard" data tokenize "$golden/texts" "$W/out.bin"
"$BIN/trainyard" data tokenize "$golden/texts" "$W/out.bin" --tokenizer=$golden/none.json >"$W/out" 2>"$W/err"
same "no tokenizer" 66 $?
ok "nothing is left" test ! -e "$W/out.bin"
"$BIN/trainyard" data check "$data/train/a.txt" --window=16 >"$W/out" 2>"$W/err"
same "data check looks at windows" 0 $?
has "of text" "$W/out" text
finish_tests
