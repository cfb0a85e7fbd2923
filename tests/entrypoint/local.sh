#!/bin/bash
# local.sh - `trainyard local` without an engine: the same job on one, two and three hosts that are processes, what they are told,
# who gets which files, faults and stops with the platform's words and statuses, results that are the caller's, and nothing else left.
# Containers are tests/docker/local.sh.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
unset AWS_REGION AWS_DEFAULT_REGION
export TRAINYARD_CACHE_DIR=$SCRATCH/cache
TY=$BIN/trainyard EXAMPLES=$PWD/examples
several=
[ -e "$BIN/../lib/libtrainyard-mpi.so" ] || [ -e "$BIN/../lib/trainyard/libtrainyard-mpi.so" ] && several=1

# begin_job NAME: a folder $W with a job that any number of hosts can do, and that is the current one.
begin_job() {
    perceptron "$1" 480
    unset SAGEMAKER_BASE_DIR
    sed -i 's/batch_size: 16/batch_size: 48/' "$ML/code/train.yaml"
    mv "$ML/code" "$W/src" && mv "$ML/input/data" "$W/data" && rm -r "$ML"
    cat >"$W/job.yaml" <<'Y'
base_name: small
source: {folder: src, recipe: train.yaml}
inputs:
  train: {s3: s3://acme-ml/train/, local: data/train, content_type: text/csv}
  test: {local: data/test}
hyperparameters: {log_every: 1}
Y
    cd "$W" || exit 1
}
# locally INTO [OPTION...]: status in $rc, streams in $W/out and $W/err.
locally() {
    timeout -k 5 "${LIMIT:-600}" "$TY" local job.yaml --no-docker --output "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
in_background() {
    empty "$W/out" "$W/err"
    "$TY" local job.yaml --no-docker --output "$@" >"$W/out" 2>"$W/err" </dev/null &
    pid=$!
}
said() { sed 's/^\[algo-[0-9]*\] //; s/^\[1,[0-9]*\]<stdout>: *//' "$W/out" | grep "^$1"; }
accuracy() { said 'val step=' | tail -n 1 | grep -o 'val_accuracy=.*'; }
nothing_runs() { ! grep -qasF "SAGEMAKER_BASE_DIR=$W/" /proc/[0-9]*/environ; }
clean() { # INTO: what may lie there
    same "what lies in $1" "logs model.tar.gz output" "$(ls "$1" | xargs)"
    ok "nothing runs" until_true 10 nothing_runs
}

# ---- one, two and three hosts ----

begin_job one
locally r
same "one host" 0 $rc
has "the first line tells the way" "$W/err" "1 host as process (as asked for)"
same "lines as they are" "$(said 'step=10 ' | cut -c 1-20)" "$(grep '^step=10 ' "$W/out" | cut -c 1-20)"
same "the archive's names" "model.c model.json model.safetensors" "$(tar -tzf r/model.tar.gz | xargs)"
ok "metrics" test -s r/output/data/metrics.jsonl
ok "the log" grep -q '^complete: 30 steps' r/logs/algo-1.log
clean r
ONE=$(accuracy)
locally r
same "results are not written over" 73 $rc
has "in words" "$W/err" 'has the results of another run'
sed -i 's/^hyper/output: {compression: NONE}\n&/' job.yaml
locally files --output.x=1
same "a setting that the recipe does not have" 4 $rc
has "is told as the platform does" "$W/err" 'reason  AlgorithmError: E0107'
has "with the status" "$W/err" ', exit code: 78'
ok "and its failure file is kept" grep -q E0107 files/output/failure
locally again --max_steps=5
ok "a model that stays files" test -s again/model/model.safetensors -a ! -e again/model.tar.gz

for nodes in 2 3; do
    [ -n "$several" ] || { skip "$nodes hosts" "libtrainyard-mpi.so was not built" && continue; }
    begin_job "nodes_$nodes"
    locally r --nodes "$nodes"
    same "$nodes hosts" 0 $rc
    has "as it says" "$W/err" "$nodes hosts as processes"
    same "the accuracy of one" "$ONE" "$(accuracy)"
    has "lines have their host's name" "$W/err" "[algo-$nodes] "
    same "and no line has none" "" "$(grep -v '^\[algo-[1-3]\] ' "$W/out")"
    clean r
done

# ---- what hosts are told ----

begin_job told
mkdir -p data/parts/deep && for n in 1 2 3 4 5; do echo "$n" >"data/parts/$n.txt"; done && mv data/parts/5.txt data/parts/deep
cat >src/run.sh <<'SH'
#!/bin/sh
cp -r "$SM_INPUT_CONFIG_DIR" "$SM_OUTPUT_DATA_DIR/$SM_CURRENT_HOST"
(cd "$SM_INPUT_DIR/data" && find -L . -type f | sort) >"$SM_OUTPUT_DATA_DIR/$SM_CURRENT_HOST/files"
env >"$SM_OUTPUT_DATA_DIR/$SM_CURRENT_HOST/env"
echo "$SM_CURRENT_HOST" >"$SM_MODEL_DIR/who"
SH
chmod +x src/run.sh
cat >job.yaml <<'Y'
base_name: told
region: eu-west-1
source: {folder: src, program: run.sh}
resources:
  instance_groups:
    - {name: left, instance_type: ml.c5.xlarge, instance_count: 2}
    - {name: right, instance_type: ml.m5.xlarge, instance_count: 1}
inputs:
  parts: {s3: s3://acme-ml/parts/, distribution: ShardedByS3Key, local: data/parts}
  both: {s3: s3://acme-ml/both/, instance_groups: [left]}
  one: file://data/train/part.csv
hyperparameters: {epochs: 3, optimizer: adam}
environment: {WORD: "two words", SM_FOO: "1"}
checkpoints: {uri: s3://acme-ml/c/, local_path: /opt/elsewhere}
Y
SM_HOSTS=stale RANK=7 locally r --input both=data/test
same "a program" 0 $rc
has "names that several hosts have" "$W/err" "warning: 2 files of model and output/data have one name on several hosts"
cat >check.py <<'PY'
import json, os
def config(host, name): return json.load(open(f"r/output/data/{host}/{name}.json"))
def text(host, name): return open(f"r/output/data/{host}/{name}").read()
hosts = ["algo-1", "algo-2", "algo-3"]
shares = []
for i, host in enumerate(hosts):
    c = config(host, "resourceconfig")
    group = "left" if i < 2 else "right"
    assert c["current_host"] == host and c["hosts"] == hosts and c["current_group_name"] == group, c
    assert [g["hosts"] for g in c["instance_groups"]] == [hosts[:2], hosts[2:]], c
    assert c["current_instance_type"] == ["ml.c5.xlarge", "ml.m5.xlarge"][i // 2] and c["network_interface_name"] == "lo", c
    h = config(host, "hyperparameters")
    assert h["epochs"] == "3" and h["optimizer"] == '"adam"' and h["sagemaker_program"] == '"run.sh"', h
    assert json.loads(h["sagemaker_submit_directory"]) == os.path.realpath("r") + f"/hosts/{host}/input/data/code/sourcedir.tar.gz", h
    d = config(host, "inputdataconfig")
    assert sorted(d) == (["both"] if i < 2 else []) + ["code", "one", "parts"], d
    assert d["parts"]["S3DistributionType"] == "ShardedByS3Key" and d["one"]["TrainingInputMode"] == "File", d
    assert config(host, "checkpointconfig")["LocalPath"].endswith(f"/hosts/{host}/checkpoints")
    files = text(host, "files").split()
    assert "./one/part.csv" in files and ("./both/part.csv" in files) == (i < 2), files
    shares.append([f for f in files if f.startswith("./parts/")])
    env = dict(l.split("=", 1) for l in text(host, "env").splitlines() if "=" in l)
    assert env["WORD"] == "two words" and env["AWS_REGION"] == "eu-west-1" and env["TRAINING_JOB_NAME"].startswith("told-2"), env
    assert "RANK" not in env and env["SM_HOSTS"] == '["algo-1","algo-2","algo-3"]' and env["SM_FOO"] == "1", env
assert shares == [["./parts/1.txt", "./parts/4.txt"], ["./parts/2.txt", "./parts/deep/5.txt"], ["./parts/3.txt"]], shares
PY
ok "configuration, channels, shares, variables" python3 check.py
same "the first host's model" algo-1 "$(tar -xzOf r/model.tar.gz who)"
ok "data are where they were" test -s data/parts/deep/5.txt -a -s data/test/part.csv

# ---- a fault that was asked for ----

begin_job fault_alone
locally r --epochs=1000 --fault kill:rank=0,step=50
same "a rank of one is killed" 4 $rc
has "as the platform says it" "$W/err" "reason  AlgorithmError: E"
has "signal" "$W/err" "signal 9"
has "status" "$W/err" ", exit code: 137"
ok "in that step" grep -qE "^step=4[89] " <(said step= | tail -n 1)
rm -r r && locally r --max_steps=9 --fault stop:step=10,rank=0
same "a step that does not come" 0 $rc
has "is told" "$W/err" "warning: the fault stop:step=10,rank=0 did not happen"
if [ -n "$several" ]; then
    begin_job fault
    locally r --nodes 2 --epochs=1000 --fault kill:rank=1,step=50
    same "a rank of two is killed" 4 $rc
    has "who" "$W/err" "reason  AlgorithmError: E0540 rank 1 (algo-2"
    ok "how and when" grep -qE "was killed by signal 9 \(KILL\) in step 5[0-2];" "$W/err"
    has "status" "$W/err" ", exit code: 137"
    ok "and nothing runs" until_true 10 nothing_runs
    rm -r r && locally r --nodes 2 --distributed.restarts=1 --fault kill:rank=1,step=25
    same "a job that starts anew" 0 $rc
    has "goes on from its checkpoint" "$W/err" "resuming at step 2"
    lacks "for it did happen" "$W/err" "did not happen"
    rm -r r && locally r --nodes 2 --epochs=100000 --fault term:rank=1,step=20
    ok "a rank that is told to stop: the job ends" test $rc = 4 -o $rc = 0
    clean r
else
    skip "faults of two hosts" "libtrainyard-mpi.so was not built"
fi

# ---- stops ----

begin_job stopped
sed -i 's/^hyper/checkpoints: s3:\/\/acme-ml\/c\/\n&/' job.yaml
has_steps() { [ "$(said step= | wc -l)" -gt "$1" ]; }
in_background r --epochs=1000000 --checkpoint.every="1000000 steps"
ok "it trains" until_true 60 has_steps 10
kill -TERM $pid
finish
same "stopped" 3 $rc
has "in words" "$W/err" ": Stopped after"
ok "the model is there" test -s r/model.tar.gz
ok "and the checkpoint" test -n "$(find r/checkpoints -name MANIFEST.json)"
ok "nothing runs" until_true 10 nothing_runs
rm -r r/model.tar.gz r/output r/logs
locally r --max_steps=1
has "the next run begins with it" "$W/err" "checkpoint"
ok "and keeps it" test -n "$(find r/checkpoints -name MANIFEST.json)"
in_background k --epochs=1000000
ok "it trains" until_true 60 has_steps 10
kill -KILL $pid
finish 2>/dev/null
ok "killed without a word, nothing runs" until_true 60 nothing_runs

begin_job late
printf '#!/bin/sh\ntrap "" TERM\necho ready\nwhile :; do sleep 0.1; done\n' >src/run.sh && chmod +x src/run.sh
sed -i 's/recipe: train.yaml/program: run.sh/; s/^hyper/stopping: {max_run_seconds: 1}\n&/' job.yaml
TRAINYARD_GRACE_S=1 locally r
same "time is over" 5 $rc
has "in words" "$W/err" "Stopped, MaxRuntimeExceeded"
sed -i '/max_run_seconds/d' job.yaml
in_background s
ok "it runs" until_true 60 grep -q ready "$W/out"
kill -INT $pid
ok "a stop that is not listened to" until_true 60 grep -q 'stopping the job' "$W/err"
kill -INT $pid
finish
same "and the second one, at once" 3 $rc
ok "nothing runs" until_true 10 nothing_runs

# ---- Pipe mode: this machine feeds ----

begin_job pipe
mkdir -p data/part && printf 'one\n' >data/part/a && printf 'three\n' >data/part/c && printf 'two\n' | gzip >data/part/b
cat >src/run.sh <<'R'
#!/bin/sh
cd "$SAGEMAKER_BASE_DIR/input/data" || exit 1
cat text_0 text_1 >"$SAGEMAKER_BASE_DIR/output/data/text-$SM_CURRENT_HOST"
cat objects_0 >"$SAGEMAKER_BASE_DIR/output/data/objects-$SM_CURRENT_HOST"
R
chmod +x src/run.sh
sed -i '/^inputs/,$d; s/recipe: train.yaml/program: run.sh/' job.yaml
cat >>job.yaml <<'Y'
inputs:
  text: {s3: s3://acme-ml/text/, local: data/part, input_mode: Pipe, compression: Gzip}
  objects: {s3: s3://acme-ml/text/, local: data/part, input_mode: Pipe, distribution: ShardedByS3Key, record_wrapper: RecordIO}
Y
locally r
same "a host" 0 $rc
same "two epochs of a channel" "one two three one two three" "$(xargs <r/output/data/text-algo-1)"
same "objects in records" 3 "$(od -An -tx1 -v r/output/data/objects-algo-1 | tr -d ' \n' | grep -o 0a23d7ce | wc -l)"
ok "nothing runs" until_true 10 nothing_runs
printf '\x1f\x8b\x08garbage' >data/part/b
locally bad
ok "what cannot be fed fails the job: $rc" test $rc != 0
has "in words" "$W/err" 'what feeds channel "text" has failed'
has "with the object" "$W/err" 'data/part/b'
ok "nothing runs" until_true 10 nothing_runs

# ---- refusals ----

begin_job refused
refused() { # STATUS TEXT [OPTION...]
    "$TY" local job.yaml --no-docker --output n "${@:3}" >"$W/out" 2>"$W/err"
    same "$2: status" "$1" $?
    has "$2" "$W/err" "$2"
    ok "$2: nothing is left" test ! -e n
}
refused 2 '--nodes takes a number from 1 to 64' --nodes 0
refused 2 'a fault looks like kill:rank=1,step=50' --fault kill:rank=x
refused 2 'a fault looks like kill:rank=1,step=50' --fault kill:rank=1,step=0
refused 2 '--docker and --no-docker' --docker
refused 2 '--input takes CHANNEL=PATH' --input train
refused 2 'the job has no channel "tran"' --input tran=data
refused 66 'there is no "none"' --input train=none
sed -i 's/, local: data.train//' job.yaml
sed -i 's/^hyper/container: {entrypoint: [sh]}\n&/' job.yaml
refused 65 'container.entrypoint is a program of the image'
sed -i '/^container/d' job.yaml
echo 'inputs: {train: "file:///data"}' >job.yaml
refused 66 'there is no "/data"'
{ grep -v '^inputs' job.yaml; echo 'image: x:1
role: arn:aws:iam::111122223333:role/R
region: eu-west-1
resources: {instance_type: ml.m5.large, instance_count: 1}
inputs: {train: "file:///data"}'; } >other.yaml
"$TY" submit other.yaml --dry-run >"$W/out" 2>"$W/err"
has "and the service does not find it" "$W/err" 'lies on this machine, where the service does not find it'

# ---- another user ----

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    begin_job user
    chmod 755 "$SCRATCH" && mkdir -p "$SCRATCH/cache" && chown -R 1000:1000 "$W" "$SCRATCH/cache"
    if setpriv --reuid 1000 --regid 1000 --clear-groups test -x "$TY" -a -r "$W/job.yaml"; then
        HOME=$W setpriv --reuid 1000 --regid 1000 --clear-groups timeout 600 "$TY" local job.yaml --nodes $((1 + ${several:-0})) \
            --no-docker --output r >"$W/out" 2>"$W/err"
        same "as uid 1000" 0 $?
        same "files are theirs" "" "$(find r ! -uid 1000)"
        clean r
    else
        skip "as uid 1000" "this tree is root's alone"
    fi
else
    skip "as uid 1000" "not root, or there is no setpriv"
fi

# ---- the examples ----

case_name=examples
for example in digits deepfm-c; do
    ok "$example: for the service" "$TY" submit "$EXAMPLES/$example/job.yaml" --dry-run --json >"$W/out"
done
finish_tests
