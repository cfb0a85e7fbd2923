#!/bin/bash
# moto_submit.sh - a job sent to moto, which plays SageMaker, S3, IAM, STS and CloudWatch Logs: what boto3 and the aws command
# then read of it is what was sent; status, describe, list, logs and the model read from there.
cd "$(dirname "$0")/../.." || exit 1
. tests/aws/harness.bash
case_name=moto
if ! python || ! "$PYTHON" -c 'import moto, boto3, flask' 2>/dev/null; then
    skip "a job sent to moto" "no moto (TY_AWS_VENV or TY_AWS_INSTALL=1, see tests/aws/harness.bash)"
    close
    exit
fi
export AWS_ACCESS_KEY_ID=AKIDCANARY AWS_SECRET_ACCESS_KEY=SecretCanary0 AWS_REGION=eu-west-1 AWS_DEFAULT_REGION=eu-west-1
ports 1
export AWS_ENDPOINT_URL=http://127.0.0.1:$PORT
: >"$SCRATCH/moto.log"
"$PYTHON" -m moto.server -H 127.0.0.1 -p "$PORT" >"$SCRATCH/moto.log" 2>&1 &
servers+=($!)
until grep -q "Running on" "$SCRATCH/moto.log"; do
    kill -0 "${servers[0]}" 2>/dev/null || break
    sleep 0.1
