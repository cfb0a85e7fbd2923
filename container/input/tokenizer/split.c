/* split.c - pre-tokenizers of a tokenizer.json: where a text is cut before the model sees it.
 *
 * Sequences are laid out as one list of steps. A step either cuts pieces where they stand or writes them anew.
 */
#include "container/input/tokenizer/parts.h"

typedef enum split_behavior {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_CONTIGUOUS,
    SPLIT_WITH_PREVIOUS,
    SPLIT_WITH_NEXT,
    SPLIT_N_BEHAVIORS,
} split_behavior;

static const char *const split_behaviors[][2] = {{"Removed", "removed"},
                                                 {"Isolated", "isolated"},
                                                 {"Contiguous", "contiguous"},
                                                 {"MergedWithPrevious", "merged_with_previous"},
                                                 {"MergedWithNext", "merged_with_next"}};

typedef struct split_step split_step;
typedef int split_fn(const split_step *s, tok_work *w, const char *p, tok_piece piece, tok_pieces *out, ty_error *err);

struct split_step {
    split_fn *run;
    bool rewrites; /* gives its pieces as new text */
    split_behavior behavior;
    bool invert;
    bool add_space, use_regex;            /* ByteLevel */
    bool prepend, only_first, does_split; /* Metaspace */
    uint8_t bits;                         /* classes of characters that are cut at */
    const char *mark;                     /* Metaspace, CharDelimiterSplit: one character */
    tok_pattern *pattern;
    const tok_unicode *unicode;
};

enum { SPLIT_MAX_STEPS = 32 };

struct tok_splitter {
    split_step step[SPLIT_MAX_STEPS];
    int n;
};

/* ---- what becomes of matches and of what lies between ---- */

typedef struct split_cutter {
    const split_step *step;
    tok_piece of;
    tok_pieces *out;
    size_t from, to; /* waits to be added or to grow */
    bool waits, was_match;
} split_cutter;

static void split_flush(split_cutter *c)
{
    if (c->waits)
        tok_pieces_add(c->out, c->of.at + c->from, c->to - c->from, -1, c->of.first && c->from == 0);
    c->waits = false;
}

/* The next range of the piece; all are given in order. */
static void split_give(split_cutter *c, size_t from, size_t to, bool match)
{
    bool is_match = match != c->step->invert, grows = false;
    switch (c->step->behavior) {
    case SPLIT_REMOVED:
        if (is_match)
            return;
        break;
    case SPLIT_CONTIGUOUS:
        grows = c->waits && is_match == c->was_match;
        break;
    case SPLIT_WITH_PREVIOUS:
        grows = c->waits && is_match && !c->was_match;
        break;
    case SPLIT_WITH_NEXT:
        grows = c->waits && !is_match && c->was_match;
        break;
    default:
        break;
    }
    if (!grows) {
        split_flush(c);
        c->from = from;
    }
    c->to = to;
    c->waits = true;
    c->was_match = is_match;
}

/* ---- steps ---- */

static int split_pattern(const split_step *s, tok_work *w, const char *p, tok_piece piece, tok_pieces *out,
                         ty_error *err)
{
    split_cutter c = {.step = s, .of = piece, .out = out};
    tok_pattern_at at = {0, -1};
    size_t before = 0, start, end;
    int rc;
    while ((rc = tok_pattern_next(s->pattern, w->pattern, p, piece.n, &at, &start, &end, err)) > 0) {
        if (before != start)
            split_give(&c, before, start, false);
        split_give(&c, start, end, true);
        before = end;
    }
    if (before != piece.n)
        split_give(&c, before, piece.n, false);
    split_flush(&c);
    return rc;
}

/* Each character of these classes is a match, or one character in particular. */
static int split_class(const split_step *s, tok_work *w, const char *p, tok_piece piece, tok_pieces *out, ty_error *err)
{
    (void)w, (void)err;
    split_cutter c = {.step = s, .of = piece, .out = out};
    size_t n_mark = s->mark != NULL ? strlen(s->mark) : 0, before = 0;
    for (size_t i = 0; i < piece.n;) {
        int k;
        uint32_t here = tok_char(p + i, &k);
        bool match = n_mark > 0 ? (size_t)k == n_mark && memcmp(p + i, s->mark, n_mark) == 0
                                : (s->unicode->bits[here] & s->bits) != 0;
        i += (size_t)k;
        if (!match)
            continue;
        if (before < i - (size_t)k)
            split_give(&c, before, i - (size_t)k, false);
        split_give(&c, i - (size_t)k, i, true);
        before = i;
    }
    if (before < piece.n)
        split_give(&c, before, piece.n, false);
    split_flush(&c);
    return 0;
}

