#!/bin/bash
# plan.sh - `trainyard plan`, and what rests on it: batch_size auto and the peak that is announced before training.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/plan
mkdir -p "$W/data"
examples/digits/data "$W/raw" || exit 1
mkdir -p "$W/data/train" "$W/data/test"
cp "$W/raw/train.csv" "$W/data/train/" && cp "$W/raw/test.csv" "$W/data/test/"
TOOL=$(realpath "${TY_BUILD:-build/${TY_VARIANT:-release}}/tools/json_value")
value() { "$TOOL" "$W/out" "$@"; } # of the JSON in $W/out
ty() {
    timeout -k 5 600 "$BIN/trainyard" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
plan() { ty plan examples/digits/train.yaml --data-dir="$W/data" "$@"; }
# paid_step: after how many steps compiling has paid, a fraction, by the other numbers of the JSON in $W/out. Not compiled, a
# product takes what it takes, and all else what moving its operands and results takes, one call an operation.
paid_step() {
    local kind seconds=0 bytes=0
    for kind in products convolutions recurrent; do
        seconds+=" + $(value work $kind at_least_s 2>/dev/null || echo 0)"
        bytes+=" + $(value work $kind bytes 2>/dev/null || echo 0)"
    done
    awk "BEGIN {plain = $seconds + ($(value unfused_bytes) - ($bytes)) / $(value machine bytes_per_s)
        printf \"%.9g\n\", $(value compile_s) / (plain - $(value step_at_least_s))}"
}
# is_paid_step: break_even_step is the first whole step behind that.
is_paid_step() { awk "BEGIN {x = $(paid_step); n = $(value break_even_step); exit !(n > 0 && n - 1 <= x * 1.000001 && x <= n * 1.000001)}"; }
# number KEY...: the first number behind these keys, one inside the other, of the JSON in $W/out
number() {
    local text key
    text=$(cat "$W/out")
    for key in "$@"; do
        text=${text#*"\"$key\": "}
    done
    echo "${text%%[,\}]*}"
}

case_name=text
plan
same "exit" 0 $rc
same "nothing on stderr" "" "$(cat "$W/err")"
for word in 'at the peak' 'moments' 'largest buffers at the peak' 'conv1' 'largest batch' '32 GiB' 'at least' 'convolutions' \
    'compiling' 'break-even'; do
    has "says $word" "$W/out" "$word"
done
batches=$(for gib in 1 2 4 8 16 32; do sed -n "s/^ *$gib GiB  *\([0-9,]*\)  takes .*/\1/p" "$W/out"; done | tr -d ,)
same "a largest batch for each of 1, 2, 4, 8, 16 and 32 GiB" 6 "$(wc -l <<<"$batches")"
same "which grows" "$(sort -n <<<"$batches")" "$batches"
ok "nearly as the memory does" awk "BEGIN {exit !($(sed -n 4p <<<"$batches") > 7 * $(sed -n 1p <<<"$batches"))}"
for kind in products convolutions elementwise reductions pooling optimizer; do
    ok "a floor for $kind" grep -qE "^ +$kind +[0-9]+ .* [0-9.]+(us|ms|s)$" "$W/out"
done
ok "break-even is a step" grep -qE '^  break-even  step [0-9,]+: one call an operation, with its operands in memory, would move ' "$W/out"
ok "no file is left behind" test ! -e run

case_name=json
plan --json
same "exit" 0 $rc
same "13,754 trained and 96 statistics" $((4 * (13754 + 96))) "$(number weight_bytes)"
ok "two moments and a counter or two" test "$(number moment_bytes)" -ge $((2 * 4 * 13754)) -a \
    "$(number moment_bytes)" -le $((2 * 4 * 13754 + 64))
same "the total is the sum" "$(number memory total_bytes)" \
    "$(($(number memory state_bytes) + $(number memory temporary_bytes) + $(number memory workspace_bytes) + $(number memory input_bytes) + $(number memory process_bytes)))"
ok "the plan is no better than its bound" test "$(number memory temporary_bytes)" -ge "$(number bound_bytes)"
same "the peak is the bound" "$(number bound_bytes)" "$(number peak bytes)"
same "what is alive there adds up" "$(number peak bytes)" \
    "$(($(number peak activations) + $(number peak temporaries) + $(number peak "gradients of activations") + $(number peak "gradients of weights")))"
same "the step's floor is that of its kinds of work" "$(value step_at_least_s | awk '{printf "%.6g", $1}')" \
    "$(value work '*' at_least_s | awk '{s += $1} END {printf "%.6g", s}')"
ok "break-even, $(value break_even_step), is compiling over what a step gains: $(paid_step)" is_paid_step

# ---- the largest buffers ----
# As many layers as asked for, each wider than the one before it, so that no two buffers of activations are alike.
layers() {
    mkdir -p "$W/layers"
    cp examples/digits-c/train.yaml "$W/layers/"
    cat >"$W/layers/model.c" <<END
#include <stdio.h>
#include <trainyard/model.h>
void model(ty_net *net)
{
    char name[16];
    ty_var x = ty_flatten(net, ty_input(net, "image", "f32[batch,1,8,8]"), 1);
    for (int i = 10; i < 10 + $1; i++) {
        snprintf(name, sizeof name, "hidden%d", i);
        x = ty_relu(net, ty_linear(net, name, x, 16 * i));
    }
    ty_output(net, "logits", ty_linear(net, "out", x, 10));
}
END
    ty plan "$W/layers/train.yaml" --data-dir="$W/data" --svg "$W/layers.svg" "${@:2}"
}
# Numbers in tensors of these types, a line each: f32[64,160].
elements() { awk -F '[][,]' '{n = 1; for (i = 2; i < NF; i++) n *= $i; print n}'; }
# Types of what the picture shows at call $1.
alive() {
    awk -v at="$1" '/<title>/ {getline; type = $1; getline; if ($2 + 0 <= at && at <= $4 + 0) print type}' "$W/layers.svg" |
        sed 's/,$//'
}
case_name=largest
layers 30 --json
same "exit" 0 $rc
same "twenty are listed" "[20]" "$(value largest_buffers)"
sizes=$(value largest_buffers '*' bytes)
same "the largest come first" "$(sort -rn <<<"$sizes")" "$sizes"
ok "of more than twenty: $(alive "$(value peak call)" | wc -l)" test "$(alive "$(value peak call)" | wc -l)" -gt 20
same "those that the picture shows" "$(alive "$(value peak call)" | elements | sort -rn | head -20)" \
    "$(value largest_buffers '*' type | elements)"
ok "they are not all of the peak" test "$(($(paste -sd+ <<<"$sizes")))" -lt "$(value peak bytes)"
same "activations are of the widest layers" "$(seq 39 -1 20 | head -n "$(value largest_buffers '*' use | grep -cx activations)" | sed 's/^/hidden/')" \
    "$(paste -d' ' <(value largest_buffers '*' use) <(value largest_buffers '*' layer) | sed -n 's/^activations .* //p')"
layers 30
rows=$(sed -n '/^  largest buffers at the peak/,/^$/p' "$W/out" | sed '1d;$d')
same "as many lines" 20 "$(wc -l <<<"$rows")"
same "each with its layer" 20 "$(grep -cE '^ +[0-9.]+ [KM]iB .* f32\[[0-9,]+\] .* (hidden[1-3][0-9]|gradient)$' <<<"$rows")"
layers 1 --json
same "no more than there are" "$(alive "$(value peak call)" | wc -l)" "$(value largest_buffers | tr -d '[]')"
ok "which are fewer: $(value largest_buffers)" test "$(value largest_buffers | tr -d '[]')" -lt 20
same "and all of the peak" "$(value peak bytes)" "$(($(value largest_buffers '*' bytes | paste -sd+)))"
plan --json

# Limits go by what the process itself takes, which is more in instrumented builds.
case_name=batches
memory=$((($(number memory process_bytes) + 4000000) * 100 / 95))
plan --json --memory=$memory
limit=$((memory * 95 / 100))
best=$(grep -o '"limit": "the recipe.s memory".*' "$W/out" | grep -o '"batch": [0-9]*' | head -1 | grep -o '[0-9]*')
ok "a multiple of 8: $best" test $((best % 8)) = 0 -a "$best" -gt 64
plan --json --batch_size="$best"
ok "it fits" test "$(number memory total_bytes)" -le $((limit + 1048576)) # another process: some pages more or less
plan --json --batch_size=$((best + 64))
if [ "${TY_VARIANT:-release}" = release ]; then
    ok "and not much more would" test "$(number memory total_bytes)" -gt $((limit - 524288))
else
    skip "and not much more would" "with sanitizers one process takes megabytes more than the next"
fi

case_name=svg
plan --svg "$W/plan.svg"
same "exit" 0 $rc
has "a picture" "$W/plan.svg" '<svg xmlns="http://www.w3.org/2000/svg"'
has "layers under the pointer" "$W/plan.svg" '<title>conv1'
same "closed" "</svg>" "$(tail -1 "$W/plan.svg")"
ty plan examples/digits/train.yaml --data-dir="$W/no-data" --svg "$W/absent/plan.svg"
has "a folder that is not there is refused before the data are looked for" "$W/err" "$W/absent"
same "every tag" "$(grep -o '<title>' "$W/plan.svg" | wc -l)" "$(grep -o '</title></rect>' "$W/plan.svg" | wc -l)"

case_name=arguments
plan --memory=lots
same "no amount" 78 $rc
has "what to write" "$W/err" '8 GiB'
plan --batch_size=autoo
same "no number" 78 $rc
plan --batch_size=auto --memory=1MB
same "not one row" 71 $rc
has "what one row needs" "$W/err" "one row needs"
ty plan "$W/absent.yaml" --json
same "no recipe" 66 $rc
has "as JSON" "$W/out" '{"error": {"code": "E0700"'

# ---- batch_size: auto ----
case_name=auto
train() { ty train examples/digits/train.yaml --data-dir="$W/data" --output-dir "$W/run" "$@"; }
train --batch_size=auto --memory=$((memory + 2000000)) --max_steps=2 --batch_size_rule=linear --batch_size_base=64
same "exit" 0 $rc
has "the banner says why" "$W/err" "rows: the largest multiple of 8 that fits"
has "and against what" "$W/err" "(the recipe's memory)"
batch=$(grep -oE 'batch_size auto is [0-9]+' "$W/err" | grep -oE '[0-9]+$')
ok "chosen: $batch" test "$batch" -ge 8 -a $((batch % 8)) = 0
has "lr follows, as asked" "$W/err" "lr 0.003 for batches of 64 becomes $(awk "BEGIN {printf \"%.6g\", 0.003 * $batch / 64}") for $batch"
train --batch_size=auto --memory=$((memory + 2000000)) --max_steps=2 --batch_size_rule=sqrt --batch_size_base=64 --fresh
batch=$(grep -oE 'batch_size auto is [0-9]+' "$W/err" | grep -oE '[0-9]+$')
has "or its square root" "$W/err" "lr 0.003 for batches of 64 becomes $(awk "BEGIN {printf \"%.6g\", 0.003 * sqrt($batch / 64)}") for $batch"
train --batch_size=auto --memory=$memory --max_steps=4
same "again" 0 $rc
has "the checkpoint's batch size stays" "$W/err" "batch_size auto is $batch: that of the checkpoint"
has "and it goes on" "$W/err" "resuming at step 2 of 4"
lacks "lr is left alone unless asked" "$W/err" "becomes"
train --batch_size=auto --max_steps=1 --fresh
has "all samples fit a machine" "$W/err" "all 1438 samples would fit"

# ---- less memory than the batch would take ----
case_name=remat
mkdir -p "$W/deep"
sed -e 's/batch_size: 64/batch_size: 1024/' examples/digits-c/train.yaml >"$W/deep/train.yaml"
cat >"$W/deep/model.c" <<'END'
#include <stdio.h>
#include <trainyard/model.h>
void model(ty_net *net)
{
    char name[16];
    ty_var x = ty_linear(net, "in", ty_flatten(net, ty_input(net, "image", "f32[batch,1,8,8]"), 1), 256);
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "hidden%d", i);
        x = ty_gelu(net, ty_linear(net, name, x, 256));
    }
    ty_output(net, "logits", ty_linear(net, "out", x, 10));
}
END
deep() { ty "$1" "$W/deep/train.yaml" --data-dir="$W/data" "${@:2}"; }
losses() { grep -oE '\| loss [0-9.]+' "$W/err"; }
deep plan --json
total=$(number memory total_bytes) temporary=$(number memory temporary_bytes)
deep train --output-dir "$W/run" --fresh --max_steps=3 --log_every=1
all=$(losses)
deep plan --memory=$((total - temporary / 3))
same "exit" 0 $rc
has "what is computed again, and what that costs" "$W/out" "computed again in backward, to fit the recipe's memory:"
has "part by part" "$W/out" " %  between products and convolutions, from "
deep plan --memory=$((total - temporary / 3)) --remat=none
lacks "not if it may not" "$W/out" "computed again"
operations() { grep -oE '[0-9]+ operations' "$W/out" | grep -oE '^[0-9]+'; }
deep graph --html "$W/whole.html"
whole=$(operations)
deep graph --html "$W/again.html" --memory=$((total - temporary / 3))
same "a picture of it" 0 $rc
ok "has what is computed again: $whole, $(operations) operations" test "$(operations)" -gt "$whole"
deep train --output-dir "$W/run" --fresh --memory=$((total - temporary / 3)) --max_steps=3 --log_every=1
same "it trains" 0 $rc
has "and says so" "$W/err" "% more arithmetic: backward computes"
ok "losses are printed" test -n "$all"
same "to the same losses" "$all" "$(losses)"
deep train --output-dir "$W/run" --fresh --memory=$((total - temporary)) --max_steps=3
same "not where nothing helps" 71 $rc
has "what it needs" "$W/err" "1024 rows need at least"
has "what to do" "$W/err" "smaller batch_size"

