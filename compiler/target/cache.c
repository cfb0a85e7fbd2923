/* cache.c - entries: written, read, proven, listed. See cache.h. */
#define _GNU_SOURCE
#include "compiler/target/cache.h"

#include "base/clock.h"
#include "base/entries.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "compiler/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CACHE_HEAD        "trainyard kernels 1\n"
#define CACHE_ENTRY_BYTES (1 << 20)
#define CACHE_PATH_BYTES  768

static bool cache_path(char *out, const char *dir, const char *name, const char *suffix)
{
    return snprintf(out, CACHE_PATH_BYTES, "%s/%s%s", dir, name, suffix) < CACHE_PATH_BYTES;
}

/* ---- keys ---- */

void ty_cache_key_add(ty_cache_key *key, ty_arena *a, bool decides, const char *name, const char *value)
{
    if (key->n == TY_CACHE_MAX_FIELDS)
        return;
    char *copy = ty_arena_strdup(a, value);
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    key->field[key->n++] = (ty_cache_field){name, copy, decides};
}

const char *ty_cache_key_value(const ty_cache_key *key, const char *name)
{
    for (int i = 0; i < key->n; i++)
        if (strcmp(key->field[i].name, name) == 0)
            return key->field[i].value;
    return NULL;
}

int ty_cache_key_hex(const ty_cache_key *key, char hex[TY_CACHE_HEX_BYTES], ty_error *err)
{
    ty_sha256 h;
    uint8_t digest[TY_SHA256_BYTES];
    if (ty_sha256_init(&h, err) < 0)
        return -1;
    for (int i = 0; i < key->n; i++) {
        if (!key->field[i].decides)
            continue;
        ty_sha256_add(&h, key->field[i].name, strlen(key->field[i].name) + 1);
        ty_sha256_add(&h, key->field[i].value, strlen(key->field[i].value) + 1);
    }
    ty_sha256_final(&h, digest);
    ty_sha256_hex(digest, hex);
    return 0;
}

/* ---- entry.txt ---- */

static void cache_describe(const ty_cache_key *key, ty_buf *text)
{
    ty_buf_adds(text, CACHE_HEAD);
    for (int i = 0; i < key->n; i++)
        ty_buf_addf(text, "%s\t%s\t%s\n", key->field[i].decides ? "field" : "fact", key->field[i].name,
                    key->field[i].value);
}

