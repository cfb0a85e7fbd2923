#!/bin/bash
# learn.sh - what is learnt of data of which each host has only a part: LibSVM's first index and width, classes of folders, means of
# pictures, transforms. All hosts learn the same, that is what one host with all of the data learns, and train to the same losses; what
# only looks alike on each host is refused with the field's name.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/gpu.bash
. tests/dist/trees.bash
need_mpi "several hosts that learn of their data"

# learner HOSTS NAME MODEL RECIPE: a job of so many hosts on this model and recipe; $W/algo-N/input/data/train is for data.
learner() {
    local n how=ShardedByS3Key
    begin "$2_$1"
    [ "$1" = 1 ] && how=FullyReplicated
    mkdir "$ML/input/data/train"
    echo '{"train": {"S3DistributionType": "'$how'"}}' >"$ML/input/config/inputdataconfig.json"
    printf '#include <trainyard/model.h>\n\n%s\n' "$3" >"$ML/code/model.c"
    printf 'model: model.c\ndevice: cpu\nbatch_size: 12\nepochs: 2\noptimizer: {sgd: {lr: 0.05}}\n%s\n' "$4" >"$ML/code/train.yaml"
    for ((n = 1; n <= $1; n++)); do cp -r "$ML" "$W/algo-$n"; done
    hosts "$1"
}
# dealt FILE NAME: the lines of a file to the hosts' channels, so that 12 / HOSTS of each twelve are a host's: then a global batch of
# all hosts has the lines that a batch of one host has.
dealt() {
    local n
    for ((n = 1; n <= HOSTS; n++)); do
        awk -v n="$n" -v each=$((12 / HOSTS)) 'int(((NR - 1) % 12) / each) == n - 1' "$1" >"$W/algo-$n/input/data/train/$2"
    done
}
zeros() { printf '%.0s0 ' $(seq "$HOSTS") | sed 's/ $//'; }
# learnt WHAT NAME: the losses of this run, and what it wrote down, are those of one host.
learnt() {
    numbers "$W/out.1" | grep ^step >"$SCRATCH/$2.losses.$HOSTS"
    same "$1: exit statuses" "$(zeros)" "$statuses"
    [ "$HOSTS" = 1 ] && return
    alike "$1: the losses of one host" "$SCRATCH/$2.losses.1" "$SCRATCH/$2.losses.$HOSTS"
}

# ---- LibSVM: the only index 0 is a line of the last host's, the largest of the first's ----
awk 'BEGIN { srand(3); for (i = 0; i < 48; i++) {
    printf "%d", rand() < 0.5
    if (i == 35) printf " 0:1"
    printf " %d:%.2f %d:%.2f", 1 + int(4 * rand()), rand(), 6 + int(3 * rand()), rand()
    if (i == 24) printf " 16:0.5"
    print "" } }' >"$SCRATCH/lines"
wide='void model(ty_net *net)
{
    ty_output(net, "logit", ty_squeeze(net, ty_linear(net, "out", ty_input(net, "features", "f32[batch,17]"), 1), 1));
}'
of_lines='loss: {binary_cross_entropy_with_logits: {logits: logit, labels: label}}
data: {train: {channel: train, format: libsvm, shuffle: false, fields: {features: {}, label: {}}}}'
for access in random stream; do
    for n in 1 2 3; do
        learner $n "libsvm_$access" "$wide" "$of_lines"
        dealt "$SCRATCH/lines" part.libsvm
        hosts_run --data.train.access=$access
        learnt "LibSVM, $access, $n hosts" "libsvm_$access"
        has "base and width are those of all lines" "$W/algo-1/model/model.json" '{"index_base": 0, "index_width": 17}'
    done
done
# With the index that an earlier run kept of each host's lines, then with that of one of them: what is agreed is agreed anew.
again() { # N: so many hosts have one
    rm -rf "$W"/algo-*/model "$W"/algo-*/output "$W"/algo-*/checkpoints
    TRAINYARD_INDEX_MS=0 hosts_run
    same "an index on $1: exit statuses" "0 0" "$statuses"
    numbers "$W/out.1" | grep ^step >"$SCRATCH/kept.losses"
    alike "an index on $1: the losses of one host" "$SCRATCH/libsvm_random.losses.1" "$SCRATCH/kept.losses"
    same "an index on $1: told by as many" "$1" "$(grep -c 'index of the data from the cache' "$W/err.1")" # of all hosts
}
learner 2 kept "$wide" "$of_lines"
dealt "$SCRATCH/lines" part.libsvm
sleep 0.1 # files that were written just now are not trusted
again 0
again 2
touch "$W/algo-2/input/data/train/part.libsvm"
sleep 0.1
again 1
if [ -e "$BIN/../lib/libtrainyard-ucx.so" ]; then
    host_address() { echo "127.0.0.1:$((PORT + $1))"; } # UCX connects to no other address of this machine
    host_settings() { echo "--distributed.server_port=$((PORT + 5)) --strategy=parameter_server"; }
    learner 2 served "$wide" "$of_lines"
    dealt "$SCRATCH/lines" part.libsvm
    hosts_run
    ok "workers of parameter servers cannot ask" test "$statuses" != "0 0"
    has "and say so" "$W/algo-1/output/failure" "LibSVM's indexes would be others on each worker"
    learner 2 served_declared "$wide" "${of_lines/features: \{\}/features: {shape: [17]\}}"
    dealt "$SCRATCH/lines" part.libsvm
    hosts_run --data.train.index_base=zero
    same "declared they need not" "0 0" "$statuses"
    host_address() { echo "127.0.0.$1:$PORT"; }
    host_settings() { :; }
else
    skip "LibSVM with parameter servers" "libtrainyard-ucx.so was not built"
