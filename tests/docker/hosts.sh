#!/bin/bash
# Two hosts from the image, as the platform starts them: algo-1 and algo-2 on a network with names, each with its own /opt/ml and a
# resourceconfig.json that names both. The digits are trained to the end and one model is written; a stop of one host is a
# checkpoint of the job; a host that is killed ends the other one in time, with the right words in its failure file.
set -u
. "$(dirname "$0")/engine.bash"

need_image
. "$(dirname "$0")/pair.bash"
now_ms() { date +%s%3N; }

# begin NAME ARGUMENT...: both hosts, with fresh trees $scratch/NAME-algo-N, begin to train.
begin() {
    local host
    name=$1
    for host in algo-1 algo-2; do
        [ -d "$scratch/$name-$host" ] || make_tree "$name-$host"
        cat >"$scratch/$name-$host/input/config/resourceconfig.json" <<JSON
{"current_host": "$host", "current_instance_type": "local", "current_group_name": "homogeneousCluster",
 "hosts": ["algo-1", "algo-2"], "network_interface_name": "eth0",
 "instance_groups": [{"instance_group_name": "homogeneousCluster", "instance_type": "local", "hosts": ["algo-1", "algo-2"]}]}
JSON
        host_run "$host" "$scratch/$name-$host" "${@:2}"
    done
}
# both_end STATUS1 STATUS2
both_end() {
    check "$name: algo-1's exit code" is "$(status algo-1)" "$1"
    check "$name: algo-2's exit code" is "$(status algo-2)" "$2"
    [ "$failed" = 0 ] || tail -n 12 "$scratch/$name-algo-1.log" "$scratch/$name-algo-2.log"
}
accurate() {
    grep '"split":"validation"' "$1" | tail -n 1 | grep -o '"accuracy":[0-9.e-]*' |
        awk -F : '$2 >= 0.97 {good = 1} {print "accuracy " $2} END {exit !good}'
}

begin whole
both_end 0 0
check "whole: 97 % and more on the held-out fifth" accurate "$scratch/whole-algo-1/output/data/metrics.jsonl"
check "whole: the model, from algo-1" [ -s "$scratch/whole-algo-1/model/model.onnx" ]
check "whole: and from nobody else" empty "$scratch/whole-algo-2/model"
for host in algo-1 algo-2; do check "whole: no failure file on $host" absent "$scratch/whole-$host/output/failure"; done

# The other one ends within 10 s and says who was lost.
kill_host() { # HOST OTHER
    local began
    begin "killed-$1" --epochs=2000
    check "killed $1: they train" trains
    began=$(now_ms)
    docker kill "$network-$1" >"$scratch/kill" 2>&1
    timeout 60 docker wait "$network-$2" >"$scratch/status" 2>&1
    began=$(($(now_ms) - began))
    echo "killed $1: $2 ended after $began ms"
    check "killed $1: $2 ends within 10 s ($began ms)" [ $began -lt 10000 ]
    check "killed $1: $2's exit code" not is "$(cat "$scratch/status")" 0
    check "killed $1: $2's failure file" has "$scratch/killed-$1-$2/output/failure" "lost $1"
    [ "$failed" = 0 ] || docker logs "$network-$2" 2>&1 | tail -n 12
}
kill_host algo-2 algo-1
kill_host algo-1 algo-2

begin stopped --epochs=2000
check "stopped: they train" trains
docker stop "$network-algo-2" >"$scratch/stop" 2>&1
both_end 143 143
check "stopped: a checkpoint on algo-1" [ -n "$(find "$scratch/stopped-algo-1/checkpoints" -type f -size +0)" ]
for host in algo-1 algo-2; do check "stopped: no failure file on $host" absent "$scratch/stopped-$host/output/failure"; done
