#!/bin/bash
# served.sh - jobs with parameter servers, from outside: `train` beside `train`, each with its own /opt/ml, as hosts of one machine. In
# sync mode they get what one process gets, however hosts, workers and servers are spread and wherever they go on, also with tables
# that travel by rows; asynchronous ones lose no gradient of any worker; one culprit however one dies, one checkpoint whoever is told
# to stop; no stranger is listened to.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/gpu.bash
if [ "${TY_VARIANT:-release}" != release ] || [ ! -e "$BIN/../lib/libtrainyard-ucx.so" ]; then
    skip "parameter servers" "libtrainyard-ucx.so is of the release variant, and needs UCX"
    finish_tests
    exit
fi
LIMIT=${LIMIT:-900}
. tests/dist/trees.bash
tree_recipe() {
    sed -i 's/adamw/adam/; s/keep: 3/keep: 9/' "$ML/code/train.yaml"
    recipe "strategy: ${strategy-parameter_server}"
    [ -z "${by_rows-}" ] || tables
}
# In place of the perceptron: each pixel's value has a row of its own in two tables; a batch names a third of them.
tables() {
    sed -i 's/shape: .1, 8, 8., scale: 0.0625/shape: [64], type: int64/' "$ML/code/train.yaml"
    recipe "sparse_rows: true"
    cat >"$ML/code/model.c" <<'C'
#include <trainyard/model.h>

void model(ty_net *net)
{
    ty_var place = ty_mul(net, ty_iota(net, "i64", ty_dims(64), 0), ty_number(net, "i64", 32));
    ty_var ids = ty_add(net, ty_input(net, "image", "i64[batch,64]"), place);
    ty_var e = ty_reduce_sum(net, ty_embedding(net, "deep", ids, 2048, 8, .weight = ty_normal(0, 0.1)), ty_dims(1), false);
    ty_var wide = ty_reduce_sum(net, ty_embedding(net, "wide", ids, 2048, 10, .weight = ty_normal(0, 0.1)), ty_dims(1), false);
    ty_output(net, "logits", ty_add(net, wide, ty_linear(net, "out", e, 10)));
}
C
}
host_address() { echo "127.0.0.1:$((PORT + $1))"; } # UCX connects to no other address of this machine
host_settings() { echo "--distributed.server_port=$((PORT + 5))"; }
# Without what depends on the order in which gradients come.
numbers() { sed 's/^\[1,[0-9]*\]<stdout>: *//' "$1" | grep -E '^(val )?step=' | sed 's/ \(samples_per_s\|grad_norm\|loss\)=.*//'; }
losses() { sed 's/^\[1,[0-9]*\]<stdout>: *//' "$1" | grep -E "^val step=" | tail -n 1; }
rank_of() { # TREE LOCAL_RANK
    local p
    for p in $(ranks_of "$1"); do tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "LOCAL_RANK=$2" && echo "$p"; done
}
checkpoints() { find "$W/$1/checkpoints" -name MANIFEST.json 2>/dev/null | wc -l; }
# all_of N: the weights that were written have seen so many gradients.
all_of() { has "all gradients are in the model" "$W/err.1" "server: $1 gradients, staleness"; }

by_rows=1
strategy=one_device tree one 1
SAGEMAKER_BASE_DIR=$W/algo-1 run --log_every=1
same "one process" 0 $rc
cp "$W/out" "$W/out.1"
ONE=$W
losses "$ONE/out.1" >"$ONE/end"

# ---- in sync mode: the numbers of one process ----
tree sync 2
hosts_run --processes_per_host=2 --distributed.server_mode=sync --max_steps=20
same "exit statuses" "0 0" "$statuses"
has "the map" "$W/err.1" "algo-1:2+1 algo-2:2+1"
all_of 20
ok "the other host writes no model" test ! -e "$W/algo-2/model/model.safetensors"
same "nor checkpoints" 0 "$(checkpoints algo-2)"
hosts 1
hosts_run --distributed.server_mode=sync --max_steps=40 --distributed.partitioner=fixed
same "one worker and one server go on" 0 "$statuses"
has "where they were" "$W/err.1" "resuming at step 20 of 40"
moved=$(sed -n 's/.* \([0-9]*\)\.[0-9] kB a step$/\1/p' "$W/err.1")
ok "tables travel by rows ($moved kB a step, whole 296)" test "$moved" -lt 150
hosts 2
hosts_run --distributed.server_mode=sync
same "two and two go on" "0 0" "$statuses"
has "where it was" "$W/err.1" "resuming at step 40 of 60"
losses "$W/out.1" >"$W/end"
alike "to the end of one process" "$ONE/end" "$W/end"
ok "and weights, nearly" near "$ONE/algo-1" "$W/algo-1"

tree backup 2
hosts_run --processes_per_host=2 --distributed.server_mode=sync --distributed.backup_workers=1 --epochs=1
same "with a backup worker: exit statuses" "0 0" "$statuses"
by_rows=

