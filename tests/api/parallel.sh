#!/bin/bash
# Programs of users on several ranks: the checks of checks.h in a program that has nothing of ours but the header and the library,
# alone and with 2 to 4 ranks under mpirun; a rank that is told to stop, one that leaves, a second init; what `make install`
# leaves, and that a program is built from it by pkg-config alone.
set -u
cd "$(dirname "$0")/../.." || exit 1
bin=${TY_BIN:-build/bin} variant=${TY_VARIANT:-release} TY_BUILD=${TY_BUILD:-build/release}
lib=$(realpath "$bin/../lib")
work=$(mktemp -d "${TMPDIR:-/tmp}/api-XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE TRAINYARD_ENGINE

check() { # WHAT COMMAND...
    if "${@:2}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
        tail -n 25 "$work/log"
    fi
}
skip() { # COUNT REASON
    skipped=$((skipped + $1))
    echo "skip: $2"
}
has() { grep -qE "$1" "$work/log"; }

[ "$variant" = release ] && seconds=600 || seconds=1200
case $variant in
asan) flags=-fsanitize=address ;;
ubsan) flags=-fsanitize=undefined ;;
tsan) flags=-fsanitize=thread ;;
*) flags= ;;
esac
gcc -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 $flags -Iinclude -o "$work/parallel" tests/api/parallel.c "-L$lib" -ltrainyard \
    "-Wl,-rpath,$lib" -lm -pthread >"$work/log" 2>&1
check "a program is built from the header and the library" test -x "$work/parallel"
printf '#include <trainyard/trainyard.h>\n#include <trainyard/trainyard.h>\nint main() { return trainyard_rank() != TRAINYARD_E_STATE; }\n' >"$work/plain.cc"
if command -v g++ >/dev/null; then
    g++ -Wall -Wextra -Werror $flags -Iinclude -o "$work/plain" "$work/plain.cc" "-L$lib" -ltrainyard "-Wl,-rpath,$lib" >"$work/log" 2>&1
    check "a C++ program too" "$work/plain"
else
    skip 1 "no C++ compiler"
fi
nm -D --defined-only "$lib/libtrainyard.so" | awk '{print $3}' | grep -v '^trainyard_' >"$work/log"
check "the library shows nothing but trainyard_*" test ! -s "$work/log"
grep -oE '\btrainyard_[a-z_]+\(' include/trainyard/trainyard.h | tr -d '(' | sort -u | grep -vE '^trainyard_(view|with|[fi](32|64))$' >"$work/declared"
nm -D --defined-only "$lib/libtrainyard.so" | awk '{print $3}' | sort -u | diff "$work/declared" - >"$work/log"
check "and all that the header declares" test ! -s "$work/log"

# ranks N SITUATION: status and output in $work/log, with a deadline that kills.
ranks() {
    if [ "$1" = 1 ]; then
        timeout -k 1 $seconds "$work/parallel" "$work" "$2" >"$work/log" 2>&1
    else
        # Again where mpirun heard that a rank had ended before it heard that it had finalized (tests/dist/comm.sh).
        local try status
        for try in 1 2 3 4 5; do
            OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 1 $seconds mpirun --oversubscribe --bind-to none \
                --mca pml ob1 --mca btl self,vader,tcp --mca btl_vader_single_copy_mechanism none -np "$1" "$work/parallel" "$work" \
                "$2" >"$work/log" 2>&1
            status=$?
            [ $status != 0 ] && grep -q "exiting improperly" "$work/log" || break
        done
        return $status
    fi
}
# all_checks N: each check is a test.
all_checks() {
    ranks "$1" checks
    check "$1 ranks: all checks, and a good end" test $? = 0
    passed=$((passed + $(grep -c '^ok ' "$work/log")))
    check "$1 ranks: none is left out" test "$(grep -c '^ok ' "$work/log")" = "$(grep -cE '^    \{"' tests/api/checks.h)"
    check "$1 ranks: a metric line" has '^step=1200 epoch=3 loss=[0-9.]+ accuracy=0.5$'
}

