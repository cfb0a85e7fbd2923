#!/bin/bash
# Sums of gradients behind computing: on a link of 1 Gbit/s each way, a step takes at most 1.25 times the longer one of
# computing and communication, where a core is to spare for each rank. Three tries, since others use the machine too.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${TY_BUILD:-build/release} ranks=2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
skip() {
    echo "skip: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
command -v mpirun tc unshare >/dev/null || skip "no mpirun, tc or unshare here"
[ "${TY_VARIANT:-release}" = release ] || skip "times of the variant ${TY_VARIANT} say nothing"

# Both directions share the loopback: hence twice the rate.
slow_link() {
    unshare -n bash -c 'ip link set lo mtu 9000 up && tc qdisc add dev lo root tbf rate 2gbit burst 256kb latency 50ms ||
        exit 9; exec "$@"' - "$@"
}
slow_link true 2>/dev/null || skip "no right to shape a link"
measure() {
    slow_link timeout -k 5 600 mpirun -np $ranks --oversubscribe --bind-to none --mca pml ob1 --mca btl self,tcp \
        --mca btl_tcp_if_include lo "$build/tools/collectives" overlap --turns 3 "$@"
}
# With fewer cores than two a rank the computing is done elsewhere: it sleeps.
how=(--threads 1 --cores 2)
[ "$(nproc)" -lt $((2 * ranks)) ] && how=(--asleep) && echo "$(nproc) cores: computing sleeps"
for try in 1 2 3; do
    result=$(measure "${how[@]}")
    echo "try $try: $result"
    if [[ $result =~ \"ratio\":\ ([0-9.]+) ]] && awk "BEGIN {exit !(${BASH_REMATCH[1]} <= 1.25)}"; then
        echo "1 passed, 0 failed, 0 skipped"
        exit 0
    fi
done
echo "0 passed, 1 failed, 0 skipped"
exit 1
