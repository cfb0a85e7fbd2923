#!/usr/bin/env python3
"""parquet_write.py FILE COLUMNS ROWS GROUPS: a Parquet file of float columns x0, x1 ... and an integer column "label".

Written by hand (apache/parquet-format: README.md, parquet.thrift, the compact protocol of Thrift), with no library: pages
are plain and not compressed. x_k of row i is (i * 31 + k * 17) % 1000 / 1000, the label i % 2; rows are those of each of
the GROUPS row groups.
"""
import array, struct, sys

FLOAT, INT32 = 4, 1


def varint(n):
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def zigzag(n):
    return varint(n << 1 if n >= 0 else (-n << 1) - 1)


I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


def fields(*those):
    """A struct: (id, type, value) each."""
    out, last = b"", 0
    for number, kind, value in those:
        out += bytes([number - last << 4 | kind])
        last = number
        if kind in (I32, I64):
            out += zigzag(value)
        elif kind == BINARY:
            out += varint(len(value)) + value
        elif kind == LIST:
            element, items = value
            out += bytes([len(items) << 4 | element]) if len(items) < 15 else bytes([0xF0 | element]) + varint(len(items))
            out += b"".join(items)
        else:
            out += value
    return out + b"\0"


def page(data, rows):
    header = fields((1, I32, rows), (2, I32, 0), (3, I32, 3), (4, I32, 3))
    return fields((1, I32, 0), (2, I32, len(data)), (3, I32, len(data)), (5, STRUCT, header)) + data


def main(path, columns, rows, groups):
    names = ["x%d" % k for k in range(columns)] + ["label"]
    schema = [fields((4, BINARY, b"schema"), (5, I32, len(names)))]
    schema += [fields((1, I32, INT32 if n == "label" else FLOAT), (3, I32, 0), (4, BINARY, n.encode())) for n in names]
    meta = []
    with open(path, "wb") as out:
        out.write(b"PAR1")
        for g in range(groups):
            chunks = []
            for k, name in enumerate(names):
                those = range(g * rows, (g + 1) * rows)
                data = array.array("i", [i % 2 for i in those]) if name == "label" else array.array("f", [(i * 31 + k * 17) % 1000 / 1000 for i in those])
                at, stored = out.tell(), page(data.tobytes(), rows)
                out.write(stored)
                column = fields((1, I32, INT32 if name == "label" else FLOAT), (2, LIST, (I32, [zigzag(0)])), (3, LIST, (BINARY, [varint(len(name)) + name.encode()])),
                                (4, I32, 0), (5, I64, rows), (6, I64, len(stored)), (7, I64, len(stored)), (9, I64, at))
                chunks.append(fields((2, I64, at), (3, STRUCT, column)))
            meta.append(fields((1, LIST, (STRUCT, chunks)), (2, I64, 0), (3, I64, rows)))
        footer = fields((1, I32, 1), (2, LIST, (STRUCT, schema)), (3, I64, rows * groups), (4, LIST, (STRUCT, meta)))
        out.write(footer + struct.pack("<I", len(footer)) + b"PAR1")


main(sys.argv[1], *map(int, sys.argv[2:5]))
