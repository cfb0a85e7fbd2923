#!/bin/bash
# model.sh - `trainyard model`: what is in a file, what differs between two, one as another. What the ONNX files compute is judged
# by tests/unit/onnx_export.c and tests/export/onnx.sh.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/model
mkdir -p "$W"
ty() {
    timeout -k 5 600 "$BIN/trainyard" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
digits=examples/digits/model.onnx

case_name=info
ty model info $digits
same "exit status" 0 $rc
has "format" "$W/out" "model.onnx: onnx opset 17, 15 nodes"
has "who wrote it" "$W/out" "written by      pytorch"
has "an input" "$W/out" "image                    f32[batch,1,8,8]"
has "a weight" "$W/out" "conv2.weight                                 f32[32,16,3,3]                 18,432  trained"
has "statistics" "$W/out" "f32[16]                            64  running"
has "the sum" "$W/out" "13,850 numbers, 13,754 of them trained, 54.1 KiB"
ty model info $digits --json
same "JSON" "onnx opset 17 14 13850 True None" "$(python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))
print(v["format"], len(v["weights"]), v["numbers"], v["trainable"], v["recipe"])' "$W/out")"
cp "$W/out" "$W/digits.json"
ty model info "$W/none.onnx"
same "no such file" 66 $rc

case_name=keras
printf '%s' '{"module": "keras", "class_name": "Sequential", "config": {"name": "s", "layers": [{"module": "keras.layers",
"class_name": "InputLayer", "config": {"batch_shape": [null, 2], "dtype": "float32", "name": "x"}}, {"module":
"keras.layers", "class_name": "Dense", "config": {"name": "d", "dtype": "float32", "units": 1}}]}, "compile_config":
{"optimizer": "sgd", "loss": {"module": "keras.losses", "class_name": "Huber", "config": {"name": "h"}}}}' >"$W/config.json"
ty model info "$W/config.json"
has "its loss" "$W/out" 'keras_huber'
has "what Keras does not write of it" "$W/err" "Huber has no delta, which Keras does not write: 1 is taken"

case_name=convert
ty model convert $digits "$W/out.onnx"
same "exit status" 0 $rc
has "says what" "$W/out" "onnx opset 20, "
has "leaves the batch free" "$W/out" "free batch"
ty model info "$W/out.onnx"
has "the same input" "$W/out" "image                    f32[batch,1,8,8]"
has "trains what was trained" "$W/out" "13,754 of them trained"
ty model convert $digits "$W/three.onnx" --batch 3 --opset 17 --json
has "a batch in JSON" "$W/out" '"batch": 3'
ty model info "$W/three.onnx"
has "a fixed batch" "$W/out" "image                    f32[3,1,8,8]"
ty model convert $digits "$W/out.safetensors"
same "weights" "$W/out.safetensors: 14 weights" "$(cat "$W/out")"
ty model info "$W/out.safetensors"
same "info of weights alone: exit status" 0 $rc
has "says what it is" "$W/out" "out.safetensors: safetensors, weights without a model"
has "a weight" "$W/out" "conv2.weight                                 F32[32,16,3,3]                 18,432"
has "the sum" "$W/out" "13,850 numbers, 54.1 KiB"
ty model info "$W/out.safetensors" --json
same "JSON" "safetensors 14 13850 False None [32, 16, 3, 3]" "$(python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))
shape = [w["shape"] for w in v["weights"] if w["name"] == "conv2.weight"][0]
print(v["format"], len(v["weights"]), v["numbers"], v["trainable"], v["layers"], shape)' "$W/out")"
same "a weight is described as in the model, but for its role" "14 of 14, roles running trained None" "$(python3 -c 'import json, sys
model, alone = ({w["name"]: w for w in json.load(open(p))["weights"]} for p in sys.argv[1:])
roles = {w.pop("role") for w in model.values()}, {w.pop("role") for w in alone.values()}
print(sum(alone[n] == model.get(n) and set(model[n]) == {"name", "dtype", "shape", "bytes", "has_values"} for n in alone),
      "of", str(len(model)) + ", roles", *sorted(roles[0]), *roles[1])' "$W/digits.json" "$W/out")"
head -c 3000 "$W/out.safetensors" >"$W/cut.safetensors"
ty model info "$W/cut.safetensors"
same "one that is cut off" 65 $rc
has "is named" "$W/err" "cut.safetensors"
ty model convert $digits "$W/out.pt"
same "another suffix" 2 $rc
has "says what there is" "$W/err" "name the file *.onnx"
ty model convert $digits "$W/out.keras"
same "a format of Keras" 2 $rc
has "says who does it" "$W/err" "keras.models.load_model"
ty model convert $digits "$W/no/out.onnx"
same "no such folder" 66 $rc
ty model convert $digits "$W/out.onnx" --opset 9
same "an old opset" 2 $rc

case_name=diff
ty model diff $digits "$W/out.safetensors"
same "weights are the same" 0 $rc
same "says so" "14 weights the same, 0 differ" "$(cat "$W/out")"
ty model diff $digits $digits --json
has "in JSON" "$W/out" '"same": true'
ty model diff $digits "$W/three.onnx"
same "other inputs" 1 $rc
has "names both" "$W/out" "+ image f32[3,1,8,8]"
# One number of one weight: the last float of the file of weights, which is the last of its last tensor.
cp "$W/out.safetensors" "$W/changed.safetensors"
size=$(stat -c %s "$W/changed.safetensors")
printf '\x00\x00\x20\x41' | dd of="$W/changed.safetensors" bs=1 seek=$((size - 4)) conv=notrunc status=none
ty model diff $digits "$W/changed.safetensors"
same "one differs" 1 $rc
has "counts it" "$W/out" "13 weights the same, 1 differ"
ty model diff $digits "$W/changed.safetensors" --tolerance 1000
same "within a tolerance" 0 $rc
ty model diff $digits tests/fuzz/corpus/step/linear_regression.onnx
same "other models" 1 $rc
has "counts what is missing" "$W/out" "14 only in the first file"

case_name=arguments
ty model inf $digits
same "no such verb" 2 $rc
has "suggests" "$W/err" "trainyard model info"
ty model diff $digits
same "a file is missing" 2 $rc
ty model info $digits --batch 3
same "another verb's option" 2 $rc
has "names it" "$W/err" '`model info` takes no --batch'

finish_tests
