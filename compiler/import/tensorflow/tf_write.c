/* tf_write.c - the file again with trained weights.
 *
 * A SavedModel's folder is copied but for the checkpoint and the fingerprint, a frozen graph but for the Const nodes
 * that were trained. What is not changed stays as it lies, so that whatever we do not know survives.
 */
#include "compiler/import/tensorflow/tf_write.h"

#include "compiler/import/tensorflow/tf_farmhash.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FOLDERS = 32 };

/* ---- which bytes --------------------------------------------------------------------------------------------------
 */

typedef struct values {
    const tf_file *f;
    const void **by_variable; /* new bytes; NULL: the old */
    const void **by_entry;    /* of the checkpoint */
    ty_arena arena;
} values;

/* The bytes of one slice of a variable that was saved in several. */
static const void *cut_slice(values *v, const tf_variable *var, const tf_slice *slice, const uint8_t *from)
{
    size_t elem = ty_dtype_bytes((ty_dtype)var->type.dtype);
    int last = var->type.rank - 1;
    int64_t start[TY_MAX_RANK], size[TY_MAX_RANK], at[TY_MAX_RANK] = {0}, n = 1;
    for (int i = 0; i <= last; i++) {
        const tf_extent *x = TF_AT(slice->extents, tf_extent, i);
        start[i] = x->has_length ? x->start : 0;
        size[i] = x->has_length ? x->length : var->type.dim[i];
        n *= size[i];
    }
    uint8_t *out = ty_arena_alloc(&v->arena, (size_t)n * elem), *to = out;
    size_t row = (size_t)size[last] * elem;
    for (;;) {
        int64_t offset = 0;
        for (int i = 0; i <= last; i++)
            offset = offset * var->type.dim[i] + start[i] + (i < last ? at[i] : 0);
        memcpy(to, from + (size_t)offset * elem, row);
        to += row;
        int axis = last - 1;
        while (axis >= 0 && ++at[axis] == size[axis])
            at[axis--] = 0;
        if (axis < 0)
            return out;
    }
}

static void set_slices(values *v, int variable, const tf_entry *whole)
{
    const tf_bundle *b = &v->f->bundle;
    const tf_variable *var = &v->f->variable[variable];
    for (size_t i = 0; i < whole->record.slices.n; i++) {
        const tf_slice *slice = TF_AT(whole->record.slices, tf_slice, i);
        int64_t start[TY_MAX_RANK], length[TY_MAX_RANK];
        for (size_t k = 0; k < slice->extents.n && k < TY_MAX_RANK; k++) {
            const tf_extent *x = TF_AT(slice->extents, tf_extent, k);
            start[k] = x->start;
            length[k] = x->has_length ? x->length : -1;
        }
        const tf_entry *part = tf_bundle_find_slice(b, whole, start, length); /* there: reading has joined it */
        if (part)
            v->by_entry[part - b->entry] = cut_slice(v, var, slice, v->by_variable[variable]);
    }
}

/* A variable that no signature uses and that is another by name, type and bytes: Keras' exports hold each twice. */
static bool is_twin(const tf_file *f, int used, int other)
{
    const tf_variable *a = &f->variable[used], *b = &f->variable[other];
    return !b->is_used && b->data && f->entry[other] != f->entry[used] && f->object[used] && f->object[other] &&
           strcmp(f->object[used]->name, f->object[other]->name) == 0 && ty_type_same(&a->type, &b->type) &&
           memcmp(a->data, b->data, ty_type_bytes(&a->type)) == 0;
}

static void set_twins(values *v, int used)
{
    const tf_file *f = v->f;
    int n_same = 0;
    for (int i = 0; i < f->n_variables; i++)
        n_same += f->variable[i].is_used && f->object[i] && strcmp(f->object[i]->name, f->object[used]->name) == 0;
    for (int i = 0; i < f->n_variables && n_same == 1; i++)
        if (f->entry[i] && is_twin(f, used, i) && !v->by_entry[f->entry[i] - f->bundle.entry])
            v->by_entry[f->entry[i] - f->bundle.entry] = v->by_variable[used];
}

static void gather(values *v, const tf_file *f, tf_find_value *find, void *ctx)
{
    *v = (values){.f = f};
    ty_arena_init(&v->arena);
    v->by_variable = TY_NEW_ARRAY(&v->arena, const void *, f->n_variables);
    v->by_entry = TY_NEW_ARRAY(&v->arena, const void *, f->bundle.n_entries);
    for (int i = 0; i < f->n_variables; i++)
        if (f->variable[i].data && f->variable[i].is_used)
            v->by_variable[i] = find(ctx, &f->variable[i]);
    for (int i = 0; i < f->n_variables; i++) {
        if (!v->by_variable[i] || !f->entry[i])
            continue;
        if (f->entry[i]->data)
            v->by_entry[f->entry[i] - f->bundle.entry] = v->by_variable[i];
        else
            set_slices(v, i, f->entry[i]);
    }
    for (int i = 0; i < f->n_variables; i++)
        if (v->by_variable[i] && f->entry[i] && f->object[i] && f->variable[i].is_used)
            set_twins(v, i);
}

