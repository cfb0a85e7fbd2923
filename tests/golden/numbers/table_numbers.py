#!/usr/bin/env python3
"""Tables that are updated by rows: what PyTorch gets with sparse gradients, and TensorFlow's operations on rows.

Run in an environment with torch or with tensorflow: README.md. float64 throughout.
"""
import math
import sys

import problems as P

STEPS, ROWS, WIDTH = 6, 7, 3
START = [[P.grid((i * WIDTH + k) * 0.37 - 2.5) / 2 for k in range(WIDTH)] for i in range(ROWS)]
BIAS = P.START["bias"]
# Two lookups of one table a step. Rows come up twice in one of them, in both, in some steps only, and row 5 never.
FIRST = [[2, 0, 2], [6, 2, 1], [0, 0, 0], [3, 6, 1], [2, 4, 2], [0, 1, 6]]
SECOND = [[4, 2], [1, 1], [3, 6], [3, 4], [0, 2], [2, 2]]


def gradients(step):
    """Of the rows that were looked up, and of the bias: 6 rows."""
    return [[P.grid(math.sin(1.9 * step + 0.7 * r + 1.3 * k)) * (4.0 if r == 1 else 1.0)
             for k in range(WIDTH)] for r in range(6)]


GIVEN = {"table": START, "bias": BIAS, "first": FIRST, "second": SECOND, "gradients": [gradients(t) for t in range(STEPS)]}

TORCH = [
    ("optimizer: {adam: {lr: 0.1}}\nsparse_rows: true", "SparseAdam([e], 0.1), Adam([b], 0.1)"),
    ("optimizer: {adam: {lr: 0.1, betas: [0.8, 0.9], eps: 1e-3}}\nsparse_rows: [table]",
     "SparseAdam([e], 0.1, (0.8, 0.9), 1e-3), Adam([b], 0.1, (0.8, 0.9), 1e-3)"),
    ("optimizer: {adamw: {lr: 0.1, weight_decay: 0.2}}\nno_decay: [table]\nsparse_rows: ['t*']",
     "SparseAdam([e], 0.1), AdamW([b], 0.1, weight_decay=0.2)"),
    ("optimizer: {adam: {lr: 0.1}}\nsparse_rows: true\nlr_scale: {table: 0.25}",
     "SparseAdam([e], 0.025), Adam([b], 0.1)"),
    ("optimizer: {adam: {lr: 0.1}}\nschedule: {exponential: {gamma: 0.8}}\nsparse_rows: true",
     "SparseAdam([e], 0.1), Adam([b], 0.1)", 0.8),
    ("optimizer: {sgd: {lr: 0.1}}\nsparse_rows: true", "SGD([e], 0.1), SGD([b], 0.1)"),
    ("optimizer: {adagrad: {lr: 0.5, lr_decay: 0.05, initial_accumulator: 0.1}}\nsparse_rows: true",
     "Adagrad([e], 0.5, 0.05, 0, 0.1), Adagrad([b], 0.5, 0.05, 0, 0.1)"),
    ("optimizer: {sgd: {lr: 0.1}}\nsparse_rows: true\nclip: {value: 0.25}", "SGD([e], 0.1), SGD([b], 0.1)", "value"),
    ("optimizer: {adam: {lr: 0.1}}\nsparse_rows: true\nclip: {global_norm: 0.5}",
     "SparseAdam([e], 0.1), Adam([b], 0.1)", "global"),
    ("optimizer: {adam: {lr: 0.1}}\nsparse_rows: true\nclip: {norm: 0.5}", "SparseAdam([e], 0.1), Adam([b], 0.1)",
     "each"),
]

# TensorFlow has operations; the bias goes by the dense one of the same rule.
TENSORFLOW = [
    ("optimizer: {ftrl: {lr: 0.5, l1: 0.05, l2: 0.1, beta: 0.2}}\nsparse_rows: true", "ResourceSparseApplyFtrlV2",
     lambda raw, s, i, g: raw.ResourceSparseApplyFtrlV2(
         var=s["p"].handle, accum=s["n"].handle, linear=s["z"].handle, grad=g, indices=i, lr=s["x"](0.5), l1=s["x"](0.05),
         l2=s["x"](0.1 + 0.2 / (2 * 0.5)), l2_shrinkage=s["x"](0.0), lr_power=s["x"](-0.5)), {"n": 0.1, "z": 0.0}),
    ("optimizer: {keras_adagrad: {lr: 0.5}}\nsparse_rows: true", "ResourceSparseApplyAdagradV2, epsilon inside",
     lambda raw, s, i, g: (s["n"].scatter_add(s["slices"](g * g, i)),
                           s["p"].scatter_sub(s["slices"](0.5 * g / s["sqrt"](s["rows"](s["n"], i) + 1e-7), i))),
     {"n": 0.1}),
    ("optimizer: {keras_adam: {lr: 0.1, eps: 1e-3}}\nsparse_rows: true",
     "tensorflow_addons.optimizers.LazyAdam, its lines", lambda raw, s, i, g: lazy_adam(s, i, g, 0.1, 1e-3),
     {"m": 0.0, "v": 0.0, "t": 0.0}),
    ("optimizer: {keras_sgd: {lr: 0.1}}\nsparse_rows: true", "scatter_sub",
     lambda raw, s, i, g: s["p"].scatter_sub(s["slices"](0.1 * g, i)), {}),
]


