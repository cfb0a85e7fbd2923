/* pack.c - a sorted list of files, then headers and contents through zlib. */
#include "estimator_spec/pack.h"

#include "base/file.h"
#include "estimator_spec/job_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 512, MAX_DEPTH = 40, NAME_BYTES = 100, CHUNK = 1 << 16 };

/* A header block as it lies in the archive. */
typedef struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
} header;
_Static_assert(sizeof(header) == BLOCK, "a tar header is one block");

/* ---- the list ---- */

typedef struct lister {
    ty_arena *a;
    ty_packed_file *files;
    int n, max_files;
    uint64_t n_bytes, max_bytes; /* of the files together */
    ty_error *err;
} lister;

static int refuse_size(lister *l, const char *path)
{
    if (l->max_files > TY_PACK_MAX_FILES)
        return ty_error_set(l->err, TY_E_LIMIT, "more than %d files at \"%.200s\"", l->max_files, path);
    ty_error_set(l->err, TY_E_LIMIT, "the source goes past %d files or 1 GiB at \"%.200s\"", TY_PACK_MAX_FILES, path);
    return ty_error_help(l->err, "data belongs into a channel (inputs), not into the source");
}

static int add_path(lister *l, const char *name, const char *path, int depth);

static int add_folder(lister *l, const char *name, const char *path, int depth)
{
    ty_file_entry *entries;
    size_t n;
    if (depth == MAX_DEPTH)
        return ty_error_set(l->err, TY_E_LIMIT, "folders lie more than %d deep at \"%.200s\"; a link that leads back?",
                            MAX_DEPTH, path);
    if (ty_file_list(path, l->a, &entries, &n, l->err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const char *child = *name ? ty_arena_printf(l->a, "%s/%s", name, entries[i].name) : entries[i].name;
        if (add_path(l, child, ty_arena_printf(l->a, "%s/%s", path, entries[i].name), depth + 1) < 0)
            return -1;
    }
    return 0;
}

/* name "": the folder's content alone. */
static int add_path(lister *l, const char *name, const char *path, int depth)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return ty_error_errno(l->err, TY_E_NONE, errno, "cannot pack \"%.200s\"", path);
    bool is_folder = S_ISDIR(st.st_mode);
    if (!is_folder && !S_ISREG(st.st_mode))
        return ty_error_set(l->err, TY_E_DATA, "cannot pack \"%.200s\": it is neither a file nor a folder", path);
    uint64_t size = is_folder ? 0 : (uint64_t)st.st_size;
    if (l->n == l->max_files || size > l->max_bytes - l->n_bytes)
        return refuse_size(l, path);
    l->n_bytes += size;
    if (*name)
        l->files[l->n++] = (ty_packed_file){name, path, size, is_folder, (st.st_mode & 0111) != 0};
    return is_folder ? add_folder(l, name, path, depth) : 0;
}

static const char *resolve(lister *l, const char *folder, const char *path)
{
    return ty_path_within(folder, path, l->a);
}

/* "libs/common/" is "common". */
static const char *last_part(lister *l, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    const char *copy = ty_arena_strndup(l->a, path, n), *slash = strrchr(copy, '/');
    return slash && slash[1] ? slash + 1 : copy;
}

static int compare_files(const void *x, const void *y)
{
    return strcmp(((const ty_packed_file *)x)->name, ((const ty_packed_file *)y)->name);
}

static int refuse_twice(const lister *l)
{
    for (int i = 1; i < l->n; i++)
        if (strcmp(l->files[i - 1].name, l->files[i].name) == 0)
            return ty_error_set(l->err, TY_E_CONFIG,
                                "\"%.200s\" and \"%.200s\" would both be \"%.200s\" in the archive",
                                l->files[i - 1].path, l->files[i].path, l->files[i].name);
    return 0;
}

