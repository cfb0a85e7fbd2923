#!/bin/bash
# bad_input.sh - everything that can be wrong with a job: for each fault the exit code, and in the failure file the place, what was
# expected and found, and what to do. Nothing may be left half-written.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/ports.bash
ERRORS=$SCRATCH/messages
CONFIG() { printf '%s' "$2" >"$ML/input/config/$1.json"; }
# say FILE-RELATIVE-TO-CODE SED-SCRIPT
edit() { sed -i -E "$2" "$ML/code/$1"; }

# bad NAME STATUS TEXT...: runs the job as it stands. Every TEXT must be in the failure file or its twin.
bad() {
    local name=$case_name status=$1
    shift
    run train ${ARGS:-}
    same "status" "$status" $rc
    for text; do
        if grep -qaF -e "$text" "$ML/output/failure" "$ML/output/failure.json" 2>/dev/null; then pass; else
            fail "not told: $text" "$(cat "$ML/output/failure" 2>/dev/null)"
        fi
    done
    ok "at most 1024 bytes" test "$(stat -c %s "$ML/output/failure" 2>/dev/null || echo 9999)" -le 1024
    same "nothing half-written" "" "$(leftovers)"
    ok "no model" test ! -e "$ML/model/model.json"
    printf '%s: %s\n' "$name" "$(head -1 "$ML/output/failure" 2>/dev/null)" >>"$ERRORS"
}

# ---- configuration of the job ----
job hp_syntax && CONFIG hyperparameters '{"epochs": "3",}' && bad 78 E0101 hyperparameters.json:1
job hp_truncated && CONFIG hyperparameters '{"epochs": "3' && bad 78 E0101 hyperparameters.json
job hp_empty_file && CONFIG hyperparameters '' && bad 78 hyperparameters.json
job hp_list && CONFIG hyperparameters '["epochs"]' && bad 78 hyperparameters.json
job hp_duplicate && CONFIG hyperparameters '{"a": "1", "a": "2"}' && bad 78 E0102 '"a"'
job hp_not_utf8 && CONFIG hyperparameters $'{"a": "\xff"}' && bad 78 hyperparameters.json
job hp_deep && CONFIG hyperparameters "{\"a\": $(printf '[%.0s' {1..200})$(printf ']%.0s' {1..200})}" && bad 78 hyperparameters.json
job hp_trailing && CONFIG hyperparameters '{} x' && bad 78 hyperparameters.json:1
job hp_unknown && CONFIG hyperparameters '{"learning_rte": "1"}' && bad 78 E0107 'did you mean "learning_rate"?'
job hp_type && CONFIG hyperparameters '{"epochs": "many"}' && bad 78 E0105 'hyperparameter "epochs"' many
job hp_range && CONFIG hyperparameters '{"batch_size": "0"}' && bad 78 E0106 'from 1 to'
job hosts_missing && CONFIG resourceconfig '{"current_host": "a"}' && bad 78 resourceconfig.json hosts
job host_stranger && CONFIG resourceconfig '{"current_host": "z", "hosts": ["a"]}' && bad 78 '"z"'
job hosts_absent && ports 1 && CONFIG resourceconfig '{"current_host": "a", "hosts": ["a", "b"], "network_interface_name": "lo"}' &&
    CONFIG hyperparameters '{"distributed.meet_seconds": "1", "distributed.port": "'$PORT'"}' &&
    bad 78 '1 of 2 hosts did not arrive within 1 s: b'
job channel_mode && CONFIG inputdataconfig '{"train": {"TrainingInputMode": "Teleport"}, "test": {}}' && bad 78 Teleport
job channel_name && CONFIG inputdataconfig '{"../train": {}}' && bad 78 inputdataconfig.json
ARGS=stray job argument_stray && ARGS=stray bad 64 stray 'form --key=value'
job argument_unknown && ARGS=--epoch_count=3 bad 78 E0107 'argument --epoch_count'
job argument_no_value && ARGS=--epochs bad 64 'no value'

