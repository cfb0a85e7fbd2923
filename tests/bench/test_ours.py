"""bench/ours.py and bench/machine.py: running the program, and writing what it said."""
import json
import os
import stat
import tempfile

from cases import given_up, script


def written(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(f.name, stat.S_IRWXU)


def test_ours_is_run():
    ours = script("ours.py")
    with tempfile.TemporaryDirectory() as ours.PROGRAMS:
        assert "make bench" in given_up(ours.run, "mlp")
        written(ours.PROGRAMS, "ours", "#!/bin/sh\necho noise; echo \"{\\\"words\\\": \\\"$*\\\"}\"\n")
        assert ours.run("mlp", "4", "--strict")["words"] == f"mlp {ours.WORKS_DIR}/mlp 4 --strict"
        written(ours.PROGRAMS, "ours", "#!/bin/sh\necho '{}'; echo broken >&2; exit 3\n")
        assert "mlp 4 ended with status 3\nbroken" in given_up(ours.run, "mlp", "4")
        written(ours.PROGRAMS, "ours", "#!/bin/sh\n")
        assert "status 0" in given_up(ours.run, "mlp")


def test_results_do_not_replace_others():
    machine = script("machine.py")
    here = {"cpu": "A (R) B", "cores": 2}
    with tempfile.TemporaryDirectory() as folder:
        for n in (1, 2):
            machine.save(folder, "limits", "2026-01-02T03", here, {"rows": [n]}, f"text {n}\n")
        assert sorted(os.listdir(folder)) == [f"2026-01-02-a-r-b-2-cores-limits{end}"
                                              for end in ("-2.json", "-2.md", ".json", ".md")]
        with open(os.path.join(folder, "2026-01-02-a-r-b-2-cores-limits.json"), encoding="utf-8") as f:
            assert json.load(f) == {"date": "2026-01-02T03", "machine": here, "rows": [1]}
        with open(os.path.join(folder, "2026-01-02-a-r-b-2-cores-limits-2.md"), encoding="utf-8") as f:
            assert f.read() == "text 2\n"
