#!/bin/bash
# train_hosts.sh - the trainer on hosts of their own, as the platform starts it: names, traps, nothing said about interfaces. One
# model whatever the number of hosts; hosts and ranks that are lost end the job in time, with the words in every failure file.
cd "$(dirname "$0")/../.." || exit 1
. tests/dist/hosts.bash
. tests/entrypoint/job.bash
export OMP_NUM_THREADS=1
[ "${TY_VARIANT:-release}" = release ] || { skip "training on hosts" "times are those of the release variant"; finish_tests; exit; }
[ -e "$BIN/../lib/libtrainyard-mpi.so" ] || { skip "training on hosts" "the plug-in for Open MPI was not built"; finish_tests; exit; }
need_hosts
hosts_up 3

# train_on NAME HOSTS ARGUMENT...: `train` on algo-1 .. algo-HOSTS; $W/algo-N/ is the tree of each, $W/out.N and $W/err.N its streams.
train_on() {
    local n list='' hosts=$2
    perceptron "$1"
    recipe "device: cpu"
    recipe "deterministic: strict"
    for ((n = 1; n <= hosts; n++)); do list+=${list:+, }\"algo-$n\"; done
    running=()
    for ((n = 1; n <= hosts; n++)); do
        cp -r "$ML" "$W/algo-$n"
        echo "{\"current_host\": \"algo-$n\", \"hosts\": [$list]}" >"$W/algo-$n/input/config/resourceconfig.json"
        empty "$W/out.$n" "$W/err.$n"
        on "algo-$n" env SAGEMAKER_BASE_DIR="$W/algo-$n" "$BIN/train" --log_every=1 "${@:3}" >"$W/out.$n" 2>"$W/err.$n" </dev/null &
        running+=($!)
    done
}
steps() { cat "$W/out.1" "$W/err.1" 2>/dev/null | grep -q 'step=[0-9]*5 '; }
under_way() {
    until_true 60 steps || fail "it does not train" "$(tail -n 5 "$W"/err.*)"
    begun_ms=$(now_ms)
}
within() {
    local took=$(($(now_ms) - begun_ms))
    echo "$case_name: $took ms"
    ok "in time: $took ms" test $took -lt "$1"
}
clean() {
    local n
    for n in 1 2 3; do
        if until_true 5 nothing_on "algo-$n"; then pass; else fail "nothing is left on algo-$n" "$(left_on "algo-$n")"; fi
    done
}
rank_on() { pids_on "$1" '^[^ ]*/trainyard rank ' | head -n 1; }
loss() { grep -o '"split":"validation".*' "$1/output/data/metrics.jsonl" | tail -n 1 | grep -o '"loss":[0-9.e-]*'; }

train_on three_hosts 3 --batch_size=24 --processes_per_host=2
end_all
same "statuses" "0 0 0" "$statuses"
has "the interface" "$W/err.2" "algo-2 uses eth0 "
has "six ranks" "$W/err.1" "algo-1:2 algo-2:2 algo-3:2"
ok "the model, of algo-1" test -s "$W/algo-1/model/model.safetensors"
same "and of nobody else" "" "$(find "$W/algo-2/model" "$W/algo-3/model" -type f)"
clean
first=$W/algo-1
train_on one_host 1 --batch_size=24
end_all
same "status" 0 "$statuses"
same "the loss of one host" "$(loss "$W/algo-1" | cut -c 1-13)" "$(loss "$first" | cut -c 1-13)"

train_on cable 2 --epochs=100000
under_way
cable algo-2 down
end_all
within 12000
cable algo-2 up
has "algo-1 lost algo-2" "$W/algo-1/output/failure" "lost algo-2 (no answer for"
has "algo-2 lost algo-1" "$W/algo-2/output/failure" "lost algo-1 ("
clean

train_on killed_rank 2 --processes_per_host=2 --epochs=100000
under_way
victim=$(rank_on algo-2)
ok "a rank is found" test -n "$victim"
begun_ms=$(now_ms)
kill -KILL "$victim"
end_all
within 4000
has "who" "$W/algo-1/output/failure" "(algo-2, pid"
has "how" "$W/algo-1/output/failure" "was killed by signal 9"
same "the same on both, but for the moment" "$(grep -v '^at:' "$W/algo-1/output/failure")" "$(grep -v '^at:' "$W/algo-2/output/failure")"
clean
finish_tests
