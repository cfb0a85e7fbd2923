"""Where the benchmark's programs, workloads and results lie, and running bench/ours (ours.c) on a workload."""
import json
import os
import shutil
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


def say(text):
    print(text, file=sys.stderr, flush=True)


def build():
    subprocess.run(["make", "-s", "-C", ROOT, "bench"], check=True, stdout=subprocess.DEVNULL)


def python_of(folder, variable, packages):
    """The interpreter of the environment build/bench/FOLDER, which is made if it is not there, or of the one that the
    variable names."""
    given = os.environ.get(variable)
    path = os.path.abspath(given) if given else os.path.join(BUILD, folder)
    python = os.path.join(path, "bin", "python")
    if os.path.exists(python):
        return python
    if given:
        give_up(f"{variable}={given} has no bin/python")
    say(f"making {path}: pip install {' '.join(packages)} (some minutes, and with torch or tensorflow several GB)")
    part = path + ".part"
    shutil.rmtree(part, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", part], check=True)
    subprocess.run([os.path.join(part, "bin", "python"), "-m", "pip", "install", "-q", *packages], check=True)
    os.rename(part, path)  # bin/python finds its packages by where it stands, not by a path written into it
    return python


def line_of(command, variables=None):
    """The JSON line that a program ends with; variables: of its environment. RuntimeError says why there is none."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                          env={**os.environ, **(variables or {})})
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}\n{done.stderr.strip()[-1500:]}")
    return json.loads(lines[-1])


def run(work, *words):
    """The JSON line of one run. The script ends if there is none."""
    try:
        return line_of(command(work, *words))
    except RuntimeError as fault:
        give_up(fault)


def versions(python, packages):
    """{package: version} of those that an interpreter finds."""
    code = ("import importlib.metadata as m, sys\n"
            "for p in sys.argv[1:]:\n"
            "    try: print(p, m.version(p))\n"
            "    except m.PackageNotFoundError: pass\n")
    done = subprocess.run([python, "-c", code, *packages], stdout=subprocess.PIPE, text=True, check=True)
    return dict(line.split() for line in done.stdout.splitlines())


def commit():
    git = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    return git.stdout.strip() or "unknown"
