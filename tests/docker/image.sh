#!/bin/bash
# The image as a thing: its size, what is in it and what is not, how it answers the words it is started with.
set -u
. "$(dirname "$0")/engine.bash"
LIMIT_BYTES=150000000

need_image
name=trainyard-test-$$
docker create --name "$name" "$image" >"$scratch/created" && containers+=("$name")
docker export "$name" >"$scratch/image.tar"
tar -tf "$scratch/image.tar" >"$scratch/names"
tar -tvf "$scratch/image.tar" >"$scratch/listing"
bytes=$(awk '/^-/ {sum += $3} END {print sum + 0}' "$scratch/listing")
echo "image: $bytes bytes unpacked, $(grep -c '^-' "$scratch/listing") files"

check "at most $LIMIT_BYTES bytes unpacked, and not empty" [ "$bytes" -gt 10000000 -a "$bytes" -le $LIMIT_BYTES ]
check "no shell, no interpreter, no package manager" \
    not grep -E '(^|/)(sh|bash|dash|perl|python3?|apt|apt-get|dpkg|busybox)$' "$scratch/names"
check "no file with set-user-ID or set-group-ID" not grep -E '^-[rwx-]*s' "$scratch/listing"
check "nothing that everybody may write, except the two scratch folders" \
    not grep -vE ' (tmp|var/tmp)/$' <(grep -E '^[^l].......w' "$scratch/listing")

# A file of a package is there with the package's licence.
for package in gcc-12 cpp-12 binutils-x86-64-linux-gnu libc6 libdnnl2 libgomp1 libyaml-0-2 libpcre2-8-0 zlib1g libssl3 ca-certificates \
    libopenmpi3 openmpi-bin libpmix2 libucx0 libhwloc15 libevent-core-2.1-7 \
    libsndfile1 libsoxr0 libsnappy1v5 liblz4-1 libbrotli1; do
    check "the licence of $package" grep -qxF "usr/share/doc/$package/copyright" "$scratch/names"
    check "the record of $package" grep -qxF "var/lib/dpkg/status.d/$package" "$scratch/names"
done
check "the licence texts" grep -q '^usr/share/common-licenses/GPL-3$' "$scratch/names"

inspect() { docker image inspect --format "$1" "$image"; }
check "the entry point is no shell" is "$(inspect '{{json .Config.Entrypoint}}')" '["/usr/local/bin/train"]'
check "no default argument" is "$(inspect '{{len .Config.Cmd}}')" 0
for label in title description version revision base.name; do
    check "label $label" [ -n "$(inspect "{{index .Config.Labels \"org.opencontainers.image.$label\"}}")" ]
done

answer() { is "$(run_image "$1" -- "${@:3}")" "$2"; }
check "--version" answer version 0 --version
check "--version prints name and number" has "$scratch/version" '^trainyard [0-9]'
check "--help" answer help 0 --help
check "a command of trainyard" answer help-recipe 0 help recipe
check "version --verbose" answer commit 0 version --verbose
[ -n "${TY_IMAGE:-}" ] || check "the commit that the build was given" has "$scratch/commit" '^commit +test'
check "doctor" answer doctor 0 doctor
for library in "Open MPI" PMIx UCX; do
    check "$library is found" has "$scratch/doctor" "^$library +[0-9].* /usr/local/lib/trainyard/libtrainyard-[a-z]+\.so\$"
done
# What Open MPI opens by itself: one rank, and mpirun, which starts one here.
check "a rank" answer rank 0 perf -b 1K -e 1K
check "mpirun" is "$(run_image mpirun "${hardened[@]}" --entrypoint mpirun -- --mca plm isolated \
    -np 2 --oversubscribe /usr/local/bin/trainyard perf -b 1K -e 1K)" 0
check "two ranks of it" has "$scratch/mpirun" '2 ranks'
# Libraries that are opened when a file needs them: codecs of Parquet's pages, of sounds, and what changes their rate.
mkdir -p "$scratch/formats/sounds" && cp tests/golden/parquet/{snappy,gzip,zstd,brotli,lz4}.parquet "$scratch/formats"
cp tests/golden/audio/{s16.wav,s16.flac,vorbis.ogg,opus.opus,layer3.mp3,s16.aiff} "$scratch/formats/sounds"
printf '%s\n' 'model: tones.onnx' 'loss: softmax_cross_entropy' 'batch_size: 2' \
    'data: {train: {path: /formats/sounds, fields: {wave: {audio: {sample_rate: 11025, seconds: 0.1, channels: 1}}}}}' >"$scratch/formats/sounds.yaml"
chmod -R a+rX "$scratch/formats" && chmod 755 "$scratch"
for codec in snappy gzip zstd brotli lz4; do
    check "Parquet with $codec" is "$(run_image "$codec" "${hardened[@]}" -v "$scratch/formats:/formats:ro" -- data head "/formats/$codec.parquet" --rows=1)" 0
done
check "sounds of six kinds, at another rate" is \
    "$(run_image sounds "${hardened[@]}" -v "$scratch/formats:/formats:ro" -- data head /formats/sounds --recipe=/formats/sounds.yaml --rows=6)" 0
check "serve is refused" answer serve 2 serve
check "serve is told why" has "$scratch/serve" 'does not serve'
check "train without a job ends in an error" not answer no-job 0 train
check "train without a job says what is missing" has "$scratch/no-job" 'recipe|train\.yaml'
# Where no entry point is kept, the platform looks for a program called train.
check "train is found by its name" is "$(run_image by-name --entrypoint train -- --version)" 0

# A C program of the user's: headers, start-up objects and libraries are there, with threads, OpenMP and the calls of many ranks.
mkdir -p "$scratch/c/code"
cat >"$scratch/c/code/train.c" <<'C'
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <trainyard/trainyard.h>
static void *work(void *p) { *(double *)p = sqrt(*(double *)p); return NULL; }
int main(int argc, char **argv)
{
    double x = argc > 1 ? 16 : 0;
    pthread_t t;
    if (pthread_create(&t, NULL, work, &x) || pthread_join(t, NULL))
        return 1;
    if (trainyard_init(NULL) || trainyard_allreduce(trainyard_f64(&x, 1), NULL, NULL) || trainyard_shutdown())
        return 2;
    FILE *f = fopen("/opt/ml/model/weights", "w");
    fprintf(f, "%g %s %s\n", x, argv[1], getenv("SM_MODEL_DIR"));
    return fclose(f) ? 1 : 0;
}
C
mkdir -p "$scratch/c/model" "$scratch/c/output" && chown -R 1000:1000 "$scratch/c" && chmod 755 "$scratch"
check "script mode compiles and runs a C file" \
    is "$(run_image script "${hardened[@]}" -v "$scratch/c:/opt/ml" -e SAGEMAKER_PROGRAM=train.c -- train --lr=1)" 0
check "what the C program wrote" grep -E '^4 --lr(=1)? /opt/ml/model$' "$scratch/c/model/weights"
cat >"$scratch/openmp.c" <<'C'
#include <omp.h>
#include <immintrin.h>
int main(void)
{
    int n = 0;
#pragma omp parallel reduction(+ : n)
    n += omp_get_thread_num() >= 0;
    return n > 0 ? 0 : 1;
}
C
chmod 644 "$scratch/openmp.c"
check "an OpenMP program links" is "$(run_image openmp "${hardened[@]}" -v "$scratch:/source:ro" \
    --entrypoint cc -- -Wall -Werror -O2 -march=native -fopenmp -pthread -o /tmp/program /source/openmp.c -lm)" 0
