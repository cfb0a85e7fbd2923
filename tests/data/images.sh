#!/bin/bash
# images.sh - folders and lists of pictures: the same training as from a table, classes, augmentation that resumes.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/images
mkdir -p "$W"
examples/digits/data "$W/raw" || exit 1
cp examples/digits/model.onnx "$W/digits.onnx"
# The first 320 digits as pictures of 8 x 8 pixels: in folders by class, and in the table's order with a list.
head -320 "$W/raw/train.csv" >"$W/part.csv"
awk -F, -v w="$W" '{
    folder = w "/folders/" $65; name = sprintf("%04d.pgm", NR)
    if (!seen[$65]++) system("mkdir -p " folder " " w "/list/pictures")
    printf "P5 8 8 255\n" >(folder "/" name)
    for (i = 1; i <= 64; i++) printf "%c", int($i) + 32 >(folder "/" name)
    close(folder "/" name)
    printf "%d\t%d\tpictures/%s\n", NR, $65, name >(w "/list/train.lst")
    print folder "/" name, w "/list/pictures/" name >(w "/links")
}' "$W/part.csv"
while read -r from to; do ln "$from" "$to"; done <"$W/links"
train() { # RECIPE ARGUMENT...: from within $W
    rm -rf "$W/run"
    (cd "$W" && timeout -k 5 600 "$BIN/trainyard" train "$@" --log_every=1 --seed=3) >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
rounded() { sed -E 's/(\.[0-9]{4})[0-9]*/\1/'; }
losses() { grep -oE "\"split\":\"train\",\"loss\":[0-9.e-]+" "$W/run/output/data/metrics.jsonl"; }
recipe() { # NAME DATA: one that differs in its data alone
    printf 'model: digits.onnx\nloss: softmax_cross_entropy\nbatch_size: 32\ndata: {train: %s}\n' "$2" >"$W/$1.yaml"
}

case_name=same
recipe table '{path: part.csv, shuffle: false, fields: {image: {columns: 0-63, offset: 32}, label: {columns: 64}}}'
recipe list '{path: list, shuffle: false, fields: {image: {image: {scale: 1}}, label: {}}}'
train table.yaml --fresh --max_steps=6
same "a table" 0 $rc
wanted=$(losses)
train list.yaml --fresh --max_steps=6
same "a list" 0 $rc
same "losses" "$wanted" "$(losses)"

case_name=folder
train digits.onnx --loss=softmax_cross_entropy --data=folders --fresh --max_steps=3
same "no fields declared" 0 $rc
has "what they become" "$W/err" "pictures become 8 x 8 pixels of 1 channel"
has "what is decoded in counts" "$W/err" "that threads decode in, 1.2 KiB for the order of all samples"
train digits.onnx --loss=softmax_cross_entropy --data=folders --fresh --max_steps=3 --data_memory=2KiB
ok "less than two batches and the order: status $rc" test $rc -ne 0
has "it says what for" "$W/err" "of it 1280 are for the order of all samples"
"$BIN/trainyard" data check "$W/folders" >"$W/out" 2>&1
has "check" "$W/out" "320 samples, 320 files"
has "classes" "$W/out" "0 to 9"
"$BIN/trainyard" data head "$W/folders" --rows=1 >"$W/out" 2>&1
has "head" "$W/out" "folders/0/"

case_name=packed
recipe folders '{path: folders, shuffle: false, fields: {image: {image: {scale: 1}}, label: {}}}'
"$BIN/trainyard" data plan "$W/folders.yaml" >"$W/out" 2>&1
has "the plan names it" "$W/out" "that threads decode in"
recipe packed '{path: packed, shuffle: false, fields: {image: {image: {scale: 1}}, label: {classes: auto}}}'
"$BIN/trainyard" data pack "$W/folders" --out="$W/packed" >"$W/out" 2>&1
same "pack" 0 $?
train folders.yaml --fresh --max_steps=3
wanted=$(losses)
train packed.yaml --fresh --max_steps=3
same "records" 0 $rc
same "losses" "$wanted" "$(losses)"
"$BIN/trainyard" data convert "$W/folders" "$W/converted" >"$W/out" 2>&1
same "convert" 0 $?
train packed.yaml --fresh --max_steps=3 --data.train.path=converted
same "the same, but for their paths" "0 $wanted" "$rc $(losses)"
train digits.onnx --loss=softmax_cross_entropy --data=packed --fresh --max_steps=1
same "no fields declared" 0 $rc
kept=$(find "$W/run" -name preprocessing.json | head -1)
has "names of classes" "$kept" '"words": ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]'

# Means of the data and mixed pictures: the same numbers from folders and records, by number and as they come, on one
# process and two.
case_name=records
printed() { grep -oE '"(mean|std)": [^]]*' "$(find "$W/run" -name preprocessing.json | head -1)"; }
mixed='shuffle: false, fields: {
  image: {image: {size: [8, 8], crop: random, pad: 1, mean: auto, std: auto}}, label: {classes: auto}}'
recipe folders "{path: folders, $mixed}"
recipe random "{path: packed, access: random, $mixed}"
recipe stream "{path: packed, access: stream, $mixed}"
train folders.yaml --fresh --max_steps=6
same "folders" 0 $rc
wanted=$(losses) mean=$(printed)
for how in random stream; do
    train $how.yaml --fresh --max_steps=6
    same "$how" 0 $rc
    same "$how: losses" "$wanted" "$(losses)"
    same "$how: what is kept" "$mean" "$(printed)"
