#!/bin/bash
# text_tasks.sh - what Hugging Face's networks are trained for on texts: pairs, hidden words, texts made of texts, tags of
# words, answers. Without a recipe and with one, streamed, resumed, applied. That losses are those of Transformers is for
# tests/import/hugging_face_folders.py.
cd "$(dirname "$0")/../.." || exit 1
. tests/entrypoint/harness.bash
. tests/entrypoint/job.bash
. tests/entrypoint/trained.bash
. tests/entrypoint/hub.bash
folder text-tasks || exit 1

WORDS="[PAD] [CLS] [SEP] [UNK] [MASK] the film is a story of good bad fine poor play and music with no plot great dull"
N_SPECIAL=5
not_0() { ! "$@"; }
learned() { awk '/^step=/ { split($3, l, "="); if (!first) first = l[2]; last = l[2] } END { exit !(last < '"$1"' * first) }' "$W/out"; }
head_of() { ty data head "$@"; }
model bert bert-words

# ---- pairs: the second text says the same as the first, or the opposite ----
python3 - <<'P'
import json, random
random.seed(4)
good, bad, fill = "good fine great".split(), "bad poor dull".split(), "the film is a story of play and music".split()
with open("pairs.csv", "w") as csv, open("pairs.jsonl", "w") as lines:
    csv.write("premise,hypothesis,label\n")
    for i in range(240):
        sides = [good, bad] if i % 2 else [bad, good]
        other = sides[0] if i // 2 % 2 else sides[1]
        a = " ".join(random.sample(fill, random.randint(0, 3)) + [random.choice(sides[0])])
        b = " ".join([random.choice(other)] + random.sample(fill, random.randint(0, 3)))
        label = "same" if other is sides[0] else "opposite"
        csv.write(f"{a},{b},{label}\n")
        lines.write(json.dumps({"premise": a, "hypothesis": b, "label": label}) + "\n")
P
rm -rf run
ty train bert --architecture=ForSequenceClassification --labels=2 --data=pairs.csv --lr=0.003 --epochs=25 --device=cpu
same "a pair without a recipe" 0 $rc
has "says which texts it is" "$W/err" 'column 0, "premise", and column 1, "hypothesis", together become up to 16 tokens'
ok "what is in both is learned" learned 0.5
ty run run/model --data pairs.csv --output-dir predictions --json
same "applied to pairs" 0 $rc
tail -n +2 pairs.csv | cut -d, -f3 | paste - predictions/logits.labels.txt | awk '$1 != $2 { n++ } END { exit n > 24 }'
same "whose classes are those of the data" 0 $?
has "the pair stays with the model" run/model/preprocessing.json '"pair": "1"'
ok "classes have the data's names" python3 -c 'import json; assert json.load(open("run/model/config.json"))["label2id"] == {"opposite": 0, "same": 1}'

cat >pairs.yaml <<'Y'
model: bert
architecture: ForSequenceClassification
labels: 2
optimizer: {sgd: {lr: 0.1}}
batch_size: 8
max_steps: 6
log_every: 1
data:
  train:
    path: pairs.jsonl
    shuffle: false
    fields:
      input_ids: {member: premise, pair: hypothesis, tokenizer: bert/tokenizer.json, max_length: 10}
      token_type_ids: {member: premise, pair: hypothesis, tokenizer: bert/tokenizer.json, max_length: 10, tokens: types}
      label: {classes: [opposite, same]}
Y
ty train pairs.yaml --device=cpu --output-dir=random
same "a pair of a record" 0 $rc
numbers >random.numbers
ty train pairs.yaml --device=cpu --output-dir=stream --data.train.access=stream
same "streamed" 0 $rc
numbers >stream.numbers
ok "the same losses" cmp random.numbers stream.numbers
sed 's/pairs.jsonl/pairs.csv/; s/member: premise/columns: premise/' pairs.yaml >table.yaml
ty train table.yaml --device=cpu --output-dir=table
same "a pair of columns" 0 $rc
numbers >table.numbers
ok "the same losses again" cmp random.numbers table.numbers
sed -i 's/max_length: 10/max_length: 16/; s/shuffle: false/length_buckets: auto/' table.yaml
ty train table.yaml --device=cpu --output-dir=short
same "in shorter steps" 0 $rc

