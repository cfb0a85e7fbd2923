#!/bin/bash
# What a GPU is told to do in a step of the eight benchmarked workloads, from the batch to the outputs
# (compiler/target/cuda/frame.h, tape.h), in float32 and bfloat16, against golden texts; and in steps that two GPUs share.
#     cuda_tape.sh --update      writes the golden texts anew
cd "$(dirname "$0")/.." || exit 1
. tests/works.bash
ours=${TY_BUILD:-build/release}/bench/ours
golden=tests/golden/cuda
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

check() { # NAME FILE
    if [ "$update" = --update ]; then
        cp "$2" "$golden/$1"
    elif diff -u "$golden/$1" "$2" >"$scratch/diff"; then
        passed=$((passed + 1))
    else
        echo "FAILED: $golden/$1 (tests/cuda_tape.sh --update writes it anew, if the change is meant)"
        head -n 20 "$scratch/diff"
        failed=$((failed + 1))
    fi
}
tape() { # NAME WORK PRECISION OPTION...
    local name=$1 work=$2 precision=$3
    shift 3
    "$ours" "$work" "$scratch/$work" --threads 2 --precision "$precision" --cuda "$scratch/left" "$@" >/dev/null ||
        failed=$((failed + 1))
    cat "$scratch"/left/*.tape >"$scratch/tape"
    check "$name.tape" "$scratch/tape"
    rm -rf "$scratch/left"
}
update=${1:-}
make -s bench
for work in $works; do
    make_work $work "$scratch/$work"
    tape $work $work float32
    tape $work.bf16 $work bfloat16
    # sums begin as gradients come, in the arena, and are waited for once; by NCCL, and in the order of the replicas
    case $work in
    cnn) tape $work.2 $work float32 --gpus 2 --plan ;;
    chargpt) tape $work.strict.2 $work bfloat16 --gpus 2 --plan --strict ;;
    gpt2) tape $work.bf16.2 $work bfloat16 --gpus 2 --plan ;;
    esac
    rm -rf "${scratch:?}/$work"
done
# Two tapes, of which one evaluates, and all of two replicas.
cases=${TY_SHARED:-../shared}/data/train-cases
if [ -d "$cases" ]; then
    "${ours%/bench/ours}/tools/train_cases" --replicas 2 --threads 2 --cuda "$scratch/shared" "$cases" mlp_relu >/dev/null ||
        failed=$((failed + 1))
    cat "$scratch/shared"/*.tape >"$scratch/tape"
    check mlp_relu.shared.tape "$scratch/tape"
else
    echo "skip: the tape of a shared step: $cases is not there"
    skipped=$((skipped + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
