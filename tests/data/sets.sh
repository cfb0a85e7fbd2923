#!/bin/bash
# sets.sh - real data sets as a user looks at them: pictures in folders, plain text, records.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/sets
SETS=${TY_SHARED:-../shared}/data
mkdir -p "$W"
if [ ! -d "$SETS" ]; then
    skip "data sets" "no shared data at TY_SHARED or ../shared"
    finish_tests
    exit
fi
look() { # VERB PATH [OPTION...]
    "$BIN/trainyard" data "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}

# 2,720 PNGs of 105 x 105 pixels and one bit in 136 folders of 20 (its README).
case_name=omniglot
python3 -m zipfile -e "$SETS/omniglot-small1/images_background_small1.zip" "$W/omniglot" || exit 1
look check "$W/omniglot"
same "checked" 0 $rc
has "all of them" "$W/out" "2,720 samples, 2,720 files"
has "pictures are told as such" "$W/out" "picture           all were decoded"
has "classes" "$W/out" "0 to 135"
look stats "$W/omniglot"
has "how many of a class" "$W/out" "images_background_small1/Balinese/character01  20"
has "their format" "$W/out" "PNG  2720"
look head "$W/omniglot" --rows=1
has "the first one" "$W/out" "image picture  PNG, 105 x 105 pixels, 1 channel, 285 bytes"

# 1,115,394 characters in 32,777 lines that hold something, 65 different ones (its README).
case_name=shakespeare
look check "$SETS/tinyshakespeare/input.txt" --format=lines
has "lines" "$W/out" "32,777 samples"
look check "$SETS/tinyshakespeare/input.txt"
ok "text is no table" test $rc -ne 0
has "and what it was taken for" "$W/err" "it was taken for csv, as any text that nothing says more of"
look tokenize "$SETS/tinyshakespeare/input.txt" "$W/tokens.bin" --symbols=characters
same "tokens" 0 $rc
has "how many, of how many kinds" "$W/out" "1115394 tokens of 65, as uint16"
look tokenize "$SETS/tinyshakespeare/input.txt" "$W/tokens.npy" --symbols=characters
ok "what has no header is not called npy" test $rc -ne 0
has "but what" "$W/err" "call it NAME.bin"

# A README beside the data.
case_name=pattern
look check "$SETS/mnist"
ok "two formats" test $rc -ne 0
has "the data's pattern" "$W/err" 'files: "*.gz" (on a command line --files)'
look check "$SETS/mnist" "--files=*images*"
has "a part of a folder" "$W/out" "10,000 samples, 1 file"
look head "$SETS/abalone-csv/abalone.csv" --rows=1
has "texts are told as such" "$W/out" "column 0 text  of 1 character"
look convert "$SETS/abalone-csv/abalone.csv" "$W/abalone.npz"
ok "a folder is not called like a file" test $rc -ne 0
has "of what" "$W/err" "is called like a file of npz"

case_name=records
look check "$SETS/tfrecord-misc/mnist1000.tfrecord"
has "TFRecord" "$W/out" "1,000 samples, 1 file"
look check "$SETS/recordio-protobuf/complete_records.pr"
has "RecordIO" "$W/out" "5 samples, 1 file"
look check "$SETS/images-misc/test_image_0.rec"
has "MXNet" "$W/out" "1 sample, 1 file"
look check "$SETS/npy-weights/W_DENSE1_IRIS.npy"
has "npy" "$W/out" "4 samples, 1 file"
has "its type" "$W/out" "f64[10]"

finish_tests