/* \w+|[^\w\s]+ */
static int split_words(const split_step *s, tok_work *w, const char *p, tok_piece piece, tok_pieces *out, ty_error *err)
{
    (void)w, (void)err;
    size_t from = 0;
    int before = 0; /* 0: blank, 1: of a word, 2: neither */
    for (size_t i = 0; i <= piece.n;) {
        int k = 1, kind = 0;
        if (i < piece.n) {
            uint8_t bits = s->unicode->bits[tok_char(p + i, &k)];
            kind = bits & TOK_WORD ? 1 : bits & TOK_SPACE ? 0 : 2;
        }
        if (kind != before || i == piece.n) {
            if (before != 0)
                tok_pieces_add(out, piece.at + from, i - from, -1, piece.first && from == 0);
            from = i;
            before = kind;
        }
        i += (size_t)k;
    }
    return 0;
}

static int split_metaspace(const split_step *s, tok_work *w, const char *p, tok_piece piece, tok_pieces *out,
                           ty_error *err)
{
    (void)w, (void)err;
    size_t n_mark = strlen(s->mark), start = out->text.n, from = start;
    bool has = p[0] == ' ' || (piece.n >= n_mark && memcmp(p, s->mark, n_mark) == 0);
    if (s->prepend && !has && (piece.first || !s->only_first))
        tok_text_add(&out->text, s->mark, n_mark);
    for (size_t i = 0; i < piece.n; i++) {
        bool mark = p[i] == ' ' || (p[i] == s->mark[0] && piece.n - i >= n_mark && memcmp(p + i, s->mark, n_mark) == 0);
        if (mark && s->does_split) {
            tok_pieces_add(out, from, out->text.n - from, -1, piece.first && from == start);
            from = out->text.n;
        }
        if (p[i] == ' ')
            tok_text_add(&out->text, s->mark, n_mark);
        else
            tok_text_addc(&out->text, p[i]);
    }
    tok_pieces_add(out, from, out->text.n - from, -1, piece.first && from == start);
    return 0;
}

/* ---- ByteLevel ---- */

/* 's|'t|'re|'ve|'m|'ll|'d: bytes, or 0. */
static size_t split_contraction(const char *p, size_t n)
{
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    for (size_t i = 0; p[0] == '\'' && i < sizeof ends / sizeof ends[0]; i++) {
        size_t k = strlen(ends[i]);
        if (n > k && memcmp(p + 1, ends[i], k) == 0)
            return k + 1;
    }
    return 0;
}

static uint8_t split_kind(const tok_unicode *u, const char *p, int *k)
{
    return u->bits[tok_char(p, k)] & (TOK_LETTER | TOK_NUMBER | TOK_SPACE);
}

/* \s+(?!\S)|\s+ : a run of blanks gives its last one to what follows. */
static size_t split_blanks(const tok_unicode *u, const char *p, size_t n)
{
    size_t i = 0;
    for (int k = 0, last = 0;; last = k) {
        if (i == n)
            return n;
        if (!(split_kind(u, p + i, &k) & TOK_SPACE))
            return i > (size_t)last ? i - (size_t)last : i;
        i += (size_t)k;
    }
}

/* GPT-2's expression by hand:
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * Bytes of the match at p. */
static size_t split_gpt2(const tok_unicode *u, const char *p, size_t n)
{
    size_t i = split_contraction(p, n);
    if (i > 0)
        return i;
    i = p[0] == ' ';
    int k;
    uint8_t kind = i < n ? split_kind(u, p + i, &k) : TOK_SPACE;
    if (kind & TOK_SPACE)
        return split_blanks(u, p, n);
    do
        i += (size_t)k;
    while (i < n && split_kind(u, p + i, &k) == kind);
    return i;
}

static void split_add_bytes(const char *p, size_t n, tok_text *out)
{
    if (!tok_text_room(out, 2 * n))
        return;
    for (size_t i = 0; i < n; i++) {
        uint32_t c = tok_byte_char((uint8_t)p[i]);
        if (c < 0x80) {
            out->p[out->n++] = (char)c;
        } else {
            out->p[out->n++] = (char)(0xc0 | c >> 6);
            out->p[out->n++] = (char)(0x80 | (c & 63));
        }
    }
}

