"""Makes tests/golden/tensorflow/sound.tar.xz: a SavedModel that takes the spectra of waves by itself, waves of which some
are silent as CSV (40 numbers, a class), and the losses of three steps of gradient descent by TensorFlow.

    python tests/tensorflow/golden_sound.py          # TensorFlow 2.21
"""
import os
import subprocess
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "tensorflow")
rng = np.random.default_rng(5)
ROWS, STEPS, RATE = 8, 3, 0.02


class Sound(tf.Module):
    def __init__(self):
        self.gain = tf.Variable(np.ones(40, np.float32), name="gain")
        self.w = tf.Variable(rng.standard_normal((4 * 9, 3)).astype(np.float32) / 10, name="w")
        self.b = tf.Variable(np.zeros(3, np.float32), name="b")

    @tf.function(input_signature=[tf.TensorSpec([None, 40], tf.float32)])
    def __call__(self, wave):
        spectra = tf.abs(tf.signal.stft(wave * self.gain, 16, 8))
        return {"logits": tf.matmul(tf.reshape(spectra, [-1, 36]), self.w) + self.b}


def main():
    model = Sound()
    x = rng.standard_normal((ROWS, 40)).astype(np.float32).round(3)
    x[0] = 0
    x[1, :20] = 0
    y = rng.integers(0, 3, ROWS)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(model, f"{folder}/sound", signatures=model.__call__)
        with open(f"{folder}/sound.csv", "w") as out:
            for row, label in zip(x, y):
                print(*(f"{v:g}" for v in row), label, sep=",", file=out)
        with open(f"{folder}/losses", "w") as out:
            for _ in range(STEPS):
                with tf.GradientTape() as tape:
                    logits = model(tf.constant(x))["logits"]
                    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
                weights = [model.gain, model.w, model.b]
                for weight, gradient in zip(weights, tape.gradient(loss, weights)):
                    weight.assign_sub(RATE * gradient)
                print(f"{float(loss):.8g}", file=out)
        subprocess.run(["tar", "-cJf", os.path.join(here, "sound.tar.xz"), "--sort=name", "--mtime=2026-01-01",
                        "--owner=0", "--group=0", "-C", folder, "sound", "sound.csv", "losses"], check=True)


main()
