/* command_model_tensors.c - `trainyard model info FILE.safetensors`: weights under their names, and nothing that says
 * what is computed with them. */
#include "base/json.h"
#include "base/quantity.h"
#include "base/safetensors.h"
#include "entrypoint/command_model.h"
#include "entrypoint/model_print.h"

#include <stdio.h>
#include <string.h>

enum { N_LISTED_TENSORS = 60 };

/* "F32[32,3,3]", with the file's own word for the type: not all of them are ours. Returns out. */
static const char *tensor_text(const ty_safetensors_entry *e, char *out, size_t n)
{
    int len = snprintf(out, n, "%s[", e->dtype_text);
    for (int i = 0; i < e->type.rank && (size_t)len < n; i++)
        len += snprintf(out + len, n - (size_t)len, "%s%lld", i ? "," : "", (long long)e->type.dim[i]);
    if ((size_t)len < n)
        snprintf(out + len, n - (size_t)len, "]");
    return out;
}

static void count_all(const ty_safetensors *s, int64_t *n_numbers, size_t *n_bytes)
{
    *n_numbers = 0;
    *n_bytes = 0;
    for (size_t i = 0; i < s->n_entries; i++) {
        *n_numbers += ty_type_elems(&s->entries[i].type);
        *n_bytes += s->entries[i].n_bytes;
    }
}

static void print_text(const char *path, const ty_safetensors *s, bool all)
{
    size_t n_listed = all || s->n_entries <= N_LISTED_TENSORS ? s->n_entries : N_LISTED_TENSORS, n_bytes;
    int64_t n_numbers;
    char type[320], count[32], bytes[32];
    printf("%s: safetensors, weights without a model\n", path);
    for (size_t i = 0; i < s->n_meta; i++)
        printf("  %-15s %s\n", s->meta[i].key, s->meta[i].value);
    if (s->n_entries > 0)
        printf("\n  %-44s %-24s %12s\n", "weight", "type", "bytes");
    for (size_t i = 0; i < n_listed; i++)
        printf("  %-44s %-24s %12s\n", s->entries[i].name, tensor_text(&s->entries[i], type, sizeof type),
               ty_count_text((int64_t)s->entries[i].n_bytes, bytes, sizeof bytes));
    if (n_listed < s->n_entries)
        printf("  %zu more (--all)\n", s->n_entries - n_listed);
    count_all(s, &n_numbers, &n_bytes);
    printf("\n  %s numbers, %s\n", ty_count_text(n_numbers, count, sizeof count),
           ty_bytes_text(n_bytes, bytes, sizeof bytes));
}

static void put_weights(ty_json_writer *w, const ty_safetensors *s)
{
    ty_json_open_list(w, "weights");
    for (size_t i = 0; i < s->n_entries; i++) {
        const ty_safetensors_entry *e = &s->entries[i];
        ty_model_value v = {.name = e->name, .dtype = (ty_dtype)e->type.dtype, .rank = e->type.rank, .data = e->data};
        memcpy(v.dim, e->type.dim, sizeof v.dim);
        ty_model_put_weight(w, &v, e->n_bytes, NULL);
    }
    ty_json_close(w);
}

static void put_facts(ty_json_writer *w, const ty_safetensors *s)
{
    ty_json_open_list(w, "facts");
    for (size_t i = 0; i < s->n_meta; i++) {
        ty_json_open_map(w, NULL);
        ty_json_put_string(w, "what", s->meta[i].key);
        ty_json_put_string(w, "text", s->meta[i].value);
        ty_json_close(w);
    }
    ty_json_close(w);
}

static void put_empty_list(ty_json_writer *w, const char *key)
{
    ty_json_open_list(w, key);
    ty_json_close(w);
}

/* The keys that a model has, of which many say nothing here. */
static void print_json(const char *path, const ty_safetensors *s)
{
    ty_buf out;
    ty_json_writer w;
    int64_t n_numbers;
    size_t n_bytes;
    count_all(s, &n_numbers, &n_bytes);
    ty_buf_init(&out, (size_t)64 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "schema", 1);
    ty_json_put_string(&w, "model", path);
    ty_json_put_string(&w, "format", "safetensors");
    ty_json_put_int(&w, "bytes", (int64_t)s->view.n_bytes);
    ty_json_put_int(&w, "nodes", 0);
    put_facts(&w, s);
    put_empty_list(&w, "warnings");
    put_empty_list(&w, "inputs");
    put_empty_list(&w, "outputs");
    put_weights(&w, s);
    ty_json_put_int(&w, "numbers", n_numbers);
    ty_json_put_int(&w, "weight_bytes", (int64_t)n_bytes);
    ty_json_put_null(&w, "recipe");
    ty_json_put_bool(&w, "trainable", false);
    ty_json_put_null(&w, "layers");
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

int ty_model_info_tensors(const char *path, const ty_arguments_given *given, ty_error *err)
{
    ty_safetensors s;
    if (ty_safetensors_open(path, &s, err) < 0)
        return -1;
    if (given->value[TY_MODEL_JSON])
        print_json(path, &s);
    else
        print_text(path, &s, given->value[TY_MODEL_ALL] != NULL);
    ty_safetensors_close(&s);
    return 0;
}
