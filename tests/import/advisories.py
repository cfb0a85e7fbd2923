"""advisories.py FOLDER: one file, or more, of each public advisory about readers of models that we read too, made of bytes
by hand. Prints a line a case:

    ID <tab> path <tab> what a refusal must say; "" where the file is fine, - where only that it ends counts

What an advisory tells of other programs is the comment beside its case. Nothing here is more than a few hundred kilobytes.
"""
import io, json, os, struct, sys, tarfile, zipfile

ROOT = os.path.abspath(sys.argv[1])
SECRET = os.path.join(ROOT, "secret.bin")  # outside of every model's folder; nobody may read it
FIXTURES = os.path.join(ROOT, "fixtures")


def case(advisory, path, words):
    print(advisory, path, words, sep="\t")


def write(path, data):
    path = os.path.join(ROOT, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


# ---- protobuf, by hand ----

def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, *parts):
    body = b"".join(p if isinstance(p, bytes) else p.encode() for p in parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


# ---- ONNX ----

def entry(key, value):
    return message(13, message(1, key), message(2, str(value)))


def onnx_tensor(*external):
    return message(5, number(1, 4), number(2, 1), message(8, "w"), number(14, 1), *external)  # float32[4], EXTERNAL


def value(field, name):
    return message(field, message(1, name), message(2, message(1, number(1, 1), message(2, message(1, number(1, 4))))))


def onnx_model(initializer, *nodes):
    node = message(1, message(1, "x"), message(1, "w"), message(2, "y"), message(3, "n"), message(4, "Add"))
    graph = message(7, node, *nodes, message(2, "g"), initializer, value(11, "x"), value(12, "y"))
    return number(1, 8) + graph + message(8, number(2, 17))


def onnx():
    data = struct.pack("<4f", 1, 2, 3, 4)
    write("secret.bin", data)
    whole = [entry("offset", 0), entry("length", 16)]
    # weights outside of the model's folder
    case("CVE-2022-25882", write("onnx/parent/m.onnx", onnx_model(onnx_tensor(entry("location", "../../secret.bin"), *whole))), "../../secret.bin")
    # the same behind a check of the first part alone, and by an absolute path
    os.makedirs(os.path.join(ROOT, "onnx/below/sub"))
    case("CVE-2024-27318", write("onnx/below/m.onnx", onnx_model(onnx_tensor(entry("location", "sub/../../../secret.bin"), *whole))), "secret.bin")
    case("CVE-2024-27318", write("onnx/absolute/m.onnx", onnx_model(onnx_tensor(entry("location", SECRET), *whole))), "secret.bin")
    # a folder on the way that is a link
    path = write("onnx/link_folder/m.onnx", onnx_model(onnx_tensor(entry("location", "away/secret.bin"), *whole)))
    os.symlink(ROOT, os.path.join(ROOT, "onnx/link_folder/away"))
    case("CVE-2026-27489", path, "away/secret.bin")
    # another name of a file outside
    path = write("onnx/hard/m.onnx", onnx_model(onnx_tensor(entry("location", "w.bin"), *whole)))
    os.link(SECRET, os.path.join(ROOT, "onnx/hard/w.bin"))
    case("CVE-2026-34446", path, "w.bin")
    path = write("onnx/soft/m.onnx", onnx_model(onnx_tensor(entry("location", "w.bin"), *whole)))
    os.symlink(SECRET, os.path.join(ROOT, "onnx/soft/w.bin"))
    case("CVE-2026-34447", path, "w.bin")
    # keys that nobody knows, and numbers that no file has
    write("onnx/keys/w.bin", data)
    case("GHSA-538c-55jv-c5g9", write("onnx/keys/m.onnx", onnx_model(onnx_tensor(entry("location", "w.bin"), entry("__class__", "os.system"), *whole))), "")
    for i, (offset, length, words) in enumerate([(-16, 16, "offset"), (1 << 62, 16, "w.bin"), (0, 1 << 62, "length"), (0, -1, "length"), ("9" * 40, 16, "offset")]):
        write(f"onnx/numbers{i}/w.bin", data)
        case("GHSA-538c-55jv-c5g9", write(f"onnx/numbers{i}/m.onnx", onnx_model(onnx_tensor(entry("location", "w.bin"), entry("offset", offset), entry("length", length)))), words)


# ---- Keras ----

def functional(layer, more=b""):
    inputs = {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [None, 4], "dtype": "float32", "name": "in"}, "registered_name": None}
    return {"module": "keras", "class_name": "Sequential", "config": {"name": "s", "trainable": True, "dtype": "float32", "layers": [inputs, layer]},
            "registered_name": None, "build_config": {"input_shape": [None, 4]}}


