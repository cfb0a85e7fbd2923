#!/usr/bin/env python3
"""Writes values.json and jobs/*/expected.json with the original toolkit: what it says is what we must say.

    pip download --no-deps --no-binary :all: sagemaker-training==5.1.0 && tar xzf sagemaker_training-5.1.0.tar.gz
    cd <repository root> && python3 tests/contract/vectors/regenerate.py sagemaker_training-5.1.0/src

Not part of the build or the tests: those read the files this leaves. Run it from the repository root, because paths in
the expectations are relative to it.
"""
import json
import os
import shutil
import subprocess
import sys
import types

HERE = "tests/contract/vectors"

VALUES = [
    "5", "1e-05", "0.00001", "0.0001", "0.90", "1E3", "1e16", "123456789012345.678", "100000000000000000.0", "-0.0",
    "12345678901234567890", "NaN", "1e999", "007", "adam", '"adam"', "true", "True", "null", "", '""', '[64, 128, "x"]',
    '{"b": [1, 3], "a": true}', '{"x": {"y": null}}', '"a\\"b"', '"caf\\u00e9"',
    # beyond the published table
    "-0", "0", "-7", "Infinity", "-Infinity", "-1e999", "nan", "inf", ".5", "5.", "+1", "0x10", "1_000", "'x'", "[1,]",
    "{'a': 1}", "1e", "1 2", " 12 ", "\t[1 ]\n", "1e1000000", "-", "tru", "nulll", "[", "{", '"', '{"a"}', '{"a":}',
    '{"a": 1,}', '{"a": 1, "a": 2}', '{"z": 1, "a": 2, "z": 3}', '{"B": 1, "a": 2, "_": 3, "-": 4}', "[NaN, -Infinity]",
    '{"n": NaN, "i": Infinity}', '"tab\\tnew\\nline"', '["tab\\tnew\\nline", "cr\\r", "bs\\\\"]', '["it\'s"]',
    '["say \\"hi\\""]', '["both \' and \\""]', '["\\u00e9\\u4e2d\\ud83d\\ude00"]', '"\\ud83d\\ude00"', "\u4e2d\u6587",
    '"\u4e2d\u6587"', '["\\u00a0\\u00ad\\u200b\\u2028\\ue000\\uffff"]', '["\\u0001\\u007f\\u0080\\u001b"]', '["\\ud800"]',
    '["\\udc00\\ud800x"]', '"\\b\\f\\/"', "[true, false, null]", "[[], {}, [[]]]", '{"a": {"b": {"c": [1.0, 2e-7]}}}',
    '{"k": "v w", "e": ""}', "1e15", "1e15.0", "9999999999999998", "9999999999999998.0", "99999999999999990.0", "1e22",
    "1e23", "5e-324", "1.7976931348623157e308", "0.1", "0.30000000000000004", "1e-4", "1e-5", "123456.789e3", "1E+2",
    "1e-0", "4.0", "100", "-1.5e-10", "2.5E10", "3.0e15", "1234567890123456.0", "12345678901234567.0", '"\x01"', '"\\x"',
    '"\\u12"', "[1\u00a0]", "\ufeff1", "\u00a05", '"NaN"', '"null"', "False", "None", "[None]", "{}", "[]", '{"": ""}',
]

JOBS = {
    "example": ["SAGEMAKER_TRAINING_MODULE=sagemaker_tensorflow_container.training:main", "TRAINING_JOB_NAME=mnist-1"],
    "bare": [],
    "hetero": ["SAGEMAKER_PROGRAM=baked/run.py", "SM_HP_MP_PARAMETERS={}", "TRAINING_JOB_NAME=h"],
    "odd": ["SM_HP_MP_PARAMETERS={\"a\":1}"],
}

EXTRA = ["SAGEMAKER_REGION", "SAGEMAKER_JOB_NAME", "CURRENT_HOST"]


def stub_modules():
    boto3 = types.ModuleType("boto3")
    boto3.Session = lambda: types.SimpleNamespace(region_name=None)
    boto3.session = types.SimpleNamespace(Session=boto3.Session)
    sys.modules["boto3"] = boto3


def write(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1, ensure_ascii=True)
        f.write("\n")


def one_value(mapping, text):
    try:
        decoded = json.loads(text)
    except ValueError:
        decoded = text
    env = mapping.to_env_vars({"hps": {"k": decoded}, "hp_k": decoded})
    args = mapping.to_cmd_args({"k": decoded})
    return {"file": text, "kind": type(decoded).__name__, "env": env["SM_HP_K"], "hps": env["SM_HPS"], "arg": args[1]}


def is_text(row):
    return not any(0xD800 <= ord(c) < 0xE000 for key in ("env", "arg") for c in row[key])


def write_job():
    """In a process of its own, with SAGEMAKER_BASE_DIR set: the toolkit reads it when it is imported."""
    from sagemaker_training import environment
    environment.num_gpus = lambda: 4
    environment.num_cpus = lambda: 48
    environment.num_neurons = lambda instance_type: 0
    environment.validate_smddprun = environment.validate_smddpmprun = lambda: False
    base = os.environ["SAGEMAKER_BASE_DIR"]
    variables = [v for v in os.environ.get("JOB_VARIABLES", "").split("\n") if v]
    env = environment.Environment()
    exported = env.to_env_vars()
    exported.update({name: os.environ[name] for name in EXTRA})
    shutil.rmtree(os.path.join(base, "code"))
    write(os.path.join(base, "expected.json"),
          {"inherited": ["SAGEMAKER_BASE_DIR=" + base] + variables,
           "environment": dict(sorted(exported.items())), "arguments": env.to_cmd_args()})


def main(toolkit):
    from sagemaker_training import mapping
    rows = [one_value(mapping, text) for text in VALUES]
    write(os.path.join(HERE, "values.json"), [row for row in rows if is_text(row)])
    for name, variables in JOBS.items():
        env = dict(os.environ, SAGEMAKER_BASE_DIR=os.path.join(HERE, "jobs", name), JOB_VARIABLES="\n".join(variables),
                   **dict(v.split("=", 1) for v in variables))
        subprocess.run([sys.executable, __file__, toolkit, "--job"], env=env, check=True)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    stub_modules()
    if sys.argv[2:] == ["--job"]:
        write_job()
    else:
        main(sys.argv[1])
