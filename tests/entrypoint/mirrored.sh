#!/bin/bash
# mirrored.sh - `strategy: mirrored` from outside, on GPUs that tests/fakes stands in for: several train to the numbers of
# one, resume to the same bits, stop when told to, and refuse in words what cannot be.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/gpu.bash
gpu() { LD_LIBRARY_PATH=${LIBS:-$FAKES/gpu}:$FAKES TY_FAKE_GPUS=${GPUS:-$CARD;$CARD} "$@"; }

# A perceptron without anything random. 50 rows of validation do not fill their last batch: one GPU has none of its rows.
small() {
    perceptron "$@"
    recipe "strategy: mirrored"
}
# numbers: metric lines without speeds.
numbers() { grep -E '^(val )?step=' "$W/out" | sed 's/ samples_per_s=.*//'; }
refused() { # WHAT STATUS WORDS SETTINGS...
    gpu run "${@:4}"
    same "$1" "$2" $rc
    has "$1: in words" "$W/err" "$3"
}

# ---- the same numbers ----
small one
gpu run --log_every=1 --strategy=one_device
same "one GPU" 0 $rc
has "the first" "$W/err" "  device      GPU 0, Stand-in (compute capability 9.0)"
numbers >"$SCRATCH/one.numbers"
ONE=$ML

small two
gpu run --log_every=1
same "two GPUs" 0 $rc
has "the banner names them" "$W/err" "  device      GPUs 0, 1, Stand-in (compute capability 9.0), mirrored by nccl, 8 rows each"
has "the memory is that of each" "$W/err" ", on each of 2 GPUs"
has "the batch is that of both" "$W/err" "60 steps of 16 rows"
numbers >"$W/two.numbers"
alike "the numbers of one" "$SCRATCH/one.numbers" "$W/two.numbers"
ok "the weights of one, nearly" near "$ONE" "$ML"
TWO=$(bits "$ML" 2>/dev/null)

small named
TY_FAKE_TRACE=$W/trace gpu run --device=gpu:1,0 --cross_device=reduction_to_one_device
same "named ones" 0 $rc
has "in this order" "$W/err" "GPUs 1, 0, Stand-in (compute capability 9.0), mirrored by reduction_to_one_device"
ok "the same weights, nearly" near "$ONE" "$ML"
has "by sums that go to one" "$W/trace" "capturing ncclBroadcast"
small held
TY_FAKE_NCCL_HELD=335544320 gpu run --max_steps=1
same "what NCCL takes to be connected" 0 $rc
has "is asked for" "$W/err" "kernels and libraries 320"
small halves
hyper '{"strategy": "mirrored", "device": "gpu:0,1", "cross_device": "hierarchical_copy", "max_steps": "3"}'
TY_FAKE_TRACE=$W/trace gpu run
same "as hyperparameters" 0 $rc
has "by sums of parts" "$W/trace" "capturing ncclReduceScatter"
has "in halves" "$W/err" "mirrored by hierarchical_copy"

# ---- 330 rows: the last batch of an epoch has 10, eight of them on the first GPU ----
for gpus in "$CARD" "$CARD;$CARD"; do
    small "join_${#gpus}" 330
    GPUS=$gpus gpu run --log_every=1 --data.train.remainder=join --strategy="$([ "$gpus" = "$CARD" ] && echo one_device || echo mirrored)"
    same "rows that do not count" 0 $rc
    has "one more step an epoch" "$W/err" "63 steps of 16 rows"
    numbers >"$SCRATCH/join.${#gpus}"
done
small join_cpu 330
run --log_every=1 --data.train.remainder=join --device=cpu --strategy=one_device
numbers >"$SCRATCH/join.cpu"
for gpus in "$CARD" "$CARD;$CARD"; do alike "the numbers of a CPU" "$SCRATCH/join.cpu" "$SCRATCH/join.${#gpus}"; done

# ---- checkpoints ----
small stopped
stopped_after '^step=1[0-9] ' gpu start
same "stopped" 143 $rc
has "with a checkpoint" "$W/err" "on request"
gpu run
same "resumed" 0 $rc
has "from there" "$W/err" "resuming at step"
lacks "by the same plan" "$W/err" "has changed since the checkpoint"
same "as if it had never been stopped" "$TWO" "$(bits "$ML" 2>/dev/null)"

