#!/bin/bash
# credentials.sh - where credentials come from, and in which order: each place has a key of its own, and the request tells by
# whose key it was signed. No secret in any output.
cd "$(dirname "$0")/../.." || exit 1
. tests/aws/harness.bash

keys() { # NAME TOKEN-KEY: as JSON
    echo "\"AccessKeyId\": \"AKID$1\", \"SecretAccessKey\": \"SecretCanary$1\", \"$2\": \"TokenCanary$1\", \"Expiration\": \"2099-01-01T00:00:00Z\""
}
sts() { # OPERATION NAME
    echo "<$1Response><$1Result><Credentials><AccessKeyId>AKID$2</AccessKeyId><SecretAccessKey>SecretCanary$2</SecretAccessKey><SessionToken>TokenCanary$2</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></$1Result></$1Response>"
}
serve main
export AWS_ENDPOINT_URL=http://127.0.0.1:$PORT AWS_REGION=eu-west-1 AWS_CONFIG_FILE=$SCRATCH/config
export AWS_SHARED_CREDENTIALS_FILE=$SCRATCH/credentials
role=latest/meta-data/iam/security-credentials/
rules main "[{\"match\": \"PUT  /latest/api/token\", \"replies\": [{\"body\": \"MetadataToken\"}]},
  {\"match\": \"/${role}worker\", \"replies\": [{\"body\": {$(keys INSTANCE Token)}}]},
  {\"match\": \"/$role\", \"replies\": [{\"body\": \"worker\"}]},
  {\"match\": \"/container\", \"replies\": [{\"body\": {$(keys CONTAINER Token)}}]},
  {\"match\": \"AssumeRoleWithWebIdentity\", \"replies\": [{\"body\": \"$(sts AssumeRoleWithWebIdentity WEB)\"}]},
  {\"match\": \"AssumeRole\", \"replies\": [{\"body\": \"$(sts AssumeRole ROLE)\"}]},
  {\"match\": \"ListTrainingJobs\", \"replies\": [{\"body\": {\"TrainingJobSummaries\": []}}]}]"
cat >"$SCRATCH/credentials" <<'F'
[files]
aws_access_key_id = AKIDFILES
aws_secret_access_key = SecretCanaryFILES
[several]
aws_access_key_id = AKIDSEVERAL
aws_secret_access_key = SecretCanarySEVERAL
[half]
aws_access_key_id = AKIDHALF
F
cat >"$SCRATCH/print" <<F
#!/bin/sh
echo '{"Version": 1, $(keys PROCESS SessionToken)}'
F
chmod +x "$SCRATCH/print"
cat >"$SCRATCH/config" <<F
[profile role]
role_arn = arn:aws:iam::123456789012:role/R
source_profile = files
external_id = a b
[profile round]
role_arn = arn:aws:iam::123456789012:role/R
source_profile = round
[profile process]
credential_process = "$SCRATCH/print" --with 'two words'
[profile bad]
credential_process = false
[profile config]
aws_access_key_id = AKIDCONFIG
aws_secret_access_key = SecretCanaryCONFIG
[profile several]
credential_process = "$SCRATCH/print"
aws_access_key_id = AKIDCONFIG
aws_secret_access_key = SecretCanaryCONFIG
[profile second]
credential_process = "$SCRATCH/print"
aws_access_key_id = AKIDCONFIG
aws_secret_access_key = SecretCanaryCONFIG
[profile sso]
sso_session = s
[profile web]
role_arn = arn:aws:iam::123456789012:role/W
web_identity_token_file = $SCRATCH/web
F
echo WebCanary >"$SCRATCH/web"
echo ContainerCanary >"$SCRATCH/token"
who() { # EXPECTED WHAT ENVIRONMENT...: whose key signed the last request
    : >"$SCRATCH/main.log"
    env "${@:3}" timeout 100 "$BIN/trainyard" list >"$SCRATCH/out" 2>"$SCRATCH/err"
    cat "$SCRATCH/out" "$SCRATCH/err" >>"$SCRATCH/all"
    same "$2" "AKID$1" "$(asked main authorization | tail -n 1 | sed -E 's/.*Credential=([^/]*).*/\1/')"
}
refused() { # TEXT PROFILE
    AWS_PROFILE=$2 ty list
    same "$2: exit" 77 $rc
    has "$2" "$SCRATCH/err" "$1"
}
case_name=credentials
export TY_LOG=debug # what is said at most
env_keys=(AWS_ACCESS_KEY_ID=AKIDENV AWS_SECRET_ACCESS_KEY=SecretCanaryENV)
container=(AWS_CONTAINER_CREDENTIALS_FULL_URI=$AWS_ENDPOINT_URL/container AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$SCRATCH/token)
instance=(AWS_EC2_METADATA_DISABLED=false AWS_EC2_METADATA_SERVICE_ENDPOINT=$AWS_ENDPOINT_URL)
web=(AWS_WEB_IDENTITY_TOKEN_FILE=$SCRATCH/web AWS_ROLE_ARN=arn:aws:iam::1:role/W)
who ENV "the environment first" "${env_keys[@]}" "${container[@]}" "${instance[@]}" "${web[@]}" AWS_PROFILE=files
who ENV "also before a profile's role" "${env_keys[@]}" AWS_PROFILE=role
who ROLE "a profile's role" AWS_PROFILE=role "${web[@]}" "${container[@]}"
has "asked for with its source's key" "$SCRATCH/main.log" "Credential=AKIDFILES"
has "external id, encoded" "$SCRATCH/main.log" "ExternalId=a%20b"
who WEB "a web identity's token" "${web[@]}" AWS_PROFILE=files
who WEB "a profile's token" AWS_PROFILE=web
who FILES "the file of keys" AWS_PROFILE=files "${container[@]}"
who PROCESS "a process" AWS_PROFILE=process "${container[@]}"
who SEVERAL "the file of keys before a process" AWS_PROFILE=several
who PROCESS "a process before the file of settings" AWS_PROFILE=second
who CONFIG "the file of settings" AWS_PROFILE=config "${container[@]}"
who CONTAINER "a container's service" "${container[@]}" "${instance[@]}"
has "with its token" "$SCRATCH/main.log" '"authorization": "ContainerCanary"'
who INSTANCE "instance metadata" "${instance[@]}"
has "version 2" "$SCRATCH/main.log" '"x-amz-security-token": "TokenCanaryINSTANCE"'
refused "secret access key is missing" half
refused "leads in a circle" round
refused "failed with status 1" bad
refused "export-credentials --profile sso" sso
AWS_CONTAINER_CREDENTIALS_FULL_URI=http://example.com/x ty list
same "a container's service elsewhere: exit" 77 $rc
has "refused" "$SCRATCH/err" "address of this machine"
ty list
same "none at all: exit" 77 $rc
has "where was looked" "$SCRATCH/err" "no credentials were found"
lacks "no secret in any output" "$SCRATCH/all" Canary
close
