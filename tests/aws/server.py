"""server.py PORT RULES LOG [CERTIFICATE]: answers as it is told, and writes down what it was asked.

RULES is a JSON list; the first rule whose "match" stands in "METHOD target path" of a request answers it. Its "replies" are
given one after another, the last one for ever:
    status, headers, body (text, or an object that becomes JSON)
    cut: N         only the first N bytes of the body, then the connection ends
    length: N      what Content-Length says (of an answer to HEAD)
    drop: true     the connection ends without an answer
    clock_s: N     the server's clock is N seconds ahead: requests signed at another time than its own are refused
    token: T       refused with ExpiredTokenException while the request has this session token
    hold: PATH     answers when that file is there
    echo: true     an error whose message quotes all headers of the request, as S3 does
    xml: true      these errors are S3's: XML, with its codes
One line of LOG a request: JSON of method, path, headers (names in lower case), body. Prints "ready" when it listens. RULES
is read again for each request whose file has changed.
"""
import datetime
import email.utils
import http.server
import json
import os
import ssl
import sys
import threading
import time

MOST = 1 << 16  # of a body: parts of objects are not looked at further
port, rules_path, log_path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
lock = threading.Lock()
state = {"changed": None, "rules": [], "given": {}}


def pick(line):
    with lock:
        changed = os.stat(rules_path).st_mtime_ns
        if changed != state["changed"]:
            state.update(changed=changed, rules=json.load(open(rules_path)), given={})
        for i, rule in enumerate(state["rules"]):
            if rule["match"] in line:
                n = state["given"].get(i, 0)
                state["given"][i] = n + 1
                return rule["replies"][min(n, len(rule["replies"]) - 1)]
    return {"status": 404, "body": {"__type": "NoRule", "message": "no rule for " + line}}


def refusal(reply, status, code, s3_code, message):
    if reply.get("xml"):
        return {"status": status, "body": f"<Error><Code>{s3_code}</Code><Message>{message}</Message></Error>"}
    return {"status": status, "body": {"__type": code, "message": message}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return email.utils.formatdate(time.time() + getattr(self, "clock_s", 0), usegmt=True)

    def is_late(self, clock_s):
        signed = datetime.datetime.strptime(self.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
        signed = signed.replace(tzinfo=datetime.timezone.utc).timestamp()
        return abs(signed - time.time() - clock_s) > 900

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {k.lower(): v for k, v in self.headers.items()}
        with lock, open(log_path, "a") as log:
            log.write(json.dumps({"method": self.command, "path": self.path, "headers": headers,
                                  "body": body[:MOST].decode("utf-8", "replace")}) + "\n")
        reply = pick(f"{self.command} {headers.get('x-amz-target', '')} {self.path} {body[:MOST].decode('utf-8', 'replace')}")
        self.clock_s = reply.get("clock_s", 0)
        if "clock_s" in reply and self.is_late(self.clock_s):
            reply = refusal(reply, 403, "InvalidSignatureException", "RequestTimeTooSkewed", "Signature expired")
        if reply.get("token") and headers.get("x-amz-security-token") == reply["token"]:
            reply = refusal(reply, 400, "ExpiredTokenException", "ExpiredToken", "The token has expired")
        if reply.get("echo"):
            reply = {"status": 403, "body": {"__type": "SignatureDoesNotMatch",
                                             "message": "The canonical request is\n" + json.dumps(headers)}}
        while reply.get("hold") and not os.path.exists(reply["hold"]):
            time.sleep(0.01)
        if reply.get("drop"):
            self.close_connection = True
            return
        self.send(reply)

    def send(self, reply):
        body = reply.get("body", "")
        body = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(reply.get("status", 200))
        for name, value in reply.get("headers", {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(reply.get("length", len(body))))
        self.send_header("x-amzn-RequestId", "request-0815")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:reply.get("cut", len(body))])
        if "cut" in reply:
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer


server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
server.daemon_threads = True
if len(sys.argv) > 4:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[4])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True)
server.serve_forever()
