"""Trains one workload with JAX on a GPU: gpu_jax.py WORK DIR; DIR comes from bare.py.

peer_jax.py's networks in bfloat16 over float32 weights: norms, softmax and loss in float32, attention by cuDNN, the
batches on the GPU before the first step. XLA's own products by Triton are off for ResNet-50: with them its compiler (of
JAX 0.11) ends in a failed check. TY_BENCH_DEVICE=cpu tries the script where there is no GPU.
"""
import functools
import os
import sys

ON_GPU = os.environ.get("TY_BENCH_DEVICE", "cuda") == "cuda"
os.environ["JAX_PLATFORMS"] = "cuda" if ON_GPU else "cpu"
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
if sys.argv[1:2] == ["resnet50"]:
    os.environ.setdefault("XLA_FLAGS", "--xla_gpu_enable_triton_gemm=false")

import jax
import jax.numpy as jnp

import measure
import peer_jax

SIZES = {"gpt2": dict(layers=12, heads=12), "bert": dict(layers=12, heads=12), "chargpt": dict(layers=6, heads=6)}
TINY_SIZES = {**dict.fromkeys(("gpt2", "bert", "chargpt"), dict(layers=1, heads=2)), "resnet50": dict(counts=(1, 1))}
NETS = {**peer_jax.MODELS, "gpt2": peer_jax.gpt, "chargpt": peer_jax.gpt}


def attention(p, name, x, heads, causal=False):
    b, t, c = x.shape
    q, k, v = jnp.moveaxis(peer_jax.linear(p, name + ".qkv", x).reshape(b, t, 3, heads, c // heads), 2, 0)
    y = jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation="cudnn" if ON_GPU else "xla")
    return peer_jax.linear(p, name + ".proj", y.reshape(b, t, c))


def main():
    name, folder = sys.argv[1:3]
    opt, lr, _ = peer_jax.TABLE[name]
    peer_jax.attention = attention
    net = functools.partial(NETS[name], **(TINY_SIZES if os.environ.get("TY_BENCH_TINY") else SIZES).get(name, {}))
    criterion = peer_jax.binary_cross_entropy if name == "deepfm" else peer_jax.cross_entropy
    p, stats, batches = peer_jax.load(name, folder)
    zeros = lambda: jax.tree.map(jnp.zeros_like, p)
    slots = dict(buf=zeros()) if opt == "sgd" else dict(t=jnp.float32(0), m=zeros(), v=zeros())
    state = p, slots, stats
    narrow = functools.partial(jax.tree.map, lambda x: x.astype(jnp.bfloat16) if x.dtype == jnp.float32 else x)

    def loss(p, stats, inputs, y):
        stats = dict(stats)
        logits = net(narrow(p), stats, *narrow(inputs))
        return criterion(logits.astype(jnp.float32), y), stats

    @functools.partial(jax.jit, donate_argnums=0)
    def train(state, batch):
        p, slots, stats = state
        (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(p, stats, batch[:-1], batch[-1])
        p, slots = peer_jax.OPTIMIZERS[opt](p, grads, slots, lr)
        return (p, slots, stats), value

    def step(i):
        nonlocal state
        state, value = train(state, batches[i % len(batches)])
        return value

    def held():
        told = jax.devices()[0].memory_stats() or {}
        return {"held_mb": told.get("peak_bytes_in_use", 0) / 1e6}

    measure.run_together(step, lambda: jax.block_until_ready(state), held, work=name, peer="jax",
                         batch=len(batches[0][-1]), version=jax.__version__)


main()
