# harness.bash - sourced by the scripts here: a fresh /opt/ml tree a case, checks that count, the closing line.
#
#   begin NAME            a new tree in $ML (SAGEMAKER_BASE_DIR), work folder $W
#   hyper JSON            writes hyperparameters.json
#   run [ARGS...]         `train ARGS`; exit status in $rc, streams in $W/out and $W/err ($RUN_PATH: its PATH)
#   start [ARGS...]       the same in the background; pid in $pid
#   finish                waits for it; $rc
#   same WHAT A B, has WHAT FILE TEXT, lacks WHAT FILE TEXT, ok WHAT COMMAND...
#   skip WHAT REASON
# A check that fails prints what it saw.
set -u
# As tests/run has it, for those who run a script alone.
export ASAN_OPTIONS=${ASAN_OPTIONS:-intercept_tls_get_addr=0}
BIN=$(realpath "${TY_BIN:-build/bin}")
SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/entrypoint-XXXXXX")
passed=0 failed=0 skipped=0 case_name=
trap 'chmod -R u+w "$SCRATCH" 2>/dev/null; rm -rf "$SCRATCH"' EXIT
export TRAINYARD_CACHE_DIR=none # nothing of an earlier run counts, and nothing is left in the home folder
unset SAGEMAKER_PROGRAM SAGEMAKER_BASE_DIR TRAINYARD_GRACE_S TY_LOG
unset "${!SM_@}"

begin() {
    case_name=$1
    W=$SCRATCH/$1 ML=$SCRATCH/$1/ml
    mkdir -p "$ML/input/config" "$ML/input/data" "$ML/code"
    export SAGEMAKER_BASE_DIR=$ML
    echo '{"current_host": "algo-1", "hosts": ["algo-1"]}' >"$ML/input/config/resourceconfig.json"
}
hyper() { printf '%s\n' "$1" >"$ML/input/config/hyperparameters.json"; }
run() {
    timeout -k 5 "${LIMIT:-300}" env "PATH=${RUN_PATH:-$PATH}" "$BIN/train" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
# empty FILE...: before something in the background opens them: who looks for its lines must not find those of the last run.
empty() {
    local file
    for file; do : >"$file"; done
}
start() {
    empty "$W/out" "$W/err"
    "$BIN/train" "$@" >"$W/out" 2>"$W/err" </dev/null &
    pid=$!
}
finish() {
    wait "$pid"
    rc=$?
}
# stopped_after PATTERN COMMAND...: a run (by COMMAND, which is or calls start) that is told to stop when its output has such a
# line. It may be at its end by then, if this machine is slow to tell us: then again from the beginning, up to ten times.
stopped_after() {
    local try
    for ((try = 0; try < 10; try++)); do
        rm -rf "$ML/output" "$ML/checkpoints" "$ML/model"
        "${@:2}"
        until_true 60 shown_or_over "$1"
        kill -TERM "$pid" 2>/dev/null
        finish
        [ $rc = 0 ] || return
    done
}
shown_or_over() { grep -q "$1" "$W/out" || ! kill -0 "$pid"; }
# until_true SECONDS COMMAND...: waits for a condition. SECONDS are those of a quick machine: only who fails waits ten times as long.
until_true() {
    local end=$((SECONDS + 10 * $1))
    shift
    until "$@" 2>/dev/null; do
        [ $SECONDS -ge $end ] && return 1
        sleep 0.02
    done
}
# children_of PID: their ids. running PREFIX: true if a process has a command line that starts so. (A bare Debian has no pgrep.)
children_of() { cat "/proc/$1/task/$1/children" 2>/dev/null | tr ' ' '\n' | grep .; }
running() {
    local file
    for file in /proc/[0-9]*/cmdline; do
        [[ "$(tr '\0' ' ' <"$file" 2>/dev/null)" == "$1"* ]] && return 0
    done 2>/dev/null
    return 1
}
not_running() { ! running "$1"; }
pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    printf 'FAILED %s: %s\n' "$case_name" "$1"
    shift
    [ $# -gt 0 ] && printf '    %s\n' "$@"
    [ -f "$W/err" ] && tail -n 8 "$W/err" | sed 's/^/    stderr: /'
}
same() { if [ "$2" = "$3" ]; then pass; else fail "$1" "expected: $2" "found:    $3"; fi; }
has() { if grep -qaF -e "$3" "$2"; then pass; else fail "$1" "not in $2: $3" "$(head -c 1500 "$2")"; fi; }
lacks() { if grep -qaF -e "$3" "$2"; then fail "$1" "in $2: $3"; else pass; fi; }
ok() {
    local what=$1
    shift
    if "$@"; then pass; else fail "$what" "not true: $*"; fi
}
skip() {
    skipped=$((skipped + 1))
    printf 'skip: %s: %s\n' "$1" "$2"
}
finish_tests() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}
