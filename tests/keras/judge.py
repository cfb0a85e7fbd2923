"""judge.py TRAINYARD [--models N] [--seed S] [--only K,K ...] [--keep FOLDER]: random Keras models against Keras itself.

Each model (random_model.py) is saved by Keras, opened here and applied; trained STEPS steps on both sides on the same
batches; written back, loaded by Keras and applied; written as ONNX, checked and applied by ONNX Runtime where it is
installed. One process makes and judges all of them, since TensorFlow takes seconds to start.

    numbers                      may differ by
    predictions before training  1e-5 of the largest
    each loss                    1e-4
    weights read back            nothing: HDF5 and safetensors read by h5py and safetensors alone hold what Keras loads
    predictions of what we wrote 1e-5 of the largest, from those that Keras gives with the same weights (loaded: the same file),
                                 and 1e-3 from those of the model that Keras trained

One line a fault, one a model with --verbose, and a closing line.
"""
import argparse, io, json, os, re, shutil, subprocess, sys, tempfile, time, traceback, zipfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

arguments = argparse.ArgumentParser()
arguments.add_argument("trainyard")
arguments.add_argument("--models", type=int, default=40)
arguments.add_argument("--seed", type=int, default=1)
arguments.add_argument("--only", default="")
arguments.add_argument("--keep", default="")
arguments.add_argument("--until", default="", help="onnx: no training")
arguments.add_argument("--verbose", action="store_true")
given = arguments.parse_args()

import h5py
import keras
import numpy as np
import onnx
import tensorflow as tf

import random_model

try:
    import safetensors.numpy as safetensors
except ImportError:
    safetensors = None
try:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
except ImportError:
    onnxruntime = None

STEPS, ROWS = 5, 8
passed = failed = skipped = 0


class Fault(Exception):
    pass


def command(*words, folder=None):
    done = subprocess.run([os.path.abspath(given.trainyard), *words], capture_output=True, text=True, cwd=folder, timeout=900)
    if done.returncode:
        raise Fault(f"{words[0]} {words[1] if words[0] == 'model' else ''}: {done.stderr.strip() or done.stdout.strip()[:600]}")
    return done.stdout


def as_list(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def expect_near(what, wanted, found, limit):
    if len(wanted) != len(found):
        raise Fault(f"{what}: {len(found)} outputs, not {len(wanted)}")
    for y, z in zip(wanted, found):
        y, z = np.asarray(y, "f8"), np.asarray(z, "f8")
        if y.shape != z.shape:
            raise Fault(f"{what}: {z.shape}, not {y.shape}")
        scale = max(np.max(np.abs(y), initial=0), 1e-3)
        worst = np.max(np.abs(y - z), initial=0)
        if not worst <= limit * scale:
            raise Fault(f"{what}: differ by {worst:.3g} of {scale:.3g}")


# ---- what is written ----


class OwnStep(tf.Module):
    """A model that is saved with the function that trains it."""

    def __init__(self, model):
        super().__init__()
        self.model, self.optimizer = model, model.optimizer
        x, y = model.inputs[0], model.outputs[0]
        x, y = tf.TensorSpec(x.shape, x.dtype, name="x"), tf.TensorSpec(y.shape, y.dtype, name="y")
        self.forward = tf.function(lambda x: {"output": self.model(x, training=False)}, input_signature=[x])
        self.train = tf.function(self.step, input_signature=[x, y])

    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.model(x, training=True) - y)) + tf.add_n([tf.constant(0.0), *self.model.losses])
        weights = self.model.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        return {"loss": loss}


def save(made, folder, form):
    path = os.path.join(folder, {"keras": "model.keras", "h5": "model.h5"}.get(form, "saved_model"))
    if form == "own":
        made.own = OwnStep(made.model)
        tf.saved_model.save(made.own, path, {"forward": made.own.forward, "train": made.own.train})
    elif form == "export":
        made.model.export(path, verbose=False)
    else:
        made.model.save(path)
    return path


def recipe(made, folder, path, form):
    text = f"model: {os.path.basename(path)}\nbatch_size: {ROWS}\nmax_steps: {STEPS}\nlog_every: 1\n"
    text += "data: {train: {path: data.npz, shuffle: false}}\n"
    if form == "export":
        text += "loss: {type: mse}\noptimizer: {type: keras_adam, lr: 0.01}\nunmerged_rows: true\n"
    if form == "own":
        text += "signature: forward\ntrain_signature: train\nloss: {type: mse, target: \"y\"}\n"
    with open(os.path.join(folder, "train.yaml"), "w") as f:
        f.write(text)


