# job.bash - sourced after harness.bash: a job for the built-in trainer, small enough to run in a moment.
#
#   job NAME [ROWS]       a tree as begin() makes it, with recipe, model and two CSV channels of ten made-up classes
#   perceptron NAME [ROWS]  the same with a model in C that draws no random numbers
#   recipe LINES          appends to train.yaml (keys may not stand twice: use hyperparameters to change what is there)
#   bits TREE             one line that stands for all bits of the trained model
MODEL=$PWD/examples/digits/model.onnx
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-1000}

# digits ROWS SEED: rows of 64 pixels 0..16 and a label; each class lights its own pixels.
digits() {
    awk -v rows="$1" -v seed="$2" 'BEGIN {
        for (r = 0; r < rows; r++) {
            label = (r * 7 + seed) % 10
            for (j = 0; j < 64; j++) {
                noise = (r * 31 + j * 17 + r * j * 13 + seed * 5) % 7
                printf "%d,", (j % 10 == label ? 9 : 2) + noise
            }
            print label
        }
    }'
}
job() {
    begin "$1"
    mkdir -p "$ML/input/data/train" "$ML/input/data/test"
    digits "${2:-320}" 1 >"$ML/input/data/train/part.csv"
    digits 50 2 >"$ML/input/data/test/part.csv"
    echo '{"train": {"TrainingInputMode": "File", "ContentType": "text/csv"}, "test": {"TrainingInputMode": "File"}}' \
        >"$ML/input/config/inputdataconfig.json"
    cp "$MODEL" "$ML/code/model.onnx"
    cat >"$ML/code/train.yaml" <<'Y'
model: model.onnx
inputs: {image: image}
loss: {softmax_cross_entropy: {logits: logits, labels: label}}
optimizer: {adamw: {lr: 1e-3}}
batch_size: 16
epochs: 3
data:
  train: {channel: train, fields: {image: {columns: 0-63, shape: [1, 8, 8], scale: 0.0625}, label: {columns: 64}}}
  validation: {channel: test, fields: same}
metrics: [accuracy]
checkpoint: {every: 5 steps, keep: 3}
Y
}
perceptron() {
    job "$@"
    rm "$ML/code/model.onnx"
    sed -i 's/model.onnx/model.c/' "$ML/code/train.yaml"
    cat >"$ML/code/model.c" <<'C'
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_var x = ty_flatten(net, ty_input(net, "image", "f32[batch,1,8,8]"), 1);
    ty_output(net, "logits", ty_linear(net, "out", ty_relu(net, ty_linear(net, "hidden", x, 24)), 10));
}
C
}
recipe() { printf '%s\n' "$1" >>"$ML/code/train.yaml"; }
bits() { cat "$1/model/model.onnx" "$1/model/model.safetensors" | sha256sum; }
# What a killed or failing writer may leave: none of it may stay in the folders that the platform collects.
leftovers() { find "$ML/model" "$ML/checkpoints" "$ML/output" -name '.*tmp*' 2>/dev/null; }
