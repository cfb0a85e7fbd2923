#!/bin/bash
# train.sh - the built-in trainer on several hosts and ranks, from outside: `train` beside `train`, each with its own
# /opt/ml, on addresses of this machine. One result however the ranks are spread, one culprit however one dies, one
# checkpoint whoever is told to stop, and any other number of ranks goes on from it.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/gpu.bash
. tests/dist/trees.bash
need_mpi "several hosts"

# timelines RANKS: each rank's file is JSON in which each of 60 steps sums gradients.
timelines() {
    python3 - "$1" "$W"/algo-*/output/data/timeline/collectives-rank-*.json <<'P'
import json, sys
files = [json.load(open(f)) for f in sys.argv[2:]]
assert len(files) == int(sys.argv[1]), sys.argv
for f in files:
    spans = [e for e in f["traceEvents"] if e["ph"] == "X"]
    sums = [e for e in spans if e["name"].startswith("gradients") and e["cat"] == "all_reduce"]
    assert len(sums) >= 60 and all(e["dur"] > 0 and e["args"]["bytes"] > 0 for e in sums), len(sums)
    assert any(e["cat"] == "wait" for e in spans)
P
}

# losses MOST STEPS A B: those of the first so many steps of two trees differ by no more than this part of them.
losses() {
    python3 - "$@" <<'P'
import json, sys
def read(tree):
    lines = (json.loads(l) for l in open(tree + "/output/data/metrics.jsonl"))
    return [l["loss"] for l in lines if l.get("split") == "train"][:steps]
most, steps = float(sys.argv[1]), int(sys.argv[2])
a, b = read(sys.argv[3]), read(sys.argv[4])
assert len(a) == len(b) == steps, (len(a), len(b))
worst = max(abs(x - y) / x for x, y in zip(a, b))
print("losses of %d steps: %.1e" % (steps, worst))
sys.exit(not worst <= most)
P
}
# sums TREE: how many sums of gradients rank 0 has taken part in.
sums() { grep -oE '"name": ?"gradients? of' "$1"/output/data/timeline/collectives-rank-*0.json | wc -l; }

tree one 1
SAGEMAKER_BASE_DIR=$W/algo-1 run --log_every=1
same "one process" 0 $rc
lacks "which is no rank" "$W/err" "ranks on"
numbers "$W/out" >"$SCRATCH/one.numbers"
ONE=$W/algo-1

