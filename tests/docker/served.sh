#!/bin/bash
# Parameter servers from the image, as the platform starts them: algo-1 and algo-2 on a network with names, DeepFM on clicks, asked
# for by the platform's hyperparameter. Both end well, with one model; then a host is killed, and the other one says which.
set -u
. "$(dirname "$0")/engine.bash"

need_image
. "$(dirname "$0")/pair.bash"
. tests/clicks.bash

made_clicks 6000 >"$scratch/clicks.csv"
examples/deepfm-c/data "$scratch/clicks.csv" "$scratch/data" >"$scratch/made" 2>&1

# begin NAME ARGUMENT...: both hosts, with trees $scratch/NAME-algo-N, begin to train.
begin() {
    local host tree
    name=$1
    for host in algo-1 algo-2; do
        tree=$scratch/$name-$host
        mkdir -p "$tree/input/config" "$tree/code" "$tree/input/data"
        cp examples/deepfm-c/model.c examples/deepfm-c/train.yaml "$tree/code"
        cp -r "$scratch/data"/* "$tree/input/data"
        echo '{"sagemaker_parameter_server_enabled": "true", "metrics": "[auc]"}' >"$tree/input/config/hyperparameters.json"
        echo '{"train": {"TrainingInputMode": "File"}, "test": {"TrainingInputMode": "File"}}' >"$tree/input/config/inputdataconfig.json"
        echo "{\"current_host\": \"$host\", \"hosts\": [\"algo-1\", \"algo-2\"], \"network_interface_name\": \"eth0\"}" \
            >"$tree/input/config/resourceconfig.json"
        chown -R 1000:1000 "$tree"
        chmod 755 "$scratch"
        host_run "$host" "$tree" "${@:2}"
    done
}

begin whole --epochs=16
for host in algo-1 algo-2; do
    check "whole: $host's exit code" is "$(status $host)" 0
    check "whole: no failure file on $host" absent "$scratch/whole-$host/output/failure"
done
check "whole: gradients of both" has "$scratch/whole-algo-1.log" 'server: [0-9]+ gradients, staleness'
check "whole: the AUC" has "$scratch/whole-algo-1.log" 'val_auc=0\.[6-9]'
check "whole: the model, from algo-1" [ -s "$scratch/whole-algo-1/model/model.safetensors" ]
check "whole: and from nobody else" empty "$scratch/whole-algo-2/model"
[ "$failed" = 0 ] || tail -n 12 "$scratch/whole-algo-1.log" "$scratch/whole-algo-2.log"

begin killed --epochs=2000
check "killed: they train" trains
docker kill "$network-algo-2" >"$scratch/kill" 2>&1
check "killed: algo-1's exit code" not is "$(status algo-1)" 0
check "killed: algo-1's failure file" has "$scratch/killed-algo-1/output/failure" "lost algo-2"
