"""bench/compare: who runs when, with which cache, what the medians are of, and what is written."""
import io
import json
import os
import sys
import tempfile

from cases import given_up, script

WORDS = {"eager": "torch", "compile": "compile", "peer_jax.py": "jax"}


class Machine:
    """Stands in for processes: round n of a peer takes the times of its list."""

    def __init__(self, compare, **times):
        self.ran, self.times, self.at, self.is_read = [], times, {}, False
        compare.run, compare.say, compare.read_ahead = self.run, lambda text: None, self.read_ahead
        compare.python_of = lambda environment: "python"
        compare.ours.program = lambda name: name

    def read_ahead(self, work):
        self.is_read = True

    def run(self, command, variables=None):
        assert self.is_read, "a run has to wait for the disk where another has not"
        self.is_read = False
        who = "ours" if command[0] == "ours" else next(WORDS[w] for w in map(os.path.basename, command) if w in WORDS)
        n = self.at[who] = self.at.get(who, -1) + 1
        steps = next((int(word) for word in command[-3:] if word.isdigit()), None)
        self.ran.append((who, steps, variables))
        if who in self.times and self.times[who] == "fails":
            raise RuntimeError("no")
        step, first = self.times[who][n]
        return {"step_ms": step, "first_s": first, "peak_mb": 10 * first, "losses": [2.0, 1.0]}


class Args:
    steps, pairs, rounds, cold, precision = None, 3, 3, 1, "float32"


def measured(work, peers, form, **times):
    compare = script("compare")
    compare.BUILD = "/nowhere"
    machine = Machine(compare, **times)
    runs, faults = getattr(compare, form)(work, peers, Args)
    return compare, machine, runs, faults


def test_pairs_alternate():
    compare, machine, runs, _ = measured("mlp", ["torch", "jax"], "run_pairs", torch=[(8, 4)] * 3, jax=[(4, 2)] * 3,
                                         ours=[(2, 1), (2, 1), (4, 1), (2, 1), (2, 1), (3, 1)])
    assert [who for who, _, _ in machine.ran] == ["torch", "ours", "jax", "ours"] * 3
    row = compare.summarise("mlp", runs["torch"], {}, 1e-4)
    assert row["ratios"]["step_ms"] == 0.25 and row["ours"]["step_ms"] == 2 and len(row["runs"]) == 3
    assert compare.summarise("mlp", runs["jax"], {}, 1e-4)["ratios"]["step_ms"] == 0.5


def test_a_round_runs_ours_once_in_the_middle():
    compare, machine, runs, _ = measured("mlp", ["torch", "jax"], "run_rounds", torch=[(8, 4), (16, 4), (4, 4)],
                                         jax=[(4, 2)] * 3, ours=[(2, 1), (4, 1), (3, 1)])
    there, back = ["torch", "ours", "jax"], ["jax", "ours", "torch"]
    assert [who for who, _, _ in machine.ran] == there + back + there
    row = compare.summarise("mlp", runs["torch"], {}, 1e-4)
    assert row["ratios"]["step_ms"] == 0.25  # of 2/8, 4/16, 3/4: within the round, not median by median
    assert row["ours"]["step_ms"] == 3 and row["peer"]["step_ms"] == 8


def test_first_steps_are_those_that_compiled():
    compare, machine, runs, _ = measured("mlp", ["torch", "compile"], "run_rounds", torch=[(8, 4), (8, 5), (8, 6)],
                                         compile=[(8, 40), (8, 9), (4, 9)], ours=[(2, 1), (2, 2), (2, 3)])
    row = compare.summarise("mlp", runs["compile"], {}, 1e-4)
    assert row["peer"]["first_s"] == 40 and row["peer"]["peak_mb"] == 400 and row["ratios"]["first_s"] == 1 / 40
    assert row["ratios"]["step_ms"] == 0.25 and [run["cold"] for run in row["runs"]] == [True, False, False]
    row = compare.summarise("mlp", runs["torch"], {}, 1e-4)  # keeps nothing: cold each time
    assert row["peer"]["first_s"] == 5 and all(run["cold"] for run in row["runs"])


def test_ours_stands_beside_the_best_of_each_figure():
    compare, _, runs, _ = measured("mlp", ["torch", "jax"], "run_pairs", torch=[(8, 4)] * 3, jax=[(4, 5)] * 3,
                                   ours=[(2, 1)] * 6)
    rows = {peer: compare.summarise("mlp", runs[peer], {}, 1e-4) for peer in runs}
    results = {"works": {"mlp": rows, "cnn": rows}, "warm": {"mlp": {"first_s": 0.5, "ready_s": 0.25}}}
    lines = compare.best_table(results)
    assert lines[2] == "| mlp | 0.500 (JAX) | 0.250 (torch eager) | 0.125 | 0.25 | 0.250 (torch eager) |"
    assert lines[3] == "| cnn | 0.500 (JAX) | 0.250 (torch eager) |  |  | 0.250 (torch eager) |"
    assert lines[-1] == "Geometric mean of the steps beside the best: **0.500**."


def test_caches_are_emptied_for_cold_runs():
    compare = script("compare")
    with tempfile.TemporaryDirectory() as compare.BUILD:
        check_caches(compare)


def check_caches(compare):
    folder = os.path.join(compare.BUILD, "cache-of-peers", "compile-mlp-float32")
    os.makedirs(folder)
    assert compare.peer_variables("compile", "mlp", False, "float32") == {"TORCHINDUCTOR_CACHE_DIR": folder}
    assert os.path.exists(folder)
    assert compare.peer_variables("compile", "mlp", True, "float32") == {"TORCHINDUCTOR_CACHE_DIR": folder}
    assert not os.path.exists(folder)
    assert compare.peer_variables("jax", "mlp", True, "float32") == {}  # keeps nothing unless told to
    assert compare.peer_variables("jax", "mlp", False, "float32")["JAX_COMPILATION_CACHE_DIR"].endswith("jax-mlp-float32")
    assert compare.peer_variables("torch", "mlp", False, "float32") == {}