# ---- a large vocabulary ----
case_name=chunks
mkdir -p "$W/words"
sed -e 's/batch_size: .*/batch_size: 1024/' examples/digits-c/train.yaml >"$W/words/train.yaml"
cat >"$W/words/model.c" <<'END'
#include <trainyard/model.h>
void model(ty_net *net)
{
    ty_var x = ty_flatten(net, ty_input(net, "image", "f32[batch,1,8,8]"), 1);
    ty_output(net, "logits", ty_linear(net, "out", ty_tanh(net, ty_linear(net, "in", x, 64)), 10000));
}
END
words() { ty "$1" "$W/words/train.yaml" --data-dir="$W/data" "${@:2}"; }
words plan
same "exit" 0 $rc
has "what is in chunks, and what whole logits would take" "$W/out" \
    "logits of 10000 columns, 512 of 1024 rows at a time: 19.5 MiB, not 39.1 MiB"
words plan --json
chunked=$(number memory temporary_bytes)
words plan --json --batch_size=1020
ok "half the logits: $chunked bytes, and $(number memory temporary_bytes) with four rows fewer" \
    test $(($(number memory temporary_bytes) - chunked)) -gt 18000000
words train --output-dir "$W/run" --fresh --max_steps=2 --log_every=1
same "it trains and evaluates" 0 $rc
has "and says so" "$W/err" "512 of 1024 rows of logits at a time: 19.5 MiB, not 39.1 MiB"

