/* adapter.c - see adapter.h. */
#include "entrypoint/adapter.h"

#include "base/json.h"
#include "compiler/compiler.h"

#include <string.h>

enum { CONFIG_BYTES = 16 << 20 };

typedef struct adapter {
    ty_arena *a;
    bool turned;
    ty_named_tensor *tensors;
    size_t n;
    const char **adapted, **saved; /* modules */
    size_t n_adapted, n_saved;
} adapter;

/* `name` without `end`, in the arena; NULL: it ends otherwise. */
static const char *without(ty_arena *a, const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0 ? ty_arena_strndup(a, name, n - k) : NULL;
}

/* The module that a weight belongs to: its name up to the last dot. */
static const char *module_of(ty_arena *a, const char *weight)
{
    const char *dot = strrchr(weight, '.');
    return dot ? ty_arena_strndup(a, weight, (size_t)(dot - weight)) : weight;
}

static void add_once(const char **list, size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(list[i], name) == 0)
            return;
    list[(*n)++] = name;
}

static const void *transposed(ty_arena *a, const ty_named_tensor *t)
{
    int64_t rows = t->type.dim[0], columns = t->type.dim[1];
    const float *from = t->data;
    float *to = TY_NEW_ARRAY(a, float, rows *columns);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            to[k * rows + i] = from[i * columns + k];
    return to;
}

/* A factor under PEFT's name, turned where the weights are. */
static void add_factor(adapter *d, const char *module, const char *letter, const ty_named_tensor *factor)
{
    const int64_t dim[] = {factor->type.dim[1], factor->type.dim[0]};
    ty_named_tensor t = *factor;
    t.name = ty_arena_printf(d->a, "base_model.model.%s.lora_%s.weight", module, letter);
    if (d->turned) {
        t.type = ty_type_make(TY_F32, 2, dim);
        t.data = (void *)(uintptr_t)transposed(d->a, factor);
    }
    d->tensors[d->n++] = t;
}

static int add_trained(adapter *d, const ty_named_tensor *t, ty_error *err)
{
    const char *left = without(d->a, t->name, TY_LORA_LEFT), *right = without(d->a, t->name, TY_LORA_RIGHT);
    const char *matrix = left ? left : right, *module = matrix ? without(d->a, matrix, ".weight") : NULL;
    if (matrix && !module)
        return ty_error_set(err, TY_E_UNSUPPORTED, "the adapter of \"%s\" belongs to no layer's weight", matrix);
    if (module) {
        add_once(d->adapted, &d->n_adapted, module);
        add_factor(d, module, !left == d->turned ? "B" : "A", t);
        return 0;
    }
    add_once(d->saved, &d->n_saved, module_of(d->a, t->name));
    d->tensors[d->n] = *t;
    d->tensors[d->n++].name = ty_arena_printf(d->a, "base_model.model.%s", t->name);
    return 0;
}

static void put_list(ty_json_writer *w, const char *key, const char *const *list, size_t n)
{
    ty_json_open_list(w, key);
    for (size_t i = 0; i < n; i++)
        ty_json_put_string(w, NULL, list[i]);
    ty_json_close(w);
}

static const char *config_text(const adapter *d, const struct ty_lora *lora, const char *base)
{
    ty_buf text;
    ty_json_writer w;
    ty_buf_init(&text, CONFIG_BYTES);
    ty_json_writer_init(&w, &text, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "peft_type", "LORA");
    ty_json_put_null(&w, "task_type");
    ty_json_put_string(&w, "base_model_name_or_path", base);
    ty_json_put_int(&w, "r", lora->rank);
    ty_json_put_float(&w, "lora_alpha", lora->alpha);
    ty_json_put_float(&w, "lora_dropout", 0);
    put_list(&w, "target_modules", d->adapted, d->n_adapted);
    put_list(&w, "modules_to_save", d->saved, d->n_saved);
    ty_json_put_string(&w, "bias", "none");
    ty_json_put_bool(&w, "fan_in_fan_out", d->turned);
    ty_json_put_bool(&w, "inference_mode", true);
    ty_json_close(&w);
    const char *out = text.failed ? NULL : ty_arena_strdup(d->a, text.data);
    ty_buf_fini(&text);
    return out;
}

int ty_adapter_make(const ty_named_tensor *trained, size_t n, const struct ty_lora *lora, bool turned, const char *base,
                    ty_arena *a, ty_adapter_files *out, ty_error *err)
{
    adapter d = {.a = a, .turned = turned};
    d.tensors = TY_NEW_ARRAY(a, ty_named_tensor, n + 1);
    d.adapted = TY_NEW_ARRAY(a, const char *, n + 1);
    d.saved = TY_NEW_ARRAY(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        if (add_trained(&d, &trained[i], err) < 0)
            return -1;
    *out = (ty_adapter_files){d.tensors, d.n, config_text(&d, lora, base)};
    return out->config ? 0 : ty_error_set(err, TY_E_LIMIT, "too many adapters to list them");
}
