/* model_hf.c - the row of Hugging Face's folders in the table of formats. */
#include "compiler/import/huggingface/hf.h"
#include "compiler/model_format.h"

enum { CONFIG_BYTES = 16 << 20 };

static bool hf_matches(const char *path, const uint8_t *head, size_t n)
{
    (void)head, (void)n;
    return ty_hf_matches(path);
}

static int hf_open(ty_model *m, const char *path, const char *kept, ty_error *err)
{
    ty_hf *h;
    (void)kept;
    if (ty_hf_open(path, &m->choice, &h, err) < 0)
        return -1;
    m->impl = h;
    m->artifact = "config.json";
    ty_model_take_lists(m, ty_hf_list(h));
    m->recipe = ty_hf_recipe(h);
    m->preparation = ty_hf_preparation(h);
    m->companion = ty_hf_companions(h, &m->n_companions);
    return 0;
}

static void hf_close(void *impl)
{
    ty_hf_free(impl);
}

static int hf_import(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err)
{
    return ty_hf_import(m->impl, g, b, values, err);
}

/* The configuration; the weights are in the safetensors file that every model has beside it. */
static int hf_write(const ty_model *m, const char *path, ty_file_writer *w, ty_find_weight *find, void *ctx,
                    ty_error *err)
{
    ty_buf text;
    (void)path, (void)find, (void)ctx;
    ty_buf_init(&text, CONFIG_BYTES);
    int rc = ty_hf_write_config(m->impl, m->class_name, m->n_classes, &text, err);
    if (rc == 0)
        rc = ty_file_writer_add(w, text.data, text.len, err);
    ty_buf_fini(&text);
    return rc;
}

static int hf_reseed(ty_model *m, uint64_t seed, ty_error *err)
{
    return ty_hf_reseed(m->impl, seed, err);
}

static bool hf_is_mapped(const void *impl)
{
    return ty_hf_is_mapped(impl);
}

static void hf_drop_pages(const void *impl)
{
    ty_hf_drop_pages(impl);
}

const model_format ty_model_hf = {.matches = hf_matches,
                                  .open = hf_open,
                                  .close = hf_close,
                                  .import = hf_import,
                                  .check = ty_model_first_fault,
                                  .write = hf_write,
                                  .reseed = hf_reseed,
                                  .drop_pages = hf_drop_pages,
                                  .is_mapped = hf_is_mapped,
                                  .read_recipe = ty_hf_read_recipe,
                                  .weights_beside = true,
                                  .has_recipes = true};
