#!/usr/bin/env python3
"""What PyTorch gets (float64), and where it has no such thing: optax, scikit-learn, or the formula of a paper written
out in NumPy. Run in an environment with torch, optax, scikit-learn: README.md.

Each case is a piece of a recipe and the expression that it stands for.
"""
import os

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import math

import jax.numpy as jnp
import numpy as np
import optax
import sklearn
import torch
import torch.nn.functional as F
from sklearn import metrics as sk
from torch import optim
from torch.optim import lr_scheduler as sched

import problems as P

torch.set_default_dtype(torch.float64)
TORCH = f"PyTorch {torch.__version__.split('+')[0]}, float64"
KERNEL = (P.N_KERNEL, P.KERNEL_SHAPE)


def weights():
    return torch.nn.Parameter(torch.tensor(P.START["kernel"])), torch.nn.Parameter(torch.tensor(P.START["bias"]))


def flat(tensors):
    return [float(v) for t in tensors for v in np.asarray(t.detach() if hasattr(t, "detach") else t).ravel()]


# recipe, optimizer of (k, b), and where it says more: what happens to the gradients before a step; penalty of (k, b)
OPTIMIZERS = [
    ("optimizer: {sgd: {lr: 0.1}}", "SGD([k, b], 0.1)"),
    ("optimizer: {sgd: {}}", "SGD([k, b])"),
    ("optimizer: {sgd: {lr: 0.1, weight_decay: 0.1}}", "SGD([k, b], 0.1, weight_decay=0.1)"),
    ("optimizer: {sgd: {lr: 0.1, momentum: 0.9}}", "SGD([k, b], 0.1, momentum=0.9)"),
    ("optimizer: {sgd: {lr: 0.1, momentum: 0.9, dampening: 0.5, weight_decay: 0.01}}",
     "SGD([k, b], 0.1, momentum=0.9, dampening=0.5, weight_decay=0.01)"),
    ("optimizer: {sgd: {lr: 0.1, momentum: 0.8, nesterov: true, weight_decay: 0.01}}",
     "SGD([k, b], 0.1, momentum=0.8, nesterov=True, weight_decay=0.01)"),
    ("optimizer: {adam: {}}", "Adam([k, b])"),
    ("optimizer: {adam: {lr: 0.1, betas: [0.8, 0.9], eps: 1e-3, weight_decay: 0.1}}",
     "Adam([k, b], 0.1, (0.8, 0.9), 1e-3, 0.1)"),
    ("optimizer: {adam: {lr: 0.1, beta2: 0.5, amsgrad: true}}", "Adam([k, b], 0.1, (0.9, 0.5), amsgrad=True)"),
    ("optimizer: {adamw: {}}", "AdamW([k, b])"),
    ("optimizer: {adamw: {lr: 0.1, weight_decay: 0.2, beta2: 0.95}}",
     "AdamW([k, b], 0.1, (0.9, 0.95), weight_decay=0.2)"),
    ("optimizer: {adamw: {lr: 0.1, beta2: 0.5, amsgrad: true}}", "AdamW([k, b], 0.1, (0.9, 0.5), amsgrad=True)"),
    ("optimizer: {nadam: {}}", "NAdam([k, b])"),
    ("optimizer: {nadam: {lr: 0.1, momentum_decay: 0.4, weight_decay: 0.01}}",
     "NAdam([k, b], 0.1, momentum_decay=0.4, weight_decay=0.01)"),
    ("optimizer: {adamax: {}}", "Adamax([k, b])"),
    ("optimizer: {adamax: {lr: 0.1, beta2: 0.7, eps: 1e-4, weight_decay: 0.01}}",
     "Adamax([k, b], 0.1, (0.9, 0.7), 1e-4, 0.01)"),
    ("optimizer: {rmsprop: {}}", "RMSprop([k, b])"),
    ("optimizer: {rmsprop: {lr: 0.1, alpha: 0.9, eps: 1e-4, weight_decay: 0.01}}",
     "RMSprop([k, b], 0.1, 0.9, 1e-4, 0.01)"),
    ("optimizer: {rmsprop: {lr: 0.1, alpha: 0.9, eps: 1e-4, momentum: 0.5}}",
     "RMSprop([k, b], 0.1, 0.9, 1e-4, momentum=0.5)"),
    ("optimizer: {rmsprop: {lr: 0.1, alpha: 0.5, eps: 1e-2, momentum: 0.9, centered: true, weight_decay: 0.01}}",
     "RMSprop([k, b], 0.1, 0.5, 1e-2, 0.01, 0.9, True)"),
    ("optimizer: {adagrad: {}}", "Adagrad([k, b])"),
    ("optimizer: {adagrad: {lr: 0.5, lr_decay: 0.05, initial_accumulator: 0.1, weight_decay: 0.01}}",
     "Adagrad([k, b], 0.5, 0.05, 0.01, 0.1)"),
    ("optimizer: {adadelta: {}}", "Adadelta([k, b])"),
    ("optimizer: {adadelta: {lr: 20, rho: 0.8, eps: 1e-4, weight_decay: 0.01}}",
     "Adadelta([k, b], 20.0, 0.8, 1e-4, 0.01)"),
    # around the rule
    ("optimizer: {sgd: {lr: 0.1}}\nclip: {value: 0.25}", "SGD([k, b], 0.1)", "clip_grad_value_([k, b], 0.25)"),
    ("optimizer: {sgd: {lr: 0.1}}\nclip: {global_norm: 0.5}", "SGD([k, b], 0.1)", "clip_grad_norm_([k, b], 0.5)"),
    ("optimizer: {sgd: {lr: 0.1}}\nclip: {norm: 0.5}", "SGD([k, b], 0.1)",
     "[clip_grad_norm_([k], 0.5), clip_grad_norm_([b], 0.5)]"),
    ("optimizer: {adamw: {lr: 0.1, weight_decay: 0.2}}\nno_decay: [bias]",
     'AdamW([{"params": [k]}, {"params": [b], "weight_decay": 0}], 0.1, weight_decay=0.2)'),
    ("optimizer: {adamw: {lr: 0.1, weight_decay: 0.2}}\nlr_scale: {bias: 0.25}",
     'AdamW([{"params": [k]}, {"params": [b], "lr": 0.025}], 0.1, weight_decay=0.2)'),
    ("optimizer: {sgd: {lr: 0.1}}\nema: {decay: 0.8, use_ema: true}", "SGD([k, b], 0.1)", "average(0.8)"),
    ("optimizer: {sgd: {lr: 0.1}}\nloss: [mean: {}, l1: {weight: 0.5}]", "SGD([k, b], 0.1)",
     "penalty(0.5 * (k.abs().sum() + b.abs().sum()))"),
    ("optimizer: {sgd: {lr: 0.1}}\nloss: [mean: {}, l2: {weight: 0.3, tensors: [kernel]}]", "SGD([k, b], 0.1)",
     "penalty(0.3 * k.square().sum())"),
    ("optimizer: {adamw: {lr: 0.1, weight_decay: 0.2}}\naccumulate: 2", "AdamW([k, b], 0.1, weight_decay=0.2)",
     "every(2)"),
    ("optimizer: {sgd: {lr: 0.1, momentum: 0.9}}\nclip: {global_norm: 0.5}\naccumulate: 2",
     "SGD([k, b], 0.1, momentum=0.9)", "every(2), clip_grad_norm_([k, b], 0.5)"),
    ("optimizer: {adam: {lr: 0.1}}\nschedule: {exponential: {gamma: 0.8}}", "Adam([k, b], 0.1)",
     "decay(lambda o: sched.ExponentialLR(o, 0.8))"),
]


