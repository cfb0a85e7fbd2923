#!/bin/bash
# Collectives of processes: build/.../tools/ranks as ranks of mpirun, every kind, type and way to reduce, with waiting that
# looks on and waiting that sleeps, in one piece and in many, in plain and in rank order.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${TY_BUILD:-build/release} passed=0 failed=0 skipped=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
close() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}
if ! command -v mpirun >/dev/null; then
    echo "skip: no mpirun here" && skipped=1 && close
elif [ "${TY_VARIANT:-release}" != release ]; then
    echo "skip: Open MPI is not built for the variant ${TY_VARIANT}" && skipped=1 && close
fi

# ranks N PROGRAM OPTION...: output of all ranks, and its status. Ranks share cores with whoever tests.
transport=self,vader,tcp
# On a machine that stands still now and then mpirun hears that a rank has ended before it hears that it had finalized, and
# calls that improper: then again.
ranks() {
    local n=$1 try text status
    shift
    for try in 1 2 3 4 5; do
        text=$(timeout -k 5 600 mpirun -np "$n" --oversubscribe --bind-to none --mca pml ob1 --mca btl "$transport" \
            --mca btl_tcp_if_include lo --mca btl_vader_single_copy_mechanism none "$@" 2>&1)
        status=$?
        [[ $status != 0 && $text == *"exiting improperly"* ]] || break
    done
    printf '%s\n' "$text"
    return $status
}
verdict() { # NAME STATUS OUTPUT
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s: status %s\n%s\n' "$1" "$2" "$(printf '%s\n' "$3" | head -n 30)"
    fi
}
# check NAME N PROGRAM OPTION... -- WORD...: ends well and says the words.
check() {
    local name=$1 output status args=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do args+=("$1") && shift; done
    shift
    output=$(ranks "${args[@]}")
    status=$?
    for word; do [[ $output == *"$word"* ]] || status="$status, and \"$word\" is missing"; done
    verdict "$name" "$status" "$output"
}

tool=$build/tools/ranks
gone=$(mktemp)
json=$(mktemp)
trap 'rm -f "$gone" "$json"' EXIT
timeout -k 5 600 "$build/tools/launch" --hosts 2 "$tool" lose >"$gone" 2>&1 & # ten seconds of waiting, beside the others
leaver=$!
check "one rank" 1 "$tool" some -- "1 ranks"
check "two ranks, many pieces, asleep between looks" 2 "$tool" all --piece 4096 -- "2 ranks, 2 on this host"
check "two ranks with cores of their own" 2 "$tool" some --cores 2 --threads 1 -- "2 ranks"
check "three ranks in rank order, many pieces" 3 "$tool" some --piece 4096 --rank-order -- "3 ranks"
check "four ranks, two levels" 4 "$tool" some --hierarchical --per-host 2 -- "4 ranks, 2 on this host"
for transport in self,vader self,tcp; do
    for piece in 4096 1000000; do
        check "rank order over $transport in pieces of $piece" 3 "$tool" order --rank-order --piece $piece -- "3 ranks"
    done
done
transport=self,vader,tcp

# The same bits wherever ranks are, and two levels, on hosts that the tool makes of this one.
on_hosts() { # NAME HOSTS OPTION... -- WORDS
    local name=$1 hosts=$2 output status args=()
    shift 2
    while [ "$1" != -- ]; do args+=("$1") && shift; done
    output=$(timeout -k 5 600 "$build/tools/launch" --hosts "$hosts" "$tool" "${args[@]}" 2>&1)
    status=$?
    [[ $output == *"$2"* ]] || status="$status, and \"$2\" is missing"
    verdict "$name" "$status" "$output"
}
on_hosts "rank order, one host of two" 2 order --rank-order -- "2 ranks, 2 on this host: 0 faults"
on_hosts "rank order, two hosts of one" 1,1 order --rank-order --piece 4096 -- "2 ranks, 1 on this host: 0 faults"
on_hosts "rank order, uneven hosts" 2,1 order --rank-order --hierarchical -- "3 ranks, 2 on this host: 0 faults"
on_hosts "two hosts of two ranks, by levels" 2,2 some --hierarchical -- "4 ranks, 2 on this host: 0 faults"

# trainyard perf
perf=${TY_BIN:-build/bin}/trainyard
check "perf: columns and verdict" 2 "$perf" perf -b 1K -e 64K -f 8 -w 1 -n 2 -J "$json" -- algbw busbw "65536         16384      f32" "0 OK"
python3 - "$json" <<'END'
import json, sys
p = json.load(open(sys.argv[1]))
assert p["ranks"] == 2 and [r["size"] for r in p["results"]] == [1024, 8192, 65536], p
assert all(r[w]["wrong"] == 0 and r[w]["time_us"] > 0 for r in p["results"] for w in ("out_of_place", "in_place")), p
END
verdict "perf: JSON" $? "$(cat "$json")"
for collective in all_reduce reduce_scatter all_gather broadcast all_to_all; do
    check "perf: $collective of every type" 3 "$perf" perf $collective -d all -o all -b 3000 -e 3000 -w 0 -n 1 -- "0 OK"
done
check "perf on a 16-bit wire" 3 "$perf" perf -z bf16 -o average -b 5000 -e 5000 -w 0 -n 1 -- "average" "0 OK"
output=$(timeout -k 5 600 "$perf" perf --ranks 2 all_gather -e 64 -n 2 2>&1)
status=$?
[[ $output == *"2 ranks"*"0 OK"* ]] || status="$status, and it does not say so"
verdict "perf starts its ranks itself" "$status" "$output"
output=$("$perf" perf --ranks 2 -o mean 2>&1)
[ $? != 0 ] && [[ $output == *"-o mean"* && $output != *"<stdout>"* ]]
verdict "perf: ranks that would refuse are not started" $? "$output"
check "perf alone" 1 "$perf" perf -e 64 -- "1 ranks" "0 OK"
for wrong in "all_sum" "-e 3X" "-d f12" "-o mean" "-z f32" "-f 1" "-n 0" "-b 5 -e 4"; do
    # shellcheck disable=SC2086
    output=$("$perf" perf $wrong 2>&1)
    [ $? != 0 ] && [[ $output == *perf:* ]]
    verdict "perf $wrong is refused" $? "$output"
done
wait $leaver
verdict "a rank takes its leave though the other is gone" $? "$(cat "$gone")"
close
