#!/bin/bash
# agent_hosts.sh - agents on hosts of their own: names, the interface among traps, pulled cables, lost packets, late hosts.
cd "$(dirname "$0")/../.." || exit 1
. tests/dist/hosts.bash
need_hosts
AGENT=$(realpath "${AGENT:-${TY_BUILD:-build/release}/tools/agent}")
hosts_up 3
agent=()
# start_on I "OPTIONS" PROGRAM...: the agent of host I of 3, in the background.
start_on() {
    local i=$1 options=$2
    shift 2
    empty "$W/$i" "$W/$i.err"
    # shellcheck disable=SC2086
    on "algo-$i" "$AGENT" --hosts "${MAP:-algo-1:1,algo-2:2,algo-3:1}" --self $((i - 1)) --address names $options -- "$@" \
        >"$W/$i" 2>"$W/$i.err" </dev/null &
    agent[$i]=$!
}
start_all() { for i in 1 2 3; do start_on $i "$@"; done; }
# ends I...: waits for them; statuses in $ended.
ends() {
    local i
    ended=
    for i; do
        wait "${agent[$i]}" 2>/dev/null
        ended+="$? "
    done
}
end_of() { tail -n 1 "$W/$1"; }
ranks_up() { [ "$(ls "$W" | grep -c '^up')" = "$1" ]; }
linger='touch "$0/up$RANK"; trap "exit 0" TERM; while :; do sleep 0.05; done'
nothing_left() { [ -z "$(left_on "$1" | grep -v '^file: /tmp/trainyard')" ]; }

begin names_and_traps
start_all "--look" sh -c 'echo "$MASTER_ADDR $OMPI_MCA_btl_tcp_if_include $NCCL_SOCKET_IFNAME"'
ends 1 2 3
same "statuses" "0 0 0 " "$ended"
has "interface" "$W/2.err" "algo-2 uses eth0 (of this host's name), 10.9.0.12"
has "the trap is seen" "$W/1.err" "172.17.0.1 (algo-1, algo-2, algo-3)"
has "all pairs" "$W/1.err" "look: algo-3 -> algo-2: "
has "ranks are told" "$W/3" "eth0"
for i in 1 2 3; do ok "algo-$i is clean" until_true 5 nothing_left "algo-$i"; done

begin cable_pulled
start_all "" sh -c "$linger" "$W"
ok "started" until_true 20 ranks_up 4
begun=$(now_ms)
cable algo-2 down
ends 1 2 3
same "statuses" "70 70 70 " "$ended"
took=$(($(now_ms) - begun))
cable algo-2 up
ok "in time: $took ms" test $took -lt 10000
has "culprit" "$W/1" "host 1 signal 0: lost algo-2 (no answer for"
has "where" "$W/1" "on eth0 10.9.0.12)"
same "the same on the hosts that are left" "$(end_of 1)" "$(end_of 3)"
has "the other side of it" "$W/2" "lost algo-1 (no answer for"
ok "no rank is left there" until_true 5 nothing_left algo-2

begin packets_lost
start_all "" sh -c "$linger" "$W"
ok "started" until_true 20 ranks_up 4
begun=$(now_ms)
silence algo-3 on
ends 1 2
same "statuses" "70 70 " "$ended"
took=$(($(now_ms) - begun))
wait "${agent[3]}"
silence algo-3 off
ok "in time: $took ms" test $took -lt 10000
has "culprit" "$W/2" "lost algo-3 (no answer for"

begin late_host
start_on 1 "" true
start_on 2 "" true
ok "the leader waits" until_true 20 grep -q "algo-2 is here" "$W/1.err"
start_on 3 "" true
ends 1 2 3
same "statuses" "0 0 0 " "$ended"

begin stranger
MAP=algo-1:1,algo-2:1
for i in 1 2; do start_on $i "" sh -c "$linger" "$W"; done
ok "started" until_true 20 ranks_up 2
for i in 1 2 3; do LIMIT=2 on algo-3 bash -c 'exec 3<>/dev/tcp/10.9.0.11/7777 && cat <&3' >"$W/heard" 2>/dev/null; done
same "nothing is said to it" 0 "$(stat -c %s "$W/heard")"
same "told once" 1 "$(grep -c 'from 10.9.0.13:[0-9]* was refused: no host of this job has this address' "$W/1.err")"
kill -TERM "$(pids_on algo-2 '^[^ ]*/agent --hosts' | head -n 1)"
ends 1 2
same "statuses" "0 0 " "$ended"
same "nothing changed" "end: status 0 stopped generation 0" "$(end_of 1)"
MAP=

begin unknown_name
forget algo-1 algo-3
for i in 1 2; do start_on $i "--meet 2500" true; done
ends 1 2
same "statuses" "99 99 " "$ended"
has "why" "$W/1" "1 of 3 hosts did not arrive within"
has "who" "$W/1" "algo-3 (name unresolved)"
has "others say the same" "$W/2" "algo-3 (name unresolved)"
finish_tests
