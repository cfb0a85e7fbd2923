#!/bin/bash
# Our declarations of NVIDIA's functions against NVIDIA's headers of CUDA 13 and of CUDA 12: one source for both. `make units`
# holds them against the headers that it finds; here both are looked for by their version.
#
#     CUDA_HOME             a toolkit of either version (/usr/local/cuda)
#     TRAINYARD_CUDA_12     another, or a folder that `pip install --target` has filled with nvidia-cuda-runtime-cu12,
#                           nvidia-cuda-nvrtc-cu12, nvidia-cublas-cu12, nvidia-cudnn-cu12 and nvidia-nccl-cu12
set -u
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0 skipped=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# folders_of ROOT: where it may have headers, as options of the compiler.
folders_of() {
    local folder
    for folder in "$1/include" "$1"/nvidia/*/include; do
        [ -d "$folder" ] && printf -- '-isystem\n%s\n' "$folder"
    done
}
version_of() { # ROOT
    cat "$1/include/cuda.h" "$1"/nvidia/*/include/cuda.h 2>/dev/null | sed -n 's/^#define CUDA_VERSION //p' | head -n 1
}
try() { # MAJOR ROOT...: the first root of this version
    local major=$1 root version options
    shift
    for root; do
        version=$(version_of "$root")
        [ $((${version:-0} / 1000)) = "$major" ] || continue
        mapfile -t options < <(folders_of "$root")
        if ! "${CC:-cc}" -std=gnu17 -Wall -Wextra -Werror -I. "${options[@]}" tests/unit/cuda_api.c -lcmocka -o "$scratch/api" \
            >"$scratch/log" 2>&1 || ! "$scratch/api" >"$scratch/log" 2>&1; then
            failed=$((failed + 1))
            echo "FAILED: the headers of CUDA $major in $root"
            head -n 20 "$scratch/log"
        elif grep -q 'skip:' "$scratch/log"; then
            continue # not all five libraries
        else
            passed=$((passed + 1))
        fi
        return
    done
    echo "skip: headers of CUDA $major, with cuDNN's and NCCL's: not installed"
    skipped=$((skipped + 1))
}
roots=("${TRAINYARD_CUDA_12:+$TRAINYARD_CUDA_12}" "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda-1[23]*
    /usr/{,local/}lib/python3*/*-packages)
try 13 "${roots[@]}"
try 12 "${roots[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
