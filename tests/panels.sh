#!/bin/bash
# The inner loops of products (compiler/target/cpu/panel_tile.def) as they were compiled: sums stay in registers. One that goes
# through memory costs a third of the speed, and nothing else tells of it: results are the same.
set -u
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0
object=build/release/obj/compiler/target/cpu/panel.o
if [ "${TY_VARIANT:-release}" != release ] || [ "$(uname -m)" != x86_64 ]; then
    echo "skip: loops are looked at where they are compiled for speed, on x86-64"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
[ -e $object ] || make -s $object || exit 1

# loops FUNCTION: of each loop that adds products and holds no other loop: products added, instructions, vectors moved to or
# from the stack or between registers. (A loop is what lies between a label and a jump back to it.)
loops() {
    objdump -d --no-show-raw-insn --disassemble="$1" $object | awk '
        /^ *[0-9a-f]+:/ {
            at = $1; sub(":", "", at)
            n++; place[at] = n; text[n] = $0; op[n] = $2; to[n] = $3
        }
        END {
            for (i = 1; i <= n; i++) {
                if (op[i] !~ /^j/ || !(to[i] in place) || place[to[i]] >= i) continue
                sums = moves = inner = 0
                for (j = place[to[i]]; j < i; j++) {
                    if (op[j] ~ /^j/) inner = 1
                    if (op[j] ~ /^vfmadd|^vdpbf16ps/) sums++
                    if (text[j] ~ /[xyz]mm/ && (text[j] ~ /\(%r[sb]p/ || op[j] ~ /^vmova/ && text[j] !~ /\(/)) moves++
                }
                if (sums && !inner) print sums, i - place[to[i]] + 1, moves
            }
        }'
}

# check FUNCTION SUMS: the loops of its tiles, which turn twice before they jump: of the highest tile they add SUMS products.
check() {
    local found
    found=$(loops "$1")
    if echo "$found" | grep -q "^$2 " && ! echo "$found" | grep -qv ' 0$' && ! echo "$found" | awk '$1 >= 8 && $2 > 3 * $1' | grep -q .
    then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s: a loop of %s products, and none that moves sums; found (products, instructions, moves):\n%s\n' \
            "$1" "$2" "$found"
    fi
}
for what in rows columns tiles; do
    check panel_avx2_$what 24
    check panel_avx512_$what 48
done
check panel_pairs_rows 48
check panel_pairs_tiles 48
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
