/* found_texts.c - see found_texts.h. */
#include "entrypoint/found_texts.h"

#include "base/log.h"
#include "container/input/map/map.h"
#include "entrypoint/found.h"

#include <string.h>
#include <strings.h>

enum { USUAL_LENGTH = 128 }; /* of Hugging Face's examples of training (run_glue.py: max_seq_length) */

/* What a model's input takes of a text. */
static const struct {
    const char *input;
    ty_token_part part;
} text_inputs[] = {
    {"input_ids", TY_TOKENS_IDS}, {"attention_mask", TY_TOKENS_MASK}, {"token_type_ids", TY_TOKENS_TYPES}};

static int text_input(const char *name)
{
    for (size_t i = 0; i < sizeof text_inputs / sizeof text_inputs[0]; i++)
        if (strcmp(text_inputs[i].input, name) == 0)
            return (int)i;
    return -1;
}

bool ty_found_wants_texts(const ty_recipe *r, const ty_model *m, const ty_data_survey *s)
{
    const ty_model_preparation *p = ty_model_preparation_of(m);
    if (!p || !p->tokenizer || ty_model_n_inputs(m) == 0)
        return false;
    for (int i = 0; i < ty_model_n_inputs(m); i++)
        if (text_input(ty_model_input(m, i)->name) < 0 || ty_found_part(s, ty_found_wanted(r, m, i)) >= 0)
            return false;
    return true;
}

bool ty_found_foretells(const ty_model *m)
{
    const ty_model_preparation *p = ty_model_preparation_of(m);
    return p && p->foretells;
}

/* ---- which text ---- */

static bool is_usual(const char *name)
{
    static const char *const usual[] = {"text",    "sentence", "content", "document", "review",
                                        "comment", "question", "tweet",   "message",  "prompt"};
    for (size_t i = 0; name && i < sizeof usual / sizeof usual[0]; i++)
        if (strcasecmp(usual[i], name) == 0)
            return true;
    return false;
}

static int refuse_texts(const ty_data_survey *s, int n, ty_error *err)
{
    ty_error_set(err, TY_E_CONFIG, "the model takes tokens of a text, and the %s data have %s", s->format,
                 n == 0 ? "none" : "several texts, of which none is called \"text\"");
    return ty_error_help(err,
                         "declare the fields: data.train.fields: {input_ids: {columns: NAME, tokenizer: "
                         "tokenizer.json, max_length: %d}, ...}; `trainyard help tokens` has the others",
                         USUAL_LENGTH);
}

/* The part that is the text: the only one that is no list, or the first of a usual name. */
static int find_text(const ty_data_survey *s, int first_label, int n_labels, int *out, ty_error *err)
{
    int n = 0, named = -1;
    for (int i = 0; i < s->n_parts; i++) {
        const char *name = s->part[i].name;
        bool is_label = (i >= first_label && i < first_label + n_labels) || (name && ty_found_is_target(name));
        if (!s->part[i].is_text || s->part[i].is_list || is_label)
            continue;
        if (n++ == 0)
            *out = i;
        if (named < 0 && is_usual(name))
            named = i;
    }
    if (named >= 0)
        *out = named;
    return n == 1 || named >= 0 ? 0 : refuse_texts(s, n, err);
}

/* ---- fields ---- */

static int64_t length_of(const ty_model *m)
{
    int64_t most = ty_model_preparation_of(m)->max_length;
    return most > 0 && most < USUAL_LENGTH ? most : USUAL_LENGTH;
}

/* Columns of tables by number, features of records by name. */
static int make_field(const ty_model *m, const ty_data_survey *s, int text, const char *name, ty_token_part part,
                      ty_arena *a, ty_field *out, ty_error *err)
{
    const ty_map_spec spec = {.field = name,
                              .way = TY_MAP_TOKENIZER,
                              .scale = 1,
                              .max_length = length_of(m),
                              .tokenizer = ty_model_preparation_of(m)->tokenizer,
                              .token_part = part};
    *out = ty_field_make(name);
    if (s->is_table)
        out->columns = ty_arena_printf(a, "%d", text);
    else
        out->member = s->part[text].name;
    return ty_map_new(&spec, a, &out->map, err);
}

static void tell(const ty_model *m, const ty_data_survey *s, int text)
{
    const char *name = s->part[text].name;
    ty_log_info("data", "no fields are declared: %s %d%s%s%s becomes up to %lld tokens by %s%s",
                s->is_table ? "column" : "feature", text, name ? ", \"" : "", name ? name : "", name ? "\"," : "",
                (long long)length_of(m), ty_model_preparation_of(m)->tokenizer,
                ty_found_foretells(m) ? "; the labels are the tokens that follow" : "");
}

int ty_found_texts(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, int first_label, int n_labels,
                   ty_arena *a, ty_field *fields, int *n_fields, ty_error *err)
{
    int text = 0, n = ty_model_n_inputs(m);
    if (find_text(s, first_label, n_labels, &text, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        ty_token_part part = text_inputs[text_input(ty_model_input(m, i)->name)].part;
        if (make_field(m, s, text, ty_found_wanted(r, m, i), part, a, &fields[(*n_fields)++], err) < 0)
            return -1;
    }
    if (ty_found_foretells(m) && make_field(m, s, text, "labels", TY_TOKENS_NEXT, a, &fields[(*n_fields)++], err) < 0)
        return -1;
    tell(m, s, text);
    return 0;
}
