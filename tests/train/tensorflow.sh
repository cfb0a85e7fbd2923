#!/bin/bash
# TensorFlow models by the program: a training step of the file's own is compiled as it is and gives TensorFlow's losses,
# what is written is the same model with the trained weights, and signatures are applied.
#
# A small file of our own (tests/tensorflow/golden_step.py); with ../shared also graphs of TensorFlow 1, whose losses
# (of the data made here) TensorFlow 2.21 gave.
set -u
cd "$(dirname "$0")/../.." || exit 1
bin=$PWD/${TY_BIN:-build/bin}/trainyard
tool=$PWD/build/${TY_VARIANT:-release}/tools/tf_file
golden=$PWD/tests/golden/tensorflow
models=$(cd "${TY_SHARED:-../shared}/data/models" 2>/dev/null && pwd)
passed=0 failed=0 skipped=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TRAINYARD_CACHE=$scratch/cache

note() { # NAME RESULT
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1"
        tail -5 "$scratch/log"
    fi
}

# Losses of each step in the log, against those of a file, to 1e-4.
losses_are() { # FILE
    sed -n 's/^step=[0-9]* .*loss=\([^ ]*\).*/\1/p' "$scratch/log" >"$scratch/found"
    [ "$(wc -l <"$scratch/found")" = "$(wc -l <"$1")" ] &&
        paste "$scratch/found" "$1" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= 1e-4 * (1 + $2))) exit 1 }'
}

train() { # RECIPE [OPTION...]
    "$bin" train "$@" --log_every=1 --fresh --progress=plain --output-dir="$scratch/run" >"$scratch/log" 2>&1
}

# Spectra in the model, of waves of which some are silent: where a magnitude is 0 it has the gradient 0.
mkdir "$scratch/sound" && tar -xJf "$golden/sound.tar.xz" -C "$scratch/sound" || exit 1
cat >"$scratch/sound/sound.yaml" <<END
model: sound
loss: softmax_cross_entropy
optimizer: {sgd: {lr: 0.02}}
batch_size: 8
epochs: 3
data: {train: {path: sound.csv, shuffle: false, fields: {wave: {columns: 0-39}, label: {columns: 40}}}}
END
train "$scratch/sound/sound.yaml" && losses_are "$scratch/sound/losses"
note "a model that takes spectra by itself gives TensorFlow's losses" $?

# Inverses, determinants, gamma functions and pictures read between pixels, with what is learned behind them.
mkdir "$scratch/scene" && tar -xJf "$golden/scene.tar.xz" -C "$scratch/scene" || exit 1
cat >"$scratch/scene/scene.yaml" <<END
model: scene
loss: softmax_cross_entropy
optimizer: {sgd: {lr: 0.05}}
batch_size: 6
epochs: 5
data: {train: {path: scene.csv, shuffle: false, fields: {x: {columns: 0-59}, label: {columns: 60}}}}
END
train "$scratch/scene/scene.yaml" && losses_are "$scratch/scene/losses"
note "a model of matrices and pictures gives TensorFlow's losses" $?

# The rows of step.txt as a table: x (5), ids (2), y.
awk '$1 == "x" { for (i = 0; i < 30; i++) x[i] = $(i + 3) }
     $1 == "ids" { for (i = 0; i < 12; i++) ids[i] = $(i + 3) }
     $1 == "y" { for (r = 0; r < 6; r++) { for (i = 0; i < 5; i++) printf "%s,", x[5 * r + i]
                 print ids[2 * r] "," ids[2 * r + 1] "," $(r + 3) } }' "$golden/step.txt" >"$scratch/data.csv"
sed -n 's/^loss 1 //p' "$golden/step.txt" >"$scratch/losses"
cat >"$scratch/step.yaml" <<END
model: $golden/step
signature: forward
train_signature: train
inputs: {x: x, ids: ids, "y": target}
loss: {mse: {target: target}}
batch_size: 6
data:
  train:
    path: data.csv
    format: csv
    shuffle: false
    fields: {x: {columns: 0-4}, ids: {columns: 5-6, type: i32}, target: {columns: 7, shape: []}}
