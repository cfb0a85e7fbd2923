#!/bin/bash
# train_gpu.sh - ranks with a GPU each, on GPUs and an NCCL that tests/fakes stands in for: one result however they are
# spread, one culprit however one dies, and in words what cannot be.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/gpu.bash
. tests/dist/trees.bash
need_mpi "ranks on GPUs"
export LD_LIBRARY_PATH=$FAKES/gpu:$FAKES TY_FAKE_NCCL_DIR=$SCRATCH
on_gpus() { # NAME HOSTS N: a tree whose hosts have N GPUs each
    tree "$1" "$2"
    sed -i 's/device: cpu/device: gpu/' "$W"/algo-*/code/train.yaml
    TY_FAKE_GPUS=$(printf "$CARD;%.0s" $(seq "$3"))
    export TY_FAKE_GPUS=${TY_FAKE_GPUS%;}
}
host_environment() { echo "NCCL_HOSTID=$1"; } # these hosts are one machine

on_gpus one 1 1
SAGEMAKER_BASE_DIR=$W/algo-1 run --log_every=1 --max_steps=25
same "one GPU" 0 $rc
has "which is one" "$W/err" "  device      GPU 0, Stand-in (compute capability 9.0)"
numbers "$W/out" >"$SCRATCH/one.numbers"
ONE=$W/algo-1

# ---- one result ----
spread() { # HOSTS GPUS JOINED SETTINGS...
    local how=$3
    on_gpus "on_$1x$2_$how" "$1" "$2"
    hosts_run --max_steps=25 --strategy=data_parallel "${@:4}"
    same "exit statuses" "$(printf '0 %.0s' $(seq "$1") | xargs)" "$statuses"
    has "in the banner" "$W/err.1" \
        "  device      GPU 0, Stand-in (compute capability 9.0); $(($1 * $2)) ranks, a GPU each, joined by $how, $((16 / $1 / $2)) rows each"
    numbers "$W/out.1" >"$W/numbers"
    alike "the numbers of one GPU" "$SCRATCH/one.numbers" "$W/numbers"
    ok "the weights of one, nearly" near "$ONE" "$W/algo-1"
    ok "nothing is left of the meeting" test -z "$(ls "$SCRATCH"/ty-nccl-* 2>/dev/null)"
}
spread 2 1 nccl
spread 1 2 nccl --processes_per_host=2
lacks "no number that nobody has measured" "$W/err.1" "  comm  "
spread 2 2 hierarchical_copy --processes_per_host=2 --distributed.hierarchical=true --strategy=multi_worker_mirrored

on_gpus wire 2 1
hosts_run --max_steps=25 --strategy=data_parallel --distributed.wire=bfloat16
same "gradients as bfloat16: exit statuses" "0 0" "$statuses"
numbers "$W/out.1" >"$W/numbers"
rounded() { # A B: the same steps, numbers that differ a little
    python3 - "$1" "$2" <<'P'
import re, sys
a, b = ([[float(x) for x in re.findall(r"=([-+.e\d]+)", line)] for line in open(p)] for p in sys.argv[1:3])
assert len(a) == len(b) > 20 and all(len(x) == len(y) for x, y in zip(a, b))
off = max(abs(x - y) / max(abs(x), 1e-3) for r, s in zip(a, b) for x, y in zip(r, s))
sys.exit(not 0 < off < 0.02)
P
}
ok "the numbers of one GPU, rounded" rounded "$SCRATCH/one.numbers" "$W/numbers"

# ---- sums in rank order: the same bits however ranks are spread, and where all are threads of one process ----
strict() { # NAME HOSTS GPUS SETTINGS...
    on_gpus "$1" "$2" "$3"
    hosts_run --max_steps=25 --deterministic=strict "${@:4}"
    same "$1: exit statuses" "$(printf '0 %.0s' $(seq "$2") | xargs)" "$statuses"
    bits "$W/algo-1" >"$SCRATCH/bits.$1" 2>/dev/null
}
PARTS=--distributed.optimizer_sharding=true SMALL=--distributed.bucket_bytes=1
strict order_mirrored 1 4 --strategy=mirrored
strict order_1x4 1 4 --strategy=data_parallel --processes_per_host=4
has "in the banner" "$W/err.1" "4 ranks, a GPU each, joined by nccl in rank order, 4 rows each"
numbers "$W/out.1" >"$W/numbers"
alike "the numbers of one GPU" "$SCRATCH/one.numbers" "$W/numbers"
strict order_2x2 2 2 --strategy=data_parallel --processes_per_host=2 --distributed.hierarchical=true $SMALL $PARTS
for how in 1x4 2x2; do
    same "$how: the same bits" "$(cat "$SCRATCH/bits.order_mirrored")" "$(cat "$SCRATCH/bits.order_$how")"
done

# ---- moments in parts ----
on_gpus parts 2 1
hosts_run --max_steps=15 $PARTS
same "moments in parts: exit statuses" "0 0" "$statuses"
numbers "$W/out.1" | grep ^step= >"$W/numbers"
alike "the numbers of one GPU" <(grep ^step= "$SCRATCH/one.numbers" | head -n 15) "$W/numbers"
hosts_run --max_steps=20 $PARTS
has "parts again" "$W/err.1" "resuming at step 15 of 20"
HOSTS=1
echo '{"current_host": "algo-1", "hosts": ["algo-1"]}' >"$W/algo-1/input/config/resourceconfig.json"
hosts_run --max_steps=25
has "and a whole" "$W/err.1" "resuming at step 20 of 25"
ok "the weights of one, nearly" near "$ONE" "$W/algo-1"

