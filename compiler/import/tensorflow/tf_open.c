/* tf_open.c - which kind of file it is, and opening it. */
#include "compiler/import/tensorflow/tf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n > k && strcmp(text + n - k, end) == 0;
}

static const char *join(tf_file *f, const char *folder, const char *name)
{
    return ty_arena_printf(&f->arena, "%s/%s", folder, name);
}

/* ---- which file ---------------------------------------------------------------------------------------------------
 */

static int refuse_text(tf_file *f, const char *path, ty_error *err)
{
    (void)f;
    ty_error_set(err, TY_E_UNSUPPORTED, "a graph as text cannot be read, only in its binary form");
    ty_error_at(err, "%s", path);
    return ty_error_help(err, "save it again in binary form: with tf.io.write_graph(graph, folder, \"model.pb\", "
                              "as_text=False), or tf.saved_model.save");
}

/* How many graphs of checkpoints a folder has, as tf.compat.v1.train.Saver leaves them; *name: the last one's. */
static int count_metas(const char *folder, ty_arena *a, const char **name)
{
    ty_file_entry *entry;
    size_t n;
    int n_metas = 0;
    ty_error ignored;
    if (ty_file_list(folder, a, &entry, &n, &ignored) < 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (ends_with(entry[i].name, ".meta")) {
            *name = entry[i].name;
            n_metas++;
        }
    return n_metas;
}

bool tf_has_checkpoint(const char *folder)
{
    ty_arena a;
    const char *name;
    ty_arena_init(&a);
    int n = count_metas(folder, &a, &name);
    ty_arena_fini(&a);
    return n > 0;
}

static int find_in_folder(tf_file *f, const char *folder, ty_error *err)
{
    f->kind = TF_SAVED_MODEL;
    f->folder = folder;
    f->path = join(f, folder, "saved_model.pb");
    if (ty_file_exists(f->path))
        return 0;
    const char *chunks = join(f, folder, "saved_model.cpb");
    if (ty_file_exists(chunks)) {
        ty_error_set(err, TY_E_UNSUPPORTED,
                     "a SavedModel in chunks cannot be read, only one whose graph is one message");
        ty_error_at(err, "%s", chunks);
        return ty_error_help(err, "save it without experimental_image_format, which then writes saved_model.pb");
    }
    const char *text = join(f, folder, "saved_model.pbtxt");
    if (ty_file_exists(text))
        return refuse_text(f, text, err);
    const char *meta = NULL;
    int n_metas = count_metas(folder, &f->arena, &meta);
    if (n_metas == 1) {
        f->kind = TF_META_GRAPH;
        f->path = join(f, folder, meta);
        return 0;
    }
    if (n_metas > 1) {
        ty_error_set(err, TY_E_MODEL_FILE, "expected one checkpoint's graph in this folder, found %d", n_metas);
        ty_error_at(err, "%s", folder);
        return ty_error_help(err, "name the one that is meant: %s/%s", folder, meta);
    }
    ty_error_set(err, TY_E_MODEL_FILE, "expected saved_model.pb in this folder, found none");
    return ty_error_at(err, "%s", folder);
}

static const char *without_end(tf_file *f, const char *path, const char *end)
{
    return ty_arena_strndup(&f->arena, path, strlen(path) - strlen(end));
}

/* A checkpoint named by any of its files has its graph in PREFIX.meta. */
static int find_meta(tf_file *f, const char *prefix, ty_error *err)
{
    f->kind = TF_META_GRAPH;
    f->path = ty_arena_printf(&f->arena, "%s.meta", prefix);
    if (ty_file_exists(f->path))
        return 0;
    ty_error_set(err, TY_E_MODEL_FILE, "expected the graph of this checkpoint in %s, found none", f->path);
    ty_error_at(err, "%s.index", prefix);
    return ty_error_help(err, "a checkpoint alone has weights but no model: save with tf.saved_model.save, or keep the "
                              ".meta file that tf.compat.v1.train.Saver writes beside it");
}

static int find_file(tf_file *f, const char *path, ty_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    f->kind = TF_GRAPH_DEF;
    f->path = ty_arena_strdup(&f->arena, path);
    if (ty_file_is_folder(path))
        return find_in_folder(f, f->path, err);
    if (strcmp(name, "saved_model.pb") == 0 || strcmp(name, "saved_model.cpb") == 0)
        return find_in_folder(f, slash ? ty_arena_strndup(&f->arena, path, (size_t)(slash - path)) : ".", err);
    if (ends_with(path, ".meta"))
        return find_meta(f, without_end(f, path, ".meta"), err);
    if (ends_with(path, ".index"))
        return find_meta(f, without_end(f, path, ".index"), err);
    return ends_with(path, ".pbtxt") ? refuse_text(f, path, err) : 0;
}

/* ---- the graph ----------------------------------------------------------------------------------------------------
 */

/* "serve,train" */
static const char *tags_text(tf_file *f, const tf_meta_graph *m)
{
    const char *out = "";
    for (size_t i = 0; m->info && i < m->info->tags.n; i++)
        out = ty_arena_printf(&f->arena, "%s%s%s", out, i ? "," : "", *TF_AT(m->info->tags, char *, i));
    return out;
}

static bool has_tag(const tf_meta_graph *m, const char *tag, size_t n)
{
    for (size_t i = 0; m->info && i < m->info->tags.n; i++) {
        const char *has = *TF_AT(m->info->tags, char *, i);
        if (strlen(has) == n && memcmp(has, tag, n) == 0)
            return true;
    }
    return false;
}

/* All the tags of a list separated by commas. */
static bool has_tags(const tf_meta_graph *m, const char *tags)
{
    for (const char *at = tags; *at;) {
        size_t n = strcspn(at, ",");
        if (n && !has_tag(m, at, n))
            return false;
        at += n + (at[n] == ',');
    }
    return true;
}

/* The graph with the tags asked for and the fewest others. */
static int choose_meta(tf_file *f, const tf_saved_model *s, const char *tags, ty_error *err)
{
    const char *all = "";
    size_t best_tags = SIZE_MAX;
    f->meta_index = -1;
    for (size_t i = 0; i < s->metas.n; i++) {
        tf_meta_graph m = {0};
        if (tf_read(&tf_meta_info_only_message, *TF_AT(s->metas, ty_bytes, i), &f->arena, &m, err) < 0)
            return ty_error_wrap(err, "graph %zu", i);
        all = ty_arena_printf(&f->arena, "%s%s\"%s\"", all, i ? ", " : "", tags_text(f, &m));
        size_t n = m.info ? m.info->tags.n : 0;
        bool fits = has_tags(&m, tags ? tags : "serve") || (!tags && s->metas.n == 1);
        if (fits && n < best_tags) {
            best_tags = n;
            f->meta_index = (int)i;
        }
    }
    if (f->meta_index >= 0)
        return 0;
    ty_error_set(err, TY_E_MODEL_FILE, "expected a graph with the tags \"%.80s\", found %.400s", tags ? tags : "serve",
                 *all ? all : "none");
    return ty_error_help(err, "name tags of the file");
}

static int read_meta(tf_file *f, ty_bytes bytes, ty_error *err)
{
    f->meta = TY_NEW(&f->arena, tf_meta_graph);
    if (tf_read(&tf_meta_graph_message, bytes, &f->arena, f->meta, err) < 0)
        return -1;
    f->graph = f->meta->graph;
    return f->graph ? 0 : ty_error_set(err, TY_E_MODEL_FILE, "it holds no graph");
}

static int read_saved_model(tf_file *f, const char *tags, ty_error *err)
{
    tf_saved_model s = {0};
    if (tf_read(&tf_saved_model_message, f->bytes, &f->arena, &s, err) < 0)
        return -1;
    if (s.version != 1)
        return ty_error_set(err, TY_E_MODEL_FILE, "expected version 1 of the SavedModel format, found %lld",
                            (long long)s.version);
    if (choose_meta(f, &s, tags, err) < 0)
        return -1;
    return read_meta(f, *TF_AT(s.metas, ty_bytes, f->meta_index), err);
}

static int read_graph_def(tf_file *f, ty_error *err)
{
    f->graph = TY_NEW(&f->arena, tf_graph_def);
    if (tf_read(&tf_graph_def_message, f->bytes, &f->arena, f->graph, err) < 0)
        return -1;
    return f->graph->nodes.n ? 0 : ty_error_set(err, TY_E_MODEL_FILE, "expected a GraphDef with nodes, found none");
}

static int read_proto(tf_file *f, const char *tags, ty_error *err)
{
    f->bytes = (ty_bytes){f->view.bytes, f->view.n_bytes};
    switch (f->kind) {
    case TF_SAVED_MODEL:
        return read_saved_model(f, tags, err);
    case TF_META_GRAPH:
        return read_meta(f, f->bytes, err);
    default:
        return read_graph_def(f, err);
    }
}

/* ---- all of it ----------------------------------------------------------------------------------------------------
 */

static int open_bundle(tf_file *f, ty_error *err)
{
    const char *prefix = f->kind == TF_SAVED_MODEL  ? join(f, f->folder, "variables/variables")
                         : f->kind == TF_META_GRAPH ? without_end(f, f->path, ".meta")
                                                    : NULL;
    if (!prefix || (f->kind == TF_SAVED_MODEL && !ty_file_exists(ty_arena_printf(&f->arena, "%s.index", prefix))))
        return 0;
    f->has_bundle = true;
    return tf_bundle_open(prefix, &f->bundle, err);
}

/* "tensorflow 2.21.0 savedmodel" */
static void name_format(tf_file *f)
{
    static const char *const kinds[] = {"savedmodel", "graphdef", "checkpoint"};
    const char *version = f->meta && f->meta->info ? f->meta->info->version : "";
    f->text = ty_arena_printf(&f->arena, "tensorflow%s%.20s %s", *version ? " " : "", version, kinds[f->kind]);
}

static int open_file(tf_file *f, const char *path, const tf_options *opt, ty_error *err)
{
    if (find_file(f, path, err) < 0 || ty_file_map(f->path, &f->view, err) < 0)
        return -1;
    f->body = TY_NEW(&f->arena, tf_body);
    if (read_proto(f, opt->tags, err) < 0 || tf_body_read(f, f->body, &f->graph->nodes, err) < 0 ||
        tf_library_index(f, err) < 0)
        return ty_error_at(err, "%s", f->path);
    name_format(f);
    if (open_bundle(f, err) < 0 || tf_read_variables(f, err) < 0 || tf_read_signatures(f, opt, err) < 0 ||
        tf_name_variables(f, err) < 0)
        return ty_error_at(err, "%s", f->path);
    return 0;
}

int tf_open(const char *path, const tf_options *opt, tf_file **out, ty_error *err)
{
    static const tf_options defaults;
    *out = NULL;
    tf_file *f = calloc(1, sizeof *f);
    if (!f)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a model");
    ty_arena_init(&f->arena);
    if (open_file(f, path, opt ? opt : &defaults, err) < 0) {
        tf_close(f);
        return -1;
    }
    *out = f;
    return 0;
}

void tf_close(tf_file *f)
{
    if (!f)
        return;
    if (f->has_bundle)
        tf_bundle_close(&f->bundle);
    if (f->view.bytes)
        ty_file_unmap(&f->view);
    ty_arena_fini(&f->arena);
    free(f);
}

void tf_drop_pages(const tf_file *f)
{
    if (f->has_bundle)
        tf_bundle_drop_pages(&f->bundle);
}

const char *tf_format_text(const tf_file *f)
{
    return f->text;
}

int64_t tf_n_nodes(const tf_file *f)
{
    return f->body->n;
}
