"""Makes tests/golden/keras/cases.tar.gz: small training cases laid out as ../shared/data/keras-cases, of what those have not.

    /root/vtf/bin/python tests/keras/make_cases.py      (Keras 3.15, TensorFlow 2.21, CPU)

Deterministic but for the last digits of what Keras computes.
"""
import io
import json
import os
import tarfile
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

STEPS, BATCHES, ROWS = 9, 3, 6


def constrained():
    """Constraints, penalties of weights and outputs, accumulation, averages that overwrite."""
    x = keras.Input((5,), name="x")
    h = L.Dense(4, "tanh", kernel_constraint=keras.constraints.MaxNorm(0.9), bias_constraint="non_neg",
                kernel_regularizer=keras.regularizers.L1L2(0.01, 0.02), name="first")(x)
    h = L.Dense(4, kernel_constraint=keras.constraints.UnitNorm(axis=1), activity_regularizer=keras.regularizers.L2(0.03),
                name="second")(h)
    y = L.Dense(2, kernel_constraint=keras.constraints.MinMaxNorm(0.3, 0.8, rate=0.5), name="third")(h)
    model = keras.Model(x, y, name="held")
    model.compile(keras.optimizers.Nadam(0.05, weight_decay=0.02, use_ema=True, ema_momentum=0.8,
                                         ema_overwrite_frequency=3, gradient_accumulation_steps=2),
                  keras.losses.LogCosh(), metrics=["mse"])
    return model


def rows():
    """A masked table whose rows come up again and again: their norms and squares are of single look-ups."""
    ids = keras.Input((7,), dtype="int32", name="ids")
    table = L.Embedding(5, 3, mask_zero=True, name="table")
    h = L.LSTM(4, return_sequences=True, name="memory")(table(ids))
    y = L.Dense(6, name="scores")(h)
    model = keras.Model(ids, y, name="rows")
    model.compile(keras.optimizers.RMSprop(keras.optimizers.schedules.CosineDecayRestarts(0.05, 4, 1.0, 0.7, 0.1),
                                           clipnorm=0.05, momentum=0.3, centered=True),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def outputs():
    """Two outputs by name, a probability of each kind, clipped look-ups, Lamb."""
    ids = keras.Input((4,), dtype="int32", name="ids")
    h = L.Flatten()(L.Embedding(4, 3, name="table")(ids))
    yes = L.Dense(2, "sigmoid", name="yes")(h)
    share = L.Dense(3, "softmax", name="share")(h)
    model = keras.Model(ids, {"yes": yes, "share": share}, name="two")
    model.compile(keras.optimizers.Lamb(0.03, clipvalue=0.02, weight_decay=0.01),
                  {"yes": keras.losses.BinaryFocalCrossentropy(apply_class_balancing=True),
                   "share": keras.losses.CategoricalCrossentropy(label_smoothing=0.1)},
                  loss_weights={"yes": 2.0, "share": 0.5})
    return model


def data(name, rng):
    if name == "constrained":
        return {"x": rng.standard_normal((BATCHES, ROWS, 5), "f4")}, [rng.standard_normal((BATCHES, ROWS, 2), "f4")]
    if name == "rows":
        ids = rng.integers(0, 5, (BATCHES, ROWS, 7)).astype("i4")
        ids[:, :, 0] = 1
        return {"ids": np.sort(ids, 2)[:, :, ::-1].copy()}, [rng.integers(0, 6, (BATCHES, ROWS, 7)).astype("i4")]
    yes = rng.integers(0, 2, (BATCHES, ROWS, 2)).astype("f4")
    share = np.eye(3, dtype="f4")[rng.integers(0, 3, (BATCHES, ROWS))]
    return {"ids": rng.integers(0, 4, (BATCHES, ROWS, 4)).astype("i4")}, {"yes": yes, "share": share}


def at(arrays, i):
    if isinstance(arrays, dict):
        return {k: v[i] for k, v in arrays.items()}
    return [v[i] for v in arrays][0] if len(arrays) == 1 else [v[i] for v in arrays]


def gradient_norm(model, x, y):
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x, y, model(x, training=True), training=True)
    grads = tape.gradient(loss, [v.value for v in model.trainable_variables])
    return float(np.sqrt(sum(np.sum(np.square(tf.convert_to_tensor(g).numpy().astype("f8"))) for g in grads)))


