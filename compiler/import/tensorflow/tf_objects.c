/* tf_objects.c - what a TF2 file says of its variables as objects of a program, and how they are named.
 *
 * Objects form a graph; a key of the checkpoint is the path of names that leads from the root to a variable's object
 * ("layer/kernel/.ATTRIBUTES/VARIABLE_VALUE"). A function's last arguments are bound to objects, which tells what
 * variable a call in the graph takes. TF1 files have no objects but a collection of trained variables.
 */
#include "compiler/import/tensorflow/tf_file.h"

#include <string.h>

#define VALUE_SUFFIX "/.ATTRIBUTES/VARIABLE_VALUE"

/* ---- paths ---- */

/* The child of an object by a part of a key, in which "/" is written ".S" and "." is "..". */
static int find_child(const tf_object_graph *g, int at, const char *part, size_t n)
{
    const tf_saved_object *o = TF_AT(g->nodes, tf_saved_object, at);
    char name[512];
    size_t k = 0;
    for (size_t i = 0; i < n && k + 1 < sizeof name; i++) {
        char c = part[i];
        if (c == '.' && i + 1 < n)
            c = part[++i] == 'S' ? '/' : part[i];
        name[k++] = c;
    }
    name[k] = 0;
    for (size_t i = 0; i < o->children.n; i++) {
        const tf_child *c = TF_AT(o->children, tf_child, i);
        if (strcmp(c->name, name) == 0 && c->node >= 0 && (size_t)c->node < g->nodes.n)
            return (int)c->node;
    }
    return -1;
}

/* Number of the object that a key leads to, or -1. */
static int find_object(const tf_object_graph *g, const char *key)
{
    int o = g->nodes.n ? 0 : -1;
    const char *end = strstr(key, VALUE_SUFFIX);
    for (const char *at = key; end && o >= 0 && at < end;) {
        size_t n = strcspn(at, "/");
        o = find_child(g, o, at, n);
        at += n + 1;
    }
    return end ? o : -1;
}

static const tf_saved_variable *variable_of(const tf_object_graph *g, int64_t o)
{
    return o >= 0 && (size_t)o < g->nodes.n ? TF_AT(g->nodes, tf_saved_object, o)->variable : NULL;
}

/* ---- binding ---- */

static const tf_saved_function *find_saved_function(const tf_object_graph *g, const char *name)
{
    for (size_t i = 0; i < g->functions.n; i++)
        if (strcmp(TF_AT(g->functions, tf_saved_function_entry, i)->key, name) == 0)
            return TF_AT(g->functions, tf_saved_function_entry, i)->value;
    return NULL;
}

/* The last inputs of a call are what the function is bound to. */
static void bind_call(tf_file *f, const tf_raw *call, const tf_saved_function *fn, tf_entry *const *entry_of)
{
    const tf_object_graph *g = f->meta->objects;
    int n = 0;
    for (int i = 0; i < call->n_in; i++)
        n += call->in[i].kind != TF_IN_CONTROL;
    for (int i = 0; i < n; i++) {
        int64_t k = i - n + (int64_t)fn->bound.n;
        if (k < 0 || call->in[i].kind != TF_IN_NODE)
            continue;
        int v = f->body->raw[call->in[i].at].variable;
        int64_t o = *TF_AT(fn->bound, int64_t, k);
        if (v < 0 || !variable_of(g, o) || f->entry[v] || !entry_of[o])
            continue;
        f->entry[v] = entry_of[o];
        f->variable[v].key = entry_of[o]->key;
        f->object[v] = variable_of(g, o);
    }
}

int tf_bind_objects(tf_file *f, ty_error *err)
{
    const tf_object_graph *g = f->meta ? f->meta->objects : NULL;
    if (!g || g->nodes.n == 0)
        return 0;
    tf_entry **entry_of = TY_NEW_ARRAY(&f->arena, tf_entry *, g->nodes.n);
    for (int i = 0; i < f->bundle.n_entries; i++) {
        int o = find_object(g, f->bundle.entry[i].key);
        if (o >= 0)
            entry_of[o] = &f->bundle.entry[i];
    }
    for (int i = 0; i < f->body->n; i++) {
        tf_raw *raw = &f->body->raw[i];
        int k = tf_called(f, f->body, raw, err);
        if (k < -1 || (k >= 0 && tf_body_inputs(f, f->body, raw, err) < 0))
            return -1;
        tf_node view = tf_raw_view(raw);
        const char *name = k < 0 ? NULL : tf_attr_function(&view, "f");
        const tf_saved_function *fn = name ? find_saved_function(g, name) : NULL;
        if (fn)
            bind_call(f, raw, fn, entry_of);
    }
    return 0;
}

