"""Parquet files of several writers, and what pyarrow reads in them. Run in this folder; needs pyarrow, pandas, polars,
duckdb and fastparquet from PyPI. NAME.txt has a line for each column that is read, in the order of the schema:

    name: value value null [value value] ...

Numbers are as C's printf has them (%.9g, %.15g for doubles and decimals), dates and times the integers that they are
stored as, texts and bytes in hexadecimal. Of a column that is a list null and [] are the same."""
import datetime
import decimal
import os
import subprocess
import sys

import duckdb
import fastparquet
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(7)
ROWS = 23


def integers(low, high, kind):
    v = [int(x) for x in rng.integers(low, high, ROWS)]
    v[0], v[1] = low, high - 1
    return pa.array(v, kind)


def some(array, every):
    """The same with nulls."""
    return pa.array([None if i % every == 1 else v for i, v in enumerate(array.to_pylist())], array.type)


def words():
    known = ["", "a", "Köln", "a longer text with blanks", "yes", "no"]
    return pa.array([known[i % 6] for i in range(ROWS)], pa.string())


def lists(kind, make):
    return pa.array([None if i % 7 == 3 else [None if (i + k) % 5 == 4 else make(i, k) for k in range(i % 4)]
                     for i in range(ROWS)], pa.list_(kind))


when = [datetime.datetime(1969, 12, 30, 3, 4, 5, 6000) + datetime.timedelta(days=97 * i) for i in range(ROWS)]
reals = [0.1 * i - 1 for i in range(ROWS)]
reals[3], reals[4] = float("inf"), 1e-300
TABLE = pa.table({
    "bool": pa.array([i % 3 == 0 for i in range(ROWS)]),
    "i8": integers(-128, 128, pa.int8()), "u8": integers(0, 256, pa.uint8()),
    "i16": integers(-2**15, 2**15, pa.int16()), "u16": integers(0, 2**16, pa.uint16()),
    "i32": integers(-2**31, 2**31, pa.int32()), "u32": integers(0, 2**32, pa.uint32()),
    "i64": integers(-2**63, 2**63 - 1, pa.int64()), "u64": integers(0, 2**63 - 1, pa.uint64()),
    "rising": pa.array([10 * i + i % 3 for i in range(ROWS)], pa.int64()),
    "f32": pa.array(np.float32(rng.standard_normal(ROWS))), "f64": pa.array(reals),
    "date": pa.array([d.date() for d in when], pa.date32()), "ms": pa.array(when, pa.timestamp("ms")),
    "us": pa.array(when, pa.timestamp("us", tz="UTC")), "time": pa.array([d.time() for d in when], pa.time64("us")),
    "dec9": pa.array([decimal.Decimal(37 * i - 300) / 100 for i in range(ROWS)], pa.decimal128(9, 2)),
    "dec18": pa.array([decimal.Decimal(-10**12 * i - 1) / 10**4 for i in range(ROWS)], pa.decimal128(18, 4)),
    "dec38": pa.array([decimal.Decimal(-10**25 * (i - 5) + 12345).scaleb(-10) for i in range(ROWS)], pa.decimal128(38, 10)),
    "text": words(), "bytes": pa.array([bytes([i, 255 - i][: i % 3]) for i in range(ROWS)], pa.binary()),
    "four": pa.array([bytes([i] * 4) for i in range(ROWS)], pa.binary(4)),
    "half": pa.array(np.float16([0, -0.0, 1.5, 6e-8, 65504, np.inf, -2.25] * 3 + [1, 2]), pa.float16()),
    "some_bool": some(pa.array([i % 3 == 0 for i in range(ROWS)]), 4),
    "some_i32": some(integers(-5, 5, pa.int32()), 3), "some_f64": some(pa.array(reals), 5),
    "some_text": some(words(), 4), "some_dec": some(pa.array([decimal.Decimal(i) / 10 for i in range(ROWS)], pa.decimal128(9, 1)), 4),
    "some_u32": some(integers(0, 2**32, pa.uint32()), 3), "none": pa.array([None] * ROWS, pa.float32()),
    "repeats": pa.array(["one", "two"] * 11 + ["one"]).dictionary_encode(),
    "ids": lists(pa.int64(), lambda i, k: i * 10 + k), "weights": lists(pa.float32(), lambda i, k: i / 4 + k),
    "tags": lists(pa.string(), lambda i, k: "t%d" % k),
    "place": pa.array([None if i % 6 == 5 else {"x": i, "y": None if i % 4 == 2 else i / 2} for i in range(ROWS)],
                      pa.struct([("x", pa.int32()), ("y", pa.float64())])),
    "boxes": pa.array([[{"x": i, "name": "b%d" % k} for k in range(i % 3)] for i in range(ROWS)],
                      pa.list_(pa.struct([("x", pa.int32()), ("name", pa.string())]))),
    "nested": pa.array([[[i]] for i in range(ROWS)], pa.list_(pa.list_(pa.int32()))),
    "map": pa.array([[("k", i)] for i in range(ROWS)], pa.map_(pa.string(), pa.int32())),
})


