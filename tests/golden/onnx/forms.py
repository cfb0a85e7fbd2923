"""Forms of models: local functions, sequences, optionals and control flow that fold away, weights in other files, and
single operators of which the ONNX project has no case with a gradient. Expected numbers are numpy's or the standard's
reference."""

import math

import numpy as np
import onnx
from onnx import helper

import case as c
from case import case, node, tensor, value
from versions import ints, x

f32 = np.float32
TYPE_FLOAT = onnx.TensorProto.FLOAT


def info(name):
    return onnx.ValueInfoProto(name=name)


def reference(a):
    """From an attribute of the function that the node is in."""
    return onnx.AttributeProto(name=a[0], ref_attr_name=a[1], type=a[2])


# ---- local functions -----------------------------------------------------------------------------------------------

def functions():
    sets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    leaky = node("LeakyRelu", "a", "b")
    leaky.attribute.append(reference(("alpha", "slope", onnx.AttributeProto.FLOAT)))
    inner = helper.make_function("local", "Inner", ["a"], ["b"], [leaky], sets, ["slope"])
    call = node("Inner", "a", "h", domain="local")
    call.attribute.append(reference(("slope", "outer_slope", onnx.AttributeProto.FLOAT)))
    outer = helper.make_function("local", "Outer", ["a", "w"], ["b"], [call, node("MatMul", "h w", "b")], sets,
                                 ["outer_slope"])
    fixed = helper.make_function("local", "Fixed", ["a"], ["b"], [leaky], sets, [],
                                 [helper.make_attribute("slope", 0.25)])
    a, w = x(3, 4), x(4, 2, seed=1)
    lk = lambda v, s: np.where(v < 0, v * f32(s), v)
    both = [node("Outer", "a w", "y", domain="local", outer_slope=0.3)]
    case("function_nested_attribute", both, {"a": a}, 18, [lk(a, 0.3) @ w], weights={"w": w}, domains=["local"],
         functions=[inner, outer])
    twice = [node("Fixed", "a", "b", domain="local"), node("Fixed", "b", "y", domain="local", slope=0.5)]
    case("function_default_attribute", twice, {"a": a}, 18, [lk(lk(a, 0.25), 0.5)], domains=["local"], functions=[fixed])
    # An input that the call leaves out; names inside that are names outside, too.
    optional = helper.make_function("local", "Cut", ["a", "low", "high"], ["b"], [node("Clip", "a low high", "y"),
                                                                               node("Add", "y a", "b")], sets)
    cut = helper.make_node("Cut", ["a", "", "high"], ["y"], domain="local")
    case("function_left_out_input", [cut], {"a": a}, 18, [np.minimum(a, f32(0.25)) + a], weights={"high": np.array(0.25, f32)},
         domains=["local"], functions=[optional])
    # Functions of one name, told apart by their overload (IR version 10); one of them calls another, one is none's.
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    made = lambda nodes, overload: helper.make_function("local", "Act", ["a"], ["b"], nodes, sets, overload=overload)
    acts = [made([node("Neg", "a", "b")], ""), made([node("Tanh", "a", "b")], "smooth"),
            made([node("Act", "a", "h", domain="local", overload="smooth"), node("Add", "h a", "b")], "residual")]
    calls = [node("Act", "a", "n", domain="local"), node("Act", "n", "y", domain="local", overload="residual")]
    case("function_overload", calls, {"a": a}, 21, [np.tanh(-a) - a], domains=["local"], functions=acts)


# ---- sequences and optionals ---------------------------------------------------------------------------------------

