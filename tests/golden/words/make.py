#!/usr/bin/env python3
"""Lists of texts, as data sets of named entities have them: make.py

    build/parquet-venv/bin/python tests/golden/words/make.py         # pyarrow, datasets

The rows of words.jsonl as tables: lists1.parquet and lists2.parquet are its two halves, so are the two files of Arrow and the
two shards that save_to_disk leaves in saved/; coded.arrow and views.arrow have all of it, as numbers of a dictionary and as
views. words.jsonl is what pyarrow reads in the Parquet files. classes.txt has a line for each row: the places of its first 8
words among all of them in order, those that are null being "none", and -1 behind the last.
"""
import json
import os
import random
import shutil

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

os.chdir(os.path.dirname(os.path.abspath(__file__)))
random.seed(11)
KNOWN = ["EU", "rejects", "German", "call", "to", "boycott", "British", "lamb", ".", "", "Köln", "New York",
         "a word that is longer than the twelve bytes of a view"]
ROWS, LENGTH = 60, 8


def words(i):
    n = 300 if i == 20 else i % 11
    return None if i % 13 == 3 else [None if (i + k) % 9 == 4 else random.choice(KNOWN) for k in range(n)]


tokens = [words(i) for i in range(ROWS)]
COLUMNS = {
    "tokens": pa.array(tokens, pa.list_(pa.string())),
    "tags": pa.array([[k % 7 for k in range(len(t or []))] for t in tokens], pa.list_(pa.int8())),
    "said": pa.array([[["w%d" % (i % 4), None][:k] for k in range(i % 4)] for i in range(ROWS)], pa.list_(pa.list_(pa.string()))),
    "label": pa.array([i % 5 for i in range(ROWS)], pa.int64()),
}
TABLE = pa.table(COLUMNS)
HALVES = TABLE.slice(0, 33), TABLE.slice(33)


def large(table):
    text = pa.large_string()
    return table.cast(pa.schema([("tokens", pa.large_list(text)), ("tags", pa.large_list(pa.int8())),
                                 ("said", pa.large_list(pa.large_list(text))), ("label", pa.int64())]))


def write(name, table, stream=False, compression=None, rows=14):
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with pa.OSFile(name, "wb") as out, new(out, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as w:
        w.write_table(table, max_chunksize=rows)


SMALL = dict(row_group_size=17, data_page_size=64, write_batch_size=4)
pq.write_table(HALVES[0], "lists1.parquet", compression="snappy", data_page_version="1.0", **SMALL)
pq.write_table(HALVES[1], "lists2.parquet", compression="none", data_page_version="2.0", use_dictionary=False, **SMALL)
write("lists1.arrow", HALVES[0])
write("lists2.arrow", large(HALVES[1]), stream=True, compression="zstd")
chunks = TABLE["tokens"].combine_chunks()
coded = pa.ListArray.from_arrays(chunks.offsets, chunks.values.dictionary_encode(), mask=chunks.is_null())
write("coded.arrow", TABLE.set_column(0, "tokens", coded), stream=True)
views = pa.array(tokens, pa.list_(pa.string_view()))
write("views.arrow", TABLE.set_column(0, "tokens", views))
shutil.rmtree("saved", ignore_errors=True)
datasets.Dataset(TABLE).save_to_disk("saved", num_shards=2)

read = pa.concat_tables([pq.read_table("lists1.parquet"), pq.read_table("lists2.parquet")]).to_pylist()
assert read == TABLE.to_pylist()
with open("words.jsonl", "w") as out:
    for row in read:
        print(json.dumps(row, ensure_ascii=False), file=out)
spelled = [["none" if w is None else w for w in row["tokens"] or []] for row in read]
order = sorted({w for row in spelled for w in row}, key=str.encode)
with open("classes.txt", "w") as out:
    for row in spelled:
        ids = [order.index(w) for w in row][:LENGTH]
        print(*ids + [-1] * (LENGTH - len(ids)), file=out)

# What is not the same: a text a row, and pictures.
pq.write_table(pa.table({"tokens": ["EU", "."], "label": [0, 1]}), "texts.parquet")
grey = b"P5 2 2 255\n" + bytes([9] * 4)
pq.write_table(pa.table({"album": [[], [{"bytes": grey, "path": "a"}, {"bytes": grey, "path": None}]], "label": [0, 1]}), "album.parquet")
phrases = ["the film was good", "a bad story"] * 10
pq.write_table(pa.table({"tokens": [p.split() for p in phrases], "phrase": phrases, "label": ["yes", "no"] * 10}), "phrases.parquet")
