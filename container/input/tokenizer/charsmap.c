/* charsmap.c - SentencePiece's precompiled table of replacements: a double array in base64.
 *
 * Layout: uint32 bytes of the array, the array of uint32 (darts-clone), then texts that end in NUL. Every step is held
 * against the size of the array: the bytes are foreign.
 */
#include "container/input/tokenizer/parts.h"

struct tok_charsmap {
    const uint32_t *unit;
    size_t n_units;
    const char *text;
    size_t n_text;
};

static int charsmap_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != 0 ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* Returns the number of bytes; -1: no base64. */
static ptrdiff_t charsmap_decode(const char *text, uint8_t *out)
{
    ptrdiff_t n = 0;
    uint32_t bits = 0, n_bits = 0;
    for (; *text != 0 && *text != '='; text++) {
        int digit = charsmap_digit(*text);
        if (digit < 0)
            return -1;
        bits = bits << 6 | (uint32_t)digit;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[n++] = (uint8_t)(bits >> n_bits);
        }
    }
    return text[strspn(text, "=")] == 0 ? n : -1;
}

int tok_charsmap_read(const ty_doc *base64, ty_arena *a, tok_charsmap **out, ty_error *err)
{
    const char *text;
    if (ty_doc_string(base64, &text, err) < 0)
        return -1;
    uint8_t *bytes = ty_arena_alloc(a, strlen(text) + 1);
    ptrdiff_t n = charsmap_decode(text, bytes);
    uint32_t n_array = 0;
    if (n >= 4)
        memcpy(&n_array, bytes, 4);
    if (n < 8 || n_array % 4 != 0 || n_array == 0 || n_array > (size_t)n - 4)
        return ty_doc_error(base64, err, TY_E_DATA, NULL, "the precompiled table of characters is damaged");
    tok_charsmap *m = TY_NEW(a, tok_charsmap);
    m->unit = ty_arena_copy(a, bytes + 4, n_array);
    m->n_units = n_array / 4;
    m->text = (const char *)bytes + 4 + n_array;
    m->n_text = (size_t)n - 4 - n_array;
    *out = m;
    return 0;
}

static size_t charsmap_offset(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

bool tok_charsmap_find(const tok_charsmap *m, const char *text, size_t n, const char **to, size_t *n_to)
{
    size_t at = charsmap_offset(m->unit[0]);
    for (size_t i = 0; i < n && text[i] != 0; i++) {
        at ^= (uint8_t)text[i];
        if (at >= m->n_units || (m->unit[at] & (1u << 31 | 0xff)) != (uint8_t)text[i])
            return false;
        uint32_t unit = m->unit[at];
        at ^= charsmap_offset(unit);
        if (!(unit >> 8 & 1))
            continue;
        size_t start = at < m->n_units ? m->unit[at] & ~(1u << 31) : m->n_text;
        if (start >= m->n_text)
            return false;
        *to = m->text + start;
        *n_to = strnlen(*to, m->n_text - start);
        return true;
    }
    return false;
}