def sequences():
    a, b = x(2, 4), x(2, 4, seed=1)
    case("sequence_split_at", [node("SplitToSequence", "a sizes", "s", axis=1), node("SequenceAt", "s at", "y")],
         {"a": a}, 18, [a[:, 1:4]], weights={"sizes": ints(1, 3), "at": np.array(-1)})
    case("sequence_split_concat", [node("SplitToSequence", "a", "s", axis=0, keepdims=0),
                                   node("ConcatFromSequence", "s", "y", axis=0, new_axis=1)], {"a": a}, 18, [a])
    case("sequence_length", [node("SplitToSequence", "a", "s", axis=0), node("SequenceLength", "s", "y")], {"a": a}, 18,
         [np.array(2)])
    case("sequence_construct_edit", [node("SequenceConstruct", "a b", "s"), node("SequenceInsert", "s a zero", "t"),
                                     node("SequenceErase", "t one", "u"), node("ConcatFromSequence", "u", "y", axis=1)],
         {"a": a, "b": b}, 18, [np.concatenate([a, b], 1)], weights={"zero": np.array(0), "one": np.array(1)})
    case("sequence_empty_insert", [node("SequenceEmpty", "", "e"), node("SequenceInsert", "e a", "s"),
                                   node("SequenceInsert", "s b", "t"), node("ConcatFromSequence", "t", "y", axis=0)],
         {"a": a, "b": b}, 18, [np.concatenate([a, b])])
    case("optional_get", [node("Optional", "a", "o"), node("OptionalGetElement", "o", "y")], {"a": a}, 18, [a])
    case("optional_has", [node("Optional", "a", "o"), node("OptionalHasElement", "o", "y")], {"a": a}, 18, [np.array(True)])


# ---- control flow --------------------------------------------------------------------------------------------------

def control():
    a, w = x(2, 3), x(3, 3, seed=1)
    then = helper.make_graph([node("MatMul", "a w", "t")], "then", [], [info("t")])
    other = helper.make_graph([node("Neg", "a", "e")], "else", [], [info("e")])
    case("if_constant", [node("If", "c", "y", then_branch=then, else_branch=other)], {"a": a}, 18, [a @ w],
         weights={"w": w, "c": np.array(True)})
    folded = [node("Shape", "a", "s"), node("Gather", "s one", "n"), node("Equal", "n four", "c"),
              node("If", "c", "y", then_branch=then, else_branch=other)]
    case("if_shape", folded, {"a": a}, 18, [-a], weights={"w": w, "one": np.array(1), "four": np.array(4)})
    body = helper.make_graph([node("MatMul", "h w", "p"), node("Tanh", "p", "h_out"), node("Identity", "go", "go_out"),
                              node("ReduceSum", "h_out", "each", keepdims=0)], "body",
                             [value("k", np.array(0)), value("go", np.array(True)), value("h", a)],
                             [info("go_out"), info("h_out"), info("each")])
    h, sums = a.astype(np.float64), []
    for _ in range(3):
        h = np.tanh(h @ w)
        sums.append(h.sum())
    case("loop_static", [node("Loop", "n c a", "y each", body=body)], {"a": a}, 18, [h.astype(f32), np.array(sums, f32)],
         outputs="y each", weights={"n": np.array(3), "c": np.array(True), "w": w})
    step = helper.make_graph([node("MatMul", "h w", "p"), node("Add", "p v", "q"), node("Tanh", "q", "h_out"),
                              node("Identity", "h_out", "each")], "step", [value("h", x(3)), value("v", x(3))],
                             [info("h_out"), info("each")])
    h, rows = np.zeros(3), []
    for v in a[::-1]:
        h = np.tanh(h @ w + v)
        rows.append(h)
    case("scan_reverse", [node("Scan", "h0 a", "y each", body=step, num_scan_inputs=1, scan_input_directions=[1])],
         {"h0": np.zeros(3, f32), "a": a}, 18, [h.astype(f32), np.stack(rows).astype(f32)], outputs="y each", weights={"w": w})


# ---- weights elsewhere ---------------------------------------------------------------------------------------------

def external():
    a, w, v = x(2, 3), x(3, 4, seed=1), x(4, seed=2).astype(np.float16)
    case("external_data", [node("MatMul", "a w", "p"), node("Cast", "v", "f", to=TYPE_FLOAT), node("Add", "p f", "y")],
         {"a": a}, 18, [a @ w + v.astype(f32)], weights={"w": w, "v": v})
    model = onnx.load_from_string(c.files["external_data/model.onnx"])
    data = b"head"
    for t in model.graph.initializer:
        for k, s in (("location", "weights.bin"), ("offset", str(len(data))), ("length", str(len(t.raw_data)))):
            t.external_data.add(key=k, value=s)
        data += t.raw_data
        t.ClearField("raw_data")
        t.data_location = onnx.TensorProto.EXTERNAL
    c.files["external_data/model.onnx"] = model.SerializeToString(deterministic=True)
    c.files["external_data/weights.bin"] = data


