/* rows.c - texts as rows of ids: special tokens around them, cut and filled up, and where in a row a piece of a text
 * is.
 */
#include "container/input/tokenizer/parts.h"
#include "container/input/tokenizer/tokenizer.h"

/* The ids of a text among those in w->ids. */
typedef struct tokenizer_part {
    int64_t first, n;
} tokenizer_part;

typedef struct tokenizer_row {
    int32_t *ids;
    uint8_t *types; /* NULL: not wanted */
    int32_t *word;  /* likewise */
    int64_t n, max; /* n counts on beyond max */
} tokenizer_row;

static int64_t tokenizer_n_ids(const tok_work *w)
{
    return (int64_t)(w->ids.n / sizeof(int32_t));
}

static void tokenizer_put(tokenizer_row *r, int32_t id, uint8_t type, int32_t word)
{
    if (r->n < r->max) {
        r->ids[r->n] = id;
        if (r->types != NULL)
            r->types[r->n] = type;
        if (r->word != NULL)
            r->word[r->n] = word;
    }
    r->n++;
}

/* The number of the word that id `at` is of, from *word on. */
static int32_t tokenizer_word_of(const tok_work *w, int64_t at, int32_t *word)
{
    int64_t end, n = (int64_t)(w->ends.n / sizeof end);
    for (; *word < n; ++*word) {
        memcpy(&end, w->ends.p + (size_t)*word * sizeof end, sizeof end);
        if (at < end)
            return *word;
    }
    return -1;
}

static void tokenizer_put_part(const tok_work *w, const tokenizer_part *p, tok_template_item item, tokenizer_row *r)
{
    const int32_t *ids = (const int32_t *)(const void *)w->ids.p;
    int32_t word = 0;
    for (int64_t k = p->first; k < p->first + p->n; k++)
        tokenizer_put(r, ids[k], item.type, item.id == TOK_TEXT && r->word ? tokenizer_word_of(w, k, &word) : -1);
}

/* How many ids of the two texts are left in so much room: the shorter text stays whole if it takes no more than half of
 * it. Source: truncate_encodings of tokenizers (utils/truncation.rs), LongestFirst. */
static void tokenizer_share(int64_t room, int64_t *a, int64_t *b)
{
    int64_t *few = *a <= *b ? a : b, *many = few == a ? b : a;
    if (*a + *b <= room)
        return;
    *many = *few > room - *few ? *few : room - *few;
    if (*few + *many <= room)
        return;
    *few = room / 2;
    *many = *few + room % 2;
}

static void tokenizer_cut(const ty_tokenizer *t, int64_t kept, tokenizer_part *p)
{
    if (t->cuts_left && p->n > kept)
        p->first += p->n - kept;
    p->n = p->n < kept ? p->n : kept;
}

/* Cuts the texts so that with the template at most `length` ids come out. second: NULL for one text. */
static void tokenizer_fit(const ty_tokenizer *t, int64_t length, tokenizer_part *first, tokenizer_part *second)
{
    const tok_template *frame = second ? &t->pair : &t->single;
    int64_t room = length > frame->n_special ? length - frame->n_special : 0;
    int64_t kept = second ? first->n : room, kept_second = second ? second->n : 0;
    if (second) {
        tokenizer_share(room, &kept, &kept_second);
        tokenizer_cut(t, kept_second, second);
    }
    tokenizer_cut(t, kept, first);
}

/* The texts' ids within the template. A template has a text at least once unless its author left it out. */
static void tokenizer_wrap(const ty_tokenizer *t, const tok_work *w, tokenizer_part first, tokenizer_part *second,
                           int64_t length, tokenizer_row *r)
{
    const tok_template *frame = second ? &t->pair : &t->single;
    tokenizer_fit(t, length, &first, second);
    for (int i = 0; i < frame->n; i++) {
        tok_template_item item = frame->item[i];
        if (item.id >= 0)
            tokenizer_put(r, item.id, item.type, -1);
        else
            tokenizer_put_part(w, item.id == TOK_SECOND ? second : &first, item, r);
    }
}

