#!/bin/bash
# The mirrored strategy on GPUs that tests/fakes stands in for: a batch divided among 2, 3 and 4 of them gives the numbers
# of one device with the whole batch, all GPUs end with the same bits (train_cases asks for both), two runs are the same,
# and a GPU that fails ends the training with its name.
#     cuda_mirror.sh --all      all trainings on two GPUs (six minutes more)
cd "$(dirname "$0")/.." || exit 1
. tests/cuda.bash
memory=2000000000
need_cases "trainings on several GPUs"

mirrored() { # SETTINGS...
    on_gpus 4 $memory "$build/tools/train_cases" "$@"
}

# ---- trainings: weights of samples and classes, left-out labels, two losses, micro-batches, clipping, batch norm ----
train() { # AT-LEAST SETTINGS...
    local least=$1
    shift
    mirrored "$@"
    count "$least"
    check "trainings $*: $least of them, and none that fails" $?
}
names='mlp_relu vae_two_losses mlp_hard_sigmoid_tanh mlp_gelu matrix_factorization moe_topk t5_relative cnn_batchnorm'
if [ "${1:-}" = --all ]; then
    train 42 --gpus 2 "$cases"
else
    train 8 --gpus 2 "$cases" $names
fi
train 1 --gpus 3 "$cases" patchwork_slices
for how in nccl hierarchical_copy reduction_to_one_device; do
    train 2 --gpus 4 --cross-device $how "$cases" mlp_relu linear_regression
done
train 2 --gpus 4 --strict "$cases" mlp_relu linear_regression
train 3 --gpus 2 --shard "$cases" mlp_relu deepfm vae_two_losses
train 1 --gpus 4 --strict --shard --bucket 20000 "$cases" mlp_relu
train 1 --gpus 2 --precision bfloat16 0.02 "$cases" mlp_relu
train 1 --gpus 4 --strict --shard --wire bf16 --precision bfloat16 0.02 "$cases" mlp_relu
train 1 --gpus 2 --precision float16 0.02 "$cases" mlp_gelu
TY_FAKE_EPILOGUES="none 134" train 1 --gpus 2 "$cases" mlp_relu # compiled again by all
export TY_FAKE_STREAMS=ahead # exchanges as early as may be, not as late
train 3 --gpus 2 "$cases" mlp_relu vae_two_losses moe_topk
unset TY_FAKE_STREAMS

# ---- the same run twice ----
for run in 1 2; do
    mirrored -v --gpus 2 "$cases" mlp_relu
    grep -o 'found.*' "$work/out" >"$work/run$run"
done
[ -s "$work/run1" ] && cmp -s "$work/run1" "$work/run2"
check "two runs on two GPUs are the same" $?

# ---- what goes wrong is named, and nobody hangs ----
refused() { # WHAT WORDS SETTINGS...
    what=$1 words=$2
    shift 2
    ! mirrored "$@" && grep -q "$words" "$work/out" && ! grep -q 'died of signal' "$work/out"
    check "$what" $?
}
for fail in 1,4 0,4; do
    TY_FAKE_FAIL=$fail refused "GPU ${fail%,*} refuses a step" \
        "GPU ${fail%,*}: starting a step: error 700 of the driver (an illegal memory access" --gpus 2 "$cases" mlp_relu
    TY_FAKE_FAIL=$fail,later refused "GPU ${fail%,*} never ends a step" \
        "GPU ${fail%,*}: a step on the GPU: error 700 of the driver" --gpus 2 "$cases" mlp_relu
done
TY_FAKE_NCCL=3 refused "NCCL says no" "connecting GPUs: error 3 of NCCL (internal error)" --gpus 2 "$cases" mlp_relu
TY_FAKE_NCCL_STUCK=6,9 refused "a sum that never ends" \
    "exchanging with other GPUs: error 6 of NCCL (remote process exited or there was a network error)" --gpus 2 \
    "$cases" mlp_relu
for call in 1 2; do # while all others wait in NCCL to be connected, or on their GPUs
    TY_FAKE_NCCL_REFUSED=1,$call refused "GPU 1 is refused its exchange $call before the first step" \
        "GPU 1: .*ncclAllReduce: error 5 of NCCL (invalid usage)" --gpus 3 "$cases" patchwork_slices
done
TY_FAKE_NCCL_STUCK=6,1 refused "a sum that never ends before the first step" \
    "exchanging with other GPUs: error 6 of NCCL" --gpus 2 "$cases" mlp_relu
refused "halves of three GPUs" "hierarchical_copy is for an even number of GPUs, found 3" \
    --gpus 3 --cross-device hierarchical_copy "$cases" patchwork_slices
memory=200000000
refused "too little memory on each" "GPU 0: no memory on the GPU" --gpus 2 "$cases" mlp_relu

finish
