"""Makes tests/golden/tensorflow/files.tar.xz and files.txt: small models as TensorFlow writes them, and what it reads.

    make_files.py      in tests/tensorflow's parent's folder, with TensorFlow 2.21 and Keras 3.15

files.txt has for each file the CRC-32C of every numeric tensor of its checkpoint (or constant of its graph).
"""
import os
import shutil
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "import"))
from tensorflow_crc import crc32c

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "tensorflow")


def values(*shape):
    return (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 3) / 8


class Line(tf.Module):
    """Variables with one name, functions in functions, an own training step, text beside numbers."""

    def __init__(self):
        self.w = tf.Variable(values(3, 2), name="weight")
        self.b = tf.Variable(values(2), name="weight")
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self.word = tf.Variable(["a", "bcd"], trainable=False, name="word")

    @tf.function
    def inner(self, x):
        return tf.matmul(x, self.w) + self.b

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def forward(self, x):
        return {"y": self.inner(self.inner(x)[:, :1] * x)}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x"), tf.TensorSpec([None, 2], tf.float32, name="y")])
    def train(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.inner(x) - y))
        for v, g in zip([self.w, self.b], tape.gradient(loss, [self.w, self.b])):
            v.assign_sub(0.1 * g)
        self.step.assign_add(1)
        tf.debugging.assert_all_finite(loss, "loss")
        return {"loss": loss}


def tf1(folder):
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 6], name="x")
        y = v1.placeholder(tf.float32, [None, 2], name="y")
        with v1.variable_scope("net", partitioner=v1.fixed_size_partitioner(3), use_resource=False):
            w = v1.get_variable("w", initializer=lambda shape, dtype, partition_info: tf.constant(
                values(6, 2)[partition_info.var_offset[0]:partition_info.var_offset[0] + shape[0]]), shape=[6, 2])
        b = v1.get_variable("b", initializer=values(2), use_resource=False)
        out = tf.identity(tf.matmul(x, tf.convert_to_tensor(w)) + b, name="out")
        loss = tf.reduce_mean(tf.square(out - y), name="loss")
        v1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
        saver = v1.train.Saver()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            saver.save(session, os.path.join(folder, "tf1", "ckpt"), write_state=False)
        frozen = v1.graph_util.remove_training_nodes(v1.get_default_graph().as_graph_def())
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            frozen = v1.graph_util.convert_variables_to_constants(session, v1.get_default_graph().as_graph_def(), ["out"])
        tf.io.write_graph(frozen, folder, "frozen.pb", as_text=False)


def listing(folder):
    for name, prefix in (("line", "variables/variables"), ("keras", "variables/variables"), ("tf1", "ckpt")):
        reader = tf.train.load_checkpoint(os.path.join(folder, name, prefix))
        for key in sorted(reader.get_variable_to_shape_map()):
            value = reader.get_tensor(key)
            if isinstance(value, np.ndarray) and value.dtype != object or np.isscalar(value) and not isinstance(value, bytes):
                yield f"{name} {key} {crc32c(np.ascontiguousarray(value).tobytes()):08x}"
    graph = tf.compat.v1.GraphDef.FromString(open(os.path.join(folder, "frozen.pb"), "rb").read())
    for n in graph.node:
        if n.op == "Const" and n.attr["dtype"].type == 1:
            yield f"frozen.pb {n.name} {crc32c(tf.make_ndarray(n.attr['value'].tensor).tobytes()):08x}"


def main():
    folder = tempfile.mkdtemp()
    m = Line()
    tf.saved_model.save(m, os.path.join(folder, "line"), signatures={"serving_default": m.forward, "train": m.train})
    import keras
    keras.utils.set_random_seed(1)
    k = keras.Sequential([keras.Input([4]), keras.layers.Dense(3, name="one"), keras.layers.BatchNormalization(name="norm"),
                          keras.layers.Dense(2, name="two")])
    k.export(os.path.join(folder, "keras"), verbose=False)
    tf1(folder)
    os.makedirs(here, exist_ok=True)
    with open(os.path.join(here, "files.txt"), "w") as f:
        f.write("\n".join(listing(folder)) + "\n")
    subprocess.run(["tar", "--sort=name", "--mtime=2026-01-01", "--owner=0", "--group=0", "--numeric-owner", "-C", folder,
                    "-cJf", os.path.join(os.path.abspath(here), "files.tar.xz"), "line", "keras", "tf1", "frozen.pb"], check=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
