#!/bin/bash
# huggingface.sh - folders of Hugging Face: trained on texts without a recipe, with other heads and by recipes, on a GPU
# that tests/fakes stands in for; what is written beside the weights; what is refused.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/gpu.bash
. tests/entrypoint/trained.bash
. tests/entrypoint/hub.bash
folder huggingface || exit 1
gpu() { LD_LIBRARY_PATH=$FAKES/gpu:$FAKES TY_FAKE_GPUS=${GPUS:-$CARD} "$@"; }

WORDS="[PAD] [CLS] [SEP] [UNK] the film is a story of good bad fine poor play and music with no plot great dull it"
N_SPECIAL=4
texts() { # the words good, great, fine make a text positive
    awk 'BEGIN { srand(5); split("good great fine bad poor dull", m); split("the film is a story of play and music", f)
        print "text,label"; for (i = 0; i < '"${1:-240}"'; i++) { y = i % 2; t = ""; n = 2 + int(rand() * 5); at = int(rand() * n)
        for (k = 0; k < n; k++) t = t (k ? " " : "") (k == at ? m[(y ? 0 : 3) + 1 + int(rand() * 3)] : f[1 + int(rand() * 9)])
        print t "," (y ? "yes" : "no") } }'
}
config() { python3 -c 'import json, sys; c = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }
model bert bert-words
texts >texts.csv
not_0() { ! "$@"; }

# ---- without a recipe ----
rm -rf run
ty train bert --architecture=ForSequenceClassification --labels=2 --data=texts.csv --lr=0.01 --epochs=15 --device=cpu
same "a new head on texts" 0 $rc
has "says what starts anew" "$W/err" "start anew: bert.pooler.dense.weight"
has "says which column is the text" "$W/err" 'column 0, "text", becomes up to 16 tokens'
has "trains as Hugging Face's Trainer" "$W/out" "lr=0.009044444"
ok "it learned" awk '/^step=450 / {split($3, l, "="); seen = 1; exit !(l[2] < 0.4)} END {if (!seen) exit 1}' "$W/out"
same "files" "config.json model.json model.safetensors preprocessing.json tokenizer.json tokenizer_config.json" \
    "$(ls run/model | xargs)"
same "the class" BertForSequenceClassification "$(config run/model/config.json 'c["architectures"][0]')"
same "its classes, by the data's names" "{'0': 'no', '1': 'yes'}" "$(config run/model/config.json 'c["id2label"]')"
same "what else was there" 2 "$(config run/model/config.json 'c["type_vocab_size"]')"
ok "tokenizer" cmp bert/tokenizer.json run/model/tokenizer.json
ok "its settings" cmp bert/tokenizer_config.json run/model/tokenizer_config.json
has "the list" run/model/model.json '"companion"'

ty run run/model --data texts.csv --output-dir predictions --json
same "applied to texts" 0 $rc
same "their classes" 240 "$(wc -l <predictions/logits.labels.txt)"
tail -n +2 texts.csv | cut -d, -f2 | paste - predictions/logits.labels.txt | awk '$1 != $2 { n++ } END { exit n > 5 }'
same "which are those of the data" 0 $?

weights >first
ty train run/model --data=texts.csv --max_steps=2 --output-dir=again --device=cpu
same "trained on" 0 $rc
lacks "with all its weights" "$W/err" "start anew"
ok "which moved" not_0 cmp -s run/model/model.safetensors again/model/model.safetensors

# ---- by a recipe ----
cat >train.yaml <<'Y'
model: bert
architecture: BertForTokenClassification
labels: 3
inputs: {input_ids: ids}
loss: {softmax_cross_entropy: {labels: tags}}
optimizer: {sgd: {lr: 0.1}}
batch_size: 8
max_steps: 3
log_every: 1
data:
  train:
    path: texts.csv
    shuffle: false
    fields:
      ids: {columns: text, tokenizer: bert/tokenizer.json, max_length: 8}
      tags: {columns: text, tokenizer: bert/tokenizer.json, max_length: 8, tokens: types}
Y
train --device=cpu
same "inputs that are made up" 0 $rc
has "the recipe's optimizer" "$W/out" "lr=0.1"
numbers >made
cat >>train.yaml <<'Y'
      mask: {columns: text, tokenizer: bert/tokenizer.json, max_length: 8, tokens: mask}
Y
train --device=cpu --inputs.attention_mask=mask
same "inputs that are given" 0 $rc
numbers >given
ok "padding masks itself" cmp -s made given
gpu train --device=gpu --inputs.attention_mask=mask
same "on a GPU" 0 $rc
numbers >gpu
close() { paste -d' ' "$1" "$2" | sed 's/[a-z_]*=//g' | awk '{ d = $3 - $8; if (d < 0) d = -d; if (d > 1e-4) bad = 1; n++ } END { exit bad || n != 3 }'; }
ok "the same losses" close given gpu

sed '/^inputs:/d; s/ids: {columns/input_ids: {columns/; /^ *mask:/d' train.yaml >some.yaml
ty train some.yaml --max_steps=3 --log_every=1 --output-dir=run --device=cpu --fresh
same "inputs that the data have" 0 $rc
numbers >some
ok "the others are made up" cmp -s made some

# ---- the next word ----
model gpt gpt2-words
awk -F, 'NR > 1 { printf "{\"text\": \"%s\", \"label\": 1}\n", $1 }' texts.csv >texts.jsonl
rm -rf run
ty train gpt --data=texts.jsonl --lr=0.01 --epochs=2 --device=cpu
same "a text foretells itself" 0 $rc
has "labels" "$W/err" "the labels are the tokens that follow"
ok "it learned" awk '/^step=/ {split($3, l, "="); if (!first) first = l[2]; last = l[2]} END {exit !(last < 0.8 * first)}' "$W/out"
cat >next.yaml <<'Y'
model: gpt
data:
  train:
    path: texts.csv
    fields:
      input_ids: {columns: text, tokenizer: gpt/tokenizer.json, max_length: 6}
      labels: {columns: text, tokenizer: gpt/tokenizer.json, max_length: 6, tokens: next}
Y
ty data head texts.csv --recipe=next.yaml
same "fields as a recipe has them" 0 $rc
awk '$1 == "input_ids" { n = split($0, ids) }
    $1 == "labels" { rows++; for (i = 3; i <= n; i++) if ($i != (i < n && ids[i + 1] > 0 ? ids[i + 1] : -100)) bad++ }
    END { exit bad > 0 || rows < 4 }' "$W/out"
same "each token's label is the next one" 0 $?
sed -i '/^model:/a inputs: {input_ids: input_ids}' next.yaml
ty train next.yaml --max_steps=3 --log_every=1 --device=cpu --output-dir=causal
same "padding behind a text" 0 $rc
numbers >without
cat >>next.yaml <<'Y'
      mask: {columns: text, tokenizer: gpt/tokenizer.json, max_length: 6, tokens: mask}
Y
ty train next.yaml --inputs.attention_mask=mask --max_steps=3 --log_every=1 --device=cpu --output-dir=causal --fresh
same "told by a mask" 0 $rc
numbers >with
ok "is seen by no word" close without with
model llama llama-words
ty train llama --data=texts.jsonl --lr=0.01 --max_steps=3 --device=cpu --output-dir=of-llama
same "so does Llama" 0 $rc
ty model convert llama llama.onnx --dim sequence=4
same "as ONNX" 0 $rc

# ---- adapters ----
merged() { # BASE RUN: the base's weights with the adapter's files are those of the trained model
    python3 - "$1/model.safetensors" "$2/model/adapter" "$2/model/model.safetensors" <<'P'
import json, struct, sys
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n]); head.pop("__metadata__", None)
    return {k: (v["shape"], struct.unpack(f"<{(v['data_offsets'][1] - v['data_offsets'][0]) // 4}f",
            data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])) for k, v in head.items()}
