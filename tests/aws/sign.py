"""sign.py REQUESTS EXPECTED COUNT: random requests, and what botocore puts into Authorization for each.

The same numbers every time. Requests are what a client could send: any header, any bytes in path, query and body.
"""
import datetime
import hashlib
import json
import random
import sys
from urllib.parse import quote

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

rng = random.Random(1)
LETTERS = "abcXYZ019-._~ +/%&=?#@:;,!*'()[]{}<>|\\^`\"$\t" + "äßéñ日本語🚀"


def text(low, high, letters=LETTERS):
    return "".join(rng.choice(letters) for _ in range(rng.randint(low, high)))


def word(low, high):
    return text(low, high, "abcdefghijklmnopqrstuvwxyz0123456789")


def path():
    parts = [rng.choice(["", ".", "..", text(1, 12), word(1, 8), word(1, 8)]) for _ in range(rng.randint(0, 6))]
    return "/" + "/".join(quote(p, safe=rng.choice(["-_.~", "-_.~!*'()"])) for p in parts)


def query():
    pairs = [quote(text(1, 8), safe="-_.~") + rng.choice(["=", "=", "=", ""]) + quote(text(0, 8), safe="-_.~")
             for _ in range(rng.choice([0, 0, 1, 2, 5]))]
    return "&".join(pairs)


def request():
    is_s3 = rng.random() < 0.4
    headers = {}
    for _ in range(rng.randint(0, 4)):
        headers[rng.choice(["x-amz-", "X-Amz-Meta-", "Content-", "my-"]) + word(1, 8)] = text(
            0, 20, "abc DEF  123\t;=,\"/") or "x"
    body = rng.choice([b"", b"{}", text(1, 300).encode()])
    method = rng.choice(["GET", "PUT", "POST", "DELETE", "HEAD"])
    host = rng.choice(["s3.eu-west-1.amazonaws.com", "bucket.example.com:8443", "127.0.0.1:5000"])
    q = query()
    url = rng.choice(["https", "http"]) + "://" + host + path() + ("?" + q if q else "")
    r = AWSRequest(method=method, url=url, headers=headers, data=body)
    # Streams over TLS with a checksum: S3 alone takes bodies whose hash nobody has signed.
    if is_s3 and rng.random() < 0.3 and url.startswith("https"):
        r.headers["Content-MD5"] = "1B2M2Y8AsgTpgAmY7PhCfg=="
        r.context["has_streaming_input"] = True
    return r, is_s3


def one():
    r, is_s3 = request()
    now = datetime.datetime(2000, 1, 1) + datetime.timedelta(seconds=rng.randint(0, 1 << 30))
    botocore.auth.get_current_datetime = lambda: now
    credentials = Credentials("AKID" + word(4, 16).upper(), text(20, 40, LETTERS[:40]),
                              text(100, 400, "abcXYZ019/+=") if rng.random() < 0.5 else None)
    region, service = rng.choice(["eu-west-1", "us-gov-west-1", "cn-north-1"]), "s3" if is_s3 else word(2, 12)
    signer = (botocore.auth.S3SigV4Auth if is_s3 else botocore.auth.SigV4Auth)(credentials, service, region)
    signer.add_auth(r)
    authorization = r.headers["Authorization"]
    payload = r.headers.get("X-Amz-Content-SHA256") or hashlib.sha256(r.body or b"").hexdigest()
    sent_path, _, sent_query = r.url.split("://", 1)[1].partition("?")
    signed = authorization.split("SignedHeaders=")[1].split(",")[0].split(";")
    headers = [[k, v] for k, v in r.headers.items() if k.lower() in signed]
    if "host" in signed and not any(k.lower() == "host" for k, _ in headers):
        headers.append(["Host", sent_path.partition("/")[0]])
    rng.shuffle(headers)
    return json.dumps({
        "method": r.method, "path": "/" + sent_path.partition("/")[2], "query": sent_query, "headers": headers,
        "payload": payload, "s3": is_s3, "access_key": credentials.access_key, "secret_key": credentials.secret_key,
        "region": region, "service": service, "time": r.context["timestamp"]}), authorization


with open(sys.argv[1], "w") as requests, open(sys.argv[2], "w") as expected:
    for _ in range(int(sys.argv[3])):
        line, authorization = one()
        requests.write(line + "\n")
        expected.write(authorization + "\n")
