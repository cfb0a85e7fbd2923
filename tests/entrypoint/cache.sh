#!/bin/bash
# cache.sh - compiled kernels, kept and carried elsewhere: `trainyard cache`, `trainyard compile`, keys cache and compiled.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/cache
mkdir -p "$W/data/train"
cp examples/digits/model.onnx "$W/model.onnx"
awk 'BEGIN { srand(1); for (r = 0; r < 64; r++) { for (c = 0; c < 64; c++) printf "%d,", int(17 * rand()); print r % 10 } }' \
    >"$W/data/train/digits.csv"
cat >"$W/train.yaml" <<'YAML'
model: model.onnx
inputs: {image: image}
loss: {softmax_cross_entropy: {logits: logits, labels: label}}
batch_size: 16
threads: 2
data:
  train:
    channel: train
    format: csv
    fields:
      image: {columns: 0-63, shape: [1, 8, 8], scale: 0.0625}
      label: {columns: 64, type: int64}
YAML
export HOME=$W/home TRAINYARD_CACHE_DIR=
unset XDG_CACHE_HOME
ty() {
    timeout -k 5 600 "$BIN/trainyard" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
train() { ty train "$W/train.yaml" --data-dir="$W/data" --output-dir="$W/run" --fresh --progress=none "$@"; }
weights() { sha256sum <"$W/run/model/model.safetensors"; }
entries() { ls "$1" 2>/dev/null | grep -c .; }

case_name=off
train
same "an empty TRAINYARD_CACHE_DIR: no cache" 0 $rc
same "nothing in the home folder" 0 "$(entries "$HOME/.cache/trainyard")"
reference=$(weights)
ty cache list
same "no cache to list" 78 $rc

case_name=home
unset TRAINYARD_CACHE_DIR
train
same "first run" 0 $rc
lacks "compiled" "$W/err" "from the cache"
same "kept in the home folder" 1 "$(entries "$HOME/.cache/trainyard")"
train
has "second run" "$W/err" "from the cache"
same "the same weights" "$reference" "$(weights)"
CC=/nonexistent train
same "another compiler is another entry, and this one is not there" 71 $rc
has "says so" "$W/err" "C compiler"

case_name=commands
ty cache list
same "list" 0 $rc
has "list: the model" "$W/out" "model.onnx"
has "list: the inputs" "$W/out" "image f32[16,1,8,8]"
has "list: the sum" "$W/out" "1 entry"
ty cache why-miss "$W/train.yaml" --data-dir="$W/data"
same "why-miss: none" 0 $rc
has "why-miss: none" "$W/out" "no miss"
ty cache why-miss "$W/train.yaml" --data-dir="$W/data" --batch_size=8
has "why-miss: the batch" "$W/out" "inputs: then image f32[16,1,8,8], label i64[16], now image f32[8,1,8,8]"
ty cache why-miss "$W/train.yaml" --data-dir="$W/data" --optimizer.sgd.lr=0.1
has "why-miss: the optimizer" "$W/out" "states: then "
train --batch_size=8
has "train says why" "$W/err" "now image f32[8,1,8,8]"
same "two entries" 2 "$(entries "$HOME/.cache/trainyard")"
ty cache clear
has "clear" "$W/out" "2 entries removed"
ty cache why-miss "$W/train.yaml" --data-dir="$W/data"
has "why-miss: empty" "$W/out" "has no entry"
ty cache frobnicate
same "unknown verb" 2 $rc
ty cache why-miss
same "why-miss without a recipe" 2 $rc

case_name=recipe
train --cache=kernels
same "relative to the recipe" 1 "$(entries "$W/kernels")"
train --cache=none
lacks "none" "$W/err" "from the cache"
train --cache=kernels
has "found" "$W/err" "from the cache"
echo x >>"$(echo "$W"/kernels/*/k0.so)"
train --cache=kernels
same "damage is no failure" 0 $rc
has "damage is told" "$W/err" "damaged"
same "the same weights" "$reference" "$(weights)"
touch "$W/file"
train --cache="$W/file"
same "not to be written: no failure" 0 $rc
same "one line" 1 "$(grep -c 'not kept' "$W/err")"

case_name=compiled
export TRAINYARD_CACHE_DIR=none
ty compile "$W/train.yaml" --data-dir="$W/data" --output="$W/compiled/"
same "compile" 0 $rc
has "says how it is used" "$W/out" "trainyard train $W/train.yaml --data-dir=$W/data --compiled=$W/compiled"
CC=/nonexistent train --compiled="$W/compiled"
same "no C compiler is needed" 0 $rc
same "the same weights" "$reference" "$(weights)"
CC=/nonexistent train --compiled="$W/compiled" --threads=3
same "nor the same number of threads" 0 $rc
sed -i 's/^data:/compiled: compiled\ndata:/' "$W/train.yaml"
CC=/nonexistent train
same "as a key of the recipe" 0 $rc
CC=/nonexistent train --batch_size=8
same "another step: refused" 78 $rc
has "another step: why" "$W/err" "compiled for another step: inputs: then image f32[16,1,8,8]"
sed -i 's/^\(field\tprocessor features\t\)/\1quantum /' "$W/compiled/entry.txt"
CC=/nonexistent train
same "another processor: refused" 78 $rc
has "another processor: which feature" "$W/err" "compiled for: quantum"
CC=/nonexistent train --compiled="$W/nothing"
same "no such folder" 66 $rc
mkdir -p "$W/mine" && touch "$W/mine/file"
ty compile "$W/train.yaml" --data-dir="$W/data" --output="$W/mine"
same "somebody's own folder stays" 73 $rc
same "somebody's own file stays" 1 "$(entries "$W/mine")"

# A model in C is compiled when it is opened: its code goes along.
case_name=model-in-c
cat >"$W/model.c" <<'C'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_var x = ty_flatten(net, ty_input(net, "image", "f32[batch,1,8,8]"), 1);
    ty_output(net, "logits", ty_linear(net, "out", ty_relu(net, ty_linear(net, "hidden", x, 16)), 10));
}
C
sed -i -e 's/^model: .*/model: model.c/' -e '/^compiled:/d' "$W/train.yaml"
train --max_steps=2
same "trained with a compiler" 0 $rc
reference=$(weights)
ty compile "$W/train.yaml" --data-dir="$W/data" --output="$W/code" --max_steps=2 --no_decay='[]'
same "compile" 0 $rc
use=$(sed -n 's/^use them: trainyard //p' "$W/out")
has "settings are words of a shell" "$W/out" "--max_steps=2 '--no_decay=[]' --compiled=$W/code"
eval "CC=/nonexistent ty $use --output-dir='$W/run' --fresh --progress=none"
same "no C compiler is needed" 0 $rc
same "the same weights" "$reference" "$(weights)"
CC=/nonexistent ty profile "$W/train.yaml" --data-dir="$W/data" --steps=1 --compiled="$W/code" --max_steps=2
same "nor by profile" 0 $rc
cp "$W/code/model.so" "$W/kept.so"
echo x >>"$W/code/model.so"
CC=/nonexistent train --max_steps=2 --compiled="$W/code"
same "damaged code is refused" 78 $rc
has "with the file" "$W/err" "model.so is not what was written"
cp "$W/kept.so" "$W/code/model.so"
sed -i 's/"hidden", x, 16/"hidden", x, 24/' "$W/model.c"
train --max_steps=2 --compiled="$W/code"
same "of another source it is refused, compiler or not" 78 $rc
has "and why" "$W/err" "compiled from another source"
echo 'enum { WIDTH = 16 };' >"$W/width.h"
sed -i -e 's/"hidden", x, 24/"hidden", x, WIDTH/' -e '1a # include "width.h"' "$W/model.c"
ty compile "$W/train.yaml" --data-dir="$W/data" --output="$W/code" --max_steps=2
same "a model of several files compiles" 0 $rc
has "but is not kept" "$W/err" "includes files of its own: its code is not kept"
ok "nor is what lay there before" test ! -e "$W/code/model.so" -a ! -e "$W/code/model.txt"
train --max_steps=2 --compiled="$W/code"
same "with a compiler it is used" 0 $rc
same "the same weights" "$reference" "$(weights)"

case_name=commit
same "make COMMIT=...: what version says" 1 "$(make -n -B variant="${TY_VARIANT:-release}" COMMIT=0123abcdef "${TY_BUILD:-build/release}/obj/entrypoint/command_info.o" V=1 | grep -c 'TY_COMMIT=.*0123abcdef')"

finish_tests
