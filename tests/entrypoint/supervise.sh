#!/bin/bash
# supervise.sh - `train` as the parent of a program: exit codes, signals, orphans, PID 1, its own weight.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
export SAGEMAKER_PROGRAM=run.sh
program() { printf '#!/bin/sh\n%s\n' "$1" >"$ML/code/run.sh"; }
# What is looked for among all processes sleeps for a time of our own: others may run these tests at the same time.
OURS=$(printf '%07d' $$)

begin exit_codes
program 'exit $(cat code_to_use)'
wrong=
for code in $(seq 0 255); do
    echo "$code" >"$ML/code/code_to_use"
    run
    [ $rc = "$code" ] || wrong+=" $code->$rc"
    if [ "$code" = 0 ]; then
        ok "success file" test -e "$ML/output/success"
        ok "no failure file" test ! -e "$ML/output/failure"
    elif ! grep -qaE "exit code $code( |\$|:)|killed by SIG" "$ML/output/failure"; then
        wrong+=" text-of-$code"
    fi
    rm -rf "$ML/output"
done
same "all 256 exit codes pass through" "" "$wrong"

for sig in HUP INT QUIT ILL ABRT FPE KILL USR1 SEGV PIPE ALRM TERM USR2 BUS SYS; do
    begin "dies_of_$sig"
    program "kill -$sig \$\$; sleep 1000"
    run
    same "status" $((128 + $(kill -l $sig))) $rc
    has "failure names the signal" "$ML/output/failure" "SIG$sig"
done

begin failure_text
program 'echo "first line" >&2; printf "progress 1\rprogress 2\r\033[31mred\033[0m text\007\n" >&2
echo "bad bytes \377 end" >&2; echo "ValueError: the cause" >&2; exit 3'
run
same "status" 3 $rc
has "program" "$ML/output/failure" "ExecuteUserScriptError: run.sh"
has "exit code" "$ML/output/failure" "exit code 3"
has "stderr's last line" "$ML/output/failure" "ValueError: the cause"
has "control characters removed" "$ML/output/failure" "red text"
ok "no escape characters" bash -c "! grep -qaP '[\\x00-\\x08\\x0b-\\x1f\\x7f]' '$ML/output/failure'"
ok "valid UTF-8" iconv -f utf-8 -t utf-8 -o /dev/null "$ML/output/failure"
ok "at most 1024 bytes" test "$(stat -c %s "$ML/output/failure")" -le 1024
has "the stream itself is passed on untouched" "$W/err" $'\033[31mred'
ok "twin is there" test -s "$ML/output/failure.json"

begin long_stderr
program 'i=0; while [ $i -lt 3000 ]; do echo "line $i of a very long story that fills many pages" >&2; i=$((i+1)); done; echo "the end" >&2; exit 9'
run
same "status" 9 $rc
has "the end is kept" "$ML/output/failure" "the end"
ok "at most 1024 bytes" test "$(stat -c %s "$ML/output/failure")" -le 1024
same "nothing is lost on the way" 3001 "$(grep -acE '^(line [0-9]+ of|the end)' "$W/err")"

begin users_own_failure_file
program 'mkdir -p "$SM_OUTPUT_DIR"; echo "my own reason" >"$SM_OUTPUT_DIR/failure"; exit 4'
run
same "status" 4 $rc
same "the user's text stays" "my own reason" "$(cat "$ML/output/failure")"

begin not_there
export SAGEMAKER_PROGRAM=absent.py
run
same "status" 66 $rc
has "names it" "$ML/output/failure" "absent.py"
export SAGEMAKER_PROGRAM=run.sh

begin no_interpreter
printf '#!/no/such/interpreter\n' >"$ML/code/run.sh"
run
same "status" 127 $rc
has "says what to do" "$ML/output/failure" "interpreter"

