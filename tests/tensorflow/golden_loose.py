"""Makes tests/golden/tensorflow/loose.tar.xz: checkpoints of TensorFlow 1 graphs as trainings leave them, with much that nobody
takes beside the loss and the accuracy: an optimizer in a scope of its own, reads, initializations and the report of variables.

    python tests/tensorflow/golden_loose.py          # TensorFlow 2.21
"""
import os
import shutil
import subprocess
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "tensorflow")
v1 = tf.compat.v1


def save(folder, resource):
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        y = v1.placeholder(tf.int64, [None], name="y")
        with v1.variable_scope("net", use_resource=resource):
            w, b = v1.get_variable("w", [4, 8]), v1.get_variable("b", [8])
            out = v1.get_variable("out", [8, 3])
        logits = tf.matmul(tf.nn.relu(tf.matmul(x, w) + b), out, name="logits")
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
        with tf.name_scope("train"):
            v1.train.AdamOptimizer(1e-3).minimize(loss)
        tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32), name="accuracy")
        v1.report_uninitialized_variables()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            v1.train.Saver().save(session, os.path.join(folder, "ckpt"), write_state=False)


def main():
    folder = tempfile.mkdtemp()
    for name in ("reference", "resource"):
        save(os.path.join(folder, name), name == "resource")
    subprocess.run(["tar", "--sort=name", "--mtime=2026-01-01", "--owner=0", "--group=0", "--numeric-owner", "-C", folder,
                    "-cJf", os.path.join(here, "loose.tar.xz"), "reference", "resource"], check=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
