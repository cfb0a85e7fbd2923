#!/bin/bash
# Damaged data files are taken or refused in good order: tests/tools/data_mutants.c on the seeds of the fuzz targets and the
# files in ../shared.
#
#     data_mutants.sh [COUNT]      1,000 without one; `make mutants` runs 10,000
set -u
cd "$(dirname "$0")/../.." || exit 1
data=${TY_SHARED:-../shared}/data
tool=build/${TY_VARIANT:-release}/tools/data_mutants
files=(tests/fuzz/corpus/{npy,npz,csv,idx,safetensors}/*)
for path in "$data"/format-vectors/{npy,npz,csv,idx}/*.{npy,npz,csv,idx*} "$data"/npy-weights/*/*.{npy,safetensors}; do
    [ -f "$path" ] && [ "$(stat -c %s "$path")" -lt 300000 ] && files+=("$path")
done
[ -x "$tool" ] || make -s variant="${TY_VARIANT:-release}" "$tool" >&2 || exit 1
exec "$tool" -n "${1:-1000}" "${files[@]}"
