#!/bin/bash
# script.sh - script mode: where the code comes from, what kind of program it is, what it is given.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
PRINT='#!/bin/sh
echo "n=$#"
for a; do echo "arg=[$a]"; done
echo "cwd=$(pwd)"
echo "epochs=$SM_HP_EPOCHS model=$SM_MODEL_DIR name=$SM_USER_ENTRY_POINT note=${TRAINYARD_NOTE_FD-none}"
ls -l /proc/self/fd | grep -c "pipe:" >pipes'

begin shell_script
printf '%s\n' "$PRINT" >"$ML/code/train.sh"
chmod 644 "$ML/code/train.sh"
hyper '{"sagemaker_program": "\"train.sh\"", "epochs": "12", "k": "3", "name": "\"a b\\\"c$HOME`id`*;&\"", "warmup": "null", "use_amp": "true"}'
run
same "status" 0 $rc
has "working directory" "$W/out" "cwd=$ML/code"
has "environment" "$W/out" "epochs=12 model=$ML/model name=train.sh note=none"
same "arguments, exactly" 'n=10
arg=[--epochs]
arg=[12]
arg=[-k]
arg=[3]
arg=[--name]
arg=[a b"c$HOME`id`*;&]
arg=[--use_amp]
arg=[True]
arg=[--warmup]
arg=[]' "$(grep -E '^(n|arg)=' "$W/out")"
ok "success file" test -e "$ML/output/success"
has "the command is in the log" "$W/err" "running: ./train.sh --epochs 12"

begin more_arguments
printf '%s\n' "$PRINT" >"$ML/code/train.sh"
hyper '{"sagemaker_program": "train.sh", "epochs": "1"}'
run train --extra "two words"
has "ours" "$W/out" "arg=[--extra]"
has "kept whole" "$W/out" "arg=[two words]"

begin secrets
printf '#!/bin/sh\nexit 3\n' >"$ML/code/train.sh"
hyper '{"sagemaker_program": "train.sh", "api_key": "hunter2", "lr": "0.1"}'
run
same "status" 3 $rc
lacks "not in the log" "$W/err" hunter2
lacks "not in the failure file" "$ML/output/failure" hunter2
has "the rest is" "$W/err" "--lr 0.1"

begin no_first_line
echo 'echo "plain $1"; exit 11' >"$ML/code/train.sh"
hyper '{"sagemaker_program": "train.sh", "x": "1"}'
run
same "run by /bin/sh" 11 $rc
has "with its arguments" "$W/out" "plain -x"

begin other_interpreter
printf '#!/bin/bash\n[[ $BASH_VERSION ]] && exit 12\n' >"$ML/code/train.sh"
hyper '{"sagemaker_program": "train.sh"}'
run
same "its own first line counts" 12 $rc

begin sub_folder
mkdir -p "$ML/code/src/deep"
printf '#!/bin/sh\npwd; exit 13\n' >"$ML/code/src/deep/go.sh"
hyper '{"sagemaker_program": "src/deep/go.sh"}'
run
same "status" 13 $rc
has "from the code folder" "$W/out" "$ML/code"

begin environment_wins
printf '#!/bin/sh\nexit 14\n' >"$ML/code/a.sh"
hyper '{"sagemaker_program": "absent.sh"}'
SAGEMAKER_PROGRAM=a.sh run
same "SAGEMAKER_PROGRAM wins" 14 $rc

begin executable
cp /bin/echo "$ML/code/program"
hyper '{"sagemaker_program": "program", "epochs": "2"}'
run
same "status" 0 $rc
has "run with arguments" "$W/out" "--epochs 2"

begin c_program
cat >"$ML/code/train.c" <<'C'
#include "helper.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    printf("c %s %s %.3f %s\n", argv[1], argv[2], sqrt(2.0), getenv("SM_HP_EPOCHS"));
    return argc == 3 ? VALUE : 1;
}
C
echo '#define VALUE 21' >"$ML/code/helper.h"
hyper '{"sagemaker_program": "train.c", "epochs": "9"}'
run
same "compiled and run" 21 $rc
has "arguments and libm" "$W/out" "c --epochs 9 1.414 9"

