#!/bin/bash
# The runner distrusts the tests; this distrusts the runner. A small tree with programs that pass, fail, crash, hang, skip,
# say nothing or lie is run, and the closing line and exit status must tell. So must the order in which they run, and what
# they compile with. And what CI makes of a run in a container.
set -u
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# unit NAME: a unit program with this body (standard input).
unit() {
    mkdir -p "$tree/tests/unit" "$tree/build/release/unit"
    : >"$tree/tests/unit/$1.c"
    { echo '#!/bin/bash'; cat; } >"$tree/build/release/unit/$1"
    chmod +x "$tree/build/release/unit/$1"
}
# script NAME: the same for a black-box test.
script() {
    mkdir -p "$tree/tests/$(dirname "$1")"
    { echo '#!/bin/bash'; cat; } >"$tree/tests/$1.sh"
    chmod +x "$tree/tests/$1.sh"
}
# expect STATUS CLOSING [WORD]: runs the tree's tests and forgets them. Whether they hang is seen after $limit seconds.
limit=60
expect() {
    local output status closing
    mkdir -p "$tree/tests/unit" "$tree/tests/fuzz"
    cp tests/run "$tree/tests/run"
    output=$(TY_TEST_SECONDS=$limit TY_SCRIPT_SECONDS=$limit "$tree/tests/run" release 2>&1)
    status=$?
    closing=$(printf '%s\n' "$output" | tail -n 1)
    if [ "$status" = "$1" ] && [ "$closing" = "$2" ] && [[ $output == *"${3:-}"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: expected status %s, "%s" and "%s"; found status %s and\n%s\n' "$1" "$2" "${3:-}" "$status" "$output"
    fi
    rm -rf "${tree:?}"/*
}
ok='echo "[  PASSED  ] 3 test(s)."'

expect 1 '0 passed, 1 failed, 0 skipped' 'nothing ran'
unit good <<<"$ok"
expect 0 '3 passed, 0 failed, 0 skipped'
unit good <<<"$ok"
unit bad <<<'echo "[  PASSED  ] 1 test(s)."; echo "[  FAILED  ] 2 test(s), listed below:"; echo the reason; exit 2'
expect 1 '4 passed, 2 failed, 0 skipped' 'the reason'
unit crash <<<"$ok; kill -SEGV \$\$"
expect 1 '3 passed, 1 failed, 0 skipped' 'ended with status 139'
unit hang <<<"$ok; sleep 600"
limit=2
expect 1 '3 passed, 1 failed, 0 skipped' 'ran past its time'
limit=60
unit silent <<<'exit 0'
expect 1 '0 passed, 1 failed, 0 skipped' 'reported nothing'
unit liar <<<'echo "[  FAILED  ] 1 test(s), listed below:"; exit 0'
expect 1 '0 passed, 1 failed, 0 skipped' 'ended with status 0'
unit skips <<<'echo "skip: no GPU here"; echo "[  PASSED  ] 1 test(s)."; echo "[  SKIPPED ] 2 test(s), listed below:"'
expect 0 '1 passed, 0 failed, 2 skipped' 'skipped: unit/skips: no GPU here'
unit groups <<<"$ok; $ok"
expect 0 '6 passed, 0 failed, 0 skipped'
: # A program that was never built.
unit unbuilt <<<"$ok"
rm "$tree/build/release/unit/unbuilt"
expect 1 '0 passed, 1 failed, 0 skipped' 'unit/unbuilt'
script area/good <<<'echo "5 passed, 0 failed, 1 skipped"'
expect 0 '5 passed, 0 failed, 1 skipped' 'without a reason'
script top <<<'echo "2 passed, 1 failed, 0 skipped"; exit 1'
expect 1 '2 passed, 1 failed, 0 skipped' 'FAILED: top'
script area/silent <<<'exit 0'
expect 1 '0 passed, 1 failed, 0 skipped' 'reported nothing'
script area/dies <<<'echo "2 passed, 0 failed, 0 skipped"; exit 3'
expect 1 '2 passed, 1 failed, 0 skipped' 'ended with status 3'
script area/hangs <<<'echo "2 passed, 0 failed, 0 skipped"; sleep 600'
limit=2
expect 1 '2 passed, 1 failed, 0 skipped' 'ran past its time'
limit=60
script fresh <<<'echo "9 passed, 0 failed, 0 skipped"'
script area/good <<<'echo "1 passed, 0 failed, 0 skipped"'
expect 0 '1 passed, 0 failed, 0 skipped'
# Who runs beside whom. Each test holds a folder while it runs, which a second one could not make.
hold='mkdir held || exit 1; sleep 0.2; rmdir held; echo "1 passed, 0 failed, 0 skipped"'
for name in area/one area/two area/three; do script $name <<<"$hold"; done
expect 0 '3 passed, 0 failed, 0 skipped' # scripts one after the other
script dist/deepfm <<<"$hold"
unit good <<<"$hold; $ok"
expect 0 '4 passed, 0 failed, 0 skipped' # who judges speed alone
meet() { echo "touch $1; for i in \$(seq 600); do [ -e $2 ] && break; sleep 0.1; done; [ -e $2 ] && $3"; }
script area/one < <(meet one two 'echo "1 passed, 0 failed, 0 skipped"')
unit two < <(meet two one "$ok")
expect 0 '4 passed, 0 failed, 0 skipped' # a script and a unit side by side
unit three < <(meet three four "$ok")
unit four < <(meet four three "$ok")
expect 0 '6 passed, 0 failed, 0 skipped' # two units
script dist/agent < <(meet one two 'echo "1 passed, 0 failed, 0 skipped"')
unit three < <(meet three two "$ok")
unit two < <(meet two one "$ok")
expect 0 '7 passed, 0 failed, 0 skipped' # one that sleeps, and two units
script entrypoint/kill_sweep < <(meet one two 'echo "1 passed, 0 failed, 0 skipped"')
unit three < <(meet three two "$ok")
unit two < <(meet two one "$ok")
expect 0 '7 passed, 0 failed, 0 skipped' # one that sleeps and runs beside anything, and two units
for name in docker/one docker/two docker/three; do script $name <<<"$hold"; done
expect 0 '3 passed, 0 failed, 0 skipped' # scripts with containers one after the other
script docker/one < <(meet one two 'echo "1 passed, 0 failed, 0 skipped"')
script area/two < <(meet two one 'echo "1 passed, 0 failed, 0 skipped"')
expect 0 '2 passed, 0 failed, 0 skipped' # one of them, and one of the others
unit good <<<"$ok"
expect 0 '3 passed, 0 failed, 0 skipped' 'slowest:'

# tests/cc calls the compiler once for a kernel, and again when the kernel, or an option, is another.
mkdir "$tree/bin" "$tree/kept"
{ echo '#!/bin/bash'; echo 'echo "$*" >>'"$tree/calls"'; [[ $* == *broken* ]] && exit 1; { echo "$1"; cat "${@: -1}"; } >"${@: -2:1}"'; } >"$tree/bin/cc"
chmod +x "$tree/bin/cc"
# compiles CALLS MADE STATUS OPTION TEXT: so many calls of the compiler so far, and this in the object.
compiles() {
    echo "$5" >"$tree/source.c"
    rm -f "$tree/object"
    PATH=$tree/bin:$PATH TY_KEPT=$tree/kept tests/cc "$4" -nostdlib -o "$tree/object" "$tree/source.c"
    local status=$? calls made
    calls=$(wc -l <"$tree/calls") made=$(cat "$tree/object" 2>/dev/null | xargs)
    if [ "$calls $made $status" = "$1 $2 $3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: tests/cc %s of "%s": expected "%s", found "%s"\n' "$4" "$5" "$1 $2 $3" "$calls $made $status"
    fi
}
compiles 1 '-O1 first' 0 -O1 first
compiles 1 '-O1 first' 0 -O1 first
compiles 2 '-O1 second' 0 -O1 second
compiles 3 '-O2 second' 0 -O2 second
compiles 3 '-O1 first' 0 -O1 first
compiles 4 '' 1 -broken first
compiles 5 '' 1 -broken first
rm -r "$tree/kept"
compiles 6 '-O1 first' 0 -O1 first


# .ci/run: what a container has tested, but for what it skipped, is tested again by a sanitizer alone. Calls of make are written
# down; a container is a file `bare` with what tests print in it.
mkdir -p "$tree/.ci" "$tree/build"
cp .ci/run "$tree/.ci/run"
cat >"$tree/bin/make" <<'MAKE'
#!/bin/bash
echo "$*" >>called
[ "$1" = test ] && echo "5 passed, 0 failed, 0 skipped" && exit
[ ! -e bare ] && echo "0 passed, 0 failed, 1 skipped" && exit
cp bare build/fresh.log
tail -n 1 bare
! grep -q FAILED bare
MAKE
chmod +x "$tree/bin/make"
# continues STATUS CLOSING CALLS: with the file of standard input, if there is anything, CI makes these calls of make.
continues() {
    cat >"$tree/bare"
    [ "$(wc -c <"$tree/bare")" -gt 1 ] || rm "$tree/bare"
    rm -f "$tree/called"
    local closing status calls
    closing=$(PATH=$tree/bin:$PATH "$tree/.ci/run" 2>&1)
    status=$? closing=$(echo "$closing" | tail -n 1) calls=$(paste -sd , "$tree/called")
    if [ "$status $closing $calls" = "$1 $2 $3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: .ci/run: expected "%s", found "%s"\n' "$1 $2 $3" "$status $closing $calls"
    fi
}
sanitized=',test variant=ubsan only=unit/*' # units, once more
skips=$'  skipped: docker/job: no engine\n  skipped: unit/a: no GPU: none\n  skipped: docker/job: no network'
continues 0 '17 passed, 0 failed, 3 skipped' "fresh,test only=@(docker/job|unit/a)$sanitized" <<<"$skips"$'\n7 passed, 0 failed, 3 skipped'
continues 0 '10 passed, 0 failed, 1 skipped' "fresh,test$sanitized" <<<"" # no engine; what an earlier run has left is not believed
continues 0 '12 passed, 0 failed, 0 skipped' "fresh$sanitized" <<<'7 passed, 0 failed, 0 skipped'
continues 1 '16 passed, 1 failed, 3 skipped' "fresh,test only=@(docker/job|unit/a)$sanitized" <<<"FAILED: x"$'\n'"$skips"$'\n6 passed, 1 failed, 3 skipped'
continues 1 '10 passed, 1 failed, 0 skipped' "fresh,test$sanitized" <<<'FAILED: E: no network'

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