# ---- in sync mode with parts of different lengths: 5 batches and a half on one host, 10 on the other ----
# uneven NAME STRATEGY: hosts with files of their own; their weights after it are $W/algo-1's.
uneven() {
    strategy=$2 tree "$1" 2
    echo '{"train": {"S3DistributionType": "ShardedByS3Key", "ContentType": "text/csv"}, "test": {}}' |
        tee "$W/algo-1/input/config/inputdataconfig.json" >"$W/algo-2/input/config/inputdataconfig.json"
    digits 44 1 >"$W/algo-1/input/data/train/part.csv"
    digits 80 2 >"$W/algo-2/input/data/train/part.csv"
}
for case in "random drop 15" "random join 30" "random pad 30" "stream drop 15" "stream join 30" "stream pad 30"; do
    read -r access how count <<<"$case"
    host_address() { echo "127.0.0.$1:$PORT"; }
    host_settings() { :; }
    uneven "ranks_${access}_$how" data_parallel
    hosts_run --data.train.access="$access" --data.train.remainder="$how"
    same "ranks, $access, $how" "0 0" "$statuses"
    RANKS=$W
    host_address() { echo "127.0.0.1:$((PORT + $1))"; }
    host_settings() { echo "--distributed.server_port=$((PORT + 5))"; }
    uneven "uneven_${access}_$how" parameter_server
    for last in --max_steps=8 ""; do
        hosts_run --data.train.access="$access" --data.train.remainder="$how" --distributed.server_mode=sync $last
        same "workers, $access, $how $last" "0 0" "$statuses"
    done
    has "which go on within an epoch" "$W/err.1" "resuming at step 8"
    same "end together" "$count" "$(numbers "$W/out.1" | grep ^step | tail -n 1 | sed 's/step=\([0-9]*\).*/\1/')"
    ok "with the weights of ranks" near "$RANKS/algo-1" "$W/algo-1"
done
uneven scheduled parameter_server
hosts_run --distributed.server_mode=sync --schedule=cosine
ok "a schedule over parts of different lengths" test "$statuses" != "0 0"
has "is refused, with both" "$W/algo-1/output/failure" "5 batches on one worker and 10 on another"
uneven gathered parameter_server
hosts_run --update_every=3
ok "update_every" test "$statuses" != "0 0"
has "is refused, with what to do" "$W/err.1" "take a batch_size that is 3 times larger"

# ---- asynchronous, by the platform's hyperparameter; worker 0 has fewer samples and is the first to end ----
strategy=auto tree async 2
for n in 1 2; do
    echo '{"sagemaker_parameter_server_enabled": "true"}' >"$W/algo-$n/input/config/hyperparameters.json"
    echo '{"train": {"S3DistributionType": "ShardedByS3Key", "ContentType": "text/csv"}, "test": {}}' \
        >"$W/algo-$n/input/config/inputdataconfig.json"
done
digits 64 1 >"$W/algo-1/input/data/train/part.csv"
digits 640 2 >"$W/algo-2/input/data/train/part.csv"
hosts_run --distributed.server_mode=bounded --distributed.staleness=100000
same "exit statuses" "0 0" "$statuses"
has "who asked for it" "$W/err.1" 'hyperparameter "sagemaker_parameter_server_enabled"'
all_of $((3 * 4 + 3 * 40))
ok "the model of the first worker" test -s "$W/algo-1/model/model.safetensors"

# ---- stopped, and on ----
by_rows=1 tree stopped 2
hosts_start --epochs=100000 --checkpoint.every="1000000 steps"
ok "it trains" until_true 60 has_steps "$W/out.1" 5
kill -TERM "$(children_of "${pids[1]}" | head -n 1)" # of algo-2 alone
hosts_end
same "told on one host, both stop" "143 143" "$statuses"
same "one checkpoint" "1 0" "$(checkpoints algo-1) $(checkpoints algo-2)"
ok "a model" test -e "$W/algo-1/model/model.safetensors"
ok "no failure" test ! -e "$W/algo-1/output/failure" -a ! -e "$W/algo-2/output/failure"
ok "nobody is left" until_true 5 none_left

# ---- failures ----
# killed WHO LOCAL_RANK WORDS: of algo-2.
killed() {
    local victim start_ms took_ms n
    tree "killed_$1" 2
    hosts_start --epochs=100000
    ok "it trains" until_true 60 has_steps "$W/out.1" 5
    victim=$(rank_of "$W/algo-2" "$2")
    start_ms=$(date +%s%3N)
    kill -9 "$victim"
    hosts_end
    took_ms=$(($(date +%s%3N) - start_ms))
    same "exit statuses" "137 137" "$statuses"
    for n in 1 2; do has "the culprit, on algo-$n" "$W/algo-$n/output/failure" "$3(algo-2, pid $victim) was killed by signal 9"; done
    same "who is told once" 1 "$(head -n 1 "$W/algo-1/output/failure" | grep -o algo-2 | wc -l)"
    ok "soon ($took_ms ms)" test $took_ms -lt 60000
    ok "nobody is left" until_true 5 none_left
}
killed worker 0 "rank 2 "
killed server 1 "rank 3, a parameter server "

# ---- all ranks anew, and a stranger ----
tree again 2
hosts_start --distributed.restarts=1 --epochs=100000
ok "it trains" until_true 60 has_steps "$W/out.1" 20
TRAINYARD_SECRET=guessed "$BIN/trainyard" train "$W/algo-1/code/train.yaml" --strategy=one_device --device=cpu \
    --data-dir="$W/algo-1/input/data" --output-dir="$W/x" --servers="127.0.0.1:$((PORT + 5)),127.0.0.1:$((PORT + 6))" --worker=0/2 \
    >"$W/stranger" 2>&1 </dev/null &
stranger=$!
dropped="shard 0: dropped a message that does not prove"
ok "a stranger is heard" until_true 50 grep -q "$dropped" "$W/err.1"
kill -9 $stranger 2>/dev/null
lacks "and gets no answer" "$W/stranger" "step="
kill -9 "$(rank_of "$W/algo-2" 1)"
ok "a server was killed: from the newest checkpoint" until_true 100 grep -q "resuming at step" "$W/err.1"
resumed=$(numbers "$W/out.1" | wc -l)
ok "the job goes on" until_true 100 has_steps "$W/out.1" $((resumed + 20))
kill -TERM "$(children_of "${pids[0]}" | head -n 1)"
hosts_end
same "until it is told to stop" "143 143" "$statuses"
same "the stranger is told of once" 1 "$(grep -c "$dropped" "$W/err.1")"
finish_tests