fi

# ---- entries as they stand: as many on each host's lines, not on all ----
awk 'BEGIN { for (i = 0; i < 24; i++) print i % 2, (i % 12 < 6 ? "3:1 2:1" : "3:1 2:1 7:1") }' >"$SCRATCH/pairs"
learner 2 pairs 'void model(ty_net *net)
{
    ty_output(net, "logit", ty_squeeze(net, ty_linear(net, "out", ty_input(net, "values", "f32[batch,2]"), 1), 1));
}' 'loss: {binary_cross_entropy_with_logits: {logits: logit, labels: label}}
data: {train: {channel: train, format: libsvm, shuffle: false, fields: {values: {}, label: {}}}}'
dealt "$SCRATCH/pairs" part.libsvm
hosts_run
ok "lines of two lengths, one on each host" test "$statuses" != "0 0"
has "are refused by name" "$W/algo-1/output/failure" "data.train.values: rank 0 f32[2], rank 1 f32[3]"
has "with what to do" "$W/err.1" "declare type and shape"

# ---- classes of folders, and means of pictures ----
picture() { # FILE LEVEL: 4 x 4, grey
    { printf 'P5 4 4 255\n' && printf "\\x$(printf %x "$2")%.0s" $(seq 16); } >"$1"
}
for n in 1 2 3; do
    learner $n pictures 'void model(ty_net *net)
{
    ty_output(net, "logits", ty_linear(net, "out", ty_flatten(net, ty_input(net, "image", "f32[batch,1,4,4]"), 1), 3));
}' 'loss: {softmax_cross_entropy: {logits: logits, labels: label}}
data: {train: {channel: train, shuffle: false, fields: {image: {image: {channels: 1, mean: auto, std: auto}}, label: {}}}}'
    for k in 0 1 2; do # with three hosts each has pictures of one class
        h=$((k * n / 3 + 1))
        for i in 1 2 3 4; do
            mkdir -p "$W/algo-$h/input/data/train/class-$k"
            picture "$W/algo-$h/input/data/train/class-$k/$i.pgm" $((60 * k + 10 * i))
        done
    done
    hosts_run --data.train.remainder=join
    numbers "$W/out.1" | grep ^step >"$SCRATCH/pictures.losses.$n"
    same "pictures, $n hosts: exit statuses" "$(zeros)" "$statuses"
    [ "$n" = 1 ] && cp "$W/algo-1/model/preprocessing.json" "$SCRATCH/pictures.json"
    same "pictures, $n hosts: their means are those of all" "$(cat "$SCRATCH/pictures.json")" "$(cat "$W/algo-1/model/preprocessing.json")"
done
# Two epochs of 12 pictures in batches of 12: with 1 and 3 hosts the same.
alike "pictures: the losses of one host" "$SCRATCH/pictures.losses.1" "$SCRATCH/pictures.losses.3"

# ---- transforms ----
awk 'BEGIN { srand(5); split("S S S S S C C Q", ports, " "); for (i = 0; i < 96; i++) {
    age = rand() < 0.3 ? "" : sprintf("%.1f", 5 + 60 * rand()); fare = sprintf("%.2f", 1e6 - 30 * log(1 - rand()))
    printf "%s,%s,%s,%s,%s\n", age, fare, (i < 12 ? "Q" : ports[1 + int(8 * rand())]), (rand() < 0.4 ? "" : "C" int(20 * rand())),
        (fare > 1e6 + 25 ? "yes" : "no") } }' >"$SCRATCH/rows"
mixed='void model(ty_net *net)
{
    ty_var n = ty_input(net, "numbers", "f32[batch,2]"), age = ty_input(net, "age", "f32[batch,4]");
    ty_var p = ty_embedding(net, "port", ty_input(net, "port", "i64[batch]"), 5, 4);
    ty_var c = ty_embedding(net, "cabin", ty_input(net, "cabin", "i64[batch]"), 30, 4);
    ty_output(net, "logits", ty_linear(net, "out", ty_concat(net, 1, n, age, p, c), 2));
}'
of_rows='loss: {softmax_cross_entropy: {logits: logits, labels: yes}}
data:
  train:
    channel: train
    format: csv
    header: no
    shuffle: false
    fields:
      numbers: {columns: "0,1", missing: mean, normalize: standard}
      age: {columns: "0", buckets: {quantiles: 4}, missing: median, one_hot: auto}
      port: {columns: "2", vocabulary: auto}
      cabin: {columns: "3", vocabulary: auto, missing: none, min_count: 2}
      yes: {columns: "4", classes: auto}'
for access in random stream; do
    for n in 1 2 3; do
        learner $n "rows_$access" "$mixed" "$of_rows"
        dealt "$SCRATCH/rows" part.csv
        hosts_run --data.train.access=$access
        learnt "transforms, $access, $n hosts" "rows_$access"
        [ "$n$access" = 1random ] && cp "$W/algo-1/model/preprocessing.json" "$SCRATCH/rows.json"
        same "transforms, $access, $n hosts: what was learnt" "$(cat "$SCRATCH/rows.json")" "$(cat "$W/algo-1/model/preprocessing.json")"
    done
    # Two ranks a host share what it has seen, which counts once.
    learner 2 "rows_${access}_ranks" "$mixed" "$of_rows"
    dealt "$SCRATCH/rows" part.csv
    hosts_run --data.train.access=$access --processes_per_host=2
    same "four ranks on two hosts, $access" "0 0" "$statuses"
    same "four ranks on two hosts, $access: what was learnt" "$(cat "$SCRATCH/rows.json")" "$(cat "$W/algo-1/model/preprocessing.json")"
done
finish_tests
