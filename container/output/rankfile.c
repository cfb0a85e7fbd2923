/* rankfile.c - write and read the tensors of one rank. Layout in rankfile.h.
 *
 * Data pass through in pieces that fit the cache: each piece is hashed while it is hot and written from, or read into,
 * the tensor's own memory.
 */
#define _GNU_SOURCE /* asprintf */
#include "container/output/rankfile.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MAGIC "TYRANK\r\n"

enum {
    VERSION = 1,
    HEADER_BYTES = 64,
    HEADER_CRC_AT = 60,
    DATA_ALIGN = 64,
    INDEX_ALIGN = 8,
    PIECE_BYTES = 256 << 10,
    NAME_MAX_BYTES = 65535,
};
#define INDEX_MAX_BYTES ((uint64_t)256 << 20)

struct header {
    char magic[8];
    uint32_t version, rank, world_size, n_tensors;
    uint64_t step, index_bytes, file_bytes;
    uint32_t index_crc, zero[2], header_crc;
};
_Static_assert(sizeof(struct header) == HEADER_BYTES, "the header is written as it lies in memory");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie in memory");

struct entry {
    uint64_t offset, n_bytes;
    char dtype[8];
    uint32_t crc;
    uint16_t rank, name_bytes;
    /* int64_t dim[rank]; char name[name_bytes]; NULs to INDEX_ALIGN */
};
_Static_assert(sizeof(struct entry) == 32, "entries are written as they lie in memory");

static uint64_t align_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static uint64_t entry_bytes(size_t rank, size_t name_bytes)
{
    return align_up(sizeof(struct entry) + 8 * rank + name_bytes, INDEX_ALIGN);
}

static uint64_t index_bytes(const ty_named_tensor *tensors, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += entry_bytes(tensors[i].type.rank, strlen(tensors[i].name));
    return sum;
}

uint64_t ty_rankfile_bytes(const ty_named_tensor *tensors, size_t n)
{
    uint64_t end = HEADER_BYTES + index_bytes(tensors, n);
    for (size_t i = 0; i < n; i++)
        end = align_up(end, DATA_ALIGN) + ty_type_bytes(&tensors[i].type);
    return end;
}

/* Writing. */

static void add_entry(ty_buf *head, const ty_named_tensor *t, uint64_t offset)
{
    struct entry e = {.offset = offset,
                      .n_bytes = ty_type_bytes(&t->type),
                      .rank = t->type.rank,
                      .name_bytes = (uint16_t)strlen(t->name)};
    snprintf(e.dtype, sizeof e.dtype, "%s", ty_dtype_text((ty_dtype)t->type.dtype));
    e.crc = ty_crc32c(0, t->data, e.n_bytes);
    ty_buf_add(head, &e, sizeof e);
    ty_buf_add(head, t->type.dim, 8 * (size_t)e.rank);
    ty_buf_add(head, t->name, e.name_bytes);
    ty_buf_add(head, "\0\0\0\0\0\0\0", entry_bytes(e.rank, e.name_bytes) - sizeof e - 8u * e.rank - e.name_bytes);
}

/* Header and index: all but the data, their checksums included. */
static int make_head(const ty_rankfile_id *id, const ty_named_tensor *tensors, size_t n, ty_buf *head, ty_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(tensors[i].name) > NAME_MAX_BYTES)
            return ty_error_set(err, TY_E_LIMIT, "tensor name: expected at most %d bytes, found %zu", NAME_MAX_BYTES,
                                strlen(tensors[i].name));
    struct header h = {.magic = MAGIC,
                       .version = VERSION,
                       .rank = (uint32_t)id->rank,
                       .n_tensors = (uint32_t)n,
                       .world_size = (uint32_t)id->world_size,
                       .step = (uint64_t)id->step,
                       .index_bytes = index_bytes(tensors, n),
                       .file_bytes = ty_rankfile_bytes(tensors, n)};
    ty_buf_add(head, &h, sizeof h);
    uint64_t end = HEADER_BYTES + h.index_bytes;
    for (size_t i = 0; i < n; i++) {
        uint64_t offset = align_up(end, DATA_ALIGN);
        add_entry(head, &tensors[i], offset);
        end = offset + ty_type_bytes(&tensors[i].type);
    }
    if (head->failed)
        return ty_error_set(err, TY_E_LIMIT, "index of %zu tensors: expected at most %" PRIu64 " bytes", n,
                            INDEX_MAX_BYTES);
    h.index_crc = ty_crc32c(0, head->data + HEADER_BYTES, h.index_bytes);
    h.header_crc = ty_crc32c(0, &h, HEADER_CRC_AT);
    memcpy(head->data, &h, sizeof h);
    return 0;
}