base, new, got = load(sys.argv[1]), load(sys.argv[2] + "/adapter_model.safetensors"), load(sys.argv[3])
config = json.load(open(sys.argv[2] + "/adapter_config.json"))
r, scale, met = config["r"], config["lora_alpha"] / config["r"], 0
for module in config["target_modules"]:
    (_, a), (_, b) = (new.pop(f"base_model.model.{module}.lora_{x}.weight") for x in "AB")
    shape, w = base[module + ".weight"]
    for i in range(shape[0]):
        for j in range(shape[1]):
            o, k = (j, i) if config["fan_in_fan_out"] else (i, j)
            n_in = len(a) // r
            want = w[i * shape[1] + j] + scale * sum(b[o * r + q] * a[q * n_in + k] for q in range(r))
            assert abs(want - got[module + ".weight"][1][i * shape[1] + j]) < 1e-5, (module, i, j)
            met += 1
for name, (shape, w) in new.items():
    assert got[name.removeprefix("base_model.model.")] == (shape, w), name
    assert name.removeprefix("base_model.model.").rsplit(".", 1)[0] in config["modules_to_save"], name
print(met, len(new))
P
}
LORA="--lora.rank=2 --lora.alpha=6 --export.adapter=true --max_steps=5 --lr=0.05 --device=cpu"
model tagged bert-classes
ty train tagged --data=texts.csv $LORA '--lora.weights=["*.query.weight", "*.value.weight"]' '--lora.train=["classifier.*"]' \
    --output-dir=narrow