def course(optimizer, extra=""):
    """The weights, or their averages, after each step: nine numbers each."""
    k, b = weights()
    o = eval(optimizer, {**vars(optim), "k": k, "b": b})
    state = {"every": 1, "average": None, "schedule": None, "penalty": None}
    averages = None

    def penalty(v):
        v.backward()

    names = {"clip_grad_value_": torch.nn.utils.clip_grad_value_, "clip_grad_norm_": torch.nn.utils.clip_grad_norm_,
             "k": k, "b": b, "sched": sched, "penalty": penalty,
             "every": lambda n: state.update(every=n),
             "average": lambda d: state.update(average=d),
             "decay": lambda make: state.update(schedule=state["schedule"] or make(o))}
    if extra.startswith("every"):
        eval(extra.split(",")[0], names)
    out = []
    for step in range(P.STEPS // state["every"]):
        o.zero_grad()
        micro = P.GRADIENTS[step * state["every"]:(step + 1) * state["every"]]
        for g in micro:
            parts = [torch.tensor(x) / len(micro) for x in P.split(g)]
            ((k * parts[0]).sum() + (b * parts[1]).sum()).backward()
        if extra:
            eval(extra, names)
        o.step()
        if state["schedule"]:
            state["schedule"].step()
        if state["average"]:  # torch.optim.swa_utils: the first average is a copy
            if averages is None:
                pair = torch.nn.ParameterList([k, b])
                averages = torch.optim.swa_utils.AveragedModel(
                    pair, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(state["average"]))
            averages.update_parameters(pair)
        out.append(flat(averages.module if averages else [k, b]))
    return out


# recipe, optax
OPTAX = [
    ("optimizer: {lion: {lr: 0.1, beta1: 0.8, beta2: 0.5, weight_decay: 0.1}}", "lion(0.1, 0.8, 0.5, weight_decay=0.1)"),
    ("optimizer: {lamb: {lr: 0.1, weight_decay: 0}}", "lamb(0.1, eps=1e-6)"),
    ("optimizer: {lamb: {lr: 0.1, betas: [0.8, 0.9], eps: 1e-3, weight_decay: 0.1}}",
     "lamb(0.1, 0.8, 0.9, 1e-3, weight_decay=0.1)"),
    ("optimizer: {lars: {lr: 0.5, momentum: 0.9, trust: 0.2, weight_decay: 0}}",
     "lars(0.5, trust_coefficient=0.2, momentum=0.9)"),
    ("optimizer: {lars: {lr: 0.5, momentum: 0, trust: 0.2, eps: 0.01, weight_decay: 0}}",
     "lars(0.5, trust_coefficient=0.2, eps=0.01, momentum=0.0)"),
    ("optimizer: {keras_sgd: {lr: 0.1, momentum: 0.9}}",
     "chain(scale_by_learning_rate(0.1), trace(0.9))"),
    ("optimizer: {adam: {lr: 0.1}}", "adam(0.1)"),
    ("optimizer: {adamw: {lr: 0.1, weight_decay: 0.2}}", "adamw(0.1, weight_decay=0.2)"),
    ("optimizer: {sgd: {lr: 0.1, momentum: 0.8, nesterov: true}}", "sgd(0.1, 0.8, True)"),
    ("optimizer: {sgd: {lr: 0.1}}\nclip: {global_norm: 0.5}", "chain(clip_by_global_norm(0.5), sgd(0.1))"),
    ("optimizer: {sgd: {lr: 0.1}}\nclip: {value: 0.25}", "chain(clip(0.25), sgd(0.1))"),
]


def optax_course(expression):
    o = eval(expression, vars(optax))
    w = [jnp.array(P.START["kernel"]), jnp.array(P.START["bias"])]
    state, out = o.init(w), []
    for t in range(P.STEPS):
        change, state = o.update([jnp.array(g) for g in P.split(P.GRADIENTS[t])], state, w)
        w = optax.apply_updates(w, change)
        out.append(flat(w))
    return out


# Formulas of papers, where no library has just this form.
def lars(w, g, m, lr, momentum, trust, decay):
    """You et al. 2017, algorithm 1: lambda = eta |w| / (|g| + beta |w|); v = m v + gamma lambda (g + beta w)."""
    local = trust * np.linalg.norm(w) / (np.linalg.norm(g) + decay * np.linalg.norm(w))
    m = momentum * m + lr * local * (g + decay * w)
    return w - m, m


def lamb(w, g, m, v, t, lr, beta1, beta2, eps, decay):
    """You et al. 2019, algorithm 2, phi the identity."""
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    r = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps) + decay * w
    return w - lr * np.linalg.norm(w) / np.linalg.norm(r) * r, m, v