begin cannot_execute
export SAGEMAKER_PROGRAM=program
head -c 64 /dev/zero | sed 's/\x00/\x7f/1;s/\x00/E/1;s/\x00/L/1;s/\x00/F/1' >"$ML/code/program"
run
ok "126 or 127" test $rc = 126 -o $rc = 127
ok "failure file" test -s "$ML/output/failure"
export SAGEMAKER_PROGRAM=run.sh

begin term_forwarded
program 'trap "echo saving >saved; exit 0" TERM; echo up >up; while :; do sleep 0.05; done'
start
ok "started" until_true 10 test -e "$ML/code/up"
kill -TERM "$pid"
finish
same "the program ends well: so do we" 0 $rc
same "it had its time" saving "$(cat "$ML/code/saved" 2>/dev/null)"

begin term_kills
program 'echo up >up; exec sleep 1000'
start
ok "started" until_true 10 test -e "$ML/code/up"
kill -TERM "$pid"
finish
same "143" 143 $rc
ok "a stop is no failure" test ! -e "$ML/output/failure"

begin term_group
# The shell dies of TERM at once; the program it started still saves and must not be cut off.
cat >"$W/slow.c" <<'C'
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void save(int number)
{
    (void)number;
    usleep(700000);
    fputs("done", fopen("saved", "w"));
    fflush(NULL);
    _exit(0);
}
int main(void)
{
    signal(SIGTERM, save);
    fclose(fopen("up", "w"));
    for (;;)
        pause();
}
C
cc -o "$ML/code/slow" "$W/slow.c"
program './slow; echo not reached'
start
ok "started" until_true 10 test -e "$ML/code/up"
kill -TERM "$pid"
finish
same "the grandchild finished its work" done "$(cat "$ML/code/saved" 2>/dev/null)"

begin grace
program 'trap "" TERM; echo up >up; while :; do sleep 0.05; done'
export TRAINYARD_GRACE_S=0.5
start
ok "started" until_true 10 test -e "$ML/code/up"
begun=$(date +%s%N)
kill -TERM "$pid"
finish
took=$((($(date +%s%N) - begun) / 1000000))
unset TRAINYARD_GRACE_S
same "killed at the deadline" 137 $rc
ok "not before, not long after: $took ms" test $took -ge 450 -a $took -lt 60000
has "failure says why" "$ML/output/failure" "did not end in time after SIGTERM"

begin third_signal
program 'trap "" TERM INT; echo up >up; while :; do sleep 0.05; done'
start
ok "started" until_true 10 test -e "$ML/code/up"
for sig in TERM INT TERM; do
    kill -$sig "$pid"
    sleep 0.2
done
finish
same "the third request ends it" 137 $rc

begin other_signals
program 'trap "echo usr1 >>got" USR1; trap "echo usr2 >>got" USR2; trap "exit 5" QUIT; echo up >up; while :; do sleep 0.05; done'
start
ok "started" until_true 10 test -e "$ML/code/up"
kill -USR1 "$pid"
ok "USR1" until_true 5 grep -q usr1 "$ML/code/got"
kill -USR2 "$pid"
ok "USR2" until_true 5 grep -q usr2 "$ML/code/got"
kill -QUIT "$pid"
finish
same "QUIT" 5 $rc

begin orphans
program "sleep 61.${OURS}1 & setsid sleep 61.${OURS}2 & (setsid sh -c 'sleep 61.${OURS}3 & sleep 61.${OURS}4' &) ; sleep 0.3; exit 0"
run
same "status" 0 $rc
ok "nothing is left behind" not_running "sleep 61.$OURS"
has "and it is told" "$W/err" "outlived the program"

begin stubborn_orphan
program 'sh -c "trap \"\" TERM; echo up >up; while :; do sleep 0.1; done" & while [ ! -e up ]; do sleep 0.02; done; exit 0'
begun=$(date +%s%N)
run
took=$((($(date +%s%N) - begun) / 1000000))
same "status" 0 $rc
ok "killed after a moment: $took ms" test $took -lt 60000

begin pipe_held_open
program '(setsid sh -c "trap \"\" TERM; sleep 0.5; echo late >&2; sleep 1000" &); exit 0'
run
same "status" 0 $rc

