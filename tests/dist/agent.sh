#!/bin/bash
# agent.sh - agents of several hosts on one machine, with small programs as ranks: who is waited for, who fails first, what
# all of them say at the end, and what is left behind, which is nothing.
#
# AGENT_CYCLES=200 (10) start/stop cycles and as many kills of a process chosen by chance.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
AGENT=$(realpath "${AGENT:-${TY_BUILD:-build/release}/tools/agent}")
CYCLES=${AGENT_CYCLES:-10}
[ "${TY_VARIANT:-release}" = release ] || CYCLES=3
export TMPDIR=$SCRATCH
now_ms() { date +%s%3N; }
. tests/ports.bash
# Ends that are to come of themselves, not with the heartbeat, which here is slower than SOON: machines may be slow.
LIMIT=300 LINK="--link 120000" SOON_MS=60000

# agents "HOST:RANKS,..." "OPTIONS" PROGRAM ARGS...: one agent a host in the background; ids in agent[].
# agent_of I ...: the one of host I alone, at the port that is there.
agents() {
    local hosts=$1 i=0 host
    ports 1
    agent=()
    for host in ${hosts//,/ }; do
        agent_of $i "$@"
        i=$((i + 1))
    done
}
agent_of() {
    local i=$1 hosts=$2 options=$3
    shift 3
    empty "$W/$i" "$W/$i.err"
    # shellcheck disable=SC2086
    timeout -k 1 $LIMIT "$AGENT" --hosts "$hosts" --self "$i" --port $PORT $options ${extra[$i]:-} -- "$@" >"$W/$i" 2>"$W/$i.err" </dev/null &
    agent[i]=$!
}
declare -A extra=()
# all_end: waits for them; statuses in $statuses ("0 0 0"), the last lines, if they are all equal, in $end.
all_end() {
    local i s
    statuses= end=
    for i in "${!agent[@]}"; do
        wait "${agent[$i]}" 2>/dev/null
        s=$?
        statuses+="${statuses:+ }$s"
    done
    end=$(for i in "${!agent[@]}"; do tail -n 1 "$W/$i"; done | sort -u)
}
# pid of the agent itself, the child of timeout.
agent_pid() { children_of "${agent[$1]}" | head -n 1; }
ranks_up() { [ "$(ls "$W" | grep -c '^up')" = "$1" ]; }
rank_pid() { cat "$W/up$1"; }
gone() { ! kill -0 "$1" 2>/dev/null || [ "$(awk '{print $3}' "/proc/$1/stat" 2>/dev/null)" = Z ]; }
# A program that says that it is up and lives until it is told otherwise.
linger='echo $$ >'$SCRATCH'/tmp$RANK; mv '$SCRATCH'/tmp$RANK "$0/up$RANK"; trap "exit 0" TERM; while :; do sleep 0.05; done'

begin all_well
agents a:2,b:1,c:1 "" sh -c 'echo "rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE"'
all_end
same "statuses" "0 0 0" "$statuses"
same "the same end" "end: status 0 generation 0" "$end"
for i in 0 1 2 3; do has "the leader shows rank $i" "$W/0" "rank $i of 4"; done
lacks "others show their own" "$W/1" "rank 3 of 4"

# The leader's reader takes nothing until the other host's rank has been made to wait: memory holds some megabytes of 16.
begin slow_reader
mkfifo "$W/pipe"
ports 1
agent=()
(until_true 30 test -e "$W/go"; exec grep -c '<stdout>:a line' >"$W/lines") <"$W/pipe" &
reader=$!
timeout -k 1 $LIMIT "$AGENT" --hosts a:1,b:1 --self 0 --port $PORT -- true >"$W/pipe" 2>"$W/0.err" </dev/null &
agent+=($!)
timeout -k 1 $LIMIT "$AGENT" --hosts a:1,b:1 --self 1 --port $PORT -- sh -c 'echo $$ >"$0/pid"; exec seq -f "a line of sixty-four bytes, and each arrives: %018g" 250000' "$W" \
    >/dev/null 2>"$W/1.err" </dev/null &
agent+=($!)
written() { awk '/^wchar/ {print $2}' "/proc/$(cat "$W/pid")/io"; }
waits() { # it has written a part, and nothing more for a while
    local before
    before=$(written) && [ "${before:-0}" -gt 1000000 ] && sleep 0.3 && [ "$before" = "$(written)" ]
}
ok "the rank waits" until_true 30 waits
touch "$W/go"
for i in 0 1; do wait "${agent[$i]}" && agent[i]=well; done
wait $reader
same "both end well" "well well" "${agent[*]}"
same "every line arrives" 250000 "$(cat "$W/lines")"

begin one_host
agents solo:2 "" sh -c 'exit $((RANK * 4))'
all_end
same "status" 4 "$statuses"
has "culprit" "$W/0" "rank 1 host 0 signal 0: rank 1 (solo, pid"

begin exit_status
agents a:2,b:2 "$LINK" sh -c '[ $RANK = 2 ] && exit 7; sleep 1000'
begun=$(now_ms)
all_end
took=$(($(now_ms) - begun))
same "statuses" "7 7" "$statuses"
has "culprit" <(echo "$end") "failed generation 0 rank 2 host 1 signal 0: rank 2 (b, pid"
has "how" <(echo "$end") "ended with status 7; stopping 4 ranks"
ok "in time: $took ms" test $took -lt $SOON_MS

begin kill_rank
agents a:2,b:2 "$LINK" sh -c "$linger" "$W"
ok "started" until_true 20 ranks_up 4
victim=$(rank_pid 3)
begun=$(now_ms)
kill -9 "$victim"
all_end
took=$(($(now_ms) - begun))
same "statuses" "137 137" "$statuses"
has "culprit" <(echo "$end") "rank 3 host 1 signal 9: rank 3 (b, pid $victim) was killed by signal 9 (KILL)"
has "a hint" <(echo "$end") "OOM killer: host memory was"
ok "in time: $took ms" test $took -lt $SOON_MS

# Rank 0 notices at once that rank 3 is gone and leaves with an error of its own: it is not the one to blame.
begin first_culprit
agents a:2,b:2 "" sh -c 'echo $$ >"$0/tmp$RANK"; mv "$0/tmp$RANK" "$0/up$RANK"
    while [ ! -e "$0/go" ]; do sleep 0.02; done
    [ $RANK = 3 ] && kill -9 $$
    until grep -q "^State:.Z" "/proc/$(cat "$0/up3")/status"; do sleep 0.02; done; exit 1' "$W"
ok "started" until_true 20 ranks_up 4
touch "$W/go"
all_end
has "culprit" <(echo "$end") "rank 3 host 1 signal 9"

# The killed rank's agent comes to it only after another rank has left with an error of its own.
begin late_news
agents a:1,b:1 "" sh -c 'echo $$ >"$0/tmp$RANK"; mv "$0/tmp$RANK" "$0/up$RANK"; while [ ! -e "$0/go" ]; do sleep 0.02; done; exit 1' "$W"
ok "started" until_true 20 ranks_up 2
slow=$(agent_pid 1)
kill -STOP "$slow"
kill -9 "$(rank_pid 1)"
touch "$W/go"
ok "the other leaves" until_true 20 gone "$(rank_pid 0)"
sleep 0.6 # longer than a leader listens that does not ask
kill -CONT "$slow"
all_end
has "culprit" <(echo "$end") "rank 1 host 1 signal 9"

begin kill_agent
agents a:1,b:2,c:1 "$LINK" sh -c "$linger" "$W"
ok "started" until_true 20 ranks_up 4
begun=$(now_ms)
kill -9 "$(agent_pid 1)"
wait "${agent[0]}"; first=$?
wait "${agent[2]}"; third=$?
took=$(($(now_ms) - begun))
same "statuses" "70 70" "$first $third"
has "culprit" "$W/0" "rank -1 host 1 signal 0: lost b (its agent closed the link on lo 127.0.0.1)"
same "the same on all" "$(tail -n 1 "$W/0")" "$(tail -n 1 "$W/2")"
ok "its ranks are gone" until_true 2 gone "$(rank_pid 1)"
ok "in time: $took ms" test $took -lt $SOON_MS

begin kill_leader
agents a:1,b:1,c:1 "$LINK" sh -c "$linger" "$W"
ok "started" until_true 20 ranks_up 3
begun=$(now_ms)
kill -9 "$(agent_pid 0)"
wait "${agent[1]}"; second=$?
wait "${agent[2]}"; third=$?
took=$(($(now_ms) - begun))
same "statuses" "70 70" "$second $third"
has "culprit" "$W/1" "host 0 signal 0: lost a (its agent closed the link"
same "the same on all" "$(tail -n 1 "$W/1")" "$(tail -n 1 "$W/2")"
ok "its rank is gone" until_true 2 gone "$(rank_pid 0)"
ok "in time: $took ms" test $took -lt $SOON_MS

# The whole host is frozen: nothing is closed, nothing answers.
begin frozen_agent
agents a:1,b:1 "--link 3000" sh -c "$linger" "$W"
ok "started" until_true 20 ranks_up 2
frozen=$(agent_pid 1)
kill -STOP "$frozen"
wait "${agent[0]}"
has "culprit" "$W/0" "lost b (no answer for"
kill -KILL "$frozen"
wait "${agent[1]}"

# All machines are frozen, as virtual ones are that move: who was asleep himself has heard nobody, and loses nobody.
begin asleep
agents a:1,b:1 "--link 3000" sh -c "$linger" "$W"
ok "started" until_true 20 ranks_up 2
both=("$(agent_pid 0)" "$(agent_pid 1)")
kill -STOP "${both[@]}"
sleep 3.5
kill -CONT "${both[@]}"
sleep 1.5 # it is looked at once a second
kill -TERM "${both[0]}"
all_end
same "nobody was lost" "end: status 0 stopped generation 0" "$end"

begin stop_one_stops_all
agents a:1,b:2,c:1 "" sh -c "$linger" "$W"
ok "started" until_true 20 ranks_up 4
kill -TERM "$(agent_pid 2)"
all_end
same "statuses" "0 0 0" "$statuses"
same "the same end" "end: status 0 stopped generation 0" "$end"

begin stubborn_rank
agents a:1,b:1 "--stop 300" sh -c 'trap "" TERM; touch "$0/up$RANK"; while :; do sleep 0.05; done' "$W"
ok "started" until_true 20 ranks_up 2
kill -TERM "$(agent_pid 0)"
all_end
same "statuses" "137 137" "$statuses"

# A rank that is killed, or that leaves early, while all stop: who waits for it does not use up the time of a stop.
begin leaves_others_in_a_stop
agents a:1,b:2 "--stop 60000" "$AGENT" rank leave 1
for i in 0 1; do ok "they are up" until_true 20 grep -q "^.*<stdout>:up" "$W/$i"; done
ok "both of b" until_true 20 grep -q "1,2.*up" "$W/1"
kill -TERM "$(agent_pid 1)"
all_end
same "the others are told" "150 150" "$statuses"

# Two of three hosts wait for the third: the one that is told to stop tells the other.
stop_while_waiting() { # NAME WHO
    begin "$1"
    ports 1
    agent=()
    for i in 0 1; do agent_of $i a:1,b:1,c:1 "--leave 300" true; done
    ok "they wait" until_true 20 grep -q "b is here" "$W/0.err"
    kill -TERM "$(agent_pid "$2")"
    all_end
    same "both leave" "0 0" "$statuses"
    same "no rank was started" "end: status 0 stopped generation -1" "$end"
    for i in 0 1; do has "who was told, on host $i" "$W/$i.err" "$([ "$2" = 0 ] && echo a || echo b) was asked to stop"; done
    has "who was waited for" "$W/0.err" "while waiting for c ("
}
stop_while_waiting stop_of_the_leader_while_waiting 0
stop_while_waiting stop_of_another_while_waiting 1

begin told_when_it_comes
ports 1
agent=()
agent_of 0 a:1,b:1 "--leave 250000" true
ok "it waits" until_true 20 grep -q "uses lo" "$W/0.err"
kill -TERM "$(agent_pid 0)"
ok "it is told" until_true 20 grep -q "a was asked to stop while waiting for b" "$W/0.err"
agent_of 1 a:1,b:1 "" true
all_end
same "the late one as well" "0 0" "$statuses"
same "no rank was started" "end: status 0 stopped generation -1" "$end"

begin tells_when_there_is_somebody
ports 1
agent=()
extra=([0]="--leave 300" [1]="--leave 250000")
agent_of 1 a:1,b:1,c:1 "" true
ok "it knocks" until_true 20 grep -q "uses lo" "$W/1.err"
kill -TERM "$(agent_pid 1)"
agent_of 0 a:1,b:1,c:1 "" true
extra=()
all_end
same "both leave" "0 0" "$statuses"
has "who was told" "$W/0.err" "b was asked to stop while waiting for c"

begin nobody_comes
ports 1
agent=()
for i in 0 1; do
    agent_of $i a:1,b:1,c:1 "--leave 100" true
    ok "it waits" until_true 20 grep -q "uses lo" "$W/$i.err"
    kill -TERM "$(agent_pid $i)"
    wait "${agent[$i]}"
done
has "the leader" "$W/0.err" "a was asked to stop while waiting for b"
has "another one" "$W/1" "asked to stop while waiting for a ("

begin wrong_secret
extra=([1]="--secret other")
agents a:1,b:1 "--meet 5000" true
extra=()
all_end
same "statuses" "99 99" "$statuses"
has "leader" "$W/0" "1 of 2 hosts did not arrive within"
has "reason" "$W/0" "authentication failed"
has "member" "$W/1" "authentication failed"
same "told once" 1 "$(grep -c 'was refused' "$W/0.err")"

begin other_program
extra=([0]="--fact program=sha256:aa" [1]="--fact program=sha256:bb")
agents a:1,b:1 "" true
extra=()
all_end
same "statuses" "99 99" "$statuses"
same "the same words" 'never began: dist: program differs: a has "sha256:aa", b has "sha256:bb"' "$end"

begin missing_host
ports 1
timeout -k 1 $LIMIT "$AGENT" --hosts 127.0.0.1:1,nobody.invalid:1 --self 0 --port $PORT --address names --interface lo \
    --meet 1500 -- true >"$W/0" 2>"$W/0.err"
same "status" 99 $?
ok "why" grep -qE '1 of 2 hosts did not arrive within [0-9]+ s: nobody\.invalid \(name unresolved\)' "$W/0"

begin port_taken
agents a:1,b:1 "--meet 200000" sh -c "$linger" "$W"
ok "started" until_true 20 ranks_up 2
timeout -k 1 $LIMIT "$AGENT" --hosts a:1,b:1 --self 0 --port $PORT -- true >"$W/again" 2>&1
has "second leader" "$W/again" "cannot listen on 127.0.0.1 port $PORT"
timeout -k 1 $LIMIT "$AGENT" --hosts a:1,b:1 --self 1 --port $PORT -- true >"$W/again" 2>&1
has "second member" "$W/again" "the job has begun without b"
# Strangers, while it runs: nothing changes, one line each.
for i in 1 2 3; do (exec 3<>/dev/tcp/127.0.0.1/$PORT && printf 'GET / HTTP/1.1\r\nHost: somewhere\r\nAccept: all\r\n\r\n' >&3 && cat <&3) >/dev/null 2>&1; done
same "a stranger is told of once" 1 "$(grep -c 'no agent of this version' "$W/0.err")"
kill -TERM "$(agent_pid 0)"
all_end
same "nothing changed" "end: status 0 stopped generation 0" "$end"

begin no_program
agents a:1,b:1 "" /nowhere/program
all_end
has "culprit" <(echo "$end") "cannot go on: "
has "which" <(echo "$end") "/nowhere/program"

begin restart
agents a:1,b:2 "--restarts 2 --pause 100" sh -c '[ -e "$0/tried" ] && exit 0; [ $RANK = 2 ] && { touch "$0/tried"; exit 5; }; sleep 1000' "$W"
all_end
same "statuses" "0 0" "$statuses"
same "the second time" "end: status 0 generation 1" "$end"
has "told" "$W/0.err" "restart 1 of 2"
# Hosts without ranks are through with a generation before the leader has started its own.
begin hosts_without_ranks
for i in 1 2 3; do
    agents a:1,b:0,c:0,d:0,e:0,f:0,g:0,h:0,i:0,j:0,k:0,l:0,m:0,n:0 "--restarts 1 --pause 1" false
    all_end
    has "all end, after a restart" <(echo "$end") "end: status 1 failed generation 1 rank 0 host 0"
done
begin restart_in_vain
agents a:1,b:1 "--restarts 2 --pause 50" sh -c 'exit $((RANK * 3))'
all_end
same "statuses" "3 3" "$statuses"
has "the third time" <(echo "$end") "generation 2 rank 1 host 1"

begin stall
mkdir "$W/record"
agents a:2,b:2 "--warn 1000 --stall 5000 --record $W/record" "$AGENT" rank stall 2
all_end
has "warned" "$W/0.err" "stall: all-reduce #3 (step 812, bucket 3 'dense_2/kernel' 4.0 MB) waits"
has "who" <(echo "$end") "Arrived: 0 1 3. Missing: 2 (b, phase \"data\","
same "a record a rank" 4 "$(ls "$W/record" | wc -l)"
has "of its operations" "$W/record/operations-rank-1.jsonl" '"number":3,"kind":"all-reduce","name":"dense_2/kernel","bucket":3'
has "the rank that is missing" <(echo "$end") "rank 2 host 1"
begin stopped_rank
agents a:2,b:1 "--warn 500 --stop 300" "$AGENT" rank stall 2
ok "it stalls" until_true 20 grep -q "stall: " "$W/0.err"
for pid in $(children_of "$(agent_pid 1)"); do kill -STOP "$pid"; done
ok "who" until_true 20 grep -qF "Missing: 2 (b, stopped by a signal" "$W/0.err"
kill -TERM "$(agent_pid 0)"
all_end
same "told to stop, all end" "143 143" "$statuses"
begin uneven_data
agents a:1,b:1 "--warn 500 --stall 1000" "$AGENT" rank shrink 1
all_end
has "who" <(echo "$end") "Rank 1 finished its data after step 811, the others continue: use drop_remainder"

begin look
agents a:1,b:1 "--look" true
all_end
same "statuses" "0 0" "$statuses"
has "table" "$W/0.err" "look: a -> b: "

begin nothing_left
bad=
for ((i = 0; i < CYCLES; i++)); do
    agents a:1,b:1 "" true
    all_end
    [ "$statuses" = "0 0" ] || bad+=" $i:$statuses"
done
same "$CYCLES cycles" "" "$bad"
bad=
for ((i = 0; i < CYCLES; i++)); do
    rm -f "$W"/up*
    agents a:2,b:1 "" sh -c "$linger" "$W"
    until_true 20 ranks_up 3 || bad+=" $i:not-up"
    who=$((RANDOM % 5))
    if [ $who -lt 3 ]; then
        kill -9 "$(rank_pid $who)"
        expected="signal 9: rank $who ("
    else
        kill -9 "$(agent_pid $((who - 3)))"
        expected="lost $([ $who = 3 ] && echo a || echo b) ("
    fi
    all_end
    grep -qF "$expected" "$W/0" "$W/1" || bad+=" $i:$who"
    for up in "$W"/up*; do until_true 2 gone "$(cat "$up")" || bad+=" $i:lives"; done
done
same "$CYCLES kills: the right culprit, and nobody lives" "" "$bad"
agents a:1,b:1 "" true # who starts next removes what the killed left
all_end
same "no folders" "" "$(ls -d "$SCRATCH"/trainyard-* 2>/dev/null)"
ok "no processes" not_running "$AGENT"
finish_tests