/* Not made durable: what a loss of power leaves has another hash, and is compiled anew. */
static int cache_write(const char *folder, const char *name, const char *bytes, size_t n_bytes, ty_error *err)
{
    char path[CACHE_PATH_BYTES];
    if (!cache_path(path, folder, name, ""))
        return ty_error_set(err, TY_E_LIMIT, "the path is too long: %s", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return ty_error_errno(err, TY_E_CREATE, errno, "%s", path);
    int rc = ty_file_write_all(fd, bytes, n_bytes, path, err);
    if (close(fd) < 0 && rc == 0)
        rc = ty_error_errno(err, TY_E_IO, errno, "%s", path);
    return rc;
}

static int cache_fetch_object(const ty_cache_objects *from, const char *name, int i, ty_buf *object, ty_error *err)
{
    char path[CACHE_PATH_BYTES];
    if (!from->folder)
        return ty_buf_add(object, from->bytes[i], from->n_bytes[i]) == 0
                   ? 0
                   : ty_error_set(err, TY_E_LIMIT, "no memory for compiled kernels");
    if (!cache_path(path, from->folder, name, ""))
        return ty_error_set(err, TY_E_LIMIT, "the path is too long: %s", from->folder);
    return ty_file_read(path, object, err);
}

/* Copies object i and adds its line. */
static int cache_store_object(const ty_cache_objects *from, const char *to, int i, ty_buf *text, ty_error *err)
{
    char name[32], hex[TY_SHA256_HEX_BYTES];
    uint8_t digest[TY_SHA256_BYTES];
    ty_buf object;
    snprintf(name, sizeof name, "k%d%s", i, from->suffix);
    ty_buf_init(&object, 1u << 30);
    int rc = cache_fetch_object(from, name, i, &object, err);
    if (rc == 0)
        rc = ty_sha256_bytes(object.data, object.len, digest, err);
    if (rc == 0)
        rc = cache_write(to, name, object.data, object.len, err);
    if (rc == 0)
        ty_buf_addf(text, "file\t%s\t%s\n", name, ty_sha256_hex(digest, hex));
    ty_buf_fini(&object);
    return rc;
}

static int cache_fill(const ty_cache_objects *from, const ty_cache_key *key, const char *to, ty_error *err)
{
    ty_buf text;
    int rc = 0;
    ty_buf_init(&text, CACHE_ENTRY_BYTES);
    cache_describe(key, &text);
    for (int i = 0; i < from->n && rc == 0; i++)
        rc = cache_store_object(from, to, i, &text, err);
    if (rc == 0 && text.failed)
        rc = ty_error_set(err, TY_E_LIMIT, "the description of the kernels is too long");
    if (rc == 0)
        rc = cache_write(to, TY_CACHE_ENTRY_NAME, text.data, text.len, err);
    ty_buf_fini(&text);
    return rc;
}

/* A folder of our kind may be replaced; an empty one too, by rename itself. */
static void cache_make_room(const char *to)
{
    ty_arena a;
    ty_cache_entry entry;
    ty_arena_init(&a);
    if (ty_cache_read(to, &a, &entry, NULL) == 0)
        ty_file_remove_tree(to, NULL);
    ty_arena_fini(&a);
}

int ty_cache_store(const ty_cache_objects *objects, const ty_cache_key *key, const char *to, ty_error *err)
{
    char work[CACHE_PATH_BYTES];
    const char *slash = strrchr(to, '/');
    int parent = slash ? (int)(slash - to) : 0;
    if (snprintf(work, sizeof work, "%.*s%s" TY_ENTRIES_WORK "XXXXXX", parent, to, slash ? "/" : "") >=
        (int)sizeof work)
        return ty_error_set(err, TY_E_LIMIT, "the path is too long: %s", to);
    if (!mkdtemp(work))
        return ty_error_errno(err, TY_E_CREATE, errno, "making a folder for compiled kernels beside %s", to);
    int rc = chmod(work, 0755) < 0 ? ty_error_errno(err, TY_E_CREATE, errno, "%s", work)
                                   : cache_fill(objects, key, work, err);
    if (rc == 0) {
        cache_make_room(to);
        if (rename(work, to) < 0)
            rc = ty_error_errno(err, TY_E_CREATE, errno, "\"%s\"", to);
    }
    if (rc < 0)
        ty_file_remove_tree(work, NULL);
    return rc;
}

static bool cache_is_object_name(const char *name)
{
    static const char *const suffix[] = {".so", ".cubin", ".algorithm"};
    int n = 0;
    bool numbered = name[0] == 'k' && sscanf(name, "k%*3[0-9]%n", &n) == 0 && n > 0, known = false;
    for (size_t i = 0; i < sizeof suffix / sizeof *suffix && numbered; i++)
        known |= strcmp(name + n, suffix[i]) == 0;
    return known;
}

static int cache_read_line(char *line, ty_arena *a, ty_cache_entry *out)
{
    char *kind = strtok_r(line, "\t", &line), *name = strtok_r(NULL, "\t", &line), *value = line;
    if (!kind || !name || !value)
        return -1;
    if (strcmp(kind, "field") == 0 || strcmp(kind, "fact") == 0) {
        ty_cache_key_add(&out->key, a, kind[1] == 'i', ty_arena_strdup(a, name), value);
        return 0;
    }
    if (strcmp(kind, "file") != 0 || out->n_files == TY_CACHE_MAX_FILES || !cache_is_object_name(name) ||
        strlen(value) != TY_CACHE_HEX_BYTES - 1)
        return -1;
    out->file[out->n_files] = ty_arena_strdup(a, name);
    memcpy(out->hash[out->n_files++], value, TY_CACHE_HEX_BYTES);
    return 0;
}

int ty_cache_read(const char *folder, ty_arena *a, ty_cache_entry *out, ty_error *err)
{
    char path[CACHE_PATH_BYTES];
    ty_buf text;
    *out = (ty_cache_entry){.n_files = 0};
    if (!cache_path(path, folder, TY_CACHE_ENTRY_NAME, ""))
        return ty_error_set(err, TY_E_LIMIT, "the path is too long: %s", folder);
    ty_buf_init(&text, CACHE_ENTRY_BYTES);
    int rc = ty_file_read(path, &text, err);
    size_t head = strlen(CACHE_HEAD);
    if (rc == 0 && (text.len < head || memcmp(text.data, CACHE_HEAD, head) != 0 || memchr(text.data, 0, text.len)))
        rc = ty_error_set(err, TY_E_IO, "%s does not begin as a description of compiled kernels does", path);
    char *at = rc == 0 ? text.data + head : NULL;
    for (char *line; rc == 0 && *at && (line = strsep(&at, "\n")) && *line;)
        if (cache_read_line(line, a, out) < 0 || !at)
            rc = ty_error_set(err, TY_E_IO, "%s is damaged", path);
    if (rc == 0 && out->n_files == 0)
        rc = ty_error_set(err, TY_E_IO, "%s names no files", path);
    ty_buf_fini(&text);
    return rc;
}

int ty_cache_verify(const char *folder, const ty_cache_entry *entry, ty_error *err)
{
    char path[CACHE_PATH_BYTES], hex[TY_SHA256_HEX_BYTES];
    uint8_t digest[TY_SHA256_BYTES];
    for (int i = 0; i < entry->n_files; i++) {
        if (!cache_path(path, folder, entry->file[i], ""))
            return ty_error_set(err, TY_E_LIMIT, "the path is too long: %s", folder);
        if (ty_sha256_file(path, digest, err) < 0)
            return -1;
        if (strcmp(ty_sha256_hex(digest, hex), entry->hash[i]) != 0)
            return ty_error_set(err, TY_E_IO, "%s is not what was written: its SHA-256 differs", path);
    }
    return 0;
}

/* ---- locks ---- */

static bool cache_same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The file is removed by whoever had it: a lock on one that has gone is worth nothing, hence the second look. */
int ty_cache_lock(const char *dir, const char *hex, int64_t wait_ms)
{
    char path[CACHE_PATH_BYTES];
    int64_t end_ms = ty_clock_ms() + wait_ms;
    bool told = false;
    if (!cache_path(path, dir, hex, ".lock"))
        return -1;
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return -1;
        while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            if ((errno != EWOULDBLOCK && errno != EINTR) || ty_clock_ms() >= end_ms) {
                close(fd);
                return -1;
            }
            if (!told)
                ty_log_info("cache", "waiting for another process that compiles the same kernels");
            told = true;
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        }
        if (cache_same_file(fd, path))
            return fd;
        close(fd);
    }
}

