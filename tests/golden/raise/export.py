"""Small models as PyTorch's two exporters write them: tests/unit/raise_files.c knows what must be found in each.

    python3 tests/golden/raise/export.py [FOLDER]     writes FOLDER/NAME.EXPORTER.onnx (default: beside this file)

Models have no weights to speak of; what counts is in which operators a form is written.
"""
import math
import os
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import nn

B, H, T, D = 2, 2, 4, 6  # batch, heads, tokens, numbers a head


def qkv(x, groups=H):
    q = x.reshape(B, T, H, D).transpose(1, 2)
    k = x[..., : groups * D].reshape(B, T, groups, D).transpose(1, 2)
    v = (x * 0.5)[..., : groups * D].reshape(B, T, groups, D).transpose(1, 2)
    return q, k, v


def by_hand(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(D)
    return F.softmax(scores if mask is None else scores + mask, dim=-1) @ v


def apart(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def future():
    return torch.ones(T, T, dtype=torch.bool).triu(1)


def rotate_half(x):
    return torch.cat((-x[..., D // 2 :], x[..., : D // 2]), dim=-1)


def angles():
    a = torch.outer(torch.arange(T).float(), 100.0 ** (-torch.arange(0, D, 2).float() / D))
    return torch.cat((a, a), dim=-1)


def pick(logits, labels):
    return F.log_softmax(logits, dim=-1).gather(1, labels[:, None]).squeeze(1)


def interleaved(q):
    a = torch.outer(torch.arange(T).float(), 100.0 ** (-torch.arange(0, D, 2).float() / D))
    even, odd = q[..., 0::2], q[..., 1::2]
    return torch.stack((even * a.cos() - odd * a.sin(), even * a.sin() + odd * a.cos()), dim=-1).flatten(-2)


def half_angles():
    return torch.outer(torch.arange(T).float(), 100.0 ** (-torch.arange(0, D, 2).float() / D))


def by_halves(q, cos, sin):
    a, b = q.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def every_two(x):  # GPT-J's rotate_every_two
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def by_every_two(q, a):
    sin, cos = [torch.repeat_interleave(t, 2, 1) for t in (a.sin(), a.cos())]
    return q * cos + every_two(q) * sin


def by_pairs(q, a):  # torchtune
    p = q.reshape(*q.shape[:-1], -1, 2)
    return torch.stack((p[..., 0] * a.cos() - p[..., 1] * a.sin(), p[..., 1] * a.cos() + p[..., 0] * a.sin()), -1).flatten(-2)


def partly(q, n=4):  # GPT-NeoX with rotary_pct below 1
    a = torch.outer(torch.arange(T).float(), 100.0 ** (-torch.arange(0, n, 2).float() / n))
    turned, rest, a = q[..., :n], q[..., n:], torch.cat((a, a), dim=-1)
    swapped = torch.cat((-turned[..., n // 2 :], turned[..., : n // 2]), dim=-1)
    return torch.cat((turned * a.cos() + swapped * a.sin(), rest), dim=-1)


def from_positions(q, ids):  # as Hugging Face's LLaMA: the tables come with the batch
    a = ids[:, None, :, None].float() * (100.0 ** (-torch.arange(0, D, 2).float() / D))
    a = torch.cat((a, a), dim=-1)
    return q * a.cos() + rotate_half(q) * a.sin()


def batch_norm(x, biased=True):
    mean = x.mean(dim=(0, 2, 3), keepdim=True)
    d = x - mean
    var = d.pow(2).mean(dim=(0, 2, 3), keepdim=True) if biased else x.var(dim=(0, 2, 3), keepdim=True, unbiased=False)
    scale = torch.linspace(0.5, 1.5, 3).reshape(1, 3, 1, 1)
    return d / torch.sqrt(var + 1e-5) * scale + torch.linspace(-1, 1, 3).reshape(1, 3, 1, 1)


LOWEST = torch.finfo(torch.float32).min
X = [B, T, H * D]
L = [8, 5]
IMAGE = [2, 3, 4, 4]

# name: (function, shapes of float inputs, labels)
FORMS = {
    "attention": (lambda x: F.scaled_dot_product_attention(*qkv(x)), [X], None),
    "attention_causal": (lambda x: F.scaled_dot_product_attention(*qkv(x), is_causal=True), [X], None),
    "attention_scale": (lambda x: F.scaled_dot_product_attention(*qkv(x), scale=0.25), [X], None),
    "attention_bias": (lambda x, b: F.scaled_dot_product_attention(*qkv(x), attn_mask=b), [X, [B, 1, T, T]], None),
    "attention_bool": (lambda x, b: F.scaled_dot_product_attention(*qkv(x), attn_mask=b > 0.75), [X, [B, 1, 1, T]], None),
    "attention_gqa": (lambda x: F.scaled_dot_product_attention(*qkv(x, 1), enable_gqa=True), [X], None),
    "attention_hand": (lambda x: by_hand(*qkv(x)), [X], None),
    "attention_hand_bias": (lambda x, b: by_hand(*qkv(x), b), [X, [H, T, T]], None),
    "attention_hand_causal": (lambda x: by_hand(*qkv(x), torch.full((T, T), -math.inf).triu(1)), [X], None),
    "attention_hand_fill": (
        lambda x: F.softmax((qkv(x)[0] @ qkv(x)[1].transpose(-2, -1) / math.sqrt(D)).masked_fill(future(), -math.inf), -1) @ qkv(x)[2],
        [X], None),
    "attention_hand_both": (  # GPT-2 of transformers 4: the future is hidden twice
        lambda x: F.softmax(torch.where(~future(), qkv(x)[0] @ qkv(x)[1].transpose(-2, -1) / math.sqrt(D), LOWEST) + future() * LOWEST, -1) @ qkv(x)[2],
        [X], None),
    "attention_hand_both_bias": (
        lambda x, b: F.softmax(torch.where(~future(), qkv(x)[0] @ qkv(x)[1].transpose(-2, -1) / math.sqrt(D), LOWEST) + b, -1) @ qkv(x)[2],
        [X, [B, 1, 1, T]], None),
    "attention_hand_shifted": (lambda x: F.softmax(qkv(x)[0] @ qkv(x)[1].transpose(-2, -1) / math.sqrt(D) + 1e-9, -1) @ qkv(x)[2], [X], None),
    "attention_hand_repeat": (
        lambda x: by_hand(qkv(x)[0], *[t.repeat_interleave(H, dim=1) for t in qkv(x, 1)[1:]]), [X], None),
    "attention_hand_expand": (
        lambda x: by_hand(qkv(x)[0], *[t[:, :, None].expand(B, 1, H, T, D).reshape(B, H, T, D) for t in qkv(x, 1)[1:]]),
        [X], None),
    "attention_float32": (
        lambda x: F.softmax((qkv(x)[0] @ qkv(x)[1].transpose(-2, -1)) * D**-0.5, dim=-1, dtype=torch.float32).to(x.dtype) @ qkv(x)[2],
        [X], None),
    "attention_softmax_apart": (lambda x: apart(qkv(x)[0] @ qkv(x)[1].transpose(-2, -1) / math.sqrt(D)) @ qkv(x)[2], [X], None),
    "attention_einsum": (
        lambda x: torch.einsum("bhts,bhsd->bhtd", F.softmax(torch.einsum("bhtd,bhsd->bhts", qkv(x)[0], qkv(x)[1]) / math.sqrt(D), -1), qkv(x)[2]),
        [X], None),
    "layer_norm": (lambda x: F.layer_norm(x, [H * D], torch.linspace(0.5, 1.5, H * D), torch.linspace(-1, 1, H * D)), [X], None),
    "layer_norm_apart": (
        lambda x: (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)
        * torch.linspace(0.5, 1.5, H * D) + torch.linspace(-1, 1, H * D), [X], None),
    "rms_norm": (lambda x: F.rms_norm(x, [H * D], torch.linspace(0.5, 1.5, H * D), 1e-6), [X], None),
    "rms_norm_apart": (
        lambda x: torch.linspace(0.5, 1.5, H * D) * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)), [X], None),
    "gelu": (lambda x: F.gelu(x), [X], None),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), [X], None),
    "silu": (lambda x: F.silu(x), [X], None),
    "swiglu": (lambda x: F.silu(x[..., :D]) * x[..., D:], [X], None),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, torch.linspace(0.5, 1.5, 3), torch.linspace(-1, 1, 3), training=True), [IMAGE], None),
    "batch_norm_apart": (lambda x: batch_norm(x), [IMAGE], None),
    "batch_norm_var": (lambda x: batch_norm(x, False), [IMAGE], None),
    "batch_norm_rows": (
        lambda x: (x - x.mean(0)) * torch.rsqrt(x.var(0, unbiased=False) + 1e-5) * torch.linspace(0.5, 1.5, 5) + torch.linspace(-1, 1, 5),
        [L], None),
    "softmax_apart": (lambda x: apart(x), [L], None),
    "softmax_plain": (lambda x: x.exp() / x.exp().sum(-1, keepdim=True), [L], None),
    "log_softmax_apart": (
        lambda x: (x - x.amax(-1, keepdim=True)) - (x - x.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True).log(), [L], None),
    "log_softmax_lse": (lambda x: x - torch.logsumexp(x, -1, keepdim=True), [L], None),
    "log_softmax_log": (lambda x: F.softmax(x, -1).log(), [L], None),
    "xent": (lambda x, y: F.cross_entropy(x, y), [L], 5),
    "xent_smooth": (lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1), [L], 5),
    "xent_none": (lambda x, y: F.cross_entropy(x, y, reduction="none"), [L], 5),
    "xent_nll": (lambda x, y: F.nll_loss(F.log_softmax(x, -1), y), [L], 5),
    "xent_gather": (lambda x, y: -pick(x, y).mean(), [L], 5),
    "xent_one_hot": (lambda x, y: -(F.log_softmax(x, -1) * F.one_hot(y, 5).to(x.dtype)).sum(-1).mean(), [L], 5),
    "rotary": (lambda x: qkv(x)[0] * angles().cos() + rotate_half(qkv(x)[0]) * angles().sin(), [X], None),
    "rotary_interleaved": (lambda x: interleaved(qkv(x)[0]), [X], None),
    "rotary_halves": (lambda x: by_halves(qkv(x)[0], half_angles().cos(), half_angles().sin()), [X], None),
    "rotary_every_two": (lambda x: by_every_two(qkv(x)[0], half_angles()), [X], None),
    "rotary_pairs": (lambda x: by_pairs(qkv(x)[0], half_angles()), [X], None),
    "rotary_partly": (lambda x: partly(qkv(x)[0]), [X], None),
    "rotary_both": (lambda x: by_hand(*[by_halves(t, half_angles().cos(), half_angles().sin()) for t in (qkv(x)[0], qkv(x)[1] * 0.75)], qkv(x)[2]), [X], None),
    "rotary_positions": (lambda x, ids: from_positions(qkv(x)[0], ids), [X, [B, T]], None),
}


class Form(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *a):
        return self.f(*a)


def export(name, folder, dynamo):
    f, shapes, classes = FORMS[name]
    torch.manual_seed(0)
    args = [torch.randn(s) for s in shapes]
    if classes:
        args.append(torch.arange(shapes[0][0]) % classes)
    path = os.path.join(folder, f"{name}.{'dynamo' if dynamo else 'script'}.onnx")
    model = Form(f).eval()
    try:
        if dynamo:
            torch.onnx.export(model, tuple(args), path, dynamo=True, opset_version=18, external_data=False, verbose=False)
        else:
            torch.onnx.export(model, tuple(args), path, dynamo=False, opset_version=17)
    except Exception as e:  # an exporter that lacks the form: nothing to test
        print(f"{os.path.basename(path)}: not exported ({type(e).__name__}: {str(e).splitlines()[0]})")
        return
    strip(path)


def strip(path):
    """Takes out what is not the graph: source lines, stack traces, shapes in between."""
    import onnx
    m = onnx.load(path)
    for holder in [m, m.graph, *m.graph.node, *m.graph.input, *m.graph.output, *m.functions]:
        holder.ClearField("doc_string")
        if holder.DESCRIPTOR.fields_by_name.get("metadata_props"):
            holder.ClearField("metadata_props")
    m.graph.ClearField("value_info")
    onnx.save(m, path)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    os.makedirs(folder, exist_ok=True)
    for name in FORMS:
        for dynamo in (False, True):
            export(name, folder, dynamo)
