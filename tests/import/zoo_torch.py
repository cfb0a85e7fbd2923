"""zoo_torch.py TRAINYARD [NAME ...]: models of torchvision, timm and Hugging Face, random and without dropout, written by PyTorch's
exporters: imported, applied, a step of gradient descent, beside PyTorch's own in 64 bits; what its own in 32 bits is apart from that (batch norm
over few numbers magnifies roundings) may be ours too, a few times. Needs torch, torchvision, timm, transformers, onnx and onnxscript.
One line a model."""
import copy, json, os, sys, tempfile, time
import numpy as np
import onnx
import safetensors.numpy
import torch
from beside import command, expect_moved, expect_near, loss_of_training
from zoo_models import MODELS, ROWS, Only
from zoo_wide import WIDE

told = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # the exporters print whole graphs
LEARNING_RATE = 0.01
passed = failed = skipped = 0


class NoModel(Exception):
    """PyTorch's exporter cannot write it, or its library is not there."""


def without_chance(model):
    for module in model.modules():
        for name in ("p", "drop_prob", "dropout", "attention_dropout", "activation_dropout", "layerdrop"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def logits_of(classes_at, logits):
    """Classes last."""
    return logits.movedim(classes_at, -1).reshape(-1, logits.shape[classes_at])


def train_there(model, values, labels, classes_at):
    """One step; the weights of the model stay trained."""
    model.train()
    loss = torch.nn.functional.cross_entropy(logits_of(classes_at, model(*values)), labels.reshape(-1))
    loss.backward()
    with torch.no_grad():
        for w in model.parameters():
            if w.grad is not None:
                w -= LEARNING_RATE * w.grad
    return float(loss.detach())


def train_here(folder, inputs, labels, classes_at):
    np.savez(os.path.join(folder, "data.npz"), label=labels.numpy(), **{k: x.numpy() for k, x in inputs.items()})
    with open(os.path.join(folder, "train.yaml"), "w") as f:
        f.write(f"model: model.onnx\nbatch_size: {ROWS}\nmax_steps: 1\nlog_every: 1\nloss: {{softmax_cross_entropy: {{class_axis: {classes_at}}}}}\n"
                f"optimizer: {{sgd: {{lr: {LEARNING_RATE}}}}}\ndata: {{train: {{path: data.npz, shuffle: false}}}}\n")
    return loss_of_training(folder)


def export(model, inputs, path, form):
    """As the README says (training, dynamo), and as it is done where nobody has read it (inference)."""
    names = dict(input_names=list(inputs), output_names=["logits"])
    if form == "dynamo":
        torch.onnx.export(model.eval(), tuple(inputs.values()), path, dynamo=True, opset_version=18, verbose=False, external_data=False, optimize=False, **names)
        return
    mode = torch.onnx.TrainingMode.TRAINING if form == "training" else torch.onnx.TrainingMode.EVAL
    torch.onnx.export(model.train(form == "training"), tuple(inputs.values()), path, dynamo=False, opset_version=17, do_constant_folding=False, training=mode,
                      dynamic_axes={k: {0: "batch"} for k in [*inputs, "logits"]}, **names)


def apply_there(model, values):
    with torch.no_grad():
        return model.eval()(*values).numpy()


def apply_here(path, inputs, folder):
    words = []
    for k, x in inputs.items():
        np.save(os.path.join(folder, k + ".npy"), x.numpy())
        words += ["--input", f"{k}={folder}/{k}.npy"]
    command("run", path, *words, "--output-dir", folder)
    return np.load(os.path.join(folder, "logits.npy"))


def expect_weights(folder, before, model, own):
    """Those that have their names moved as far; returns how many they are, and of how many."""
    found = safetensors.numpy.load_file(os.path.join(folder, "run/model/model.safetensors"))
    there, own = ({name: w.detach().numpy() for name, w in m.named_parameters() if w.requires_grad} for m in (model, own))
    known = {name: w for name, w in there.items() if name in found and found[name].shape == w.shape}
    if len(known) < 0.9 * len(there):
        raise RuntimeError(f"{len(known)} of {len(there)} weights have their names")
    expect_moved({name: before[name].numpy() for name in known}, known, found, own)
    return len(known), len(there)


def judge(name, form, folder):
    torch.manual_seed(5)
    try:
        model, inputs, output, more = ALL[name]()
    except ImportError as e:
        raise NoModel(str(e))
    without_chance(model)
    wrapped = Only(model, list(inputs), output, more)
    values = tuple(inputs.values())
    path = os.path.join(folder, "model.onnx")
    try:
        export(wrapped, inputs, path, form)
    except Exception as e:
        raise NoModel(f"{type(e).__name__}: {str(e).strip().splitlines()[0][:200]}")
    wanted = apply_there(wrapped, values)
    facts = json.loads(command("check", path, "--json"))
    expect_near("outputs", wanted, apply_here(path, inputs, folder), 1e-4)
    classes_at = 1 if wanted.ndim == 4 else -1
    shape = np.delete(np.array(wanted.shape), classes_at if classes_at >= 0 else wanted.ndim - 1)
    labels = torch.from_numpy(np.random.default_rng(1).integers(0, wanted.shape[classes_at], size=shape))
    before = {k: w.detach().clone() for k, w in wrapped.named_parameters()}
    exact, exact_values = copy.deepcopy(wrapped).double(), [x.double() if x.is_floating_point() else x for x in values]
    here, own = train_here(folder, inputs, labels, classes_at), train_there(wrapped, values, labels, classes_at)
    there = train_there(exact, exact_values, labels, classes_at)
    expect_near(f"loss: {here}, PyTorch's {there}, in 32 bits {own}", np.array(there), here, 1e-4, own)
    known = expect_weights(folder, before, exact, wrapped)
    path = os.path.join(folder, "run/model/model.onnx")
    onnx.checker.check_model(path, full_check=True)
    expect_near("outputs of the trained model", apply_there(exact, exact_values), apply_here(path, inputs, folder), 1e-2, apply_there(wrapped, values))
    return facts["composites"], round(here, 4), "%d of %d weights by name" % known


names = [a for a in sys.argv[2:] if not a.startswith("-")]
forms = [a[1:] for a in sys.argv[2:] if a.startswith("-")]
ALL = MODELS | {name: make for name, (make, _) in WIDE.items()}
for name in names or ALL:
    for form in forms or ([WIDE[name][1]] if name in WIDE else ["training", "inference", "dynamo"]):
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            try:
                print("ok", name, form, *judge(name, form, folder), f"{time.monotonic() - began:.0f} s", file=told)
                passed += 1
            except NoModel as e:
                skipped += 1
                print(f"skip: {name} {form}: not exported: {e}", file=told)
            except Exception as e:
                failed += 1
                print(f"FAILED {name} {form}: {type(e).__name__}: {str(e)[:1500]}", file=told)
print(f"{passed} passed, {failed} failed, {skipped} skipped", file=told)
sys.exit(failed > 0)
