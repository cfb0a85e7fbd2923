#!/bin/bash
# Kernels as a GPU would get them, compiled by NVRTC for four generations of GPUs, without one: those of two trainings, none
# of which may spill; and the judge can say no. `make cuda` does all: trainings and the ONNX project's cases in all precisions,
# and the workloads of the benchmark, of which each kernel is printed with registers, spills and shared memory. GPT-2's take
# NVRTC less than 5 seconds on two processors that do nothing else, for each GPU.
#
# Where NVRTC 12 is found, which compiles for cards that CUDA 13 has dropped, kernels are compiled for sm_70 too; it is
# looked for in $TRAINYARD_CUDA_12 (a toolkit, or a folder that `pip install nvidia-cuda-nvrtc-cu12` has filled), in
# toolkits beside CUDA 13's and in Python's packages. `make cuda` gets it from PyPI, once, into build/cuda-12.
#
#     cuda_kernels.sh [--all]
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/works.bash
build=${TY_BUILD:-build/release}
tools=$build/tools
shared=${TY_SHARED:-../shared}
cases=$shared/data/train-cases
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

count() { # adds the counts of the last line of the log
    read -r p _ f _ s _ < <(tail -n 1 "$scratch/log" | tr -d ',')
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
}
# judged OPTION... FOLDER...: compiles; what is said goes on to the reader.
judged() {
    "$tools/cuda_kernels" "$@" >"$scratch/log" 2>&1
    sed "\$d; s,$scratch/,," "$scratch/log"
    count
}
trainings() { # trainings FOLDER OPTION...: kernels of training cases
    local folder=$1
    shift
    "$tools/train_cases" --threads 2 --cuda "$scratch/$folder" "$@" >"$scratch/log" 2>&1 || {
        echo "FAIL $folder: kernels are not printed"
        grep -v '^ok' "$scratch/log"
        failed=$((failed + 1))
    }
}
# refused NAME WORD TEXT: a kernel of this text must be refused with the word.
refused() {
    mkdir -p "$scratch/$1"
    printf '#undef TY_NAME\n#define TY_NAME ty_k_0\n%s\n' "$3" >"$scratch/$1/k.cu"
    printf 'ty_k_0\tflat\t256\t1\t4\tnone\n' >"$scratch/$1/k.txt"
    if "$tools/cuda_kernels" --sm 90 --no-spill "$scratch/$1" >"$scratch/log" 2>&1 || ! grep -q "$2" "$scratch/log"; then
        echo "FAIL $1: not refused"
        sed 's/^/  /' "$scratch/log"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}

# The first NVRTC 12 there is.
find_older() {
    local found
    for found in "${TRAINYARD_CUDA_12:+$TRAINYARD_CUDA_12}"/{,lib64/,nvidia/cuda_nvrtc/lib/}libnvrtc.so.12 \
        build/cuda-12/nvidia/cuda_nvrtc/lib/libnvrtc.so.12 /usr/local/cuda-12*/lib64/libnvrtc.so.12 \
        /usr/{,local/}lib/python3*/*-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12; do
        [ -e "$found" ] && realpath "$(dirname "$found")" && return
    done
}
fetch_older() {
    echo "NVRTC 12, for sm_70: from PyPI into build/cuda-12"
    timeout 600 python3 -m pip install --quiet --no-deps --upgrade --target build/cuda-12 nvidia-cuda-nvrtc-cu12==12.9.86 \
        >"$scratch/pip" 2>&1 || tail -n 1 "$scratch/pip"
}
# older OPTION... FOLDER...: what CUDA 12 makes of these kernels, for sm_70.
told=
older() {
    local folder
    folder=$(find_older)
    if [ -z "$folder" ]; then
        [ -n "$told" ] || echo "skip: kernels for sm_70: there is no NVRTC 12"
        [ -n "$told" ] || skipped=$((skipped + 1))
        told=yes
        return
    fi
    # with the folders beside it: where there is a driver, NVRTC is taken with a cuBLASLt of its version
    TRAINYARD_CUDA_DIR=$folder:${folder%/*/*} judged --sm 70 --no-spill "$@"
}

