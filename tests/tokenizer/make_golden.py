"""Writes tests/golden/tokenizer: small tokenizers, texts, and the ids that Hugging Face's `tokenizers` gives.

    python make_golden.py FOLDER
"""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import texts  # noqa: E402
import trained  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

folder = sys.argv[1]
rows = texts.lines(40, 11)
with open(folder + "/texts", "wb") as f:
    for row in rows:
        f.write(struct.pack("<I", len(row)) + row)
with open(folder + "/pieces", "wb") as f:
    for row in (p for four in texts.pieces(texts.plain(40)) for p in four):
        f.write(struct.pack("<I", len(row)) + row)
# Few characters, so that vocabularies are small.
some = [w for w in texts.WORDS if len(w) < 12 and max(map(ord, w), default=0) < 0x250]
training = [" ".join(some[i:] + some[:i]) for i in range(0, len(some), 3)] + texts.CODE
trained.SIZE = 420
for name, make in trained.ALL.items():
    if name in ("t5", "cl100k", "bert-cased", "ignoring", "removed", "next", "llama-first", "qwen", "string"):
        continue
    path = f"{folder}/{name}.json"
    make(training).save(path)
    data = json.load(open(path, encoding="utf-8"))
    with open(path, "w", encoding="utf-8") as f:
        json.dump(data, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")
    t = Tokenizer.from_file(path)
    t.no_padding()
    with open(f"{folder}/{name}.ids", "w") as f:
        for row in rows:
            f.write(" ".join(map(str, t.encode(row.decode("utf-8", "replace")).ids)) + "\n")
    if name in ("bert", "roberta", "llama3"):
        t.enable_truncation(24, direction=(t.truncation or {}).get("direction", "right"))
        strings = [row.decode("utf-8", "replace") for row in rows]
        with open(f"{folder}/{name}.pair", "w") as f:
            f.writelines(" ".join(map(str, texts.pair(t, a, b))) + "\n" for a, b in zip(strings, strings[1:]))
        with open(f"{folder}/{name}.words", "w") as f:
            f.writelines(" ".join(map(str, texts.words(t, s))) + "\n" for s in strings)
        four = texts.pieces(texts.plain(40))
        with open(f"{folder}/{name}.locate", "w") as f:
            f.writelines(" ".join(map(str, texts.places(t, p))) + "\n" for p in four)
