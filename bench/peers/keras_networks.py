"""Networks that users of Keras bring, of keras.applications and as Keras' own examples write them, in the size in which they
are used, with random weights and without dropout, for bench/networks --of keras: keras_networks.py export NAME DIR |
train NAME DIR [graph|xla|jax] [float32|bfloat16] [STEPS].

export writes DIR/model.keras, DIR/x0.npy and y.npy, [batches, rows, ...]; train makes the same network with the
weights of that file, trains it by Keras' SGD with momentum on the same batches, and prints what measure.py says:
graph: Keras on TensorFlow; xla: there, compiled by XLA; jax: Keras on JAX; bfloat16: the policy mixed_bfloat16.
"""
import os
import sys

HOW = (sys.argv[4:] or ["graph"])[0] if sys.argv[1:2] == ["train"] else "graph"
os.environ.update(KERAS_BACKEND="jax" if HOW == "jax" else "tensorflow", TF_CPP_MIN_LOG_LEVEL="3",
                  CUDA_VISIBLE_DEVICES="")
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import applications as a, layers as L, ops  # noqa: E402

import measure  # noqa: E402

BATCHES, PICTURES = 2, 8
LEARNING_RATE, STEPS = 1e-3, 6  # bench/ours.c says the same of "network"


def vision(make, size=224, rows=PICTURES, **settings):
    def network():
        return make(weights=None, input_shape=(size, size, 3), classifier_activation=None, **settings)
    return network, rows, None, 1000, False


def embedded(length, tokens, wide):
    ids = keras.Input((length,), dtype="int64")
    return ids, L.Embedding(tokens, wide)(ids)


def review(make, length=200, rows=32, tokens=20000):
    """Whether a review is kind: two recurrent layers over words, both ways."""
    def network():
        ids, x = embedded(length, tokens, 128)
        x = L.Bidirectional(make(64, return_sequences=True))(x)
        return keras.Model(ids, L.Dense(2)(L.Bidirectional(make(64))(x)))
    return network, rows, tokens, 2, False


def weather():
    """The next hours of seven measures of the last five days."""
    x = keras.Input((120, 7))
    return keras.Model(x, L.Dense(10)(L.LSTM(32)(x)))


