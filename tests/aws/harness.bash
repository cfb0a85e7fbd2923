# harness.bash - sourced by the scripts here: checks that count, and Python with AWS's own software.
#
#   same WHAT EXPECTED FOUND, has WHAT FILE TEXT, lacks WHAT FILE TEXT, ok WHAT COMMAND..., skip WHAT REASON
#   python              sets PYTHON to one that has botocore, boto3 and moto; fails if there is none
#   close               the closing line
#
# Which Python: TY_AWS_VENV names a virtual environment that has them; with TY_AWS_INSTALL=1 one is made under build/ from
# PyPI (moto[server], boto3: some 200 MB). Without either, what needs it is skipped.
set -u
BIN=$(realpath "${TY_BIN:-build/bin}")
BUILD=$(realpath "${TY_BUILD:-build/release}")
SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/aws-XXXXXX")
passed=0 failed=0 skipped=0 case_name=
trap 'cleanup; rm -rf "$SCRATCH"' EXIT
cleanup() { :; }
# Nothing of the caller's account may be seen here, and nothing here may reach it.
unset "${!AWS_@}" http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY no_proxy TY_LOG
export HOME=$SCRATCH AWS_EC2_METADATA_DISABLED=true

pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    printf 'FAILED: %s: %s\n' "$case_name" "$1"
    [ $# -gt 1 ] && printf '%s\n' "$2" | head -n 20
}
same() { [ "$2" = "$3" ] && pass || fail "$1" "expected: $2"$'\n'"found:    $3"; }
has() { grep -qaF -- "$3" "$2" && pass || fail "$1: no \"$3\" in $2" "$(tail -n 15 "$2")"; }
lacks() { grep -qaF -- "$3" "$2" && fail "$1: \"$3\" in $2" "$(grep -aF -- "$3" "$2")" || pass; }
ok() {
    local what=$1 out
    shift
    out=$("$@" 2>&1) && pass || fail "$what" "$out"
}
skip() {
    skipped=$((skipped + 1))
    echo "skip: $1: $2"
}
close() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}

# Other tests may be making it at the same time: one does, the rest wait.
python() {
    local made=$PWD/build/aws-venv
    PYTHON=${TY_AWS_VENV:-$made}/bin/python
    if [ -z "${TY_AWS_VENV:-}" ] && [ "${TY_AWS_INSTALL:-}" = 1 ]; then
        mkdir -p build
        flock "$made.lock" bash -c '[ -e "$1/complete" ] || { python3 -m venv "$1" &&
            "$1/bin/pip" install -q "moto[server]" boto3 && touch "$1/complete"; }' - "$made" || return 1
    fi
    [ -x "$PYTHON" ] && "$PYTHON" -c 'import botocore' 2>/dev/null
}

# serve NAME [CERTIFICATE]: tests/aws/server.py on $PORT of its own; its pid in SERVER, its log in $SCRATCH/NAME.log, what it
# answers from $SCRATCH/NAME.rules (`rules NAME JSON` writes that).
. tests/ports.bash
servers=()
cleanup() { [ ${#servers[@]} = 0 ] || kill "${servers[@]}" 2>/dev/null; }
rules() {
    printf '%s' "$2" >"$SCRATCH/$1.rules.new"
    mv "$SCRATCH/$1.rules.new" "$SCRATCH/$1.rules"
    : >"$SCRATCH/$1.log"
}
serve() {
    local name=$1 fd ready
    shift
    ports 1
    [ -e "$SCRATCH/$name.rules" ] || rules "$name" '[]'
    exec {fd}< <(exec python3 tests/aws/server.py "$PORT" "$SCRATCH/$name.rules" "$SCRATCH/$name.log" "$@" 2>"$SCRATCH/$name.err")
    SERVER=$!
    servers+=("$SERVER")
    read -r ready <&"$fd"
    [ "$ready" = ready ] || fail "the server starts" "$(cat "$SCRATCH/$name.err")"
}
# ty ARGS...: the command line; exit status in rc, streams in $SCRATCH/out and err; both are kept together in $SCRATCH/all.
ty() {
    timeout -k 5 600 "$BIN/trainyard" "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null
    rc=$?
    cat "$SCRATCH/out" "$SCRATCH/err" >>"$SCRATCH/all"
}
# asked NAME FIELD...: of each request that the server of that name got, these fields of its JSON, a line each.
asked() {
    python3 - "$SCRATCH/$1.log" "${@:2}" <<'P'
import json, sys
for line in open(sys.argv[1]):
    request = json.loads(line)
    print(*(request["headers"].get(f, request.get(f, "")) for f in sys.argv[2:]))
P
}