def lion(w, g, m, lr, beta1, beta2, decay):
    """Chen et al. 2023, algorithm 2."""
    c = beta1 * m + (1 - beta1) * g
    return w - lr * (np.sign(c) + decay * w), beta2 * m + (1 - beta2) * g


def ftrl(w, g, z, n, alpha, beta, l1, l2, start):
    """McMahan et al. 2013, algorithm 1, whose l2 is twice ours and whose n starts at `start`."""
    sigma = (np.sqrt(n + g * g) - np.sqrt(n)) / alpha
    z, n = z + g - sigma * w, n + g * g
    w = np.where(abs(z) <= l1, 0, -(z - np.sign(z) * l1) / ((beta + np.sqrt(n)) / alpha + l2))
    return w, z, n


PAPERS = [
    ("optimizer: {lars: {lr: 0.5, momentum: 0.9, trust: 0.2, weight_decay: 0.1}}",
     "You et al. 2017, algorithm 1", lambda w, g, s, t: lars(w, g, *s, 0.5, 0.9, 0.2, 0.1), 1),
    ("optimizer: {lamb: {lr: 0.1, weight_decay: 0.1}}", "You et al. 2019, algorithm 2",
     lambda w, g, s, t: lamb(w, g, *s, t, 0.1, 0.9, 0.999, 1e-6, 0.1), 2),
    ("optimizer: {lion: {lr: 0.05, weight_decay: 0.2}}", "Chen et al. 2023, algorithm 2",
     lambda w, g, s, t: lion(w, g, *s, 0.05, 0.9, 0.99, 0.2), 1),
    ("optimizer: {ftrl: {lr: 0.5, l1: 0.05, l2: 0.1, beta: 0.3}}", "McMahan et al. 2013, algorithm 1",
     lambda w, g, s, t: ftrl(w, g, *s, 0.5, 0.3, 0.05, 0.2, 0.1), 2),
]


