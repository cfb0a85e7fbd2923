/* objects.c - files of a channel, and augmented manifests: a JSON object a line. */
#include "container/input/serve/objects.h"

#include "base/file.h"
#include "base/json.h"
#include "container/input/bytes.h"
#include "container/input/files.h"

#include <string.h>

#define MANIFEST_LINE_BYTES ((size_t)64 << 20)

typedef struct manifest {
    const ty_serve_config *config;
    ty_arena *a;
    const char *path;
    int64_t line;  /* that is being read, from 1 */
    int64_t n_all; /* objects so far, of all shards */
    serve_object *object;
    int64_t n, cap;
} manifest;

static int manifest_add(manifest *m, serve_object object)
{
    int64_t n_shards = m->config->n_shards > 0 ? m->config->n_shards : 1;
    if (m->n_all++ % n_shards != m->config->shard)
        return 0;
    if (m->n == m->cap) {
        serve_object *grown = TY_NEW_ARRAY(m->a, serve_object, (size_t)(m->cap * 2 + 64));
        if (m->n > 0)
            memcpy(grown, m->object, (size_t)m->n * sizeof *grown);
        m->object = grown;
        m->cap = m->cap * 2 + 64;
    }
    m->object[m->n++] = object;
    return 0;
}

/* A reference is a path, absolute or beside the manifest, or the address of an object of S3: then the longest end of
 * its key that is a file beside the manifest. */
static const char *manifest_resolve(const manifest *m, const char *ref)
{
    const char *slash = strrchr(m->path, '/');
    int folder = slash != NULL ? (int)(slash - m->path) + 1 : 0;
    if (strncmp(ref, "s3://", 5) != 0)
        return ref[0] == '/' ? ref : ty_arena_printf(m->a, "%.*s%s", folder, m->path, ref);
    for (const char *key = strchr(ref + 5, '/'); key != NULL; key = strchr(key + 1, '/')) {
        const char *path = ty_arena_printf(m->a, "%.*s%s", folder, m->path, key + 1);
        if (key[1] != 0 && ty_file_exists(path))
            return path;
    }
    return NULL;
}

static int manifest_fault(const manifest *m, ty_error *err)
{
    return ty_error_at(err, "%s:%lld", m->path, (long long)m->line);
}

static int manifest_ref(const manifest *m, const char *name, const ty_doc *value, serve_attribute *out, ty_error *err)
{
    const char *ref;
    if (ty_doc_string(value, &ref, err) < 0)
        return -1;
    out->path = manifest_resolve(m, ref);
    if (out->path != NULL && ty_file_exists(out->path))
        return 0;
    ty_error_set(err, TY_E_DATA, "\"%s\" points to \"%.200s\", which is not here", name, ref);
    return ty_error_help(err, "put the objects beside the manifest, under the ends of their keys");
}

static int manifest_attribute(const manifest *m, const char *name, const ty_doc *line, serve_attribute *out,
                              ty_error *err)
{
    const ty_doc *value = ty_doc_find(line, name);
    size_t n = strlen(name);
    if (value == NULL) {
        ty_error_set(err, TY_E_DATA, "the line has no attribute \"%s\"", name);
        return manifest_fault(m, err);
    }
    if (n > 4 && strcmp(name + n - 4, "-ref") == 0)
        return manifest_ref(m, name, value, out, err) < 0 ? manifest_fault(m, err) : 0;
    ty_buf text;
    ty_buf_init(&text, MANIFEST_LINE_BYTES);
    if (ty_json_add_doc(&text, value, TY_JSON_COMPACT) == 0) {
        out->text = ty_arena_strndup(m->a, text.data, text.len);
        out->n = text.len;
    }
    bool is_whole = !text.failed;
    ty_buf_fini(&text);
    return is_whole ? 0 : ty_error_set(err, TY_E_LIMIT, "the attribute \"%s\" is too long", name);
}

static int manifest_line(manifest *m, const char *text, size_t n, ty_error *err)
{
    ty_doc *line;
    if (ty_json_parse(m->a, m->path, text, n, NULL, &line, err) < 0) {
        err->place[0] = 0; /* its line is 1, since it sees no other */
        return manifest_fault(m, err);
    }
    serve_attribute *attribute = TY_NEW_ARRAY(m->a, serve_attribute, (size_t)m->config->n_attributes);
    for (int i = 0; i < m->config->n_attributes; i++)
        if (manifest_attribute(m, m->config->attributes[i], line, &attribute[i], err) < 0)
            return -1;
    return manifest_add(m, (serve_object){.attribute = attribute});
}

static int manifest_read(manifest *m, const char *path, ty_error *err)
{
    ty_bytes bytes;
    if (ty_bytes_open(path, NULL, &bytes, err) < 0)
        return -1;
    const char *p = (const char *)bytes.data, *end = p + bytes.n;
    int rc = 0;
    m->path = path;
    m->line = 0;
    while (rc == 0 && p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p)), *stop = newline != NULL ? newline : end;
        size_t n = (size_t)(stop - p);
        m->line++;
        while (n > 0 && strchr(" \t\r", p[n - 1]) != NULL)
            n--;
        if (n > 0)
            rc = manifest_line(m, p, n, err);
        p = stop + 1;
    }
    ty_bytes_close(&bytes);
    return rc;
}

int serve_objects_list(const ty_serve_config *config, ty_arena *a, serve_object **out, int64_t *n_out, ty_error *err)
{
    manifest m = {.config = config, .a = a};
    ty_data_file *file;
    int n = 0, rc = ty_files_list(config->paths, config->n_paths, a, &file, &n, err);
    for (int i = 0; rc == 0 && i < n; i++)
        rc = config->n_attributes > 0 ? manifest_read(&m, file[i].path, err)
                                      : manifest_add(&m, (serve_object){.path = file[i].path});
    if (rc < 0)
        return -1;
    if (m.n_all == 0)
        return ty_error_set(err, TY_E_CHANNEL, "the manifest has no line");
    *out = m.object;
    *n_out = m.n;
    return 0;
}
