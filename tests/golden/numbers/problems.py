"""The fixed problems, and how cases are written down: one a line, in JSON.

Every number here is a multiple of a power of two, so that float32 and float64 begin with the same bits. The judges
compute in float64.
"""
import json
import math
import os

HERE = os.path.dirname(os.path.abspath(__file__))

# ---- optimizers: two weights, whose gradients are given
STEPS = 6
START = {"kernel": [[0.5, -1.25, 2.0], [0.125, -0.75, 1.5]], "bias": [0.25, -0.5, 0.0]}


def grid(x, per=64):
    return round(x * per) / per


# Per element: ordinary, small, large, absent at first, so small that eps decides, constant; then the bias.
SCALES = [1.0, 1 / 16, 4.0, 1.0, 2.0**-22, 0.5, 1.0, 0.25, 1.0]


def gradient(t):
    """Nine numbers: kernel row by row, then bias."""
    out = [grid(math.sin(1.7 * t + 0.9 * i + 0.3)) * s for i, s in enumerate(SCALES)]
    out[3] = 0.0 if t < 2 else out[3]
    out[5] = 0.5
    return out


GRADIENTS = [gradient(t) for t in range(2 * STEPS)]
KERNEL_SHAPE, BIAS_SHAPE, N_KERNEL = [2, 3], [3], 6


def split(numbers):
    return [numbers[:3], numbers[3:6]], numbers[6:]


# ---- losses: what the model gives is given, and what it should have given
LOGITS = [[1.0, 2.0, 3.0, -0.5], [0.0, 0.25, 0.0, 0.125], [-1.0, 4.0, 0.5, 1.5], [2.0, 1.0, 0.0, -3.0],
          [0.75, -0.25, 1.25, 0.5]]
OTHER = [[0.5, -1.0, 2.0, 0.25], [1.0, 1.0, 1.0, -1.0], [0.25, 4.0, 1.0, 1.0], [-2.0, -1.0, 0.5, 3.0],
         [0.5, 0.5, -0.5, 0.25]]
LABELS = [2, 0, 1, 3, 2]
IGNORING = [2, -100, 1, 3, -100]
SHARES = [[0.25, 0.25, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.75, 0.25, 0.0], [0.125, 0.125, 0.25, 0.5],
          [0.25, 0.25, 0.25, 0.25]]
FULL = [[(s + 0.25) / 2 for s in row] for row in SHARES]  # none is 0
LOGS = [[grid(math.log(s)) for s in row] for row in reversed(FULL)]
SIDES = [[v + 0.125 for v in row] for row in OTHER]       # none on a hinge's corner, where slopes are a choice
BITS = [[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.5, 0.25, 1.0, 0.0]]
SIGNS = [1.0, -1.0, 1.0, -1.0, -1.0]
SAME = [1.0, 0.0, 1.0, 0.0, 0.0]
CLASS_WEIGHTS = [4.0, 1.0, 0.5, 2.0]
PLACES = [[[1.0, 0.0, 2.0], [0.0, 3.0, 0.5], [-1.0, 2.0, 0.25]], [[4.0, 1.0, 0.5], [0.0, -2.0, 1.0], [0.5, 0.5, 0.5]]]
PLACE_LABELS = [[2, 0, 1], [1, -100, 0]]          # PLACES: [batch, class, place]
SPEECH = [[[grid(math.sin(3.1 * n + 1.3 * t + 2.3 * c)) * 2 for c in range(4)] for t in range(6)] for n in range(3)]
SPOKEN, SPOKEN_LENGTHS, HEARD_LENGTHS = [[1, 2, 2], [3, 1, 1], [2, 1, 3]], [3, 2, 1], [6, 5, 4]
TOO_LONG = [[1, 1, 1], [3, 1, 1], [2, 1, 3]]      # with HEARD_SHORT the first does not fit
HEARD_SHORT = [4, 5, 4]

# ---- metrics: 23 rows, in batches of five, the last one not full
ROWS, BATCH = 23, 5
SCORES = [[grid(2 * math.sin(2.9 * r + 1.9 * c) + math.cos(r * c + 0.5), 4) for c in range(4)] for r in range(ROWS)]
DISTINCT = [[v - c / 64 for c, v in enumerate(row)] for row in SCORES]  # Keras counts all of equal ones
CLASSES = [(7 * r + r * r // 3) % 4 for r in range(ROWS)]
SOME_CLASSES = [-100 if r % 6 == 4 else c for r, c in enumerate(CLASSES)]
MARGINS = [grid(math.sin(1.3 * r) * 2 + (0.75 if (r * r) % 3 == 1 else -0.5), 2) for r in range(ROWS)]
YES = [1.0 if (r * r) % 3 == 1 else 0.0 for r in range(ROWS)]
PAIRS = [[-m / 2, m / 2] for m in MARGINS]
REALS = [[grid(math.cos(0.7 * r + c), 16) for c in range(4)] for r in range(ROWS)]


# ---- writing
def text(x):
    """JSON with numbers of ten digits."""
    if isinstance(x, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {text(v)}" for k, v in x.items()) + "}"
    if isinstance(x, (list, tuple)):
        return "[" + ", ".join(text(v) for v in x) + "]"
    if isinstance(x, float):
        return f"{x:.10g}"
    return json.dumps(x)


def write(name, judge, cases, given=None):
    """given: what all cases share."""
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as f:
        f.write('{\n"judge": ' + json.dumps(judge) + ",\n")
        for key, value in (given or {}).items():
            f.write(f"{json.dumps(key)}: {text(value)},\n")
        f.write('"cases": [\n' + ",\n".join(text(c) for c in cases) + "\n]\n}\n")
    print(f"{name}: {len(cases)} cases")


GIVEN = {"start": sum(START["kernel"], []) + START["bias"], "gradients": GRADIENTS}
