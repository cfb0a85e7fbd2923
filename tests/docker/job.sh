#!/bin/bash
# The main job in the image, as the platform runs it: `docker run -v ML:/opt/ml IMAGE train`, with as little as the image
# asks for (root read-only, uid 1000, no capabilities, no network), and as root. Then `docker stop` in the middle and the resume,
# which must end with the same weights as the run that nobody stopped.
set -u
. "$(dirname "$0")/engine.bash"

need_image
make_tree whole
make_tree stopped
make_tree root
chown -R 0:0 "$scratch/root"

# judge NAME STATUS: the job in tree NAME that ended with STATUS did all of its work.
judge() {
    local ml=$scratch/$1
    check "$1: exit code" is "$2" 0
    check "$1: no failure file" absent "$ml/output/failure"
    check "$1: model.onnx" [ -s "$ml/model/model.onnx" ]
    check "$1: model.safetensors" [ -s "$ml/model/model.safetensors" ]
    check "$1: metrics" [ -s "$ml/output/data/metrics.jsonl" ]
    check "$1: a checkpoint" [ -n "$(find "$ml/checkpoints" -type f -size +0)" ]
    check "$1: 97 % and more on the held-out fifth" accurate "$ml/output/data/metrics.jsonl"
    [ "$2" = 0 ] || tail -n 20 "$scratch/$1.log"
}
accurate() {
    grep -o '"val_accuracy": *[0-9.e-]*' "$1" | tail -n 1 | awk -F ': *' '{print; exit !($2 >= 0.97)} END {if (!NR) exit 1}'
}
owned_by() { [ -z "$(find "$2" ! -uid "$1")" ] || { find "$2" ! -uid "$1" -ls; return 1; }; }

judge whole "$(run_image whole.log "${hardened[@]}" -v "$scratch/whole:/opt/ml" -- train)"
check "whole: all files are the user's" owned_by 1000 "$scratch/whole/model"

judge root "$(run_image root.log -v "$scratch/root:/opt/ml" -- train --epochs=5)"

# Stop: only once it trains. A failure file would make the platform call a stopped job failed.
name=trainyard-test-stop-$$
ml=$scratch/stopped
containers+=("$name")
docker run -d --name "$name" --stop-timeout 60 "${hardened[@]}" -v "$ml:/opt/ml" "$image" train >"$scratch/id" 2>&1
for ((i = 0; i < 300; i++)); do
    docker logs "$name" >"$scratch/stopped.log" 2>&1
    grep -aqE 'step=[0-9]{2,}' "$scratch/stopped.log" && break
    sleep 0.1
done
began=$SECONDS
docker stop "$name" >"$scratch/stop" 2>&1
took=$((SECONDS - began))
docker logs "$name" >"$scratch/stopped.log" 2>&1
check "stopped: it was in the middle of training" not grep -q '^complete' "$scratch/stopped.log"
check "stopped: within the grace time, without a kill ($took s)" [ "$took" -lt 30 ]
check "stopped: exit code is that of the signal" is "$(docker inspect --format '{{.State.ExitCode}}' "$name")" 143
check "stopped: a checkpoint was written" [ -n "$(find "$ml/checkpoints" -type f -size +0)" ]
check "stopped: no failure file" absent "$ml/output/failure"

judge stopped "$(run_image resumed.log "${hardened[@]}" -v "$ml:/opt/ml" -- train)"
check "resumed: says so" has "$scratch/resumed.log" '[Rr]esum'
check "resumed: the same weights as without a stop" cmp "$scratch/whole/model/model.safetensors" "$ml/model/model.safetensors"
