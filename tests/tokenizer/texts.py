"""Lines of mixed text, the same for a seed: scripts, emoji, marks, code, control characters, bytes that are no UTF-8."""
import re
import random

WORDS = (
    "the of and to in is you that it he was for on are as with his they I'm don't we've she'll who'd O'Brien it's IT'S "
    "Straße naïve café cafe\u0301 résumé Ångström co\u0308operate İstanbul ıspanak Σίσυφος ΣΊΣΥΦΟΣ Привет мир Ёлка ѐ "
    "你好 世界 東京 日本語 テスト ﾃｽﾄ が か\u3099 한국어 각 \u1100\u1161\u11a8 สวัสดี नमस्ते क्षि தமிழ் עברית שָׁלוֹם العربية ﷺ ﷲ "
    "ﬁne ﬃ x² ½ Ⅷ ① ㍿ ℌ Å Ａｂｃ １２３ ٣٤٥ ०१२ 3.14159 1,000,000 12345678 0xdeadbeef 10% $5 €3 £7 ¥ ₿ "
    "😀 👍🏽 👨‍👩‍👧‍👦 🇩🇪🇫🇷 ❤️ ☃ ♥ → ∑ ≠ ≤ ∞ \u2028 \u200b zero\u200bwidth \u200dx \ufeffbom soft\u00adhyphen "
    "Hello World HELLO hello unhappiness antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis "
    "[CLS] [SEP] [MASK] [PAD] <s> </s> <unk> <pad> <|endoftext|> <|endoftext| <extra> my<extra>x  <extra>  [mask] "
    "user@example.com https://example.org/a?b=c&d=e#f C:\\path\\file ../../x snake_case camelCase kebab-case A.B.C. "
    "... --- !!! ?! «quoted» “curly” ‘single’ „low“ — – ‐ ‑ ・ 。 、 ！ ？ ； ، ؟ ་ \u166d ͵ ՚ _ __init__ ~ ` ^ | < > = + "
    "\u0301 \u0301\u0323a a\u0323\u0301 q\u0307\u0323 \u0345\u0301 Z\u0351\u036b\u0343\u036a\u0302\u036b a\u0300\u0301\u0302\u0303\u0304\u0305"
    " \u1e9b\u0323 \u0958 \u2126 \u212b \U0001d15e \U0002f800 \U0001f600 \U0001d400 \U000e0001 \ue000 \u0378 ꙮ ᚠ ሀ ᠠ ក ខ្មែរ ພາສາລາວ"
).split(" ")
CODE = [
    "for (int i = 0; i < n; i++) {\n\tx[i] = y[i] * 2;\n}\n",
    "def f(x):\n    return x if x else None  # comment\n",
    "SELECT * FROM t WHERE a = 'b''c' AND d >= 10;",
    '{"key": [1, 2.5, null], "ünïcode": "\\u00e9"}',
    "    \t\t   indented\r\n\r\n\r\n   more  \n \n  end   ",
    "#include <stdio.h>\r\n\r\nint main(void) { return 0; }\r\n",
]
BLANKS = [" "] * 12 + ["  ", "   ", "\t", "\n", "\n\n", "\r\n", "\u00a0", "\u3000", "\u2003", " \n ", "\x0b", "\x85", ""]
CONTROLS = ["\x01", "\x1f", "\x7f", "\x9f", "\x1c", "\x08", "\u200e", "\ufffd", "\u202e"]
BROKEN = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\x80\x80", b"\xe2\x28\xa1"]


def character(r):
    while True:
        c = r.choice((r.randrange(0x20, 0x250), r.randrange(0x250, 0x3000), r.randrange(0x3000, 0x10000), r.randrange(0x10000, 0x20000)))
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def line(r):
    kind = r.random()
    if kind < 0.02:
        return r.choice([b"", b" ", b"\n", b"a", b"  ", b"\xe2\x96\x81", b" \xe2\x96\x81 a"])
    out = []
    for _ in range(r.randrange(1, 25)):
        pick = r.random()
        if pick < 0.75:
            piece = r.choice(WORDS)
        elif pick < 0.80:
            piece = r.choice(CODE)
        elif pick < 0.90:
            piece = "".join(r.choice("etaoinshrdlu") for _ in range(r.randrange(1, 12)))
        elif pick < 0.97:
            piece = "".join(character(r) for _ in range(r.randrange(1, 5)))
        elif pick < 0.99:
            piece = r.choice(CONTROLS)
        else:
            piece = r.choice("abxyz") * r.randrange(30, 300)
        out.append(piece.encode() + r.choice(BLANKS).encode())
        if kind > 0.95 and r.random() < 0.2:
            out.append(r.choice(BROKEN))
    return b"".join(out)


def lines(n, seed=1):
    r = random.Random(seed)
    return [line(r) for _ in range(n)]


def pair(tokenizer, a, b):
    """Ids of a pair, then their types."""
    e = tokenizer.encode(a, b)
    return e.ids + e.type_ids


def words(tokenizer, text):
    """Ids of a text that is cut at single blanks, then the number of the word that each is of; -1: of none."""
    e = tokenizer.encode(text.split(" "), is_pretokenized=True)
    return e.ids + [-1 if w is None else w for w in e.word_ids]


PLAIN = (
    "the of and to in is you that it he was for on are as with his they I'm don't we've O'Brien naïve café résumé Ångström "
    "Straße 3.14159 1,000,000 $5 10% €3 (1990) \"quoted\" well-known U.S. unhappiness Hello World 1990s Привет мир 你好 世界 東京"
).split()


def plain(count, seed=5):
    """Lines as people write them: words, some with a mark behind."""
    rng = random.Random(seed)
    return [" ".join(rng.choice(PLAIN) + rng.choice(["", "", "", ",", ".", ";"]) for _ in range(rng.randint(3, 25))).encode()
            for _ in range(count)]


def pieces(some):
    """One of the texts, and another cut in three, of which the second is some of its words."""
    out = []
    for i, (one, two) in enumerate(zip(some, some[1:])):
        words = [m.span() for m in re.finditer(rb"[^ \t\r\n]+", two)]
        first = i % len(words)
        last = min(first + i % 3, len(words) - 1)
        a, b = words[first][0], words[last][1]
        out.append((one, two[:a], two[a:b], two[b:]))
    return out


def places(tokenizer, four):
    """The first and the last token of the middle piece, as run_qa.py finds them by offsets; -1: the row does not have them."""
    one, *three = [p.decode() for p in four]
    e = tokenizer.encode(one, "".join(three))
    begin, end = len(three[0]), len(three[0]) + len(three[1])
    spans = [(k, *e.offsets[k]) for k, s in enumerate(e.sequence_ids) if s == 1]
    if not spans or spans[0][1] > begin or spans[-1][2] < end:
        return [-1, -1]
    return [max(k for k, x, _ in spans if x <= begin), min(k for k, _, y in spans if y >= end)]
