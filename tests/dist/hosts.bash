# hosts.bash - sourced by tests that need several hosts: each is a set of namespaces of this machine, with a cable that can
# be pulled. On top of tests/entrypoint/harness.bash.
#
#   need_hosts               ends the test as skipped, with the reason, where this machine does not allow them (root, ip, nft)
#   hosts_up N               algo-1 .. algo-N: eth0 10.9.0.11 .. on one switch, docker0 with the same 172.17.0.1 on each, and its
#                            own name, /etc/hosts, /dev/shm, /tmp and processes. $HOSTS/algo-1/ is a folder for each
#   on HOST COMMAND...       runs it there, in the folder and with the environment of here; killed after $LIMIT seconds (300)
#   pids_on HOST [REGEX]     processes there whose command line matches: ids as seen from here
#   cable HOST down|up       its link to the switch
#   silence HOST on|off      its packets are lost in both directions, and nobody is told
#   rate HOST 1gbit|off      shapes what it sends
#   shm HOST SIZE            as mount's size=
#   forget HOST NAME         HOST no longer knows NAME; without NAME, nobody knows HOST
#   left_on HOST             what somebody left there: processes, zombies, files in /dev/shm and /tmp, listening ports
#   hosts_down               kills everything there. Also done when the test ends, however it does
#
# Two names of one machine for the same file are the same file: only /tmp, /dev/shm and /etc/hosts differ between hosts, while
# this tree and $HOSTS are where they are here.
. tests/entrypoint/harness.bash
export CCACHE_DISABLE=1 # a compiler behind ccache would leave its files on the hosts, where nothing may be left
HOSTS=$SCRATCH/hosts
declare -A keeper=() # of a host: its first process
trap 'hosts_down; chmod -R u+w "$SCRATCH" 2>/dev/null; rm -rf "$SCRATCH"' EXIT
trap 'exit 1' INT TERM HUP

space() { echo "ty$$-$1"; } # of network names
now_ms() { date +%s%3N; }

need_hosts() {
    local why='' tool
    for tool in ip nft tc unshare nsenter; do
        command -v "$tool" >/dev/null || why="there is no program $tool"
    done
    [ "$(id -u)" = 0 ] || why="not root"
    if [ -z "$why" ] && ! ip netns add "$(space try)" 2>"$SCRATCH/why"; then
        why="no CAP_NET_ADMIN or CAP_SYS_ADMIN: $(tail -n 1 "$SCRATCH/why")"
    elif [ -z "$why" ]; then
        unshare -u -i -m -p --fork --mount-proc true 2>"$SCRATCH/why" &&
            ip netns exec "$(space try)" nft list ruleset 2>>"$SCRATCH/why" >&2 || why="$(tail -n 1 "$SCRATCH/why")"
        ip netns del "$(space try)"
    fi
    [ -z "$why" ] && return
    skip "hosts in namespaces" "$why"
    finish_tests
    exit
}

