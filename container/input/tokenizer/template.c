/* template.c - post-processors: which special tokens stand around a text or a pair, and the token types.
 *
 * Each kind comes down to a row of ids with a place for each text. Of one text, several in a Sequence wrap one another;
 * of a pair one alone has a say.
 */
#include "container/input/tokenizer/parts.h"

enum { TEMPLATE_MAX_ITEMS = 256 };

typedef struct template_rows {
    tok_template_item item[TEMPLATE_MAX_ITEMS];
    int n;
} template_rows;

/* What is known of a file. */
typedef struct template_both {
    template_rows single, pair;
    int n_read; /* post-processors that put tokens anywhere */
} template_both;

static int template_put(template_rows *t, int32_t id, int64_t type, ty_error *err)
{
    if (t->n == TEMPLATE_MAX_ITEMS || type < 0 || type > 255)
        return ty_error_set(err, TY_E_LIMIT, "more than %d items, or a type that is not 0 to 255", TEMPLATE_MAX_ITEMS);
    t->item[t->n++] = (tok_template_item){id, (uint8_t)type};
    return 0;
}

/* ["[CLS]", 101] */
static int template_token(const ty_doc *node, const char *key, int32_t *id, ty_error *err)
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

/* <cls> A <sep> and B <sep>, with another <sep> between the two in RoBERTa's, which has one type of token. */
static int template_read_bert(const ty_doc *node, bool is_roberta, template_both *t, ty_error *err)
{
    int32_t cls = -1, sep = -1;
    if (template_token(node, "cls", &cls, err) < 0 || template_token(node, "sep", &sep, err) < 0)
        return -1;
    const int second = is_roberta ? 0 : 1;
    const tok_template_item single[] = {{cls, 0}, {TOK_TEXT, 0}, {sep, 0}};
    const tok_template_item behind[] = {{sep, 0}, {TOK_SECOND, (uint8_t)second}, {sep, (uint8_t)second}};
    for (int i = 0; i < 3; i++)
        t->single.item[t->single.n++] = t->pair.item[t->pair.n++] = single[i];
    for (int i = is_roberta ? 0 : 1; i < 3; i++)
        t->pair.item[t->pair.n++] = behind[i];
    return 0;
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

/* {"Sequence": {"id": "A", "type_id": 0}} or {"SpecialToken": {...}} */
static int template_item(const ty_doc *node, const ty_doc *item, bool of_pair, template_rows *t, ty_error *err)
{
    const ty_doc *special = ty_doc_find(item, "SpecialToken"), *text = ty_doc_find(item, "Sequence");
    const char *which;
    int64_t type;
    if (special == NULL && text == NULL)
        return ty_doc_error(item, err, TY_E_TYPE, NULL, "expected a SpecialToken or a Sequence");
    if (tok_get_int(special != NULL ? special : text, "type_id", 0, &type, err) < 0)
        return -1;
    if (special != NULL)
        return template_special(node, special, type, t, err);
    if (tok_get_string(text, "id", "A", &which, err) < 0)
        return -1;
    return template_put(t, of_pair && strcmp(which, "B") == 0 ? TOK_SECOND : TOK_TEXT, type, err);
}

static int template_read_list(const ty_doc *node, const char *key, bool of_pair, template_rows *t, ty_error *err)
{
    const ty_doc *list = ty_doc_find(node, key);
    if (list == NULL && of_pair)
        return 0;
    if (list == NULL || list->kind != TY_DOC_LIST)
        return ty_doc_error(node, err, TY_E_TYPE, NULL, "expected a list \"%s\"", key);
    for (uint32_t i = 0; i < list->n_items; i++)
        if (template_item(node, &list->items[i], of_pair, t, err) < 0)
            return -1;
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

static int template_take(template_both *t, const template_both *one, ty_error *err)
{
    t->pair = one->pair;
    if (t->n_read++ > 0)
        t->pair.n = 0;
    return template_wrap(&t->single, &one->single, err);
}

static int template_read(const ty_doc *node, int depth, template_both *t, ty_error *err)
{
    const char *type;
    if (node == NULL || node->kind == TY_DOC_NULL)
        return 0;
    if (tok_get_type(node, &type, err) < 0)
        return -1;
    template_both one = {.n_read = 0};
    int rc = 0;
    if (strcmp(type, "TemplateProcessing") == 0) {
        rc = template_read_list(node, "single", false, &one.single, err);
        rc = rc < 0 ? -1 : template_read_list(node, "pair", true, &one.pair, err);
    } else if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0)
        rc = template_read_bert(node, type[0] == 'R', &one, err);
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
    return rc < 0 ? -1 : template_take(t, &one, err);
}

static void template_keep(const template_rows *t, ty_arena *a, tok_template *out)
{
    *out = (tok_template){.item = ty_arena_copy(a, t->item, (size_t)t->n * sizeof *t->item), .n = t->n};
    for (int i = 0; i < t->n; i++)
        out->n_special += t->item[i].id >= 0;
}

int tok_template_read(const ty_doc *node, ty_arena *a, tok_template *single, tok_template *pair, ty_error *err)
{
    template_both t = {.single = {.item = {{TOK_TEXT, 0}}, .n = 1},
                       .pair = {.item = {{TOK_TEXT, 0}, {TOK_SECOND, 1}}, .n = 2}};
    if (template_read(node, 0, &t, err) < 0)
        return ty_error_wrap(err, "post_processor");
    template_keep(&t.single, a, single);
    template_keep(&t.pair, a, pair);
    return 0;
}
