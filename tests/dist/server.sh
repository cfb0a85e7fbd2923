#!/bin/bash
# Parameter servers and workers as processes on loopback, over UCX: sums must be exact, whatever is lost and whoever is killed.
set -u
cd "$(dirname "$0")/../.." || exit 1
TY_BUILD=${TY_BUILD:-build/release}
tool=$TY_BUILD/tools/parameter_server
passed=0 failed=0 skipped=0
dir=$(mktemp -d)
children=()
# shellcheck disable=SC2317
cleanup() {
    for pid in "${children[@]:-}"; do [ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null; done
    rm -rf "$dir"
}
trap cleanup EXIT

# UCX writes its own code over that of mmap(), where sanitizers have written theirs.
[ "${TY_VARIANT:-release}" = release ] || export UCX_MEM_MMAP_HOOK_MODE=none UCX_MEM_EVENTS=no
if [ ! -e "$TY_BUILD/lib/libtrainyard-ucx.so" ]; then
    echo "skip: no plug-in for UCX"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

result() { # NAME STATUS
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
        tail -n 5 "$dir"/*.out "$dir"/*.err 2>/dev/null
    fi
}
# server NUMBER LISTEN FIRST SHARDS [OPTION...]: started; its address goes to ${at[NUMBER]}
server() {
    local number=$1
    shift
    : >"$dir/server$number.out"
    "$tool" server "$@" >"$dir/server$number.out" 2>"$dir/server$number.err" &
    children+=($!)
    serving[number]=$!
    line_of "$dir/server$number.out" '^at ' || return 1
    at[number]=$(sed -n 's/^at //p' "$dir/server$number.out")
}
# line_of FILE PATTERN: waits until the file has such a line.
line_of() {
    timeout 200 tail -n +1 -f --pid=$$ "$1" 2>/dev/null | grep -qm 1 "$2"
}
worker() { # NUMBER ARGUMENT...: started
    local number=$1
    shift
    "$tool" worker "$@" >"$dir/worker$number.out" 2>"$dir/worker$number.err" &
    children+=($!)
    working[number]=$!
}
addresses() { local IFS=,; echo "${at[*]}"; }
# ended PID SECONDS: its status, or 124.
ended() {
    timeout "$2" tail -s 0.05 -f --pid="$1" /dev/null
    kill -0 "$1" 2>/dev/null && return 124
    wait "$1" 2>/dev/null
}
reset() { at=() serving=() working=(); rm -f "$dir"/*.out "$dir"/*.err; }

# servers S, workers W, with 10 % of all messages dropped.
grid() {
    local s=$1 w=$2 k status=0
    reset
    for ((k = 0; k < s; k++)); do server $k 127.0.0.1:0 $k 1 drop=10 || status=1; done
    for ((k = 0; k < w; k++)); do worker $k "$(addresses)" "$s" $k "$w" 20 drop=10; done
    for ((k = 0; k < w; k++)); do ended "${working[k]}" 300 || status=1; done
    timeout 200 "$tool" check "$(addresses)" "$s" "$w" 20 >"$dir/check.out" 2>"$dir/check.err" || status=1
    for ((k = 0; k < s; k++)); do ended "${serving[k]}" 100 || status=1; done
    result "$s servers, $w workers, 10 % dropped: exact sums" $status
}
for s in 1 2 3; do for w in 1 2 3; do grid $s $w; done; done

# held PID...: waits until these workers have stopped themselves.
held() {
    local pid tries
    for pid; do
        for ((tries = 0; tries < 20000; tries++)); do
            grep -q '^State:.T' "/proc/$pid/status" && continue 2
            sleep 0.01
        done
        return 1
    done
}

# A worker is killed, and the one that takes its place begins at step 1 again.
killed_worker() {
    local status=0
    reset
    server 0 127.0.0.1:0 0 1 drop=10 || status=1
    server 1 127.0.0.1:0 1 1 drop=10 || status=1
    worker 0 "$(addresses)" 2 0 2 60 drop=10
    worker 1 "$(addresses)" 2 1 2 60 drop=10 hold=15 pause=10
    held "${working[1]}" || status=1
    { kill -KILL "${working[1]}"; } 2>/dev/null
    ended "${working[1]}" 50
    worker 1 "$(addresses)" 2 1 2 60 drop=10
    ended "${working[0]}" 300 || status=1
    ended "${working[1]}" 300 || status=1
    timeout 200 "$tool" check "$(addresses)" 2 2 60 >"$dir/check.out" 2>"$dir/check.err" || status=1
    grep -qE ' [1-9][0-9]* again' "$dir/check.out" || status=1
    result "a worker killed and started again: exact sums" $status
}
killed_worker

# A server is killed after a save, and started again from it on the same port. Its workers hold meanwhile: a slow machine
# would else kill it when they have ended, and what came after the save is lost with nobody to push it again.
killed_server() {
    local status=0
    reset
    mkdir "$dir/saves"
    server 0 127.0.0.1:0 0 1 "folder=$dir/saves" || status=1
    server 1 127.0.0.1:0 1 1 "folder=$dir/saves" || status=1
    worker 0 "$(addresses)" 2 0 2 60 save=20 hold=30 pause=10
    worker 1 "$(addresses)" 2 1 2 60 hold=30 pause=10
    held "${working[@]}" || status=1
    [ -e "$dir/saves/half/manifest.json" ] || status=1
    kill -KILL "${serving[1]}"
    kill -CONT "${working[@]}"
    ended "${serving[1]}" 50
    server 1 "${at[1]}" 1 1 "folder=$dir/saves" resume || status=1
    ended "${working[0]}" 400 || status=1
    ended "${working[1]}" 400 || status=1
    grep -q 'goes on from save half' "$dir/server1.err" || status=1
    timeout 200 "$tool" check "$(addresses)" 2 2 60 >"$dir/check.out" 2>"$dir/check.err" || status=1
    result "a server killed and started again from its save: exact sums" $status
}
killed_server

# The plug-in is told by name where it is missing.
mkdir "$dir/none"
TRAINYARD_PLUGINS=$dir/none timeout 100 "$tool" server 127.0.0.1:0 0 1 >"$dir/none.out" 2>&1
[ $? = 1 ] && grep -q 'libtrainyard-ucx' "$dir/none.out"
result "no plug-in: one message" $?

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
