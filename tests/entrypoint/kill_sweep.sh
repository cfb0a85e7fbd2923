#!/bin/bash
# kill_sweep.sh [KILLS]: SIGKILL at random moments of short trainings: 40 times, or as often as is said (make kills). After
# each, the newest valid checkpoint loads, and every run that at last comes to its end has the same bits as one that was never
# touched. Half of the kills hit the trainer below its supervisor, which has to report it.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
# Copies: minutes go by, and a build beside us must not pull the programs away.
mkdir "$SCRATCH/bin"
cp "$BIN/train" "$BIN/trainyard" "$SCRATCH/bin/"
BIN=$SCRATCH/bin
KILLS=${1:-${TY_KILLS:-40}}
RANDOM=${TY_SEED:-4711}
ARGS="--checkpoint.every=1 --tensorboard=none --evaluate_every=20 --log_every=10"
export TRAINYARD_CACHE_DIR=$SCRATCH/cache
mkdir "$TRAINYARD_CACHE_DIR"

job untouched
run train $ARGS
same "status" 0 $rc
WANTED=$(bits "$ML")
begun=$(date +%s%N)
run train $ARGS --checkpoint.every=1
WARM_MS=$((($(date +%s%N) - begun) / 1000000 + 60))

begin_round() { job "round_$1"; }
round=0 kills=0 completed=0 wrong= unloadable= resumed=0 unreported=0
begin_round $round
while [ $kills -lt "$KILLS" ]; do
    start train $ARGS
    delay=$((RANDOM % (WARM_MS * 3)))
    sleep "$(printf '%d.%03d' $((delay / 1000)) $((delay % 1000)))"
    worker=$(children_of "$pid" | head -1)
    if [ -n "$worker" ] && [ $((RANDOM % 2)) = 0 ]; then
        kill -KILL "$worker" 2>/dev/null && kills=$((kills + 1))
        finish
        [ $rc != 137 ] || [ -s "$ML/output/failure" ] || unreported=$((unreported + 1))
        rm -f "$ML/output/failure" "$ML/output/failure.json"
    else
        kill -0 "$pid" 2>/dev/null && kills=$((kills + 1))
        kill -KILL "$pid" 2>/dev/null
        finish 2>/dev/null
        [ -z "$worker" ] || until_true 10 bash -c "! kill -0 $worker"
        [ $rc = 137 ] || [ $rc = 0 ] || unloadable+=" round $round: status $rc;"
    fi
    if [ "$rc" != 0 ] && [ "$rc" != 137 ] && [ "$rc" != 143 ]; then
        unloadable+=" round $round: $rc: $(head -c 300 "$ML/output/failure" 2>/dev/null)"
    fi
    grep -q "resuming at step" "$W/err" && resumed=$((resumed + 1))
    if [ "$rc" = 0 ]; then
        completed=$((completed + 1))
        [ "$(bits "$ML")" = "$WANTED" ] || wrong+=" $round"
        rm -rf "$ML"
        round=$((round + 1))
        begin_round $round
    fi
done
# The last one may go to its end in peace.
run train $ARGS
[ "$(bits "$ML")" = "$WANTED" ] || wrong+=" last"

case_name="kill sweep"
W=
same "every start found a checkpoint that loads, or none" "" "$unloadable"
same "every completed run has the bits of the untouched one" "" "$wrong"
same "every death of the trainer was reported" 0 "$unreported"
ok "many starts resumed: $resumed" test $resumed -ge $((KILLS / 10))
ok "runs were completed between the kills: $completed" test $completed -ge 1
passed=$((passed + kills))
echo "$kills kills, $resumed resumed starts, $((completed + 1)) completed runs"
finish_tests
