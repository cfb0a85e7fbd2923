"""The workloads at the sizes that a GPU is measured at, for export_bare.py, gpu_torch.py and gpu_jax.py.

GPU_WORKS names what differs from works.WORKS; importing this module changes that table. TY_BENCH_TINY=1 takes sizes
that a slow stand-in for a GPU gets through, to try the scripts.

unit, per_row: what is counted a second, and how many of it a row of the batch has.  seconds: how long steps are timed.
"""
import os

import works

GPU_WORKS = {
    "gpt2": dict(batch=16, length=1024, layers=12, heads=12, batches=8, unit="tokens", per_row=1024),
    "bert": dict(batch=256, length=128, layers=12, heads=12, batches=8, unit="sequences", per_row=1),
    "resnet50": dict(batch=256, size=224, batches=4, unit="images", per_row=1),
    "deepfm": dict(batch=65536, batches=8, unit="samples", per_row=1),
    "chargpt": dict(batch=64, length=256, layers=6, heads=6, batches=16, unit="tokens", per_row=256),
    "mlp": dict(batch=128, batches=16, unit="images", per_row=1),
    "cnn": dict(batch=64, batches=16, unit="images", per_row=1),
    "lstm": dict(batch=32, length=64, batches=16, unit="tokens", per_row=64),
}

TINY_WORKS = {
    "gpt2": dict(make=lambda: works.GPT(101, 16, 1, 2, 32), batch=2, length=16, layers=1, heads=2, batches=2,
                 vocabulary=101, unit="tokens", per_row=16),
    "bert": dict(make=lambda: works.BERT(30522, 8, 1, 2, 8), batch=2, length=8, layers=1, heads=2, batches=2,
                 unit="sequences", per_row=1),
    "resnet50": dict(make=lambda: works.ResNet50((1, 1), 4), counts=(1, 1), batch=4, size=16, batches=2, unit="images",
                     per_row=1),
    "deepfm": dict(make=lambda: works.DeepFM(k=2), batch=16, batches=2, unit="samples", per_row=1),
    "chargpt": dict(make=lambda: works.GPT(65, 16, 1, 2, 16), batch=2, length=16, layers=1, heads=2, batches=2,
                    unit="tokens", per_row=16),
    "mlp": dict(batch=8, batches=2, unit="images", per_row=1),
    "cnn": dict(batch=2, batches=2, unit="images", per_row=1),
    "lstm": dict(batch=2, length=8, batches=2, unit="tokens", per_row=8),
}

TINY = bool(os.environ.get("TY_BENCH_TINY"))
TABLE = TINY_WORKS if TINY else GPU_WORKS
NAMES = list(TABLE)
for name, told in TABLE.items():
    works.WORKS[name].update(told)


def batches(name):
    """As works.batches, as many as the table says."""
    works.STEPS = TABLE[name]["batches"]
    return works.batches(name)