done
boto() { "$PYTHON" - "$SCRATCH" "$@"; }
ok "what must be there before" boto <<'P'
import boto3, json, time
boto3.client("iam").create_role(RoleName="Train", Path="/service-role/", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": []}))
s3 = boto3.client("s3")
s3.create_bucket(Bucket="acme-ml", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
for name in "model", "output":
    s3.put_object(Bucket="acme-ml", Key="out/j-2/output/%s.tar.gz" % name, Body=name.encode() * 1000)
logs = boto3.client("logs")
logs.create_log_group(logGroupName="/aws/sagemaker/TrainingJobs")
for i in 1, 2:
    stream = dict(logGroupName="/aws/sagemaker/TrainingJobs", logStreamName="j-2/algo-%d-7" % i)
    logs.create_log_stream(**stream)
    logs.put_log_events(logEvents=[{"timestamp": int(time.time() * 1000) + 10 * n + i, "message": "line %d of %d" % (n, i)} for n in range(3)], **stream)
P
mkdir -p "$SCRATCH/src/sub"
echo 'print("h\xe9llo")' >"$SCRATCH/src/train.py"
head -c 300000 /dev/urandom >"$SCRATCH/src/sub/data with blanks + ü.bin"
cat >"$SCRATCH/job.yaml" <<'Y'
name: j-1
image: 123456789012.dkr.ecr.eu-west-1.amazonaws.com/own:1
framework: generic
role: Train
resources: {instance_type: ml.g5.12xlarge, instance_count: 2, volume_gb: 77}
source: {folder: src, program: train.py}
hyperparameters: {epochs: 3, lr: 1.0e-5, text: 'ü "quoted"', layers: [1, 2]}
inputs: {train: {s3: s3://acme-ml/train/, distribution: ShardedByS3Key}, test: s3://acme-ml/test/}
checkpoints: s3://acme-ml/checkpoints/
spot: true
stopping: {max_run_seconds: 3600, max_wait_seconds: 7200}
network: {subnets: [subnet-0a], security_groups: [sg-01], encrypt_traffic: true}
tags: {project: digits, owner: ü}
Y
ty submit "$SCRATCH/job.yaml" --archive "$SCRATCH/a.tar.gz"
same "submit: exit" 0 $rc
same "submit: the name" j-1 "$(cat "$SCRATCH/out")"
[ "$rc" = 0 ] || cat "$SCRATCH/err"
has "its ARN" "$SCRATCH/err" "arn     arn:aws:sagemaker:eu-west-1:123456789012:training-job/j-1"
# The same with the role's ARN, which is what IAM says and what a dry run can know.
sed -i 's,^role: .*,role: arn:aws:iam::123456789012:role/service-role/Train,' "$SCRATCH/job.yaml"
"$BIN/trainyard" submit "$SCRATCH/job.yaml" --dry-run --json >"$SCRATCH/request"
boto >"$SCRATCH/differences" <<'P'
import boto3, json, sys
request = json.load(open(sys.argv[1] + "/request"))
sagemaker = boto3.client("sagemaker")
there = sagemaker.describe_training_job(TrainingJobName="j-1")
there["Tags"] = sagemaker.list_tags(ResourceArn=there["TrainingJobArn"])["Tags"]
compared = 0
for key, sent in request.items():
    if key == "AlgorithmSpecification":  # moto has metrics of its own
        there[key].pop("MetricDefinitions", None)
    if key == "ProfilerConfig":  # moto drops it
        continue
    compared += 1
    if there.get(key) != sent:
        print(key, sent, there.get(key))
print("compared", compared >= 13)
P
same "boto3 reads what was sent, field by field" "compared True" "$(cat "$SCRATCH/differences")"
ok "boto3 reads the source, encrypted" boto <<'P'
import boto3, sys, tarfile
got = boto3.client("s3").get_object(Bucket="sagemaker-eu-west-1-123456789012", Key="j-1/source/sourcedir.tar.gz")
body = got["Body"].read()
assert body == open(sys.argv[1] + "/a.tar.gz", "rb").read()
assert got["ServerSideEncryption"] == "aws:kms", got
open(sys.argv[1] + "/got.tar.gz", "wb").write(body)
assert "sub/data with blanks + ü.bin" in tarfile.open(sys.argv[1] + "/got.tar.gz").getnames()
P
same "the bucket was made where the job is" eu-west-1 "$(boto <<'P'
import boto3
print(boto3.client("s3").get_bucket_location(Bucket="sagemaker-eu-west-1-123456789012")["LocationConstraint"])
P
)"
if "$PYTHON" -c 'import awscli' 2>/dev/null; then
    same "so does the aws command" "j-1 ml.g5.12xlarge 77" "$("$PYTHON" -m awscli sagemaker describe-training-job --training-job-name j-1 \
        --query '[TrainingJobName,ResourceConfig.InstanceType,ResourceConfig.VolumeSizeInGB]' --output text | tr '\t' ' ')"
else
    skip "the aws command" "no awscli"
fi
ty submit "$SCRATCH/job.yaml"
same "the same name again: exit" 65 $rc
has "the same name again" "$SCRATCH/err" "nothing was sent"
sed -i 's/^name: .*/name: j-2/; s,^spot.*,output: s3://acme-ml/out/,; s/^stopping.*//' "$SCRATCH/job.yaml"
ty submit "$SCRATCH/job.yaml" --logs --download "$SCRATCH/got" --every 0.1
same "followed to its end: exit" 0 $rc
same "all lines of both hosts" "algo-1 | line 0 of 1,algo-1 | line 1 of 1,algo-1 | line 2 of 1,algo-2 | line 0 of 2,algo-2 | line 1 of 2,algo-2 | line 2 of 2" \
    "$(sort "$SCRATCH/out" | paste -sd,)"
has "metrics" "$SCRATCH/err" "metric: train:progress = 100"
same "model and output" "5000 6000" "$(wc -c <"$SCRATCH/got/model.tar.gz") $(wc -c <"$SCRATCH/got/output.tar.gz")"
ty status j-2
has "status" "$SCRATCH/out" "j-2: Completed"
ty list
same "list" "j-1 j-2" "$(awk '{print $NF}' "$SCRATCH/out" | sort | xargs)"
ty describe j-1
has "describe" "$SCRATCH/out" "VolumeSizeInGB: 77"
ty logs j-2
same "logs" 6 "$(wc -l <"$SCRATCH/out")"
ty status j-3
same "a job that is not there: exit" 66 $rc
lacks "no secret in any output" "$SCRATCH/all" SecretCanary
close