static int split_bytes(const split_step *s, tok_work *w, const char *p, tok_piece piece, tok_pieces *out, ty_error *err)
{
    (void)err;
    size_t n = piece.n, first = out->text.n;
    if (s->add_space && p[0] != ' ') {
        w->room[0].n = 0;
        tok_text_addc(&w->room[0], ' ');
        tok_text_add(&w->room[0], p, n);
        if (w->room[0].failed)
            return 0;
        p = w->room[0].p;
        n++;
    }
    for (size_t i = 0, k; i < n && !out->text.failed; i += k) {
        size_t from = out->text.n;
        k = s->use_regex ? split_gpt2(s->unicode, p + i, n - i) : n;
        split_add_bytes(p + i, k, &out->text);
        tok_pieces_add(out, from, out->text.n - from, -1, piece.first && from == first);
    }
    return 0;
}

/* ---- reading ---- */

static int split_add(tok_splitter *s, split_step step, ty_error *err)
{
    step.unicode = tok_unicode_get();
    if (step.unicode == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the table of characters");
    if (s->n == SPLIT_MAX_STEPS)
        return ty_error_set(err, TY_E_LIMIT, "more than %d pre-tokenizers", SPLIT_MAX_STEPS);
    s->step[s->n++] = step;
    return 0;
}

static int split_read_behavior(const ty_doc *node, split_behavior otherwise, split_behavior *out, ty_error *err)
{
    const char *text;
    *out = otherwise;
    if (tok_get_string(node, "behavior", NULL, &text, err) < 0)
        return -1;
    for (int i = 0; text != NULL; i++) {
        if (i == SPLIT_N_BEHAVIORS)
            return ty_doc_error(ty_doc_find(node, "behavior"), err, TY_E_RANGE, NULL,
                                "the behavior \"%s\" is not known", text);
        if (strcmp(text, split_behaviors[i][0]) == 0 || strcmp(text, split_behaviors[i][1]) == 0) {
            *out = (split_behavior)i;
            break;
        }
    }
    return 0;
}

static int split_read_pattern(const ty_doc *node, tok_splitter *out, ty_error *err)
{
    split_step s = {.run = split_pattern};
    if (split_read_behavior(node, SPLIT_ISOLATED, &s.behavior, err) < 0 ||
        tok_get_bool(node, "invert", false, &s.invert, err) < 0 || tok_get_pattern(node, &s.pattern, err) < 0)
        return -1;
    int rc = split_add(out, s, err);
    if (rc < 0)
        tok_pattern_free(s.pattern);
    return rc;
}

/* One character of text that lives as long as the arena. */
static int split_read_mark(const ty_doc *node, const char *key, const char *otherwise, ty_arena *a, const char **out,
                           ty_error *err)
{
    if (tok_get_string(node, key, otherwise, out, err) < 0)
        return -1;
    if (*out == NULL || (*out)[0] == 0 || strlen(*out) != (size_t)tok_char_bytes((*out)[0]))
        return ty_doc_error(node, err, TY_E_RANGE, NULL, "\"%s\" must be one character", key);
    *out = ty_arena_strdup(a, *out);
    return 0;
}

static int split_read_metaspace(const ty_doc *node, ty_arena *a, tok_splitter *out, ty_error *err)
{
    split_step s = {.run = split_metaspace, .rewrites = true};
    const char *scheme;
    bool prefix;
    if (split_read_mark(node, "replacement", "\xe2\x96\x81", a, &s.mark, err) < 0 ||
        tok_get_bool(node, "add_prefix_space", true, &prefix, err) < 0 ||
        tok_get_bool(node, "split", true, &s.does_split, err) < 0 ||
        tok_get_string(node, "prepend_scheme", prefix ? "always" : "never", &scheme, err) < 0)
        return -1;
    s.only_first = strcmp(scheme, "first") == 0;
    s.prepend = s.only_first || strcmp(scheme, "always") == 0;
    if (!s.prepend && strcmp(scheme, "never") != 0)
        return ty_doc_error(node, err, TY_E_RANGE, NULL, "prepend_scheme must be always, never or first");
    return split_add(out, s, err);
}

static int split_read_bytes(const ty_doc *node, tok_splitter *out, ty_error *err)
{
    split_step s = {.run = split_bytes, .rewrites = true};
    if (tok_get_bool(node, "add_prefix_space", true, &s.add_space, err) < 0 ||
        tok_get_bool(node, "use_regex", true, &s.use_regex, err) < 0)
        return -1;
    return split_add(out, s, err);
}

static int split_read_class(const ty_doc *node, const char *type, ty_arena *a, tok_splitter *out, ty_error *err)
{
    split_step s = {.run = split_class, .behavior = SPLIT_ISOLATED};
    bool single = true;
    if (strcmp(type, "Punctuation") == 0) {
        s.bits = TOK_PUNCTUATION;
        if (split_read_behavior(node, SPLIT_ISOLATED, &s.behavior, err) < 0)
            return -1;
    } else if (strcmp(type, "Digits") == 0) {
        s.bits = TOK_NUMBER;
        if (tok_get_bool(node, "individual_digits", false, &single, err) < 0)
            return -1;
        s.behavior = single ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
    } else {
        s.behavior = SPLIT_REMOVED;
        if (split_read_mark(node, "delimiter", NULL, a, &s.mark, err) < 0)
            return -1;
    }
    return split_add(out, s, err);
}

static int split_read_other(const ty_doc *node, const char *type, ty_arena *a, tok_splitter *out, ty_error *err)
{
    if (strcmp(type, "Whitespace") == 0)
        return split_add(out, (split_step){.run = split_words}, err);
    if (strcmp(type, "WhitespaceSplit") == 0)
        return split_add(out, (split_step){.run = split_class, .bits = TOK_SPACE}, err);
    if (strcmp(type, "BertPreTokenizer") == 0)
        return split_add(out, (split_step){.run = split_class, .bits = TOK_SPACE}, err) < 0
                   ? -1
                   : split_add(out,
                               (split_step){.run = split_class, .bits = TOK_PUNCTUATION, .behavior = SPLIT_ISOLATED},
                               err);
    if (strcmp(type, "Punctuation") == 0 || strcmp(type, "Digits") == 0 || strcmp(type, "CharDelimiterSplit") == 0)
        return split_read_class(node, type, a, out, err);
    if (strcmp(type, "Metaspace") == 0)
        return split_read_metaspace(node, a, out, err);
    if (strcmp(type, "ByteLevel") == 0)
        return split_read_bytes(node, out, err);
    if (strcmp(type, "Split") == 0)
        return split_read_pattern(node, out, err);
    return tok_refuse_type(node, "pre-tokenizer", type,
                           "ByteLevel, Metaspace, Split, Whitespace, WhitespaceSplit, BertPreTokenizer, Punctuation, "
                           "Digits, CharDelimiterSplit and Sequence",
                           err);
}

static int split_read(const ty_doc *node, int depth, ty_arena *a, tok_splitter *s, ty_error *err)
{
    const char *type;
    if (node == NULL || node->kind == TY_DOC_NULL)
        return 0;
    if (tok_get_type(node, &type, err) < 0)
        return -1;
    if (strcmp(type, "Sequence") != 0)
        return split_read_other(node, type, a, s, err);
    const ty_doc *list = ty_doc_find(node, "pretokenizers");
    if (list == NULL || list->kind != TY_DOC_LIST || depth == 8)
        return ty_doc_error(node, err, TY_E_TYPE, NULL, "expected a list \"pretokenizers\", at most 8 deep");
    for (uint32_t i = 0; i < list->n_items; i++)
        if (split_read(&list->items[i], depth + 1, a, s, err) < 0)
            return -1;
    return 0;
}

int tok_splitter_read(const ty_doc *node, ty_arena *a, const tok_splitter **out, ty_error *err)
{
    tok_splitter *s = TY_NEW(a, tok_splitter);
    *out = s; /* dropped by the caller, whatever happens */
    return split_read(node, 0, a, s, err) < 0 ? ty_error_wrap(err, "pre_tokenizer") : 0;
}

void tok_splitter_drop(const tok_splitter *s)
{
    for (int i = 0; s != NULL && i < s->n; i++)
        tok_pattern_free(s->step[i].pattern);
}

int tok_split(const tok_splitter *s, tok_work *w, int *which, ty_error *err)
{
    for (int i = 0; i < s->n; i++) {
        tok_pieces *from = &w->pieces[*which], *to = &w->pieces[1 - *which];
        tok_text text = from->text;
        to->list.n = 0;
        if (s->step[i].rewrites) {
            to->text.n = 0;
        } else {
            from->text = to->text;
            to->text = text;
        }
        size_t n = tok_pieces_n(from);
        for (size_t k = 0; k < n; k++) {
            tok_piece piece = tok_pieces_get(from, k);
            if (piece.id >= 0)
                tok_pieces_add(to, 0, 0, piece.id, false);
            else if (s->step[i].run(&s->step[i], w, text.p + piece.at, piece, to, err) < 0)
                return -1;
        }
        if (to->text.failed || to->list.failed || w->room[0].failed)
            return ty_error_set(err, TY_E_LIMIT, "no memory for the pieces of a text, or it becomes too long");
        *which = 1 - *which;
    }
    return 0;
}
