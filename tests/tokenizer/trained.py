"""Tokenizers trained with Hugging Face's library on mixed text: each model, normalizer and pre-tokenizer that is known."""
import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers as N, pre_tokenizers as P, processors, trainers

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = r"(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
CL100K = CL100K.replace("(?i:[sdmt]", "'(?i:[sdmt]")
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK = [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""]


SIZE = 0  # of vocabularies; 0: as each says


def bpe(text, pre, size=2000, normalizer=None, special=("<|endoftext|>",), alphabet=True, **model):
    t = Tokenizer(models.BPE(**model))
    t.pre_tokenizer = pre
    if normalizer is not None:
        t.normalizer = normalizer
    extra = {k: v for k, v in model.items() if k in ("continuing_subword_prefix", "end_of_word_suffix")}
    t.train_from_iterator(text, trainers.BpeTrainer(vocab_size=SIZE or size, special_tokens=list(special), show_progress=False,
                          initial_alphabet=P.ByteLevel.alphabet() if alphabet else [], **extra))
    return t


def gpt2(text):
    t = bpe(text, P.ByteLevel(add_prefix_space=False))
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.decoder = decoders.ByteLevel()
    return t


def roberta(text):
    t = bpe(text, P.ByteLevel(add_prefix_space=True), special=("<s>", "<pad>", "</s>", "<unk>", AddedToken("<extra>", lstrip=True)))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    t.enable_truncation(48)
    t.enable_padding(pad_id=1, pad_token="<pad>")
    return t


def split_then_bytes(pattern):
    def make(text):
        pre = P.Sequence([P.Split(Regex(pattern), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])
        t = bpe(text, pre, size=3000, normalizer=N.NFC() if pattern == QWEN else None)
        t.add_tokens([AddedToken("<extra>", single_word=True, normalized=True), AddedToken("[MASK]", rstrip=True, lstrip=True)])
        return t
    return make


def deepseek(text):
    pre = P.Sequence([P.Split(Regex(p), "isolated") for p in DEEPSEEK] + [P.ByteLevel(add_prefix_space=False, use_regex=False)])
    t = bpe(text, pre)
    t.post_processor = processors.TemplateProcessing(single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)])
    return t


