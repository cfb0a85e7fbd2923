/* hf_config.c - see hf_config.h. */
#include "compiler/import/huggingface/hf_config.h"

#include "base/json.h"

#include <string.h>

enum { CONFIG_BYTES = 16 << 20, CONFIG_MAX_SIZE = INT32_MAX, DEFAULT_LABELS = 2 };

const ty_doc *hf_config_find(const ty_doc *config, const char *key)
{
    const ty_doc *d = ty_doc_find(config, key);
    return d && d->kind != TY_DOC_NULL ? d : NULL;
}

int hf_config_size(const ty_doc *config, const char *key, int64_t absent, int64_t *out, ty_error *err)
{
    const ty_doc *d = hf_config_find(config, key);
    *out = absent;
    if (!d && absent > 0)
        return 0;
    if (!d)
        return ty_doc_error(config, err, TY_E_MODEL_FILE, NULL, "expected a key \"%s\", found none", key);
    if (ty_doc_int(d, out, err) < 0)
        return -1;
    if (*out >= 1 && *out <= CONFIG_MAX_SIZE)
        return 0;
    return ty_doc_error(d, err, TY_E_MODEL_FILE, NULL, "key \"%s\": expected a size of at least 1, found %lld", key,
                        (long long)*out);
}

int hf_config_number(const ty_doc *config, const char *key, double absent, double *out, ty_error *err)
{
    const ty_doc *d = hf_config_find(config, key);
    *out = absent;
    return d ? ty_doc_float(d, out, err) : 0;
}

int hf_config_flag(const ty_doc *config, const char *key, bool absent, bool *out, ty_error *err)
{
    const ty_doc *d = hf_config_find(config, key);
    *out = absent;
    return d ? ty_doc_bool(d, out, err) : 0;
}

int hf_config_text(const ty_doc *config, const char *key, const char *absent, const char **out, ty_error *err)
{
    const ty_doc *d = hf_config_find(config, key);
    *out = absent;
    return d ? ty_doc_string(d, out, err) : 0;
}

int hf_config_labels(const ty_doc *config, int64_t *out, ty_error *err)
{
    const ty_doc *names = hf_config_find(config, "id2label");
    if (!names)
        return hf_config_size(config, "num_labels", DEFAULT_LABELS, out, err);
    if (ty_doc_expect(names, TY_DOC_MAP, err) < 0)
        return -1;
    *out = (int64_t)ty_doc_len(names);
    return *out > 0 ? 0 : ty_doc_error(names, err, TY_E_MODEL_FILE, NULL, "expected a class at least, found none");
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* A key on a line of its own, as save_pretrained() leaves files; the value is the caller's. */
static void begin_key(ty_buf *out, const char *key)
{
    ty_buf_adds(out, out->len > 2 ? ",\n  " : "  ");
    ty_json_add_string(out, key, TY_JSON_SPACED);
    ty_buf_adds(out, ": ");
}

/* "LABEL_0", as Transformers calls classes without names. */
static void add_label(ty_buf *out, const hf_config_change *change, int64_t i)
{
    if (change->names)
        ty_json_add_string(out, change->names[i], TY_JSON_SPACED);
    else
        ty_buf_addf(out, "\"LABEL_%lld\"", (long long)i);
}

/* {"0": "LABEL_0", ...}, and the other way round. */
static void add_labels(ty_buf *out, const hf_config_change *change)
{
    begin_key(out, "id2label");
    for (int64_t i = 0; i < change->labels; i++) {
        ty_buf_addf(out, "%s\"%lld\": ", i ? ", " : "{", (long long)i);
        add_label(out, change, i);
    }
    ty_buf_adds(out, "}");
    begin_key(out, "label2id");
    for (int64_t i = 0; i < change->labels; i++) {
        ty_buf_adds(out, i ? ", " : "{");
        add_label(out, change, i);
        ty_buf_addf(out, ": %lld", (long long)i);
    }
    ty_buf_adds(out, "}");
}

/* Both names are in use: torch_dtype until Transformers 4, dtype since 5. */
static bool is_dtype(const char *key)
{
    return strcmp(key, "dtype") == 0 || strcmp(key, "torch_dtype") == 0;
}

static bool is_labels(const char *key)
{
    return strcmp(key, "id2label") == 0 || strcmp(key, "label2id") == 0 || strcmp(key, "num_labels") == 0;
}

int hf_config_write(const ty_doc *config, const hf_config_change *change, ty_buf *out, ty_error *err)
{
    int64_t had = 0;
    if (change->labels && hf_config_labels(config, &had, err) < 0)
        return -1;
    bool other_labels = had != change->labels || change->names;
    ty_buf_adds(out, "{\n");
    begin_key(out, "architectures");
    ty_buf_addf(out, "[\"%s\"]", change->architecture);
    if (other_labels)
        add_labels(out, change);
    for (size_t i = 0; i < ty_doc_len(config); i++) {
        const ty_doc *d = ty_doc_at(config, i);
        if (strcmp(d->key, "architectures") == 0 || (other_labels && is_labels(d->key)))
            continue;
        begin_key(out, d->key);
        if (is_dtype(d->key))
            ty_buf_adds(out, "\"float32\"");
        else
            ty_json_add_doc(out, d, TY_JSON_SPACED);
    }
    ty_buf_adds(out, "\n}\n");
    return out->failed ? ty_error_set(err, TY_E_LIMIT, "%s is larger than %d MB", HF_CONFIG_NAME, CONFIG_BYTES >> 20)
                       : 0;
}
