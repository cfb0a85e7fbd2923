/* keep.c - see keep.h. */
#include "dist/server/keep.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    KEEP_FORMAT = 1,
    KEEP_HEAD_BYTES = 16,
    KEEP_MAX_MANIFEST = 1 << 20,
    KEEP_WORKER = 5 + TY_ROLL_STEPS / 64, /* numbers of a worker */
};
#define KEEP_MAX_JSON ((size_t)64 << 20)

static const char keep_magic[8] = "TYSHARD1";

static int tag_check(const char *tag, ty_error *err)
{
    size_t n = strspn(tag, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    if (n == 0 || tag[n] || n >= TY_KEEP_TAG_BYTES)
        return ty_error_set(err, TY_E_CONFIG, "a save's tag has 1 to %d letters, digits, - and _; found \"%.80s\"",
                            TY_KEEP_TAG_BYTES - 1, tag);
    return 0;
}

static const char *file_name(char out[64], int shard, int shards)
{
    snprintf(out, 64, "shard-%d-of-%d.bin", shard, shards);
    return out;
}

/* ---- writing ---- */

static void keep_json(const ty_shard *s, ty_buf *out)
{
    ty_buf catalogue;
    ty_json_writer w;
    ty_buf_init(&catalogue, TY_CATALOGUE_MAX_BYTES);
    ty_catalogue_write(&s->catalogue, &catalogue);
    ty_json_writer_init(&w, out, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "format", KEEP_FORMAT);
    ty_json_put_int(&w, "shard", s->options.number);
    ty_json_put_int(&w, "version", (int64_t)s->version);
    ty_json_put_bool(&w, "ready", s->ready);
    ty_json_open_list(&w, "workers");
    for (int i = 0; i < s->roll.n; i++) {
        const ty_worker *k = &s->roll.worker[i];
        const int64_t number[5] = {(int64_t)k->incarnation, (int64_t)k->next, (int64_t)k->step, (int64_t)k->clock,
                                   k->left};
        ty_json_open_list(&w, NULL);
        for (int j = 0; j < KEEP_WORKER; j++)
            ty_json_put_int(&w, NULL, j < 5 ? number[j] : (int64_t)k->counted[j - 5]);
        ty_json_close(&w);
    }
    ty_json_close(&w);
    ty_json_put_raw(&w, "catalogue", catalogue.data);
    ty_json_open_list(&w, "parts");
    for (int i = 0; i < s->n_rows; i++) {
        const int64_t number[] = {s->rows[i].number, s->rows[i].part, s->rows[i].n};
        ty_json_open_list(&w, NULL);
        for (int j = 0; j < 3; j++)
            ty_json_put_int(&w, NULL, number[j]);
        ty_json_close(&w);
    }
    ty_json_close(&w);
    ty_json_close(&w);
    out->failed |= catalogue.failed;
    ty_buf_fini(&catalogue);
}

typedef struct keep_writer {
    ty_file_writer file;
    uint32_t crc;
} keep_writer;

static int keep_add(keep_writer *w, const void *bytes, size_t n, ty_error *err)
{
    w->crc = ty_crc32c(w->crc, bytes, n);
    return ty_file_writer_add(&w->file, bytes, n, err);
}

static int keep_rows(keep_writer *w, const ty_rows *r, ty_error *err)
{
    size_t bytes = (size_t)(r->n * r->variable->width) * sizeof(float);
    if (r->variable->hashed && keep_add(w, r->id, (size_t)r->n * sizeof *r->id, err) < 0)
        return -1;
    if (keep_add(w, r->weight, bytes, err) < 0)
        return -1;
    for (int k = 0; k < ty_rule_slots(&r->variable->rule); k++)
        if (keep_add(w, r->slot[k], bytes, err) < 0)
            return -1;
    return 0;
}

static int keep_write(keep_writer *w, const ty_shard *s, ty_error *err)
{
    ty_buf json;
    ty_buf_init(&json, KEEP_MAX_JSON);
    keep_json(s, &json);
    uint64_t length = json.len;
    while (json.len % 8 && ty_buf_addc(&json, ' ') == 0)
        length = json.len;
    int rc = json.failed ? ty_error_set(err, TY_E_LIMIT, "the description of a save would be too long") : 0;
    if (rc == 0)
        rc = keep_add(w, keep_magic, sizeof keep_magic, err);
    if (rc == 0)
        rc = keep_add(w, &length, sizeof length, err);
    if (rc == 0)
        rc = keep_add(w, json.data, json.len, err);
    for (int i = 0; i < s->n_rows && rc == 0; i++)
        rc = keep_rows(w, &s->rows[i], err);
    ty_buf_fini(&json);
    uint32_t crc = w->crc;
    return rc == 0 ? keep_add(w, &crc, sizeof crc, err) : -1;
}

int ty_keep_save(const ty_shard *s, const char *tag, char *row, size_t room, ty_error *err)
{
    char path[4096], name[64];
    keep_writer w = {.crc = 0};
    if (tag_check(tag, err) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/%s", s->options.folder, tag);
    if (ty_file_mkdirs(path, 0755, err) < 0)
        return -1;
    /* A tag may be used again: from now on it is no save, until the new one is complete. */
    snprintf(path, sizeof path, "%s/%s/manifest.json", s->options.folder, tag);
    if (ty_file_remove(path, err) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/%s/%s", s->options.folder, tag,
             file_name(name, s->options.number, s->catalogue.shards));
    if (ty_file_writer_open(&w.file, path, 0644, err) < 0)
        return -1;
    if (keep_write(&w, s, err) < 0) {
        ty_file_writer_abandon(&w.file);
        return -1;
    }
    snprintf(row, room, "{\"file\":\"%s\",\"bytes\":%" PRIu64 ",\"crc\":%" PRIu32 ",\"version\":%" PRIu64 "}", name,
             w.file.n_bytes, w.crc, s->version);
    return ty_file_writer_commit(&w.file, err);
}

int ty_keep_manifest(const char *tag, const char *const *rows, int n, ty_buf *out)
{
    ty_json_writer w;
    ty_json_writer_init(&w, out, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "format", KEEP_FORMAT);
    ty_json_put_string(&w, "tag", tag);
    ty_json_open_list(&w, "shards");
    for (int i = 0; i < n; i++)
        ty_json_put_raw(&w, NULL, rows[i]);
    ty_json_close(&w);
    ty_json_close(&w);
    return out->failed ? -1 : 0;
}

/* ---- manifests ---- */

typedef struct keep_file {
    const char *name;
    int64_t n_bytes, version;
} keep_file;

static int manifest_row(const ty_doc *d, keep_file *f, ty_error *err)
{
    const ty_doc *name = ty_doc_find(d, "file"), *bytes = ty_doc_find(d, "bytes"), *version = ty_doc_find(d, "version");
    if (!name || !bytes || !version)
        return ty_doc_error(d, err, TY_E_CHECKPOINT, NULL, "expected file, bytes and version");
    if (ty_doc_string(name, &f->name, err) < 0 || ty_doc_int(bytes, &f->n_bytes, err) < 0 ||
        ty_doc_int(version, &f->version, err) < 0)
        return -1;
    if (strchr(f->name, '/') || f->name[0] == '.' || f->name[0] == '\0')
        return ty_doc_error(name, err, TY_E_CHECKPOINT, NULL, "expected the name of a file beside the manifest");
    return 0;
}

static int manifest_parse(ty_arena *arena, const char *text, size_t n, keep_file **files, int *n_files, ty_error *err)
{
    ty_doc *doc;
    ty_doc_limits limits = {.max_bytes = KEEP_MAX_MANIFEST};
    int64_t format = 0;
    if (ty_json_parse(arena, "manifest.json", text, n, &limits, &doc, err) < 0)
        return -1;
    const ty_doc *list = ty_doc_find(doc, "shards"), *f = ty_doc_find(doc, "format");
    if (!list || !f || ty_doc_int(f, &format, err) < 0 || format != KEEP_FORMAT || ty_doc_len(list) == 0 ||
        ty_doc_len(list) > TY_CATALOGUE_MAX_SHARDS || list->kind != TY_DOC_LIST)
        return ty_error_set(err, TY_E_CHECKPOINT, "expected format %d and 1 to %d shards", KEEP_FORMAT,
                            TY_CATALOGUE_MAX_SHARDS);
    *n_files = (int)ty_doc_len(list);
    *files = TY_NEW_ARRAY(arena, keep_file, *n_files);
    for (int i = 0; i < *n_files; i++)
        if (manifest_row(ty_doc_at(list, (size_t)i), &(*files)[i], err) < 0)
            return -1;
    return 0;
}

static int manifest_read(ty_arena *arena, const char *folder, const char *tag, keep_file **files, int *n, ty_error *err)
{
    char path[4096];
    ty_buf text;
    snprintf(path, sizeof path, "%s/%s/manifest.json", folder, tag);
    ty_buf_init(&text, KEEP_MAX_MANIFEST);
    int rc = ty_file_read(path, &text, err);
    if (rc == 0)
        rc = manifest_parse(arena, text.data, text.len, files, n, err);
    ty_buf_fini(&text);
    return rc < 0 ? ty_error_wrap(err, "save %s", tag) : 0;
}

int ty_keep_commit(const char *folder, const char *tag, const char *manifest, size_t n_bytes, ty_error *err)
{
    char path[4096];
    ty_arena arena;
    keep_file *files;
    int n;
    if (tag_check(tag, err) < 0)
        return -1;
    ty_arena_init(&arena);
    snprintf(path, sizeof path, "%s/%s/manifest.json", folder, tag);
    int rc = manifest_parse(&arena, manifest, n_bytes, &files, &n, err);
    ty_arena_fini(&arena);
    return rc < 0 ? -1 : ty_file_write(path, manifest, n_bytes, 0644, err);
}

int ty_keep_newest(const char *folder, char tag[TY_KEEP_TAG_BYTES], ty_error *err)
{
    ty_arena arena;
    ty_file_entry *entry;
    size_t n_entries;
    int64_t newest = -1;
    if (!ty_file_is_folder(folder))
        return 0;
    ty_arena_init(&arena);
    int rc = ty_file_list(folder, &arena, &entry, &n_entries, err);
    for (size_t i = 0; rc == 0 && i < n_entries; i++) {
        keep_file *files;
        int n;
        int64_t version = 0;
        ty_error ignored;
        if (entry[i].kind != 'd' || tag_check(entry[i].name, &ignored) < 0 ||
            manifest_read(&arena, folder, entry[i].name, &files, &n, &ignored) < 0)
            continue;
        for (int k = 0; k < n; k++)
            version = files[k].version > version ? files[k].version : version;
        if (version >= newest) {
            newest = version;
            snprintf(tag, TY_KEEP_TAG_BYTES, "%s", entry[i].name);
        }
    }
    ty_arena_fini(&arena);
    return rc < 0 ? -1 : newest >= 0;
}

/* ---- reading a shard's file ---- */

typedef struct keep_reader {
    ty_shard *s;
    ty_catalogue had; /* of the save */
    const uint8_t *at;
    size_t left;
} keep_reader;

static int list_ints(const ty_doc *list, int64_t *out, int n, ty_error *err)
{
    if (ty_doc_len(list) != (size_t)n || list->kind != TY_DOC_LIST)
        return ty_doc_error(list, err, TY_E_CHECKPOINT, NULL, "expected %d numbers", n);
    for (int i = 0; i < n; i++)
        if (ty_doc_int(ty_doc_at(list, (size_t)i), &out[i], err) < 0)
            return -1;
    return 0;
}

static const uint8_t *keep_skip(keep_reader *r, uint64_t n_elems, size_t bytes_each)
{
    if (n_elems > r->left / bytes_each)
        return NULL;
    const uint8_t *from = r->at;
    r->at += n_elems * bytes_each;
    r->left -= n_elems * bytes_each;
    return from;
}

/* The rows of one part that belong to this shard now. array[0] weights, array[1..] slots. */
static int part_take(keep_reader *r, const ty_shard_variable *had, int variable, int part, int64_t n, ty_error *err)
{
    const ty_shard_variable *v = &r->s->catalogue.variable[variable];
    uint64_t width = (uint64_t)v->width;
    const uint8_t *ids = had->hashed ? keep_skip(r, (uint64_t)n, sizeof(int64_t)) : NULL;
    const uint8_t *array[1 + TY_RULE_MAX_SLOTS];
    int n_arrays = 1 + ty_rule_slots(&v->rule);
    for (int k = 0; k < n_arrays; k++)
        if ((uint64_t)n > r->left / width || !(array[k] = keep_skip(r, (uint64_t)n * width, sizeof(float))))
            return ty_error_set(err, TY_E_CHECKPOINT, "variable \"%s\": the file ends within its rows", v->name);
    if (had->hashed && !ids)
        return ty_error_set(err, TY_E_CHECKPOINT, "variable \"%s\": the file ends within its ids", v->name);
    for (int64_t i = 0; i < n; i++) {
        int64_t id = i, place;
        int to;
        if (had->hashed)
            memcpy(&id, ids + (size_t)i * sizeof id, sizeof id);
        else
            id = ty_partition_row(had->rows, had->parts, had->mod, part, i);
        ty_rows *rows = ty_shard_variable_find(v, id, &to, &place) < 0
                            ? NULL
                            : ty_shard_part(r->s, (uint32_t)variable, (uint32_t)to);
        if (rows == NULL)
            continue;
        place = ty_rows_find(rows, id, true);
        if (place < 0)
            return ty_error_set(err, TY_E_LIMIT, "variable \"%s\": no memory for its rows", v->name);
        for (int k = 0; k < n_arrays; k++)
            memcpy((k ? rows->slot[k - 1] : rows->weight) + (uint64_t)place * width,
                   array[k] + (uint64_t)i * width * sizeof(float), width * sizeof(float));
        rows->version++;
    }
    return 0;
}

static int parts_take(keep_reader *r, const ty_doc *parts, ty_error *err)
{
    for (size_t i = 0; i < ty_doc_len(parts); i++) {
        int64_t number[3];
        if (list_ints(ty_doc_at(parts, i), number, 3, err) < 0)
            return -1;
        int64_t v = number[0], part = number[1], n = number[2];
        if (v < 0 || v >= r->had.n_variables || part < 0 || part >= r->had.variable[v].parts || n < 0 ||
            (!r->had.variable[v].hashed && n != ty_shard_variable_rows(&r->had.variable[v], (int)part)))
            return ty_error_set(err, TY_E_CHECKPOINT,
                                "there is no part %" PRId64 " of variable %" PRId64 " with %" PRId64 " rows", part, v,
                                n);
        if (part_take(r, &r->had.variable[v], (int)v, (int)part, n, err) < 0)
            return -1;
    }
    return r->left == 0 ? 0 : ty_error_set(err, TY_E_CHECKPOINT, "%zu bytes behind the last part", r->left);
}

/* A shard goes on with its own record of what workers had asked. With another number of shards there is none that is
 * only its own; then workers begin behind the save, with steps that it has not seen. */
static int workers_take(keep_reader *r, const ty_doc *workers, bool own, ty_error *err)
{
    for (size_t i = 0; i < ty_doc_len(workers); i++) {
        int64_t number[KEEP_WORKER];
        if (list_ints(ty_doc_at(workers, i), number, KEEP_WORKER, err) < 0)
            return -1;
        if (i >= (size_t)r->s->roll.n || !own)
            continue;
        ty_worker *w = &r->s->roll.worker[i];
        if (w->incarnation == 0 && number[0] > 0) {
            w->incarnation = (uint64_t)number[0];
            w->next = number[1] > 0 ? (uint64_t)number[1] : 1;
            w->heard_ms = r->s->now_ms;
        }
        w->step = number[2] > 0 ? (uint64_t)number[2] : 0;
        w->clock = number[3] > 0 ? (uint64_t)number[3] : 0;
        for (int j = 5; j < KEEP_WORKER; j++)
            w->counted[j - 5] = (uint64_t)number[j];
    }
    return 0;
}

static int keep_take_doc(keep_reader *r, const ty_doc *doc, ty_arena *arena, ty_error *err)
{
    const ty_doc *catalogue = ty_doc_find(doc, "catalogue"), *parts = ty_doc_find(doc, "parts");
    const ty_doc *workers = ty_doc_find(doc, "workers"), *shard = ty_doc_find(doc, "shard");
    const ty_doc *version = ty_doc_find(doc, "version");
    int64_t had_shard = 0, had_version = 0;
    ty_buf text;
    if (!catalogue || !parts || !workers || !shard || !version || parts->kind != TY_DOC_LIST ||
        workers->kind != TY_DOC_LIST)
        return ty_error_set(err, TY_E_CHECKPOINT, "expected catalogue, parts, workers, shard and version");
    if (ty_doc_int(shard, &had_shard, err) < 0 || ty_doc_int(version, &had_version, err) < 0)
        return -1;
    ty_buf_init(&text, TY_CATALOGUE_MAX_BYTES);
    int rc = ty_json_add_doc(&text, catalogue, TY_JSON_COMPACT);
    rc = rc < 0 ? ty_error_set(err, TY_E_LIMIT, "catalogue: too long")
                : ty_catalogue_read(text.data, text.len, arena, &r->had, err);
    ty_buf_fini(&text);
    if (rc < 0 || ty_catalogue_compare(&r->s->catalogue, &r->had, false, err) < 0)
        return -1;
    bool own = r->had.shards == r->s->catalogue.shards && had_shard == r->s->options.number;
    if (workers_take(r, workers, own, err) < 0 || parts_take(r, parts, err) < 0)
        return -1;
    if (had_version > 0 && (uint64_t)had_version > r->s->version)
        r->s->version = (uint64_t)had_version;
    return 0;
}

int ty_keep_take(ty_shard *s, const char *name, const uint8_t *bytes, size_t n_bytes, ty_error *err)
{
    ty_arena arena;
    ty_doc *doc;
    uint64_t length = 0;
    uint32_t crc = 0;
    if (n_bytes < KEEP_HEAD_BYTES + sizeof crc || memcmp(bytes, keep_magic, sizeof keep_magic) != 0)
        return ty_error_set(err, TY_E_CHECKPOINT, "%s: no file of a shard", name);
    memcpy(&length, bytes + 8, sizeof length);
    memcpy(&crc, bytes + n_bytes - sizeof crc, sizeof crc);
    if (length > KEEP_MAX_JSON || length % 8 || length > n_bytes - KEEP_HEAD_BYTES - sizeof crc)
        return ty_error_set(err, TY_E_CHECKPOINT, "%s: a description of %" PRIu64 " bytes in a file of %zu", name,
                            length, n_bytes);
    if (crc != ty_crc32c(0, bytes, n_bytes - sizeof crc))
        return ty_error_set(err, TY_E_CHECKPOINT, "%s: damaged, its checksum is wrong", name);
    ty_arena_init(&arena);
    keep_reader r = {
        .s = s, .at = bytes + KEEP_HEAD_BYTES + length, .left = n_bytes - KEEP_HEAD_BYTES - length - sizeof crc};
    ty_doc_limits limits = {.max_bytes = KEEP_MAX_JSON};
    int rc = ty_json_parse(&arena, name, (const char *)bytes + KEEP_HEAD_BYTES, length, &limits, &doc, err);
    if (rc == 0)
        rc = keep_take_doc(&r, doc, &arena, err);
    ty_arena_fini(&arena);
    return rc < 0 ? ty_error_wrap(err, "%s", name) : 0;
}

int ty_keep_load(ty_shard *s, const char *tag, ty_error *err)
{
    ty_arena arena;
    keep_file *files;
    int n;
    if (tag_check(tag, err) < 0)
        return -1;
    ty_arena_init(&arena);
    int rc = manifest_read(&arena, s->options.folder, tag, &files, &n, err);
    for (int i = 0; rc == 0 && i < n; i++) {
        ty_file_view view;
        const char *path = ty_arena_printf(&arena, "%s/%s/%s", s->options.folder, tag, files[i].name);
        rc = ty_file_map(path, &view, err);
        if (rc < 0)
            break;
        rc = view.n_bytes == (uint64_t)files[i].n_bytes
                 ? ty_keep_take(s, files[i].name, view.bytes, view.n_bytes, err)
                 : ty_error_set(err, TY_E_CHECKPOINT, "%s: expected %" PRId64 " bytes, found %zu", files[i].name,
                                files[i].n_bytes, view.n_bytes);
        ty_file_unmap(&view);
    }
    ty_arena_fini(&arena);
    if (rc < 0)
        return ty_error_wrap(err, "save %s", tag);
    s->ready = true;
    return 0;
}
