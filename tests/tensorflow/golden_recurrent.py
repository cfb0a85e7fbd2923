#!/usr/bin/env python3
"""golden_recurrent.py [FOLDER]: writes tests/golden/tensorflow/recurrent.tar.xz with the real TensorFlow, Keras 3 and
tf_keras (Keras 2).

    keras3/ keras2/   LSTM, GRU backwards, SimpleRNN, Dense: loops that are layers; with a training step of its own, in
                      which they are loops over lists that are pushed to and popped from
    masked/           the same behind a mask: loops that are none of ours
    NAME.txt          x, y, what forward gives of x, and the losses of STEPS steps on them
"""
import os
import shutil
import sys
import tarfile
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import keras
import numpy as np
import tensorflow as tf

import golden_step

STEPS, BATCH, TIMES, SIZE, OUT = 3, 6, 5, 3, 2
rng = np.random.default_rng(5)


def numbers(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


class Model(tf.Module):
    def __init__(self, kit, masked):
        super().__init__()
        x = kit.Input((TIMES, SIZE))
        y = kit.layers.Masking(0.0)(x) if masked else x
        y = kit.layers.LSTM(4, return_sequences=True)(y)
        y = kit.layers.GRU(3, return_sequences=True, go_backwards=True)(y)
        y = kit.layers.SimpleRNN(4)(y)
        self.net = kit.Model(x, kit.layers.Dense(OUT)(y))
        for w in self.net.trainable_variables:
            w.assign(numbers(*w.shape))
        self.weights = [getattr(w, "value", w) if kit is keras else w for w in self.net.trainable_variables]

    @tf.function(input_signature=[tf.TensorSpec([None, TIMES, SIZE])])
    def forward(self, x):
        return {"output": self.net(x, training=False)}

    @tf.function(input_signature=[tf.TensorSpec([BATCH, TIMES, SIZE]), tf.TensorSpec([BATCH, OUT])])
    def train(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.net(x, training=True) - y))
        for w, g in zip(self.weights, tape.gradient(loss, self.weights)):
            w.assign_sub(0.1 * g)
        return {"loss": loss}


def make(root, name, kit, masked):
    model, x, y = Model(kit, masked), numbers(BATCH, TIMES, SIZE), numbers(BATCH, OUT)
    if masked:
        x[0, 3:] = x[1, :2] = x[2, 2] = 0
    where = os.path.join(root, name)
    tf.saved_model.save(model, where, signatures={"forward": model.forward.get_concrete_function(), "train": model.train.get_concrete_function()})
    golden_step.strip(os.path.join(where, "saved_model.pb"))
    for extra in ["fingerprint.pb", "assets"]:
        path = os.path.join(where, extra)
        shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
    with open(os.path.join(root, name + ".txt"), "w") as out:
        golden_step.write(out, "x", x), golden_step.write(out, "y", y)
        golden_step.write(out, "output", model.forward(tf.constant(x))["output"])
        for _ in range(STEPS):
            golden_step.write(out, "loss", model.train(tf.constant(x), tf.constant(y))["loss"])


def main(folder):
    root = tempfile.mkdtemp()
    make(root, "keras3", keras, False)
    make(root, "masked", keras, True)
    try:
        import tf_keras
    except ImportError:
        sys.exit("tf_keras is not there: pip install tf-keras")
    make(root, "keras2", tf_keras, False)
    with tarfile.open(os.path.join(folder, "recurrent.tar.xz"), "w:xz", preset=9) as out:
        for name in sorted(os.listdir(root)):
            out.add(os.path.join(root, name), name, filter=lambda t: t.replace(uid=0, gid=0, uname="", gname="", mtime=0, deep=False))
    shutil.rmtree(root)
    print(os.path.getsize(os.path.join(folder, "recurrent.tar.xz")), "bytes")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../golden/tensorflow"))