same "adapters as files" 0 $rc
same "are what was merged" "256 2" "$(merged tagged narrow)"
has "the list" narrow/model/model.json '"adapter/adapter_model.safetensors"'
ty model diff tagged narrow/model
same "all weights are there" 1 $rc
has "most as they were" "$W/out" "35 weights the same, 6 differ"
ty train gpt --data=texts.jsonl $LORA '--lora.weights=["*.c_attn.weight"]' --output-dir=turned
same "of weights that are turned" 0 $rc
same "are what was merged, turned" "384 0" "$(merged gpt turned)"
ty train tagged --data=texts.csv --export.adapter=true --device=cpu
same "adapters without lora" 78 $rc
ty train "$OLDPWD/examples/digits/model.onnx" --data=texts.csv $LORA '--lora.weights=["*"]' --loss=softmax_cross_entropy
ok "adapters of another format" test $rc != 0

# ---- pictures ----
rm -rf vit run && mkdir -p vit pictures/dark pictures/light
cp "$GOLDEN/vit-classes/config.json" "$GOLDEN/vit-classes/model.safetensors" vit
echo '{"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.25, 0.5], "size": {"height": 8, "width": 8}}' >vit/preprocessor_config.json
python3 - <<'P'
import random
random.seed(4)
for i in range(48):
    base = (30, 200)[i % 2]
    open(f"pictures/{('dark', 'light')[i % 2]}/{i}.ppm", "wb").write(
        b"P6\n8 8\n255\n" + bytes(base + random.randrange(40) for _ in range(192)))
P
ty train vit --labels=2 --data=pictures --lr=0.01 --epochs=6 --device=cpu
same "pictures in folders" 0 $rc
has "prepared as the folder says" run/model/preprocessing.json '"mean": [0.5, 0.4, 0.3]'
ok "it learned" awk '/^step=/ {split($3, l, "="); last = l[2]} END {exit !(last < 0.2)}' "$W/out"
ok "and for whoever applies it" cmp vit/preprocessor_config.json run/model/preprocessor_config.json