/* Where the bytes of a file go: always through the hash, and to a file if there is one. */
struct sink {
    ty_sha256 sha;
    ty_file_writer *file; /* NULL: hash only */
    uint64_t at;
};

static int put(struct sink *s, const void *bytes, uint64_t n, ty_error *err)
{
    const char *from = bytes;
    while (n > 0) {
        size_t piece = n < PIECE_BYTES ? (size_t)n : PIECE_BYTES;
        ty_sha256_add(&s->sha, from, piece);
        if (s->file && ty_file_writer_add(s->file, from, piece, err) < 0)
            return -1;
        from += piece;
        s->at += piece;
        n -= piece;
    }
    return 0;
}

static int put_all(struct sink *s, const ty_buf *head, const ty_named_tensor *tensors, size_t n, ty_error *err)
{
    static const char zeros[DATA_ALIGN];
    if (put(s, head->data, head->len, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (put(s, zeros, align_up(s->at, DATA_ALIGN) - s->at, err) < 0 ||
            put(s, tensors[i].data, ty_type_bytes(&tensors[i].type), err) < 0)
            return -1;
    return 0;
}

static int hash_all(ty_file_writer *file, const ty_buf *head, const ty_named_tensor *tensors, size_t n, char *hex,
                    ty_error *err)
{
    struct sink sink = {.file = file};
    uint8_t digest[TY_SHA256_BYTES];
    if (ty_sha256_init(&sink.sha, err) < 0)
        return -1;
    if (put_all(&sink, head, tensors, n, err) < 0) {
        ty_sha256_drop(&sink.sha);
        return -1;
    }
    ty_sha256_final(&sink.sha, digest);
    ty_sha256_hex(digest, hex);
    return 0;
}

static int write_once(const char *path, const ty_buf *head, const ty_named_tensor *tensors, size_t n, char *hex,
                      ty_error *err)
{
    ty_file_writer file;
    if (ty_file_writer_open(&file, path, 0644, err) < 0)
        return -1;
    if (hash_all(&file, head, tensors, n, hex, err) < 0) {
        ty_file_writer_abandon(&file);
        return -1;
    }
    return ty_file_writer_commit(&file, err);
}

/* The disk's side of a failed write: what was needed and what there is, now that the temporary is gone. */
static int explain_space(const char *dir, uint64_t needed_bytes, ty_error *err)
{
    struct statvfs fs;
    if (!err || err->code != TY_E_NO_SPACE || statvfs(dir, &fs) < 0)
        return -1;
    return ty_error_wrap(err, "%" PRIu64 " bytes needed, %" PRIu64 " free", needed_bytes,
                         (uint64_t)fs.f_bavail * fs.f_frsize);
}

static bool starts_with(const char *path, const ty_buf *head)
{
    char piece[4096];
    size_t at = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    while (fd >= 0 && at < head->len) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n <= 0)
            break;
        size_t compared = (size_t)n < head->len - at ? (size_t)n : head->len - at;
        if (memcmp(piece, head->data + at, compared) != 0)
            break;
        at += compared;
    }
    if (fd >= 0)
        close(fd);
    return fd >= 0 && at == head->len;
}

/* Whether the file that stands there has exactly the bytes that would be written: then it is left alone, since between
 * replacing it and replacing its manifest the checkpoint would not be valid. The checksums in the head tell quickly. */
static bool is_same(const char *path, const ty_buf *head, const ty_named_tensor *tensors, size_t n, char *hex)
{
    uint8_t digest[TY_SHA256_BYTES];
    char found[TY_SHA256_HEX_BYTES];
    if (!starts_with(path, head) || hash_all(NULL, head, tensors, n, hex, NULL) < 0 ||
        ty_sha256_file(path, digest, NULL) < 0)
        return false;
    return strcmp(ty_sha256_hex(digest, found), hex) == 0;
}

