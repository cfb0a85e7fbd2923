"""bench/submit: made-up pairs and the bar."""
from cases import script


def test_medians_are_judged():
    submit = script("submit")
    row = submit.medians([((10, 4), (2000, 500)), ((5, 3), (4000, 700)), ((20, 5), (3000, 600))])
    assert row == {"ours_ms": 10, "ours_cpu_ms": 4, "sdk_ms": 3000, "sdk_cpu_ms": 600, "ratio": 200}
    table, good = submit.told(row, 20)
    assert good and "| `trainyard submit --dry-run` | 10.0 | 4.0 |" in table and "200 times" in table
    table, good = submit.told(row, 10)
    assert not good and table.count("**not below 10**") == 1
