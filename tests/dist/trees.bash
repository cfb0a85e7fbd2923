# trees.bash - for jobs of several hosts that are trees of this machine, at addresses of it; sourced behind harness.bash,
# job.bash and gpu.bash.
#
#   need_mpi WHAT               ends the test where the plug-in for Open MPI is not there
#   tree NAME HOSTS             see below
#   hosts_start, hosts_end, hosts_run [SETTINGS...]
#
# To be replaced where a test needs others:
#   tree_recipe                 adds to the recipe: `device: cpu`
#   host_address N              of its agent
#   host_environment NAME       more variables of a host, a word each
#   host_settings               of every run, a word each
export TRAINYARD_CACHE_DIR=$SCRATCH/cache OMP_NUM_THREADS=1
. tests/ports.bash
LIMIT=${LIMIT:-900}
need_mpi() {
    [ -e "$BIN/../lib/libtrainyard-mpi.so" ] || [ -e "$BIN/../lib/trainyard/libtrainyard-mpi.so" ] && return
    skip "$1" "libtrainyard-mpi.so was not built"
    finish_tests
    exit
}
host_environment() { :; }
host_settings() { :; }

# tree NAME HOSTS: a perceptron without anything random, on hosts algo-1 .. algo-HOSTS, whose trees are $W/algo-N.
tree_recipe() { recipe "device: cpu"; }
tree() {
    local n
    perceptron "$1"
    tree_recipe
    for ((n = 1; n <= $2; n++)); do cp -r "$ML" "$W/algo-$n"; done
    hosts "$2"
}
# hosts N: the job has so many from now on, at addresses that nobody had before.
host_address() { echo "127.0.0.$1:$PORT"; }
hosts() {
    local n list='' addresses=''
    HOSTS=$1
    ports 8
    for ((n = 1; n <= HOSTS; n++)); do
        list+=${list:+, }\"algo-$n\"
        addresses+=${addresses:+,}algo-$n=$(host_address "$n")
    done
    export TRAINYARD_HOST_ADDRESSES=$addresses
    for ((n = 1; n <= HOSTS; n++)); do
        echo "{\"current_host\": \"algo-$n\", \"hosts\": [$list], \"network_interface_name\": \"lo\"}" \
            >"$W/algo-$n/input/config/resourceconfig.json"
    done
}
# hosts_start [SETTINGS...], hosts_end: streams in $W/out.N and $W/err.N, exit statuses in $statuses.
hosts_start() {
    local n
    pids=()
    for ((n = 1; n <= HOSTS; n++)); do
        empty "$W/out.$n" "$W/err.$n"
        # shellcheck disable=SC2046
        env $(host_environment "algo-$n") SAGEMAKER_BASE_DIR="$W/algo-$n" timeout -k 5 "$LIMIT" "$BIN/train" --log_every=1 \
            $(host_settings) "$@" \
            >"$W/out.$n" 2>"$W/err.$n" </dev/null &
        pids+=($!)
    done
}
hosts_end() {
    local p
    statuses=
    for p in "${pids[@]}"; do
        wait "$p"
        statuses+="${statuses:+ }$?"
    done
    cp "$W/err.1" "$W/err"
}
hosts_run() { hosts_start "$@" && hosts_end; }
# numbers FILE: metric lines, without what stands in front of a rank's and without speeds.
numbers() { sed 's/^\[1,[0-9]*\]<stdout>: *//' "$1" | grep -E '^(val )?step=' | sed -E 's/ (samples_per_s|data_ms)=.*//'; }
# ranks_of TREE: process ids of its ranks.
ranks_of() {
    local p
    for p in /proc/[0-9]*; do
        [[ "$(tr '\0' ' ' <"$p/cmdline" 2>/dev/null)" == *" rank "* ]] || continue
        tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -qx "SAGEMAKER_BASE_DIR=$1" && echo "${p#/proc/}"
    done 2>/dev/null
}
has_steps() { [ "$(numbers "$1" | grep -c ^step=)" -ge "$2" ]; }
none_left() { [ -z "$(ranks_of "$W/algo-1")$(ranks_of "$W/algo-2")" ]; }