static int write_file(const char *path, const ty_buf *head, const ty_named_tensor *tensors, size_t n, char *hex,
                      bool *unchanged, ty_error *err)
{
    ty_error local;
    err = err ? err : &local;
    *unchanged = is_same(path, head, tensors, n, hex);
    if (*unchanged || write_once(path, head, tensors, n, hex, err) == 0)
        return 0;
    /* A file whose write-back failed is lost for good, but another may land on good blocks. Once. */
    return err->code == TY_E_IO ? write_once(path, head, tensors, n, hex, err) : -1;
}

static char *file_path(const char *dir, int rank, ty_error *err)
{
    char name[32], *path;
    ty_manifest_file_name(rank, name);
    if (asprintf(&path, "%s/%s", dir, name) < 0) {
        ty_error_set(err, TY_E_LIMIT, "out of memory for a path in %s", dir);
        return NULL;
    }
    return path;
}

int ty_rankfile_write(const char *dir, const ty_rankfile_id *id, const ty_named_tensor *tensors, size_t n,
                      ty_manifest_file *out, bool *unchanged, ty_error *err)
{
    bool ignored;
    char *path = file_path(dir, id->rank, err);
    if (!path)
        return -1;
    ty_buf head;
    ty_buf_init(&head, INDEX_MAX_BYTES);
    *out = (ty_manifest_file){.n_bytes = ty_rankfile_bytes(tensors, n)};
    ty_manifest_file_name(id->rank, out->name);
    int rc = make_head(id, tensors, n, &head, err);
    if (rc == 0 && write_file(path, &head, tensors, n, out->sha256, unchanged ? unchanged : &ignored, err) < 0)
        rc = explain_space(dir, out->n_bytes, err);
    ty_buf_fini(&head);
    free(path);
    return rc < 0 ? ty_error_wrap(err, "%s", out->name) : 0;
}

/* Reading. */

struct source {
    int fd;
    ty_sha256 sha;
    uint64_t at, file_bytes;
    ty_rankfile_fault *fault;
};

static int get(struct source *s, void *to, uint64_t n, uint32_t *crc, ty_error *err)
{
    char *at = to;
    while (n > 0) {
        ssize_t got = read(s->fd, at, n < PIECE_BYTES ? (size_t)n : PIECE_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ty_error_errno(err, TY_E_IO, errno, "reading at byte %" PRIu64, s->at);
        if (got == 0)
            return ty_error_set(err, TY_E_CHECKPOINT, "expected %" PRIu64 " bytes, the file ends at %" PRIu64,
                                s->file_bytes, s->at);
        ty_sha256_add(&s->sha, at, (size_t)got);
        *crc = ty_crc32c(*crc, at, (size_t)got);
        at += got;
        s->at += (uint64_t)got;
        n -= (uint64_t)got;
    }
    return 0;
}

static int mismatch(struct source *s, int rc)
{
    *s->fault = TY_RANKFILE_MISMATCH;
    return rc;
}

static int check_header(struct source *s, const struct header *h, const ty_rankfile_id *id, ty_error *err)
{
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0)
        return ty_error_set(err, TY_E_CHECKPOINT, "it does not begin as a rank file does");
    if (h->header_crc != ty_crc32c(0, h, HEADER_CRC_AT))
        return ty_error_set(err, TY_E_CHECKPOINT, "the header's CRC-32C differs");
    if (h->version != VERSION)
        return mismatch(s, ty_error_set(err, TY_E_CHECKPOINT, "expected version %d, found %u", VERSION, h->version));
    if (h->file_bytes != s->file_bytes || h->index_bytes > INDEX_MAX_BYTES ||
        h->index_bytes > s->file_bytes - HEADER_BYTES || h->index_bytes % INDEX_ALIGN != 0)
        return ty_error_set(err, TY_E_CHECKPOINT, "the header's sizes are not those of the file");
    if (h->step != (uint64_t)id->step || h->rank != (uint32_t)id->rank)
        return ty_error_set(err, TY_E_CHECKPOINT,
                            "it is rank %u at step %" PRIu64 ", expected rank %d at step %" PRId64, h->rank, h->step,
                            id->rank, id->step);
    if (h->world_size != (uint32_t)id->world_size)
        return mismatch(
            s, ty_error_set(err, TY_E_CHECKPOINT, "saved by %u ranks, this run has %d", h->world_size, id->world_size));
    return 0;
}