def paper_course(rule, n_moments, start):
    """Tensor by tensor: the rules with norms look at one at a time."""
    rows = [[] for _ in range(P.STEPS)]
    for part in range(2):
        w = np.array([P.START["kernel"], P.START["bias"]][part], dtype=np.float64)
        s = [np.zeros_like(w) for _ in range(n_moments)]
        s[-1] = s[-1] + start
        for t in range(P.STEPS):
            w, *s = rule(w, np.array(P.split(P.GRADIENTS[t])[part]), s, t + 1)
            rows[t] += flat([w])
    return rows


SCHEDULES = [
    ("schedule: {constant: {}}", "ConstantLR(o, 1.0)"),
    ("schedule: {step: {step_size: 3, gamma: 0.5}}", "StepLR(o, 3, 0.5)"),
    ("schedule: {exponential: {gamma: 0.8}}", "ExponentialLR(o, 0.8)"),
    ("schedule: {piecewise: {boundaries: [2, 5], factors: [1, 0.1, 0.01]}}", "MultiStepLR(o, [2, 5])"),
    ("schedule: {polynomial: {total_steps: 8, power: 2}}", "PolynomialLR(o, 8, 2.0)"),
    ("schedule: {linear: {total_steps: 5, final_lr: 0.1}}", "LinearLR(o, 1.0, 0.2, 5)"),
    ("schedule: {cosine: {decay_steps: 12, final_lr: 0.1}}", "CosineAnnealingLR(o, 12, 0.1)"),
    ("schedule: {cosine_restarts: {cycle_steps: 4, final_lr: 0.1}}", "CosineAnnealingWarmRestarts(o, 4, 1, 0.1)"),
    ("schedule: {cosine_restarts: {cycle_steps: 2, cycle_mult: 2}}", "CosineAnnealingWarmRestarts(o, 2, 2)"),
    ("schedule: {one_cycle: {total_steps: 12}}", "OneCycleLR(o, 0.5, 12)"),
    ("schedule: {one_cycle: {total_steps: 12, pct_start: 0.25, div_factor: 10, final_div_factor: 100, anneal: linear}}",
     'OneCycleLR(o, 0.5, 12, pct_start=0.25, anneal_strategy="linear", div_factor=10.0, final_div_factor=100.0)'),
    ("schedule: {warmup_cosine: {warmup_steps: 4, start_factor: 0.2, decay_steps: 8, final_lr: 0.05}}",
     "SequentialLR(o, [LinearLR(o, 0.2, 1.0, 4), CosineAnnealingLR(o, 8, 0.05)], [4])"),
    ("schedule: {polynomial: {total_steps: 6, power: 2}}\nwarmup: {steps: 4, start_factor: 0.2}",
     "SequentialLR(o, [LinearLR(o, 0.2, 1.0, 4), PolynomialLR(o, 6, 2.0)], [4])"),
    ("schedule: {step: {step_size: 2, gamma: 0.5}}\nwarmup: {steps: 3, start_factor: 0.25}",
     "SequentialLR(o, [LinearLR(o, 0.25, 1.0, 3), StepLR(o, 2, 0.5)], [3])"),
]


