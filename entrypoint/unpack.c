/* unpack.c - tar entries, one after another, through zlib (which passes plain files through).
 *
 * Format: POSIX.1-1988 ustar, POSIX.1-2001 pax, and GNU tar's 'L' and 'K' entries and base-256 numbers.
 */
#define _GNU_SOURCE
#include "entrypoint/unpack.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 512, MAX_META_BYTES = 1 << 20, MAX_COMPONENTS = 128 };

/* A header block as it lies in the archive. */
typedef struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
} header;
_Static_assert(sizeof(header) == BLOCK, "a tar header is one block");

typedef struct unpacker {
    gzFile in;
    const char *archive;
    int root_fd;
    uint64_t n_bytes;
    int64_t n_files, n_entries;
    /* From 'x', 'L' and 'K' entries, for the next entry; empty if not given. */
    char path[PATH_MAX], link[PATH_MAX];
    int64_t size; /* -1: as in the header */
} unpacker;

/* One entry, checked and decoded. */
typedef struct entry {
    char path[PATH_MAX], link[PATH_MAX];
    char type;
    uint64_t size;
    mode_t mode;
} entry;

static int damaged(const unpacker *u, const char *what, ty_error *err)
{
    ty_error_set(err, TY_E_DATA, "archive \"%s\": entry %lld: %s", u->archive, (long long)u->n_entries, what);
    return ty_error_help(err, "make it with `tar -czf sourcedir.tar.gz -C SOURCE_FOLDER .`");
}

static int refuse(const unpacker *u, const char *path, const char *why, ty_error *err)
{
    return ty_error_set(err, TY_E_DATA, "archive \"%s\": \"%.200s\" %s", u->archive, path, why);
}

/* 0, or -1 at a short read or damaged stream. `at_end` (may be NULL): a clean end before the first byte is no error. */
static int read_exactly(unpacker *u, void *out, size_t n, bool *at_end, ty_error *err)
{
    int got = gzread(u->in, out, (unsigned)n);
    if (at_end)
        *at_end = got == 0;
    if (got == (int)n || (got == 0 && at_end))
        return 0;
    int code;
    const char *text = gzerror(u->in, &code);
    return damaged(u, code != Z_OK && code != Z_STREAM_END ? text : "the file ends too early", err);
}

/* Octal digits, or base 256 if the first byte's high bit is set. -1 if it is neither or does not fit. */
static int64_t read_number(const char *field, size_t n)
{
    const unsigned char *p = (const unsigned char *)field;
    uint64_t value = 0;
    if (p[0] & 0x80) {
        for (size_t i = 0; i < n; i++) {
            if (value >> 54)
                return -1;
            value = value << 8 | (i == 0 ? p[0] & 0x3fu : p[i]);
        }
        return p[0] & 0x40 ? -1 : (int64_t)value;
    }
    size_t i = 0;
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        value = value * 8 + (p[i] - '0');
    return i < n && p[i] != ' ' && p[i] != 0 ? -1 : (int64_t)value;
}

static bool checksum_is_right(const header *h)
{
    const unsigned char *bytes = (const unsigned char *)h;
    int64_t sum = 0;
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= offsetof(header, checksum) && i < offsetof(header, type) ? ' ' : bytes[i];
    return read_number(h->checksum, sizeof h->checksum) == sum;
}

static int skip(unpacker *u, uint64_t n, ty_error *err)
{
    char block[BLOCK * 16];
    while (n > 0) {
        size_t step = n < sizeof block ? (size_t)n : sizeof block;
        if (read_exactly(u, block, step, NULL, err) < 0)
            return -1;
        n -= step;
    }
    return 0;
}

static uint64_t padding(uint64_t size)
{
    return (BLOCK - size % BLOCK) % BLOCK;
}

/* The content of a meta entry, NUL-terminated in `out`. */
static int read_meta(unpacker *u, uint64_t size, ty_buf *out, ty_error *err)
{
    if (size > MAX_META_BYTES)
        return damaged(u, "an extended header is too long", err);
    char *at = ty_buf_reserve(out, size);
    if (!at)
        return damaged(u, "an extended header does not fit into memory", err);
    if (read_exactly(u, at, size, NULL, err) < 0 || skip(u, padding(size), err) < 0)
        return -1;
    out->len += size;
    out->data[out->len] = 0;
    return 0;
}

