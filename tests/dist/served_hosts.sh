#!/bin/bash
# served_hosts.sh - DeepFM with parameter servers on hosts of their own, as the platform asks for it: by a hyperparameter, servers found
# by name and on the platform's port. On real clicks asynchronous training reaches the AUC of training in step; a host whose cable is
# pulled ends the job with its name.
cd "$(dirname "$0")/../.." || exit 1
. tests/dist/hosts.bash
. tests/clicks.bash
export OMP_NUM_THREADS=1
[ "${TY_VARIANT:-release}" = release ] || { skip "parameter servers on hosts" "UCX is of the release variant"; finish_tests; exit; }
[ -e "$BIN/../lib/libtrainyard-ucx.so" ] || { skip "parameter servers on hosts" "the plug-in for UCX was not built"; finish_tests; exit; }
need_hosts
hosts_up 2

clicks=${TY_SHARED:-../shared}/data/criteo-ctr
if [ -r "$clicks/raw.train.tiny.csv" ] && [ -r "$clicks/raw.test.tiny.csv" ]; then
    { cat "$clicks/raw.train.tiny.csv" && tail -n +2 "$clicks/raw.test.tiny.csv"; } >"$SCRATCH/clicks.csv"
    real=1
else
    skip "the AUC on real clicks" "no clicks in $clicks"
    real=
    made_clicks 600 >"$SCRATCH/clicks.csv"
fi
examples/deepfm-c/data "$SCRATCH/clicks.csv" "$SCRATCH/data"

# train_on NAME ARGUMENT...: `train` on both hosts; $W/algo-N/ is the tree of each, $W/out.N and $W/err.N its streams.
train_on() {
    local n
    begin "$1"
    cp examples/deepfm-c/model.c examples/deepfm-c/train.yaml "$ML/code"
    cp -r "$SCRATCH/data"/* "$ML/input/data"
    echo '{"train": {"TrainingInputMode": "File"}, "test": {"TrainingInputMode": "File"}}' >"$ML/input/config/inputdataconfig.json"
    hyper '{"sagemaker_parameter_server_enabled": "true"}'
    running=()
    for n in 1 2; do
        cp -r "$ML" "$W/algo-$n"
        echo "{\"current_host\": \"algo-$n\", \"hosts\": [\"algo-1\", \"algo-2\"]}" >"$W/algo-$n/input/config/resourceconfig.json"
        LIMIT=600 on "algo-$n" env SAGEMAKER_BASE_DIR="$W/algo-$n" "$BIN/train" --metrics='[auc]' "${@:2}" >"$W/out.$n" 2>"$W/err.$n" </dev/null &
        running+=($!)
    done
}
auc() { sed -n 's/.*val_auc=\([0-9.]*\).*/\1/p' "$W/out.1" | tail -n 1; }
mean() { awk '{s += $1} END {if (NR) printf "%.4f", s / NR}'; }

# Of one seed alone the difference of two AUCs is noise, as large as what is allowed.
for seed in 1 ${real:+2}; do
    train_on sync$seed --distributed.server_mode=sync --seed=$seed
    end_all
    same "statuses" "0 0" "$statuses"
    auc >>"$SCRATCH/in_step"
    train_on async$seed --seed=$seed
    end_all
    same "statuses" "0 0" "$statuses"
    auc >>"$SCRATCH/async"
done
has "the platform's port" "$W/err.1" "shard 0 is served at 10.9.0.11:2223"
ok "the model, of algo-1" test -s "$W/algo-1/model/model.safetensors"
same "and of nobody else" "" "$(find "$W/algo-2/model" -type f)"
if [ "$real" ]; then
    in_step=$(mean <"$SCRATCH/in_step") async=$(mean <"$SCRATCH/async")
    echo "AUC on real clicks, 2 hosts, mean of 2 seeds: $in_step in step, $async asynchronously; $(grep -o 'staleness .*' "$W/err.1")"
    ok "AUC: $in_step in step, $async asynchronously" awk -v a="$async" -v b="$in_step" 'BEGIN {exit !(a > 0.6 && b > 0.6 && a > b - 0.005)}'
fi
for n in 1 2; do until_true 5 nothing_on algo-$n; same "nothing is left on algo-$n" "" "$(left_on algo-$n)"; done

train_on cable --epochs=1000
steps() { grep -q 'step=[0-9]*0 ' "$W/out.1"; }
ok "it trains" until_true 60 steps
begun_ms=$(now_ms)
cable algo-2 down
end_all
took=$(($(now_ms) - begun_ms))
ok "in time: $took ms" test $took -lt 12000
has "algo-1 lost algo-2" "$W/algo-1/output/failure" "lost algo-2 ("
has "algo-2 lost algo-1" "$W/algo-2/output/failure" "lost algo-1 ("
finish_tests
