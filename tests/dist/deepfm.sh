#!/bin/bash
# deepfm.sh - examples/deepfm on real clicks: LibSVM becomes TFRecord, and trains to the same log loss and AUC from files and from pipes,
# on one host and on two, in step and with parameter servers; a step does not wait for data.
cd "$(dirname "$0")/../.." || exit 1
. tests/dist/hosts.bash
clicks=${TY_SHARED:-../shared}/data/criteo-ctr/criteo_deepfm_10k.tfrecord
[ "${TY_VARIANT:-release}" = release ] || { skip "DeepFM on clicks" "times and AUC are those of the release variant"; finish_tests; exit; }
[ -r "$clicks" ] || { skip "DeepFM on clicks" "no $clicks"; finish_tests; exit; }

begin convert
python3 tests/dist/deepfm.py libsvm "$clicks" "$SCRATCH/train.libsvm" "$SCRATCH/test.libsvm" || exit 1
for part in train:training test:evaluation; do
    mkdir -p "$SCRATCH/data/${part#*:}"
    "$BIN/trainyard" data convert "$SCRATCH/${part%:*}.libsvm" "$SCRATCH/data/${part#*:}" >>"$W/out" 2>&1 || fail "convert" "$(cat "$W/out")"
done
ok "the Examples of the original" python3 tests/dist/deepfm.py same "$clicks" "$SCRATCH"/data/training/* "$SCRATCH"/data/evaluation/*

best() { sed -n "s/.*$1=\([0-9.]*\).*/\1/p" "$3" | sort -g | "$2" -n 1; } # KEY head|tail FILE: of all epochs
learnt() { # OUT: log loss and AUC as the data's README has them, whose network overfits after two or three epochs
    local loss auc
    loss=$(best val_loss head "$1") auc=$(best val_auc tail "$1")
    echo "$case_name: log loss $loss, AUC $auc"
    ok "AUC $auc" awk -v v="$auc" 'BEGIN {exit !(v >= 0.70)}'
    ok "log loss $loss" awk -v v="$loss" 'BEGIN {exit !(v > 0 && v <= 0.53)}'
}
waited() { sed -n 's/.*input wait [^(]*(\([0-9]*\) %).*/\1/p' "$W/err.1" | tail -n 1; } # of the time of all, in percent
# no_waiting NAME MODE: the run before it did not wait for data. It takes a second and waits 1 ms; where a neighbour holds a processor
# for 20 ms, that is 2 %. So the least of three counts: a loader that is late is late each time.
no_waiting() {
    local least share tries
    least=$(waited)
    for ((tries = 1; tries < 3 && ${least:-99} >= 2; tries++)); do
        train_on "$1_$tries" "$2" 1
        share=$(waited)
        [ "${share:-99}" -lt "${least:-99}" ] && least=$share
    done
    ok "$1: waits for data: $least %" test "${least:-99}" -lt 2
}

# train_on NAME MODE HOSTS ARGUMENT...: `train` on each host, with its data in the channels' folders or served into pipes there.
train_on() {
    local n mode=$2 hosts=$3 list='' part
    begin "$1"
    cp examples/deepfm/model.c examples/deepfm/train.yaml "$ML/code"
    echo "{\"training\": {\"TrainingInputMode\": \"$mode\", \"ContentType\": \"application/x-tfrecord\"},
           \"evaluation\": {\"TrainingInputMode\": \"$mode\", \"ContentType\": \"application/x-tfrecord\"}}" >"$ML/input/config/inputdataconfig.json"
    [ "$mode" = Pipe ] || cp -r "$SCRATCH/data"/* "$ML/input/data"
    hyper "${HYPER:-{\}}"
    for ((n = 1; n <= hosts; n++)); do list+=${list:+, }\"algo-$n\"; done
    running=() feeders=()
    for ((n = 1; n <= hosts; n++)); do
        cp -r "$ML" "$W/algo-$n"
        echo "{\"current_host\": \"algo-$n\", \"hosts\": [$list]}" >"$W/algo-$n/input/config/resourceconfig.json"
        for part in training evaluation; do
            [ "$mode" = Pipe ] || break
            "$BIN/trainyard" data serve-pipe "$SCRATCH/data/$part" --into "$W/algo-$n/input/data" --channel $part --epochs 4 >"$W/feed.$n.$part" 2>&1 &
            feeders+=($!)
        done
        LIMIT=600 $where "algo-$n" env SAGEMAKER_BASE_DIR="$W/algo-$n" "$BIN/train" --epochs=4 "${@:4}" >"$W/out.$n" 2>"$W/err.$n" </dev/null &
        running+=($!)
    done
    end_all
    [ "$hosts" = 1 ] && same "status" 0 "$statuses" || same "statuses" "0 0" "$statuses"
    [[ $statuses =~ [1-9] ]] && tail -n 6 "$W"/err.*
    [ ${#feeders[@]} = 0 ] || kill "${feeders[@]}" 2>/dev/null
}
here() { shift && timeout "$LIMIT" "$@"; }
where=here

train_on file File 1
learnt "$W/out.1"
no_waiting file File
train_on pipe Pipe 1
learnt "$W/out.1"
no_waiting pipe Pipe

need_hosts
hosts_up 2
where=on
export OMP_NUM_THREADS=1
train_on in_step File 2
learnt "$W/out.1"
train_on in_step_pipe Pipe 2
learnt "$W/out.1"
export HYPER='{"sagemaker_parameter_server_enabled": "true"}'
train_on served File 2 --sparse_rows=true --optimizer.adam.weight_decay=0 --distributed.server_mode=async
learnt "$W/out.1"
train_on served_pipe Pipe 2 --sparse_rows=true --optimizer.adam.weight_decay=0 --distributed.server_mode=sync
learnt "$W/out.1"
for n in 1 2; do until_true 5 nothing_on algo-$n; same "nothing is left on algo-$n" "" "$(left_on algo-$n)"; done
finish_tests
