/* split.c - cuts delimited text at line ends that stand outside quotes.
 *
 * Only quotes are counted: a line end behind an odd number of them is taken to be inside a field. That is wrong where a
 * quote stands inside a field that is not quoted; the reader of chunks finds that out and goes on by itself.
 */
#include "container/input/table/mask.h"
#include "container/input/table/walk.h"

#include <stdlib.h>
#include <string.h>

static inline void split_byte(walk_count *s)
{
    char c = *s->p++;
    s->quoted ^= c == '"';
    s->line_ends += c == '\n';
    s->records += c == '\n' && !s->quoted;
}

/* Goes on for so many bytes, then behind the next line end outside quotes. */
static void split_chunk(walk_count *s, const walk_ways *ways, const char *end, size_t bytes)
{
    const char *stop = (size_t)(end - s->p) > bytes ? s->p + bytes : end;
    ways->count(s, stop);
    while (s->p < stop)
        split_byte(s);
    while (s->p < end && s->quoted && end - s->p >= MASK_BYTES && !memchr(s->p, '"', MASK_BYTES))
        ways->count(s, s->p + MASK_BYTES);
    for (int64_t before = s->records; s->p < end && s->records == before;)
        split_byte(s);
}

int64_t table_split(const char *from, const char *end, int64_t line, int64_t columns, size_t bytes, table_chunk **out)
{
    walk_count s = {.p = from};
    const walk_ways *ways = walk_ways_number(walk_ways_taken);
    int64_t room = (int64_t)((size_t)(end - from) / bytes) + 1, n = 0;
    table_chunk *chunk = calloc((size_t)room, sizeof *chunk);
    *out = chunk;
    if (!chunk)
        return -1;
    while (s.p < end && n < room) {
        table_chunk *c = &chunk[n++];
        int64_t records = s.records;
        c->from = s.p;
        c->end = end;
        c->line = line + s.line_ends;
        split_chunk(&s, ways, end, bytes);
        c->to = s.p;
        bool is_open = s.p == end && (s.quoted || s.p[-1] != '\n'); /* the last line has no end */
        int64_t lines = s.records - records + is_open, by_length = (c->to - c->from) / columns + 1;
        c->bound = lines < by_length ? lines : by_length;
    }
    return n;
}
