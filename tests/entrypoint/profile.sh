#!/bin/bash
# profile.sh - `trainyard profile`: text, JSON and the time line, against each other and against `trainyard plan`.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/profile
mkdir -p "$W/data/train" "$W/data/test"
examples/digits/data "$W/raw" || exit 1
cp "$W/raw/train.csv" "$W/data/train/" && cp "$W/raw/test.csv" "$W/data/test/"
TOOL=$(realpath "${TY_BUILD:-build/${TY_VARIANT:-release}}/tools/json_value")
ty() {
    timeout -k 5 600 "$BIN/trainyard" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
profile() { ty profile examples/digits/train.yaml --data-dir="$W/data" "$@"; }
value() { "$TOOL" "$W/out" "$@"; }        # of the JSON on stdout
event() { "$TOOL" "$W/trace.json" "$@"; } # of the time line
sum() { awk '{s += $1} END {printf "%.0f\n", s}'; }
# near WHAT A B: within a thousandth, and a little more for rounding
near() { ok "$1: $2, $3" awk "BEGIN {d = $2 - $3; exit !((d < 0 ? -d : d) <= 0.001 * $3 + 1e-9)}"; }
export TRAINYARD_CACHE_DIR=$W/cache # compiled once

case_name=text
cd "$W" || exit 1
ty profile "$OLDPWD/examples/digits/train.yaml" --data-dir="$W/data" --steps 3
cd "$OLDPWD" || exit 1
same "exit" 0 $rc
for word in 'step ' 'the median of 3' 'of which ' 'convolutions' 'optimizer' 'conv1' 'hidden' 'reached' 'update' 'ceilings' 'what was chosen' 'dot: '; do
    has "says $word" "$W/out" "$word"
done
ok "a layer is a line" grep -qE '^ +[0-9.]+ +[0-9.]+ % .* conv2$' "$W/out"
same "nothing is written" "cache data err out raw" "$(cd "$W" && echo *)"
# Calls and choice of each line of the last table.
sed -n '/library call: what was chosen for its shape$/,/^$/p' "$W/out" | sed '1d;/^$/d' |
    awk '{calls = $4; sub(/.* %  /, ""); print calls, $0}' | sort >"$W/chosen"

case_name=json
profile --json --steps 4 --trace "$W/trace.json"
same "exit" 0 $rc
same "schema" 1 "$(value schema)"
same "steps" 4 "$(value steps)"
same "the batch of the recipe" 64 "$(value batch_size)"
ok "the least, the median, the most" awk "BEGIN {exit !(0 < $(value step_min_ms) && $(value step_min_ms) <= $(value step_ms) && $(value step_ms) <= $(value step_max_ms))}"
ok "calls take at most a whole step" awk "BEGIN {exit !(0 < $(value calls_ms) && $(value calls_ms) <= 1.01 * $(value step_max_ms))}"
same "shares of layers" 100 "$(value layers '*' share | sum)"
same "shares of kinds" 100 "$(value work '*' share | sum)"
for key in ms flop bytes at_least_ms; do
    near "layers and kinds have the same sum of $key" \
        "$(value layers '*' $key | awk '{s += $1} END {printf "%.9g", s}')" "$(value work '*' $key | awk '{s += $1} END {printf "%.9g", s}')"
done
near "layers add up to all calls" "$(value layers '*' ms | awk '{s += $1} END {printf "%.9g", s}')" "$(value calls_ms)"
near "phases add up" "$(for p in forward gradient update; do value layers '*' ${p}_ms; done | awk '{s += $1} END {printf "%.9g", s}')" "$(value calls_ms)"
same "the largest first" "$(value layers '*' ms | sort -grs)" "$(value layers '*' ms)"
same "a layer once" "" "$(value layers '*' layer | sort | uniq -d)"
near "reached is the floor over the time" "$(value layers 0 reached)" "$(awk "BEGIN {print 100 * $(value layers 0 at_least_ms) / $(value layers 0 ms)}")"
# By calls, since a clock may read 0 for one; of layers that have calls of their own in both, whichever took longest.
for direction in forward gradient; do
    for layer in conv1 hidden; do
        ok "$layer has calls $direction" test "$(paste -d' ' <(value tape_calls '*' layer) <(value tape_calls '*' phase) | grep -cx "$layer $direction")" -ge 1
    done
done
calls=$(value tape_calls | tr -d '[]')
same "every call is in a kind" "$calls" "$(value work '*' calls | sum)"
libraries=$(value tape_calls '*' name | grep -cvE '^(ty_k_|copy$)')
same "every call of a library is in a choice" "$libraries" "$(value choices '*' calls | sum)"
same "a choice once, without its shape" "" "$(value choices '*' choice | { sort | uniq -d; } ; value choices '*' choice | grep -E '[0-9]x[0-9]| [NT]{2}')"
same "the text has the same choices" "$(paste -d' ' <(value choices '*' calls) <(value choices '*' choice) | sort)" "$(cat "$W/chosen")"
# A choice stands for the calls that were answered alike, whatever their shapes: "dot: onednn sgemm" for "onednn sgemm NT 1x64x10x64".
of_calls() {
    paste -d'|' <(value tape_calls '*' name) <(value tape_calls '*' how) <(value tape_calls '*' runs) \
        <(value tape_calls '*' call_flop) | grep -vE '^(ty_k_|copy[|])' | sed -E 's/[|]/: /; s/ ([NT]{2}[+]? )?[0-9][^|]*//' |
        awk -F'|' '{calls[$1] += $2; flop[$1] += $2 * $3} END {for (c in calls) printf "%s %d %.0f\n", c, calls[c], flop[c]}' | sort
}
of_choices() {
    paste -d' ' <(value choices '*' choice) <(value choices '*' calls) <(value choices '*' flop | awk '{printf "%.0f\n", $1}') | sort
}
same "a choice is the sum of its calls" "$(of_calls)" "$(of_choices)"
# What is chosen on every processor, with the vectors that it has. Only who multiplies depends on it: with AVX-512 oneDNN.
vectors='(avx512|avx2|plain)'
calls_of() { paste -d' ' <(value choices '*' calls) <(value choices '*' choice) | sed -nE "s/^([0-9]+) $1\$/\1/p"; }
chosen() { [ -n "$(calls_of "$1")" ]; }
not_chosen() { ! chosen "$1"; }
for op in conv conv_dx conv_dw; do
    same "$op of 16 to 32 channels is by Winograd's tiles, and none of 1 to 16" 1 "$(calls_of "$op: winograd:$vectors")"
done
ok "pools are ours" chosen 'pool_max: native'
ok "and so are their gradients" chosen 'pool_max_grad: native'
ok "products are somebody's" chosen "dot: (onednn (sgemm|matmul)|native $vectors)"
if grep -qw avx512bw /proc/cpuinfo; then
    ok "with AVX-512 oneDNN's" not_chosen "dot: native .*"
else
    skip "with AVX-512 products are oneDNN's" "this processor has none"
fi
# 64 images through conv2, 16 to 32 channels, 3 x 3 on 4 x 4 pixels, three times: forward and two gradients.
same "conv2's arithmetic" 3 "$(awk "BEGIN {printf \"%.0f\", $(for ((i = 0; i < $(value layers | tr -d '[]'); i++)); do
    [ "$(value layers $i layer)" = conv2 ] && value layers $i flop; done) / (2 * 64 * 32 * 16 * 16 * 9)}")"
