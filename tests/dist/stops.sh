#!/bin/bash
# stops.sh - two ranks that are told to stop again and again, in steps whose last sums and updates would run within the next one
# (compiler/target/cpu/late.h): each time the checkpoint has all of them, so that the run that is left to come to its end has the bits
# of one that nobody stopped.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/dist/trees.bash
need_mpi "stops of several ranks"

# Four layers, a bucket each.
tree_recipe() {
    recipe "device: cpu"
    recipe "distributed: {bucket_bytes: 4096}"
    cat >"$ML/code/model.c" <<'C'
#include <trainyard/model.h>

void model(ty_net *net)
{
    static const char *const name[] = {"a", "b", "c"};
    ty_var x = ty_flatten(net, ty_input(net, "image", "f32[batch,1,8,8]"), 1);
    for (int i = 0; i < 3; i++)
        x = ty_relu(net, ty_linear(net, name[i], x, 64));
    ty_output(net, "logits", ty_linear(net, "out", x, 10));
}
C
}
newest() { ls "$W/algo-1/checkpoints" | tail -n 1; }
ending() { cat "$W/algo-1/model/model.safetensors" "$W/algo-1/checkpoints/$(newest)/rank-00000.bin" | sha256sum; }

# stops NAME "AFTER ..." SETTINGS...: stopped each time when so many steps of that start have been seen, by the one host and the other in turn.
stops() {
    local name=$1 after told=0 step all stopped
    local settings=(--epochs=100000 --checkpoint.every="1000000 steps" "${@:3}")
    tree "$name" 2
    for after in $2; do
        rm -f "$W"/out.* # what the start before has said counts no more
        hosts_start "${settings[@]}"
        until_true 60 has_steps "$W/out.1" "$after" || fail "it trains" "$(cat "$W"/err.*)"
        kill -TERM "$(children_of "${pids[$((told % 2))]}" | head -n 1)"
        hosts_end
        told=$((told + 1))
        same "stop $told" "143 143" "$statuses"
        step=$((10#$(newest | tr -dc 0-9)))
        echo "$name: stopped at step $step"
    done
    all=$((step + 7))
    hosts_run "${settings[@]}" --max_steps=$all
    same "to its end" "0 0" "$statuses"
    has "from where it was" "$W/err.1" "resuming at step $step of $all"
    stopped=$(ending)
    tree "${name}_whole" 2
    hosts_run "${settings[@]}" --max_steps=$all
    same "without a stop" "0 0" "$statuses"
    same "the same bits" "$stopped" "$(ending)"
}
# A rank that is killed while all stop leaves the others in a sum that never ends: they are told not to wait for it.
tree killed 2
hosts_start --epochs=100000 --checkpoint.every="1000000 steps"
until_true 60 has_steps "$W/out.1" 1 || fail "it trains" "$(cat "$W"/err.*)"
victim=$(ranks_of "$W/algo-2")
kill -STOP "$victim"
kill -TERM "$(children_of "${pids[0]}" | head -n 1)"
ok "the stop is everywhere" until_true 60 grep -q "algo-1 was asked to stop: all hosts stop" "$W/err.2"
kill -KILL "$victim"
hosts_end
same "nobody used up the time of a stop, after which ranks are killed (137)" "143 143" "$statuses"
ok "no failure, no success" test ! -e "$W/algo-1/output/failure" -a ! -e "$W/algo-1/output/success"

stops steps "1 2 3 5 9"
stops micro_batches "1 4" --accumulate=2
stops moments_in_parts "2 3" --distributed.optimizer_sharding=true
finish_tests