def rates(expression):
    o = optim.SGD(weights(), 0.5)
    s, out = eval(expression, {**vars(sched), "o": o}), []
    for _ in range(12):
        out.append(float(o.param_groups[0]["lr"]))
        o.step()
        s.step()
    return out


Y, L = {"y": P.LOGITS}, {"t": P.LABELS}
LOG = {"y": P.LOGS}
PAIR = {"y": P.LOGITS, "z": P.OTHER}
WEIGHTED = "class_weights: [4, 1, 0.5, 2]"
CW = "weight=torch.tensor([4, 1, 0.5, 2])"
SPEECH = {"y": P.SPEECH}
HEARD = {"t": P.SPOKEN, "heard": P.HEARD_LENGTHS, "said": P.SPOKEN_LENGTHS}
CTC = "ctc_loss(y.transpose(0, 1).log_softmax(-1), t, torch.tensor({}), torch.tensor({}){})"

# recipe, outputs, fields, torch.nn.functional of tensors called as outputs and fields
LOSSES = [
    ("loss: {softmax_cross_entropy: {}}", Y, L, "cross_entropy(y, t)"),
    ("loss: {softmax_cross_entropy: {}}", Y, {"t": P.IGNORING}, "cross_entropy(y, t)"),
    ("loss: {softmax_cross_entropy: {ignore_index: 2}}", Y, L, "cross_entropy(y, t, ignore_index=2)"),
    ("loss: {softmax_cross_entropy: {label_smoothing: 0.2}}", Y, {"t": P.IGNORING},
     "cross_entropy(y, t, label_smoothing=0.2)"),
    ("loss: {softmax_cross_entropy: {" + WEIGHTED + "}}", Y, {"t": P.IGNORING}, f"cross_entropy(y, t, {CW})"),
    ("loss: {softmax_cross_entropy: {label_smoothing: 0.2, " + WEIGHTED + "}}", Y, {"t": P.IGNORING},
     f"cross_entropy(y, t, {CW}, label_smoothing=0.2)"),
    ("loss: {softmax_cross_entropy: {class_axis: 1}}", {"y": P.PLACES}, {"t": P.PLACE_LABELS}, "cross_entropy(y, t)"),
    ("loss: {softmax_cross_entropy: {dense_labels: true}}", Y, {"t": P.SHARES}, "cross_entropy(y, t)"),
    ("loss: {softmax_cross_entropy: {dense_labels: true, label_smoothing: 0.2, " + WEIGHTED + "}}", Y,
     {"t": P.SHARES}, f"cross_entropy(y, t, {CW}, label_smoothing=0.2)"),
    ("loss: {softmax_cross_entropy: {labels: t, sample_weights: w}}", Y, {"t": P.LABELS, "w": [1.0, 2.0, 0.5, 4.0, 0.0]},
     "(cross_entropy(y, t, reduction='none') * w).sum() / w.sum()"),
    ("loss: {binary_cross_entropy_with_logits: {}}", Y, {"t": P.BITS}, "binary_cross_entropy_with_logits(y, t)"),
    ("loss: {binary_cross_entropy_with_logits: {pos_weight: 3.5}}", Y, {"t": P.BITS},
     "binary_cross_entropy_with_logits(y, t, pos_weight=torch.tensor(3.5))"),
    ("loss: {mse: {}}", Y, {"t": P.OTHER}, "mse_loss(y, t)"),
    ("loss: {mse: {weight: 0.5}}", Y, {"t": P.OTHER}, "0.5 * mse_loss(y, t)"),
    ("loss: {mae: {}}", Y, {"t": P.OTHER}, "l1_loss(y, t)"),
    ("loss: {huber: {}}", Y, {"t": P.OTHER}, "huber_loss(y, t)"),
    ("loss: {huber: {delta: 0.5}}", Y, {"t": P.OTHER}, "huber_loss(y, t, delta=0.5)"),
    ("loss: {nll: {}}", LOG, {"t": P.IGNORING}, "nll_loss(y, t)"),
    ("loss: {nll: {" + WEIGHTED + "}}", LOG, L, f"nll_loss(y, t, {CW})"),
    ("loss: {kl_div: {}}", LOG, {"t": P.SHARES}, "kl_div(y, t, reduction='batchmean')"),
    ("loss: {hinge: {margin: 0.3}}", {"y": [r[0] for r in P.SIDES]}, {"t": P.SIGNS},
     "(0.3 - y * t).clamp(min=0).mean()"),
    ("loss: {multi_margin: {}}", Y, L, "multi_margin_loss(y, t)"),
    ("loss: {multi_margin: {margin: 0.5, " + WEIGHTED + "}}", Y, L, f"multi_margin_loss(y, t, margin=0.5, {CW})"),
    ("loss: {cosine: {}}", Y, {"t": P.OTHER}, "(1 - cosine_similarity(y, t)).mean()"),
    ("loss: {cosine_embedding: {output: 'y', other: z, margin: 0.25}}", PAIR, {"t": P.SIGNS},
     "cosine_embedding_loss(y, z, t, margin=0.25)"),
    ("loss: {contrastive: {output: 'y', other: z, margin: 3}}", PAIR, {"t": P.SAME},
     "(t * (y - z).square().sum(1) / 2 + (1 - t) * (3 - (y - z).norm(dim=1)).clamp(min=0).square() / 2).mean()"),
    ("loss: {ctc: {input_lengths: heard, target_lengths: said, labels: t}}", SPEECH, HEARD,
     CTC.format(P.HEARD_LENGTHS, P.SPOKEN_LENGTHS, "")),
    ("loss: {ctc: {labels: t}}", SPEECH, {"t": P.SPOKEN}, CTC.format([6, 6, 6], [3, 3, 3], "")),
    ("loss: {ctc: {blank: 3, target_lengths: said, labels: t}}", SPEECH,
     {"t": [[1, 2, 2], [0, 1, 1], [2, 1, 0]], "said": P.SPOKEN_LENGTHS},
     CTC.format([6, 6, 6], P.SPOKEN_LENGTHS, ", blank=3")),
    ("loss: {ctc: {input_lengths: heard, labels: t, zero_infinity: true}}", SPEECH,
     {"t": P.TOO_LONG, "heard": P.HEARD_SHORT}, CTC.format(P.HEARD_SHORT, [3, 3, 3], ", zero_infinity=True")),
    ("loss: {mean: {}}", Y, {}, "y.mean()"),
    ("loss: [{mse: {output: 'y', target: t}}, {mae: {output: z, target: u, weight: 0.25}}]", PAIR,
     {"t": P.OTHER, "u": P.SHARES}, "mse_loss(y, t) + 0.25 * l1_loss(z, u)"),
]


