"""bench/gpu on a machine that is made up: what comes first, what is left out, what is kept of a run that is cut."""
import json
import os
import tempfile
import types

from cases import script

LINE = {"batch": 8, "step_ms": 5.0, "first_s": 1.0, "losses": [2.0, 1.5, 1.2, 1.1, 1.0, 0.9]}
CALLS = "   1.0000  50.0%   10.000   10.000   20.00     50%   1  library dot: a\nflop: products 2000000000, all 3\n"


def answer(name):
    if name.startswith("cases-"):
        return "case mlp loss 1; compile 3 ms\n7 passed, 0 failed, 0 skipped\n"
    if name.endswith("-calls"):
        return CALLS
    if name == "ceilings":
        return json.dumps({"copy_gb_per_s": 100.0, "bf16_tflop_per_s": 4.0})
    return json.dumps(LINE)


class Made:
    """A run whose programs take `each` seconds of a clock of its own; begun[]: the programs, in order."""

    def __init__(self, budget, each, works="resnet50,gpt2,mlp", stops_at=None):
        self.gpu, self.now, self.begun = script("gpu"), 0.0, []
        self.gpu.time = types.SimpleNamespace(monotonic=lambda: self.now)
        self.gpu.Held = lambda: self  # asks nobody for the GPU's memory
        self.gpu.say = lambda text: None
        self.gpu.at_once = lambda calls: [call() for call in calls]  # in this order, for one clock
        self.gpu.AT_ONCE = self.gpu.CASES_AT_ONCE = self.gpu.WARMED_AT_ONCE = 1
        self.most, self.each, self.stops_at = 0, each, stops_at
        self.gpu.ROOT = tempfile.mkdtemp()
        with open(os.path.join(self.gpu.ROOT, "commit"), "w", encoding="utf-8") as f:
            f.write("made up")
        self.run = self.gpu.Run(os.path.join(self.gpu.ROOT, "out"), budget, works.split(","))
        self.run.start = self.start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start(self, name, words, seconds, env):
        if name == self.stops_at:
            raise KeyboardInterrupt
        self.kept()
        self.begun.append(name)
        took = min(self.each, seconds, max(1, self.run.left()))
        self.now += took
        return (0, answer(name)) if took == self.each else (124, "ended")

    def kept(self):
        """What lies on the disk: whole at any moment."""
        if not os.path.exists(self.run.path):
            return {}
        with open(self.run.path, encoding="utf-8") as f:
            return json.load(f)

    def first(self, part):
        return next(i for i, name in enumerate(self.begun) if name.startswith(part))


def test_what_matters_comes_first():
    made = Made(1e6, 1)
    made.gpu.run_all(made.run, made.gpu.PARTS)
    order = ["doctor", "check-resnet50-cpu", "cases-1", "warm-resnet50-torch-compile",
             "resnet50-trainyard-cold", "mlp-trainyard", "ceilings", "resnet50-torch-compile",
             "gpt2-jax", "resnet50-torch-eager", "resnet50-trainyard-tf32", "gpt2-torch-float32", "gpt2-largest-ours",
             "resnet50-torch-autotune"]
    assert [made.first(a) for a in order] == sorted(made.first(a) for a in order), made.begun
    kept = made.kept()
    assert kept["complete"] and kept["skipped"] == []
    assert set(kept["checks"]) == {"resnet50", "gpt2", "mlp"} and kept["checks"]["mlp"]["good"]
    assert kept["profile"]["gpt2"]["library_of_product"] == 0.5, kept["profile"]


def test_the_budget_holds():
    for budget in (60, 200, 570):
        for each in (7, 20, 45, 400):
            made = Made(budget, each)
            made.gpu.run_all(made.run, made.gpu.PARTS)
            kept = made.kept()
            assert made.now <= budget, (budget, each, made.now)
            assert sum(kept["seconds"].get(name, 0) for name in [*made.gpu.UNTIMED, "warm"]) <= 0.4 * budget + 1
            assert not kept["complete"] and kept["skipped"], (budget, each)
            assert os.path.exists(os.path.join(made.run.out, "logs.tar.gz")) or "check" in {
                entry["what"] for entry in kept["skipped"]}


def test_what_is_left_out_is_told():
    made = Made(5, 1)
    made.gpu.run_all(made.run, made.gpu.PARTS)
    told = [entry["what"] for entry in made.kept()["skipped"]]
    assert [what for what in told if what in made.gpu.PARTS] == list(made.gpu.PARTS)


def test_a_run_that_is_cut_keeps_what_it_has():
    made = Made(1e6, 1, stops_at="gpt2-trainyard")
    try:
        made.gpu.run_all(made.run, made.gpu.PARTS)
    except KeyboardInterrupt:
        pass
    kept = made.kept()
    assert len(kept["checks"]) == 3 and "trainyard" in kept["works"]["resnet50"]
    assert list(kept["works"]["gpt2"]) == ["trainyard cold"] and not kept["complete"]
    again = made.gpu.Run(made.run.out, 100, ["gpt2"])  # what follows adds to it
    assert again.found["checks"] == kept["checks"]


def test_a_part_that_runs_again_replaces_what_it_said():
    made = Made(1e6, 1)
    broken = ("check-mlp-cpu", "gpt2-jax")
    made.run.start = lambda name, *rest: (1, "broken") if name in broken else made.start(name, *rest)
    made.gpu.run_all(made.run, ["check", "peers"])
    before = made.kept()
    assert [(e["part"], e["what"]) for e in before["failed"]] == [("check", "mlp cpu"), ("peers", "jax on gpt2")]
    made.run = made.gpu.Run(made.run.out, 300, made.run.names)
    made.run.start, made.each = made.start, 20
    made.gpu.run_all(made.run, ["check", "largest"])
    kept = made.kept()
    told = [(e["part"], e["what"]) for e in kept["failed"]]
    assert ("peers", "jax on gpt2") in told and ("check", "mlp cpu") not in told, told
    assert "check" in {e["part"] for e in kept["skipped"]} and not kept["complete"], kept["skipped"]


def test_losses_that_differ_are_a_failure():
    made = Made(1e6, 1)
    real = made.start
    made.run.start = lambda name, *rest: (0, json.dumps(dict(LINE, losses=[2.0, 1.5, 1.3])) if name == "check-mlp-float32"
                                          else real(name, *rest)[1])
    made.gpu.run_all(made.run, ["check"])
    kept = made.kept()
    assert [f["what"] for f in kept["failed"]] == ["check of mlp"] and not kept["checks"]["mlp"]["good"]
