# trained.bash - sourced after harness.bash: trainings by a recipe in a folder of their own, and what they printed.
#
#   folder NAME            a new folder, which train.yaml and its data are to be written into
#   train ARGUMENT...      trains from the start; again ARGUMENT...: goes on from what is there. Status in rc
#   numbers                metric lines without speeds
#   weights                one line that stands for all bits of the trained weights
#   refused WHAT WORDS ARGUMENT...   is no recipe, and the message has these words
folder() {
    case_name=$1 W=$SCRATCH/$1
    export TRAINYARD_CACHE_DIR=$SCRATCH/cache
    mkdir -p "$W" && cd "$W"
}
train() {
    rm -rf run
    again "$@"
}
again() {
    timeout -k 5 600 "$BIN/trainyard" train train.yaml "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
numbers() { grep -E '^(val )?step=' "$W/out" | sed -E 's/ (samples_per_s|data_ms)=.*//'; }
weights() { sha256sum <"${1:-run}/model/model.safetensors"; }
refused() {
    train --device=cpu "${@:3}"
    same "$1" 78 $rc
    has "$1: in words" "$W/err" "$2"
}
