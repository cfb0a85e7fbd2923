#!/usr/bin/env python3
"""DeepFM on clicks as examples/deepfm has it, with a peer: same model, batch, optimizer and data. One JSON line.

    clicks.py torch|compile|tf DATA EPOCHS

DATA/training and DATA/evaluation hold TFRecord files of Examples {ids i64[39], values f32[39], label f32}. TensorFlow reads
them while it trains, as the AWS sample does; PyTorch, which reads no TFRecord, has them in memory before.
"""
import glob
import json
import os
import resource
import statistics
import struct
import sys
import time

import numpy as np

FIELDS, FEATURES, K, BATCH, RATE, DECAY = 39, 117581, 32, 256, 5e-4, 1e-4
DEEP = (128, 64, 32)


def age():
    with open("/proc/self/stat", encoding="ascii") as f:
        ticks = int(f.read().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def area(labels, scores):
    """Area under the ROC curve, by ranks; equal scores share theirs."""
    _, group, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[group]
    ones = labels.sum()
    return float((rank[labels == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(labels) - ones)))


class Told:
    def __init__(self):
        self.step_s, self.first_s, self.val = [], None, []

    def steps(self, batches, step):
        last = time.process_time()
        for batch in batches:
            step(batch)
            now = time.process_time()
            self.step_s.append(now - last)
            last = now
            self.first_s = self.first_s or age()

    def evaluated(self, labels, logits):
        labels, logits = np.asarray(labels, np.float64), np.asarray(logits, np.float64)
        loss = np.logaddexp(0, logits) - labels * logits
        self.val.append((float(loss.mean()), area(labels, logits)))

    def line(self):
        # Of the second epoch on, all of it: what a pipeline does ahead is done in the time of other steps.
        later = self.step_s[len(self.step_s) // len(self.val):]
        return json.dumps({"us": 1e6 * statistics.mean(later) / BATCH, "loss": min(v[0] for v in self.val),
                           "auc": max(v[1] for v in self.val), "cpu_s": time.process_time(), "first_s": self.first_s,
                           "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6})


def varint(b, i):
    v = shift = 0
    while True:
        v |= (b[i] & 127) << shift
        shift += 7
        i += 1
        if b[i - 1] < 128:
            return v, i


def parts(b):
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        n, i = varint(b, i)
        yield key >> 3, b[i:i + n]
        i += n


def decoded(folder):
    """All rows of a folder: ids, values, labels."""
    ids, values, labels = [], [], []
    for path in sorted(glob.glob(os.path.join(folder, "*"))):
        with open(path, "rb") as f:
            b = f.read()
        i = 0
        while i < len(b):
            n, = struct.unpack_from("<Q", b, i)
            row = {}
            for _, features in parts(b[i + 12:i + 12 + n]):
                for _, entry in parts(features):
                    entry = dict(parts(entry))
                    row[entry[1].decode()] = next(parts(next(parts(entry[2]))[1]))[1]
            at, numbers = 0, []
            while at < len(row["ids"]):
                v, at = varint(row["ids"], at)
                numbers.append(v)
            ids.append(numbers)
            values.append(np.frombuffer(row["values"], "<f4"))
            labels.append(np.frombuffer(row["label"], "<f4")[0])
            i += 16 + n
    return np.array(ids, np.int64), np.array(values, np.float32), np.array(labels, np.float32)


def torch_run(folder, epochs, told, compiled):
    import torch
    from torch import nn
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(1)

    class DeepFM(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.v = nn.Embedding(FEATURES, 1), nn.Embedding(FEATURES, K)
            nn.init.normal_(self.w.weight, 0, 0.01)
            nn.init.normal_(self.v.weight, 0, 0.01)
            sizes = (FIELDS * K, *DEEP)
            layers = [m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.ReLU(), nn.Dropout(0.5))]
            self.deep = nn.Sequential(*layers, nn.Linear(DEEP[-1], 1))

        def forward(self, ids, values):
            x = values.unsqueeze(2)
            e = self.v(ids) * x
            pairs = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(1)
            return (self.w(ids) * x).sum((1, 2)) + pairs + self.deep(e.flatten(1)).squeeze(1)

    data = [torch.from_numpy(a) for a in decoded(os.path.join(folder, "training"))]
    test = [torch.from_numpy(a) for a in decoded(os.path.join(folder, "evaluation"))]
    model = DeepFM()
    groups = [{"params": [model.w.weight, model.v.weight], "weight_decay": DECAY}, {"params": model.deep.parameters()}]
    optimizer = torch.optim.Adam(groups, lr=RATE, fused=True)
    loss = nn.BCEWithLogitsLoss()
    forward = torch.compile(model) if compiled else model

    def step(rows):
        optimizer.zero_grad(set_to_none=True)
        loss(forward(data[0][rows], data[1][rows]), data[2][rows]).backward()
        optimizer.step()

    for _ in range(epochs):
        model.train()
        told.steps(torch.randperm(len(data[0])).split(BATCH)[:len(data[0]) // BATCH], step)
        model.eval()
        with torch.no_grad():
            told.evaluated(test[2], model(test[0], test[1]))


def tf_run(folder, epochs, told):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(len(os.sched_getaffinity(0)))
    tf.random.set_seed(1)
    features = {"ids": tf.io.FixedLenFeature([FIELDS], tf.int64), "values": tf.io.FixedLenFeature([FIELDS], tf.float32),
                "label": tf.io.FixedLenFeature([], tf.float32)}

    def read(part, shuffled):
        d = tf.data.TFRecordDataset(sorted(glob.glob(os.path.join(folder, part, "*"))))
        d = d.shuffle(8192, seed=1) if shuffled else d
        d = d.batch(BATCH, drop_remainder=shuffled)
        return d.map(lambda x: tf.io.parse_example(x, features), tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def weight(shape, deviation):
        return tf.Variable(tf.random.normal(shape, 0, deviation))

    w, v = weight([FEATURES, 1], 0.01), weight([FEATURES, K], 0.01)
    sizes = (FIELDS * K, *DEEP, 1)
    layers = [(weight([a, b], (2 / (a + b)) ** 0.5), tf.Variable(tf.zeros([b]))) for a, b in zip(sizes, sizes[1:])]
    variables = [w, v, *(t for layer in layers for t in layer)]
    optimizer = tf.keras.optimizers.Adam(RATE, epsilon=1e-8)
    optimizer.build(variables)

    def logits(x, training):
        values = tf.expand_dims(x["values"], 2)
        e = tf.gather(v, x["ids"]) * values
        pairs = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(e, 1)) - tf.reduce_sum(tf.square(e), 1), 1)
        h = tf.reshape(e, [-1, FIELDS * K])
        for a, b in layers[:-1]:
            h = tf.nn.relu(h @ a + b)
            h = tf.nn.dropout(h, 0.5) if training else h
        deep = tf.squeeze(h @ layers[-1][0] + layers[-1][1], 1)
        return tf.reduce_sum(tf.gather(w, x["ids"]) * values, [1, 2]) + pairs + deep

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(x["label"], logits(x, True)))
            loss += 0.5 * DECAY * (tf.reduce_sum(tf.square(w)) + tf.reduce_sum(tf.square(v)))  # whose gradient is decay
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    evaluate = tf.function(lambda x: logits(x, False))
    training, evaluation = read("training", True), read("evaluation", False)
    for _ in range(epochs):
        told.steps(training, lambda x: step(x).numpy())
        got = [(x["label"].numpy(), evaluate(x).numpy()) for x in evaluation]
        told.evaluated(*(np.concatenate(part) for part in zip(*got)))


def main():
    kind, folder, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    told = Told()
    if kind == "tf":
        tf_run(folder, epochs, told)
    else:
        torch_run(folder, epochs, told, kind == "compile")
    print(told.line())


if __name__ == "__main__":
    main()
