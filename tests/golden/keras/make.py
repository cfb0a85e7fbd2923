#!/usr/bin/env python3
"""make.py FOLDER: small files as Keras writes them, and files that must be refused (bad_*). tests/unit/keras_file.c says
what is expected of each. Needs keras 3 and h5py; what it wrote is in
files.tar.xz beside it, so that tests need neither."""
import io, json, os, sys, zipfile
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import h5py, keras, numpy as np
from keras import layers

out = sys.argv[1]
at = lambda name: os.path.join(out, name)


def dense():
    keras.utils.set_random_seed(1)
    m = keras.Sequential([keras.Input((3,)), layers.Dense(4, activation="relu", name="first"), layers.Dense(2, name="second")],
                         name="small")
    m.compile("adam", "mse")
    return m


m = dense()
m.save(at("untrained.keras"))
open(at("apart.json"), "w").write(m.to_json())
m.save_weights(at("apart.weights.h5"))
m.fit(np.ones((4, 3), "f4"), np.ones((4, 2), "f4"), epochs=2, batch_size=4, verbose=0)
m.save(at("trained.keras"))
m.save(at("trained.h5"))

# Types and storage, as numbered variables.
with zipfile.ZipFile(at("trained.keras")) as z:
    members = {n: z.read(n) for n in z.namelist()}


def archive(name, h5=None, config=None, extra=()):
    """An archive with another HDF5 file, or other members."""
    with zipfile.ZipFile(at(name), "w") as z:
        for n in ("metadata.json", "config.json", "model.weights.h5"):
            data = {"config.json": config, "model.weights.h5": h5}.get(n) or members[n]
            z.writestr(zipfile.ZipInfo(n), data)
        for info, data in extra:
            z.writestr(info, data)


def h5_file(fill, **kw):
    b = io.BytesIO()
    with h5py.File(b, "w", **kw) as f:
        fill(f)
    return b.getvalue()


def types(f):
    v = f.create_group("layers/a/vars")
    v.attrs["name"] = "a"
    x = np.array([[1.5, -2, 0.25], [4, 5, 6]])
    for i, t in enumerate(["<f2", "<f4", "<f8", ">f4", ">f8", ">f2", "<i4", ">i8", "<u2", "|i1"]):
        v[str(i)] = x.astype(t)
    v["10"] = np.array([True, False, True])
    import ml_dtypes
    v.create_dataset("11", data=x.astype(ml_dtypes.bfloat16)).attrs["dtype"] = "bfloat16"
    big = np.arange(600, dtype="f4").reshape(20, 30)
    v.create_dataset("12", data=big, chunks=(7, 8), compression="gzip", shuffle=True, fletcher32=True)
    v["13"] = np.float32(7)
    v["14"] = np.zeros((0, 3), "f4")
    v.create_dataset("15", data=big, chunks=(7, 8))


archive("types.keras", h5_file(types))
archive("types_1_10.keras", h5_file(types, libver=("v110", "v110")))


def old_group(f):
    v = f.create_group("_layer_checkpoint_dependencies/dense/vars")
    v["0"] = np.ones((3, 4), "f4")


archive("old_group.keras", h5_file(old_group))

# A legacy file in which lists of names are cut, and texts are of fixed length.
with h5py.File(at("cut_names.h5"), "w") as f:
    f.attrs["model_config"] = np.bytes_(json.dumps({"class_name": "Sequential", "config": {"layers": []}}))
    f.attrs["keras_version"] = "2.3.1"
    g = f.create_group("model_weights")
    g.attrs["layer_names0"] = np.array([b"b"])
    g.attrs["layer_names1"] = np.array([b"a", b"empty"])
    for layer in ("a", "b"):
        l = g.create_group(layer)
        l.attrs["weight_names"] = np.array([(layer + "/k:0").encode(), (layer + "/b:0").encode()])
        l[layer + "/k:0"] = np.full((2, 2), ord(layer), "f4")
        l[layer + "/b:0"] = np.full((2,), ord(layer), "f4")
    g.create_group("empty").attrs["weight_names"] = []

