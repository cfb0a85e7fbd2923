"""examples.py READER FILE...: tf.train.Examples as text, a line a record; floats by their bits. READER: tensorflow, or plain."""
import os
import struct
import sys

LISTS = {1: "bytes", 2: "float", 3: "int"}


def fields(b):
    at = 0

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            v |= (b[at] & 127) << shift
            shift += 7
            at += 1
            if b[at - 1] < 128:
                return v

    while at < len(b):
        key = varint()
        if key & 7 == 2:
            n = varint()
            yield key >> 3, b[at:at + n]
            at += n
        elif key & 7 == 0:
            yield key >> 3, varint()
        else:
            sys.exit("wire type %d" % (key & 7))


def numbers(b):
    v = shift = 0
    for byte in b:
        v |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield v - (1 << 64) if v >> 63 else v
            v = shift = 0


def values(kind, b):
    whole = [v for _, v in fields(b)]
    if kind == "bytes":
        return whole
    packed = b"".join(whole)
    return ["%08x" % struct.unpack_from("<I", packed, i) for i in range(0, len(packed), 4)] if kind == "float" \
        else list(numbers(packed))


def plain(path):
    b = open(path, "rb").read()
    at = 0
    while at < len(b):
        n, = struct.unpack_from("<Q", b, at)
        features = dict(fields(b[at + 12:at + 12 + n])).get(1, b"")
        out = {}
        for _, entry in fields(features):
            parts = dict(fields(entry))
            (kind, content), = fields(parts[2])
            out[parts[1].decode()] = (LISTS[kind], values(LISTS[kind], content))
        yield out
        at += n + 16


def tensorflow(path):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    for record in tf.data.TFRecordDataset(path):
        out = {}
        for name, f in tf.train.Example.FromString(record.numpy()).features.feature.items():
            kind = f.WhichOneof("kind").split("_")[0].replace("int64", "int")
            v = list(getattr(f, f.WhichOneof("kind")).value)
            out[name] = (kind, ["%08x" % struct.unpack("<I", struct.pack("<f", x)) for x in v] if kind == "float" else v)
        yield out


for path in sys.argv[2:]:
    for record in globals()[sys.argv[1]](path):
        print(" | ".join("%s %s %s" % (name, *record[name]) for name in sorted(record)))
