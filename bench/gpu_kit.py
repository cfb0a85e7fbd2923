"""What bench/gpu does here and not on the machine with the GPU: packs what goes there, keeps what comes back."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BUILD = os.path.join(ROOT, "build")
TINY = bool(os.environ.get("TY_BENCH_TINY"))
WORKS = ["resnet50", "gpt2", "bert", "deepfm", "chargpt", "mlp", "cnn", "lstm"]
DATA = ["train-cases", "tinyshakespeare", "criteo-ctr", "mnist"]
PROGRAMS = ["bench/ours", "tools/train_cases", "unit/cuda_attend", "unit/cuda_near", "tools/cuda_own"]
AIMS = {"gpt2": 450e3, "bert": 4000, "resnet50": 3000, "deepfm": 8e6}  # a second, on an H200


# ---------------------------------------------------------------- there

def needed(path):
    """Libraries that a program asks the loader for, but for glibc's and the compiler's, which machines have newer."""
    told = subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    paths = re.findall(r"=> (/\S+)", told)
    return [p for p in paths if not re.match(r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so|ld-", os.path.basename(p))]


def export(models):
    """Models without their weights; needs PyTorch, onnx and onnxscript, and some minutes, once."""
    python = os.environ.get("BENCH_PYTHON") or os.path.join(BUILD, "bench", "venv", "bin", "python")
    missing = [w for w in WORKS if not os.path.exists(os.path.join(models, w, "weights.json"))]
    if missing:
        subprocess.run([python, os.path.join(HERE, "peers", "bare.py"), "export", models, *missing], check=True)


def add_programs(folder):
    for name in PROGRAMS:
        path = os.path.join(BUILD, "release", name)
        shutil.copy(path, os.path.join(folder, "bin"))
        for library in needed(path):
            if not os.path.exists(os.path.join(folder, "lib", os.path.basename(library))):
                shutil.copy(library, os.path.join(folder, "lib"))


def pack(folder):
    """The bundle, and in it what is checked and measured."""
    folder = os.path.abspath(folder or os.path.join(BUILD, "gpu-kit"))
    shared = os.environ.get("TY_SHARED") or os.path.join(ROOT, "..", "shared")
    models = os.path.join(BUILD, "gpu-models" + ("-tiny" if TINY else ""))
    subprocess.run(["make", "-C", ROOT, "all", "bundle", *[f"build/release/{name}" for name in PROGRAMS]], check=True,
                   stdout=subprocess.DEVNULL)
    export(models)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(os.path.join(BUILD, "bundle"), folder, symlinks=True)
    add_programs(folder)
    shutil.copy(os.path.join(HERE, "gpu"), folder)
    shutil.copytree(os.path.join(HERE, "peers"), os.path.join(folder, "peers"),
                    ignore=shutil.ignore_patterns("__pycache__", "*_tf.py"))
    shutil.copytree(models, os.path.join(folder, "works"), ignore=shutil.ignore_patterns("*.bin", "*.np[yz]"))
    for name in DATA:
        shutil.copytree(os.path.join(shared, "data", name), os.path.join(folder, "shared", "data", name))
    with open(os.path.join(folder, "commit"), "w", encoding="utf-8") as f:
        f.write(subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                               text=True).stdout.strip() or "unknown")
    made = shutil.make_archive(folder, "xztar", os.path.dirname(folder), os.path.basename(folder))
    print(f"{made}: {os.path.getsize(made) / 1e6:.1f} MB; there: tar xf {os.path.basename(made)} && "
          f"{os.path.basename(folder)}/gpu run OUT")


# ---------------------------------------------------------------- and back

def base_of(told, who):
    """What one's rate is held against: PyTorch's quickest in the same precision; None if there is none."""
    exact = [word for word in ("float32", "tf32") if who.endswith(word)]
    peers = [name for name in told if name.startswith("torch") and name.endswith(("float32", "tf32")) == bool(exact)]
    return max((told[name]["rate"] for name in peers if not exact or name.endswith(exact[0])), default=None)


def works_of(found):
    lines = ["| work | who | ms a step | a second | of PyTorch's quickest | first step s | used MiB |",
             "| --- " * 7 + "|"]
    for work, told in found.get("works", {}).items():
        for who, one in told.items():
            base = base_of(told, who)
            ratio = f"{one['rate'] / base:.2f}" if base else ""
            lines.append(f"| {work} | {who} | {one['step_ms']:.3f} | {one['rate']:.0f} {one['unit'][:-2]} | {ratio} | "
                         f"{one['first_s']:.1f} | {one['used_mib']} |")
    aims = [f"{w}: {found['works'][w]['trainyard']['rate'] / aim:.2f}" for w, aim in AIMS.items()
            if "trainyard" in found.get("works", {}).get(w, {})]
    return lines + (["", "Of the aim for an H200: " + ", ".join(aims) + "."] if aims else [])


def cleanness(one):
    libraries = one.get("of libraries")
    return "NOT clean" if not one["clean"] else "clean" + (f" but for NVIDIA's {', '.join(libraries)}" if libraries else "")


def checks_of(found):
    lines = []
    for work, one in found.get("checks", {}).items():
        off = ", ".join(f"{how} off by {x:.1e}" for how, x in one["off"].items() if how != "again")
        lines += ["", f"{work}: {'as on a CPU' if one['good'] else 'NOT as on a CPU'} ({off}), "
                  f"{'the same bits again' if one['same_bits_again'] else 'NOT the same bits again'}."]
    cases = found.get("cases")
    if cases:
        again = {True: "yes", False: "NO", None: "not tried"}[cases["same_bits_again"]]
        lines += ["", f"Training cases: {cases['passed']} of {cases['of']} pass; two runs give the same bits: {again}."]
    lines += ["", "Units: " + ", ".join(f"{name} {'passes' if good else 'FAILS'}"
                                        for name, good in found["units"].items()) + "."] if "units" in found else []
    lines += ["", "Sanitizer: " + ", ".join(f"{name} {cleanness(one)}" for name, one in found["sanitizer"].items()) +
              "."] if "sanitizer" in found else []
    return lines


def batches_of(found):
    return [line for work, told in found.get("largest_batch_by_doubling", {}).items() for line in
            ("", f"{work}: of batches doubled in turn, the largest that fits: " +
             ", ".join(f"{who} {rows}" for who, rows in told.items()) + ".")]


def attention_of(one):
    return f", attention {one['attention_share']:.0%}" if one.get("attention_share") else ""


def kernels_of(found):
    lines = []
    for work, one in found.get("profile", {}).items():
        lines += ["", f"{work}: {one['calls']} calls, libraries {one['library_share']:.0%} at "
                  f"{one['library_tflop_per_s']} TFLOP/s ({one['library_of_product']} of a large product), gaps "
                  f"{one['gaps']:.1%}, long kernels at {one['kernels_gb_per_s']} GB/s ({one['kernels_of_copy']} of a "
                  f"copy){attention_of(one)}."]
    return lines


def table(found):
    gpu = found.get("machine", {}).get("gpu", "unknown")
    lines = [f"# On a GPU, {found['date'][:10]}", "", f"{gpu}, commit {found['commit']}; "
             "`bench/gpu`, bfloat16 unless told otherwise, the same model and batch.", ""]
    lines += works_of(found) + batches_of(found) + checks_of(found) + kernels_of(found)
    lines += ["", "Failed: " + "; ".join(f["what"] for f in found["failed"])] if found["failed"] else []
    skipped = [one["what"] for one in found["skipped"]]
    lines += ["", "Left out for want of time: " + "; ".join(skipped)] if skipped else []
    return "\n".join(lines) + "\n"


def keep(out):
    out = out or os.path.join(BUILD, "gpu")
    paths = sorted(glob.glob(os.path.join(out, "**", "gpu-*.json"), recursive=True))
    if not paths:
        sys.exit(f"gpu: there is no gpu-DATE.json under {out}")
    for path in paths:
        to = os.path.join(HERE, "results", os.path.basename(path))
        shutil.copy(path, to)
        with open(path, encoding="utf-8") as f:
            found = json.load(f)
        with open(to[:-5] + ".md", "w", encoding="utf-8") as f:
            f.write(table(found))
        print(to)
