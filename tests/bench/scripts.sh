#!/bin/bash
# The scripts of bench/ on made-up runs, where every figure is known: tests/bench/*.py. Nothing is measured.
set -u
cd "$(dirname "$0")/../.." || exit 1
if ! command -v python3 >/dev/null; then
    echo "skip: no python3 here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/bench/cases.py
