"""Where the benchmark's programs, workloads and results lie, and running bench/ours (ours.c) on a workload."""
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = os.path.join(ROOT, "build", "release", "bench")
BUILD = os.path.join(ROOT, "build", "bench")
WORKS_DIR = os.path.join(BUILD, "works")
RESULTS_DIR = os.path.join(ROOT, "bench", "results")

WORKS = ["mlp", "cnn", "lstm", "deepfm", "chargpt", "gpt2", "bert", "resnet50"]


def give_up(text):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {text}")


def program(name):
    """Path of a program of `make bench`, which must be there."""
    path = os.path.join(PROGRAMS, name)
    if not os.path.exists(path):
        give_up(f"{path} is not there: make bench")
    return path


def command(work, *words):
    return [program("ours"), work, os.path.join(WORKS_DIR, work), *words]


def run(work, *words):
    """The JSON line of one run. The script ends if there is none."""
    done = subprocess.run(command(work, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        give_up(f"{' '.join([work, *words])} ended with status {done.returncode}\n{done.stderr[-1500:]}")
    return json.loads(lines[-1])


def commit():
    git = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    return git.stdout.strip() or "unknown"
