#!/usr/bin/env python3
"""Makes cases.json: what Keras' preprocessing layers, scikit-learn and pandas make of small inputs.

Needs tensorflow, keras, scikit-learn, pandas. Each case: cells (a list of samples, each a list; null is missing) and
rows. The name says which declaration it is judged by (tests/unit/input_map.c)."""
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import keras
import numpy as np
import pandas as pd
import tensorflow as tf
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, MinMaxScaler, OneHotEncoder, StandardScaler

rng = np.random.default_rng(7)
cases = []


def case(name, cells, rows, fit=None):
    clean = lambda v: None if v is None or (isinstance(v, float) and np.isnan(v)) else v
    cells = [[clean(v) for v in row] for row in cells]
    entry = {"name": name, "cells": cells, "rows": np.asarray(rows).reshape(len(cells), -1).tolist()}
    if fit is not None:
        entry["fit"] = [[clean(v) for v in row] for row in fit]
    cases.append(entry)


texts = ["".join(chr(rng.integers(97, 123)) for _ in range(n)) for n in list(range(1, 70)) + [96, 127, 128, 129, 192, 193, 300]]
texts += ["", "Zürich", "日本", "0", "-17", "9223372036854775807"]
words = [[t] for t in texts]
fingerprints = tf.strings.to_hash_bucket_fast(texts, 2**62).numpy()
case("hash_wide", words, [[int(v)] for v in fingerprints])
case("hash", words, keras.layers.Hashing(1000)(tf.constant(texts)).numpy())
case("hash_integers", [[int(v)] for v in (0, 7, -7, 10**18)], keras.layers.Hashing(1000)(tf.constant([0, 7, -7, 10**18], tf.int64)).numpy())
a, b = [0, 1, 2, 3, 1000], [5, 4, 3, 2, 10**12]
case("cross", [list(p) for p in zip(a, b)],
     keras.layers.HashedCrossing(97)((tf.constant(a, tf.int64)[:, None], tf.constant(b, tf.int64)[:, None])).numpy())

seen = ["red"] * 5 + ["green"] * 3 + ["blue"] * 3 + ["amber"] + ["violet"] * 2
asked = ["violet", "green", "blue", "red", "amber", "pink", "grey"]
for name, options in (("vocabulary", {}), ("vocabulary_3_oov", {"num_oov_indices": 3})):
    layer = keras.layers.StringLookup(**options)
    layer.adapt(tf.constant(seen))
    case(name, [[w] for w in asked], layer(tf.constant(asked)).numpy(), [[w] for w in seen])
layer = keras.layers.StringLookup(max_tokens=4)  # with one of them for unknown words
layer.adapt(tf.constant(seen))
case("vocabulary_3_words", [[w] for w in asked], layer(tf.constant(asked)).numpy(), [[w] for w in seen])
layer = keras.layers.StringLookup(vocabulary=["x", "y", "z"], num_oov_indices=0, output_mode="one_hot")
case("vocabulary_one_hot", [["z"], ["x"], ["y"]], layer(tf.constant(["z", "x", "y"])).numpy())

labels = ["setosa", "virginica", "versicolor", "setosa", "Setosa"]
case("classes", [[w] for w in labels], LabelEncoder().fit_transform(labels), [[w] for w in labels])
numbers = [10, 2, 33, 2, -1]
case("classes_numbers", [[v] for v in numbers], LabelEncoder().fit_transform(numbers), [[v] for v in numbers])
encoder = OneHotEncoder(sparse_output=False).fit([[w] for w in labels])
case("classes_one_hot", [[w] for w in labels], encoder.transform([[w] for w in labels]), [[w] for w in labels])

table = rng.normal(size=(40, 3)) * [1, 1e-3, 50] + [1e9, 0, -3]
table = np.round(table, 6)
case("standard", table.tolist(), StandardScaler().fit_transform(table), table.tolist())
layer = keras.layers.Normalization()
small = (table - [1e9, 0, 0]).astype(np.float32)
layer.adapt(small)
case("standard", small.tolist(), layer(small).numpy(), small.tolist())
case("minmax", table.tolist(), MinMaxScaler().fit_transform(table), table.tolist())
constant = np.full((5, 3), 0.1)
case("standard", constant.tolist(), StandardScaler().fit_transform(constant), constant.tolist())
case("minmax", constant.tolist(), MinMaxScaler().fit_transform(constant), constant.tolist())
holes = np.round(table - [1e9, 0, 0], 1)
holes[rng.random(holes.shape) < 0.3] = np.nan
for strategy in ("mean", "median", "most_frequent"):
    case(f"missing_{strategy}", holes.tolist(), SimpleImputer(strategy=strategy).fit_transform(holes), holes.tolist())
    pipeline = make_pipeline(SimpleImputer(strategy=strategy), StandardScaler())
    case(f"missing_{strategy}_standard", holes.tolist(), pipeline.fit_transform(holes), holes.tolist())
gaps = np.array([["a"], ["b"], [None], ["b"], ["a"], ["b"], ["c"]], dtype=object)
filled = SimpleImputer(strategy="most_frequent", missing_values=None).fit_transform(gaps)
case("missing_text", gaps.tolist(), LabelEncoder().fit_transform(filled.ravel()), gaps.tolist())

layer = keras.layers.Discretization(bin_boundaries=[-1.0, 0.0, 2.5])
line = [-2.0, -1.0, -0.5, 0.0, 1.0, 2.4, 2.5, 9.0]
case("buckets", [[v] for v in line], layer(tf.constant(line)).numpy())
many = np.concatenate([np.round(rng.gamma(2, 3, 197), 3), np.full(60, 1.0)])
edges = np.unique(np.quantile(many, np.arange(1, 10) / 10))
case("quantiles", [[v] for v in many[:50].tolist() + edges.tolist()],
     np.searchsorted(edges, np.concatenate([many[:50], edges]), side="right"), [[v] for v in many.tolist()])
codes = pd.cut(many[:100], [-np.inf, *edges, np.inf], right=False, labels=False)
case("quantiles", [[v] for v in many[:100].tolist()], codes, [[v] for v in many.tolist()])
counts = [0.0, 1.0, 5.0, 600.0, 7000.0]
case("clip_log1p", [[v] for v in counts], np.log1p(np.clip(counts, 1, 600)))
case("log1p_standard", [[v] for v in counts], StandardScaler().fit_transform(np.log1p(np.array(counts)[:, None])),
     [[v] for v in counts])
ragged = [[3, 1], [], [4, 1, 5, 9, 2], [6, 5, 3]]
pad = keras.utils.pad_sequences
case("pad_right", ragged, pad(ragged, 3, padding="post", truncating="post", value=7))
case("pad_left", ragged, pad(ragged, 3, padding="pre", truncating="pre", value=7))
hot = keras.layers.CategoryEncoding(6, output_mode="multi_hot")
case("multi_hot", [[3, 1], [5], [0, 1, 2]], [hot(tf.constant(r)).numpy() for r in ([3, 1], [5], [0, 1, 2])])
case("split", [["a|c"], ["b|x|a|c"], ["c"]], [[1, 3, 9], [2, 0, 1], [3, 9, 9]])
case("split_left", [["a|c"], ["b|x|a|c"], ["c"]], [[9, 1, 3], [0, 1, 3], [9, 9, 3]])

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in cases) + "\n]\n")