def loss_case(recipe, outputs, fields, expression):
    y = {k: torch.tensor(v, requires_grad=True) for k, v in outputs.items()}
    t = {k: torch.tensor(v) for k, v in fields.items()}
    loss = eval(expression, {**vars(F), "torch": torch, **y, **t})
    loss.backward()
    return {"recipe": recipe, "is": expression, "outputs": outputs, "fields": fields, "loss": float(loss),
            "gradient": {k: flat([v.grad]) for k, v in y.items()}}


CE = "loss: {softmax_cross_entropy: {}}\n"
BCE = "loss: {binary_cross_entropy_with_logits: {}}\n"
S, M, B = {"y": P.SCORES}, {"y": P.MARGINS}, {"t": P.YES}
C, SOME = {"t": P.CLASSES}, {"t": P.SOME_CLASSES}
PROBS = "softmax(y, axis=1)"
METRICS = [
    (CE + "metrics: [accuracy]", S, C, "accuracy_score(t, y.argmax(1))"),
    (CE + "metrics: [accuracy]", S, SOME, "accuracy_score(t[t >= 0], y.argmax(1)[t >= 0])"),
    (CE + "metrics: [top_k: {k: 2}]", S, C, "top_k_accuracy_score(t, y - 1e-9 * np.arange(4), k=2)"),
    (CE + "metrics: [top_k: {k: 3}]", S, SOME, "top_k_accuracy_score(t[t >= 0], (y - 1e-9 * np.arange(4))[t >= 0], k=3)"),
    (CE + "metrics: [perplexity]", S, C, "math.exp(log_loss(t, softmax(y)))"),
    (CE + "metrics: [precision]", S, C, "precision_score(t, y.argmax(1), average='macro')"),
    (CE + "metrics: [recall]", S, SOME, "recall_score(t[t >= 0], y.argmax(1)[t >= 0], average='macro')"),
    (CE + "metrics: [f1]", S, C, "f1_score(t, y.argmax(1), average='macro')"),
    (BCE + "metrics: [accuracy]", M, B, "accuracy_score(t, y > 0)"),
    (BCE + "metrics: [precision]", M, B, "precision_score(t, y > 0)"),
    (BCE + "metrics: [recall: {threshold: 0.75}]", M, B, "recall_score(t, y > 0.75)"),
    (BCE + "metrics: [f1]", M, B, "f1_score(t, y > 0)"),
    (BCE + "metrics: [auc]", M, B, "roc_auc_score(t, y)"),
    (CE + "metrics: [auc]", {"y": P.PAIRS}, {"t": [int(b) for b in P.YES]}, "roc_auc_score(t, y[:, 1] - y[:, 0])"),
    ("loss: mse\nmetrics: [mae]", S, {"t": P.REALS}, "mean_absolute_error(t, y)"),
    ("loss: mse\nmetrics: [mse]", S, {"t": P.REALS}, "mean_squared_error(t, y)"),
    (BCE + "metrics: [average_precision]", M, B, "average_precision_score(t, y)"),
    (CE + "metrics: [average_precision]", {"y": P.PAIRS}, {"t": [int(b) for b in P.YES]},
     "average_precision_score(t, y[:, 1] - y[:, 0])"),
    (BCE + "metrics: [iou]", M, B, "jaccard_score(t, y > 0)"),
    (CE + "metrics: [iou]", S, C, "jaccard_score(t, y.argmax(1), average='macro')"),
    (CE + "metrics: [iou]", S, SOME, "jaccard_score(t[t >= 0], y.argmax(1)[t >= 0], average='macro')"),
    ("loss: mse\nmetrics: [rmse]", S, {"t": P.REALS}, "root_mean_squared_error(t.ravel(), y.ravel())"),
    ("loss: mse\nmetrics: [mape]", S, {"t": P.REALS}, "mean_absolute_percentage_error(t, y)"),
    ("loss: mse\nmetrics: [r2]", S, {"t": P.REALS}, "r2_score(t.ravel(), y.ravel())"),
]


