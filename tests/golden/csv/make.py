#!/usr/bin/env python3
"""Delimited text and what Python's csv module reads in it: NAME.csv, NAME.json. Blank lines are no records to us."""
import csv
import io
import json
import random

BYTES = {
    "quotes": 'a,b,c\n"x, y","the ""Hague""",""\n"two\nlines","""",\n,,\n5" pipe,o""o,x"\n"a\n\n""b""\n",z,"q"',
    "crlf": 'a,b\r\n"x\r\ny",1\r\n\r\n2,"3"\r\n,\r\n"","""\r\n"""\r\n',
    "tabs": 'a,b\tc\n"x\ty"\t"z"\n\t\n1;2\t"3,4"\n',
}


def random_text():
    r = random.Random(1)
    out = io.StringIO()
    w = csv.writer(out, lineterminator="\n")
    for _ in range(60):
        w.writerow(["".join(r.choice('ab ,"\n;\u00e9\'') for _ in range(r.randrange(9))) for _ in range(5)])
    return out.getvalue()


BYTES["random"] = random_text()
for name, text in BYTES.items():
    with open(name + ".csv", "w", encoding="utf-8", newline="") as f:
        f.write(text)
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter="\t" if name == "tabs" else ",") if row]
    with open(name + ".json", "w", encoding="utf-8") as f:
        json.dump(rows, f)
