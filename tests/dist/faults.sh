#!/bin/bash
# faults.sh [CYCLES [CASE...]] - ranks that add up numbers by Open MPI, without a pause, on hosts of their own, where links break
# and processes die: who is to blame is said on all hosts, in time, and nothing is left behind.
#
# CYCLES: how many jobs are started and ended in a row, and how many are killed at a process chosen by chance (10).
cd "$(dirname "$0")/../.." || exit 1
. tests/dist/hosts.bash
TOOLS=$(realpath "${TY_BUILD:-build/release}/tools")
AGENT=$TOOLS/agent RANKS=$TOOLS/ranks
CYCLES=${1:-10} LIMIT=300
[ "${TY_VARIANT:-release}" = release ] || { skip "faults" "times are those of the release variant"; finish_tests; exit; }
[ -e "$TOOLS/../lib/libtrainyard-mpi.so" ] || { skip "faults" "the plug-in for Open MPI was not built"; finish_tests; exit; }
need_hosts
hosts_up 3

# agents "HOST:RANKS,..." "OPTIONS" PROGRAM...: one agent a host, as the worker would be; $W/HOST is what it says.
agents() {
    local list=$1 options=$2 host
    shift 2
    job=() hosts=${list//:[0-9]/}
    for host in ${hosts//,/ }; do
        agent_on "$host" "$list" "$options" "$@"
    done
}
agent_on() { # HOST LIST OPTIONS PROGRAM...
    local host=$1 list=$2 options=$3
    shift 3
    empty "$W/$host" "$W/$host.err"
    # shellcheck disable=SC2086
    on "$host" env TMPDIR=/tmp "$AGENT" --hosts "$list" --self $((${host#algo-} - 1)) --address names --mpi $options -- "$@" \
        >"$W/$host" 2>"$W/$host.err" </dev/null &
    job+=($!)
}
# all_end: waits for the agents that are left; the last lines, once if they are equal, in $end.
all_end() {
    local pid host
    for pid in "${job[@]}"; do wait "$pid"; done 2>/dev/null
    end=$(for host in ${hosts//,/ }; do tail -n 1 "$W/$host"; done | sort -u)
}
# under_way: the ranks of all hosts add up numbers, again and again.
under_way() { grep -qs 'loop: 20 sums' "$W/algo-1"; }
agent_of() { pids_on "$1" "^$AGENT --hosts"; }
rank_of() { pids_on "$1" "^$RANKS loop" | sed -n "${2:-1}p"; }
nothing_left() { # HOST...
    local host
    for host; do [ -z "$(left_on "$host")" ] || return 1; done
}
no_process() {
    local host
    for host; do [ -z "$(pids_on "$host")" ] || return 1; done
}
clean() { # HOST...
    if until_true 5 nothing_left "$@"; then pass; else fail "nothing is left" "$(for host; do left_on "$host"; done)"; fi
}
# within MS: the time since $begun_ms.
within() {
    local took=$(($(now_ms) - begun_ms))
    echo "$case_name: $took ms"
    ok "in time: $took ms" test $took -lt "$1"
}
hit() { # SIGNAL PROCESS
    begun_ms=$(now_ms)
    kill "-$1" "$2"
}
start() { # LIST OPTIONS
    agents "$1" "$2" "$RANKS" loop
    until_true 30 under_way || fail "the ranks do not begin" "$(tail -n 5 "$W"/algo-*)"
    begun_ms=$(now_ms)
}

case_trap() {
    agents algo-1:1,algo-2:1,algo-3:1 --look "$RANKS" all
    all_end
    same "all is well, without options" "end: status 0 generation 0" "$end"
    has "the right interface" "$W/algo-2.err" "algo-2 uses eth0 (of this host's name), 10.9.0.12"
    has "all collectives" "$W/algo-1" "3 ranks, 1 on this host: 0 faults on rank 0"
    clean algo-1 algo-2 algo-3
}

case_cable() {
    start algo-1:1,algo-2:1,algo-3:1 ""
    cable algo-3 down
    wait "${job[0]}" "${job[1]}"
    within 10000
    has "who" "$W/algo-1" "lost algo-3 (no answer for"
    same "the same on both" "$(tail -n 1 "$W/algo-1")" "$(tail -n 1 "$W/algo-2")"
    all_end
    within 13000
    has "the other side" "$W/algo-3" "lost algo-1 ("
    cable algo-3 up
    clean algo-1 algo-2 algo-3
}

case_stopped_rank() {
    start algo-1:1,algo-2:2 "--warn 1000 --stall 2000"
    hit STOP "$(rank_of algo-2 1)"
    all_end
    within 8000
    # Where it was stopped within a sum, one that still waits for its part of that sum may be named beside it.
    if grep -qE 'Missing: (0 \(.*, )?1 \(algo-2, stopped by a signal, phase "step",' <<<"$end"; then
        pass
    else
        fail "who, and why" "$end"
    fi
    same "on all" 1 "$(wc -l <<<"$end")"
    clean algo-1 algo-2
}

case_killed_rank() {
    start algo-1:1,algo-2:2 ""
    hit KILL "$(rank_of algo-2 2)"
    all_end
    within 2000
    has "who" <(echo "$end") "rank 2 (algo-2, pid"
    has "how" <(echo "$end") "was killed by signal 9"
    same "on all" 1 "$(wc -l <<<"$end")"
    clean algo-1 algo-2
}

case_killed_agent() {
    start algo-1:1,algo-2:1,algo-3:1 ""
    hit KILL "$(agent_of algo-2)"
    wait "${job[0]}" "${job[2]}"
    within 2000
    has "who" "$W/algo-1" "lost algo-2 ("
    same "on both" "$(tail -n 1 "$W/algo-1")" "$(tail -n 1 "$W/algo-3")"
    all_end 2>/dev/null
    clean algo-1 algo-3
    ok "its rank is gone" until_true 2 no_process algo-2
}

case_killed_leader() {
    start algo-1:1,algo-2:1,algo-3:1 ""
    hit KILL "$(agent_of algo-1)"
    wait "${job[1]}" "${job[2]}"
    within 2000
    has "who" "$W/algo-2" "lost algo-1 ("
    same "on both" "$(tail -n 1 "$W/algo-2")" "$(tail -n 1 "$W/algo-3")"
    all_end 2>/dev/null
    clean algo-2 algo-3
}

case_small_shm() {
    shm algo-2 1m
    agents algo-1:1,algo-2:2 --look "$RANKS" all
    all_end
    same "it works" "end: status 0 generation 0" "$end"
    has "and is told" "$W/algo-1.err" "/dev/shm"
    shm algo-2 64m
    clean algo-1 algo-2
}

# What algo-2 sent to the leader is recorded on its interface and sent again, by the same host.
case_strangers() {
    read -r -d '' record <<'PERL'
$| = 1;
socket my $s, 17, 3, unpack("n", pack("S", 3)) or die;
while (sysread $s, my $frame, 65536) {
    my @b = unpack "x14 C x8 C", $frame;
    next unless unpack("x12 n", $frame) == 0x800 && $b[1] == 6;
    my $ip = ($b[0] & 15) * 4;
    my ($to) = unpack "x" . (14 + $ip + 2) . " n", $frame;
    my $tcp = (unpack("x" . (14 + $ip + 12) . " C", $frame) >> 4) * 4;
    print substr $frame, 14 + $ip + $tcp, unpack("x16 n", $frame) - $ip - $tcp if $to == 7777;
}
PERL
    on algo-2 perl -e "$record" >"$W/recorded" &
    recorder=$!
    start algo-1:1,algo-2:1 ""
    ok "something was recorded" test -s "$W/recorded"
    kill -KILL "$(pids_on algo-2 '^perl')"
    wait $recorder 2>/dev/null
    lines=$(wc -l <"$W/algo-1.err")
    for i in 1 2 3; do
        LIMIT=8 on algo-2 bash -c "exec 3<>/dev/tcp/algo-1/7777 && cat '$W/recorded' >&3 && cat <&3 >/dev/null"
        LIMIT=8 on algo-3 bash -c "exec 3<>/dev/tcp/algo-1/7777 && printf 'GET / HTTP/1.1\r\nHost: algo-1\r\n\r\n' >&3 && cat <&3 >/dev/null"
    done 2>"$W/refused"
    ok "each is told once" test $(($(wc -l <"$W/algo-1.err") - lines)) -le 2
    tail -n +$((lines + 1)) "$W/algo-1.err"
    kill -TERM "$(agent_of algo-1)"
    all_end
    has "nothing has changed" <(echo "$end") "stopped generation 0"
    same "on all" 1 "$(wc -l <<<"$end")"
    clean algo-1 algo-2 algo-3
}

case_cycles() {
    bad=
    for ((i = 0; i < CYCLES; i++)); do
        agents algo-1:1,algo-2:1 "" "$RANKS" loop --rounds 3
        all_end
        [ "$end" = "end: status 0 generation 0" ] && until_true 5 nothing_left algo-1 algo-2 || bad+=" $i: $end"
    done
    same "$CYCLES starts and ends" "" "$bad"
    bad=
    for ((i = 0; i < CYCLES; i++)); do
        rm -f "$W"/algo-*
        start algo-1:1,algo-2:2 ""
        case $((RANDOM % 5)) in
        0) hit KILL "$(rank_of algo-1)"; expected="rank 0 (algo-1" ;;
        1) hit KILL "$(rank_of algo-2 1)"; expected="rank 1 (algo-2" ;;
        2) hit KILL "$(rank_of algo-2 2)"; expected="rank 2 (algo-2" ;;
        3) hit KILL "$(agent_of algo-1)"; expected="lost algo-1" ;;
        4) hit KILL "$(agent_of algo-2)"; expected="lost algo-2" ;;
        esac
        all_end
        [[ $end == *"$expected"* ]] || bad+=" $i: expected $expected, found $end"
        # Nobody outlives a job; what an agent that was killed could not remove, the next one does.
        until_true 5 no_process algo-1 algo-2 || bad+=" $i: $(pids_on algo-1) $(pids_on algo-2) live"
    done
    same "$CYCLES kills" "" "$bad"
    agents algo-1:1,algo-2:1 "" "$RANKS" loop --rounds 3
    all_end
    clean algo-1 algo-2
}

shift
for case in ${*:-trap cable stopped_rank killed_rank killed_agent killed_leader small_shm strangers cycles}; do
    begin "$case"
    "case_$case"
done
finish_tests
