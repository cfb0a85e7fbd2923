#!/bin/bash
# The examples with programs of users' own: alone and on several ranks, in C and in Python, they train to the same loss, and one
# goes on from the other's checkpoint; a rank that is told to stop stops all.
set -u
cd "$(dirname "$0")/../.." || exit 1
bin=${TY_BIN:-build/bin} variant=${TY_VARIANT:-release}
lib=$(realpath "$bin/../lib")
work=$(mktemp -d "${TMPDIR:-/tmp}/allreduce-XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE TRAINYARD_ENGINE
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 TRAINYARD_LIBRARY=$lib/libtrainyard.so.1

check() { # WHAT COMMAND...
    if "${@:2}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
        tail -n 15 "$work/log"
    fi
}
skip() { # COUNT REASON
    skipped=$((skipped + $1))
    echo "skip: $2"
}
# on RANKS COMMAND...: output in $work/log.
on() {
    local ranks=$1
    shift
    [ "$ranks" = 1 ] || set -- env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to none \
        --mca pml ob1 --mca btl self,vader,tcp --mca btl_vader_single_copy_mechanism none -np "$ranks" "$@"
    timeout -k 1 600 "$@" >"$work/log" 2>&1
}
# like_one: every line of the log says what one rank said, to four digits.
like_one() {
    diff <(sed -E 's/([0-9]\.[0-9]{4})[0-9]*/\1/g' "$work/one") <(sed -E 's/([0-9]\.[0-9]{4})[0-9]*/\1/g' "$work/log")
}
learned() { awk -F= 'END {exit !($NF > 0.94)}' "$work/log"; }

if [ "$variant" != release ]; then
    skip 1 "examples of users' programs: of the release variant"
    echo "$passed passed, $failed failed, $skipped skipped"
    exit
fi
if ! examples/digits/data "$work" >"$work/log" 2>&1; then
    skip 1 "the digits cannot be downloaded"
    echo "$passed passed, $failed failed, $skipped skipped"
    exit
fi
sets=("$work/train.csv" "$work/test.csv")
several=
command -v mpirun >/dev/null && [ -e "$lib/libtrainyard-mpi.so" ] && several=yes

cc -O2 -Wall -Wextra -Werror -Iinclude -o "$work/train" examples/allreduce-c/train.c "-L$lib" -ltrainyard "-Wl,-rpath,$lib" -lm \
    >"$work/log" 2>&1
check "the C example compiles" test -x "$work/train"
on 1 "$work/train" "${sets[@]}" "$work/state1" 10
check "C, 1 rank" test $? = 0
check "C, 1 rank: learned" learned
cp "$work/log" "$work/one"
if [ -n "$several" ]; then
    for ranks in 2 3; do
        on "$ranks" "$work/train" "${sets[@]}" "$work/state$ranks" 4
        on 1 "$work/train" "${sets[@]}" "$work/state$ranks" 5 # one rank goes on from there
        check "C, $ranks ranks and then 1: ends well" test $? = 0
        on "$ranks" "$work/train" "${sets[@]}" "$work/state$ranks" 10
        tail -n 5 "$work/one" >"$work/rest" && cp "$work/one" "$work/all" && cp "$work/rest" "$work/one"
        check "C, $ranks ranks: as one" like_one
        cp "$work/all" "$work/one"
    done
    on 2 bash -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then (until grep -q "epoch=" "$0"; do sleep 0.05; done; kill -TERM $$) & fi; exec "$@"' "$work/log" \
        "$work/train" "${sets[@]}" "$work/stopped" 1000000
    check "C: SIGTERM at one of two ranks: all end well" test $? = 0
    check "C: and a checkpoint is there" test -s "$work/stopped"
else
    skip 6 "no mpirun, or no plug-in for Open MPI: the C example on several ranks"
fi

python=
for path in python3 /usr/bin/python3; do
    [ -z "$python" ] && "$path" -c 'import numpy' 2>/dev/null && python=$path
done
if [ -z "$python" ]; then
    skip 5 "no python3 with NumPy: the example in Python"
else
    on 1 "$python" examples/allreduce-python/train.py "${sets[@]}" "$work/py1" 10
    check "Python, 1 rank" test $? = 0
    check "Python, 1 rank: as C" like_one
    on 1 "$work/train" "${sets[@]}" "$work/py1" 11
    check "C goes on from Python's checkpoint" grep -q 'epoch=11 ' "$work/log"
    if [ -n "$several" ]; then
        on 2 "$python" examples/allreduce-python/train.py "${sets[@]}" "$work/py2" 10
        check "Python, 2 ranks" test $? = 0
        check "Python, 2 ranks: as one" like_one
    else
        skip 2 "no mpirun, or no plug-in for Open MPI: the Python example on several ranks"
    fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
