"""hugging_face_folders.py TRAINYARD: folders as save_pretrained() leaves them, trained by `trainyard train FOLDER --data=...` without
a recipe, beside a loop in PyTorch with the defaults of Hugging Face's TrainingArguments: every loss, every weight at the end, and the
trained folder opened by Transformers. Needs torch, transformers, tokenizers. One line a model."""
import inspect, json, os, sys, tempfile
import numpy as np
import torch
import tokenizers as k
import transformers as t
from safetensors.torch import load_file
from beside import command

ROWS, LENGTH, CLASSES, SEED = 40, 12, 3, 7
FILL = "the film was a story with actors and music that many people saw last year".split()
SAYS = ["good fine".split(), "bad poor".split(), "long slow".split()]
passed = failed = 0


def texts():
    rng = np.random.default_rng(3)
    for i in range(ROWS):
        words = list(rng.choice(FILL, rng.integers(2, 14)))
        words.insert(rng.integers(0, len(words) + 1), rng.choice(SAYS[i % CLASSES]))
        yield " ".join(words), i % CLASSES


def tokenizer(folder, rows):
    tok = k.Tokenizer(k.models.WordPiece(unk_token="[UNK]"))
    tok.normalizer, tok.pre_tokenizer = k.normalizers.BertNormalizer(), k.pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tok.train_from_iterator([r[0] for r in rows], k.trainers.WordPieceTrainer(vocab_size=60, special_tokens=special))
    tok.post_processor = k.processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                         special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    fast = t.PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
                                     mask_token="[MASK]")
    fast.save_pretrained(folder)
    return fast


# ---- what is trained: the data as a file, and a batch of it as PyTorch's class takes it, made with Transformers' tokenizer --------


def table(path, names, rows):
    with open(path + ".csv", "w") as f:
        f.writelines(",".join(map(str, row)) + "\n" for row in [names, *rows])
    return path + ".csv"


def padded(tok, *text, **how):
    return tok(*text, padding="max_length", max_length=LENGTH, truncation=True, return_token_type_ids=True, return_tensors="pt", **how)


class Classes:
    def write(self, path, rows):
        return table(path, ["text", "label"], rows)

    def batch(self, tok, rows, at, epoch):
        return {**padded(tok, [rows[i][0] for i in at]), "labels": torch.tensor([rows[i][1] for i in at])}


class Pairs(Classes):
    """Two texts of a row, compared."""
    def write(self, path, rows):
        return table(path, ["sentence1", "sentence2", "label"], [(a, rows[-i - 1][0], c) for i, (a, c) in enumerate(rows)])

    def batch(self, tok, rows, at, epoch):
        both = padded(tok, [rows[i][0] for i in at], [rows[-i - 1][0] for i in at])
        return {**both, "labels": torch.tensor([rows[i][1] for i in at])}


class Next:
    """The next word; what pads a text is no word to be foretold."""
    def write(self, path, rows):
        return table(path, ["text", "label"], rows)

    def batch(self, tok, rows, at, epoch):
        b = padded(tok, [rows[i][0] for i in at])
        return {"input_ids": b["input_ids"], "labels": b["input_ids"].masked_fill(b["attention_mask"] == 0, -100)}


