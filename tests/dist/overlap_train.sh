#!/bin/bash
# overlap_train.sh - communication behind computing in whole trainings: on two hosts with 1 Gbit/s between them, a step of
# `train` takes at most 1.25 times the longer one of computing and communication, where a core is to spare: where
# communication takes six times as long as computing, and where it takes twice, two thirds and four tenths as long.
#
# Gradients travel through backward and through forward of the next step. The link is idle from when the last layer's
# weights are there until its gradient is: an equal share of all layers, which leaves 1.17 where both take equally long.
#
# Both hosts are on this machine: their computing shares one core, their comms' threads another. Computing alone is what
# both take on that core when each trains by itself, with the rows of a rank; communication alone is what the gradient's
# bytes take on the link (build/.../tools/collectives, the same core). Others use the machine, too: three tries, and after a
# slow one both are measured once more. If one is not what it was, to a tenth, the try says nothing; if none of the slow
# ones says anything, this machine is too busy to judge: skipped.
cd "$(dirname "$0")/../.." || exit 1
. tests/dist/hosts.bash
. tests/entrypoint/job.bash
export OMP_NUM_THREADS=1 TRAINYARD_CACHE_DIR=$SCRATCH/cache
[ "${TY_VARIANT:-release}" = release ] || { skip "overlap" "times are those of the release variant"; finish_tests; exit; }
[ -e "$BIN/../lib/libtrainyard-mpi.so" ] || { skip "overlap" "the plug-in for Open MPI was not built"; finish_tests; exit; }
[ "$(getconf _NPROCESSORS_ONLN)" -ge 2 ] || { skip "overlap" "one core: none is to spare"; finish_tests; exit; }
need_hosts
hosts_up 2
rate algo-1 1gbit
rate algo-2 1gbit
STEPS=25 EVERY=5 MB=16

