#!/bin/bash
# The rules of the house that a machine can check: who includes whom, who may end the process, sizes, headers that compile
# alone. Each rule is one test; what breaks it is listed.
set -u
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0
house=$(find base container compiler dist estimator_spec entrypoint -name '*.[ch]' -o -name '*.def' 2>/dev/null | sort)
all=$(find base container compiler dist estimator_spec entrypoint tests bench examples -name '*.[ch]' 2>/dev/null | sort)

# rule TEXT: the offenders come on standard input. (lastpipe: in this shell, which counts.)
shopt -s lastpipe
rule() {
    local offenders
    offenders=$(cat)
    if [ -z "$offenders" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n%s\n' "$1" "$(printf '%s\n' "$offenders" | head -n 30)"
    fi
}

# includes FOLDER ALLOWED...: include lines of the folder with a path that begins with none of the allowed.
includes() {
    local folder=$1 allowed
    shift
    allowed=$(printf '|%s' "$@")
    find "$folder" -name '*.[ch]' -exec grep -HnE '^ *# *include *"' {} + 2>/dev/null |
        grep -vE "\"(${allowed#|})" | grep -vE '"[a-z0-9_]+\.(def|h)"'
}
includes base base/ | rule "base includes nothing but itself and libraries"
includes container base/ container/ | rule "container includes base and itself only"
includes compiler base/ compiler/ include/trainyard/ | rule "compiler includes base, itself and the public header only"
includes dist base/ dist/ include/trainyard/ | rule "dist includes base, itself and the public header only"
includes estimator_spec base/ estimator_spec/ 'container/config/paths\.h' |
    rule "estimator_spec includes base, itself and container/config/paths.h only"
grep -nE '^ *# *include *"entrypoint/' $(echo "$house" | grep -v ^entrypoint/) /dev/null |
    rule "nobody includes entrypoint"

# The arena may give up when memory is gone; it says so in its header.
grep -nE '(^|[^a-z_>.])(exit|_exit|_Exit|abort|quick_exit) *\(' $(echo "$house" | grep -v ^entrypoint/) /dev/null |
    grep -vE '^base/arena\.c:|^[^:]*:[0-9]+: *(/?\*|//)|/\*.*\(' | rule "only entrypoint ends the process"
grep -nE '\b(TODO|FIXME|XXX|HACK)\b|[Nn]ot yet implemented' $house /dev/null | rule "no loose ends in the sources"
grep -nP '\t' $all /dev/null | rule "no tabs"
awk 'length($0) > 120 {print FILENAME ":" FNR ": " length($0) " bytes"}' $all | rule "lines of at most 120"
grep -nE ' +$' $all /dev/null | rule "no blanks at the end of lines"
wc -l $house | awk '$2 != "total" && $1 > 700 {print $2 ": " $1 " lines"}' | rule "files of at most 700 lines"
# A function is what stands between a line "{" and a line "}".
awk '/^{/ {start = FNR} /^}/ && start {if (FNR - start > 80) print FILENAME ":" start ": " FNR - start " lines"; start = 0}' \
    $(echo "$house" | grep '\.c$') | rule "functions of at most 80 lines"
awk '/^{/ {start = FNR} /^}/ && start {print FNR - start; start = 0}' $(echo "$house" | grep '\.c$') | sort -n |
    awk '{n[NR] = $1} END {m = n[int((NR + 1) / 2)]; if (m >= 20) print "median " m " lines"}' |
    rule "half of the functions under 20 lines"
find tests -name '*.sh' ! -perm -u+x | rule "tests that may be run: the others are passed over"
find base container compiler dist estimator_spec entrypoint \( -name '*util*' -o -name '*misc*' -o -name '*common*' -o \
    -name '*helper*' \) -print 2>/dev/null | rule "one noun or one verb a file"
for header in $(echo "$house" | grep '\.h$'); do
    gcc -std=gnu17 -Wall -Wextra -Werror -I. -fsyntax-only -include "$header" -x c /dev/null 2>&1 | head -n 3
done | rule "every header compiles alone"
# The fuzz targets' compiler has none.
for source in $(grep -l 'pragma omp' $(echo "$house" | grep '\.c$')); do
    gcc -std=gnu17 -Wall -Wextra -Werror -Wno-unknown-pragmas -I. -fsyntax-only "$source" 2>&1 | grep error
done | rule "sources with OpenMP compile without it"
# What the compiler makes of OpenMP's pragmas: what the stand-in lacks does not link in the variant tsan, which is seldom built.
archive=${TY_BUILD:-build/release}/libtrainyard.a
{
    [ -e "$archive" ] || echo "$archive is missing: make lib"
    comm -23 <(nm -u "$archive" 2>/dev/null | grep -oE '\b(GOMP|omp)_\w+' | sort -u) \
        <(grep -E '^[a-z].*\(' tests/tsan/gomp.c | grep -oE '\b(GOMP|omp)_\w+' | sort -u)
} | rule "tests/tsan/gomp.c has all that is called of OpenMP's library"
for header in $(echo "$house" | grep '\.h$'); do
    grep -qE '^#ifndef TY_' "$header" || echo "$header"
done | rule "every header has an include guard"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