END
train "$scratch/step.yaml" && losses_are "$scratch/losses"
note "a training step of the file's own gives TensorFlow's losses" $?

grep -q '  trainyard run .*/saved_model --signature forward --input ids=ids.npy --input x=x.npy --output-dir' "$scratch/log"
note "the summary says how the signature is applied, with all of its inputs and no other" $?

"$bin" check "$golden/step" --signature train >"$scratch/log" 2>&1 && grep -q '  input   y ' "$scratch/log"
note "another signature is looked at" $?
"$bin" model convert "$golden/step" "$scratch/forward.onnx" --signature forwards >"$scratch/log" 2>&1
[ $? = 65 ] && grep -q 'expected a signature "forwards"' "$scratch/log"
note "a signature that is not there is not converted" $?

# A checkpoint of TensorFlow 1, by the name of its folder, its graph, and what Saver calls it.
mkdir "$scratch/files" && tar -xJf "$golden/files.tar.xz" -C "$scratch/files"
tf1=$scratch/files/tf1
"$bin" check "$tf1" --signature out >"$scratch/log" 2>&1 && grep -q ' checkpoint, ' "$scratch/log"
note "a folder with one checkpoint is a model" $?
mkdir "$scratch/loose" && tar -xJf "$golden/loose.tar.xz" -C "$scratch/loose"
for kind in reference resource; do
    "$bin" check "$scratch/loose/$kind" >"$scratch/log" 2>&1 && grep -q ' 64 of them trained' "$scratch/log" &&
        [ "$(awk '$1 == "output" { print $2 }' "$scratch/log" | tr '\n' ' ')" = "loss accuracy " ]
    note "outputs of a graph with $kind variables: what they are read, initialized and trained by is none" $?
done
"$bin" train "$tf1/ckpt.meta" --signature=out --data="$scratch/data.csv" --output-dir="$scratch/run" >"$scratch/log" 2>&1
[ $? = 78 ] && grep -q 'key "loss" is missing' "$scratch/log"
note "a checkpoint's graph stands for a recipe" $?
"$bin" check "$tf1/ckpt" >"$scratch/log" 2>&1
[ $? = 66 ] && grep -q 'named by the file with its graph: .*ckpt.meta' "$scratch/log"
note "a checkpoint's prefix: the name of its graph is told" $?
cp "$tf1/ckpt.meta" "$tf1/more.meta"
"$bin" check "$tf1" >"$scratch/log" 2>&1
[ $? = 65 ] && grep -q "found 2" "$scratch/log"
note "of two checkpoints one must be named" $?

# Every variable that the step assigns is another one in the written model.
written=$scratch/run/model/saved_model
variables() { # FOLDER
    "$tool" -s forward -t train show "$1" | awk '/^variable/ { print $2, $4 }'
}
variables "$golden/step" >"$scratch/before" && variables "$written" >"$scratch/after" 2>"$scratch/log" &&
    [ "$(wc -l <"$scratch/after")" -gt 50 ] && ! comm -12 <(sort "$scratch/before") <(sort "$scratch/after") | grep .
note "the written model has weights, moments and counters of the last step" $?

sed 's/^train_signature.*/&\noptimizer: {adam: {lr: 0.1}}/' "$scratch/step.yaml" >"$scratch/both.yaml"
train "$scratch/both.yaml"
[ $? != 0 ] && grep -q 'the model.s own training step is compiled as it is' "$scratch/log"
note "an optimizer beside the file's own step is refused" $?

sed 's/^train_signature: .*/train_signature: traim/' "$scratch/step.yaml" >"$scratch/misspelt.yaml"
train "$scratch/misspelt.yaml"
[ $? != 0 ] && grep -q '"traim"' "$scratch/log"
note "a signature that is not there is named" $?

if [ -n "$models" ]; then
    # x = 0, 0.1 .. 2.3; label = 1 - x: of TensorFlow 1, with shapes that the file does not tell.
    awk 'BEGIN { for (i = 0; i < 24; i++) print i / 10 "," 1 - i / 10 }' >"$scratch/line.csv"
    cat >"$scratch/line.yaml" <<END