def stored(v, kind):
    """A time as the integer that it is stored as."""
    return pa.array([v], kind).cast(pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64())[0].as_py()


def spell(v, kind):
    if v is None:
        return "null"
    if pa.types.is_boolean(kind):
        return str(int(v))
    if pa.types.is_temporal(kind):
        return str(stored(v, kind))
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):
        return "%.9g" % v
    if pa.types.is_float64(kind) or pa.types.is_decimal(kind):
        return "%.15g" % float(v)
    if isinstance(v, str):
        return v.encode().hex() or '""'
    if isinstance(v, bytes):
        return v.hex() or '""'
    return str(v)


def columns(name, kind, values):
    """name, type, values of the leaves, as they are called here; of lists the values are lists."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if pa.types.is_map(kind):
        return
    while is_list and pa.types.is_list(kind.value_type):  # their elements follow one another
        kind, values = kind.value_type, [[e for inner in v or [] for e in inner or []] for v in values]
    if is_list and pa.types.is_struct(kind.value_type):
        for f in kind.value_type:
            yield "%s.%s" % (name, f.name), f.type, [[None if e is None else e[f.name] for e in v or []] for v in values]
    elif is_list:
        yield name, kind.value_type, [v or [] for v in values]
    elif pa.types.is_struct(kind):
        for f in kind:
            yield from columns("%s.%s" % (name, f.name), f.type, [None if v is None else v[f.name] for v in values])
    else:
        yield name, kind, values


def described(path):
    table = pq.read_table(path)
    lines = []
    for field in table.schema:
        for name, kind, values in columns(field.name, field.type, table[field.name].to_pylist()):
            spelled = ["[%s]" % " ".join(spell(e, kind) for e in v) if isinstance(v, list) else spell(v, kind) for v in values]
            lines.append("%s: %s\n" % (name, " ".join(spelled)))
    return "".join(lines)


def keep(path, name=None):
    with open((name or path) + ".txt", "w") as f:
        f.write(described(path))


# ---- one table, in all the ways that pyarrow writes it ----

WHOLE = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "rising", "some_i32", "some_u32", "ids.list.element"]
TEXTS = ["text", "some_text", "tags.list.element"]
SPLIT = ["f32", "f64", "some_f64", "i32", "i64", "four", "weights.list.element"]
SMALL = dict(row_group_size=9, data_page_size=64, write_batch_size=4, write_page_checksum=True, store_schema=False)
WAYS = {
    "plain": dict(compression="none", use_dictionary=False, data_page_version="1.0"),
    "snappy": dict(compression="snappy", data_page_version="1.0"),
    "gzip": dict(compression="gzip", data_page_version="2.0"),
    "brotli": dict(compression="brotli", data_page_version="2.0", use_dictionary=False),
    "zstd": dict(compression="zstd", data_page_version="2.0"),
    "lz4": dict(compression="lz4", data_page_version="1.0"),
    "delta": dict(compression="zstd", use_dictionary=False, data_page_version="2.0", column_encoding={
        **{c: "DELTA_BINARY_PACKED" for c in WHOLE}, **{c: "DELTA_BYTE_ARRAY" for c in TEXTS},
        "bytes": "DELTA_LENGTH_BYTE_ARRAY", "four": "DELTA_BYTE_ARRAY", "bool": "RLE", "some_bool": "RLE"}),
    "split": dict(compression="none", use_dictionary=False, column_encoding={c: "BYTE_STREAM_SPLIT" for c in SPLIT}),
}
for name, how in WAYS.items():
    pq.write_table(TABLE, name + ".parquet", **SMALL, **how)
    keep(name + ".parquet", "types")
    if name == "plain":
        first = open("types.txt").read()
    assert open("types.txt").read() == first, name
one_group = {k: v for k, v in SMALL.items() if k not in ("row_group_size", "data_page_size")}
pq.write_table(TABLE, "one_group.parquet", compression="zstd", **one_group)
keep("one_group.parquet", "types")
assert open("types.txt").read() == first

pq.write_table(TABLE.select(["us", "i32"]), "int96.parquet", use_deprecated_int96_timestamps=True)
with open("int96.parquet.txt", "w") as f:
    ns = [int(pandas.Timestamp(w).value) for w in when]
    f.write("us: %s\n" % " ".join(map(str, ns)) + described("int96.parquet").split("\n")[1] + "\n")
pq.write_table(TABLE.slice(0, 0).select(["i32", "text", "ids"]), "empty.parquet")
keep("empty.parquet")

# ---- other writers ----

plain = TABLE.select(["bool", "i8", "i32", "i64", "f32", "f64", "text", "some_i32", "some_f64", "some_text", "date"])
polars.from_arrow(plain.append_column("ids", TABLE["ids"])).write_parquet("polars.parquet", row_group_size=10)
keep("polars.parquet")
fastparquet.write("fastparquet.parquet", plain.drop_columns(["date", "bool"]).to_pandas(), compression="SNAPPY", row_group_offsets=[0, 12])
keep("fastparquet.parquet")
lists_too = plain.append_column("ids", TABLE["ids"]).append_column("place", TABLE["place"])
duckdb.sql("COPY lists_too TO 'duckdb.parquet' (FORMAT parquet, ROW_GROUP_SIZE 2048, COMPRESSION zstd)")
keep("duckdb.parquet")

# ---- data sets ----

t = pa.table({"a": pa.array([1.5, 2.5, 3.5]), "b": pa.array([10, 20, 30], pa.int32()), "label": ["x", "y", "x"], "n": [7, 8, 9]})
pq.write_table(t, "table1.parquet")
pq.write_table(pa.table({"label": ["y"], "n": [6.0], "b": pa.array([40], pa.int64()), "a": [4.5], "more": [1]}), "table2.parquet")
pq.write_table(pa.table({"a": [1.0, None], "b": pa.array([1, 2], pa.int32()), "label": ["x", None], "n": [1, 2]}), "nulls.parquet")
pq.write_table(pa.table({
    "grid": pa.array([[[1, 2], [3]], [], None, [[], [4]]], pa.list_(pa.list_(pa.int32()))),
    "cube": pa.array([[[[1.5], [2.5, None]]], [[[]], [[3.5]]], [], [[[4.5]]]], pa.list_(pa.list_(pa.list_(pa.float32())))),
    "said": pa.array([[["a"], []], [["b", None]], [[]], [["", "cc"]]], pa.list_(pa.list_(pa.string())))}), "nested.parquet", row_group_size=3)
keep("nested.parquet")
pq.write_table(pa.table({"ids": [[1, 2, 3], [4], []], "same": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}), "lists.parquet")
grey = lambda v: b"P5 2 2 255\n" + bytes([v] * 4)
pq.write_table(pa.table({"image": [{"bytes": grey(v), "path": "%d.pgm" % v} for v in (10, 20, 30)], "label": [0, 1, 0]}), "pictures.parquet")
wave = open("../audio/u8.wav", "rb").read()
pq.write_table(pa.table({"audio": [{"bytes": wave, "path": None}] * 2, "label": [0, 1]}), "sounds.parquet")
rows = subprocess.run(["head", "-320", sys.argv[1]], capture_output=True, text=True, check=True).stdout.split()
digits = np.array([[int(v) for v in r.split(",")] for r in rows])
names = ["p%d" % i for i in range(64)] + ["label"]
pq.write_table(pa.table({n: pa.array(digits[:, i], pa.int8()) for i, n in enumerate(names)}), "digits.parquet", compression="zstd", row_group_size=100)