# ---- the peak that was announced ----
case_name=announced
bytes_of() { # TEXT: "18.2 MiB" in KiB
    awk -v n="${1% *}" -v unit="${1#* }" 'BEGIN {split("B KiB MiB GiB", u, " "); for (i in u) if (u[i] == unit) printf "%d", n * 1024 ^ (i - 2)}'
}
told() { # sets real and announced, KiB
    local line
    line=$(grep -o 'memory      peak .*, announced were .*' "$W/err")
    real=${line#*peak } && real=$(bytes_of "${real%%,*}")
    announced=$(bytes_of "${line##*were }")
}
train --fresh --max_steps=30
told
if [ "${TY_VARIANT:-release}" = release ]; then
    ok "real $real KiB, announced $announced KiB: within a tenth and 30 MB" \
        awk "BEGIN {d = $real - $announced; exit !((d < 0 ? -d : d) < 0.1 * $real + 30000)}"
    train --fresh --max_steps=3 --batch_size=1400
    told
    ok "real $real KiB, announced $announced KiB: 15 MiB of temporaries that have their pages early count once" \
        awk "BEGIN {d = $real - $announced; exit !((d < 0 ? -d : d) < 11000)}"
else
    skip "the peak that was announced" "sanitizers take memory of their own"
fi

# ---- compiled before ----
case_name=cached
export TRAINYARD_CACHE_DIR=$W/cache
plan --json --max_steps=2
has "not yet" "$W/out" '"compiled_before": false'
before=$(paid_step)
ok "the C compiler has work: $(number c_compiler_s) s" awk "BEGIN {exit !(0 < $(number c_compiler_s) && $(number c_compiler_s) <= $(number compile_s))}"
train --fresh --max_steps=2
plan --json --max_steps=2
has "after a training the kernels are there" "$W/out" '"compiled_before": true'
ok "which saves the C compiler's time" awk "BEGIN {exit !($(number c_compiler_s) == 0)}"
ok "so that it pays sooner: $before steps, now $(paid_step)" awk "BEGIN {exit !($(paid_step) < $before)}"
ok "and that is what is said" is_paid_step

finish_tests
