#!/bin/bash
# Steps as they run on a GPU, on libraries that stand in for NVIDIA's (tests/fakes): trainings, values of random graphs,
# the order of what the driver is asked for, and too little memory.
#     cuda_run.sh --all      all trainings, not only those that take a few seconds here (a minute and a half more)
cd "$(dirname "$0")/.." || exit 1
. tests/cuda.bash
memory=2000000000
need_cases "trainings on a GPU's stand-in"

# ---- trainings: all that can be computed; both 16-bit types; threads of a block, and streams, in another order ----
train() { # AT-LEAST SETTINGS...
    local least=$1
    shift
    on_gpus 1 $memory "$build/tools/train_cases" --gpu "$@"
    count "$least"
    check "trainings on a GPU's stand-in: at least $least of them" $?
}
# unit PROGRAM WHAT: a program of tests/unit that a GPU is needed for
unit() {
    on_gpus 1 $memory "$build/unit/$1" && ! grep -q SKIPPED "$work/out"
    check "$2" $?
}
slow='bilstm_truecase lstm_two_layer_rows resnet_basic encoder_padding_mask bert_pairs gpt_tied cnn_plain llama_gqa
    t5_relative upsample_denoise attention_opset23 unet_transpose vit wide_deep mobilenet_se siamese_cosine'
names=$(cd "$cases" && for f in */recipe.yaml; do echo "${f%/*}"; done)
[ "${1:-}" = --all ] || names=$(echo "$names" | grep -vxF "$(echo $slow | tr ' ' '\n')")
train "$(echo "$names" | wc -l)" "$cases" $names
train 6 --precision bfloat16 0.02 "$cases" mlp_relu gpt_tied vae_two_losses gru_char lstm_char rnn_tanh_char
train 3 --precision float16 0.02 "$cases" linear_regression mlp_gelu vae_two_losses
TY_FAKE_EPILOGUES=none train 1 "$cases" mlp_gelu # of products, which other GPUs or shapes may lack
TY_FAKE_EPILOGUES="none 208" train 1 "$cases" mlp_gelu # or one kind: the gradient of a GELU with that of the bias
TY_FAKE_EPILOGUES="none 134" train 1 "$cases" mlp_relu # the bits of a ReLU
TY_FAKE_FUSIONS=none train 1 "$cases" conv1d_causal # what follows a convolution
unit cuda_infer "models without epilogues and fusions where the libraries have none"
train 2 --tf32 "$cases" cnn_batchnorm conv1d_causal # channels-last
train 1 --precision bfloat16 0.05 "$cases" cnn_batchnorm
for order in 1 2; do
    TY_GRID_ORDER=$order train 3 "$cases" linear_regression mlp_gelu vae_two_losses
done

# ---- attention in tiles: both 16-bit types, threads of a block in three orders; warps together, and each by itself ----
for capability in 90 80; do
    for order in 0 1 2; do
        TY_GRID_ORDER=$order unit cuda_attend "attention in tiles, sm_$capability, threads in order $order"
    done
done
capability=90

# ---- recurrent steps: weights of 32 and 16 bits, threads of a block in three orders ----
for order in 0 1 2; do
    TY_GRID_ORDER=$order unit cuda_rnn "recurrent steps, threads in order $order"
done

# ---- algorithms of products: timed once, kept ----
unit cuda_tune "the quickest algorithm of a product is taken and kept"

# ---- values of random graphs, each by itself: writing by number, scans, pools of all shapes ----
on_gpus 1 $memory "$build/tools/graphs" --gpu --first 1 --count 3
count 40
check "values of random graphs: at least 40" $?

# ---- kernels written by hand, at sizes of more than one block ----
for order in 0 1 2; do
    TY_GRID_ORDER=$order on_gpus 1 $memory "$build/tools/cuda_own"
    count 1
    check "kernels written by hand, threads in order $order" $?
done

# ---- what the driver is asked for ----
TY_FAKE_TRACE=$work/trace on_gpus 1 $memory "$build/tools/train_cases" --gpu "$cases" mlp_relu
check "a training that is traced" $?
calls=$(awk '$1 != "capturing" { printf "%s ", $1 }' "$work/trace")
step='(up record after copy record graph (down )+record (await )*)'
echo "$calls" | grep -Eqx "(alloc )+(pin )+(up )*wait (module )+((matmul )*wait captured )+(up )+wait $step+((down )+wait )*wait ((free|unpin) )+"
check "all memory first, then kernels, code of libraries, graphs; a step is a batch on its stream and one graph" $?
awk '/^alloc/ { held += $2 } /^free/ { held -= $2 } END { exit held != 0 }' "$work/trace"
check "all memory goes back" $?

# ---- too little memory is told before anything runs ----
TY_FAKE_TRACE=$work/trace on_gpus 1 20000000 "$build/tools/train_cases" --gpu "$cases" mlp_relu
grep -q 'E0705.*no memory on the GPU for .*: [0-9]* MB are needed, [0-9]* of 20 MB are free' "$work/out"
check "too little memory: what it is for, how much, how much there is" $?
! grep -q graph "$work/trace"
check "too little memory: nothing has run" $?

finish
