#!/bin/bash
# `trainyard local` over the engine, from the image: the digits (or, without a network, made-up ones) on two hosts that find each other
# by name, as another user, with a file of one host; a rank that is killed; a stop. Results are the caller's, and neither
# containers nor networks are left.
set -u
. "$(dirname "$0")/engine.bash"
need_image
bin=$(realpath "${TY_BIN:-build/bin}")
[ -x "$bin/trainyard" ] || skip_all "$bin/trainyard is not built"
digits() { awk -v rows="$1" 'BEGIN {for (r = 0; r < rows; r++) {for (j = 0; j < 64; j++) printf "%d,", (j % 10 == r % 10 ? 9 : 2) + (r * 31 + j * 17) % 7; print r % 10}}'; }
mkdir -p "$scratch/data/train"
digits 600 >"$scratch/data/train/part.csv"
digits 100 >"$scratch/data/test.csv"
sed "s|../../build/digits/data/train.csv|$scratch/data/train|; s|../../build/digits/data/test.csv|$scratch/data/test.csv|" \
    examples/digits/job.yaml | sed "s|folder: .,|folder: $PWD/examples/digits,|" >"$scratch/job.yaml"
locally() { timeout 300 "$bin/trainyard" local "$scratch/job.yaml" --image "$image" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null; echo $?; }
left() { docker ps -a --format '{{.Names}}' | grep "^trainyard-[0-9]*-[0-9a-f]*-algo"; docker network ls --format '{{.Name}}' | grep '^trainyard-[0-9]*-[0-9a-f]*$'; }
before=$(left)

check "two hosts" is "$(locally --output "$scratch/r" --nodes 2 --epochs=2)" 0
check "they are containers, since the engine has the image" has "$scratch/err" "2 hosts as containers \(docker has $image\)"
check "both have lines" has "$scratch/err" '^\[algo-2\] '
check "a model" tar -xzOf "$scratch/r/model.tar.gz" model.onnx
check "and nothing else" is "$(ls "$scratch/r" | xargs)" "logs model.tar.gz output"
check "files are the caller's" is "$(find "$scratch/r" ! -uid "$(id -u)")" ""
check "a rank is killed" is "$(locally --output "$scratch/f" --nodes 2 --epochs=20 --fault kill:rank=1,step=50)" 4
check "who, how, when" has "$scratch/err" 'AlgorithmError: E0540 rank 1 \(algo-2, pid [0-9]+\) was killed by signal 9 \(KILL\) in step 5[0-9];'
: >"$scratch/out" # before it begins: no line of an earlier run is taken for one of this
"$bin/trainyard" local "$scratch/job.yaml" --image "$image" --output "$scratch/s" --epochs=100000 >"$scratch/out" 2>"$scratch/err" </dev/null &
pid=$!
for ((i = 0; i < 12000; i++)); do grep -q '^step=[0-9][0-9]' "$scratch/out" && break; sleep 0.05; done
kill -TERM $pid
wait $pid
check "a stop" is $? 3
check "leaves a model" test -s "$scratch/s/model.tar.gz"
check "no container and no network is left" is "$(left)" "$before"