"$tools/cuda_kernels" "$scratch" >"$scratch/log" 2>&1
if grep '^skip:' "$scratch/log"; then
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
[ "${1:-}" = --all ] && [ -z "$(find_older)" ] && fetch_older
refused unknown 'undefined' 'TY_KERNEL(256) TY_NAME(float *x) { x[0] = nothing; }'
"$tools/cuda_own" --cuda "$scratch/own" >"$scratch/log" 2>&1 || { cat "$scratch/log"; failed=$((failed + 1)); }
judged --no-spill "$scratch/own"
older "$scratch/own"
if "$tools/cuda_kernels" --sm 90 --within 0.001 "$scratch/own" >"$scratch/log" 2>&1 || ! grep -q 'TOO SLOW' "$scratch/log"; then
    echo "FAIL own: kernels that take too long to compile are not refused"
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi
# 80 numbers that are all alive at a time
refused spilling 'bytes spilled in 1' 'TY_KERNEL(256) TY_NAME(float *x) {
 float v[80];
#pragma unroll
 for (int i = 0; i < 80; i++) v[i] = x[TY_THREAD + i * 256];
 TY_BARRIER();
#pragma unroll
 for (int i = 0; i < 80; i++) x[TY_THREAD + i * 256] = v[79 - i] * v[(i * 7) % 80] + v[(i * 31) % 80];
}'

if [ "${1:-}" != --all ]; then
    if [ -d "$cases" ]; then
        trainings small "$cases" gpt_tied deepfm
        trainings shared --replicas 4 --strict --shard --wire bf16 "$cases" mlp_relu
        judged --no-spill "$scratch/small" "$scratch/shared"
    else
        echo "skip: no training cases in $cases"
        skipped=$((skipped + 1))
    fi
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
fi

# Of the benchmark, as bench/peers/export.py left it, or the same without its numbers.
exported() { # WORK
    [ -f "build/bench/works/$1/model.onnx" ] && echo "build/bench/works/$1" && return
    make_work "$1" "$scratch/works/$1"
    echo "$scratch/works/$1"
}
for work in $works; do
    [ $work = gpt2 ] && within='--within 5' || within=
    for precision in float32 bfloat16; do
        "$build/bench/ours" $work "$(exported $work)" --threads 2 --precision $precision \
            --cuda "$scratch/$work-$precision" || failed=$((failed + 1))
        judged --no-spill --rows $within "$scratch/$work-$precision"
        older $within "$scratch/$work-$precision"
    done
    rm -rf "${scratch:?}/works"
done
trainings train-float32 "$cases"
trainings train-bfloat16 --precision bfloat16 1 "$cases"
trainings train-float16 --precision float16 1 "$cases"
mkdir "$scratch/golden" "$scratch/shared"
tar -xf tests/golden/onnx/cases.tar.xz -C "$scratch/golden"
tar -xf "$shared/data/models/onnx/backend-cases.tar.xz" -C "$scratch/shared"
"$tools/onnx_backend" --cuda "$scratch/onnx" /usr/include/onnx/backend/test/data "$scratch/shared" "$scratch/golden" |
    tail -n 1 | sed 's/ passed, .*/ cases of the ONNX project have kernels; operators that no importer knows have none/'
"$tools/tf_ops" cuda "$scratch/tensorflow" | tail -n 1 | sed "s/ passed, .*/ results of TensorFlow's operations have kernels/"
judged "$scratch/tensorflow" # 64 results are one program: a kernel of many that share nothing may spill
all="$scratch/train-float32 $scratch/train-bfloat16 $scratch/train-float16 $scratch/onnx"
judged --no-spill $all
older $all
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