def keras_file(path, config):
    """A .keras file without weights, or its configuration alone, which is a model too."""
    if path.endswith(".json"):
        return write(path, json.dumps(config).encode())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("metadata.json", json.dumps({"keras_version": "3.15.0", "date_saved": "2026-01-01@00:00:00"}))
        z.writestr("config.json", config if isinstance(config, str) else json.dumps(config))
    return write(path, out.getvalue())


def dense(**more):
    return {"module": "keras.layers", "class_name": "Dense", "registered_name": None,
            "config": {"name": "d", "trainable": True, "dtype": "float32", "units": 2, "activation": "linear", "use_bias": True, **more}}


def keras():
    run = "__import__('os').system('touch " + os.path.join(ROOT, "ran") + "')"
    code = {"class_name": "__lambda__", "config": {"code": "4wAAAAA=", "defaults": None, "closure": None, "source": run}}
    # code in the file, run when it is loaded
    case("CVE-2024-3660", keras_file("keras/code.json", functional({"module": "keras.layers", "class_name": "Lambda", "registered_name": None,
                                                                       "config": {"name": "l", "trainable": True, "dtype": "float32", "function": code, "arguments": {}}})), "Lambda")
    # any function of any module of Python's, by its name, where a layer or one of its settings is expected
    call = {"module": "os", "class_name": "function", "config": "system", "registered_name": "system"}
    case("CVE-2025-1550", keras_file("keras/module.json", functional(dense(activation=call))), "system")
    case("CVE-2025-1550", keras_file("keras/layer.json", functional({"module": "subprocess", "class_name": "Popen", "registered_name": None, "config": {"args": run, "name": "p"}})), "Popen")
    # the older format, to which "safe mode" did not apply: a layer's class changed in a file that Keras wrote
    with open(os.path.join(FIXTURES, "trained.h5"), "rb") as f:
        h5 = f.read()
    at = h5.index(b'"class_name": "Dense"')
    case("CVE-2025-9905", write("keras/code.h5", h5[:at] + b'"class_name":"Lambda"' + h5[at + 21:]), "Lambda")
    # a setting that turns the safe mode off while the file is read
    off = {"module": "keras.config", "class_name": "function", "config": "enable_unsafe_deserialization", "registered_name": "function"}
    case("CVE-2025-9906", keras_file("keras/unsafe.json", functional(dense(kernel_initializer=off))), "unknown initializer function")
    # a few bytes that claim petabytes
    case("CVE-2026-0897", os.path.join(FIXTURES, "bad_claim.keras"), "bad_claim.keras")
    case("CVE-2026-0897", os.path.join(FIXTURES, "bad_bomb.keras"), "bad_bomb.keras")
    huge = functional(dense(units=1 << 60))
    case("CVE-2026-0897", keras_file("keras/units.json", huge), "units")
    # null wherever cJSON's callers expected a text, a list or an object
    for i, config in enumerate(["null", "[null]", '{"class_name": null, "config": null}', '{"class_name": "Sequential", "config": {"layers": [null, null]}}',
                                '{"class_name": "Sequential", "config": {"layers": null}}', '{"class_name": "Functional", "config": {"layers": [{"class_name": null}], "input_layers": null}}']):
        case("CVE-2023-50471", keras_file(f"keras/null{i}.keras", config), f"null{i}.keras")
    text = json.dumps(functional(dense(activation=None, name=None, units=None)))
    case("CVE-2024-31755", keras_file("keras/null_text.keras", text), "null_text.keras")
    for name in ("bad_external", "bad_virtual", "bad_storage", "bad_filter", "bad_h5"):  # HDF5's long tail, CVE-2016-4333 and CVE-2026-26200 among it
        case("CVE-2016-4333", os.path.join(FIXTURES, name + ".keras"), name)


# ---- TensorFlow ----

def node(name, op, *parts, field=1):
    return message(field, message(1, name), message(2, op), *parts)


def attr(key, *parts):
    return message(5, message(1, key), message(2, *parts))


def frozen(*nodes):
    x = node("x", "Placeholder", attr("dtype", number(6, 1)), attr("shape", message(7, message(2, number(1, 4)))))
    return b"".join([x, *nodes])


def function(name, calls):
    signature = message(1, message(1, name), message(2, message(1, "a"), number(3, 1)), message(3, message(1, "r"), number(3, 1)))
    call = node("c", "PartitionedCall", message(3, "a"), attr("f", message(10, message(1, calls))), field=3)
    return message(1, signature, call, message(4, message(1, "r"), message(2, "c:output:0")))


def saved_model(path, graph):
    port = lambda name: message(1, name), number(2, 1)
    signature = message(2, message(1, message(1, "x"), message(2, message(1, "x:0"), number(2, 1))),
                        message(2, message(1, "y"), message(2, message(1, "y:0"), number(2, 1))), message(3, "tensorflow/serving/predict"))
    meta = message(2, message(1, message(4, "serve")), message(2, graph), message(5, message(1, "serving_default"), signature))
    return os.path.dirname(write(path + "/saved_model.pb", number(1, 1) + meta))


