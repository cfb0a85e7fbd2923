#!/usr/bin/env python3
"""Writes tests/golden/tensorflow/step/ (a SavedModel) and step.txt with the real TensorFlow.

The model trains itself: every optimizer that TensorFlow has as an operation renews a vector of its own, rows of a table
get sparse updates, a batch normalization moves its statistics, a branch and a loop are in the way. step.txt: inputs of
each step, losses, and all variables behind the last step. tests/unit/tf_step.c runs it.
"""
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf

raw = tf.raw_ops
STEPS, BATCH, SIZE, ROWS = 4, 6, 5, 7
# name: slots (initial value of each), arguments
DENSE = {
    "GradientDescent": ([], lambda v, s, g: dict(alpha=0.1, delta=g)),
    "Momentum": ([0], lambda v, s, g: dict(accum=s[0], lr=0.1, grad=g, momentum=0.9, use_nesterov=True)),
    "KerasMomentum": ([0], lambda v, s, g: dict(accum=s[0], lr=0.1, grad=g, momentum=0.9, use_nesterov=True)),
    "Adam": ([0, 0], lambda v, s, g: dict(m=s[0], v=s[1], beta1_power=0.9, beta2_power=0.999, lr=0.1, beta1=0.9, beta2=0.999, epsilon=1e-7, grad=g)),
    "AdamWithAmsgrad": ([0, 0, 0], lambda v, s, g: dict(m=s[0], v=s[1], vhat=s[2], beta1_power=0.9, beta2_power=0.999, lr=0.1, beta1=0.9, beta2=0.999, epsilon=1e-7, grad=g)),
    "AdaMax": ([0, 0], lambda v, s, g: dict(m=s[0], v=s[1], beta1_power=0.9, lr=0.1, beta1=0.9, beta2=0.999, epsilon=1e-7, grad=g)),
    "RMSProp": ([0, 0], lambda v, s, g: dict(ms=s[0], mom=s[1], lr=0.01, rho=0.9, momentum=0.5, epsilon=1e-7, grad=g)),
    "CenteredRMSProp": ([0, 0, 0], lambda v, s, g: dict(mg=s[0], ms=s[1], mom=s[2], lr=0.01, rho=0.9, momentum=0.5, epsilon=1e-3, grad=g)),
    "Adagrad": ([0.1], lambda v, s, g: dict(accum=s[0], lr=0.1, grad=g)),
    "AdagradV2": ([0.1], lambda v, s, g: dict(accum=s[0], lr=0.1, epsilon=1e-7, grad=g)),
    "Adadelta": ([0, 0], lambda v, s, g: dict(accum=s[0], accum_update=s[1], lr=1.0, rho=0.9, epsilon=1e-3, grad=g)),
    "Ftrl": ([0.1, 0], lambda v, s, g: dict(accum=s[0], linear=s[1], lr=0.1, l1=0.01, l2=0.01, lr_power=-0.5, grad=g)),
    "FtrlV2": ([0.1, 0], lambda v, s, g: dict(accum=s[0], linear=s[1], lr=0.1, l1=0.01, l2=0.01, l2_shrinkage=0.02, lr_power=-0.5, grad=g)),
    "PowerSign": ([0], lambda v, s, g: dict(m=s[0], lr=0.01, logbase=1.0, sign_decay=0.5, beta=0.9, grad=g)),
    "AddSign": ([0], lambda v, s, g: dict(m=s[0], lr=0.01, alpha=1.0, sign_decay=0.5, beta=0.9, grad=g)),
}
SPARSE = ["Momentum", "Adagrad", "AdagradV2", "RMSProp", "Adadelta", "Ftrl"]
rng = np.random.default_rng(11)