static const void *find_entry(void *ctx, const tf_entry *e)
{
    const values *v = ctx;
    return v->by_entry[e - v->f->bundle.entry];
}

/* ---- fingerprint.pb -----------------------------------------------------------------------------------------------
 */

enum { CHECKPOINT_HASH = 5, UUID = 7 };

static size_t put_text_field(uint8_t *out, uint32_t number, const char *text)
{
    size_t n = ty_wire_put_head(out, number, strlen(text));
    memcpy(out + n, text, strlen(text));
    return n + strlen(text);
}

/* Of all that it says only the checkpoint has changed. The name of the export is a number that nobody else has: made
 * from the old one and the new checkpoint. */
int tf_write_fingerprint(ty_bytes old, ty_bytes index, const char *path, ty_error *err)
{
    ty_wire_item item;
    uint64_t hash = tf_farmhash(index.data, index.n);
    uint8_t *out = malloc(old.n + 128);
    size_t n = 0;
    int rc;
    if (!out)
        return ty_error_set(err, TY_E_LIMIT, "no memory");
    while ((rc = ty_wire_next(&old, &item, err)) > 0) {
        if (item.number == CHECKPOINT_HASH && item.type == 0) {
            out[n++] = CHECKPOINT_HASH << 3;
            n += ty_wire_put_varint(out + n, hash);
        } else if (item.number == UUID && item.type == 2) {
            char uuid[64];
            snprintf(uuid, sizeof uuid, "%" PRIu64 "%019" PRIu64, tf_farmhash(item.body.data, item.body.n) ^ hash,
                     hash % UINT64_C(10000000000000000000));
            n += put_text_field(out + n, UUID, uuid);
        } else {
            memcpy(out + n, item.whole.data, item.whole.n);
            n += item.whole.n;
        }
    }
    if (rc == 0)
        rc = ty_file_write(path, out, n, 0644, err);
    free(out);
    return rc;
}

/* ---- a folder -----------------------------------------------------------------------------------------------------
 */

/* A file inside of the folder that is written anew, or left out. */
static bool is_ours(const tf_file *f, const char *path)
{
    const char *within = path + strlen(f->folder) + 1;
    bool rewrites = f->n_variables > 0 && f->variable[0].is_const;
    return strncmp(within, "variables/variables.", 20) == 0 || strcmp(within, "fingerprint.pb") == 0 ||
           (rewrites && strcmp(within, "saved_model.pb") == 0);
}

/* Links are followed to files inside of the folder only: what lies elsewhere is no part of the model. */
static int check_link(const tf_file *f, const char *path, ty_error *err)
{
    char root[PATH_MAX], target[PATH_MAX];
    size_t n = realpath(f->folder, root) ? strlen(root) : 0;
    if (n && realpath(path, target) && strncmp(root, target, n) == 0 && target[n] == '/' && !ty_file_is_folder(target))
        return 0;
    ty_error_set(err, TY_E_MODEL_FILE, "%s is a link that leads out of the model's folder, to a folder, or nowhere",
                 path);
    return ty_error_help(err, "put the file itself in its place");
}

static int copy_folder(const tf_file *f, const char *from, const char *to, int depth, ty_error *err)
{
    ty_arena arena;
    ty_file_entry *entry;
    size_t n = 0;
    if (depth > MAX_FOLDERS)
        return ty_error_set(err, TY_E_LIMIT, "%s: folders nest deeper than %d levels", from, MAX_FOLDERS);
    ty_arena_init(&arena);
    int rc = ty_file_list(from, &arena, &entry, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const char *source = ty_arena_printf(&arena, "%s/%s", from, entry[i].name);
        const char *target = ty_arena_printf(&arena, "%s/%s", to, entry[i].name);
        if (is_ours(f, source))
            continue;
        if (entry[i].kind == 'd')
            rc = ty_file_mkdirs(target, 0755, err) < 0 ? -1 : copy_folder(f, source, target, depth + 1, err);
        else if (entry[i].kind == 'o')
            rc = ty_error_set(err, TY_E_MODEL_FILE, "%s is neither a file nor a folder", source);
        else if (entry[i].kind == 'f' || (rc = check_link(f, source, err)) == 0)
            rc = ty_file_copy(source, target, err);
    }
    ty_arena_fini(&arena);
    return rc;
}