# Four layers of 1024 x 1024 and a little: 17.1 MB of gradients, in buckets as they become ready.
wide() {
    begin "$1"
    mkdir -p "$ML/input/data/train" "$ML/code"
    digits 1536 1 >"$ML/input/data/train/part.csv"
    echo '{"train": {"TrainingInputMode": "File", "ContentType": "text/csv"}}' >"$ML/input/config/inputdataconfig.json"
    cat >"$ML/code/model.c" <<'C'
#include <trainyard/model.h>

void model(ty_net *net)
{
    static const char *const name[] = {"a", "b", "c", "d", "e"};
    ty_var x = ty_flatten(net, ty_input(net, "image", "f32[batch,1,8,8]"), 1);
    for (int i = 0; i < 5; i++)
        x = ty_relu(net, ty_linear(net, name[i], x, 1024));
    ty_output(net, "logits", ty_linear(net, "out", x, 10));
}
C
    cat >"$ML/code/train.yaml" <<Y
model: model.c
inputs: {image: image}
loss: {softmax_cross_entropy: {logits: logits, labels: label}}
optimizer: {sgd: {lr: 1e-3}}
batch_size: 2
epochs: 100000
data:
  train: {channel: train, fields: {image: {columns: 0-63, shape: [1, 8, 8], scale: 0.0625}, label: {columns: 64}}}
checkpoint: {every: 100000 steps, keep: 1}
device: cpu
Y
}
# start HOSTS ROWS: two jobs of one host each, or one of two, on core 0.
start() {
    local n list
    running=()
    for n in 1 2; do
        rm -rf "$W/algo-$n"
        cp -r "$ML" "$W/algo-$n"
        list="\"algo-$n\""
        [ "$1" = 2 ] && list='"algo-1", "algo-2"'
        echo "{\"current_host\": \"algo-$n\", \"hosts\": [$list]}" >"$W/algo-$n/input/config/resourceconfig.json"
        empty "$W/out.$n" "$W/err.$n"
        LIMIT=600 on "algo-$n" ${CORE:-taskset -c 0} env SAGEMAKER_BASE_DIR="$W/algo-$n" "$BIN/train" --log_every=$EVERY \
            --max_steps=$STEPS --batch_size=$(($1 * $2)) >"$W/out.$n" 2>"$W/err.$n" </dev/null &
        running+=($!)
    done
}
both_end() {
    end_all
    [ "$statuses" = "0 0" ] || fail "both train" "$statuses: $(tail -n 3 "$W"/err.*)"
}
# comms_to CORE: the threads of comms leave those who compute.
comms_to() {
    local task
    until_true 60 grep -q 'step=5 ' "$W/out.1" || fail "it trains" "$(tail -n 3 "$W"/err.*)"
    for task in $(pids_on algo-1 ' rank ' | sed 's|.*|/proc/&/task/*|') $(pids_on algo-2 ' rank ' | sed 's|.*|/proc/&/task/*|'); do
        [ "$(cat "$task/comm")" = ty-comm ] && taskset -pc "$1" "${task##*/}"
    done >"$W/moved"
    ok "four comms moved" test "$(grep -c "list: $1" "$W/moved")" -ge 4
}
# step_ms ROWS: the median of all but the first windows, of both hosts' jobs the slower one.
step_ms() {
    python3 - "$1" "$W"/algo-*/output/data/metrics.jsonl <<'P'
import json, statistics, sys
rows = int(sys.argv[1])
def ms(path):
    lines = [json.loads(l) for l in open(path)]
    speeds = [r["samples_per_s"] for r in lines if "samples_per_s" in r]
    return statistics.median(1e3 * rows / s for s in speeds[2:])
print("%.1f" % max(ms(f) for f in sys.argv[2:] if "samples_per_s" in open(f).read()))
P
}
# comm_ms: the gradient alone on the link.
comm_ms() {
    local i pids=()
    for i in 1 2; do
        OMPI_MCA_mpi_yield_when_idle=1 on "algo-$i" taskset -c 1 "$PWD/$TOOLS/agent" --mpi --hosts algo-1:1,algo-2:1 --self $((i - 1)) \
            --address names -- "$PWD/$TOOLS/collectives" overlap --turns 5 --mb $MB --buckets 4 --compute-ms 10 --asleep \
            >"$W/comm.$i" 2>&1 </dev/null &
        pids+=($!)
    done
    wait "${pids[@]}"
    grep -o '"comm_ms": [0-9.]*' "$W/comm.1" | grep -o '[0-9.]*$'
}
TOOLS=${TY_BUILD:-build/release}/tools
[[ $TOOLS == /* ]] && TOOLS=$(realpath --relative-to="$PWD" "$TOOLS")

# alone ROWS: computing and communication into $compute and $comm.
alone() {
    start 1 "$1"
    both_end
    compute=$(step_ms "$1")
    comm=$(comm_ms)
}
near() { awk "BEGIN {exit !($1 <= 1.1 * $2 && $2 <= 1.1 * $1)}"; }
# hides ROWS: three tries.
hides() {
    local try compute comm step ratio before judged=
    wide "rows_$1"
    for try in 1 2 3; do
        alone "$1"
        start 2 "$1"
        comms_to 1
        both_end
        step=$(step_ms $((2 * $1)))
        ratio=$(awk "BEGIN {m = $compute > $comm ? $compute : $comm; printf \"%.3f\", $step / m}")
        echo "$1 rows a rank, try $try: computing $compute ms, communication $comm ms, both $step ms, ratio $ratio;" \
            "$(grep -o 'comm  .*' "$W/err.1")"
        if awk "BEGIN {exit !($ratio <= 1.25)}"; then
            ok "$1 rows a rank: a step takes at most 1.25 of the longer one: $ratio" true
            return
        fi
        before=($compute $comm)
        alone "$1"
        near "${before[0]}" "$compute" && near "${before[1]}" "$comm" && judged="$judged $ratio"
    done
    if [ -n "$judged" ]; then
        fail "$1 rows a rank: a step takes at most 1.25 of the longer one" "ratios$judged"
    else
        skip "$1 rows a rank" "the machine is too busy to judge: ratio $ratio"
    fi
}
for rows in ${ROWS:-32 160 400 640}; do hides "$rows"; done
finish_tests
