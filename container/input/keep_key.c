/* keep_key.c - the text that says what an index of data is of, and in which line two of them differ. */
#include "container/input/keep.h"

#include "base/arena.h"
#include "base/entries.h"
#include "base/hash.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP_ENDS = 4096, KEEP_LOOK = 64 };

void ty_keep_add(ty_buf *key, const char *name, const char *fmt, ...)
{
    va_list args;
    size_t from = key->len;
    va_start(args, fmt);
    ty_buf_adds(key, name);
    ty_buf_addc(key, '\t');
    ty_buf_vaddf(key, fmt, args);
    va_end(args);
    for (size_t i = from; i < key->len; i++)
        if ((unsigned char)key->data[i] < ' ' && key->data[i] != '\t')
            key->data[i] = ' ';
    ty_buf_addc(key, '\n');
}

/* Of the first bytes and the last ones, as they are read. */
static uint32_t keep_ends(const ty_bytes *b)
{
    size_t n = b->n < KEEP_ENDS ? b->n : KEEP_ENDS;
    return ty_crc32c(ty_crc32c(0, b->data, n), b->data + b->n - n, n);
}

void ty_keep_add_file(ty_buf *key, const char *path, const ty_bytes *bytes)
{
    const ty_file_id *id = &bytes->id;
    ty_keep_add(key, path, "%lld bytes, modified %lld.%09lld, changed %lld.%09lld, inode %llu of %llu, ends %08x",
                (long long)id->n_bytes, (long long)(id->modified_ns / 1000000000),
                (long long)(id->modified_ns % 1000000000), (long long)(id->changed_ns / 1000000000),
                (long long)(id->changed_ns % 1000000000), (unsigned long long)id->inode, (unsigned long long)id->device,
                keep_ends(bytes));
}

void ty_keep_name(const ty_buf *key, char name[32])
{
    snprintf(name, 32, "%016llx" TY_ENTRIES_INDEX, (unsigned long long)ty_fnv1a(TY_FNV_START, key->data, key->len));
}

/* ---- two of them ---- */

typedef struct keep_line {
    const char *p;
    size_t n, n_name; /* the name ends at its tab */
} keep_line;

/* The line at *at, which moves behind it. False: there is none. */
static bool keep_next(const char **at, const char *end, keep_line *out)
{
    const char *p = *at, *stop = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    if (!stop)
        return false;
    const char *tab = memchr(p, '\t', (size_t)(stop - p));
    *out = (keep_line){p, (size_t)(stop - p), (size_t)((tab ? tab : stop) - p)};
    *at = stop + 1;
    return true;
}

static bool keep_same(const keep_line *a, const keep_line *b)
{
    return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

static bool keep_same_name(const keep_line *a, const keep_line *b)
{
    return a->n_name == b->n_name && memcmp(a->p, b->p, a->n_name) == 0;
}

/* How many lines have the same name in both at the same place; 0 unless a path is among them. */
static int keep_likeness(const char *a, const char *end_a, const char *b, const char *end_b)
{
    keep_line x, y;
    int n = 0;
    bool has_path = false;
    while (keep_next(&a, end_a, &x) && keep_next(&b, end_b, &y)) {
        n += keep_same_name(&x, &y) + keep_same(&x, &y);
        has_path = has_path || (keep_same_name(&x, &y) && memchr(x.p, '/', x.n_name));
    }
    return has_path ? n : 0;
}

static int keep_value_bytes(const keep_line *l)
{
    size_t n = l->n - l->n_name;
    return (int)(n > 0 ? n - 1 : 0);
}

static void keep_tell(const keep_line *then, const keep_line *now, ty_buf *out)
{
    if (keep_same_name(then, now))
        ty_buf_addf(out, "%.*s: then %.*s, now %.*s", (int)now->n_name, now->p, keep_value_bytes(then),
                    then->p + then->n_name + 1, keep_value_bytes(now), now->p + now->n_name + 1);
    else
        ty_buf_addf(out, "then %.*s, now %.*s", (int)then->n_name, then->p, (int)now->n_name, now->p);
}

static void keep_tell_first(const char *then, const char *end_then, const char *now, const char *end_now, ty_buf *out)
{
    static const keep_line none = {"no more\t", 8, 7};
    keep_line x, y;
    for (;;) {
        bool has_then = keep_next(&then, end_then, &x), has_now = keep_next(&now, end_now, &y);
        if (!has_then && !has_now)
            return;
        if (has_then && has_now && keep_same(&x, &y))
            continue;
        keep_tell(has_then ? &x : &none, has_now ? &y : &none, out);
        return;
    }
}

void ty_keep_explain(const char *folder, const ty_buf *key, ty_buf *out)
{
    ty_arena a;
    ty_entry *entry;
    int most = 0;
    ty_keep_file f, best = {.made_s = 0};
    ty_arena_init(&a);
    int n = ty_entries_list(folder, &a, &entry), looked = 0;
    for (int i = n - 1; i >= 0 && looked < KEEP_LOOK; i--) { /* the one used last first */
        if (!entry[i].is_index || ty_keep_open(entry[i].path, NULL, &f, NULL) != 1)
            continue;
        looked++;
        int likeness =
            keep_likeness((const char *)f.part[TY_KEEP_KEY], (const char *)f.part[TY_KEEP_KEY] + f.n[TY_KEEP_KEY],
                          key->data, key->data + key->len);
        ty_keep_close(likeness > most ? &best : &f);
        if (likeness > most) {
            most = likeness;
            best = f;
        }
    }
    if (most > 0)
        keep_tell_first((const char *)best.part[TY_KEEP_KEY],
                        (const char *)best.part[TY_KEEP_KEY] + best.n[TY_KEEP_KEY], key->data, key->data + key->len,
                        out);
    ty_keep_close(&best);
    ty_arena_fini(&a);
}

/* The value of the first line of this name, and the line behind it. */
static bool keep_find(const ty_keep_file *f, const char *name, keep_line *out, keep_line *next)
{
    const char *at = (const char *)f->part[TY_KEEP_KEY], *end = at + f->n[TY_KEEP_KEY];
    while (keep_next(&at, end, out))
        if (out->n_name == strlen(name) && memcmp(out->p, name, out->n_name) == 0)
            return keep_value_bytes(out) > 0 && (!next || keep_next(&at, end, next));
    return false;
}

const char *ty_keep_describe(const char *path, ty_arena *a)
{
    ty_keep_file f;
    keep_line format, files, first;
    const char *said = "";
    if (ty_keep_open(path, NULL, &f, NULL) != 1)
        return said;
    if (keep_find(&f, "format", &format, NULL) && keep_find(&f, "files", &files, &first)) {
        const char *n = ty_arena_strndup(a, files.p + files.n_name + 1, (size_t)keep_value_bytes(&files));
        const char *more = strcmp(n, "1") == 0 ? "" : ty_arena_printf(a, "%s files, the first ", n);
        said = ty_arena_printf(a, "%.*s, %s%.*s", keep_value_bytes(&format), format.p + format.n_name + 1, more,
                               (int)first.n_name, first.p);
    }
    ty_keep_close(&f);
    return said;
}
