"""judge.py TRAINYARD OPSETS CASE...: what `trainyard model convert` writes, judged by onnx.checker and ONNX Runtime.

CASE is a folder with a model and x0.npy, x1.npy ... [batches, rows, ...] in the order of recipe.yaml's inputs, or a model
file. Each is converted with each opset and must pass the checker with shape inference, give what the original gives (run
by ONNX Runtime, or where that cannot, by `trainyard run`) for two batch sizes, and come out the same when it is converted again.
Prints one line a fault and a closing line.
"""
import json, os, re, subprocess, sys, tempfile
import numpy as np
import onnx
import onnxruntime

onnxruntime.set_default_logger_severity(4)
TRAINYARD, OPSETS = sys.argv[1], sys.argv[2].split(",")
passed = failed = 0


def verdict(what, fault):
    global passed, failed
    if fault:
        failed += 1
        print(f"FAILED: {what}: {fault}"[:2000], flush=True)
    else:
        passed += 1


def command(*words):
    done = subprocess.run([TRAINYARD, *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def types(model):
    """Inputs of a model as `trainyard model info` lists them: name, dtype, shape."""
    code, out, err = command("model", "info", model, "--json")
    if code:
        raise RuntimeError(err)
    return json.loads(out)


DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64, "i32": np.int32, "bool": np.bool_,
          "u8": np.uint8, "i8": np.int8}


def inputs_of(case, info):
    """Arrays by input name, of 6 rows or as many as the case has."""
    recipe = os.path.join(case, "recipe.yaml")
    if os.path.isfile(recipe):
        named = re.search(r"^inputs: \{(.*?)\}", open(recipe).read(), re.S | re.M).group(1)
        pairs = [p.split(":") for p in named.replace("\n", " ").split(",")]
        return {k.strip(): np.load(os.path.join(case, v.strip()))[0] for k, v in pairs}
    rng = np.random.default_rng(3)
    feed = {}
    for v in info["inputs"]:
        shape = [6 if isinstance(d, str) else d for d in v["shape"]]
        dtype = DTYPES[v["dtype"]]
        feed[v["name"]] = (rng.normal(size=shape) if np.issubdtype(dtype, np.floating) else
                           rng.integers(0, 2, size=shape)).astype(dtype)
    return feed


def run_onnx(path, feed):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feed)))


def run_here(path, feed, folder):
    words = []
    for k, v in feed.items():
        file = os.path.join(folder, re.sub(r"\W", "_", k) + ".npy")
        np.save(file, v)
        words += ["--input", f"{k}={file}"]
    code, out, err = command("run", path, *words, "--output-dir", folder, "--json")
    if code:
        raise RuntimeError(err)
    return {k: np.load(v["file"]) for k, v in json.loads(out).items()}


def exported_for_training(model):
    """Such a file asks for the statistics of the batch; what is converted is the model in evaluation."""
    if "examples/digits/" in model:
        return True
    recipe = os.path.join(os.path.dirname(model), "recipe.yaml")
    return os.path.isfile(recipe) and "exported_as: training" in open(recipe).read()


def original(model, feed, folder):
    if model.endswith(".onnx") and not exported_for_training(model):
        try:
            return run_onnx(model, feed)
        except Exception:
            pass
    return run_here(model, feed, folder)


def difference(wanted, found):
    for name, y in wanted.items():
        if name not in found:
            return f"output {name} is missing"
        z = found[name]
        if y.shape != z.shape or y.dtype != z.dtype:
            return f"output {name}: {y.dtype}{y.shape} became {z.dtype}{z.shape}"
        if y.dtype == np.bool_ or np.issubdtype(y.dtype, np.integer):
            if (y != z).mean() > 0.01:
                return f"output {name}: {(y != z).sum()} of {y.size} integers differ"
        elif y.size:
            scale = np.max(np.abs(y[np.isfinite(y)]), initial=1e-6)
            if not np.allclose(y / scale, z / scale, rtol=1e-4, atol=1e-5, equal_nan=True):
                return f"output {name}: differs by {np.nanmax(np.abs(y - z)):.3g} of {scale:.3g}"
    return None


def judge(case, folder):
    model = case
    if os.path.isfile(os.path.join(case, "recipe.yaml")):
        model = os.path.join(case, re.search(r"^model: (.*)$", open(os.path.join(case, "recipe.yaml")).read(), re.M).group(1).strip())
    what = os.path.basename(case.rstrip("/")) if os.path.isdir(case) else "/".join(case.split("/")[-2:])
    info = types(model)
    feed = inputs_of(case, info)
    names = [v["name"] for v in info["inputs"]]
    if len(names) == 1 and len(feed) == 1:  # a signature may call it by another name
        feed = {names[0]: next(iter(feed.values()))}
    free = all(isinstance(v["shape"][0], str) for v in info["inputs"] if v["shape"])
    rows = max(v.shape[0] for v in feed.values() if v.ndim)
    sizes = [rows, max(1, rows // 2 + 1)] if free else [rows]
    feeds = [{k: v[:n] for k, v in feed.items()} if free else feed for n in sizes]
    wanted = [original(model, f, folder) for f in feeds]
    for opset in OPSETS:
        out = os.path.join(folder, "out.onnx")
        code, text, err = command("model", "convert", model, out, "--opset", opset, "--json")
        if code:
            verdict(f"{what} opset {opset}", err.strip())
            continue
        told = json.loads(text)
        fault = f"the batch is fixed: {told['why_static']}" if told["why_static"] else None
        try:
            onnx.checker.check_model(out, full_check=True)
            for f, y in zip(feeds, wanted):
                if told["batch"] and free:
                    f = {k: v[:1] for k, v in f.items()}
                    y = original(model, f, folder)
                fault = fault or difference(y, run_onnx(out, f))
        except Exception as e:
            fault = fault or f"{type(e).__name__}: {e}"
        verdict(f"{what} opset {opset}", fault)
        again = os.path.join(folder, "again.onnx")
        code, text, err = command("model", "convert", out, again, "--opset", opset)
        fault = (err or text).strip() if code else None
        for f, y in zip(feeds, wanted):
            fault = fault or (None if told["batch"] and free else difference(y, run_onnx(again, f)))
        verdict(f"{what} opset {opset} again", fault)


with tempfile.TemporaryDirectory() as folder:
    for case in sys.argv[3:]:
        try:
            judge(case, folder)
        except Exception as e:
            verdict(case, f"{type(e).__name__}: {e}")
print(f"{passed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