small fewer
gpu run --max_steps=20
gpu run --max_steps=40 --strategy=one_device
same "on one GPU" 0 $rc
has "from the checkpoint of two" "$W/err" "resuming at step 20 of 40"
has "and it says so" "$W/err" "the recipe or the device has changed since the checkpoint"
GPUS="$CARD;$CARD;$CARD;$CARD" gpu run
has "from that of one on four" "$W/err" "resuming at step 40 of 60"
has "rows" "$W/err" "GPUs 0, 1, 2, 3, Stand-in (compute capability 9.0), mirrored by nccl, 4 rows each"
ok "the weights of one, nearly" near "$ONE" "$ML"

# ---- the order of sums, and moments in parts: on four, where an order shows ----
on_four() { # NAME SETTINGS...
    small "$1"
    GPUS="$CARD;$CARD;$CARD;$CARD" gpu run --log_every=1 "${@:2}"
    same "$1" 0 $rc
    bits "$ML" >"$SCRATCH/bits.$1" 2>/dev/null
}
PARTS=--distributed.optimizer_sharding=true SMALL=--distributed.bucket_bytes=1 STRICT=--deterministic=strict
on_four plain
on_four plain_small $SMALL
ok "sums in an order of NCCL's own: other buckets, other bits" test -n "$(diff "$SCRATCH"/bits.plain{,_small})"
on_four strict $STRICT
has "who adds up how" "$W/err" "mirrored by nccl in rank order, 4 rows each"
numbers >"$W/numbers"
alike "in rank order: the numbers of one" "$SCRATCH/one.numbers" "$W/numbers"
on_four strict_small $STRICT $SMALL
on_four strict_parts $STRICT $PARTS
on_four strict_small_parts $STRICT $SMALL $PARTS
for how in small parts small_parts; do
    same "in rank order, $how: the same bits" "$(cat "$SCRATCH/bits.strict")" "$(cat "$SCRATCH/bits.strict_$how")"
done
on_four parts $PARTS
numbers >"$W/numbers"
alike "moments in parts: the numbers of one" "$SCRATCH/one.numbers" "$W/numbers"
ok "the weights of one, nearly" near "$ONE" "$ML"
small parts_stopped
GPUS="$CARD;$CARD;$CARD;$CARD" gpu run $STRICT $PARTS --max_steps=30
GPUS="$CARD;$CARD;$CARD;$CARD" gpu run $STRICT $PARTS
has "parts again" "$W/err" "resuming at step 30 of 60"
same "as if it had never been stopped" "$(cat "$SCRATCH/bits.strict")" "$(bits "$ML" 2>/dev/null)"
small parts_fewer
GPUS="$CARD;$CARD;$CARD;$CARD" gpu run $PARTS --max_steps=20
gpu run $PARTS --max_steps=40
has "on two" "$W/err" "resuming at step 20 of 40"
gpu run --strategy=one_device
has "on one" "$W/err" "resuming at step 40 of 60"
ok "moments are whole in checkpoints: the weights of one, nearly" near "$ONE" "$ML"
moments() { # SETTINGS...: bytes that the plan has for them
    gpu "$BIN/trainyard" plan "$ML/code/train.yaml" --data-dir="$ML/input/data" "$@" |
        sed -n 's/ *\([0-9.]*\) KiB  moments and counters/\1/p'
}
same "half of the moments on each of two" "14.1 7.1" "$(moments) $(moments $PARTS)"

# ---- memory, batch_size auto ----
small auto 2000
planned() { # KEY SETTINGS...: a number of the plan
    gpu "$BIN/trainyard" plan "$ML/code/train.yaml" --data-dir="$ML/input/data" --json "${@:2}" |
        grep -o "\"$1\": [0-9]*" | head -1 | grep -o '[0-9]*$'
}
ok "a batch on two GPUs is half of it on each" test "$(planned batch_bytes --batch_size=128)" -lt \
    $(($(planned batch_bytes --batch_size=64 --strategy=one_device) + 1024))
little="Little,90,4,$(($(planned total_bytes --batch_size=1280) * 100 / 95))" less="Less,90,4,$(planned total_bytes --batch_size=640)"
chosen() { grep -o 'batch_size auto is [0-9]*' "$W/err" | head -1 | grep -o '[0-9]*$'; }
GPUS="$CARD;$little" gpu run --batch_size=auto --max_steps=1
same "batch_size auto" 0 $rc
has "of the GPU that has least" "$W/err" "(free memory of each GPU)"
both=$(chosen)
gpu run --batch_size=auto --max_steps=2
ok "which is what fits ($both)" test "${both:-0}" -ge 1120 -a "${both:-0}" -le 1280
same "as many on each" 0 $((${both:-1} % 16))
same "the checkpoint's batch, whatever there is" "$both" "$(chosen)"
rm -rf "$ML/checkpoints"
GPUS="$less;$CARD" refused "too little memory" 71 "of each GPU's memory" --batch_size=1600
fits=$(grep -o 'largest batch that fits is [0-9]*' "$W/err" | grep -o '[0-9]*$')
ok "what would fit ($fits)" test "${fits:-0}" -ge 480 -a "${fits:-0}" -le 640

