"""bench/overhead: made-up runs and the bar."""
from cases import script

RUNS = [{"threads": 2, "alone_us": 0.04, "all_threads_us": 1.0}, {"threads": 2, "alone_us": 0.06, "all_threads_us": 9.0},
        {"threads": 2, "alone_us": 0.05, "all_threads_us": 1.5}]


def test_medians_are_judged():
    overhead = script("overhead")
    row = overhead.medians(RUNS)
    assert row == {"alone_us": 0.05, "all_threads_us": 1.5}
    table, good = overhead.told(row, 2, 2)
    assert good and "| on the calling thread | 1 | 0.050 | |" in table.replace("  ", " ")
    table, good = overhead.told(row, 2, 1.5)
    assert not good and table.count("**not below 1.5**") == 1