static int keep_text(unpacker *u, char out[PATH_MAX], const char *text, size_t n, ty_error *err)
{
    if (n >= PATH_MAX || memchr(text, 0, n))
        return damaged(u, "a name is too long or holds a NUL", err);
    memcpy(out, text, n);
    out[n] = 0;
    return 0;
}

/* pax records: "LENGTH KEY=VALUE\n", LENGTH counting all of it. */
static int read_pax(unpacker *u, const ty_buf *meta, ty_error *err)
{
    size_t at = 0;
    while (at < meta->len) {
        char *end;
        const char *record = meta->data + at;
        unsigned long length = strtoul(record, &end, 10);
        const char *key = end + 1;
        if (end == record || *end != ' ' || length > meta->len - at || length < (size_t)(key - record) + 2 ||
            record[length - 1] != '\n')
            return damaged(u, "a pax record is malformed", err);
        const char *equals = memchr(key, '=', length - (size_t)(key - record) - 1);
        if (!equals)
            return damaged(u, "a pax record has no \"=\"", err);
        const char *value = equals + 1;
        size_t key_len = (size_t)(equals - key), value_len = (size_t)(record + length - 1 - value);
        if (key_len == 4 && memcmp(key, "path", 4) == 0 && keep_text(u, u->path, value, value_len, err) < 0)
            return -1;
        if (key_len == 8 && memcmp(key, "linkpath", 8) == 0 && keep_text(u, u->link, value, value_len, err) < 0)
            return -1;
        if (key_len == 4 && memcmp(key, "size", 4) == 0) {
            u->size = strtoll(value, &end, 10);
            if (*end != '\n' || u->size < 0)
                return damaged(u, "a pax size is no number", err);
        }
        if (key_len > 10 && memcmp(key, "GNU.sparse", 10) == 0)
            return damaged(u, "sparse files are not taken", err);
        at += length;
    }
    return 0;
}

static int take_meta(unpacker *u, char type, uint64_t size, ty_error *err)
{
    ty_buf meta;
    ty_buf_init(&meta, MAX_META_BYTES);
    int rc = read_meta(u, size, &meta, err);
    if (rc == 0 && type == 'x')
        rc = read_pax(u, &meta, err);
    else if (rc == 0 && (type == 'L' || type == 'K'))
        rc = keep_text(u, type == 'L' ? u->path : u->link, meta.data, strlen(meta.data), err);
    ty_buf_fini(&meta);
    return rc; /* 'g', global defaults, holds nothing that we restore */
}

/* Opens the folder that holds the last component of path, making folders on the way; *name is that component. */
static int open_parent(const unpacker *u, char *path, char **name, ty_error *err)
{
    char *parts[MAX_COMPONENTS];
    int n = 0;
    for (char *save, *part = strtok_r(path, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
        if (strcmp(part, ".") == 0)
            continue;
        if (n == MAX_COMPONENTS)
            return ty_error_set(err, TY_E_DATA, "archive \"%s\": a path has too many parts", u->archive);
        parts[n++] = part;
    }
    int fd = openat(u->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i + 1 < n && fd >= 0; i++) {
        int made = mkdirat(fd, parts[i], 0755) == 0 ? 0 : errno;
        int next =
            made == 0 || made == EEXIST ? openat(fd, parts[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        int saved = errno;
        close(fd);
        errno = saved;
        fd = next;
    }
    *name = n > 0 ? parts[n - 1] : NULL;
    if (fd < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "archive \"%s\": cannot enter a folder of an entry", u->archive);
    return fd;
}

static bool path_is_inside(const char *path)
{
    if (path[0] == '/')
        return false;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return false;
        p += n + (p[n] == '/');
    }
    return true;
}

static int count_parts(const char *path)
{
    int n = 0;
    for (const char *p = path; *p;) {
        size_t len = strcspn(p, "/");
        n += len > 0 && !(len == 1 && p[0] == '.');
        p += len + (p[len] == '/');
    }
    return n;
}

/* A symbolic link may climb only at its beginning, and not above the root. ".." behind a name could climb out through
 * another link. */
static bool link_is_inside(const char *path, const char *target)
{
    int depth = count_parts(path) - 1;
    const char *p = target;
    while (strncmp(p, "../", 3) == 0 || strcmp(p, "..") == 0) {
        depth--;
        p += p[2] ? 3 : 2;
    }
    return target[0] != '/' && target[0] != 0 && depth >= 0 && path_is_inside(p);
}

static int write_content(unpacker *u, const entry *e, int fd, ty_error *err)
{
    char chunk[1 << 16];
    for (uint64_t left = e->size; left > 0;) {
        size_t step = left < sizeof chunk ? (size_t)left : sizeof chunk;
        if (read_exactly(u, chunk, step, NULL, err) < 0)
            return -1;
        for (size_t done = 0; done < step;) {
            ssize_t n = write(fd, chunk + done, step - done);
            if (n < 0 && errno != EINTR)
                return ty_error_errno(err, TY_E_NONE, errno, "cannot write \"%.200s\" of archive \"%s\"", e->path,
                                      u->archive);
            done += n > 0 ? (size_t)n : 0;
        }
        left -= step;
    }
    return skip(u, padding(e->size), err);
}

static int put_file(unpacker *u, const entry *e, int folder_fd, const char *name, ty_error *err)
{
    u->n_bytes += e->size;
    if (u->n_bytes > TY_UNPACK_MAX_BYTES)
        return refuse(u, e->path, "goes past the limit of 8 GiB of content", err);
    unlinkat(folder_fd, name, 0); /* a later entry of the same name replaces the earlier one */
    int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (e->mode & 0777) | 0600);
    if (fd < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot create \"%.200s\" of archive \"%s\"", e->path, u->archive);
    int rc = write_content(u, e, fd, err);
    if (close(fd) < 0 && rc == 0)
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot write \"%.200s\"", e->path);
    u->n_files++;
    return rc;
}

