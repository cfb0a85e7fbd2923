"""The files that bench/input reads: made once, the same everywhere, below build/bench/input.

Sizes are such that a run takes about a second with the fast ones and no more than half a minute with the slow ones.
Needs the standard library and numpy.
"""
import csv
import io
import os
import random
import struct

import numpy as np

CRC = []
for i in range(256):
    c = i
    for _ in range(8):
        c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    CRC.append(c)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(v):
    out = bytearray()
    while v >= 0x80:
        out.append(v & 0x7F | 0x80)
        v >>= 7
    out.append(v)
    return bytes(out)


def field(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def tfrecord(payload):
    n = struct.pack("<Q", len(payload))
    return n + struct.pack("<I", masked_crc(n)) + payload + struct.pack("<I", masked_crc(payload))


def feature(name, kind, packed):
    return field(1, field(1, name.encode()) + field(2, field(kind, field(1, packed))))


def repeated(path, records, times):
    """A thousand or so different records, written again and again: making them takes time, reading them does not care."""
    data = b"".join(records)
    with open(path + ".part", "wb") as f:
        for _ in range(times):
            f.write(data)
    os.rename(path + ".part", path)


def make_clicks(path):
    """Click data as DeepFM has them: a label, 39 ids below 117,581 and 39 values; 500,000 rows."""
    r = random.Random(1)
    records = []
    for _ in range(5000):
        ids = list(range(1, 14)) + sorted(int(117567 * r.random() ** 2) + 14 for _ in range(26))
        values = [round(r.random(), 6) for _ in range(13)] + [1.0] * 26
        body = (feature("ids", 3, b"".join(map(varint, ids))) + feature("label", 2, struct.pack("<f", r.random() < 0.25)) +
                feature("values", 2, struct.pack("<39f", *values)))
        records.append(tfrecord(field(1, body)))
    repeated(path, records, 100)


def make_vectors(folder, total_mb, object_mb, floats):
    """Objects of TFRecords of one vector each, for bench/pipe."""
    values = np.random.default_rng(11).random(floats, dtype="f4").tobytes()
    record = tfrecord(field(1, feature("x", 2, values)))
    each, count = max(1, round(object_mb * 1e6 / len(record))), round(total_mb * 1e6 / len(record))
    os.makedirs(folder)
    for i in range(0, count, each):
        with open(os.path.join(folder, f"part-{i // each:05}.tfrecord"), "wb") as f:
            for _ in range(min(each, count - i)):
                f.write(record)


def make_digits(path):
    """784 floats and a label; 60,000 rows."""
    r = np.random.default_rng(2)
    records = []
    for i in range(1000):
        pixels = (r.random(784) * (r.random(784) < 0.2)).astype("<f4")
        records.append(tfrecord(field(1, feature("image", 2, pixels.tobytes()) + feature("label", 3, varint(i % 10)))))
    repeated(path, records, 60)


def recordio(payload):
    return struct.pack("<II", 0xCED7230A, len(payload)) + payload + bytes(-len(payload) % 4)


def make_dense(path):
    """SageMaker's Record: 1,000 floats and a label; 50,000 rows."""
    r = np.random.default_rng(3)

    def entry(number, values):
        return field(number, field(1, b"values") + field(2, field(2, field(1, values.astype("<f4").tobytes()))))

    repeated(path, [recordio(entry(1, r.random(1000)) + entry(2, np.array([i % 2]))) for i in range(500)], 100)


def make_libsvm(path):
    """A label and 22 entries whose value is 1, as in agaricus, or a number; 400,000 rows."""
    r = random.Random(4)
    lines = []
    for i in range(10000):
        entries = sorted(r.sample(range(1, 127), 22))
        words = [f"{k}:1" if i % 2 else f"{k}:{r.random():.4g}" for k in entries]
        lines.append((f"{i % 2} " + " ".join(words) + "\n").encode())
    repeated(path, lines, 40)


def make_lines(path):
    """JSON Lines: 30 numbers and a label; 600,000 rows."""
    r = random.Random(10)
    lines = [('{"features": [%s], "label": %d}\n' % (", ".join(f"{r.random():.6g}" for _ in range(30)), i % 2)).encode()
             for i in range(5000)]
    repeated(path, lines, 120)


def make_floats(path):
    """A label and 16 numbers as %.9g writes floats; 600,000 rows."""
    r = np.random.default_rng(5)
    lines = []
    for i in range(10000):
        row = r.standard_normal(16).astype("f4")
        lines.append((f"{i % 2}," + ",".join(f"{v:.9g}" for v in row) + "\n").encode())
    repeated(path, lines, 60)


def make_mixed(path):
    """A header, numbers, whole numbers, missing ones, categories in quotes with commas, quotes and line ends; 600,000
    rows."""
    r = random.Random(6)
    towns = ["Oslo", "New York, NY", 'the "Hague"', "Rio de Janeiro", "Köln", "Ulan Bator", "two\nlines", "Aix-en-Provence"]
    out = io.StringIO()
    w = csv.writer(out, lineterminator="\n")
    for _ in range(10000):
        w.writerow([r.randrange(2), f"{r.gauss(0, 100):.2f}", r.randrange(10**6), r.choice(towns),
                    r.choice(["a", "b", "c"]) + str(r.randrange(50)), "" if r.random() < 0.1 else f"{r.random():.5f}",
                    r.choice(["yes", "no"]), f"{r.expovariate(1):.6e}"])
    head = b"label,amount,count,town,code,rate,member,size\n"
    block = out.getvalue().encode()
    with open(path + ".part", "wb") as f:
        f.write(head)
        for _ in range(60):
            f.write(block)
    os.rename(path + ".part", path)


def make_rows(path):
    """768 floats a row, 3 KB; 100,000 rows."""
    r = np.random.default_rng(7)
    block = r.random((1000, 768), dtype="f4")
    np.save(path + ".part.npy", np.tile(block, (100, 1)))
    os.rename(path + ".part.npy", path)


def make_idx(path):
    """Bytes of 28 x 28 pictures; 300,000 rows."""
    block = np.random.default_rng(8).integers(0, 256, (1000, 28, 28), dtype=np.uint8).tobytes()
    with open(path + ".part", "wb") as f:
        f.write(struct.pack(">BBBBIII", 0, 0, 8, 3, 300000, 28, 28))
        for _ in range(300):
            f.write(block)
    os.rename(path + ".part", path)


def make_pictures(path, ending="jpg", side=(800, 600)):
    """A folder of 200 picture files, of four classes. Pillow writes them."""
    from PIL import Image
    r = np.random.default_rng(9)
    os.makedirs(path + ".part", exist_ok=True)
    for i in range(200):
        small = Image.fromarray(r.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        folder = os.path.join(path + ".part", f"class-{i % 4}")
        os.makedirs(folder, exist_ok=True)
        small.resize(side, Image.BICUBIC).save(os.path.join(folder, f"{i:03}.{ending}"), quality=90)
    os.rename(path + ".part", path)


def make_png_pictures(path):
    make_pictures(path, "png", (400, 300))


def make_columns(path):
    """The numbers of floats.csv, 17 columns; 600,000 rows in row groups of 100,000. pyarrow writes them."""
    import pyarrow
    import pyarrow.parquet
    r = np.random.default_rng(5)
    block = np.column_stack([np.arange(10000) % 2, r.standard_normal((10000, 16))]).astype("f4")
    table = pyarrow.table({f"c{i}": np.tile(block[:, i], 60) for i in range(17)})
    pyarrow.parquet.write_table(table, path + ".part", row_group_size=100000, use_dictionary=False)
    os.rename(path + ".part", path)


def make_sounds(path, ending="wav", rate=16000, channels=1, n=2000):
    """A folder of sounds of a second, of four classes: a tone that rises, and noise. soundfile writes them."""
    import soundfile
    r = np.random.default_rng(10)
    t = np.arange(rate)[:, None] / rate
    for i in range(n):
        folder = os.path.join(path + ".part", f"class-{i % 4}")
        os.makedirs(folder, exist_ok=True)
        tone = np.sin(2 * np.pi * (200 + 2000 * t * r.random(channels)) * t)
        soundfile.write(os.path.join(folder, f"{i:04}.{ending}"), 0.5 * tone + 0.05 * r.standard_normal((rate, channels)), rate,
                        subtype="PCM_16")
    os.rename(path + ".part", path)


def make_flac_sounds(path):
    make_sounds(path, "flac", 44100, 2, 400)


MAKERS = {"clicks.tfrecord": make_clicks, "digits.tfrecord": make_digits, "dense.recordio": make_dense,
          "rows.libsvm": make_libsvm, "rows.jsonl": make_lines, "floats.csv": make_floats, "mixed.csv": make_mixed, "rows.npy": make_rows,
          "floats.parquet": make_columns, "waves": make_sounds, "flac-sounds": make_flac_sounds,
          "pictures.idx": make_idx, "pictures": make_pictures, "png-pictures": make_png_pictures}


def path(folder, name):
    """The file's path; it is made if it is not there."""
    there = os.path.join(folder, name)
    if not os.path.exists(there):
        os.makedirs(folder, exist_ok=True)
        MAKERS[name](there)
    return there