on_gpus odd 1 5
kept() { find "$TRAINYARD_CACHE_DIR" -type f | sort | xargs ls -i | sha256sum; }
before=$(kept)
hosts_run --strategy=data_parallel --cross_device=hierarchical_copy --processes_per_host=5 --batch_size=20 --max_steps=2
same "groups of two, and five ranks" 78 "$statuses"
has "in words" "$W/err.1" "hierarchical_copy is for groups of equal size, found 5 ranks and 2 in each"
same "before a kernel is compiled" "$before" "$(kept)"

# ---- other ranks go on ----
on_gpus resume 2 1
hosts_run --max_steps=20
same "two ranks" "0 0" "$statuses"
HOSTS=1
echo '{"current_host": "algo-1", "hosts": ["algo-1"]}' >"$W/algo-1/input/config/resourceconfig.json"
hosts_run --max_steps=25
same "one GPU goes on" 0 "$statuses"
has "where they were" "$W/err.1" "resuming at step 20 of 25"
numbers "$W/out.1" >"$W/numbers"
alike "to the same numbers" <(grep -E 'step=2[1-5] ' "$SCRATCH/one.numbers") "$W/numbers"

# ---- failures: whether NCCL notices that a rank died, or the agent alone ----
is_gone() { [ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"; }
killed() { # DEAF
    on_gpus "killed$1" 2 1
    TY_FAKE_NCCL_DEAF=$1
    [ -n "$1" ] && export TY_FAKE_NCCL_DEAF || unset TY_FAKE_NCCL_DEAF
    hosts_start --epochs=100000
    ok "it trains" until_true 90 has_steps "$W/out.1" 5
    victim=$(ranks_of "$W/algo-2") other=$(ranks_of "$W/algo-1")
    start_ms=$(date +%s%3N)
    kill -9 "$victim"
    ok "the other ends" until_true 60 is_gone "$other"
    took_ms=$(($(date +%s%3N) - start_ms))
    hosts_end
    unset TY_FAKE_NCCL_DEAF
    same "exit statuses" "137 137" "$statuses"
    for n in 1 2; do
        has "the culprit, on algo-$n" "$W/algo-$n/output/failure" "rank 1 (algo-2, pid $victim) was killed by signal 9"
    done
    ok "soon ($took_ms ms)" test $took_ms -lt 60000
}
killed ""
killed 1

on_gpus stuck 2 1
TY_FAKE_NCCL_STUCK=6,40 hosts_run
same "a sum that never ends: exit statuses" "70 70" "$statuses"
has "what NCCL says" "$W/algo-1/output/failure" \
    "exchanging with other GPUs: error 6 of NCCL (remote process exited or there was a network error)"

# Where a rank fails that others wait for in NCCL, to be connected before the first step.
on_gpus unconnected 2 1
TY_FAKE_NCCL_REFUSED=1,1 hosts_run
same "an exchange that is refused to one: exit statuses" "70 70" "$statuses"
has "in words" "$W/algo-2/output/failure" "ncclAllReduce: error 5 of NCCL (invalid usage)"

# Nothing fails and nothing ends: that nobody gets on is what the agents see.
on_gpus silent 2 1
TY_FAKE_NCCL_STUCK=0,40 hosts_run --distributed.stall_seconds=12
same "a sum of which NCCL says nothing: exit statuses" "75 75" "$statuses"
for n in 1 2; do
    has "what all wait for, on algo-$n" "$W/algo-$n/output/failure" "stall: a step on GPUs #"
done
has "and who" "$W/algo-1/output/failure" "All ranks have begun it; waiting: 0 1."

on_gpus stopped 2 1
hosts_start --epochs=100000 --checkpoint.every="1000000 steps"
ok "it trains" until_true 90 has_steps "$W/out.1" 5
kill -TERM "$(children_of "${pids[1]}" | head -n 1)"
hosts_end
same "told on one host, both stop" "143 143" "$statuses"
same "one checkpoint" 1 "$(find "$W/algo-1/checkpoints" -name MANIFEST.json | wc -l)"

# ---- what cannot be ----
on_gpus fewer 1 1
hosts_run --processes_per_host=2
same "more ranks than GPUs" 66 "$statuses"
has "in words" "$W/algo-1/output/failure" "2 ranks on this host, each with a GPU of its own, and 1 GPU"
rm -rf "$W/algo-1/output" "$W/algo-1/checkpoints"
hosts_run --processes_per_host=2 --device=auto --max_steps=2
same "which is no fault where the CPU will do" 0 "$statuses"
has "and is told" "$W/err.1" "  device      CPU: 2 ranks on this host, each with a GPU of its own, and 1 GPU; 2 ranks"
on_gpus short 2 1
echo "memory: 1 MB" >>"$W/algo-2/code/train.yaml"
hosts_run
same "too little memory on one host: exit statuses" "71 71" "$statuses"
for n in 1 2; do has "in words on algo-$n" "$W/algo-$n/output/failure" "memory: 16 rows need at least"; done
on_gpus refuses 2 1
TY_FAKE_NCCL=3 hosts_run
same "NCCL says no: exit statuses" "70 70" "$statuses"
has "in words" "$W/algo-1/output/failure" "connecting GPUs: error 3 of NCCL (internal error)"

finish_tests
