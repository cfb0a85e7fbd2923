#!/bin/bash
# The list of NVIDIA's libraries for the image (docker/packages.cuda), without a network: its form, and that it names all that
# the program opens. `make gpu-image` builds the image and tries it.
set -u
cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=0 list=docker/packages.cuda

# rule TEXT: the offenders come on standard input.
rule() {
    local offenders
    offenders=$(cat)
    [ -z "$offenders" ] && passed=$((passed + 1)) && return
    failed=$((failed + 1))
    printf 'FAILED: %s\n%s\n' "$1" "$offenders"
}
shopt -s lastpipe
mapfile -t patterns < <(sed -n 's/^#: //p' "$list" | tr ' ' '\n')
# covered NAME: a pattern of the list matches it.
covered() {
    local pattern
    for pattern in "${patterns[@]}"; do
        [[ $1 == $pattern ]] && return
    done
    return 1
}

grep -nvE '^(#.*)?$|^nvidia-[a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}$' "$list" | rule "every wheel has a version and a hash"
grep -oE '^nvidia-[a-z0-9-]+' "$list" | sort | uniq -d | rule "no wheel is named twice"
awk '/^nvidia/ {if (wheel) print wheel; wheel = $1} /^#: / {wheel = ""} END {if (wheel) print wheel}' "$list" |
    rule "of every wheel something is taken"
printf '%s\n' "${patterns[@]}" | grep -vE '^lib[A-Za-z_-]+\.so\.[0-9]+$|^lib[A-Za-z_-]+\.so\.1\[23\](\.\*)?$' |
    rule "libraries alone are taken, each by its soname"

# The driver's is the host's.
mapfile -t opened < <(grep -oE '"lib[A-Za-z]+\.so\.[0-9]+"' compiler/target/cuda/libraries.c | tr -d '"' | grep -v '^libcuda\.')
{ [ ${#opened[@]} -ge 4 ] || echo "${opened[@]}"; } | rule "libraries.c names at least four"
for soname in "${opened[@]}"; do covered "$soname" || echo "$soname"; done | rule "every library that is opened is on the list"
# What these open themselves: cuDNN its parts, NVRTC its functions.
for part in graph heuristic engines_precompiled engines_runtime_compiled ops cnn adv; do
    covered "libcudnn_$part.so.9" || echo "libcudnn_$part.so.9"
done | rule "every part of cuDNN is on the list"
{ covered libnvrtc-builtins.so.13.0 || echo libnvrtc-builtins.so.13.0; } | rule "NVRTC's own functions are on the list"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
