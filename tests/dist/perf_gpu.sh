#!/bin/bash
# perf_gpu.sh - `trainyard perf` over NCCL, on GPUs and an NCCL that tests/fakes stands in for: the table, every kind, type
# and way to reduce, wrong sums that are counted, and in words what cannot be.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/gpu.bash
. tests/dist/trees.bash
need_mpi "collectives of GPUs"
begin perf
export LD_LIBRARY_PATH=$FAKES/gpu:$FAKES TY_FAKE_NCCL_DIR=$SCRATCH TY_FAKE_GPUS="$CARD;$CARD;$CARD"
perf() { # RANKS OPTION...
    timeout -k 5 100 "$BIN/trainyard" perf --ranks "$@" >"$W/out" 2>"$W/err"
    rc=$?
}
small=(-b 3000 -e 3000 -w 0 -n 1)

perf 3 -b 1K -e 64K -f 8 -w 1 -n 2 -J "$W/perf.json"
same "three ranks" 0 $rc
has "by NCCL" "$W/out" "# by NCCL 2.28.9, a GPU each (Stand-in)"
has "the table" "$W/out" "       65536         16384      f32      sum     -1"
has "all is right" "$W/out" "# Wrong results        : 0 OK"
ok "as JSON" python3 - "$W/perf.json" <<'P'
import json, sys
p = json.load(open(sys.argv[1]))
assert p["carried_by"] == "NCCL 2.28.9, a GPU each (Stand-in)" and p["ranks"] == 3, p
assert [r["size"] for r in p["results"]] == [1024, 8192, 65536], p
assert all(r[w]["wrong"] == 0 and r[w]["time_us"] > 0 for r in p["results"] for w in ("out_of_place", "in_place")), p
P
rows() { grep -cE '^(\[1,0\]<stdout>:)? +[0-9]+ +[0-9]+ ' "$W/out"; }
perf_of() { # COLLECTIVE RANKS ROWS
    perf "$2" "$1" -d all -o all "${small[@]}"
    same "$1" 0 $rc
    same "$1: every type and way" "$3" "$(rows)"
    has "$1 is right" "$W/out" "# Wrong results        : 0 OK"
}
perf_of all_reduce 3 50      # ten types that NCCL adds up, five ways
perf_of reduce_scatter 2 50
perf_of all_gather 3 13      # all types: they are moved as bytes
perf_of broadcast 2 13
perf_of all_to_all 3 13
has "an exchange in place, which NCCL has not" "$W/out" "     N/A     N/A     N/A    N/A"

TY_FAKE_NCCL_WRONG=1 perf 2 "${small[@]}"
same "wrong sums: exit status" 1 $rc
has "as many as there are: of each rank the first" "$W/out" "# Wrong results        : 4"
TY_FAKE_NCCL_STUCK=6,1 perf 2 "${small[@]}"
ok "a call that never ends is a failure" test $rc -ne 0
has "and NCCL's words" "$W/err" "error 6 of NCCL (remote process exited or there was a network error)"

# ---- who has no GPU ----
perf 4 "${small[@]}"
same "four ranks and three GPUs" 0 $rc
lacks "go by the comm" "$W/out" "# by NCCL"
perf 4 --device gpu "${small[@]}"
ok "which is a fault where it must be GPUs" test $rc -ne 0
has "in words" "$W/err" "4 ranks on this host, each with a GPU of its own, and 3 GPUs"
perf 2 --device cpu "${small[@]}"
same "GPUs that are not wanted" 0 $rc
lacks "are not asked" "$W/out" "# by NCCL"
perf 2 -z bf16 "${small[@]}"
same "what NCCL has not, the comm does" 0 $rc
lacks "by itself" "$W/out" "# by NCCL"
perf 2 -z bf16 --device gpu "${small[@]}"
same "unless it must be GPUs" 2 $rc
has "in words" "$W/err" "perf: -z is not for GPUs"
perf 2 -d bool --device gpu "${small[@]}"
ok "what NCCL does not add up" test $rc -ne 0
has "in words" "$W/err" "NCCL does not add up bool"
TY_FAKE_GPUS="Stand-in,90,4,1000000;Stand-in,90,4,1000000" perf 2 -b 4M -e 4M -w 0 -n 1 --device gpu
ok "more than a GPU has" test $rc -ne 0
has "in words" "$W/err" "no memory on the GPU for numbers to exchange: 4 MB are needed"
has "and what to do" "$W/err" "measure smaller sizes: -e SIZE"
# One rank has no memory while the other waits for it on its GPU: that one takes no leave, which the other would answer.
TY_FAKE_GPUS="Stand-in,90,4,1000000;$CARD" perf 2 -b 4M -e 4M -w 0 -n 1 --device gpu
ok "of one GPU alone" test $rc -ne 0 -a $rc -ne 124
has "in words" "$W/err" "no memory on the GPU for numbers to exchange: 4 MB are needed"
lacks "nobody is waited for" "$W/err" "takes leave of"
ok "nothing is left of the meetings" test -z "$(ls "$SCRATCH"/ty-nccl-* 2>/dev/null)"

finish_tests
