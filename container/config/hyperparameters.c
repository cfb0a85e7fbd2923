/* hyperparameters.c - decode, then sort into the user's and the platform's. */
#include "container/config/hyperparameters.h"

#include "base/buf.h"
#include "container/config/python_json.h"
#include "container/config/python_text.h"

#include <string.h>

#define HYPERPARAMETER_MAX_BYTES ((size_t)64 << 20) /* of one value's text; the file's own limit is far below */

static ty_value hyperparameter_decode(ty_arena *a, const ty_doc *doc)
{
    ty_value v;

    if (doc->kind != TY_DOC_STRING)
        return ty_value_from_doc(a, doc);
    if (ty_python_json_read(a, doc->string, strlen(doc->string), &v))
        return v;
    return ty_value_string(a, doc->string);
}

/* Writes both texts of the value, so that whatever a script is given later has been seen to be free of NULs. */
static int hyperparameter_texts(ty_hyperparameter *item, ty_arena *a, const ty_doc *doc, ty_error *err)
{
    ty_buf text, argument;

    ty_buf_init(&text, HYPERPARAMETER_MAX_BYTES);
    ty_buf_init(&argument, HYPERPARAMETER_MAX_BYTES);
    int rc = ty_python_environment(&text, &item->value) | ty_python_argument(&argument, &item->value);
    if (rc < 0) {
        ty_doc_error(doc, err, TY_E_LIMIT, NULL, "hyperparameter \"%s\" is too long", item->name);
    } else if (strlen(text.data) != text.len || strlen(argument.data) != argument.len) {
        rc = -1;
        ty_doc_error(doc, err, TY_E_RANGE, NULL,
                     "hyperparameter \"%s\" holds a NUL character, which no variable or argument can carry",
                     item->name);
        ty_error_help(err, "remove \\u0000 from the value");
    } else {
        item->text = ty_arena_strdup(a, text.data);
    }
    ty_buf_fini(&text);
    ty_buf_fini(&argument);
    return rc;
}

static int hyperparameter_init(ty_hyperparameter *item, ty_arena *a, const ty_doc *doc, ty_error *err)
{
    item->name = ty_arena_strdup(a, doc->key);
    item->kind = ty_reserved_kind_of(item->name);
    item->value = hyperparameter_decode(a, doc);
    return hyperparameter_texts(item, a, doc, err);
}

int ty_hyperparameters_init(ty_hyperparameters *h, ty_arena *a, const ty_doc *doc, ty_error *err)
{
    *h = (ty_hyperparameters){.user = ty_value_dict(), .known = ty_value_dict(), .framework = ty_value_dict()};
    if (doc == NULL)
        return 0;
    if (ty_doc_expect(doc, TY_DOC_MAP, err) < 0)
        return -1;
    h->items = TY_NEW_ARRAY(a, ty_hyperparameter, doc->n_items);
    for (size_t i = 0; i < doc->n_items; i++) {
        ty_hyperparameter *item = &h->items[h->n_items];
        ty_value *group;

        if (hyperparameter_init(item, a, &doc->items[i], err) < 0)
            return -1;
        h->n_items++;
        group = item->kind == TY_RESERVED_NOT ? &h->user : item->kind == TY_RESERVED_KNOWN ? &h->known : &h->framework;
        ty_value_put(a, group, ty_value_string(a, item->name), item->value);
    }
    return 0;
}

const ty_hyperparameter *ty_hyperparameters_find(const ty_hyperparameters *h, const char *name)
{
    for (size_t i = 0; i < h->n_items; i++)
        if (strcmp(h->items[i].name, name) == 0)
            return &h->items[i];
    return NULL;
}
