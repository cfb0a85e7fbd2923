#!/usr/bin/env python3
"""Arrow files by their own writer, and by Hugging Face's datasets: make.py

    build/parquet-venv/bin/python tests/golden/arrow/make.py         # pyarrow, datasets, polars

The table of ../parquet/plain.parquet in both formats and compressed, whose values are ../parquet/types.txt; other.arrow has
what Parquet does not know, and other.txt what pyarrow finds in it, in the same spelling; digits/ is what save_to_disk makes of
../parquet/digits.parquet.
"""
import os
import shutil
import struct

import datasets
import polars
import pyarrow as pa
import pyarrow.parquet as pq

here = os.path.dirname(os.path.abspath(__file__))
parquet = os.path.join(here, "..", "parquet")
os.chdir(here)


def write(name, table, stream=False, compression=None, rows=9):
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with pa.OSFile(name, "wb") as out, new(out, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as w:
        w.write_table(table, max_chunksize=rows)


table = pq.read_table(os.path.join(parquet, "plain.parquet"))
write("file.arrow", table)
write("stream.arrow", table, stream=True)
write("lz4.arrow", table, compression="lz4")
write("zstd.arrow", table, stream=True, compression="zstd")
write("empty.arrow", table.slice(0, 0).select(["i32", "text", "ids"]))

nested = pq.read_table(os.path.join(parquet, "nested.parquet"))
write("nested.arrow", nested, rows=3)
grids = pa.array([[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [0, 1, 2]]], pa.list_(pa.list_(pa.int8(), 3), 2))
write("grids.arrow", pa.table({"grid": grids}))

pair = pa.list_(pa.float32(), 2)
other = {
    "large": pa.array(["a", None, "", "dd"], pa.large_string()),
    "blob": pa.array([b"\1", b"\2\3", None, b""], pa.large_binary()),
    "many": pa.array([[1, 2], None, [], [3]], pa.large_list(pa.int16())),
    "pairs": pa.array([[1.0, 2.0], None, [None, 4.0], [5.0, 6.0]], pair),
    "nothing": pa.nulls(4),
    "day": pa.array([0, 86400000, None, -86400000], pa.date64()),
    "took": pa.array([1, -2, None, 4], pa.duration("ms")),
    "owed": pa.array([None, -1, 12345, 7], pa.int64()).cast(pa.decimal128(20, 0)),
    "words": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2], pa.uint16()), pa.array(["x", "yy", None])),
    "coded": pa.ListArray.from_arrays([0, 2, 3, None, 4], pa.array([7, 7, 8, 7], pa.int64()).dictionary_encode()),
    "deep": pa.array([{"v": [1, 2], "w": {"z": 1}}, None, {"v": None, "w": None}, {"v": [3], "w": {"z": None}}],
                     pa.struct([("v", pa.list_(pa.int32())), ("w", pa.struct([("z", pa.int8())]))])),
    "boxes": pa.array([[{"x": 1}, None], [None], [], [{"x": 3}]], pa.list_(pa.struct([("x", pa.int32())]))),
    "last": pa.array([1, 2, 3, 4], pa.uint8()),
}
write("other.arrow", pa.table(other), rows=3)


def number(v):
    return "null" if v is None else "%.9g" % v if isinstance(v, float) else str(v)


def texts(v):
    return "null" if v is None else (v.encode() if isinstance(v, str) else v).hex() or '""'


def lists(values, spell):
    return ["[%s]" % " ".join(spell(e) for e in v or []) for v in values]


rows = {name: array.to_pylist() for name, array in other.items()}
lines = {
    "large": map(texts, rows["large"]), "blob": map(texts, rows["blob"]), "many": lists(rows["many"], number),
    "pairs": lists(rows["pairs"], number), "nothing": ["null"] * 4,
    "day": ["0", "86400000", "null", "-86400000"], "took": ["1", "-2", "null", "4"], "owed": ["null", "-1", "12345", "7"],
    "words": map(texts, rows["words"]), "coded": lists(rows["coded"], number), "deep.v": lists([v and v["v"] for v in rows["deep"]], number),
    "deep.w.z": [number(v and v["w"] and v["w"]["z"]) for v in rows["deep"]],
    "boxes.x": lists([[e and e["x"] for e in v] for v in rows["boxes"]], number), "last": map(number, rows["last"]),
}
with open("other.txt", "w") as out:
    for name, values in lines.items():
        print("%s: %s" % (name, " ".join(values)), file=out)

# Lists that do not begin with the first element: pyarrow writes none.
late = pa.ListArray.from_arrays([0, 3, 4, 5], pa.array([9, None, 2, None, 5], pa.int64()))
write("late.arrow", pa.table({"late": late}))
with open("late.arrow", "rb") as file:
    whole = file.read()
