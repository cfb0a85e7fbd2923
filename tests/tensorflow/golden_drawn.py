"""Makes tests/golden/tensorflow/drawn: a SavedModel whose results are random, of which tests/unit/tf_drawn.c counts how they
are distributed, and one that is a table with other numbers in some places.

    python tests/tensorflow/golden_drawn.py          # TensorFlow 2.21
"""
import os
import shutil

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "tensorflow", "drawn")
raw = tf.raw_ops


class Drawn(tf.Module):
    def __init__(self):
        self.generator = tf.random.Generator.from_seed(1)
        self.table = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2), trainable=False, name="table")
        self.weight = tf.Variable(np.ones(3, np.float32), name="weight")

    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32)])
    def __call__(self, logits):
        logits = logits * self.weight
        self.table.scatter_nd_add([[0, 1], [2, 0], [0, 1]], [10.0, 20.0, 30.0])
        self.table.scatter_nd_update([[1, 1]], [-5.0])
        self.table.scatter_nd_sub([[1, 0]], [0.5])
        self.table[2, 1:].assign([8.0])
        state = self.generator.state.handle
        rows = tf.reshape(tf.range(600, dtype=tf.float32), [200, 3])
        return {
            "shuffled": tf.random.shuffle(rows),
            "again": tf.random.experimental.stateless_shuffle(rows, [1, 2]),
            "classes": tf.random.categorical(logits, 3000),
            "same": tf.random.stateless_categorical(logits, 3000, [1, 2], dtype=tf.int32),
            "whole": raw.StatefulUniformInt(resource=state, algorithm=1, shape=[3000], minval=5, maxval=15),
            "table": self.table.read_value(),
            "cut": raw.StatefulTruncatedNormal(resource=state, algorithm=1, shape=[3000]),
        }


shutil.rmtree(here, ignore_errors=True)
model = Drawn()
tf.saved_model.save(model, here, signatures=model.__call__)
os.remove(os.path.join(here, "fingerprint.pb"))
