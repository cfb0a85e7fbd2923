"""faults.py FOLDER: small files, each with one fault, one file for each kind of fault that a reader must name."""
import gzip
import os
import struct
import sys
import zipfile

folder = sys.argv[1]
TABLE = []
for i in range(256):
    c = i
    for _ in range(8):
        c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    TABLE.append(c)


def put(name, data):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def masked(data):
    c = 0xFFFFFFFF
    for x in data:
        c = TABLE[(c ^ x) & 255] ^ c >> 8
    c ^= 0xFFFFFFFF
    return struct.pack("<I", ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(payload):
    n = struct.pack("<Q", len(payload))
    return n + masked(n) + payload + masked(payload)


def flipped(data, at, bit=1):
    out = bytearray(data)
    out[at] ^= bit
    return bytes(out)


def field(number, body):
    return bytes([number << 3 | 2, len(body)]) + body


def feature(name, kind, body):
    return field(1, field(1, name) + field(2, field(kind, field(1, body))))


def example(label, ids):
    return field(1, feature(b"label", 2, struct.pack("<f", label)) + feature(b"ids", 3, bytes(ids)))


def part(payload, flag=0):
    return b"\x0a\x23\xd7\xce" + struct.pack("<I", flag << 29 | len(payload)) + payload + b"\0" * (-len(payload) % 4)


def tensor(*values):
    return field(1, field(1, b"values") + field(2, field(2, field(1, struct.pack("<%df" % len(values), *values)))))


def npy(descr, shape, data, version=1):
    head = ("{'descr': %s, 'fortran_order': False, 'shape': %s, }" % (descr, shape)).ljust(117) + "\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", 118) + head.encode() + data


rows = b"".join(b"%d,%d\n" % (i, i % 7) for i in range(2000))
packed = gzip.compress(rows, compresslevel=0, mtime=0)
put("cut.csv.gz", packed[:200])
put("checksum.csv.gz", flipped(packed, -8))
put("followed.csv.gz", packed[:10] + packed[10:] + b"and more")
put("utf16.csv", "1,2\n3,4\n".encode("utf-16-le").join([b"\xff\xfe", b""]))
put("open_quote.csv", '1,2\n3,"4\n')
put("behind_quote.csv", '1,2\n3,"4"x\n')
put("short_row.csv", "1,2\n3\n")
put("long_row.csv", "1,2\n3,4,5\n")

good = record(example(1.0, [3, 4]))
put("payload.tfrecord", flipped(good * 2, len(good) + 20))
put("length.tfrecord", flipped(good * 2, len(good)))
put("cut_head.tfrecord", good + good[:7])
put("cut_payload.tfrecord", good + good[:30])
huge = struct.pack("<Q", 1 << 40)
put("huge.tfrecord", huge + masked(huge) + b"x" * 40)
put("no_example.tfrecord", record(b"The Quick Brown Fox"))
put("count.tfrecord", good + record(example(1.0, [3, 4, 5])))
put("kind.tfrecord", good + record(field(1, feature(b"label", 2, bytes(4)) + feature(b"ids", 2, bytes(8)))))

whole = part(tensor(1, 2))
put("magic.pbr", whole + b"\0" * 20)
put("middle.pbr", whole + part(tensor(1, 2), 2))
put("begun.pbr", whole + part(b"12345678", 1) + whole)
put("cut.pbr", whole + whole[:20])
put("width.pbr", whole + part(tensor(1, 2, 3)))

for name, line in (("label", "x 1:2"), ("index", "1 -1:2"), ("alone", "1 7"), ("value", "1 7:x"), ("twice", "1 3:1 3:2"),
                   ("big", "1 99999999999999999999:1")):
    put(name + ".libsvm", "1 1:1\n" + line + "\n")

put("brace.jsonl", '{"a": 1}\n{"a": \n')
put("list.jsonl", '{"a": 1}\n[1]\n')
put("text.jsonl", '{"a": 1}\n{"a": "x"}\n')
put("deep.jsonl", '{"a": 1}\n{"a": ' + "[" * 500 + "]" * 500 + "}\n")

put("cut.npy", npy("'<f4'", (3, 4), bytes(40)))
put("huge.npy", npy("'<f4'", (1 << 62, 4), bytes(40)))
put("objects.npy", npy("'|O'", (3,), bytes(24)))
put("complex.npy", npy("'<c8'", (3,), bytes(24)))
put("version.npy", npy("'<f4'", (3,), bytes(12), version=9))
put("cut.idx", b"\0\0\x08\x01\0\0\0\x08abc")
put("long.idx", b"\0\0\x08\x01\0\0\0\x02abc")
put("type.idx", b"\0\0\x0a\x01\0\0\0\x03abc")
put("huge.idx", b"\0\0\x08\x03" + b"\xff" * 12 + b"abc")
put("rank.idx", b"\0\0\x08\x00abc")
put("empty.csv", b"")
with zipfile.ZipFile(os.path.join(folder, "pictures.zip"), "w") as z:
    z.writestr(zipfile.ZipInfo("cat.jpg"), b"no array")