def encoder(x, heads, wide, inner):
    y = L.MultiHeadAttention(heads, wide // heads)(x, x)
    x = L.LayerNormalization(epsilon=1e-6)(x + y)
    y = L.Dense(wide)(L.Dense(inner, activation="relu")(x))
    return L.LayerNormalization(epsilon=1e-6)(x + y)


def transformer():
    """A text classifier of four blocks, 256 wide."""
    ids, x = embedded(200, 20000, 256)
    for _ in range(4):
        x = encoder(x, 4, 256, 1024)
    return keras.Model(ids, L.Dense(2)(L.GlobalAveragePooling1D()(x)))


def vit():
    """A vision transformer of small pictures, as Keras' example has it: 72 x 72 in patches of 6, eight blocks of 64."""
    image = keras.Input((72, 72, 3))
    x = L.Reshape((144, 64))(L.Conv2D(64, 6, 6)(image))
    places = ops.cumsum(ops.ones_like(x[0, :, 0]), axis=0) - 1  # numbers alone would make a constant of the table
    x = x + L.Embedding(144, 64)(ops.cast(places, "int32"))
    for _ in range(8):
        y = L.LayerNormalization(epsilon=1e-6)(x)
        x = x + L.MultiHeadAttention(4, 64)(y, y)
        y = L.Dense(128, activation="gelu")(L.LayerNormalization(epsilon=1e-6)(x))
        x = x + L.Dense(64, activation="gelu")(y)
    x = L.Flatten()(L.LayerNormalization(epsilon=1e-6)(x))
    x = L.Dense(1024, activation="gelu")(L.Dense(2048, activation="gelu")(x))
    return keras.Model(image, L.Dense(100)(x))


def down(x, filters):
    y = x
    for _ in range(2):
        y = L.BatchNormalization()(L.SeparableConv2D(filters, 3, padding="same")(L.Activation("relu")(y)))
    y = L.MaxPooling2D(3, strides=2, padding="same")(y)
    return L.add([y, L.Conv2D(filters, 1, strides=2, padding="same")(x)])


def up(x, filters):
    y = x
    for _ in range(2):
        y = L.BatchNormalization()(L.Conv2DTranspose(filters, 3, padding="same")(L.Activation("relu")(y)))
    return L.add([L.UpSampling2D(2)(y), L.Conv2D(filters, 1, padding="same")(L.UpSampling2D(2)(x))])


def unet():
    """Classes of points: Keras' example of pets, as Xception has its blocks."""
    image = keras.Input((160, 160, 3))
    x = L.Activation("relu")(L.BatchNormalization()(L.Conv2D(32, 3, strides=2, padding="same")(image)))
    for filters in 64, 128, 256:
        x = down(x, filters)
    for filters in 256, 128, 64, 32:
        x = up(x, filters)
    return keras.Model(image, L.Conv2D(3, 3, padding="same")(x))


def series():
    """Classes of series: three convolutions along time, as Keras' example of engines has them."""
    x = image = keras.Input((500, 1))
    for _ in range(3):
        x = L.ReLU()(L.BatchNormalization()(L.Conv1D(64, 3, padding="same")(x)))
    return keras.Model(image, L.Dense(2)(L.GlobalAveragePooling1D()(x)))


def cifar():
    """A network of 32 x 32 pictures with three pairs of convolutions."""
    x = image = keras.Input((32, 32, 3))
    for filters in 32, 64, 128:
        for _ in range(2):
            x = L.BatchNormalization()(L.Conv2D(filters, 3, padding="same", activation="relu")(x))
        x = L.MaxPooling2D()(x)
    return keras.Model(image, L.Dense(10)(L.Dense(128, activation="relu")(L.Flatten()(x))))


def mixer():
    """MLP-Mixer of 64 x 64 pictures in patches of 8, 256 wide, four blocks."""
    image = keras.Input((64, 64, 3))
    x = L.Reshape((64, 256))(L.Conv2D(256, 8, 8)(image))
    for _ in range(4):
        y = L.Permute((2, 1))(L.LayerNormalization()(x))
        y = L.Dense(64)(L.Dense(256, activation="gelu")(y))
        x = x + L.Permute((2, 1))(y)
        x = x + L.Dense(256)(L.Dense(256, activation="gelu")(L.LayerNormalization()(x)))
    return keras.Model(image, L.Dense(100)(L.GlobalAveragePooling1D()(x)))


def gmlp():
    """Tokens mixed by a gate: half of the features, normed, times a product along the tokens."""
    image = keras.Input((64, 64, 3))
    x = L.Reshape((64, 256))(L.Conv2D(256, 8, 8)(image))
    for _ in range(4):
        u, v = ops.split(L.Dense(512, activation="gelu")(L.LayerNormalization()(x)), 2, axis=-1)
        v = L.Dense(64, bias_initializer="ones")(ops.transpose(L.LayerNormalization()(v), (0, 2, 1)))
        x = x + L.Dense(256)(u * ops.transpose(v, (0, 2, 1)))
    return keras.Model(image, L.Dense(100)(L.GlobalAveragePooling1D()(x)))


def gan():
    """A generator of 64 x 64 pictures and the discriminator behind it, as Keras' DCGAN has them."""
    x = noise = keras.Input((128,))
    x = L.Reshape((8, 8, 128))(L.Dense(8 * 8 * 128)(x))
    for filters in 128, 256, 512:
        x = L.LeakyReLU(negative_slope=0.2)(L.Conv2DTranspose(filters, 4, strides=2, padding="same")(x))
    x = L.Conv2D(3, 5, padding="same", activation="sigmoid")(x)
    for filters in 64, 128, 128:
        x = L.LeakyReLU(negative_slope=0.2)(L.Conv2D(filters, 4, strides=2, padding="same")(x))
    return keras.Model(noise, L.Dense(2)(L.Flatten()(x)))


def wavenet():
    """Series of 1,024 points through eight gated, dilated convolutions that look back."""
    series = keras.Input((1024, 16))
    x = L.Conv1D(64, 2, padding="causal")(series)
    for dilation in 1, 2, 4, 8, 16, 32, 64, 128:
        both = {"padding": "causal", "dilation_rate": dilation}
        y = L.Conv1D(64, 2, activation="tanh", **both)(x) * L.Conv1D(64, 2, activation="sigmoid", **both)(x)
        x = x + L.Conv1D(64, 1)(y)
    return keras.Model(series, L.Dense(64)(x))


def deeplab():
    """Classes of points: dilated convolutions side by side, with an average of all."""
    x = image = keras.Input((128, 128, 3))
    for filters in 64, 128:
        x = L.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(x)
    parts = [L.Conv2D(64, 1)(x)]
    for dilation in 6, 12, 18:
        y = L.Conv2D(64, 3, dilation_rate=dilation, padding="same", use_bias=False)(x)
        parts.append(L.ReLU()(L.BatchNormalization()(y)))
    y = L.Conv2D(64, 1)(L.AveragePooling2D(32)(x))
    parts.append(L.UpSampling2D(32, interpolation="bilinear")(y))
    x = L.UpSampling2D(4, interpolation="bilinear")(L.Conv2D(64, 1)(L.Concatenate()(parts)))
    return keras.Model(image, L.Conv2D(20, 1)(x))


def volume():
    """Classes of scans: convolutions and pools in three dimensions."""
    x = scan = keras.Input((64, 64, 32, 1))
    for filters in 32, 32, 64:
        x = L.BatchNormalization()(L.MaxPooling3D(2)(L.Conv3D(filters, 3, activation="relu")(x)))
    return keras.Model(scan, L.Dense(2)(L.Dense(256, activation="relu")(L.GlobalAveragePooling3D()(x))))


def text_cnn():
    """A text classifier of two strided convolutions."""
    ids, x = embedded(500, 20000, 128)
    for _ in range(2):
        x = L.Conv1D(128, 7, strides=3, activation="relu")(x)
    return keras.Model(ids, L.Dense(2)(L.Dense(128, activation="relu")(L.GlobalMaxPooling1D()(x))))


def tabular():
    """Rows of a table through four layers with norms."""
    x = row = keras.Input((100,))
    for units in 512, 256, 128, 64:
        x = L.Activation("relu")(L.BatchNormalization()(L.Dense(units)(x)))
    return keras.Model(row, L.Dense(2)(x))


def seen(x, *widths):
    """Convolutions and pools, then all places."""
    for width in widths:
        x = L.MaxPooling2D()(L.Conv2D(width, 3, padding="same", activation="relu")(x))
    return L.Flatten()(x)


def turned():
    """Pictures of flowers as Keras' tutorial has them, turned, zoomed and moved before: always by the same, so that all compute
    the same."""
    picture = keras.Input((180, 180, 3))
    x = L.RandomTranslation((0.1, 0.1), (0.05, 0.05))(L.RandomZoom((0.1, 0.1))(L.RandomRotation((0.05, 0.05))(picture)))
    return keras.Model(picture, L.Dense(5)(L.Dense(128, activation="relu")(seen(x, 16, 32, 64))))


def coloured():
    """The same pictures with other colours, sharper and then blurred: always by the same."""
    picture, values = keras.Input((180, 180, 3)), (-4.0, 4.0)
    x = L.RandomColorJitter(values, (0.1, 0.1), (0.0, 0.0), (0.6, 0.6), (1.0, 1.0))(picture)
    x = L.RandomColorDegeneration((0.3, 0.3), values)(L.RandomSharpness((0.8, 0.8), values)(x))
    x = L.RandomGaussianBlur((1.0, 1.0), 5, (0.8, 0.8), values)(x)
    return keras.Model(picture, L.Dense(5)(L.Dense(128, activation="relu")(seen(x, 16, 32, 64))))


def sounds():
    """A second of sound: bands of its spectrum, and convolutions over bands and time."""
    wave = keras.Input((16000,))
    x = L.MelSpectrogram(fft_length=512, sequence_stride=160, num_mel_bins=64, sampling_rate=16000)(wave)
    return keras.Model(wave, L.Dense(35)(seen(L.Reshape((64, 101, 1))(x), 32, 64, 64)))


def films():
    """Ten frames through two convolutional LSTMs, as Keras' example of next frames has them."""
    frames = keras.Input((10, 32, 32, 1))
    x = L.ConvLSTM2D(32, 5, padding="same", return_sequences=True)(frames)
    x = L.ConvLSTM2D(32, 3, padding="same")(L.BatchNormalization()(x))
    return keras.Model(frames, L.Dense(10)(L.GlobalAveragePooling2D()(x)))


NETWORKS = {  # name: model, rows, tokens (None: numbers), classes, whether each place has a label
    "vgg16": vision(a.VGG16), "inception_v3": vision(a.InceptionV3), "xception": vision(a.Xception),
    "resnet50_v2": vision(a.ResNet50V2), "densenet121_keras": vision(a.DenseNet121),
    "mobilenet": vision(a.MobileNet, dropout=0), "mobilenet_v2_keras": vision(a.MobileNetV2),
    "mobilenet_v3_keras": vision(a.MobileNetV3Large, dropout_rate=0),
    "efficientnet_b0_keras": vision(a.EfficientNetB0), "efficientnet_v2_b0": vision(a.EfficientNetV2B0),
    "convnext_tiny_keras": vision(a.ConvNeXtTiny), "nasnet_mobile": vision(a.NASNetMobile),
    "bilstm_review": review(L.LSTM), "bigru_review": review(L.GRU), "lstm_weather": (weather, 256, None, 10, False),
    "transformer_text": (transformer, 32, 20000, 2, False), "vit_small": (vit, 32, None, 100, False),
    "mixer": (mixer, 32, None, 100, False), "unet_pets": (unet, 8, None, 3, True),
    "conv1d_series": (series, 32, None, 2, False), "cnn_cifar": (cifar, 64, None, 10, False),
    "gmlp": (gmlp, 32, None, 100, False), "dcgan": (gan, 16, None, 2, False), "wavenet": (wavenet, 8, None, 64, True),
    "deeplab": (deeplab, 4, None, 20, True), "conv3d": (volume, 2, None, 2, False),
    "text_cnn": (text_cnn, 32, 20000, 2, False), "tabular": (tabular, 256, None, 2, False),
    "turned_pictures": (turned, 32, None, 5, False), "coloured_pictures": (coloured, 32, None, 5, False),
    "sounds": (sounds, 32, None, 35, False),
    "films": (films, 5, None, 10, False),
}


def without_chance(model):
    """The same, of layers that draw nothing."""
    def copy(layer):
        settings = layer.get_config()
        for name in "rate", "drop_path_rate", "dropout":
            if isinstance(settings.get(name), float):
                settings[name] = 0.0
        return type(layer).from_config(settings)
    return keras.models.clone_model(model, clone_function=copy)


def network(name):
    keras.utils.set_random_seed(0)
    make, *rest = NETWORKS[name]
    return without_chance(make()), *rest


def export(name, folder):
    model, rows, tokens, classes, everywhere = network(name)
    rng, shape = np.random.default_rng(0), (BATCHES, rows, *model.inputs[0].shape[1:])
    x = rng.integers(3, tokens, shape) if tokens else rng.standard_normal(shape, dtype=np.float32)
    y = rng.integers(0, classes, (BATCHES, rows, *(model.outputs[0].shape[1:-1] if everywhere else ())))
    os.makedirs(folder, exist_ok=True)
    model.save(f"{folder}/model.keras")
    np.save(f"{folder}/x0.npy", x)
    np.save(f"{folder}/y.npy", y)


def train(name, folder, how="graph", precision="float32", steps=STEPS):
    if precision == "bfloat16":
        keras.config.set_dtype_policy("mixed_bfloat16")
    model = network(name)[0]
    model.load_weights(f"{folder}/model.keras")
    model.compile(optimizer=keras.optimizers.SGD(LEARNING_RATE, momentum=0.9), jit_compile=how != "graph",
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.load(f"{folder}/x0.npy"), np.load(f"{folder}/y.npy")

    def step(i):
        model.reset_metrics()  # else the mean of all losses so far
        return model.train_on_batch(x[i % BATCHES], y[i % BATCHES])

    measure.run(step, int(steps), work=name, peer="keras " + how)


if __name__ == "__main__":
    {"export": export, "train": train}[sys.argv[1]](*sys.argv[2:])
