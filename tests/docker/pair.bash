# pair.bash - algo-1 and algo-2 from the image on a network with names, as the platform starts them; sourced behind engine.bash and
# need_image.
#
#   host_run HOST TREE ARGUMENT...   `train` on it, over a tree of ours as /opt/ml
#   status HOST                      waits for its end, 200 s at most, and prints the exit status; $scratch/$name-HOST.log is its output
#   trains                           algo-1 has made some steps
#   empty FOLDER                     no file is in it
network=trainyard-pair-$$
docker network create "$network" >"$scratch/network" 2>&1 || skip_all "no network between containers: $(tail -n 1 "$scratch/network")"
trap 'for host in algo-1 algo-2; do docker rm -f -v "$network-$host"; done >"$scratch/removed" 2>&1
    docker network rm -f "$network" >"$scratch/removed" 2>&1; finish' EXIT

host_run() {
    docker rm -f -v "$network-$1" >"$scratch/removed" 2>&1
    docker run -d --name "$network-$1" --hostname "$1" --network "$network" --network-alias "$1" --stop-timeout 60 \
        --read-only --user 1000:1000 --cap-drop ALL --security-opt no-new-privileges \
        -v "$2:/opt/ml" "$image" train "${@:3}" >"$scratch/id" 2>&1 || cat "$scratch/id"
}
status() {
    timeout 200 docker wait "$network-$1" 2>"$scratch/wait" || echo "no end"
    docker logs "$network-$1" >"$scratch/$name-$1.log" 2>&1
}
trains() { timeout 120 docker logs -f "$network-algo-1" 2>&1 | grep -aqm 1 'step=[0-9]\{2,\}'; }
empty() { is "$(find "$1" -type f)" ""; }
