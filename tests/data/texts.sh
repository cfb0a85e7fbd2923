#!/bin/bash
# texts.sh - what is said of texts in formats whose texts nobody transforms, byte for byte. GOLDEN=write writes it anew.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
golden=$PWD/tests/golden/data/texts.txt
case_name=texts
W=$SCRATCH/texts
mkdir "$W"
python3 - "$W" <<'E2' || exit 1
import struct, sys, zipfile


def npy(descr, data):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': (3,), }" % descr).ljust(117) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", 118) + head.encode() + data


def field(number, body):
    return bytes([number << 3 | 2, len(body)]) + body


def record(kind, body):
    r = field(1, field(1, b"values") + field(2, field(kind, field(1, body))))
    return b"\x0a\x23\xd7\xce" + struct.pack("<I", len(r)) + r + b"\0" * (-len(r) % 4)


wide = "".join("SCQ").encode("utf-32-le")
with zipfile.ZipFile(sys.argv[1] + "/unicode.npz", "w") as z:
    z.writestr("text.npy", npy("<U1", wide))
with zipfile.ZipFile(sys.argv[1] + "/bytes.npz", "w") as z:
    z.writestr("text.npy", npy("|S1", b"SCQ"))
put = lambda name, data: open(sys.argv[1] + "/" + name, "wb").write(data)
put("unicode.npy", npy("<U1", wide))
put("bytes.pbr", record(9, b"S") + record(9, b"C"))
put("later.pbr", record(2, struct.pack("<f", 1)) + record(9, b"C"))
put("latin.csv", b"caf\xe9\nbar\n")
put("latin.txt", b"bar\ncaf\xe9\n")
put("number.txt", b"1\n2\nthree\n")
E2
cat >"$W/model.c" <<'E2'
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_var all = ty_embedding(net, "words", ty_input(net, "text", "i64[batch]"), 8, 4);
    ty_output(net, "logits", ty_linear(net, "out", all, 8));
}
E2
cat >"$W/train.yaml" <<'E2'
model: model.c
loss: {softmax_cross_entropy: {logits: logits, labels: text}}
optimizer: {sgd: {lr: 0.1}}
batch_size: 1
max_steps: 1
E2
n=0
refused() { # FILE DATA
    (cd "$W" && timeout 60 "$BIN/trainyard" train train.yaml --fresh "--data.train={path: $1, $2}") >"$W/said" 2>"$W/why"
    rc=$?
    ok "$1: status $rc" test $rc = 65 -o $rc = 78
    { echo "== $1 $2: $rc" && LC_ALL=C tr '\351' '?' <"$W/why"; } >>"$W/all"
    n=$((n + 1))
}
for file in unicode.npz bytes.npz unicode.npy; do
    refused $file 'fields: {text: {vocabulary: auto}}'
done
refused unicode.npz 'fields: {text: {hash: 8}}'
refused bytes.pbr 'fields: {text: {member: features, vocabulary: auto}}'
refused bytes.pbr 'fields: {text: {member: features, hash: 8, missing: none}}'
refused later.pbr 'fields: {text: {member: features, classes: auto}}'
refused latin.csv 'header: no, fields: {text: {columns: 0, vocabulary: auto}}'
refused latin.txt 'format: lines, fields: {text: {classes: auto}}'
refused latin.txt 'format: lines, fields: {text: {}}'
refused latin.txt 'format: lines, fields: {text: {member: label, hash: 8}}'
refused latin.txt 'format: lines, window: 4, fields: {text: {hash: 8}}'
refused number.txt 'format: lines, fields: {text: {normalize: standard}}'
same "kinds of refusal" 13 $n
[ "${GOLDEN:-}" = write ] && cp "$W/all" "$golden"
same "all messages" "" "$(diff "$golden" "$W/all" | head -20)"
case_name=check
printf 'one two three\n\nf\303\274nf\nbad \377\n' >"$W/lines.txt"
"$BIN/trainyard" data check "$W/lines.txt" --format=lines >"$W/out" 2>&1
same "lines" 0 $?
has "how many, blank ones not counted" "$W/out" "3 samples, 1 file"
has "how long" "$W/out" "4 to 13 characters, mean 7.3, the longest at $W/lines.txt:1"
has "what is damaged" "$W/out" "1 no UTF-8, first at $W/lines.txt:4"
"$BIN/trainyard" data check "$W/lines.txt" --format=lines --json >"$W/out" 2>&1
has "the same as JSON" "$W/out" '"least_characters": 4, "most_characters": 13, "empty": 0, "not_utf8": 1'
"$BIN/trainyard" data stats "$W/lines.txt" --format=lines >"$W/out" 2>&1
has "words" "$W/out" "text (words)"
finish_tests
