#!/bin/bash
# managed.sh - jobs for the managed service, as far as no service is asked: what is shown and printed, what is refused and how,
# archives that are the same twice. The requests themselves are compared with the SDK's in tests/unit/jobspec_sdk.c.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
unset AWS_REGION AWS_DEFAULT_REGION
TY=$BIN/trainyard

# ---- refusals: tests/golden/job/refused/NAME.yaml, and what is said about it in NAME.txt

begin refused
for file in tests/golden/job/refused/*.yaml; do
    name=$(basename "$file" .yaml) case_name=refused_$name
    said=$(cd "${file%/*}" && "$TY" job show "$name.yaml" 2>&1 >/dev/null)
    same "what is said" "$(cat "${file%.yaml}.txt")" "$said"
done

# ---- what is shown

ROOT=$PWD
begin shown
mkdir -p "$W/src/lib"
cat >"$W/job.yaml" <<'YAML'
base_name: digits
image: 111122223333.dkr.ecr.eu-west-1.amazonaws.com/trainyard:1.2
role: TrainRole
account: '111122223333'
resources: {instance_type: ml.g5.12xlarge, instance_count: 2}
source: {folder: src, recipe: train.yaml}
inputs: {train: s3://acme-ml/train/}
hyperparameters: {epochs: 12, optimizer: adam}
environment: {API_TOKEN: canary-4711}
YAML
cp examples/digits/train.yaml "$W/src/train.yaml"
printf '#!/bin/sh\n' >"$W/src/lib/run.sh" && chmod 700 "$W/src/lib/run.sh"
head -c 100000 /dev/zero >"$W/src/zeros"
ln -s zeros "$W/src/link"
long=$(printf 'x%.0s' {1..120})
echo long >"$W/src/$long"
cd "$W" || exit 1
ok "show" "$TY" job show job.yaml --origin >"$W/out" 2>"$W/err"
line() { grep -E "^$1 " "$W/out" | sed -E 's/ +/ /g'; }
same "from the file" "base_name digits job.yaml:1" "$(line base_name)"
same "derived" "region eu-west-1 derived from image" "$(line region)"
same "a role by its name" "role arn:aws:iam::111122223333:role/TrainRole job.yaml:3" "$(line role)"
same "default" "resources.volume_gb 30 default" "$(line resources.volume_gb)"
same "a channel" "inputs.train.s3 s3://acme-ml/train/ job.yaml:7" "$(line inputs.train.s3)"
same "a hyperparameter, as sent" 'hyperparameters.optimizer "adam" job.yaml:8' "$(line hyperparameters.optimizer)"
same "the program" 'hyperparameters.sagemaker_program "train.yaml" job.yaml:6' "$(line hyperparameters.sagemaker_program)"
has "a secret's name is warned of" "$W/err" 'API_TOKEN'
lacks "but not its value" "$W/err" canary
AWS_REGION=us-east-2 "$TY" job show job.yaml --origin >"$W/out" 2>/dev/null
same "the environment" "region us-east-2 environment AWS_REGION" "$(line region)"
same "a variable that is no region" 1 "$(AWS_REGION='x y' "$TY" job show job.yaml 2>&1 | grep -c 'variable AWS_REGION')"
"$TY" job show job.yaml --json 2>/dev/null >"$W/out"
ok "show as JSON" python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert len(d["settings"]) > 20 and len(d["warnings"]) == 1' "$W/out"
ok "keys" "$TY" job --keys >"$W/out"
has "keys have limits" "$W/out" "keep_alive_seconds"

# ---- the README's job file

begin readme
mkdir "$W/src" && cp "$ROOT/examples/digits/train.yaml" "$W/src/train.yaml"
awk '/^```/ {on = $0 == "```yaml-job"; next} on' "$ROOT/README.md" >"$W/job.yaml"
ok "it is a job" "$TY" submit "$W/job.yaml" --dry-run --json >"$W/out"
has "with its source as a channel" "$W/out" '/opt/ml/input/data/code/sourcedir.tar.gz'

# ---- what is packed and sent

begin packed
cp -r "$SCRATCH/shown/." "$W" && cd "$W" || exit 1
ok "dry run" "$TY" submit job.yaml --dry-run --archive a.tar.gz >out 2>err
has "what is packed" err "lib/run.sh"
has "where it goes" err "/source/sourcedir.tar.gz"
cat >request.py <<'PY'
import json
d = json.load(open("out"))
assert d["TrainingJobName"].startswith("digits-2"), d
assert d["HyperParameters"]["epochs"] == "12" and d["HyperParameters"]["optimizer"] == '"adam"'
assert d["ResourceConfig"]["VolumeSizeInGB"] == 30
PY
ok "the request" python3 request.py
sleep_touch() { find src -exec touch -h -d "$1" {} +; }
sleep_touch '2001-01-01'
chmod 755 src/lib/run.sh
(umask 077 && cp -r src other && rm -rf src && mv other src && chmod 700 src/lib/run.sh)
"$TY" submit job.yaml --dry-run --archive b.tar.gz >/dev/null 2>&1
ok "the same bytes with other times, modes and inodes" cmp a.tar.gz b.tar.gz
mkdir tree && ok "tar reads it" tar -xzf a.tar.gz -C tree
ok "and finds the same" diff -r src tree
ok "a program may be run" test -x tree/lib/run.sh
same "names are sorted, owners and times 0" "" "$(tar --numeric-owner --full-time -tvzf a.tar.gz 2>/dev/null | grep -vE ' 0/0 .* 1970-01-01 00:00:00 ')"
same "the long name" "$long" "$(tar -tzf a.tar.gz | grep xxx)"
ok "gzip has no time" test "$(od -An -tx1 -j4 -N4 a.tar.gz | tr -d ' ')" = 00000000
ok "one line of JSON" test "$("$TY" submit job.yaml --dry-run --json 2>err | wc -l)" = 1
same "and nothing else" "" "$(cat err)"
ln -s . src/loop
same "a folder that holds itself" 1 "$("$TY" submit job.yaml --dry-run 2>&1 >/dev/null | grep -c 'more than 40 deep')"
rm src/loop && mkfifo src/pipe
same "a pipe" 1 "$("$TY" submit job.yaml --dry-run 2>&1 >/dev/null | grep -c 'neither a file nor a folder')"
rm src/pipe
(unset "${!AWS_@}" && HOME=$W AWS_EC2_METADATA_DISABLED=true "$TY" submit job.yaml >out 2>err)
same "sent by nobody: exit" 77 $?
has "who is missing" err "no credentials were found"
has "and what was done" err "no training job was created"
same "nothing on stdout" "" "$(cat out)"

# ---- requests as job files

begin from_sdk
cd "$ROOT" || exit 1
want=tests/golden/job/sdk/tensorflow.c5.inputs.metrics.tags.json
ok "a job file" "$TY" job from-sdk $want -o "$W/job.yaml"
"$TY" job from-sdk $want >"$W/out" 2>"$W/err"
same "or on stdout" "$(cat "$W/job.yaml")" "$(cat "$W/out")"
same "and nothing else" "" "$(cat "$W/err")"
"$TY" submit "$W/job.yaml" --dry-run --json >"$W/request.json"
ok "the same request" python3 -c 'import json, sys; a, b = map(json.load, map(open, sys.argv[1:])); assert a == b' $want "$W/request.json"
same "no option of another verb" 1 "$("$TY" job from-sdk $want --price=1 2>&1 | grep -c 'takes no --price')"
same "nor one without a file" 1 "$("$TY" job from-sdk 2>&1 | grep -c 'needs a request as JSON')"
same "nor another verb" 1 "$("$TY" job from-SDK $want 2>&1 | grep -c 'has no "from-SDK"')"

# ---- limits

begin limits
if [ -x "${TY_AWS_VENV:-}/bin/python" ]; then
    ok "they are the service's" "$TY_AWS_VENV/bin/python" tests/golden/job/limits estimator_spec/fields.def
else
    skip "limits against the service's description" "TY_AWS_VENV names no virtual environment that has botocore"
fi

# ---- the SDK's requests, made anew

begin sdk
cd "$ROOT" || exit 1
if [ -n "${TY_SDK_PYTHON:-}" ]; then
    ok "its requests are made" "$TY_SDK_PYTHON" tests/golden/job/make "$W/sdk"
    ok "and are those of tests/golden/job/sdk" diff -r "$W/sdk" tests/golden/job/sdk
else
    skip "the SDK's requests made anew" "TY_SDK_PYTHON names no Python that has \`sagemaker<3\`"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
