#!/bin/bash
# preprocessing.sh - the model with its preprocessing inside: ONNX Runtime gives for raw rows what `trainyard run --data`
# gives. TY_ONNX_VENV names a virtual environment with numpy, onnx and onnxruntime; without it only what the file says of
# itself is looked at.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/preprocessing
mkdir -p "$W"
cat >"$W/model.c" <<'E2'
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_var n = ty_input(net, "numbers", "f32[batch,2]"), sex = ty_input(net, "sex", "f32[batch,2]");
    ty_var age = ty_input(net, "age", "f32[batch,4]"), tall = ty_input(net, "tall", "f32[batch,1]");
    ty_var span = ty_input(net, "span", "f32[batch,1]"), deck = ty_input(net, "deck", "f32[batch,3]");
    ty_var decade = ty_embedding(net, "decade", ty_input(net, "decade", "i64[batch]"), 4, 4);
    ty_var port = ty_embedding(net, "port", ty_input(net, "port", "i64[batch]"), 5, 4);
    ty_var cabin = ty_embedding(net, "cabin", ty_input(net, "cabin", "i64[batch]"), 50, 4);
    ty_var all = ty_concat(net, 1, n, sex, age, tall, span, deck,
                           decade, port, cabin);
    ty_output(net, "logits", ty_linear(net, "out", ty_relu(net, ty_linear(net, "hidden", all, 16)), 2));
}
E2
rows() { # SEED ROWS
    awk -v seed="$1" -v rows="$2" 'BEGIN {
        srand(seed); split("S S S S S C C Q", ports, " ")
        print "survived,sex,age,fare,port,cabin,height,deck"
        for (i = 0; i < rows; i++) {
            sex = rand() < 0.5 ? "male" : "female"; age = rand() < 0.3 ? "" : sprintf("%.1f", 5 + 60 * rand())
            fare = sprintf("%.2f", -30 * log(1 - rand())); port = rand() < 0.1 ? "" : ports[1 + int(8 * rand())]
            if (seed > 1 && rand() < 0.1) port = "elsewhere"
            yes = (sex == "female") * 1.5 + (fare > 30) > 1 ? "yes" : "no"
            printf "%s,%s,%s,%s,%s,C%d,%d,%d\n", yes, sex, age, fare, port, int(100 * rand()), 150 + 50 * rand(), int(3 * rand())
        }
    }'
}
rows 1 300 >"$W/train.csv"
rows 2 60 >"$W/test.csv"
cat >"$W/train.yaml" <<'E2'
model: model.onnx
loss: {softmax_cross_entropy: {logits: logits, labels: survived}}
optimizer: {adamw: {lr: 1e-2}}
batch_size: 50
epochs: 2
data:
  train:
    path: train.csv
    fields:
      numbers: {columns: "age,fare", missing: mean, clip: [0, 100], normalize: standard}
      sex: {vocabulary: [male, female], oov: 0, one_hot: auto}
      age: {buckets: {quantiles: 4}, missing: median, one_hot: auto}
      decade: {columns: age, buckets: [20, 40, 60], missing: 30}
      tall: {columns: height, scale: 0.01, offset: -1, shape: [1]}
      span: {columns: fare, log1p: true, normalize: minmax, shape: [1]}
      deck: {one_hot: 3}
      port: {vocabulary: auto, missing: most_frequent}
      cabin: {hash: 1}
      survived: {classes: auto}
export: {preprocessing: true}
E2
yard() { (cd "$W" && timeout -k 5 600 "$BIN/trainyard" "$@") >"$W/out" 2>"$W/err" </dev/null; }

case_name=written
yard model convert model.c model.onnx
same "an ONNX model" 0 $?
yard train train.yaml --fresh
same "exit" 0 $?
file=$W/run/model/model_with_preprocessing.onnx
ok "the file is there" test -f "$file"
has "model.json lists it" "$W/run/model/model.json" 'model_with_preprocessing.onnx'
has "what ONNX has no operator for is named" "$W/err" 'input "cabin" stays as it is after preprocessing'
ok "texts are looked up" grep -q LabelEncoder "$file"
ok "inputs are raw" grep -q port_raw "$file"
rm -r "$W/run"
yard train train.yaml --export.preprocessing=false
ok "only where it is wanted" test ! -f "$file"
yard train train.yaml --fresh --model=model.c
ok "of another format: refused" test $? -ne 0
has "of another format: what to do" "$W/err" 'trainyard model convert'

case_name=judged
PYTHON=${TY_ONNX_VENV:-build/export-venv}/bin/python
if ! "$PYTHON" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
    skip "ONNX Runtime" "no onnx and onnxruntime (TY_ONNX_VENV, see tests/export/onnx.sh)"
    finish_tests
    exit
fi
yard train train.yaml --fresh
same "exit" 0 $?
yard run run/model/model.onnx --data test.csv --output-dir predictions
same "run" 0 $?
cat >"$W/judge.py" <<'E2'
import csv, sys
import numpy as np, onnx, onnxruntime

folder = sys.argv[1]
path = folder + "/run/model/model_with_preprocessing.onnx"
onnx.checker.check_model(path, full_check=True)
session = onnxruntime.InferenceSession(path)
types = {i.name: (i.type, i.shape) for i in session.get_inputs()}
rows = list(csv.DictReader(open(folder + "/test.csv")))
number = lambda column: np.array([float(r[column] or "nan") for r in rows])
text = lambda column: np.array([r[column] for r in rows], dtype=object)
plain = onnxruntime.InferenceSession(folder + "/run/model/model.onnx")
assert types["port_raw"][0] == "tensor(string)" and types["numbers_raw"] == ("tensor(double)", ["batch", 2]), types
raw = {"numbers_raw": np.stack([number("age"), number("fare")], 1), "sex_raw": text("sex"), "age_raw": number("age"),
       "decade_raw": number("age"), "tall_raw": number("height")[:, None], "span_raw": number("fare")[:, None], "deck_raw": number("deck"),
       "port_raw": text("port"), "cabin": np.zeros(len(rows), np.int64)}  # hash: 1
found = session.run(None, raw)[0]
expected = np.load(folder + "/predictions/logits.npy")
print("largest difference", np.abs(found - expected).max())
np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
raw["port_raw"] = np.roll(raw["port_raw"], 1)
assert np.abs(session.run(None, raw)[0] - expected).max() > 1e-3
E2
ok "raw rows give what trainyard run gives" "$PYTHON" "$W/judge.py" "$W"

finish_tests
