#!/usr/bin/env python3
"""numbers.py - what Keras' own layers make of small data: NAME.config.json and NAME.expected.json.

    python numbers.py [NAME ...]        needs keras 3.15 with TensorFlow 2.21

Each model has one input or more, and a layer on each of them for every output. Numbers are not in the files but follow
from names: element i of an array is noise(name, i). Results and gradients are kept as a norm and a few sums with noise,
so that the files stay small; tests/unit/keras_numbers.c computes the same of what the importer makes of the model.

TensorFlow has no channels_first on a CPU: those are computed channels last, with data turned before and behind.
"""
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from keras import layers as L  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SUMS = 5


def seed(name):
    h = 2166136261
    for b in name.encode():
        h = (h ^ b) * 16777619 & 0xFFFFFFFF
    return h


def noise(name, shape):
    """Multiples of 2^-23 from -1 to 1."""
    n = int(np.prod(shape)) if len(shape) else 1
    i = np.arange(1, n + 1, dtype=np.uint64)
    h = i * np.uint64(2654435761) + np.uint64(seed(name))
    h &= np.uint64(0xFFFFFFFF)
    h ^= h >> np.uint64(15)
    h = h * np.uint64(2246822519) & np.uint64(0xFFFFFFFF)
    h ^= h >> np.uint64(13)
    return ((h >> np.uint64(8)).astype(np.float64) / 2**23 - 1).reshape(shape)


def value(name, shape):
    v = noise(name, shape)
    if name.startswith("m"):  # steps of nothing but zeros, for Masking
        v[np.arange(v[..., 0].size).reshape(v.shape[:-1]) % 3 == 0] = 0
    return (0.6 + 0.5 * np.abs(v) if name.endswith("variance") else v).astype(np.float32)


def short(x):
    return float(f"{x:.9g}")


def digest(name, array):
    a = np.asarray(array, np.float64)
    sums = [(a * noise(f"{name}#{k}", a.shape)).sum() for k in range(SUMS)]
    return {"shape": list(a.shape), "norm": short(np.sqrt((a * a).sum())), "sums": [short(s) for s in sums]}


def turned(shape):
    return (shape[0], shape[-1], *shape[1:-1])


class Case:
    """A model to save, and for each output the layer that computes: itself, or its twin with channels last."""

    def __init__(self):
        self.inputs, self.outputs, self.parts = {}, [], []

    def input(self, shape, masked=False):
        key = "xm"[masked] + "x".join(map(str, shape))
        if key not in self.inputs:
            self.inputs[key] = keras.Input(shape[1:], batch_size=shape[0], name=key)
        return key, self.inputs[key]

    def add(self, cls, shape, *args, first=False, **kw):
        name = f"{cls.__name__.lower()}_{len(self.parts)}"
        trainable, masked = kw.pop("trainable", True), kw.pop("masked", False)
        shape = turned(shape) if first else shape
        key, x = self.input(shape, masked)
        if masked:
            x = L.Masking(name=f"masking_{len(self.parts)}")(x)
        layer = cls(*args, name=name, **kw, **({"data_format": "channels_first"} if first else {}))
        layer.trainable = trainable
        self.outputs.append(layer(x))
        twin = cls(*args, name=name, **kw) if first else layer
        self.parts.append((key, layer, twin, first))

    def model(self):
        return keras.Model(list(self.inputs.values()), self.outputs, name="layers")


def to_last(x):
    return tf.transpose(x, [0, *range(2, len(x.shape)), 1])


def to_first(x):
    return tf.transpose(x, [0, len(x.shape) - 1, *range(1, len(x.shape) - 1)])


def run(case, training):
    """Outputs, gradients of sum(output * noise) to inputs and weights, statistics afterwards."""
    x = {k: tf.constant(value(k, t.shape)) for k, t in case.inputs.items()}
    outs, weights = [], []
    with tf.GradientTape() as tape:
        for v in x.values():
            tape.watch(v)
        loss = 0.0
        for k, (key, layer, twin, first) in enumerate(case.parts):
            v = to_last(x[key]) if first else x[key]
            if not twin.built:
                twin.build(v.shape)
            for w in twin.weights:
                w.assign(value(f"{layer.name}/{w.name}", w.shape))
            if key[0] == "m":
                v = L.Masking()(v)
            y = twin(v, training=training) if has_training(twin) else twin(v)
            y = to_first(y) if first and len(y.shape) == len(v.shape) else y
            outs.append(y)
            weights += [(f"{layer.name}/{w.name}", w) for w in twin.weights]
            loss += tf.reduce_sum(y * noise(f"out{k}", y.shape).astype(np.float32))
    trained = [(n, w) for n, w in weights if w.trainable]
    grads = tape.gradient(loss, [w.value for _, w in trained] + list(x.values()))
    mode = "train" if training else "eval"
    res = {f"{mode}/out{k}": y for k, y in enumerate(outs)}
    if training:
        res |= {f"grad/{n}": g for (n, _), g in zip(trained, grads)}
        res |= {f"grad/{k}": g for k, g in zip(x, grads[len(trained):])}
        res |= {f"update/{n}": w.numpy() for n, w in weights if "moving" in n}
    return {n: digest(n, v) for n, v in res.items()}


