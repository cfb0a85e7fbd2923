#!/bin/bash
# The ONNX backend cases that are known to pass still pass: tests/onnx-backend.BACKEND.list, one name a line, debian/... from the
# package libonnx-testdata, shared/... from the cases in ../shared.
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
[ -f "$archive" ] && mkdir "$scratch/shared" && tar -xf "$archive" -C "$scratch/shared"

# run BACKEND SOURCE FOLDER: appends the names that pass to $scratch/BACKEND.
run() {
    if [ ! -d "$3" ]; then
        echo "skip: no ONNX backend cases in $3"
        return
    fi
    tests/onnx-backend --backend "$1" --passed "$scratch/names" "$3" >"$scratch/log"
    case $? in 0 | 1) ;; *) echo "FAIL $1 $2: the runner ended with an error"; tail -n 3 "$scratch/log"; failed=$((failed + 1)) ;; esac
    sed "s,^,$2/," "$scratch/names" >>"$scratch/$1"
    echo "$2" >>"$scratch/$1.sources"
}

for backend in interpreter compiled; do
    list=tests/onnx-backend.$backend.list
    [ -f "$list" ] || [ "$update" ] || continue
    build/${TY_VARIANT:-release}/tools/onnx_backend --backends 2>/dev/null | grep -qx "$backend" || continue
    : >"$scratch/$backend" >"$scratch/$backend.sources"
    run $backend debian "$debian"
    run $backend shared "$scratch/shared"
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
    new=$(LC_ALL=C comm -13 "$list" "$scratch/$backend" | wc -l)
    [ "$new" = 0 ] || echo "note: $new more cases pass on $backend; tests/import/onnx_backend.sh --update adds them"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
