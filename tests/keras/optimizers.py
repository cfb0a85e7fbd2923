"""optimizers.py TRAINYARD WORK - what each optimizer keeps, after the same four steps here and in Keras: the written file gives Keras
the state that it would have had itself."""
import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
from keras import layers as L
from keras import optimizers as O

trainyard, work = sys.argv[1:3]
at = lambda *names: os.path.join(work, *names)
rng = np.random.default_rng(5)
x = rng.random((64, 6), "f4")
y = x.sum(1).astype("i4") % 3
np.savez(at("data.npz"), x=x, y=y)
schedule = O.schedules.ExponentialDecay(0.02, 3, 0.8)
optimizers = [O.SGD(0.05, momentum=0.9, nesterov=True), O.SGD(schedule, momentum=0.5), O.Adam(amsgrad=True), O.AdamW(weight_decay=0.01),
              O.Nadam(), O.Adamax(), O.Lamb(), O.Lion(), O.Adagrad(0.01), O.RMSprop(momentum=0.5, centered=True), O.Adadelta(0.5),
              O.Ftrl(0.05), O.Adam(use_ema=True, gradient_accumulation_steps=2)]
passed = failed = 0
for i, optimizer in enumerate(optimizers):
    keras.utils.set_random_seed(3)
    name = f"{type(optimizer).__name__}-{i}"
    model = keras.Sequential([keras.Input((6,)), L.Dense(8, activation="tanh", name="hidden"),
                              L.Dense(3, activation="softmax", name="out")], name="net")
    model.compile(optimizer, "sparse_categorical_crossentropy")
    model.save(at(name + ".keras"))
    run = subprocess.run([trainyard, "train", at(name + ".keras"), "--data=" + at("data.npz"), "--epochs=1", "--batch_size=16",
                          "--data.train.shuffle=false", "--output-dir=" + at(name)], capture_output=True, text=True)
    worst, where = float("inf"), (run.stdout + run.stderr)[-500:]
    if run.returncode == 0:
        for k in range(0, 64, 16):
            model.train_on_batch(x[k:k + 16], y[k:k + 16])
        ours = keras.models.load_model(at(name, "model", "model.keras")).optimizer.variables
        theirs = model.optimizer.variables
        off = [(float(np.abs(a.numpy() - b.numpy()).max() / (1e-9 + np.abs(a.numpy()).max())), a.path)
               for a, b in zip(theirs, ours)]
        worst, where = max(off) if len(ours) == len(theirs) else (float("inf"), f"{len(ours)} of {len(theirs)} variables")
    if worst < 1e-4:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {name}: {worst:.2g} {where}")
print(f"{passed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
