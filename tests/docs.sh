#!/bin/bash
# The three documents against the tree and the programs: paths and make targets exist, every folder is on the tour, commands and
# options of the README are accepted, its recipe loads, and the op that CONTRIBUTING walks through compiles and passes its tests.
set -u
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0 skipped=0
docs='README.md ARCHITECTURE.md CONTRIBUTING.md'
bin=${TY_BIN:-build/bin} variant=${TY_VARIANT:-release}
work=$(mktemp -d "${TMPDIR:-/tmp}/docs-XXXXXX")
trap 'rm -rf "$work"' EXIT

shopt -s lastpipe nullglob
# rule TEXT: the offenders come on standard input.
rule() {
    local offenders
    offenders=$(cat)
    if [ -z "$offenders" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n%s\n' "$1" "$(printf '%s\n' "$offenders" | head -n 40)"
    fi
}
skip() {
    skipped=$((skipped + 1))
    printf 'skip: %s\n' "$1"
}

# blocks LANGUAGE FILE...: the lines of the fenced blocks of that language.
blocks() {
    awk -v want="\`\`\`$1" '/^```/ {on = !on && $0 == want; next} on' "${@:2}"
}
# words FILE: what stands between backticks in running text.
words() {
    awk '/^```/ {fenced = !fenced; next} !fenced' "$1" | grep -o '`[^`]*`' | tr -d '`'
}

# ---- paths and targets

# A path is a word that begins with a folder of ours, or a bare file name with an ending of ours.
top='base|container|compiler|dist|docker|entrypoint|estimator_spec|examples|bench|tests|include|\.ci'
for doc in $docs; do
    words "$doc" | grep -E "^($top)(/|\$)|^[A-Za-z_.-]+\.(c|h|def|md|sh)\$" | grep -vE ' |NAME|AREA' | sort -u | while read -r path; do
        case $path in
        */*) compgen -G "$path" >/dev/null ;;
        *) [ -n "$(find . -path ./build -prune -o -name "$path" -print -quit)" ] ;;
        esac || echo "$doc: $path"
    done
done | rule "every path named in the documents exists"
for doc in $docs; do
    grep -oE '\]\([^)#:]+' "$doc" | sed 's/^](//' | while read -r path; do
        [ -e "$path" ] || echo "$doc: $path"
    done
done | rule "every link leads somewhere"
for doc in $docs; do
    { words "$doc"; blocks sh "$doc"; } | grep -oE '^make( [a-z_]+=[^ ]*)*( [a-z-]+)?' | awk '{print $NF}' |
        grep -vE '=|^make$' | sort -u | while read -r target; do
        grep -qE "^$target:" Makefile || echo "$doc: make $target"
    done
done | rule "every make target named in the documents exists"

# Folders that hold something, but not those inside an area of tests, which the area's own files explain.
find . \( -name .git -o -name build -o -path './tests/*/*' \) -prune -o -type f -print | sed 's|^\./||' | grep / |
    sed 's|/[^/]*$||' | grep -v '^\.' | sort -u | while read -r folder; do
    name=${folder#tests/}
    grep -qE "\`($folder|$name)/\`" ARCHITECTURE.md || echo "$folder"
done | rule "every folder is named in ARCHITECTURE.md"
blocks '' ARCHITECTURE.md | head -n 8 | grep -oE '[a-z_]+/' | while read -r folder; do
    [ -d "$folder" ] || echo "$folder"
done | rule "the drawing shows folders that exist"
for doc in $docs; do
    { words "$doc"; cat "$doc"; } | grep -oE '\b(TRAINYARD|SAGEMAKER|TY)_[A-Z0-9_]+' | sort -u | while read -r name; do
        grep -rqF "$name" --include='*.[ch]' --include='*.def' --include='*.sh' --include=run base container compiler dist entrypoint tests ||
            [[ $name == TY_OP_TAN ]] || echo "$doc: $name"
    done
done | rule "every variable and macro named in the documents is in the sources"

for doc in $docs; do
    words "$doc" | grep -E '^(graph|kernels)\.[a-z0-9.]+$' | sort -u | while read -r name; do
        grep -qF "\"$name\"" compiler/compile.c || echo "$doc: $name"
    done
done | rule "dumps are called as the documents say"
awk '/compile_passes\[\]/ {on = 1} /^};/ {on = 0} on' compiler/compile.c | grep -oE 'ty_pass_[a-z0-9_]+' | while read -r pass; do
    pass=${pass%_tf32} pass=${pass%_gpu} # the same file, for another target
    pass=${pass/straighten/layout}       # the same turns, the other way round
    grep -qF "compiler/passes/${pass#ty_pass_}.c" ARCHITECTURE.md || echo "$pass"
done | rule "the passes of compile.c are on the tour"

# ---- the programs

# Commands of the README that begin with trainyard, without comments.
blocks sh README.md | sed -n 's/ *#.*//; s/^trainyard /trainyard /p' >"$work/commands"
[ -s "$work/commands" ] || echo "README shows no command" | rule "the README shows commands"
if [ -x "$bin/trainyard" ] && [ -x "$bin/train" ]; then
    while read -r _ command rest; do
        "$bin/trainyard" help "$command" >"$work/help" 2>/dev/null || echo "trainyard $command: no such command"
        settings=()
        for word in $rest; do
            [[ $word == --* ]] || continue
            grep -qE "^  ${word%%=*}( |\$)" "$work/help" && continue
            [[ $command =~ ^(train|evaluate)$ && $word == *=* ]] && settings+=("$word") && continue
            echo "trainyard $command: its help has no ${word%%=*}"
        done
        [ ${#settings[@]} = 0 ] || "$bin/trainyard" train examples/digits/train.yaml "${settings[@]}" --origin >/dev/null 2>"$work/err" ||
            { echo "trainyard train ${settings[*]}:" && cat "$work/err"; }
    done <"$work/commands" | rule "commands and options of the README are accepted"
    for word in $(words README.md | grep -oE '^--[a-z-]+$' | sort -u); do
        [ "$word" = --target ] && continue
        for command in train check plan profile graph submit status logs job local; do "$bin/trainyard" $command --help; done | grep -qE "^  $word( |\$)" || echo "$word"
    done | rule "options named in the README are options of trainyard train, check, plan, profile, graph, submit, status, logs, job or local"
    # Every example recipe of the documents loads; the path of the model is not looked at yet.
    blocks yaml README.md >"$work/train.yaml"
    { [ -s "$work/train.yaml" ] || echo "the README shows no recipe"; "$bin/trainyard" train "$work/train.yaml" --origin 2>&1 >/dev/null; } |
        rule "the recipe of the README loads"
    blocks c README.md | awk '/^#include <stdio.h>/ {on = 0} /^#include <trainyard.model.h>/ {on = 1} on' >"$work/model.c"
    blocks c README.md | awk '/^#include <trainyard.model.h>/ {on = 0} /^#include <stdio.h>/ {on = 1} on' >"$work/ranks.c"
    lib=$(realpath "$bin/../lib")
    if [ "$variant" = release ]; then
        { gcc -Wall -Wextra -Werror -Iinclude -o "$work/ranks" "$work/ranks.c" "-L$lib" -ltrainyard "-Wl,-rpath,$lib" &&
            "$work/ranks" >"$work/out" && grep -qx 'rank 0 of 1: 0' "$work/out"; } >"$work/err" 2>&1 || cat "$work/err" "$work/ranks.c"
    fi | rule "the program of many ranks of the README runs"
    { "$bin/trainyard" check "$work/model.c" --batch 4 >"$work/err" 2>&1 || cat "$work/err"; } | rule "the C model of the README can be trained"
    "$bin/trainyard" help recipe >"$work/recipe" 2>&1
    # The first column of the table names keys, the second kinds.
    awk '/^## The recipe/ {on = 1} /^## In a container/ {on = 0} on && /^\| `/' README.md | grep -o '`[a-z_.]*`' | tr -d '`' |
        sort -u | while read -r key; do
        grep -qE "(^| )${key##*.}([ :;,]|\$)" "$work/recipe" || echo "$key"
    done | rule "keys and kinds of the README's table are those of \`trainyard help recipe\`"
    awk '/are aliases/,/^$/' README.md | grep -o '`[a-z_]*`' | tr -d '`' | while read -r alias; do
        grep -qE "^  $alias +" "$work/recipe" || echo "$alias"
    done | rule "aliases of the README are aliases"
    words README.md | sed -n 's/^trainyard explain //p' | while read -r code; do
        "$bin/trainyard" explain "$code" >/dev/null 2>&1 || echo "$code"
    done | rule "error codes of the README are explained"
    words README.md | grep -oE '^trainyard [a-z]+( [a-z]+)?$' | while read -r _ command topic; do
        "$bin/trainyard" help "${topic:-$command}" >/dev/null 2>&1 || echo "trainyard $command $topic"
    done | rule "commands named in the README exist"
else
    skip "the README's commands: $bin/trainyard is not built"
fi
grep -oE '(training=torch[A-Za-z.]*|do_constant_folding=[A-Za-z]*|opset_version=17|dynamo=False)' README.md | sort -u | while read -r setting; do
    grep -qF "$setting" examples/digits/model.py || echo "$setting"
done | rule "the README exports as examples/digits/model.py does"

# ---- the walk-through

# Cuts the diff blocks into hunks: N.file, N.old, N.new. "--- FILE" and "@@" begin one.
cut_hunks() {
    blocks diff CONTRIBUTING.md | awk -v out="$1" '
        function begin(f) {n++; file = f; printf "%s\n", file >(out "/" n ".file"); printf "" >(out "/" n ".old"); printf "" >(out "/" n ".new")}
        /^--- / {begin($2); next}
        /^@@/ {begin(file); next}
        {line = substr($0, 2)}
        /^[ -]/ {print line >(out "/" n ".old")}
        /^[ +]/ {print line >(out "/" n ".new")}
        END {print n + 0}'
}
# apply OLD NEW FILE: replaces the one place where the lines of OLD stand by those of NEW.
apply() {
    awk -v old="$1" -v new="$2" '
        BEGIN {while ((getline line <old) > 0) want[++n_want] = line}
        {have[NR] = $0}
        END {
            for (i = 1; i + n_want - 1 <= NR; i++) {
                for (k = 1; k <= n_want && have[i + k - 1] == want[k]; k++) ;
                if (k > n_want) {at = i; n_found++}
            }
            if (n_found != 1) {print n_found + 0 " places" >"/dev/stderr"; exit 1}
            for (i = 1; i < at; i++) print have[i]
            while ((getline line <new) > 0) print line
            for (i = at + n_want; i <= NR; i++) print have[i]
        }' "$3" >"$3.new" && mv "$3.new" "$3"
}
# Applies all hunks to the copy; names those that do not fit.
apply_all() {
    local n i file
    mkdir "$work/hunks" && n=$(cut_hunks "$work/hunks")
    [ "$n" -gt 7 ] || echo "CONTRIBUTING shows $n changes"
    for ((i = 1; i <= n; i++)); do
        file=$(cat "$work/hunks/$i.file")
        apply "$work/hunks/$i.old" "$work/hunks/$i.new" "$work/tree/$file" 2>"$work/err" ||
            { echo "$file: $(cat "$work/err") for:"; cat "$work/hunks/$i.old"; }
    done
}
# Sources that the changes touch, if they are more than four: tests are not counted, nor who imports the op.
too_many_sources() {
    diff -rq compiler "$work/tree/compiler" | awk '{print $2}' | grep -v '^compiler/import/' >"$work/touched"
    [ "$(wc -l <"$work/touched")" -le 4 ] || cat "$work/touched"
}
compile_tree() {
    cd "$work/tree" || return 1
    find base compiler -name '*.c' | xargs -P 2 -I FILE sh -c '
        gcc -std=gnu17 -I. -O0 -g0 -fopenmp -Wall -Wextra -Werror -c FILE -o "$(echo FILE | tr / _).o" 2>&1 | head -n 5'
    gcc -std=gnu17 -I. -O0 -Wall -Wextra -Werror -c tests/unit/ops_elementwise.c -o test_ops.o
    gcc -std=gnu17 -I. -O0 -Wall -Wextra -Werror -c tests/tools/onnx_backend.c -o test_backend.o
    gcc -std=gnu17 -I. -O0 -fopenmp -Wall -Wextra -Werror -c tests/unit/compiled.c -o test_compiled.o
    ar rcs lib.a base_*.o compiler_*.o
    for test in ops backend compiled; do
        gcc -fopenmp -rdynamic -Wl,--as-needed -o "test_$test" "test_$test.o" lib.a -lcmocka -ldnnl -lyaml -lcrypto -lz -lm -ldl
    done
}
run_tests() {
    cd "$work/tree" || return 1
    local cases=/usr/share/libonnx-testdata/data/node/test_tan
    for test in ops compiled; do
        "./test_$test" >"$test.log" 2>&1 || { echo "test_$test:"; grep -v '^\[ RUN\|^\[       OK' "$test.log" | tail -n 20; }
    done
    if [ -d "$cases" ]; then
        ./test_backend "$cases" "${cases}_example" >backend.log 2>&1 || { echo "onnx_backend:"; tail -n 20 backend.log; }
    fi
}
if [ "$variant" != release ]; then
    skip "the walk-through of CONTRIBUTING: compiled in the release variant only"
else
    mkdir -p "$work/tree/tests/unit" "$work/tree/tests/tools"
    cp -r base compiler include "$work/tree/"
    cp tests/unit/*.[ch] "$work/tree/tests/unit/" && cp tests/tools/*.[ch] "$work/tree/tests/tools/"
    apply_all | rule "the changes that CONTRIBUTING shows fit the tree"
    too_many_sources | rule "an op touches at most four sources, beside its tests and who imports it"
    (compile_tree 2>&1) | rule "with them it compiles without a warning"
    (run_tests 2>&1) | rule "and the new op passes its tests: values, gradient, compiled code, ONNX's own cases"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
