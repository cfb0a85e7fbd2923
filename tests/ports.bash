# ports.bash - ports of a test's own; sourced by those whose programs listen.
#
#   ports N     sets PORT to the first of N in a row that nobody has, behind those it gave before
#
# Below 32768: from there on the kernel gives ports to whoever connects. Tests that run at once begin far from each other.
PORT=$((12000 + $$ * 331 % 18000))
PORTS_GIVEN=0
ports() {
    local p hex taken
    PORT=$((PORT + PORTS_GIVEN))
    PORTS_GIVEN=$1
    while :; do
        taken=
        [ $((PORT + $1)) -gt 32000 ] && PORT=12000
        for ((p = PORT; p < PORT + $1; p++)); do
            printf -v hex ':%04X ' "$p"
            grep -qs -- "$hex" /proc/net/tcp /proc/net/tcp6 && taken=$p
        done
        [ -z "$taken" ] && return
        PORT=$((taken + 1))
    done
}
