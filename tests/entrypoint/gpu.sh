#!/bin/bash
# gpu.sh - training on a GPU from outside, on libraries that stand in for NVIDIA's (tests/fakes): the same numbers as on
# the CPU, checkpoints that go from one to the other, what a step asks of the driver, memory that is too small, the cache.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/gpu.bash
gpu() { LD_LIBRARY_PATH=$FAKES/gpu:$FAKES TY_FAKE_GPUS=${GPUS:-$CARD} "$@"; }

# A perceptron with dropout: kernels of a GPU run slowly on the host.
small() {
    perceptron "$@"
    sed -i 's/ty_relu(.*, 24))/ty_dropout(net, &, 0.1)/' "$ML/code/model.c"
}
# numbers FILE: metric lines without speeds.
numbers() { grep -E '^(val )?step=' "$1" | sed 's/ samples_per_s=.*//'; }
steps() { awk '{ printf "%s ", $1 } END { print "" }' "$1"; }

small cpu
run --device=cpu --log_every=1
same "status on the CPU" 0 $rc
has "the banner says so" "$W/err" "  device      CPU"
numbers "$W/out" >"$SCRATCH/cpu.numbers"
CPU_TREE=$ML

small gpu
TY_FAKE_TRACE=$W/trace gpu run --log_every=1
same "status on a GPU, which is taken by itself" 0 $rc
has "the banner names it" "$W/err" "  device      GPU 0, Stand-in (compute capability 9.0)"
has "and its memory" "$W/err" "  GPU memory  "
has "and what would be faster" "$W/err" "  precision   float32, which tensor cores do not multiply"
numbers "$W/out" >"$W/numbers"
same "60 steps" 60 "$(grep -c '^step=' "$W/out")"
alike "the numbers of the CPU" "$SCRATCH/cpu.numbers" "$W/numbers"
same "checkpoints" "step-00000050 step-00000055 step-00000060" "$(ls "$ML/checkpoints" | tr '\n' ' ' | sed 's/ $//')"
GPU_BITS=$(bits "$ML" 2>/dev/null)
cp "$ML/model/model.safetensors" "$SCRATCH/gpu.safetensors"
ok "the same weights, nearly" near "$CPU_TREE" "$ML"

# What a step asks: the batch on its stream, one graph, the outputs; the host waits for a step when the next is there.
between=$(steps "$W/trace" | sed 's/.*captured //; s/ wait unpin unpin free .*//')
step='up record after copy record graph (down )+record '
asked=$(printf '%s' "$between" | grep -oE "$step" | wc -l)
ok "steps of training and evaluation" test "$asked" -ge 72
same "nothing is allocated or given back while training" "" "$(printf '%s' "$between" | grep -oE 'alloc|pin|free|unpin|module|captured' | head -1)"
awaits() { awk '$1 == "await" { print $2 }' "$W/trace" | sort | uniq -c | awk '{ print $2 ":" $1 }' | tr '\n' ' '; }
late=$(awk '$1 == "await" && $2 == 1 { n++ } END { print n + 0 }' "$W/trace") # of room for a batch: 2
ok "most results are waited for when the next step is there ($(awaits))" test "$late" -ge 45
same "no memory that is not pinned is copied in a step" 0 \
    "$(awk '/^graph/ { on = 1; next } /^(wait|down|await|record)/ { if ($1 != "record") on = 0 } on && /unpinned/ { n++ } END { print n + 0 }' "$W/trace")"

small held
TY_FAKE_HELD=335544320 gpu run --max_steps=1
has "what libraries hold is asked for" "$W/err" "kernels and libraries 320"

small ahead
TY_FAKE_STREAMS=ahead gpu run
same "streams in another order" "$GPU_BITS" "$(bits "$ML" 2>/dev/null)"

# ---- checkpoints ----
small stopped
stopped_after '^step=1[0-9] ' gpu start
same "stopped" 143 $rc
has "checkpoint at the stop" "$W/err" "on request"
gpu run
same "resumed" 0 $rc
has "from there" "$W/err" "resuming at step"
same "as if it had never been stopped" "$GPU_BITS" "$(bits "$ML" 2>/dev/null)"

small over
gpu run --max_steps=20
run --device=cpu --max_steps=40
has "a GPU's checkpoint on the CPU" "$W/err" "resuming at step 20 of 40"
gpu run
has "and back" "$W/err" "resuming at step 40 of 60"
same "status" 0 $rc
tail -1 "$SCRATCH/cpu.numbers" >"$W/cpu"
numbers "$W/out" | tail -1 >"$W/gpu"
alike "the last numbers" "$W/cpu" "$W/gpu"

