#!/bin/bash
# audio.sh - folders of sounds: the same training as from an array, classes, records, what varies and resumes, other rates.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/audio
mkdir -p "$W"
cp tests/golden/audio/tones.onnx "$W"
# Tones of three pitches with noise, 400 frames at 8000 a second: in folders by class, as an array in the same order, and some
# at 16000 a second.
python3 - "$W" <<'PYTHON' || exit 1
import math, os, random, struct, sys, wave
root, r = sys.argv[1], random.Random(5)
pitch = {"high": 2000, "low": 300, "mid": 900}
def tone(f, rate, n):
    phase, loud = r.uniform(0, 6.28), r.uniform(0.2, 0.8)
    return [int(32767 * (loud * math.sin(phase + 6.2831853 * f * i / rate) + r.uniform(-0.1, 0.1))) for i in range(n)]
def save(path, v, rate):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with wave.open(path, "wb") as w:
        w.setnchannels(1), w.setsampwidth(2), w.setframerate(rate)
        w.writeframes(struct.pack("<%dh" % len(v), *v))
x, y = [], []
for k, name in enumerate(sorted(pitch)):
    for i in range(80):
        v = tone(pitch[name], 8000, 400)
        save("%s/folders/%s/%02d.wav" % (root, name, i), v, 8000)
        x += v
        y.append(k)
    for i in range(20):
        save("%s/fast/%s/%02d.wav" % (root, name, i), tone(pitch[name], 16000, 1000), 16000)
def npy(path, kind, shape, data):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)).ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
os.makedirs(root + "/arrays")
npy(root + "/arrays/x.npy", "<f4", (len(y), 1, 400), struct.pack("<%df" % len(x), *[v / 32768 for v in x]))
npy(root + "/arrays/y.npy", "<i8", (len(y),), struct.pack("<%dq" % len(y), *y))
PYTHON
train() { # RECIPE ARGUMENT...: from within $W
    rm -rf "$W/run"
    (cd "$W" && timeout -k 5 600 "$BIN/trainyard" train "$@" --log_every=1 --seed=3) >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
rounded() { sed -E 's/(\.[0-9]{4})[0-9]*/\1/'; }
losses() { grep -oE "\"split\":\"train\",\"loss\":[0-9.e-]+" "$W/run/output/data/metrics.jsonl"; }
recipe() { # NAME DATA: one that differs in its data alone
    printf 'model: tones.onnx\nloss: softmax_cross_entropy\noptimizer: {adam: {lr: 0.01}}\nbatch_size: 48\nmetrics: [accuracy]\ndata: {train: %s}\n' \
        "$2" >"$W/$1.yaml"
}

case_name=same
recipe arrays '{path: arrays, shuffle: false, fields: {wave: {file: x.npy}, label: {file: y.npy}}}'
recipe folders '{path: folders, shuffle: false, fields: {wave: {audio: {layout: ct}}, label: {}}}'
train arrays.yaml --fresh --max_steps=6
same "arrays" 0 $rc
wanted=$(losses)
train folders.yaml --fresh --max_steps=6
same "folders" 0 $rc
same "losses" "$wanted" "$(losses)"

case_name=folder
train tones.onnx --loss=softmax_cross_entropy --data=folders --fresh --max_steps=3
same "no fields declared" 0 $rc
has "what they become" "$W/err" "sounds become 400 frames of 1 channels (0: as they are), CT, at the rate of the first; folders are classes"
"$BIN/trainyard" data check "$W/folders" >"$W/out" 2>&1
same "check" 0 $?
has "how many" "$W/out" "240 samples, 240 files"
has "classes" "$W/out" "0 to 2"
"$BIN/trainyard" data head "$W/folders" --rows=1 >"$W/out" 2>&1
has "head" "$W/out" "sound  WAV, 0.05 s, 8000 frames a second, 1 channel, 844 bytes"

case_name=packed
recipe packed '{path: packed, shuffle: false, fields: {wave: {member: audio, audio: {layout: ct}}, label: {classes: auto}}}'
"$BIN/trainyard" data pack "$W/folders" --out="$W/packed" >"$W/out" 2>&1
same "pack" 0 $?
train packed.yaml --fresh --max_steps=6
same "records" 0 $rc
same "losses" "$wanted" "$(losses)"
train tones.onnx --loss=softmax_cross_entropy --data=packed --fresh --max_steps=1
same "no fields declared" 0 $rc

"$BIN/trainyard" data convert "$W/folders" "$W/rows" >"$W/out" 2>&1
same "convert" 0 $?
sed 's/path: packed/path: rows/' "$W/packed.yaml" >"$W/rows.yaml"
train rows.yaml --fresh --max_steps=6
same "as they are, with the names of their folders" 0 $rc
same "losses" "$wanted" "$(losses)"

# What varies is the same by number and as a stream, on one process and two, and after a resume.
case_name=varied
varied='shuffle: 100, fields: {wave: {member: audio, audio: {length: 400, channels: 1, layout: ct, crop: random, gain: [-6, 6]}},
  label: {classes: auto}}'
