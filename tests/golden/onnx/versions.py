"""One case an operator and opset version that changed its schema, from the one in force at opset 7 on.

Each function under a name of RECIPES is called with the version and calls `one` with what is written in that version.
"""

import os
import re

import numpy as np
from onnx import defs, helper

from case import case, node

TIERS = os.path.join(os.path.dirname(__file__), "../../unit/onnx_tiers.c")
f32, i64 = np.float32, np.int64
op = version = domain = None


def x(*shape, lo=-1.0, hi=1.0, seed=0):
    rng = np.random.default_rng(1000 + seed)
    return rng.uniform(lo, hi, shape).astype(f32)


def ints(*v):
    return np.array(v, i64)


def one(inputs, want=None, outputs="y", tag="", skip=(), **attrs):
    """inputs: arrays, or None for one that is left out."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    n = node(op, "", outputs, domain=domain, **attrs)
    n.input.extend(names)
    given = {k: v for k, v in zip(names, inputs) if k}
    opset = 11 if domain else version
    case(f"{op.lower()}_{opset}{tag}", [n], given, opset, want, outputs, domains=[domain] if domain else ())


def axes(v, since, a):
    """Axes as attribute, or as input from the version `since` on."""
    return ({}, [ints(*a)]) if v >= since else ({"axes": list(a)}, [])


# ---- elementwise ---------------------------------------------------------------------------------------------------

UNARY = {o: (-2, 2) for o in "Neg Exp Relu Sigmoid Tanh Erf Abs Sign Floor Ceil Round Sin Cos LeakyRelu Elu Selu HardSigmoid "
         "HardSwish Swish Mish Softplus Softsign Celu ThresholdedRelu Shrink Atan Asinh Sinh Cosh Tan Gelu Identity".split()}
UNARY.update({o: (0.3, 2.5) for o in ("Sqrt", "Log", "Reciprocal")})
UNARY.update({"Acos": (-0.9, 0.9), "Asin": (-0.9, 0.9), "Atanh": (-0.9, 0.9), "Acosh": (1.1, 3)})


def unary(v):
    lo, hi = UNARY[op]
    a = x(2, 5, lo=lo, hi=hi)
    want = None
    if op == "Tan":
        a = x(2, 5)
    if op == "Round":
        want = [np.rint(a)]
    one([a], want)


def binary(v):
    one([x(2, 3, lo=0.5, hi=2), x(3, lo=0.5, hi=2, seed=1)])
    if v >= 14:
        one([np.array([-7, 7, 9], np.int8), np.array([2, -2, 4], np.int8)], tag="_int8",
            want=[np.array({"Add": [-5, 5, 13], "Sub": [-9, 9, 5], "Mul": [-14, -14, 36], "Div": [-3, -3, 2]}[op], np.int8)])


def compare(v):
    a, b = np.array([1, 2, 3, -4]), np.array([2, 2, 1, -3])
    one([a.astype(f32), b.astype(f32)])
    if v >= 9:
        one([a.astype(np.int64), b.astype(np.int64)], tag="_int64")


def logic(v):
    a, b = np.array([True, False, True, False]), np.array([[True], [False]])
    one([a] if op == "Not" else [a, b])


def bits(v):
    a, b = np.array([3, 250, 17], np.uint8), np.array([5, 4, 1], np.uint8)
    one([a] if op == "BitwiseNot" else [a, b], **({"direction": "LEFT"} if op == "BitShift" else {}))


def variadic(v):
    one([x(2, 3), x(3, seed=1), x(2, 1, seed=2)] if v >= 8 else [x(2, 3), x(2, 3, seed=1), x(2, 3, seed=2)])


def power(v):
    a, b = x(2, 3, lo=0.5, hi=2), x(3, seed=1)
    one([a, b], [a ** b])
    if v >= 12:  # the exponent has a type of its own
        one([a, np.array([2, 3, -1])], [a ** np.array([2, 3, -1], f32)], tag="_int_exponent")


def mod(v):
    one([np.array([-4, 7, 5, 4, -7, 8]), np.array([2, -3, 8, -2, 3, 5])])
    a, b = np.array([-4.3, 7.2, 5], f32), np.array([2.1, -3.4, 8], f32)
    one([a, b], [np.fmod(a, b)], tag="_fmod", fmod=1)


def where(v):
    one([np.array([[True, False], [False, True]]), x(2, 2), x(2, seed=1)])


def clip(v):
    if v < 11:
        one([x(3, 4)], min=-0.5, max=0.25)
    else:
        one([x(3, 4), np.array(-0.5, f32), np.array(0.25, f32)])
        one([x(3, 4), None, np.array(0.25, f32)], tag="_max")
    if v >= 12:
        one([np.array([-5, 3, 9]), np.array(0), np.array(4)], tag="_int64")


def cast(v):
    a = np.array([-1.5, 0, 2.75], f32)
    one([a], [a.astype(i64)], to=7)
    one([a], [a.astype(np.float16)], to=10, tag="_half")
    one([a], [a != 0], to=9, tag="_bool")


def cast_like(v):
    one([x(3), np.zeros(1, np.float64)])


def is_inf(v):
    a = np.array([1, np.inf, -np.inf, np.nan], f32)
    one([a.astype(np.float16) if v >= 20 else a], **({"detect_negative": 0} if op == "IsInf" else {}))


def prelu(v):
    one([x(2, 3, 4), x(3, 1, lo=0.1, hi=0.5, seed=1) if v >= 7 else x(1)])


def swiglu(v):
    one([x(2, 4), x(2, 4, seed=1)])


# ---- softmax: until 12 over all axes from `axis` (default 1) on, taken as one --------------------------------------

def softmax(v):
    for tag, attrs in (("", {}), ("_axis0", {"axis": 0}), ("_last", {"axis": -1})):
        if v < 11 and tag == "_last":
            continue
        a = x(2, 3, 4, lo=-3, hi=3)
        axis = attrs.get("axis", 1 if v < 13 else -1)
        shape = (int(np.prod(a.shape[:axis])), -1) if v < 13 else a.shape
        flat, k = a.reshape(shape).astype(np.float64), -1 if v < 13 else axis
        e = np.exp(flat - flat.max(k, keepdims=True))
        y = e / e.sum(k, keepdims=True)
        if op == "LogSoftmax":
            y = np.log(y)
        if op == "Hardmax":
            y = (flat == flat.max(k, keepdims=True)) * 1.0
        one([a], [y.reshape(a.shape).astype(f32)], tag=tag, **attrs)


# ---- shapes --------------------------------------------------------------------------------------------------------

def reshape(v):
    one([x(2, 3, 4), ints(0, -1)])
    if v >= 14:
        one([x(0, 3, 4), ints(3, 4, 0)], [np.zeros((3, 4, 0), f32)], tag="_allowzero", allowzero=1)


def transpose(v):
    one([x(2, 3, 4)], tag="_default")
    one([x(2, 3, 4)], perm=[1, 2, 0])


def concat(v):
    one([x(2, 3), x(2, 1, seed=1)], axis=1)
    if v >= 11:
        one([x(2, 3), x(2, 1, seed=1)], axis=-1, tag="_negative")


def split(v):
    a = x(5, 4)
    if v < 13:
        one([a], [a[:2], a[2:]], outputs="y z", axis=0, split=[2, 3])
    else:
        one([a, ints(2, 3)], [a[:2], a[2:]], outputs="y z", axis=0)
    one([a], [a[:, :2], a[:, 2:]], outputs="y z", axis=1, tag="_equal", **({"num_outputs": 2} if v >= 18 else {}))
    if v >= 18:
        one([a], [a[:3], a[3:]], outputs="y z", axis=0, num_outputs=2, tag="_uneven")


def slice_(v):
    a = x(4, 6)
    if v < 10:
        one([a], [a[1:, 0:-2]], axes=[0, 1], starts=[1, 0], ends=[1000, -2])
        return
    one([a, ints(1, 0), ints(1000, -2), ints(0, 1), ints(1, 2)], [a[1:, 0:-2:2]])
    one([a, ints(-1), ints(-100), ints(1), ints(-1)], [a[:, ::-1]], tag="_reverse")


def squeeze(v):
    attrs, more = axes(v, 13, [0, 2] if op == "Squeeze" else [0, 3])
    one([x(1, 3, 1, 2) if op == "Squeeze" else x(3, 2)] + more, **attrs)
    if op == "Squeeze":
        one([x(1, 3, 1)], tag="_all")
    if v >= 11:
        attrs, more = axes(v, 13, [-2])
        one([x(1, 3, 1, 2) if op == "Squeeze" else x(3, 2)] + more, tag="_negative", **attrs)


def flatten(v):
    a = x(2, 3, 4)
    one([a], [a.reshape(2, 12)])
    one([a], [a.reshape(1, 24)], axis=0, tag="_axis0")
    if v >= 11:
        one([a], [a.reshape(6, 4)], axis=-1, tag="_negative")


def expand(v):
    one([x(3, 1), ints(2, 1, 4)])


def constant(v):
    value = np.array([[1, 2], [3, 4]], f32)
    from case import tensor
    one([], [value], value=tensor(value, "v"))
    if v >= 12:
        one([], [np.array(2.5, f32)], value_float=2.5, tag="_float")
        one([], [ints(3, 4)], value_ints=[3, 4], tag="_ints")


def constant_of_shape(v):
    from case import tensor
    one([ints(2, 3)], [np.full((2, 3), 7, i64)], value=tensor(ints(7), "v"))
    one([ints(2)], [np.zeros(2, f32)], tag="_default")


def shape(v):
    one([x(2, 3, 4)], [ints(2, 3, 4)] if op == "Shape" else [np.array(24)])
    if v >= 15 and op == "Shape":
        one([x(2, 3, 4)], [ints(3, 4)], start=-2, tag="_start")
        one([x(2, 3, 4)], [ints(2)], end=-2, tag="_end")


def pad(v):
    a = x(2, 3)
    if v < 11:
        one([a], [np.pad(a, ((0, 1), (2, 0)), constant_values=1.5)], pads=[0, 2, 1, 0], value=1.5)
        one([a], [np.pad(a, ((0, 1), (2, 0)), mode="reflect")], pads=[0, 2, 1, 0], mode="reflect", tag="_reflect")
        return
    one([a, ints(0, 2, 1, 0), np.array(1.5, f32)], [np.pad(a, ((0, 1), (2, 0)), constant_values=1.5)])
    one([a, ints(0, 2, 1, 0)], [np.pad(a, ((0, 1), (2, 0)), mode="edge")], mode="edge", tag="_edge")
    if v >= 18:
        one([a, ints(2, 1), None, ints(-1)], [np.pad(a, ((0, 0), (2, 1)))], tag="_axes")
    if v >= 19:
        one([a, ints(0, 2, 1, 0)], [np.pad(a, ((0, 1), (2, 0)), mode="wrap")], mode="wrap", tag="_wrap")


def tile(v):
    one([x(2, 3), ints(2, 1)])


def range_(v):
    one([np.array(1, f32), np.array(4, f32), np.array(0.5, f32)])


def trilu(v):
    one([x(3, 4)])
    one([x(3, 4), np.array(-1)], upper=0, tag="_lower")


def depth_to_space(v):
    a = x(1, 8, 2, 4)
    one([a], blocksize=2)
    if v >= 11 and op == "DepthToSpace":
        one([a], blocksize=2, mode="CRD", tag="_crd")


def eye_like(v):
    one([x(3, 4)], k=1)


def resize(v):
    a = x(1, 1, 3, 3)
    twice = [np.repeat(np.repeat(a, 2, 2), 2, 3)]
    scales = np.array([1, 1, 2, 2], f32)
    if op == "Upsample":
        one([a] if v < 9 else [a, scales], twice, mode="nearest", **({"scales": [1.0, 1.0, 2.0, 2.0]} if v < 9 else {}))
        return
    if v < 11:
        one([a, scales], twice, mode="nearest")
        half = [a[:, :, ::2, ::2][:, :, :1, :1]]
        one([a, np.array([1, 1, 0.5, 0.5], f32)], half, mode="nearest", tag="_half")
        return
    empty = np.zeros(0, f32)
    one([a, empty if v < 13 else None, scales], twice, mode="nearest")
    one([a, empty if v < 13 else None, empty if v < 13 else None, ints(1, 1, 5, 4)], mode="linear", tag="_linear_sizes",
        coordinate_transformation_mode="align_corners")
    if v >= 18:
        one([a, None, np.array([2, 2], f32)], twice, mode="nearest", axes=[2, 3], tag="_axes")
        one([a, None, np.array([0.6, 0.6], f32)], mode="linear", axes=[2, 3], antialias=1, tag="_antialias")
    if v >= 19:
        one([a, None, np.array([1.5, 1.5], f32)], mode="linear", axes=[2, 3], tag="_half_pixel_symmetric",
            coordinate_transformation_mode="half_pixel_symmetric")


def reverse_sequence(v):
    one([x(4, 3), ints(1, 2, 4)], time_axis=0, batch_axis=1)


# ---- products, windows, norms --------------------------------------------------------------------------------------

def matmul(v):
    one([x(2, 3, 4), x(4, 5, seed=1)])
    if v >= 9:
        one([np.array([[1, 2], [3, 4]]), np.array([[1], [-1]])], [np.array([[-1], [-1]])], tag="_int64")


def gemm(v):
    one([x(4, 2), x(3, 4, seed=1), x(3, seed=2)], transA=1, transB=1, alpha=0.5, beta=2.0)
    if v >= 11:
        one([x(2, 4), x(4, 3, seed=1)], tag="_no_c")


def einsum(v):
    one([x(2, 3), x(3, 4, seed=1)], equation="ij,jk->ik")


def conv(v):
    if op == "Conv":
        one([x(1, 2, 5, 5), x(3, 2, 3, 3, seed=1), x(3, seed=2)], pads=[1, 1, 1, 1], strides=[2, 2])
    else:
        one([x(1, 2, 3, 3), x(2, 3, 3, 3, seed=1)], strides=[2, 2])


def pool(v):
    a = x(1, 2, 5, 5)
    one([a], kernel_shape=[2, 2], strides=[2, 2])
    if v >= 10 and op in ("MaxPool", "AveragePool") or v >= 18:
        b = x(1, 1, 4, 4)
        q = np.full((1, 1, 5, 5), {"MaxPool": -np.inf}.get(op, 0.0), f32)
        q[:, :, :4, :4] = b
        count = np.zeros((5, 5))
        count[:4, :4] = 1
        w = [[(q[0, 0, i:i + 3, j:j + 3], count[i:i + 3, j:j + 3].sum()) for j in (0, 2)] for i in (0, 2)]
        how = {"MaxPool": lambda p, n: p.max(), "AveragePool": lambda p, n: p.sum() / n,
               "LpPool": lambda p, n: np.sqrt((p ** 2).sum())}[op]
        want = np.array([[how(*p) for p in row] for row in w], f32).reshape(1, 1, 2, 2)
        one([b], [want], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, tag="_ceil")
    if v >= 10 and op == "MaxPool" or v >= 19 and op == "AveragePool" or v >= 18 and op == "LpPool":
        b = a.astype(np.float64)
        taps = np.stack([b[:, :, i:i + 3, j:j + 3] for i in (0, 2) for j in (0, 2)])
        want = {"MaxPool": taps.max(0), "AveragePool": taps.mean(0), "LpPool": np.sqrt((taps ** 2).sum(0))}[op]
        one([a], [want.astype(f32)], kernel_shape=[2, 2], dilations=[2, 2], tag="_dilated")


def global_pool(v):
    one([x(2, 3, 4, 4)])


def batch_normalization(v):
    a, scale, bias, mean, var = x(2, 3, 4), x(3, seed=1), x(3, seed=2), x(3, seed=3), x(3, lo=0.5, hi=2, seed=4)
    c = lambda p: p[:, None]
    one([a, scale, bias, mean, var], [c(scale) * (a - c(mean)) / np.sqrt(c(var) + f32(1e-3)) + c(bias)], epsilon=1e-3)
    if v >= 14:
        m, s = a.mean((0, 2)), a.var((0, 2))
        one([a, scale, bias, mean, var], [c(scale) * (a - c(m)) / np.sqrt(c(s) + f32(1e-5)) + c(bias),
                                          mean * f32(0.8) + m * f32(0.2), var * f32(0.8) + s * f32(0.2)],
            outputs="y mean var", training_mode=1, momentum=0.8, tag="_training")


def layer_normalization(v):
    one([x(2, 3, 4), x(4, seed=1)] + ([x(4, seed=2)] if op == "LayerNormalization" else []))


def instance_normalization(v):
    one([x(2, 3, 4), x(3, seed=1), x(3, seed=2)])


def group_normalization(v):
    """Scale and bias: one a group in 18, one a channel in 21."""
    a, n = x(2, 4, 3), 2 if v < 21 else 4
    scale, bias = x(n, seed=1), x(n, seed=2)
    g = a.reshape(2, 2, 6).astype(np.float64)
    g = ((g - g.mean(2, keepdims=True)) / np.sqrt(g.var(2, keepdims=True) + 1e-5)).reshape(2, 4, 3)
    wide = lambda p: np.repeat(p, 4 // n)[:, None]
    one([a, scale, bias], [(wide(scale) * g + wide(bias)).astype(f32)], num_groups=2)


def dropout(v):
    a = x(2, 3)
    if v < 12:
        one([a], [a], ratio=0.25)
        return
    one([a, np.array(0.25, f32), np.array(False)], [a])
    one([a, np.array(0.25, f32)], [a, np.ones((2, 3), bool)], outputs="y mask", tag="_mask")


def attention(v):
    one([x(1, 2, 3, 4), x(1, 2, 5, 4, seed=1), x(1, 2, 5, 4, seed=2)])
    one([x(1, 2, 3, 4), x(1, 2, 3, 4, seed=1), x(1, 2, 3, 4, seed=2)], is_causal=1, tag="_causal")
    one([x(1, 3, 8), x(1, 3, 4, seed=1), x(1, 3, 4, seed=2)], q_num_heads=4, kv_num_heads=2, tag="_gqa")
    if v >= 24:  # lengths of the keys that count
        q, k, w = x(1, 1, 2, 4), x(1, 1, 4, 4, seed=1), x(1, 1, 4, 4, seed=2)
        s = (q.astype(np.float64) @ k.transpose(0, 1, 3, 2) / 2)[..., :3]
        e = np.exp(s)
        one([q, k, w, None, None, None, ints(3)], [(e / e.sum(-1, keepdims=True) @ w[:, :, :3]).astype(f32)],
            tag="_lengths")


def rotary(v):
    one([x(1, 2, 3, 4), x(5, 2, seed=1), x(5, 2, seed=2), np.array([[0, 1, 2]])])


def lrn(v):
    one([x(1, 5, 2, 2)], size=3)


def lp_normalization(v):
    one([x(2, 3)], axis=1, p=2)


def mean_variance(v):
    a = x(2, 3, 2, 2)
    d = a.astype(np.float64)
    y = (d - d.mean((0, 2, 3), keepdims=True)) / (d.std((0, 2, 3), keepdims=True) + 1e-9)
    one([a], [y.astype(f32)])


# ---- index, reduction ----------------------------------------------------------------------------------------------

def gather(v):
    one([x(4, 3), np.array([[0, 3], [1, 1]])], axis=0)
    if v >= 11:
        one([x(4, 3), np.array([-1, 0])], axis=1, tag="_negative")


def gather_elements(v):
    one([x(3, 3), np.array([[0, 2, -1]])], axis=0)


def gather_nd(v):
    one([x(2, 2, 3), np.array([[0, 1], [1, 0]])])
    if v >= 12:
        one([x(2, 2, 3), np.array([[1], [0]])], batch_dims=1, tag="_batch")


def scatter_elements(v):
    a, i, u = x(3, 3), np.array([[1, 0, 2]]), x(1, 3, seed=1)
    y = a.copy()
    for c in range(3):
        y[i[0, c], c] = u[0, c]
    one([a, i, u], [y], axis=0)
    if v >= 16:
        y = a.copy()
        for c in range(3):
            y[1, c] += u[0, c]
        one([a, np.array([[1, 1, 1]]), u], [y], axis=0, reduction="add", tag="_add")
    if v >= 18:
        y = a.copy()
        for c in range(3):
            y[1, c] = max(y[1, c], u[0, c])
        one([a, np.array([[1, 1, 1]]), u], [y], axis=0, reduction="max", tag="_max")


def scatter_nd(v):
    a, u = x(4, 2), x(2, 2, seed=1)
    y = a.copy()
    y[[2, 0]] = u
    one([a, np.array([[2], [0]]), u], [y])
    for tag, since, f in (("add", 16, np.add), ("max", 18, np.maximum)):
        if v >= since:
            y = a.copy()
            y[[2, 0]] = f(y[[2, 0]], u)
            one([a, np.array([[2], [0]]), u], [y], reduction=tag, tag="_" + tag)


def one_hot(v):
    one([ints(0, 2, 1), np.array(3), np.array([-1, 2], f32)])
    if v >= 11:
        one([ints(0, -1), np.array(3), np.array([0, 1], f32)], [np.array([[1, 0, 0], [0, 0, 1]], f32)], tag="_negative")


def arg(v):
    a = np.array([[1, 3, 3], [2, 0, 0]], f32)
    pick = np.argmax if op == "ArgMax" else np.argmin
    one([a], [pick(a, 1)], axis=1, keepdims=0)
    if v >= 12:
        last = 2 - pick(a[:, ::-1], 1)
        one([a], [last], axis=1, keepdims=0, select_last_index=1, tag="_last")


def top_k(v):
    a = np.array([[3, 1, 4, 1.5], [9, 2, 6, 5]], f32)
    order = np.argsort(-a, 1)[:, :2]
    want = [np.take_along_axis(a, order, 1), order]
    one([a] if v < 10 else [a, ints(2)], want, outputs="y i", axis=1, **({"k": 2} if v < 10 else {}))
    if v >= 11:
        order = np.argsort(a, 1)[:, :2]
        one([a, ints(2)], [np.take_along_axis(a, order, 1), order], outputs="y i", largest=0, tag="_smallest")


def reduce(v):
    since = 13 if op == "ReduceSum" else 18
    attrs, more = axes(v, since, [0, 2])
    a = x(2, 3, 4, lo=0.2, hi=1.5)
    f = {"ReduceMean": lambda d, ax: d.mean(ax, keepdims=True), "ReduceSum": lambda d, ax: d.sum(ax, keepdims=True),
         "ReduceMax": lambda d, ax: d.max(ax, keepdims=True), "ReduceMin": lambda d, ax: d.min(ax, keepdims=True),
         "ReduceProd": lambda d, ax: d.prod(ax, keepdims=True), "ReduceL1": lambda d, ax: abs(d).sum(ax, keepdims=True),
         "ReduceL2": lambda d, ax: np.sqrt((d ** 2).sum(ax, keepdims=True)),
         "ReduceSumSquare": lambda d, ax: (d ** 2).sum(ax, keepdims=True),
         "ReduceLogSum": lambda d, ax: np.log(d.sum(ax, keepdims=True)),
         "ReduceLogSumExp": lambda d, ax: np.log(np.exp(d).sum(ax, keepdims=True))}[op]
    d = a.astype(np.float64)
    one([a] + more, [f(d, (0, 2)).astype(f32)], **attrs)
    one([a], [f(d, (0, 1, 2)).astype(f32).reshape(())], tag="_all", keepdims=0)
    if v >= 11:
        attrs, more = axes(v, since, [-1])
        one([a] + more, [f(d, -1).astype(f32)[..., 0]], tag="_negative", keepdims=0, **attrs)
    if v >= since:
        one([a], [a], tag="_noop", noop_with_empty_axes=1) if op in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin",
                                                                     "ReduceProd") else None
    if v >= 20 and op in ("ReduceMax", "ReduceMin"):
        b = np.array([[True, False], [True, True]])
        one([b, ints(1)], [b.all(1) if op == "ReduceMin" else b.any(1)], keepdims=0, tag="_bool")


def cumulate(v):
    one([x(2, 4, lo=0.5, hi=1.5), np.array(1)])
    one([x(2, 4, lo=0.5, hi=1.5), np.array(-1)], reverse=1, exclusive=1, tag="_reverse_exclusive")


def det(v):
    one([x(2, 3, 3)])


# ---- recurrent, losses, optimizers ---------------------------------------------------------------------------------

def recurrent(v):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    one([x(3, 2, 4), x(1, gates * 5, 4, seed=1), x(1, gates * 5, 5, seed=2)], hidden_size=5, outputs="y h")
    if v >= 14:  # layout came
        a = [x(2, 3, 4), x(1, gates * 5, 4, seed=1), x(1, gates * 5, 5, seed=2)]
        h, c = np.zeros((2, 5)), np.zeros((2, 5))
        s = lambda p: 1 / (1 + np.exp(-p))
        ys = []
        for t in range(3):
            xt, w, r = a[0][:, t].astype(np.float64), a[1][0].T, a[2][0].T
            if op == "RNN":
                h = np.tanh(xt @ w + h @ r)
            elif op == "GRU":
                wz, wr, wh = np.split(xt @ w, 3, 1)
                z, reset = s(wz + h @ r[:, :5]), s(wr + h @ r[:, 5:10])
                h = (1 - z) * np.tanh(wh + (reset * h) @ r[:, 10:]) + z * h
            else:
                i, o, f, g = np.split(xt @ w + h @ r, 4, 1)
                c = s(f) * c + s(i) * np.tanh(g)
                h = s(o) * np.tanh(c)
            ys.append(h)
        one(a, [np.stack(ys, 1)[:, :, None].astype(f32), h[:, None].astype(f32)], hidden_size=5, outputs="y h", layout=1,
            tag="_layout")


def loss(v):
    a = x(3, 4)
    if op.startswith("Neg"):
        a = np.log(np.abs(a) + f32(0.1))
    one([a, ints(0, 2, 3)])
    one([a, ints(0, 2, 3), x(4, lo=0.5, hi=1, seed=1)], tag="_weighted")


def optimizer(v):
    a = [np.array(0.1, f32), np.array(2), x(3), x(3, seed=1), x(3, lo=0.1, hi=1, seed=2)]
    if op == "Adam":
        r, t, w, g, m = (p.astype(np.float64) for p in a)
        s = x(3, lo=0.1, hi=1, seed=3)
        m, q = 0.9 * m + 0.1 * g, 0.99 * s + 0.01 * g * g
        y = w - r * np.sqrt(1 - 0.99 ** t) / (1 - 0.9 ** t) * m / (np.sqrt(q) + 1e-2)
        one(a + [s], [p.astype(f32) for p in (y, m, q)], outputs="y v h", alpha=0.9, beta=0.99, epsilon=1e-2)
    elif op == "Momentum":
        one(a, outputs="y v", alpha=0.9, beta=0.5, norm_coefficient=0.01, mode="nesterov")
    else:
        one(a, outputs="y h", epsilon=1e-2, norm_coefficient=0.01)


GROUPS = {
    binary: "Add Sub Mul Div", power: "Pow", compare: "Equal Greater Less GreaterOrEqual LessOrEqual", logic: "Not And Or Xor",
    bits: "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitShift", variadic: "Sum Min Max Mean", mod: "Mod", where: "Where",
    clip: "Clip", cast: "Cast", cast_like: "CastLike", is_inf: "IsInf IsNaN", prelu: "PRelu", swiglu: "SwiGLU",
    softmax: "Softmax LogSoftmax Hardmax", reshape: "Reshape", transpose: "Transpose", concat: "Concat", split: "Split",
    slice_: "Slice", squeeze: "Squeeze Unsqueeze", flatten: "Flatten", expand: "Expand", constant: "Constant",
    constant_of_shape: "ConstantOfShape", shape: "Shape Size", pad: "Pad", tile: "Tile", range_: "Range", trilu: "Trilu",
    depth_to_space: "DepthToSpace SpaceToDepth", eye_like: "EyeLike", resize: "Resize Upsample",
    reverse_sequence: "ReverseSequence", matmul: "MatMul", gemm: "Gemm", einsum: "Einsum", conv: "Conv ConvTranspose",
    pool: "MaxPool AveragePool LpPool", global_pool: "GlobalAveragePool GlobalMaxPool",
    batch_normalization: "BatchNormalization", layer_normalization: "LayerNormalization RMSNormalization",
    instance_normalization: "InstanceNormalization", group_normalization: "GroupNormalization", dropout: "Dropout",
    attention: "Attention", rotary: "RotaryEmbedding", lrn: "LRN", lp_normalization: "LpNormalization",
    mean_variance: "MeanVarianceNormalization", gather: "Gather", gather_elements: "GatherElements", gather_nd: "GatherND",
    scatter_elements: "Scatter ScatterElements", scatter_nd: "ScatterND", one_hot: "OneHot", arg: "ArgMax ArgMin",
    top_k: "TopK", cumulate: "CumSum CumProd", det: "Det", recurrent: "RNN GRU LSTM",
    loss: "SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss", optimizer: "Adam Adagrad Momentum",
    reduce: "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum "
            "ReduceLogSumExp",
}
RECIPES = {name: f for f, names in GROUPS.items() for name in names.split()}
RECIPES.update({name: unary for name in UNARY})


def versions_of(name, where):
    """What changed after opset 7, and what was in force there."""
    known = sorted({s.since_version for s in defs.get_all_schemas_with_history() if s.name == name and s.domain == where})
    first = max([v for v in known if v <= 7], default=0)
    return [v for v in known if v >= first]


def all_cases():
    global op, version, domain
    deprecated = {("Upsample", 10), ("Scatter", 11)}
    for name, where_ in re.findall(r'\{"(\w+)", "([\w.]*)",', open(TIERS).read()):
        for v in versions_of(name, where_):
            if (name, v) in deprecated:
                continue
            op, domain = name, where_
            version = v if where_ else max(v, 7)
            RECIPES[name](v)