small parts
hyper '{"accumulate": "3", "max_steps": "8"}'
run --device=cpu --log_every=1
numbers "$W/out" >"$W/cpu"
rm -r "$ML/checkpoints"
gpu run --log_every=1
numbers "$W/out" >"$W/gpu"
alike "micro-batches" "$W/cpu" "$W/gpu"

small plateau
hyper '{"max_steps": "12", "evaluate_every": "2 steps"}'
recipe 'schedule: {plateau: {patience: 0, factor: 0.5, threshold: 0.5}}'
run --device=cpu --log_every=1
has "the rate falls" "$W/err" "is on a plateau"
numbers "$W/out" >"$W/cpu"
rm -r "$ML/checkpoints"
gpu run --log_every=1
numbers "$W/out" >"$W/gpu"
alike "a rate that follows evaluations" "$W/cpu" "$W/gpu"

small nan
sed -i '100s/^[0-9]*/1e39/' "$ML/input/data/train/part.csv"
sed -i 's/every: 5 steps/every: 50 steps/' "$ML/code/train.yaml"
gpu run --log_every=1
same "a loss that is not finite" 65 $rc
has "is named with its step" "$W/err" "at step "
same "and was never saved" "" "$(ls "$ML/checkpoints")"

# ---- choosing ----
small chosen
run --max_steps=1
same "no GPU" 0 $rc
has "why it is the CPU" "$W/err" "  device      CPU: no GPU driver: cannot open library libcuda.so.1"
run --device=gpu
same "a GPU that must be" 66 $rc
has "what is missing" "$ML/output/failure" "device: gpu: no GPU driver"
why="the driver is of CUDA 12.4, the libraries of CUDA 13: driver 580 or newer, or libraries of CUDA 12"
TY_FAKE_CUDA=12040 gpu run --max_steps=2
same "a driver older than the libraries" 0 $rc
has "is no reason not to train" "$W/err" "  device      CPU: $why"
TY_FAKE_CUDA=12040 gpu run --device=gpu
same "but on a GPU" 66 $rc
has "it says so" "$W/err" "device: gpu: $why"
mkdir "$W/twelve"
cp "$FAKES/gpu/libnvrtc.so.13" "$W/twelve/libnvrtc.so.12"
cp "$FAKES/gpu/libcublasLt.so.13" "$W/twelve/libcublasLt.so.12"
TY_FAKE_CUDA=12040 TRAINYARD_CUDA_DIR=$W/twelve gpu run --max_steps=3
same "with older libraries" 0 $rc
has "the GPU is taken" "$W/err" "  device      GPU 0, Stand-in"
rm -rf "$ML/checkpoints"
gpu run --device=gpu:7
same "one that is not there" 66 $rc
has "how many there are" "$W/err" "there is no GPU number 7: the driver shows 1"
hyper '{"device": "tpu"}'
run
same "a word that is none" 78 $rc
has "the words" "$W/err" "expected auto, cpu, gpu, gpu:NUMBER or gpu:NUMBER,NUMBER (each once), found \"tpu\""
hyper '{"device": "gpu:0", "max_steps": "2"}'
gpu run
same "by number, as a hyperparameter" 0 $rc
hyper '{"device": "gpu", "debug": "interpret"}'
gpu run
same "operation by operation is the CPU's" 78 $rc
has "and says so" "$W/err" "debug: interpret computes operation by operation"
hyper '{"debug": "interpret", "max_steps": "2"}'
rm -rf "$ML/checkpoints"
gpu run
same "where the device is free" 0 $rc
has "it is taken" "$W/err" "  device      CPU: debug: interpret computes"

# ---- memory ----
small allowed
gpu run --max_steps=1 --tf32=true
same "TF32 is allowed" 0 $rc
lacks "and nothing else is proposed" "$W/err" "  precision   "

small little
GPUS="Little,90,4,101100000" gpu run --batch_size=320
same "too little memory" 71 $rc
has "how much" "$ML/output/failure" "batch_size 320 needs"
ok "layers" grep -Eq "activation  .*model.c" "$W/err"
best=$(grep -o 'the largest batch that fits is [0-9]*' "$W/err" | grep -o '[0-9]*$')
ok "the largest batch ($best)" test "${best:-0}" -ge 8
GPUS="Little,90,4,101100000" gpu run --batch_size="${best:-1}" --max_steps=1
same "fits" 0 $rc
rm -rf "$ML/checkpoints"
GPUS="Little,90,4,110100000" gpu run --batch_size=auto --max_steps=1
same "is found by itself" 0 $rc
has "against the GPU's memory" "$W/err" "(free memory of the GPU)"