/* One decoded entry of the index. */
struct found {
    uint64_t offset, n_bytes;
    uint32_t crc;
    ty_type type;
    const char *name; /* name_bytes, not terminated */
    size_t name_bytes;
};

/* Decodes the entry at *at and checks all of it but the tensor's identity. `end` is where data before it end. */
static int decode_entry(const ty_buf *index, size_t *at, uint64_t end, struct found *f, ty_error *err)
{
    struct entry e;
    if (index->len - *at < sizeof e)
        return ty_error_set(err, TY_E_CHECKPOINT, "the index ends within an entry");
    memcpy(&e, index->data + *at, sizeof e);
    uint64_t n_bytes = entry_bytes(e.rank, e.name_bytes);
    ty_dtype dtype = TY_N_DTYPES;
    if (n_bytes > index->len - *at || e.rank > TY_MAX_RANK || e.dtype[7] != 0 || !ty_dtype_parse(e.dtype, &dtype))
        return ty_error_set(err, TY_E_CHECKPOINT, "the index has an entry of an unknown form at byte %zu", *at);
    int64_t dim[TY_MAX_RANK] = {0};
    memcpy(dim, index->data + *at + sizeof e, 8u * e.rank);
    int64_t elems = ty_dims_elems_checked(e.rank, dim, ty_dtype_bytes(dtype));
    if (elems < 0 || (uint64_t)elems * ty_dtype_bytes(dtype) != e.n_bytes || e.offset != align_up(end, DATA_ALIGN))
        return ty_error_set(err, TY_E_CHECKPOINT, "the index has sizes that do not fit at byte %zu", *at);
    *f = (struct found){.offset = e.offset,
                        .n_bytes = e.n_bytes,
                        .crc = e.crc,
                        .name_bytes = e.name_bytes,
                        .type = ty_type_make(dtype, e.rank, dim),
                        .name = index->data + *at + sizeof e + 8u * e.rank};
    *at += n_bytes;
    return 0;
}

static bool is_name(const struct found *f, const char *name)
{
    return strlen(name) == f->name_bytes && memcmp(name, f->name, f->name_bytes) == 0;
}

/* The tensor for entry i: nearly always the i-th, since models list their tensors in one order. */
static size_t match(const struct found *f, const ty_named_tensor *tensors, size_t n, size_t i)
{
    if (i < n && is_name(f, tensors[i].name))
        return i;
    for (size_t k = 0; k < n; k++)
        if (is_name(f, tensors[k].name))
            return k;
    return n;
}

static int check_match(struct source *s, const struct found *f, const ty_named_tensor *tensors, size_t n, size_t k,
                       bool taken, ty_error *err)
{
    char saved[160], wanted[160];
    if (k == n)
        return mismatch(s, ty_error_set(err, TY_E_CHECKPOINT, "tensor \"%.*s\" of the checkpoint is not in the model",
                                        (int)f->name_bytes, f->name));
    if (taken)
        return mismatch(
            s, ty_error_set(err, TY_E_CHECKPOINT, "tensor \"%s\" is in the checkpoint twice", tensors[k].name));
    if (!ty_type_same(&f->type, &tensors[k].type))
        return mismatch(s, ty_error_set(err, TY_E_CHECKPOINT, "tensor \"%s\" is %s in the checkpoint, %s in the model",
                                        tensors[k].name, ty_type_text(&f->type, saved, sizeof saved),
                                        ty_type_text(&tensors[k].type, wanted, sizeof wanted)));
    return 0;
}

