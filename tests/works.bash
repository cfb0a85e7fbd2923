# works.bash - for scripts that source it: the eight benchmarked workloads (bench/peers/works.py) without their numbers, so
# that they are there on any machine. golden/works/NAME.onnx.gz is the exported model; its weights are holes in a file, its
# batches zeros.
works="mlp cnn lstm deepfm chargpt gpt2 bert resnet50"

# npy FILE TYPE SHAPE...: an array of zeros, whose bytes take no room.
npy() {
    python3 - "$@" <<'P'
import sys
path, kind, *shape = sys.argv[1:]
n = int(kind[2])
for d in shape:
    n *= int(d)
head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({', '.join(shape)},), }}"
with open(path, "wb") as f:
    f.write(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n")
    f.truncate(128 + n)
P
}

# make_work NAME DIR: what bench/ours takes: model.onnx, weights.bin, x0.npy ..., y.npy, of one batch.
make_work() {
    local name=$1 dir=$2 bytes=0 x='' y=''
    case $name in
    mlp) bytes=2678784 x='<f4 1 128 1 28 28' y='<i8 1 128' ;;
    cnn) bytes=4799488 x='<f4 1 64 1 28 28' y='<i8 1 64' ;;
    lstm) bytes=3786560 x='<i8 1 32 64' y='<i8 1 32 64' ;;
    deepfm) bytes=16201664 x='<i8 1 1024 39' y='<f4 1 1024' ;;
    chargpt) bytes=43083264 x='<i8 1 8 256' y='<i8 1 8 256' ;;
    gpt2) bytes=497759232 x='<i8 1 4 64' y='<i8 1 4 64' ;;
    bert) bytes=437928960 x='<i8 1 4 128' y='<i8 1 4' ;;
    resnet50) bytes=102440640 x='<f4 1 8 3 224 224' y='<i8 1 8' ;;
    esac
    mkdir -p "$dir"
    gzip -dc "tests/golden/works/$name.onnx.gz" >"$dir/model.onnx"
    truncate -s $bytes "$dir/weights.bin"
    npy "$dir/x0.npy" $x
    npy "$dir/y.npy" $y
    [ "$name" != deepfm ] || npy "$dir/x1.npy" '<f4' 1 1024 39
}
