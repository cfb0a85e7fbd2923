#!/bin/bash
# The bundle in a foreign root: another Linux's glibc and nothing else, not even a shell; moved to a place with blanks in its
# name, read-only, as an ordinary user. It must train the digits to the very weights of the programs built here.
set -u
. "$(dirname "$0")/engine.bash"
bin=${TY_BIN:-build/bin} fakes=${TY_BUILD:-build/release}/fakes
foreign=localhost/trainyard-test-foreign
bundle=build/bundle

if [ "${TY_VARIANT:-release}" != release ]; then skip_all "the bundle is made of the release variant"; fi
make bundle >"$scratch/make" 2>&1 || { tail -n 20 "$scratch/make"; failed=1; exit; }
grep '^build/bundle' "$scratch/make"

# ---- what is in it

packages() { awk '!/^#/ {print $1}' "$bundle/share/packages"; }
nvidia() { find "$bundle/lib" -name 'lib*' | grep -E '/lib(cuda|cublas|cudnn|cufft|curand|cusolver|cusparse|nv|nccl)'; }
unlicensed() { packages | while read -r name; do [ -s "$bundle/share/doc/$name/copyright" ] || echo "$name"; done; }
check "links lead nowhere outside" is "$(find "$bundle" -type l -lname '/*')" ""
check "links lead somewhere" is "$(find -L "$bundle" -type l)" ""
check "nothing remembers where it was built" not grep -rlF "$PWD" "$bundle"
check "libc is the host's" is "$(ls "$bundle/lib" | grep -E '^(lib(c|m|mvec|pthread|dl)|ld-linux.*)\.so')" ""
check "NVIDIA's libraries are the host's" is "$(nvidia)" ""
for package in libdnnl2 libssl3 libgomp1 libyaml-0-2 zlib1g gcc-12 cpp-12 binutils-x86-64-linux-gnu libc6-dev; do
    check "it has $package" grep -q "^$package " "$bundle/share/packages"
done
for name in mpi pmix ucx; do check "the plug-in $name" [ -x "$bundle/lib/trainyard/libtrainyard-$name.so" ]; done
check "every package's licence" is "$(unlicensed)" ""
check "the manual is filled in" not grep -q '@' "$bundle/README.md"

# The same bytes again, from programs linked anew.
cp "$bundle.tar.gz" "$scratch/first.tar.gz"
rm -rf "${TY_BUILD:-build/release}/bundle"
make bundle >"$scratch/make" 2>&1
check "made twice, the same bytes" cmp "$scratch/first.tar.gz" "$bundle.tar.gz"

# ---- elsewhere

need_engine
mkdir -p "$scratch/foreign" "$scratch/an other place/nvidia/cu13/lib" "$scratch/links"
cat >"$scratch/foreign/Dockerfile" <<'DOCKERFILE'
FROM debian:bookworm-slim AS pick
RUN sed -i s/bookworm/trixie/g $(grep -rl bookworm /etc/apt/sources.list.d /etc/apt/sources.list 2>/dev/null) && \
    apt-get update -qq && cd /tmp && apt-get download -qq libc6 && mkdir -p /tree/usr/lib /tree/usr/lib64 /tree/tmp && \
    ln -s usr/lib /tree/lib && ln -s usr/lib64 /tree/lib64 && chmod 1777 /tree/tmp && dpkg-deb -x libc6_*.deb /new && \
    cp -a /new/usr/lib/. /tree/usr/lib/ && cp -a /new/usr/lib64/. /tree/usr/lib64/ && cp libc6_*.deb /tree/
FROM scratch
COPY --from=pick /tree/ /
DOCKERFILE
docker build --network host -t "$foreign" "$scratch/foreign" >"$scratch/build" 2>&1 ||
    skip_all "Debian 13's libc6 cannot be had: $(tail -n 1 "$scratch/build")"

tar -C "$scratch/an other place" -xf "$bundle.tar.gz" || failed=$((failed + 1))
cp "$fakes/libnvrtc.so.1" "$scratch/an other place/nvidia/cu13/lib/libnvrtc.so.13"
ln -s "/srv/some where/trainyard/bin/trainyard" "$scratch/links/yard"
make_tree there
make_tree here
chmod -R go+rX "$scratch/an other place" "$scratch/links" && chmod 755 "$scratch"

# elsewhere LOG PROGRAM ARGUMENT...: runs it there and prints the exit status.
elsewhere() {
    local log=$1 program=$2
    shift 2
    timeout 300 docker run --rm "${hardened[@]}" --tmpfs /tmp:exec -e HOME=/tmp -v "$scratch/an other place:/srv/some where:ro" \
        -v "$scratch/links:/links:ro" -v "$scratch/there:/opt/ml" -v "$PWD/examples:/examples:ro" \
        ${program_c:+-e "SAGEMAKER_PROGRAM=$program_c"} \
        --entrypoint "$program" "$foreign" "$@" >"$scratch/$log" 2>&1
    echo $?
}
home="/srv/some where/trainyard"
check "doctor, through a link" is "$(elsewhere doctor /links/yard doctor)" 0
check "its own C compiler" has "$scratch/doctor" "^C compiler +12\..* $home/cc/bin/cc\$"
check "its own oneDNN" has "$scratch/doctor" "^oneDNN +2.* $home/bin/../lib/libdnnl.so.2\$"
check "pip's NVRTC beside it" has "$scratch/doctor" "^NVRTC +13\.98 .*/nvidia/cu13/lib/libnvrtc.so.13\$"
check "no driver, and it says so" has "$scratch/doctor" '^GPU driver +none '
check "the digits, to the end" is "$(elsewhere train "$home/bin/train")" 0
check "the digits' summary" has "$scratch/train" '^complete'
SAGEMAKER_BASE_DIR=$scratch/here TRAINYARD_CACHE_DIR=none "$bin/train" >"$scratch/here.log" 2>&1
check "the digits here" has "$scratch/here.log" '^complete'
for file in model.safetensors model.onnx; do
    check "$file is the one that the programs here make" cmp "$scratch/here/model/$file" "$scratch/there/model/$file"
done
check "a model written in C" is "$(elsewhere cmodel "$home/bin/trainyard" check /examples/digits-c/model.c --batch 8)" 0

# Script mode: headers, start-up objects, libc and libm to link with.
cat >"$scratch/there/code/program.c" <<'C'
#include <math.h>
#include <pthread.h>
#include <stdio.h>
static void *work(void *p) { *(double *)p = sqrt(*(double *)p); return NULL; }
int main(int argc, char **argv)
{
    double x = 16.0 * argc / argc;
    pthread_t t;
    return pthread_create(&t, NULL, work, &x) || pthread_join(t, NULL) || printf("root %g of %s\n", x, argv[0]) < 0;
}
C
chmod 644 "$scratch/there/code/program.c"
check "a C program of the user's" is "$(program_c=program.c elsewhere script "$home/bin/train")" 0
check "what it computed" has "$scratch/script" '^root 4 of '
