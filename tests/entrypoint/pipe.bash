# pipe.bash - for jobs in Pipe mode; sourced behind harness.bash and job.bash.
#
#   records ROWS SEED FILE        digits (job.bash) as TFRecords of tf.train.Example {image f32[64], label i64}
#   streams NAME [ROWS]           a perceptron on such records, channels train and test, as File mode has them
#   modes JSON                    inputdataconfig.json
#   feed CHANNEL EPOCHS [FILES]   a feeder of FIFOs beside the run, until unfed: train_0, train_1 ... in $ML/input/data
#   bits TREE                     one line that stands for all trained bits
#   unfed                         ends all feeders, and what a container would not outlive
records() {
    digits "$1" "$2" | python3 -c '
import struct, sys
table = []
for i in range(256):
    c = i
    for _ in range(8):
        c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
    table.append(c)
def crc(data):
    c = 0xFFFFFFFF
    for b in data:
        c = (c >> 8) ^ table[(c ^ b) & 255]
    c ^= 0xFFFFFFFF
    return struct.pack("<I", (((c >> 15) | (c << 17)) + 0xA282EAD8) & 0xFFFFFFFF)
def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])
def part(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data
def feature(name, kind, values):
    return part(1, part(1, name) + part(2, part(kind, part(1, values))))
for line in sys.stdin:
    v = [int(x) for x in line.split(",")]
    image = struct.pack("<64f", *(x / 16 for x in v[:64]))
    record = part(1, feature(b"image", 2, image) + feature(b"label", 3, varint(v[64])))
    head = struct.pack("<Q", len(record))
    sys.stdout.buffer.write(head + crc(head) + record + crc(record))
' >"$3"
}
bits() { sha256sum <"$1/model/model.safetensors"; } # a model in C has no other file that training writes
modes() { echo "$1" >"$ML/input/config/inputdataconfig.json"; }
streams() {
    perceptron "$1"
    rm "$ML"/input/data/*/part.csv
    records "${2:-112}" 1 "$ML/input/data/train/a.tfrecord"
    records 50 2 "$ML/input/data/test/a.tfrecord"
    mkdir "$W/train" "$W/test"
    cp "$ML/input/data/train/a.tfrecord" "$W/train"
    cp "$ML/input/data/test/a.tfrecord" "$W/test"
    modes '{"train": {}, "test": {}}'
    sed -i 's/^  train: .*/  train: {channel: train, fields: {image: {shape: [1, 8, 8]}, label: {}}}/' "$ML/code/train.yaml"
}
feeders=()
feed() {
    "$BIN/trainyard" data serve-pipe "${3:-$W/$1}" --into="$ML/input/data" --channel="$1" --epochs="$2" >>"$W/feed.$1" 2>&1 &
    feeders+=($!)
}
unfed() {
    [ ${#feeders[@]} = 0 ] || kill "${feeders[@]}" 2>/dev/null
    [ ${#feeders[@]} = 0 ] || wait "${feeders[@]}" 2>/dev/null
    feeders=()
    rm -rf "$ML"/input/data/*_[0-9]* "$ML/pipe_state"
}