def write_data(made, folder, inputs, targets):
    arrays = {}
    for i, x in enumerate(inputs):
        arrays["x" if len(inputs) == len(targets) == 1 else made.model.inputs[i].name] = x
    for i, y in enumerate(targets):
        arrays[f"y{i}" if len(targets) > 1 else "y"] = y
    np.savez(os.path.join(folder, "data.npz"), **arrays)


def losses_of(folder):
    found = {}
    with open(os.path.join(folder, "run/output/data/metrics.jsonl")) as f:
        for line in f:
            row = json.loads(line)
            if row.get("split") == "train" and "loss" in row:
                found[row["step"]] = row["loss"]
    return [found[k] for k in sorted(found)]


def apply_here(path, made, inputs, folder):
    words, info = [], json.loads(command("model", "info", path, "--json"))
    for i, x in enumerate(inputs):
        file = os.path.join(folder, f"in{i}.npy")
        np.save(file, x)
        names = [v["name"] for v in info["inputs"]]
        name = made.model.inputs[i].name
        words += ["--input", f"{name if name in names else names[i]}={file}"]
    told = json.loads(command("run", path, *words, "--output-dir", os.path.join(folder, "predictions"), "--json"))
    return [np.load(v["file"]) for v in told.values()]


def check_onnx(path, folder, inputs, made, wanted):
    out = os.path.join(folder, "model.onnx")
    told = json.loads(command("model", "convert", path, out, "--json"))
    onnx.checker.check_model(out, full_check=True)
    if told["why_static"]:
        raise Fault(f"onnx: the batch is fixed: {told['why_static']}")
    if not onnxruntime:
        return
    session = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
    names = [v.name for v in session.get_inputs()]
    for rows in (len(inputs[0]), 3):
        feed = {(made.model.inputs[i].name if made.model.inputs[i].name in names else names[i]): x[:rows] for i, x in enumerate(inputs)}
        expect_near(f"onnx, {rows} rows", [y[:rows] for y in wanted], session.run(None, feed), 1e-5)


# ---- one model ----


def predict(model, inputs):
    return [np.asarray(y) for y in as_list(model(inputs if len(inputs) > 1 else inputs[0], training=False))]


def train_there(made, inputs, targets):
    losses = []
    for k in range(STEPS):
        rows = slice(k * ROWS, (k + 1) * ROWS)
        if hasattr(made, "own"):
            losses.append(float(made.own.train(inputs[0][rows], targets[0][rows])["loss"]))
            continue
        x = [v[rows] for v in inputs]
        y = [v[rows] for v in targets]
        logs = made.model.train_on_batch(x if len(x) > 1 else x[0], y if len(y) > 1 else y[0], return_dict=True)
        losses.append(float(logs["loss"]))
    if getattr(made.model.optimizer, "use_ema", False):
        made.model.optimizer.finalize_variable_values(made.model.trainable_variables)
    return losses


def load_written(folder, form):
    places = [os.path.join(folder, "run/model", name) for name in os.listdir(os.path.join(folder, "run/model"))]
    endings = {"keras": ".keras", "h5": ".h5"}
    if form in ("export", "own"):
        path = next(p for p in places if os.path.isdir(p) and os.path.exists(os.path.join(p, "saved_model.pb")))
        loaded = tf.saved_model.load(path)
        if form == "own":
            return path, lambda x: as_list(loaded.signatures["forward"](tf.constant(x[0]))["output"])
        return path, lambda x: as_list(loaded.serve(*[tf.constant(v) for v in x]))
    path = next(p for p in places if p.endswith(endings[form]))
    loaded = keras.models.load_model(path, compile=form == "keras")
    return path, lambda x: predict(loaded, x)


def hdf5_arrays(path):
    """All data sets of a .h5 file, or of the weights inside a .keras file, as h5py alone reads them."""
    with zipfile.ZipFile(path).open("model.weights.h5") if path.endswith(".keras") else open(path, "rb") as f:
        bytes_ = io.BytesIO(f.read())
    arrays = []
    with h5py.File(bytes_, "r") as f:
        f.visititems(lambda name, item: arrays.append(np.asarray(item)) if isinstance(item, h5py.Dataset) else None)
    return arrays


def expect_all(what, wanted, found):
    """Each of the wanted arrays is among those that were found, bit for bit."""
    there = {(a.shape, a.tobytes()) for a in found}
    for w in wanted:
        if (w.shape, w.tobytes()) not in there:
            raise Fault(f"{what}: a weight of shape {w.shape} is missing or differs")


