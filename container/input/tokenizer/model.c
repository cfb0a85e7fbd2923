/* model.c - which model a tokenizer.json has, and what all of them read. */
#include "container/input/tokenizer/parts.h"

#include <stdio.h>

static const struct {
    const char *type;
    int (*read)(const ty_doc *node, ty_arena *a, tok_model *m, ty_error *err);
} model_rows[] = {
    {"BPE", tok_bpe_read},
    {"WordPiece", tok_wordpiece_read},
    {"WordLevel", tok_wordlevel_read},
    {"Unigram", tok_unigram_read},
};

/* Files of old do not name it. */
static const char *model_guess(const ty_doc *node)
{
    const ty_doc *vocabulary = ty_doc_find(node, "vocab");
    if (ty_doc_find(node, "merges") != NULL)
        return "BPE";
    if (vocabulary != NULL && vocabulary->kind == TY_DOC_LIST)
        return "Unigram";
    return ty_doc_find(node, "max_input_chars_per_word") != NULL ? "WordPiece" : "WordLevel";
}

int tok_vocabulary_read(const ty_doc *node, ty_arena *a, tok_vocabulary *v, ty_error *err)
{
    const ty_doc *map = ty_doc_find(node, "vocab");
    if (map == NULL || map->kind != TY_DOC_MAP)
        return ty_doc_error(node, err, TY_E_TYPE, NULL, "expected a map \"vocab\" from tokens to numbers");
    tok_vocabulary_init(v, map->n_items, a);
    for (uint32_t i = 0; i < map->n_items; i++) {
        const ty_doc *d = &map->items[i];
        int64_t id;
        if (ty_doc_int(d, &id, err) < 0)
            return -1;
        if (id < 0 || id > TOK_MAX_ID)
            return ty_doc_error(d, err, TY_E_RANGE, NULL, "the number of a token must be 0 to %d", TOK_MAX_ID);
        tok_vocabulary_add(v, ty_arena_strdup(a, d->key), strlen(d->key), (int32_t)id);
    }
    return 0;
}

int tok_unknown_read(const ty_doc *node, tok_model *m, bool needed, ty_error *err)
{
    const char *text;
    m->unknown = -1;
    if (tok_get_string(node, "unk_token", NULL, &text, err) < 0)
        return -1;
    if (text != NULL)
        m->unknown = tok_vocabulary_find(&m->vocabulary, text, strlen(text));
    if (m->unknown >= 0 || (text == NULL && !needed))
        return 0;
    return ty_doc_error(node, err, TY_E_RANGE, NULL, "the unknown token \"%.100s\" is not in the vocabulary",
                        text != NULL ? text : "");
}

void tok_bytes_find(tok_model *m)
{
    for (int b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", b);
        m->byte_id[b] = tok_vocabulary_find(&m->vocabulary, text, 6);
    }
}

bool tok_bytes_add(const tok_model *m, const char *p, size_t n, tok_text *ids)
{
    for (size_t i = 0; i < n; i++)
        if (m->byte_id[(uint8_t)p[i]] < 0)
            return false;
    for (size_t i = 0; i < n; i++)
        tok_work_add_id(ids, m->byte_id[(uint8_t)p[i]]);
    return true;
}

int tok_model_read(const ty_doc *node, ty_arena *a, tok_model *out, ty_error *err)
{
    const char *type;
    if (node == NULL || ty_doc_expect(node, TY_DOC_MAP, err) < 0)
        return ty_error_set(err, TY_E_MISSING_KEY, "\"model\" is missing, or is no map");
    if (tok_get_string(node, "type", model_guess(node), &type, err) < 0)
        return -1;
    *out = (tok_model){.unknown = -1, .prefix = "", .suffix = ""};
    for (size_t i = 0; i < sizeof model_rows / sizeof model_rows[0]; i++)
        if (strcmp(model_rows[i].type, type) == 0) {
            out->kind = model_rows[i].type;
            return model_rows[i].read(node, a, out, err) < 0 ? ty_error_wrap(err, "model %s", out->kind) : 0;
        }
    return tok_refuse_type(node, "model", type, "BPE, WordPiece, WordLevel and Unigram", err);
}
