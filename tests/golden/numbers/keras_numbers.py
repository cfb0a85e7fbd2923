#!/usr/bin/env python3
"""What Keras 3 gets (TensorFlow backend, float64). Run in an environment with tensorflow-cpu: README.md.

Each case is a piece of a recipe and the expression in Keras that it stands for.
"""
import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import keras
import numpy as np
import tensorflow as tf

import problems as P

keras.config.set_floatx("float64")
from keras import losses, metrics, ops, optimizers
from keras.optimizers import schedules

JUDGE = f"Keras {keras.__version__}, TensorFlow {tf.__version__}, float64"

# recipe, Keras
OPTIMIZERS = [
    ("optimizer: {keras_sgd: {}}", "SGD()"),
    ("optimizer: {keras_sgd: {lr: 0.1}}", "SGD(0.1)"),
    ("optimizer: {keras_sgd: {lr: 0.1, momentum: 0.9}}", "SGD(0.1, momentum=0.9)"),
    ("optimizer: {keras_sgd: {lr: 0.1, momentum: 0.8, nesterov: true}}", "SGD(0.1, momentum=0.8, nesterov=True)"),
    ("optimizer: {keras_sgd: {lr: 0.1, momentum: 0.8, nesterov: true, weight_decay: 0.1}}",
     "SGD(0.1, momentum=0.8, nesterov=True, weight_decay=0.1)"),
    ("optimizer: {keras_adam: {}}", "Adam()"),
    ("optimizer: {keras_adam: {lr: 0.1, beta1: 0.8, beta2: 0.9, eps: 1e-3}}", "Adam(0.1, 0.8, 0.9, 1e-3)"),
    ("optimizer: {keras_adam: {lr: 0.1, beta2: 0.5, amsgrad: true}}", "Adam(0.1, beta_2=0.5, amsgrad=True)"),
    ("optimizer: {keras_adam: {lr: 0.1, weight_decay: 0.1}}", "Adam(0.1, weight_decay=0.1)"),
    ("optimizer: {keras_adamw: {}}", "AdamW()"),
    ("optimizer: {keras_adamw: {lr: 0.1, weight_decay: 0.2, beta2: 0.5, amsgrad: true}}",
     "AdamW(0.1, weight_decay=0.2, beta_2=0.5, amsgrad=True)"),
    ("optimizer: {keras_nadam: {}}", "Nadam()"),
    ("optimizer: {keras_nadam: {lr: 0.1, beta1: 0.8, eps: 1e-3, weight_decay: 0.1}}",
     "Nadam(0.1, 0.8, epsilon=1e-3, weight_decay=0.1)"),
    ("optimizer: {keras_adamax: {}}", "Adamax()"),
    ("optimizer: {keras_adamax: {lr: 0.1, beta2: 0.7, eps: 1e-2, weight_decay: 0.1}}",
     "Adamax(0.1, beta_2=0.7, epsilon=1e-2, weight_decay=0.1)"),
    ("optimizer: {keras_rmsprop: {}}", "RMSprop()"),
    ("optimizer: {keras_rmsprop: {lr: 0.1, alpha: 0.8, eps: 1e-3, weight_decay: 0.1}}",
     "RMSprop(0.1, rho=0.8, epsilon=1e-3, weight_decay=0.1)"),
    ("optimizer: {keras_rmsprop: {lr: 0.1, momentum: 0.9}}", "RMSprop(0.1, momentum=0.9)"),
    ("optimizer: {keras_rmsprop: {lr: 0.1, eps: 1e-2, centered: true}}", "RMSprop(0.1, epsilon=1e-2, centered=True)"),
    ("optimizer: {keras_rmsprop: {lr: 0.1, alpha: 0.5, eps: 1e-2, momentum: 0.9, centered: true, weight_decay: 0.1}}",
     "RMSprop(0.1, rho=0.5, epsilon=1e-2, momentum=0.9, centered=True, weight_decay=0.1)"),
    ("optimizer: {keras_adagrad: {}}", "Adagrad()"),
    ("optimizer: {keras_adagrad: {lr: 0.5, initial_accumulator: 0.01, eps: 1e-3, weight_decay: 0.1}}",
     "Adagrad(0.5, initial_accumulator_value=0.01, epsilon=1e-3, weight_decay=0.1)"),
    ("optimizer: {keras_adadelta: {}}", "Adadelta()"),
    ("optimizer: {keras_adadelta: {lr: 20, rho: 0.8, eps: 1e-4, weight_decay: 0.01}}",
     "Adadelta(20.0, rho=0.8, epsilon=1e-4, weight_decay=0.01)"),
    ("optimizer: {ftrl: {}}", "Ftrl()"),
    ("optimizer: {ftrl: {lr: 0.5, l1: 0.05, l2: 0.1, l2_shrinkage: 0.02, beta: 0.3}}",
     "Ftrl(0.5, l1_regularization_strength=0.05, l2_regularization_strength=0.1, "
     "l2_shrinkage_regularization_strength=0.02, beta=0.3)"),
    ("optimizer: {ftrl: {lr: 0.5, lr_power: -0.7, initial_accumulator: 0.2, l1: 2, weight_decay: 0.1}}",
     "Ftrl(0.5, learning_rate_power=-0.7, initial_accumulator_value=0.2, l1_regularization_strength=2.0, "
     "weight_decay=0.1)"),
    ("optimizer: {lion: {lr: 1e-3}}", "Lion()"),
    ("optimizer: {lion: {lr: 0.1, beta1: 0.8, beta2: 0.5, weight_decay: 0.1}}", "Lion(0.1, 0.8, 0.5, weight_decay=0.1)"),
    ("optimizer: {lamb: {lr: 0.1, weight_decay: 0, eps: 1e-7}}", "Lamb(0.1)"),
    ("optimizer: {keras_lamb: {}}", "Lamb()"),
    ("optimizer: {keras_lamb: {lr: 0.1, beta1: 0.8, beta2: 0.7, eps: 1e-3, weight_decay: 0.1}}",
     "Lamb(0.1, 0.8, 0.7, 1e-3, weight_decay=0.1)"),
    # around the rule
    ("optimizer: {keras_sgd: {lr: 0.1}}\nclip: {value: 0.25}", "SGD(0.1, clipvalue=0.25)"),
    ("optimizer: {keras_sgd: {lr: 0.1}}\nclip: {norm: 0.5}", "SGD(0.1, clipnorm=0.5)"),
    ("optimizer: {keras_sgd: {lr: 0.1}}\nclip: {global_norm: 0.5}", "SGD(0.1, global_clipnorm=0.5)"),
    ("optimizer: {keras_adam: {lr: 0.1}}\nclip: {global_norm: 100}", "Adam(0.1, global_clipnorm=100.0)"),
    ("optimizer: {keras_adamw: {lr: 0.1, weight_decay: 0.2}}\nno_decay: [bias]",
     'excluding(AdamW(0.1, weight_decay=0.2), "bias")'),
    ("optimizer: {keras_adam: {lr: 0.1}}\nema: {decay: 0.8, use_ema: true}",
     "Adam(0.1, use_ema=True, ema_momentum=0.8)"),
    ("optimizer: {keras_sgd: {lr: 0.1, momentum: 0.9}}\nschedule: {exponential: {gamma: 0.8}}",
     "SGD(schedules.ExponentialDecay(0.1, 1, 0.8), momentum=0.9)"),
    ("optimizer: {keras_adam: {lr: 0.1}}\naccumulate: 2", "Adam(0.1, gradient_accumulation_steps=2)"),
]


