#!/bin/bash
# Kernels as a GPU would get them, compiled by NVRTC for four generations of GPUs, without one: those of two trainings, none
# of which may spill; and the judge can say no. `make cuda` does all: trainings and the ONNX project's cases in all precisions,
# and the workloads of the benchmark, of which each kernel is printed with registers, spills and shared memory.
#
# Where NVRTC 12 is found, which compiles for cards that CUDA 13 has dropped, kernels are compiled for sm_70 too; it is
# looked for in $TRAINYARD_CUDA_12 (a toolkit, or a folder that `pip install nvidia-cuda-nvrtc-cu12` has filled), in
# toolkits beside CUDA 13's and in Python's packages.
#
#     cuda_kernels.sh [--all]
set -u
cd "$(dirname "$0")/.." || exit 1
tools=${TY_BUILD:-build/release}/tools
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

# older FOLDER...: what CUDA 12 makes of these kernels, for sm_70.
older() {
    local found folder
    for found in "${TRAINYARD_CUDA_12:+$TRAINYARD_CUDA_12}"/{,lib64/,nvidia/cuda_nvrtc/lib/}libnvrtc.so.12 \
        /usr/local/cuda-12*/lib64/libnvrtc.so.12 /usr/{,local/}lib/python3*/*-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12; do
        [ -e "$found" ] || continue
        folder=$(dirname "$found")
        # with the folders beside it: where there is a driver, NVRTC is taken with a cuBLASLt of its version
        TRAINYARD_CUDA_DIR=$folder:${folder%/*/*} judged --sm 70 --no-spill "$@"
        return
    done
    echo "skip: kernels for sm_70: there is no NVRTC 12"
    skipped=$((skipped + 1))
}

"$tools/cuda_kernels" "$scratch" >"$scratch/log" 2>&1
if grep '^skip:' "$scratch/log"; then
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
refused unknown 'undefined' 'TY_KERNEL(256) TY_NAME(float *x) { x[0] = nothing; }'
"$tools/cuda_own" --cuda "$scratch/own" >"$scratch/log" 2>&1 || { cat "$scratch/log"; failed=$((failed + 1)); }
judged --no-spill "$scratch/own"
older "$scratch/own"
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

for work in mlp cnn lstm deepfm chargpt gpt2 bert resnet50; do
    [ -f "build/bench/works/$work/model.onnx" ] || { echo "skip: no build/bench/works/$work"; skipped=$((skipped + 1)); continue; }
    for precision in float32 bfloat16; do
        build/release/bench/ours $work build/bench/works/$work --threads 2 --precision $precision \
            --cuda "$scratch/$work-$precision" || failed=$((failed + 1))
        judged --no-spill --rows "$scratch/$work-$precision"
    done
done
trainings train-float32 "$cases"
trainings train-bfloat16 --precision bfloat16 1 "$cases"
trainings train-float16 --precision float16 1 "$cases"
mkdir "$scratch/golden" "$scratch/shared"
tar -xf tests/golden/onnx/cases.tar.xz -C "$scratch/golden"
tar -xf "$shared/data/models/onnx/backend-cases.tar.xz" -C "$scratch/shared"
"$tools/onnx_backend" --cuda "$scratch/onnx" /usr/include/onnx/backend/test/data "$scratch/shared" "$scratch/golden" |
    tail -n 1 | sed 's/ passed, .*/ cases of the ONNX project have kernels; operators that no importer knows have none/'
judged --no-spill "$scratch"/train-float32 "$scratch"/train-bfloat16 "$scratch"/train-float16 "$scratch/onnx"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
