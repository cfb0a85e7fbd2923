# gpu.bash - for tests of trainings on GPUs that tests/fakes stands in for; sourced behind harness.bash and job.bash.
FAKES=$(realpath "${TY_BUILD:-build/release}")/fakes
CARD="Stand-in,90,4,2000000000"

# alike WHAT A B: the same metric lines but for rounding.
alike() {
    if paste -d' ' <(tr ' ' '\n' <"$2") <(tr ' ' '\n' <"$3") | awk '
        split($1, a, "=") == 2 && split($2, b, "=") == 2 && a[1] == b[1] {
            n++; d = a[2] - b[2]; if (d < 0) d = -d; if (d > 3e-4 * a[2]) exit bad = 1; next }
        $1 != $2 { exit bad = 1 }
        END { exit bad || n < 4 }'; then pass; else fail "$1" "$(diff "$2" "$3" | head -6)"; fi
}
# near A B: the weights of two trees, nearly.
near() {
    python3 - "$1/model/model.safetensors" "$2/model/model.safetensors" <<'P'
import json, struct, sys
def read(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    head.pop("__metadata__", None)
    return {k: struct.unpack("<%df" % ((v["data_offsets"][1] - v["data_offsets"][0]) // 4),
                             data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in head.items()}
a, b = read(sys.argv[1]), read(sys.argv[2])
assert a.keys() == b.keys() and len(a) == 4
worst = max(abs(x - y) for k in a for x, y in zip(a[k], b[k]))
sys.exit(not worst < 1e-4 * max(abs(x) for k in a for x in a[k]))
P
}
