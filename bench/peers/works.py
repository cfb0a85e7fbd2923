"""The workloads of the side-by-side benchmark, defined once in PyTorch.

Each entry of WORKS builds a model, its batches and its loss. `export.py` writes the same model, initial weights and
batches to files, so that every other trainer starts from the same numbers; `peer_torch.py` trains it as it is.

Shapes: B batch, T time, C channels or embedding, V vocabulary, F fields.
"""
import gzip
import math
import os
import struct

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DATA = os.path.join(os.environ.get("TY_SHARED") or os.path.join(ROOT, "..", "shared"), "data")
STEPS = 40  # batches made for each workload; a trainer that runs more goes round


# ---------------------------------------------------------------- data

def mnist():
    """images [10000,1,28,28] f32 in 0..1, labels [10000] i64, from the IDX files."""
    d = os.path.join(DATA, "mnist")
    img = next(f for f in os.listdir(d) if "images" in f)
    lab = next(f for f in os.listdir(d) if "labels" in f)
    raw = gzip.open(os.path.join(d, img)).read()
    _, n, h, w = struct.unpack(">4i", raw[:16])
    x = np.frombuffer(raw, np.uint8, offset=16).reshape(n, 1, h, w).astype(np.float32) / 255
    raw = gzip.open(os.path.join(d, lab)).read()
    y = np.frombuffer(raw, np.uint8, offset=8).astype(np.int64)
    return x, y


def shakespeare():
    """Character ids [N] i64 and vocabulary size, characters sorted by code point."""
    d = os.path.join(DATA, "tinyshakespeare")
    name = next(f for f in sorted(os.listdir(d)) if f.endswith(".txt"))
    text = open(os.path.join(d, name), encoding="utf-8").read()
    chars = sorted(set(text))
    at = {c: i for i, c in enumerate(chars)}
    return np.array([at[c] for c in text], np.int64), len(chars)


def criteo():
    """ids [N,39] i64, values [N,39] f32, label [N] f32 of the TFRecord file (parsed by hand: no TensorFlow needed)."""
    path = os.path.join(DATA, "criteo-ctr", "criteo_deepfm_10k.tfrecord")
    raw = open(path, "rb").read()
    ids, values, label, at = [], [], [], 0

    def varint(b, i):
        v = s = 0
        while True:
            v |= (b[i] & 127) << s
            s += 7
            i += 1
            if b[i - 1] < 128:
                return v, i

    def fields(b):
        i = 0
        while i < len(b):
            k, i = varint(b, i)
            if k & 7 == 2:
                n, i = varint(b, i)
                yield k >> 3, b[i:i + n]
                i += n
            elif k & 7 == 5:
                yield k >> 3, b[i:i + 4]
                i += 4
            else:
                v, i = varint(b, i)
                yield k >> 3, v

    while at < len(raw):
        (n,) = struct.unpack_from("<Q", raw, at)
        row = {}
        for _, feats in fields(raw[at + 12:at + 12 + n]):
            for _, entry in fields(feats):
                pair = dict(fields(entry))
                kind, body = next(fields(pair[2]))
                if kind == 2:
                    got = b"".join(v for _, v in fields(body))
                    row[pair[1]] = np.frombuffer(got, np.float32)
                else:
                    out = []
                    for _, v in fields(body):
                        if isinstance(v, int):
                            out.append(v)
                        else:
                            i = 0
                            while i < len(v):
                                u, i = varint(v, i)
                                out.append(u)
                    row[pair[1]] = np.array(out, np.int64)
        ids.append(row[b"ids"])
        values.append(row[b"values"])
        label.append(row[b"label"][0])
        at += 16 + n
    return np.stack(ids), np.stack(values), np.array(label, np.float32)


def windows(ids, batch, length, rng):
    at = rng.integers(0, len(ids) - length - 1, (STEPS, batch))
    x = np.stack([[ids[i:i + length] for i in row] for row in at])
    y = np.stack([[ids[i + 1:i + 1 + length] for i in row] for row in at])
    return x, y


# ---------------------------------------------------------------- models

class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                 nn.Linear(512, 10))

    def forward(self, x):
        return self.net(x)


class CNN(nn.Module):
    """The network of PyTorch's MNIST example, without dropout."""

    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.f1, self.f2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.c2(F.relu(self.c1(x))))
        x = F.max_pool2d(x, 2).flatten(1)
        return self.f2(F.relu(self.f1(x)))


