#!/bin/bash
# services.sh - the commands for managed jobs against a server that misbehaves on purpose: throttling, faults, half answers,
# wrong clocks and certificates, expired tokens; pages of jobs and logs; how a followed job ends. No secret in any output.
cd "$(dirname "$0")/../.." || exit 1
. tests/aws/harness.bash

serve main
export AWS_ENDPOINT_URL=http://127.0.0.1:$PORT AWS_REGION=eu-west-1
export AWS_ACCESS_KEY_ID=AKIDCANARY AWS_SECRET_ACCESS_KEY=SecretCanary0 AWS_SESSION_TOKEN=TokenCanary0
job='{"TrainingJobName": "j", "TrainingJobArn": "arn:j", "TrainingJobStatus": "Completed", "SecondaryStatus": "Completed",
      "CreationTime": 1767607872.3, "ResourceConfig": {"InstanceCount": 1}}'
describe() { rules main "[{\"match\": \"DescribeTrainingJob\", \"replies\": [$1]}]"; }
good="{\"body\": $job}"
error() { echo "{\"status\": $1, \"body\": {\"__type\": \"$2\", \"message\": \"$3\"}}"; }

case_name=request
describe "$good"
ty status j
same "status: exit" 0 $rc
has "status: name and state" "$SCRATCH/out" "j: Completed"
has "status: times" "$SCRATCH/out" "2026-01-05 10:11:12"
same "what was asked" "POST / SageMaker.DescribeTrainingJob application/x-amz-json-1.1 {\"TrainingJobName\":\"j\"}" \
    "$(asked main method path x-amz-target content-type body)"
asked main authorization >"$SCRATCH/authorization"
has "signed" "$SCRATCH/authorization" "/eu-west-1/sagemaker/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target,"
same "the token is sent" TokenCanary0 "$(asked main x-amz-security-token)"
ty status j --json
has "--json" "$SCRATCH/out" '"TrainingJobStatus": "Completed"'
ty describe j
has "describe: nested values" "$SCRATCH/out" "  InstanceCount: 1"
has "describe: times are read" "$SCRATCH/out" "CreationTime: 2026-01-05 10:11:12"
ty describe j --json
has "describe --json: as it came" "$SCRATCH/out" '"CreationTime": 1767607872.3'

case_name=again
for code in ThrottlingException RequestLimitExceeded TooManyRequestsException; do
    describe "$(error 400 $code slower), $(error 400 $code slower), $good"
    ty status j
    same "$code: two refusals are waited out" "0 3" "$rc $(wc -l <"$SCRATCH/main.log")"
done
for status in 500 502 503 504 429; do
    describe "{\"status\": $status, \"body\": \"<html>\"}, $good"
    ty status j
    same "HTTP $status: again" "0 2" "$rc $(wc -l <"$SCRATCH/main.log")"
done
describe '{"drop": true}, {"body": {"TrainingJobName": "j", "TrainingJobStatus": "Completed"}, "cut": 20}, '"$good"
ty status j
same "no answer, half an answer, an answer" "0 3" "$rc $(wc -l <"$SCRATCH/main.log")"
describe "$(error 400 ThrottlingException slower)"
AWS_MAX_ATTEMPTS=2 ty status j
same "throttled for ever: exit, attempts" "69 2" "$rc $(wc -l <"$SCRATCH/main.log")"
has "says how often" "$SCRATCH/err" "after 2 attempts: SageMaker DescribeTrainingJob: ThrottlingException: slower"
has "names the request" "$SCRATCH/err" "request-0815"
describe '{"body": {"TrainingJobName": "j"}, "cut": 5}'
ty status j
same "half an answer for ever: exit" 69 $rc
has "says so" "$SCRATCH/err" "broke off"
describe '{"body": "{\"TrainingJobName\": \"j\"", "headers": {"x": "y"}}'
ty status j
same "half of the JSON: exit" 69 $rc
has "says so" "$SCRATCH/err" "the answer is no JSON"

case_name=final
while IFS='|' read -r status code message expected text; do
    describe "$(error "$status" "$code" "$message")"
    ty status j
    same "$code: exit, no second attempt" "$expected 1" "$rc $(wc -l <"$SCRATCH/main.log")"
    has "$code" "$SCRATCH/err" "$text"
done <<'ROWS'
400|AccessDeniedException|User x is not authorized to perform: sagemaker:DescribeTrainingJob|77|policies
400|ValidationException|Requested resource not found.|66|there is no training job "j" in eu-west-1
400|ValidationException|1 validation error detected|65|ValidationException: 1 validation error detected
400|UnrecognizedClientException|The security token included in the request is invalid.|77|partition
400|ExpiredTokenException|The security token included in the request is expired|77|get new credentials
501|Whatever|no|69|Whatever
ROWS
describe '{"echo": true}'
ty status j
same "a request quoted back: exit" 77 $rc
has "quoted without the token" "$SCRATCH/err" '************'

