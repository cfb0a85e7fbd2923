"""zoo_keras.py TRAINYARD [NAME ...]: keras.applications, small where they may be, random and without dropout, as .keras files: opened,
applied, a step of gradient descent, beside Keras' own in 64 bits; what its own in 32 bits is apart from that (batch norm over few numbers
magnifies roundings) may be ours too, a few times. Written back and loaded by Keras. Needs keras, tensorflow and h5py. One line a model."""
import json, os, sys, tempfile, time

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import keras
import numpy as np
import tensorflow as tf
from beside import command, expect_moved, expect_near, loss_of_training
from keras import applications as a

ROWS, CLASSES, LEARNING_RATE = 4, 5, 0.01
passed = failed = 0
MODELS = {  # name: class, height and width, more
    "VGG16": (a.VGG16, 32), "ResNet50": (a.ResNet50, 64), "ResNet50V2": (a.ResNet50V2, 64), "MobileNet": (a.MobileNet, 64), "MobileNetV2": (a.MobileNetV2, 64),
    "MobileNetV3Small": (a.MobileNetV3Small, 64), "DenseNet121": (a.DenseNet121, 64), "InceptionV3": (a.InceptionV3, 128), "Xception": (a.Xception, 96),
    "InceptionResNetV2": (a.InceptionResNetV2, 96), "EfficientNetB0": (a.EfficientNetB0, 64), "EfficientNetV2B0": (a.EfficientNetV2B0, 64),
    "ConvNeXtTiny": (a.ConvNeXtTiny, 64), "NASNetMobile": (a.NASNetMobile, 96),
}


def make(name, dtype):
    """With a pool before the classes, and none of what draws numbers."""
    keras.backend.clear_session()
    keras.config.set_dtype_policy(dtype)
    keras.config.set_floatx(dtype)
    keras.utils.set_random_seed(5)
    make_model, size = MODELS[name]
    base = make_model(weights=None, include_top=False, input_shape=(size, size, 3), pooling="avg")
    for layer in base._flatten_layers():
        for rate in ("rate", "drop_path_rate"):
            if isinstance(getattr(layer, rate, None), float):
                setattr(layer, rate, 0.0)
    model = keras.Sequential([base, keras.layers.Dense(CLASSES, name="logits")], name="net")
    model.compile(optimizer=keras.optimizers.SGD(LEARNING_RATE), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def train_there(model, images, labels):
    """One step; the weights of the model stay trained."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True)))
    weights = model.trainable_variables
    for w, d in zip(weights, tape.gradient(loss, [w.value for w in weights])):
        w.assign(w - LEARNING_RATE * d)
    return float(loss)


def names_of(path):
    facts = json.loads(command("model", "info", path, "--json"))
    return facts["inputs"][0]["name"], facts["outputs"][0]["name"]


def train_here(folder, path, images, labels):
    np.savez(os.path.join(folder, "data.npz"), **{names_of(path)[0]: images, "label": labels})
    with open(os.path.join(folder, "train.yaml"), "w") as f:
        f.write(f"model: model.keras\nbatch_size: {ROWS}\nmax_steps: 1\nlog_every: 1\ndata: {{train: {{path: data.npz, shuffle: false}}}}\n")
    return loss_of_training(folder)


def apply_here(path, images, folder):
    x, y = names_of(path)
    np.save(os.path.join(folder, "x.npy"), images)
    command("run", path, "--input", f"{x}={folder}/x.npy", "--output-dir", folder)
    return np.load(os.path.join(folder, f"{y}.npy"))


def by_number(weights):
    return dict(enumerate(weights))


def judge(name, folder):
    rng = np.random.default_rng(5)
    size = MODELS[name][1]
    images, labels = rng.uniform(0, 255, (ROWS, size, size, 3)).astype("float32"), rng.integers(0, CLASSES, ROWS)
    model = make(name, "float32")
    before = model.get_weights()
    path = os.path.join(folder, "model.keras")
    model.save(path)
    command("check", path)
    expect_near("outputs", model.predict(images, verbose=0), apply_here(path, images, folder), 1e-4)
    here, own = train_here(folder, path, images, labels), train_there(model, images, labels)
    trained, applied = model.get_weights(), model.predict(images, verbose=0)
    exact = make(name, "float64")
    exact.set_weights(before)
    there = train_there(exact, images.astype("float64"), labels)
    expect_near(f"loss: {here}, Keras' {there}, in 32 bits {own}", np.array(there), here, 1e-4, own)
    wanted, there = exact.predict(images.astype("float64"), verbose=0), exact.get_weights()
    keras.config.set_dtype_policy("float32")
    keras.config.set_floatx("float32")
    back = keras.models.load_model(os.path.join(folder, "run/model/model.keras"), safe_mode=False)
    expect_moved(*map(by_number, (before, there, back.get_weights(), trained)))
    expect_near("outputs of the trained model", wanted, back.predict(images, verbose=0), 1e-2, applied)
    return round(here, 4), f"{len(before)} weights"


for name in sys.argv[2:] or MODELS:
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        try:
            print("ok", name, *judge(name, folder), f"{time.monotonic() - began:.0f} s", flush=True)
            passed += 1
        except Exception as e:
            failed += 1
            print(f"FAILED {name}: {type(e).__name__}: {str(e)[:1500]}", flush=True)
print(f"{passed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
