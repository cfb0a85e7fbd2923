"""s3_moto.py STEP FOLDER: the other side of s3_moto.sh, by boto3. AWS_ENDPOINT_URL_S3 says where.

prepare   makes a bucket with odd keys (their content is the key) and 2,500 keys under many/; writes FOLDER/keys
check     compares what was sent under sent/ with FOLDER/keys, and FOLDER/big with what became of it
"""
import hashlib
import json
import sys

import boto3

ODD = ["plain", "a b", " lead", "trail ", "a+b", "a%2Bb", "100%", "a//b", "a/b/", "/lead", "é/日本語/🚀", "e\u0301", "a&b=c?d#e", "'\"<>",
       "a\\b", "~tilde", "*(!)'", "a:b;c,d@e$f", "..dots..", "a.", "x" * 900, "tab\ttab", "\x01\x7f", "{a}[b]|^`",
       "../up", "a/../b", "./here", "?uploads", "%00"]
step, folder = sys.argv[1:3]
s3 = boto3.client("s3")


def sha256(body):
    h = hashlib.sha256()
    for piece in iter(lambda: body.read(1 << 20), b""):
        h.update(piece)
    return h.hexdigest()


def expect(what, found, expected):
    if found != expected:
        print(f"{what}: expected {expected!r}, found {found!r}")
        sys.exit(1)


if step == "prepare":
    s3.create_bucket(Bucket="bkt", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    for key in ODD:
        s3.put_object(Bucket="bkt", Key="odd/" + key, Body=key.encode())
    for i in range(2500):
        s3.put_object(Bucket="bkt", Key=f"many/{i:04d}", Body=b"m")
    for key in ["tree/a/x y", "tree/a/+", "tree/b//é", "tree/c"]:
        s3.put_object(Bucket="bkt", Key=key, Body=key.encode())
    json.dump(ODD, open(folder + "/keys", "w"))
elif step == "check":
    listed = [o["Key"] for p in s3.get_paginator("list_objects_v2").paginate(Bucket="bkt", Prefix="sent/") for o in p["Contents"]]
    expect("keys that were sent", sorted(listed), sorted("sent/" + key for key in ODD))
    for key in ODD:
        o = s3.get_object(Bucket="bkt", Key="sent/" + key, ChecksumMode="ENABLED")
        expect("checksum of " + key, "ChecksumSHA256" in o, True)
        expect("content of " + key, o["Body"].read(), key.encode())  # botocore compares the checksum as it reads
    o = s3.get_object(Bucket="bkt", Key="big", ChecksumMode="ENABLED")
    expect("checksum of the whole", (o.get("ChecksumType"), "ChecksumCRC32" in o), ("FULL_OBJECT", True))
    expect("big", sha256(o["Body"]), sha256(open(folder + "/big", "rb")))
    expect("uploads left behind", s3.list_multipart_uploads(Bucket="bkt").get("Uploads"), None)
    o = s3.head_object(Bucket="bkt", Key="secret")
    expect("encryption", (o.get("ServerSideEncryption"), o.get("SSEKMSKeyId")), ("aws:kms", "key-1"))
    expect("bucket that was made", s3.get_bucket_location(Bucket="made-here")["LocationConstraint"], "eu-west-1")
