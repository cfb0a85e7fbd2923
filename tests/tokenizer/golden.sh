#!/bin/bash
# Ids of texts as Hugging Face's `tokenizers` gave them (make_golden.py), with one tokenizer of each kind; and that many
# threads at once give what one gives.
set -u
cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=0
build=${TY_BUILD:-build/release} golden=tests/golden/tokenizer
for ids in "$golden"/*.ids; do
    name=$(basename "$ids" .ids)
    if "$build/tools/tokenize" "$golden/$name.json" "$golden/texts" 2>&1 | cmp -s - "$ids"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name: line, expected, found"
        "$build/tools/tokenize" "$golden/$name.json" "$golden/texts" 2>&1 | diff "$ids" - | head -n 6 | cut -c1-300
    fi
done
# Pairs of texts with their types, texts in words with the numbers of these, and places of pieces, all cut to 24.
for file in "$golden"/*.pair "$golden"/*.words "$golden"/*.locate; do
    name=$(basename "$file") how=${file##*.} texts=texts
    [ "$how" = locate ] && texts=pieces
    if "$build/tools/tokenize" "$golden/${name%.*}.json" "$golden/$texts" "$how" 24 2>&1 | cmp -s - "$file"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name: line, expected, found"
        "$build/tools/tokenize" "$golden/${name%.*}.json" "$golden/$texts" "$how" 24 2>&1 | diff "$file" - | head -n 6 | cut -c1-300
    fi
done
# Texts are encoded by four threads together: nothing is torn under the thread sanitizer, nothing fails.
if "$build/tools/tokenize" "$golden/gpt2.json" "$golden/texts" all 4 3 >/dev/null; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "FAILED: four threads"
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
