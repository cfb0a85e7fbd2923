#!/bin/bash
# pipe.sh - streams on several ranks and hosts: a channel for each rank of a host in Pipe mode, parts by the table of sharding, parts of
# different lengths whose epochs end together, evaluation by those who have a channel, and what ended early going on to the same bits.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/gpu.bash
. tests/entrypoint/pipe.bash
. tests/dist/trees.bash
need_mpi "several ranks on streams"
MODE='"TrainingInputMode": "Pipe", "ContentType": "application/x-tfrecord"'
TWO='{"train": {'$MODE'}, "train-1": {'$MODE'}, "test": {'$MODE'}}'
IN_ORDER=--data.train.shuffle=false

# tree NAME HOSTS JSON ROWS...: such channels; files of so many rows, $W/data/1 ..., and the 50 of the validation data, $W/data/test.
tree() {
    local n
    streams "$1"
    recipe "device: cpu"
    rm -r "$ML/input/data/train" "$ML/input/data/test"
    modes "$3"
    for ((n = 1; n <= $2; n++)); do cp -r "$ML" "$W/algo-$n"; done
    mkdir "$W/data"
    cp "$W/test/a.tfrecord" "$W/data/test"
    for ((n = 4; n <= $#; n++)); do records "${!n}" $((n - 3)) "$W/data/$((n - 3))"; done
    hosts "$2"
}
# give HOST CHANNEL EPOCHS FILE: a feeder at a host.
give() {
    "$BIN/trainyard" data serve-pipe "$W/data/$4" --into="$W/algo-$1/input/data" --channel="$2" --epochs="$3" >>"$W/feed" 2>&1 &
    feeders+=($!)
}
given() {
    kill "${feeders[@]}" 2>/dev/null
    wait "${feeders[@]}" 2>/dev/null
    feeders=()
    rm -rf "$W"/algo-*/input/data/*_[0-9]* "$W"/algo-*/pipe_state
}
steps() { grep -cE '^(\[1,[0-9]*\]<stdout>: *)?step=' "$W/out.1"; }
last_value() { numbers "$W/out.1" | grep '^val' | tail -1; }
# alike_to A: the last evaluation, nearly.
alike_to() { python3 -c '
import sys
a, b = (dict(p.split("=") for p in l.split() if "=" in p) for l in sys.argv[1:3])
sys.exit(not all(abs(float(a[k]) - float(b[k])) <= 3e-4 * abs(float(a[k])) for k in ("val_loss", "val_accuracy")))' "$1" "$(last_value)"; }

# judged TREE LINE FILE...: the line's loss and accuracy are those of the tree's model on all records of these files.
judged() { python3 - "$@" <<'P'
import json, math, struct, sys
blob = open(sys.argv[1] + "/model/model.safetensors", "rb").read()
n = struct.unpack("<Q", blob[:8])[0]
weight = {}
for name, t in json.loads(blob[8:8 + n]).items():
    if name != "__metadata__":
        a, b = t["data_offsets"]
        weight[tuple(t["shape"])] = struct.unpack("<%df" % ((b - a) // 4), blob[8 + n + a:8 + n + b])
loss = right = rows = 0
for path in sys.argv[3:]:
    data = open(path, "rb").read()
    at = 0
    while at < len(data):
        n = struct.unpack("<Q", data[at:at + 8])[0]
        record = data[at + 12:at + 12 + n]
        at += n + 16
        k = record.index(b"image") # the list of 64 floats is the one of 256 bytes
        k = record.index(bytes([10, 128, 2]), k) + 3
        x = struct.unpack("<64f", record[k:k + 256])
        label = record[-1]
        def layer(x, out):
            w = weight.get((out, len(x)))
            if w is None:
                w, turned = weight[(len(x), out)], True
            else:
                turned = False
            return [weight[(out,)][o] + sum(v * w[i * out + o if turned else o * len(x) + i] for i, v in enumerate(x))
                    for o in range(out)]
        y = layer([max(0, h) for h in layer(x, 24)], 10)
        top = max(y)
        loss += math.log(sum(math.exp(v - top) for v in y)) + top - y[label]
        right += y[label] == top
        rows += 1
line = dict(p.split("=") for p in sys.argv[2].split() if "=" in p)
sys.exit(not (abs(loss / rows - float(line["val_loss"])) < 1e-4 and abs(right / rows - float(line["val_accuracy"])) < 1e-6))
P
}

# One process reads all of it from one file.
streams one
recipe "device: cpu"
run $IN_ORDER --data.train.access=stream --data.validation.access=stream --log_every=1
same "one process" 0 $rc
cp "$W/out" "$W/out.1"
ONE=$ML
ALL=$(last_value)
ok "which evaluates" test -n "$ALL"

# ---- the same data on each channel of a host: rows of each batch ----
tree alike 1 "$TWO" 112
give 1 train 3 1
give 1 train-1 3 1
give 1 test 3 test
hosts_run $IN_ORDER --processes_per_host=2
given
same "two ranks, a channel each" 0 "$statuses"
has "that know of the same data" "$W/err.1" "part 2 of 2: all ranks see the same data, and take rows of each batch"
ok "have the weights of one process, nearly" near "$ONE" "$W/algo-1"
ok "and its evaluation, by the one that has a channel" alike_to "$ALL"
same "in as many steps" 21 "$(steps)"

# What two ranks began one goes on with.
tree elastic 1 "$TWO" 112
give 1 train 1 1
give 1 train-1 1 1
give 1 test 1 test
hosts_run $IN_ORDER --processes_per_host=2 --max_steps=5
given
same "five steps of two ranks" 0 "$statuses"
give 1 train 3 1
give 1 test 3 test
hosts_run $IN_ORDER
given
same "and the rest of one" 0 "$statuses"
has "which goes on" "$W/err.1" "resuming at step 5"
ok "to the same weights, nearly" near "$ONE" "$W/algo-1"

# ---- a last batch that ranks share: 110 rows are 6 batches of 16 and 14 rows ----
for how in pad join; do
    streams "rest_$how" 110
    recipe "device: cpu"
    run $IN_ORDER --data.train.access=stream --data.train.remainder=$how --log_every=1
    same "a rest on one rank, $how" 0 $rc
    REST=$ML
    numbers "$W/out" | grep ^step >"$SCRATCH/rest.$how"
    tree "rest_ranks_$how" 1 "$TWO" 110
    for last in --max_steps=6 ""; do
        give 1 train 3 1
        give 1 train-1 3 1
        give 1 test 3 test
        # shellcheck disable=SC2086
        hosts_run $IN_ORDER --processes_per_host=2 --data.train.remainder=$how $last
        given
        same "and on two, $how $last" 0 "$statuses"
        numbers "$W/out.1" | grep ^step >>"$W/steps"
    done
    has "which go on before the rest" "$W/err.1" "resuming at step 6"
    same "in as many steps, $how" 21 "$(wc -l <"$W/steps")"
    alike "have the losses of one, $how" "$SCRATCH/rest.$how" "$W/steps"
    ok "and its weights, $how" near "$REST" "$W/algo-1"
done
ok "rows that count and rows that do not" test "$(grep '^step=7 ' "$SCRATCH/rest.pad")" != "$(grep '^step=7 ' "$SCRATCH/rest.join")"

# ---- data of their own, of different lengths: 14 batches of 8 and 6 and a half ----
for case in "drop 12" "join 28" "pad 28"; do
    read -r how count <<<"$case"
    tree "own_$how" 1 "$TWO" 112 52
    give 1 train 2 1
    give 1 train-1 2 2
    give 1 test 2 test
    hosts_run --data.train.shuffle=20 --processes_per_host=2 --epochs=2 --data.train.remainder="$how" --checkpoint.every=1
    given
    same "parts of different lengths, $how" 0 "$statuses"
    same "end together" "$count" "$(steps)"
    has "since channels differ" "$W/err.1" "this rank's channel has data of its own"
    numbers "$W/out.1" | grep ^step >"$SCRATCH/own.$how"
    WHOLE=$(bits "$W/algo-1")
    wrong=
    for k in 3 6 8 13; do
        [ "$k" -lt "$count" ] || continue
        tree "own_${how}_$k" 1 "$TWO" 112 52
        for last in "--max_steps=$k" ""; do
            give 1 train 2 1
            give 1 train-1 2 2
            give 1 test 3 test
            # shellcheck disable=SC2086
            hosts_run --data.train.shuffle=20 --processes_per_host=2 --epochs=2 --data.train.remainder="$how" $last
            given
            [ "$statuses" = 0 ] || wrong+=" status $statuses at $k;"
        done
        grep -q "resuming at step $k" "$W/err.1" || wrong+=" not resumed at $k;"
        [ "$(bits "$W/algo-1")" = "$WHOLE" ] || wrong+=" other bits after $k;"
    done
    same "and go on to the same bits, $how" "" "$wrong"
done

# woven OUT FIRST SECOND: the global batches of 16 of two ranks with parts of their own, 8 rows each, none of them shuffled. With pad
# the second's last 4 rows count twice; then it has none, and the mean is of the first's alone, as it is with each of them twice.
woven() { python3 - "$@" <<'P'
import struct, sys
def read(path):
    data, at, out = open(path, "rb").read(), 0, []
    while at < len(data):
        n = struct.unpack_from("<Q", data, at)[0] + 16
        out.append(data[at:at + n])
        at += n
    return out
a, b = read(sys.argv[2]), read(sys.argv[3])
with open(sys.argv[1], "wb") as f:
    for k in range(0, len(a), 8):
        part = b[k:k + 8]
        f.write(b"".join(a[k:k + 8] + (part + part + a[k:k + 8])[:8]))
P
}
streams woven 112
recipe "device: cpu"
records 52 2 "$W/second"
woven "$ML/input/data/train/a.tfrecord" "$W/train/a.tfrecord" "$W/second"
run $IN_ORDER --data.train.access=stream --epochs=2 --log_every=1
same "global batches of uneven parts, on one rank" 0 $rc
numbers "$W/out" | grep ^step >"$SCRATCH/woven.losses"
WOVEN=$ML
tree own_in_order 1 "$TWO" 112 52
give 1 train 2 1
give 1 train-1 2 2
give 1 test 2 test
hosts_run $IN_ORDER --processes_per_host=2 --epochs=2 --data.train.remainder=pad
given
same "and on two with pad" 0 "$statuses"
numbers "$W/out.1" | grep ^step >"$W/steps"
alike "have the same losses" "$SCRATCH/woven.losses" "$W/steps"
ok "and weights" near "$WOVEN" "$W/algo-1"
ok "join does not count the second's last rows twice" test "$(sed -n 7p "$SCRATCH/own.join")" != "$(sed -n 7p "$SCRATCH/own.pad")"

# ---- hosts with files of their own ----
SHARDED='{"train": {'$MODE', "S3DistributionType": "ShardedByS3Key"}, "test": {'$MODE', "S3DistributionType": "ShardedByS3Key"}}'
tree hosts 2 "$SHARDED" 80 40
records 30 3 "$W/data/some"
records 20 4 "$W/data/others"
for n in 1 2; do give $n train 2 $n; done
give 1 test 2 some
give 2 test 2 others
hosts_run --data.train.shuffle=20 --epochs=2 --data.train.remainder=join
given
same "two hosts, sharded by key" "0 0" "$statuses"
same "end with the longer one" 20 "$(steps)"
ok "and count each sample of both once" judged "$W/algo-1" "$(last_value)" "$W/data/some" "$W/data/others"

# ---- files of one folder, by file and by rows ----
for case in "record 21" "file 21"; do
    read -r how count <<<"$case"
    streams "files_$how"
    recipe "device: cpu"
    rm "$ML/input/data/train/"*
    for n in 1 2 3 4 5 6 7 8; do records 14 "$n" "$ML/input/data/train/$n.tfrecord"; done
    cp -r "$ML" "$W/algo-1"
    hosts 1
    hosts_run $IN_ORDER --processes_per_host=2 --data.train.access=stream --data.train.shard="$how"
    same "files, shard: $how" 0 "$statuses"
    same "in so many steps" "$count" "$(steps)"
done
has "by file" "$W/err.1" "part 1 of 2: all ranks see the same data, and 8 files"
# Files of different lengths, by file: 48 and 80 rows. And what ended early goes on to the same bits.
parted() {
    streams "$1"
    recipe "device: cpu"
    rm "$ML/input/data/train/"*
    for n in 1 2 3 4 5 6 7 8; do records $((n % 2 ? 8 + n : 15 + n)) "$n" "$ML/input/data/train/$n.tfrecord"; done
    cp -r "$ML" "$W/algo-1"
    hosts 1
}
for how in drop join pad; do
    parted "parted_$how"
    PARTED="--processes_per_host=2 --epochs=2 --data.train.access=stream --data.train.shard=file --data.train.shuffle=20
        --data.train.remainder=$how --checkpoint.every=1"
    # shellcheck disable=SC2086
    hosts_run $PARTED
    same "files of different lengths, $how" 0 "$statuses"
    WHOLE=$(bits "$W/algo-1") count=$(steps)
    wrong=
    for k in $((count / 2 - 1)) $((count / 2)) $((count - 1)); do
        parted "parted_${how}_$k"
        for last in "--max_steps=$k" ""; do
            # shellcheck disable=SC2086
            hosts_run $PARTED $last
            [ "$statuses" = 0 ] || wrong+=" status $statuses at $k;"
        done
        grep -q "resuming at step $k" "$W/err.1" || wrong+=" not resumed at $k;"
        [ "$(bits "$W/algo-1")" = "$WHOLE" ] || wrong+=" other bits after $k;"
    done
    same "and go on to the same bits, $how ($count steps)" "" "$wrong"
done

# ---- what cannot work ends at once ----
tree few 1 '{"train": {'"$MODE"'}, "test": {'"$MODE"'}}' 112
hosts_run --processes_per_host=2
ok "two ranks and one FIFO" test "$statuses" != 0
has "are refused" "$W/err.1" "one FIFO has one reader"
has "with what to do" "$W/err.1" "train-1"
tree short 1 "$TWO" 112 5
give 1 train 3 1
give 1 train-1 3 2
give 1 test 3 test
hosts_run --processes_per_host=2
given
ok "a rank without a whole batch" test "$statuses" != 0
has "is named" "$W/algo-1/output/failure" "has 5 samples in epoch 0, fewer than one batch of 8"

# ---- workers of parameter servers ----
if [ -e "$BIN/../lib/libtrainyard-ucx.so" ] && [ "${TY_VARIANT:-release}" = release ]; then
    host_address() { echo "127.0.0.1:$((PORT + $1))"; } # UCX connects to no other address of this machine
    host_settings() { echo "--distributed.server_port=$((PORT + 5))"; }
    for mode in async sync; do
        tree "served_$mode" 2 '{"train": {'"$MODE"'}, "test": {'"$MODE"'}}' 112
        sed -i 's/adamw/adam/' "$W"/algo-*/code/train.yaml
        for last in --max_steps=4 ""; do
            for n in 1 2; do give $n train 3 1; done
            give 1 test 4 test
            # shellcheck disable=SC2086
            hosts_run --strategy=parameter_server --distributed.server_mode=$mode $IN_ORDER $last
            given
            same "workers of parameter servers, $mode $last" "0 0" "$statuses"
        done
        has "go on where they were" "$W/err.1" "resuming at step"
        has "the other one too" "$W/err.2" "passing over"
    done
else
    skip "workers of parameter servers" "libtrainyard-ucx.so was not built"
fi
finish_tests
