#!/bin/bash
# TensorFlow's files are read as TensorFlow reads them and written so that it loads them.
#
# Our own small files (tests/tensorflow/make_files.py) against the CRCs that TensorFlow gave; then, with a Python that has
# TensorFlow ($TENSORFLOW_PYTHON, or build/tensorflow-venv), these and the models in ../shared by TensorFlow itself.
set -u
cd "$(dirname "$0")/../.." || exit 1
tool=$PWD/build/${TY_VARIANT:-release}/tools/tf_file
golden=tests/golden/tensorflow
shared=${TY_SHARED:-../shared}/data
python=${TENSORFLOW_PYTHON:-build/tensorflow-venv/bin/python}
passed=0 failed=0 skipped=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@" >"$scratch/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $name"
        head -20 "$scratch/log"
    fi
}

# "KEY CRC" of what a file has under keys (or as constants), sorted; the empty and slices of a whole are left out.
tensors() { # FILE
    "$tool" show "$1" | awk '/^variable / && !/ empty / { key = $NF == "-" ? $2 : $NF; print key, $4 }' |
        grep -v '^net/w ' | sort -u
}
expected() { # NAME
    sed -n "s/^$1 //p" $golden/files.txt | grep -v '^net/w ' | sort -u
}
reads() { # NAME FILE
    expected "$1" >"$scratch/expected"
    tensors "$2" >"$scratch/found"
    [ -s "$scratch/found" ] && ! comm -23 "$scratch/found" "$scratch/expected" | grep .
}
# Weights in use change, others do not, and the graph is the same bytes.
writes() { # FILE TO
    "$tool" shift "$1" "$2" || return 1
    "$tool" show "$1" | awk '/^variable .* used / { print $2, $4 }' | sort >"$scratch/before"
    "$tool" show "$2" | awk '/^variable .* used / { print $2, $4 }' | sort >"$scratch/after"
    [ "$(wc -l <"$scratch/before")" = "$(wc -l <"$scratch/after")" ] || return 1
    ! comm -12 "$scratch/before" "$scratch/after" | grep -v '^step ' || return 1
    [ ! -d "$1" ] || cmp "$1/saved_model.pb" "$2/saved_model.pb"
}
# A refusal names the file and says what is wrong.
refuses() { # FILE TEXT
    ! "$tool" show "$1" 2>"$scratch/err" >/dev/null && grep -qF "$2" "$scratch/err" || { cat "$scratch/err"; false; }
}
damaged() { # NAME FILE OFFSET: a copy of a folder with a byte changed
    cp -r "$scratch/line" "$scratch/$1"
    printf '\377' | dd of="$scratch/$1/$2" bs=1 seek="$3" conv=notrunc 2>/dev/null
}

[ -x "$tool" ] || make -s variant="${TY_VARIANT:-release}" "$tool" >&2 || exit 1
tar -xJf $golden/files.tar.xz -C "$scratch" || exit 1
for name in line keras; do
    check "reading $name" reads $name "$scratch/$name"
    check "writing $name" writes "$scratch/$name" "$scratch/$name.out"
    check "writing $name over it" writes "$scratch/$name" "$scratch/$name.out"
done
check "reading tf1" reads tf1 "$scratch/tf1/ckpt.meta"
check "writing tf1" writes "$scratch/tf1/ckpt.meta" "$scratch/out.meta"
check "reading a frozen graph" reads frozen.pb "$scratch/frozen.pb"
check "writing a frozen graph" writes "$scratch/frozen.pb" "$scratch/out.pb"

index=variables/variables.index data=variables/variables.data-00000-of-00001
damaged bad_index $index 20
check "damaged index" refuses "$scratch/bad_index" "a block's CRC does not match"
damaged bad_data $data 20
check "damaged tensor" refuses "$scratch/bad_data" "its CRC does not match"
cp -r "$scratch/line" "$scratch/no_shard" && rm "$scratch/no_shard/$data"
check "missing shard" refuses "$scratch/no_shard" "shard 0 of 1"
cp -r "$scratch/line" "$scratch/short" && truncate -s 30 "$scratch/short/$index"
check "short index" refuses "$scratch/short" "expected a table of at least 48 bytes"
mkdir "$scratch/empty"
check "empty folder" refuses "$scratch/empty" "expected saved_model.pb"
echo 'node { name: "x" }' >"$scratch/text.pbtxt"
check "graph as text" refuses "$scratch/text.pbtxt" "binary form"
check "checkpoint without graph" refuses "$scratch/line/$index" "a checkpoint alone has weights"
check "unknown signature" bash -c "! '$tool' -s none show '$scratch/line' 2>&1 | grep -qF 'found \"serving_default\", \"train\"' && false || true"
ln -s /etc/hostname "$scratch/line/assets/link"
check "link that leads out" bash -c "! '$tool' shift '$scratch/line' '$scratch/linked' 2>/dev/null && [ ! -e '$scratch/linked' ]"
rm "$scratch/line/assets/link"

if ! "$python" -c 'import tensorflow' 2>/dev/null; then
    echo "skip: no TensorFlow in $python"
    skipped=$((skipped + 1))
else
    files=("$scratch/line:serving_default:train" "$scratch/keras" "$scratch/tf1/ckpt.meta:out" "$scratch/frozen.pb")
    for path in "$shared"/models/savedmodel/{mnist_lr_tf1,regression_train_tf1,matrix_half_plus_two/1,kws_dscnn_tf2,cifar_cnn_tf1} \
                "$shared"/models/savedmodel/half_plus_two_tf{1,2}/00000123 "$shared"/keras-cases/exported_norms/saved_model \
                "$shared"/models/savedmodel/counter_tf1/00000123:get_counter "$shared"/models/graphdef/fc-layers/frozen.pb \
                "$shared"/keras-cases/{module_momentum,subclassed_trains_itself}/saved_model:forward:train \
                "$shared"/keras-cases/frozen_graph_mlp/model.pb; do
        [ -e "${path%%:*}" ] && files+=("$path")
    done
    "$python" tests/import/tensorflow_files.py "$tool" "$scratch" "${files[@]}" 2>/dev/null >"$scratch/judged"
    grep -E '^FAIL|^PASS' "$scratch/judged"
    failed=$((failed + $(grep -c '^FAIL' "$scratch/judged")))
    passed=$((passed + $(grep -c '^PASS' "$scratch/judged")))
    grep -q 'passed,' "$scratch/judged" || { echo "FAIL: the judge ended early"; failed=$((failed + 1)); }
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