static int missing(struct source *s, const ty_named_tensor *tensors, size_t n, const size_t *entry_of, ty_error *err)
{
    for (size_t k = 0; k < n; k++)
        if (entry_of[k] == SIZE_MAX)
            return mismatch(s, ty_error_set(err, TY_E_CHECKPOINT, "tensor \"%s\" of the model is not in the checkpoint",
                                            tensors[k].name));
    return 0;
}

/* Checks the whole index before any tensor is touched: an error here leaves the model as it was. Fills `plan` with
 * the entries in order and `tensor_of` with the tensor of each. */
static int plan_read(struct source *s, const struct header *h, const ty_buf *index, const ty_named_tensor *tensors,
                     size_t n, struct found *plan, size_t *tensor_of, size_t *entry_of, ty_error *err)
{
    size_t at = 0;
    uint64_t end = HEADER_BYTES + h->index_bytes;
    memset(entry_of, 0xff, n * sizeof *entry_of);
    for (size_t i = 0; i < h->n_tensors; i++) {
        struct found f;
        if (decode_entry(index, &at, end, &f, err) < 0)
            return -1;
        size_t k = match(&f, tensors, n, i);
        if (check_match(s, &f, tensors, n, k, k < n && entry_of[k] != SIZE_MAX, err) < 0)
            return -1;
        plan[i] = f;
        tensor_of[i] = k;
        entry_of[k] = i;
        end = f.offset + f.n_bytes;
    }
    if (at != index->len || end != s->file_bytes)
        return ty_error_set(err, TY_E_CHECKPOINT, "the index does not cover the file");
    return missing(s, tensors, n, entry_of, err);
}

static int read_data(struct source *s, const struct found *plan, size_t n_entries, const size_t *tensor_of,
                     const ty_named_tensor *tensors, ty_error *err)
{
    char gap[DATA_ALIGN];
    for (size_t i = 0; i < n_entries; i++) {
        const ty_named_tensor *t = &tensors[tensor_of[i]];
        uint32_t crc = 0, gap_crc = 0;
        if (get(s, gap, plan[i].offset - s->at, &gap_crc, err) < 0 || get(s, t->data, plan[i].n_bytes, &crc, err) < 0)
            return ty_error_wrap(err, "tensor \"%s\"", t->name);
        if (crc != plan[i].crc)
            return ty_error_set(err, TY_E_CHECKPOINT, "tensor \"%s\": CRC-32C differs, expected %08x, found %08x",
                                t->name, plan[i].crc, crc);
    }
    return 0;
}

static int read_index(struct source *s, const struct header *h, ty_buf *index, ty_error *err)
{
    uint32_t crc = 0;
    char *to = ty_buf_reserve(index, h->index_bytes);
    if (!to)
        return ty_error_set(err, TY_E_LIMIT, "out of memory for an index of %" PRIu64 " bytes", h->index_bytes);
    if (get(s, to, h->index_bytes, &crc, err) < 0)
        return -1;
    index->len += h->index_bytes;
    if (crc != h->index_crc)
        return ty_error_set(err, TY_E_CHECKPOINT, "the index's CRC-32C differs");
    return 0;
}

static int read_tensors(struct source *s, const struct header *h, const ty_buf *index, const ty_named_tensor *tensors,
                        size_t n, ty_error *err)
{
    /* More entries than the model has tensors end with the first that matches none or matches twice. */
    size_t n_plan = h->n_tensors < n + 1 ? h->n_tensors : n + 1;
    struct found *plan = calloc(n_plan + 1, sizeof *plan);
    size_t *maps = calloc(n_plan + n + 1, sizeof *maps);
    int rc = -1;
    if (!plan || !maps)
        ty_error_set(err, TY_E_LIMIT, "out of memory for %zu tensors", n);
    else if (plan_read(s, h, index, tensors, n, plan, maps, maps + n_plan, err) == 0)
        rc = read_data(s, plan, h->n_tensors, maps, tensors, err);
    free(plan);
    free(maps);
    return rc;
}

