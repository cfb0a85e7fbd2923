"""deepfm.py libsvm RECORDS TRAIN TEST: the clicks of a TFRecord file of Examples as LibSVM lines, the first 8,000 and the rest.
deepfm.py same RECORDS TRAIN TEST: exits with 1 unless the TFRecord files TRAIN and TEST hold the Examples of RECORDS, in order,
with the same bits, whatever the order of the features in a record. Reads protobuf by hand: it is not to agree with what it judges.
"""
import struct, sys


def varint(b, i):
    v = shift = 0
    while True:
        v |= (b[i] & 127) << shift
        shift += 7
        i += 1
        if b[i - 1] < 128:
            return v, i


def fields(b):
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        n, i = varint(b, i)
        yield key >> 3, b[i:i + n]
        i += n


def ids_of(b):
    out, i = [], 0
    while i < len(b):
        v, i = varint(b, i)
        out.append(v)
    return out


def rows(path):
    b, i = open(path, "rb").read(), 0
    while i < len(b):
        n, = struct.unpack_from("<Q", b, i)
        row = {}
        for _, features in fields(b[i + 12:i + 12 + n]):
            for _, entry in fields(features):
                entry = dict(fields(entry))
                for kind, list_ in fields(entry[2]):
                    row[entry[1].decode()] = kind, list_
        i += 16 + n
        yield row


def packed(row, name):
    return dict(fields(row[name][1]))[1]


def line(row):
    label, = struct.unpack("<f", packed(row, "label"))
    values = packed(row, "values")
    pairs = zip(ids_of(packed(row, "ids")), struct.unpack(f"<{len(values) // 4}f", values))
    return " ".join([f"{label:g}", *(f"{i}:{v:.9g}" for i, v in pairs)]) + "\n"


verb, records, train, test = sys.argv[1:]
if verb == "libsvm":
    lines = [line(row) for row in rows(records)]
    open(train, "w").writelines(lines[:8000])
    open(test, "w").writelines(lines[8000:])
else:
    sys.exit(list(rows(records)) != [*rows(train), *rows(test)])
