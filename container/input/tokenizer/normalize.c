/* normalize.c - normalizers of a tokenizer.json: what happens to a text before it is cut.
 *
 * Sequences are laid out as one list of steps; BertNormalizer is four of them.
 */
#include "container/input/tokenizer/parts.h"

typedef struct normalize_step normalize_step;
typedef int normalize_fn(const normalize_step *s, tok_work *w, const char *p, size_t n, tok_text *out, ty_error *err);

struct normalize_step {
    normalize_fn *run;
    bool compat, compose; /* of normal forms */
    bool left, right;     /* of Strip */
    uint8_t drop;         /* classes of characters that go */
    const char *content;  /* of Prepend, Replace */
    tok_pattern *pattern;
    tok_charsmap *map;
    const tok_unicode *unicode;
};

enum { NORMALIZE_MAX_STEPS = 64 };

struct tok_normalizer {
    normalize_step step[NORMALIZE_MAX_STEPS];
    int n;
    ty_arena *arena; /* while it is read */
};

/* ---- steps ---- */

static int normalize_form(const normalize_step *s, tok_work *w, const char *p, size_t n, tok_text *out, ty_error *err)
{
    (void)err;
    tok_add_normal_form(s->unicode, p, n, s->compat, s->compose, &w->room[2], out);
    return 0;
}

static int normalize_lower(const normalize_step *s, tok_work *w, const char *p, size_t n, tok_text *out, ty_error *err)
{
    (void)w, (void)err;
    if (!tok_text_room(out, n))
        return 0;
    for (size_t i = 0; i < n;) {
        int k;
        uint32_t c = tok_char(p + i, &k);
        if (c < 0x80)
            tok_text_addc(out, (char)(c >= 'A' && c <= 'Z' ? c + 32 : c));
        else if (c == 0x130) /* the only one that becomes two */
            tok_text_add(out, "i\xcc\x87", 3);
        else if (s->unicode->lower[c])
            tok_add_char(out, (uint32_t)s->unicode->to_lower[s->unicode->lower[c]]);
        else
            tok_text_add(out, p + i, (size_t)k);
        i += (size_t)k;
    }
    return 0;
}

static int normalize_drop(const normalize_step *s, tok_work *w, const char *p, size_t n, tok_text *out, ty_error *err)
{
    (void)w, (void)err;
    for (size_t i = 0, from = 0; i < n;) {
        int k;
        uint32_t c = tok_char(p + i, &k);
        bool goes = s->unicode->bits[c] & s->drop;
        i += (size_t)k;
        if (goes || i == n)
            tok_text_add(out, p + from, i - from - (goes ? (size_t)k : 0));
        if (goes)
            from = i;
    }
    return 0;
}

/* BertNormalizer's clean_text. */
static int normalize_clean(const normalize_step *s, tok_work *w, const char *p, size_t n, tok_text *out, ty_error *err)
{
    (void)w, (void)err;
    if (!tok_text_room(out, n))
        return 0;
    for (size_t i = 0; i < n;) {
        int k;
        uint8_t bits = s->unicode->bits[tok_char(p + i, &k)];
        if (!(bits & (TOK_CONTROL | TOK_SPACE)))
            tok_text_add(out, p + i, (size_t)k);
        else if (!(bits & TOK_CONTROL))
            tok_text_addc(out, ' ');
        i += (size_t)k;
    }
    return 0;
}