def metric_case(recipe, outputs, fields, expression):
    values = {k: np.array(v) for k, v in {**outputs, **fields}.items()}
    softmax = lambda y: np.exp(y) / np.exp(y).sum(1, keepdims=True)
    value = float(eval(expression, {**vars(sk), "np": np, "math": math, "softmax": softmax, **values}))
    return {"recipe": recipe, "is": expression, "outputs": outputs, "fields": fields, "value": value}


def main():
    P.write("optimizers.torch.json", TORCH,
            [{"recipe": c[0], "is": "; ".join(c[1:]), "weights": course(*c[1:])} for c in OPTIMIZERS], P.GIVEN)
    P.write("optimizers.optax.json", f"optax {optax.__version__}, float64",
            [{"recipe": r, "is": e, "weights": optax_course(e)} for r, e in OPTAX], P.GIVEN)
    P.write("optimizers.papers.json", "the papers' algorithms in NumPy, float64",
            [{"recipe": r, "is": e, "weights": paper_course(f, n, 0.1 if "ftrl" in r else 0)} for r, e, f, n in PAPERS],
            P.GIVEN)
    P.write("schedules.torch.json", TORCH, [{"recipe": r, "is": e, "lr": rates(e)} for r, e in SCHEDULES])
    P.write("losses.torch.json", TORCH, [loss_case(*c) for c in LOSSES])
    P.write("metrics.sklearn.json", f"scikit-learn {sklearn.__version__}", [metric_case(*c) for c in METRICS])


main()
