#!/bin/bash
# fresh.sh: `make run` and then `make test` inside a bare debian:bookworm-slim, from a clean checkout of HEAD. What is forgotten in a
# package list, in a commit or in a path fails here. Nothing is installed but make; the rest is for the Makefile to get.
#
# `make run` counts as one test; the closing line adds those of `make test`. TY_SHARED (default: ../shared) is mounted
# read-only where it is there. Container and checkout are gone afterwards; build/fresh.log stays: .ci/run reads in it what was skipped.
set -u
cd "$(dirname "$0")/.." || exit 1
base=docker.io/library/debian:bookworm-slim
seconds=${TY_FRESH_SECONDS:-2700}
form='^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'
log=build/fresh.log
mkdir -p build

skip() {
    echo "skip: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
command -v docker >/dev/null || skip "no container engine: there is no command docker"
reason=$(timeout 60 docker info 2>&1 >/dev/null) || skip "no container engine: docker info: $(echo "$reason" | tail -n 1)"
git rev-parse -q --verify HEAD >/dev/null 2>&1 || skip "this tree is no git checkout"
[ -z "$(git status --porcelain 2>/dev/null)" ] || echo "fresh: what is not committed is not in the clean checkout"

options=(--rm -i --network host)
shared=$(realpath -q "${TY_SHARED:-../shared}") && [ -d "$shared" ] && options+=(-v "$shared:/work/shared:ro")

# The program runs in the container; the checkout comes as a tar on standard input.
read -r -d '' program <<'PROGRAM'
set -u
mkdir -p /work/main && cd /work/main && tar -x || exit 1
apt-get update -qq && apt-get install -qq -y --no-install-recommends make >/dev/null 2>&1 || {
    echo "fresh: apt-get cannot install make"
    exit 1
}
# part NAME: one of the two commands, and a line that says how it ended.
part() {
    local began=$SECONDS
    echo "fresh: make $1 begins"
    make "$1"
    echo "fresh: make $1 ended with status $? after $((SECONDS - began)) s"
}
part run
part test
PROGRAM

name=trainyard-fresh-$$
remove() { docker rm -f -v "$name" >/dev/null 2>&1; }
trap 'remove; exit 1' INT TERM HUP
# In the background, because a shell that waits for a foreground command lets a signal wait too.
{
    git archive HEAD | timeout -k 20 "$seconds" docker run --name "$name" "${options[@]}" "$base" bash -c "$program" 2>&1
    echo "fresh: the container ended with status ${PIPESTATUS[1]}"
} | tee "$log" | grep -avE --line-buffered "$form|^step=|^val step=" &
wait $!
remove

# The closing line of `make test` is the last of its form; `make run` has none.
ended_well() { grep -qaE "^fresh: make $1 ended with status 0 " "$log"; }
read -r passed _ failed _ skipped _ < <(grep -aE "$form" "$log" | tail -n 1 | tr -d ,)
[ -n "${passed:-}" ] || { echo "FAILED: no closing line of make test (status 124: it ran past $seconds s)" && passed=0 failed=1 skipped=0; }
ended_well test || [ "$failed" != 0 ] || { echo "FAILED: make test" && failed=1; }
if ended_well run; then
    passed=$((passed + 1))
else
    echo "FAILED: make run"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
