#!/bin/bash
# local.sh - `trainyard local` with channels that lie in S3: fetched once with the user's credentials, shared out as objects are, and
# nothing left of them; a bucket that is not there, and no credentials.
cd "$(dirname "$0")/../.." || exit 1
. tests/aws/harness.bash

serve main
export AWS_ENDPOINT_URL_S3=http://127.0.0.1:$PORT AWS_MAX_ATTEMPTS=1
export AWS_ACCESS_KEY_ID=AKIDCANARY AWS_SECRET_ACCESS_KEY=SecretCanary0
case_name=channels
page() { echo "<ListBucketResult><EncodingType>url</EncodingType>$1</ListBucketResult>"; }
objects() {
    local key
    for key; do echo -n "<Contents><Key>$key</Key><Size>1</Size><ETag>e</ETag><LastModified>2026-01-05T10:11:12.000Z</LastModified></Contents>"; done
}
listing() { rules main "[{\"match\": \"list-type=2\", \"replies\": [$1]}, {\"match\": \"GET\", \"replies\": [{\"headers\": {\"ETag\": \"e\"}, \"body\": \"x\"}]}]"; }
mkdir "$SCRATCH/job"
cat >"$SCRATCH/job/run.sh" <<'SH'
#!/bin/sh
cd "$SM_INPUT_DIR/data" && find -L . -name '*.txt' | sort >"$SM_OUTPUT_DATA_DIR/$SM_CURRENT_HOST"
SH
chmod +x "$SCRATCH/job/run.sh"
cat >"$SCRATCH/job/job.yaml" <<'Y'
region: eu-west-1
source: {program: run.sh}
inputs:
  all: s3://bkt/a/
  parts: {s3: s3://bkt/a/, distribution: ShardedByS3Key}
Y
listing "{\"body\": \"$(page "$(objects a/1.txt a/sub/2.txt a/3.txt)")\"}"
ty local "$SCRATCH/job/job.yaml" --no-docker --nodes 2 --output "$SCRATCH/r"
same "exit" 0 $rc
has "what was fetched" "$SCRATCH/err" 'local: fetched s3://bkt/a/: 3 files'
same "of one host" "./all/1.txt ./all/3.txt ./all/sub/2.txt ./parts/1.txt ./parts/sub/2.txt" "$(xargs <"$SCRATCH/r/output/data/algo-1")"
same "of the other" "./all/1.txt ./all/3.txt ./all/sub/2.txt ./parts/3.txt" "$(xargs <"$SCRATCH/r/output/data/algo-2")"
same "each channel once" 6 "$(asked main method path | grep -c 'GET /bkt/a/')"
same "nothing else stays" "logs output" "$(ls "$SCRATCH/r" | xargs)"
rm -r "$SCRATCH/r"

case_name=refused
rules main '[{"match": "GET", "replies": [{"status": 404, "body": "<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>"}]}]'
ty local "$SCRATCH/job/job.yaml" --no-docker --output "$SCRATCH/r"
same "no such bucket" 66 $rc
has "which" "$SCRATCH/err" "s3://bkt/a/"
ok "nothing stays" test ! -e "$SCRATCH/r"
lacks "no secret" "$SCRATCH/all" SecretCanary0
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
ty local "$SCRATCH/job/job.yaml" --no-docker --output "$SCRATCH/r"
same "no credentials" 77 $rc
ok "nothing stays" test ! -e "$SCRATCH/r"
ty local "$SCRATCH/job/job.yaml" --no-docker --output "$SCRATCH/r" --input all="$SCRATCH/job" --input parts="$SCRATCH/job"
same "folders of this machine need none" 0 $rc
close
