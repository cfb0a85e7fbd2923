/* keep.c - the file of keep.h: written, read, proven. */
#define _GNU_SOURCE
#include "container/input/keep.h"

#include "base/entries.h"
#include "base/file.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KEEP_ALIGN ((size_t)64)
enum { KEEP_VERSION = 1 };

static const char keep_magic[8] = "\x89TYINDEX";
static const char keep_zeros[64];

/* Numbers are as this machine has them: on another the version is none that is known. */
typedef struct keep_head {
    char magic[8];
    uint32_t version;
    uint32_t crc; /* of the head, with zero here */
    int64_t made_s;
    uint64_t n_bytes;
    struct {
        uint64_t at, n;
        uint32_t crc, unused;
    } part[TY_KEEP_PARTS];
} keep_head;

static size_t keep_up(size_t n)
{
    return (n + KEEP_ALIGN - 1) / KEEP_ALIGN * KEEP_ALIGN;
}

static uint32_t keep_head_crc(const keep_head *head)
{
    keep_head h = *head;
    h.crc = 0;
    return ty_crc32c(0, &h, sizeof h);
}

/* ---- reading ---- */

static int keep_refuse(const char *path, const char *what, ty_error *err)
{
    ty_error_set(err, TY_E_IO, "%s", what);
    return ty_error_at(err, "%s", path);
}

static const char *keep_head_fault(const ty_bytes *b, keep_head *head)
{
    if (b->n < sizeof *head)
        return "it is shorter than its head";
    memcpy(head, b->data, sizeof *head);
    if (memcmp(head->magic, keep_magic, sizeof keep_magic) != 0)
        return "it does not begin as an index of data does";
    if (head->version != KEEP_VERSION)
        return "it has the layout of another version";
    if (head->crc != keep_head_crc(head))
        return "the checksum of its head does not match";
    return head->n_bytes != b->n ? "it has not the size that its head says" : NULL;
}

/* Parts stand one behind the other, in their order. */
static const char *keep_part_fault(const ty_bytes *b, const keep_head *head, int i, bool is_read, size_t *end)
{
    uint64_t at = head->part[i].at, n = head->part[i].n;
    if (at < *end || at % KEEP_ALIGN != 0 || at > b->n || n > b->n - at)
        return "a part lies outside of it";
    *end = (size_t)(at + n);
    bool is_right = !is_read || ty_crc32c(0, b->data + at, (size_t)n) == head->part[i].crc;
    return is_right ? NULL : "the checksum of a part does not match";
}

static const char *keep_fault(const ty_buf *key, ty_keep_file *f)
{
    keep_head head;
    const char *fault = keep_head_fault(&f->bytes, &head);
    size_t end = sizeof head;
    for (int i = 0; !fault && i < TY_KEEP_PARTS; i++) {
        fault = keep_part_fault(&f->bytes, &head, i, key || i == TY_KEEP_KEY, &end);
        f->part[i] = f->bytes.data + head.part[i].at;
        f->n[i] = (size_t)head.part[i].n;
    }
    if (fault)
        return fault;
    f->made_s = head.made_s;
    bool is_ours = !key || (f->n[TY_KEEP_KEY] == key->len && memcmp(f->part[TY_KEEP_KEY], key->data, key->len) == 0);
    return is_ours ? NULL : "it is of other data than its name says";
}

int ty_keep_open(const char *path, const ty_buf *key, ty_keep_file *out, ty_error *err)
{
    *out = (ty_keep_file){.made_s = 0};
    if (!ty_file_exists(path))
        return 0;
    if (ty_bytes_open(path, &(ty_bytes_options){.max_inflated_bytes = 1}, &out->bytes, err) < 0)
        return -1;
    const char *fault = keep_fault(key, out);
    int rc = ty_mapped_check(err);
    if (rc == 0 && !fault)
        return 1;
    ty_keep_close(out);
    return rc < 0 ? -1 : keep_refuse(path, fault, err);
}

void ty_keep_close(ty_keep_file *f)
{
    if (f->bytes.data)
        ty_bytes_close(&f->bytes);
    *f = (ty_keep_file){.made_s = 0};
}

/* ---- writing ---- */

static size_t keep_part_bytes(const ty_keep_part *part)
{
    size_t n = 0;
    for (int i = 0; i < part->n; i++)
        n += part->piece[i].n;
    return n;
}

static keep_head keep_head_of(const ty_keep_part part[TY_KEEP_PARTS])
{
    keep_head head;
    memset(&head, 0, sizeof head);
    memcpy(head.magic, keep_magic, sizeof keep_magic);
    head.version = KEEP_VERSION;
    head.made_s = (int64_t)time(NULL);
    size_t at = sizeof head;
    for (int i = 0; i < TY_KEEP_PARTS; i++) {
        at = keep_up(at);
        head.part[i].at = at;
        head.part[i].n = keep_part_bytes(&part[i]);
        at += head.part[i].n;
    }
    head.n_bytes = at;
    return head;
}

int64_t ty_keep_bytes(const ty_keep_part part[TY_KEEP_PARTS])
{
    return (int64_t)keep_head_of(part).n_bytes;
}

static void keep_sum(const ty_keep_part part[TY_KEEP_PARTS], keep_head *head)
{
    for (int i = 0; i < TY_KEEP_PARTS; i++)
        for (int k = 0; k < part[i].n; k++)
            head->part[i].crc = ty_crc32c(head->part[i].crc, part[i].piece[k].bytes, part[i].piece[k].n);
    head->crc = keep_head_crc(head);
}

static int keep_write_parts(int fd, const char *path, const ty_keep_part part[TY_KEEP_PARTS], const keep_head *head,
                            ty_error *err)
{
    size_t at = sizeof *head;
    int rc = ty_file_write_all(fd, head, sizeof *head, path, err);
    for (int i = 0; rc == 0 && i < TY_KEEP_PARTS; i++) {
        rc = ty_file_write_all(fd, keep_zeros, (size_t)head->part[i].at - at, path, err);
        for (int k = 0; rc == 0 && k < part[i].n; k++)
            rc = ty_file_write_all(fd, part[i].piece[k].bytes, part[i].piece[k].n, path, err);
        at = (size_t)(head->part[i].at + head->part[i].n);
    }
    return rc;
}

/* Not made durable: what a loss of power leaves has other checksums, and is made anew. */
int ty_keep_write(const char *path, const ty_keep_part part[TY_KEEP_PARTS], ty_error *err)
{
    ty_buf work;
    const char *slash = strrchr(path, '/');
    keep_head head = keep_head_of(part);
    keep_sum(part, &head);
    ty_buf_init(&work, 1 << 16);
    ty_buf_addf(&work, "%.*s/" TY_ENTRIES_WORK_INDEX "XXXXXX", slash ? (int)(slash - path) : 1, slash ? path : ".");
    int fd = work.failed ? -1 : mkostemp(work.data, O_CLOEXEC), rc = 0;
    if (fd < 0)
        rc = ty_error_errno(err, TY_E_CREATE, errno, "%s", work.data);
    else {
        rc = keep_write_parts(fd, work.data, part, &head, err);
        if (close(fd) < 0 && rc == 0)
            rc = ty_error_errno(err, TY_E_IO, errno, "%s", work.data);
        if (rc == 0 && rename(work.data, path) < 0)
            rc = ty_error_errno(err, TY_E_CREATE, errno, "%s", path);
        if (rc < 0)
            unlink(work.data);
    }
    ty_buf_fini(&work);
    return rc;
}