begin c_read_only_code
echo 'int main(void) { return 22; }' >"$ML/code/train.c"
chmod -R a-w "$ML/code"
hyper '{"sagemaker_program": "train.c"}'
run
same "nothing is written into the code folder" 22 $rc

if [ -e "$BIN/../include/trainyard/trainyard.h" ]; then
    begin c_of_many_ranks
    cat >"$ML/code/train.c" <<'C'
#include <trainyard/trainyard.h>
int main(void)
{
    float x = 23;
    trainyard_init(0);
    trainyard_allreduce(trainyard_f32(&x, 1), 0, 0);
    return trainyard_shutdown() ? 1 : (int)x;
}
C
    hyper '{"sagemaker_program": "train.c"}'
    run
    same "header and library are found" 23 $rc
else
    skip c_of_many_ranks "header and library lie beside the programs of the release variant alone"
fi

begin c_broken
printf 'int main(void)\n{\n    return undeclared_thing;\n}\n' >"$ML/code/train.c"
hyper '{"sagemaker_program": "train.c"}'
run
same "status" 1 $rc
has "class" "$ML/output/failure" "CompileError"
has "the compiler's words" "$ML/output/failure.json" "undeclared_thing"
has "the place" "$W/err" "train.c:3"

begin c_no_compiler
echo 'int main(void) { return 0; }' >"$ML/code/train.c"
hyper '{"sagemaker_program": "train.c"}'
mkdir "$W/empty"
CC= RUN_PATH=$W/empty run
same "status" 71 $rc
has "says what to do" "$ML/output/failure" "install gcc"

if command -v python3 >/dev/null; then
    begin python
    cat >"$ML/code/train.py" <<'P'
import os, sys
print("py", sys.argv[1:], os.environ["SM_HPS"], flush=True)
raise ValueError("bad \x1b[1mlayer\x1b[0m")
P
    hyper '{"sagemaker_program": "train.py", "lr": "1e-05"}'
    run
    same "status" 1 $rc
    has "arguments" "$W/out" "py ['--lr', '1e-05'] {\"lr\":1e-05}"
    has "the exception" "$ML/output/failure" "ValueError: bad layer"

    begin python_requirements
    echo 'print("ran")' >"$ML/code/train.py"
    echo '/no/such/package.whl' >"$ML/code/requirements.txt"
    hyper '{"sagemaker_program": "train.py"}'
    run
    same "status" 1 $rc
    has "class" "$ML/output/failure" "InstallRequirementsError"
    lacks "nothing was run" "$W/out" ran
else
    skip python "no python3 here"
fi

begin python_absent
echo 'print(1)' >"$ML/code/train.py"
hyper '{"sagemaker_program": "train.py"}'
mkdir "$W/empty"
RUN_PATH=$W/empty run
same "status" 1 $rc
has "says so" "$ML/output/failure" "needs Python"

# ---- where the code comes from ----
make_source() {
    mkdir -p "$W/src/pkg"
    printf '#!/bin/sh\ncat pkg/data; exit 31\n' >"$W/src/train.sh"
    echo "from the archive" >"$W/src/pkg/data"
    ln -s pkg/data "$W/src/link"
}

begin archive_gz
make_source
tar -czf "$W/sourcedir.tar.gz" -C "$W/src" .
hyper '{"sagemaker_program": "train.sh", "sagemaker_submit_directory": "'"$W"'/sourcedir.tar.gz"}'
run
same "status" 31 $rc
has "content" "$W/out" "from the archive"
same "links inside are kept" pkg/data "$(readlink "$ML/code/link")"

begin archive_plain_uri
make_source
tar -cf "$W/source.tar" -C "$W/src" .
hyper '{"sagemaker_program": "train.sh", "sagemaker_submit_directory": "\"file://'"$W"'/source.tar\""}'
rmdir "$ML/code"
run
same "status" 31 $rc