static int write_fingerprint(const tf_file *f, const char *folder, ty_arena *arena, ty_error *err)
{
    ty_file_view old, index;
    const char *from = ty_arena_printf(arena, "%s/fingerprint.pb", f->folder);
    if (!f->has_bundle || !ty_file_exists(from))
        return 0;
    if (ty_file_map(from, &old, err) < 0)
        return -1;
    int rc = ty_file_map(ty_arena_printf(arena, "%s/variables/variables.index", folder), &index, err);
    if (rc == 0) {
        rc = tf_write_fingerprint((ty_bytes){old.bytes, old.n_bytes}, (ty_bytes){index.bytes, index.n_bytes},
                                  ty_arena_printf(arena, "%s/fingerprint.pb", folder), err);
        ty_file_unmap(&index);
    }
    ty_file_unmap(&old);
    return rc < 0 ? ty_error_at(err, "%s", from) : 0;
}

static int write_proto_file(values *v, const char *path, ty_error *err)
{
    ty_file_writer w;
    if (ty_file_writer_open(&w, path, 0644, err) < 0)
        return -1;
    int rc = tf_write_proto(v->f, v->by_variable, &w, err);
    if (rc == 0)
        rc = ty_file_writer_commit(&w, err);
    ty_file_writer_abandon(&w);
    return rc;
}

/* A model whose weights are constants has a new graph then, and its fingerprint, which we cannot make, goes: it may be
 * absent. */
static int fill_folder(values *v, const char *folder, ty_error *err)
{
    const tf_file *f = v->f;
    if (copy_folder(f, f->folder, folder, 0, err) < 0)
        return -1;
    if (f->n_variables > 0 && f->variable[0].is_const)
        return write_proto_file(v, ty_arena_printf(&v->arena, "%s/saved_model.pb", folder), err);
    if (f->has_bundle && tf_bundle_write(&f->bundle, ty_arena_printf(&v->arena, "%s/variables/variables", folder),
                                         find_entry, v, err) < 0)
        return -1;
    return write_fingerprint(f, folder, &v->arena, err);
}

static int write_folder(values *v, const char *path, ty_error *err)
{
    ty_file_folder w;
    if (ty_file_folder_open(&w, path, err) < 0)
        return -1;
    int rc = fill_folder(v, w.temporary, err);
    if (rc == 0)
        rc = ty_file_folder_commit(&w, err);
    ty_file_folder_abandon(&w);
    return rc;
}

/* ---- a checkpoint of TF1 ------------------------------------------------------------------------------------------
 */

/* The graph first: the index is what makes a checkpoint complete. */
static int write_checkpoint_as(values *v, const char *prefix, ty_error *err)
{
    if (ty_file_copy(v->f->path, ty_arena_printf(&v->arena, "%s.meta", prefix), err) < 0)
        return -1;
    return tf_bundle_write(&v->f->bundle, prefix, find_entry, v, err);
}

/* A folder with the checkpoint under its old name, and the text that TensorFlow finds it by. */
static int write_checkpoint_folder(values *v, const char *path, ty_error *err)
{
    ty_file_folder w;
    const char *slash = strrchr(v->f->path, '/'), *name = slash ? slash + 1 : v->f->path;
    name = ty_arena_strndup(&v->arena, name, strlen(name) - strlen(".meta"));
    if (ty_file_folder_open(&w, path, err) < 0)
        return -1;
    const char *text = ty_arena_printf(&v->arena, "model_checkpoint_path: \"%s\"\n", name);
    int rc = write_checkpoint_as(v, ty_arena_printf(&v->arena, "%s/%s", w.temporary, name), err);
    if (rc == 0)
        rc = ty_file_write(ty_arena_printf(&v->arena, "%s/checkpoint", w.temporary), text, strlen(text), 0644, err);
    if (rc == 0)
        rc = ty_file_folder_commit(&w, err);
    ty_file_folder_abandon(&w);
    return rc;
}

static int write_checkpoint(values *v, const char *path, ty_error *err)
{
    size_t n = strlen(path);
    if (n > 5 && strcmp(path + n - 5, ".meta") == 0)
        return write_checkpoint_as(v, ty_arena_strndup(&v->arena, path, n - 5), err);
    return write_checkpoint_folder(v, path, err);
}

/* ---- all of it ----------------------------------------------------------------------------------------------------
 */

const char *tf_artifact(const tf_file *f)
{
    static const char *const names[] = {[TF_SAVED_MODEL] = "saved_model", [TF_GRAPH_DEF] = "model.pb", "checkpoint"};
    return names[f->kind];
}

int tf_write(const tf_file *f, const char *path, tf_find_value *find, void *ctx, ty_error *err)
{
    values v;
    gather(&v, f, find, ctx);
    int rc = f->kind == TF_SAVED_MODEL  ? write_folder(&v, path, err)
             : f->kind == TF_META_GRAPH ? write_checkpoint(&v, path, err)
                                        : write_proto_file(&v, path, err);
    ty_arena_fini(&v.arena);
    return rc;
}
