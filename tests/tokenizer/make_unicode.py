"""Writes container/input/tokenizer/unicode_table.c: what tokenizers need to know of characters; and pattern_table.c
there: characters that regular expressions count to a category or class, but Unicode 14 (PCRE2 10.42) does not.

    python make_unicode.py unicode_table >container/input/tokenizer/unicode_table.c
    python make_unicode.py pattern_table >container/input/tokenizer/pattern_table.c

Decompositions and combining classes are those of Python's unicodedata. Classes of characters, and which decompositions
count, are asked of Hugging Face's `tokenizers` one character at a time: its parts follow different versions of
Unicode, and a tokenizer has to do what was done when the model was trained.
"""
import sys
import unicodedata as u
import zlib
from tokenizers import Regex, normalizers as N, pre_tokenizers as P

CHARS = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
LETTER, NUMBER, SPACE, WORD, PUNCTUATION, MARK, ACCENT, CONTROL = (1 << i for i in range(8))


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def signed(n):
    return varint(n << 1 if n >= 0 else (-n << 1) - 1)


def normalized(n, text):
    return n.normalize_str(text)


def pieces(p, text):
    return len(p.pre_tokenize_str(text))


def class_of(c):
    t = chr(c)
    around = "a" + t + "a"
    bits = LETTER * (pieces(LETTERS, "1" + t + "1") == 3)
    bits |= NUMBER * (pieces(DIGITS, around) == 3)
    bits |= SPACE * (pieces(SPACES, around) == 2)
    bits |= WORD * (pieces(WORDS, around) == 1)
    bits |= PUNCTUATION * (pieces(PUNCT, around) == 3)
    bits |= MARK * (normalized(STRIP, t) == "")
    bits |= ACCENT * (normalized(BERT_ACCENTS, t) == "")
    bits |= CONTROL * (normalized(BERT_CLEAN, around) == "aa")
    return bits


DIGITS, SPACES, WORDS, PUNCT = P.Digits(individual_digits=True), P.WhitespaceSplit(), P.Whitespace(), P.Punctuation()
LETTERS = P.Split(Regex(r"\p{L}"), "isolated")
STRIP, LOWER = N.StripAccents(), N.Lowercase()
BERT_ACCENTS = N.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
BERT_CLEAN = N.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
NFD, NFC, NFKD = N.NFD(), N.NFC(), N.NFKD()


def classes():
    known = dict((c, class_of(c)) for c in CHARS)
    known[0] = CONTROL
    out, at = bytearray(), 0
    while at < 0x110000:
        end = at
        while end < 0x110000 and known.get(end, 0) == known.get(at, 0):
            end += 1
        out += varint(end - at) + bytes([known.get(at, 0)])
        at = end
    return out


def counted(rows):
    return varint(len(rows)) + b"".join(rows)


def combining():
    rows, last = [], 0
    for c in CHARS:
        k = u.combining(chr(c))
        # A mark whose class is known goes before the iota below (240); those of class 240 go behind a lower one.
        known = normalized(NFD, "\u0345" + chr(c)) != "\u0345" + chr(c) if k < 240 else True
        if k and known:
            rows.append(varint(c - last) + bytes([k]))
            last = c
    return counted(rows)


def lower():
    rows, last, lag = [], 0, 0
    for c in CHARS:
        to = normalized(LOWER, chr(c))
        if to == chr(c) or len(to) > 1:  # U+0130 is the only one that becomes two
            continue
        rows.append(varint(c - last) + signed(ord(to) - c - lag))
        last, lag = c, ord(to) - c
    return counted(rows)


def decompositions():
    rows, last, before = [], 0, 0
    for c in CHARS:
        words = u.decomposition(chr(c)).split()
        if not words or normalized(NFKD, chr(c)) == chr(c):
            continue
        compat = words[0].startswith("<")
        to = [int(w, 16) for w in words[compat:]]
        composes = not compat and len(to) == 2 and normalized(NFC, chr(to[0]) + chr(to[1])) == chr(c)
        row = varint(c - last) + bytes([len(to) | 64 * composes | 128 * compat])
        for x in to:
            row += signed(x - before)
            before = x
        rows.append(row)
        last = c
    return counted(rows)


def unicode_table():
    parts = classes() + combining() + lower() + decompositions()
    packed = zlib.compress(bytes(parts), 9)
    print("/* unicode_table.c - made by tests/tokenizer/make_unicode.py: see there, and unicode.c, which reads it. */")
    print('#include "container/input/tokenizer/unicode.h"\n')
    print(f"const size_t ty_unicode_table_bytes = {len(packed)}, ty_unicode_table_unpacked = {len(parts)};\n")
    print("/* clang-format off */")
    print("const unsigned char ty_unicode_table[] = {")
    line = ""
    for b in packed:
        if len(line) + 4 > 118:
            print(line)
            line = ""
        line += f"{b},"
    print(line)
    print("};\n/* clang-format on */")


def known(category, of):
    """Whether PCRE2 counts a character of this category, by \\p{L} and so on."""
    if category == "w":
        return of[0] in "LM" or of in ("Nd", "Nl", "Pc")
    return of == "Nd" if category == "d" else of[0] == category


def pattern_table():
    print("/* pattern_table.c - made by tests/tokenizer/make_unicode.py: see there. */")
    print('#include "container/input/tokenizer/pattern_table.h"\n')
    print("const tok_pattern_category tok_pattern_categories[] = {")
    for category in "LMNPSdw":
        p = P.Split(Regex(r"\p{%s}" % category if category.isupper() else "\\" + category), "isolated")
        around = "1" if category == "L" else "-" if category == "w" else "a"
        new = [c for c in CHARS if not known(category, u.category(chr(c))) and pieces(p, around + chr(c) + around) == 3]
        ranges = []
        for c in new:
            if ranges and ranges[-1][1] == c - 1:
                ranges[-1][1] = c
            else:
                ranges.append([c, c])
        text = [("\\\\x{%x}" % a if a == b else "\\\\x{%x}-\\\\x{%x}" % (a, b)) for a, b in ranges]
        print(f"    {{'{category}',")
        line = ""
        for t in text:
            if len(line) + len(t) > 105:
                print(f'     "{line}"')
                line = ""
            line += t
        print(f'     "{line}"}},')
    print("    {0, NULL},\n};")


{"unicode_table": unicode_table, "pattern_table": pattern_table}[sys.argv[1]]()
