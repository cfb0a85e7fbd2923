/* tf_mutants.c - damaged TensorFlow files: each is opened, its graph flattened and imported, and written again; it must
 * be taken or refused in good order (mutants.h).
 *
 *     tf_mutants [-n COUNT] [-s SEED] FILE...
 *
 * FILE is saved_model.pb, variables.index or a shard of a SavedModel, whose other files are put beside the damaged
 * one, or a frozen graph. Closes with "N passed, N failed, N skipped".
 */
#include "tests/tools/mutants.h"

#include "base/file.h"
#include "compiler/import/tensorflow/tf_import.h"
#include "compiler/ir/build.h"

#include <libgen.h>

static char scratch[64];

/* A byte behind the key of a counted field (wire type 2) becomes another length. */
static size_t change_length(const mutants_file *f, uint8_t *b, int64_t id)
{
    static const uint8_t lengths[] = {0, 1, 0x7f, 0x80, 0xff, 2, 64};
    size_t at = mutants_place(f, id, 1);
    for (size_t i = 0; i + 1 < f->n; i++, at = at + 2 < f->n ? at + 1 : 0)
        if ((b[at] & 7) == 2 && b[at] >> 3 > 0 && b[at] < 0x80)
            break;
    if (at + 1 < f->n)
        b[at + 1] = mutants_draw(id, 4, 2) ? lengths[mutants_draw(id, 5, sizeof lengths)]
                                           : (uint8_t)(b[at + 1] + mutants_draw(id, 6, 9) - 4);
    return f->n;
}

/* ---- a model around the damaged file ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* Not durable, and so without waiting for a disk. */
static void copy_file(const char *from, const char *to)
{
    mutants_file f = {0};
    FILE *out = mutants_load(from, &f) ? fopen(to, "wb") : NULL;
    if (out) {
        fwrite(f.bytes, 1, f.n, out);
        fclose(out);
    }
    free(f.bytes);
}

static void copy_all(const char *from, const char *to)
{
    ty_arena arena;
    ty_file_entry *entry;
    size_t n;
    ty_arena_init(&arena);
    if (ty_file_list(from, &arena, &entry, &n, NULL) == 0)
        for (size_t i = 0; i < n; i++)
            if (entry[i].kind == 'f')
                copy_file(ty_arena_printf(&arena, "%s/%s", from, entry[i].name),
                          ty_arena_printf(&arena, "%s/%s", to, entry[i].name));
    ty_arena_fini(&arena);
}

/* The folder of the model that a file belongs to; the file itself if it is a frozen graph. */
static const char *model_of(const char *path, char *out, size_t n)
{
    snprintf(out, n, "%s", path);
    if (ends_with(path, "saved_model.pb"))
        return dirname(out);
    return strstr(path, "/variables.") ? dirname(dirname(out)) : out;
}

/* Puts the mutant in the place of the file; gives the path to open. */
static const char *place(const mutants_file *f, const uint8_t *bytes, size_t n, char *model, size_t room)
{
    char from[4096], sub[4200], to[4400];
    const char *root = model_of(f->path, from, sizeof from);
    bool is_folder = ty_file_is_folder(root);
    snprintf(model, room, "%s/%d-%lx%s", scratch, (int)getpid(), (unsigned long)(uintptr_t)f, is_folder ? "" : ".pb");
    if (is_folder && !ty_file_is_folder(model)) {
        snprintf(to, sizeof to, "%s/variables", model);
        snprintf(sub, sizeof sub, "%s/variables", root);
        ty_file_mkdirs(to, 0755, NULL);
        copy_all(root, model);
        copy_all(sub, to);
    }
    const char *name = strrchr(f->path, '/');
    name = name ? name + 1 : f->path;
    snprintf(to, sizeof to, "%s%s%s", model,
             !is_folder                       ? ""
             : strstr(f->path, "/variables.") ? "/variables/"
                                              : "/",
             is_folder ? name : "");
    FILE *out = fopen(to, "wb");
    if (out) {
        fwrite(bytes, 1, n, out);
        fclose(out);
    }
    return model;
}

/* ---- what is done with it ---- */

/* Free dims are 2; inputs of no known type keep the model from being imported, as they would in training. */
static bool bind_inputs(const tf_signature *s, ty_graph *g, ty_val *in)
{
    for (int i = 0; i < s->n_inputs; i++) {
        const tf_port *p = &s->input[i];
        int64_t dim[TY_MAX_RANK], elems = 1;
        if (p->rank < 0 || tf_dtype(p->data_type) >= TY_N_DTYPES)
            return false;
        for (int k = 0; k < p->rank; k++) {
            dim[k] = p->dim[k] < 0 ? 2 : p->dim[k];
            if (dim[k] > 1 << 20 || (elems *= dim[k] ? dim[k] : 1) > 1 << 24)
                return false;
        }
        in[i] = ty_b_input(g, ty_graph_add_input(g, p->name, ty_type_make(tf_dtype(p->data_type), p->rank, dim)));
    }
    return !ty_graph_failed(g, NULL);
}

static void import(const tf_file *f, const char *path, mutants_report *r)
{
    tf_run run = {f, tf_chosen_signature(f), false};
    ty_graph *g = ty_graph_new();
    ty_val *in = calloc((size_t)run.signature->n_inputs + 1, sizeof *in);
    static ty_error fault[4];
    if (in && bind_inputs(run.signature, g, in)) {
        ty_model_binding b = {
            .mode = TY_MODEL_TRAIN, .inputs = in, .seed = ty_b_scalar(g, TY_I64, 1), .step = ty_b_scalar(g, TY_I64, 1)};
        memset(fault, 0, sizeof fault);
        int n = tf_check(&run, g, &b, fault, 4);
        for (int i = 0; i < n && i < 4; i++)
            mutants_judge(r, &fault[i], strstr(fault[i].place, "node") ? "node" : path);
    }
    free(in);
    ty_graph_free(g);
}

static const void *keep(void *ctx, const tf_variable *v)
{
    (void)ctx;
    return v->data;
}

static void try(const mutants_file *f, const uint8_t *bytes, size_t n, mutants_report *r)
{
    char path[256], to[300];
    tf_file *model;
    ty_error err = {0};
    place(f, bytes, n, path, sizeof path);
    tf_options opt = {.signature = strstr(f->path, "counter") ? "incr_counter" : NULL};
    if (tf_open(path, &opt, &model, &err) < 0) {
        mutants_judge(r, &err, path);
        return;
    }
    import(model, path, r);
    snprintf(to, sizeof to, "%s.out", path);
    if (r->mutant % 64 == 0 && tf_write(model, to, keep, NULL, &err) < 0)
        mutants_judge(r, &err, "");
    tf_close(model);
}

int main(int argc, char **argv)
{
    static mutants_change *const kinds[] = {mutants_flip_bits, mutants_cut_off, change_length, mutants_copy_over};
    const char *tmp = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%.40s/tf_mutants.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(scratch))
        return 1;
    int rc = mutants_main(argc, argv, &(mutants_job){"tf_mutants", kinds, 4, try});
    ty_file_remove_tree(scratch, NULL);
    return rc;
}
