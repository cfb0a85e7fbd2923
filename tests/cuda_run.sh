#!/bin/sh
# Steps as they run on a GPU, on libraries that stand in for NVIDIA's (tests/fakes): trainings, values of random graphs,
# the order of what the driver is asked for, and too little memory.
#     cuda_run.sh --all      all trainings, not only those that take a few seconds here (a minute and a half more)
cd "$(dirname "$0")/.." || exit 1
build=${TY_BUILD:-build/release}
fakes=$(realpath "$build")/fakes
cases=${TY_SHARED:-../shared}/data/train-cases
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

on_gpu() { # BYTES COMMAND...
    bytes=$1
    shift
    LD_LIBRARY_PATH=$fakes/gpu:$fakes TY_FAKE_GPUS="Stand-in,90,4,$bytes" "$@"
}
check() { # WHAT STATUS
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        echo "FAILED: $1"
        failed=$((failed + 1))
    fi
}
if [ ! -d "$cases" ]; then
    echo "skip: trainings on a GPU's stand-in: $cases is not there"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

# ---- trainings: all that can be computed; both 16-bit types; threads of a block, and streams, in another order ----
train() { # AT-LEAST SETTINGS...
    least=$1
    shift
    on_gpu 2000000000 "$build/tools/train_cases" --gpu "$@" >"$work/out" 2>&1
    set -- "$least" $(tail -n 1 "$work/out")
    grep FAILED "$work/out"
    [ "${2:-0}" -ge "$1" ]
    check "trainings on a GPU's stand-in: at least $1 of them" $?
    passed=$((passed + ${2:-0})) failed=$((failed + ${4:-1}))
}
slow='bilstm_truecase lstm_two_layer_rows resnet_basic encoder_padding_mask bert_pairs gpt_tied cnn_plain llama_gqa
    t5_relative upsample_denoise attention_opset23 unet_transpose vit wide_deep mobilenet_se siamese_cosine'
names=$(cd "$cases" && for f in */recipe.yaml; do echo "${f%/*}"; done)
[ "${1:-}" = --all ] || names=$(echo "$names" | grep -vxF "$(echo $slow | tr ' ' '\n')")
train "$(echo "$names" | wc -l)" "$cases" $names
train 3 --precision bfloat16 0.02 "$cases" mlp_relu gpt_tied vae_two_losses
train 3 --precision float16 0.02 "$cases" linear_regression mlp_gelu vae_two_losses
export TY_FAKE_EPILOGUES=none # of products, which other GPUs or shapes may lack
train 1 "$cases" mlp_gelu
unset TY_FAKE_EPILOGUES
train 2 --tf32 "$cases" cnn_batchnorm conv1d_causal # channels-last
train 1 --precision bfloat16 0.05 "$cases" cnn_batchnorm
# an assignment before a function reaches what it runs in some shells only
for order in 1 2; do
    export TY_GRID_ORDER=$order
    train 3 "$cases" linear_regression mlp_gelu vae_two_losses
done
unset TY_GRID_ORDER

# ---- attention in tiles: both 16-bit types, threads of a block in three orders ----
for order in 0 1 2; do
    TY_GRID_ORDER=$order on_gpu 2000000000 "$build/unit/cuda_attend" >"$work/out" 2>&1 && ! grep -q SKIPPED "$work/out"
    status=$?
    [ $status = 0 ] || cat "$work/out"
    check "attention in tiles, threads in order $order" $status
done

# ---- algorithms of products: timed once, kept ----
on_gpu 2000000000 "$build/unit/cuda_tune" >"$work/out" 2>&1 && ! grep -q SKIPPED "$work/out"
status=$?
[ $status = 0 ] || cat "$work/out"
check "the quickest algorithm of a product is taken and kept" $status

# ---- values of random graphs, each by itself: writing by number, scans, pools of all shapes ----
on_gpu 2000000000 "$build/tools/graphs" --gpu --first 1 --count 3 >"$work/out" 2>&1
grep FAILED "$work/out"
set -- $(tail -n 1 "$work/out")
[ "${1:-0}" -ge 40 ]
check "values of random graphs: at least 40" $?
passed=$((passed + ${1:-0})) failed=$((failed + ${3:-1}))

# ---- kernels written by hand, at sizes of more than one block ----
for order in 0 1 2; do
    on_gpu 2000000000 env TY_GRID_ORDER=$order "$build/tools/cuda_own" >"$work/out" 2>&1
    grep FAILED "$work/out"
    set -- $(tail -n 1 "$work/out")
    passed=$((passed + ${1:-0})) failed=$((failed + ${3:-1}))
done

# ---- what the driver is asked for ----
on_gpu 2000000000 env TY_FAKE_TRACE="$work/trace" "$build/tools/train_cases" --gpu "$cases" mlp_relu >"$work/out" 2>&1
check "a training that is traced" $?
calls=$(awk '$1 != "capturing" { printf "%s ", $1 }' "$work/trace")
step='(up record after copy record graph (down )+record (await )*)'
echo "$calls" | grep -Eqx "(alloc )+(pin )+(up )*wait (module )+((matmul )*wait captured )+(up )+wait $step+((down )+wait )*wait ((free|unpin) )+"
check "all memory first, then kernels, code of libraries, graphs; a step is a batch on its stream and one graph" $?
awk '/^alloc/ { held += $2 } /^free/ { held -= $2 } END { exit held != 0 }' "$work/trace"
check "all memory goes back" $?

# ---- too little memory is told before anything runs ----
on_gpu 20000000 env TY_FAKE_TRACE="$work/trace" "$build/tools/train_cases" --gpu "$cases" mlp_relu >"$work/out" 2>&1
grep -q 'E0705.*no memory on the GPU for .*: [0-9]* MB are needed, [0-9]* of 20 MB are free' "$work/out"
check "too little memory: what it is for, how much, how much there is" $?
! grep -q graph "$work/trace"
check "too little memory: nothing has run" $?

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
