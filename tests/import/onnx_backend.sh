#!/bin/bash
# The ONNX backend cases that are known to pass still pass: tests/onnx-backend.BACKEND.list, one name a line, debian/... from the
# package libonnx-testdata, shared/... from the cases in ../shared, golden/... from tests/golden/onnx. BACKEND "gradient":
# derivatives against central differences. What does not pass stands in tests/onnx-backend.refused.list (gradient:
# .gradient.refused.list) with a reason. Each operator that is imported has a gradient that is judged so, or stands in
# tests/onnx-backend.gradient.without.list with the reason why there is none; not both.
#
#     onnx_backend.sh [--update]      --update writes the lists anew
set -u
cd "$(dirname "$0")/../.." || exit 1
shared=${TY_SHARED:-../shared}
debian=/usr/include/onnx/backend/test/data
update=${1:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

archive=$shared/data/models/onnx/backend-cases.tar.xz
mkdir "$scratch/golden" && tar -xf tests/golden/onnx/cases.tar.xz -C "$scratch/golden"
[ -f "$archive" ] && mkdir "$scratch/shared" && tar -xf "$archive" -C "$scratch/shared"

# run MODE SOURCE FOLDER: appends the names that pass to $scratch/MODE, the others to $scratch/MODE.others.
run() {
    local how="--backend $1"
    [ "$1" = gradient ] && how="--gradient --operators $scratch/operators"
    if [ ! -d "$3" ]; then
        echo "skip: no ONNX backend cases in $3"
        return
    fi
    tests/onnx-backend $how --passed "$scratch/names" "$3" >"$scratch/log"
    case $? in 0 | 1) ;; *) echo "FAIL $1 $2: the runner ended with an error"; tail -n 3 "$scratch/log"; failed=$((failed + 1)) ;; esac
    sed "s,^,$2/," "$scratch/names" >>"$scratch/$1"
    sed -nE "s,^(FAIL|skip) ([^ :]+): .*,$2/\2,p" "$scratch/log" >>"$scratch/$1.others"
    echo "$2" >>"$scratch/$1.sources"
}

# accounted MODE REFUSED: every case that does not pass stands in the list with a reason.
accounted() {
    sed -nE 's,^([^ :]+): .+,\1,p' "$2" >"$scratch/told"
    while read -r name; do
        echo "FAIL $1: $name does not pass, and $2 gives no reason"
        failed=$((failed + 1))
    done < <(grep -vxFf "$scratch/told" "$scratch/$1.others")
    passed=$((passed + $(grep -cxFf "$scratch/told" "$scratch/$1.others")))
}

# Every row of compiler/import/onnx_ops.def is judged by one of the gradient's cases, or has its reason.
walk_operators() {
    local without=tests/onnx-backend.gradient.without.list
    LC_ALL=C sort -u -o "$scratch/operators" "$scratch/operators"
    sed -nE 's,^([^:]*:[^ :]+): .+,\1,p' "$without" | LC_ALL=C sort >"$scratch/without"
    tests/onnx-backend --rows | LC_ALL=C sort >"$scratch/rows"
    while read -r name; do
        echo "FAIL gradient: operator $name has no case, and $without gives no reason"
        failed=$((failed + 1))
    done < <(LC_ALL=C sort -m "$scratch/operators" "$scratch/without" | uniq | LC_ALL=C comm -13 - "$scratch/rows")
    while read -r name; do
        echo "FAIL gradient: operator $name has a case, or is not imported: $without need not have it"
        failed=$((failed + 1))
    done < <(LC_ALL=C comm -12 "$scratch/without" "$scratch/operators"; LC_ALL=C comm -23 "$scratch/without" "$scratch/rows")
    passed=$((passed + $(wc -l <"$scratch/rows")))
}

for backend in interpreter compiled gradient; do
    list=tests/onnx-backend.$backend.list
    [ -f "$list" ] || [ "$update" ] || continue
    refused=tests/onnx-backend.refused.list
    [ $backend = gradient ] && refused=tests/onnx-backend.gradient.refused.list
    : >"$scratch/$backend" >"$scratch/$backend.others" >"$scratch/$backend.sources"
    run $backend debian "$debian"
    run $backend shared "$scratch/shared"
    run $backend golden "$scratch/golden"
    LC_ALL=C sort -o "$scratch/$backend" "$scratch/$backend"
    [ "$update" ] && cp "$scratch/$backend" "$list"
    while read -r name; do
        if ! grep -qx "${name%%/*}" "$scratch/$backend.sources"; then
            skipped=$((skipped + 1))
        elif grep -qxF "$name" "$scratch/$backend"; then
            passed=$((passed + 1))
        else
            echo "FAIL $backend: $name passed before"
            failed=$((failed + 1))
        fi
    done <"$list"
    accounted $backend "$refused"
    new=$(LC_ALL=C comm -13 "$list" "$scratch/$backend" | wc -l)
    [ "$new" = 0 ] || echo "note: $new more cases pass on $backend; tests/import/onnx_backend.sh --update adds them"
done
grep -qx shared "$scratch/gradient.sources" && grep -qx debian "$scratch/gradient.sources" && walk_operators
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