def philox(seed, stream, step, first, n):
    """n words from `first` on of Philox4x32-10 (Salmon et al. 2011), as base/rng.h counts them."""
    i = np.arange(first, first + n, dtype=np.uint64)
    c = [(i // 4) & 0xffffffff, (i // 4) >> np.uint64(32), np.full(n, stream, np.uint64), np.full(n, step, np.uint64)]
    keys = [seed & 0xffffffff, seed >> 32]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(keys[0]), b & np.uint64(0xffffffff),
             (a >> np.uint64(32)) ^ c[3] ^ np.uint64(keys[1]), a & np.uint64(0xffffffff)]
        keys = [(keys[0] + 0x9E3779B9) & 0xffffffff, (keys[1] + 0xBB67AE85) & 0xffffffff]
    return np.stack(c)[(i % 4).astype(int), np.arange(n)]


class Hidden:
    """Hidden words: DataCollatorForLanguageModeling's rule with our draws, which are a function of seed, epoch, sample and place; and
    one in a text of which none would be."""
    def write(self, path, rows):
        return table(path, ["text"], [[a] for a, _ in rows])

    def batch(self, tok, rows, at, epoch):
        b = padded(tok, [rows[i][0] for i in at], return_special_tokens_mask=True)
        ids, labels, tenth = b["input_ids"].clone(), torch.full_like(b["input_ids"], -100), (1 << 32) // 10
        for row, sample in enumerate(at):
            words = philox(SEED, 0x48494445, epoch, sample << 20, 2 * LENGTH)
            may = [p for p in range(LENGTH) if not b["special_tokens_mask"][row, p]]
            one = may[int(philox(SEED, 0x48494445, epoch, (sample << 20) + (1 << 20) - 1, 1)[0]) * len(may) >> 32]
            for place in [p for p in may if words[2 * p] < 0.15 * 2**32] or [one]:
                labels[row, place], w = ids[row, place], int(words[2 * place + 1])
                if w < 8 * tenth:
                    ids[row, place] = tok.mask_token_id
                elif w < 9 * tenth:
                    ids[row, place] = (w - 8 * tenth) * len(tok) // tenth
        return {"input_ids": ids, "attention_mask": b["attention_mask"], "labels": labels}


class Answers:
    """A text made of another."""
    def write(self, path, rows):
        return table(path, ["document", "summary"], [(a, rows[-i - 1][0]) for i, (a, _) in enumerate(rows)])

    def batch(self, tok, rows, at, epoch):
        b, other = padded(tok, [rows[i][0] for i in at]), padded(tok, [rows[-i - 1][0] for i in at])
        labels = other["input_ids"].masked_fill(other["attention_mask"] == 0, -100)
        return {"input_ids": b["input_ids"], "attention_mask": b["attention_mask"], "labels": labels}


class Tags:
    """Tags of words, at their first pieces."""
    def write(self, path, rows):
        with open(path + ".jsonl", "w") as f:
            f.writelines(json.dumps({"tokens": a.split(), "ner_tags": [len(w) % CLASSES for w in a.split()]}) + "\n" for a, _ in rows)
        return path + ".jsonl"

    def batch(self, tok, rows, at, epoch):
        b = padded(tok, [rows[i][0].split() for i in at], is_split_into_words=True)
        labels = torch.full_like(b["input_ids"], -100)
        for row, i in enumerate(at):
            words, before = b.word_ids(row), None
            for place, w in enumerate(words):
                if w is not None and w != before:
                    labels[row, place] = len(rows[i][0].split()[w]) % CLASSES
                before = w
        return {"input_ids": b["input_ids"], "attention_mask": b["attention_mask"], "labels": labels}


class Questions:
    """Where the answer is, by the tokens' offsets as run_qa.py finds it; 0 where it is cut off."""
    def rows(self, rows):
        for i, (a, _) in enumerate(rows):
            words = a.split()
            first = i % len(words)
            answer = " ".join(words[first:first + 1 + i % 2])
            yield f"what {i % 3} {rows[-i - 1][0].split()[0]}", a, answer, len(" ".join(words[:first] + [""])) if first else 0

    def write(self, path, rows):
        with open(path + ".jsonl", "w") as f:
            f.writelines(json.dumps({"question": q, "context": c, "answers": {"text": [t], "answer_start": [at]}}) + "\n"
                         for q, c, t, at in self.rows(rows))
        return path + ".jsonl"

    def batch(self, tok, rows, at, epoch):
        some = [list(self.rows(rows))[i] for i in at]
        b = padded(tok, [r[0] for r in some], [r[1] for r in some], return_offsets_mapping=True)
        begin, end = torch.zeros(len(at), dtype=torch.int64), torch.zeros(len(at), dtype=torch.int64)
        for row, (_, _, answer, place) in enumerate(some):
            spans = [(k, *b["offset_mapping"][row, k].tolist()) for k, s in enumerate(b.sequence_ids(row)) if s == 1]
            if spans and spans[-1][2] >= place + len(answer):
                begin[row] = max(k for k, x, _ in spans if x <= place)
                end[row] = min(k for k, _, y in spans if y >= place + len(answer))
        return {**{n: b[n] for n in ("input_ids", "attention_mask", "token_type_ids")}, "start_positions": begin, "end_positions": end}


still = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
plain = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=LENGTH)
bert = lambda n: t.BertConfig(vocab_size=n, **plain, **still)  # noqa: E731
MODELS = {  # name: configuration, class of the file, class that is trained, what it is trained for
    "bert": (bert, t.BertForMaskedLM, t.BertForSequenceClassification, Classes()),
    "bert of pairs": (bert, t.BertForMaskedLM, t.BertForSequenceClassification, Pairs()),
    "bert of hidden words": (bert, t.BertForMaskedLM, t.BertForMaskedLM, Hidden()),
    "bert of tags": (bert, t.BertForMaskedLM, t.BertForTokenClassification, Tags()),
    "bert of questions": (bert, t.BertForMaskedLM, t.BertForQuestionAnswering, Questions()),
    "roberta": (lambda n: t.RobertaConfig(vocab_size=n, pad_token_id=0, bos_token_id=2, eos_token_id=3, type_vocab_size=1, **{**plain, "max_position_embeddings": LENGTH + 1},
                                          **still), t.RobertaModel, t.RobertaForSequenceClassification, Classes()),
    "distilbert": (lambda n: t.DistilBertConfig(vocab_size=n, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=LENGTH, dropout=0.0, attention_dropout=0.0,
                                                seq_classif_dropout=0.0), t.DistilBertForMaskedLM, t.DistilBertForSequenceClassification, Classes()),
    "gpt2": (lambda n: t.GPT2Config(vocab_size=n, n_embd=32, n_layer=2, n_head=4, n_positions=LENGTH, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=2,
                                    eos_token_id=3), t.GPT2LMHeadModel, t.GPT2LMHeadModel, Next()),
    "llama": (lambda n: t.LlamaConfig(vocab_size=n, num_key_value_heads=2, bos_token_id=2, eos_token_id=3, **plain), t.LlamaForCausalLM, t.LlamaForCausalLM, Next()),
    "qwen2": (lambda n: t.Qwen2Config(vocab_size=n, num_key_value_heads=2, tie_word_embeddings=True, **plain), t.Qwen2ForCausalLM, t.Qwen2ForCausalLM, Next()),
    "t5": (lambda n: t.T5Config(vocab_size=n, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0, n_positions=LENGTH, decoder_start_token_id=0,
                                pad_token_id=0, eos_token_id=3), t.T5ForConditionalGeneration, t.T5ForConditionalGeneration, Answers()),
}


