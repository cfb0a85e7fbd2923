#!/bin/bash
# Collectives of processes: build/.../tools/ranks as ranks of mpirun, every kind, type and way to reduce, with waiting that
# blocks and waiting that sleeps, in one piece and in many, in plain and in rank order.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${TY_BUILD:-build/release} passed=0 failed=0 skipped=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
close() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}
if ! command -v mpirun >/dev/null; then
    echo "skip: no mpirun here" && skipped=1 && close
elif [ "${TY_VARIANT:-release}" != release ]; then
    echo "skip: Open MPI is not built for the variant ${TY_VARIANT}" && skipped=1 && close
fi

# ranks N TASK OPTION...: output of all ranks, and its status. Ranks share cores with whoever tests.
ranks() {
    local n=$1
    shift
    timeout -k 5 60 mpirun -np "$n" --oversubscribe --bind-to none --mca pml ob1 --mca btl self,vader,tcp \
        --mca btl_vader_single_copy_mechanism none "$build/tools/ranks" "$@" 2>&1
}
# check NAME N TASK OPTION... -- WORD...: ends well and says the words.
check() {
    local name=$1 output status args=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do args+=("$1") && shift; done
    shift
    output=$(ranks "${args[@]}")
    status=$?
    for word; do [[ $output == *"$word"* ]] || status="$status, and \"$word\" is missing"; done
    if [ "$status" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s: status %s\n%s\n' "$name" "$status" "$(printf '%s\n' "$output" | head -n 30)"
    fi
}

check "one rank" 1 all -- "1 ranks"
check "two ranks, many pieces, asleep between looks" 2 all --piece 4096 -- "2 ranks, 2 on this host"
check "two ranks in calls that block" 2 all --cores 2 --threads 1 -- "2 ranks"
check "three ranks in rank order, many pieces" 3 all --piece 4096 --rank-order -- "3 ranks"
check "four ranks" 4 all -- "4 ranks, 4 on this host"
close