value work '*' flop | sum >"$W/flop"
# The wall clock disagrees with nobody about arithmetic: `plan` has the same sums.
cp "$W/out" "$W/profile.json"
ty plan examples/digits/train.yaml --data-dir="$W/data" --json
same "as much arithmetic as planned" "$(value work '*' flop | sum)" "$(cat "$W/flop")"

case_name=trace
same "events for every call of every step" $((4 * calls)) "$(event traceEvents '*' cat | grep -cvx data)"
same "complete events and names, nothing else" "M X" "$(event traceEvents '*' ph | sort -u | tr '\n' ' ' | sed 's/ $//')"
same "a wait for every batch" 4 "$(event traceEvents '*' cat | grep -cx data)"
same "a lane for the tape, one for data" 2 "$(event traceEvents '*' tid | sort -u | wc -l)"
same "layers are those of the report" "$("$TOOL" "$W/profile.json" layers '*' layer | sort)" "$(event traceEvents '*' args layer | sort -u)"
same "kinds too" "$(grep -oE '"work": "[a-z]+"' "$W/profile.json" | cut -d'"' -f4 | sort -u)" \
    "$(event traceEvents '*' cat | grep -vx data | sort -u)"
near "four steps of arithmetic" "$(event traceEvents '*' args flop | awk '{s += $1} END {printf "%.9g", s}')" $((4 * $(cat "$W/flop")))
same "times do not go back, and calls do not overlap" "" "$(paste <(event traceEvents '*' tid | tail -n +4) <(event traceEvents '*' ts) <(event traceEvents '*' dur) |
    awk '$1 > 0 {if ($2 + 0.0015 < end) print; end = $2 + $3}')"

