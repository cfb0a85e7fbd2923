/* model_cmodel.c - the row of models in C in the table of formats. */
#include "compiler/import/cmodel.h"
#include "compiler/model_format.h"

#include <string.h>

static bool cmodel_matches(const char *path, const uint8_t *head, size_t n)
{
    size_t len = strlen(path);
    (void)head, (void)n;
    return len > 2 && strcmp(path + len - 2, ".c") == 0;
}

static int cmodel_open(ty_model *m, const char *path, const char *kept, ty_error *err)
{
    ty_cmodel *c;
    if (ty_cmodel_open(path, kept, &c, err) < 0)
        return -1;
    m->impl = c;
    m->artifact = "model.c";
    ty_model_take_lists(m, ty_cmodel_list(c));
    return 0;
}

static void cmodel_close(void *impl)
{
    ty_cmodel_free(impl);
}

static int cmodel_import(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values,
                         ty_error *err)
{
    return ty_cmodel_import(m->impl, g, b, values, err);
}

/* The source has no weights in it: they belong into the safetensors file beside it. */
static int cmodel_write(const ty_model *m, const char *path, ty_file_writer *w, ty_find_weight *find, void *ctx,
                        ty_error *err)
{
    size_t n;
    const char *text = ty_cmodel_source(m->impl, &n);
    (void)path, (void)find, (void)ctx;
    return ty_file_writer_add(w, text, n, err);
}

static int cmodel_keep_code(const void *impl, const char *folder, ty_error *err)
{
    return ty_cmodel_keep(impl, folder, err);
}

const model_format ty_model_cmodel = {.matches = cmodel_matches,
                                      .open = cmodel_open,
                                      .close = cmodel_close,
                                      .import = cmodel_import,
                                      .check = ty_model_first_fault,
                                      .write = cmodel_write,
                                      .keep = cmodel_keep_code,
                                      .weights_beside = true};