int ty_pack_list(const ty_jobspec *job, ty_arena *a, ty_packed_file **files, int *n, ty_error *err)
{
    lister l = {a, NULL, 0, TY_PACK_MAX_FILES, 0, TY_PACK_MAX_BYTES, err};
    const ty_field_value *v = job->value;
    const char *folder = v[TY_FIELD_SOURCE_FOLDER].text, *base = job->folder ? job->folder : ".";
    const char *program = v[TY_FIELD_PROGRAM].text ? v[TY_FIELD_PROGRAM].text : v[TY_FIELD_RECIPE].text;
    const ty_doc *dependencies = v[TY_FIELD_DEPENDENCIES].node;
    *n = 0;
    *files = NULL;
    if (!job->source.is_packed)
        return 0;
    l.files = TY_NEW_ARRAY(a, ty_packed_file, TY_PACK_MAX_FILES);
    if (add_path(&l, folder ? "" : last_part(&l, program), resolve(&l, base, folder ? folder : program), 0) < 0)
        return -1;
    for (size_t i = 0; i < ty_doc_len(dependencies); i++) {
        const char *path = resolve(&l, base, dependencies->items[i].string);
        if (add_path(&l, last_part(&l, path), path, 0) < 0)
            return -1;
    }
    qsort(l.files, (size_t)l.n, sizeof *l.files, compare_files);
    *files = l.files;
    *n = l.n;
    return refuse_twice(&l);
}

int ty_pack_list_folder(const char *folder, ty_arena *a, ty_packed_file **files, int *n, ty_error *err)
{
    lister l = {a,  TY_NEW_ARRAY(a, ty_packed_file, TY_PACK_MAX_LEFT_FILES), 0, TY_PACK_MAX_LEFT_FILES, 0, UINT64_MAX,
                err};
    if (add_folder(&l, "", folder, 0) < 0)
        return -1;
    qsort(l.files, (size_t)l.n, sizeof *l.files, compare_files);
    *files = l.files;
    *n = l.n;
    return 0;
}

/* ---- the archive ---- */

typedef struct packer {
    z_stream z;
    ty_buf *out;
    ty_file_writer *file; /* where the buffer's content goes whenever there is some; NULL: it stays there */
    ty_error *err;
} packer;

static int hand_over(packer *p)
{
    if (!p->file || p->out->len == 0)
        return 0;
    int rc = ty_file_writer_add(p->file, p->out->data, p->out->len, p->err);
    ty_buf_clear(p->out);
    return rc;
}

static int put(packer *p, const void *bytes, size_t n, int flush)
{
    p->z.next_in = (Bytef *)(uintptr_t)bytes;
    p->z.avail_in = (uInt)n;
    int rc = Z_OK;
    do {
        char *room = ty_buf_reserve(p->out, CHUNK);
        if (!room)
            return ty_error_set(p->err, TY_E_LIMIT, "the archive goes past %zu bytes", p->out->max_bytes);
        p->z.next_out = (Bytef *)room;
        p->z.avail_out = CHUNK;
        rc = deflate(&p->z, flush);
        if (rc == Z_STREAM_ERROR)
            return ty_error_set(p->err, TY_E_LIBRARY, "zlib refused to go on");
        p->out->len += CHUNK - p->z.avail_out;
        if (hand_over(p) < 0)
            return -1;
    } while (p->z.avail_in > 0 || p->z.avail_out == 0 || (flush == Z_FINISH && rc != Z_STREAM_END));
    return 0;
}

static int put_padding(packer *p, uint64_t size)
{
    static const char zeros[BLOCK];
    return put(p, zeros, (size_t)((BLOCK - size % BLOCK) % BLOCK), Z_NO_FLUSH);
}

static int put_header(packer *p, const char *name, char type, uint64_t size, bool is_executable)
{
    header h = {.type = type, .magic = "ustar", .version = {'0', '0'}};
    unsigned sum = 0;
    memcpy(h.name, name, strnlen(name, NAME_BYTES));
    snprintf(h.mode, sizeof h.mode, "%07o", is_executable ? 0755 : 0644);
    snprintf(h.uid, sizeof h.uid, "%07o", 0);
    snprintf(h.gid, sizeof h.gid, "%07o", 0);
    snprintf(h.size, sizeof h.size, "%011llo", (unsigned long long)size);
    snprintf(h.mtime, sizeof h.mtime, "%011o", 0);
    memset(h.checksum, ' ', sizeof h.checksum);
    for (size_t i = 0; i < BLOCK; i++)
        sum += ((const unsigned char *)&h)[i];
    snprintf(h.checksum, sizeof h.checksum, "%06o", sum);
    return put(p, &h, BLOCK, Z_NO_FLUSH);
}

