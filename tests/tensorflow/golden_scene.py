"""Makes tests/golden/tensorflow/scene.tar.xz: a SavedModel whose weights are behind what is seldom differentiated (matrices
inverted, solved for and taken apart, gamma functions, pictures read between pixels), pictures of 5 x 4 pixels with a class
as CSV, and the losses of five steps of gradient descent by TensorFlow.

    python tests/tensorflow/golden_scene.py          # TensorFlow 2.21
"""
import os
import subprocess
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "tensorflow")
rng = np.random.default_rng(5)
ROWS, STEPS, RATE = 6, 5, 0.05


def weight(name, *shape, scale=0.5, of=0.0):
    return tf.Variable((rng.standard_normal(shape) * scale + of).astype(np.float32), name=name)


class Scene(tf.Module):
    def __init__(self):
        self.gain, self.turn = weight("gain", 3, scale=0.3, of=1), weight("turn", 8, scale=0.05)
        self.boxes = weight("boxes", 2, 4, scale=0.05)
        self.mix, self.low, self.right = weight("mix", 4, 4), weight("low", 4, 4), weight("right", 4, 2)
        self.shape, self.slope, self.line = weight("shape", 4, scale=0.1, of=1.5), weight("slope", 4, scale=0.2), weight("line", 3)
        self.ends = tf.Variable(np.array([-1, 1.2], np.float32), name="ends")
        self.out = weight("out", 166, 3, scale=0.2)

    def seen(self, x):
        x = tf.sigmoid(tf.reshape(x, [-1, 5, 4, 3]) * self.gain)
        rows = tf.shape(x)[0]
        turn = tf.tile((self.turn + tf.constant([1.0, 0, 0, 0, 1, 0, 0, 0]))[None], [rows, 1])
        x = tf.raw_ops.ImageProjectiveTransformV3(images=x, transforms=tf.stop_gradient(turn), output_shape=[5, 4], fill_value=0.1,
                                                  interpolation="BILINEAR", fill_mode="REFLECT")
        boxes = tf.tile(self.boxes + tf.constant([[0.1, 0.1, 0.8, 0.9], [0.2, 0.0, 1.0, 0.7]]), [rows, 1])
        crops = tf.image.crop_and_resize(x, boxes, tf.repeat(tf.range(rows), 2), [2, 3])
        hsv = tf.image.rgb_to_hsv(x)[..., 1:]
        patches = tf.image.extract_patches(tf.nn.local_response_normalization(x, 1), [1, 3, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
        small = tf.image.resize(hsv, [3, 2], "bicubic", antialias=True)
        parts = [tf.reduce_mean(tf.reshape(crops, [-1, 2, 2, 3, 3]), [1]), patches, small]
        return tf.concat([tf.reshape(p, [rows, -1]) for p in parts], 1)

    def mixed(self):
        a = self.mix + 3 * tf.eye(4)
        spd = tf.matmul(a, a, transpose_b=True)
        sign, size = tf.linalg.slogdet(a)
        l = tf.linalg.cholesky(spd)
        solved = tf.linalg.triangular_solve(tf.linalg.set_diag(self.low, 1.5 + tf.square(self.shape)), self.right)
        tri = tf.linalg.diag(self.line, k=1) + a
        parts = [tf.linalg.inv(a)[:, :2], l[2:, 1:3], solved, tf.linalg.solve(tri, self.right), tf.linalg.diag_part(a, k=(-1, 1))[:2, :2]]
        gammas = tf.math.lgamma(tf.square(self.shape) + 0.3) + tf.math.digamma(self.shape + 1)
        errors = tf.math.erfinv(tf.tanh(self.slope)) + tf.math.ndtri(tf.sigmoid(self.slope))
        sums = tf.math.segment_mean(self.shape, [0, 0, 0, 1])
        rounded = tf.quantization.fake_quant_with_min_max_vars(self.right * 3, self.ends[0], self.ends[1], num_bits=4)
        places = tf.SparseTensor([[0, 1], [2, 0], [2, 3]], self.line, [3, 4])
        parts += [rounded, tf.sparse.sparse_dense_matmul(places, self.low)]
        numbers = [sign * size, tf.linalg.det(tri) / 50, sums[0], sums[1]]
        return tf.concat([tf.reshape(p, [-1]) for p in [*parts, gammas, errors, numbers]], 0)

    @tf.function(input_signature=[tf.TensorSpec([None, 60], tf.float32)])
    def __call__(self, x):
        seen, mixed = self.seen(x), self.mixed()
        both = tf.concat([seen, tf.tile(mixed[None], [tf.shape(x)[0], 1]) / 4], 1)
        return {"logits": tf.matmul(both, self.out)}


def main():
    model = Scene()
    x = rng.standard_normal((ROWS, 60)).astype(np.float32).round(3)
    y = rng.integers(0, 3, ROWS)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(model, f"{folder}/scene", signatures=model.__call__)
        with open(f"{folder}/scene.csv", "w") as out:
            for row, label in zip(x, y):
                print(*(f"{v:g}" for v in row), label, sep=",", file=out)
        with open(f"{folder}/losses", "w") as out:
            for _ in range(STEPS):
                with tf.GradientTape() as tape:
                    logits = model(tf.constant(x))["logits"]
                    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
                weights = list(model.trainable_variables)
                for w, gradient in zip(weights, tape.gradient(loss, weights)):
                    if gradient is not None:
                        print(w.name, float(tf.norm(gradient)))
                        w.assign_sub(RATE * gradient)
                print(f"{float(loss):.8g}", file=out)
        subprocess.run(["tar", "-cJf", os.path.join(here, "scene.tar.xz"), "--sort=name", "--mtime=2026-01-01",
                        "--owner=0", "--group=0", "-C", folder, "scene", "scene.csv", "losses"], check=True)


main()
