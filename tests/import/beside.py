"""beside.py - what the zoo's judges share: the program, and how far its numbers may be from those of a framework in 64 bits. What the
framework's own 32 bits are apart from that (batch norm over few numbers magnifies roundings) may be ours too, a few times."""
import json, os, subprocess, sys
import numpy as np

TRAINYARD = os.path.abspath(sys.argv[1])
OWN = 10  # times what the framework's 32 bits are apart


def command(*words, folder=None):
    done = subprocess.run([TRAINYARD, *words], capture_output=True, text=True, cwd=folder, timeout=900)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stderr.strip() or done.stdout.strip()[:800]}")
    return done.stdout


def loss_of_training(folder):
    """Of the first step of train.yaml there."""
    command("train", "train.yaml", "--fresh", folder=folder)
    rows = [json.loads(line) for line in open(os.path.join(folder, "run/output/data/metrics.jsonl"))]
    return [row["loss"] for row in rows if row.get("split") == "train" and "loss" in row][0]


def expect_near(what, wanted, found, rtol, own=None):
    scale = np.abs(wanted).max() + 1e-30
    allowed = rtol * scale + (0 if own is None else OWN * np.abs(wanted - own).max())
    if not np.abs(wanted - found).max() <= allowed:
        raise RuntimeError(f"{what}: {np.abs(wanted - found).max() / scale:.3g} apart, allowed {allowed / scale:.3g}")


def expect_moved(before, wanted, found, own):
    """Weights by name, before and after a step. A ReLU may go the other way where its argument is next to nothing: whole tensors, not
    elements."""
    moves = {name: float(np.linalg.norm(wanted[name] - before[name])) for name in wanted}
    for name in wanted:
        apart, own_apart = (float(np.linalg.norm(w[name] - wanted[name])) for w in (found, own))
        if not apart <= 0.15 * moves[name] + 1e-4 * max(moves.values()) + OWN * own_apart:
            raise RuntimeError(f"{name}: {apart:.3g} apart after it moved by {moves[name]:.3g}; in 32 bits there {own_apart:.3g}")
