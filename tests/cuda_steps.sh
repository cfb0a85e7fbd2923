#!/bin/bash
# What the driver is asked for in steps of the eight benchmarked workloads, in float32 and bfloat16, on one GPU and divided
# among two, on a stand-in that notes and checks everything and computes nothing (tests/fakes/driver.c, TY_FAKE_RUN=none):
# all memory before the first step and of the size that was announced, code of libraries and connections before the capture,
# one graph a step, nothing that is asked for or waited for within a step but the end of an earlier one, and all memory given
# back. And call by call, what is asked for is what the text of the step says (tests/cuda_trace.py), of which
# tests/cuda_tape.sh has golden ones.
cd "$(dirname "$0")/.." || exit 1
. tests/works.bash
build=${TY_BUILD:-build/release}
ours=$build/bench/ours
fakes=$(realpath "$build")/fakes
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 steps=5

make -s bench
check() { # WHAT STATUS
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        echo "FAILED: $work $precision${gpus:+ $gpus}: $1"
        failed=$((failed + 1))
    fi
}
card=Stand-in,90,132,80000000000
run() { # OPTION...
    env LD_LIBRARY_PATH="$fakes/gpu:$fakes" TY_FAKE_GPUS="$card;$card" TY_FAKE_RUN=none TY_FAKE_TRACE="$scratch/trace" \
        "$ours" "$work" "$scratch/$work" $steps --threads 2 --precision "$precision" --cuda "$scratch/left" "$@" \
        >"$scratch/line" 2>"$scratch/err"
}
connect='(record |after |nccl[A-Za-z]+ |ty_k_[^ ]+ )+wait '
load="((matmul|convolve) )*wait ($connect)?captured "
first='up record after copy record graph (down )+record await '
next='((await )?up record after copy record graph (down )+record (await )?)+'
memory() { # TRACE: as announced, and all of it given back
    python3 - "$1" "$scratch/line" <<'P'
import json, sys
told = json.loads(open(sys.argv[2]).read())
lines = [line.split() for line in open(sys.argv[1])]
got = sum(int(line[1]) for line in lines if line[0] == "alloc")
back = sum(int(line[1]) for line in lines if line[0] == "free")
assert got == back, (got, back)
assert got == told["device_bytes"] - told["device_code_bytes"], (got, told)
P
}
judge() { # TRACE, of one GPU
    awk '$1 != "capturing" { printf "%s ", $1 }' "$1" >"$scratch/calls"
    grep -Eqx "(alloc )+(pin )+(up )*wait (module )+($load)+((up|set) )+wait $first$next(await )*wait ((free|unpin) )+" "$scratch/calls"
    check "the order of what is asked for" $?
    [ "$(grep -c '^graph' "$1")" = $steps ] && [ "$(grep -c '^await 0' "$1")" = 2 ]
    check "a graph a step, and none is waited for before the next is under way, but for the first and the last" $?
    ! sed -n '/^graph/,$p' "$1" | grep -q unpinned
    check "steps copy pinned memory" $?
    memory "$1"
    check "memory: as announced, and given back" $?
    cat "$scratch"/left/*.tape >"$scratch/tape"
    tests/cuda_trace.py "$scratch/tape" "$1" $steps >"$scratch/judged"
    check "call by call, what the text of the step says: $(cat "$scratch/judged")" $?
}
for work in $works; do
    make_work $work "$scratch/$work"
    for precision in float32 bfloat16; do
        gpus='' && run --gpu
        check "five steps: $(tail -n 1 "$scratch/err")" $?
        judge "$scratch/trace"
        rm -rf "$scratch/left"
        gpus='on two GPUs' && run --gpus 2
        check "five steps: $(tail -n 1 "$scratch/err")" $?
        judge "$scratch/trace"
        judge "$scratch/trace.1"
        [ "$work $precision" != 'cnn float32' ] || { cp "$scratch/trace" "$scratch/right" && cp "$scratch/tape" "$scratch/right.tape"; }
        rm -rf "$scratch/left"
    done
    case $work in cnn | chargpt)
        gpus='on two GPUs, strict' && run --gpus 2 --strict
        judge "$scratch/trace"
        judge "$scratch/trace.1"
        rm -rf "$scratch/left"
        ;;
    esac
    rm -rf "${scratch:?}/$work"
done

# ---- the judge can say no: to a trace of two GPUs with one thing wrong ----
work=cnn precision=float32 gpus='on two GPUs'
refused() { # WHAT SCRIPT: of sed
    sed "$2" "$scratch/right" >"$scratch/wrong"
    ! cmp -s "$scratch/right" "$scratch/wrong" && ! tests/cuda_trace.py "$scratch/right.tape" "$scratch/wrong" $steps >"$scratch/judged" 2>&1 &&
        ! grep -q Traceback "$scratch/judged"
    check "refused: $1" $?
}
refused "a kernel of another grid" '0,/^capturing ty_k/s/<<<[0-9]*,/<<<7777,/'
refused "one kernel for all" 's/ty_k_[0-9a-f]*/ty_k_1/'
refused "a product of another type" '0,/^capturing matmul/s/ a f32\[/ a bf16[/'
refused "a convolution of another step" '0,/^capturing convolve/s/ step\[1,1,/ step[1,2,/'
refused "a wait for another event" '0,/^capturing after/s/after e[0-9]*/after e999/'
refused "a wait left out" '0,/^capturing after/{/^capturing after/d}'
refused "an exchange on the first stream" 's/^\(capturing nccl.*\) @.*/\1 @0/'
refused "an exchange of fewer numbers" '0,/^capturing nccl/s/\(ncclAllReduce\) [0-9]*/\1 0/'
refused "a batch that is not waited for" '/^captured/,/^after/{/^after/d}'
refused "outputs that come down too early" '/^graph/{h;d};/^down/{p;x}'
refused "a host that does not wait" '/^await/d'
refused "a step too many" '$a up 8 @1'

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
