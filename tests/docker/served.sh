#!/bin/bash
# Parameter servers from the image, as the platform starts them: algo-1 and algo-2 on a network with names, DeepFM on clicks, asked
# for by the platform's hyperparameter. Both end well, with one model; then a host is killed, and the other one says which.
set -u
. "$(dirname "$0")/engine.bash"

need_image
network=trainyard-served-$$
docker network create "$network" >"$scratch/network" 2>&1 || skip_all "no network between containers: $(tail -n 1 "$scratch/network")"
trap 'for host in algo-1 algo-2; do docker rm -f -v "$network-$host"; done >"$scratch/removed" 2>&1
    docker network rm -f "$network" >"$scratch/removed" 2>&1; finish' EXIT

awk 'BEGIN {
    srand(7)
    print "Id,Label"
    for (n = 0; n < 1500; n++) {
        a = int(rand() * 4); b = int(rand() * 5)
        line = n "," (rand() < (a == b ? 0.8 : 0.2) ? 1 : 0)
        for (f = 0; f < 13; f++) line = line "," int(rand() * 9)
        for (f = 0; f < 26; f++) line = line "," (f == 0 ? "a" a : f == 1 ? "b" b : "c" int(rand() * 3))
        print line
    }
}' >"$scratch/clicks.csv"
examples/deepfm-c/data "$scratch/clicks.csv" "$scratch/data" >"$scratch/made" 2>&1

# begin NAME ARGUMENT...: both hosts, with trees $scratch/NAME-algo-N, begin to train.
begin() {
    local host tree
    name=$1
    for host in algo-1 algo-2; do
        docker rm -f -v "$network-$host" >"$scratch/removed" 2>&1
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
        docker run -d --name "$network-$host" --hostname "$host" --network "$network" --network-alias "$host" --stop-timeout 60 \
            --read-only --user 1000:1000 --cap-drop ALL --security-opt no-new-privileges \
            -v "$tree:/opt/ml" "$image" train "${@:2}" >"$scratch/id" 2>&1 || cat "$scratch/id"
    done
}
status() {
    timeout 200 docker wait "$network-$1" 2>"$scratch/wait" || echo "no end"
    docker logs "$network-$1" >"$scratch/$name-$1.log" 2>&1
}
trains() { timeout 120 docker logs -f "$network-algo-1" 2>&1 | grep -aqm 1 'step=[0-9]\{2,\}'; }
empty() { is "$(find "$1" -type f)" ""; }

begin whole
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
