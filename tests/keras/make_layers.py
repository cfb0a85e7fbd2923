"""Small models of Keras with what Keras computes: tests/golden/keras/layers.json, which tests/unit/keras_layers.c reads.

    python tests/keras/make_layers.py tests/golden/keras/layers.json      (Keras 3.15, TensorFlow 2.21, h5py)

Each case has a model's configuration, its weights by their places in a .keras file, inputs, outputs of inference (or, where
it says so, of training), masks of outputs and the sum of the model's own losses.
"""
import json
import os
import sys
import tempfile
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import h5py
import keras
import numpy as np
from keras import layers as L
from keras.src.applications.convnext import LayerScale, StochasticDepth
from keras.src.applications.inception_resnet_v2 import CustomScaleLayer

RNG = np.random.default_rng(7)


def real(*shape):
    return np.round(RNG.normal(size=shape), 3).astype("float32")


def whole(high, *shape):
    return RNG.integers(0, high, size=shape).astype("int32")


def weights_of(model):
    """Every data set of model.weights.h5 that is a variable of a layer."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.keras")
        model.save(path)
        with zipfile.ZipFile(path) as z:
            config = json.loads(z.read("config.json"))
            z.extract("model.weights.h5", folder)
        with h5py.File(os.path.join(folder, "model.weights.h5")) as f:
            f.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return config, {k: v for k, v in found.items() if not k.startswith("optimizer") and "seed_generator" not in k}


def numbers(a):
    a = np.asarray(a)
    return {"shape": list(a.shape), "dtype": str(a.dtype), "data": [float(f"{v:.7g}") if np.isfinite(v) else str(v) for v in a.astype("float64").ravel()]}


def case(name, model, *inputs, training=False):
    for v in model.variables:
        if v.dtype == "float32" and "seed" not in v.path:
            low = 0.3 if "variance" in v.path else -0.8
            v.assign(np.round(RNG.uniform(low, 0.8, v.shape), 3))
    for layer in model._flatten_layers():
        if isinstance(layer, L.Normalization):
            layer.finalize_state()
    config, weights = weights_of(model)
    config.pop("compile_config", None)
    out = model(inputs[0] if len(inputs) == 1 else list(inputs), training=training)
    losses = float(sum(float(v) for v in model.losses))
    out = keras.tree.flatten(out)
    masks = [getattr(o, "_keras_mask", None) for o in out]
    return {
        "name": name,
        "config": config,
        "weights": {k: numbers(v) for k, v in weights.items()},
        "names": [v.path for v in model.weights],
        "inputs": [numbers(x) for x in inputs],
        "outputs": [numbers(o) for o in out],
        "masks": [None if m is None else numbers(np.asarray(m).astype("int32")) for m in masks],
        "losses": losses,
        **({"training": True} if training else {}),
    }


def sequential(name, x, *stack):
    return case(name, keras.Sequential([keras.Input(x.shape[1:], dtype=str(x.dtype)), *stack], name="seq"), x)


def cases():
    names = sorted(set(keras.src.activations.ALL_OBJECTS_DICT) - {"threshold"})
    x = np.array([[-4.0, -3.0, -1.0, -0.5, 0.0, 0.4, 0.5, 1.0, 3.0, 6.5]], "float32")
    for name in names:
        yield sequential("activation " + name, x, L.Activation(name))
    settings = {
        "relu": L.ReLU(),
        "relu6": L.ReLU(max_value=6.0),
        "relu max": L.ReLU(max_value=2.0),
        "relu slope": L.ReLU(negative_slope=0.3),
        "relu all": L.ReLU(max_value=2.5, negative_slope=0.2, threshold=0.6),
        "leaky": L.LeakyReLU(),
        "elu": L.ELU(alpha=0.7),
        "prelu": L.PReLU(),
        "softmax": L.Softmax(),
    }
    for name, layer in settings.items():
        yield sequential("layer " + name, x, layer)
    yield sequential("prelu shared", real(2, 3, 4), L.PReLU(shared_axes=[1]))
    yield sequential("softmax axes", real(2, 3, 4), L.Softmax(axis=[1, 2]))
    yield sequential("softmax axis 1", real(2, 3, 4), L.Softmax(axis=1))
    yield sequential("dense", real(3, 5), L.Dense(4, activation="tanh"), L.Dropout(0.5), L.Dense(2, use_bias=False))
    yield sequential("dense 3d", real(2, 3, 5), L.Dense(4, activation=L.LeakyReLU(0.1)))
    yield sequential("shapes", real(2, 3, 4), L.Permute((2, 1)), L.Reshape((2, -1)), L.Flatten(), L.RepeatVector(3))
    yield sequential("flatten first", real(2, 3, 4, 2), L.Flatten(data_format="channels_first"))
    yield sequential("rescaling", real(2, 3), L.Rescaling(0.5, offset=-1), L.Rescaling([1.0, 2.0, 3.0]))
    yield sequential("normalization", real(2, 3, 4), L.Normalization(), L.Normalization(axis=None, invert=True))
    yield sequential("normalization given", real(2, 3), L.Normalization(mean=[1.0, 2.0, 3.0], variance=[4.0, 1.0, 0.25]))
    yield sequential("embedding", whole(7, 2, 4), L.Embedding(7, 3, mask_zero=True), L.Dense(2))
    yield sequential("embedding of floats", whole(7, 2, 4).astype("float32"), L.Embedding(7, 3))
    yield sequential(
        "regularizers", real(4, 5),
        L.Dense(4, kernel_regularizer="l2", bias_regularizer=keras.regularizers.L1(0.03), activity_regularizer=keras.regularizers.L1L2(0.02, 0.01)),
        L.ActivityRegularization(l1=0.1, l2=0.2),
        L.Dense(3, kernel_regularizer=keras.regularizers.OrthogonalRegularizer(0.5), bias_regularizer="L1L2"),
        L.Dense(3, kernel_regularizer=keras.regularizers.OrthogonalRegularizer(0.5, mode="columns"), trainable=True))
    frozen = keras.Sequential([keras.Input((3,)), L.Dense(2, kernel_regularizer="l2", trainable=False), L.Dense(2)])
    yield case("frozen", frozen, real(2, 3))

    def merged(name, layer, *shapes):
        inputs = [keras.Input(s, name=f"in{i}") for i, s in enumerate(shapes)]
        return case(name, keras.Model(inputs, layer(inputs)), *[real(2, *s) for s in shapes])

    for layer in (L.Add(), L.Average(), L.Multiply(), L.Maximum(), L.Minimum()):
        yield merged("merge " + layer.name, layer, (3, 4), (3, 4), (4,))
    yield merged("merge subtract", L.Subtract(), (3, 4), (3, 1))
    yield merged("merge concatenate", L.Concatenate(axis=1), (3, 4), (2, 4))
    yield merged("dot", L.Dot(axes=1), (4,), (4,))
    yield merged("dot normal", L.Dot(axes=-1, normalize=True), (5,), (5,))
    yield merged("dot matrix", L.Dot(axes=(2, 1)), (3, 4), (4, 5))
    yield merged("dot ranks", L.Dot(axes=(1, 2)), (4,), (3, 4))

    a, b = keras.Input((4,), dtype="int32", name="a"), keras.Input((4,), dtype="int32", name="b")
    table = L.Embedding(5, 3, mask_zero=True)
    x, y = table(a), table(b)
    for layer in (L.Add(), L.Multiply(), L.Maximum(), L.Minimum(), L.Concatenate(axis=1), L.Concatenate()):
        yield case("masks " + layer.name, keras.Model([a, b], layer([x, y])), whole(5, 2, 4), whole(5, 2, 4))
    one = L.Concatenate()([x, L.Embedding(5, 2)(b)])
    yield case("mask on one side", keras.Model([a, b], one), whole(5, 2, 4), whole(5, 2, 4))

    inner = keras.Sequential([keras.Input((4,)), L.Dense(3, activation="relu", name="one"), L.Dense(3, name="two")], name="tower")
    deep = keras.Sequential([L.Dense(2, name="one")], name="head")
    i0 = keras.Input((4,), name="x")
    i1 = keras.Input((4,), name="y")
    f = keras.Model(i0, L.Dense(4, name="shared")(i0), name="front")
    p, q = inner(f(i0)), inner(f(i1))
    yield case("nested, shared", keras.Model([i0, i1], {"z": deep(p), "a": L.Add(name="sum")([p, q])}), real(2, 4), real(2, 4))
    yield case("two outputs", keras.Model([i0, i1], [q, p]), real(2, 4), real(2, 4))

    x = keras.Input((4, 3))
    y = StochasticDepth(0.3)(LayerScale(0.5, 3)(x))
    yield case("of applications", keras.Model(x, CustomScaleLayer(0.17)([x, y])), real(2, 4, 3))
    waves = real(2, 40, 3)
    for mode in ("log", "magnitude", "psd", "real", "imag", "angle", "stft"):
        yield sequential("stft " + mode, waves, L.STFTSpectrogram(mode=mode, frame_length=8, data_format="channels_last"))
    yield sequential("stft apart", waves, L.STFTSpectrogram(frame_length=7, frame_step=3, fft_length=16, padding="same", expand_dims=True, data_format="channels_last"))
    yield sequential("stft first", waves, L.Permute((2, 1)), L.STFTSpectrogram(mode="psd", frame_length=8, data_format="channels_first"))
    yield sequential("stft first apart", waves, L.Permute((2, 1)),
                     L.STFTSpectrogram(mode="magnitude", frame_length=8, expand_dims=True, data_format="channels_first"))
    yield sequential("mel", real(2, 90), L.MelSpectrogram(fft_length=32, sequence_stride=10, num_mel_bins=6, sampling_rate=8000))
    yield sequential("mel window", real(2, 60), L.MelSpectrogram(fft_length=32, sequence_stride=16, sequence_length=21, window="hamming", num_mel_bins=5, min_freq=100.0,
                                                                 max_freq=3000.0, sampling_rate=8000, mag_exp=1.0, power_to_db=False))
    yield sequential("mel decibels", real(3, 60), L.MelSpectrogram(fft_length=16, sequence_stride=8, num_mel_bins=4, sampling_rate=8000, mag_exp=1.5, top_db=20.0,
                                                                   min_power=1e-3, ref_power=0.25))
    pictures = real(2, 6, 5, 3)

    def changed(name, layer, x=pictures):
        image = keras.Input(x.shape[1:])
        return case(name, keras.Model(image, layer(image)), x, training=True)

    for fill in ("reflect", "wrap", "constant", "nearest"):
        more = dict(fill_mode=fill, fill_value=0.5, data_format="channels_last")
        yield changed("rotation " + fill, L.RandomRotation((0.13, 0.13), **more))
        yield changed("zoom " + fill, L.RandomZoom((0.9, 0.9), (0.4, 0.4), **more))
        yield changed("translation " + fill, L.RandomTranslation((0.8, 0.8), (-0.7, -0.7), **more))
        yield changed("translation back " + fill, L.RandomTranslation((-0.9, -0.9), (1.0, 1.0), interpolation="nearest", **more))
    yield changed("rotation nearest", L.RandomRotation((-0.2, -0.2), interpolation="nearest", data_format="channels_last"))
    yield changed("zoom in", L.RandomZoom((-0.4, -0.4), data_format="channels_last"))
    first = pictures.transpose(0, 3, 1, 2)
    yield changed("brightness", L.RandomBrightness((0.25, 0.25), value_range=(-1.0, 1.0), data_format="channels_last"))
    yield changed("contrast", L.RandomContrast((0.0, 0.0), value_range=(-0.5, 0.5), data_format="channels_last"))
    yield changed("grayscale", L.RandomGrayscale(1.0, data_format="channels_last"))
    yield changed("invert", L.RandomInvert((1.0, 1.0), value_range=(0, 2.0), data_format="channels_last"))
    yield changed("no crop", L.RandomCrop(6, 5, data_format="channels_last"))
    yield changed("crop of columns", L.RandomCrop(6, 2, data_format="channels_last"))
    yield changed("rotation of planes", L.RandomRotation((0.1, 0.1), data_format="channels_first"), first)
    yield sequential(
        "not in training", pictures, L.RandomFlip(data_format="channels_last"), L.RandomRotation(0.3, data_format="channels_last"),
        L.RandomZoom(0.2, data_format="channels_last"), L.RandomContrast(0.5, data_format="channels_last"))
    frames = real(2, 3, 5, 6, 2)
    yield sequential("conv lstm", frames, L.ConvLSTM2D(3, 3, padding="same", return_sequences=True, data_format="channels_last"))
    yield sequential("conv lstm last", frames, L.ConvLSTM2D(3, (2, 3), go_backwards=True, activation="relu", recurrent_activation="hard_sigmoid", data_format="channels_last"))
    yield sequential("conv lstm strided", frames, L.ConvLSTM2D(2, 3, strides=2, use_bias=False, return_sequences=True, go_backwards=True, data_format="channels_last"))
    yield sequential("conv lstm dilated", frames, L.ConvLSTM2D(2, 2, dilation_rate=2, unit_forget_bias=False, data_format="channels_last"))
    yield sequential("conv lstm first", frames, L.Permute((1, 4, 2, 3)), L.ConvLSTM2D(3, 3, return_sequences=True, data_format="channels_first"))
    yield sequential("conv lstm 1d", real(2, 3, 7, 2), L.ConvLSTM1D(3, 3, return_sequences=True, data_format="channels_last"))
    yield sequential("conv lstm 3d", real(1, 2, 3, 4, 5, 2), L.ConvLSTM3D(2, 2, padding="same", data_format="channels_last"))
    clip, later = keras.Input((3, 5, 6, 2)), keras.Input((2, 5, 6, 2))
    _, h, c = L.ConvLSTM2D(3, 3, padding="same", return_state=True, data_format="channels_last")(clip)
    after = L.ConvLSTM2D(3, 3, padding="same", return_sequences=True, data_format="channels_last")(later, initial_state=[h, c])
    yield case("conv lstm states", keras.Model([clip, later], [after, h, c]), frames, real(2, 2, 5, 6, 2))
    numbered = whole(5, 3, 4)
    for mode in ("multi_hot", "one_hot", "count"):
        yield sequential("categories " + mode, numbered, L.CategoryEncoding(num_tokens=5, output_mode=mode))
        yield sequential("bins " + mode, real(3, 4), L.Discretization([-0.5, 0.0, 0.7], output_mode=mode))
    yield sequential("category of one", whole(5, 3, 1), L.CategoryEncoding(num_tokens=5, output_mode="one_hot"))
    yield sequential("categories of rows", whole(5, 2, 3, 4), L.CategoryEncoding(num_tokens=5, output_mode="count"))
    yield sequential("bins", np.array([[-1, -0.5, 0.0], [0.3, 0.7, 9.0]], "float32"), L.Discretization([-0.5, 0.0, 0.7]), L.Embedding(4, 2))
    ids, shares = keras.Input((4,), dtype="int32"), keras.Input((4,))
    yield case("weighted categories", keras.Model([ids, shares], L.CategoryEncoding(num_tokens=5, output_mode="count")(ids, count_weights=shares)), numbered, real(3, 4))
    bright, more = np.abs(pictures) * 60, dict(data_format="channels_last")
    # Keras 3.15 takes what it says that its result is for its input, and so refuses it in a model.
    L.Equalization.compute_output_spec = lambda self, images, **_: keras.KerasTensor(images.shape, images.dtype)
    for value_range, scale in (((0, 255), 1), ((0, 1), 1 / 255)):
        x, more = bright * scale, dict(value_range=value_range, data_format="channels_last")
        yield changed(f"hue {scale:g}", L.RandomHue((1.0, 1.0), **more), x)
        yield changed(f"saturation {scale:g}", L.RandomSaturation((0.3, 0.3), **more), x)
        yield changed(f"more saturation {scale:g}", L.RandomSaturation((0.7, 0.7), **more), x)
        yield changed(f"sharper {scale:g}", L.RandomSharpness((0.9, 0.9), **more), x)
        yield changed(f"smoother {scale:g}", L.RandomSharpness((0.2, 0.2), **more), x)
        yield changed(f"degeneration {scale:g}", L.RandomColorDegeneration((0.4, 0.4), **more), x)
        yield changed(f"posterization {scale:g}", L.RandomPosterization((3, 3), **more), x)
        yield changed(f"solarization {scale:g}", L.Solarization(value_range=value_range), x)
        yield changed(f"equalization {scale:g}", L.Equalization(bins=24, **more), x)
        yield changed(f"erasing {scale:g}", L.RandomErasing((1.0, 1.0), (1.0, 1.0), [0.3, 0.1, 9.0], **more), x)
        yield changed(f"jitter {scale:g}", L.RandomColorJitter(brightness_factor=(0.1, 0.1), contrast_factor=(0.0, 0.0), saturation_factor=(0.6, 0.6),
                                                               hue_factor=(1.0, 1.0), **more), x)
        yield changed(f"auto contrast {scale:g}", L.AutoContrast(value_range=value_range), np.concatenate([x[..., :2], np.full_like(x[..., :1], 0.5)], -1))
        for size in (3, 5, (3, 7)):
            yield changed(f"blur {size} {scale:g}", L.RandomGaussianBlur((1.0, 1.0), size, (0.8, 0.8), **more), x)
    yield changed("one erasing", L.RandomErasing((1.0, 1.0), (1.0, 1.0), 7.5, data_format="channels_last"), bright)
    yield changed("equalization of one", L.Equalization(data_format="channels_last"), np.full_like(bright, 17))
    yield changed("perspective", L.RandomPerspective((1.0, 1.0), 0.0, data_format="channels_last"), bright)
    yield changed("hue of planes", L.RandomHue((1.0, 1.0), data_format="channels_first"), bright.transpose(0, 3, 1, 2))
    yield changed("sharper planes", L.RandomSharpness((0.9, 0.9), data_format="channels_first"), bright.transpose(0, 3, 1, 2))
    yield sequential("auto contrast afterwards", bright, L.AutoContrast(), L.Solarization(0.5, 0.5), L.RandomErasing(data_format="channels_last"), L.RandAugment(data_format="channels_last"))
    yield sequential("pipeline", bright, L.Pipeline([L.Rescaling(1 / 255), L.CenterCrop(4, 3, data_format="channels_last"), L.Rescaling(2, -1)]), L.Flatten())
    for tied, cap in ((True, None), (False, None), (True, 1.5)):
        ids = keras.Input((3,), dtype="int32")
        layer = L.ReversibleEmbedding(7, 4, tie_weights=tied, logit_soft_cap=cap, mask_zero=True)
        yield case(f"reversed embedding {tied} {cap}", keras.Model(ids, layer(L.Dense(4)(layer(ids)), reverse=True)), whole(7, 2, 3))
    from keras import ops as K

    def of(name, f, *x):
        inputs = [keras.Input(v.shape[1:], dtype=str(v.dtype), name=f"in{i}") for i, v in enumerate(x)]
        return case("op " + name, keras.Model(inputs, f(*inputs)), *x)

    a, b, n = real(2, 5), real(2, 5), whole(9, 2, 5)
    some = np.array([[-2.5, 0.0, 1.0, np.inf, -np.inf]], "float32")
    for name in "cbrt sinc isposinf isneginf signbit imag".split():
        yield of(name, getattr(K, name), some if name != "sinc" and name != "cbrt" else some[:, :3])
    yield of("erfinv", K.erfinv, np.array([[-0.9, -0.5, 0, 0.3, 0.8]], "float32"))
    yield of("bitwise_not", K.bitwise_not, n)
    for name in "fmax fmin fmod heaviside logaddexp2".split():
        yield of(name, getattr(K, name), a, b)
    yield of("isclose", lambda x, y: K.isclose(x, y, rtol=0.5, atol=0.2), a, b)
    yield of("isin", lambda x: K.isin(x, [1, 4, 7]), n)
    yield of("not isin", lambda x: K.isin(x, [1, 4, 7], invert=True), n)
    yield of("digitize", lambda x: K.digitize(x, np.array([-1.0, 0.0, 1.0], "float32")), a)
    yield of("searchsorted", lambda x: K.searchsorted(np.array([1, 4, 4, 7], "int32"), K.reshape(x, (-1,)), side="right"), n)
    yield of("select", lambda x, y: K.select([x < 0, y < 0], [x, y], default=7.0), a, b)
    square = real(2, 3, 3) + 3 * np.eye(3, dtype="float32")
    even = square @ square.transpose(0, 2, 1)
    for name in "inv det slogdet".split():
        yield of(name, getattr(K, name), square)
    yield of("solve", K.solve, square, real(2, 3, 2))
    yield of("solve_triangular", lambda x, y: K.solve_triangular(x, y, lower=True), square, real(2, 3, 2))
    yield of("cholesky", K.cholesky, even)
    yield of("logdet", K.logdet, even)
    yield of("diagonal", lambda x: K.diagonal(x, offset=1, axis1=1, axis2=2), real(2, 3, 4))
    yield of("trace", lambda x: K.trace(x, offset=-1, axis1=2, axis2=1), real(2, 3, 4, 2))
    yield of("diag", lambda x: K.diag(x[0], k=-1), a)
    yield of("diag of", lambda x: K.diag(x, k=1), a)
    yield of("diagflat", lambda x: K.diagflat(x, k=2), real(2, 2))
    yield of("cross", lambda x, y: K.cross(x, y), real(2, 4, 3), real(2, 4, 3))
    yield of("cross axes", lambda x, y: K.cross(x, y, axis=1), real(2, 3, 4), real(2, 3, 4))
    yield of("kron", K.kron, real(2, 3), real(2, 2))
    yield of("diff", lambda x: K.diff(x, n=2, axis=1), a)
    for k in range(4):
        # Two turns of what is not square are none on Keras' TensorFlow.
        yield of(f"rot90 {k}", lambda x: K.rot90(x, k, axes=(1, 2)), real(2, 3, 3 if k == 2 else 4))
    cube = real(2, 3, 4)
    yield of("median", lambda x: K.median(x, axis=1, keepdims=True), cube)
    for method in "linear lower higher midpoint nearest".split():
        yield of("percentile " + method, lambda x: K.percentile(x, [10, 50, 90], axis=(0, 2), method=method), cube)
    yield of("quantile", lambda x: K.quantile(x, [0.1, 0.5, 0.9], axis=(0, 2), method="lower"), cube)
    yield of("percentile", lambda x: K.percentile(x, 30, axis=1, keepdims=True), cube)
    holes = np.where(real(2, 5) > 0.4, np.nan, a).astype("float32")
    holes = np.concatenate([holes, np.full((1, 5), np.nan, "float32")])
    for name in "nansum nanprod nanmax nanmin nanmean nanvar nanstd".split():
        yield of(name, lambda x: getattr(K, name)(x, axis=1), holes)
    colours = np.abs(real(2, 3, 4, 3)).clip(0, 1)
    yield of("rgb_to_hsv", lambda x: K.image.rgb_to_hsv(x, data_format="channels_last"), colours)
    yield of("hsv_to_rgb", lambda x: K.image.hsv_to_rgb(x, data_format="channels_first"), colours.transpose(0, 3, 1, 2))
    yield of("rgb_to_grayscale", lambda x: K.image.rgb_to_grayscale(x, data_format="channels_last"), colours)
    yield of("crop_images", lambda x: K.image.crop_images(x, top_cropping=1, target_height=2, left_cropping=1, right_cropping=2, data_format="channels_last"), real(2, 4, 5, 2))
    yield of("pad_images", lambda x: K.image.pad_images(x, bottom_padding=1, target_height=7, left_padding=1, right_padding=2, data_format="channels_first"), real(2, 2, 4, 5))
    yield of("space_to_depth", lambda x: K.space_to_depth(x, 2), real(2, 4, 6, 3))
    yield of("depth_to_space", lambda x: K.depth_to_space(x, 2, data_format="channels_first"), real(2, 8, 2, 3))
    yield of("max_pool", lambda x: K.max_pool(x, 2, strides=1, padding="same", data_format="channels_last"), real(2, 5, 4, 3))
    yield of("average_pool", lambda x: K.average_pool(x, 3, strides=2, padding="same", data_format="channels_last"), real(2, 7, 3))
    ids = np.array([[3, 9, 12], [-4, 3, 7]], "int64")
    for mode in ("int", "one_hot", "multi_hot", "count"):
        yield sequential("lookup " + mode, ids, L.IntegerLookup(vocabulary=[3, 9, 12], output_mode=mode))
    yield sequential("lookup of two others", ids, L.IntegerLookup(vocabulary=[12, 3], num_oov_indices=3, mask_token=9))
    yield sequential("lookup of all", ids[:1], L.IntegerLookup(vocabulary=[12, 9, 3], num_oov_indices=0))
    far = np.array([[10**15, -10**14, 5], [8, 10**15, -10**15]], "int64")
    yield sequential("lookup far apart", far, L.IntegerLookup(vocabulary=[10**15, 5, -10**14]))


if __name__ == "__main__":
    made = list(cases())
    with open(sys.argv[1], "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(c) for c in made) + "\n]\n")
    print(len(made), "cases")