def check_files(path, folder, form):
    """What was written, read by libraries that know nothing of Keras."""
    if form not in ("keras", "h5"):
        return
    loaded = keras.models.load_model(path, compile=False)
    weights = [np.asarray(w) for w in loaded.weights if "seed_generator" not in w.path]
    expect_all("HDF5", weights, hdf5_arrays(path))
    if safetensors:  # has what may have changed: nothing of frozen layers
        frozen = {id(w) for layer in loaded._flatten_layers() if not layer.trainable for w in layer.weights}
        weights = [np.asarray(w) for w in loaded.weights if "seed_generator" not in w.path and id(w) not in frozen]
        expect_all("safetensors", weights, safetensors.load_file(os.path.join(folder, "run/model/model.safetensors")).values())


def judge(made, folder, form):
    rng = np.random.default_rng(made.seed + 77)
    inputs = [data(rng, STEPS * ROWS) for data in made.inputs]
    targets = [data(rng, STEPS * ROWS) for data in made.targets]
    if form in ("export", "own"):
        made.model.compile(keras.optimizers.Adam(0.01), "mse")
        targets = [rng.normal(size=(STEPS * ROWS, *made.model.outputs[0].shape[1:])).astype("f4")]
    first = [x[:ROWS] for x in inputs]
    made.model.optimizer.build(made.model.trainable_variables)
    path = save(made, folder, form)
    write_data(made, folder, inputs, targets)
    recipe(made, folder, path, form)
    before = predict(made.model, first)
    wanted = train_there(made, inputs, targets)
    after = predict(made.model, first)
    expect_near("applied", before, apply_here(path, made, first, folder), 1e-5)
    check_onnx(path, folder, first, made, before)
    if given.until == "onnx":
        return
    command("train", "train.yaml", "--fresh", folder=folder)
    found = losses_of(folder)
    if len(found) != STEPS:
        raise Fault(f"losses: {len(found)} of {STEPS}")
    for k, (y, z) in enumerate(zip(wanted, found)):
        if not abs(y - z) <= 1e-4 * max(abs(y), 1e-2):
            raise Fault(f"loss of step {k}: expected {y:.7g}, found {z:.7g}; expected {['%.6g' % v for v in wanted]}, found {['%.6g' % v for v in found]}")
    written, apply = load_written(folder, form)
    check_files(written, folder, form)
    there = [np.asarray(y) for y in apply(first)]
    expect_near("written, loaded by Keras", after, there, 1e-3)
    expect_near("written, applied here", there, apply_here(written, made, first, folder), 1e-5)


def form_of(k):
    return ["keras", "keras", "h5", "keras", "own" if k % 10 == 9 else "export"][k % 5]


def fits(made, form):
    kinds = {type(layer).__name__ for layer in made.model.layers}
    if form == "export":
        bound = made.model.losses or any(w.constraint for w in made.model.weights)  # of which such a file says nothing
        return len(made.targets) == 1 and "BatchNormalization" not in kinds and not bound
    if form == "own":
        return len(made.targets) == len(made.inputs) == 1 and not any(w.constraint for w in made.model.weights)
    if form == "h5":  # Keras 3.15 itself cannot load these from .h5: operation nodes, among them the one of a mask
        masks = any(getattr(layer, "mask_zero", False) for layer in made.model.layers)
        return not masks and ":operations" not in made.text and "nested" not in made.text and "Masking" not in kinds
    return True


def make(k, form):
    families = list(random_model.FAMILIES) if form != "own" else ["table", "image", "text", "volume", "series", "tokens"]
    for attempt in range(30):
        seed = given.seed * 100003 + k * 101 + attempt * 7919
        try:
            made = random_model.make(seed, families[(k // 10 if form == "own" else k) % len(families)])
        except (ValueError, TypeError, NotImplementedError):
            continue  # the parts do not fit together
        if fits(made, form):
            return made
    raise Fault("no model could be made")


def one(k, root):
    global passed, failed
    form, start = form_of(k), time.time()
    folder = os.path.join(root, f"model{k}")
    os.makedirs(folder)
    made = None
    try:
        made = make(k, form)
        judge(made, folder, form)
        passed += 1
        if given.verbose:
            print(f"ok {k} {form} {made.text} ({time.time() - start:.1f} s)", flush=True)
    except Exception as e:
        failed += 1
        text = str(e) if isinstance(e, Fault) else "".join(traceback.format_exception(e)[-3:])
        print(f"FAILED {k} {form} {made.text if made else ''} seed {made.seed if made else ''}: {text[:1500]}", flush=True)
    if not given.keep:
        shutil.rmtree(folder, ignore_errors=True)


root = given.keep or tempfile.mkdtemp()
if given.keep:
    shutil.rmtree(root, ignore_errors=True)
for k in [int(v) for v in given.only.split(",")] if given.only else range(given.models):
    one(k, root)
if not given.keep:
    shutil.rmtree(root, ignore_errors=True)
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(failed > 0)
