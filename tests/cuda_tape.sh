#!/bin/bash
# What a GPU is told to do in a step of the benchmarked workloads (compiler/target/cuda/tape.h), against golden texts:
# the whole tape of mlp; of the others how often each library call and copy occurs, and how many kernels are launched;
# in bfloat16 too where the passes do something else for it.
#     cuda_tape.sh --update      writes the golden texts anew
cd "$(dirname "$0")/.." || exit 1
. tests/works.bash
ours=${TY_BUILD:-build/release}/bench/ours
golden=tests/golden/cuda
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

summary() { # of a tape on stdin
    awk '/^tape:/ { print; next }
         $2 ~ /^k[0-9]/ { launches++; next }
         { sub(/^[0-9]+ /, ""); sub(/ \| .*/, ""); sub(/: .*/, ""); n[$0]++ }
         END { print launches " launches"; for (what in n) print n[what] " " what | "LC_ALL=C sort -k2" }'
}
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
tape() { # WORK PRECISION
    "$ours" "$1" "$scratch/works/$1" --threads 2 --precision "$2" --cuda "$scratch/$1.$2" >/dev/null || failed=$((failed + 1))
    cat "$scratch/$1.$2"/*.tape >"$scratch/tape"
    summary <"$scratch/tape" >"$scratch/summary"
}
update=${1:-}
make -s bench
for work in $works; do
    make_work $work "$scratch/works/$work"
    tape $work float32
    [ $work = mlp ] && check mlp.tape "$scratch/tape"
    check "$work.calls" "$scratch/summary"
    case $work in chargpt | gpt2 | bert | resnet50) tape $work bfloat16 && check "$work.bf16.calls" "$scratch/summary" ;; esac
done
# A step that two replicas share: sums begin as gradients come, in the arena, and are waited for once.
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
