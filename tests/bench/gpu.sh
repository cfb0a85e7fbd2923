#!/bin/bash
# gpu.sh - bench/gpu from packing to the table, on tiny workloads and libraries that stand in for NVIDIA's: every part
# runs, what fails is written down and the rest goes on, a part alone adds to what is there, a run that is cut keeps what
# it has and one with little time leaves out what does not fit.
# Needs a Python with PyTorch, JAX and onnx ($BENCH_PYTHON, or build/bench/venv); some minutes.
cd "$(dirname "$0")/../.." || exit 1
build=${TY_BUILD:-build/release}
python=${BENCH_PYTHON:-build/bench/venv/bin/python}
passed=0 failed=0
check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        echo "FAILED: $what"
        failed=$((failed + 1))
    fi
}
shared=$(realpath "${TY_SHARED:-../shared}")
if [ ! -x "$python" ] || [ ! -d "$shared/data/train-cases" ]; then
    echo "skip: bench/gpu: $python or $shared/data/train-cases is not there"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
fakes=$(realpath "$build")/fakes
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kit=$work/kit
export BENCH_PYTHON=$(realpath -s "$python") TY_BENCH_TINY=1 TY_BENCH_DEVICE=cpu TY_SHARED=$shared

# ---- a machine: what asks for the GPU's memory, what looks for races ----
mkdir -p "$work/path"
cat >"$work/path/nvidia-smi" <<'C'
#!/bin/sh
[ $# = 0 ] && echo "|   0  Stand-in H200             On  |" && exit
while echo 1234; do sleep 1; done
C
cat >"$work/path/compute-sanitizer" <<'C'
#!/bin/sh
# races: in float32 in a kernel of ours and one of a library's, in bfloat16 in the library's alone, in attention none
tool=$2
while [ "$1" != 9 ]; do shift; done
shift
"$@" || exit 9
case "$tool $*" in
racecheck*cuda_attend) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
racecheck*)
    echo "========= Error: Race reported between Write access at void cutlass::device_kernel<sm90_gemm<(int)1>>(T1)+0x490"
    echo "=========     and Read access at void cutlass::device_kernel<sm90_gemm<(int)1>>(T1)+0x1f0 in gemm.hpp:12 [508 hazards]"
    case " $* " in
    *bfloat16*) ;;
    *) echo "========= Error: Race reported between Write access at ty_k_0123456789abcdef+0x70" ;;
    esac
    echo "========= RACECHECK SUMMARY: 1 hazard displayed"
    exit 9
    ;;
*) echo "========= ERROR SUMMARY: 0 errors" ;;
esac
C
chmod +x "$work"/path/*
there() { # WORDS...
    exec env PATH="$work/path:$PATH" LD_LIBRARY_PATH="$fakes/gpu:$fakes" TRAINYARD_CUDA_DIR="$fakes/gpu" TY_SHARED= \
        TY_FAKE_GPUS="Stand-in,90,4,4000000000" "$kit/gpu" "$@" >>"$work/said" 2>&1
}
has() { # WHAT [OUT]
    "$BENCH_PYTHON" -c "import json, sys; f = json.load(open(sys.argv[1])); assert $1, f" "$work/${2:-out}"/gpu-*.json
}

check "it packs" bench/gpu pack "$work/packed" >"$work/said"
size=$(stat -c %s "$work/packed.tar.xz" | awk '{print int($1 / 1e6)}')
echo "packed: $size MB"
check "64 MiB may travel, with the repository" test "$size" -lt 46
mkdir "$kit" && tar -C "$kit" --strip-components=1 -xf "$work/packed.tar.xz"
check "it is the bundle" test -x "$kit/bin/train" -a -x "$kit/cc/bin/cc" -a -s "$kit/share/packages"

# ---- the eight workloads alone; it is killed while it is at it ----
(there check "$work/cut" --budget 3000) &
for ((i = 0; i < 3000; i++)); do
    grep -q '"same_bits_again"' "$work"/cut/gpu-*.json 2>/dev/null && break
    sleep 0.2
done
kill -9 $!
wait $! 2>/dev/null
check "what was known is there" has 'len(f["checks"]) >= 1 and not f["complete"] and "seconds" not in f' cut
(there check "$work/eight" --budget 3000)
check "the eight workloads are as on a CPU" test $? = 0
check "all of them" has 'len(f["checks"]) == 8 and all(c["good"] and c["same_bits_again"] for c in f["checks"].values())' eight
check "and nothing is left out" has 'f["complete"] and f["skipped"] == []' eight

# ---- little time ----
SECONDS=0
(there run "$work/short" --budget 30 --works gpt2)
check "$SECONDS s are not longer than 30 s" test $SECONDS -le 35
check "what does not fit is told" has '"tuned" in [e["what"] for e in f["skipped"]] and not f["complete"]' short
check "and logs are there" test -s "$work/short/logs.tar.gz"

# ---- all ----
(there run "$work/out" --budget 1500 --works gpt2,resnet50)
check "what fails is told" test $? = 1
grep -E 'FAILED|skipped' "$work/said"
check "racecheck has found something" has '[x["what"] for x in f["failed"]] == ["racecheck float32"]'
check "in a kernel of ours" has 'f["sanitizer"]["racecheck float32"]["ours"] == ["ty_k_0123456789abcdef"]'
check "what a library does is told" has 'f["sanitizer"]["racecheck bfloat16"]["of libraries"] == ["cutlass::device_kernel"]'
check "attention is clean" has 'all(f["sanitizer"][t + " cuda_attend"]["clean"] for t in ("memcheck", "racecheck"))'
check "units pass" has 'all(f["units"].values()) and len(f["units"]) == 3'
check "larger batches fit" has 'all(len(w) == 2 for w in f["largest_batch_by_doubling"].values())'
check "cases pass, with the same bits" has 'f["cases"]["passed"] == f["cases"]["of"] > 2 and f["cases"]["same_bits_again"]'
check "memcheck is clean" has 'f["sanitizer"]["memcheck float32"]["clean"]'
check "all are measured on all workloads" has 'all(len(w) == 10 for w in f["works"].values()) and len(f["works"]) == 2'
check "losses agree" has 'all(w["trainyard"]["loss_off"] < 0.05 for w in f["works"].values())'
check "steps are taken apart" has 'all(p["calls"] > 10 and p["kernels_gb_per_s"] is None for p in f["profile"].values())'
check "logs come along" test -s "$work/out/logs.tar.gz"
(there cases "$work/out")
check "one part again leaves the others" has '[x["part"] for x in f["failed"]] == ["sanitize"] and len(f["works"]) == 2'
check "a table" "$BENCH_PYTHON" -c '
import json, sys
sys.path.insert(0, "bench")
import gpu_kit
text = gpu_kit.table(json.load(open(sys.argv[1])))
assert "| gpt2 | torch compile |" in text and "racecheck float32 NOT clean" in text, text
assert "racecheck bfloat16 clean but for NVIDIA" in text, text
assert "cuda_own passes" in text and "fits: trainyard" in text, text' "$work"/out/gpu-*.json
rm -rf bench/__pycache__
[ "$failed" = 0 ] || tail -n 30 "$work/said"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
