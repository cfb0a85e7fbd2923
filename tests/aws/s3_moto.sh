#!/bin/bash
# s3_moto.sh - objects, against moto's server, judged by boto3: odd keys, thousands of keys, an upload in parts that is stopped
# in the middle and goes on. TY_S3_MB: how large it is (`make large-upload`: 1024).
cd "$(dirname "$0")/../.." || exit 1
. tests/aws/harness.bash
MB=${TY_S3_MB:-40}
case_name=moto
if ! python || ! "$PYTHON" -c 'import moto.server, boto3' 2>/dev/null; then
    skip "objects in moto, read by boto3" "no moto and boto3 (TY_AWS_VENV or TY_AWS_INSTALL=1, see tests/aws/harness.bash)"
    close
    exit
fi
ports 1
"$PYTHON" -u -m moto.server -H 127.0.0.1 -p "$PORT" >"$SCRATCH/moto.log" 2>&1 &
servers+=($!)
(tail -n +1 -f --pid=$! "$SCRATCH/moto.log" & echo $! >"$SCRATCH/tail"; wait) 2>/dev/null | grep -q -m1 'Running on\|rror'
kill "$(cat "$SCRATCH/tail")" 2>/dev/null
has "moto starts" "$SCRATCH/moto.log" "Running on"
export AWS_ENDPOINT_URL_S3=http://127.0.0.1:$PORT AWS_REGION=eu-west-1 AWS_DEFAULT_REGION=eu-west-1
export AWS_ACCESS_KEY_ID=AKIDCANARY AWS_SECRET_ACCESS_KEY=SecretCanary0 TY_S3_NOTES=$SCRATCH/notes
s3() {
    timeout -k 5 900 "$BUILD/tools/s3" "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null
    rc=$?
    cat "$SCRATCH/err" >>"$SCRATCH/all"
}
ok "boto3 prepares" "$PYTHON" tests/aws/s3_moto.py prepare "$SCRATCH"

s3 list s3://bkt/many/
same "2,500 keys, in order" "0 2500 0" "$rc $(wc -l <"$SCRATCH/out") $(cut -d' ' -f4 "$SCRATCH/out" | LC_ALL=C sort -c 2>&1 | wc -l)"
same "in three pages" 3 "$(grep -c 'GET /bkt/?list-type=2.*many' "$SCRATCH/moto.log")"
s3 get-folder s3://bkt/tree "$SCRATCH/tree"
same "a prefix becomes a folder" "4 files, 34 bytes" "$(cat "$SCRATCH/out")"
same "its files" $'a/+\na/x y\nb/é\nc' "$(cd "$SCRATCH/tree" && find . -type f -printf '%P\n' | LC_ALL=C sort)"
same "their content" "tree/b//é" "$(cat "$SCRATCH/tree/b/é")"
s3 put-folder "$SCRATCH/tree" s3://bkt/back
s3 get-folder s3://bkt/back/ "$SCRATCH/back"
ok "a folder becomes a prefix, and comes back" diff -r "$SCRATCH/tree" "$SCRATCH/back"
s3 get-folder s3://bkt/odd/ "$SCRATCH/odd"
same "keys that lead out of a folder" "65 0" "$rc $(ls "$SCRATCH/odd" 2>/dev/null | wc -l)"

# Each odd key: fetched, compared with itself, sent again under another one.
"$PYTHON" -c 'import json, sys; [sys.stdout.write(k + "\0") for k in json.load(open(sys.argv[1]))]' "$SCRATCH/keys" >"$SCRATCH/keys0"
while IFS= read -r -d '' key; do
    printf %s "$key" >"$SCRATCH/expected"
    s3 get "s3://bkt/odd/$key" "$SCRATCH/got"
    ok "key \"$key\"" cmp "$SCRATCH/expected" "$SCRATCH/got"
    s3 put "$SCRATCH/got" "s3://bkt/sent/$key"
    same "sent under \"$key\"" "0 " "$rc $(cat "$SCRATCH/err")"
done <"$SCRATCH/keys0"

openssl enc -aes-128-ctr -K 00 -iv 00 -in /dev/zero 2>/dev/null | head -c $((MB << 20)) >"$SCRATCH/big"
n_parts=$(((MB + 7) / 8))
sent() { grep -c 'PUT /bkt/big?partNumber' "$SCRATCH/moto.log"; }
TY_S3_STOP=$(((MB << 20) / 2)) s3 put "$SCRATCH/big" s3://bkt/big
same "stopped in the middle: exit" 143 $rc
has "says how much is there" "$SCRATCH/err" "$(((n_parts + 1) / 2)) of $n_parts parts got through"
s3 put "$SCRATCH/big" s3://bkt/big
same "goes on: exit, each part was sent once" "0 $n_parts" "$rc $(sent)"
s3 get s3://bkt/big "$SCRATCH/back.big"
ok "and comes back" cmp "$SCRATCH/big" "$SCRATCH/back.big"
rm -f "$SCRATCH/back.big"
if [ "$MB" -le 100 ]; then
    TY_S3_STOP=8388608 s3 put "$SCRATCH/big" s3://bkt/left
    s3 abort s3://bkt/left
    same "an interrupted upload is removed when asked" 0 $rc
fi
printf x >"$SCRATCH/small"
TY_S3_KMS=key-1 s3 put "$SCRATCH/small" s3://bkt/secret
s3 make made-here
same "a bucket is made" 0 $rc
s3 make made-here
same "once" 0 $rc
s3 head s3://bkt/nothing
same "no such key: exit" 66 $rc
s3 get s3://no-such-bucket/k "$SCRATCH/got"
has "no such bucket" "$SCRATCH/err" "NoSuchBucket"
s3 remove s3://bkt/many/0000
s3 list s3://bkt/many/000
same "removed" 9 "$(wc -l <"$SCRATCH/out")"
ok "boto3 reads the same" "$PYTHON" tests/aws/s3_moto.py check "$SCRATCH"
if [ -x "${PYTHON%/*}/aws" ]; then
    same "awscli reads the same" "$(sha256sum <"$SCRATCH/big")" "$("${PYTHON%/*}/aws" s3 cp s3://bkt/big - | sha256sum)"
else
    skip "awscli reads the same" "no aws beside $PYTHON"
fi
lacks "no secret in any output" "$SCRATCH/all" Canary0
close