int64_t ty_tokenizer_encode(const ty_tokenizer *t, const char *text, size_t n, bool special, int32_t *ids, int64_t max,
                            ty_error *err)
{
    tok_work *w = tok_borrow(t, err);
    if (w == NULL)
        return -1;
    int64_t count = -1;
    if (tok_encode(t, w, text, n, err) == 0) {
        tokenizer_row row = {.ids = ids, .max = max};
        count = tokenizer_n_ids(w);
        if (special) {
            tokenizer_wrap(t, w, (tokenizer_part){0, count}, NULL, t->truncates ? t->max_length : INT64_MAX, &row);
            count = row.n;
        } else if (max > 0 && count > 0) {
            memcpy(ids, w->ids.p, (size_t)(count < max ? count : max) * sizeof *ids);
        }
    }
    tok_give_back(t, w);
    return count;
}

static void tokenizer_fill(const ty_tokenizer *t, int64_t n, int64_t length, int32_t pad, int32_t *ids, uint8_t *mask,
                           uint8_t *types)
{
    int64_t n_pad = length - n, at = t->fills_left ? 0 : n;
    if (t->fills_left) {
        memmove(ids + n_pad, ids, (size_t)n * sizeof *ids);
        if (types != NULL)
            memmove(types + n_pad, types, (size_t)n);
    }
    for (int64_t i = at; i < at + n_pad; i++)
        ids[i] = pad;
    if (types != NULL)
        memset(types + at, t->pad_type, (size_t)n_pad);
    if (mask != NULL) {
        memset(mask, 1, (size_t)length);
        memset(mask + at, 0, (size_t)n_pad);
    }
}

static int tokenizer_add_words(const ty_tokenizer *t, tok_work *w, const ty_text *word, int64_t n, ty_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        if (tok_encode(t, w, word[i].p, word[i].n, err) < 0)
            return -1;
        int64_t end = tokenizer_n_ids(w);
        tok_text_add(&w->ends, &end, sizeof end);
    }
    return w->ends.failed ? ty_error_set(err, TY_E_LIMIT, "no memory for the words of a text") : 0;
}

static int tokenizer_fits(const ty_tokenizer *t, const ty_token_texts *texts, int64_t length, ty_error *err)
{
    const tok_template *frame = texts->second ? &t->pair : &t->single;
    if (frame->n == 0 && texts->second) {
        ty_error_set(err, TY_E_UNSUPPORTED, "the tokenizer's post-processor says nothing, or too much, of pairs");
        return ty_error_help(err, "give it a TemplateProcessing with \"pair\", or join the two texts in the data");
    }
    if (length >= frame->n_special && length >= 1)
        return 0;
    return ty_error_set(err, TY_E_RANGE, "a row of %lld tokens has no room for the %lld special ones",
                        (long long)length, (long long)frame->n_special);
}

int64_t ty_tokenizer_encode_texts(const ty_tokenizer *t, const ty_token_texts *texts, int64_t length, int32_t *ids,
                                  uint8_t *types, int32_t *word, ty_error *err)
{
    tok_work *w = tokenizer_fits(t, texts, length, err) < 0 ? NULL : tok_borrow(t, err);
    if (w == NULL)
        return -1;
    tokenizer_row row = {.ids = ids, .types = types, .word = word, .max = length};
    tokenizer_part first = {0, 0}, second = {0, 0};
    int rc = tokenizer_add_words(t, w, texts->word, texts->n_words, err);
    first.n = second.first = tokenizer_n_ids(w);
    if (rc == 0 && texts->second)
        rc = tokenizer_add_words(t, w, texts->second, texts->n_second, err);
    second.n = tokenizer_n_ids(w) - second.first;
    if (rc == 0)
        tokenizer_wrap(t, w, first, texts->second ? &second : NULL, length, &row);
    tok_give_back(t, w);
    return rc < 0 ? -1 : row.n < length ? row.n : length;
}

/* How many of a text's ids are those of the text as far as `to`, of which there are *n. Behind what is in w->ids. */
static int tokenizer_common(const ty_tokenizer *t, tok_work *w, ty_text text, size_t to, tokenizer_part whole,
                            int64_t *same, int64_t *n, ty_error *err)
{
    int64_t before = tokenizer_n_ids(w);
    *same = *n = 0;
    if (tok_encode(t, w, text.p, to, err) < 0)
        return -1;
    const int32_t *ids = (const int32_t *)(const void *)w->ids.p;
    *n = tokenizer_n_ids(w) - before;
    while (*same < *n && *same < whole.n && ids[before + *same] == ids[whole.first + *same])
        ++*same;
    return 0;
}

/* Which id of a text holds its byte before `to`: of those as far as there the last one or, where the rest of the word
 * makes others of them, the first that is another. */
