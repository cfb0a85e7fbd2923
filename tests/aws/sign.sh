#!/bin/bash
# sign.sh - a thousand random requests, signed by us and by botocore: for S3 and for the others, with and without a token.
cd "$(dirname "$0")/../.." || exit 1
. tests/aws/harness.bash
case_name=sign

if ! python; then
    skip "random requests against botocore" "no botocore (TY_AWS_VENV or TY_AWS_INSTALL=1, see tests/aws/harness.bash)"
    close
    exit
fi
"$PYTHON" tests/aws/sign.py "$SCRATCH/requests" "$SCRATCH/expected" 1000 || fail "botocore signs"
"$BUILD/tools/aws_sign" <"$SCRATCH/requests" >"$SCRATCH/found" || fail "we sign"
same "as many answers as requests" 1000 "$(wc -l <"$SCRATCH/found")"
same "the first difference" "" "$(diff "$SCRATCH/expected" "$SCRATCH/found" | head -n 4)"
same "requests of each kind" "$(printf 's3\nservice')" "$(sed -E 's/.*"s3": true.*/s3/; s/.*"s3": false.*/service/' \
    "$SCRATCH/requests" | sort -u)"
close
