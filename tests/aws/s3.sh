#!/bin/bash
# s3.sh - objects, against a server that misbehaves on purpose: connections that break, half bodies, throttling, faults, other
# regions, objects that change, checksums that do not fit, answers that are none. tests/aws/s3_moto.sh is the friendly half.
cd "$(dirname "$0")/../.." || exit 1
. tests/aws/harness.bash

serve main
export AWS_ENDPOINT_URL_S3=http://127.0.0.1:$PORT AWS_REGION=eu-west-1
export AWS_ACCESS_KEY_ID=AKIDCANARY AWS_SECRET_ACCESS_KEY=SecretCanary0 AWS_SESSION_TOKEN=TokenCanary0
s3() {
    timeout -k 5 600 "$BUILD/tools/s3" "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null
    rc=$?
    cat "$SCRATCH/out" "$SCRATCH/err" >>"$SCRATCH/all"
}
# calls FIELD...: of the requests so far; how_many TEXT: those whose method and path have it.
calls() { asked main "$@"; }
how_many() { asked main method path | grep -c -- "$1"; }
ERROR() { echo "{\"status\": $1, \"body\": \"<Error><Code>$2</Code><Message>${3:-said so}</Message><RequestId>r-1</RequestId></Error>\"}"; }

# The object: 300,000 letters, so that a cut is somewhere in the middle; in pieces for rules.
python3 - "$SCRATCH" <<'P'
import base64, hashlib, json, sys, zlib
folder = sys.argv[1]
text = "".join(chr(97 + (i * i + i // 7) % 26) for i in range(300000))
open(folder + "/object", "w").write(text)
crc = lambda data: base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()
whole = {"ETag": '"e"', "Last-Modified": "Mon, 05 Jan 2026 10:11:12 GMT", "x-amz-checksum-crc32": crc(text.encode())}
def rest(at, etag='"e"', first=None):
    first = at if first is None else first
    return {"status": 206, "headers": {"ETag": etag, "Content-Range": f"bytes {first}-299999/300000"}, "body": text[at:]}
all_of_it = {"headers": whole, "body": text}
cut = {**all_of_it, "cut": 100000}
def write(name, *replies):
    json.dump([{"match": "GET ", "replies": replies}], open(f"{folder}/{name}.json", "w"))
write("whole", all_of_it)
write("resumed", cut, {**rest(100000), "cut": 50000}, {"status": 503, "body": ""}, rest(150000))
write("deaf", cut, all_of_it)
write("replaced", cut, {"status": 412, "body": "<Error><Code>PreconditionFailed</Code></Error>"}, all_of_it)
write("other", cut, rest(100000, '"f"'), all_of_it)
write("elsewhere", cut, rest(100000, first=5))
write("damaged", {"headers": {**whole, "x-amz-checksum-crc32": "AAAAAA=="}, "body": text})
write("damaged_once", {"headers": {**whole, "x-amz-checksum-crc32": "AAAAAA=="}, "body": text}, all_of_it)
write("parts", {"headers": {**whole, "x-amz-checksum-crc32": "AAAAAA==-3"}, "body": text})
write("composite", {"headers": {**whole, "x-amz-checksum-crc32": "AAAAAA==", "x-amz-checksum-type": "COMPOSITE"}, "body": text})
write("sha256", {"headers": {"ETag": '"e"', "x-amz-checksum-sha256": base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}, "body": text})
write("empty", {"headers": {"ETag": '"e"', "x-amz-checksum-sha256": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}, "body": ""})
write("short", *[{**all_of_it, "cut": 1000}] + [{**rest(at), "cut": 1000} for at in range(1000, 9000, 1000)])
write("again", {"drop": True}, {"status": 503, "body": "<Error><Code>SlowDown</Code></Error>"}, all_of_it)
write("nameless", {"headers": {"x": "y"}, "body": text})
big = bytes((i * 7 + i // 1000) % 251 for i in range(1 << 16)) * 272  # 17 MiB: parts of 8, 8 and 1
open(folder + "/big", "wb").write(big)
open(folder + "/crc", "w").write(crc(big))
P
get() { # RULES: fetches the object anew
    cp "$SCRATCH/$1.json" "$SCRATCH/main.rules.new" && mv "$SCRATCH/main.rules.new" "$SCRATCH/main.rules"
    : >"$SCRATCH/main.log"
    echo old >"$SCRATCH/into/got"
    s3 get s3://bkt/k "$SCRATCH/into/got"
}
mkdir "$SCRATCH/into"
came() { # WHAT REQUESTS
    same "$1: exit, requests" "0 $2" "$rc $(how_many GET)"
    ok "$1: the same bytes" cmp "$SCRATCH/object" "$SCRATCH/into/got"
}
failed() { # WHAT EXIT TEXT
    same "$1: exit" "$2" $rc
    has "$1" "$SCRATCH/err" "$3"
    same "$1: the old file, and no other" "got old" "$(ls -A "$SCRATCH/into") $(head -c 99 "$SCRATCH/into/got")"
}

case_name=get
get whole
came "at once" 1
same "in the path, by S3's rules" "/bkt/k ENABLED e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" \
    "$(calls path x-amz-checksum-mode x-amz-content-sha256)"
get resumed
came "broken twice, and a fault" 4
same "from where it broke, the same object alone" $' \nbytes=100000- "e"\nbytes=150000- "e"\nbytes=150000- "e"' "$(calls range if-match)"
get deaf
came "a server without ranges" 2
get replaced
came "replaced meanwhile: from the start" 3
get other
came "another object's bytes: from the start" 3
get sha256
came "SHA-256" 1
get parts
came "a checksum of parts" 1
get composite
came "a checksum of parts, by its type" 1
get damaged_once
came "damaged once" 2
get again
came "no answer, SlowDown, an answer" 3
get empty
same "empty" "0 0" "$rc $(stat -c %s "$SCRATCH/into/got")"
get damaged
failed "damaged" 69 "has the CRC-32"
get elsewhere
failed "other bytes" 69 "about other bytes than were asked for"
get nameless
failed "no ETag" 69 "has no ETag"
AWS_MAX_ATTEMPTS=4 get short
failed "a thousand bytes a time" 69 "broke off"
same "as often as attempts" 4 "$(how_many GET)"
AWS_RESPONSE_CHECKSUM_VALIDATION=when_required get whole
same "checksums not asked for" "" "$(calls x-amz-checksum-mode)"
mkdir "$SCRATCH/no"
s3 get s3://bkt/k "$SCRATCH/no/such/file"
same "no folder for it: exit" 66 $rc
cp "$SCRATCH/resumed.json" "$SCRATCH/main.rules"
s3 cat s3://bkt/k
ok "into a pipe" cmp "$SCRATCH/object" "$SCRATCH/out"
cp "$SCRATCH/replaced.json" "$SCRATCH/main.rules"
s3 cat s3://bkt/k
same "into a pipe, replaced: exit" 65 $rc

case_name=errors
while IFS='|' read -r status code expected text; do
    rules main "[{\"match\": \"\", \"replies\": [$(ERROR "$status" "$code")]}]"
    s3 get s3://bkt/k "$SCRATCH/into/got"
    same "$code: exit, no second attempt" "$expected 1" "$rc $(how_many .)"
    has "$code: what, where, which request" "$SCRATCH/err" "s3://bkt/k: S3 GetObject: $code: said so (HTTP $status, request"
    has "$code" "$SCRATCH/err" "$text"
done <<'ROWS'
404|NoSuchBucket|66|names are unique in the world
404|NoSuchKey|66|NoSuchKey
403|AccessDenied|77|policies
403|InvalidAccessKeyId|77|AWS_SESSION_TOKEN
400|ExpiredToken|77|get new credentials
403|InvalidObjectState|65|archived
301|PermanentRedirect|78|--region
400|AuthorizationHeaderMalformed|78|--region
ROWS
for code in SlowDown InternalError ServiceUnavailable; do
    rules main "[{\"match\": \"\", \"replies\": [$(ERROR 503 $code)]}]"
    AWS_MAX_ATTEMPTS=2 s3 get s3://bkt/k "$SCRATCH/into/got"
    same "$code for ever: exit, attempts" "69 2" "$rc $(how_many .)"
done
rules main '[{"match": "", "replies": [{"clock_s": 7200, "xml": true, "headers": {"ETag": "e"}, "body": "x"}]}]'
s3 get s3://bkt/k "$SCRATCH/into/got"
same "a clock two hours off is corrected" "0 2" "$rc $(how_many .)"
rules main '[{"match": "", "replies": [{"clock_s": 7200, "xml": true, "headers": {"ETag": "e"}, "body": "x"}]}]'
s3 head s3://bkt/k
same "and by HEAD, which has no words" "0 HEAD GET GET HEAD" "$rc $(calls method | xargs)"
s3 make bkt
same "for a bucket too" "0 GET" "$rc $(calls method | tail -n 1)"
rules main '[{"match": "", "replies": [{"token": "TokenCanary0", "xml": true}]}]'
s3 get s3://bkt/k "$SCRATCH/into/got"
same "an expired token: exit" 77 $rc
rules main '[{"match": "", "replies": [{"echo": true}]}]'
s3 get s3://bkt/k "$SCRATCH/into/got"
same "a request quoted back: exit" 77 $rc
rules main "[{\"match\": \"HEAD\", \"replies\": [{\"status\": 404}]}, {\"match\": \"GET\", \"replies\": [$(ERROR 404 NoSuchBucket)]}]"
s3 head s3://bkt/k
has "what HEAD cannot say" "$SCRATCH/err" "S3 HeadObject: NoSuchBucket: said so"
rules main "[{\"match\": \"HEAD\", \"replies\": [{\"status\": 403}]}, {\"match\": \"GET\", \"replies\": [$(ERROR 403 AccessDenied)]}]"
s3 make bkt
same "somebody else's bucket: exit" 77 $rc
has "somebody else's bucket" "$SCRATCH/err" "may belong to another account"
rules main "[{\"match\": \"HEAD\", \"replies\": [{\"status\": 404}]}, {\"match\": \"PUT\", \"replies\": [$(ERROR 409 OperationAborted), $(ERROR 409 BucketAlreadyOwnedByYou)]}]"
s3 make bkt
same "a bucket that is made by somebody of ours meanwhile: exit, attempts" "0 2" "$rc $(how_many PUT)"
has "where it is made" "$SCRATCH/main.log" "<LocationConstraint>eu-west-1</LocationConstraint>"
s3 get s3://bkt "$SCRATCH/into/got"
same "no key: exit" 78 $rc
s3 remove s3://bkt/
same "removing no key: exit" 78 $rc
lacks "no bucket was removed" "$SCRATCH/main.log" DELETE

case_name=regions
moved='{"status": 301, "headers": {"x-amz-bucket-region": "eu-north-1"}, "body": ""}'
there='{"headers": {"ETag": "\"e\"", "Last-Modified": "Mon, 05 Jan 2026 10:11:12 GMT"}, "body": "x"}'
where() { calls authorization | sed -E 's,.*/([a-z0-9-]*)/s3/.*,\1,' | xargs; }
rules main "[{\"match\": \"\", \"replies\": [$moved, $there]}]"
s3 head s3://bkt/k
same "told by a header: there" "0 eu-west-1 eu-north-1" "$rc $(where)"
same "what HEAD says" '1 "e" 1767607872000 k' "$(cat "$SCRATCH/out")"
rules main "[{\"match\": \"\", \"replies\": [{\"status\": 400, \"body\": \"<Error><Code>AuthorizationHeaderMalformed</Code><Region>ap-south-1</Region></Error>\"}, $there]}]"
s3 get s3://bkt/k "$SCRATCH/into/got"
same "told by an error: there" "0 eu-west-1 ap-south-1" "$rc $(where)"
rules main "[{\"match\": \"HEAD\", \"replies\": [$moved, {\"body\": \"\"}]}, {\"match\": \"PUT\", \"replies\": [$there]}]"
s3 put "$SCRATCH/object" s3://bkt/k
same "asked before anything is sent" "0 eu-west-1 eu-north-1 eu-north-1" "$rc $(where)"
rules main '[{"match": "", "replies": [{"status": 307, "headers": {"x-amz-bucket-region": "a-1"}}, {"status": 307, "headers": {"x-amz-bucket-region": "a-2"}}]}]'
s3 get s3://bkt/k "$SCRATCH/into/got"
same "from region to region: at most thrice" "65 3" "$rc $(how_many .)"
rules main '[{"match": "", "replies": [{"status": 301, "headers": {"x-amz-bucket-region": "evil.example.com/"}}]}]'
s3 get s3://bkt/k "$SCRATCH/into/got"
same "no region at all: not followed" "65 1" "$rc $(how_many .)"

case_name=put
bucket='{"match": "HEAD  /bkt/ ", "replies": [{"body": ""}]}'
etag='{"headers": {"ETag": "\"p\""}, "body": ""}'
rules main "[$bucket, {\"match\": \"PUT\", \"replies\": [$(ERROR 503 SlowDown), {\"drop\": true}, $etag]}]"
TY_S3_OWNER=111122223333 TY_S3_KMS=key-1 s3 bytes "$SCRATCH/object" 's3://bkt/a b+c//é%'
same "throttled, broken off, taken" "0 3" "$rc $(how_many PUT)"
same "its key" "/bkt/a%20b%2Bc//%C3%A9%25" "$(calls path | tail -n 1)"
same "owner, encryption, checksum" "111122223333 aws:kms key-1 $(openssl dgst -sha256 -binary "$SCRATCH/object" | base64)" \
    "$(calls x-amz-expected-bucket-owner x-amz-server-side-encryption x-amz-server-side-encryption-aws-kms-key-id x-amz-checksum-sha256 | tail -n 1)"
same "its hash is signed" "$(sha256sum <"$SCRATCH/object" | cut -d' ' -f1)" "$(calls x-amz-content-sha256 | tail -n 1)"
rules main "[$bucket, {\"match\": \"PUT\", \"replies\": [$etag]}]"
AWS_REQUEST_CHECKSUM_CALCULATION=when_required s3 put "$SCRATCH/object" s3://bkt/k
same "no checksum where none is wanted" "0 " "$rc $(calls x-amz-checksum-sha256 | tail -n 1)"
rules main '[{"match": "HEAD", "replies": [{"status": 404}]}]'
s3 put "$SCRATCH/object" s3://bkt/k
same "no bucket: exit, nothing sent" "66 0" "$rc $(how_many PUT)"
has "no bucket" "$SCRATCH/err" 'there is no bucket "bkt"'
rules main "[{\"match\": \"HEAD\", \"replies\": [{\"status\": 403}]}, {\"match\": \"PUT\", \"replies\": [$etag]}]"
s3 put "$SCRATCH/object" s3://bkt/k
same "who may not look may write" 0 $rc
s3 put "$SCRATCH/into" s3://bkt/k
same "a folder is no file: exit" 78 $rc

case_name=parts
export TY_S3_NOTES=$SCRATCH/notes
begin='{"match": "?uploads=", "replies": [{"body": "<InitiateMultipartUploadResult><UploadId>up/1</UploadId></InitiateMultipartUploadResult>"}]}'
fresh='{"match": "?uploads=", "replies": [{"body": "<InitiateMultipartUploadResult><UploadId>up2</UploadId></InitiateMultipartUploadResult>"}]}'
end='{"match": "POST  /bkt/big?uploadId=", "replies": [{"body": "<CompleteMultipartUploadResult/>"}]}'
part() { echo "{\"match\": \"partNumber=$1&\", \"replies\": [$2]}"; }
PART() { part "$1" "{\"headers\": {\"ETag\": \"\\\"e$1\\\"\"}, \"body\": \"\"}"; }
listed() { # ETAG-OF-2: parts 1 and 2
    echo "{\"match\": \"GET  /bkt/big?uploadId=\", \"replies\": [{\"body\": \"<ListPartsResult><IsTruncated>false</IsTruncated><Part><PartNumber>1</PartNumber><ETag>&quot;e1&quot;</ETag><Size>8388608</Size></Part><Part><PartNumber>2</PartNumber><ETag>$1</ETag><Size>8388608</Size></Part></ListPartsResult>\"}]}"
}
notes() { find "$SCRATCH/notes" -type f 2>/dev/null | wc -l; }
sent() { calls method path | sed -nE 's/PUT .*partNumber=([0-9]+)&.*/\1/p' | xargs; }
rules main "[$bucket, $begin, $(PART 1), $(part 2 "$(ERROR 500 InternalError), $(ERROR 503 SlowDown), {\"headers\": {\"ETag\": \"e2\"}, \"body\": \"\"}"), $(PART 3), $end]"
s3 put "$SCRATCH/big" s3://bkt/big
same "a part is repeated apart from the others" "0 1 2 2 2 3" "$rc $(sent)"
has "its list" "$SCRATCH/main.log" '<Part><PartNumber>1</PartNumber><ETag>\"e1\"</ETag><ChecksumCRC32>'
same "the checksum of the whole" "$(cat "$SCRATCH/crc") FULL_OBJECT 17825792" \
    "$(calls x-amz-checksum-crc32 x-amz-checksum-type x-amz-mp-object-size | tail -n 1)"
same "no note is left" 0 "$(notes)"

gone=$(part 3 "$(ERROR 500 InternalError)")
interrupt() {
    rules main "[$bucket, $begin, $(PART 1), $(PART 2), $gone]"
    AWS_MAX_ATTEMPTS=1 s3 bytes "$SCRATCH/big" s3://bkt/big
}
interrupt
same "one part never gets through: exit, note" "69 1" "$rc $(notes)"
has "says what is left" "$SCRATCH/err" "2 of 3 parts got through and are kept for when the same is sent again: "
rules main "[$bucket, $(listed '&quot;e2&quot;'), $(PART 1), $(PART 2), $(PART 3), $end]"
s3 put "$SCRATCH/big" s3://bkt/big
same "goes on with the missing part" "0 3 0" "$rc $(sent) $(notes)"
same "by the id of then" "/bkt/big?uploadId=up%2F1" "$(calls path | tail -n 1)"
interrupt
rules main "[$bucket, $(listed other), $(PART 1), $(PART 2), $(PART 3), $end]"
s3 put "$SCRATCH/big" s3://bkt/big
same "a part that is another one now is sent again" "0 2 3" "$rc $(sent)"
interrupt
cp "$SCRATCH/big" "$SCRATCH/changed"
printf x | dd of="$SCRATCH/changed" bs=1 seek=5 conv=notrunc status=none
rules main "[$bucket, $(listed '&quot;e2&quot;'), $(PART 1), $(PART 2), $(PART 3), $end]"
s3 put "$SCRATCH/changed" s3://bkt/big
same "a part of which something was changed is sent again" "0 1 3" "$rc $(sent)"
interrupt
rules main "[$bucket, {\"match\": \"GET  /bkt/big?uploadId=\", \"replies\": [$(ERROR 404 NoSuchUpload)]}, $fresh, $(PART 1), $(PART 2), $(PART 3), $end]"
s3 put "$SCRATCH/big" s3://bkt/big
same "an upload that is gone begins anew" "0 1 2 3" "$rc $(sent)"
interrupt
rules main "[$bucket, {\"match\": \"DELETE\", \"replies\": [{\"status\": 204}]}, $fresh, $(PART 1), $(PART 2), $(PART 3), $end]"
TY_S3_KMS=other s3 put "$SCRATCH/big" s3://bkt/big
same "with another key of encryption it begins anew" "0 1 2 3" "$rc $(sent)"
same "and the old one is removed" 1 "$(how_many 'DELETE /bkt/big?uploadId=up%2F1')"
interrupt
rules main '[{"match": "DELETE", "replies": [{"status": 204}]}]'
s3 abort s3://bkt/big
same "aborted when asked" "0 1 0" "$rc $(how_many 'DELETE /bkt/big?uploadId=up%2F1') $(notes)"
s3 abort s3://bkt/big
same "nothing is left to abort" "0 1" "$rc $(how_many DELETE)"

rules main "[$bucket, {\"match\": \"DELETE\", \"replies\": [{\"status\": 204}]}, $begin, $(PART 1), $gone, $(PART 2)]"
AWS_MAX_ATTEMPTS=1 TY_S3_ABORT=1 s3 put "$SCRATCH/big" s3://bkt/big
same "removed after a failure, as asked: exit, note" "69 1 0" "$rc $(how_many DELETE) $(notes)"
lacks "nothing is left, nothing is said of it" "$SCRATCH/err" "parts"
rules main "[$bucket, {\"match\": \"DELETE\", \"replies\": [$(ERROR 403 AccessDenied)]}, $begin, $(PART 1), $gone, $(PART 2)]"
TY_S3_NOTES='' AWS_MAX_ATTEMPTS=1 TY_S3_ABORT=1 s3 put "$SCRATCH/big" s3://bkt/big
has "what cannot be removed is named" "$SCRATCH/err" "an incomplete upload is left behind (2 of 3 parts, id up/1)"
rules main "[$bucket, {\"match\": \"DELETE\", \"replies\": [{\"status\": 204}]}, $begin, $(PART 1), $(PART 2), $(PART 3)]"
TY_S3_NOTES='' TY_S3_ABORT=1 TY_S3_STOP=8388608 s3 put "$SCRATCH/big" s3://bkt/big
same "stopped, and removed all the same" "143 1 1" "$rc $(sent) $(how_many DELETE)"
rm -rf "$SCRATCH/notes"

case_name=complete
rules main "[$bucket, $begin, $(PART 1), $(PART 2), $(PART 3), {\"match\": \"POST  /bkt/big?uploadId=\", \"replies\": [{\"body\": \"   <Error><Code>InternalError</Code><Message>We</Message></Error>\"}, {\"body\": \"<CompleteMultipartUploadResult/>\"}]}]"
s3 put "$SCRATCH/big" s3://bkt/big
same "an error behind a status of 200: again" "0 2" "$rc $(how_many 'POST /bkt/big?uploadId')"
lost="$begin, $(PART 1), $(PART 2), $(PART 3), {\"match\": \"POST  /bkt/big?uploadId=\", \"replies\": [{\"drop\": true}, $(ERROR 404 NoSuchUpload)]}"
rules main "[$bucket, $lost, {\"match\": \"HEAD  /bkt/big\", \"replies\": [{\"headers\": {\"x-amz-checksum-crc32\": \"$(cat "$SCRATCH/crc")\"}, \"length\": 17825792}]}]"
s3 put "$SCRATCH/big" s3://bkt/big
same "completed, but nobody heard of it" 0 $rc
rules main "[$bucket, $lost, {\"match\": \"HEAD  /bkt/big\", \"replies\": [{\"headers\": {\"x-amz-checksum-crc32\": \"AAAAAA==\"}, \"length\": 17825792}]}]"
s3 put "$SCRATCH/big" s3://bkt/big
same "what is there is another one: exit" 66 $rc
rm -rf "$SCRATCH/notes"

case_name=list
page() { echo "<ListBucketResult><EncodingType>url</EncodingType>$1</ListBucketResult>"; }
key() { echo "<Contents><Key>$1</Key><Size>${2:-1}</Size><ETag>e</ETag></Contents>"; }
listing() { rules main "[{\"match\": \"list-type=2\", \"replies\": [$1]}, {\"match\": \"GET\", \"replies\": [{\"headers\": {\"ETag\": \"e\"}, \"body\": \"x\"}]}]"; }
more='<IsTruncated>true</IsTruncated><NextContinuationToken>to ken=</NextContinuationToken>'
listing "{\"body\": \"$(page "$(key a%20b)$(key a+c)$more")\"}, $(ERROR 503 SlowDown), {\"body\": \"$(page "$(key 'a%2Bd')")\"}"
s3 list 's3://bkt/a'
same "two pages" $'1 e -1 a b\n1 e -1 a c\n1 e -1 a+d' "$(cat "$SCRATCH/out")"
same "the token goes back" "/bkt/?list-type=2&encoding-type=url&prefix=a&continuation-token=to%20ken%3D" "$(calls path | tail -n 1)"
listing "{\"body\": \"$(page "$(key a)$more")\"}"
s3 list s3://bkt/a
same "the same page for ever: exit, requests" "69 2" "$rc $(how_many .)"
listing "{\"body\": \"$(page "$(key b)")\"}"
s3 list s3://bkt/a
has "keys that were not asked for" "$SCRATCH/err" 'does not begin with "a"'
listing "{\"body\": \"$(page "$(key a)")\", \"cut\": 30}"
AWS_MAX_ATTEMPTS=2 s3 list s3://bkt/a
same "half a page: exit, attempts" "69 2" "$rc $(how_many .)"
listing '{"body": "<html>down for maintenance</html>"}'
s3 list s3://bkt/a
has "a page that is none" "$SCRATCH/err" 'it is called "html"'

case_name=folders
refused() { # WHAT KEYS TEXT
    listing "{\"body\": \"$(page "$2")\"}"
    rm -rf "$SCRATCH/folder"
    s3 get-folder s3://bkt/p/ "$SCRATCH/folder"
    same "$1: exit, nothing fetched" "65 1" "$rc $(how_many .)"
    has "$1" "$SCRATCH/err" "$3"
    [ ! -e "$SCRATCH/folder" ] && pass || fail "$1: a folder was made"
}
refused "out of the folder" "$(key p/a)$(key p/../../x)" "lead out of their folder"
refused "the same file twice" "$(key p/a//b)$(key p/a/b)" 'the file "a/b" already'
refused "a file and a folder" "$(key p/a)$(key p/a/b)" 'the file "a" already'
refused "a folder and a file" "$(key p/a/b)$(key p//a)" 'the folder "a" already'
listing "{\"body\": \"$(page '')\"}"
s3 get-folder s3://bkt/p/ "$SCRATCH/folder"
same "nothing there: exit" 66 $rc
listing "{\"body\": \"$(page "$(key p/ 0)$(key p/0)$(key p/1)$(key p/2//y)$(key p/3)$(key p/e/ 0)")\"}"
s3 get-folder s3://bkt/p "$SCRATCH/folder"
same "files and folders" "4 files, 4 bytes 0 1 2 2/y 3 e" "$(cat "$SCRATCH/out") $(cd "$SCRATCH/folder" && find . -mindepth 1 -printf '%P\n' | sort | xargs)"
rm -rf "$SCRATCH/folder"
TY_S3_SHARD=1/2 s3 get-folder s3://bkt/p "$SCRATCH/folder"
same "every other one" "1 3 e" "$(cd "$SCRATCH/folder" && find . -mindepth 1 -printf '%P\n' | sort | xargs)"

lacks "no secret in any output" "$SCRATCH/all" Canary0
close