static int tokenizer_id_at(const ty_tokenizer *t, tok_work *w, ty_text text, size_t to, tokenizer_part whole,
                           int64_t *out, ty_error *err)
{
    int64_t same, n;
    if (tokenizer_common(t, w, text, to, whole, &same, &n, err) < 0)
        return -1;
    *out = same == n && n > 0 ? n - 1 : same;
    return 0;
}

static bool tokenizer_is_within(ty_text text, size_t at)
{
    return at < text.n && ((unsigned char)text.p[at] & 0xc0) == 0x80;
}

/* The id that the piece begins with: its first character's last one. */
static int tokenizer_first_id(const ty_tokenizer *t, tok_work *w, ty_text text, size_t from, tokenizer_part whole,
                              int64_t *out, ty_error *err)
{
    size_t to = from + 1;
    while (tokenizer_is_within(text, to))
        to++;
    return tokenizer_id_at(t, w, text, to, whole, out, err);
}

/* The id that it ends with: its last character's first one, of several bytes. */
static int tokenizer_last_id(const ty_tokenizer *t, tok_work *w, ty_text text, size_t to, tokenizer_part whole,
                             int64_t *out, ty_error *err)
{
    int64_t same, n;
    size_t last = to - 1;
    if (tokenizer_id_at(t, w, text, to, whole, out, err) < 0)
        return -1;
    while (last > 0 && tokenizer_is_within(text, last))
        last--;
    if (last + 1 == to)
        return 0;
    if (tokenizer_common(t, w, text, last, whole, &same, &n, err) < 0)
        return -1;
    *out = same < *out ? same : *out;
    return 0;
}

/* Where the second text's id number k is in the row, of which `cut` is what is left of it; -1: not there. */
static int64_t tokenizer_place(const ty_tokenizer *t, int64_t n_first, tokenizer_part whole, tokenizer_part cut,
                               int64_t k)
{
    int64_t at = 0;
    k -= cut.first - whole.first;
    for (int i = 0; i < t->pair.n && t->pair.item[i].id != TOK_SECOND; i++)
        at += t->pair.item[i].id == TOK_TEXT ? n_first : 1;
    return k >= 0 && k < cut.n ? at + k : -1;
}

int ty_tokenizer_locate(const ty_tokenizer *t, const ty_token_texts *texts, size_t from, size_t to, int64_t length,
                        int64_t *first, int64_t *last, ty_error *err)
{
    tok_work *w = tokenizer_fits(t, texts, length, err) < 0 ? NULL : tok_borrow(t, err);
    const ty_text second = texts->second[0];
    *first = *last = -1;
    if (w == NULL)
        return -1;
    tokenizer_part one = {0, 0}, two = {0, 0};
    int64_t begin = 0, end = 0;
    int rc = tok_encode(t, w, texts->word[0].p, texts->word[0].n, err);
    one.n = two.first = tokenizer_n_ids(w);
    rc = rc < 0 ? -1 : tok_encode(t, w, second.p, second.n, err);
    two.n = tokenizer_n_ids(w) - two.first;
    rc = rc < 0 ? -1 : tokenizer_first_id(t, w, second, from, two, &begin, err);
    rc = rc < 0 ? -1 : tokenizer_last_id(t, w, second, to, two, &end, err);
    tokenizer_part cut = two;
    tokenizer_fit(t, length, &one, &cut);
    int64_t a = tokenizer_place(t, one.n, two, cut, begin), b = tokenizer_place(t, one.n, two, cut, end);
    tok_give_back(t, w);
    if (rc == 0 && a >= 0 && b >= a) {
        *first = a;
        *last = b;
    }
    return rc;
}

int64_t ty_tokenizer_row(const ty_tokenizer *t, const char *text, size_t n, int64_t length, int32_t pad, int32_t *ids,
                         uint8_t *mask, uint8_t *types, ty_error *err)
{
    const ty_text whole = {text, n};
    int64_t count =
        ty_tokenizer_encode_texts(t, &(ty_token_texts){.word = &whole, .n_words = 1}, length, ids, types, NULL, err);
    if (count < 0)
        return -1;
    pad = pad >= 0 ? pad : t->pad;
    if (count < length && pad < 0) {
        ty_error_set(err, TY_E_CONFIG, "a text has %lld of %lld tokens, and the tokenizer has none to fill it up with",
                     (long long)count, (long long)length);
        return ty_error_help(err, "say which id fills rows up: pad: ID in the field's declaration");
    }
    tokenizer_fill(t, count, length, pad, ids, mask, types);
    return count;
}