# ---- hidden words ----
cut -d, -f1 pairs.csv | tail -n +2 >texts
rm -rf run
ty train bert --data=texts --data.train.format=lines --lr=0.003 --epochs=25 --device=cpu
same "hidden words without a recipe" 0 $rc
has "says so" "$W/err" "15 % of them are hidden, others in each epoch"
ok "they are found" learned 0.85
echo "the film is [MASK]" >asked
ty run run/model --data asked --output-dir predictions --json
same "asked for a word" 0 $rc
ty run run/model --data asked --output-dir again --json
ok "nothing else is hidden then" cmp predictions/logits.npy again/logits.npy
cat >hidden.yaml <<'Y'
model: bert
batch_size: 16
epochs: 4
schedule: {constant: {}}
seed: 11
checkpoint: {every: 5 steps}
log_every: 1
data:
  train:
    path: texts
    format: lines
    fields:
      input_ids: {member: text, tokenizer: bert/tokenizer.json, max_length: 10, tokens: masked, hidden: 0.3}
      attention_mask: {member: text, tokenizer: bert/tokenizer.json, max_length: 10, tokens: mask}
      labels: {member: text, tokenizer: bert/tokenizer.json, max_length: 10, tokens: hidden, hidden: 0.3}
  validation: {split: 0.2}
evaluate_every: 1 epoch
Y
ty train hidden.yaml --device=cpu --output-dir=whole
same "hidden by a recipe" 0 $rc
numbers >whole.numbers
ty train hidden.yaml --device=cpu --output-dir=parts --max_steps=17
ty train hidden.yaml --device=cpu --output-dir=parts
same "resumed" 0 $rc
ok "hides what it would have hidden" cmp whole/model/model.safetensors parts/model/model.safetensors
ty train hidden.yaml --device=cpu --output-dir=other --seed=12
numbers >other.numbers
ok "another seed hides others" not_0 cmp -s whole.numbers other.numbers
head_of texts --recipe=hidden.yaml
same "a look at them" 0 $rc

# ---- a text made of another ----
model t5 t5-words
sed 's/premise,hypothesis,label/document,summary,label/' pairs.csv | cut -d, -f1,2 >answers.csv
rm -rf run
ty train t5 --data=answers.csv --lr=0.01 --epochs=5 --device=cpu
same "texts of texts without a recipe" 0 $rc
has "says which" "$W/err" 'column 0, "document", becomes up to'
has "and what is made of it" "$W/err" 'the labels are the tokens of column 1, "summary"'
ok "it learns" learned 0.8
cat >answers.yaml <<'Y'
model: t5
data:
  train:
    path: answers.csv
    fields:
      input_ids: {columns: document, tokenizer: t5/tokenizer.json, max_length: 8}
      decoder_input_ids: {columns: summary, tokenizer: t5/tokenizer.json, max_length: 8, tokens: previous, start: 4}
      labels: {columns: summary, tokenizer: t5/tokenizer.json, max_length: 8, pad: -100}
Y
head_of answers.csv --recipe=answers.yaml
same "by a recipe" 0 $rc
awk '$1 == "labels" { for (i = 3; i <= 9; i++) label[i] = $i; n = NF }
    $1 == "decoder_input_ids" { rows++; for (i = 3; i <= NF; i++) read[i] = $i }
    rows && n { if (read[3] != 4) bad++; for (i = 4; i <= 9; i++) if (label[i - 1] >= 0 && read[i] != label[i - 1]) bad++; rows = n = 0; seen++ }
    END { exit bad > 0 || seen < 2 }' "$W/out"
same "a decoder reads the label before" 0 $?

# ---- tags ----
python3 - <<'P'
import json, random
random.seed(4)
words = "the film is a story of good bad fine poor play and music".split()
with open("tags.jsonl", "w") as f, open("named.jsonl", "w") as g:
    for i in range(160):
        some = [random.choice(words) for _ in range(random.randint(1, 9))]
        tags = [1 if w in ("good", "fine") else 2 if w in ("bad", "poor") else 0 for w in some]
        f.write(json.dumps({"id": i, "tokens": some, "ner_tags": tags}) + "\n")
        g.write(json.dumps({"tokens": some, "ner_tags": [["O", "PRAISE", "BLAME"][t] for t in tags]}) + "\n")
P
rm -rf run
ty train bert --architecture=ForTokenClassification --labels=3 --data=tags.jsonl --lr=0.003 --epochs=10 --device=cpu
same "tags without a recipe" 0 $rc
has "says whose" "$W/err" 'the labels are the tags of words, feature 2, "ner_tags"'
ok "it learns" learned 0.5
ty train bert --architecture=ForTokenClassification --labels=3 --data=named.jsonl --lr=0.003 --epochs=1 --device=cpu --output-dir=named
same "tags by name" 0 $rc
ok "stay with the model" python3 -c 'import json; assert list(json.load(open("named/model/config.json"))["label2id"]) == ["BLAME", "O", "PRAISE"]'
ty train bert --architecture=ForTokenClassification --labels=2 --data=tags.jsonl --device=cpu --output-dir=few
same "more tags than classes" 65 $rc
has "says how many" "$W/err" "labels: 3"

