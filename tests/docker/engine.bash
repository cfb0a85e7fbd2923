# What the scripts beside it share: is there an engine, the image under test, a job's tree, checks and their count. Sourced.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
passed=0 failed=0 skipped=0
image=${TY_IMAGE:-localhost/trainyard-test} # TY_IMAGE: an image that is built already
hardened=(--read-only --user 1000:1000 --cap-drop ALL --security-opt no-new-privileges --network none)
scratch=$(mktemp -d)
containers=()

finish() {
    local name
    for name in "${containers[@]}"; do docker rm -f -v "$name"; done >"$scratch/removed" 2>&1
    rm -rf "$scratch"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}
trap finish EXIT

# check WHAT COMMAND...: one test. What the command prints is shown if it fails.
check() {
    local what=$1
    shift
    if "$@" >"$scratch/check" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n' "$what"
        head -n 40 "$scratch/check" | sed 's/^/    /'
    fi
}
skip_all() {
    echo "skip: $1"
    skipped=$((skipped + 1))
    exit
}

is() { [ "$1" = "$2" ] || { printf 'expected %s, found %s\n' "$2" "$1"; return 1; }; }
absent() { [ ! -e "$1" ] || { echo "$1 is there:"; cat "$1"; return 1; }; }
has() { grep -aqE -- "$2" "$1" || { printf 'no line like "%s" in:\n' "$2"; tail -n 25 "$1"; return 1; }; }
not() { ! "$@"; }

need_engine() {
    command -v docker >/dev/null || skip_all "no container engine: there is no command docker"
    timeout 60 docker info >"$scratch/info" 2>&1 || skip_all "no container engine: docker info: $(tail -n 1 "$scratch/info")"
}

# Layers are cached: the second script of a run pays nothing. --network host: the build reaches Debian's packages.
need_image() {
    need_engine
    [ -z "${TY_IMAGE:-}" ] || return 0
    docker build --network host -t "$image" -f docker/Dockerfile \
        --build-arg VERSION=test --build-arg COMMIT=test . >"$scratch/build" 2>&1 && return
    failed=$((failed + 1))
    echo "FAILED: docker build:"
    tail -n 25 "$scratch/build"
    exit
}

# make_tree NAME: $scratch/NAME is the digits' /opt/ml, owned by uid 1000.
make_tree() {
    if ! examples/digits/data build/digits/data >"$scratch/data" 2>&1; then
        tail -n 4 "$scratch/data"
        skip_all "the digits cannot be downloaded"
    fi
    examples/digits/tree "$scratch/$1" build/digits/data
    chown -R 1000:1000 "$scratch/$1"
    chmod 755 "$scratch"
}

# run_image LOG OPTION... -- ARGUMENT...: prints the exit status; output goes to $scratch/LOG.
run_image() {
    local log=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    timeout 300 docker run --rm "${options[@]}" "$image" "$@" >"$scratch/$log" 2>&1
    echo $?
}