done
kept=$(find "$W/run" -name preprocessing.json | head -1)
cp "$kept" "$W/kept.json"
train stream.yaml --fresh --max_steps=6 --data.train.preprocessing=kept.json
same "taken from a file" 0 $rc
lacks "nothing is learnt" "$W/err" "transforms that learn"
same "the same losses" "$wanted" "$(losses)"
mixed="shuffle: 100, fields: {
  image: {image: {size: [8, 8], mean: auto, std: auto, mix: {mixup: 0.4}}}, label: {classes: auto, one_hot: auto}}"
for how in random stream; do
    recipe mixed "{path: packed, access: $how, $mixed}"
    sed -i 's/^loss:.*/loss: {softmax_cross_entropy: {dense_labels: true}}/' "$W/mixed.yaml"
    echo 'checkpoint: {every: 1}' >>"$W/mixed.yaml"
    train mixed.yaml --fresh --max_steps=6 --deterministic=strict
    same "mixed, $how" 0 $rc
    wanted=$(losses)
    train mixed.yaml --fresh --max_steps=6 --deterministic=strict --processes_per_host=2
    same "on two processes" 0 $rc
    same "the same batches" "$(rounded <<<"$wanted")" "$(losses | rounded)"
    train mixed.yaml --fresh --max_steps=3 --deterministic=strict
    (cd "$W" && timeout -k 5 600 "$BIN/trainyard" train mixed.yaml --log_every=1 --seed=3 --max_steps=6 --deterministic=strict) \
        >"$W/out" 2>"$W/err" </dev/null
    has "resumed" "$W/err" "resuming at step 3"
    same "with the same losses" "$wanted" "$(losses)"
done

case_name=refused
recipe wrong '{path: part.csv, fields: {image: {image: {}, columns: 0-63}, label: {columns: 64}}}'
train wrong.yaml --fresh --max_steps=1
has "a table" "$W/err" 'field "image" has image:, but csv data hold no encoded pictures'

case_name=augmented
recipe varied '{path: folders, fields: {
  image: {image: {size: [8, 8], crop: random, pad: 1, flip: horizontal, mean: auto, std: auto}}, label: {}}}'
echo 'checkpoint: {every: 1 epochs}' >>"$W/varied.yaml"
train varied.yaml --fresh --epochs=2
same "two epochs" 0 $rc
wanted=$(losses)
train varied.yaml --fresh --epochs=1
same "one epoch" 0 $rc
(cd "$W" && timeout -k 5 600 "$BIN/trainyard" train varied.yaml --log_every=1 --seed=3 --epochs=2) \
    >"$W/out" 2>"$W/err" </dev/null
same "and another" 0 $?
same "the same losses" "$wanted" "$(losses)"

# What was computed of the training data stays with the model.
case_name=kept
preprocessing=$(find "$W/run" -name preprocessing.json | head -1)
has "its mean" "$preprocessing" '"mean":'
lacks "no word" "$preprocessing" '"mean": "auto"'
mkdir "$W/new"
cp "$W/folders/3/"*[0-9].pgm "$W/new"
"$BIN/trainyard" run "${preprocessing%/*}/model.onnx" --data "$W/new" --output-dir "$W/told" >"$W/out" 2>&1
same "pictures without folders" 0 $?

# Sizes, formats, channels and classes, printed and as a page that needs nothing else.
case_name=stats
mkdir -p "$W/mixed/cat" "$W/mixed/a<b&c"
cp tests/golden/images/plain.jpg tests/golden/images/rgb.png tests/golden/images/grey8.png "$W/mixed/cat"
cp tests/golden/images/rgb.ppm "$W/mixed/a<b&c"
"$BIN/trainyard" data stats "$W/mixed" --html="$W/stats.html" --svg="$W/stats.svg" >"$W/out" 2>"$W/err"
same "exit" 0 $?
has "widths" "$W/out" "image (width)"
for line in "formats of image: 3" "channels of image: 2" "classes of label: 2" "    cat    3" "    a<b&c  1" "    RGB   3"; do
    has "$line" "$W/out" "$line"
done
ok "the page is XML" xmllint --noout "$W/stats.html"
ok "so is the picture" xmllint --noout "$W/stats.svg"
same "with all four pictures in it" 4 "$(grep -c 'src="data:image/bmp;base64,' "$W/stats.html")"
same "and nothing from elsewhere" "" "$(grep -oE '(src|href)="(http|/|[a-z]+\.)[^"]*"' "$W/stats.html")"
grep -o 'base64,[^"]*' "$W/stats.html" | head -1 | sed 's/base64,//' | base64 -d >"$W/thumb.bmp"
"$BIN/trainyard" data check "$W/thumb.bmp" >"$W/out" 2>&1
same "a bitmap that can be read" 0 $?
"$BIN/trainyard" data stats "$W/packed" --json >"$W/out" 2>"$W/err"
has "of records too" "$W/out" '"formats of image": {"PNM": 320}'
ok "all ten classes" grep -qE '"classes of label": \{("[0-9]": [0-9]+(, )?){10}\}' "$W/out"
python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$W/out"
same "valid JSON" 0 $?

case_name=bad
printf 'P5 8 8 255\nshort' >"$W/folders/3/bad.pgm"
"$BIN/trainyard" data check "$W/folders" >"$W/out" 2>&1
same "check" 65 $?
has "its place" "$W/out" "folders/3/bad.pgm"
has "what is wrong" "$W/out" "its pixels take 64 bytes, found 5"
"$BIN/trainyard" data check "$W/folders" --skip-bad=1 >"$W/out" 2>&1
has "left out" "$W/out" "1 bad record left out"
finish_tests
