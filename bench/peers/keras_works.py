#!/usr/bin/env python3
"""keras_works.py - workloads as a user of Keras writes them, data with channels last.

    keras_works.py DIR [NAME...]
                            from DIR/NAME as export.py leaves it: DIR/NAME.keras with model.keras, the same weights and
                            batches, for bench/ours
    keras_works.py          tests/golden/keras/NAME.work.json.gz, configurations alone, and cnn.work.tar.xz, a SavedModel
                            of zeros: tests/unit/keras_plan.c compares what is made of them with what is made of the
                            ONNX files

Needs keras 3.15. Layers have their PyTorch modules' names, with "_" for ".". One difference: resnet50's only pool with
padding pads behind alone, so that its losses are a little others.
chargpt's output has a table of its own, and deepfm's logit one bias instead of two.
"""
import gzip
import os
import sys
import tarfile
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers as L, ops  # noqa: E402

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "golden", "keras")


def mlp():
    dense = [L.Dense(512, "relu", name="net_1"), L.Dense(512, "relu", name="net_3"), L.Dense(10, name="net_5")]
    return keras.Sequential([keras.Input((28, 28, 1)), L.Flatten(), *dense])


def cnn():
    convs = [L.Conv2D(32, 3, activation="relu", name="c1"), L.Conv2D(64, 3, activation="relu", name="c2")]
    dense = [L.Dense(128, "relu", name="f1"), L.Dense(10, name="f2")]
    return keras.Sequential([keras.Input((28, 28, 1)), *convs, L.MaxPooling2D(), L.Flatten(), *dense])


def normed(x, filters, size, names, stride=1, pad=0):
    x = L.ZeroPadding2D(pad)(x) if pad else x
    x = L.Conv2D(filters, size, strides=stride, use_bias=False, name=names[0])(x)
    return L.BatchNormalization(momentum=0.9, epsilon=1e-5, name=names[1])(x)


def bottleneck(x, mid, stride, name):
    conv, norm = name + "c%d", name + "b%d"
    y = L.ReLU()(normed(x, mid, 1, (conv % 1, norm % 1)))
    y = L.ReLU()(normed(y, mid, 3, (conv % 2, norm % 2), stride, 1))
    y = normed(y, 4 * mid, 1, (conv % 3, norm % 3))
    if stride > 1 or x.shape[-1] != 4 * mid:
        x = normed(x, 4 * mid, 1, (name + "short_0", name + "short_1"), stride)
    return L.ReLU()(L.Add()([y, x]))


def resnet50():
    images = keras.Input((224, 224, 3))
    x = L.ReLU()(normed(images, 64, 7, "cb", 2, 3))
    x = L.MaxPooling2D(3, 2, padding="same")(x)
    for stage, n in enumerate((3, 4, 6, 3)):
        for i in range(n):
            at = sum((3, 4, 6, 3)[:stage]) + i
            x = bottleneck(x, 64 << stage, 2 if stage and i == 0 else 1, f"blocks_{at}_")
    return keras.Model(images, L.Dense(1000, name="fc")(L.GlobalAveragePooling2D()(x)))


def lstm():
    ids = keras.Input((64,), dtype="int64", name="ids")
    x = L.Embedding(65, 128, name="tok")(ids)
    for i in range(2):
        x = L.LSTM(256, return_sequences=True, name=f"rnn_l{i}")(x)
    return keras.Model(ids, L.Dense(65, name="out")(x))


