/* manifest.c - see manifest.h.
 *
 * The hash is checked over the text before the text is parsed: the parser then only ever sees what a writer of ours
 * made, or what somebody forged on purpose, and must survive the latter.
 */
#include "container/output/manifest.h"

#include "base/hash.h"
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FORMAT_NAME    "trainyard-checkpoint"
#define FORMAT_VERSION 2 /* 1: without "run" */
#define HASH_START     "  \"sha256\": \""
#define HASH_END       "\"\n}\n"

enum {
    HEX_BYTES = TY_MANIFEST_HASH_BYTES - 1,
    TAIL_BYTES = sizeof HASH_START - 1 + HEX_BYTES + sizeof HASH_END - 1,
    JSON_DEPTH = 4,
};

void ty_manifest_file_name(int rank, char name[32])
{
    snprintf(name, 32, "rank-%05d.bin", rank);
}

/* Hashes of the caller may be any short token; they are compared, never interpreted. */
static bool token_ok(const char *s)
{
    size_t n = strnlen(s, TY_MANIFEST_HASH_BYTES);
    return n < TY_MANIFEST_HASH_BYTES &&
           strspn(s, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.:-") == n;
}

static bool run_ok(const char *s)
{
    size_t n = strnlen(s, TY_MANIFEST_RUN_BYTES), i = 0;
    while (i < n && s[i] >= ' ' && s[i] <= '~')
        i++;
    return i == n && n < TY_MANIFEST_RUN_BYTES;
}

static bool sha256_ok(const char *s)
{
    return strnlen(s, TY_MANIFEST_HASH_BYTES) == HEX_BYTES && strspn(s, "0123456789abcdef") == HEX_BYTES;
}

static void put_state(ty_json_writer *w, const ty_train_state *s)
{
    char word[24];
    ty_json_open_map(w, "position");
    ty_json_put_int(w, "epoch", s->epoch);
    ty_json_put_int(w, "batch", s->batch);
    snprintf(word, sizeof word, "%" PRIu64, s->seed);
    ty_json_put_string(w, "seed", word);
    snprintf(word, sizeof word, "%" PRIu64, s->rng);
    ty_json_put_string(w, "rng", word);
    if (s->has_best) {
        ty_json_put_float(w, "best_metric", s->best_metric);
        ty_json_put_int(w, "best_step", s->best_step);
    }
    if (s->n_worse > 0)
        ty_json_put_int(w, "worse", s->n_worse);
    ty_json_close(w);
}

/* One key a line, so that people can read and diff it. */
static void line_start(ty_buf *out, const char *key)
{
    ty_buf_addf(out, ",\n  \"%s\": ", key);
}

static void add_state(ty_buf *out, const ty_manifest *m)
{
    ty_buf position;
    ty_buf_init(&position, 4096);
    ty_json_writer w;
    ty_json_writer_init(&w, &position, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    put_state(&w, &m->state);
    ty_json_close(&w);
    /* The writer made {"position": {...}}; without the outer braces it is one line of ours. */
    ty_buf_addf(out, ",\n  %.*s", (int)(position.len >= 2 ? position.len - 2 : 0), position.data + 1);
    out->failed |= position.failed;
    ty_buf_fini(&position);
    line_start(out, "plan_hash");
    ty_json_add_string(out, m->state.plan_hash, TY_JSON_COMPACT);
    line_start(out, "recipe_hash");
    ty_json_add_string(out, m->state.recipe_hash, TY_JSON_COMPACT);
    line_start(out, "run");
    ty_json_add_string(out, m->state.run, TY_JSON_COMPACT);
}

static int check_writable(const ty_manifest *m, ty_error *err)
{
    if (m->world_size < 1 || m->world_size > TY_MANIFEST_WORLD_MAX)
        return ty_error_set(err, TY_E_INTERNAL, "manifest: world size %d", m->world_size);
    if (!token_ok(m->state.plan_hash) || !token_ok(m->state.recipe_hash))
        return ty_error_set(err, TY_E_INTERNAL, "manifest: a hash is not a plain word of at most %d bytes", HEX_BYTES);
    if (!run_ok(m->state.run))
        return ty_error_set(err, TY_E_INTERNAL, "manifest: run is not plain text");
    if (m->state.step < 0 || m->state.epoch < 0 || m->state.batch < 0 || m->state.n_worse < 0)
        return ty_error_set(err, TY_E_INTERNAL, "manifest: step, epoch, batch or a count is negative");
    if (m->state.has_best && !isfinite(m->state.best_metric))
        return ty_error_set(err, TY_E_INTERNAL, "manifest: the best metric is not finite");
    return 0;
}

int ty_manifest_format(const ty_manifest *m, ty_buf *out, ty_error *err)
{
    if (check_writable(m, err) < 0)
        return -1;
    size_t start = out->len;
    ty_buf_addf(out, "{\n  \"format\": \"" FORMAT_NAME "\",\n  \"version\": %d", FORMAT_VERSION);
    ty_buf_addf(out, ",\n  \"step\": %" PRId64 ",\n  \"world_size\": %d", m->state.step, m->world_size);
    add_state(out, m);
    line_start(out, "files");
    for (int i = 0; i < m->world_size; i++)
        ty_buf_addf(out, "%s\n    {\"name\": \"%s\", \"bytes\": %" PRIu64 ", \"sha256\": \"%s\"}", i ? "," : "[",
                    m->files[i].name, m->files[i].n_bytes, m->files[i].sha256);
    ty_buf_adds(out, "\n  ],\n");
    uint8_t digest[TY_SHA256_BYTES];
    char hex[TY_SHA256_HEX_BYTES];
    if (ty_sha256_bytes(out->data + start, out->len - start, digest, err) < 0)
        return -1;
    ty_buf_addf(out, HASH_START "%s" HASH_END, ty_sha256_hex(digest, hex));
    return out->failed ? ty_error_set(err, TY_E_LIMIT, "manifest does not fit %zu bytes", out->max_bytes) : 0;
}

static int check_hash(const char *text, size_t n, ty_error *err)
{
    uint8_t digest[TY_SHA256_BYTES];
    char hex[TY_SHA256_HEX_BYTES], expected[TAIL_BYTES + 1];
    if (n > TY_MANIFEST_MAX_BYTES)
        return ty_error_set(err, TY_E_CHECKPOINT, "expected at most %u bytes, found %zu", TY_MANIFEST_MAX_BYTES, n);
    if (n < TAIL_BYTES)
        return ty_error_set(err, TY_E_CHECKPOINT, "expected at least %d bytes, found %zu", TAIL_BYTES, n);
    if (ty_sha256_bytes(text, n - TAIL_BYTES, digest, err) < 0)
        return -1;
    snprintf(expected, sizeof expected, HASH_START "%s" HASH_END, ty_sha256_hex(digest, hex));
    if (memcmp(text + n - TAIL_BYTES, expected, TAIL_BYTES) != 0)
        return ty_error_set(err, TY_E_CHECKPOINT,
                            "its SHA-256 differs from its last line: it was changed or cut short");
    return 0;
}

/* Fields as rows: where a key's value goes and how it is read. A key in no row, or twice, or missing is refused. */
enum field_kind { FIELD_COUNT, FIELD_WORD, FIELD_NUMBER, FIELD_TOKEN, FIELD_SHA256, FIELD_RUN, FIELD_NAME, FIELD_ANY };

struct field {
    const char *key;
    enum field_kind kind;
    void *to;      /* int64_t, uint64_t, double, char[TY_MANIFEST_HASH_BYTES] twice, char[TY_MANIFEST_RUN_BYTES],
                            const char *, const ty_doc * */
    bool *present; /* NULL: the key is needed */
};

static int read_count(const ty_doc *d, int64_t *to, ty_error *err)
{
    if (ty_doc_int(d, to, err) < 0)
        return -1;
    return *to < 0 ? ty_doc_error(d, err, TY_E_CHECKPOINT, NULL, "expected a number from 0, found %" PRId64, *to) : 0;
}

static int read_word(const ty_doc *d, uint64_t *to, ty_error *err)
{
    const char *s = "";
    if (ty_doc_expect(d, TY_DOC_STRING, err) < 0 || ty_doc_string(d, &s, err) < 0)
        return -1;
    uint64_t v = 0;
    bool ok = s[0] != 0 && (s[0] != '0' || s[1] == 0);
    for (const char *c = s; ok && *c; c++)
        ok = *c >= '0' && *c <= '9' && !__builtin_mul_overflow(v, (uint64_t)10, &v) &&
             !__builtin_add_overflow(v, (uint64_t)(*c - '0'), &v);
    *to = v;
    return ok ? 0 : ty_doc_error(d, err, TY_E_CHECKPOINT, NULL, "expected a 64-bit number as text, found \"%s\"", s);
}

static int read_text(const ty_doc *d, const struct field *f, ty_error *err)
{
    const char *s = "";
    if (ty_doc_expect(d, TY_DOC_STRING, err) < 0 || ty_doc_string(d, &s, err) < 0)
        return -1;
    if (f->kind == FIELD_NAME) {
        *(const char **)f->to = s;
        return 0;
    }
    if (f->kind == FIELD_RUN ? !run_ok(s) : f->kind == FIELD_SHA256 ? !sha256_ok(s) : !token_ok(s))
        return ty_doc_error(d, err, TY_E_CHECKPOINT, NULL, "expected %s, found \"%.80s\"",
                            f->kind == FIELD_RUN ? "plain text" : "a hash", s);
    memcpy(f->to, s, strlen(s) + 1);
    return 0;
}

static int read_field(const ty_doc *d, const struct field *f, ty_error *err)
{
    switch (f->kind) {
    case FIELD_COUNT:
        return read_count(d, f->to, err);
    case FIELD_WORD:
        return read_word(d, f->to, err);
    case FIELD_NUMBER:
        return ty_doc_float(d, f->to, err);
    case FIELD_ANY:
        *(const ty_doc **)f->to = d;
        return 0;
    default:
        return read_text(d, f, err);
    }
}

static int read_map(const ty_doc *map, const struct field *fields, size_t n, ty_error *err)
{
    if (ty_doc_expect(map, TY_DOC_MAP, err) < 0)
        return -1;
    size_t n_known = 0;
    for (size_t i = 0; i < n; i++) {
        const ty_doc *d = ty_doc_find(map, fields[i].key);
        if (fields[i].present)
            *fields[i].present = d != NULL;
        if (!d && !fields[i].present)
            return ty_doc_error(map, err, TY_E_CHECKPOINT, NULL, "expected a key \"%s\", found none", fields[i].key);
        if (d && read_field(d, &fields[i], err) < 0)
            return ty_error_wrap(err, "%s", fields[i].key);
        n_known += d != NULL;
    }
    if (n_known != ty_doc_len(map))
        return ty_doc_error(map, err, TY_E_CHECKPOINT, NULL, "found %zu keys that this version does not know",
                            ty_doc_len(map) - n_known);
    return 0;
}

static int read_position(const ty_doc *d, ty_train_state *s, ty_error *err)
{
    bool has_step = false, has_worse = false;
    const struct field fields[] = {
        {"epoch", FIELD_COUNT, &s->epoch, NULL},
        {"batch", FIELD_COUNT, &s->batch, NULL},
        {"seed", FIELD_WORD, &s->seed, NULL},
        {"rng", FIELD_WORD, &s->rng, NULL},
        {"best_metric", FIELD_NUMBER, &s->best_metric, &s->has_best},
        {"best_step", FIELD_COUNT, &s->best_step, &has_step},
        {"worse", FIELD_COUNT, &s->n_worse, &has_worse},
    };
    if (read_map(d, fields, sizeof fields / sizeof *fields, err) < 0)
        return -1;
    if (s->has_best != has_step)
        return ty_doc_error(d, err, TY_E_CHECKPOINT, NULL, "expected best_metric and best_step, or neither");
    return 0;
}

static int read_file(const ty_doc *d, int rank, ty_manifest_file *file, ty_error *err)
{
    const char *name = NULL;
    int64_t n_bytes = 0;
    const struct field fields[] = {
        {"name", FIELD_NAME, &name, NULL},
        {"bytes", FIELD_COUNT, &n_bytes, NULL},
        {"sha256", FIELD_SHA256, file->sha256, NULL},
    };
    if (read_map(d, fields, sizeof fields / sizeof *fields, err) < 0)
        return -1;
    /* The name is known beforehand, so that no name of the file is ever used as a path. */
    ty_manifest_file_name(rank, file->name);
    file->n_bytes = (uint64_t)n_bytes;
    if (strcmp(name, file->name) != 0)
        return ty_doc_error(d, err, TY_E_CHECKPOINT, NULL, "expected \"%s\", found \"%.80s\"", file->name, name);
    return 0;
}

static int read_files(const ty_doc *list, ty_arena *arena, ty_manifest *out, ty_error *err)
{
    if (ty_doc_expect(list, TY_DOC_LIST, err) < 0)
        return -1;
    if (ty_doc_len(list) != (size_t)out->world_size)
        return ty_doc_error(list, err, TY_E_CHECKPOINT, NULL, "expected a file for each of %d ranks, found %zu",
                            out->world_size, ty_doc_len(list));
    ty_manifest_file *files = TY_NEW_ARRAY(arena, ty_manifest_file, out->world_size);
    out->files = files;
    for (int rank = 0; rank < out->world_size; rank++)
        if (read_file(ty_doc_at(list, (size_t)rank), rank, &files[rank], err) < 0)
            return ty_error_wrap(err, "files[%d]", rank);
    return 0;
}

static int read_root(const ty_doc *root, ty_arena *arena, ty_manifest *out, ty_error *err)
{
    const char *format = "";
    int64_t version = 0, world_size = 0;
    bool has_run = false;
    const ty_doc *position = NULL, *files = NULL;
    char own_hash[TY_MANIFEST_HASH_BYTES];
    const struct field fields[] = {
        {"format", FIELD_NAME, &format, NULL},
        {"version", FIELD_COUNT, &version, NULL},
        {"step", FIELD_COUNT, &out->state.step, NULL},
        {"world_size", FIELD_COUNT, &world_size, NULL},
        {"position", FIELD_ANY, &position, NULL},
        {"plan_hash", FIELD_TOKEN, out->state.plan_hash, NULL},
        {"recipe_hash", FIELD_TOKEN, out->state.recipe_hash, NULL},
        {"run", FIELD_RUN, out->state.run, &has_run},
        {"files", FIELD_ANY, &files, NULL},
        {"sha256", FIELD_SHA256, own_hash, NULL},
    };
    /* Version first: another version may have other keys. */
    const ty_doc *v = ty_doc_find(root, "version");
    if (v && v->kind == TY_DOC_INT && (v->integer < 1 || v->integer > FORMAT_VERSION))
        return ty_doc_error(v, err, TY_E_CHECKPOINT, NULL, "expected version 1 to %d, found %" PRId64, FORMAT_VERSION,
                            v->integer);
    if (read_map(root, fields, sizeof fields / sizeof *fields, err) < 0)
        return -1;
    if (has_run != (version > 1))
        return ty_doc_error(root, err, TY_E_CHECKPOINT, NULL, "expected a key \"run\" from version 2 on, found %s",
                            has_run ? "one" : "none");
    if (strcmp(format, FORMAT_NAME) != 0)
        return ty_doc_error(root, err, TY_E_CHECKPOINT, NULL, "expected format \"" FORMAT_NAME "\", found \"%.80s\"",
                            format);
    if (world_size < 1 || world_size > TY_MANIFEST_WORLD_MAX)
        return ty_doc_error(root, err, TY_E_CHECKPOINT, NULL, "expected 1 to %d ranks, found %" PRId64,
                            TY_MANIFEST_WORLD_MAX, world_size);
    out->world_size = (int)world_size;
    if (read_position(position, &out->state, err) < 0)
        return ty_error_wrap(err, "position");
    return read_files(files, arena, out, err);
}

int ty_manifest_parse(const char *text, size_t n_bytes, const char *path, ty_arena *arena, ty_manifest *out,
                      ty_error *err)
{
    static const ty_doc_limits limits = {.max_bytes = TY_MANIFEST_MAX_BYTES, .max_depth = JSON_DEPTH};
    memset(out, 0, sizeof *out);
    ty_doc *root = NULL;
    if (check_hash(text, n_bytes, err) < 0 || ty_json_parse(arena, path, text, n_bytes, &limits, &root, err) < 0 ||
        read_root(root, arena, out, err) < 0) {
        ty_error_at(err, "%s", path);
        return ty_error_wrap(err, TY_MANIFEST_NAME);
    }
    return 0;
}