static bool normalize_is_chinese(uint32_t c)
{
    static const uint32_t ranges[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},  {0x20000, 0x2a6df},
                                         {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    for (size_t i = 0; c >= 0x3400 && i < sizeof ranges / sizeof ranges[0]; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

static int normalize_chinese(const normalize_step *s, tok_work *w, const char *p, size_t n, tok_text *out,
                             ty_error *err)
{
    (void)s, (void)w, (void)err;
    if (!tok_text_room(out, n))
        return 0;
    for (size_t i = 0; i < n;) {
        int k;
        bool is_chinese = normalize_is_chinese(tok_char(p + i, &k));
        if (is_chinese)
            tok_text_addc(out, ' ');
        tok_text_add(out, p + i, (size_t)k);
        if (is_chinese)
            tok_text_addc(out, ' ');
        i += (size_t)k;
    }
    return 0;
}

static int normalize_strip(const normalize_step *s, tok_work *w, const char *p, size_t n, tok_text *out, ty_error *err)
{
    (void)w, (void)err;
    int k;
    size_t from = 0;
    while (s->left && from < n && (s->unicode->bits[tok_char(p + from, &k)] & TOK_SPACE))
        from += (size_t)k;
    while (s->right && n > from) {
        size_t last = n - 1;
        while (last > from && (p[last] & 0xc0) == 0x80)
            last--;
        if (!(s->unicode->bits[tok_char(p + last, &k)] & TOK_SPACE))
            break;
        n = last;
    }
    tok_text_add(out, p + from, n - from);
    return 0;
}

static int normalize_prepend(const normalize_step *s, tok_work *w, const char *p, size_t n, tok_text *out,
                             ty_error *err)
{
    (void)w, (void)err;
    if (n > 0)
        tok_text_add(out, s->content, strlen(s->content));
    tok_text_add(out, p, n);
    return 0;
}

static int normalize_replace(const normalize_step *s, tok_work *w, const char *p, size_t n, tok_text *out,
                             ty_error *err)
{
    tok_pattern_at at = {0, -1};
    size_t from = 0, start, end;
    int rc;
    while ((rc = tok_pattern_next(s->pattern, w->pattern, p, n, &at, &start, &end, err)) > 0 && !out->failed) {
        tok_text_add(out, p + from, start - from);
        tok_text_add(out, s->content, strlen(s->content));
        from = end;
    }
    tok_text_add(out, p + from, n - from);
    return rc;
}

/* As SentencePiece was trained, by way of Hugging Face's reader: a character with its marks is looked up as a whole,
 * if it is short, and by its beginning; otherwise each of its characters. */
static void normalize_map_one(const normalize_step *s, const char *p, size_t n, tok_text *out)
{
    const char *to;
    size_t n_to;
    if (n < 6 && tok_charsmap_find(s->map, p, n, &to, &n_to)) {
        tok_text_add(out, to, n_to);
        return;
    }
    for (size_t i = 0; i < n;) {
        size_t k = (size_t)tok_char_bytes(p[i]);
        if (tok_charsmap_find(s->map, p + i, k, &to, &n_to))
            tok_text_add(out, to, n_to);
        else
            tok_text_add(out, p + i, k);
        i += k;
    }
}

static int normalize_map(const normalize_step *s, tok_work *w, const char *p, size_t n, tok_text *out, ty_error *err)
{
    for (size_t i = 0; i < n && !out->failed;) {
        /* Between two ASCII characters there is a border, but within CR LF. */
        size_t from = i, start, end = i + 1;
        bool plain = !(p[i] & 0x80) && p[i] != '\r' && (i + 1 == n || !(p[i + 1] & 0x80));
        tok_pattern_at at = {i, -1};
        if (!plain && tok_pattern_next(s->pattern, w->pattern, p, n, &at, &start, &end, err) < 0)
            return -1;
        normalize_map_one(s, p + from, end - from, out);
        i = end;
    }
    return 0;
}

/* Hugging Face's name for SentencePiece's rules of old. */
static int normalize_nmt(const normalize_step *s, tok_work *w, const char *p, size_t n, tok_text *out, ty_error *err)
{
    (void)s, (void)w, (void)err;
    for (size_t i = 0; i < n;) {
        int k;
        uint32_t c = tok_char(p + i, &k);
        bool goes = (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f;
        bool blank = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
                     c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
        if (blank)
            tok_text_addc(out, ' ');
        else if (!goes)
            tok_text_add(out, p + i, (size_t)k);
        i += (size_t)k;
    }
    return 0;
}

/* Each byte as the character that stands for it (split.c). */
static int normalize_bytes(const normalize_step *s, tok_work *w, const char *p, size_t n, tok_text *out, ty_error *err)
{
    (void)s, (void)w, (void)err;
    for (size_t i = 0; i < n; i++)
        tok_add_char(out, tok_byte_char((uint8_t)p[i]));
    return 0;
}

/* ---- reading ---- */

static int normalize_add(tok_normalizer *n, normalize_step step, ty_error *err)
{
    step.unicode = tok_unicode_get();
    if (step.unicode == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the table of characters");
    if (n->n == NORMALIZE_MAX_STEPS)
        return ty_error_set(err, TY_E_LIMIT, "more than %d normalizers", NORMALIZE_MAX_STEPS);
    if (step.content != NULL)
        step.content = ty_arena_strdup(n->arena, step.content);
    n->step[n->n++] = step;
    return 0;
}

static int normalize_read_bert(const ty_doc *node, tok_normalizer *n, ty_error *err)
{
    bool clean, chinese, lower, accents;
    if (tok_get_bool(node, "clean_text", true, &clean, err) < 0 ||
        tok_get_bool(node, "handle_chinese_chars", true, &chinese, err) < 0 ||
        tok_get_bool(node, "lowercase", true, &lower, err) < 0 ||
        tok_get_bool(node, "strip_accents", lower, &accents, err) < 0)
        return -1;
    if ((clean && normalize_add(n, (normalize_step){.run = normalize_clean}, err) < 0) ||
        (chinese && normalize_add(n, (normalize_step){.run = normalize_chinese}, err) < 0) ||
        (accents && (normalize_add(n, (normalize_step){.run = normalize_form}, err) < 0 ||
                     normalize_add(n, (normalize_step){.run = normalize_drop, .drop = TOK_ACCENT}, err) < 0)) ||
        (lower && normalize_add(n, (normalize_step){.run = normalize_lower}, err) < 0))
        return -1;
    return 0;
}

static int normalize_read_replace(const ty_doc *node, tok_normalizer *n, ty_error *err)
{
    normalize_step s = {.run = normalize_replace};
    if (tok_get_string(node, "content", "", &s.content, err) < 0 || tok_get_pattern(node, &s.pattern, err) < 0)
        return -1;
    int rc = normalize_add(n, s, err);
    if (rc < 0)
        tok_pattern_free(s.pattern);
    return rc;
}

static int normalize_read_map(const ty_doc *node, ty_arena *a, tok_normalizer *n, ty_error *err)
{
    normalize_step s = {.run = normalize_map};
    const ty_doc *map = ty_doc_find(node, "precompiled_charsmap");
    if (map == NULL)
        return ty_doc_error(node, err, TY_E_MISSING_KEY, NULL, "\"precompiled_charsmap\" is missing");
    if (map->kind == TY_DOC_NULL)
        return 0;
    if (tok_charsmap_read(map, a, &s.map, err) < 0 || tok_pattern_graphemes(&s.pattern, err) < 0)
        return -1;
    int rc = normalize_add(n, s, err);
    if (rc < 0)
        tok_pattern_free(s.pattern);
    return rc;
}

static int normalize_read_other(const ty_doc *node, const char *type, tok_normalizer *n, ty_error *err)
{
    static const struct {
        const char *type;
        normalize_step step;
    } rows[] = {
        {"NFC", {.run = normalize_form, .compose = true}},
        {"NFD", {.run = normalize_form}},
        {"NFKC", {.run = normalize_form, .compat = true, .compose = true}},
        {"NFKD", {.run = normalize_form, .compat = true}},
        {"Lowercase", {.run = normalize_lower}},
        {"StripAccents", {.run = normalize_drop, .drop = TOK_MARK}},
        {"Strip", {.run = normalize_strip}},
        {"Prepend", {.run = normalize_prepend}},
        {"Nmt", {.run = normalize_nmt}},
        {"ByteLevel", {.run = normalize_bytes}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        normalize_step s = rows[i].step;
        if (strcmp(rows[i].type, type) != 0)
            continue;
        if (tok_get_bool(node, "strip_left", true, &s.left, err) < 0 ||
            tok_get_bool(node, "strip_right", true, &s.right, err) < 0 ||
            tok_get_string(node, "prepend", "", &s.content, err) < 0)
            return -1;
        return normalize_add(n, s, err);
    }
    return tok_refuse_type(node, "normalizer", type,
                           "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, Precompiled, Nmt, "
                           "ByteLevel, BertNormalizer and Sequence",
                           err);
}

static int normalize_read(const ty_doc *node, int depth, ty_arena *a, tok_normalizer *n, ty_error *err)
{
    const char *type;
    if (node == NULL || node->kind == TY_DOC_NULL)
        return 0;
    if (tok_get_type(node, &type, err) < 0)
        return -1;
    if (strcmp(type, "BertNormalizer") == 0)
        return normalize_read_bert(node, n, err);
    if (strcmp(type, "Replace") == 0)
        return normalize_read_replace(node, n, err);
    if (strcmp(type, "Precompiled") == 0)
        return normalize_read_map(node, a, n, err);
    if (strcmp(type, "Sequence") != 0)
        return normalize_read_other(node, type, n, err);
    const ty_doc *list = ty_doc_find(node, "normalizers");
    if (list == NULL || list->kind != TY_DOC_LIST || depth == 8)
        return ty_doc_error(node, err, TY_E_TYPE, NULL, "expected a list \"normalizers\", at most 8 deep");
    for (uint32_t i = 0; i < list->n_items; i++)
        if (normalize_read(&list->items[i], depth + 1, a, n, err) < 0)
            return -1;
    return 0;
}

int tok_normalizer_read(const ty_doc *node, ty_arena *a, const tok_normalizer **out, ty_error *err)
{
    tok_normalizer *n = TY_NEW(a, tok_normalizer);
    n->arena = a;
    *out = n; /* dropped by the caller, whatever happens */
    return normalize_read(node, 0, a, n, err) < 0 ? ty_error_wrap(err, "normalizer") : 0;
}

void tok_normalizer_drop(const tok_normalizer *n)
{
    for (int i = 0; n != NULL && i < n->n; i++)
        tok_pattern_free(n->step[i].pattern);
}

int tok_normalize(const tok_normalizer *n, tok_work *w, const char *text, size_t len, tok_text *out, ty_error *err)
{
    if (n->n == 0)
        tok_text_add(out, text, len);
    for (int i = 0; i < n->n; i++) {
        tok_text *to = i == n->n - 1 ? out : &w->room[i % 2];
        if (to != out)
            to->n = 0;
        if (n->step[i].run(&n->step[i], w, text, len, to, err) < 0)
            return -1;
        if (to->failed || w->room[2].failed)
            return ty_error_set(err, TY_E_LIMIT, "no memory for a normalised text, or it becomes too long");
        text = to->p;
        len = to->n;
    }
    return 0;
}