def tensorflow():
    # nodes that are none
    case("CVE-2022-23590", write("tf/no_op.pb", frozen(node("y", "", message(3, "x")))), "no_op.pb")
    case("CVE-2022-23590", write("tf/no_type.pb", frozen(node("y", "Relu", message(3, "x"), attr("T", message(10, message(1, "f")))))), "-")
    case("CVE-2022-23590", write("tf/shape.pb", frozen(node("y", "Reshape", message(3, "x"), message(3, "s"), attr("T", number(6, 1))),
                                                       node("s", "Const", attr("dtype", number(6, 3)), attr("value", message(8, number(1, 3), message(2, message(2, number(1, -7)))))))), "shape.pb")
    # functions that call themselves, and each other
    call = node("y", "PartitionedCall", message(3, "x"), attr("f", message(10, message(1, "f"))))
    case("CVE-2022-23591", saved_model("tf/itself", frozen(call) + message(2, function("f", "f"))), "itself")
    case("CVE-2022-23591", saved_model("tf/each_other", frozen(call) + message(2, function("f", "g"), function("g", "f"))), "other")
    # edges that lead nowhere
    for i, name in enumerate([":", "^", "x:-1", "x:99999999999999999999", "y", "^y", "nobody", ""]):
        case("CVE-2022-23594", write(f"tf/edge{i}.pb", frozen(node("y", "Relu", message(3, name), attr("T", number(6, 1))))), f"edge{i}.pb")
    # checkpoints whose index claims what the file has not
    folder = saved_model("tf/extents", frozen(node("v", "VarHandleOp", attr("dtype", number(6, 1)), attr("shape", message(7, message(2, number(1, 4)))), attr("shared_name", message(2, "v"))),
                                              node("y", "Relu", message(3, "x"), attr("T", number(6, 1)))))
    write("tf/extents/variables/variables.index", b"\xff" * 48 + struct.pack("<Q", 0xDB4775248B80FB57))
    write("tf/extents/variables/variables.data-00000-of-00001", b"")
    case("checkpoint seeds", folder, "variables.index")


# ---- protobuf ----

def protobuf():
    # messages in messages, to any depth: graphs of nodes' attributes, functions of attributes
    inner = b""
    for _ in range(20000):
        inner = message(1, message(4, "If"), message(5, message(1, "then_branch"), number(20, 5), message(6, inner[:])))[:1 << 20] if len(inner) < 400000 else inner
    case("CVE-2025-4565", write("protobuf/deep.onnx", number(1, 8) + message(7, inner) + message(8, number(2, 17))), "deep.onnx")
    inner = b""
    while len(inner) < 300000:
        inner = message(10, message(1, "f"), message(2, message(1, "f"), message(2, inner)))
    case("CVE-2022-3171", write("protobuf/deep.pb", frozen(node("y", "Relu", message(3, "x"), message(5, message(1, "T"), message(2, inner))))), "deep.pb")
    # a message a hundred thousand times, each to be merged into the one before
    many = b"".join(message(7, message(2, "g")) for _ in range(100000))
    case("CVE-2022-1941", write("protobuf/many.onnx", number(1, 8) + many + message(8, number(2, 17))), "many.onnx")


# ---- archives of code ----

def tar(path, *members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, kind, link in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link
            data = b"x" if kind == tarfile.REGTYPE else b""
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return write(path, out.getvalue())


def archives():
    # names that lead out, links that do, and links to links of which each alone stays inside
    case("CVE-2007-4559", tar("tar/parent.tgz", ("../out.txt", tarfile.REGTYPE, "")), "tar")
    case("CVE-2007-4559", tar("tar/absolute.tgz", (os.path.join(ROOT, "out.txt"), tarfile.REGTYPE, "")), "tar")
    case("CVE-2025-12060", tar("tar/link.tgz", ("away", tarfile.SYMTYPE, "../"), ("away/out.txt", tarfile.REGTYPE, "")), "tar")
    case("GHSA-83g3-92jg-28cx", tar("tar/hops.tgz", ("a", tarfile.DIRTYPE, ""), ("a/b", tarfile.DIRTYPE, ""), ("a/b/up", tarfile.SYMTYPE, ".."),
                                    ("a/b/up2", tarfile.SYMTYPE, "up/../.."), ("a/b/up2/out.txt", tarfile.REGTYPE, "")), "tar")
    case("GHSA-83g3-92jg-28cx", tar("tar/hard.tgz", ("a", tarfile.SYMTYPE, ".."), ("h", tarfile.LNKTYPE, "a/secret"), ("h", tarfile.REGTYPE, "")), "tar")


onnx()
keras()
tensorflow()
protobuf()
archives()
