#!/bin/bash
# doctor.sh - `trainyard doctor`: what is found, what is missing, and the GPUs of a driver that stands in for one.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
W=$SCRATCH/doctor
mkdir -p "$W"
doctor() { # [VARIABLE=VALUE ...] [-- WORDS]
    local settings=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    shift $(($# > 0))
    env -u CUDA_HOME "${settings[@]}" timeout -k 5 600 "$BIN/trainyard" doctor "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
fakes=$(realpath "${TY_BUILD:-build/release}")/fakes
fake=LD_LIBRARY_PATH=$fakes
h200='NVIDIA H200,90,132,150754820096'

case_name=machine
doctor
same "fit" 0 $rc
same "nothing on stderr" "" "$(cat "$W/err")"
has "processor" "$W/out" "processor"
has "oneDNN and its file" "$W/out" "libdnnl.so.2"
has "HDF5 and its file" "$W/out" "libhdf5_serial.so.103"
has "says so" "$W/out" "Fit to train on the CPU."
same "the compiler's own version" "$("${CC:-cc}" -dumpfullversion)" "$(awk '/^C compiler/ { print $3 }' "$W/out")"

case_name=missing
doctor CC=/nowhere/cc
same "not fit" 1 $rc
has "what" "$W/out" "C compiler  MISSING    without it: no kernels"
has "why" "$W/out" '/nowhere/cc": No such file'
has "verdict" "$W/out" "NOT fit"

case_name=bundled
mkdir -p "$W/moved here/bin" "$W/moved here/cc/bin"
cp "$BIN/trainyard" "$W/moved here/bin/"
printf '#!/bin/sh\nexec %s "$@"\n' "${CC:-cc}" >"$W/moved here/cc/bin/cc"
chmod +x "$W/moved here/cc/bin/cc"
ln -s "moved here/bin/trainyard" "$W/link"
beside() { (unset CC && export _ "$@" && exec timeout -k 5 600 "$W/link" doctor) >"$W/out" 2>"$W/err" </dev/null; }
beside
has "the compiler beside it" "$W/out" "$W/moved here/cc/bin/cc"
beside "CC=gcc"
same "but not if CC names one" gcc "$(awk '/^C compiler/ { print $4 }' "$W/out")"
chmod -x "$W/moved here/cc/bin/cc"
beside
same "the system's where there is none" cc "$(awk '/^C compiler/ { print $4 }' "$W/out")"

case_name=libraries
for row in "mpi libopenmpi3 Open.MPI" "pmix libpmix2 PMIx" "ucx libucx0 UCX"; do
    read -r name package title <<<"$row"
    doctor
    if [ -e "$BIN/../lib/libtrainyard-$name.so" ]; then
        same "$name: its version" "$(dpkg-query -W -f '${Version}' $package | sed -E 's/[-+].*//')" \
            "$(sed -nE "s/^$title +([0-9.]+).*/\1/p" "$W/out")"
        has "$name: its plug-in" "$W/out" "/lib/libtrainyard-$name.so"
    else
        skip "$name: its version" "no plug-in was built"
    fi
    doctor TRAINYARD_PLUGINS=/nowhere
    same "$name: fit without" 0 $rc
    has "$name: which plug-in is missing" "$W/out" "(there is no plug-in libtrainyard-$name.so; looked in /nowhere"
done

case_name=search
wheels="$W/site [1]" nvrtc=$fakes/libnvrtc.so.1
mkdir -p "$wheels/nvidia/cuda_nvrtc/lib" "$wheels/nvidia/cu13/lib" "$W/toolkit/lib64" "$W/plain"
cp "$nvrtc" "$wheels/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
cp "$nvrtc" "$wheels/nvidia/cu13/lib/libnvrtc.so.13"
cp "$nvrtc" "$W/toolkit/lib64/libnvrtc.so.12"
cp "$nvrtc" "$W/plain/libnvrtc.so.13"
finds() { # FOLDERS FILE
    doctor "TRAINYARD_CUDA_DIR=$1"
    has "$1" "$W/out" "NVRTC       13.98      $2"
}
finds "$wheels" "$wheels/nvidia/cu13/lib/libnvrtc.so.13"
finds "$wheels/nvidia" "$wheels/nvidia/cu13/lib/libnvrtc.so.13"
finds "$W/toolkit" "$W/toolkit/lib64/libnvrtc.so.12"
finds "/nowhere:$W/plain:$W/toolkit" "$W/plain/libnvrtc.so.13"
echo damaged >"$W/plain/libnvrtc.so.13"
finds "$W/plain:$W/toolkit" "$W/toolkit/lib64/libnvrtc.so.12"

case_name=gpus
doctor $fake "TY_FAKE_GPUS=$h200;Old Card,70,80,17179869184"
same "fit" 0 $rc
has "driver" "$W/out" "GPU driver  CUDA 13.0  $fakes/libcuda.so.1"
has "facts" "$W/out" "GPU 0       NVIDIA H200, compute capability 9.0, 132 multiprocessors, 140.4 GiB, GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
has "the second" "$W/out" "GPU 1       Old Card, compute capability 7.0, 80 multiprocessors, 16.0 GiB, GPU-10111213"
if grep -q '^NVRTC  *13' "$W/out"; then
    has "which CUDA it needs" "$W/out" "            CUDA 13 compiles for compute capability 7.5 and up: use libraries of CUDA 12"
    doctor $fake "TY_FAKE_GPUS=Next Card,199,80,17179869184"
    has "a card of tomorrow" "$W/out" "does not know compute capability 19.9: use newer libraries"
else
    has "no compiler for it" "$W/out" "no kernels can be compiled for it: there is no NVRTC"
    skip "cards that CUDA 13 does not know" "NVRTC 13 is not installed"
fi

# A driver older than the libraries, and libraries of two versions: $twelve/ has those of CUDA 12, named alone in nvrtc/.
case_name=older
twelve=$W/twelve why="the driver is of CUDA 12.4, the libraries of CUDA 13: driver 580 or newer, or libraries of CUDA 12"
mkdir -p "$twelve" "$W/nvrtc"
cp "$fakes/gpu/libnvrtc.so.13" "$twelve/libnvrtc.so.12"
cp "$fakes/gpu/libcublasLt.so.13" "$twelve/libcublasLt.so.12"
cp "$twelve/libnvrtc.so.12" "$W/nvrtc"
driver() { # VERSION [VARIABLE=VALUE ...] [-- WORDS]
    doctor "LD_LIBRARY_PATH=$fakes/gpu:$fakes" "TY_FAKE_GPUS=$h200" "TY_FAKE_CUDA=$1" "${@:2}"
}
driver 12040
same "fit" 0 $rc
has "its version" "$W/out" "GPU driver  CUDA 12.4"
has "NVRTC is left out" "$W/out" "NVRTC       none       without it: no kernels for GPUs"
has "so is cuBLASLt" "$W/out" "cuBLASLt    none       without it: no products on GPUs"
has "and why" "$W/out" "                       ($why)"
has "of the GPU" "$W/out" "            $why"
has "verdict" "$W/out" "Fit to train on the CPU. Not on a GPU: $why"
driver 12040 -- --json
has "for programs" "$W/out" "\"remark\": \"$why\""
driver 12040 "TRAINYARD_CUDA_DIR=$twelve"
has "NVRTC of CUDA 12" "$W/out" "$twelve/libnvrtc.so.12"
has "cuBLASLt of CUDA 12" "$W/out" "$twelve/libcublasLt.so.12"
has "will do" "$W/out" "Fit to train on the CPU and on GPU 0"
driver 12040 "TRAINYARD_CUDA_DIR=$W/nvrtc"
has "NVRTC of CUDA 12 alone" "$W/out" "$W/nvrtc/libnvrtc.so.12"
has "will not" "$W/out" "Not on a GPU: $why"
driver 12040 "TRAINYARD_CUDA_DIR=$twelve" TY_FAKE_CUDNN_CUDA=13000
has "cuDNN of CUDA 13" "$W/out" "libcudnn.so.9 is of CUDA 13: driver 580 or newer is needed)"
driver 11080 "TRAINYARD_CUDA_DIR=$twelve"
has "older than all" "$W/out" "Not on a GPU: the driver is of CUDA 11.8, the libraries of CUDA 12: driver 525 or newer"
lacks "of which there are no libraries" "$W/out" "or libraries of CUDA 11"
driver 13000 "TRAINYARD_CUDA_DIR=$twelve"
has "a newer driver" "$W/out" "$twelve/libnvrtc.so.12"
has "runs both" "$W/out" "$twelve/libcublasLt.so.12"
driver 13000 "TRAINYARD_CUDA_DIR=$W/nvrtc"
has "of which the other is missing is passed over" "$W/out" "$fakes/gpu/libnvrtc.so.13"
has "both of one version" "$W/out" "$fakes/gpu/libcublasLt.so.13"
has "and fit" "$W/out" "Fit to train on the CPU and on GPU 0"
driver 14020
has "a driver of tomorrow" "$W/out" "Fit to train on the CPU and on GPU 0"

case_name=driver
doctor $fake TY_FAKE_CUINIT=100
has "no device" "$W/out" "GPUs        none: the driver finds no device"
doctor $fake TY_FAKE_CUINIT=803
has "a driver that fails" "$W/out" "none: the driver does not start: error 803 of the driver (system has unsupported display driver"
doctor $fake TY_FAKE_CUINIT=802
has "an error without a text" "$W/out" "error 802 of the driver (no text for it)"
doctor $fake "TY_FAKE_GPUS=$h200" TY_FAKE_DEVICE=999
has "a device that fails" "$W/out" "GPU 0       the device cannot be asked: error 999"
doctor $fake
has "no GPU" "$W/out" "GPUs        none: the driver finds no device"

case_name=json
doctor $fake "TY_FAKE_GPUS=$h200" -- --json
same "fit" 0 $rc
same "one line" 1 "$(wc -l <"$W/out")"
has "gpu" "$W/out" '"compute_capability": 90'
has "memory" "$W/out" '"memory_bytes": 150754820096'
has "verdict" "$W/out" '"fit": true'

finish_tests