begin archive_formats
make_source
long=$(printf 'd%.0s' $(seq 1 90))/$(printf 'e%.0s' $(seq 1 120))
mkdir -p "$W/src/$long"
echo deep >"$W/src/$long/leaf"
for format in gnu pax; do
    tar --format=$format -czf "$W/$format.tgz" -C "$W/src" .
    rm -rf "$ML/code"
    hyper '{"sagemaker_program": "train.sh", "sagemaker_submit_directory": "'"$W/$format.tgz"'"}'
    run
    same "$format" 31 $rc
    same "$format long names" deep "$(cat "$ML/code/$long/leaf")"
done

begin folder
make_source
hyper '{"sagemaker_program": "train.sh", "sagemaker_submit_directory": "'"$W"'/src"}'
run
same "copied" 31 $rc
ok "it is a copy" test -f "$ML/code/pkg/data"

begin single_file
printf '#!/bin/sh\nexit 32\n' >"$W/train.sh"
hyper '{"sagemaker_program": "train.sh", "sagemaker_submit_directory": "'"$W"'/train.sh"}'
run
same "copied" 32 $rc

begin code_present
make_source
printf '#!/bin/sh\nexit 33\n' >"$ML/code/train.sh"
tar -czf "$W/s.tgz" -C "$W/src" .
hyper '{"sagemaker_program": "train.sh", "sagemaker_submit_directory": "'"$W"'/s.tgz"}'
run
same "a folder with content is taken as it is" 33 $rc

begin s3
hyper '{"sagemaker_program": "train.sh", "sagemaker_submit_directory": "s3://bucket/key/sourcedir.tar.gz"}'
run
same "status" 65 $rc
has "says how to go on" "$ML/output/failure" "input channel"

begin damaged
make_source
head -c 20000 /dev/urandom >"$W/src/noise"
tar -czf "$W/whole.tgz" -C "$W/src" .
head -c 9000 "$W/whole.tgz" >"$W/torn.tgz"
hyper '{"sagemaker_program": "train.sh", "sagemaker_submit_directory": "'"$W"'/torn.tgz"}'
run
same "status" 65 $rc
same "nothing half-unpacked stays" "" "$(ls -A "$ML/code")"