def numbers(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


class Model(tf.Module):
    def __init__(self):
        self.dense = {n: tf.Variable(numbers(SIZE), name=f"dense/{n}") for n in DENSE}
        self.slots = {n: [tf.Variable(np.full(SIZE, x, np.float32), name=f"slot/{n}_{k}") for k, x in enumerate(DENSE[n][0])] for n in DENSE}
        self.table = {n: tf.Variable(numbers(ROWS, 3), name=f"table/{n}") for n in SPARSE}
        self.rows = {n: [tf.Variable(np.full((ROWS, 3), x, np.float32), name=f"rows/{n}_{k}") for k, x in enumerate(DENSE[n][0])] for n in SPARSE}
        self.gamma = tf.Variable(numbers(SIZE) + 1.5, name="norm/gamma")
        self.beta = tf.Variable(numbers(SIZE), name="norm/beta")
        self.mean = tf.Variable(np.zeros(SIZE, np.float32), trainable=False, name="norm/moving_mean")
        self.variance = tf.Variable(np.ones(SIZE, np.float32), trainable=False, name="norm/moving_variance")
        self.count = tf.Variable(0, dtype=tf.int64, trainable=False, name="count")

    def net(self, x, ids, training):
        planes = tf.reshape(x, [-1, 1, 1, SIZE])
        if training:
            y, mean, var = tf.compat.v1.nn.fused_batch_norm(planes, self.gamma, self.beta, epsilon=0.01)
            self.mean.assign_sub((self.mean - mean) * 0.1)
            self.variance.assign_sub((self.variance - var) * 0.1)
        else:
            y, _, _ = tf.compat.v1.nn.fused_batch_norm(planes, self.gamma, self.beta, self.mean, self.variance, epsilon=0.01, is_training=False)
        y = tf.reshape(y, [-1, SIZE])
        total = tf.add_n([tf.linalg.matvec(y, w) for w in self.dense.values()])
        for t in self.table.values():
            total += tf.reduce_sum(tf.reduce_mean(tf.gather(t, ids), 1), -1)
        return total

    @tf.function(input_signature=[tf.TensorSpec([None, SIZE]), tf.TensorSpec([None, 2], tf.int32)])
    def forward(self, x, ids):
        return self.net(x, ids, False)

    @tf.function(input_signature=[tf.TensorSpec([None, SIZE]), tf.TensorSpec([None, 2], tf.int32), tf.TensorSpec([None])])
    def train(self, x, ids, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.math.squared_difference(self.net(x, ids, True), y))
        watched = [*self.dense.values(), *self.table.values(), self.gamma, self.beta]
        grads = tape.gradient(loss, watched)
        for (n, v), g in zip(self.dense.items(), grads):
            getattr(raw, "ResourceApply" + n)(var=v.handle, **{k: s.handle if isinstance(s, tf.Variable) else s for k, s in DENSE[n][1](v, self.slots[n], g).items()})
        for (n, v), g in zip(self.table.items(), grads[len(self.dense):]):
            unique, at = tf.unique(g.indices)
            merged = tf.math.unsorted_segment_sum(g.values, at, tf.shape(unique)[0])
            a = {k: s.handle if isinstance(s, tf.Variable) else s for k, s in DENSE[n][1](v, self.rows[n], merged).items()}
            getattr(raw, "ResourceSparseApply" + n)(var=v.handle, indices=unique, **a)
        rate = tf.cond(self.count < 2, lambda: 0.05, lambda: 0.01)
        scale = 1.0
        for _ in tf.range(3):
            scale *= 0.9
        self.gamma.assign_sub(rate * scale * grads[-2])
        self.beta.assign_sub(rate * grads[-1])
        self.count.assign_add(1)
        return loss


def write(out, name, value):
    value = np.asarray(value)
    out.write(f"{name} {value.size} " + " ".join(f"{v:.9g}" for v in value.reshape(-1).astype(float)) + "\n")


def strip(path):
    """Takes out what no reader needs: functions that no node reaches, and attributes that tell shapes again."""
    from tensorflow.core.protobuf import saved_model_pb2

    model = saved_model_pb2.SavedModel.FromString(open(path, "rb").read())
    graph = model.meta_graphs[0].graph_def
    functions = {fn.signature.name: fn for fn in graph.library.function}
    wanted, open_nodes = set(), list(graph.node)
    while open_nodes:
        for value in open_nodes.pop().attr.values():
            if value.func.name and value.func.name not in wanted:
                wanted.add(value.func.name)
                open_nodes += functions[value.func.name].node_def
    del graph.library.function[:]
    graph.library.function.extend(fn for name, fn in functions.items() if name in wanted)
    for holder in [graph.node] + [fn.node_def for fn in graph.library.function]:
        for node in holder:
            node.ClearField("experimental_debug_info")
            for key in [k for k in node.attr if k.startswith("_") or k == "config_proto"]:
                del node.attr[key]
    for fn in graph.library.function:
        fn.arg_attr.clear()
        fn.attr.clear()
    model.meta_graphs[0].object_graph_def.concrete_functions.clear()
    for node in model.meta_graphs[0].object_graph_def.nodes:
        if node.WhichOneof("kind") == "function":
            node.ClearField("function")
    with open(path, "wb") as out:
        out.write(model.SerializeToString(deterministic=True))


def main(folder):
    model = Model()
    where = os.path.join(folder, "step")
    shutil.rmtree(where, ignore_errors=True)
    tf.saved_model.save(model, where, signatures={"forward": model.forward.get_concrete_function(), "train": model.train.get_concrete_function()})
    strip(os.path.join(where, "saved_model.pb"))
    with open(os.path.join(folder, "step.txt"), "w") as out:
        for _ in range(STEPS):
            x, ids, y = numbers(BATCH, SIZE), rng.integers(0, ROWS, (BATCH, 2)).astype(np.int32), numbers(BATCH)
            write(out, "x", x), write(out, "ids", ids), write(out, "y", y)
            write(out, "forward", model.forward(tf.constant(x), tf.constant(ids)))
            write(out, "loss", model.train(tf.constant(x), tf.constant(ids), tf.constant(y)))
        for v in model.variables:
            write(out, v.name.removesuffix(":0"), v)
    for name in ["fingerprint.pb", "assets"]:
        path = os.path.join(where, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
    print(sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(where) for f in fs), "bytes")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../golden/tensorflow"))