offsets = struct.pack("<4i", 0, 3, 4, 5)
assert whole.count(offsets) == 1
with open("late.arrow", "wb") as file:
    file.write(whole.replace(offsets, struct.pack("<4i", 1, 3, 4, 5)))

# A dictionary that another takes the place of, batch by batch, and one that grows.
def dictionaries(name, values, deltas):
    batches = [pa.record_batch({"w": pa.DictionaryArray.from_arrays(pa.array(i, pa.int8()), pa.array(d)), "n": n})
               for i, d, n in values]
    with pa.OSFile(name + ".arrow", "wb") as out, pa.ipc.new_stream(
            out, batches[0].schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)) as w:
        for batch in batches:
            w.write_batch(batch)
    with open(name + ".txt", "w") as out:
        for column in "w", "n":
            spell = texts if column == "w" else number
            print("%s: %s" % (column, " ".join(spell(v) for b in batches for v in b.column(column).to_pylist())), file=out)


def coded(index, values):
    return pa.DictionaryArray.from_arrays(pa.array(index, pa.int8()), pa.array(values, pa.float32()))


dictionaries("replaced", [([1, 0], ["a", "b"], coded([0, 0], [1])), ([0], ["c"], coded([0], [2]))], False)
dictionaries("grown", [([1, 0], ["a", None], coded([0, 1], [1, 2])), ([2, 1], ["a", None, "cc"], coded([0, 2], [1, 2, 3])),
                       ([3, None, 0], ["a", None, "cc", "d"], coded([2, 1, None], [1, 2, 3]))], True)

# Views: short texts lie in them, others in buffers of which each batch has its own number, columns that are not read as well.
long = "a text that is longer than the twelve bytes of a view"
views = {
    "first": pa.array([1, 2, 3, 4, 5], pa.int8()),
    "name": pa.array(["a", None, "twelve bytes", "thirteen byte", long], pa.string_view()),
    "map": pa.array([[("k", long)]] * 5, pa.map_(pa.string(), pa.string_view())),
    "blob": pa.array([long.encode(), b"", None, b"\0", long[1:].encode()], pa.binary_view()),
    "words": pa.array([[long, "b"], None, [], [None], ["c", long]], pa.list_(pa.string_view())),
    "in": pa.array([{"x": long}, None, {"x": None}, {"x": ""}, {"x": "x"}], pa.struct([("x", pa.string_view())])),
    "coded": pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1, 0], pa.int8()), pa.array([long, "d"], pa.string_view())),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array([long, "r"], pa.string_view())),
    "away": pa.array([[1], [2, 3], None, [], [4]], pa.list_view(pa.int16())),
    "last": pa.array([1, 2, 3, 4, 5], pa.int16()),
}
views["runs"] = pa.chunked_array([views["runs"]])
for name, compression in ("views", None), ("views_zstd", "zstd"):
    write(name + ".arrow", pa.table(views), rows=3, compression=compression)
rows = {name: array.to_pylist() for name, array in views.items()}
with open("views.txt", "w") as out:
    for name, values in {
            "first": map(number, rows["first"]), "name": map(texts, rows["name"]), "blob": map(texts, rows["blob"]),
            "words": lists(rows["words"], texts), "in.x": [texts(v and v["x"]) for v in rows["in"]],
            "coded": map(texts, rows["coded"]), "last": map(number, rows["last"])}.items():
        print("%s: %s" % (name, " ".join(values)), file=out)

# As polars writes by itself.
polars.DataFrame({"name": views["name"].to_pylist(), "last": views["last"].to_pylist(),
                  "kind": polars.Series(["x", long, None, "x", long], dtype=polars.Categorical),
                  "words": views["words"].to_pylist()}).write_ipc("polars.arrow")
with open("polars.txt", "w") as out:
    for name, values in {"name": map(texts, rows["name"]), "last": map(number, rows["last"]),
                         "kind": map(texts, ["x", long, None, "x", long]), "words": lists(rows["words"], texts)}.items():
        print("%s: %s" % (name, " ".join(values)), file=out)

digits = pq.read_table(os.path.join(parquet, "digits.parquet"))
pixels = [list(row) for row in zip(*(digits["p%d" % i].to_pylist() for i in range(64)))]
shutil.rmtree("digits", ignore_errors=True)
set_ = datasets.Dataset.from_dict({"image": pixels, "label": digits["label"].to_pylist()}, features=datasets.Features(
    {"image": datasets.Sequence(datasets.Value("uint8"), length=64), "label": datasets.ClassLabel(num_classes=10)}))
set_.save_to_disk("digits", num_shards=2)