static int read_content(struct source *s, const ty_rankfile_id *id, const ty_named_tensor *tensors, size_t n,
                        ty_error *err)
{
    struct header h;
    uint32_t crc = 0;
    if (s->file_bytes < HEADER_BYTES)
        return ty_error_set(err, TY_E_CHECKPOINT, "expected at least %d bytes, found %" PRIu64, HEADER_BYTES,
                            s->file_bytes);
    if (get(s, &h, sizeof h, &crc, err) < 0 || check_header(s, &h, id, err) < 0)
        return -1;
    ty_buf index;
    ty_buf_init(&index, INDEX_MAX_BYTES);
    int rc = read_index(s, &h, &index, err);
    if (rc == 0)
        rc = read_tensors(s, &h, &index, tensors, n, err);
    ty_buf_fini(&index);
    return rc;
}

static int check_sha256(ty_sha256 *sha, const ty_manifest_file *expected, ty_error *err)
{
    uint8_t digest[TY_SHA256_BYTES];
    char hex[TY_SHA256_HEX_BYTES];
    ty_sha256_final(sha, digest);
    if (strcmp(ty_sha256_hex(digest, hex), expected->sha256) != 0)
        return ty_error_set(err, TY_E_CHECKPOINT, "SHA-256 differs: expected %.12s..., found %.12s...",
                            expected->sha256, hex);
    return 0;
}

static int open_checked(const char *path, const ty_manifest_file *expected, ty_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return ty_error_errno(err, TY_E_CHECKPOINT, errno, "cannot open it");
    if (fstat(fd, &st) < 0)
        ty_error_errno(err, TY_E_CHECKPOINT, errno, "cannot look at it");
    else if (!S_ISREG(st.st_mode))
        ty_error_set(err, TY_E_CHECKPOINT, "expected a regular file");
    else if ((uint64_t)st.st_size != expected->n_bytes)
        ty_error_set(err, TY_E_CHECKPOINT, "expected %" PRIu64 " bytes, found %" PRIu64, expected->n_bytes,
                     (uint64_t)st.st_size);
    else
        return fd;
    close(fd);
    return -1;
}

static int read_path(const char *path, const ty_rankfile_id *id, const ty_manifest_file *expected,
                     const ty_named_tensor *tensors, size_t n, ty_rankfile_fault *fault, ty_error *err)
{
    struct source s = {.file_bytes = expected->n_bytes, .fault = fault};
    s.fd = open_checked(path, expected, err);
    if (s.fd < 0)
        return -1;
    int rc = ty_sha256_init(&s.sha, err);
    if (rc == 0) {
        rc = read_content(&s, id, tensors, n, err);
        if (rc == 0)
            rc = check_sha256(&s.sha, expected, err);
        else
            ty_sha256_drop(&s.sha);
    }
    close(s.fd);
    return rc;
}

int ty_rankfile_read(const char *dir, const ty_rankfile_id *id, const ty_manifest_file *expected,
                     const ty_named_tensor *tensors, size_t n, ty_rankfile_fault *fault, ty_error *err)
{
    ty_rankfile_fault ignored;
    fault = fault ? fault : &ignored;
    *fault = TY_RANKFILE_DAMAGED;
    char *path = file_path(dir, id->rank, err);
    if (!path)
        return -1;
    int rc = read_path(path, id, expected, tensors, n, fault, err);
    free(path);
    if (rc == 0)
        *fault = TY_RANKFILE_FINE;
    return rc < 0 ? ty_error_wrap(err, "%s", expected->name) : 0;
}

int ty_rankfile_verify(const char *dir, const ty_manifest_file *expected, ty_error *err)
{
    char *path, found[TY_SHA256_HEX_BYTES];
    uint8_t digest[TY_SHA256_BYTES];
    if (asprintf(&path, "%s/%s", dir, expected->name) < 0)
        return ty_error_set(err, TY_E_LIMIT, "out of memory for a path in %s", dir);
    int fd = open_checked(path, expected, err);
    int rc = fd < 0 ? -1 : ty_sha256_file(path, digest, err);
    if (rc == 0 && strcmp(ty_sha256_hex(digest, found), expected->sha256) != 0)
        rc = ty_error_set(err, TY_E_CHECKPOINT, "SHA-256 differs: expected %.12s..., found %.12s...", expected->sha256,
                          found);
    if (fd >= 0)
        close(fd);
    free(path);
    return rc < 0 ? ty_error_wrap(err, "%s", expected->name) : 0;
}
