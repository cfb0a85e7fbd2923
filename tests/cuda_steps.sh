#!/bin/bash
# What the driver is asked for in steps of the eight benchmarked workloads, in float32 and bfloat16, on a stand-in that
# notes and checks everything and computes nothing (tests/fakes/driver.c, TY_FAKE_RUN=none): all memory before the first
# step and of the size that was announced, code of libraries before the capture, one graph a step, nothing that is asked
# for or waited for within a step but the end of an earlier one, and all memory given back.
cd "$(dirname "$0")/.." || exit 1
. tests/works.bash
build=${TY_BUILD:-build/release}
ours=$build/bench/ours
fakes=$(realpath "$build")/fakes
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

make -s bench
check() { # WHAT STATUS
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        echo "FAILED: $work $precision: $1"
        failed=$((failed + 1))
    fi
}
run() {
    env LD_LIBRARY_PATH="$fakes/gpu:$fakes" TY_FAKE_GPUS=Stand-in,90,132,80000000000 TY_FAKE_RUN=none \
        TY_FAKE_TRACE="$scratch/trace" "$ours" "$work" "$scratch/$work" 5 --threads 2 --gpu --precision "$precision" \
        >"$scratch/line" 2>"$scratch/err"
}
load='((matmul|convolve) )*wait captured '
first='up record after copy record graph (down )+record await '
next='((await )?up record after copy record graph (down )+record (await )?)+'
for work in $works; do
    make_work $work "$scratch/$work"
    for precision in float32 bfloat16; do
        run
        check "five steps: $(tail -n 1 "$scratch/err")" $?
        awk '$1 != "capturing" { printf "%s ", $1 }' "$scratch/trace" >"$scratch/calls"
        grep -Eqx "(alloc )+(pin )+(up )*wait (module )+($load)+(up )+wait $first$next(await )*wait ((free|unpin) )+" "$scratch/calls"
        check "the order of what is asked for" $?
        [ "$(grep -c '^graph' "$scratch/trace")" = 5 ] && [ "$(grep -c '^await 0' "$scratch/trace")" = 2 ]
        check "a graph a step, and none is waited for before the next is under way, but for the first and the last" $?
        ! sed -n '/^graph/,$p' "$scratch/trace" | grep -q unpinned
        check "steps copy pinned memory" $?
        python3 - "$scratch" <<'P'
import json, sys
told = json.loads(open(sys.argv[1] + "/line").read())
lines = [line.split() for line in open(sys.argv[1] + "/trace")]
got = sum(int(n) for what, n in (line[:2] for line in lines if line[0] in ("alloc", "free")) if what == "alloc")
back = sum(int(line[1]) for line in lines if line[0] == "free")
assert got == back, (got, back)
assert got == told["device_bytes"] - told["device_code_bytes"], (got, told)
P
        check "memory: as announced, and given back" $?
    done
    rm -rf "${scratch:?}/$work"
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