def exact(o):
    """Keras casts Python's numbers to float64 by way of float32; NumPy's it takes as they are."""
    for key, value in vars(o).items():
        if type(value) is float:
            setattr(o, key, np.float64(value))
    return o


def excluding(optimizer, name):
    optimizer.exclude_from_weight_decay(var_names=[name])
    return optimizer


def course(expression):
    """The weights, or their averages, after each step: nine numbers each."""
    o = exact(eval(expression, {**vars(optimizers), "schedules": schedules, "excluding": excluding}))
    kernel = keras.Variable(np.array(P.START["kernel"]), name="kernel", dtype="float64")
    bias = keras.Variable(np.array(P.START["bias"]), name="bias", dtype="float64")
    each, out = o.gradient_accumulation_steps or 1, []
    for t in range(P.STEPS):
        parts = [tf.constant(np.array(g), tf.float64) for g in P.split(P.GRADIENTS[t])]
        o.apply(parts, [kernel, bias])
        if (t + 1) % each:
            continue
        seen = o._model_variables_moving_average if o.use_ema else [kernel, bias]
        out.append([float(v) for w in seen for v in ops.convert_to_numpy(w).ravel()])
    return out


# recipe, Keras. Keras' boundaries belong to what is before them, its decay spans are spans of calls.
SCHEDULES = [
    ("schedule: {exponential: {gamma: 0.8}}", "ExponentialDecay(0.5, 1, 0.8)"),
    ("schedule: {step: {step_size: 3, gamma: 0.5}}", "ExponentialDecay(0.5, 3, 0.5, staircase=True)"),
    ("schedule: {piecewise: {boundaries: [2, 5], factors: [1, 0.1, 0.5]}}", "PiecewiseConstantDecay([1, 4], [0.5, 0.05, 0.25])"),
    ("schedule: {polynomial: {total_steps: 8, power: 2, final_lr: 0.1}}", "PolynomialDecay(0.5, 8, 0.1, 2.0)"),
    ("schedule: {linear: {total_steps: 6, final_lr: 0.05}}", "PolynomialDecay(0.5, 6, 0.05)"),
    ("schedule: {cosine: {decay_steps: 12, final_lr: 0.1}}", "CosineDecay(0.5, 12, 0.2)"),
    ("schedule: {warmup_cosine: {warmup_steps: 4, start_factor: 0.2, decay_steps: 8, final_lr: 0.05}}",
     "CosineDecay(0.1, 8, 0.1, warmup_target=0.5, warmup_steps=4)"),
    ("schedule: {cosine_restarts: {cycle_steps: 3, cycle_mult: 2, final_lr: 0.05}}",
     "CosineDecayRestarts(0.5, 3, 2.0, 1.0, 0.1)"),
    ("schedule: {keras_exponential: {decay_steps: 3, decay_rate: 0.5, staircase: true}}",
     "ExponentialDecay(0.5, 3, 0.5, staircase=True)"),
    ("schedule: {keras_exponential: {decay_steps: 2.5, decay_rate: 0.5}}", "ExponentialDecay(0.5, 2.5, 0.5)"),
    ("schedule: {keras_inverse_time: {decay_steps: 3, decay_rate: 0.7}}", "InverseTimeDecay(0.5, 3, 0.7)"),
    ("schedule: {keras_inverse_time: {decay_steps: 3, decay_rate: 0.7, staircase: true}}",
     "InverseTimeDecay(0.5, 3, 0.7, staircase=True)"),
    ("schedule: {keras_polynomial: {decay_steps: 5, final_lr: 0.1, power: 2}}", "PolynomialDecay(0.5, 5, 0.1, 2.0)"),
    ("schedule: {keras_polynomial: {decay_steps: 5, final_lr: 0.1, cycle: true}}",
     "PolynomialDecay(0.5, 5, 0.1, cycle=True)"),
    ("schedule: {keras_cosine: {decay_steps: 8, alpha: 0.1}}", "CosineDecay(0.5, 8, 0.1)"),
    ("schedule: {keras_cosine: {decay_steps: 6, alpha: 0.1, warmup_target: 0.9, warmup_steps: 4}}",
     "CosineDecay(0.5, 6, 0.1, warmup_target=0.9, warmup_steps=4)"),
    ("schedule: {keras_cosine_restarts: {first_decay_steps: 3, t_mul: 1.5, m_mul: 0.8, alpha: 0.05}}",
     "CosineDecayRestarts(0.5, 3, 1.5, 0.8, 0.05)"),
]
COURSE = 12