# ---- the recipe ----
job recipe_absent && rm "$ML/code/train.yaml" && bad 78 'train.yaml' 'looked in'
job recipe_named_absent && CONFIG hyperparameters '{"recipe": "mine.yaml"}' && bad 66 'mine.yaml'
job recipe_syntax && recipe 'seed: [1' && bad 78 E0101 train.yaml:
job recipe_tabs && recipe $'\tseed: 1' && bad 78 train.yaml:12
job recipe_anchor && recipe 'seed: &x 1' && bad 78 anchor
job recipe_duplicate && recipe 'epochs: 4' && bad 78 E0102 train.yaml:12 epochs
job recipe_unknown && recipe 'bach_size: 3' && bad 78 E0107 train.yaml:12 'did you mean "batch_size"?'
job recipe_type && edit train.yaml 's/batch_size: 16/batch_size: "lots"/' && bad 78 E0105 train.yaml:5:13
job recipe_empty && : >"$ML/code/train.yaml" && bad 78 E0108 model
job recipe_list && echo '[1, 2]' >"$ML/code/train.yaml" && bad 78 train.yaml
job recipe_huge && { head -c 3000000 /dev/zero | tr '\0' ' ' >>"$ML/code/train.yaml"; } && bad 71 train.yaml 1048576
job recipe_no_loss && edit train.yaml '/^loss/d' && bad 78 E0108 loss
job optimizer_unknown && edit train.yaml 's/adamw/adamv/' && bad 78 'did you mean "adamw"?'
job loss_unknown && edit train.yaml 's/softmax_cross_entropy/cross_entropy/' && bad 78 softmax_cross_entropy
job metric_unknown && edit train.yaml 's/accuracy/accurracy/' && bad 78 accuracy
job schedule_bad && recipe 'schedule: {step: {gamma: 0.5}}' && bad 78 E0108 step_size
job output_unknown && edit train.yaml 's/logits: logits/logits: logit/' && bad 78 '"logit"' 'logits'
job target_unknown && edit train.yaml 's/labels: label/labels: class/' && bad 78 '"class"' label
job input_unknown && edit train.yaml 's/inputs: \{image/inputs: {img/' && bad 78 '"img"' image
job field_unknown && edit train.yaml 's/image: image/image: picture/' && bad 78 '"picture"' 'image'
job accumulate_too_much && recipe 'accumulate: 1000' && bad 78 E0109 accumulate

# ---- the model ----
job model_absent && rm "$ML/code/model.onnx" && bad 66 model.onnx
job model_noise && head -c 5000 /dev/urandom >"$ML/code/model.onnx" && bad 65 E0300 model.onnx
job model_empty && : >"$ML/code/model.onnx" && bad 65 model.onnx
job model_truncated && truncate -s 30000 "$ML/code/model.onnx" && bad 65 model.onnx
job model_folder && rm "$ML/code/model.onnx" && mkdir "$ML/code/model.onnx" && bad 65 E0300 model.onnx
job model_operator && LC_ALL=C sed -i 's/Relu/Ralu/g' "$ML/code/model.onnx" && bad 65 E0310 Ralu
job shape_wrong && edit train.yaml 's/shape: \[1, 8, 8\]/shape: [1, 4, 16]/' && bad 65 E0320 'f32[16,1,4,16]' 'image'
job dtype_wrong && edit train.yaml 's/columns: 64\}/columns: 64, type: float32}/' && bad 78 E0105 'needs i64'