/* ---- trained or not ---- */

static const tf_collection *find_collection(const tf_file *f, const char *name)
{
    for (size_t i = 0; f->meta && i < f->meta->collections.n; i++)
        if (strcmp(TF_AT(f->meta->collections, tf_collection_entry, i)->key, name) == 0)
            return TF_AT(f->meta->collections, tf_collection_entry, i)->value;
    return NULL;
}

/* TF1: "kernel:0" in a collection. */
static int mark_collection(tf_file *f, const tf_collection *c, ty_error *err)
{
    const ty_wire_list *list = &c->bytes->values;
    for (size_t i = 0; i < list->n; i++) {
        tf_variable_def def = {.name = ""};
        if (tf_read(&tf_variable_def_message, *TF_AT(*list, ty_bytes, i), &f->arena, &def, err) < 0)
            return -1;
        int at = ty_names_find(&f->body->names, ty_arena_strndup(&f->arena, def.name, strcspn(def.name, ":")));
        int v = at >= 0 ? f->body->raw[at].variable : -1;
        if (v >= 0)
            f->variable[v].trainable = true;
    }
    return 0;
}

int tf_mark_trainable(tf_file *f, ty_error *err)
{
    const tf_collection *c = find_collection(f, "trainable_variables");
    if (c && c->bytes)
        return mark_collection(f, c, err);
    const tf_object_graph *g = f->meta ? f->meta->objects : NULL;
    for (int i = 0; i < f->n_variables; i++) {
        tf_variable *v = &f->variable[i];
        if (!f->object[i] && g && v->key)
            f->object[i] = variable_of(g, find_object(g, v->key));
        v->trainable = f->object[i] ? f->object[i]->trainable != 0 : !f->meta;
    }
    return 0;
}

/* ---- names ---- */

/* A file may hold the same variable twice, of which a signature uses one. */
static void mark_used(tf_file *f, const tf_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++) {
        int v = g->node[i].variable >= 0 ? g->node[i].variable : g->node[i].constant;
        if (v >= 0)
            f->variable[v].is_used = true;
    }
}

/* The object's own name where no other variable in use has it; else the path of the key; else the node's name. */
static void name_variable(tf_file *f, const ty_names *count, int i)
{
    tf_variable *v = &f->variable[i];
    const char *end = v->key ? strstr(v->key, VALUE_SUFFIX) : NULL;
    if (f->object[i] && ty_names_find(count, f->object[i]->name) == 1)
        v->name = f->object[i]->name;
    else if (f->object[i] && end)
        v->name = ty_arena_strndup(&f->arena, v->key, (size_t)(end - v->key));
}

int tf_name_variables(tf_file *f, ty_error *err)
{
    const tf_signature *used[] = {f->chosen, f->train};
    ty_arena arena;
    int rc = 0;
    ty_arena_init(&arena);
    for (int k = 0; k < 2 && rc == 0; k++) {
        tf_graph *g;
        rc = used[k] ? tf_signature_graph(f, used[k], NULL, NULL, &arena, &g, err) : 0;
        if (rc == 0 && used[k])
            mark_used(f, g);
    }
    ty_names count;
    ty_names_init(&count, &arena);
    for (int i = 0; i < f->n_variables && rc == 0; i++)
        if (f->variable[i].is_used && f->object[i]) {
            int n = ty_names_find(&count, f->object[i]->name);
            ty_names_put(&count, f->object[i]->name, n < 0 ? 1 : n + 1);
        }
    for (int i = 0; i < f->n_variables && rc == 0; i++)
        if (f->variable[i].is_used)
            name_variable(f, &count, i);
    ty_arena_fini(&arena);
    return rc;
}
