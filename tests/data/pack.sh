#!/bin/bash
# pack.sh - `trainyard data convert` and `data pack`: what TensorFlow reads in the files, value by value and in order.
# TY_TF_VENV names a virtual environment with tensorflow (tests/keras/judge.sh); without one a small reader of our own looks.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/pack
mkdir -p "$W"
data() {
    timeout -k 5 300 "$BIN/trainyard" data "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
python=${TY_TF_VENV:-build/keras-venv}/bin/python
if [ -x "$python" ]; then
    reader=tensorflow
else
    reader=plain python=python3
    skip "the same by TensorFlow" "no TensorFlow (TY_TF_VENV or TY_TF_INSTALL=1, see tests/keras/judge.sh)"
fi
# dump FILE...: a record a line, features by name, numbers by their bits.
dump() { "$python" tests/data/examples.py "$reader" "$@" 2>"$W/dump.err" || cat "$W/dump.err"; }

case_name=libsvm
{
    printf '1 1:0.5 300:1 117565:0.123456789\n0 2:4 9:-1e-3 11:3 # end\n'
    printf '\n1 3:1\n0\n'
} >"$W/clicks.libsvm"
data convert "$W/clicks.libsvm" "$W/clicks"
same "exit" 0 $rc
same "the name" part-00000-of-00001-4.tfrecord "$(ls "$W/clicks")"
dump "$W"/clicks/* >"$W/got"
cat >"$W/want" <<'WANT'
ids int [1, 300, 117565] | label float ['3f800000'] | values float ['3f000000', '3f800000', '3dfcd6ea']
ids int [2, 9, 11] | label float ['00000000'] | values float ['40800000', 'ba83126f', '40400000']
ids int [3] | label float ['3f800000'] | values float ['3f800000']
ids int [] | label float ['00000000'] | values float []
WANT
same "label, ids, values" "" "$(diff "$W/want" "$W/got")"
printf '1:0.5 qid:7 1:2\n0:2 qid:8 4:1 5:1\n' >"$W/ranks.libsvm"
data convert "$W/ranks.libsvm" "$W/ranks"
dump "$W"/ranks/* >"$W/got"
cat >"$W/want" <<'WANT'
ids int [1] | label float ['3f800000'] | qid int [7] | values float ['40000000'] | weight float ['3f000000']
ids int [4, 5] | label float ['00000000'] | qid int [8] | values float ['3f800000', '3f800000'] | weight float ['40000000']
WANT
same "weights and queries" "" "$(diff "$W/want" "$W/got")"

case_name=csv
printf 'n,city,x,note\n1,Rome,0.1,"a ""b"", c"\n-5,,2.5,\n9223372036854775807,Köln,,z\n' >"$W/table.csv"
printf 'n,city,x,note\n4,Oslo,1e-45,last\n' >"$W/table2.csv"
mkdir "$W/tables"
cp "$W/table.csv" "$W/tables/1.csv"
gzip <"$W/table2.csv" >"$W/tables/2.csv.gz"
data convert "$W/tables" "$W/table"
same "exit" 0 $rc
dump "$W"/table/* >"$W/got"
cat >"$W/want" <<'WANT'
city bytes [b'Rome'] | n int [1] | note bytes [b'a "b", c'] | x float ['3dcccccd']
n int [-5] | x float ['40200000']
city bytes [b'K\xc3\xb6ln'] | n int [9223372036854775807] | note bytes [b'z']
city bytes [b'Oslo'] | n int [4] | note bytes [b'last'] | x float ['00000001']
WANT
same "numbers, text, what is missing" "" "$(diff "$W/want" "$W/got")"

case_name=shards
for i in $(seq 1000); do echo "$i,$((i * 7 % 11))"; done >"$W/rows.csv"
data pack "$W/rows.csv" --out="$W/rows" --size=10kB
same "exit" 0 $rc
ok "no file is larger" test "$(find "$W/rows" -type f -size +10000c | wc -l)" = 0
n=$(find "$W/rows" -type f | wc -l)
ok "several files" test "$n" -gt 3
same "their number is in the names" "$n" "$(find "$W/rows" -name "part-*-of-$(printf %05d "$n")-*.tfrecord" | wc -l)"
same "and how many records" 1000 "$(ls "$W/rows" | sed 's/.*-//; s/\..*//' | awk '{n += $1} END {print n}')"
same "in order" "" "$(diff <(seq 1000) <(dump "$W"/rows/* | sed 's/column 0 int \[\([0-9]*\)\].*/\1/'))"
mkdir "$W/few"
cp "$W"/rows/* "$W/few"
data pack "$W/few" --out="$W/many" --size=1MB
same "records put together" 1 "$(find "$W/many" -type f | wc -l)"
same "are the same" "" "$(diff <(dump "$W"/rows/*) <(dump "$W"/many/*))"
data pack "$W/few" --out="$W/mixed" --shuffle=3
ok "files in another order" test "$(dump "$W"/mixed/* | md5sum)" != "$(dump "$W"/many/* | md5sum)"
same "of the same records" "" "$(diff <(dump "$W"/many/* | sort) <(dump "$W"/mixed/* | sort))"

case_name=records
cat >"$W/notes.jsonl" <<'J'
{"text": "hi there", "n": 3, "v": [1, 2], "m": 123456789}
{"text": "tab\there \u00e9", "n": 2.5, "v": [3, 4], "m": null}
{"text": null, "n": null, "v": [5, 6], "m": 8}
J
data convert "$W/notes.jsonl" "$W/notes"
same "JSON Lines: exit" 0 $rc
dump "$W"/notes/* >"$W/got"
cat >"$W/want" <<'WANT'
m int [123456789] | n float ['40400000'] | text bytes [b'hi there'] | v int [1, 2]
n float ['40200000'] | text bytes [b'tab\there \xc3\xa9'] | v int [3, 4]
m int [8] | v int [5, 6]
WANT
same "texts, whole numbers, others; what is null is not there" "" "$(diff "$W/want" "$W/got")"
data convert "$W/notes" "$W/notes.again"
same "TFRecord files: exit" 0 $rc
same "as they are" "" "$(cmp "$W"/notes/* "$W"/notes.again/* 2>&1)"
printf 'a line\n\nand another' >"$W/poem.txt"
data convert "$W/poem.txt" "$W/poem" --format=lines
same "lines: exit" 0 $rc
dump "$W"/poem/* >"$W/got"
same "each a text" "text bytes [b'a line'] text bytes [b'and another'] " "$(tr '\n' ' ' <"$W/got")"
data convert "$W/notes.jsonl" "$W/notes.skip" --skip-bad=5
same "without bad ones: refused" 2 $rc
has "says why" "$W/err" "texts of jsonlines are not written where bad records are left out"

case_name=pictures
mkdir -p "$W/pets/dog" "$W/pets/cat"
printf '\xff\xd8\xff one' >"$W/pets/cat/a.jpg"
printf '\x89PNG\r\n\x1a\n two' >"$W/pets/cat/b.png"
printf 'P5 1 1 255\n.' >"$W/pets/dog/c.pgm"
data pack "$W/pets" --out="$W/packed"
same "exit" 0 $rc
same "names of classes" "cat dog " "$(tr '\n' ' ' <"$W/packed/_classes.txt")"
dump "$W"/packed/*.tfrecord >"$W/got"
cat >"$W/want" <<'WANT'
image bytes [b'\xff\xd8\xff one'] | label bytes [b'cat'] | path bytes [b'cat/a.jpg']
image bytes [b'\x89PNG\r\n\x1a\n two'] | label bytes [b'cat'] | path bytes [b'cat/b.png']
image bytes [b'P5 1 1 255\n.'] | label bytes [b'dog'] | path bytes [b'dog/c.pgm']
WANT
same "bytes, name of the class, path" "" "$(diff "$W/want" "$W/got")"

case_name=failures
head -c -3 "$W/few/$(ls "$W/few" | tail -n 1)" >"$W/few/zz.tfrecord"
data pack "$W/few" --out="$W/cut"
ok "a file that is cut" test $rc != 0
has "its name" "$W/err" "zz.tfrecord"
ok "nothing is left" test ! -e "$W/cut" -a -z "$(find "$W" -name '.*tmp*')"
data pack "$W/rows.csv" --out="$W/rows"
ok "a folder that holds something" test $rc != 0
has "what to do" "$W/err" "empty or not there"
echo text >"$W/pets/dog/notes.txt"
data pack "$W/pets" --out="$W/again"
ok "a file that is no picture" test $rc != 0
has "its path" "$W/err" "dog/notes.txt"
data pack "$W/rows.csv"
same "no --out" 2 $rc
data pack "$W/rows.csv" --out="$W/x" --size=big
same "no size" 2 $rc
has "how to write it" "$W/err" "--size=150MB"

finish_tests
