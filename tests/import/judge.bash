# judge.bash - sourced by tests whose judge is written in Python, in a virtual environment of its own; counts in
# passed, failed and skipped, what a judge says besides in build/NAME.log of the test.
export TRAINYARD_CACHE_DIR=none PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
passed=0 failed=0 skipped=0
judge_log=build/$(basename "$0" .sh).log

# venv FOLDER PACKAGE... - makes it once.
venv() {
    mkdir -p build
    flock "$1.lock" bash -c '[ -e "$1/complete" ] || { python3 -m venv "$1" && "$1/bin/pip" install -q "${@:2}" &&
        touch "$1/complete"; }' - "$@" >&2
}

# judge SCRIPT FOLDER WHAT ARGUMENT... - SCRIPT with the Python of the environment FOLDER, which has WHAT.
judge() {
    local out
    if ! [ -x "$2/bin/python" ]; then
        echo "skip: no Python with $3 (see $0)"
        skipped=$((skipped + 1))
        return
    fi
    out=$("$2/bin/python" "tests/import/$1" "${TY_BIN:-build/bin}/trainyard" "${@:4}" 2>"$judge_log")
    echo "$out" | grep -E '^(ok|skip:|FAILED) '
    if ! [[ $out =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped ]]; then
        tail -3 "$judge_log"
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
}
