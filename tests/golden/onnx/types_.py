"""One case an element type and kind of operator: movement, comparison, arithmetic, casts to every other type, products.

Inputs are small whole numbers and halves, which every type holds exactly; results that a type would round are avoided, so
that the expected numbers (numpy's) are the only right ones. Half of the operands are initializers, in both of the ways
that files store them: raw bytes, and the list of integers or floats of the element type.
"""

import numpy as np
from onnx import helper

from case import BF16, case, elem_type, node

TYPES = {"float16": np.float16, "bfloat16": BF16, "float32": np.float32, "float64": np.float64, "int8": np.int8,
         "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16,
         "uint32": np.uint32, "uint64": np.uint64, "bool": np.bool_}
FLOATS = ("float16", "bfloat16", "float32", "float64")


def listed(name, array):
    """A TensorProto that is not raw."""
    flat = array.ravel()
    if array.dtype == BF16:
        flat = flat.astype(np.float32)
    return helper.make_tensor(name, elem_type(array), array.shape, flat.tolist())


def numbers(name, shape, seed):
    rng = np.random.default_rng(seed)
    low = 0 if name.startswith("u") or name == "bool" else -6
    a = rng.integers(low, 2 if name == "bool" else 7, shape)
    return (a / 2 if name in FLOATS else a).astype(TYPES[name])


def movement(name):
    t = TYPES[name]
    a, b = numbers(name, (2, 3), 1), numbers(name, (2, 3), 2)
    i, two, pads = np.array([2, 0]), np.array([2, 2, 3]), np.array([1, 0, 0, 1])
    fill, mask = numbers(name, (), 3), np.array([[True], [False]])
    nodes = [node("Transpose", "a", "y0"), node("Concat", "a b", "y1", axis=0), node("Gather", "a i", "y2", axis=1),
             node("Where", "mask a b", "y3"), node("Expand", "b two", "y4"), node("Pad", "a pads fill", "y5"),
             node("Slice", "a one three one", "y6"), node("Reshape", "b six", "y7"), node("Identity", "fill", "y8"),
             node("GatherElements", "a e", "y9", axis=1), node("Tile", "b one_two", "y10"),
             node("ScatterElements", "a e b1", "y11", axis=1)]
    e = np.array([[2, 1], [0, 2]])
    b1 = b[:, :2].copy()
    scattered = a.copy()
    np.put_along_axis(scattered, e, b1, 1)
    want = [a.T, np.concatenate([a, b]), a[:, i], np.where(mask, a, b), np.broadcast_to(b, (2, 2, 3)),
            np.pad(a, ((1, 0), (0, 1)), constant_values=fill), a[:, 1:3], b.reshape(6), fill,
            np.take_along_axis(a, e, 1), np.tile(b, (1, 2)), scattered]
    case(f"type_{name}_movement", nodes, {"a": a, "b1": b1, "mask": mask}, 19, [np.asarray(w, t) for w in want],
         " ".join(f"y{k}" for k in range(12)),
         {"i": i, "two": two, "pads": pads, "fill": fill, "one": np.array([1]), "three": np.array([3]), "six": np.array([6]),
          "e": e, "one_two": np.array([1, 2])}, extra=[listed("b", b)])


def comparison(name):
    a, b, c = (numbers(name, (2, 4), k) for k in (4, 5, 6))
    tests = {"Equal": np.equal} if name == "bool" else {
        "Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater,
        "GreaterOrEqual": np.greater_equal}
    nodes, want = [], []
    for k, (op, f) in enumerate(tests.items()):
        nodes += [node(op, "a b", f"y{2 * k}"), node(op, "a c", f"y{2 * k + 1}")]
        want += [f(a, b), f(a, c)]
    case(f"type_{name}_comparison", nodes, {"a": a}, 19, want, " ".join(f"y{k}" for k in range(len(want))), {"b": b},
         extra=[listed("c", c)])


def arithmetic(name):
    if name == "bool":
        return
    t = TYPES[name]
    a, b = numbers(name, (2, 4), 7), numbers(name, (4,), 8)
    b[b == 0] = 2
    divided = (a / b).astype(t) if name in FLOATS else np.trunc(a.astype(float) / b.astype(float)).astype(t)
    if name in FLOATS:
        b = np.array([2, -1, 0.5, 4], t)
        divided = a / b
    nodes = [node("Add", "a b", "y0"), node("Sub", "a b", "y1"), node("Mul", "a b", "y2"), node("Div", "a b", "y3"),
             node("Min", "a b", "y4"), node("Max", "a b", "y5")]
    want = [a + b, a - b, a * b, divided, np.minimum(a, b), np.maximum(a, b)]
    if not name.startswith("u"):
        nodes += [node("Neg", "a", "y6"), node("Abs", "a", "y7"), node("Sign", "a", "y8")]
        want += [-a, np.abs(a), np.sign(a)]
    case(f"type_{name}_arithmetic", nodes, {"a": a}, 19, [np.asarray(w, t) for w in want],
         " ".join(f"y{k}" for k in range(len(want))), extra=[listed("b", b)])


def casts(name):
    a = numbers(name, (2, 4), 9)
    want = []
    for other in TYPES:
        v = np.abs(a) if other.startswith("u") and not name.startswith("u") and name != "bool" else a
        want.append((v != 0) if other == "bool" else v.astype(TYPES[other]))
    positive = np.abs(a) if not name.startswith("u") and name != "bool" else a
    nodes = [node("Cast", "p" if other.startswith("u") else "a", f"y{k}", to=elem_type(np.zeros(0, TYPES[other])))
             for k, other in enumerate(TYPES)]
    case(f"type_{name}_cast", nodes, {"a": a}, 19, want, " ".join(f"y{k}" for k in range(len(want))),
         extra=[listed("p", positive)])


def product(name):
    if name in ("int8", "int16", "uint8", "uint16", "bool"):
        return
    t = TYPES[name]
    a, b = numbers(name, (2, 2, 3), 10), numbers(name, (3, 4), 11)
    want = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(t)
    case(f"type_{name}_matmul", [node("MatMul", "a b", "y")], {"a": a}, 19, [want], extra=[listed("b", b)])
    if name in FLOATS:
        case(f"type_{name}_matmul_bound", [node("MatMul", "a b", "y")], {"a": a, "b": b}, 19, [want])


def all_cases():
    for name in TYPES:
        for kind in (movement, comparison, arithmetic, casts, product):
            kind(name)