def rates(expression):
    s = exact(eval(expression, vars(schedules)))
    return [float(s(tf.constant(t, tf.int64))) for t in range(COURSE)]


# recipe, outputs, fields, Keras of tensors called as outputs and fields
Y, L = {"y": P.LOGITS}, {"t": P.LABELS}
LOSSES = [
    ("loss: {softmax_cross_entropy: {}}", Y, L, "SparseCategoricalCrossentropy(from_logits=True)(t, y)"),
    ("loss: {softmax_cross_entropy: {dense_labels: true}}", Y, {"t": P.SHARES},
     "CategoricalCrossentropy(from_logits=True)(t, y)"),
    ("loss: {softmax_cross_entropy: {dense_labels: true, label_smoothing: 0.2}}", Y, {"t": P.SHARES},
     "CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)(t, y)"),
    ("loss: {softmax_cross_entropy: {label_smoothing: 0.2}}", Y, L,
     "CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)(ops.one_hot(t, 4), y)"),
    ("loss: {binary_cross_entropy_with_logits: {}}", Y, {"t": P.BITS}, "BinaryCrossentropy(from_logits=True)(t, y)"),
    ("loss: {mse: {}}", Y, {"t": P.OTHER}, "MeanSquaredError()(t, y)"),
    ("loss: {mae: {}}", Y, {"t": P.OTHER}, "MeanAbsoluteError()(t, y)"),
    ("loss: {huber: {}}", Y, {"t": P.OTHER}, "Huber()(t, y)"),
    ("loss: {huber: {delta: 0.5}}", Y, {"t": P.OTHER}, "Huber(delta=0.5)(t, y)"),
    ("loss: {kl_div: {}}", {"y": P.LOGS}, {"t": P.FULL}, "KLDivergence()(t, ops.exp(y))"),
    ("loss: {hinge: {}}", {"y": P.SIDES}, {"t": [[2 * b - 1 for b in r] for r in P.BITS[:4]] + [[1.0, -1.0, 1.0, -1.0]]},
     "Hinge()(t, y)"),
    ("loss: {hinge: {}}", {"y": P.SIDES}, {"t": P.BITS[:4] + [[1.0, 0.0, 1.0, 0.0]]}, "Hinge()(t, y)"),
    ("loss: {cosine: {}}", Y, {"t": P.OTHER}, "1 + CosineSimilarity()(t, y)"),
    ("loss: {keras_sparse_crossentropy: {from_logits: true}}", Y, L, "SparseCategoricalCrossentropy(from_logits=True)(t, y)"),
    ("loss: {keras_sparse_crossentropy: {}}", {"y": P.FULL}, L, "SparseCategoricalCrossentropy()(t, y)"),
    ("loss: {keras_categorical_crossentropy: {from_logits: true, label_smoothing: 0.2}}", Y, {"t": P.SHARES},
     "CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)(t, y)"),
    ("loss: {keras_categorical_focal: {from_logits: true, gamma: 1.5}}", Y, {"t": P.SHARES},
     "CategoricalFocalCrossentropy(from_logits=True, gamma=1.5)(t, y)"),
    ("loss: {keras_binary_crossentropy: {from_logits: true, label_smoothing: 0.1}}", Y, {"t": P.BITS},
     "BinaryCrossentropy(from_logits=True, label_smoothing=0.1)(t, y)"),
    ("loss: {keras_binary_crossentropy: {}}", {"y": P.FULL}, {"t": P.BITS}, "BinaryCrossentropy()(t, y)"),
    ("loss: {keras_binary_focal: {from_logits: true, balanced: true}}", Y, {"t": P.BITS},
     "BinaryFocalCrossentropy(from_logits=True, apply_class_balancing=True)(t, y)"),
    ("loss: {keras_mse: {}}", Y, {"t": P.OTHER}, "MeanSquaredError()(t, y)"),
    ("loss: {keras_mse: {reduction: sum}}", Y, {"t": P.OTHER}, "MeanSquaredError(reduction='sum')(t, y)"),
    ("loss: {keras_mae: {}}", Y, {"t": P.SIDES}, "MeanAbsoluteError()(t, y)"),
    ("loss: {keras_mape: {}}", Y, {"t": P.SIDES}, "MeanAbsolutePercentageError()(t, y)"),
    ("loss: {keras_msle: {}}", {"y": P.FULL}, {"t": P.SHARES}, "MeanSquaredLogarithmicError()(t, y)"),
    ("loss: {keras_huber: {delta: 0.5}}", Y, {"t": P.SIDES}, "Huber(delta=0.5)(t, y)"),
    ("loss: {keras_log_cosh: {}}", Y, {"t": P.OTHER}, "LogCosh()(t, y)"),
    ("loss: {keras_kl_divergence: {}}", {"y": P.FULL}, {"t": P.SHARES}, "KLDivergence()(t, y)"),
    ("loss: {keras_poisson: {}}", {"y": P.FULL}, {"t": P.SHARES}, "Poisson()(t, y)"),
    ("loss: {keras_cosine_similarity: {}}", Y, {"t": P.OTHER}, "CosineSimilarity()(t, y)"),
    ("loss: {keras_hinge: {}}", {"y": P.SIDES}, {"t": P.BITS[:4] + [[1.0, 0.0, 1.0, 0.0]]}, "Hinge()(t, y)"),
    ("loss: {keras_squared_hinge: {}}", {"y": P.SIDES}, {"t": P.BITS[:4] + [[1.0, 0.0, 1.0, 0.0]]}, "SquaredHinge()(t, y)"),
    ("loss: {keras_categorical_hinge: {}}", {"y": P.SIDES}, {"t": P.SHARES}, "CategoricalHinge()(t, y)"),
    ("loss: {ctc: {}}", {"y": P.SPEECH}, {"t": P.SPOKEN}, "CTC()(t, y) / 3"),  # Keras does not divide by the length
]


