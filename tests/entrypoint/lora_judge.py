"""Trains a network of three layers by gradient descent with low-rank adapters, in plain Python and its doubles: what
tests/entrypoint/lora.sh is held against. lora_judge.py MODEL.safetensors DATA.csv STEPS RATE ALPHA SEED

The network is y = sum(mix(relu(hidden(x))) * out): hidden.weight [H, I] and mix [H, H] have adapters of rank 2, out.weight
[1, H] is trained itself, biases stay. Prints the losses, then the weights with what adapters have learnt in them.
"""
import json
import math
import struct
import sys

RANK, STREAM = 2, 0x4C4F5241
HIDDEN, MIX = 0, 2  # numbers of weights: hidden.weight, hidden.bias, mix, out.weight, out.bias


def philox(counter, key):
    """Salmon, Moraes, Dror, Shaw, SC'11."""
    (c0, c1, c2, c3), (k0, k1), low = counter, key, 0xFFFFFFFF
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & low, (p0 >> 32) ^ c3 ^ k1, p0 & low
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return c0, c1, c2, c3


def draw(seed, weight, n, fan_in):
    words = [philox((i // 4, 0, STREAM, weight), (seed, 0))[i % 4] for i in range(n)]
    return [1 / math.sqrt(fan_in) * (2 * (w >> 8) * 2.0**-24 - 1) for w in words]


def read(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    head.pop("__metadata__", None)
    return {k: (v["shape"], list(struct.unpack(f"<{(v['data_offsets'][1] - v['data_offsets'][0]) // 4}f",
                                               data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])))
            for k, v in head.items()}


def matrix(values, columns):
    return [values[i:i + columns] for i in range(0, len(values), columns)]


def times(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def turned(a):
    return [list(row) for row in zip(*a)]


def plus(a, b, scale):
    return [[x + scale * y for x, y in zip(r, s)] for r, s in zip(a, b)]


def main():
    weights, rows = read(sys.argv[1]), [[float(v) for v in line.split(",")] for line in open(sys.argv[2])]
    steps, rate, alpha, seed = int(sys.argv[3]), *map(float, sys.argv[4:6]), int(sys.argv[6])
    x, t, scale = [r[:-1] for r in rows], [r[-1] for r in rows], alpha / RANK
    (h, i), hidden = weights["hidden.weight"]
    hidden, mix, out = matrix(hidden, i), matrix(weights["mix"][1], h), matrix(weights["out.weight"][1], h)
    b1, b2 = weights["hidden.bias"][1], weights["out.bias"][1][0]
    # hidden is read turned: its right factor is next to x. mix is read as it lies: its left one is.
    l1, r1 = [[0.0] * RANK for _ in range(h)], matrix(draw(seed, HIDDEN, RANK * i, i), i)
    l2, r2 = matrix(draw(seed, MIX, h * RANK, h), RANK), [[0.0] * h for _ in range(RANK)]
    for _ in range(steps):
        w1, w2 = plus(hidden, times(l1, r1), scale), plus(mix, times(l2, r2), scale)
        a = [[v + b for v, b in zip(row, b1)] for row in times(x, turned(w1))]
        z = [[max(v, 0) for v in row] for row in a]
        y = times(z, w2)
        p = [row[0] + b2 for row in times(y, turned(out))]
        print(f"loss {sum((u - v) ** 2 for u, v in zip(p, t)) / len(t):.9g}")
        dp = [[2 * (u - v) / len(t)] for u, v in zip(p, t)]
        dy = times(dp, out)
        d_out, d_w2 = times(turned(dp), y), times(turned(z), dy)
        da = [[g if v > 0 else 0 for g, v in zip(r, s)] for r, s in zip(times(dy, turned(w2)), a)]
        d_w1 = times(turned(da), x)
        l1, r1 = plus(l1, times(d_w1, turned(r1)), -rate * scale), plus(r1, times(turned(l1), d_w1), -rate * scale)
        l2, r2 = plus(l2, times(d_w2, turned(r2)), -rate * scale), plus(r2, times(turned(l2), d_w2), -rate * scale)
        out = plus(out, d_out, -rate)
    for name, m in (("hidden.weight", plus(hidden, times(l1, r1), scale)), ("mix", plus(mix, times(l2, r2), scale)),
                    ("out.weight", out)):
        print(name, *(f"{v:.9g}" for row in m for v in row))


main()
