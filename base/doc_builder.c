/* doc_builder.c - assembling trees from a reader's events. */
#include "base/doc_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ty_doc_builder_init(ty_doc_builder *b, ty_arena *arena, const char *name, const char *text, size_t len,
                        const ty_doc_limits *limits, ty_error *err)
{
    memset(b, 0, offsetof(ty_doc_builder, levels));
    if (len > limits->max_bytes) {
        ty_error_set(err, TY_E_SYNTAX, "%s: %zu bytes, larger than the limit of %zu", name, len, limits->max_bytes);
        return ty_error_at(err, "%s", name);
    }
    ty_doc_source *source = TY_NEW(arena, ty_doc_source);
    source->name = ty_arena_strdup(arena, name);
    char *copy = ty_arena_alloc(arena, len + 1);
    if (len)
        memcpy(copy, text, len);
    source->text = copy;
    source->len = len;
    b->arena = arena;
    b->source = source;
    b->max_depth = limits->max_depth < TY_DOC_MAX_DEPTH ? limits->max_depth : TY_DOC_MAX_DEPTH;
    b->max_nodes = limits->max_nodes ? limits->max_nodes : TY_DOC_MAX_NODES;
    return 0;
}

void ty_doc_builder_fini(ty_doc_builder *b)
{
    free(b->stack);
    b->stack = NULL;
}

void ty_doc_builder_key(ty_doc_builder *b, const char *key, uint32_t line, uint32_t column)
{
    b->key = key;
    b->key_line = line;
    b->key_column = column;
}

static void take_key(ty_doc_builder *b, ty_doc *d)
{
    d->source = b->source;
    d->key = b->key;
    d->key_line = b->key_line;
    d->key_column = b->key_column;
    b->key = NULL;
}

static int count_node(ty_doc_builder *b, const ty_doc *d, ty_error *err)
{
    if (b->n_nodes++ < b->max_nodes)
        return 0;
    return ty_doc_error(d, err, TY_E_SYNTAX, NULL, "more than the limit of %u values", b->max_nodes);
}

static int push(ty_doc_builder *b, const ty_doc *d, ty_error *err)
{
    if (b->n_stack == b->cap_stack) {
        size_t cap = b->cap_stack ? b->cap_stack * 2 : 64;
        ty_doc *grown = realloc(b->stack, cap * sizeof *grown);
        if (!grown)
            return ty_error_set(err, TY_E_LIMIT, "no memory for a tree of %u values", b->n_nodes);
        b->stack = grown;
        b->cap_stack = cap;
    }
    b->stack[b->n_stack++] = *d;
    b->done = b->depth == 0;
    return 0;
}

int ty_doc_builder_scalar(ty_doc_builder *b, ty_doc scalar, ty_error *err)
{
    take_key(b, &scalar);
    return count_node(b, &scalar, err) < 0 ? -1 : push(b, &scalar, err);
}

int ty_doc_builder_open(ty_doc_builder *b, ty_doc_kind kind, uint32_t line, uint32_t column, ty_error *err)
{
    ty_doc container = {.kind = kind, .line = line, .column = column, .raw = ""};
    take_key(b, &container);
    if (count_node(b, &container, err) < 0)
        return -1;
    if (b->depth >= b->max_depth)
        return ty_doc_error(&container, err, TY_E_SYNTAX, NULL, "nested deeper than the limit of %d levels",
                            b->max_depth);
    b->levels[b->depth].container = container;
    b->levels[b->depth].first = b->n_stack;
    b->depth++;
    return 0;
}

/* Equal keys side by side, the earlier of the file first. */
static int compare_keys(const void *a, const void *b)
{
    const ty_doc *x = *(const ty_doc *const *)a, *y = *(const ty_doc *const *)b;
    int order = strcmp(x->key, y->key);
    return order ? order : x < y ? -1 : x > y;
}

static int refuse_duplicate(const ty_doc *first, const ty_doc *second, ty_error *err)
{
    char note[64];
    snprintf(note, sizeof note, "it stands first in line %u", first->key_line);
    return ty_doc_error_key(second, err, TY_E_DUPLICATE, note, "duplicate key \"%s\"", second->key);
}

static int check_duplicates(const ty_doc *map, ty_error *err)
{
    enum { FEW = 12 }; /* below this, comparing all pairs is quicker than sorting */
    size_t n = map->n_items;
    if (n <= FEW) {
        for (size_t i = 1; i < n; i++)
            for (size_t j = 0; j < i; j++)
                if (strcmp(map->items[i].key, map->items[j].key) == 0)
                    return refuse_duplicate(&map->items[j], &map->items[i], err);
        return 0;
    }
    const ty_doc **sorted = malloc(n * sizeof *sorted);
    if (!sorted)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a map of %zu keys", n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &map->items[i];
    qsort(sorted, n, sizeof *sorted, compare_keys);
    int rc = 0;
    for (size_t i = 1; i < n && rc == 0; i++)
        if (strcmp(sorted[i]->key, sorted[i - 1]->key) == 0)
            rc = refuse_duplicate(sorted[i - 1], sorted[i], err);
    free(sorted);
    return rc;
}

int ty_doc_builder_close(ty_doc_builder *b, ty_error *err)
{
    b->depth--;
    ty_doc *container = &b->levels[b->depth].container;
    size_t first = b->levels[b->depth].first;
    size_t n = b->n_stack - first;
    container->items = TY_NEW_ARRAY(b->arena, ty_doc, n);
    container->n_items = (uint32_t)n;
    if (n)
        memcpy(container->items, b->stack + first, n * sizeof(ty_doc));
    b->n_stack = first;
    if (container->kind == TY_DOC_MAP && check_duplicates(container, err) < 0)
        return -1;
    return push(b, container, err);
}

ty_doc *ty_doc_builder_root(ty_doc_builder *b)
{
    return ty_arena_copy(b->arena, &b->stack[0], sizeof b->stack[0]);
}

/* Bytes of the character that begins with c; 0 if none does. */
static size_t utf8_length(unsigned char c)
{
    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4)
        return 0;
    return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

const char *ty_utf8_fault(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + len;
    while (p < end) {
        size_t n = utf8_length(*p);
        if (n == 0 || (size_t)(end - p) < n)
            return (const char *)p;
        for (size_t i = 1; i < n; i++)
            if ((p[i] & 0xc0) != 0x80)
                return (const char *)p;
        bool is_overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
        bool is_surrogate = p[0] == 0xed && p[1] >= 0xa0;
        bool is_beyond = p[0] == 0xf4 && p[1] >= 0x90;
        if (n > 2 && (is_overlong || is_surrogate || is_beyond))
            return (const char *)p;
        p += n;
    }
    return NULL;
}
