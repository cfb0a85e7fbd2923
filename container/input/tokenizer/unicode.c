/* unicode.c - the table of characters unpacked, and normal forms. */
#include "container/input/tokenizer/unicode.h"

#include <pthread.h>
#include <zlib.h>

enum {
    HANGUL_FIRST = 0xac00,
    HANGUL_L = 0x1100,
    HANGUL_V = 0x1161,
    HANGUL_T = 0x11a7,
    HANGUL_N_L = 19,
    HANGUL_N_V = 21,
    HANGUL_N_T = 28,
    HANGUL_N = HANGUL_N_L * HANGUL_N_V * HANGUL_N_T,
};

static tok_unicode unicode_table;
static bool unicode_ok;

/* ---- the table ---- */

typedef struct unicode_reader {
    const uint8_t *p, *end;
} unicode_reader;

static uint32_t unicode_varint(unicode_reader *r)
{
    uint32_t v = 0;
    for (int shift = 0; r->p < r->end && shift < 32; shift += 7) {
        uint8_t b = *r->p++;
        v |= (uint32_t)(b & 127) << shift;
        if (b < 128)
            break;
    }
    return v;
}

static int32_t unicode_signed(unicode_reader *r)
{
    uint32_t v = unicode_varint(r);
    return (int32_t)(v >> 1) ^ -(int32_t)(v & 1);
}

static void unicode_classes(unicode_reader *r, tok_unicode *u)
{
    for (uint32_t at = 0; at < TOK_CHARACTERS;) {
        uint32_t n = unicode_varint(r);
        memset(u->bits + at, *r->p++, n);
        at += n;
    }
    uint32_t n = unicode_varint(r);
    for (uint32_t c = 0; n > 0; n--) {
        c += unicode_varint(r);
        u->combine[c] = *r->p++;
    }
}

static bool unicode_lower(unicode_reader *r, tok_unicode *u)
{
    uint32_t n = unicode_varint(r), c = 0;
    int32_t lag = 0;
    u->to_lower = malloc((n + 1) * sizeof *u->to_lower);
    for (uint32_t i = 1; u->to_lower != NULL && i <= n; i++) {
        c += unicode_varint(r);
        lag += unicode_signed(r);
        u->lower[c] = (uint16_t)i;
        u->to_lower[i] = (int32_t)c + lag;
    }
    return u->to_lower != NULL;
}

static uint32_t unicode_pair_slot(uint32_t first, uint32_t second)
{
    return (first * 0x9e3779b1u ^ second * 0x85ebca6bu) >> 20;
}

static void unicode_add_pair(tok_unicode *u, const uint32_t *parts, uint32_t c)
{
    uint32_t slot = unicode_pair_slot(parts[0], parts[1]);
    while (u->pairs[slot % TOK_UNICODE_PAIRS] != 0)
        slot++;
    u->pairs[slot % TOK_UNICODE_PAIRS] = (uint64_t)parts[0] << 42 | (uint64_t)parts[1] << 21 | c;
}

static bool unicode_decompositions(unicode_reader *r, tok_unicode *u)
{
    uint32_t n = unicode_varint(r), c = 0, n_parts = 0;
    int32_t before = 0;
    u->decomposition = malloc((n + 1) * sizeof *u->decomposition);
    u->parts = malloc((size_t)(r->end - r->p) * sizeof *u->parts);
    if (u->decomposition == NULL || u->parts == NULL)
        return false;
    for (uint32_t i = 1; i <= n; i++) {
        c += unicode_varint(r);
        uint8_t head = *r->p++;
        u->parted[c] = (uint16_t)i;
        u->decomposition[i] = (tok_decomposition){n_parts, head & 63, head & 128};
        for (int k = 0; k < (head & 63); k++) {
            before += unicode_signed(r);
            u->parts[n_parts++] = (uint32_t)before;
        }
        if (head & 64)
            unicode_add_pair(u, u->parts + n_parts - 2, c);
    }
    return true;
}

