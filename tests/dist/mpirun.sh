#!/bin/bash
# mpirun.sh - the real mpirun with the platform's own options, on hosts that have no ssh: our agents start its orted.
cd "$(dirname "$0")/../.." || exit 1
. tests/dist/hosts.bash
if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then
    skip "mpirun" "no mpirun or mpicc here (packages openmpi-bin, libopenmpi-dev)"
    finish_tests
    exit
fi
if [ "${TY_VARIANT:-release}" != release ]; then
    skip "mpirun" "MPI is not built for the variant $TY_VARIANT"
    finish_tests
    exit
fi
need_hosts
hosts_up 2
AGENT=$(realpath "${TY_BUILD:-build/release}/tools/agent")
. tests/ports.bash
CLIENT="$BIN/trainyard rsh"
CHECKS=$SCRATCH/mpi-checks
mpicc -O1 -o "$CHECKS" tests/dist/checks.c || exit 1
# As the platform's toolkit says it.
mpirun=(mpirun --host algo-1:2,algo-2:2 -np 4 --allow-run-as-root --tag-output -mca btl_tcp_if_include eth0
    -mca oob_tcp_if_include eth0 -mca plm_rsh_no_tree_spawn 1 -bind-to none -map-by slot -mca pml ob1 -mca btl ^openib
    -mca orte_abort_on_non_zero_status 1 -mca btl_vader_single_copy_mechanism none -mca mpi_yield_when_idle 1 -x PATH)

# job [OPTIONS --] PROGRAM...: both agents; statuses in $statuses, what they print in $W/0 and $W/1.
job() {
    local i pids=()
    ports 1
    for i in 0 1; do
        LIMIT=300 on algo-$((i + 1)) "$AGENT" --hosts algo-1:1,algo-2:0 --address names --self $i --port $PORT --interface eth0 \
            --mpirun "$CLIENT" -- "${mpirun[@]}" "$@" >"$W/$i" 2>"$W/$i.err" </dev/null &
        pids+=($!)
    done
    wait "${pids[0]}"
    statuses=$?
    wait "${pids[1]}"
    statuses+=" $?"
}
# Nothing of Open MPI runs, and no session of it is there. (Segments of ranks that were killed lie in /dev/shm until the
# container goes: mpirun names them, not we.)
left() { for h in algo-1 algo-2; do left_on $h | grep -v 'shm: vader_segment'; done; }

begin checks
job "$CHECKS"
same "statuses" "0 0" "$statuses"
same "checks" 14 "$(grep -c '^\[1,0\]<stdout>:ok ' "$W/0")"
[ "$(grep -c ':ok ' "$W/0")" = 14 ] || cat "$W"/[01] "$W"/[01].err
same "nothing is left" "" "$(left)"

begin status
job sh -c '[ $OMPI_COMM_WORLD_RANK = 3 ] && exit 9; sleep 1000'
same "of the rank that failed, on all hosts" "9 9" "$statuses"
# (Which rank it was mpirun says only sometimes, also where nothing of ours has a part in it.)
has "told by mpirun" "$W/0.err" "1 process returned"
same "nothing is left" "" "$(left)"

begin hello
job hostname
same "two on each host" "algo-1 algo-1 algo-2 algo-2" "$(sed -n "s/^\[1,[0-3]\]<stdout>://p" "$W/0" | sort | xargs)"
finish_tests
