#!/bin/bash
# advisories.sh - what public advisories tell of other readers of models (advisories.py), held against ours: each file is refused with
# its own name or the part that is wrong, by a program that ends by itself, within its memory, and touches nothing outside.
cd "$(dirname "$0")/../.." || exit 1
trainyard=$PWD/${TY_BIN:-build/bin}/trainyard
unpack=$PWD/${TY_BUILD:-build/release}/replay/unpack
export TRAINYARD_CACHE_DIR=none
passed=0 failed=0
W=$(mktemp -d /tmp/advisories-XXXXXX)
trap 'rm -rf "$W"' EXIT
mkdir "$W/fixtures"
tar xJf tests/golden/keras/files.tar.xz -C "$W/fixtures" || exit 1
python3 tests/import/advisories.py "$W" >"$W/cases" || exit 1
before=$(find "$W" | sort)

fault() {
    echo "FAILED: $1"
    head -c 600 "$W.out"
    failed=$((failed + 1))
}

# limited COMMAND...: half a gigabyte beyond what the program itself maps, a minute. Sanitizers map what they like.
limited() {
    ([ "${TY_VARIANT:-release}" = release ] && ulimit -v 4000000
        exec timeout -s KILL 60 "$@") >"$W.out" 2>&1 </dev/null
}

while IFS=$'\t' read -r id path words; do
    name="$id ${path#"$W"/}"
    if [ "$words" = tar ]; then
        limited "$unpack" "$path" # dies where anything appears beside its folder
    else
        limited "$trainyard" check "$path"
    fi
    status=$?
    if [ $status -gt 125 ]; then
        fault "$name: ended with $status"
    elif [ "$words" = tar ] && [ $status != 0 ]; then
        fault "$name: written outside of its folder"
    elif [ -z "$words" ] && [ $status != 0 ]; then
        fault "$name: refused with $status"
    elif [ -n "$words" ] && [ "$words" != - ] && [ "$words" != tar ] && { [ $status = 0 ] || ! grep -qaF -e "$words" "$W.out"; }; then
        fault "$name: status $status, and no \"$words\" in what it says"
    else
        passed=$((passed + 1))
    fi
done <"$W/cases"
after=$(find "$W" | sort)
[ "$before" = "$after" ] && passed=$((passed + 1)) || fault "files appeared: $(comm -13 <(echo "$before") <(echo "$after"))"
[ $passed -gt 40 ] || fault "only $passed cases"
rm -f "$W.out"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
