#!/bin/bash
# estimate.sh - what a job file takes from the recipe beside it: metric definitions, held against what a training prints, and
# the estimate of time and cost, held against its own arithmetic.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
unset AWS_REGION AWS_DEFAULT_REGION

# jobfile LINES: $W/job.yaml, whose recipe is that of the tree.
jobfile() {
    cat - >"$W/job.yaml" <<Y
name: digits
image: 111122223333.dkr.ecr.eu-west-1.amazonaws.com/trainyard:1.2
role: arn:aws:iam::111122223333:role/TrainRole
source: {folder: ml/code, recipe: train.yaml}
Y
    printf '%s\n' "$1" >>"$W/job.yaml"
}
ty() {
    timeout -k 5 600 "$BIN/trainyard" "$@" >"$W/said" 2>"$W/err" </dev/null
    rc=$?
}

# As the service reads a job's log: each expression on each line, its group as a number. Each must find what is printed, and last
# what was printed last; the other way round, whatever is printed is defined.
cat >"$SCRATCH/find.py" <<'PY'
import json, re, sys
definitions = json.load(open(sys.argv[1]))["AlgorithmSpecification"]["MetricDefinitions"]
lines = open(sys.argv[2]).read().splitlines()
printed = {}
for line in lines:
    split = "validation" if line.startswith("val ") else "train"
    for word in line.split():
        if "=" in word:
            name, value = word.split("=")
            name = name[4:] if split == "validation" and name.startswith("val_") else name
            if name not in ("step", "epoch"):
                printed["%s:%s" % (split, name)] = float(value)
found = {}
for d in definitions:
    for line in lines:
        for match in re.finditer(d["Regex"], line):
            found[d["Name"]] = float(match.group(1))
if found != printed or len(definitions) != len(printed):
    sys.exit("found %s\nprinted %s\ndefined %s" % (found, printed, [d["Name"] for d in definitions]))
PY

for precision in float32 float16; do
    job "definitions_$precision" 64
    jobfile "resources: {instance_type: ml.c5.xlarge, instance_count: 1}
hyperparameters: {epochs: 2, precision: $precision}"
    ty submit "$W/job.yaml" --dry-run --json
    same "a request" 0 $rc
    cp "$W/said" "$W/request.json"
    hyper "{\"epochs\": \"2\", \"precision\": \"\\\"$precision\\\"\"}"
    run
    same "a training" 0 $rc
    ok "each metric is found, with its last value" python3 "$SCRATCH/find.py" "$W/request.json" "$W/out"
done
has "of float16 the loss's scale too" "$W/request.json" '"train:loss_scale"'
ty job show "$W/job.yaml" --origin
ok "their origin" grep -qE '^metrics.validation:accuracy +.* derived from source.recipe$' "$W/said"

jobfile "resources: {instance_type: ml.c5.xlarge, instance_count: 2}"
ty submit "$W/job.yaml" --dry-run --json
has "of several hosts what they wait for" "$W/said" ' comm_ms='
jobfile "resources: {instance_type: ml.c5.xlarge, instance_count: 1}
metrics: {mine: \"loss=([0-9.]+)\"}"
ty submit "$W/job.yaml" --dry-run --json
same "the job's own win" '"MetricDefinitions":[{"Name":"mine","Regex":"loss=([0-9.]+)"}]' \
    "$(grep -oF '"MetricDefinitions":[{"Name":"mine","Regex":"loss=([0-9.]+)"}]' "$W/said")"
jobfile "resources: {instance_type: ml.c5.xlarge, instance_count: 1}
metrics: {}"
ty submit "$W/job.yaml" --dry-run --json
has "also where they are none" "$W/said" '"MetricDefinitions":[]'
jobfile "resources: {instance_type: ml.c5.xlarge, instance_count: 1}
hyperparameters: {epocs: 2}"
ty submit "$W/job.yaml" --dry-run
same "a recipe that the container would refuse is refused" 78 $rc
has "with its reason" "$W/err" 'did you mean "epochs"'

# ---- estimates

job estimate
jobfile "resources: {instance_type: ml.c5.xlarge, instance_count: 4}
hyperparameters: {epochs: 50}
spot: true
checkpoints: s3://acme-ml/c
stopping: {max_run_seconds: 3600, max_wait_seconds: 7200}"
ty job estimate "$W/job.yaml" --data-dir="$ML/input/data" --steps=5
same "exit" 0 $rc
for word in 'the median of 5' 'on 4 x ml.c5.xlarge, taken to be as fast' 'each machine sends' '1,000 steps, 50 evaluations' \
    'machine hours (--price' '2h00m in all' 'not in it'; do
    has "says $word" "$W/said" "$word"
done
ok "nothing is written" test ! -e run -a ! -e "$ML/model" -a ! -e "$ML/checkpoints"
ty job estimate "$W/job.yaml" --data-dir="$ML/input/data" --steps=5 --price=0.5 --speed=2 --network=10 --json
cat >"$SCRATCH/check.py" <<'PY'
import json, sys
e = json.load(open(sys.argv[1]))
near = lambda x, y: abs(x - y) <= 1e-6 * abs(y)
assert e["steps"] == 1000 and e["instances"] == 4 and e["batch_size"] == 16 and e["timed_steps"] == 5
assert 0 < e["step_min_s"] <= e["step_s"] <= e["step_max_s"]
assert near(e["step_there_s"], e["step_s"] / 8)
assert near(e["exchange_s"], e["exchange_bytes"] * 8 / 10e9) and e["exchange_bytes"] > 0
steps_s = e["steps"] * (e["step_there_s"] + e["exchange_s"])
assert near(e["total_s"], e["opening_s"] / 2 + steps_s + e["evaluation_s"]), e
assert e["evaluations"] == 50 and e["evaluation_s"] > 0 and e["checkpoints"] == 200 and e["checkpoint_bytes"] > 0
assert near(e["machine_hours"], 4 * e["total_s"] / 3600) and near(e["cost"], 0.5 * e["machine_hours"])
assert near(e["most_cost"], 2.0) and e["spot"] and e["max_wait_s"] == 7200 and e["fits_max_run"] == (e["total_s"] <= 3600)
PY
ok "the arithmetic" python3 "$SCRATCH/check.py" "$W/said"
sed -i 's/max_run_seconds: 3600/max_run_seconds: 1/' "$W/job.yaml"
ty job estimate "$W/job.yaml" --data-dir="$ML/input/data" --steps=1 --speed=1e-6
has "a job that would be stopped" "$W/said" "the job is stopped after max_run_seconds"
refused() {
    ty job estimate "$W/job.yaml" --data-dir="$ML/input/data" "${@:2}"
    has "refused: ${*:2}" "$W/err" "$1"
}
refused "--price needs a number above 0" --price=0
refused "--speed needs a number above 0" --speed=fast
refused "--steps needs a number from 1" --steps=0
refused "\`job estimate\` takes no --origin" --origin
echo 'distribution: {parameter_server: true}' >>"$W/job.yaml"
refused "with parameter servers the time is not foretold" --steps=1
jobfile "resources: {instance_type: ml.c5.xlarge, instance_count: 1}"
sed -i 's/^source:.*/source: {uri: s3:\/\/acme-ml\/k.tar.gz, recipe: train.yaml}/' "$W/job.yaml"
refused "no recipe of this machine goes along" --steps=1

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