static void unicode_unpack(void)
{
    tok_unicode *u = &unicode_table;
    uLongf n = ty_unicode_table_unpacked;
    uint8_t *bytes = malloc(n);
    u->bits = calloc(TOK_CHARACTERS, 1);
    u->combine = calloc(TOK_CHARACTERS, 1);
    u->lower = calloc(TOK_CHARACTERS, sizeof *u->lower);
    u->parted = calloc(TOK_CHARACTERS, sizeof *u->parted);
    u->pairs = calloc(TOK_UNICODE_PAIRS, sizeof *u->pairs);
    bool ok = bytes != NULL && u->bits != NULL && u->combine != NULL && u->lower != NULL && u->parted != NULL &&
              u->pairs != NULL && uncompress(bytes, &n, ty_unicode_table, ty_unicode_table_bytes) == Z_OK;
    if (ok) {
        unicode_reader r = {bytes, bytes + n};
        unicode_classes(&r, u);
        unicode_ok = unicode_lower(&r, u) && unicode_decompositions(&r, u);
    }
    free(bytes);
}

const tok_unicode *tok_unicode_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, unicode_unpack);
    return unicode_ok ? &unicode_table : NULL;
}

/* ---- UTF-8 ---- */

uint32_t tok_byte_char(uint8_t b)
{
    if ((b >= '!' && b <= '~') || (b >= 0xa1 && b != 0xad))
        return b;
    return b <= ' ' ? 0x100u + b : b <= 0xa0 ? 0x100u + 33 + (b - 0x7fu) : 0x143;
}

void tok_add_char(tok_text *out, uint32_t c)
{
    if (!tok_text_room(out, 4))
        return;
    uint8_t *p = (uint8_t *)out->p + out->n;
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, c >>= 6)
        p[i] = (uint8_t)(0x80 | (c & 63));
    p[0] = (uint8_t)(first[n] | c);
    out->n += (size_t)n;
}

/* Bytes of the character at p, or minus those that begin like one (Unicode 15, table 3-7: well-formed sequences). */
static int unicode_scan(const uint8_t *p, const uint8_t *end)
{
    uint8_t b = p[0], low = 0x80, high = 0xbf;
    if (b < 0x80)
        return 1;
    if (b < 0xc2 || b > 0xf4)
        return -1;
    int n = b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
    low = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : low;
    high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : high;
    for (int i = 1; i < n; i++, low = 0x80, high = 0xbf)
        if (p + i >= end || p[i] < low || p[i] > high)
            return -i;
    return n;
}

void tok_add_repaired(tok_text *out, const char *bytes, size_t n)
{
    const uint8_t *p = (const uint8_t *)bytes, *end = p + n, *good = p;
    while (p < end) {
        uint64_t eight;
        if (end - p >= 8 && (memcpy(&eight, p, 8), (eight & UINT64_C(0x8080808080808080)) == 0)) {
            p += 8;
            continue;
        }
        int k = unicode_scan(p, end);
        if (k > 0) {
            p += k;
            continue;
        }
        tok_text_add(out, good, (size_t)(p - good));
        tok_text_add(out, "\xef\xbf\xbd", 3);
        p -= k;
        good = p;
    }
    tok_text_add(out, good, (size_t)(p - good));
}

/* ---- normal forms ---- */

static uint32_t *unicode_at(const tok_text *t, size_t i)
{
    return (uint32_t *)(void *)t->p + i;
}

static void unicode_part(const tok_unicode *u, uint32_t c, bool compat, tok_text *out)
{
    if (c - HANGUL_FIRST < HANGUL_N) {
        uint32_t s = c - HANGUL_FIRST;
        uint32_t parts[3] = {HANGUL_L + s / (HANGUL_N_V * HANGUL_N_T),
                             HANGUL_V + s % (HANGUL_N_V * HANGUL_N_T) / HANGUL_N_T, HANGUL_T + s % HANGUL_N_T};
        tok_text_add(out, parts, (s % HANGUL_N_T ? 3 : 2) * sizeof *parts);
        return;
    }
    const tok_decomposition *d = u->parted[c] ? &u->decomposition[u->parted[c]] : NULL;
    if (d == NULL || (d->compat && !compat)) {
        tok_text_add(out, &c, sizeof c);
        return;
    }
    for (int i = 0; i < d->n; i++) /* as deep as the Standard's data, which we made the table from */
        unicode_part(u, u->parts[d->at + (uint32_t)i], compat, out);
}

enum { UNICODE_MARKS = 32 }; /* so many are sorted in place */

