#!/bin/bash
# graph.sh - pages for people: `trainyard graph --html` and `trainyard profile --html`, against the numbers of --json and the dumps.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/graph
mkdir -p "$W/data/train"
TOOL=$(realpath "${TY_BUILD:-build/${TY_VARIANT:-release}}/tools/json_value")
awk 'BEGIN {for (i = 0; i < 64; i++) print i % 7 ",1,2,0,1,3,2,1," i % 3}' >"$W/data/train/rows.csv"
cat >"$W/model.c" <<'C'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_var x = ty_linear(net, "first<&>", ty_input(net, "x", "f32[batch,8]"), 16);
    for (int i = 0; i < 12; i++) {
        ty_var y = ty_layer_norm(net, ty_text(net, "blocks.%d.norm", i), x);
        x = ty_add(net, x, ty_linear(net, ty_text(net, "blocks.%d.down", i),
                                     ty_gelu(net, ty_linear(net, ty_text(net, "blocks.%d.up", i), y, 32)), 16));
    }
    ty_output(net, "logits", ty_linear(net, "last", x, 3));
}
C
cat >"$W/train.yaml" <<'Y'
model: model.c
inputs: {x: x}
loss: {softmax_cross_entropy: {labels: label}}
optimizer: {adamw: {lr: 1e-3}}
batch_size: 16
data: {train: {channel: train, format: csv, fields: {x: {columns: 0-7, shape: [8]}, label: {columns: 8, type: int64}}}}
Y
ty() {
    timeout -k 5 600 "$BIN/trainyard" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
count() { grep -oF "$2" "$1" | wc -l; }
# page WHAT FILE: one file that stands alone, and is well-formed.
page() {
    ok "$1: written" test -s "$2"
    if command -v xmllint >/dev/null; then
        ok "$1: well-formed" xmllint --noout "$2"
    else
        skip "$1: well-formed" "no xmllint here"
    fi
    same "$1: nothing is loaded from elsewhere" 0 "$(sed 's|http://www.w3.org/1999/xhtml||' "$2" | grep -cE 'https?:|src=|<link|<script|url\(|@import')"
    same "$1: what folds is closed" "$(count "$2" '<details')" "$(count "$2" '</details>')"
    has "$1: light and dark" "$2" "prefers-color-scheme:dark"
}

case_name=graph
ty graph "$W/train.yaml" --data-dir="$W/data" --html "$W/graph.html"
same "exit" 0 $rc
page graph "$W/graph.html"
has "names are text" "$W/graph.html" 'first&lt;&amp;&gt;'
lacks "and no markup" "$W/graph.html" 'first<&>'
ok "layers that repeat are one row" grep -qE 'blocks\.[012] – (10|11)<em>[0-9]+ alike' "$W/graph.html"
ok "and stand there once" test "$(count "$W/graph.html" '>down<')" -le 3
for word in forward gradient update "layer_norm\|norm" products optimizer 'kernel of' 'dot f32[16,'; do
    ok "shows $word" grep -qE "$(sed 's/\[/\\[/; s/\\|/|/' <<<"$word")" "$W/graph.html"
done
# Its calls and operations are those that are compiled.
ty compile "$W/train.yaml" --data-dir="$W/data" --output="$W/compiled"
ty profile "$W/train.yaml" --data-dir="$W/data" --steps=2 --json --dump-dir "$W/dump" --html "$W/profile.html"
same "profile" 0 $rc
cp "$W/out" "$W/profile.json"
calls=$("$TOOL" "$W/profile.json" tape_calls | tr -d '[]')
# Concatenations whose parts lie where they belong are drawn, and no calls.
same "every call is on the tape" "$calls" $(($(grep -oE '^call [0-9]+, ' "$W/graph.html" | sort -u | wc -l) - $(grep -cx 'parts in place: nothing to do' "$W/graph.html")))
grep -oE '^%[0-9]+ = .*' "$W/graph.html" | sed 's/^\(.*<pre>\)//; s/&gt;/>/g; s/&lt;/</g; s/<.*//' | sort -u >"$W/shown"
sed 's/ @".*//' "$W"/dump/graph.*.split.txt | sort -u >"$W/dumped"
ok "operations are lines of the dump" test "$(wc -l <"$W/shown")" -gt 40
same "all of them" "" "$(comm -23 "$W/shown" "$W/dumped" | head -3)"
grep -oE '^%[0-9]+ = (exp|erf|rsqrt)\(' "$W/dumped" | sort -u >"$W/dear"
ok "among them the dear ones" test "$(grep -cF -f "$W/dear" "$W/shown")" -ge 1

case_name=after
ty graph "$W/train.yaml" --data-dir="$W/data" --html "$W/none.html" --after lover
same "a pass that is none" 2 $rc
has "which there are" "$W/err" "passes: step, straighten, attend, pack, epilogue, lower, mask"
ok "and no page" test ! -e "$W/none.html"
for pass in $(sed -n 's/,//g; s/.*passes: //p' "$W/err"); do
    ty graph "$W/train.yaml" --data-dir="$W/data" --html "$W/$pass.html" --after "$pass"
    same "$pass" 0 $rc
    page "$pass" "$W/$pass.html"
done
ok "the last one too" test -s "$W/split.html"
has "composites are whole at first" "$W/step.html" " = norm("
lacks "and taken apart later" "$W/lower.html" " = norm("
ty graph "$W/train.yaml" --data-dir="$W/no-data" --html "$W/absent/graph.html"
has "a folder that is not there is refused before the data are looked for" "$W/err" "$W/absent"

case_name=profile
page profile "$W/profile.html"
for word in 'Kinds of work' 'Against the machine' 'of what is possible' 'a step, median' 'ty_k_' 'reached'; do
    has "shows $word" "$W/profile.html" "$word"
done
drawn=$(paste <("$TOOL" "$W/profile.json" tape_calls '*' call_flop) <("$TOOL" "$W/profile.json" tape_calls '*' call_ms) | awk '$1 > 0 && $2 > 0' | wc -l)
same "a dot for every call with arithmetic" "$drawn" "$(count "$W/profile.html" '<circle')"
ty profile "$W/train.yaml" --data-dir="$W/data" --steps=2 --accumulate=2 --html "$W/micro.html"
same "micro-batches" 0 $rc
has "which of them" "$W/micro.html" "of the last micro-batch"

finish_tests
