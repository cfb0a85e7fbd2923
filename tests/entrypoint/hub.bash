# hub.bash - sourced by the scripts about Hugging Face's folders, behind harness.bash and job.bash: folders as the hub has
# them, of the golden networks.
#
#   WORDS=... N_SPECIAL=N  the tokenizer's vocabulary, of 23 words as the golden networks know; the first N are special
#   model NAME GOLDEN      a folder with that network and the tokenizer
#   ty ARGS...             `trainyard ARGS`; exit status in $rc, streams in $W/out and $W/err
GOLDEN=$PWD/tests/golden/huggingface

tokenizer() {
    python3 - "$N_SPECIAL" $WORDS <<'P'
import json, sys
n, words = int(sys.argv[1]), sys.argv[2:]
special = lambda i: {"id": i, "content": words[i], "single_word": False, "lstrip": False, "rstrip": False,
                     "normalized": False, "special": True}
print(json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [special(i) for i in range(n)],
    "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "decoder": None,
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
    "model": {"type": "WordLevel", "vocab": {w: i for i, w in enumerate(words)}, "unk_token": "[UNK]"}}))
P
}
model() {
    rm -rf "$1" && mkdir "$1" && cp "$GOLDEN/$2/config.json" "$GOLDEN/$2/model.safetensors" "$1"
    tokenizer >"$1/tokenizer.json"
    echo '{"model_max_length": 16}' >"$1/tokenizer_config.json"
}
ty() {
    timeout -k 5 600 "$BIN/trainyard" "$@" >"$W/out" 2>"$W/err" </dev/null
    rc=$?
}
