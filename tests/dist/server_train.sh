#!/bin/bash
# Training whose weights live in parameter servers: `trainyard server` and `trainyard train --servers`, on loopback. One worker in
# sync mode must get what a run without servers gets, whether tables travel whole or by rows; on real clicks two asynchronous workers
# must reach its AUC.
set -u
cd "$(dirname "$0")/../.." || exit 1
TY_BUILD=${TY_BUILD:-build/release} TY_BIN=${TY_BIN:-build/bin} TY_SHARED=${TY_SHARED:-../shared}
passed=0 failed=0 skipped=0
dir=$(mktemp -d)
pids=()
# shellcheck disable=SC2317
cleanup() {
    for pid in "${pids[@]:-}"; do [ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null; done
    rm -rf "$dir"
}
trap cleanup EXIT
close() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}
if [ "${TY_VARIANT:-release}" != release ]; then
    echo "skip: UCX is not built for the variant $TY_VARIANT" && skipped=1 && close
elif [ ! -e "$TY_BUILD/lib/libtrainyard-ucx.so" ]; then
    echo "skip: no plug-in for UCX" && skipped=1 && close
fi
export TRAINYARD_CACHE_DIR=$dir/cache
recipe=examples/deepfm-c/train.yaml

result() { # NAME STATUS
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
        tail -n 8 "$dir"/*.log 2>/dev/null
    fi
}
# servers N OPTION...: started; addresses in $servers.
servers() {
    local k n=$1
    shift
    servers=
    serving=()
    for ((k = 0; k < n; k++)); do
        : >"$dir/server$k.log"
        "$TY_BIN/trainyard" server --listen=127.0.0.1:0 --number=$k "$@" >"$dir/server$k.log" 2>&1 &
        pids+=($!)
        serving[k]=$!
        timeout 200 tail -n +1 -f "$dir/server$k.log" | grep -qm 1 '^serving shard' || return 1
        servers+=${servers:+,}$(sed -n 's/^serving shard .* at //p' "$dir/server$k.log")
    done
}
# train NAME DATA OPTION...: ends with the run's status.
train() {
    local name=$1 data=$2
    shift 2
    timeout 1200 "$TY_BIN/trainyard" train $recipe --data-dir="$data" --output-dir="$dir/$name" --device=cpu --threads=1 \
        --metrics='[auc]' --progress=plain "$@" >"$dir/$name.log" 2>&1
}
# gone PID: it ends by itself, well.
gone() {
    timeout 200 tail -s 0.05 -f --pid="$1" /dev/null
    kill -0 "$1" 2>/dev/null && return 1
    wait "$1"
}
# number NAME WORD: the last evaluation's, or with WORD best the best.
loss_of() { sed -n 's/^ *validation  loss \([0-9.]*\) .*/\1/p' "$dir/$1.log" | tail -n 1; }
auc_of() { sed -n 's/^ *validation .* auc \([0-9.]*\) .*/\1/p' "$dir/$1.log" | tail -n 1; }
moved() { sed -n 's/.* \([0-9.]*\) kB a step$/\1/p' "$dir/$1.log"; }
mean() { awk '{s += $1} END {if (NR) printf "%.4f", s / NR}'; }
near() { awk -v a="$1" -v b="$2" -v d="$3" 'BEGIN {exit !(a != "" && b != "" && a - b < d && b - a < d)}'; }

. tests/clicks.bash
made_clicks 1200 >"$dir/clicks.csv"
examples/deepfm-c/data "$dir/clicks.csv" "$dir/data"

# split DATA: worker 0 and worker 1 get every second row each.
split() {
    local w
    for w in 0 1; do
        mkdir -p "$1.$w/train" "$1.$w/test"
        awk "NR % 2 == $w" "$1/train/clicks.csv" >"$1.$w/train/clicks.csv"
        cp "$1/test/clicks.csv" "$1.$w/test/"
    done
}
split "$dir/data"

# One worker and two servers, sync: the same steps as without, up to rounding.
alone() { # ROWS
    local status=0
    train "plain-$1" "$dir/data" --sparse_rows="$1" || status=1
    rm -rf "$dir/saves"
    servers 2 --saves="$dir/saves" || status=1
    train "alone-$1" "$dir/data" --servers="$servers" --worker=0/1 --server-mode=sync --sparse_rows="$1" || status=1
    gone "${serving[0]}" && gone "${serving[1]}" || status=1
    near "$(loss_of "plain-$1")" "$(loss_of "alone-$1")" 0.0002 || status=1
    result "one worker in sync mode: the loss of a run without servers ($(loss_of "plain-$1"), $(loss_of "alone-$1"))" $status
}
alone false
alone true
whole=$(moved alone-false) rows=$(moved alone-true)
awk -v whole="$whole" -v rows="$rows" 'BEGIN {exit !(rows > 0 && rows < whole / 2)}'
result "by rows less is moved: $rows kB a step, whole $whole" $?
# A step pulls all weights and pushes as many gradients; evaluations and saves are none of it.
size=$(stat -c %s "$dir/alone-false/model/model.safetensors")
awk -v moved="$whole" -v size="$size" 'BEGIN {d = 1e3 * moved / size / 2 - 1; exit !(d < 0.002 && d > -0.002)}'
result "what a step moves: $whole kB, for weights of $size bytes" $?

# Servers that go on from the save at its end have seen all its steps: a worker that makes them again changes nothing.
again() {
    local status=0
    servers 2 --saves="$dir/saves" --resume || status=1
    train again "$dir/data" --servers="$servers" --worker=0/1 --server-mode=sync --checkpoint.every='1000 steps' || status=1
    gone "${serving[0]}" && gone "${serving[1]}" || status=1
    grep -q 'goes on from save save-' "$dir/server1.log" || status=1
    near "$(loss_of alone-true)" "$(loss_of again)" 0.00001 || status=1
    result "servers that go on from a save ($(loss_of alone-true), $(loss_of again))" $status
}
again

# both NAME DATA SERVERS MODE OPTION...: two workers at once.
both() {
    local name=$1 data=$2 n=$3 mode=$4 w pid=() status=0
    shift 4
    servers "$n" || return 1
    for w in 0 1; do
        train "$name$w" "$data.$w" --servers="$servers" --worker=$w/2 --server-mode="$mode" "$@" &
        pid[w]=$!
        pids+=($!)
    done
    for w in 0 1; do wait "${pid[w]}" || status=1; done
    for ((w = 0; w < n; w++)); do gone "${serving[w]}" || status=1; done
    return $status
}
for mode in async bounded:2 sync; do
    both "two-${mode%:*}" "$dir/data" 1 $mode && grep -q 'gradients, staleness' "$dir/two-${mode%:*}0.log"
    result "two workers, $mode: train, and all processes end" $?
done

# What servers cannot do is refused by name, before anything is asked of them.
refused() { # WORDS OPTION...
    local words=$1
    shift
    ! train refused "$dir/data" --servers=127.0.0.1:9 "$@" && grep -q "$words" "$dir/refused.log"
    result "refused: $words" $?
}
refused 'weight decay' --optimizer.adam.weight_decay=0.1
refused 'expected an optimizer of sgd, adam' --optimizer='{adamw: {lr: 0.1}}'
refused 'accumulate' --accumulate=2 --sparse_rows=false
refused 'momentum would move every row' --optimizer='{sgd: {lr: 0.1, momentum: 0.9}}'
refused 'expected a worker' --worker=2/2
refused 'expected async' --server-mode=later

# The real ones.
clicks=$TY_SHARED/data/criteo-ctr
if [ -r "$clicks/raw.train.tiny.csv" ] && [ -r "$clicks/raw.test.tiny.csv" ]; then
    { cat "$clicks/raw.train.tiny.csv" && tail -n +2 "$clicks/raw.test.tiny.csv"; } >"$dir/real.csv"
    examples/deepfm-c/data "$dir/real.csv" "$dir/real"
    split "$dir/real"
    # Of one seed alone the difference is noise, as large as what is allowed.
    status=0
    for seed in 1 2 3; do
        train real-$seed "$dir/real" --seed=$seed && both async-$seed- "$dir/real" 1 async --seed=$seed || status=1
        auc_of real-$seed >>"$dir/in_step" && auc_of async-$seed-0 >>"$dir/async"
    done
    in_step=$(mean <"$dir/in_step") async=$(mean <"$dir/async")
    awk -v a="$async" -v b="$in_step" 'BEGIN {exit !(a > 0.6 && b > 0.6 && a > b - 0.005)}' || status=1
    result "real clicks, mean AUC of 3 seeds: $in_step alone, $async with 2 asynchronous workers" $status
    echo "AUC on real clicks, mean of 3 seeds: $in_step alone, $async with 2 asynchronous workers"
else
    echo "skip: no clicks in $clicks" && skipped=$((skipped + 1))
fi
close