# ---- the data ----
job channel_missing && CONFIG inputdataconfig '{"test": {}}' && bad 66 E0120 '"train"' test
job channel_empty && rm "$ML"/input/data/train/* && bad 66 E0120 train
job channel_gone && rm -r "$ML/input/data/train" && bad 66 E0120 train
job csv_ragged && echo '1,2,3' >>"$ML/input/data/train/part.csv" && bad 65 E0121 part.csv:321
job csv_text && sed -i '7s/^[0-9]*/apple/' "$ML/input/data/train/part.csv" && bad 65 part.csv:7 apple
job csv_columns && edit train.yaml 's/columns: 64\}/columns: 65}/' && bad 78 'column 65 does not exist'
job csv_quote && printf '"1,2\n' >>"$ML/input/data/train/part.csv" && bad 65 part.csv
job csv_label_fraction && sed -i '3s/[0-9]$/2.5/' "$ML/input/data/train/part.csv" && bad 65 part.csv:3
job csv_missing && sed -i '4s/^[^,]*,/,/' "$ML/input/data/train/part.csv" && bad 65 E0121 part.csv:4 'missing: 0'
job csv_missing_value && sed -i '4s/^[0-9]*,/,/' "$ML/input/data/train/part.csv" && sed -i '5s/[0-9]$//' "$ML/input/data/train/part.csv" && bad 65 part.csv:5
job format_unknown && edit train.yaml 's/channel: train,/channel: train, format: orc,/' && bad 78 orc 'csv, npy'
job label_beyond && sed -i '9s/[0-9]$/10/' "$ML/input/data/train/part.csv" && bad 65 E0122 part.csv:9
job label_negative && sed -i '9s/[0-9]$/-1/' "$ML/input/data/train/part.csv" && bad 65 E0122 part.csv:9
job label_beyond_test && sed -i '2s/[0-9]$/77/' "$ML/input/data/test/part.csv" && bad 65 E0122 validation part.csv:2
job too_few_rows 10 && bad 78 '10 samples' 'at most 10'
job npy_truncated && {
    rm "$ML"/input/data/train/*
    { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (320, 1, 8, 8), }"; head -c 1000 /dev/zero; } >"$ML/input/data/train/image.npy"
    cp "$ML/input/data/train/image.npy" "$ML/input/data/train/label.npy"
    CONFIG inputdataconfig '{"train": {}, "test": {}}'
    edit train.yaml 's/columns: 0-63, shape: \[1, 8, 8\], scale: 0.0625//; s/columns: 64//'
} && bad 65 .npy
job npy_pickle && {
    rm "$ML"/input/data/train/*
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '|O', 'fortran_order': False, 'shape': (320,), }" >"$ML/input/data/train/image.npy"
    cp "$ML/input/data/train/image.npy" "$ML/input/data/train/label.npy"
    CONFIG inputdataconfig '{"train": {}, "test": {}}'
    edit train.yaml 's/columns: 0-63, shape: \[1, 8, 8\], scale: 0.0625//; s/columns: 64//'
} && bad 65 .npy

# ---- while training ----
job loss_nan && edit train.yaml 's/adamw: \{lr: 1e-3/sgd: {weight_decay: 1e3, lr: 1e6/' && bad 65 E0500 'at step'
job values_inf && sed -i '3s/^[0-9]*,/inf,/' "$ML/input/data/train/part.csv" && bad 65 E0500 'field "image"' part.csv:3
job compiler_missing && {
    mkdir "$W/empty"
    RUN_PATH=$W/empty bad 71 E0710
}
job compiler_broken && {
    printf '#!/bin/sh\necho "internal compiler error" >&2; exit 4\n' >"$W/cc"
    chmod +x "$W/cc"
    export CC=$W/cc
    bad 71 E0710 "internal compiler error"
    unset CC
}

# ---- where results go ----
job model_folder_is_a_file && echo x >"$ML/model" && bad 73 "$ML/model"
job checkpoints_is_a_file && echo x >"$ML/checkpoints" && bad 73 checkpoints
job checkpoint_all_damaged && {
    run train --max_steps=10
    for file in "$ML"/checkpoints/*/rank-00000.bin; do truncate -s 100 "$file"; done
    rm -rf "$ML/model" "$ML/output"
    bad 65 E0510 'empty the folder'
    ok "the damaged ones are not deleted" compgen -G "$ML/checkpoints/step-*" >/dev/null
}
job checkpoint_of_other_model && {
    run train --max_steps=10
    rm -rf "$ML/model" "$ML/output"
    ARGS='--optimizer=sgd' bad 65 E0510
}
tiny() { mount -t tmpfs -o "size=$2" tmpfs "$1" 2>/dev/null; }
job disk_full_model
mkdir -p "$ML/model"
if tiny "$ML/model" 64k; then
    bad 73 E0702 model
    umount "$ML/model"

    job disk_full_checkpoints
    mkdir -p "$ML/checkpoints"
    tiny "$ML/checkpoints" 256k
    run
    same "two failed saves in a row stop the run" 73 $rc
    has "says which" "$ML/output/failure" "checkpoint at step"
    umount "$ML/checkpoints"

    job disk_full_metrics
    mkdir -p "$ML/output/data"
    tiny "$ML/output/data" 4k
    run
    same "curves are lost, the training is not" 0 $rc
    ok "model" test -e "$ML/model/model.json"
    has "and it is told" "$W/err" "training goes on without"
    umount "$ML/output/data"

    job read_only_model
    mkdir -p "$ML/model"
    mount -t tmpfs -o ro tmpfs "$ML/model"
    bad 77 E0701 model
    umount "$ML/model"
else
    skip "full and read-only disks" "no right to mount"
fi

same "no message is internal" "" "$(grep -a 'E09' "$ERRORS")"
[ -n "${SHOW:-}" ] && cat "$ERRORS"
finish_tests