static int put_folder(unpacker *u, const entry *e, int folder_fd, const char *name, ty_error *err)
{
    if (mkdirat(folder_fd, name, (e->mode & 0777) | 0700) < 0 && errno != EEXIST)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot create \"%.200s\" of archive \"%s\"", e->path, u->archive);
    return skip(u, e->size + padding(e->size), err);
}

static int put_symlink(unpacker *u, const entry *e, int folder_fd, const char *name, ty_error *err)
{
    if (!link_is_inside(e->path, e->link))
        return refuse(u, e->path, "is a link that leads out of the folder", err);
    unlinkat(folder_fd, name, 0);
    if (symlinkat(e->link, folder_fd, name) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot create link \"%.200s\"", e->path);
    return skip(u, e->size + padding(e->size), err);
}

static int put_hard_link(unpacker *u, const entry *e, int folder_fd, const char *name, ty_error *err)
{
    char target[PATH_MAX];
    char *target_name;
    if (!path_is_inside(e->link))
        return refuse(u, e->path, "is a link that leads out of the folder", err);
    strcpy(target, e->link);
    int target_fd = open_parent(u, target, &target_name, err);
    if (target_fd < 0)
        return -1;
    unlinkat(folder_fd, name, 0);
    int rc = target_name ? linkat(target_fd, target_name, folder_fd, name, 0) : -1;
    if (rc < 0)
        ty_error_errno(err, TY_E_NONE, errno, "cannot create link \"%.200s\" to \"%.200s\"", e->path, e->link);
    close(target_fd);
    return rc < 0 ? -1 : skip(u, e->size + padding(e->size), err);
}

typedef int put_entry(unpacker *u, const entry *e, int folder_fd, const char *name, ty_error *err);

static const struct {
    char type;
    put_entry *put; /* NULL: refused, with the reason */
    const char *refusal;
} types[] = {
    {'0', put_file, NULL},           {0, put_file, NULL},        {'7', put_file, NULL},
    {'5', put_folder, NULL},         {'2', put_symlink, NULL},   {'1', put_hard_link, NULL},
    {'3', NULL, "is a device"},      {'4', NULL, "is a device"}, {'6', NULL, "is a pipe"},
    {'S', NULL, "is a sparse file"},
};

