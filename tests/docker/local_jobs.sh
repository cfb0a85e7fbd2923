#!/bin/bash
# The examples as jobs on this machine: digits and clicks (DeepFM with parameter servers), as processes, as uid 1000's processes and
# as containers. `make test` takes the clicks on two hosts; TY_JOBS_HOSTS="1 2 3" takes both on each number of hosts (`make local-jobs`).
set -u
. "$(dirname "$0")/engine.bash"
. tests/clicks.bash
bin=$(realpath "${TY_BIN:-build/bin}")
[ -x "$bin/trainyard" ] || skip_all "$bin/trainyard is not built"
[ -e "$bin/../lib/libtrainyard-ucx.so" ] || skip_all "the plug-in for UCX was not built"
hosts=${TY_JOBS_HOSTS:-2} jobs=deepfm-c
[ -n "${TY_JOBS_HOSTS:-}" ] && jobs="digits deepfm-c"
tree=$scratch/tree # its examples, and its build with their data
mkdir "$tree"
chmod 755 "$scratch"

# ---- their data ----

clicks=${TY_SHARED:-../shared}/data/criteo-ctr
if [ -r "$clicks/raw.train.tiny.csv" ] && [ -r "$clicks/raw.test.tiny.csv" ]; then
    { cat "$clicks/raw.train.tiny.csv" && tail -n +2 "$clicks/raw.test.tiny.csv"; } >"$scratch/clicks.csv"
else
    made_clicks 600 >"$scratch/clicks.csv"
fi
mkdir -p "$tree/build/deepfm"
examples/deepfm-c/data "$scratch/clicks.csv" "$tree/build/deepfm"
if [ "$jobs" != deepfm-c ]; then
    examples/digits/data "$tree/build/digits/data" >"$scratch/download" 2>&1 || skip_all "the digits cannot be downloaded"
fi
cp -r examples "$tree"

# ---- each way ----

# as_process, as_other and as_container NAME JOB N: its output is the folder NAME. The status is the job's.
# The digits' batch is one that 2 and 3 hosts can share.
locally() {
    local more=()
    [ "$2" = digits ] && more=(--batch_size=66)
    timeout 900 "$bin/trainyard" local "$tree/examples/$2/job.yaml" --nodes "$3" --output "$1/r" "${@:4}" "${more[@]}"
}
as_process() { locally "$@" --no-docker; }
as_other() { # functions do not go through setpriv
    export -f locally
    bin=$bin tree=$tree HOME=$1 setpriv --reuid 1000 --regid 1000 --clear-groups bash -c 'locally "$@" --no-docker' - "$@"
}
as_container() { locally "$@" --docker --image "$image"; }
left() { docker ps -aq --filter name='^trainyard-[0-9]*-[0-9a-f]*-algo'; docker network ls -q --filter name='^trainyard-[0-9]*-[0-9a-f]*$'; }
nothing_runs() { ! grep -qasF "SAGEMAKER_BASE_DIR=$1/" /proc/[0-9]*/environ; }

ended_well() { [ "$1" = 0 ] || { echo "status $1"; tail -n 25 "$2"; return 1; }; }

# try WAY OWNER JOB N WORD: what the job must leave.
try() {
    local into=$scratch/$1-$3-$4 what="$3 on $4 hosts, $1"
    mkdir "$into" && chown "$2" "$into"
    "$1" "$into" "$3" "$4" >"$into/out" 2>"$into/err" </dev/null
    check "$what" ended_well $? "$into/err"
    check "$what: as asked for" has "$into/err" "^local: .*: $4 hosts? as $5"
    check "$what: validated" has "$into/out" 'val step=.* val_loss=[0-9]'
    check "$what: a model" tar -tzf "$into/r/model.tar.gz"
    check "$what: nothing else" is "$(ls "$into/r" | xargs)" "logs model.tar.gz output"
    check "$what: the caller's" is "$(find "$into/r" ! -uid "$2")" ""
    check "$what: nothing runs" nothing_runs "$into"
}

other= containers_too=
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && HOME=$scratch setpriv --reuid 1000 --regid 1000 --clear-groups test -x "$bin/trainyard"; then
    other=1
else
    echo "skip: as uid 1000: not root, there is no setpriv, or this tree is root's alone" && skipped=$((skipped + 1))
fi
if command -v docker >/dev/null && timeout 60 docker info >"$scratch/info" 2>&1; then
    need_image
    containers_too=1
    before=$(left)
else
    echo "skip: as containers: no container engine" && skipped=$((skipped + 1))
fi
for job in $jobs; do
    for n in $hosts; do
        try as_process "$(id -u)" $job "$n" process
        [ -n "$other" ] && try as_other 1000 $job "$n" process
        [ -n "$containers_too" ] && try as_container "$(id -u)" $job "$n" container
    done
done
[ -z "$containers_too" ] || check "no container and no network is left" is "$(left)" "$before"
