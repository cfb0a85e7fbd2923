#!/bin/bash
# program.sh - programs of users as ranks on several hosts, as `train` starts them: told who they are, one culprit where one
# fails, the platform's mpirun where the job has words of its own for it.
cd "$(dirname "$0")/../.." || exit 1
. tests/dist/hosts.bash
need_hosts
hosts_up 2

# tree NAME HYPERPARAMETERS SCRIPT: $W/algo-1 and $W/algo-2, whose code is train.sh.
tree() {
    local n
    begin "$1"
    hyper "$2"
    printf '#!/bin/sh\n%s\n' "$3" >"$ML/code/train.sh"
    chmod +x "$ML/code/train.sh"
    for n in 1 2; do
        cp -r "$ML" "$W/algo-$n"
        echo "{\"current_host\": \"algo-$n\", \"hosts\": [\"algo-1\", \"algo-2\"], \"network_interface_name\": \"eth0\"}" \
            >"$W/algo-$n/input/config/resourceconfig.json"
    done
}
both() {
    local n pids=()
    for n in 1 2; do
        SAGEMAKER_BASE_DIR=$W/algo-$n LIMIT=300 on algo-$n "$BIN/train" >"$W/out.$n" 2>"$W/err.$n" </dev/null &
        pids+=($!)
    done
    wait "${pids[0]}"
    statuses=$?
    wait "${pids[1]}"
    statuses+=" $?"
    cp "$W/err.1" "$W/err"
}
MPI='"sagemaker_program": "train.sh", "sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "2"'
said() { cat "$W"/out.[12] | sed 's/^\[1,[0-9]*\]<stdout>: *//' | sort -u | xargs; }

tree ranks "{$MPI}" 'echo "$RANK/$WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_RANK@$SM_CURRENT_HOST"'
both
same "statuses" "0 0" "$statuses"
same "who they are" "0/4=0@algo-1 1/4=1@algo-1 2/4=0@algo-2 3/4=1@algo-2" "$(said)"
ok "success on both" test -e "$W/algo-1/output/success" -a -e "$W/algo-2/output/success"

tree fails "{$MPI}" '[ "$RANK" = 3 ] && exit 7; sleep 1000'
both
same "statuses" "7 7" "$statuses"
for n in 1 2; do has "the culprit, on algo-$n" "$W/algo-$n/output/failure" "rank 3 (algo-2"; done

tree tensorflow '{"sagemaker_program": "train.sh", "sagemaker_multi_worker_mirrored_strategy_enabled": "true"}' 'echo "$TF_CONFIG"'
both
same "statuses" "0 0" "$statuses"
has "TF_CONFIG" "$W/out.2" '{"cluster": {"worker": ["algo-1:8890", "algo-2:8890"]}, "environment": "cloud", "task": {"index": 1, "type": "worker"}}'

if command -v mpirun >/dev/null; then
    tree words "{$MPI, \"sagemaker_mpi_custom_mpi_options\": \"-x COLOUR=blue\"}" \
        'echo "$OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE $COLOUR $SM_USER_ENTRY_POINT"'
    both
    same "statuses" "0 0" "$statuses"
    same "mpirun's ranks" "0/4 blue train.sh 1/4 blue train.sh 2/4 blue train.sh 3/4 blue train.sh" \
        "$(cat "$W"/out.[12] | grep -o '[0-9]/4 blue train.sh' | sort -u | xargs)"
else
    skip "words for mpirun" "no mpirun here (package openmpi-bin)"
fi
finish_tests
