#!/usr/bin/env python3
"""Writes tests/golden/tensorflow/ops.pb and ops.txt with the real TensorFlow.

The graph holds, for every case, an operation on constants, and what TensorFlow computes for it as constants NAME/want.
tests/unit/tf_ops.c imports the one and compares it with the other. A line of the list: output, wanted output, tolerance.
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf

raw = tf.raw_ops
rng = np.random.default_rng(7)
graph = tf.Graph()
cases = []  # name, tensor, tolerance
counts = {}


def f(*shape, low=-2.0, high=2.0):
    return tf.constant(rng.uniform(low, high, shape).astype(np.float32), name="in")


def at(value):
    return tf.constant(np.asarray(value, np.float32), name="in")


def i(value, dtype=np.int32):
    return tf.constant(np.asarray(value, dtype))


def case(name, results, tolerance=2e-6, only=None):
    results = [results] if isinstance(results, tf.Tensor) else list(results)
    counts[name] = counts.get(name, -1) + 1
    for k, r in enumerate(results):
        if only is None or k in only:
            cases.append((f"{name}_{counts[name]}_{k}", r, tolerance))


def elementwise():
    for op in "Abs Neg Exp Expm1 Sin Cos Tanh Erf Erfc Atan Floor Rint Round Ceil Sign Square Tan Sinh Cosh Asinh Sigmoid Softplus Softsign Relu Relu6 Elu Selu Reciprocal Inv".split():
        key = {"Softplus": "features", "Softsign": "features", "Relu": "features", "Relu6": "features", "Elu": "features", "Selu": "features"}.get(op, "x")
        case(op, getattr(raw, op)(**{key: f(3, 5, low=-7, high=7) if op == "Relu6" else f(3, 5)}), 1e-5)
    for op in "Sqrt Rsqrt Log Log1p".split():
        case(op, getattr(raw, op)(x=f(9, low=0.1, high=4)), 1e-5)
    for op in "Asin Acos Atanh".split():
        case(op, getattr(raw, op)(x=f(9, low=-0.9, high=0.9)), 1e-5)
    case("Acosh", raw.Acosh(x=f(9, low=1.1, high=4)), 1e-5)
    for op in "AddV2 Sub Mul RealDiv Maximum Minimum SquaredDifference FloorDiv FloorMod Atan2 Less LessEqual Greater GreaterEqual Equal NotEqual".split():
        r = getattr(raw, op)(**({"y": f(3, 1), "x": f(2, 1, 4)}))
        case(op, tf.cast(r, tf.float32) if r.dtype == tf.bool else r, 1e-5)
    a, b = [7, -7, 7, -7, 0, 5, -5], [3, 3, -3, -3, 2, 5, 5]
    for op in "FloorDiv FloorMod TruncateDiv TruncateMod Maximum BitwiseAnd BitwiseXor".split():
        case(op + "Int", getattr(raw, op)(x=i(a), y=i(b)))
    case("Pow", raw.Pow(x=f(2, 3, low=0.2, high=3), y=f(3)), 1e-5)
    case("PowInt", raw.Pow(x=i([2, 3, -2]), y=i([3, 2, 3])))
    zero = at([0, 1, 2, 0])
    for op in "Xlogy Xdivy Xlog1py DivNoNan MulNoNan".split():
        case(op, getattr(raw, op)(x=zero, y=at([0, 3, 0.5, 2])), 1e-5)
    case("Select", raw.Select(condition=tf.constant([True, False]), x=f(2, 3), y=f(2, 3)))
    case("SelectV2", raw.SelectV2(condition=tf.constant([True, False, True]), t=f(2, 3), e=f(3)))
    case("ClipByValue", tf.clip_by_value(f(4, 5), -1, 0.5))
    case("AddN", raw.AddN(inputs=[f(3), f(3), f(3)]))
    x = at([np.nan, np.inf, -np.inf, 1])
    for op in "IsNan IsInf IsFinite".split():
        case(op, tf.cast(getattr(raw, op)(x=x), tf.float32))
    case("Cast", [raw.Cast(x=f(5), DstT=tf.int32), raw.Cast(x=i([3, 0, -1]), DstT=tf.float32)])
    case("LeakyRelu", raw.LeakyRelu(features=f(7), alpha=0.3))
    case("Bitcast", raw.Bitcast(input=f(4), type=tf.int32))


def activations():
    dy, x = f(4, 5), at([[-8, -2, -0.5, 0, 0.3], [1, 6, 6.5, 2, -0.1], [5.9, 6.1, -3, 0.7, 0], [1, 2, 3, 4, 5]])
    for op in "ReluGrad Relu6Grad SoftplusGrad SoftsignGrad".split():
        case(op, getattr(raw, op)(gradients=dy, features=x), 1e-5)
    case("LeakyReluGrad", raw.LeakyReluGrad(gradients=dy, features=x, alpha=0.1))
    for op in "EluGrad SeluGrad".split():
        y = raw.Elu(features=x) if op == "EluGrad" else raw.Selu(features=x)
        case(op, getattr(raw, op)(gradients=dy, outputs=y), 1e-5)
    y = f(4, 5, low=0.2, high=0.9)
    for op in "TanhGrad SigmoidGrad ReciprocalGrad SqrtGrad RsqrtGrad InvGrad".split():
        case(op, getattr(raw, op)(y=y, dy=dy), 1e-5)
    case("Softmax", raw.Softmax(logits=f(3, 4, 5)), 1e-5)
    case("LogSoftmax", raw.LogSoftmax(logits=f(3, 5)), 1e-5)


def shapes():
    x = f(4, 5, 6)
    case("StridedSlice", x[1:3, ::2, -1])
    case("StridedSlice", x[::-1, 4:1:-2, 1:100])
    case("StridedSlice", x[..., 2:4])
    case("StridedSlice", x[:, tf.newaxis, ..., 3])
    case("StridedSlice", x[-2, ..., tf.newaxis, ::-3])
    case("StridedSlice", x[3:1, :, 0])
    for spec in [(slice(1, 3), slice(None, None, 2), -1), (slice(None, None, -1), slice(4, 1, -2), slice(1, 100)),
                 (Ellipsis, slice(2, 6, 3)), (slice(None), tf.newaxis, Ellipsis, 3)]:
        y = x[spec]
        op = y.op
        case("StridedSliceGrad", raw.StridedSliceGrad(
            shape=i([4, 5, 6]), begin=op.inputs[1], end=op.inputs[2], strides=op.inputs[3], dy=f(*y.shape),
            **{k: op.get_attr(k) for k in ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"]}))
    case("Slice", raw.Slice(input=x, begin=i([1, 0, 2]), size=i([2, -1, 3])))
    case("Reshape", raw.Reshape(tensor=x, shape=i([5, -1, 3])))
    case("Transpose", raw.Transpose(x=x, perm=i([2, 0, 1])))
    case("ExpandDims", raw.ExpandDims(input=x, axis=i(-2)))
    case("Squeeze", raw.Squeeze(input=f(1, 3, 1, 2), axis=[2]))
    case("Squeeze", raw.Squeeze(input=f(1, 3, 1, 2)))
    case("Pack", raw.Pack(values=[f(3), f(3)], axis=1))
    case("Unpack", raw.Unpack(value=f(3, 2), num=2, axis=-1))
    case("ConcatV2", raw.ConcatV2(values=[f(2, 3), f(2, 1)], axis=i(1)))
    case("Split", raw.Split(axis=i(1), value=f(2, 6), num_split=3))
    case("SplitV", raw.SplitV(value=f(2, 6), size_splits=i([1, -1, 2]), axis=i(1), num_split=3))
    case("Tile", raw.Tile(input=f(2, 1, 3), multiples=i([2, 3, 2])))
    case("Fill", raw.Fill(dims=i([2, 3]), value=f()))
    case("BroadcastTo", raw.BroadcastTo(input=f(3, 1), shape=i([2, 3, 4])))
    case("Range", raw.Range(start=i(2), limit=i(11), delta=i(3)))
    case("Range", raw.Range(start=i(5), limit=i(0), delta=i(-2)))
    case("LinSpace", raw.LinSpace(start=tf.constant(1.0), stop=tf.constant(3.0), num=i(5)), 1e-6)
    case("ReverseV2", raw.ReverseV2(tensor=x, axis=i([0, -1])))
    case("Roll", raw.Roll(input=x, shift=i([1, -2]), axis=i([0, 2])))
    case("Shape", raw.Shape(input=x))
    case("Size", raw.Size(input=x))
    case("Rank", raw.Rank(input=x))
    case("BroadcastGradientArgs", raw.BroadcastGradientArgs(s0=i([2, 1, 4]), s1=i([3, 1])))
    case("BroadcastArgs", raw.BroadcastArgs(s0=i([2, 1, 4]), s1=i([3, 1])))
    case("InvertPermutation", raw.InvertPermutation(x=i([2, 0, 1])))
    case("DynamicStitch", raw.DynamicStitch(indices=[i([0, 1]), i([1, 3, 2])], data=[f(2, 2), f(3, 2)]))
    case("Pad", raw.Pad(input=f(2, 3), paddings=i([[1, 0], [2, 1]])))
    case("PadV2", raw.PadV2(input=f(2, 3), paddings=i([[1, 0], [2, 1]]), constant_values=tf.constant(7.0)))
    for mode in ["REFLECT", "SYMMETRIC"]:
        case("MirrorPad", raw.MirrorPad(input=f(3, 4), paddings=i([[1, 2], [2, 0]]), mode=mode))
        case("MirrorPadGrad", raw.MirrorPadGrad(input=f(6, 6), paddings=i([[1, 2], [2, 0]]), mode=mode))
    case("SpaceToDepth", raw.SpaceToDepth(input=f(2, 4, 6, 3), block_size=2))
    case("DepthToSpace", raw.DepthToSpace(input=f(2, 2, 3, 8), block_size=2))
    case("SpaceToBatchND", raw.SpaceToBatchND(input=f(2, 5, 4, 3), block_shape=i([2, 3]), paddings=i([[1, 0], [1, 1]])))
    case("BatchToSpaceND", raw.BatchToSpaceND(input=f(12, 3, 2, 3), block_shape=i([2, 3]), crops=i([[1, 0], [2, 1]])))
    case("MatrixBandPart", raw.MatrixBandPart(input=f(2, 4, 5), num_lower=i(1), num_upper=i(-1)))
    case("MatrixBandPart", raw.MatrixBandPart(input=f(4, 4), num_lower=i(0), num_upper=i(2)))
    case("MatrixDiag", raw.MatrixDiag(diagonal=f(2, 3)))
    case("MatrixDiagPart", raw.MatrixDiagPart(input=f(2, 3, 3)))


def products():
    case("MatMul", raw.MatMul(a=f(3, 4), b=f(3, 5), transpose_a=True), 1e-5)
    case("MatMul", raw.MatMul(a=f(3, 4), b=f(5, 4), transpose_b=True), 1e-5)
    case("BatchMatMulV2", raw.BatchMatMulV2(x=f(2, 1, 3, 4), y=f(5, 3, 4), adj_y=True), 1e-5)
    case("Einsum", raw.Einsum(inputs=[f(2, 3, 4), f(4, 5, 6)], equation="abc,cde->abde"), 1e-5)
    case("Einsum", raw.Einsum(inputs=[f(2, 3, 4, 5), f(2, 6, 4, 5)], equation="aecd,abcd->acbe"), 1e-5)
    x = f(2, 3, 4, 2)
    for half, align in [(True, False), (False, True), (False, False)]:
        for size in [(7, 5), (2, 3)]:
            case("ResizeBilinear", raw.ResizeBilinear(images=x, size=i(size), half_pixel_centers=half, align_corners=align), 1e-5)
            case("ResizeNearestNeighbor", raw.ResizeNearestNeighbor(images=x, size=i(size), half_pixel_centers=half, align_corners=align))
            case("ResizeBilinearGrad", raw.ResizeBilinearGrad(grads=f(2, *size, 2), original_image=x, half_pixel_centers=half, align_corners=align), 1e-5)
            case("ResizeNearestNeighborGrad", raw.ResizeNearestNeighborGrad(grads=f(2, *size, 2), size=i([3, 4]), half_pixel_centers=half, align_corners=align), 1e-5)


def windows():
    for padding in ["SAME", "VALID"]:
        for strides, dil in [([1, 2, 1, 1], [1, 1, 1, 1]), ([1, 1, 1, 1], [1, 2, 1, 1])]:
            x, w = f(2, 6, 7, 4), f(3, 2, 4, 5)
            y = raw.Conv2D(input=x, filter=w, strides=strides, padding=padding, dilations=dil)
            case("Conv2D", y, 2e-5)
            dy = f(*y.shape)
            if dil == [1, 1, 1, 1]:
                case("Conv2DBackpropInput", raw.Conv2DBackpropInput(input_sizes=i(x.shape), filter=w, out_backprop=dy, strides=strides, padding=padding), 2e-5)
                case("Conv2DBackpropFilter", raw.Conv2DBackpropFilter(input=x, filter_sizes=i(w.shape), out_backprop=dy, strides=strides, padding=padding), 5e-5)
        x, w = f(2, 6, 5, 3), f(3, 3, 3, 2)
        for s in [1, 2]:
            y = raw.DepthwiseConv2dNative(input=x, filter=w, strides=[1, s, s, 1], padding=padding)
            case("DepthwiseConv2dNative", y, 2e-5)
            dy = f(*y.shape)
            case("DepthwiseConv2dNativeBackpropInput", raw.DepthwiseConv2dNativeBackpropInput(input_sizes=i(x.shape), filter=w, out_backprop=dy, strides=[1, s, s, 1], padding=padding), 2e-5)
            case("DepthwiseConv2dNativeBackpropFilter", raw.DepthwiseConv2dNativeBackpropFilter(input=x, filter_sizes=i(w.shape), out_backprop=dy, strides=[1, s, s, 1], padding=padding), 5e-5)
        x = at(rng.integers(0, 3, (2, 5, 6, 3)))  # ties
        for op, k, s in [("MaxPool", 2, 2), ("MaxPool", 3, 2), ("AvgPool", 3, 2), ("AvgPool", 2, 1)]:
            a = dict(ksize=[1, k, k, 1], strides=[1, s, s, 1], padding=padding)
            y = raw.MaxPool(input=x, **a) if op == "MaxPool" else raw.AvgPool(value=x, **a)
            case(op, y, 1e-5)
            dy = f(*y.shape)
            if op == "MaxPool":
                case("MaxPoolGrad", raw.MaxPoolGrad(orig_input=x, orig_output=y, grad=dy, **a), 1e-5)
            else:
                case("AvgPoolGrad", raw.AvgPoolGrad(orig_input_shape=i(x.shape), grad=dy, **a), 1e-5)
        x, w = f(2, 4, 5, 3, 2), f(2, 2, 2, 2, 3)
        y = raw.Conv3D(input=x, filter=w, strides=[1, 1, 2, 1, 1], padding=padding)
        case("Conv3D", y, 2e-5)
        case("Conv3DBackpropInputV2", raw.Conv3DBackpropInputV2(input_sizes=i(x.shape), filter=w, out_backprop=f(*y.shape), strides=[1, 1, 2, 1, 1], padding=padding), 2e-5)
        case("Conv3DBackpropFilterV2", raw.Conv3DBackpropFilterV2(input=x, filter_sizes=i(w.shape), out_backprop=f(*y.shape), strides=[1, 1, 2, 1, 1], padding=padding), 5e-5)
        case("MaxPool3D", raw.MaxPool3D(input=x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 1, 1, 1], padding=padding))
    case("Conv2DGrouped", raw.Conv2D(input=f(2, 5, 5, 4), filter=f(2, 2, 2, 6), strides=[1, 1, 1, 1], padding="VALID"), 2e-5)
    case("Conv2DExplicit", raw.Conv2D(input=f(2, 5, 5, 4), filter=f(3, 3, 4, 2), strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0]), 2e-5)
    case("BiasAdd", raw.BiasAdd(value=f(2, 3, 4), bias=f(4)))
    case("BiasAdd", raw.BiasAdd(value=f(2, 4, 3, 2), bias=f(4), data_format="NCHW"))
    case("BiasAddGrad", raw.BiasAddGrad(out_backprop=f(2, 3, 4)), 1e-5)
    x, scale, offset, mean, var = f(3, 4, 5, 6), f(6), f(6), f(6), f(6, low=0.5, high=2)
    y = raw.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=mean[:0], variance=var[:0], epsilon=0.01)
    case("FusedBatchNormV3", y, 2e-5, only={0, 1, 2})
    y2 = raw.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=mean, variance=var, epsilon=0.01, is_training=False)
    case("FusedBatchNormV3", y2, 2e-5, only={0})
    y3 = raw.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=mean, variance=var, epsilon=0.01, exponential_avg_factor=0.1)
    case("FusedBatchNormV3", y3, 2e-5, only={0, 1, 2})
    for training, out in [(True, y), (False, y2)]:
        case("FusedBatchNormGradV3", raw.FusedBatchNormGradV3(
            y_backprop=f(3, 4, 5, 6), x=x, scale=scale, reserve_space_1=out[3] if training else mean, reserve_space_2=out[4] if training else var,
            reserve_space_3=out[5], epsilon=0.01, is_training=training), 5e-5, only={0, 1, 2})


def losses():
    x, labels = f(4, 5), i([0, 4, 2, 2])
    case("SparseSoftmaxCrossEntropyWithLogits", raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=labels), 1e-5)
    case("SoftmaxCrossEntropyWithLogits", raw.SoftmaxCrossEntropyWithLogits(features=x, labels=f(4, 5, low=0, high=1)), 1e-5)
    case("L2Loss", raw.L2Loss(t=x), 1e-5)
    case("InTopKV2", tf.cast(raw.InTopKV2(predictions=x, targets=labels, k=i(2)), tf.float32))
    x = f(3, 4, 5)
    for op in "Sum Mean Max Min Prod".split():
        case(op, getattr(raw, op)(input=x, axis=i([0, -1]), keep_dims=op == "Max"), 1e-5)
    case("EuclideanNorm", raw.EuclideanNorm(input=x, axis=i(1)), 1e-5)
    b = tf.constant(rng.integers(0, 2, (4, 5)) > 0)
    case("All", tf.cast(raw.All(input=b, axis=i(1)), tf.float32))
    case("Any", tf.cast(raw.Any(input=b, axis=i(1)), tf.float32))
    ties = at(rng.integers(0, 3, (4, 6)))
    case("ArgMax", raw.ArgMax(input=ties, dimension=i(1)))
    case("ArgMin", raw.ArgMin(input=ties, dimension=i(0), output_type=tf.int32))
    for exclusive in [False, True]:
        for reverse in [False, True]:
            case("Cumsum", raw.Cumsum(x=x, axis=i(1), exclusive=exclusive, reverse=reverse), 1e-5)
    ids = i([2, 0, -1, 2, 1, 2])
    for op in "UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd".split():
        case(op, getattr(raw, op)(data=f(6, 3), segment_ids=ids, num_segments=i(4)), 1e-5)
    case("UnsortedSegmentSum", raw.UnsortedSegmentSum(data=f(2, 3, 2), segment_ids=i([[0, 1, 0], [2, 2, 1]]), num_segments=i(3)), 1e-5)


def indices():
    x = f(4, 5, 6)
    case("GatherV2", raw.GatherV2(params=x, indices=i([[1, 3], [0, 0]]), axis=i(1)))
    case("GatherV2", raw.GatherV2(params=x, indices=i(np.tile([1, 0, 3], (4, 1))), axis=i(1), batch_dims=1))
    case("GatherV2", raw.GatherV2(params=x, indices=i(np.tile([1, 0, 3], (4, 1))), axis=i(2), batch_dims=1))
    case("GatherV2", raw.GatherV2(params=f(4, 5), indices=i([1, 4, 0, 2]), axis=i(1), batch_dims=1))
    case("GatherNd", raw.GatherNd(params=x, indices=i([[0, 1], [3, 4]])))
    case("GatherNd", raw.GatherNd(params=x, indices=i([[[0, 1, 2]], [[3, 4, 5]]])))
    case("ScatterNd", raw.ScatterNd(indices=i([[1], [3], [1]]), updates=f(3, 2), shape=i([5, 2])), 1e-5)
    case("TensorScatterUpdate", raw.TensorScatterUpdate(tensor=f(4, 3), indices=i([[1, 2], [0, 0]]), updates=f(2)))
    case("TensorScatterAdd", raw.TensorScatterAdd(tensor=f(4, 3), indices=i([[1], [1]]), updates=f(2, 3)), 1e-5)
    case("TensorScatterSub", raw.TensorScatterSub(tensor=f(4, 3), indices=i([[1], [2]]), updates=f(2, 3)), 1e-5)
    case("TensorScatterMax", raw.TensorScatterMax(tensor=f(4, 3), indices=i([[1], [2]]), updates=f(2, 3)))
    case("TopKV2", raw.TopKV2(input=f(3, 6), k=i(4)))
    case("OneHot", raw.OneHot(indices=i([0, 2, -1, 5]), depth=i(4), on_value=tf.constant(2.0), off_value=tf.constant(-1.0)))
    case("OneHot", raw.OneHot(indices=i([[0, 2], [1, 1]]), depth=i(3), on_value=tf.constant(1.0), off_value=tf.constant(0.0), axis=1))
    case("Where", raw.Where(condition=tf.constant([[True, False], [True, True]])))


def flow():
    lists = raw.TensorListReserve(element_shape=i([2]), num_elements=i(3), element_dtype=tf.float32)
    for k in range(3):
        lists = raw.TensorListSetItem(input_handle=lists, index=i(k), item=f(2))
    case("TensorListStack", raw.TensorListStack(input_handle=lists, element_shape=i([2]), element_dtype=tf.float32))
    parts = raw.TensorListFromTensor(tensor=f(3, 2), element_shape=i([2]))
    case("TensorListGetItem", raw.TensorListGetItem(input_handle=parts, index=i(1), element_shape=i([2]), element_dtype=tf.float32))

    @tf.function
    def loop(x):
        k = tf.constant(0)
        while k < 4:
            x, k = x * 1.5 + tf.cast(k, tf.float32), k + 1
        return x

    @tf.function
    def chosen(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x - 1)

    @tf.function
    def switched(x, n):
        return tf.switch_case(n, [lambda: x + 1, lambda: x * 3, lambda: x - 5])

    case("While", loop(f(3)), 1e-5)
    case("If", [chosen(f(3, low=0.1)), chosen(f(3, high=-0.1))])
    case("Case", [switched(f(3), i(1)), switched(f(3), tf.cast(tf.reduce_sum(at([2.0])), tf.int32))])


def parts(z):
    return [tf.math.real(z), tf.math.imag(z)]


def signals():
    def z(*shape):
        return tf.complex(f(*shape), f(*shape))

    for n in [8, 5, 12, 9]:  # of 8 numbers: whole, cut, filled up
        case("RFFT", parts(tf.signal.rfft(f(2, 8), [n])), 1e-5)
        case("IRFFT", tf.signal.irfft(z(2, 5), [n]), 1e-5)
    for n in [6, 7]:
        case("FFT", parts(tf.signal.fft(z(3, n))), 1e-5)
        case("IFFT", parts(tf.signal.ifft(z(3, n))), 1e-5)
    case("FFT2D", parts(tf.signal.fft2d(z(2, 4, 6))), 2e-5)
    case("IFFT2D", parts(tf.signal.ifft2d(z(2, 4, 6))), 1e-5)
    case("FFT3D", parts(tf.signal.fft3d(z(2, 3, 4, 5))), 5e-5)
    case("IFFT3D", parts(tf.signal.ifft3d(z(3, 4, 5))), 1e-5)
    case("RFFT2D", parts(tf.signal.rfft2d(f(2, 4, 6), [6, 4])), 2e-5)
    case("IRFFT2D", tf.signal.irfft2d(z(2, 4, 4), [4, 6]), 1e-5)
    case("RFFT3D", parts(tf.signal.rfft3d(f(3, 4, 6))), 5e-5)
    case("IRFFT3D", tf.signal.irfft3d(z(3, 4, 4)), 1e-5)
    case("Complex", parts(tf.complex(f(2, 3), f(2, 3))))
    case("Conj", parts(tf.math.conj(z(5))))
    case("ComplexAbs", [tf.abs(z(5)), tf.abs(tf.complex(at([0, 3, 0]), at([0, -4, 2])))])
    case("Angle", tf.math.angle(z(9)), 1e-5)
    case("MulComplex", parts(z(3, 4) * z(4)), 1e-5)
    case("MulComplexReal", parts(tf.cast(f(4), tf.complex64) * z(3, 4)), 1e-5)
    case("DivComplex", parts(z(3, 4) / z(4)), 2e-5)
    case("DivComplexReal", parts(z(3, 4) / tf.cast(at([1, -2, 3, 0.5]), tf.complex64)), 1e-5)
    case("AddComplex", parts(z(3, 4) + tf.cast(f(4), tf.complex64) - z(3, 1)), 1e-5)
    case("CastComplex", [tf.cast(z(4), tf.float32), *parts(tf.cast(i([1, 2]), tf.complex64))])
    case("ReshapeComplex", parts(tf.transpose(tf.reshape(z(2, 6), [3, 4]))))
    case("ConcatComplex", parts(tf.concat([z(2, 2), z(2, 3)], 1)[:, 1:4]))
    case("StackComplex", parts(tf.reduce_sum(tf.stack([z(3), z(3)]), 0)), 1e-5)
    case("SplitComplex", [tf.math.imag(part) for part in tf.split(z(2, 6), 3, 1)])
    case("PadComplex", parts(tf.pad(tf.expand_dims(z(2, 2), 1), [[0, 0], [0, 1], [1, 1]])))
    spectra = tf.signal.stft(f(2, 40), 16, 8)
    case("STFT", [tf.abs(spectra), tf.cast(tf.shape(spectra), tf.float32)], 2e-5)
    case("InverseSTFT", tf.signal.inverse_stft(tf.signal.stft(f(2, 40), 16, 8, fft_length=32), 16, 8, fft_length=32), 1e-5)
    case("ExpComplex", parts(tf.exp(z(5))), 1e-5)
    case("DCT", tf.signal.dct(f(2, 6)), 2e-5)
    case("FNet", tf.math.real(tf.signal.fft2d(tf.cast(f(2, 5, 8), tf.complex64))), 5e-5)


def pictures():
    colours = tf.concat([f(2, 3, 4, 3, low=0, high=1), at([[[[0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 1, 0]], [[0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]], [[.5, .5, .5], [.2, .9, .9], [.9, .2, .9], [.9, .9, .2]]]])], 0)
    case("RGBToHSV", raw.RGBToHSV(images=colours), 1e-5)
    case("HSVToRGB", raw.HSVToRGB(images=f(2, 3, 4, 3, low=0, high=1)), 1e-5)
    case("AdjustHue", [raw.AdjustHue(images=colours, delta=at(d)) for d in [0.3, -0.4]], 1e-5)
    case("AdjustSaturation", [raw.AdjustSaturation(images=colours, scale=at(d)) for d in [0.5, 2.5]], 1e-5)
    case("AdjustContrastv2", raw.AdjustContrastv2(images=f(2, 3, 4, 3), contrast_factor=at(1.7)), 1e-5)
    x = f(2, 6, 5, 3)
    turned = at([[0.9, -0.3, 1.2, 0.2, 1.1, -0.7, 0, 0], [1.3, 0.1, -3, 0.05, 0.8, 2.5, 0.02, -0.03]])
    for mode in ["REFLECT", "WRAP", "CONSTANT", "NEAREST"]:
        for kind in ["BILINEAR", "NEAREST"]:
            case("ImageProjectiveTransformV3", raw.ImageProjectiveTransformV3(
                images=x, transforms=turned, output_shape=i([5, 8]), fill_value=at(0.25), interpolation=kind, fill_mode=mode), 2e-5)
    case("ImageProjectiveTransformV2", raw.ImageProjectiveTransformV2(images=x, transforms=turned[:1], output_shape=i([6, 5]), interpolation="BILINEAR"), 2e-5)
    boxes = at([[0.1, 0.2, 0.9, 0.7], [-0.2, 0.5, 1.1, 1.3], [0.8, 0.9, 0.2, 0.1], [0, 0, 1, 1]])
    for method in ["bilinear", "nearest"]:
        case("CropAndResize", raw.CropAndResize(image=x, boxes=boxes, box_ind=i([1, 0, 1, 0]), crop_size=i([4, 3]), method=method, extrapolation_value=-0.5), 2e-5)
    case("CropAndResize", raw.CropAndResize(image=x, boxes=boxes, box_ind=i([1, 0, 1, 0]), crop_size=i([1, 2])), 2e-5)
    for size in [[4, 3], [9, 7], [6, 5], [1, 10]]:
        for how in [{}, {"half_pixel_centers": True}, {"align_corners": True}]:
            case("ResizeBicubic", raw.ResizeBicubic(images=x, size=i(size), **how), 2e-5)
        case("ResizeArea", raw.ResizeArea(images=x, size=i(size)), 2e-5)
        for kernel in "lanczos1 lanczos3 lanczos5 gaussian box triangle keyscubic mitchellcubic".split():
            case("ScaleAndTranslate", raw.ScaleAndTranslate(images=x, size=i(size), scale=at([size[0] / 6, size[1] / 5]), translation=at([0.3, -0.2]), kernel_type=kernel, antialias=kernel != "lanczos1"), 2e-5)
    case("ResizeArea", raw.ResizeArea(images=x, size=i([3, 4]), align_corners=True), 2e-5)
    small = f(2, 4, 7, 3)
    case("ResizeBicubicGrad", tf.gradients(raw.ResizeBicubic(images=x, size=i([4, 7]), half_pixel_centers=True), x, small), 2e-5)
    for method in ["bicubic", "area", "lanczos3", "gaussian"]:
        case("Resize", tf.image.resize(x, [4, 8], method, antialias=True), 2e-5)
    for padding in ["VALID", "SAME"]:
        for size, step, rate in [([2, 2], [2, 2], [1, 1]), ([3, 2], [1, 2], [1, 1]), ([2, 3], [2, 1], [2, 1]), ([3, 3], [3, 3], [1, 1])]:
            case("ExtractImagePatches", raw.ExtractImagePatches(images=x, ksizes=[1, *size, 1], strides=[1, *step, 1], rates=[1, *rate, 1], padding=padding))
        case("ExtractVolumePatches", raw.ExtractVolumePatches(input=f(2, 4, 5, 6, 2), ksizes=[1, 2, 3, 2, 1], strides=[1, 2, 1, 3, 1], padding=padding))


def matrices():
    cuts = [(0, 0), (1, 1), (-2, -2), (-1, 1), (-2, 0), (0, 2), (1, 2), (-3, -1)]
    for lo, hi in cuts:
        for rows, columns in [(4, 4), (4, 6), (5, 3)]:
            if hi >= columns or -lo >= rows:
                continue
            x, other = f(2, rows, columns), f(2, rows, columns)
            for align in ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"]:
                part = raw.MatrixDiagPartV3(input=x, k=i([lo, hi]), padding_value=at(7), align=align)
                case("MatrixDiagPartV3", part)
                if rows == 4 or align == "RIGHT_LEFT":
                    d = raw.MatrixDiagPartV3(input=other, k=i([lo, hi]), padding_value=at(0), align=align)
                    case("MatrixDiagV3", raw.MatrixDiagV3(diagonal=d, k=i([lo, hi]), num_rows=i(rows), num_cols=i(columns), padding_value=at(-3), align=align))
                    case("MatrixSetDiagV3", raw.MatrixSetDiagV3(input=x, diagonal=d, k=i([lo, hi]), align=align))
    case("MatrixDiagV3", [tf.linalg.diag(f(2, 3)), tf.linalg.diag(f(3), k=-1), tf.linalg.diag(f(2, 3), k=2, num_cols=5), tf.linalg.diag(f(2, 3, 4), k=(-1, 1))])
    case("MatrixSetDiag", [raw.MatrixSetDiag(input=f(2, 3, 4), diagonal=f(2, 3)), tf.linalg.set_diag(f(4, 3), f(3))])
    case("MatrixDiag", [raw.MatrixDiag(diagonal=f(2, 3)), raw.MatrixDiagPart(input=f(2, 3, 4)), tf.linalg.trace(f(2, 3, 3))], 1e-5)
    case("MatrixDiagV2", [raw.MatrixDiagV2(diagonal=f(2, 3), k=i([0, 1]), num_rows=i(-1), num_cols=i(-1), padding_value=at(0)),
                          raw.MatrixDiagPartV2(input=f(4, 3), k=i([-1, 1]), padding_value=at(2)),
                          raw.MatrixSetDiagV2(input=f(4, 3), diagonal=f(3, 3), k=i([-1, 1]))])
    case("Diag", [raw.Diag(diagonal=f(3)), raw.Diag(diagonal=f(2, 3)), raw.DiagPart(input=f(3, 3)), raw.DiagPart(input=f(2, 3, 2, 3))])
    for n in [1, 2, 3, 5, 9, 20]:
        a = f(2, n, n) + tf.cast(tf.eye(n), tf.float32)
        case("MatrixInverse", [raw.MatrixInverse(input=a), raw.MatrixInverse(input=a, adjoint=True)], 2e-5)
        case("MatrixDeterminant", [raw.MatrixDeterminant(input=a), *raw.LogMatrixDeterminant(input=a)], 2e-5)
        case("MatrixSolve", [raw.MatrixSolve(matrix=a, rhs=f(2, n, 3)), raw.MatrixSolve(matrix=a, rhs=f(2, n, 1), adjoint=True)], 2e-5)
        t = a + 4 * tf.cast(tf.eye(n), tf.float32)
        case("MatrixTriangularSolve", [raw.MatrixTriangularSolve(matrix=t, rhs=f(2, n, 2), lower=low, adjoint=turn) for low in [True, False] for turn in [True, False]], 1e-4)
        case("Cholesky", raw.Cholesky(input=tf.matmul(a, a, transpose_b=True) + tf.eye(n)), 2e-5)
    case("MatrixInverse", raw.MatrixInverse(input=at([[0, 2, 0], [0, 0, 4], [8, 0, 0]])))
    case("LogMatrixDeterminant", [*raw.LogMatrixDeterminant(input=at([[0, 2, 0], [3, 0, 1], [0, 0, -8]]))], 1e-5)


def bins():
    for op in ["SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd"]:
        case(op, getattr(raw, op)(data=f(6, 3), segment_ids=i([0, 0, 2, 2, 2, 5])), 1e-5)
    case("ReverseSequence", raw.ReverseSequence(input=f(3, 4, 2), seq_lengths=i([4, 0, 2]), seq_dim=1, batch_dim=0))
    case("ReverseSequence", raw.ReverseSequence(input=f(2, 4, 3), seq_lengths=i([1, 4, 3], np.int64), seq_dim=1, batch_dim=2))
    ids = i([1, 4, 4, 0, 9, 2])
    none, some = tf.constant([], tf.float32), f(6)
    case("Bincount", [raw.Bincount(arr=ids, size=i(6), weights=w) for w in [none, some]], 1e-5)
    case("DenseBincount", [raw.DenseBincount(input=tf.reshape(ids, [2, 3]), size=i(5), weights=w, binary_output=b)
                           for w, b in [(none, False), (tf.reshape(some, [2, 3]), False), (none, True)]], 1e-5)
    case("Bucketize", [raw.Bucketize(input=at([[-5, 0, 0.5], [1, 2.9, 9]]), boundaries=[-1, 0, 1, 3]), raw.Bucketize(input=i([-5, 0, 7]), boundaries=[0, 7])])
    steps = at([[-1, 0, 0, 2, 5], [1, 1, 1, 3, 4]])
    for op in ["LowerBound", "UpperBound"]:
        case(op, [getattr(raw, op)(sorted_inputs=steps, values=at([[0, -2, 6, 2], [1, 0, 4, 3.5]])), tf.searchsorted(at([1, 2, 4]), f(3, low=0, high=5), side="left")])
    case("HistogramFixedWidth", raw.HistogramFixedWidth(values=f(40, low=-3, high=3), value_range=at([-2, 2]), nbins=i(7)))
    case("Cross", [raw.Cross(a=f(2, 3), b=f(2, 3)), tf.linalg.cross(i([1, 2, 3]), i([4, 5, 7]))], 1e-5)
    case("LRN", [raw.LRN(input=f(2, 3, 2, 7), depth_radius=r, bias=1.5, alpha=0.3, beta=0.6) for r in [0, 2, 9]], 1e-5)
    for batch in [True, False]:
        case("MaxPoolWithArgmax", [*raw.MaxPoolWithArgmax(input=f(2, 5, 6, 3), ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding="SAME", include_batch_in_index=batch)])
    x = at([0.01, 0.3, 0.5, 1, 1.5, 2, 3.7, 8, 20, 1e3, 1e8, -0.2, -1.5, -2.7, -30.3])
    case("Lgamma", raw.Lgamma(x=tf.stack([x, -x])), 2e-6)
    case("Lgamma", raw.Lgamma(x=at([0.999, 1.001, 2.001, 1.999, 1, 2])), 2e-6)
    case("Digamma", raw.Digamma(x=x), 5e-6)
    y = at([0, 0.1, -0.5, 0.9, 0.999, -0.99999, 1, -1, 1e-4])
    case("Erfinv", raw.Erfinv(x=y), 5e-6)
    case("Ndtri", raw.Ndtri(x=at([1e-6, 0.01, 0.3, 0.5, 0.9, 0.99999, 0, 1])), 5e-6)
    case("LgammaSlope", tf.gradients(raw.Lgamma(x=x), x), 5e-6)


def rounded():
    x = f(4, 5, low=-9, high=9)
    for how in [{}, {"min": -1.3, "max": 4.0}, {"min": 0.5, "max": 4.0}, {"num_bits": 3, "narrow_range": True}]:
        case("FakeQuantWithMinMaxArgs", [raw.FakeQuantWithMinMaxArgs(inputs=x, **how), raw.FakeQuantWithMinMaxArgsGradient(gradients=f(4, 5), inputs=x, **how)], 1e-5)
    for lo, hi in [(-3.1, 5.2), (0, 0), (-7, -1)]:
        y = raw.FakeQuantWithMinMaxVars(inputs=x, min=at(lo), max=at(hi), num_bits=4)
        case("FakeQuantWithMinMaxVars", [y, *raw.FakeQuantWithMinMaxVarsGradient(gradients=f(4, 5), inputs=x, min=at(lo), max=at(hi), num_bits=4)], 1e-5)
    ends = dict(min=at([-1, -2, 0, -3, -9]), max=at([1, 3, 4, 0.5, 9]))
    case("FakeQuantWithMinMaxVarsPerChannel", [raw.FakeQuantWithMinMaxVarsPerChannel(inputs=x, **ends),
                                               *raw.FakeQuantWithMinMaxVarsPerChannelGradient(gradients=f(4, 5), inputs=x, **ends)], 1e-5)
    places = i([[0, 1], [2, 0], [2, 3], [0, 1]], np.int64)
    for a, b in [(False, False), (True, False), (False, True), (True, True)]:
        n = 3 if a else 4
        case("SparseTensorDenseMatMul", raw.SparseTensorDenseMatMul(a_indices=places, a_values=f(4), a_shape=i([3, 4], np.int64), b=f(2, n) if b else f(n, 2), adjoint_a=a, adjoint_b=b), 1e-5)
    case("SparseToDense", [raw.SparseToDense(sparse_indices=places[:3], output_shape=i([3, 5], np.int64), sparse_values=f(3), default_value=at(2)),
                           raw.SparseToDense(sparse_indices=i([1, 3]), output_shape=i([5]), sparse_values=at(4), default_value=at(-1))])
    for kind in ["Sum", "Mean", "SqrtN"]:
        rows = dict(data=f(6, 3), indices=i([5, 0, 0, 3]), segment_ids=i([0, 0, 2, 2]))
        case("SparseSegment" + kind, [getattr(raw, "SparseSegment" + kind)(**rows), getattr(raw, "SparseSegment" + kind + "WithNumSegments")(num_segments=i(5), **rows)], 1e-5)
    for index in [np.s_[1:3, ::2], np.s_[::-1, 0], np.s_[..., 3:0:-2], np.s_[2]]:
        y = f(4, 5)
        op = y[index].op
        masks = {k: op.get_attr(k) for k in ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"]}
        for value in [f(*y[index].shape), at(9)]:
            case("TensorStridedSliceUpdate", raw.TensorStridedSliceUpdate(input=y, begin=op.inputs[1], end=op.inputs[2], strides=op.inputs[3], value=value, **masks))


def gradients():
    x = f(2, 5, 6, 3)
    for radius in [0, 1, 4]:
        how = dict(depth_radius=radius, bias=1.5, alpha=0.3, beta=0.6)
        y = raw.LRN(input=x, **how)
        case("LRNGrad", raw.LRNGrad(input_grads=f(2, 5, 6, 3), input_image=x, output_image=y, **how), 1e-5)
    how = dict(ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding="SAME")
    pooled = raw.MaxPoolWithArgmax(input=x, **how)
    case("MaxPoolGradWithArgmax", raw.MaxPoolGradWithArgmax(input=x, grad=f(*pooled[0].shape), argmax=pooled[1], **how), 1e-5)
    for kernel in ["lanczos3", "triangle"]:
        case("ScaleAndTranslateGrad", raw.ScaleAndTranslateGrad(grads=f(2, 4, 8, 3), original_image=x, scale=at([0.7, 1.4]), translation=at([0.2, -0.3]), kernel_type=kernel), 2e-5)


def main(folder):
    with graph.as_default():
        for family in [elementwise, activations, shapes, products, windows, losses, indices, flow, signals, pictures, matrices, bins, rounded, gradients]:
            family()
        tensors = [tf.identity(t, name=f"y/{name}") for name, t, _ in cases]
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            values = session.run(tensors)
        lines = []
        for (name, _, tolerance), value in zip(cases, values):
            tf.constant(value, name=f"want/{name}")
            lines.append(f"y/{name} want/{name} {tolerance:g}\n")
    graph_def = graph.as_graph_def()
    for node in graph_def.node:  # what no reader needs
        for key in ["_output_shapes", "_class", "_read_only_resource_inputs", "_lower_using_switch_merge"]:
            if key in node.attr:
                del node.attr[key]
    for fn in graph_def.library.function:
        for node in fn.node_def:
            for key in ["_output_shapes", "_class"]:
                if key in node.attr:
                    del node.attr[key]
    with open(os.path.join(folder, "ops.pb"), "wb") as out:
        out.write(graph_def.SerializeToString(deterministic=True))
    with open(os.path.join(folder, "ops.txt"), "w") as out:
        out.writelines(lines)
    print(len(lines), "results,", os.path.getsize(os.path.join(folder, "ops.pb")), "bytes")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../golden/tensorflow"))