def gpt_block(x, heads, name):
    steps, c = x.shape[1:]
    y = L.LayerNormalization(epsilon=1e-5, name=name + "n1")(x)
    parts = ops.split(L.Dense(3 * c, name=name + "qkv")(y), 3, axis=-1)
    y = ops.dot_product_attention(*(ops.reshape(u, (-1, steps, heads, c // heads)) for u in parts), is_causal=True)
    x = x + L.Dense(c, name=name + "proj")(ops.reshape(y, (-1, steps, c)))
    y = L.Dense(4 * c, name=name + "up")(L.LayerNormalization(epsilon=1e-5, name=name + "n2")(x))
    return x + L.Dense(c, name=name + "down")(ops.gelu(y, approximate=True))


def chargpt():
    ids = keras.Input((256,), dtype="int64", name="ids")
    places = ops.cumsum(ops.ones_like(ids[0]), axis=0) - 1
    x = L.Embedding(65, 384, name="tok")(ids) + L.Embedding(256, 384, name="pos")(places)
    for i in range(6):
        x = gpt_block(x, 6, f"blocks_{i}_")
    x = L.LayerNormalization(epsilon=1e-5, name="norm")(x)
    return keras.Model(ids, L.Dense(65, use_bias=False, name="head")(x))


def deepfm():
    ids = keras.Input((39,), dtype="int64", name="ids")
    values = keras.Input((39,), name="values")
    first = ops.sum(L.Embedding(117581, 1, name="w")(ids)[..., 0] * values, axis=1)
    e = L.Embedding(117581, 32, name="v")(ids) * ops.expand_dims(values, -1)
    second = 0.5 * ops.sum(ops.square(ops.sum(e, axis=1)) - ops.sum(ops.square(e), axis=1), axis=1)
    x = L.Flatten()(e)
    for at, size in (0, 128), (2, 64), (4, 32):
        x = L.Dense(size, "relu", name=f"net_{at}")(x)
    return keras.Model([ids, values], first + second + L.Dense(1, name="net_6")(x)[:, 0])


PARTS = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias", "embeddings": "weight",
         "moving_mean": "running_mean", "moving_variance": "running_var"}


def recurrent(saved, layer, part):
    """Of an LSTM: gates are in one order; Keras has one bias."""
    of = layer[len("rnn_"):]
    if part == "bias":
        return saved[f"rnn.bias_ih_{of}"] + saved[f"rnn.bias_hh_{of}"]
    return saved[f"rnn.weight_{'hh' if part == 'recurrent_kernel' else 'ih'}_{of}"].T


def weight(saved, layer, part):
    """PyTorch's number for a variable of Keras."""
    if layer.startswith("rnn_"):
        return recurrent(saved, layer, part)
    if layer == "head":
        return saved["tok.weight"].T
    w = saved[f"{layer.replace('_', '.')}.{PARTS[part]}"]
    if part != "kernel":
        return w
    if layer == "f1":  # behind a flattened plane
        w = w.reshape(-1, 64, 12, 12).transpose(0, 2, 3, 1).reshape(len(w), -1)
    return w.transpose(2, 3, 1, 0) if w.ndim == 4 else w.T


def inputs(folder):
    i = 0
    while os.path.exists(path := os.path.join(folder, f"x{i}.npy")):
        yield f"x{i}.npy", np.load(path)
        i += 1


def export(work, model, folder):
    out = os.path.join(folder, work + ".keras")
    saved = np.load(os.path.join(folder, work, "weights.npz"))
    os.makedirs(out, exist_ok=True)
    for layer in model.layers:
        for v in layer.weights:
            v.assign(weight(saved, layer.name, v.name))
    model.save(os.path.join(out, "model.keras"))
    for name, x in inputs(os.path.join(folder, work)):
        np.save(os.path.join(out, name), np.ascontiguousarray(x.transpose(0, 1, 3, 4, 2)) if x.ndim == 5 else x)
    np.save(os.path.join(out, "y.npy"), np.load(os.path.join(folder, work, "y.npy")))


def save_zeros(work, model):
    """As TensorFlow has it."""
    for v in model.variables:
        v.assign(np.zeros(v.shape, np.float32))
    with tempfile.TemporaryDirectory() as folder:
        model.export(os.path.join(folder, work), format="tf_saved_model", verbose=False)
        with tarfile.open(os.path.join(GOLDEN, work + ".work.tar.xz"), "w:xz") as f:
            f.add(os.path.join(folder, work), work)


WORKS = {f.__name__: f for f in (mlp, cnn, resnet50, lstm, chargpt, deepfm)}
for work in sys.argv[2:] or WORKS:
    if len(sys.argv) > 1:
        export(work, WORKS[work](), sys.argv[1])
        continue
    with open(os.path.join(GOLDEN, work + ".work.json.gz"), "wb") as f:
        f.write(gzip.compress(WORKS[work]().to_json().encode(), 9, mtime=0))
    if work == "cnn":
        save_zeros(work, WORKS[work]())