begin supervisor_dies
program 'echo $$ >child; exec sleep 1000'
start
ok "started" until_true 10 test -s "$ML/code/child"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
child=$(cat "$ML/code/child")
ok "the child does not outlive it" until_true 5 bash -c "! kill -0 $child"

begin weight
program 'echo up >up; exec sleep 1000'
start
ok "started" until_true 10 test -e "$ML/code/up"
# It is at rest when nothing of it runs for a second: from then on nothing may wake it.
wakes() { awk '/ctxt/ {n += $2} END {print n}' "/proc/$pid/status"; }
at_rest() { local before; before=$(wakes); sleep 1; [ "$before" = "$(wakes)" ]; }
ok "no wake-up while idle" until_true 2 at_rest
private=$(awk '/^Private_(Clean|Dirty)/ {n += $2} END {print n}' "/proc/$pid/smaps_rollup")
if [ "${TY_VARIANT:-release}" = release ]; then
    ok "own memory at most 600 KiB: $private" test "$private" -le 600
else
    skip "own memory" "only a release build is light"
fi
kill -TERM "$pid"
finish

begin not_a_child
# An inherited SIG_IGN for SIGCHLD would make children vanish unseen.
program 'exit 7'
(
    trap '' CHLD
    exec "$BIN/train" train >"$W/out" 2>"$W/err" </dev/null
)
has "the exit code is seen" "$ML/output/failure" "exit code 7"

begin words
for word in --help -h; do
    run $word
    same "$word" 0 $rc
    has "$word" "$W/out" "usage: train"
done
run --version
has "--version" "$W/out" "trainyard "
run serve
same "serve" 2 $rc
has "serve says what this is" "$W/err" "does not serve"
run version
same "any command of trainyard" 0 $rc
has "any command of trainyard" "$W/out" "trainyard "
run check
same "its usage errors" 2 $rc

if unshare -pf --mount-proc true 2>/dev/null; then
    begin pid1
    program 'echo "pid $$ parent $PPID" >who; sleep '63.${OURS}1' & setsid sleep '63.${OURS}2' & exit 6'
    timeout 300 unshare -pf --mount-proc "$BIN/train" train >"$W/out" 2>"$W/err"
    rc=$?
    same "status" 6 $rc
    has "we are PID 1" "$ML/code/who" "parent 1"
    ok "nothing is left" not_running "sleep 63.$OURS"

    begin pid1_zombies
    program 'i=0; while [ $i -lt 50 ]; do (sh -c "exit 3" &) ; i=$((i+1)); done; sleep 0.5; n=0
    while grep -qs "^State:.Z" /proc/[0-9]*/status && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done
    grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null | wc -l >zombies; exit 0'
    timeout 300 unshare -pf --mount-proc "$BIN/train" train >"$W/out" 2>"$W/err"
    same "orphans are reaped" 0 "$(cat "$ML/code/zombies")"

    begin pid1_term
    program 'trap "exit 0" TERM; echo up >up; while :; do sleep 0.05; done'
    unshare -pf --mount-proc --kill-child "$BIN/train" train >"$W/out" 2>"$W/err" &
    outer=$!
    ok "started" until_true 10 test -e "$ML/code/up"
    inner=$(children_of $outer | head -1)
    kill -TERM "$inner"
    wait $outer
    same "TERM works on PID 1" 0 $?

    begin pid1_early_signal
    # A signal in the first moments must not be lost: PID 1 has no default actions.
    program 'exec sleep 1000'
    unshare -pf --mount-proc --kill-child "$BIN/train" train >"$W/out" 2>"$W/err" &
    outer=$!
    until_true 5 children_of $outer >/dev/null
    inner=$(children_of $outer | head -1)
    until_true 5 grep -qs 'train' "/proc/$inner/comm"
    kill -TERM "$inner"
    wait $outer
    same "143" 143 $?
else
    skip "PID 1" "no right to make a PID namespace"
fi

finish_tests