small again
sed -i 's/batch_size: 16/batch_size: 160/' "$ML/code/train.yaml"
cat >"$ML/code/model.c" <<'C'
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_var x = ty_flatten(net, ty_input(net, "image", "f32[batch,1,8,8]"), 1);
    for (int i = 0; i < 8; i++)
        x = ty_add(net, x, ty_tanh(net, ty_linear(net, ty_text(net, "layer%d", i), x, 64)));
    ty_output(net, "logits", ty_linear(net, "out", x, 10));
}
C
gpu run --max_steps=2 --log_every=1
numbers "$W/out" >"$W/all"
rm -r "$ML/checkpoints"
gpu "$BIN/trainyard" plan "$ML/code/train.yaml" --data-dir="$ML/input/data" --json >"$W/out"
number() { grep -o "\"$1\": [0-9]*" "$W/out" | head -1 | grep -o '[0-9]*$'; }
less="Little,90,4,$(($(number total_bytes) - $(number temporary_bytes) / 4))"
GPUS=$less gpu run --max_steps=2 --log_every=1
same "parts of forward are computed again to fit" 0 $rc
has "and it says so" "$W/err" "% more arithmetic: backward computes"
lacks "without a complaint" "$W/err" "error["
numbers "$W/out" >"$W/again"
alike "the same numbers" "$W/all" "$W/again"
rm -r "$ML/checkpoints"
GPUS=$less gpu run --max_steps=2 --remat=none
same "not if it may not" 71 $rc

# ---- the cache ----
small cached
export TRAINYARD_CACHE_DIR=$W/cache
gpu run --max_steps=1
lacks "the first start compiles" "$W/err" "(from the cache)"
gpu run --max_steps=2
has "the second finds its kernels" "$W/err" "(from the cache)"
gpu "$BIN/trainyard" cache why-miss "$ML/code/train.yaml" --data-dir="$ML/input/data" --max_steps=2 >"$W/out" 2>&1
has "no miss" "$W/out" "no miss: the cache has these kernels"
gpu "$BIN/trainyard" cache why-miss "$ML/code/train.yaml" --data-dir="$ML/input/data" --batch_size=24 >"$W/out" 2>&1
has "why one is missed" "$W/out" "inputs: "
GPUS="Older,80,4,2000000000" gpu "$BIN/trainyard" cache why-miss "$ML/code/train.yaml" --data-dir="$ML/input/data" --max_steps=2 >"$W/out" 2>&1
has "another architecture" "$W/out" "sm_80"
export TRAINYARD_CACHE_DIR=none

# ---- commands ----
words() { gpu "$BIN/trainyard" "$1" "$ML/code/train.yaml" --data-dir="$ML/input/data" "${@:2}" >"$W/out" 2>"$W/err"; }
small commands
words plan
same "plan" 0 $?
has "of the GPU" "$W/out" "  device      GPU 0, Stand-in"
has "its memory" "$W/out" "  GPU memory  "
has "what fits it" "$W/out" "(free memory of the GPU)"
words plan --json
has "for programs" "$W/out" '"on_gpu": true'
words profile --steps=2
same "profile" 0 $?
has "of the GPU" "$W/out" "  device      GPU 0, Stand-in"
ok "a line for a layer" grep -qE '^ +[0-9.]+ +[0-9.]+ % .*linear hidden|^ +[0-9.]+ +[0-9.]+ % .*model.c' "$W/out"
ok "and for products" grep -qE '^ +[0-9.]+ +[0-9.]+ % +[0-9]+ .* products$' "$W/out"
words compile --output="$W/compiled"
same "compile is for the CPU" 0 $?
words compile --output="$W/compiled2" --device=gpu
same "not for a GPU" 78 $?
gpu "$BIN/trainyard" replay 1 "$ML/code/train.yaml" --data-dir="$ML/input/data" --device=gpu >"$W/out" 2>"$W/err"
same "replay" 0 $?
has "on the GPU" "$W/out" "  device      GPU 0, Stand-in"
has "all is well" "$W/out" "nothing is wrong"
sed -i "s/ty_linear(net, \"hidden\", x, 24)/ty_exp(net, ty_scale(net, x, 200))/" "$ML/code/model.c"
for device in cpu gpu; do
    gpu "$BIN/trainyard" replay 1 "$ML/code/train.yaml" --data-dir="$ML/input/data" --device=$device \
        >"$W/$device" 2>"$W/err"
    same "what blows up, $device" 65 $?
done
same "is found where the CPU finds it" "$(grep -o '^first [a-z]* *layer [^ ]* [a-z]*' "$W/cpu")" "$(grep -o '^first [a-z]* *layer [^ ]* [a-z]*' "$W/gpu")"
gpu "$BIN/trainyard" doctor >"$W/out"
has "doctor" "$W/out" "Fit to train on the CPU and on GPU 0"

finish_tests