def has_training(layer):
    return "training" in layer.call.__code__.co_varnames


def conv1d(c):
    x = (2, 9, 4)
    for first in (False, True):
        c.add(L.Conv1D, x, 3, 3, first=first)
        c.add(L.Conv1D, x, 4, 2, strides=2, padding="same", first=first)
    c.add(L.Conv1D, x, 4, 3, dilation_rate=2, padding="same", use_bias=False)
    c.add(L.Conv1D, x, 3, 3, padding="causal", activation="relu")
    c.add(L.Conv1D, x, 2, 3, padding="causal", dilation_rate=2)
    c.add(L.Conv1D, x, 3, 2, padding="causal", strides=2)
    c.add(L.Conv1D, x, 4, 3, groups=2, padding="same")
    c.add(L.Conv1D, x, 5, 1, strides=3)
    for first in (False, True):
        c.add(L.DepthwiseConv1D, x, 3, padding="same", first=first)
        c.add(L.SeparableConv1D, x, 3, 3, padding="same", depth_multiplier=2, first=first)
    c.add(L.DepthwiseConv1D, x, 3, depth_multiplier=2, strides=2)
    c.add(L.SeparableConv1D, x, 3, 2, dilation_rate=2, activation="tanh")
    for first in (False, True):
        c.add(L.Conv1DTranspose, x, 3, 3, strides=2, padding="same", first=first)
        c.add(L.Conv1DTranspose, x, 3, 2, strides=3, first=first)
    c.add(L.Conv1DTranspose, x, 2, 3, strides=2, padding="same", output_padding=1)
    c.add(L.Conv1DTranspose, x, 2, 4, strides=3, padding="valid", output_padding=2)


def conv2d(c):
    x = (2, 5, 6, 4)
    for first in (False, True):
        c.add(L.Conv2D, x, 3, 3, first=first)
        c.add(L.Conv2D, x, 5, (2, 4), strides=(2, 1), padding="same", first=first)
        c.add(L.Conv2D, x, 3, 1, first=first)
    c.add(L.Conv2D, x, 3, 1, strides=2, use_bias=False)
    c.add(L.Conv2D, x, 2, (3, 2), dilation_rate=(1, 2), padding="same", activation="sigmoid")
    c.add(L.Conv2D, x, 6, 3, groups=2, padding="same")
    c.add(L.Conv2D, x, 3, 2, strides=3, padding="same")
    for first in (False, True):
        c.add(L.DepthwiseConv2D, x, 3, padding="same", first=first)
        c.add(L.DepthwiseConv2D, x, (2, 3), strides=2, depth_multiplier=3, padding="same", first=first)
        c.add(L.SeparableConv2D, x, 3, 3, padding="same", depth_multiplier=2, first=first)
    c.add(L.DepthwiseConv2D, x, 2, dilation_rate=2, padding="same", use_bias=False)
    c.add(L.DepthwiseConv2D, x, 2, dilation_rate=2, strides=2, padding="same")
    c.add(L.SeparableConv2D, x, 2, 2, strides=2, activation="relu")
    for first in (False, True):
        c.add(L.Conv2DTranspose, x, 3, 3, strides=2, padding="same", first=first)
        c.add(L.Conv2DTranspose, x, 2, (2, 3), strides=(3, 2), first=first)
    c.add(L.Conv2DTranspose, x, 3, 4, padding="same")
    c.add(L.Conv2DTranspose, x, 2, 3, strides=2, padding="same", output_padding=(1, 0))
    c.add(L.Conv2DTranspose, x, 2, 2, strides=3, padding="same")
    c.add(L.Conv2DTranspose, x, 2, 1, strides=2)


def conv3d(c):
    x = (2, 4, 3, 5, 2)
    for first in (False, True):
        c.add(L.Conv3D, x, 3, 2, padding="same", first=first)
        c.add(L.Conv3DTranspose, x, 3, 2, strides=2, padding="same", first=first)
    c.add(L.Conv3D, x, 2, (2, 3, 1), strides=(1, 2, 1), activation="relu")
    c.add(L.Conv3D, x, 2, (2, 1, 3), dilation_rate=(1, 1, 2))
    c.add(L.Conv3D, x, 4, 3, strides=2, padding="same")
    c.add(L.Conv3DTranspose, x, 2, (3, 1, 2), strides=(1, 2, 1))