sizes=1
if ! command -v mpirun >/dev/null || [ ! -e "$lib/libtrainyard-mpi.so" ]; then
    skip 9 "no mpirun, or no plug-in for Open MPI: several ranks as processes"
elif [ "$variant" = tsan ]; then
    sizes='1 2' # Open MPI itself is not judged
elif [ "$variant" != release ] && [ "$variant" != debug ]; then
    skip 9 "ranks as processes under mpirun: Open MPI is not built for $variant"
else
    sizes='1 2 4' # 3 below
fi
for n in $sizes; do all_checks "$n"; done
if [ "$sizes" != 1 ] && [ -x "$TY_BUILD/tools/launch" ]; then
    # The ranks of two hosts, started as the agents start them.
    mkdir "$work/hosts"
    timeout -k 1 600 "$TY_BUILD/tools/launch" --hosts 2,1 "$work/parallel" "$work/hosts" checks >"$work/log" 2>&1
    check "2 hosts without mpirun: all checks, and a good end" test $? = 0
    check "2 hosts without mpirun: none is left out" \
        test "$(grep -cF '[1,0]<stdout>:ok ' "$work/log")" = "$(grep -cE '^    \{"' tests/api/checks.h)"
else
    skip 2 "2 hosts: no plug-in for Open MPI, or the tools are not built"
fi
if [ "$sizes" != 1 ] && [ "$variant" = release ]; then
    # A job of train whose program is compiled there, and is three ranks.
    mkdir -p "$work/ml/input/config" "$work/ml/code"
    cp tests/api/*.h "$work/ml/code/" && { echo '#define _GNU_SOURCE'; cat tests/api/parallel.c; } >"$work/ml/code/train.c"
    echo '{"sagemaker_program": "train.c", "sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "3"}' \
        >"$work/ml/input/config/hyperparameters.json"
    echo '{"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}' >"$work/ml/input/config/resourceconfig.json"
    SAGEMAKER_BASE_DIR=$work/ml timeout -k 1 600 "$bin/train" >"$work/log" 2>&1
    check "a job of 3 ranks: all checks, and a good end" test $? = 0
    check "a job of 3 ranks: none is left out" \
        test "$(grep -cF '[1,0]<stdout>:ok ' "$work/log")" = "$(grep -cE '^    \{"' tests/api/checks.h)"
else
    skip 2 "a job of 3 ranks: no plug-in for Open MPI, or not the release variant"
fi
ranks 1 twice
check "a second init is refused" has '^code -1: trainyard_init was called twice'
if [ "$sizes" != 1 ]; then
    ranks 3 stop
    check "one rank is told to stop: all end well" test $? = 0
    check "after the same step" test "$(grep -c '^stopped after step 8$' "$work/log")" = 3
    ranks 3 leave
    check "a rank leaves: the others end well" test $? = 0
    check "and are told" test "$(grep -c '^told: rank 0 has shut down while this rank calls allreduce' "$work/log")" = 2
fi

if [ "$variant" != release ]; then
    skip 3 "make install: of the release variant"
else
    make -s install "DESTDIR=$work/dest" PREFIX=/opt/trainyard >"$work/log" 2>&1
    check "make install" test $? = 0
    (cd "$work/dest/opt/trainyard" && ls -d bin/train bin/trainyard lib/libtrainyard.so lib/libtrainyard.so.1 lib/pkgconfig/trainyard.pc \
        include/trainyard/trainyard.h include/trainyard/model.h) >"$work/log" 2>&1
    check "programs, library, headers and trainyard.pc" test $? = 0
    if command -v pkg-config >/dev/null; then
        export PKG_CONFIG_PATH=$work/dest/opt/trainyard/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/dest
        printf '#include <stdio.h>\n#include <trainyard/trainyard.h>\nint main(void) { return trainyard_init(NULL) || trainyard_size() != 1 || trainyard_shutdown(); }\n' >"$work/one.c"
        gcc -o "$work/one" "$work/one.c" $(pkg-config --cflags --libs trainyard) >"$work/log" 2>&1
        check "a program built by pkg-config runs" env "LD_LIBRARY_PATH=$work/dest/opt/trainyard/lib" "$work/one"
    else
        skip 1 "no pkg-config"
    fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
