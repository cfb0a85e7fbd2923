#!/bin/bash
# serve_pipe.sh - `trainyard data serve-pipe`: what comes out of the FIFOs, byte by byte, for every way to feed them.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/serve
mkdir -p "$W/in/sub" "$W/images"
printf 'one\n' >"$W/in/a"
printf 'three\n' >"$W/in/c"
printf 'two\n' | gzip >"$W/in/b.gz"
printf 'four\n' >"$W/in/sub/d"
printf 'hidden\n' >"$W/in/_no"

# serve NAME ARGUMENT...: a feeder beside us.
serve() {
    into=$W/$1
    timeout -k 5 300 "$BIN/trainyard" data serve-pipe "${@:2}" --into="$into" >"$into.out" 2>"$into.err" </dev/null &
    feeder=$!
}
# epoch N [CHANNEL]: all of the FIFO's bytes, once it is there.
epoch() {
    local fifo=$into/${2:-training}_$1
    until [ -p "$fifo" ] || ! kill -0 $feeder 2>/dev/null; do sleep 0.02; done
    timeout 200 cat "$fifo"
}
hex() { od -An -tx1 -v | tr -d ' \n'; }

case_name=order
serve order "$W/in" --epochs=2 --channel=clicks
same "sorted, inflated, one behind the other" "one two three four " "$(epoch 0 clicks | tr '\n' ' ')"
same "the second epoch" "one two three four " "$(epoch 1 clicks | tr '\n' ' ')"
wait $feeder
same "it ends" 0 $?
has "what it says" "$into.out" "2 epochs of 4 objects, 0.0 MB"
same "no FIFO is left" "" "$(ls "$into")"

case_name=shuffle
serve shuffle "$W/in" --epochs=6 --shuffle=7
for e in 0 1 2 3 4 5; do epoch $e | tr '\n' ' '; echo; done >"$W/first"
wait $feeder
serve again "$W/in" --epochs=6 --shuffle=7
for e in 0 1 2 3 4 5; do epoch $e | tr '\n' ' '; echo; done >"$W/second"
wait $feeder
ok "the same seed, the same order" cmp -s "$W/first" "$W/second"
ok "epochs differ" test "$(sort -u "$W/first" | wc -l)" -gt 2
same "of the same objects" 1 "$(while read -r l; do tr ' ' '\n' <<<"$l" | sort | tr '\n' ' '; echo; done <"$W/first" | sort -u | wc -l)"

case_name=shards
for i in 0 1 2 3 4 5; do
    serve "shard$i" "$W/in" --epochs=1 --shard=$i/6
    epoch 0 >>"$W/shards"
    wait $feeder
done
same "their union" "four one three two " "$(sort "$W/shards" | tr '\n' ' ')"
serve part "$W/in" --epochs=1 --shard=1/2
same "every second" "two four " "$(epoch 0 | tr '\n' ' ')"
wait $feeder

case_name=wrapped
serve wrapped "$W/in/a" "$W/in/b.gz" --epochs=1 --wrap
same "as RecordIO" "0a23d7ce040000006f6e650a0a23d7ce0400000074776f0a" "$(epoch 0 | hex)"
wait $feeder
printf 'fifth' >"$W/odd"
serve padded "$W/odd" --epochs=1 --wrap
same "padded to four" "0a23d7ce050000006669667468000000" "$(epoch 0 | hex)"
wait $feeder
serve verbatim "$W/in/b.gz" --epochs=1 --compressed
ok "compressed as it is" cmp -s <(epoch 0) "$W/in/b.gz"
wait $feeder

case_name=manifest
printf 'JPEG1' >"$W/images/1.jpg"
printf 'JPG2' >"$W/images/2.jpg"
cat >"$W/train.manifest" <<'MANIFEST'
{"image-ref": "s3://bucket/some/prefix/images/1.jpg", "label": 3, "box": {"x": [1, 2.50]}}

{"label": "cat", "image-ref": "images/2.jpg", "box": null}
MANIFEST
serve manifest "$W/train.manifest" --epochs=1 --attributes=image-ref,label,box
epoch 0 >"$W/records"
wait $feeder
same "attributes in their order, objects for references" \
    "JPEG1|3|{\"x\":[1,2.5]}|JPG2|\"cat\"|null|" \
    "$(python3 - "$W/records" <<'PY'
import struct, sys
b = open(sys.argv[1], "rb").read()
at = 0
while at < len(b):
    magic, n = struct.unpack_from("<II", b, at)
    assert magic == 0xCED7230A
    print(b[at + 8:at + 8 + n].decode(), end="|")
    at += 8 + n + -n % 4
PY
)"
printf '{"image-ref": "images/1.jpg", "label": 1}\n{"image-ref": "images/9.jpg", "label": 1}\n' >"$W/bad.manifest"
serve bad "$W/bad.manifest" --epochs=1 --attributes=image-ref,label
wait $feeder
ok "an object that is not here" test $? != 0
has "its line" "$into.err" "bad.manifest:2"
has "its name" "$into.err" "images/9.jpg"

case_name=leaving
head -c 3000000 /dev/zero >"$W/large"
serve leave "$W/large" --epochs=2
epoch 0 | head -c 100 >/dev/null
same "the next epoch is whole" 3000000 "$(epoch 1 | wc -c)"
wait $feeder
same "and it ends" 0 $?
has "it says so" "$into.out" "1 left before the end"

case_name=stopping
serve stop "$W/in"
epoch 0 >/dev/null
until [ -p "$into/training_1" ]; do sleep 0.02; done
kill -TERM $feeder
wait $feeder
same "a signal ends it" 0 $?
same "no FIFO is left" "" "$(ls "$into")"

case_name=refusals
timeout 60 "$BIN/trainyard" data serve-pipe "$W/in" >"$W/out" 2>"$W/err"
same "no folder" 2 $?
has "its option" "$W/err" "--into=FOLDER"
timeout 60 "$BIN/trainyard" data serve-pipe "$W/absent" --into="$W/x" >"$W/out" 2>"$W/err"
ok "no data" test $? != 0
mkdir -p "$W/taken"
: >"$W/taken/training_0"
timeout 60 "$BIN/trainyard" data serve-pipe "$W/in" --into="$W/taken" >"$W/out" 2>"$W/err"
ok "a place that is taken" test $? != 0
has "what to do" "$W/err" "another folder"

finish_tests