case_name=clock
for seconds in 86400 -7200; do
    describe "{\"clock_s\": $seconds, \"body\": $job}"
    ty status j
    same "the server's clock is $seconds s off: corrected once" "0 2" "$rc $(wc -l <"$SCRATCH/main.log")"
    has "and said" "$SCRATCH/err" "clock is"
done
describe "$(error 403 InvalidSignatureException 'wrong')"
ty status j
same "a wrong signature at the right time: once" "77 1" "$rc $(wc -l <"$SCRATCH/main.log")"

case_name=network
main=$AWS_ENDPOINT_URL
ports 1
AWS_ENDPOINT_URL=http://127.0.0.1:$PORT AWS_MAX_ATTEMPTS=1 ty status j
same "nobody listens: exit" 69 $rc
has "nobody listens" "$SCRATCH/err" "cannot be reached"
AWS_ENDPOINT_URL=http://example.com ty status j
same "tokens over plain http: exit" 78 $rc
describe "$good"
# A proxy gets whole addresses, and gets them for hosts that do not exist.
http_proxy=$main TRAINYARD_PLAIN_HTTP=true AWS_ENDPOINT_URL=http://sagemaker.invalid ty status j
same "a proxy" "0 http://sagemaker.invalid/" "$rc $(asked main path)"
http_proxy=$main no_proxy=127.0.0.1 ty status j
same "no proxy" "/" "$(asked main path | tail -n 1)"
ty status j --region 'x/../y'
same "a region that is none: exit" 78 $rc
if command -v openssl >/dev/null; then
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$SCRATCH/key" -out "$SCRATCH/certificate" -days 3650 \
        -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null
    cat "$SCRATCH/key" "$SCRATCH/certificate" >"$SCRATCH/both"
    rules tls "[{\"match\": \"Describe\", \"replies\": [$good]}]"
    serve tls "$SCRATCH/both"
    export AWS_ENDPOINT_URL=https://127.0.0.1:$PORT
    ty status j
    same "a certificate of nobody: exit, not asked again" "69 0" "$rc $(wc -l <"$SCRATCH/tls.log")"
    has "in words" "$SCRATCH/err" "is not trusted"
    has "with the way out" "$SCRATCH/err" "AWS_CA_BUNDLE"
    AWS_CA_BUNDLE=$SCRATCH/certificate ty status j
    same "AWS_CA_BUNDLE" 0 $rc
    AWS_ENDPOINT_URL=https://localhost:$PORT AWS_CA_BUNDLE=$SCRATCH/certificate ty status j
    same "a certificate for another name: exit" 69 $rc
    AWS_ENDPOINT_URL=https${main#http} ty status j
    same "TLS asked of a server without: exit" 69 $rc
    export AWS_ENDPOINT_URL=$main
else
    skip "certificates" "no openssl command"
fi

case_name=list
page() { # NEXT NAME...: a reply
    local next=$1 jobs=
    shift
    for name; do jobs+=",{\"TrainingJobName\": \"$name\", \"TrainingJobStatus\": \"Failed\", \"CreationTime\": 1}"; done
    echo "{\"body\": {\"TrainingJobSummaries\": [${jobs#,}]${next:+, \"NextToken\": \"$next\"}}}"
}
rules main "[{\"match\": \"\\\"NextToken\\\":\\\"t2\\\"\", \"replies\": [$(page "" e)]},
             {\"match\": \"\\\"NextToken\\\":\\\"t1\\\"\", \"replies\": [$(page t2)]},
             {\"match\": \"ListTrainingJobs\", \"replies\": [$(page t1 a b)]}]"
ty list
same "all pages, an empty one among them" "a b e" "$(awk '{print $NF}' "$SCRATCH/out" | xargs)"
ty list --max 1 --contains x --status Failed
same "no more than asked for" a "$(awk '{print $NF}' "$SCRATCH/out" | xargs)"
same "what is asked" \
    '{"MaxResults":1,"SortBy":"CreationTime","SortOrder":"Descending","NameContains":"x","StatusEquals":"Failed"}' \
    "$(asked main body | tail -n 1)"
ty list --status failed
same "a status that is none: exit" 2 $rc

case_name=logs
event() { echo "{\"timestamp\": $1, \"message\": \"$2\", \"ingestionTime\": 1}"; }
streams() { local next=$1 name list=; shift; for name; do list+=",{\"logStreamName\": \"$name\"}"; done
    echo "{\"body\": {\"logStreams\": [${list#,}]${next:+, \"nextToken\": \"$next\"}}}"; }
events() { local next=$1 list=; shift; for e; do list+=",$e"; done
    echo "{\"body\": {\"events\": [${list#,}], \"nextForwardToken\": \"$next\"}}"; }
log_rules="
  {\"match\": \"\\\"nextToken\\\":\\\"s1\\\"\", \"replies\": [$(streams "" j/algo-2-7)]},
  {\"match\": \"DescribeLogStreams\", \"replies\": [$(streams s1 j/algo-1-7)]},
  {\"match\": \"algo-1-7\\\",\\\"startFromHead\\\":true,\\\"nextToken\\\":\\\"f2\", \"replies\": [$(events f2)]},
  {\"match\": \"algo-1-7\\\",\\\"startFromHead\\\":true,\\\"nextToken\\\":\\\"f1\", \"replies\":
      [$(events f2 "$(event 30 third)" "$(event 50 'fifth \u0000 \ud800 \u001b[31m')")]},
  {\"match\": \"algo-1-7\", \"replies\": [$(events f1)]},
  {\"match\": \"algo-2-7\\\",\\\"startFromHead\\\":true,\\\"nextToken\", \"replies\": [$(events g1)]},
  {\"match\": \"algo-2-7\", \"replies\": [$(events g1 "$(event 20 second)" "$(event 40 fourth)")]}"
rules main "[$log_rules, {\"match\": \"DescribeTrainingJob\", \"replies\": [$good]}]"
ty logs j
same "exit" 0 $rc
same "pages of streams and events, an empty page first, merged by time" \
    "algo-2 | second;algo-1 | third;algo-2 | fourth;algo-1 | fifth ␀ � \\x1b[31m" "$(paste -sd';' "$SCRATCH/out")"
same "of this job alone" '"logStreamNamePrefix":"j/"' "$(asked main body | grep -o '"logStreamNamePrefix":"[^"]*"' | sort -u)"
rules main "[{\"match\": \"DescribeLogStreams\", \"replies\": [$(error 400 ResourceNotFoundException 'no group')]},
             {\"match\": \"DescribeTrainingJob\", \"replies\": [$(error 400 ValidationException 'Requested resource not found.')]}]"
ty logs j
same "no such job: exit" 66 $rc

case_name=follow
state() { # STATUS SECONDARY [MORE]
    echo "{\"body\": {\"TrainingJobName\": \"j\", \"TrainingJobStatus\": \"$1\", \"SecondaryStatus\": \"$2\", \"LastModifiedTime\": 1767607872,
     \"ResourceConfig\": {\"InstanceCount\": 2}, \"TrainingTimeInSeconds\": 60, \"BillableTimeInSeconds\": 15, \"EnableManagedSpotTraining\": true,
     \"SecondaryStatusTransitions\": [{\"Status\": \"$2\", \"StatusMessage\": \"is $2\"}] ${3:-}}}"
}
while IFS='|' read -r expected status secondary more text; do
    rules main "[$log_rules, {\"match\": \"DescribeTrainingJob\", \"replies\": [$(state InProgress Training),
        $(state Stopping Stopping), $(state "$status" "$secondary" "$more")]}]"
    ty logs j --follow --every 0.02
    same "$secondary: exit" "$expected" $rc
    has "$secondary: steps are told" "$SCRATCH/err" "2026-01-05 10:11:12 Training - is Training"
    has "$secondary: Stopping is not the end" "$SCRATCH/err" "Stopping - is Stopping"
    has "$secondary" "$SCRATCH/err" "$text"
    same "$secondary: every line once" 4 "$(wc -l <"$SCRATCH/out")"
done <<'ROWS'
0|Completed|Completed||training: 120 s on 2 hosts
3|Stopped|Stopped||j: Stopped
4|Failed|Failed|, "FailureReason": "AlgorithmError: x\nexit 65"|j: Failed: AlgorithmError: x\x0aexit 65
5|Stopped|MaxRuntimeExceeded||j: Stopped (MaxRuntimeExceeded)
0|Completed|Completed||spot: 75.0 % saved
ROWS
rules main "[{\"match\": \"StopTrainingJob\", \"replies\": [{}]},
             {\"match\": \"Describe\", \"replies\": [$(state Stopping Stopping), $(state Stopped Stopped)]}]"
ty stop j --wait --every 0.02
same "stop --wait: exit" 0 $rc
same "asked to stop once" 1 "$(asked main x-amz-target | grep -c StopTrainingJob)"
# Ctrl-C leaves the job alone where nobody can be asked.
rules main "[{\"match\": \"Describe\", \"replies\": [$(state InProgress Training)]}]"
mkfifo "$SCRATCH/told"
# Job control, or the shell would have it ignore the signal.
set -m
"$BIN/trainyard" status j --wait --every 0.05 >/dev/null 2>"$SCRATCH/told" </dev/null &
pid=$!
set +m
exec {told}<"$SCRATCH/told"
read -r line <&"$told"
kill -INT "$pid"
cat <&"$told" >"$SCRATCH/err"
wait "$pid"
same "Ctrl-C: exit" 143 $?
has "Ctrl-C: what happens to the job" "$SCRATCH/err" "the training job j goes on"

case_name=secrets
cat "$SCRATCH/err" >>"$SCRATCH/all"
TY_LOG=debug ty status j
for canary in SecretCanary0 TokenCanary0; do lacks "in no output" "$SCRATCH/all" "$canary"; done
same "no signature" "" "$(grep -aE 'Signature=[0-9a-f]' "$SCRATCH/all")"
close