# Archives that want to write elsewhere.
EVIL=$SCRATCH/evil
mkdir -p "$EVIL/d"
cd "$EVIL" || exit 1
echo evil >f
echo evil >d/escaped
ln -s ../.. up
ln -s /tmp to_tmp
ln -s . here
ln -s here/.. here_up
ln f g
mkfifo pipe
pack() { # NAME: a new archive of one entry, and more into it; see the transforms of GNU tar
    local name=$1
    shift
    tar -P "$@" -rf "$SCRATCH/$name.tar"
}
pack dotdot --transform 's|^f$|../escaped|' f
pack inner_dotdot --transform 's|^f$|a/../../escaped|' f
pack absolute --transform 's|^f$|/tmp/escaped-absolute|' f
pack link_out --transform 's|^up$|out|RrSH' up
pack link_out --transform 's|^d|out|' d/escaped
pack link_absolute --transform 's|^to_tmp$|out|RrSH' to_tmp
pack link_absolute --transform 's|^f$|out/escaped-absolute|' f
pack link_ladder here here_up
pack hard_link_out --transform 's|^f$|../../../../etc/passwd|RSh' f g
pack device -C /dev null
pack fifo pipe
pack folder_then_link --no-recursion d
pack folder_then_link --transform 's|^up$|d|rSH' up
pack folder_then_link d/escaped
cd - >/dev/null || exit 1
for archive in "$SCRATCH"/*.tar; do gzip -c "$archive" >"${archive%.tar}.tgz"; done
for name in dotdot inner_dotdot absolute link_out link_absolute link_ladder hard_link_out device fifo folder_then_link; do
    begin "evil_$name"
    hyper '{"sagemaker_program": "train.sh", "sagemaker_submit_directory": "'"$SCRATCH/$name.tgz"'"}'
    run
    ok "refused: $rc" test $rc -ge 64 -a $rc -le 78
    ok "nothing escaped" bash -c "! ls '$SCRATCH'/escaped '$W'/escaped '$ML'/escaped /tmp/escaped-absolute 2>/dev/null | grep -q ."
    same "nothing stays" "" "$(ls -A "$ML/code")"
    has "names the archive" "$ML/output/failure" "$name.tgz"
done

begin link_trick_within
# A link inside is fine, and what is written "through" it must not be.
mkdir -p "$W/t/real" "$W/t/alias"
echo 1 >"$W/t/real/x"
ln -s real "$W/t/link"
echo 1 >"$W/t/alias/y"
tar -rf "$W/t.tar" -C "$W/t" real/x
tar -rf "$W/t.tar" -C "$W/t" --transform 's|^link$|alias|rSH' link
tar -rf "$W/t.tar" -C "$W/t" alias/y
gzip -c "$W/t.tar" >"$W/t.tgz"
hyper '{"sagemaker_program": "x", "sagemaker_submit_directory": "'"$W"'/t.tgz"}'
run
ok "a path through a link is refused: $rc" test $rc -ge 64

begin nothing_to_do
hyper '{}'
run
same "status" 78 $rc
has "says what was looked for" "$ML/output/failure" "train.yaml"
has "says what to do" "$ML/output/failure" "SAGEMAKER_PROGRAM"

begin broken_config
printf '{"epochs": "3",\n "epochs": "4"}' >"$ML/input/config/hyperparameters.json"
run
same "status" 78 $rc
has "place" "$W/err" "hyperparameters.json:2"

begin term_while_compiling
# The signal reaches the compiler too; that it dies of it is no fault of the program.
echo 'int main(void) { return 0; }' >"$ML/code/train.c"
printf '#!/bin/sh\ntouch %s/compiling; exec sleep 1000\n' "$W" >"$W/slow-cc"
chmod +x "$W/slow-cc"
hyper '{"sagemaker_program": "train.c"}'
CC=$W/slow-cc start
ok "compiling" until_true 10 test -e "$W/compiling"
kill -TERM "$pid"
finish
same "143" 143 $rc
ok "no failure file" test ! -e "$ML/output/failure"

# Ranks run as the platform's toolkit has them run: through smddprun and mpi4py, where these are installed.
if [ -e "$BIN/../lib/libtrainyard-pmix.so" ]; then
    begin ranks_of_a_library
    echo 'ranks of nothing' >"$ML/code/train.py"
    hyper '{"sagemaker_program": "train.py", "sagemaker_distributed_dataparallel_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "2", "x": "1"}'
    mkdir "$W/path"
    printf '#!/bin/sh\necho "smddprun: $*"\nexec "$@"\n' >"$W/path/smddprun"
    printf '#!/bin/sh\n[ "$1" = -c ] && exit 0\necho "python: $*, rank $RANK of $WORLD_SIZE"\n' >"$W/path/python"
    chmod +x "$W/path/smddprun" "$W/path/python"
    RUN_PATH=$W/path:$PATH run
    same "status" 0 $rc
    same "both ranks, through both" "python: -m mpi4py train.py -x 1, rank 0 of 2
python: -m mpi4py train.py -x 1, rank 1 of 2
smddprun: $W/path/python -m mpi4py train.py -x 1
smddprun: $W/path/python -m mpi4py train.py -x 1" "$(sed 's/^\[1,[0-9]*\]<stdout>://' "$W/out" | sort)"
    begin ranks_without_libraries
    echo 'ranks of nothing' >"$ML/code/train.py"
    hyper '{"sagemaker_program": "train.py", "sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "2"}'
    mkdir "$W/path"
    printf '#!/bin/sh\n[ "$1" = -c ] && exit 1\necho "python: $*"\n' >"$W/path/python"
    chmod +x "$W/path/python"
    RUN_PATH=$W/path:$PATH run
    same "as it is" "python: train.py
python: train.py" "$(sed 's/^\[1,[0-9]*\]<stdout>://' "$W/out")"
else
    skip "ranks through a library's runner" "the plug-in for PMIx was not built"
fi

finish_tests
