"""Judges tests/tools/tf_file.c by TensorFlow itself.

    tensorflow_files.py TOOL SCRATCH FILE[:SIGNATURE[:TRAIN]] ...

For each SavedModel folder or TF1 checkpoint: every tensor that the tool reads equals tf.train.load_checkpoint's; what it
writes with 1 added to each f32 weight in use is loaded by load_checkpoint and, for folders, by tf.saved_model.load (tags
as in the file), with exactly these tensors changed; the fingerprint says what TensorFlow computes for the new folder.
Frozen graphs: the constants.
"""
import os
import subprocess
import sys
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import fingerprint_pb2
from tensorflow.python.saved_model import loader_impl
from tensorflow.python.saved_model.pywrap_saved_model import fingerprinting

from tensorflow_crc import crc32c

def show(tool, path, options):
    text = subprocess.run([tool, *options, "show", path], check=True, capture_output=True, text=True).stdout
    out = []
    for line in text.splitlines():
        if line.startswith("variable "):
            words = line.split()
            key = line.split(" key ", 1)[1]
            out.append((words[1], words[2], words[3], "used" in words[4:-1], None if key == "-" else key))
    return out


def constants(path):
    graph = tf.compat.v1.GraphDef.FromString(open(path, "rb").read())
    return {n.name: tf.make_ndarray(n.attr["value"].tensor) for n in graph.node if n.op == "Const"}


def tensors(path):
    if path.endswith(".pb"):
        return constants(path)
    if os.path.isdir(path) and not os.path.exists(path + "/variables/variables.index"):
        meta = loader_impl.parse_saved_model(path).meta_graphs[0]
        return {n.name: tf.make_ndarray(n.attr["value"].tensor) for n in meta.graph_def.node if n.op == "Const"}
    reader = tf.train.load_checkpoint(path + "/variables/variables" if os.path.isdir(path) else path[: -len(".meta")])
    return {k: np.asarray(reader.get_tensor(k)) for k in reader.get_variable_to_shape_map()}


def load(path):
    tags = list(loader_impl.parse_saved_model(path).meta_graphs[0].meta_info_def.tags)
    return tf.saved_model.load(path, tags=tags)


def loads(path):
    """Some files of TF1 TensorFlow 2 refuses whoever wrote them."""
    try:
        return load(path) is not None
    except Exception:
        return False


def check(tool, scratch, spec):
    path, *chosen = spec.split(":")
    options = [w for pair in zip(("-s", "-t"), chosen) for w in pair]
    old, shown = tensors(path), show(tool, path, options)
    used = set()
    for name, _, crc, is_used, key in shown:
        value = old.get(key or name)
        if value is None or crc == "00000000":
            continue
        n = sum(other[4] == key for other in shown) if "/part_" in name and key else 1
        parts = np.split(value, n) if value.ndim else [value]
        assert int(crc, 16) in [crc32c(p.tobytes()) for p in parts], f"{name}: other bytes than TensorFlow reads"
        if is_used and value.dtype == np.float32:
            used.add(key or name)
    to = os.path.join(scratch, str(zlib.crc32(spec.encode())) + (path[path.rindex("."):] if path.endswith((".pb", ".meta")) else ""))
    subprocess.run([tool, *options, "shift", path, to], check=True)
    new = tensors(to)
    assert list(new) == list(old) or sorted(new) == sorted(old), "other tensors than before"
    for key, value in old.items():
        twin = value.dtype == np.float32 and any(np.array_equal(v, value) for k, v in old.items() if k in used)
        wanted = value + np.float32(1) if key in used else value
        same = np.array_equal(new[key], wanted)
        assert same or (twin and np.array_equal(new[key], value + np.float32(1))), f"{key} was written wrongly"
    assert used, "no weights in use"
    if os.path.isdir(to):
        if loads(path):
            load(to)
        if os.path.exists(to + "/fingerprint.pb"):
            ours = tf.saved_model.experimental.read_fingerprint(to)
            made = fingerprinting.CreateFingerprintDef(to)
            made = fingerprint_pb2.FingerprintDef.FromString(made)
            assert ours.checkpoint_hash == made.checkpoint_hash, "the fingerprint's checkpoint hash is wrong"
    return len(used)


def main():
    tool, scratch, *specs = sys.argv[1:]
    failed = 0
    for spec in specs:
        try:
            print(f"PASS {spec}: {check(tool, scratch, spec)} weights written")
        except Exception as e:  # each file counts alone
            failed += 1
            print(f"FAIL {spec}: {type(e).__name__}: {e}"[:600])
    print(f"{len(specs) - failed} passed, {failed} failed, 0 skipped")
    return failed > 0


sys.exit(main())
