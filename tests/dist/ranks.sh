#!/bin/bash
# ranks.sh [CYCLES] - Open MPI's programs started by our agents' part: two hosts and more on this machine, without mpirun.
# CYCLES: how often jobs are started and ended in a row (20).
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/dist/harness.bash
cycles=${1:-20}
need_mpicc
checks=$SCRATCH/checks
mpicc -O1 -o "$checks" tests/dist/checks.c || exit 1

# ---- the checks: 2 hosts of 2 ranks, uneven hosts, one host ----
for layout in 2,2 1,3,1 3; do
    begin "checks $layout"
    ranks --hosts $layout "$checks"
    same "status" 0 $rc
    same "checks" 14 "$(grep -c '^\[1,0\]<stdout>:ok ' "$OUT")"
done

# ---- every rank knows its number, also from the environment ----
begin environment
ranks --hosts 1,2 sh -c 'echo $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_RANK/$OMPI_COMM_WORLD_LOCAL_SIZE $GROUP_RANK $MASTER_ADDR'
same "three ranks" "[1,0]<stdout>:0/3 0/1 0 127.0.0.1
[1,1]<stdout>:1/3 0/2 1 127.0.0.1
[1,2]<stdout>:2/3 1/2 1 127.0.0.1" "$(sort "$OUT")"

# ---- the switch that is not documented: should Open MPI stop needing it, or stop knowing it, this says so ----
# Without it each program is a job of its own and starts a daemon of Open MPI's for that, which a loaded machine may
# refuse it: then it says so, and what is shown here holds too.
begin direct_launch
ranks "$checks" hello
same "one job of four" 4 "$(grep -c 'rank . of 4' "$OUT")"
ranks env -u JSM_JSRUN_PORT "$checks" hello
same "without JSM_JSRUN_PORT: no job of four" 0 "$(grep -c 'rank . of 4' "$OUT")"
same "but jobs of one" yes "$(cat "$OUT" "$ERR" | grep -qa 'rank 0 of 1\|Unable to start a daemon' && echo yes)"

# ---- failure: the first culprit is named, and everything ends ----
begin abort
ranks "$checks" abort
same "status of MPI_Abort" 42 $rc
has "culprit" "$ERR" 'first culprit: rank 1 called MPI_Abort with 42'
has "what MPI says" "$ERR" '[1,1]<stderr>:MPI_ABORT was invoked on rank 1'
same "nothing runs" "" "$(running)"
begin die
ranks "$checks" die
same "status of a kill" 137 $rc
has "culprit" "$ERR" 'first culprit: rank 1 was killed by 9'
same "nothing runs" "" "$(running)"
begin exits
ranks --without-mpi sh -c '[ $RANK = 3 ] && exit 3; sleep 1000'
same "status" 3 $rc
has "culprit" "$ERR" 'first culprit: rank 3 ended with 3'
begin absent
ranks "$SCRATCH/nothing"
same "status" 66 $rc
has "says what" "$ERR" "rank 0: cannot execute \"$SCRATCH/nothing\""

# ---- an agent that is killed takes its ranks along; what it left is removed by the next ----
begin killed
: >"$OUT" # before it begins: no line of an earlier run is taken for one of this
"$RANKS" "$checks" wait >"$OUT" 2>"$ERR" &
pid=$!
until_true 30 grep -q waiting "$OUT"
kill -9 $pid $(children_of $pid | grep -vxF "$(pids_of "$checks")")
wait $pid 2>/dev/null
until_true 10 nothing_runs
same "nothing runs" "" "$(running)"
ranks --without-mpi true
same "folders" "" "$(folders)"

# ---- output ----
begin forward
ranks --hosts 1,1,1 --forward --without-mpi sh -c 'echo line $RANK; echo err $RANK >&2'
same "own lines and those that the first host shows" 5 "$(grep -c '>:line' "$OUT")"
same "of standard error" 5 "$(grep -c '>:err' "$ERR")"
begin terminal
ranks --hosts 1 --terminal --without-mpi sh -c 'test -t 1 && echo yes; test -t 2 || printf "no\n" >&2'
same "standard output is a terminal" "[1,0]<stdout>:yes" "$(cat "$OUT")"
has "standard error is not" "$ERR" "[1,0]<stderr>:no"

# ---- start and end, again and again ----
begin cycles
LIMIT=$((cycles * 30 + 300)) ranks --hosts 1,1 --quiet --cycles "$cycles" "$checks" hello
same "status of $cycles jobs in a row" 0 $rc
same "no more descriptors or threads" "" "$(cat "$ERR")"
same "nothing runs" "" "$(running)"
same "folders" "" "$(folders)"
finish_tests
