/* tail.c - a ring of bytes, and its cleaning into lines.
 *
 * Cleaning happens once, when a report is written: the ring takes raw bytes as they come.
 */
#include "entrypoint/tail.h"

#include <string.h>

void ty_stderr_tail_add(ty_stderr_tail *t, const char *bytes, size_t n)
{
    if (n > TY_TAIL_BYTES) {
        t->total += n - TY_TAIL_BYTES;
        bytes += n - TY_TAIL_BYTES;
        n = TY_TAIL_BYTES;
    }
    size_t at = t->total % TY_TAIL_BYTES;
    size_t first = n < TY_TAIL_BYTES - at ? n : TY_TAIL_BYTES - at;
    memcpy(t->bytes + at, bytes, first);
    memcpy(t->bytes, bytes + first, n - first);
    t->total += n;
}

/* Length of the valid UTF-8 sequence at p (RFC 3629), 0 if there is none. */
static size_t utf8_length(const unsigned char *p, size_t n)
{
    static const struct {
        unsigned char first_lo, first_hi, second_lo, second_hi;
        size_t length;
    } rows[] = {{0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
                {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        if (p[0] < rows[r].first_lo || p[0] > rows[r].first_hi)
            continue;
        size_t length = rows[r].length;
        if (length > n || (length > 1 && (p[1] < rows[r].second_lo || p[1] > rows[r].second_hi)))
            return 0;
        for (size_t i = 2; i < length; i++)
            if ((p[i] & 0xc0) != 0x80)
                return 0;
        return length;
    }
    return 0;
}

/* Length of a terminal's escape sequence at p: ESC [ ... letter, ESC ] ... BEL or ESC \, or ESC and one byte. */
static size_t escape_length(const unsigned char *p, size_t n)
{
    if (n < 2)
        return n;
    size_t i = 2;
    if (p[1] == '[') {
        while (i < n && (p[i] < 0x40 || p[i] > 0x7e) && p[i] >= 0x20)
            i++;
        return i < n && p[i] >= 0x20 ? i + 1 : i;
    }
    if (p[1] == ']') {
        while (i < n && p[i] != 0x07 && p[i] != 0x1b && p[i] != '\n')
            i++;
        if (i < n && p[i] == 0x1b)
            return i + 1 < n ? i + 2 : n;
        return i < n && p[i] == 0x07 ? i + 1 : i;
    }
    return 2;
}

/* Cleans n bytes of src into dst (never longer); '\r' becomes '\n'. Returns the length. */
static size_t clean(const unsigned char *src, size_t n, char *dst)
{
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        size_t length = utf8_length(src + i, n - i);
        if (src[i] == 0x1b) {
            i += escape_length(src + i, n - i);
            continue;
        }
        if (length == 0) {
            dst[len++] = '?';
            i++;
            continue;
        }
        bool is_c1 = length == 2 && src[i] == 0xc2 && src[i + 1] < 0xa0;
        if (src[i] == '\n' || src[i] == '\r')
            dst[len++] = '\n';
        else if (src[i] == '\t')
            dst[len++] = ' ';
        else if (src[i] >= 0x20 && src[i] != 0x7f && !is_c1) {
            memcpy(dst + len, src + i, length);
            len += length;
        }
        i += length;
    }
    return len;
}

/* Drops blank lines, blanks at line ends and repeated lines, in place. Returns the new length; no final '\n'. */
static size_t squeeze(char *text, size_t n)
{
    size_t len = 0, prev_at = 0, prev_len = 0;
    for (size_t i = 0; i < n;) {
        const char *end = memchr(text + i, '\n', n - i);
        size_t next = end ? (size_t)(end - text) + 1 : n;
        size_t line_len = end ? (size_t)(end - text) - i : n - i;
        while (line_len > 0 && text[i + line_len - 1] == ' ')
            line_len--;
        bool repeated = len > 0 && line_len == prev_len && memcmp(text + i, text + prev_at, line_len) == 0;
        if (line_len > 0 && !repeated) {
            if (len > 0)
                text[len++] = '\n';
            memmove(text + len, text + i, line_len);
            prev_at = len;
            prev_len = line_len;
            len += line_len;
        }
        i = next;
    }
    return len;
}

/* Where the part to keep begins: at a line start if one is within reach, else at a character. */
static size_t cut_front(const char *text, size_t len, size_t max_bytes)
{
    if (len <= max_bytes)
        return 0;
    size_t from = len - max_bytes;
    if (text[from - 1] == '\n')
        return from;
    const char *line = memchr(text + from, '\n', len - from);
    if (line)
        return (size_t)(line - text) + 1;
    while (from < len && ((unsigned char)text[from] & 0xc0) == 0x80)
        from++;
    return from;
}

void ty_stderr_tail_lines(const ty_stderr_tail *t, size_t max_bytes, ty_buf *out)
{
    unsigned char raw[TY_TAIL_BYTES];
    char text[TY_TAIL_BYTES];
    size_t n = t->total < TY_TAIL_BYTES ? (size_t)t->total : TY_TAIL_BYTES;
    size_t oldest = t->total < TY_TAIL_BYTES ? 0 : t->total % TY_TAIL_BYTES;
    memcpy(raw, t->bytes + oldest, n - oldest);
    memcpy(raw + (n - oldest), t->bytes, oldest);
    size_t begin = 0;
    /* A full ring begins in the middle of a character or line. */
    while (t->total > TY_TAIL_BYTES && begin < 4 && (raw[begin] & 0xc0) == 0x80)
        begin++;
    size_t len = squeeze(text, clean(raw + begin, n - begin, text));
    size_t from = cut_front(text, len, max_bytes);
    ty_buf_add(out, text + from, len - from);
}
