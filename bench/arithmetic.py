"""What the arithmetic of a generated kernel costs: vector instructions, divisions and square roots.

An operation that a processor has is one instruction. Others are functions of compiler/target/cpu/prelude.c: each is
compiled in a loop of its own, with the flags that kernels are compiled with, and the vector instructions of that loop
are counted; loads, stores and moves are not.
"""
import functools
import os
import re
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = os.path.join(ROOT, "compiler", "target", "cpu")

INSTRUCTIONS, DIVISIONS, ROOTS = range(3)
# A maximum keeps NaN: two comparisons and a choice. What is neither here nor in the prelude (gather) is no arithmetic.
ONE = {op: (1, 0, 0) for op in ("add sub mul fma sum prod neg abs floor rint cast bitcast not and or xor shl shr eq lt "
                                "le select").split()}
SPELLED = {**ONE, "max": (3, 0, 0), "min": (3, 0, 0), "div": (0, 1, 0), "sqrt": (0, 0, 1), "rsqrt": (0, 1, 1)}
FUNCTIONS = ("exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "erf", "mills", "atan")

MOVES = ("vmov", "vbroadcast", "vpbroadcast", "prefetch")


def literals(path, name):
    """The text of an array of C string literals, one item a literal."""
    with open(os.path.join(SOURCES, path), encoding="utf-8") as f:
        body = re.search(re.escape(name) + r"\[\] = *\{?\n(.*?);\n\n", f.read() + "\n\n", re.S).group(1)
    body = re.sub(r"^ */\*.*?\*/$", "", body, flags=re.S | re.M)
    return [item.encode().decode("unicode_escape") for item in re.findall(r'"((?:[^"\\]|\\.)*)"', body)]


def counted(assembly):
    """(instructions, divisions, square roots) of the longest vector loop in the assembly of one function."""
    best, lines = (0, 0, 0), assembly.splitlines()
    labels = {line[:-1]: at for at, line in enumerate(lines) if re.match(r"\.L\w+:$", line)}
    for at, line in enumerate(lines):
        jump = re.match(r"\s+j\w+\s+(\.L\w+)$", line)
        if not jump or labels.get(jump.group(1), at) >= at:
            continue
        words = [part.split(None, 1) for part in lines[labels[jump.group(1)] + 1:at] if part.startswith("\t")]
        vector = [word[0] for word in words if len(word) > 1 and re.search(r"%[xyz]mm|%k\d", word[1])
                  and not word[0].startswith(MOVES) and not word[0].endswith(("ss", "sd"))]
        kinds = [word.startswith("vdiv") + 2 * word.startswith("vsqrt") for word in vector]
        best = max(best, tuple(kinds.count(kind) for kind in range(3)), key=sum)
    return best


@functools.cache
def cost(op):
    """(instructions, divisions, square roots) for one vector of float32; None of what is no arithmetic."""
    if op in SPELLED:
        return SPELLED[op]
    if op not in FUNCTIONS:
        return None
    code = "".join(literals("prelude.c", "ty_render_head") + literals("prelude.c", "ty_render_prelude")) + (
        f"\nvoid loop(float *restrict y, const float *restrict x, long n)\n"
        f"{{\n for (long i = 0; i < n; i++) y[i] = ty_{op}_f32(x[i]);\n}}\n")
    flags = [flag for flag in literals("cc.c", "cc_flags") if flag not in ("-pipe", "-shared")]
    with tempfile.TemporaryDirectory() as folder:
        source, assembly = os.path.join(folder, "loop.c"), os.path.join(folder, "loop.s")
        with open(source, "w", encoding="utf-8") as f:
            f.write(code)
        subprocess.run(["cc", *flags, "-S", "-o", assembly, source], check=True)
        with open(assembly, encoding="utf-8") as f:
            found = counted(f.read())
    if not sum(found):
        raise RuntimeError(f"the compiler made no vector loop of {op}")
    return found


def seconds(counts, ceilings, cost=cost):
    """The least time for operations {"exp.f32": how often}, by instructions, divisions and square roots a second."""
    total = [0.0, 0.0, 0.0]
    for what, times in counts.items():
        op, dtype = what.split(".")
        lanes = 2 if dtype in ("f64", "i64", "u64") else 1  # half as many fit into a register
        for kind, n in enumerate(cost(op) or (0, 0, 0)):
            total[kind] += n * times * lanes
    return sum(n / ceilings[kind] for n, kind in zip(total, ("fma", "div", "sqrt")))
