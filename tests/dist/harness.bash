# harness.bash - sourced by the scripts here: checks that count, programs with a deadline, what they left behind.
#
#   begin NAME             the next case
#   ranks [OPTIONS] ARGV   tests/tools/launch; status in $rc, streams in $OUT and $ERR ($LIMIT: seconds)
#   same WHAT A B, has WHAT FILE TEXT, skip REASON
#   running, folders       what is left: processes of $SCRATCH, folders that no process has locked
set -u
export ASAN_OPTIONS=${ASAN_OPTIONS:-intercept_tls_get_addr=0}
BUILD=$(realpath "${TY_BUILD:-build/release}")
RANKS=$BUILD/tools/launch
SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/dist-XXXXXX")
OUT=$SCRATCH/out ERR=$SCRATCH/err
passed=0 failed=0 skipped=0 case_name=
trap 'rm -rf "$SCRATCH"' EXIT
mkdir "$SCRATCH/tmp"
export TMPDIR=$SCRATCH/tmp # sessions lie here; shared memory is in /dev/shm all the same
export OMPI_MCA_mpi_yield_when_idle=1 # several hosts share these cores: who waits must not hold one

begin() { case_name=$1; }
pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    printf 'FAILED: %s: %s\n' "$case_name" "$*"
    tail -n 20 "$OUT" "$ERR" 2>/dev/null
}
same() { if [ "$2" = "$3" ]; then pass; else fail "$1: expected \"$2\", found \"$3\""; fi; }
has() { if grep -qaF -e "$3" "$2"; then pass; else fail "$1: not found: $3"; fi; }
skip() {
    skipped=$((skipped + 1))
    echo "skip: $1"
}
finish_tests() {
    echo "$passed passed, $failed failed, $skipped skipped"
    exit $((failed != 0))
}
need_mpicc() {
    if [ "${TY_VARIANT:-release}" != release ]; then
        skip "MPI and PMIx are not built for the variant $TY_VARIANT"
        finish_tests
    fi
    command -v mpicc >/dev/null && [ -e "$BUILD/lib/libtrainyard-pmix.so" ] && return
    skip "no mpicc, or no PMIx plug-in: nothing is launched (packages libopenmpi-dev, libpmix-dev)"
    finish_tests
}
ranks() {
    timeout -k 5 "${LIMIT:-300}" "$RANKS" "$@" >"$OUT" 2>"$ERR" </dev/null
    rc=$?
}
# until_true SECONDS COMMAND...: waits for a condition. SECONDS are those of a quick machine: only who fails waits ten times as long.
until_true() {
    local end=$((SECONDS + 10 * $1))
    shift
    until "$@" 2>/dev/null; do
        [ $SECONDS -ge $end ] && return 1
        sleep 0.02
    done
}
children_of() { cat "/proc/$1/task/$1/children" 2>/dev/null | tr ' ' '\n' | grep .; }
# pids_of PROGRAM: of the processes that were started under this name.
pids_of() {
    local file
    for file in /proc/[0-9]*/cmdline; do
        [[ "$(tr '\0' ' ' <"$file" 2>/dev/null)" == "$1"* ]] && basename "$(dirname "$file")"
    done 2>/dev/null
}
running() { pids_of "$SCRATCH"; }
nothing_runs() { [ -z "$(running)" ]; }
folders() {
    local f
    for f in "$TMPDIR"/trainyard-ranks-* /dev/shm/trainyard-ranks-*; do
        [ -d "$f" ] && flock -n "$f" true && echo "$f"
    done
}
