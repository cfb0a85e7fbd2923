"""Trains one workload with PyTorch on a GPU: gpu_torch.py WORK DIR HOW [BATCH]; DIR comes from bare.py.
HOW: eager, compile, autotune; float32 or tf32, which are eager without autocast, TF32 forbidden or allowed.

As an expert would: autocast to bfloat16 over float32 weights, a fused optimizer, channels last for convolutions, whose
algorithms cuDNN times, the batches on the GPU before the first step, nothing waited for between steps. BATCH: another
one, of numbers at random (to see what fits). TY_BENCH_DEVICE=cpu tries the script where there is no GPU.
"""
import contextlib
import os
import sys

import numpy as np
import torch

import gpu_works
import measure
import works

DEVICE = os.environ.get("TY_BENCH_DEVICE", "cuda")


def load(folder):
    names = []
    while os.path.exists(f"{folder}/x{len(names)}.npy"):
        names.append(f"x{len(names)}")
    return [torch.from_numpy(np.load(f"{folder}/{name}.npy")).to(DEVICE) for name in [*names, "y"]]


def main():
    name, folder, how = sys.argv[1:4]
    on_gpu = DEVICE == "cuda"
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = how != "float32"
    net = works.model(name).train().to(DEVICE)
    arrays = load(folder)
    if len(sys.argv) > 4:
        rows = int(sys.argv[4])
        arrays = [a[:1].repeat(1, -(-rows // a.shape[1]), *[1] * (a.dim() - 2))[:, :rows] for a in arrays]
    if name == "resnet50" and on_gpu:
        net = net.to(memory_format=torch.channels_last)
        arrays[0] = torch.stack([x.contiguous(memory_format=torch.channels_last) for x in arrays[0]])
    opt = works.optimizer(name, net.parameters(), **({"fused": True} if on_gpu else {}))
    *xs, y = arrays

    def forward(*a):
        with torch.autocast(DEVICE, torch.bfloat16, enabled=how not in ("float32", "tf32")):
            return works.WORKS[name]["loss"](net(*a[:-1]).float(), a[-1])

    if how in ("compile", "autotune"):
        mode = {"mode": "max-autotune"} if how == "autotune" else {}
        forward = torch.compile(forward, **({"backend": "aot_eager"} if gpu_works.TINY else mode))

    def step(i):
        i %= len(y)
        opt.zero_grad(set_to_none=True)
        loss = forward(*(x[i] for x in xs), y[i])
        loss.backward()
        opt.step()
        return loss.detach().clone()  # graphs of CUDA write the next one to the same place

    wait = torch.cuda.synchronize if on_gpu else contextlib.nullcontext
    measure.run_together(step, wait, lambda: {"held_mb": torch.cuda.max_memory_reserved() / 1e6} if on_gpu else {},
                         work=name, peer="torch " + how, batch=len(y[0]), version=torch.__version__)


main()