def train(model, tok, rows, task):
    """TrainingArguments: AdamW, 5e-5 falling to 0 in a line, clipped at 1, three epochs of batches of 8."""
    each = ROWS // 8
    opt = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.0)
    fall = t.get_linear_schedule_with_warmup(opt, 0, 3 * each)
    takes = set(inspect.signature(model.forward).parameters)
    model.train()
    for step in range(3 * each):
        batch = task.batch(tok, rows, [(8 * step + i) % ROWS for i in range(8)], step // each)
        loss = model(**{n: v for n, v in batch.items() if n in takes}).loss
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        fall.step()
        yield loss.item()


def judge(name, folder):
    torch.manual_seed(5)
    rows = list(texts())
    config, kept, trained, task = MODELS[name]
    tok = tokenizer(folder, rows)
    kept(config(len(tok))).save_pretrained(folder)
    ours = trained.from_pretrained(folder, **({} if kept is trained or isinstance(task, Questions) else {"num_labels": CLASSES}))
    if kept is not trained:  # the new head is ours, so that both begin alike
        ours.save_pretrained(folder)
    out = os.path.join(folder, "run")
    command("train", folder, "--data", task.write(os.path.join(folder, "data"), rows), "--data.train.shuffle=false", "--log_every=1", "--device=cpu",
            f"--seed={SEED}", "--output-dir", out)
    got = [json.loads(line)["loss"] for line in open(os.path.join(out, "output/data/metrics.jsonl")) if '"loss"' in line and '"val' not in line]
    wanted = list(train(ours, tok, rows, task))
    assert len(got) == len(wanted), f"{len(got)} losses, {len(wanted)} expected"
    apart = max(abs(a - b) / abs(b) for a, b in zip(got, wanted))
    assert apart < 2e-5, f"losses are {apart:.2g} apart: {got} and {wanted}"
    weights, state = load_file(os.path.join(out, "model/model.safetensors")), ours.state_dict()
    # Adam's first steps have the size of the rate whatever the gradient: where that is nothing but rounding (biases of keys,
    # which softmax passes over), its sign is, too. All others agree.
    apart_by = torch.cat([(weights[n] - state[n]).abs().flatten() for n in weights])
    many = float((apart_by > 1e-6).float().mean())
    assert many < 0.01, f"{100 * many:.2g} % of the weights are more than 1e-6 apart"
    again, info = trained.from_pretrained(os.path.join(out, "model"), output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"], info
    return f"{len(wanted)} losses to {apart:.1g}, {100 - 100 * many:.4g} % of the weights to 1e-6"


for model in MODELS:
    try:
        with tempfile.TemporaryDirectory() as work:
            print(f"ok {model}: {judge(model, work)}")
        passed += 1
    except Exception as fault:  # the next model may fare better
        print(f"FAILED {model}: {fault}")
        failed += 1
print(f"{passed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