def test_a_precision_is_that_of_both():
    compare = script("compare")
    compare.python_of, compare.ours.program = lambda environment: "python", lambda name: name
    lines = []
    compare.run, compare.read_ahead = lambda command, variables=None: lines.append(command), lambda work: None
    compare.run_peer("torch", "mlp", 7, False, "bfloat16")
    compare.run_ours("mlp", 7, "bfloat16")
    assert lines[0][-3:] == ["eager", "bfloat16", "7"] and lines[1][-3:] == ["7", "--precision", "bfloat16"]
    assert "--peers torch,compile" in given_up(arguments_of, compare, "--precision", "bfloat16", "--peers", "torch,jax")


def arguments_of(compare, *words):
    sys.argv, sys.stderr, kept = ["compare", *words], io.StringIO(), (sys.argv, sys.stderr)
    try:
        compare.arguments()
    except SystemExit as end:
        raise SystemExit(sys.stderr.getvalue()) from end
    finally:
        sys.argv, sys.stderr = kept


def test_later_rounds_of_long_steps_are_short():
    _, machine, _, _ = measured("gpt2", ["torch"], "run_rounds", torch=[(8, 4)] * 3, ours=[(2, 1)] * 3)
    assert [steps for _, steps, _ in machine.ran] == [None, None, 6, 6, 6, 6]


def test_a_peer_that_fails_is_left_out():
    for form in ("run_pairs", "run_rounds"):
        _, machine, runs, faults = measured("mlp", ["torch", "jax"], form, torch="fails", jax=[(4, 2)] * 3,
                                            ours=[(2, 1)] * 6)
        assert faults == {"torch": "no"} and not runs["torch"] and len(runs["jax"]) == 3
        assert [who for who, _, _ in machine.ran].count("torch") == 1


def odd_ones(**losses):
    """Who disagrees with ours of loss 1, and who of those is said to be the odd one."""
    compare = script("compare")
    rows = {}
    for peer, loss in losses.items():
        runs = [{"peer": {"losses": [loss]}, "ours": {"losses": [1.0]}, "cold": True}]
        rows[peer] = {"losses_agree": compare.compare_losses("mlp", runs[0]["peer"], runs[0]["ours"]) <= 1e-4, "runs": runs}
    compare.find_odd_ones("mlp", rows, 1e-4)
    return [peer for peer, row in rows.items() if not row["losses_agree"]], [p for p, row in rows.items() if row["odd"]]


def test_a_peer_alone_against_all_is_the_odd_one():
    assert odd_ones(torch=1.0, jax=1.00005, tf=1.0003) == (["tf"], ["tf"])
    assert odd_ones(torch=1.0, tf=1.0003) == (["tf"], [])  # one against one says nothing
    assert odd_ones(torch=1.0003, jax=1.0003, tf=1.0) == (["torch", "jax"], [])  # it is us
    assert odd_ones(torch=1.0, jax=1.00008, tf=1.00012) == (["tf"], [])  # near one that we agree with


def result(compare, **apart):
    return {"date": "2026-01-02T03:04:05", "machine": {"cpu": "A", "cores": 2, "memory_mb": 1, "system": "S",
                                                       "load_at_start": 0.1},
            "versions": {"trainyard": "abc"}, "precision": "float32", "pairs": 5, "works": {}, "warm": {}, "failed": [], **apart}


def test_results_are_continued_on_the_same_terms_only():
    compare = script("compare")
    with tempfile.TemporaryDirectory() as compare.RESULTS_DIR:
        compare.ROOT = compare.RESULTS_DIR
        check_continued(compare)


def check_continued(compare):
    stem = os.path.join(compare.RESULTS_DIR, "x")
    row = compare.summarise("mlp", [({"step_ms": 4, "first_s": 2, "peak_mb": 8, "losses": [1.0]},
                                     {"step_ms": 1, "first_s": 1, "peak_mb": 1, "losses": [1.0]}, True)], {}, 1e-4)
    compare.write_results(result(compare, works={"mlp": {"torch": row}}, failed=[["cnn", "torch"]]), stem)
    with open(stem + ".json", encoding="utf-8") as f:
        assert json.load(f)["works"]["mlp"]["torch"]["ratios"]["step_ms"] == 0.25
    with open(stem + ".md", encoding="utf-8") as f:
        assert "| mlp | torch eager | 1 / 4 = **0.250** |" in f.read()
    old, found = compare.continued("bench/results/x.json", result(compare), ["cnn"], ["torch"])
    assert found == stem and list(old["works"]) == ["mlp"] and old["failed"] == []
    assert "mlp beside torch eager is in it" in given_up(compare.continued, "x", result(compare), ["mlp"], ["torch"])
    assert "commit abc, now def" in given_up(compare.continued, "x", result(compare, versions={"trainyard": "def"}), ["cnn"], [])
    assert "day" in given_up(compare.continued, "x", result(compare, date="2026-01-03"), ["cnn"], [])
    assert "precision float32, now bfloat16" in given_up(compare.continued, "x", result(compare, precision="bfloat16"), ["cnn"], [])
    assert "rounds None, now 5" in given_up(compare.continued, "x", result(compare, rounds=5, cold=2), ["cnn"], [])
    assert "y.json" in given_up(compare.continued, "y", result(compare), ["cnn"], [])
