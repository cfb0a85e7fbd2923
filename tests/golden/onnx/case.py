"""Cases in the form of ONNX's backend tests, for tests/onnx-backend: NAME/model.onnx with inputs and expected outputs.

What is expected comes from `want` (numpy, ml_dtypes) where it is given, else from onnx.reference.
"""

import io
import os
import tarfile

import ml_dtypes
import numpy
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FLOAT = onnx.TensorProto.FLOAT
BF16 = numpy.dtype(ml_dtypes.bfloat16)
files = {}


def elem_type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def tensor(array, name):
    """A TensorProto with raw data; numpy_helper knows ml_dtypes' types, too."""
    array = numpy.ascontiguousarray(array).reshape(array.shape)
    return helper.make_tensor(name, elem_type(array), array.shape, array.tobytes(), raw=True)


def value(name, array):
    return helper.make_tensor_value_info(name, elem_type(array), array.shape)


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def case(name, nodes, inputs, opset, want=None, outputs="y", weights=(), domains=(), functions=(), extra=()):
    """inputs, weights: {name: array}; weights become initializers. want: a list of arrays, one an output."""
    names = outputs.split()
    weights = dict(weights)

    def model(infos):
        graph = helper.make_graph(nodes, "g", [value(k, v) for k, v in inputs.items()], infos,
                                  [tensor(v, k) for k, v in weights.items()] + list(extra))
        sets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
        return helper.make_model(graph, ir_version=max(8, min(13, opset - 11)), opset_imports=sets,
                                 functions=list(functions), producer_name="")

    if want is None:
        untyped = model([onnx.ValueInfoProto(name=n) for n in names])
        want = ReferenceEvaluator(untyped).run(names, dict(inputs))
    want = [numpy.asarray(w) for w in want]
    assert len(want) == len(names) and name not in {n.split("/")[0] for n in files}, name
    put(name, model([value(n, w) for n, w in zip(names, want)]), inputs, want)


def put(name, model, inputs, want):
    files[f"{name}/model.onnx"] = model.SerializeToString(deterministic=True)
    for kind, arrays in (("input", list(inputs.values())), ("output", want)):
        for i, a in enumerate(arrays):
            files[f"{name}/test_data_set_0/{kind}_{i}.pb"] = tensor(a, f"{kind}_{i}").SerializeToString()


def write(path):
    """The same bytes from the same cases."""
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size = len(files[name])
            archive.addfile(info, io.BytesIO(files[name]))
    print(f"{len({n.split('/')[0] for n in files})} cases, {os.path.getsize(path)} bytes")
