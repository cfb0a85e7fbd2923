/* zip_check.c - what an archive of data has no reason to hold. Section numbers are those of APPNOTE.TXT 6.3. */
#include "base/zip.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ZIP_SIZES_FOLLOW 8u /* flag bit 3: the local header has zeros where the directory has sizes */

typedef struct check_list {
    ty_zip_entry *entry;
    size_t n;
} check_list;

static int by_name(const void *x, const void *y)
{
    const ty_zip_entry *a = x, *b = y;
    size_t n = a->name_bytes < b->name_bytes ? a->name_bytes : b->name_bytes;
    int order = memcmp(a->name, b->name, n);
    return order ? order : (a->name_bytes > b->name_bytes) - (a->name_bytes < b->name_bytes);
}

static int by_place(const void *x, const void *y)
{
    const ty_zip_entry *a = x, *b = y;
    return (a->header_at > b->header_at) - (a->header_at < b->header_at);
}

/* Why the name could lead a careless program astray; NULL: it cannot. A final slash marks a folder. */
static const char *find_name_fault(const char *name, size_t n)
{
    if (n == 0)
        return "has no name";
    if (name[0] == '/')
        return "has an absolute name";
    if (n > 1 && name[1] == ':')
        return "has a name with a drive";
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f || name[i] == '\\')
            return "has a name with a backslash, a NUL or another control character";
    for (size_t at = 0; at < n;) {
        const char *slash = memchr(name + at, '/', n - at);
        size_t end = slash ? (size_t)(slash - name) : n;
        if (end == at)
            return "has a name with an empty part";
        if (end - at <= 2 && name[at] == '.' && name[end - 1] == '.')
            return "has a name with a part \".\" or \"..\"";
        at = end + 1;
    }
    return NULL;
}

static int check_name(const ty_zip_entry *e, ty_error *err)
{
    const char *fault = find_name_fault(e->name, e->name_bytes);
    unsigned kind = e->mode & S_IFMT;
    if (!fault && kind && kind != S_IFREG && kind != S_IFDIR)
        fault = kind == S_IFLNK ? "is a symbolic link" : "is a device, a pipe or a socket";
    if (!fault)
        return 0;
    return ty_error_set(err, TY_E_DATA, "%s, expected a plain file with a relative name", fault);
}

static int check_size(const ty_zip_entry *e, const ty_zip_limits *limits, uint64_t *total, ty_error *err)
{
    if (e->plain_bytes > limits->max_total_bytes - *total)
        return ty_error_set(err, TY_E_LIMIT, "%llu bytes bring all members beyond the limit of %llu",
                            (unsigned long long)e->plain_bytes, (unsigned long long)limits->max_total_bytes);
    *total += e->plain_bytes;
    if (e->plain_bytes > limits->free_bytes && e->plain_bytes / limits->max_ratio > e->packed_bytes)
        return ty_error_set(err, TY_E_LIMIT, "%llu bytes would inflate to %llu, at most %llu times as many may",
                            (unsigned long long)e->packed_bytes, (unsigned long long)e->plain_bytes,
                            (unsigned long long)limits->max_ratio);
    return 0;
}

/* 4.3.7: a reader that goes by local headers must see what we see in the directory. */
static int check_header(const ty_zip *z, const ty_zip_entry *e, uint64_t *end, ty_error *err)
{
    uint64_t at;
    if (ty_zip_locate(z, e, &at, err) < 0)
        return -1;
    const uint8_t *p = z->data + e->header_at;
    uint32_t method = p[8] | (uint32_t)p[9] << 8, name_bytes = p[26] | (uint32_t)p[27] << 8;
    uint32_t plain = p[22] | (uint32_t)p[23] << 8 | (uint32_t)p[24] << 16 | (uint32_t)p[25] << 24;
    bool has_size = !(e->flags & ZIP_SIZES_FOLLOW) && plain != 0xffffffffu;
    *end = at + e->packed_bytes;
    if (name_bytes != e->name_bytes || memcmp(p + 30, e->name, name_bytes) != 0)
        return ty_error_set(err, TY_E_DATA, "has another name in its own header");
    if ((int)method != e->method || (has_size && plain != e->plain_bytes))
        return ty_error_set(err, TY_E_DATA,
                            "has another method or size in its own header: %u and %u, expected %d and %llu", method,
                            plain, e->method, (unsigned long long)e->plain_bytes);
    if (e->method != 0 && e->method != 8)
        return ty_error_set(err, TY_E_DATA, "compression method %d, expected 0 (stored) or 8 (deflated)", e->method);
    return 0;
}

static int fail_at(const ty_zip_entry *e, ty_error *err)
{
    return ty_error_wrap(err, "zip: member \"%.*s\"", (int)e->name_bytes, e->name);
}

static int check_twins(check_list *list, ty_error *err)
{
    qsort(list->entry, list->n, sizeof *list->entry, by_name);
    for (size_t i = 1; i < list->n; i++)
        if (by_name(&list->entry[i - 1], &list->entry[i]) == 0) {
            ty_error_set(err, TY_E_DATA, "is there twice");
            return fail_at(&list->entry[i], err);
        }
    return 0;
}

/* In the order in which they lie. A data descriptor may stand between two members. */
static int check_places(const ty_zip *z, check_list *list, ty_error *err)
{
    uint64_t free_from = 0;
    qsort(list->entry, list->n, sizeof *list->entry, by_place);
    if (list->n > 0 && list->entry[0].header_at != 0)
        return ty_error_set(err, TY_E_DATA, "zip: %llu bytes stand in front of the first member",
                            (unsigned long long)list->entry[0].header_at);
    for (size_t i = 0; i < list->n; i++) {
        const ty_zip_entry *e = &list->entry[i];
        uint64_t end = 0;
        if (check_header(z, e, &end, err) < 0)
            return fail_at(e, err);
        if (e->header_at < free_from || end > z->directory_at) {
            ty_error_set(err, TY_E_DATA, "shares bytes with another member or with the directory");
            return fail_at(e, err);
        }
        free_from = end;
    }
    return 0;
}

static int check_entries(const ty_zip *z, const ty_zip_limits *limits, check_list *list, ty_error *err)
{
    ty_zip_walk walk = {0};
    uint64_t total = 0;
    int more;
    while ((more = ty_zip_next(z, &walk, &list->entry[list->n], err)) > 0) {
        const ty_zip_entry *e = &list->entry[list->n++];
        if (check_name(e, err) < 0 || check_size(e, limits, &total, err) < 0)
            return fail_at(e, err);
    }
    return more;
}

int ty_zip_check(const ty_zip *z, const ty_zip_limits *limits, ty_error *err)
{
    if (z->n_entries > limits->max_entries)
        return ty_error_set(err, TY_E_LIMIT, "zip: %llu members, at most %llu are read",
                            (unsigned long long)z->n_entries, (unsigned long long)limits->max_entries);
    check_list list = {.entry = calloc((size_t)z->n_entries + 1, sizeof *list.entry)};
    if (!list.entry)
        return ty_error_set(err, TY_E_LIMIT, "zip: no memory to list %llu members", (unsigned long long)z->n_entries);
    int rc = check_entries(z, limits, &list, err);
    rc = rc < 0 ? rc : check_twins(&list, err);
    rc = rc < 0 ? rc : check_places(z, &list, err);
    free(list.entry);
    return rc;
}