# ---- one result ----
# Ranks add up in another order than one process, which is seen in the last bit or two of a sum, and so in a loss: 1e-6 of it, of
# every step. Larger it becomes only where a gradient is nothing but rounding, since AdamW makes a whole update of that too: here
# none is. What is told is rounded, and has been through an evaluation as well: 3e-4.
for case in "2 1" "2 2" "1 2"; do
    tree "ranks_${case/ /x}" "${case% *}"
    hosts_run --processes_per_host="${case#* }" --distributed.timeline=true
    same "exit statuses" "$(printf '0 %.0s' $(seq "$HOSTS") | xargs)" "$statuses"
    numbers "$W/out.1" >"$W/numbers"
    alike "the numbers of one process" "$SCRATCH/one.numbers" "$W/numbers"
    ok "every loss of one process with the batch of all" losses 1e-6 60 "$ONE" "$W/algo-1"
    ok "the weights of one process, nearly" near "$ONE" "$W/algo-1"
    has "exposed communication, at the end" "$W/err.1" "  comm  "
    has "in metric lines" "$W/out.1" " comm_ms="
    has "in the file of metrics" "$W/algo-1/output/data/metrics.jsonl" '"comm_ms":'
    ok "and as a picture of each rank" timelines $((HOSTS * ${case#* }))
    has "in the banner" "$W/err.1" "$((HOSTS * ${case#* })) ranks, $((16 / HOSTS / ${case#* })) rows each"
    [ "$HOSTS" = 1 ] && continue
    ok "the other host writes no model" test ! -e "$W/algo-2/model/model.safetensors"
    ok "nor checkpoints" test ! -e "$W/algo-2/checkpoints/step-00000060"
    ok "both say that all is well" test -e "$W/algo-1/output/success" -a -e "$W/algo-2/output/success"
    same "rank 0 alone logs" 1 "$(cat "$W"/out.[1-9] | sed 's/^\[1,[0-9]*\]<stdout>: *//' | grep -c '^step=60 ')"
done
# Gradients in buckets of the default size, which is all of them here, and in buckets of one tensor.
for case in "2 1 0" "1 2 0" "2 1 64"; do
    read -r n each bytes <<<"$case"
    tree "strict_${case// /_}" "$n"
    hosts_run --processes_per_host="$each" --deterministic=strict --distributed.bucket_bytes="$bytes" --distributed.timeline=true
    cat "$W/algo-1/model/model.safetensors" "$W/algo-1"/checkpoints/step-00000060/rank-00000.bin | sha256sum \
        >"$SCRATCH/strict.${case// /_}"
    sums "$W/algo-1" >"$SCRATCH/sums.${case// /_}"
done
same "strict: the same bits however ranks are spread" "$(cat "$SCRATCH/strict.2_1_0")" "$(cat "$SCRATCH/strict.1_2_0")"
same "strict: and whatever the size of buckets" "$(cat "$SCRATCH/strict.2_1_0")" "$(cat "$SCRATCH/strict.2_1_64")"
ok "which are more if they are small" test "$(cat "$SCRATCH/sums.2_1_64")" -gt "$(cat "$SCRATCH/sums.2_1_0")"

tree sharding 2
hosts_run --processes_per_host=2 --distributed.optimizer_sharding=true
same "moments in parts: exit statuses" "0 0" "$statuses"
numbers "$W/out.1" >"$W/numbers"
alike "the numbers of one process" "$SCRATCH/one.numbers" "$W/numbers"
echo '{"current_host": "algo-1", "hosts": ["algo-1"]}' >"$W/algo-1/input/config/resourceconfig.json"
rm -r "$W/algo-1/checkpoints/step-00000055" "$W/algo-1/checkpoints/step-00000060"
HOSTS=1
hosts_run
same "one process goes on from what they left" 0 "$statuses"
has "where they were" "$W/err.1" "resuming at step 50 of 60"
numbers "$W/out.1" >"$W/numbers"
alike "to the same end" <(grep -E 'step=(5[1-9]|60) ' "$SCRATCH/one.numbers") "$W/numbers"
rm -r "$W/algo-1/checkpoints/step-00000055" "$W/algo-1/checkpoints/step-00000060"
hosts_run --processes_per_host=4 --distributed.optimizer_sharding=true
has "and in parts again" "$W/err.1" "resuming at step 50 of 60"
numbers "$W/out.1" >"$W/numbers"
alike "as well" <(grep -E 'step=(5[1-9]|60) ' "$SCRATCH/one.numbers") "$W/numbers"

# ---- any other number of ranks goes on ----
tree resume 2
hosts_run --max_steps=20
same "two ranks" "0 0" "$statuses"
HOSTS=1
echo '{"current_host": "algo-1", "hosts": ["algo-1"]}' >"$W/algo-1/input/config/resourceconfig.json"
hosts_run --max_steps=40
same "one goes on" 0 "$statuses"
has "where they were" "$W/err.1" "resuming at step 20 of 40"
hosts_run --processes_per_host=4
same "four go on" 0 "$statuses"
has "where it was" "$W/err.1" "resuming at step 40 of 60"
numbers "$W/out.1" >"$W/numbers"
alike "to the same end" <(grep -E 'step=(4[1-9]|5.|60) ' "$SCRATCH/one.numbers") "$W/numbers"
ok "and weights, nearly" near "$ONE" "$W/algo-1"

# ---- the end of an epoch: 330 rows are 20 batches and 10 rows ----
for remainder in pad join; do
    for ranks in 1 2 4; do
        tree "${remainder}_$ranks" 1
        digits 330 1 >"$W/algo-1/input/data/train/part.csv"
        hosts_run --processes_per_host="$ranks" --data.train.remainder="$remainder"
        same "$remainder, $ranks ranks: exit status" 0 "$statuses"
        numbers "$W/out.1" >"$SCRATCH/$remainder.$ranks"
    done
    same "$remainder: 3 x 21 steps" 63 "$(grep -c '^step=' "$SCRATCH/$remainder.1")"
    for ranks in 2 4; do alike "$remainder: one result" "$SCRATCH/$remainder.1" "$SCRATCH/$remainder.$ranks"; done
done
ok "rows that count and rows that do not" test "$(grep '^step=21 ' "$SCRATCH/pad.1")" != "$(grep '^step=21 ' "$SCRATCH/join.1")"

# ---- several instance groups ----
# in_groups HYPERPARAMETERS: algo-1 and algo-3 are machines of one kind, algo-2 of another.
in_groups() {
    local n of
    for n in 1 2 3; do
        of='"current_group_name": "narrow", "current_instance_type": "ml.c5.xlarge"'
        [ $n = 2 ] && of='"current_group_name": "wide", "current_instance_type": "ml.m5.4xlarge"'
        cat >"$W/algo-$n/input/config/resourceconfig.json" <<JSON
{"current_host": "algo-$n", $of, "hosts": ["algo-1", "algo-2", "algo-3"], "network_interface_name": "lo", "instance_groups": [
  {"instance_group_name": "narrow", "instance_type": "ml.c5.xlarge", "hosts": ["algo-1", "algo-3"]},
  {"instance_group_name": "wide", "instance_type": "ml.m5.4xlarge", "hosts": ["algo-2"]}]}
JSON
        echo "$1" >"$W/algo-$n/input/config/hyperparameters.json"
    done
}
tree one_of_24 1
SAGEMAKER_BASE_DIR=$W/algo-1 run --log_every=1 --batch_size=24
numbers "$W/out" >"$SCRATCH/one_of_24.numbers"
tree groups 3
in_groups '{}'
hosts_run --processes_per_host=2 --batch_size=24
same "all groups train together: exit statuses" "0 0 0" "$statuses"
has "two ranks on each host" "$W/err.1" "6 ranks on 3 hosts (data_parallel by the job): algo-1:2 algo-2:2 algo-3:2"
numbers "$W/out.1" >"$W/numbers"
alike "the numbers of one process" "$SCRATCH/one_of_24.numbers" "$W/numbers"
tree of_one_group 3
in_groups '{"sagemaker_mpi_enabled": "true", "sagemaker_distribution_instance_groups": "[\"narrow\"]"}'
hosts_run
same "one group trains together: exit statuses" "0 0 0" "$statuses"
has "its hosts" "$W/err.1" "(data_parallel by hyperparameter \"sagemaker_mpi_enabled\"): algo-1:1 algo-3:1"
numbers "$W/out.1" >"$W/numbers"
alike "the numbers of one process" "$SCRATCH/one.numbers" "$W/numbers"
lacks "the other host is no rank" "$W/err.2" "ranks on"
numbers "$W/out.2" >"$W/numbers"
same "and trains by itself" "" "$(diff "$SCRATCH/one.numbers" "$W/numbers" | head -n 2)"

# ---- files of its own for each host ----
tree sharded 2
for n in 1 2; do
    echo '{"train": {"S3DistributionType": "ShardedByS3Key", "ContentType": "text/csv"}, "test": {}}' \
        >"$W/algo-$n/input/config/inputdataconfig.json"
done
digits 200 1 >"$W/algo-1/input/data/train/part.csv"
digits 90 2 >"$W/algo-2/input/data/train/part.csv"
hosts_run --processes_per_host=2
same "exit statuses" "0 0" "$statuses"
has "as many batches as the smaller part has" "$W/err.1" "33 steps of 16 rows"
has "and all samples are told" "$W/err.1" "this host has 200 of 290 samples"
rm -r "$W"/algo-?/output "$W"/algo-?/checkpoints
hosts_run --processes_per_host=2 --data.train.remainder=join
same "one host has no more rows: exit statuses" "0 0" "$statuses"
has "as many batches as the larger part has" "$W/err.1" "75 steps of 16 rows"
rm "$W/algo-2/input/data/train/part.csv"
rm -r "$W"/algo-?/output "$W"/algo-?/checkpoints
hosts_run --distributed.restarts=1
same "no file for one host" "66 66" "$statuses"
same "one story" "$(sed -n 1p "$W/algo-1/output/failure")" "$(sed -n 1p "$W/algo-2/output/failure")"
has "which names the host" "$W/algo-1/output/failure" "algo-2"
has "and how often it was tried" "$W/err.1" "after 1 restart"

# ---- checkpoints in parts ----
# Hosts have a folder each, so none has all parts; and any number of ranks goes on from them.
tree parts 2
hosts_run --processes_per_host=2 --checkpoint.sharded=true --max_steps=40
same "exit statuses" "0 0" "$statuses"
for n in 1 2; do
    same "each rank's part lies on its host, algo-$n" "rank-0000$((2 * n - 2)).bin rank-0000$((2 * n - 1)).bin" \
        "$(cd "$W/algo-$n/checkpoints/step-00000040" && ls rank-* | xargs)"
    same "old ones are deleted, on algo-$n" 3 "$(ls "$W/algo-$n/checkpoints" | wc -l)"
done
same "one manifest" "$(sha256sum <"$W/algo-1/checkpoints/step-00000040/MANIFEST.json")" \
    "$(sha256sum <"$W/algo-2/checkpoints/step-00000040/MANIFEST.json")"
cp -r "$W" "$SCRATCH/parts.kept"
hosts_run
same "two ranks go on from the parts of four" "0 0" "$statuses"
has "from there" "$W/err.1" "resuming at step 40"
cat <(grep -E '^(val )?step=' "$SCRATCH/one.numbers" | grep -E 'step=(4[1-9]|[56][0-9]) ') >"$W/expected"
numbers "$W/out.1" | grep -E 'step=(4[1-9]|[56][0-9]) ' >"$W/numbers"
alike "the numbers of one process" "$W/expected" "$W/numbers"
for n in 1 2; do rm -rf "$W/algo-$n" && cp -r "$SCRATCH/parts.kept/algo-$n" "$W/algo-$n"; done
cp "$W"/algo-2/checkpoints/step-00000040/rank-* "$W/algo-1/checkpoints/step-00000040"
echo '{"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}' >"$W/algo-1/input/config/resourceconfig.json"
HOSTS=1
hosts_run --processes_per_host=1
same "one process, from a folder with all parts" 0 "$statuses"
has "from there" "$W/err.1" "resuming at step 40"
numbers "$W/out.1" | grep -E 'step=(4[1-9]|[56][0-9]) ' >"$W/numbers"
alike "the numbers of one process" "$W/expected" "$W/numbers"
HOSTS=2
for n in 1 2; do rm -rf "$W/algo-$n" && cp -r "$SCRATCH/parts.kept/algo-$n" "$W/algo-$n"; done
rm "$W/algo-2/checkpoints/step-00000040/rank-00003.bin"
hosts_run --processes_per_host=2 --checkpoint.sharded=true
same "a part that nobody has" "0 0" "$statuses"
has "is told" "$W/err.1" "rank-00003.bin: no host has it"
has "and an older checkpoint taken" "$W/err.1" "resuming at step 35"

# ---- failures ----
tree killed 2
hosts_start --processes_per_host=2 --epochs=100000
ok "it trains" until_true 60 has_steps "$W/out.1" 5
victim=$(ranks_of "$W/algo-2" | tail -n 1)
start_ms=$(date +%s%3N)
kill -9 "$victim"
hosts_end
took_ms=$(($(date +%s%3N) - start_ms))
same "exit statuses" "137 137" "$statuses"
for n in 1 2; do has "the culprit, on algo-$n" "$W/algo-$n/output/failure" "(algo-2, pid $victim) was killed by signal 9"; done
same "one story" "$(sed -n 1p "$W/algo-1/output/failure")" "$(sed -n 1p "$W/algo-2/output/failure")"
ok "soon ($took_ms ms)" test $took_ms -lt 60000
ok "nobody is left" until_true 5 none_left

tree stopped 2
hosts_start --processes_per_host=2 --epochs=100000 --checkpoint.every="1000000 steps"
ok "it trains" until_true 60 has_steps "$W/out.1" 5
kill -TERM "$(children_of "${pids[1]}" | head -n 1)" # of algo-2 alone
hosts_end
same "told on one host, both stop" "143 143" "$statuses"
same "one checkpoint" 1 "$(find "$W/algo-1/checkpoints" -name MANIFEST.json | wc -l)"
same "none on the other" 0 "$(find "$W/algo-2/checkpoints" -name MANIFEST.json 2>/dev/null | wc -l)"
ok "a model" test -e "$W/algo-1/model/model.safetensors"
ok "no failure" test ! -e "$W/algo-1/output/failure" -a ! -e "$W/algo-2/output/failure"
has "what it says" "$W/err.1" "stopped after step"

# Two of three hosts are there, and the second is told to stop: the first does not wait on.
tree waiting 3
HOSTS=2
hosts_start
ok "they wait for the third host" until_true 20 grep -q "algo-2 is here" "$W/err.1"
kill -TERM "$(children_of "${pids[1]}" | head -n 1)"
hosts_end
same "told to stop while they wait" "143 143" "$statuses"
has "by whom, and for whom" "$W/err.1" "algo-2 was asked to stop while waiting for algo-3 ("
for n in 1 2; do ok "no failure, no success" test ! -e "$W/algo-$n/output/failure" -a ! -e "$W/algo-$n/output/success"; done

# ---- starting all ranks anew ----
# A slow machine may see its steps only when it is over: again, then.
for try in 1 2 3 4 5; do
    tree again_$try 2
    hosts_start --distributed.restarts=1 --epochs=10
    ok "it trains" until_true 60 has_steps "$W/out.1" 20
    victim=$(ranks_of "$W/algo-2" | head -n 1)
    [ -z "$victim" ] || kill -9 "$victim"
    hosts_end
    ! grep -q "resuming at step" "$W/err.1" || break
done
same "a rank was killed, the job goes on" "0 0" "$statuses"
has "from the newest checkpoint" "$W/err.1" "resuming at step"
same "a step that was made twice had the same numbers" 200 "$(numbers "$W/out.1" | grep ^step= | sort -u | wc -l)"
numbers "$W/out.1" | sort -u | sort -t= -k2,2n | grep -E '^step=([1-9]|[1-5][0-9]) ' >"$W/numbers"
alike "those of a run that nothing happened to" <(grep -E '^step=([1-9]|[1-5][0-9]) ' "$SCRATCH/one.numbers") "$W/numbers"

# ---- what differs between hosts ----
refused() { # WHAT STATUS WORDS
    same "$1: exit statuses" "$2 $2" "$statuses"
    for n in 1 2; do has "$1: in words on algo-$n" "$W/algo-$n/output/failure" "$3"; done
}
tree recipes 2
sed -i 's/lr: 1e-3/lr: 2e-3/' "$W/algo-2/code/train.yaml"
hosts_run
refused "another recipe" 78 "optimizer.adamw.lr"
tree data 2
digits 320 3 | head -n 300 >"$W/algo-2/input/data/train/part.csv"
hosts_run
refused "other data" 78 "data.train"
tree broken 2
sed -i 's/epochs/epocs/' "$W/algo-2/code/train.yaml"
hosts_run
same "a recipe that cannot be read: exit statuses" "78 78" "$statuses"
has "where it lies" "$W/algo-2/output/failure" 'did you mean "epochs"'
has "and on the other host" "$W/algo-1/output/failure" 'epocs'
tree both 2
for n in 1 2; do
    echo '{"sagemaker_mpi_enabled": "true"}' >"$W/algo-$n/input/config/hyperparameters.json"
done
hosts_run --strategy=one_device
same "a contradiction: exit statuses" "78 78" "$statuses"
has "both places" "$W/algo-1/output/failure" 'hyperparameter "sagemaker_mpi_enabled" asks for data_parallel'

finish_tests
