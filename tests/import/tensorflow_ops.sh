#!/bin/bash
# The golden results of TensorFlow's operations by compiled programs: on this processor, and as a GPU's kernels in the
# emulation of its grid (tests/tools/tf_ops.c). What the interpreter makes of them: tests/unit/tf_ops.c.
set -u
cd "$(dirname "$0")/../.." || exit 1
tool=build/${TY_VARIANT:-release}/tools/tf_ops
[ -x "$tool" ] || make -s variant="${TY_VARIANT:-release}" "$tool" >&2 || exit 1
passed=0 failed=0
for how in compiled grid; do
    "$tool" $how >"${TMPDIR:-/tmp}/tf_ops.$$" || true
    grep '^FAILED' "${TMPDIR:-/tmp}/tf_ops.$$" | sed "s/^FAILED/FAIL $how:/"
    read -r good _ bad _ < <(tail -n 1 "${TMPDIR:-/tmp}/tf_ops.$$")
    passed=$((passed + ${good:-0})) failed=$((failed + ${bad:-1}))
    [ "${good:-0}" -gt 0 ] || failed=$((failed + 1))
done
rm -f "${TMPDIR:-/tmp}/tf_ops.$$"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