def slope(outputs, fields, expression):
    """The loss and its gradient by each output."""
    y = {k: tf.Variable(np.array(v), dtype=tf.float64) for k, v in outputs.items()}
    t = {k: tf.constant(np.array(v)) for k, v in fields.items()}
    with tf.GradientTape() as tape:
        loss = tf.cast(eval(expression, {**vars(losses), "ops": ops, **y, **t}), tf.float64)
    g = tape.gradient(loss, list(y.values()))
    return float(loss), {k: [float(x) for x in np.array(d).ravel()] for k, d in zip(y, g)}


def loss_case(recipe, outputs, fields, expression):
    loss, gradient = slope(outputs, fields, expression)
    return {"recipe": recipe, "is": expression, "outputs": outputs, "fields": fields, "loss": loss,
            "gradient": gradient}


# recipe, outputs, fields, Keras
CE = "loss: {softmax_cross_entropy: {}}\n"
BCE = "loss: {binary_cross_entropy_with_logits: {}}\n"
S, C, M, B = {"y": P.SCORES}, {"t": P.CLASSES}, {"y": P.MARGINS}, {"t": P.YES}
METRICS = [
    (CE + "metrics: [accuracy]", S, C, "SparseCategoricalAccuracy()(t, y)"),
    (CE + "metrics: [top_k: {k: 2}]", {"y": P.DISTINCT}, C, "SparseTopKCategoricalAccuracy(2)(t, ops.cast(y, 'float32'))"),
    (BCE + "metrics: [accuracy]", M, B, "BinaryAccuracy(threshold=0.0)(t[:, None], y[:, None])"),
    (BCE + "metrics: [precision]", M, B, "Precision(thresholds=0.5)(t, ops.cast(y > 0, 'float64'))"),
    (BCE + "metrics: [recall]", M, B, "Recall(thresholds=0.5)(t, ops.cast(y > 0, 'float64'))"),
    (BCE + "metrics: [f1: {threshold: 0.75}]", M, B,
     "F1Score(threshold=0.5)(t[:, None], ops.cast(y[:, None] > 0.75, 'float64'))[0]"),
    (CE + "metrics: [f1]", {"y": P.DISTINCT}, C, "F1Score(average='macro')(ops.one_hot(t, 4), y)"),
    ("loss: mse\nmetrics: [mse]", S, {"t": P.REALS}, "MeanSquaredError()(t, y)"),
    ("loss: mse\nmetrics: [mae]", S, {"t": P.REALS}, "MeanAbsoluteError()(t, y)"),
]


def metric_case(recipe, outputs, fields, expression):
    values = {k: tf.constant(np.array(v)) for k, v in {**outputs, **fields}.items()}
    value = float(eval(expression, {**vars(metrics), "ops": ops, **values}))
    return {"recipe": recipe, "is": expression, "outputs": outputs, "fields": fields, "value": value}


def main():
    P.write("optimizers.keras.json", JUDGE,
            [{"recipe": r, "is": e, "weights": course(e)} for r, e in OPTIMIZERS], P.GIVEN)
    P.write("schedules.keras.json", JUDGE, [{"recipe": r, "is": e, "lr": rates(e)} for r, e in SCHEDULES])
    P.write("losses.keras.json", JUDGE, [loss_case(*c) for c in LOSSES])
    P.write("metrics.keras.json", JUDGE, [metric_case(*c) for c in METRICS])


main()