def pools(c):
    shapes = {1: (2, 7, 3), 2: (2, 5, 6, 3), 3: (2, 3, 5, 4, 2)}
    for n, x in shapes.items():
        for kind in ("Max", "Average"):
            pool = getattr(L, f"{kind}Pooling{n}D")
            wide = getattr(L, f"Global{kind}Pooling{n}D")
            fit = getattr(L, f"Adaptive{kind}Pooling{n}D")
            for first in (False, True):
                c.add(pool, x, 2, first=first)
                c.add(pool, x, 3, strides=2, padding="same", first=first)
                c.add(wide, x, first=first)
                c.add(fit, x, 2 if n == 3 else 4, first=first)
            c.add(pool, x, 3, strides=1, padding="same")
            c.add(wide, x, keepdims=True)
    c.add(L.MaxPooling2D, shapes[2], (1, 2), strides=(2, 3))
    c.add(L.AveragePooling2D, shapes[2], (3, 1), strides=(1, 4), padding="same")
    c.add(L.AdaptiveAveragePooling2D, shapes[2], (1, 6))
    c.add(L.AdaptiveMaxPooling2D, shapes[2], (7, 2))


def planes(c):
    shapes = {1: (2, 5, 3), 2: (2, 5, 4, 3), 3: (2, 4, 3, 5, 2)}
    c.add(L.ZeroPadding1D, shapes[1], (2, 1))
    c.add(L.ZeroPadding1D, shapes[1], 2, first=True)
    c.add(L.Cropping1D, shapes[1], (2, 0))
    c.add(L.UpSampling1D, shapes[1], 3)
    for first in (False, True):
        c.add(L.ZeroPadding2D, shapes[2], ((2, 1), (0, 3)), first=first)
        c.add(L.ZeroPadding2D, shapes[2], (1, 2), first=first)
        c.add(L.Cropping2D, shapes[2], ((2, 1), (0, 3)), first=first)
        c.add(L.UpSampling2D, shapes[2], (2, 3), first=first)
        c.add(L.UpSampling2D, shapes[2], (3, 2), interpolation="bilinear", first=first)
        c.add(L.ZeroPadding3D, shapes[3], ((1, 0), (2, 1), (0, 3)), first=first)
        c.add(L.Cropping3D, shapes[3], ((1, 0), (0, 1), (2, 2)), first=first)
        c.add(L.UpSampling3D, shapes[3], (2, 1, 3), first=first)
        c.add(L.Resizing, shapes[2], 7, 3, first=first)
        c.add(L.Resizing, shapes[2], 3, 9, interpolation="nearest", first=first)
        c.add(L.CenterCrop, shapes[2], 2, 3, first=first)


def norms(c):
    x, rows, steps, cube = (3, 4, 5, 6), (5, 4), (3, 5, 4), (2, 2, 3, 2, 4)
    for shape in (rows, steps, x, cube):
        c.add(L.BatchNormalization, shape)
        c.add(L.LayerNormalization, shape)
        c.add(L.RMSNormalization, shape)
        c.add(L.UnitNormalization, shape)
        c.add(L.GroupNormalization, shape, groups=2)
    c.add(L.BatchNormalization, x, axis=1, momentum=0.8, epsilon=1e-2)
    c.add(L.BatchNormalization, x, axis=2, scale=False)
    c.add(L.BatchNormalization, steps, axis=1, center=False)
    c.add(L.BatchNormalization, x, trainable=False)
    c.add(L.LayerNormalization, x, axis=[1, 2, 3], epsilon=1e-5)
    c.add(L.LayerNormalization, x, axis=[1, 3], scale=False)
    c.add(L.LayerNormalization, x, axis=2, center=False)
    c.add(L.LayerNormalization, x, axis=(-2, -1), rms_scaling=True)
    c.add(L.RMSNormalization, x, axis=[2, 3], epsilon=1e-3)
    c.add(L.UnitNormalization, x, axis=[1, 2])
    c.add(L.GroupNormalization, x, groups=-1)
    c.add(L.GroupNormalization, x, groups=1, scale=False, center=False)
    c.add(L.GroupNormalization, x, groups=2, axis=1, epsilon=1e-2)
    c.add(L.GroupNormalization, steps, groups=4)


def masked(c):
    c.add(L.BatchNormalization, (4, 5, 3), masked=True)
    c.add(L.BatchNormalization, (4, 5, 3), masked=True, trainable=False)
    c.add(L.GlobalAveragePooling1D, (4, 5, 3), masked=True)
    c.add(L.GlobalAveragePooling1D, (4, 5, 3), masked=True, keepdims=True)
    c.add(L.GlobalMaxPooling1D, (4, 5, 3), masked=True)


FAMILIES = {f.__name__: f for f in (conv1d, conv2d, conv3d, pools, planes, norms, masked)}


def thin(v):
    """A configuration without what says nothing."""
    if isinstance(v, dict):
        if v.get("class_name") == "DTypePolicy":
            return v["config"]["name"]
        return {k: thin(w) for k, w in v.items() if w is not None and k not in ("build_config", "registered_name")}
    return [thin(w) for w in v] if isinstance(v, list) else v


def write(name, what):
    with open(os.path.join(HERE, name), "w") as f:
        f.write(what + "\n")


def main():
    for name in sys.argv[1:] or FAMILIES:
        keras.backend.clear_session()
        case = Case()
        FAMILIES[name](case)
        expected = run(case, False) | run(case, True)
        write(f"{name}.config.json", json.dumps(thin(json.loads(case.model().to_json()))))
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in expected.items())
        write(f"{name}.expected.json", "{" + lines + "}")


main()