# ---- answers: what the film is said to be ----
python3 - <<'P'
import json, random
random.seed(4)
fill = "the story of play and music with no plot".split()
with open("asked.jsonl", "w") as f, open("asked.csv", "w") as g, open("wrong.csv", "w") as h:
    for out in (g, h):
        out.write("question,context,answer_text,answer_start\n")
    for i in range(160):
        before = [random.choice(fill) for _ in range(random.randint(0, 4))]
        said = random.choice(["good", "bad", "great fine", "dull poor"])
        context = " ".join(before + [said] + [random.choice(fill) for _ in range(random.randint(0, 3))])
        at = context.index(said)
        f.write(json.dumps({"question": "film is a", "context": context, "answers": {"text": [said], "answer_start": [at]}}) + "\n")
        g.write(f"film is a,{context},{said},{at}\n")
        h.write(f"film is a,{context},{said},{at + (i == 7)}\n")
P
rm -rf run
ty train bert --architecture=ForQuestionAnswering --data=asked.jsonl --lr=0.01 --epochs=8 --device=cpu --log_every=1
same "answers without a recipe" 0 $rc
has "says where" "$W/err" "the labels are the places of the answer's first and last one"
numbers >asked.numbers
ok "it learns" learned 0.6
ty train bert --architecture=ForQuestionAnswering --data=asked.csv --lr=0.01 --epochs=8 --device=cpu --log_every=1 --output-dir=flat
same "of a table" 0 $rc
numbers >flat.numbers
ok "which is the same" cmp asked.numbers flat.numbers
cat >asked.yaml <<'Y'
model: bert
architecture: ForQuestionAnswering
data:
  train:
    path: asked.jsonl
    fields:
      input_ids: {member: question, pair: context, tokenizer: bert/tokenizer.json, max_length: 16}
      start_positions: {member: question, pair: context, answer: answers.text, answer_start: answers.answer_start, tokenizer: bert/tokenizer.json, max_length: 16, tokens: answer_start}
      end_positions: {member: question, pair: context, answer: answers.text, answer_start: answers.answer_start, tokenizer: bert/tokenizer.json, max_length: 16, tokens: answer_end}
Y
ty train asked.yaml --device=cpu --output-dir=declared --max_steps=3
same "by a recipe" 0 $rc
ty train bert --architecture=ForQuestionAnswering --data=wrong.csv --device=cpu --output-dir=none
same "a wrong place" 65 $rc
has "is told" "$W/err" "is not where it is said to be"
has "with its line" "$W/err" "wrong.csv:9"
ty train bert --architecture=ForQuestionAnswering --data=wrong.csv --device=cpu --output-dir=some --data.train.on_bad=skip
same "and left out" 0 $rc
ty train bert --architecture=ForQuestionAnswering --data=pairs.csv --device=cpu --output-dir=none
same "no question" 78 $rc
has "is told what is expected" "$W/err" "call them question, context, answer_text"

# ---- a label that is called as texts are ----
awk -F, 'NR == 1 { print "comment,question,note" } NR > 1 { print $3 "," $1 "," $2 }' pairs.csv >named.csv
ty train bert --architecture=ForSequenceClassification --labels=2 --data=named.csv --target=comment --max_steps=1 --device=cpu --output-dir=label
same "a label called comment" 0 $rc
has "is no text" "$W/err" 'column 1, "question", becomes up to 16 tokens'

# ---- refusals ----
sed 's/premise,hypothesis/left,right/' pairs.csv >unnamed.csv
ty train bert --architecture=ForSequenceClassification --labels=2 --data=unnamed.csv --device=cpu --output-dir=none
same "two texts without a usual name" 78 $rc
has "are told to be declared" "$W/err" "several texts, of which none is called"
ty train bert --architecture=ForTokenClassification --labels=2 --data=pairs.csv --device=cpu --output-dir=none
same "tags in a table" 78 $rc
has "say what is expected" "$W/err" 'ner_tags'
ty train pairs.yaml --device=cpu --output-dir=none --data.train.fields.label.pair=premise
same "a pair of classes" 78 $rc
has "needs a tokenizer" "$W/err" "pair and words go with a tokenizer"
ty train hidden.yaml --device=cpu --output-dir=none --data.train.fields.input_ids.hidden=0
same "nothing hidden" 78 $rc
finish_tests