class Block(nn.Module):
    """Pre-norm GPT block. x [B,T,C]."""

    def __init__(self, c, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.proj = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.n1(x)).split(c, dim=2)
        q, k, v = (u.view(b, t, self.heads, c // self.heads).transpose(1, 2) for u in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))


class GPT(nn.Module):
    """GPT-2, token embedding tied with the output layer. ids [B,T] -> logits [B,T,V]."""

    def __init__(self, vocab, length, layers, heads, c):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, c), nn.Embedding(length, c)
        self.blocks = nn.ModuleList(Block(c, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(c)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight[:ids.shape[1]]
        for b in self.blocks:
            x = b(x)
        return F.linear(self.norm(x), self.tok.weight)


class BERT(nn.Module):
    """BERT-base encoder with a two-class head (post-norm, exact GELU, tanh pooler). ids [B,T] -> logits [B,2]."""

    def __init__(self, vocab=30522, length=512, layers=12, heads=12, c=768):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, c), nn.Embedding(length, c)
        self.norm = nn.LayerNorm(c, eps=1e-12)
        self.heads = heads
        mk = lambda: nn.ModuleDict(dict(qkv=nn.Linear(c, 3 * c), proj=nn.Linear(c, c), n1=nn.LayerNorm(c, eps=1e-12),
                                        up=nn.Linear(c, 4 * c), down=nn.Linear(4 * c, c),
                                        n2=nn.LayerNorm(c, eps=1e-12)))
        self.layers = nn.ModuleList(mk() for _ in range(layers))
        self.pool, self.head = nn.Linear(c, c), nn.Linear(c, 2)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        b, t = ids.shape
        x = self.norm(self.tok(ids) + self.pos.weight[:t])
        c = x.shape[2]
        for l in self.layers:
            q, k, v = l["qkv"](x).split(c, dim=2)
            q, k, v = (u.view(b, t, self.heads, c // self.heads).transpose(1, 2) for u in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v)
            x = l["n1"](x + l["proj"](y.transpose(1, 2).reshape(b, t, c)))
            x = l["n2"](x + l["down"](F.gelu(l["up"](x))))
        return self.head(torch.tanh(self.pool(x[:, 0])))


class Bottleneck(nn.Module):
    def __init__(self, cin, mid, stride):
        super().__init__()
        out = mid * 4
        self.c1, self.b1 = nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid)
        self.c2, self.b2 = nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid)
        self.c3, self.b3 = nn.Conv2d(mid, out, 1, bias=False), nn.BatchNorm2d(out)
        self.short = nn.Identity() if stride == 1 and cin == out else nn.Sequential(
            nn.Conv2d(cin, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.b1(self.c1(x)))
        y = F.relu(self.b2(self.c2(y)))
        return F.relu(self.b3(self.c3(y)) + self.short(x))


class ResNet50(nn.Module):
    """ResNet-50 v1.5. x [B,3,224,224] -> logits [B,1000]. counts: blocks of each stage; width: channels of the first."""

    def __init__(self, counts=(3, 4, 6, 3), width=64):
        super().__init__()
        self.c, self.b = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        blocks, cin = [], width
        for stage, n in enumerate(counts):
            for i in range(n):
                blocks.append(Bottleneck(cin, width << stage, 2 if stage and i == 0 else 1))
                cin = 4 * (width << stage)
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(cin, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.b(self.c(x))), 3, 2, 1)
        return self.fc(self.blocks(x).mean((2, 3)))


class DeepFM(nn.Module):
    """ids [B,39], values [B,39] -> logit [B]. Dense gradients for the tables, as Adam needs."""

    def __init__(self, feats=117581, fields=39, k=32):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))
        self.w, self.v = nn.Embedding(feats, 1), nn.Embedding(feats, k)
        nn.init.normal_(self.w.weight, std=0.01)
        nn.init.normal_(self.v.weight, std=0.01)
        self.net = nn.Sequential(nn.Linear(fields * k, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(),
                                 nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids, values):
        first = (self.w(ids)[..., 0] * values).sum(1)
        e = self.v(ids) * values[..., None]
        s = e.sum(1)
        second = 0.5 * (s * s - (e * e).sum(1)).sum(1)
        return self.bias + first + second + self.net(e.flatten(1))[:, 0]


class CharLSTM(nn.Module):
    """Two LSTM layers of 256 over an embedding of 128. ids [B,T] -> logits [B,T,V]."""

    def __init__(self, vocab=65):
        super().__init__()
        self.tok = nn.Embedding(vocab, 128)
        self.rnn = nn.LSTM(128, 256, 2, batch_first=True)
        self.out = nn.Linear(256, vocab)

    def forward(self, ids):
        return self.out(self.rnn(self.tok(ids))[0])


# ---------------------------------------------------------------- the table of workloads

def ce(logits, y):
    return F.cross_entropy(logits.flatten(0, -2), y.flatten())


def bce(logit, y):
    return F.binary_cross_entropy_with_logits(logit, y)


def batches(name):
    """inputs: list of arrays [STEPS,B,...]; target [STEPS,B,...]."""
    rng = np.random.default_rng(7)
    if name in ("mlp", "cnn"):
        x, y = mnist()
        at = rng.integers(0, len(x), (STEPS, WORKS[name]["batch"]))
        return [x[at]], y[at]
    if name in ("chargpt", "lstm"):
        ids, _ = shakespeare()
        x, y = windows(ids, WORKS[name]["batch"], WORKS[name]["length"], rng)
        return [x], y
    if name == "gpt2":  # tokens of a Zipf-like law stand for text: the work is the same
        vocabulary = WORKS[name].get("vocabulary", 50257)
        ids = np.minimum((vocabulary ** rng.random(200000) - 1).astype(np.int64), vocabulary - 1)
        x, y = windows(ids, WORKS[name]["batch"], WORKS[name]["length"], rng)
        return [x], y
    if name == "bert":
        x = rng.integers(1000, 30000, (STEPS, WORKS[name]["batch"], WORKS[name]["length"]))
        y = (x[..., 1] % 2).astype(np.int64)
        return [x], y
    if name == "resnet50":
        size, n = WORKS[name].get("size", 224), min(STEPS, 8)
        x = rng.standard_normal((n, WORKS[name]["batch"], 3, size, size), np.float32)
        y = rng.integers(0, 1000, (n, WORKS[name]["batch"]))
        return [x], y
    if name == "deepfm":
        ids, values, label = criteo()
        at = rng.integers(0, len(ids), (STEPS, WORKS[name]["batch"]))
        return [ids[at], values[at]], label[at]
    raise KeyError(name)


ADAM, ADAMW, SGD = "adam", "adamw", "sgd"
WORKS = {
    # optimizers: adam b1 .9 b2 .999 eps 1e-8; adamw the same with weight decay .01; sgd with momentum .9
    "mlp": dict(make=MLP, batch=128, loss=ce, opt=ADAM, lr=1e-3, steps=200),
    "cnn": dict(make=CNN, batch=64, loss=ce, opt=SGD, lr=0.01, steps=60),
    "lstm": dict(make=CharLSTM, batch=32, length=64, loss=ce, opt=ADAM, lr=1e-3, steps=40),
    "deepfm": dict(make=DeepFM, batch=1024, loss=bce, opt=ADAM, lr=5e-4, steps=60),
    "chargpt": dict(make=lambda: GPT(65, 256, 6, 6, 384), batch=8, length=256, loss=ce, opt=ADAMW, lr=1e-3, steps=12),
    "gpt2": dict(make=lambda: GPT(50257, 1024, 12, 12, 768), batch=4, length=64, loss=ce, opt=ADAMW, lr=3e-4, steps=8),
    "bert": dict(make=BERT, batch=4, length=128, loss=ce, opt=ADAMW, lr=2e-5, steps=8),
    "resnet50": dict(make=ResNet50, batch=8, loss=ce, opt=SGD, lr=1e-4, steps=6),
}


def model(name):
    torch.manual_seed(0)
    return WORKS[name]["make"]()


def optimizer(name, params, **how):
    w = WORKS[name]
    if w["opt"] == SGD:
        return torch.optim.SGD(params, lr=w["lr"], momentum=0.9, **how)
    if w["opt"] == ADAM:
        return torch.optim.Adam(params, lr=w["lr"], **how)
    return torch.optim.AdamW(params, lr=w["lr"], weight_decay=0.01, **how)
