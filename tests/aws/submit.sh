#!/bin/bash
# submit.sh - a job that is sent to services which do what the test tells them: what is asked and in which order, what is said
# when one of them fails, who waits and how that ends, Ctrl-C, what is fetched. No secret in any output.
cd "$(dirname "$0")/../.." || exit 1
. tests/aws/harness.bash

serve main
export AWS_ENDPOINT_URL=http://127.0.0.1:$PORT
export AWS_ACCESS_KEY_ID=AKIDCANARY AWS_SECRET_ACCESS_KEY=SecretCanary0 AWS_SESSION_TOKEN=TokenCanary0
mkdir -p "$SCRATCH/src"
echo 'print("hello")' >"$SCRATCH/src/train.py"
job() { # FILE LINE...: a job file
    printf '%s\n' "image: 111122223333.dkr.ecr.eu-west-1.amazonaws.com/own:1" "framework: generic" \
        "role: arn:aws:iam::111122223333:role/Train" "resources: {instance_type: ml.c5.xlarge, instance_count: 1}" \
        "source: {folder: src, program: train.py}" "hyperparameters: {epochs: 3}" \
        "inputs: {train: s3://acme-ml/train/}" "${@:2}" >"$SCRATCH/$1"
}
job plain.yaml "base_name: digits"
job named.yaml "name: j"
job own.yaml "name: j" "bucket: acme-own"
bucket=sagemaker-eu-west-1-111122223333
error() { echo "{\"status\": $1, \"body\": {\"__type\": \"$2\", \"message\": \"$3\"}}"; }
sts() { echo "{\"match\": \"Action=GetCallerIdentity\", \"replies\": [{\"body\": \"<R><GetCallerIdentityResult><Arn>a</Arn><Account>$1</Account></GetCallerIdentityResult></R>\"}]}"; }
absent=$(error 400 ValidationException 'Requested resource not found.')
state() { # STATUS SECONDARY [MORE]: what DescribeTrainingJob says
    echo "{\"body\": {\"TrainingJobName\": \"j\", \"TrainingJobArn\": \"arn:j\", \"TrainingJobStatus\": \"$1\", \"SecondaryStatus\": \"$2\",
     \"LastModifiedTime\": 1767607872, \"ResourceConfig\": {\"InstanceCount\": 2}, \"OutputDataConfig\": {\"S3OutputPath\": \"s3://$bucket/\"},
     \"SecondaryStatusTransitions\": [{\"Status\": \"$2\", \"StatusMessage\": \"is $2\"}] ${3:-}}}"
}
# services RULE...: those, and in front of nothing else what goes well. Rules that come first win.
services() {
    rules main "[$(printf '%s,' "$@" | sed 's/^,$//') $(sts 111122223333),
      {\"match\": \"HEAD  /\", \"replies\": [{}]}, {\"match\": \"PUT  /\", \"replies\": [{\"headers\": {\"ETag\": \"\\\"e\\\"\"}}]},
      {\"match\": \"CreateTrainingJob\", \"replies\": [{\"body\": {\"TrainingJobArn\": \"arn:j\"}}]},
      {\"match\": \"DescribeTrainingJob\", \"replies\": [$absent]}]"
}
create() { echo "{\"match\": \"CreateTrainingJob\", \"replies\": [$1]}"; }
describe() { echo "{\"match\": \"DescribeTrainingJob\", \"replies\": [$1]}"; }
# What was asked, a word each: the operation, or method and place in S3.
calls() {
    python3 - "$SCRATCH/main.log" <<'P'
import json, re, sys
for line in open(sys.argv[1]):
    r = json.loads(line)
    target, action = r["headers"].get("x-amz-target"), re.search("Action=(\\w+)", r["body"])
    print(target.split(".")[1] if target else action[1] if action else r["method"] + ":" + re.sub(r"\d{4}-[-\d]{15,}", "TIME", r["path"].split("?")[0].rstrip("/")), end=" ")
P
}
submit() { ty submit "$SCRATCH/$1" "${@:2}"; }
nothing_created() {
    has "$1: says what was done" "$SCRATCH/err" "no training job was created"
    same "$1: nothing on stdout" "" "$(cat "$SCRATCH/out")"
}

case_name=sent
services
submit plain.yaml --archive "$SCRATCH/a.tar.gz"
same "exit" 0 $rc
name=$(cat "$SCRATCH/out")
same "the name on stdout" 1 "$(grep -cE '^digits-[0-9]{4}(-[0-9]{2}){5}-[0-9]{3}$' "$SCRATCH/out")"
same "what is asked" "GetCallerIdentity HEAD:/$bucket PUT:/$bucket/digits-TIME/source/sourcedir.tar.gz CreateTrainingJob " "$(calls)"
has "the job's name" "$SCRATCH/err" "job     $name"
has "its ARN" "$SCRATCH/err" "arn     arn:j"
has "its page" "$SCRATCH/err" "https://eu-west-1.console.aws.amazon.com/sagemaker/home?region=eu-west-1#/jobs/$name"
same "the archive, encrypted, in a bucket of the account" \
    "$(sha256sum <"$SCRATCH/a.tar.gz" | cut -d' ' -f1) aws:kms 111122223333" \
    "$(asked main method x-amz-content-sha256 x-amz-server-side-encryption x-amz-expected-bucket-owner | sed -n 's/^PUT //p')"
asked main body | tail -n 1 >"$SCRATCH/sent"
ok "the request is the dry run's" python3 - "$SCRATCH/sent" "$name" "$BIN/trainyard" "$SCRATCH/plain.yaml" <<'P'
import json, subprocess, sys
sent, dry = open(sys.argv[1]).read(), subprocess.run([sys.argv[3], "submit", sys.argv[4], "--dry-run", "--json"], stdout=subprocess.PIPE, check=True).stdout.decode()
assert json.loads(sent) == json.loads(dry.replace(json.loads(dry)["TrainingJobName"], sys.argv[2])), (sent, dry)
P
services
submit own.yaml --json
same "--json: exit" 0 $rc
same "--json" "j arn:j s3://acme-own/j/source/sourcedir.tar.gz" "$(python3 -c 'import json, sys
d = json.load(open(sys.argv[1])); print(d["TrainingJobName"], d["TrainingJobArn"], d["Source"])' "$SCRATCH/out")"
same "a bucket of one's own: nobody asks whose it is; a name of one's own: whether it is free" \
    "DescribeTrainingJob HEAD:/acme-own PUT:/acme-own/j/source/sourcedir.tar.gz CreateTrainingJob " "$(calls)"
job role.yaml "name: j"
sed -i 's,^role: .*,role: Train,' "$SCRATCH/role.yaml"
services "{\"match\": \"Action=GetRole&Version=2010-05-08&RoleName=Train\", \"replies\": [{\"body\":
    \"<R><GetRoleResult><Role><Arn>arn:aws:iam::111122223333:role/service-role/Train</Arn></Role></GetRoleResult></R>\"}]}"
submit role.yaml
same "a role by its name: exit" 0 $rc
has "its ARN is asked for" "$SCRATCH/main.log" 'RoleArn\":\"arn:aws:iam::111122223333:role/service-role/Train'
has "of IAM, which is in one region" "$SCRATCH/main.log" "/us-east-1/iam/aws4_request"
services "{\"match\": \"Action=GetRole\", \"replies\": [{\"status\": 404, \"body\": \"<R><Error><Code>NoSuchEntity</Code><Message>The role with name Train cannot be found.</Message></Error></R>\"}]}"
submit role.yaml
same "a role that is not there: exit" 66 $rc
has "in words" "$SCRATCH/err" 'role "Train": IAM GetRole: NoSuchEntity'
submit plain.yaml --logs --json
same "two that want stdout: exit" 2 $rc

case_name=bucket
services "{\"match\": \"HEAD  /$bucket\", \"replies\": [{\"status\": 404}]}"
submit named.yaml
same "it is made: exit" 0 $rc
has "it is made" "$SCRATCH/main.log" "<LocationConstraint>eu-west-1</LocationConstraint>"
services "{\"match\": \"HEAD  /$bucket\", \"replies\": [{\"status\": 403}]}" "{\"match\": \"GET  /$bucket\",
    \"replies\": [{\"status\": 403, \"body\": \"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>\"}]}"
submit named.yaml
same "somebody else's: exit" 77 $rc
has "somebody else's" "$SCRATCH/err" "the account's bucket $bucket"
nothing_created "somebody else's"
same "nothing is uploaded" "" "$(calls | grep -oE 'PUT|Create')"
services "$(sts 999988887777)"
submit named.yaml
same "another account: exit" 78 $rc
has "another account" "$SCRATCH/err" "the credentials are of account 999988887777, the job's role and bucket of account 111122223333"
nothing_created "another account"

case_name=upload
services "{\"match\": \"PUT  /acme-own/\", \"replies\": [{\"status\": 503, \"body\": \"<Error><Code>SlowDown</Code><Message>m</Message></Error>\"}]}"
AWS_MAX_ATTEMPTS=2 submit own.yaml
same "throttled: exit" 69 $rc
has "throttled" "$SCRATCH/err" "upload of the source: s3://acme-own/j/source/sourcedir.tar.gz: after 2 attempts"
nothing_created throttled
put() { echo "{\"match\": \"PUT  /acme-own/\", \"replies\": [$1]}"; }
refusal() { echo "{\"status\": $1, \"body\": \"<Error><Code>$2</Code><Message>m</Message></Error>\"}"; }
while IFS='|' read -r status code expected text; do
    services "$(put "$(refusal "$status" "$code")")"
    AWS_MAX_ATTEMPTS=2 submit own.yaml
    same "$code: exit" "$expected" $rc
    has "$code" "$SCRATCH/err" "$text"
    nothing_created "$code"
done <<'ROWS'
404|NoSuchBucket|66|bucket
403|AccessDenied|77|policies
400|ExpiredToken|77|get new credentials
403|RequestTimeTooSkewed|77|look at this machine's clock
500|InternalError|69|after 2 attempts
ROWS
services "$(put "{\"clock_s\": 7200, \"xml\": true, \"headers\": {\"ETag\": \"\\\"e\\\"\"}}")"
submit own.yaml
same "S3's clock is another one: exit" 0 $rc
has "S3's clock is another one" "$SCRATCH/err" "this machine's clock is 7"
services "$(put '{"drop": true}')"
AWS_MAX_ATTEMPTS=2 submit own.yaml
same "no answer: exit" 69 $rc
nothing_created "no answer"
if command -v openssl >/dev/null; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$SCRATCH/key" -out "$SCRATCH/certificate" \
        -days 3650 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null
    cat "$SCRATCH/key" "$SCRATCH/certificate" >"$SCRATCH/both"
    serve tls "$SCRATCH/both"
    services
    AWS_ENDPOINT_URL_S3=https://127.0.0.1:$PORT submit own.yaml
    same "S3 with a certificate of nobody: exit" 69 $rc
    has "in words" "$SCRATCH/err" "is not trusted"
    nothing_created "a certificate of nobody"
else
    skip "certificates" "no openssl command"
fi

case_name=create
uploaded="the source was uploaded and stays at s3://acme-own/j/source/sourcedir.tar.gz"
while IFS='|' read -r status code message expected text; do
    services "$(create "$(error "$status" "$code" "$message")")"
    AWS_MAX_ATTEMPTS=2 submit own.yaml
    same "$code: exit" "$expected" $rc
    has "$code" "$SCRATCH/err" "$text"
    has "$code: what lies where" "$SCRATCH/err" "$uploaded"
    nothing_created "$code"
done <<'ROWS'
400|ResourceLimitExceeded|The account-level service limit 'ml.c5.xlarge for training job usage' is 0 Instances|65|Service Quotas
400|ValidationException|1 validation error detected: Value '' at 'roleArn'|65|1 validation error detected
400|ThrottlingException|Rate exceeded|69|after 2 attempts: SageMaker CreateTrainingJob: ThrottlingException: Rate exceeded
400|AccessDeniedException|User: u is not authorized to perform: iam:PassRole|77|iam:PassRole
400|ExpiredTokenException|The security token included in the request is expired|77|get new credentials
400|ResourceInUse|Training job names must be unique within an AWS account and region|65|leave `name` out
500|InternalFailure||69|after 2 attempts: SageMaker CreateTrainingJob: InternalFailure
ROWS
services "$(create "$(error 400 ThrottlingException x), $(error 500 InternalFailure x), {\"body\": {\"TrainingJobArn\": \"arn:j\"}}")"
submit own.yaml
same "throttled, failed, done" "0 3" "$rc $(calls | grep -o Create | wc -l)"
services "$(create '{"clock_s": -86400, "body": {"TrainingJobArn": "arn:j"}}')"
submit own.yaml
same "the service's clock" "0 2" "$rc $(calls | grep -o Create | wc -l)"
services "$(describe "$(state InProgress Training)")"
submit own.yaml
same "a name in use: exit" 65 $rc
has "a name in use" "$SCRATCH/err" 'there is a training job "j" already (InProgress); nothing was sent'
same "its source is not touched" "DescribeTrainingJob " "$(calls)"

# An attempt that may have got through. What is there is what was asked for, or it is not.
case_name=again
taken=$(error 400 ResourceInUse taken)
"$BIN/trainyard" submit "$SCRATCH/own.yaml" --dry-run --json >"$SCRATCH/request"
there() { # PYTHON: the request as a job that is there, changed
    python3 -c 'import json, sys, time
d = dict(json.load(open(sys.argv[1])), TrainingJobArn="arn:there", TrainingJobStatus="InProgress", CreationTime=time.time(), More=1)
d["InputDataConfig"][0]["CompressionType"] = "None"
exec(sys.argv[2]); print(json.dumps({"body": d}))' "$SCRATCH/request" "$1"
}
for first in '{"drop": true}' "$(error 500 InternalFailure x)" '{"body": {"TrainingJobArn": "arn:j"}, "cut": 9}'; do
    services "$(create "$first, $taken")" "$(describe "$absent, $(there pass)")"
    submit own.yaml
    same "taken by ourselves: exit" 0 $rc
    has "its ARN" "$SCRATCH/err" "arn     arn:there"
done
for change in 'd["RoleArn"] += "x"' 'd["HyperParameters"]["epochs"] = "4"' 'd["CreationTime"] -= 86400' \
    'd["InputDataConfig"].append({})' 'd["ResourceConfig"]["InstanceCount"] = 2'; do
    services "$(create "{\"drop\": true}, $taken")" "$(describe "$absent, $(there "$change")")"
    submit own.yaml
    same "taken by another one ($change): exit" 65 $rc
    has "what lies where" "$SCRATCH/err" "$uploaded"
done
services "$(create '{"drop": true}')"
AWS_MAX_ATTEMPTS=2 submit own.yaml
same "no answer, and no job: exit" 69 $rc
nothing_created "no answer, and no job"
services "$(create '{"drop": true}')" "$(describe "$absent, {\"drop\": true}")"
AWS_MAX_ATTEMPTS=2 submit own.yaml
same "no answer at all: exit" 69 $rc
has "no answer at all" "$SCRATCH/err" "nobody can say whether the training job j was created"
has "what lies where" "$SCRATCH/err" "$uploaded"

case_name=wait
steps='"SecondaryStatusTransitions": [{"Status": "Starting", "StartTime": 1767607800, "StatusMessage": "a"},
    {"Status": "Downloading", "StartTime": 1767607810, "StatusMessage": "b"}, {"Status": "Training", "StatusMessage": "c"}]'
metrics='"FinalMetricDataList": [{"MetricName": "val_accuracy", "Value": 0.9375, "Timestamp": 1}], "TrainingTimeInSeconds": 60, "BillableTimeInSeconds": 45'
while IFS='|' read -r expected status secondary more text; do
    services "$(describe "$absent, $(error 400 AccessDeniedException tags), $(state InProgress Starting), {\"body\": {\"TrainingJobName\": \"j\",
        \"TrainingJobStatus\": \"InProgress\", \"LastModifiedTime\": 1767607872, $steps}}, $(state Stopping Stopping), $(state "$status" "$secondary" "$more, $metrics")")"
    submit own.yaml --wait --every 0.02
    same "$secondary: exit" "$expected" $rc
    has "$secondary: no step is left out" "$SCRATCH/err" "2026-01-05 10:10:10 Downloading - b"
    has "$secondary: no step is left out" "$SCRATCH/err" "2026-01-05 10:11:12 Training - c"
    has "$secondary: Stopping is not the end" "$SCRATCH/err" "Stopping - is Stopping"
    has "$secondary: metrics" "$SCRATCH/err" "metric: val_accuracy = 0.9375"
    has "$secondary: billable" "$SCRATCH/err" "billable: 90 s"
    has "$secondary" "$SCRATCH/err" "$text"
done <<'ROWS'
0|Completed|Completed||j: Completed
3|Stopped|Stopped||j: Stopped
4|Failed|Failed|, "FailureReason": "CapacityError: none"|j: Failed: CapacityError: none
5|Stopped|MaxWaitTimeExceeded||j: Stopped (MaxWaitTimeExceeded)
ROWS
services "$(describe "$absent, $(state Completed Completed ", $metrics")")"
submit own.yaml --wait --json --every 0.02
same "--wait --json" "Completed 45" "$(python3 -c 'import json, sys
d = json.load(open(sys.argv[1])); print(d["TrainingJobStatus"], d["BillableTimeInSeconds"])' "$SCRATCH/out")"
services "$(describe "$absent, $(state InProgress Training), {\"drop\": true}")"
AWS_MAX_ATTEMPTS=2 submit own.yaml --wait --every 0.02
same "lost on the way: exit" 69 $rc
has "the job is not" "$SCRATCH/err" "the training job j goes on"
services "$(describe "$absent, $(state InProgress Training), $(state Completed Completed)")" \
    '{"match": "DescribeLogStreams", "replies": [{"body": {"logStreams": [{"logStreamName": "j/algo-1-7"}, {"logStreamName": "j/algo-2-7"}]}}]}' \
    '{"match": "algo-1-7", "replies": [{"body": {"events": [{"timestamp": 2, "message": "two"}], "nextForwardToken": "f"}}, {"body": {"events": [], "nextForwardToken": "f"}}]}' \
    '{"match": "algo-2-7", "replies": [{"body": {"events": [{"timestamp": 1, "message": "one"}], "nextForwardToken": "g"}}, {"body": {"events": [], "nextForwardToken": "g"}}]}'
submit own.yaml --logs --every 0.02
same "--logs: exit" 0 $rc
same "--logs: lines of all hosts, and nothing else on stdout" "algo-2 | one;algo-1 | two" "$(paste -sd';' "$SCRATCH/out")"

case_name=download
artifact=", \"ModelArtifacts\": {\"S3ModelArtifacts\": \"s3://$bucket/j/output/model.tar.gz\"}"
object() { echo "{\"match\": \"/$bucket/j/output/$1\", \"replies\": [$2]}"; }
missing='{"status": 404, "body": "<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>"}'
body='{"body": "the model", "headers": {"ETag": "\"e\""}}'
services "$(describe "$absent, $(state Completed Completed "$artifact")")" "$(object model.tar.gz "$body")" "$(object output.tar.gz "${body/model/output}")"
submit own.yaml --download "$SCRATCH/got/here" --every 0.02
same "exit" 0 $rc
same "both" "the model, the output" "$(cat "$SCRATCH/got/here/model.tar.gz"), $(cat "$SCRATCH/got/here/output.tar.gz")"
services
submit own.yaml --download "$SCRATCH/got/here"
same "a folder in use: exit" 73 $rc
same "a folder in use: nothing is sent" "" "$(calls)"
services "$(describe "$absent, $(state Completed Completed "$artifact")")" "$(object model.tar.gz "$body")" "$(object output.tar.gz "$missing")"
submit own.yaml --download "$SCRATCH/half" --every 0.02
same "no output: exit" 0 $rc
has "no output" "$SCRATCH/err" "left no output.tar.gz"
services "$(describe "$absent, $(state Completed Completed "$artifact")")" "$(object model.tar.gz "$missing")"
submit own.yaml --download "$SCRATCH/none" --every 0.02
same "no model: exit" 66 $rc
has "what lies where" "$SCRATCH/err" "the training job is over (Completed); its model lies at s3://$bucket/j/output/model.tar.gz"
services "$(describe "$absent, $(state Failed Failed)")"
submit own.yaml --download "$SCRATCH/failed" --every 0.02
same "a job that failed: exit, nothing is fetched" "4 " "$rc $(calls | grep -o GET)"

# ---- Ctrl-C

case_name=signals
services "$(describe "$absent, $(state InProgress Training)")"
mkfifo "$SCRATCH/told"
set -m
"$BIN/trainyard" submit "$SCRATCH/own.yaml" --wait --every 0.05 >/dev/null 2>"$SCRATCH/told" </dev/null &
pid=$!
set +m
exec {told}<"$SCRATCH/told"
while read -r line <&"$told" && [ "${line#*is Training}" = "$line" ]; do :; done
kill -TERM "$pid"
cat <&"$told" >"$SCRATCH/err"
wait "$pid"
same "SIGTERM: exit" 143 $?
has "SIGTERM: the job goes on" "$SCRATCH/err" "the training job j goes on"
has "SIGTERM: how to stop it" "$SCRATCH/err" "trainyard stop j"
same "SIGTERM: nobody stops it" "" "$(calls | grep -o Stop)"
services "$(create "{\"hold\": \"$SCRATCH/never\"}")"
set -m
"$BIN/trainyard" submit "$SCRATCH/own.yaml" >/dev/null 2>"$SCRATCH/err" </dev/null &
pid=$!
set +m
until grep -q CreateTrainingJob "$SCRATCH/main.log"; do sleep 0.05; done
kill -INT "$pid"
wait "$pid"
same "Ctrl-C while it is created: exit" 143 $?
has "nobody knows" "$SCRATCH/err" "nobody can say whether the training job j was created"
touch "$SCRATCH/never"
on_terminal() {
    timeout -k 5 600 python3 tests/aws/terminal.py "$SCRATCH/screen" "${@:2}" -- "$BIN/trainyard" submit "$SCRATCH/own.yaml" --wait --every "$1"
    rc=$?
    cat "$SCRATCH/screen" >>"$SCRATCH/all"
}
services "$(describe "$absent, $(state InProgress Training)")"
on_terminal 0.05 "is Training" "^C" "[y/N]" "^C"
same "Ctrl-C twice: exit" 143 $rc
has "Ctrl-C twice: the job goes on" "$SCRATCH/screen" "the training job j goes on"
same "Ctrl-C twice: nobody stops it" "" "$(calls | grep -o Stop)"
services "$(describe "$absent, $(state InProgress Training)")"
on_terminal 0.05 "is Training" "^C" "[y/N]" "\\n"
same "no is what is meant by nothing: exit" 143 $rc
same "no: nobody stops it" "" "$(calls | grep -o Stop)"
services "{\"match\": \"StopTrainingJob\", \"replies\": [{}]}" \
    "$(describe "$absent, $(state InProgress Training), $(state Stopping Stopping), $(state Stopped Stopped)")"
on_terminal 600 "is Training" "^C" "[y/N]" "y\\n" "is Stopping" "^C"
same "yes, and Ctrl-C again: exit" 143 $rc
has "not asked again" "$SCRATCH/screen" "was told to stop, and is not waited for"
same "stopped once" 1 "$(calls | grep -o Stop | wc -l)"
services "{\"match\": \"StopTrainingJob\", \"replies\": [{}]}" \
    "$(describe "$absent, $(state InProgress Training), $(state Stopping Stopping), $(state Stopped Stopped)")"
timeout -k 5 600 python3 tests/aws/terminal.py "$SCRATCH/screen" "is Training" "^C" "[y/N]" "y\\n" -- \
    "$BIN/trainyard" submit "$SCRATCH/own.yaml" --wait --every 1
same "yes: followed to its end" 3 $?

case_name=secrets
cat >"$SCRATCH/print" <<'F'
#!/bin/sh
tr '\0' ' ' <"/proc/$$/cmdline" >>"$SEEN"
tr '\0' ' ' <"/proc/$PPID/cmdline" >>"$SEEN"
echo '{"Version": 1, "AccessKeyId": "AKIDCANARY", "SecretAccessKey": "SecretCanary1", "SessionToken": "TokenCanary1"}'
F
chmod +x "$SCRATCH/print"
printf '[profile process]\ncredential_process = %s\n' "$SCRATCH/print" >"$SCRATCH/config"
export TY_LOG=debug SEEN=$SCRATCH/seen AWS_CONFIG_FILE=$SCRATCH/config
services "$(create '{"drop": true}, {"echo": true}')"
submit own.yaml --profile process
same "a request quoted back: exit" 77 $rc
has "it is quoted" "$SCRATCH/err" '************'
has "the helper's command line was looked at" "$SEEN" trainyard
services "$(create '{"drop": true}')"
AWS_MAX_ATTEMPTS=2 submit own.yaml --json
cat "$SEEN" >>"$SCRATCH/all"
for canary in SecretCanary TokenCanary; do lacks "in no output" "$SCRATCH/all" "$canary"; done
same "no signature" "" "$(grep -aE 'Signature=[0-9a-f]' "$SCRATCH/all")"
close
