#!/bin/bash
# hosts.sh - the hosts of the tests beside this one: what they have of their own, and that what can break on them does.
cd "$(dirname "$0")/../.." || exit 1
. tests/dist/hosts.bash
need_hosts
W=$SCRATCH
hosts_up 3
reaches() { LIMIT=3 on "$1" bash -c "exec 3<>/dev/tcp/$2/7000" 2>/dev/null; }
cannot_reach() { ! reaches "$@"; }
nothing_left() { [ -z "$(left_on "$1")" ]; }
serve() { on "$1" perl -MIO::Socket::INET -e "$server" "$2" & }
read -r -d '' server <<'SERVER'
my $s = IO::Socket::INET->new(LocalAddr => $ARGV[0], LocalPort => 7000, Listen => 9, ReuseAddr => 1) or die;
while (my $c = $s->accept) { while (sysread $c, my $bytes, 65536) {} }
SERVER

case_name=own
same "name" algo-2 "$(on algo-2 hostname)"
same "address by name" 10.9.0.13 "$(on algo-1 getent hosts algo-3 | awk '{print $1}')"
same "the trap: one address on all" "172.17.0.1/16 172.17.0.1/16" \
    "$(for h in algo-1 algo-3; do on $h ip -o -4 addr show docker0 | awk '{print $4}'; done | xargs)"
on algo-1 bash -c 'echo mine >/dev/shm/file; echo mine >/tmp/file'
same "/dev/shm and /tmp" "0" "$(on algo-2 bash -c 'ls /dev/shm/file /tmp/file 2>/dev/null | wc -l')"
same "what is left is told" "shm: file file: /tmp/file" "$(left_on algo-1 | xargs)"
on algo-1 rm /dev/shm/file /tmp/file
same "this tree" "$PWD" "$(on algo-3 pwd)"
ok "a small /dev/shm" shm algo-3 1m
same "is small" 1024 "$(on algo-3 df --output=size /dev/shm | tail -n 1 | xargs)"
forget algo-1 algo-3
same "a name that one host does not know" "2 0" "$(on algo-1 getent hosts algo-3 >/dev/null; echo -n "$? "; on algo-2 getent hosts algo-3 >/dev/null; echo $?)"

case_name=deadline
LIMIT=1 on algo-1 bash -c 'trap "" TERM; while :; do :; done'
same "who does not end is killed" 137 $?
ok "and is gone" until_true 5 nothing_left algo-1
on algo-2 bash -c '(sleep 0.2; exit 3) & exec true'
ok "who has lost his parent is reaped" until_true 5 nothing_left algo-2

case_name=links
serve algo-2 0.0.0.0
ok "a port" until_true 10 reaches algo-1 algo-2
same "is told" "listens: 00000000:1B58" "$(ports_on algo-2)"
cable algo-2 down
ok "a pulled cable" cannot_reach algo-1 algo-2
cable algo-2 up
ok "put back" until_true 10 reaches algo-1 algo-2
silence algo-2 on
ok "silence" cannot_reach algo-1 algo-2
silence algo-2 off
ok "no more" until_true 10 reaches algo-1 algo-2
rate algo-1 100mbit
milliseconds=$(now_ms)
on algo-1 bash -c 'head -c 20000000 /dev/zero >/dev/tcp/algo-2/7000'
milliseconds=$(($(now_ms) - milliseconds))
ok "20 MB at 100 Mbit/s take 1.6 s, but for what lies in buffers ($milliseconds ms)" test $milliseconds -gt 800
rate algo-1 off

pid=$(pids_on algo-2 '^perl')
ok "a process by name" kill -KILL "$pid"
ok "all is gone" until_true 5 nothing_left algo-2

case_name=down
mine=("${keeper[@]}")
hosts_down
for pid in "${mine[@]}"; do ok "the first process of a host is gone" test ! -e "/proc/$pid"; done
same "no network" "" "$(ip netns list | grep "^ty$$-")"
finish_tests