void ty_cache_unlock(int lock, const char *dir, const char *hex)
{
    char path[CACHE_PATH_BYTES];
    if (lock < 0)
        return;
    if (cache_path(path, dir, hex, ".lock"))
        unlink(path);
    close(lock);
}

/* ---- for people ---- */

int ty_cache_list(const char *dir, ty_arena *a, ty_cache_listed **out, int *n, ty_error *err)
{
    ty_entry *use = NULL;
    *n = 0;
    if (ty_file_exists(dir) && !ty_file_is_folder(dir))
        return ty_error_set(err, TY_E_NOT_FOUND, "%s is no folder", dir);
    int n_uses = ty_entries_list(dir, a, &use);
    *out = TY_NEW_ARRAY(a, ty_cache_listed, n_uses + 1);
    for (int i = n_uses - 1; i >= 0; i--) {
        ty_cache_entry entry;
        bool read = !use[i].is_index && ty_cache_read(use[i].path, a, &entry, NULL) == 0;
        const char *model = read ? ty_cache_key_value(&entry.key, "model") : NULL;
        const char *inputs = read ? ty_cache_key_value(&entry.key, "inputs") : NULL;
        if (use[i].is_index)
            continue;
        ty_cache_listed *row = &(*out)[(*n)++];
        *row = (ty_cache_listed){"", use[i].bytes, use[i].used_s, model ? model : "", inputs ? inputs : ""};
        snprintf(row->name, sizeof row->name, "%.12s", use[i].name);
    }
    return 0;
}
