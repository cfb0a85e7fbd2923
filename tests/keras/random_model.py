"""random_model.py: Keras models with random configurations, for judge.py. All random choices come from one seed.

A plan of a model is a list of blocks; each block takes and gives a tensor (or several) and knows what shapes it takes.
Nothing in a model draws numbers while it trains: rates of dropout and noise are 0.
"""
import math

import keras
import numpy as np
from keras import layers, ops

ACTIVATIONS = ["relu", "gelu", "silu", "elu", "selu", "tanh", "sigmoid", "softplus", "softsign", "hard_sigmoid", "mish",
               "leaky_relu", "relu6", "hard_silu", "exponential", "linear", "celu", "log_sigmoid", "softmax", None]
CALM = ["tanh", "sigmoid", "softsign", "relu", "gelu", "silu", "elu", None]


class Chooser:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def of(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def int(self, lo, hi):
        return int(self.rng.integers(lo, hi + 1))

    def maybe(self, chance=0.5):
        return bool(self.rng.random() < chance)

    def float(self, lo, hi):
        return round(float(self.rng.uniform(lo, hi)), 3)


def initializer(c, bias=False):
    seed = c.int(0, 10**6)
    if bias:
        return c.of(["zeros", "ones", keras.initializers.Constant(0.1),
                     keras.initializers.RandomNormal(stddev=0.1, seed=seed)])
    return c.of(["glorot_uniform", keras.initializers.GlorotNormal(seed=seed), keras.initializers.HeNormal(seed=seed),
                 keras.initializers.HeUniform(seed=seed), keras.initializers.LecunNormal(seed=seed),
                 keras.initializers.RandomUniform(-0.3, 0.3, seed=seed),
                 keras.initializers.TruncatedNormal(stddev=0.2, seed=seed), keras.initializers.Orthogonal(seed=seed),
                 keras.initializers.VarianceScaling(0.5, "fan_avg", "uniform", seed=seed)])


def regularizer(c):
    return c.of([None, None, None, "l1", "l2", keras.regularizers.L1(0.003), keras.regularizers.L2(0.02),
                 keras.regularizers.L1L2(0.001, 0.01), keras.regularizers.OrthogonalRegularizer(0.01)][:8])


def constraint(c):
    return c.of([None, None, None, None, keras.constraints.MaxNorm(1.5), keras.constraints.UnitNorm(),
                 keras.constraints.NonNeg(), keras.constraints.MinMaxNorm(0.2, 1.2, rate=0.7)])


def weights(c, constraints=True):
    args = dict(kernel_initializer=initializer(c), bias_initializer=initializer(c, True), use_bias=c.maybe(0.8),
                kernel_regularizer=regularizer(c), bias_regularizer=c.of([None, None, None, "l2"]))
    if constraints:
        args["kernel_constraint"] = constraint(c)
    return args


def activation_layer(c):
    return c.of([lambda: layers.Activation(c.of(CALM[:-1])), lambda: layers.ReLU(max_value=c.of([None, 4.0]), negative_slope=c.of([0.0, 0.1])),
                 lambda: layers.LeakyReLU(c.float(0.05, 0.4)), lambda: layers.ELU(c.float(0.5, 1.5)),
                 lambda: layers.PReLU(alpha_initializer=keras.initializers.Constant(0.2)),
                 lambda: layers.Softmax()])()


def quiet(c, rank):
    """Layers that change nothing but what is trained, or scale."""
    choices = [lambda: layers.Dropout(0.0), lambda: layers.GaussianNoise(0.0), lambda: layers.GaussianDropout(0.0),
               lambda: layers.Rescaling(c.float(0.5, 1.5), offset=c.float(-0.2, 0.2)),
               lambda: layers.LayerNormalization(epsilon=c.of([1e-3, 1e-5]), center=c.maybe(0.8), scale=c.maybe(0.8)),
               lambda: layers.RMSNormalization(), lambda: layers.UnitNormalization(),
               lambda: layers.ActivityRegularization(l1=c.of([0.0, 1e-3]), l2=1e-3), lambda: layers.Identity()]
    if rank >= 2:
        choices += [lambda: layers.BatchNormalization(momentum=c.of([0.99, 0.9]), epsilon=c.of([1e-3, 1e-2]),
                                                      center=c.maybe(0.8), scale=c.maybe(0.8))] * 2
    if rank == 4:
        choices += [lambda: layers.SpatialDropout2D(0.0)]
    if rank == 3:
        choices += [lambda: layers.SpatialDropout1D(0.0)]
    return c.of(choices)()


def dense(c, units=None, activation=0):
    return layers.Dense(units or c.int(3, 12), activation=c.of(ACTIVATIONS[:-2]) if activation == 0 else activation,
                        activity_regularizer=c.of([None, None, None, "l2"]), **weights(c))


# ---- parts: from a tensor to a tensor ----


def mlp(c, x):
    for _ in range(c.int(1, 3)):
        x = dense(c)(x)
        if c.maybe():
            x = activation_layer(c)(x)
        if c.maybe():
            x = quiet(c, len(x.shape))(x)
    return x


def conv_2d(c, x):
    size, step = c.int(1, 3), c.of([1, 1, 2])
    padding = c.of(["same", "valid"])
    if min(x.shape[1:3]) < 5:
        padding, step = "same", 1
    kind = c.int(0, 4)
    common = dict(padding=padding, activation=c.of(CALM))
    if kind == 0:
        groups = 2 if x.shape[-1] % 2 == 0 and c.maybe(0.3) else 1
        dilation = 2 if step == 1 and c.maybe(0.3) and min(x.shape[1:3]) > 6 else 1
        return layers.Conv2D(2 * c.int(1, 4), (size, c.int(1, 3)), strides=step, groups=groups, dilation_rate=dilation, **weights(c), **common)(x)
    if kind == 1:
        return layers.DepthwiseConv2D(size, strides=step, depth_multiplier=c.int(1, 2), depthwise_regularizer=regularizer(c), **common)(x)
    if kind == 2:
        return layers.SeparableConv2D(c.int(2, 6), size, strides=step, depth_multiplier=c.int(1, 2), **common)(x)
    if kind == 3 and max(x.shape[1:3]) < 16:
        return layers.Conv2DTranspose(c.int(2, 5), size + 1, strides=c.of([1, 2]), **weights(c, False), **common)(x)
    return layers.Conv2D(c.int(2, 6), size, strides=step, **weights(c), **common)(x)


def plane(c, x):
    small = min(x.shape[1:3]) < 6
    choices = [lambda: layers.ZeroPadding2D(((c.int(0, 2), 1), (1, c.int(0, 2)))), lambda: layers.GroupNormalization(groups=c.of([1, -1])),
               lambda: quiet(c, 4), lambda: quiet(c, 4), lambda: activation_layer(c)]
    if max(x.shape[1:3]) < 12:
        choices += [lambda: layers.UpSampling2D(2, interpolation=c.of(["nearest", "bilinear"]))]
    if not small:
        choices += [lambda: layers.MaxPooling2D(c.of([2, (2, 3), 3]), strides=c.of([None, 2]), padding=c.of(["same", "valid"])),
                    lambda: layers.AveragePooling2D(c.of([2, 3]), strides=c.of([None, 2]), padding=c.of(["same", "valid"])),
                    lambda: layers.Cropping2D(((0, 1), (1, 0)))]
    return c.of(choices)()(x)


def cnn(c, x):
    for _ in range(c.int(2, 3)):
        x = conv_2d(c, x)
        x = plane(c, x)
    return c.of([layers.Flatten(), layers.GlobalAveragePooling2D(), layers.GlobalMaxPooling2D()])(x)


def cnn_1d(c, x):
    for _ in range(c.int(1, 3)):
        kind, size = c.int(0, 3), c.int(1, 3)
        common = dict(activation=c.of(CALM))
        if kind == 0:
            x = layers.Conv1D(c.int(2, 6), size, padding="causal", dilation_rate=c.int(1, 2), **weights(c), **common)(x)
        elif kind == 1:
            x = layers.SeparableConv1D(c.int(2, 6), size, padding="same", **common)(x)
        elif kind == 2:
            x = layers.DepthwiseConv1D(size, padding="same", depth_multiplier=c.int(1, 2), **common)(x)
        else:
            x = layers.Conv1D(c.int(2, 6), size, strides=c.int(1, 2), padding="same", **weights(c), **common)(x)
        choices = [lambda: layers.ZeroPadding1D((1, c.int(0, 2))), lambda: quiet(c, 3), lambda: layers.UpSampling1D(2)]
        if x.shape[1] > 4:
            choices += [lambda: layers.MaxPooling1D(2, padding=c.of(["same", "valid"])), lambda: layers.AveragePooling1D(2, strides=c.of([1, 2])),
                        lambda: layers.Cropping1D((1, 0)), lambda: layers.Permute((2, 1))]
        x = c.of(choices)()(x)
    return c.of([layers.Flatten(), layers.GlobalAveragePooling1D(), layers.GlobalMaxPooling1D()])(x)


def cnn_3d(c, x):
    x = layers.Conv3D(c.int(2, 4), 2, padding=c.of(["same", "valid"]), activation=c.of(CALM))(x)
    x = c.of([layers.MaxPooling3D(2), layers.AveragePooling3D(2, padding="same"), layers.ZeroPadding3D(1), layers.BatchNormalization()])(x)
    if c.maybe():
        x = layers.Conv3DTranspose(2, 2, strides=c.of([1, 2]))(x)
    return c.of([layers.Flatten(), layers.GlobalAveragePooling3D(), layers.GlobalMaxPooling3D()])(x)


def recurrent(c, sequences, **more):
    kind = c.of([layers.LSTM, layers.GRU, layers.SimpleRNN])
    args = dict(return_sequences=sequences, go_backwards=c.maybe(0.3), activation=c.of(["tanh", "tanh", "relu", "softsign"]),
                use_bias=c.maybe(0.85), kernel_regularizer=c.of([None, None, "l2"]), recurrent_constraint=c.of([None, None, keras.constraints.MaxNorm(2.0)]))
    if kind is not layers.SimpleRNN:
        args["recurrent_activation"] = c.of(["sigmoid", "sigmoid", "hard_sigmoid"])
    if kind is layers.LSTM:
        args["unit_forget_bias"] = c.maybe()
    if kind is layers.GRU:
        args["reset_after"] = c.maybe(0.6)
    return kind(c.int(3, 6), **{**args, **more})


def rnn(c, x, sequences=False):
    for _ in range(c.int(0, 1)):
        x = one_recurrent(c, x, True)
        if c.maybe(0.4):
            x = layers.TimeDistributed(dense(c, activation=c.of(CALM)))(x)
        elif c.maybe(0.3):
            x = quiet(c, 3)(x)
    return one_recurrent(c, x, sequences)


def one_recurrent(c, x, sequences):
    if c.maybe(0.35):
        return layers.Bidirectional(recurrent(c, sequences, go_backwards=False), merge_mode=c.of(["concat", "sum", "mul", "ave"]))(x)
    return recurrent(c, sequences)(x)


def attention(c, x):
    heads, size = c.int(1, 3), c.int(2, 4)
    kind = c.int(0, 3)
    if kind == 0:
        y = layers.MultiHeadAttention(heads, size, value_dim=c.of([None, 3]), use_bias=c.maybe(0.7), dropout=0.0)(x, x, use_causal_mask=c.maybe())
    elif kind == 1:
        y = layers.GroupQueryAttention(size, heads * 2, heads)(x, x)
    elif kind == 2:
        y = layers.Attention(use_scale=c.maybe(), score_mode=c.of(["dot", "concat"]))([x, x])
    else:
        y = layers.EinsumDense("abc,cd->abd", output_shape=(None, x.shape[-1]), bias_axes=c.of([None, "d"]), activation=c.of(CALM))(x)
    x = layers.Add()([x, y]) if y.shape == x.shape else y
    return c.of([layers.LayerNormalization, layers.RMSNormalization])()(x)


def transformer(c, x):
    for _ in range(c.int(1, 2)):
        x = attention(c, x)
        if c.maybe():
            y = layers.Dense(x.shape[-1], activation=c.of(["gelu", "relu", "silu"]))(x)
            x = layers.Add()([x, y])
    return c.of([layers.GlobalAveragePooling1D(), layers.Flatten(), layers.GlobalMaxPooling1D()])(x)


def merged(c, x):
    width = c.int(3, 6)
    a, b = dense(c, width, c.of(CALM))(x), dense(c, width, c.of(CALM))(x)
    kind = c.int(0, 7)
    if kind == 7:
        return layers.Concatenate()([layers.Dot(1, normalize=c.maybe())([a, b]), a])
    return [layers.Add, layers.Subtract, layers.Multiply, layers.Average, layers.Maximum, layers.Minimum, layers.Concatenate][kind]()([a, b])


def operations(c, x):
    """Nodes of keras.ops and operators on [batch, n]."""
    y = x
    for _ in range(c.int(2, 4)):
        n = y.shape[-1]
        y = c.of([lambda: ops.tanh(y) + 0.5, lambda: ops.abs(y) * y, lambda: ops.where(y > 0, y, 0.1 * y), lambda: ops.clip(y, -1.0, 1.0),
                  lambda: ops.square(y) / (1.0 + ops.square(y)), lambda: ops.exp(-ops.abs(y)), lambda: ops.softmax(y), lambda: ops.sigmoid(y) - y,
                  lambda: y - ops.mean(y, axis=-1, keepdims=True), lambda: ops.concatenate([y[:, : n // 2 + 1], ops.sin(y)], axis=-1),
                  lambda: ops.reshape(ops.transpose(ops.reshape(ops.concatenate([y, y], -1), (-1, 2, n)), (0, 2, 1)), (-1, 2 * n)),
                  lambda: ops.cumsum(y, axis=-1) / n, lambda: ops.maximum(y, ops.flip(y, axis=-1)), lambda: ops.logsumexp(y, axis=-1, keepdims=True) + y,
                  lambda: ops.sqrt(ops.abs(y) + 0.1), lambda: ops.matmul(ops.expand_dims(y, 1), ops.expand_dims(y, -1))[:, 0] + y])()
        if y.shape[-1] > 24:
            y = dense(c, 8, "tanh")(y)
    return y


def nested(c, x):
    inner_in = keras.Input(x.shape[1:])
    if c.maybe():
        inner = keras.Model(inner_in, mlp(c, inner_in), name="inner")
    else:
        inner = keras.Sequential([keras.Input(x.shape[1:]), dense(c), layers.BatchNormalization(), dense(c, 4, "tanh")], name="inner")
    return layers.Concatenate()([inner(x), inner(ops.negative(x) if c.maybe() else layers.Rescaling(0.5)(x))])


# ---- inputs and outputs ----


def table_input(c, i):
    n = c.int(4, 9)
    x = keras.Input((n,), name=f"in{i}")
    y = x
    if c.maybe(0.3):
        y = layers.Normalization(mean=[c.float(-0.5, 0.5)] * n, variance=[c.float(0.5, 2)] * n)(y)
    return x, y, lambda rng, rows: rng.normal(size=(rows, n)).astype("f4")


def token_input(c, i, mask=None):
    n, words = c.int(4, 7), c.int(8, 20)
    x = keras.Input((n,), name=f"in{i}", dtype="int32")
    mask = c.maybe(0.4) if mask is None else mask
    y = layers.Embedding(words, c.int(3, 6), mask_zero=mask, embeddings_regularizer=c.of([None, None, "l2"]))(x)
    return x, y, lambda rng, rows: rng.integers(0 if not mask else 0, words, size=(rows, n)).astype("i4")


def image_input(c, i):
    h, w, k = c.int(6, 10), c.int(6, 10), c.int(1, 4)
    x = keras.Input((h, w, k), name=f"in{i}")
    return x, x, lambda rng, rows: rng.normal(size=(rows, h, w, k)).astype("f4")


def series_input(c, i):
    n, k = c.int(5, 9), c.int(2, 5)
    x = keras.Input((n, k), name=f"in{i}")
    y = layers.Masking(0.0)(x) if c.maybe(0.3) else x

    def data(rng, rows):
        v = rng.normal(size=(rows, n, k)).astype("f4")
        v[:, n - 1 :][rng.random(rows) < 0.4] = 0
        return v

    return x, y, data


def volume_input(c, i):
    x = keras.Input((4, 5, 4, 2), name=f"in{i}")
    return x, x, lambda rng, rows: rng.normal(size=(rows, 4, 5, 4, 2)).astype("f4")


FAMILIES = {
    "table": (table_input, [mlp, merged, operations, nested]),
    "image": (image_input, [cnn]),
    "series": (series_input, [cnn_1d, rnn, rnn]),
    "tokens": (token_input, [rnn, rnn]),
    "text": (lambda c, i: token_input(c, i, False), [transformer, cnn_1d]),
    "volume": (volume_input, [cnn_3d]),
}


def head(c, x, i):
    """An output with its loss and its targets."""
    kind = c.int(0, 5)
    name = f"out{i}"
    rows = lambda *shape: (lambda rng, n: rng.normal(size=(n, *shape)).astype("f4"))
    if kind in (0, 1):
        n, logits = c.int(2, 6), c.maybe()
        y = layers.Dense(n, activation=None if logits else "softmax", name=name)(x)
        if kind == 0:
            return y, keras.losses.SparseCategoricalCrossentropy(from_logits=logits), lambda rng, rows: rng.integers(0, n, size=(rows, 1)).astype("i4")
        return (y, keras.losses.CategoricalCrossentropy(from_logits=logits, label_smoothing=c.of([0.0, 0.1])),
                lambda rng, rows: np.eye(n, dtype="f4")[rng.integers(0, n, size=rows)])
    if kind == 2:
        logits = c.maybe()
        y = layers.Dense(1, activation=None if logits else "sigmoid", name=name)(x)
        return (y, keras.losses.BinaryCrossentropy(from_logits=logits, label_smoothing=c.of([0.0, 0.05])),
                lambda rng, rows: rng.integers(0, 2, size=(rows, 1)).astype("f4"))
    n = c.int(1, 4)
    if kind == 3:
        y = layers.Dense(n + 1, activation="softmax", name=name)(x)
        return y, keras.losses.KLDivergence(), lambda rng, rows: (lambda v: v / v.sum(-1, keepdims=True))(rng.random((rows, n + 1)).astype("f4") + 0.1)
    y = layers.Dense(n, activation=c.of([None, "tanh"]), name=name)(x)
    if kind == 4:
        return y, keras.losses.Hinge(), lambda rng, rows: rng.integers(0, 2, size=(rows, n)).astype("f4") * 2 - 1
    return y, c.of([keras.losses.MeanSquaredError(), keras.losses.MeanAbsoluteError(), keras.losses.Huber(), "mse",
                    keras.losses.CosineSimilarity()]), rows(n)


# ---- training settings ----


def schedule(c, lr):
    s = keras.optimizers.schedules
    return c.of([lambda: lr, lambda: lr, lambda: s.ExponentialDecay(lr, c.int(2, 5), 0.8, staircase=c.maybe()),
                 lambda: s.InverseTimeDecay(lr, 2, 0.5, staircase=c.maybe()), lambda: s.PiecewiseConstantDecay([1, 3], [lr, lr / 2, lr / 5]),
                 lambda: s.PolynomialDecay(lr, 4, lr / 10, power=c.of([1.0, 2.0])),
                 lambda: s.CosineDecay(lr / 4, 4, alpha=0.1, warmup_target=lr, warmup_steps=2), lambda: s.CosineDecay(lr, 5)])()


def optimizer(c):
    o = keras.optimizers
    args = {}
    clip = c.int(0, 6)
    if clip < 3:
        args[["clipnorm", "global_clipnorm", "clipvalue"][clip]] = c.of([0.1, 0.5])
    if c.maybe(0.2):
        args["weight_decay"] = 0.01
    if c.maybe(0.2):
        args.update(use_ema=True, ema_momentum=0.9)
    elif c.maybe(0.15):
        args["gradient_accumulation_steps"] = 2
    kind = c.int(0, 11)
    lr = schedule(c, c.of([0.01, 0.003]))
    rows = [lambda: o.SGD(lr, momentum=c.of([0.0, 0.9]), nesterov=c.maybe(), **args), lambda: o.Adam(lr, amsgrad=c.maybe(0.3), **args),
            lambda: o.AdamW(lr, **args), lambda: o.Nadam(lr, **args), lambda: o.Adamax(lr, **args), lambda: o.RMSprop(lr, rho=0.8, momentum=c.of([0.0, 0.5]), centered=c.maybe(), **args),
            lambda: o.Adagrad(lr, **args), lambda: o.Adadelta(0.5, **args), lambda: o.Lion(0.001, **args), lambda: o.Lamb(lr, **args),
            lambda: o.Ftrl(lr, l1_regularization_strength=0.001, l2_regularization_strength=0.01, **args), lambda: o.Adam(lr, beta_1=0.8, beta_2=0.99, epsilon=1e-5, **args)]
    if "weight_decay" in args and kind == 2:
        args.pop("weight_decay")
    return rows[kind]()


class Made:
    """model, compiled; inputs and targets: functions (rng, rows) -> array, in order."""


def make(seed, family=None):
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    c = Chooser(seed)
    made = Made()
    made.seed = seed
    family = family or c.of(list(FAMILIES))
    n_inputs = 2 if c.maybe(0.2) else 1
    ins, outs, made.inputs, parts = [], [], [], []
    for i in range(n_inputs):
        enter, bodies = FAMILIES[family if i == 0 else c.of(["table", "tokens"])]
        x, y, data = enter(c, i)
        body = c.of(bodies)
        parts.append(f"{enter.__name__ if enter.__name__ != '<lambda>' else 'text'}:{body.__name__}")
        ins.append(x)
        made.inputs.append(data)
        outs.append(body(c, y))
    x = outs[0] if n_inputs == 1 else layers.Concatenate()(outs)
    if n_inputs == 2 or c.maybe():
        x = layers.Dense(c.int(4, 8), activation=c.of(CALM))(x)
    heads = [head(c, x, i) for i in range(2 if c.maybe(0.2) else 1)]
    made.model = keras.Model(ins if len(ins) > 1 else ins[0], [h[0] for h in heads] if len(heads) > 1 else heads[0][0])
    made.targets = [h[2] for h in heads]
    if c.maybe(0.15) and len(made.model.layers) > 4:
        frozen = c.of([l for l in made.model.layers if l.weights] or [made.model.layers[0]])
        if frozen.name.startswith("out") is False:
            frozen.trainable = False
            parts.append(f"frozen {frozen.name}")
    made.optimizer = optimizer(c)
    made.loss = [h[1] for h in heads]
    more = {"loss_weights": [1.0, 0.3]} if len(heads) > 1 and c.maybe() else {}
    made.model.compile(made.optimizer, made.loss if len(heads) > 1 else made.loss[0], **more)
    made.text = " + ".join(parts) + f" [{type(made.optimizer).__name__}]"
    return made
