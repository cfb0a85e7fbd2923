"""Workloads whose weights travel as a recipe, not as bytes: an exported model without them is 100 kB, not 500 MB.

    bare.py export DIR [WORK...]     here: DIR/WORK/model.onnx, whose weights lie in weights.bin beside it, and
                                     weights.json: name, shape and place of each
    bare.py fill DIR WORK            there: DIR/WORK/weights.bin from the model in PyTorch, x0.npy ..., y.npy

Sizes are those of gpu_works.py.
"""
import json
import logging
import os
import sys
import warnings

import numpy as np
import torch

import gpu_works
import works

INPUTS = {"deepfm": ["ids", "values"], "mlp": ["x"], "cnn": ["x"], "resnet50": ["x"]}
SCOPES = "pkg.torch.onnx.name_scopes"
ALIGN = 64  # of a weight in the file


def export(folder, name):
    import onnx

    xs, _ = gpu_works.batches(name)
    net = works.model(name).eval()
    path = os.path.join(folder, name, "model.onnx")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    args = tuple(torch.from_numpy(x[0]) for x in xs)
    batch = torch.export.Dim("batch", min=1, max=1 << 20)
    torch.onnx.export(net, args, path, input_names=INPUTS.get(name, ["ids"]), output_names=["logits"],
                      dynamic_shapes=tuple({0: batch} for _ in args), opset_version=18, dynamo=True,
                      external_data=False, optimize=False, verbose=False)
    model, known, at, places = onnx.load(path), net.state_dict(), 0, []
    for tensor in model.graph.initializer:
        if tensor.name not in known:
            continue
        n = len(tensor.raw_data)
        places.append({"name": tensor.name, "shape": list(tensor.dims), "at": at, "bytes": n})
        onnx.external_data_helper.set_external_data(tensor, "weights.bin", offset=at, length=n)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        at += (n + ALIGN - 1) // ALIGN * ALIGN
    for node in model.graph.node:  # where in PyTorch's source it came from; layers keep their names
        scopes = [entry.value for entry in node.metadata_props if entry.key == SCOPES]
        del node.metadata_props[:]
        node.ClearField("doc_string")
        for value in scopes:
            node.metadata_props.add(key=SCOPES, value=value)
    for value in [*model.graph.value_info, *model.graph.input, *model.graph.output]:
        del value.metadata_props[:]
    with open(path, "wb") as out:
        out.write(model.SerializeToString(deterministic=True))
    with open(os.path.join(folder, name, "weights.json"), "w", encoding="utf-8") as out:
        json.dump({"bytes": at, "weights": places}, out, indent=0)
    print(name, os.path.getsize(path), "bytes,", at, "of weights")


def fill(folder, name):
    d = os.path.join(folder, name)
    with open(f"{d}/weights.json", encoding="utf-8") as told:
        told = json.load(told)
    known = {key: value.numpy() for key, value in works.model(name).state_dict().items()}
    with open(f"{d}/weights.bin.part", "wb") as out:
        out.truncate(told["bytes"])
        for place in told["weights"]:
            w = known[place["name"]]
            if list(w.shape) != place["shape"]:
                sys.exit(f"{name}: {place['name']} is {list(w.shape)}, {place['shape']} was exported")
            out.seek(place["at"])
            out.write(np.ascontiguousarray(w).tobytes())
    os.rename(f"{d}/weights.bin.part", f"{d}/weights.bin")
    np.savez(f"{d}/weights.npz", **known)
    xs, y = gpu_works.batches(name)
    for i, x in enumerate(xs):
        np.save(f"{d}/x{i}.npy", x)
    np.save(f"{d}/y.npy", y)
    print(name, told["bytes"], "bytes of weights,", sum(x.nbytes for x in xs), "of batches")


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    if sys.argv[1] == "export":
        for name in sys.argv[3:] or gpu_works.NAMES:
            export(sys.argv[2], name)
    else:
        fill(sys.argv[2], sys.argv[3])


if __name__ == "__main__":
    main()