def llama(text, scheme=None):
    """Bytes where a character is unknown; without a pre-tokenizer a whole line is one word."""
    data = json.loads(bpe(text, P.Metaspace(prepend_scheme="always"), size=2500, alphabet=False, special=("<unk>", "<s>", "</s>")).to_str())
    vocabulary = data["model"]["vocab"]
    names = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]
    old = [w for w, _ in sorted(vocabulary.items(), key=lambda x: x[1]) if w not in names]
    # Rare characters have no token of their own, so that bytes are needed.
    rare = {w for w in old if len(w) == 1 and ord(w) > 0x4FF and ord(w) % 3}
    old = [w for w in old if not rare & set(w)]
    data["model"]["vocab"] = {w: i for i, w in enumerate(names + old)}
    data["model"]["merges"] = [m for m in data["model"]["merges"] if "".join(m) in data["model"]["vocab"] and not rare & set("".join(m))]
    data["model"].update(byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    if scheme is None:
        data["pre_tokenizer"] = None
        data["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                              {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    else:
        data["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": False}
    data["post_processor"] = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                              {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
                              "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    return Tokenizer.from_str(json.dumps(data))


def bert(text, cased=False):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
    t.normalizer = N.BertNormalizer(lowercase=not cased)
    t.pre_tokenizer = P.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(text, trainers.WordPieceTrainer(vocab_size=SIZE or 2500, special_tokens=special, show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="[CLS]:0 $A:0 [SEP]:0", pair=None, special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.enable_truncation(32, direction="left")
    t.enable_padding(direction="left", length=40)
    return t


def unigram(text, normalizer, **more):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizer
    t.pre_tokenizer = P.Sequence([P.WhitespaceSplit(), P.Metaspace()])
    t.train_from_iterator(text, trainers.UnigramTrainer(vocab_size=SIZE or 6000, unk_token="<unk>", special_tokens=["<pad>", "</s>", "<unk>"],
                          show_progress=False, max_piece_length=10))
    data = json.loads(t.to_str())
    data["model"].update(more)
    if more.get("byte_fallback"):
        rare = {w for w, _ in data["model"]["vocab"] if len(w) == 1 and ord(w) > 0x4FF and ord(w) % 3}
        data["model"]["vocab"] = [v for v in data["model"]["vocab"] if not rare & set(v[0])] + [["<0x%02X>" % b, -20.0] for b in range(256)]
    t = Tokenizer.from_str(json.dumps(data))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return t


def charsmap(text):
    """SentencePiece's own table (nmt_nfkc), cut out of a model that it trains."""
    import io
    import sentencepiece
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a few words to learn from"] * 20), model_writer=out, vocab_size=40,
                                             minloglevel=2, hard_vocab_limit=False)
    at, data = 0, out.getvalue()

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            b = data[at]
            at += 1
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v

    def field(want, end):
        nonlocal at
        while at < end:
            key = varint()
            if key & 7 == 0:
                varint()
            elif key & 7 == 5:
                at += 4
            else:
                n = varint()
                if key >> 3 == want:
                    return n
                at += n
        raise ValueError(want)
    n = field(3, len(data))
    n = field(2, at + n)
    return data[at:at + n]


def wordlevel(text):
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer = N.Sequence([N.NFKD(), N.StripAccents(), N.Lowercase(), N.Strip(), N.Replace(Regex(r"\d+"), "0"), N.Replace("ss", "ß")])
    t.pre_tokenizer = P.Sequence([P.Whitespace(), P.Digits(individual_digits=True), P.Punctuation("contiguous")])
    t.train_from_iterator(text, trainers.WordLevelTrainer(vocab_size=SIZE or 1000, special_tokens=["<unk>", "<extra>"], show_progress=False))
    return t


def prefixed(text):
    t = bpe(text, P.BertPreTokenizer(), size=2000, alphabet=False, special=("<unk>",), normalizer=N.Sequence([N.NFD(), N.Nmt()]),
            unk_token="<unk>", continuing_subword_prefix="##", end_of_word_suffix="</w>")
    return t


def odd(behavior, invert, regex=True):
    def make(text):
        pre = P.Sequence([P.Split(Regex(r"[\s,.]+|(?=[A-Z])") if regex else ".", behavior, invert), P.CharDelimiterSplit("|")])
        return bpe(text, pre, size=1200, alphabet=False, special=("<unk>",), normalizer=N.NFKC(), unk_token="<unk>", fuse_unk=invert)
    return make


def metaspace_first(text):
    t = bpe(text, P.Metaspace(prepend_scheme="first"), size=1500, alphabet=False, special=("<unk>", "<extra>"), unk_token="<unk>")
    t.add_special_tokens([AddedToken("<s>", normalized=False)])
    return t


def ignoring(text):
    data = json.loads(split_then_bytes(LLAMA3)(text).to_str())
    data["model"]["ignore_merges"] = True
    v = data["model"]["vocab"]
    for w in ("Ġantidisestablishmentarianism", "Hello", "Ġuser"):
        v.setdefault(w, 5000 + len(w))
    data["added_tokens"] = [t for t in data["added_tokens"] if t["special"]]
    return Tokenizer.from_str(json.dumps(data))


ALL = {
    "gpt2": gpt2, "roberta": roberta, "llama3": split_then_bytes(LLAMA3), "cl100k": split_then_bytes(CL100K),
    "qwen": split_then_bytes(QWEN), "deepseek": deepseek, "llama": llama, "llama-first": lambda t: llama(t, "first"),
    "bert": bert, "bert-cased": lambda t: bert(t, True), "unigram": lambda t: unigram(t, N.NFKC()),
    "unigram-bytes": lambda t: unigram(t, N.Sequence([N.NFC(), N.Lowercase()]), byte_fallback=True),
    "t5": lambda t: unigram(t, N.Sequence([N.Precompiled(charsmap(t)), N.Replace(Regex(" {2,}"), " ")])),
    "wordlevel": wordlevel, "prefixed": prefixed, "removed": odd("removed", False), "inverted": odd("removed", True),
    "previous": odd("merged_with_previous", False), "next": odd("merged_with_next", False), "contiguous": odd("contiguous", True),
    "string": odd("isolated", False, False), "metaspace-first": metaspace_first, "ignoring": ignoring,
}