/* "LENGTH path=NAME\n", where LENGTH counts itself. */
static int put_long_name(packer *p, const char *name)
{
    char record[8192];
    size_t rest = strlen(" path=\n") + strlen(name), n = rest + 1;
    while (n != rest + (size_t)snprintf(NULL, 0, "%zu", n))
        n = rest + (size_t)snprintf(NULL, 0, "%zu", n);
    if (n >= sizeof record)
        return ty_error_set(p->err, TY_E_LIMIT, "a name of %zu bytes is too long to pack", strlen(name));
    snprintf(record, sizeof record, "%zu path=%s\n", n, name);
    return put_header(p, "PaxHeader", 'x', n, false) < 0 || put(p, record, n, Z_NO_FLUSH) < 0 ? -1 : put_padding(p, n);
}

static int copy_content(packer *p, const ty_packed_file *f, int fd)
{
    char chunk[CHUNK];
    uint64_t left = f->n_bytes;
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ty_error_errno(p->err, TY_E_NONE, errno, "cannot read \"%.200s\"", f->path);
        if ((uint64_t)n > left || (n == 0 && left > 0))
            return ty_error_set(p->err, TY_E_DATA, "\"%.200s\" changed its size while it was packed", f->path);
        if (n == 0)
            return 0;
        if (put(p, chunk, (size_t)n, Z_NO_FLUSH) < 0)
            return -1;
        left -= (uint64_t)n;
    }
}

static int put_file(packer *p, const ty_packed_file *f)
{
    if (f->n_bytes > TY_PACK_MAX_FILE_BYTES) {
        ty_error_set(p->err, TY_E_LIMIT, "\"%.200s\" is larger than the 8 GiB that a tar archive takes", f->path);
        return ty_error_help(p->err, "output: {compression: NONE} leaves files as they are");
    }
    char name[NAME_BYTES + 1];
    size_t len = strlen(f->name) + f->is_folder;
    if (len > NAME_BYTES && put_long_name(p, f->name) < 0)
        return -1;
    snprintf(name, sizeof name, "%s%s", f->name, f->is_folder ? "/" : "");
    if (put_header(p, name, f->is_folder ? '5' : '0', f->n_bytes, f->is_folder || f->is_executable) < 0)
        return -1;
    if (f->is_folder)
        return 0;
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return ty_error_errno(p->err, TY_E_NONE, errno, "cannot open \"%.200s\"", f->path);
    int rc = copy_content(p, f, fd);
    close(fd);
    return rc < 0 ? -1 : put_padding(p, f->n_bytes);
}

static int write_all(packer *p, const ty_packed_file *files, int n)
{
    static const char end[2 * BLOCK];
    gz_header gz = {.os = 255};
    if (deflateInit2(&p->z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return ty_error_set(p->err, TY_E_LIBRARY, "zlib refused to begin");
    deflateSetHeader(&p->z, &gz);
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++)
        rc = put_file(p, &files[i]);
    if (rc == 0)
        rc = put(p, end, sizeof end, Z_FINISH);
    deflateEnd(&p->z);
    return rc;
}

int ty_pack_write(const ty_packed_file *files, int n, ty_buf *out, ty_error *err)
{
    packer p = {.out = out, .err = err};
    return write_all(&p, files, n);
}

int ty_pack_save(const ty_packed_file *files, int n, const char *path, ty_error *err)
{
    ty_buf chunk;
    ty_file_writer file;
    packer p = {.out = &chunk, .file = &file, .err = err};
    if (ty_file_writer_open(&file, path, 0644, err) < 0)
        return -1;
    ty_buf_init(&chunk, 2 * CHUNK);
    int rc = write_all(&p, files, n);
    ty_buf_fini(&chunk);
    if (rc == 0)
        rc = ty_file_writer_commit(&file, err);
    ty_file_writer_abandon(&file);
    return rc;
}