def floats(model):
    return {v.path: v.numpy() for v in model.weights if v.dtype == "float32"}


def make(name, build, folder):
    keras.utils.set_random_seed(7)
    rng = np.random.default_rng(11)
    model = build()
    x, y = data(name, rng)
    model.save(f"{folder}/model.keras")
    files, targets = {}, []
    for k, v in x.items():
        files[k] = f"{k}.npy"
        np.save(f"{folder}/{k}.npy", v)
    order = model.output_names if isinstance(y, dict) else range(len(y))
    for i, k in enumerate(order):
        targets.append(f"y{i}.npy")
        np.save(f"{folder}/y{i}.npy", y[k])

    def evaluate(numbers):
        rows = lambda a: {k: np.concatenate([v[i % BATCHES] for i in numbers]) for k, v in a.items()}
        targets = rows(y) if isinstance(y, dict) else np.concatenate([y[0][i % BATCHES] for i in numbers])
        got = model.evaluate(rows(x), targets, batch_size=ROWS, verbose=0, return_dict=True)
        return {k: float(v) for k, v in got.items()}

    def inputs(i):
        return at(x, i) if len(x) > 1 else next(iter(at(x, i).values()))

    expected = {"parameters": int(sum(np.prod(v.shape) for v in model.trainable_variables)), "losses": [], "lr": [],
                "grad_norm": [], "eval_before": evaluate([0])}
    for t in range(STEPS):
        expected["lr"].append(float(model.optimizer.learning_rate))
        expected["grad_norm"].append(gradient_norm(model, inputs(t % BATCHES), at(y, t % BATCHES)))
        expected["losses"].append(float(model.train_on_batch(inputs(t % BATCHES), at(y, t % BATCHES), return_dict=True)["loss"]))
    expected["eval_after"] = evaluate([STEPS - 2, STEPS - 1])
    final = floats(model)
    np.savez(f"{folder}/final.npz", **final)
    if model.optimizer.use_ema:
        average = {v.path: a.numpy() for v, a in
                   zip(model.trainable_variables, model.optimizer._model_variables_moving_average)}
        np.savez(f"{folder}/ema.npz", **average)
    expected["tolerance"] = {"first_loss": 1e-5, "losses": 3e-5, "grad_norm": 1e-4,
                             "eval_before": {k: 2e-5 for k in expected["eval_before"]},
                             "eval_after": {k: 3e-5 for k in expected["eval_after"]},
                             "weights": {k: max(3e-5 * float(np.abs(v).max()), 1e-6) for k, v in final.items()}}
    json.dump(expected, open(f"{folder}/expected.json", "w"), indent=1)
    with open(f"{folder}/recipe.yaml", "w") as f:
        f.write(f"name: {name}\nmodel: model.keras\nformat: keras\ncompiled: true\n"
                f"inputs: {json.dumps(files)}\ntargets: {json.dumps(targets)}\nbatch: {ROWS}\nsteps: {STEPS}\n")


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory() as scratch:
        for build in (constrained, rows, outputs):
            os.mkdir(f"{scratch}/{build.__name__}")
            make(build.__name__, build, f"{scratch}/{build.__name__}")
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz", compresslevel=9) as tar:
            for folder, _, names in sorted(os.walk(scratch)):
                for n in sorted(names):
                    info = tar.gettarinfo(f"{folder}/{n}", f"{os.path.basename(folder)}/{n}")
                    info.mtime = info.uid = info.gid = 0
                    info.uname = info.gname = ""
                    tar.addfile(info, open(f"{folder}/{n}", "rb"))
        open(f"{root}/golden/keras/cases.tar.gz", "wb").write(out.getvalue())


main()
