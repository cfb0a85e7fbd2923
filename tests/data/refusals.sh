#!/bin/bash
# refusals.sh - what is said of each kind of damaged file: all messages, byte for byte. GOLDEN=write writes them anew.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
golden=$PWD/tests/golden/data/refusals.txt
case_name=refusals
mkdir "$SCRATCH/faults"
python3 tests/data/faults.py "$SCRATCH/faults" || exit 1
W=$SCRATCH
n=0
cd "$SCRATCH/faults" || exit 1
for file in *; do
    timeout 60 "$BIN/trainyard" data check "$file" >"$W/said" 2>"$W/why"
    rc=$?
    ok "$file: status $rc" test $rc = 65 -o $rc = 71
    ok "$file: it is named" grep -qF "$file" "$W/why"
    { echo "== $file: $rc" && cat "$W/said" "$W/why"; } >>"$W/all"
    n=$((n + 1))
done
same "kinds of fault" 43 $n
[ "${GOLDEN:-}" = write ] && cp "$W/all" "$golden"
same "all messages" "" "$(diff "$golden" "$W/all" | head -20)"
finish_tests