# ---- com.microsoft -------------------------------------------------------------------------------------------------

def norm_rows(s, scale, bias=None, eps=1e-12):
    s = s.astype(np.float64)
    y = (s - s.mean(-1, keepdims=True)) / np.sqrt(s.var(-1, keepdims=True) + eps) * scale
    return (y if bias is None else y + bias).astype(f32)


def microsoft():
    m = dict(domain="com.microsoft")
    d = dict(domains=["com.microsoft"])
    a, b, g, s, t = x(2, 3, 4), x(2, 3, 4, seed=1), x(4, lo=0.5, seed=2), x(4, seed=3), x(4, seed=4)
    for name, arrays in (("skip_layer_normalization", {"a": a, "b": b, "g": g, "s": s, "t": t}),
                         ("skip_layer_normalization_bare", {"a": a, "b": b, "g": g})):
        total = a + b + (t if "t" in arrays else 0)
        n = helper.make_node("SkipLayerNormalization", list(arrays), ["y", "", "", "sum"], epsilon=1e-5, **m)
        case("microsoft_" + name, [n], arrays, 14, [norm_rows(total, g, s if "s" in arrays else None, 1e-5), total],
             outputs="y sum", **d)
    word, place, segment = x(6, 4), x(5, 4, seed=1), x(2, 4, seed=2)
    ids, kinds, mask = (np.array(v, np.int32) for v in ([[1, 5, 0], [2, 2, 3]], [[0, 1, 1], [0, 0, 1]], [[1, 1, 0], [1, 1, 1]]))
    total = word[ids] + place[None, :3] + segment[kinds]
    n = helper.make_node("EmbedLayerNormalization", ["ids", "kinds", "word", "place", "segment", "g", "s", "mask"],
                         ["y", "count", "sum"], epsilon=1e-5, **m)
    case("microsoft_embed_layer_normalization", [n],
         {"ids": ids, "kinds": kinds, "word": word, "place": place, "segment": segment, "g": g, "s": s, "mask": mask}, 14,
         [norm_rows(total, g, s, 1e-5), mask.sum(1).astype(np.int32), total], outputs="y count sum", **d)
    gelu = lambda v: (0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3)))).astype(f32)
    case("microsoft_fast_gelu", [node("FastGelu", "a", "y", **m)], {"a": a}, 14, [gelu(a.astype(np.float64))], **d)
    case("microsoft_fast_gelu_bias", [node("FastGelu", "a s", "y", **m)], {"a": a, "s": s}, 14,
         [gelu((a + s).astype(np.float64))], **d)
    w, bias = x(4, 12, seed=5), x(12, seed=6)
    q, k, v = (p.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3) for p in np.split(a.astype(np.float64) @ w + bias, 3, -1))
    e = np.exp(q @ k.transpose(0, 1, 3, 2) / math.sqrt(2) + np.where(np.arange(3) <= np.arange(3)[:, None], 0, -np.inf))
    y = (e / e.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(2, 3, 4).astype(f32)
    case("microsoft_attention", [node("Attention", "a w bias", "y", num_heads=2, unidirectional=1, **m)],
         {"a": a, "w": w, "bias": bias}, 14, [y], **d)


# ---- operators -----------------------------------------------------------------------------------------------------

def operators():
    a = x(2, 3, 4, 4)
    for p in (1, 2, 3):
        want = (np.abs(a.astype(np.float64)) ** p).sum((2, 3), keepdims=True) ** (1 / p)
        case(f"global_lp_pool_{p}", [node("GlobalLpPool", "a", "y", p=p)], {"a": a}, 18, [want.astype(f32)])
    # A window beyond all of the input, which ceil_mode lets stand there once.
    for pads in ([0, 0, 0, 0], [1, 1, 1, 1]):
        beyond = dict(kernel_shape=[9, 20], strides=[9, 20], pads=pads, ceil_mode=1)
        tag = "_padded" if pads[0] else ""
        count = (4 + 2 * pads[0]) ** 2
        case("average_pool_beyond" + tag, [node("AveragePool", "a", "y", count_include_pad=1, **beyond)], {"a": a}, 19,
             [(a.astype(np.float64).sum((2, 3), keepdims=True) / count).astype(f32)])
        case("max_pool_beyond" + tag, [node("MaxPool", "a", "y", **beyond)], {"a": a}, 19, [a.max((2, 3), keepdims=True)])
    # As PyTorch's repeat_interleave is written: repeats are a row of ones with another number in one place.
    nodes = [node("Concat", "one times", "values", axis=0), node("OneHot", "place rank values", "repeats", axis=-1),
             node("Reshape", "repeats flat", "row"), node("Tile", "b row", "y")]
    b = x(2, 3)
    case("tile_by_one_hot", nodes, {"b": b}, 17, [np.tile(b, (1, 3))],
         weights={"one": ints(1), "times": ints(3), "place": ints(1), "rank": ints(2), "flat": ints(-1)})
    for n in (5, 12):
        m = x(2, n, n) + 2 * np.eye(n, dtype=f32)
        case(f"det_{n}", [node("Det", "m", "y")], {"m": m}, 22, [np.linalg.det(m.astype(np.float64)).astype(f32)])
    regions()


def bilinear(plane, y, x):
    """Between pixels, with zeros around."""
    h, w = plane.shape
    low_y, low_x = math.floor(y), math.floor(x)
    total = 0.0
    for r in (low_y, low_y + 1):
        for q in (low_x, low_x + 1):
            if 0 <= r < h and 0 <= q < w:
                total += plane[r, q] * (1 - abs(y - r)) * (1 - abs(x - q))
    return total


def deformed(a, w, offset, mask, step, dil, pad, groups, offset_groups):
    n, ch, h, width = a.shape
    out, per, kh, kw = w.shape
    oh, ow = offset.shape[2:]
    y = np.zeros((n, out, oh, ow))
    for b, o, i, j in np.ndindex(y.shape):
        for p, r, q in np.ndindex(per, kh, kw):
            channel = o // (out // groups) * per + p
            at = channel // (ch // offset_groups) * kh * kw + r * kw + q
            row, column = i * step - pad + r * dil + offset[b, 2 * at, i, j], j * step - pad + q * dil + offset[b, 2 * at + 1, i, j]
            y[b, o, i, j] += w[o, p, r, q] * bilinear(a[b, channel], row, column) * mask[b, at, i, j]
    return y.astype(f32)


def regions():
    a, b = x(2, 4, 5, 6), x(6, seed=3)
    offset, mask = x(2, 2 * 2 * 6, 3, 2, seed=4), x(2, 2 * 6, 3, 2, seed=5)
    w = x(6, 2, 3, 2, seed=6)
    how = dict(strides=[2, 2], dilations=[1, 1], pads=[1, 1, 1, 0], group=2, offset_group=2)
    want = deformed(a, w, offset, mask, 2, 1, 1, 2, 2) + b[:, None, None]
    case("deform_conv_groups", [node("DeformConv", "a w o b m", "y", **how)], {"a": a, "o": offset, "m": mask}, 19, [want.astype(f32)],
         weights={"w": w, "b": b})
    rois = np.array([[0.3, 0.2, 4.1, 3.7], [1.5, 2.5, 1.9, 2.6], [-2, -1, 9, 8]], f32)
    which = np.array([1, 0, 1], np.int64)
    boxes = dict(output_height=2, output_width=3, sampling_ratio=2, spatial_scale=0.8)
    inputs = {"a": a, "r": rois, "i": which}
    for mode in ("avg", "max"):
        case("roi_align_" + mode, [node("RoiAlign", "a r i", "y", mode=mode, **boxes)], inputs, 22)
    # Before opset 16 all are of one form, which the reference does not know.
    form = dict(boxes, coordinate_transformation_mode="output_half_pixel")
    graph = helper.make_graph([node("RoiAlign", "a r i", "y", **form)], "g", [value(k, v) for k, v in inputs.items()], [info("y")])
    want = c.ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)])).run(None, inputs)
    case("roi_align_10", [node("RoiAlign", "a r i", "y", **boxes)], inputs, 10, want)


def all_cases():
    for kind in (functions, sequences, control, external, microsoft, operators):
        kind()