# ---- weights in several files, of 16 bits, under names of old and without the network's own ----
python3 - bert parted <<'P'
import json, os, struct, sys
data = open(sys.argv[1] + "/model.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + n]); head.pop("__metadata__", None)
os.makedirs(sys.argv[2])
names, where = sorted(head), {}
for part, chosen in enumerate((names[::2], names[1::2])):
    body, table = b"", {}
    for name in chosen:
        a, b = head[name]["data_offsets"]
        half = b"".join(data[8 + n + i + 2:8 + n + i + 4] for i in range(a, b, 4))
        old = name.removeprefix("bert.").replace("LayerNorm.weight", "LayerNorm.gamma")
        old = old.replace("LayerNorm.bias", "LayerNorm.beta")
        table[old] = {"dtype": "BF16", "shape": head[name]["shape"], "data_offsets": [len(body), len(body) + len(half)]}
        body += half
        where[old] = f"model-{part}.safetensors"
    text = json.dumps(table).encode()
    text += b" " * (-len(text) % 8)
    open(f"{sys.argv[2]}/model-{part}.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body)
json.dump({"weight_map": where}, open(sys.argv[2] + "/model.safetensors.index.json", "w"))
P
cp bert/config.json parted/
ty model convert parted parted.safetensors
same "read" 0 $rc
lacks "all of them" "$W/err" "start anew"
ty model diff parted bert --tolerance 0.02
same "alike" 0 $rc
ty model diff parted bert
same "but rounded" 1 $rc

# ---- what is refused ----
refuse() { # WHAT STATUS WORDS FOLDER ARGUMENT...
    ty check "${@:4}"
    same "$1" $2 $rc
    cat "$W/err" >>"$W/out"
    has "$1: in words" "$W/out" "$3"
}
refuse "an unknown head" 65 "known are BertModel, BertForMaskedLM" bert --architecture=BertForMultipleChoice
refuse "classes where there are none" 78 "BertForMaskedLM has no classes" bert --labels=3
cp -r again/model classes && cp "$GOLDEN/bert-classes/config.json" "$GOLDEN/bert-classes/model.safetensors" classes/
sed -i 's/"3": "LABEL_3"/"3": "LABEL_3", "4": "LABEL_4"/' classes/config.json
refuse "a head of another size" 65 "is f32[5,8] by config.json and f32[4,8] in the file" classes
has "with advice" "$W/out" "labels: N"
ty check classes --labels=5
same "unless it is asked for" 0 $rc
echo '{"model_type": "whisper"}' >classes/config.json
refuse "an unknown network" 65 'the network "whisper"' classes
sed 's/"hidden_size": 8/"hidden_size": 9/' bert/config.json >classes/config.json
refuse "heads that do not divide" 65 "heads that do not divide the numbers of a position" classes
sed 's/"vocab_size": 23/"vocab_size": 0/' bert/config.json >classes/config.json
refuse "a size of nothing" 65 'key "vocab_size": expected a size of at least 1, found 0' classes
sed 's/"hidden_act": "gelu"/"hidden_act": "bend"/' bert/config.json >classes/config.json
refuse "an unknown activation" 65 'the activation "bend"' classes
sed 's/"num_hidden_layers": 2/"num_hidden_layers": 3/' bert/config.json >classes/config.json
cp bert/model.safetensors classes/
refuse "weights of fewer layers" 65 'weight "bert.encoder.layer.2.attention.self.query.weight" is not in the files' classes
refuse "a text beyond the positions" 65 "texts of 17 tokens, and the table position_embeddings has 16 positions" bert --dim sequence=17
rm classes/model.safetensors
touch classes/pytorch_model.bin
refuse "pickled weights" 65 "pytorch_model.bin" classes
rm classes/pytorch_model.bin
echo '{"weight_map": {"a": "../bert/model.safetensors"}}' >classes/model.safetensors.index.json
refuse "weights from elsewhere" 65 "expected the name of a safetensors file beside this one" classes
rm classes/model.safetensors.index.json
ty check classes
same "no weights at all" 0 $rc
has "which start anew" "$W/err" "there are no weights: all"
from_scratch() { # SEED
    ty train classes --architecture=ForSequenceClassification --labels=2 --data=texts.csv --device=cpu --lr=0 \
        --max_steps=1 --seed=$1 --output-dir=scratch-$1
    same "from scratch, seed $1" 0 $rc >&2
    weights scratch-$1
    rm -r scratch-$1
}
from_scratch 1 >one
from_scratch 1 >again-one
from_scratch 2 >two
ok "from the seed" cmp -s one again-one
ok "and no other" not_0 cmp -s one two
ty check "$OLDPWD/examples/digits/model.onnx" --architecture=BertModel
ok "a class of another format" test $rc != 0
sed 's/,no$/,maybe/; 3s/,[a-z]*$/,no/' texts.csv >three.csv
ty train bert --architecture=ForSequenceClassification --data=three.csv --device=cpu --labels=2
same "more classes than the head has" 65 $rc
has "with advice" "$W/err" '`labels: 3`'
awk 'BEGIN { print "a,b,label"; for (i = 0; i < 20; i++) print "the film,a story,yes" }' >two.csv
ty train bert --architecture=ForSequenceClassification --labels=2 --data=two.csv --device=cpu
same "two texts" 78 $rc
has "in words" "$W/err" "several texts, of which none is called"
ty train bert --architecture=ForSequenceClassification --labels=2 --data="$OLDPWD/tests/golden/words/phrases.parquet" --fresh --max_steps=1 --batch_size=4 --device=cpu
same "a text beside its words" 0 $rc
has "is the text" "$W/err" 'feature 1, "phrase", becomes up to 16 tokens'
finish_tests
