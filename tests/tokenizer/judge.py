"""Ours beside Hugging Face's `tokenizers`, on texts.py with the tokenizers of trained.py.

    python judge.py PROGRAM WORK [LINES] [NAME ...]     PROGRAM: tests/tools/tokenize, built

Prints how many texts agree for each tokenizer, then MB/s of both on plain English in the same run.
"""
import os
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import texts  # noqa: E402
import trained  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402


def ours(program, *args):
    r = subprocess.run([program, *args], capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(r.stderr)
    return r.stdout


def write(path, rows):
    with open(path, "wb") as f:
        for row in rows:
            f.write(struct.pack("<I", len(row)) + row)


def differences(program, path, work, rows, how):
    hf = Tokenizer.from_file(path)
    strings = [row.decode("utf-8", "replace") for row in rows]
    extra = ["all"]
    if how == "all":
        hf.no_padding()
    if how in ("pair", "words"):
        hf.no_padding()
        hf.enable_truncation(24, direction=(hf.truncation or {}).get("direction", "right"))
        extra = [how, "24"]
        want = [texts.pair(hf, a, b) for a, b in zip(strings, strings[1:])] if how == "pair" else [texts.words(hf, s) for s in strings]
        got = [[int(x) for x in line.split()] for line in ours(program, path, work + "/texts", *extra).split("\n")[:-1]]
        assert len(got) == len(want), (len(got), len(want))
        return [(rows[i], want[i], got[i]) for i in range(len(want)) if want[i] != got[i]]
    if how == "row":
        hf.enable_truncation(24, direction=(hf.truncation or {}).get("direction", "right"))
        p = hf.padding or {}
        hf.enable_padding(length=24, direction=p.get("direction", "right"), pad_id=p.get("pad_id", 0))
        extra = ["row", "24"]
    if how == "places":
        hf.no_padding()
        hf.enable_truncation(40, direction=(hf.truncation or {}).get("direction", "right"))
        pieces = texts.pieces(texts.plain(len(rows)))
        write(work + "/pieces", [p for four in pieces for p in four])
        want = [texts.places(hf, four) for four in pieces]
        got = [[int(x) for x in line.split()] for line in ours(program, path, work + "/pieces", "locate", "40").split("\n")[:-1]]
        assert len(got) == len(want), (len(got), len(want))
        return [(b"|".join(pieces[i]), want[i], got[i]) for i in range(len(want)) if want[i] != got[i]]
    want = []
    for s in strings:
        e = hf.encode(s)
        want.append(e.ids + (e.attention_mask if how == "row" else []))
    got = [[int(x) for x in line.split()] for line in ours(program, path, work + "/texts", *extra).split("\n")[:-1]]
    assert len(got) == len(want), (len(got), len(want))
    return [(rows[i], want[i], got[i]) for i in range(len(rows)) if want[i] != got[i]]


def speed(program, path, work):
    """MB/s of one thread of each on what is mostly English."""
    source = os.environ.get("TY_TEXT", "")
    plain = open(source, "rb").read() if source else b"\n".join(texts.lines(3000, 7))
    rows = [plain[i:i + 4000] for i in range(0, len(plain), 4000)]
    write(work + "/speed", rows)
    strings = [row.decode("utf-8", "replace") for row in rows]
    hf = Tokenizer.from_file(path)
    hf.no_padding()
    best = [0, 0]
    for _ in range(3):
        start = time.time()
        for s in strings:
            hf.encode(s)
        best[0] = max(best[0], len(plain) / (time.time() - start))
        n, seconds = ours(program, path, work + "/speed", "all", "1", "5").split()
        best[1] = max(best[1], int(n) / float(seconds))
    return [b / 1e6 for b in best]


def main():
    program, work = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.makedirs(work, exist_ok=True)
    rows = texts.lines(count)
    training = [row.decode("utf-8", "replace") for row in texts.lines(3000, 2)]
    write(work + "/texts", rows)
    failed = 0
    for name in sys.argv[4:] or trained.ALL:
        path = f"{work}/{name}.json"
        if not os.path.exists(path):
            trained.ALL[name](training).save(path)
        for how in ("all", "row", "pair", "words", "places"):
            if how == "row" and name not in ("roberta", "bert"):
                continue
            if how == "places" and name in ("unigram-bytes", "wordlevel", "prefixed", "removed"):
                continue  # words of bytes, unknown words, spaces that are gone: an id there does not tell its place
            if how in ("pair", "places") and not Tokenizer.from_file(path).encode("a", "b").ids:  # a template without pairs makes nothing of them
                continue
            bad = differences(program, path, work, rows, how)
            failed += bool(bad)
            print(f"{name} {how}: {len(bad)} texts do not agree", flush=True)
            for row, want, got in bad[:3]:
                at = next((i for i in range(min(len(want), len(got))) if want[i] != got[i]), min(len(want), len(got)))
                hf = Tokenizer.from_file(path)
                print("  ", row[:150], "\n    at", at, [hf.id_to_token(i) for i in want[max(0, at - 2):at + 6]],
                      "\n   ours ", [hf.id_to_token(i) for i in got[max(0, at - 2):at + 6]])
    for name in ("gpt2", "llama3", "llama", "bert", "unigram", "t5"):
        if name in (sys.argv[4:] or trained.ALL):
            theirs, mine = speed(program, f"{work}/{name}.json", work)
            print(f"{name}: tokenizers {theirs:.1f} MB/s, ours {mine:.1f} MB/s, {mine / theirs:.1f} times")
    print(f"{'FAILED' if failed else 'all agree'}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
