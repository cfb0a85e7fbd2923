/* template.c - post-processors: which special tokens stand around a text, and the token types.
 *
 * Each kind comes down to a row of ids with a place for the text. Several in a Sequence wrap one another.
 */
#include "container/input/tokenizer/parts.h"

enum { TEMPLATE_MAX_ITEMS = 256 };

typedef struct template_rows {
    tok_template_item item[TEMPLATE_MAX_ITEMS];
    int n;
} template_rows;

static int template_put(template_rows *t, int32_t id, int64_t type, ty_error *err)
{
    if (t->n == TEMPLATE_MAX_ITEMS || type < 0 || type > 255)
        return ty_error_set(err, TY_E_LIMIT, "more than %d items, or a type that is not 0 to 255", TEMPLATE_MAX_ITEMS);
    t->item[t->n++] = (tok_template_item){id, (uint8_t)type};
    return 0;
}

/* ["[CLS]", 101] */
static int template_pair(const ty_doc *node, const char *key, int32_t *id, ty_error *err)
{
    const ty_doc *d = ty_doc_find(node, key);
    int64_t v;
    if (d == NULL || d->kind != TY_DOC_LIST || d->n_items != 2)
        return ty_doc_error(node, err, TY_E_TYPE, NULL, "expected \"%s\": [\"token\", id]", key);
    if (ty_doc_int(&d->items[1], &v, err) < 0)
        return -1;
    if (v < 0 || v > TOK_MAX_ID)
        return ty_doc_error(d, err, TY_E_RANGE, NULL, "an id must be 0 to %d", TOK_MAX_ID);
    *id = (int32_t)v;
    return 0;
}

static int template_read_bert(const ty_doc *node, template_rows *t, ty_error *err)
{
    int32_t cls = -1, sep = -1;
    if (template_pair(node, "cls", &cls, err) < 0 || template_pair(node, "sep", &sep, err) < 0)
        return -1;
    return template_put(t, cls, 0, err) < 0 || template_put(t, -1, 0, err) < 0 ? -1 : template_put(t, sep, 0, err);
}

/* The ids that a special token of a template stands for. */
static int template_special(const ty_doc *node, const ty_doc *item, int64_t type, template_rows *t, ty_error *err)
{
    const char *name;
    if (tok_get_string(item, "id", "", &name, err) < 0)
        return -1;
    const ty_doc *ids = ty_doc_find(ty_doc_find(ty_doc_find(node, "special_tokens"), name), "ids");
    if (ids == NULL || ids->kind != TY_DOC_LIST)
        return ty_doc_error(item, err, TY_E_MISSING_KEY, NULL, "special_tokens has no ids for \"%.100s\"", name);
    for (uint32_t i = 0; i < ids->n_items; i++) {
        int64_t id;
        if (ty_doc_int(&ids->items[i], &id, err) < 0)
            return -1;
        if (id < 0 || id > TOK_MAX_ID)
            return ty_doc_error(&ids->items[i], err, TY_E_RANGE, NULL, "an id must be 0 to %d", TOK_MAX_ID);
        if (template_put(t, (int32_t)id, type, err) < 0)
            return -1;
    }
    return 0;
}

static int template_read_template(const ty_doc *node, template_rows *t, ty_error *err)
{
    const ty_doc *single = ty_doc_find(node, "single");
    if (single == NULL || single->kind != TY_DOC_LIST)
        return ty_doc_error(node, err, TY_E_TYPE, NULL, "expected a list \"single\"");
    for (uint32_t i = 0; i < single->n_items; i++) {
        const ty_doc *special = ty_doc_find(&single->items[i], "SpecialToken"),
                     *text = ty_doc_find(&single->items[i], "Sequence");
        int64_t type;
        if (special == NULL && text == NULL)
            return ty_doc_error(&single->items[i], err, TY_E_TYPE, NULL, "expected a SpecialToken or a Sequence");
        if (tok_get_int(special != NULL ? special : text, "type_id", 0, &type, err) < 0)
            return -1;
        int rc = special != NULL ? template_special(node, special, type, t, err) : template_put(t, -1, type, err);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* `outer` around what there is. */
static int template_wrap(template_rows *t, const template_rows *outer, ty_error *err)
{
    template_rows inner = *t;
    t->n = 0;
    for (int i = 0; i < outer->n; i++) {
        if (outer->item[i].id >= 0 && template_put(t, outer->item[i].id, outer->item[i].type, err) < 0)
            return -1;
        for (int k = 0; outer->item[i].id < 0 && k < inner.n; k++)
            if (template_put(t, inner.item[k].id, outer->item[i].type, err) < 0)
                return -1;
    }
    return 0;
}

static int template_read(const ty_doc *node, int depth, template_rows *t, ty_error *err)
{
    const char *type;
    if (node == NULL || node->kind == TY_DOC_NULL)
        return 0;
    if (tok_get_type(node, &type, err) < 0)
        return -1;
    template_rows one = {.n = 0};
    int rc = 0;
    if (strcmp(type, "TemplateProcessing") == 0)
        rc = template_read_template(node, &one, err);
    else if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0)
        rc = template_read_bert(node, &one, err);
    else if (strcmp(type, "Sequence") == 0) {
        const ty_doc *list = ty_doc_find(node, "processors");
        if (list == NULL || list->kind != TY_DOC_LIST || depth == 8)
            return ty_doc_error(node, err, TY_E_TYPE, NULL, "expected a list \"processors\", at most 8 deep");
        for (uint32_t i = 0; i < list->n_items; i++)
            if (template_read(&list->items[i], depth + 1, t, err) < 0)
                return -1;
        return 0;
    } else if (strcmp(type, "ByteLevel") == 0) /* it is about offsets, which we do not give */
        return 0;
    else
        return tok_refuse_type(node, "post-processor", type,
                               "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence", err);
    return rc < 0 ? -1 : template_wrap(t, &one, err);
}

int tok_template_read(const ty_doc *node, ty_arena *a, tok_template *out, ty_error *err)
{
    template_rows t = {.item = {{-1, 0}}, .n = 1};
    if (template_read(node, 0, &t, err) < 0)
        return ty_error_wrap(err, "post_processor");
    out->item = ty_arena_copy(a, t.item, (size_t)t.n * sizeof *t.item);
    out->n = t.n;
    return 0;
}