for how in random stream; do
    recipe $how "{path: packed, access: $how, $varied}"
    echo 'checkpoint: {every: 1}' >>"$W/$how.yaml"
    train $how.yaml --fresh --max_steps=6 --deterministic=strict
    same "$how" 0 $rc
    wanted=$(losses)
    train $how.yaml --fresh --max_steps=6 --deterministic=strict --processes_per_host=2
    same "on two processes" 0 $rc
    same "the same batches" "$(rounded <<<"$wanted")" "$(losses | rounded)"
    train $how.yaml --fresh --max_steps=3 --deterministic=strict
    (cd "$W" && timeout -k 5 600 "$BIN/trainyard" train $how.yaml --log_every=1 --seed=3 --max_steps=6 --deterministic=strict) \
        >"$W/out" 2>"$W/err" </dev/null
    has "resumed" "$W/err" "resuming at step 3"
    same "with the same losses" "$wanted" "$(losses)"
done

# A model learns the pitches, and tells them in sounds of another rate and length.
case_name=learnt
recipe all '{path: folders, fields: {wave: {audio: {length: 400, layout: ct, normalize: standard}}, label: {classes: auto}}},
  validation: {path: folders}'
train all.yaml --fresh --epochs=12
same "twelve epochs" 0 $rc
accuracy=$(grep -oE '"accuracy":[0-9.]+' "$W/run/output/data/metrics.jsonl" | tail -1 | cut -d: -f2)
ok "accuracy $accuracy" awk -v a="$accuracy" 'BEGIN { exit !(a > 0.95) }'
kept=$(find "$W/run" -name preprocessing.json | head -1)
has "the rate is kept" "$kept" '"sample_rate": 8000'
has "names of classes" "$kept" '"words": ["high", "low", "mid"]'
mkdir "$W/new"
for name in high low mid; do for i in 00 01 02; do cp "$W/fast/$name/$i.wav" "$W/new/$name$i.wav"; done; done
"$BIN/trainyard" run "${kept%/*}/model.onnx" --data "$W/new" --output-dir "$W/told" >"$W/out" 2>&1
same "sounds without folders" 0 $?
told=$(ls "$W"/told/*.npy | head -1)
same "told at twice the rate" "0 0 0 1 1 1 2 2 2" "$(python3 - "$told" <<'PYTHON'
import struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<H", b[8:10])[0]
v = struct.unpack("<27f", b[10 + n:10 + n + 108])
print(*[max(range(3), key=lambda c: v[3 * i + c]) for i in range(9)])
PYTHON
)"

case_name=stats
mkdir -p "$W/mixed/a<b&c" "$W/mixed/some"
cp tests/golden/audio/s16.flac tests/golden/audio/s24.wav tests/golden/audio/vorbis.ogg "$W/mixed/some"
cp tests/golden/audio/layer3.mp3 "$W/mixed/a<b&c"
"$BIN/trainyard" data stats "$W/mixed" --html="$W/stats.html" >"$W/out" 2>"$W/err"
same "exit" 0 $?
for line in "audio (seconds)" "audio (frames a second)" "formats of audio: 4" "channels of audio: 2" "    some   3" "    MP3   1"; do
    has "$line" "$W/out" "$line"
done
ok "the page is XML" xmllint --noout "$W/stats.html"
same "with all four sounds in it" 4 "$(grep -c '<audio controls' "$W/stats.html")"

case_name=refused
recipe wrong '{path: folders, fields: {wave: {audio: {sample_rte: 8000}}, label: {}}}'
train wrong.yaml --fresh --max_steps=1
has "a key that is none" "$W/err" "sample_rate"
recipe wrong '{path: folders, fields: {wave: {audio: {crop: random}}, label: {}}}'
train wrong.yaml --fresh --max_steps=1
has "a crop of nothing" "$W/err" 'field "wave": audio: crop and pad need a length, or seconds'
recipe wrong '{path: fast, fields: {wave: {audio: {layout: ct}}, label: {}}}'
train wrong.yaml --fresh --max_steps=1
ok "another length than the model's: status $rc" test $rc -ne 0

case_name=bad
head -c 500 "$W/folders/low/00.wav" >"$W/folders/low/bad.wav"
"$BIN/trainyard" data check "$W/folders" >"$W/out" 2>&1
same "check" 65 $?
has "its place" "$W/out" "folders/low/bad.wav"
has "what is wrong" "$W/out" "the sound ends after 500 of 844 bytes"
"$BIN/trainyard" data check "$W/folders" --skip-bad=1 >"$W/out" 2>&1
has "left out" "$W/out" "1 bad record left out"
finish_tests