case_name=strict
profile --json --steps 1 --deterministic=strict
same "exit" 0 $rc
ok "products that do not depend on threads are ours" chosen "dot: native $vectors"
ok "all of them" not_chosen "dot: onednn .*"
ok "convolutions are computed plainly" not_chosen ".*winograd.*"
same "a choice is the sum of its calls" "$(of_calls)" "$(of_choices)"

case_name=micro-batches
profile --json --steps 2 --accumulate=3 --trace "$W/trace.json"
same "exit" 0 $rc
same "two of three runs are micro" "1 2" "$(value tape_calls '*' runs | sort -u | tr '\n' ' ' | sed 's/ $//')"
same "a lane each" "0 1 2" "$(event traceEvents '*' tid | sort -u | tr '\n' ' ' | sed 's/ $//')"
micro=$(value tape_calls '*' tape | grep -cx micro) last=$(value tape_calls '*' tape | grep -cx last)
same "an event for every call" $((2 * (2 * micro + last))) "$(event traceEvents '*' cat | grep -cvx data)"
same "shares" 100 "$(value layers '*' share | sum)"
near "three batches are three times the convolutions" "$(value work convolutions flop)" $((3 * $("$TOOL" "$W/profile.json" work convolutions flop | sed 's/\..*//')))

case_name=arguments
for steps in 0 -1 ten 10001 ''; do
    profile --steps="$steps"
    same "--steps=$steps" 2 $rc
    has "what is expected" "$W/err" "--steps needs a number from 1 to 10000, found \"$steps\""
done
ty profile
same "no recipe named" 2 $rc
profile --batch_size=none
same "a setting that is none" 78 $rc
ty profile examples/digits/train.yaml --data-dir="$W/absent"
same "no data" 66 $rc
ty profile "$W/absent.yaml" --json
same "no recipe" 66 $rc
has "as JSON" "$W/out" '{"error": {"code": "E0700"'
profile --steps=10000 --epochs=10000 --accumulate=200000
same "more times than memory" 71 $rc
has "what to do" "$W/err" "time fewer steps"
profile --steps 1 --trace "$W/absent/trace.json"
same "a trace into a folder that is not there" 66 $rc
has "which" "$W/err" "$W/absent"
profile --steps 10000 --trace "$W/absent/trace.json" --data-dir="$W/no-data"
same "which is seen before anything else: no data either" "$W/absent" "$(grep -oF "$W/absent" "$W/err" | head -1)"
mkdir "$W/locked" && chmod a-w "$W/locked"
if touch "$W/locked/probe" 2>/dev/null; then
    skip "a folder that cannot be written" "this user may write anywhere"
else
    profile --steps 10000 --trace "$W/locked/trace.json" --data-dir="$W/no-data"
    ok "a folder that cannot be written" test $rc != 0
    has "is refused before the data are looked for" "$W/err" "locked"
fi

finish_tests
