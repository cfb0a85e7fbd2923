#!/bin/bash
# The ONNX backend cases that are known to pass still pass: tests/onnx-backend.BACKEND.list, one name a line, debian/... from the
# package libonnx-testdata, shared/... from the cases in ../shared, golden/... from tests/golden/onnx. BACKEND "gradient":
# derivatives against central differences. Those of the compiled back end pass on the grid too, which runs kernels as they are
# printed for a GPU (compiler/target/cuda/head.c). What does not pass stands in tests/onnx-backend.refused.list (gradient:
# .gradient.refused.list) with a reason. Each operator that is imported has a gradient that is judged so, or stands in
# tests/onnx-backend.gradient.without.list with the reason why there is none; not both.
#
#     onnx_backend.sh             all of that; on the grid threads of a block in one order
#     onnx_backend.sh --update    writes the lists anew
#     onnx_backend.sh --grid      on the grid alone, in three orders
set -u
cd "$(dirname "$0")/../.." || exit 1
shared=${TY_SHARED:-../shared}
debian=/usr/include/onnx/backend/test/data
mode=${1:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

archive=$shared/data/models/onnx/backend-cases.tar.xz
mkdir "$scratch/golden" && tar -xf tests/golden/onnx/cases.tar.xz -C "$scratch/golden"
[ -f "$archive" ] && mkdir "$scratch/shared" && tar -xf "$archive" -C "$scratch/shared"

# run MODE SOURCE FOLDER: appends the names that pass to $scratch/MODE, the others to $scratch/MODE.others. A MODE is a back
# end, "gradient", or "grid" with the order of threads behind it.
run() {
    local how="--backend $1"
    case $1 in
    gradient) how="--gradient --operators $scratch/operators" ;;
    grid*) how="--backend grid" && export TY_GRID_ORDER=${1#grid} ;;
    esac
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

# judge MODE LIST REFUSED
judge() {
    local name new
    [ -f "$2" ] || [ "$mode" = --update ] || return
    : >"$scratch/$1" >"$scratch/$1.others" >"$scratch/$1.sources"
    run "$1" debian "$debian"
    run "$1" shared "$scratch/shared"
    run "$1" golden "$scratch/golden"
    LC_ALL=C sort -o "$scratch/$1" "$scratch/$1"
    [ "$mode" = --update ] && cp "$scratch/$1" "$2"
    while read -r name; do
        if ! grep -qx "${name%%/*}" "$scratch/$1.sources"; then
            skipped=$((skipped + 1))
        elif grep -qxF "$name" "$scratch/$1"; then
            passed=$((passed + 1))
        else
            echo "FAIL $1: $name passed before"
            failed=$((failed + 1))
        fi
    done <"$2"
    accounted "$1" "$3"
    new=$(LC_ALL=C comm -13 "$2" "$scratch/$1" | wc -l)
    [ "$new" = 0 ] || echo "note: $new more cases pass on $1; tests/import/onnx_backend.sh --update adds them"
}

lists=tests/onnx-backend
orders=1
if [ "$mode" = --grid ]; then
    orders='0 1 2'
else
    judge interpreter $lists.interpreter.list $lists.refused.list
    judge compiled $lists.compiled.list $lists.refused.list
    judge gradient $lists.gradient.list $lists.gradient.refused.list
fi
[ "$mode" = --update ] && orders= # of the compiled list
for order in $orders; do
    judge "grid$order" $lists.compiled.list $lists.refused.list
done
grep -qsx shared "$scratch/gradient.sources" && grep -qx debian "$scratch/gradient.sources" && walk_operators
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