static int put(unpacker *u, const entry *e, ty_error *err)
{
    size_t t = 0, n_types = sizeof types / sizeof types[0];
    while (t < n_types && types[t].type != e->type)
        t++;
    if (t == n_types || !types[t].put)
        return refuse(u, e->path, t == n_types ? "is of an unknown type" : types[t].refusal, err);
    if (!path_is_inside(e->path))
        return refuse(u, e->path, "lies outside the folder", err);
    char path[PATH_MAX];
    char *name;
    strcpy(path, e->path);
    int folder_fd = open_parent(u, path, &name, err);
    if (folder_fd < 0)
        return -1;
    /* "./" itself has no name */
    int rc = name ? types[t].put(u, e, folder_fd, name, err) : skip(u, e->size + padding(e->size), err);
    close(folder_fd);
    return rc;
}

static void join_name(const header *h, char out[PATH_MAX])
{
    bool has_prefix = memcmp(h->magic, "ustar\0", 6) == 0 && h->prefix[0];
    if (has_prefix)
        snprintf(out, PATH_MAX, "%.155s/%.100s", h->prefix, h->name);
    else
        snprintf(out, PATH_MAX, "%.100s", h->name);
}

/* The header and what the entries before it said about it. */
static int decode(unpacker *u, const header *h, entry *e, ty_error *err)
{
    int64_t size = u->size >= 0 ? u->size : read_number(h->size, sizeof h->size);
    int64_t mode = read_number(h->mode, sizeof h->mode);
    if (size < 0 || size > (int64_t)1 << 48)
        return damaged(u, "the size is no number", err);
    e->type = h->type;
    e->size = (uint64_t)size;
    e->mode = mode < 0 ? 0644 : (mode_t)mode;
    if (u->path[0])
        strcpy(e->path, u->path);
    else
        join_name(h, e->path);
    if (u->link[0])
        strcpy(e->link, u->link);
    else
        snprintf(e->link, PATH_MAX, "%.100s", h->link);
    /* Old archives mark folders by a slash alone. */
    size_t len = strlen(e->path);
    if ((e->type == 0 || e->type == '0') && len > 0 && e->path[len - 1] == '/')
        e->type = '5';
    if (!strchr("07", e->type) && e->size > MAX_META_BYTES)
        return damaged(u, "a folder or link claims to have content", err);
    u->path[0] = u->link[0] = 0;
    u->size = -1;
    return 0;
}

/* 1: an entry was read; 0: the archive's end. */
static int unpack_entry(unpacker *u, ty_error *err)
{
    static const header zeros;
    header h;
    bool at_end = false;
    if (read_exactly(u, &h, BLOCK, &at_end, err) < 0)
        return -1;
    if (at_end && u->n_entries == 0)
        return damaged(u, "the file is empty", err);
    if (at_end || memcmp(&h, &zeros, BLOCK) == 0)
        return 0;
    if (++u->n_entries > TY_UNPACK_MAX_ENTRIES)
        return damaged(u, "more than 200000 entries", err);
    if (!checksum_is_right(&h))
        return damaged(u, u->n_entries == 1 ? "this is no tar archive" : "the header is damaged", err);
    if (strchr("xgLK", h.type) && h.type) {
        int64_t size = read_number(h.size, sizeof h.size);
        return size < 0                                        ? damaged(u, "the size is no number", err)
               : take_meta(u, h.type, (uint64_t)size, err) < 0 ? -1
                                                               : 1;
    }
    entry e;
    return decode(u, &h, &e, err) < 0 || put(u, &e, err) < 0 ? -1 : 1;
}

bool ty_unpack_knows(const char *archive_path)
{
    header h = {0};
    int fd = open(archive_path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, &h, sizeof h);
    if (fd >= 0)
        close(fd);
    const unsigned char *bytes = (const unsigned char *)&h;
    return (n >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) || (n == (ssize_t)sizeof h && checksum_is_right(&h));
}

int ty_unpack(const char *archive_path, const char *folder, ty_unpack_count *count, ty_error *err)
{
    unpacker u = {.archive = archive_path, .size = -1};
    u.in = gzopen(archive_path, "rbe");
    if (!u.in)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot open archive \"%s\"", archive_path);
    u.root_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (u.root_fd < 0) {
        ty_error_errno(err, TY_E_NONE, errno, "cannot open folder \"%s\"", folder);
        gzclose(u.in);
        return -1;
    }
    int rc;
    while ((rc = unpack_entry(&u, err)) > 0)
        continue;
    close(u.root_fd);
    gzclose(u.in);
    if (count)
        *count = (ty_unpack_count){u.n_files, u.n_bytes};
    return rc;
}