def lazy_adam(s, i, g, lr, eps, beta1=0.9, beta2=0.999):
    """_resource_apply_sparse of tensorflow_addons 0.23."""
    s["t"].assign_add(s["t"] * 0 + 1)
    t = float(s["t"].numpy().flat[0])
    lr_t = lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)
    m = beta1 * s["rows"](s["m"], i) + (1 - beta1) * g
    v = beta2 * s["rows"](s["v"], i) + (1 - beta2) * g * g
    s["m"].scatter_update(s["slices"](m, i))
    s["v"].scatter_update(s["slices"](v, i))
    s["p"].scatter_sub(s["slices"](lr_t * m / (s["sqrt"](v) + eps), i))


def torch_course(torch, case):
    e = torch.nn.Embedding(ROWS, WIDTH, sparse=True)
    with torch.no_grad():
        e.weight.copy_(torch.tensor(START))
    b = torch.nn.Parameter(torch.tensor(BIAS))
    optimizers = eval(f"[{case[1]}]", {**vars(torch.optim), "e": e.weight, "b": b})
    extra, out = case[2] if len(case) > 2 else None, []
    plans = [torch.optim.lr_scheduler.ExponentialLR(o, extra) for o in optimizers] if isinstance(extra, float) else []
    for step in range(STEPS):
        g = torch.tensor(GIVEN["gradients"][step])
        e.weight.grad = b.grad = None
        y = (e(torch.tensor(FIRST[step])) * g[:3]).sum() + (e(torch.tensor(SECOND[step])) * g[3:5]).sum()
        (y + (b * g[5]).sum()).backward()
        clip(torch, e.weight, b, extra)
        for o in optimizers + plans:
            o.step()
        out.append([float(v) for v in torch.cat([e.weight.detach().ravel(), b.detach()])])
    return out


def clip(torch, e, b, how):
    """clip_grad_* do not take sparse gradients: what they do to the dense one, to the rows that are there."""
    if not isinstance(how, str):
        return
    e.grad = e.grad.coalesce()
    dense = torch.nn.Parameter(e.detach().clone())
    dense.grad = e.grad.to_dense()
    utils = torch.nn.utils
    if how == "value":
        utils.clip_grad_value_([dense, b], 0.25)
    for group in {"global": [[dense, b]], "each": [[dense], [b]]}.get(how, []):
        utils.clip_grad_norm_(group, 0.5)
    e.grad = torch.sparse_coo_tensor(e.grad.indices(), dense.grad[e.grad.indices()[0]], e.shape)


def tensorflow_course(tf, case):
    import numpy as np

    _, _, update, memory = case
    tables = []
    for start in (np.array(START), np.array(BIAS)[:, None]):
        s = {k: tf.Variable(np.full_like(start, v)) for k, v in memory.items()}
        s.update(p=tf.Variable(start), x=lambda v: tf.constant(v, tf.float64), sqrt=tf.sqrt, rows=tf.gather,
                 slices=lambda g, i: tf.IndexedSlices(g, i))
        tables.append(s)
    out = []
    for step in range(STEPS):
        g = np.array(GIVEN["gradients"][step])
        ids = np.array(FIRST[step] + SECOND[step])
        rows = np.unique(ids)
        sums = np.array([g[:5][ids == r].sum(0) for r in rows])
        update(tf.raw_ops, tables[0], rows, tf.constant(sums))
        update(tf.raw_ops, tables[1], np.arange(WIDTH), tf.constant(g[5][:, None]))
        out.append([float(v) for s in tables for v in s["p"].numpy().ravel()])
    return out


def main():
    if sys.argv[1:] == ["tensorflow"]:
        import tensorflow as tf

        P.write("tables.tensorflow.json", f"TensorFlow {tf.__version__}, float64",
                [{"recipe": c[0], "is": c[1], "weights": tensorflow_course(tf, c)} for c in TENSORFLOW], GIVEN)
        return
    import torch

    torch.set_default_dtype(torch.float64)
    P.write("tables.torch.json", f"PyTorch {torch.__version__.split('+')[0]}, float64",
            [{"recipe": c[0], "is": "; ".join(str(x) for x in c[1:]), "weights": torch_course(torch, c)} for c in TORCH],
            GIVEN)


main()
