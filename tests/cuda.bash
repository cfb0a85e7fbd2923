# cuda.bash - for tests on libraries that stand in for NVIDIA's (tests/fakes); sourced in the project's root.
build=${TY_BUILD:-build/release}
fakes=$(realpath "$build")/fakes
cases=${TY_SHARED:-../shared}/data/train-cases
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# on_gpus N BYTES COMMAND...: on a machine with so many GPUs of so much memory, of compute capability $capability; what
# is said goes to $work/out.
capability=90
on_gpus() {
    local gpus="Stand-in,$capability,4,$2" n
    for ((n = 1; n < $1; n++)); do gpus+=";Stand-in,$capability,4,$2"; done
    shift 2
    LD_LIBRARY_PATH=$fakes/gpu:$fakes TY_FAKE_GPUS=$gpus timeout 900 "$@" >"$work/out" 2>&1
}
check() { # WHAT STATUS
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        echo "FAILED: $1"
        head -n 6 "$work/out"
        failed=$((failed + 1))
    fi
}
# Adds the counts of the last line of $work/out, and shows what failed; true if AT-LEAST passed and none failed.
count() { # AT-LEAST
    local p=0 f=1
    read -r p _ f _ < <(tail -n 1 "$work/out")
    grep FAILED "$work/out"
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
    [ "${p:-0}" -ge "$1" ] && [ "${f:-1}" = 0 ]
}
need_cases() { # WHAT
    [ -d "$cases" ] && return
    echo "skip: $1: $cases is not there"
    skipped=1
    finish
}
finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}