# ---- to be refused ----


def bad(name, fill):
    archive("bad_" + name + ".keras", h5_file(fill))


def bad_soft(f):
    f["layers/a/vars/0"] = np.ones(2, "f4")
    f["layers/b"] = h5py.SoftLink("/layers/a")


def bad_external(f):
    f["layers/a"] = h5py.ExternalLink("/etc/passwd", "/")


def bad_virtual(f):
    layout = h5py.VirtualLayout((2,), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", (2,))
    f.create_group("layers/a/vars").create_virtual_dataset("0", layout)


def bad_cycle(f):
    g = f.create_group("layers/a")
    g["again"] = f["layers"]


def bad_deep(f):
    f.create_group("/".join("g" * 40))


def bad_bomb(f):
    f.create_dataset("layers/a/vars/0", shape=(1 << 36,), dtype="f4", chunks=(1 << 20,), compression="gzip")


def bad_claim(f):
    f.create_dataset("layers/a/vars/0", shape=(1 << 20,), dtype="f4")


def bad_rank(f):
    f["layers/a/vars/0"] = np.ones((1,) * 9, "f4")


def bad_text(f):
    f["layers/a/vars/0"] = np.array([b"one", b"two"])


def bad_filter(f):
    f.create_dataset("layers/a/vars/0", data=np.ones(100, "f4"), chunks=(10,), compression="lzf")


for name, fill in [(k[4:], v) for k, v in list(globals().items()) if k.startswith("bad_")]:
    bad(name, fill)

# External storage: h5py wants a file to exist, the file is not in the archive.
h5 = h5_file(lambda f: None)
with h5py.File(at("bad_storage.tmp"), "w") as f:
    f.create_dataset("layers/a/vars/0", shape=(4,), dtype="f4", external=[("/etc/hostname", 0, 16)])
archive("bad_storage.keras", open(at("bad_storage.tmp"), "rb").read())
os.remove(at("bad_storage.tmp"))

link = zipfile.ZipInfo("assets/link")
link.create_system, link.external_attr = 3, 0o120777 << 16
archive("bad_link.keras", extra=[(link, "/etc/passwd")])
archive("bad_traversal.keras", extra=[(zipfile.ZipInfo("../../tmp/keras-was-here"), "x")])
archive("bad_absolute.keras", extra=[(zipfile.ZipInfo("/tmp/keras-was-here"), "x")])
archive("bad_twice.keras", extra=[(zipfile.ZipInfo("config.json"), "{}")])
archive("bad_config.keras", config=b'{"module": "keras", "class_name": ')
archive("bad_depth.keras", config=b'{"class_name": ' + b"[" * 400 + b"]" * 400 + b"}")
archive("bad_nothing.keras", config=b'{"no": "model"}')
archive("bad_h5.keras", h5=b"not HDF5" * 20)
archive("bad_cut.keras", h5=members["model.weights.h5"][:3000])
with zipfile.ZipFile(at("bad_missing.keras"), "w") as z:
    z.writestr(zipfile.ZipInfo("metadata.json"), members["metadata.json"])
    z.writestr(zipfile.ZipInfo("config.json"), members["config.json"])
with zipfile.ZipFile(at("bad_inflation.keras"), "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("metadata.json", members["metadata.json"])
    z.writestr("config.json", b" " * (300 << 20))
with h5py.File(at("bad_listed.h5"), "w") as f:
    f.attrs["model_config"] = json.dumps({"class_name": "Sequential", "config": {"layers": []}})
    g = f.create_group("model_weights")
    g.attrs["layer_names"] = np.array([b"a"])
    g.create_group("a").attrs["weight_names"] = np.array([b"../../x"])
with h5py.File(at("bad_alone.h5"), "w") as f:
    f["layers/a/vars/0"] = np.ones(2, "f4")