# ---- what cannot be ----
small wrong
refused "rows that cannot be shared out" 78 "batch_size: 17 rows cannot be shared out to 2 GPUs" --batch_size=17
has "how many can" "$W/err" "take 18"
GPUS="$CARD;$CARD;$CARD" refused "halves of three" 78 "hierarchical_copy is for an even number of GPUs, found 3" \
    --cross_device=hierarchical_copy --batch_size=15
GPUS="$CARD;Older,80,4,2000000000" refused "unlike ones" 78 "GPU 0 has 9.0, GPU 1 has 8.0" --device=gpu:0,1
GPUS="$CARD;Older,80,4,2000000000" gpu run --max_steps=1
has "which are left out where none is named" "$W/err" "  device      GPU 0, Stand-in"
rm -rf "$ML/checkpoints"
refused "one that is not there" 66 "there is no GPU number 7: the driver shows 2" --device=gpu:0,7
refused "one that is named twice" 78 "NUMBER,NUMBER (each once), found \"gpu:1,1\"" --device=gpu:1,1
refused "no number" 78 "found \"gpu:0,\"" --device=gpu:0,
refused "two for one device" 78 "strategy one_device trains on one GPU, found 2" --device=gpu:0,1 --strategy=one_device
refused "the CPU" 78 "strategy mirrored is for GPUs, found cpu" --device=cpu
refused "another word" 78 "one_device, mirrored, multi_worker_mirrored" --strategy=mirrord
mkdir "$W/libs"
ln -s "$FAKES"/gpu/* "$W/libs"
rm "$W/libs/libnccl.so.2"
ln -s "$FAKES/gpu/libcudnn.so.9" "$W/libs/libnccl.so.2" # a library without its functions
LIBS=$W/libs refused "no NCCL" 70 "2 GPUs exchange gradients by NCCL"
has "what to do" "$W/err" "strategy: one_device"
LIBS=$W/libs gpu "$BIN/trainyard" doctor >"$W/out"
has "doctor knows" "$W/out" "Not as ranks with a GPU each: ranks exchange gradients by NCCL"
has "of both" "$W/out" "Not on several GPUs: 2 GPUs exchange gradients by NCCL"
run --max_steps=1
same "no GPU at all" 0 $rc
has "the CPU has the whole batch" "$W/err" "  device      CPU: no GPU driver"
rm -rf "$ML/checkpoints"
TY_FAKE_FAIL=1,4 refused "a GPU that fails" 70 "GPU 1: starting a step"

# ---- commands ----
words() { gpu "$BIN/trainyard" "$1" "$ML/code/train.yaml" --data-dir="$ML/input/data" "${@:2}" >"$W/out" 2>"$W/err"; }
small commands
words plan
same "plan" 0 $?
has "of both" "$W/out" "  device      GPUs 0, 1, Stand-in"
has "of each" "$W/out" "at least, on each GPU"
words plan --json
has "for programs" "$W/out" '"gpus": 2'
words profile --steps=2
same "profile" 0 $?
has "of both" "$W/out" "  device      GPUs 0, 1, Stand-in"
has "what both share too" "$W/out" "on the GPU, of 2, where it took longest"
ok "with the sums" grep -qE ' (communication|exchanges?|sums?)' "$W/out"
gpu "$BIN/trainyard" replay 1 "$ML/code/train.yaml" --data-dir="$ML/input/data" >"$W/out" 2>"$W/err"
same "replay" 0 $?
has "says where" "$W/out" "  device      CPU: values are looked at on one device"
gpu "$BIN/trainyard" doctor >"$W/out"
has "doctor" "$W/out" "Fit for 2 ranks on this host with a GPU each"
has "and together" "$W/out" "Fit to train on 2 GPUs together, which strategy: mirrored takes: 0, 1."
gpu "$BIN/trainyard" doctor --json >"$W/out"
ok "for programs" python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["trains_mirrored"] != [0, 1])' "$W/out"

finish_tests