# What the first process of a host does: makes the place its own, then reaps who has lost his parents.
read -r -d '' keep <<'KEEP'
set -e
host=$1 place=$2 tree=$3 scratch=$4
hostname "$host"
mount --make-rprivate /
ip link set lo up
for path in "$tree" "$scratch"; do # what would hide behind the new /tmp
    [[ $path == /tmp/* ]] || continue
    mkdir -p "$place$path"
    mount --bind "$path" "$place$path"
done
mount --bind "$place/hosts" /etc/hosts
mount --rbind "$place/tmp" /tmp
mount -t tmpfs -o size=64m tmpfs /dev/shm
trap : TERM INT
echo ready >"$place/ready"
while :; do
    sleep 1000 &
    wait $! || true
done
KEEP

# end_all: waits for the jobs in ${running[@]}; exit statuses in $statuses. nothing_on HOST: no process, file or memory is left.
end_all() {
    local pid
    statuses=
    for pid in "${running[@]}"; do
        wait "$pid" 2>/dev/null
        statuses+="${statuses:+ }$?"
    done
}
nothing_on() { [ -z "$(left_on "$1")" ]; }

host_up() { # NUMBER
    local host=algo-$1 net place=$HOSTS/algo-$1 parent
    net=$(space "$host")
    mkdir -p "$place/tmp"
    ip netns add "$net"
    ip link add "p$1" netns "$(space switch)" type veth peer name eth0 netns "$net"
    ip -n "$(space switch)" link set "p$1" master br0 up
    ip -n "$net" addr add "10.9.0.1$1/24" dev eth0
    ip -n "$net" link set eth0 up
    ip -n "$net" link add docker0 type bridge
    ip -n "$net" link add v0 type veth peer name v1 # a container of the host's
    ip -n "$net" link set v0 master docker0 up
    ip -n "$net" link set v1 up
    ip -n "$net" addr add 172.17.0.1/16 dev docker0
    ip -n "$net" link set docker0 up
    ip netns exec "$net" unshare -u -i -m -p --fork --kill-child --mount-proc \
        bash -c "$keep" keep "$host" "$place" "$PWD" "$SCRATCH" >"$place/keeper.log" 2>&1 </dev/null &
    parent=$!
    until_true 20 test -e "$place/ready" || { cat "$place/keeper.log"; return 1; }
    keeper[$host]=$(children_of $parent)
}

hosts_up() { # N
    local i j
    ip netns add "$(space switch)"
    ip -n "$(space switch)" link add br0 type bridge
    ip -n "$(space switch)" link set br0 up
    for ((i = 1; i <= $1; i++)); do
        mkdir -p "$HOSTS/algo-$i"
        { echo "127.0.0.1 localhost"; for ((j = 1; j <= $1; j++)); do echo "10.9.0.1$j algo-$j"; done; } >"$HOSTS/algo-$i/hosts"
    done
    for ((i = 1; i <= $1; i++)); do
        host_up "$i" || { fail "algo-$i does not come up"; finish_tests; exit; }
    done
}

on() { # HOST COMMAND...
    local host=$1
    shift
    nsenter --target "${keeper[$host]}" --net --uts --ipc --mount --pid --wd="$PWD" -- \
        timeout -s KILL "${LIMIT:-300}" "$@"
}

pids_on() { # HOST [REGEX]
    local space pid words line
    space=$(readlink "/proc/${keeper[$1]}/ns/pid")
    for pid in $(find /proc/[0-9]*/ns/pid -printf '%p %l\n' 2>/dev/null | awk -v s="$space" '$2 == s {print $1}'); do
        pid=${pid#/proc/} pid=${pid%/ns/pid} words=()
        mapfile -d '' -t words 2>/dev/null <"/proc/$pid/cmdline"
        line=${words[*]}
        [[ $pid == "${keeper[$1]}" || $line == "sleep 1000" ]] && continue
        [[ $line =~ ${2:-} ]] && echo "$pid"
    done
}

cable() { ip -n "$(space switch)" link set "p${1#algo-}" "$2"; }
silence() {
    if [ "$2" = on ]; then
        ip netns exec "$(space "$1")" nft 'table inet silence {
            chain in { type filter hook input priority 0; policy accept; iif != "lo" drop
            }
            chain out { type filter hook output priority 0; policy accept; oif != "lo" drop
            }
        }'
    else
        ip netns exec "$(space "$1")" nft delete table inet silence
    fi
}
rate() {
    if [ "$2" = off ]; then
        tc -n "$(space "$1")" qdisc del dev eth0 root
    else
        tc -n "$(space "$1")" qdisc replace dev eth0 root tbf rate "$2" burst 256kb latency 20ms
    fi
}
shm() { on "$1" mount -o "remount,size=$2" /dev/shm; }
forget() { # HOST [NAME]: in place, for the file is mounted
    local file text
    for file in "$HOSTS"/algo-*/hosts; do
        [ $# = 2 ] && [ "$file" != "$HOSTS/$1/hosts" ] && continue
        text=$(grep -v " ${2:-$1}\$" "$file")
        echo "$text" >"$file"
    done
}

# ports_on HOST: local addresses that listen, as the kernel writes them.
ports_on() { awk 'FNR > 1 && $4 == "0A" {print "listens: " $2}' "/proc/${keeper[$1]}/net/tcp" "/proc/${keeper[$1]}/net/tcp6"; }
left_on() { # HOST
    local pid root=/proc/${keeper[$1]}/root
    for pid in $(pids_on "$1"); do
        echo "process: $pid $(grep -s '^State' "/proc/$pid/status" | cut -f 2) $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline")"
    done
    find "$root/dev/shm" -mindepth 1 -printf 'shm: %P\n'
    find "$root/tmp" \( -path "$root$PWD" -o -path "$root$SCRATCH" \) -prune -o -not -type d -printf 'file: /tmp/%P\n'
    ports_on "$1"
}

hosts_down() {
    local host name
    for host in "${!keeper[@]}"; do kill -KILL "${keeper[$host]}"; done 2>/dev/null
    keeper=()
    wait 2>/dev/null
    for name in $(ip netns list 2>/dev/null | awk -v mine="ty$$-" 'index($1, mine) == 1 {print $1}'); do
        ip netns del "$name"
    done
}