model: $models/savedmodel/regression_train_tf1
train_signature: train, Mean
inputs: {x: x, "y": label}
loss: {mean: {}}
batch_size: 8
data:
  train: {path: line.csv, format: csv, shuffle: false, fields: {x: {columns: 0, shape: []}, label: {columns: 1, shape: []}}}
END
    train "$scratch/line.yaml" && [ "$(grep -c '^step=' "$scratch/log")" = 3 ]
    note "a graph of TensorFlow 1 trains by its own operation" $?
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n\x00\x00\x00\x40' \
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }" >"$scratch/two.npy"
    "$bin" run "$models/savedmodel/half_plus_two_tf1/00000123" --input x="$scratch/two.npy" --output-dir "$scratch" \
        >"$scratch/log" 2>&1 && [ "$(tail -c 4 "$scratch/y.npy" | od -An -tf4 | tr -d ' ')" = 3 ]
    note "half of two, and two, is three" $?

    # Every model that has something to train, by its forward signature: the loss of the same rows falls in each of four
    # steps, and what is written is read again, and has no weight that is as it was.
    falls() { # NAME MODEL LOSS RATE BATCH INPUT SHAPE NUMBERS TARGET
        awk -v n="$8" -v t="$9" -v rows="$5" 'BEGIN { for (r = 0; r < rows; r++) {
            for (i = 0; i < n; i++) printf "%g,", (r * 37 + i * i * 11) % 101 / 100 + 0.01
            if (t == "class") print r % 10
            else for (i = 0; i < n; i++) printf "%g%s", 1 + (r + i) % 8 / 2, i < n - 1 ? "," : "\n" } }' >"$scratch/rows.csv"
        local target="{columns: $8-$(($8 * 2 - 1)), shape: $7}" written=saved_model
        [ "${2%.pb}" != "$2" ] && written=model.pb
        rm -rf "$scratch/run"
        [ "$9" = class ] && target="{columns: $8, type: i32, shape: []}"
        cat >"$scratch/falls.yaml" <<END
model: $2
loss: $3
inputs: {$6: x}
optimizer: {sgd: {lr: $4}}
batch_size: $5
epochs: 4
data:
  train: {path: rows.csv, format: csv, shuffle: false, fields: {x: {columns: 0-$(($8 - 1)), shape: $7}, target: $target}}
END
        train "$scratch/falls.yaml" &&
            [ "$(sed -n 's/^step=[0-9]* .*loss=\([^ ]*\).*/\1/p' "$scratch/log" |
                awk 'NR > 1 && !($1 < last) { exit } { last = $1; n++ } END { print n }')" = 4 ] &&
            { "$bin" model diff "$2" "$scratch/run/model/$written" >"$scratch/log" 2>&1 || true; } &&
            grep -q '^0 weights the same' "$scratch/log"
        note "$1 trains" $?
    }
    classes='{keras_sparse_crossentropy: {target: target}}'
    line='{mse: {target: target}}'
    saved=$models/savedmodel
    falls half_plus_two_tf1 "$saved/half_plus_two_tf1/00000123" "$line" 0.1 8 x '[1]' 1 line
    falls half_plus_two_tf2 "$saved/half_plus_two_tf2/00000123" "$line" 0.1 1 x '[1]' 1 line
    falls matrix_half_plus_two "$saved/matrix_half_plus_two/1" "$line" 0.1 8 x '[3, 3]' 9 line
    falls mnist_lr_tf1 "$saved/mnist_lr_tf1" "$classes" 0.01 8 Features '[784]' 784 class
    falls cifar_cnn_tf1 "$saved/cifar_cnn_tf1" '{softmax_cross_entropy: {labels: target}}' 0.0001 8 Input '[32, 32, 3]' 3072 class
    falls kws_dscnn_tf2 "$saved/kws_dscnn_tf2" "$classes" 0.001 8 input_1 '[49, 10, 1]' 490 class
    falls fc-layers "$models/graphdef/fc-layers/frozen.pb" '{softmax_cross_entropy: {labels: target}}' 0.001 8 X '[784]' 784 class
else
    skipped=$((skipped + 9))
    echo "skip: ../shared/data/models is not there"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
