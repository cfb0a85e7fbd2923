#!/bin/bash
# The main job in the image, as the platform runs it: `docker run -v ML:/opt/ml IMAGE train`, with as little as the image
# asks for (root read-only, uid 1000, no capabilities, no network), and as root. Then `docker stop` in the middle and the resume,
# which must end with the same weights as the run that nobody stopped.
set -u
. "$(dirname "$0")/engine.bash"

need_image
for tree in root whole stopped noexec; do make_tree $tree; done
chown -R 0:0 "$scratch/root"

accurate() {
    grep '"split":"validation"' "$1" | tail -n 1 | grep -o '"accuracy":[0-9.e-]*' |
        awk -F : '$2 >= 0.97 {good = 1} {print "accuracy " $2} END {exit !good}'
}
owned_by() { [ -z "$(find "$2" ! -uid "$1")" ] || { find "$2" ! -uid "$1" -ls; return 1; }; }

# judge NAME STATUS LOG: the job in tree NAME that ended with STATUS did all of its work.
judge() {
    local ml=$scratch/$1
    check "$1: exit code" ended_well "$2" "$scratch/$3"
    check "$1: no failure file" absent "$ml/output/failure"
    check "$1: model.onnx" [ -s "$ml/model/model.onnx" ]
    check "$1: model.safetensors" [ -s "$ml/model/model.safetensors" ]
    check "$1: a checkpoint" [ -n "$(find "$ml/checkpoints" -type f -size +0)" ]
    check "$1: 97 % and more on the held-out fifth" accurate "$ml/output/data/metrics.jsonl"
}
ended_well() { is "$1" 0 || { tail -n 20 "$2"; return 1; }; }

# The main job: root's own tree, nothing but the one mount.
judge root "$(run_image root.log -v "$scratch/root:/opt/ml" -- train)" root.log

# As little as it needs. More epochs, because the stop below must come in the middle of the same job.
judge whole "$(run_image whole.log "${hardened[@]}" -v "$scratch/whole:/opt/ml" -- train --epochs=40)" whole.log
check "whole: all files are the user's" owned_by 1000 "$scratch/whole"

# A failure file would make the platform call a stopped job failed.
name=trainyard-test-stop-$$
ml=$scratch/stopped
containers+=("$name")
docker run -d --name "$name" --stop-timeout 60 "${hardened[@]}" -v "$ml:/opt/ml" "$image" train --epochs=40 >"$scratch/id" 2>&1
timeout 120 docker logs -f "$name" 2>&1 | grep -aqm 1 'step=[0-9]\{2,\}'
began=$SECONDS
docker stop "$name" >"$scratch/stop" 2>&1
took=$((SECONDS - began))
docker logs "$name" >"$scratch/stopped.log" 2>&1
check "stopped: it had begun to train" has "$scratch/stopped.log" 'step=[0-9]{2,}'
check "stopped: it had not ended" not grep -q '^complete' "$scratch/stopped.log"
check "stopped: within the grace time, without a kill ($took s)" [ "$took" -lt 30 ]
check "stopped: exit code is that of the signal" is "$(docker inspect --format '{{.State.ExitCode}}' "$name")" 143
check "stopped: a checkpoint was written" [ -n "$(find "$ml/checkpoints" -type f -size +0)" ]
check "stopped: no failure file" absent "$ml/output/failure"

judge stopped "$(run_image resumed.log "${hardened[@]}" -v "$ml:/opt/ml" -- train --epochs=40)" resumed.log
check "resumed: from the checkpoint of the stop" has "$scratch/resumed.log" 'resuming at step [1-9]'
check "resumed: the same weights as without a stop" cmp "$scratch/whole/model/model.safetensors" "$ml/model/model.safetensors"

# docker's --tmpfs is noexec: kernels are compiled there all the same.
check "noexec: kernels run where /tmp allows no code" ended_well \
    "$(run_image noexec.log "${hardened[@]}" --tmpfs /tmp:noexec -v "$scratch/noexec:/opt/ml" -- train --epochs=1)" "$scratch/noexec.log"

# What a user does wrong is told in one look, and in the failure file that the platform reads.
rm "$scratch/noexec/code/train.yaml"
check "no recipe: an error" not is "$(run_image wrong.log "${hardened[@]}" -v "$scratch/noexec:/opt/ml" -- train)" 0
check "no recipe: the failure file says it" has "$scratch/noexec/output/failure" 'train\.yaml|recipe'
chmod -R a-w "$scratch/noexec" && chown -R 0:0 "$scratch/noexec"
check "a tree that belongs to somebody else: an error" \
    not is "$(run_image foreign.log "${hardened[@]}" -v "$scratch/noexec:/opt/ml" -- train)" 0
check "a tree that belongs to somebody else: which folder" has "$scratch/foreign.log" '/opt/ml/.*([Pp]ermission|denied)'
