/* utf8.c - UTF-8 in both directions. Table 3-7 of the Unicode standard, with the surrogates let in. */
#include "container/config/utf8.h"

static uint32_t utf8_escape(unsigned char byte)
{
    return 0xdc00u + byte;
}

size_t ty_utf8_next(const char *s, size_t n, uint32_t *code_point)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)s[0];
    size_t len = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;

    if (len == 1) {
        *code_point = first;
        return 1;
    }
    *code_point = utf8_escape(first);
    if (len == 0 || len > n)
        return 1;

    uint32_t cp = first & (0x7fu >> len);

    for (size_t i = 1; i < len; i++) {
        unsigned char next = (unsigned char)s[i];
        if ((next & 0xc0) != 0x80)
            return 1;
        cp = cp << 6 | (next & 0x3fu);
    }
    if (cp < least[len] || cp > 0x10ffff)
        return 1;
    *code_point = cp;
    return len;
}

size_t ty_utf8_put(char out[4], uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

size_t ty_utf8_cut(const char *s, size_t n, size_t max_bytes)
{
    if (n <= max_bytes)
        return n;

    size_t at = 0;
    uint32_t cp;

    while (at < max_bytes) {
        size_t len = ty_utf8_next(s + at, n - at, &cp);
        if (at + len > max_bytes)
            break;
        at += len;
    }
    return at;
}
