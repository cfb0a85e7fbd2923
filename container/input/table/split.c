/* split.c - cuts delimited text at line ends that stand outside quotes.
 *
 * Only quotes are counted: a line end behind an odd number of them is taken to be inside a field. That is wrong where a
 * quote stands inside a field that is not quoted; the reader of chunks finds that out and goes on by itself.
 */
#include "container/input/table/mask.h"
#include "container/input/table/table.h"

#include <stdlib.h>
#include <string.h>

typedef struct split_state {
    const char *p, *end;
    bool quoted;
    int64_t line_ends; /* all */
    int64_t records;   /* line ends outside quotes */
} split_state;

static inline void split_byte(split_state *s, char c)
{
    s->quoted ^= c == '"';
    s->line_ends += c == '\n';
    s->records += c == '\n' && !s->quoted;
}

static inline void split_block(split_state *s)
{
    uint64_t quotes = mask_of(s->p, '"'), ends = mask_of(s->p, '\n');
    if (quotes | ends) {
        uint64_t inside = mask_parity(quotes) ^ (0 - (uint64_t)s->quoted);
        s->quoted = inside >> 63;
        s->line_ends += __builtin_popcountll(ends);
        s->records += __builtin_popcountll(ends & ~inside);
    }
    s->p += MASK_BYTES;
}

/* Goes on for so many bytes, then behind the next line end outside quotes. */
static void split_chunk(split_state *s, size_t bytes)
{
    const char *stop = (size_t)(s->end - s->p) > bytes ? s->p + bytes : s->end;
    while (stop - s->p >= MASK_BYTES)
        split_block(s);
    while (s->p < stop)
        split_byte(s, *s->p++);
    while (s->p < s->end && s->quoted && s->end - s->p >= MASK_BYTES && !memchr(s->p, '"', MASK_BYTES))
        split_block(s);
    for (int64_t before = s->records; s->p < s->end && s->records == before;)
        split_byte(s, *s->p++);
}

int64_t table_split(const char *from, const char *end, int64_t line, int64_t columns, size_t bytes, table_chunk **out)
{
    split_state s = {.p = from, .end = end};
    int64_t room = (int64_t)((size_t)(end - from) / bytes) + 1, n = 0;
    table_chunk *chunk = calloc((size_t)room, sizeof *chunk);
    *out = chunk;
    if (!chunk)
        return -1;
    while (s.p < s.end && n < room) {
        table_chunk *c = &chunk[n++];
        int64_t records = s.records;
        c->from = s.p;
        c->end = end;
        c->line = line + s.line_ends;
        split_chunk(&s, bytes);
        c->to = s.p;
        bool is_open = s.p == s.end && (s.quoted || s.p[-1] != '\n'); /* the last line has no end */
        int64_t lines = s.records - records + is_open, by_length = (c->to - c->from) / columns + 1;
        c->bound = lines < by_length ? lines : by_length;
    }
    return n;
}
