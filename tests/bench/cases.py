"""Runs the test_* functions of the files beside it; script(NAME) is a script of bench/ as a module."""
import glob
import importlib.machinery
import importlib.util
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(os.path.dirname(os.path.dirname(HERE)), "bench")


def script(name):
    sys.path.insert(0, BENCH)
    loader = importlib.machinery.SourceFileLoader("bench_" + name, os.path.join(BENCH, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def given_up(call, *words):
    """What the call ends the script with; "" if it does not."""
    try:
        call(*words)
    except SystemExit as fault:
        return str(fault)
    return ""


def main():
    passed = failed = 0
    for path in sorted(glob.glob(os.path.join(HERE, "test_*.py"))):
        sys.path.insert(0, HERE)
        module = __import__(os.path.basename(path)[:-3])
        for name, test in vars(module).items():
            if not name.startswith("test_"):
                continue
            try:
                test()
                passed += 1
            except (Exception, SystemExit):  # of any kind: what a test calls may give up
                failed += 1
                print(f"FAILED: {os.path.basename(path)} {name}\n{traceback.format_exc()}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