/* The same as below for a run of any length: by counting, with room for a copy. */
static void unicode_order_many(const tok_unicode *u, uint32_t *c, uint32_t *copy, size_t n)
{
    size_t at[256] = {0}, before = 0;
    for (size_t i = 0; i < n; i++)
        at[u->combine[c[i]]]++;
    for (int k = 0; k < 256; k++) {
        size_t here = at[k];
        at[k] = before;
        before += here;
    }
    memcpy(copy, c, n * sizeof *c);
    for (size_t i = 0; i < n; i++)
        c[at[u->combine[copy[i]]]++] = copy[i];
}

static void unicode_order_few(const tok_unicode *u, uint32_t *c, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint32_t mark = c[i];
        size_t k = i;
        for (; k > 0 && u->combine[c[k - 1]] > u->combine[mark]; k--)
            c[k] = c[k - 1];
        c[k] = mark;
    }
}

/* Marks behind a starter into the order of their classes; equal ones stay as they are. */
static void unicode_order(const tok_unicode *u, tok_text *room, size_t n)
{
    for (size_t start = 0; start < n; start++) {
        size_t end = start;
        while (end < n && u->combine[*unicode_at(room, end)] != 0)
            end++;
        if (end - start > UNICODE_MARKS && !tok_text_room(room, (end - start) * sizeof(uint32_t)))
            return;
        if (end - start > UNICODE_MARKS)
            unicode_order_many(u, unicode_at(room, start), unicode_at(room, n), end - start);
        else if (end > start)
            unicode_order_few(u, unicode_at(room, start), end - start);
        start = end;
    }
}

static uint32_t unicode_composed(const tok_unicode *u, uint32_t a, uint32_t b)
{
    if (a - HANGUL_L < HANGUL_N_L && b - HANGUL_V < HANGUL_N_V)
        return HANGUL_FIRST + ((a - HANGUL_L) * HANGUL_N_V + (b - HANGUL_V)) * HANGUL_N_T;
    if (a - HANGUL_FIRST < HANGUL_N && (a - HANGUL_FIRST) % HANGUL_N_T == 0 && b - HANGUL_T - 1 < HANGUL_N_T - 1)
        return a + (b - HANGUL_T);
    uint64_t want = (uint64_t)a << 21 | b;
    for (uint32_t slot = unicode_pair_slot(a, b);; slot++) {
        uint64_t pair = u->pairs[slot % TOK_UNICODE_PAIRS];
        if (pair == 0 || pair >> 21 == want)
            return pair & 0x1fffff;
    }
}

/* Joins each character with the last starter where nothing of its class or above stands between. Returns how many are
 * left. */
static size_t unicode_compose(const tok_unicode *u, uint32_t *c, size_t n)
{
    size_t out = 0, starter = 0;
    bool has_starter = false;
    for (size_t i = 0; i < n; i++) {
        uint8_t here = u->combine[c[i]];
        bool free =
            has_starter && (out == starter + 1 || (u->combine[c[out - 1]] != 0 && u->combine[c[out - 1]] < here));
        uint32_t joined = free ? unicode_composed(u, c[starter], c[i]) : 0;
        if (joined != 0) {
            c[starter] = joined;
            continue;
        }
        if (here == 0) {
            starter = out;
            has_starter = true;
        }
        c[out++] = c[i];
    }
    return out;
}

void tok_add_normal_form(const tok_unicode *u, const char *text, size_t n, bool compat, bool compose, tok_text *room,
                         tok_text *out)
{
    const char *end = text + n;
    while (text < end) {
        const char *ascii = text;
        while (text < end && !(*text & 0x80))
            text++;
        /* The last letter before anything else may be joined with it. */
        if (text > ascii && text < end)
            text--;
        tok_text_add(out, ascii, (size_t)(text - ascii));
        room->n = 0;
        for (int k, n_ascii = 0; text < end && n_ascii < 2; text += k) {
            uint32_t c = tok_char(text, &k);
            n_ascii = c < 0x80 ? n_ascii + 1 : 0;
            if (n_ascii == 2)
                break;
            unicode_part(u, c, compat, room);
        }
        size_t count = room->failed ? 0 : room->n / sizeof(uint32_t);
        if (count == 0) {
            out->failed |= room->failed;
            if (room->failed)
                return;
            continue;
        }
        unicode_order(u, room, count);
        if (compose)
            count = unicode_compose(u, unicode_at(room, 0), count);
        for (size_t i = 0; i < count; i++)
            tok_add_char(out, *unicode_at(room, i));
    }
    room->n = 0;
}
