/* tf_attr.c - attributes of nodes by name. */
#include "compiler/import/tensorflow/tf_file.h"

#include <stdio.h>
#include <string.h>

const tf_attr_value *tf_find_attr(const tf_node *n, const char *key)
{
    for (int i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attr[i].key, key) == 0)
            return n->attr[i].value;
    return NULL;
}

int64_t tf_attr_int(const tf_node *n, const char *key, int64_t absent)
{
    const tf_attr_value *v = tf_find_attr(n, key);
    return v && v->has_i ? v->i : absent;
}

double tf_attr_float(const tf_node *n, const char *key, double absent)
{
    const tf_attr_value *v = tf_find_attr(n, key);
    return v && v->has_f ? (double)v->f : absent;
}

bool tf_attr_bool(const tf_node *n, const char *key, bool absent)
{
    const tf_attr_value *v = tf_find_attr(n, key);
    return v && v->has_b ? v->b != 0 : absent;
}

int64_t tf_attr_type(const tf_node *n, const char *key, int64_t absent)
{
    const tf_attr_value *v = tf_find_attr(n, key);
    return v && v->has_type ? v->type : absent;
}

const char *tf_attr_text(const tf_node *n, ty_arena *arena, const char *key, const char *absent)
{
    const tf_attr_value *v = tf_find_attr(n, key);
    return v && v->has_s ? ty_arena_strndup(arena, (const char *)v->s.data, v->s.n) : absent;
}

bool tf_attr_ints(const tf_node *n, const char *key, const int64_t **out, int64_t *n_out)
{
    const tf_attr_value *v = tf_find_attr(n, key);
    if (!v || !v->list)
        return false;
    *out = v->list->i.data;
    *n_out = (int64_t)v->list->i.n;
    return true;
}

bool tf_attr_floats(const tf_node *n, ty_arena *arena, const char *key, const double **out, int64_t *n_out)
{
    const tf_attr_value *v = tf_find_attr(n, key);
    if (!v || !v->list)
        return false;
    double *all = TY_NEW_ARRAY(arena, double, v->list->f.n + 1);
    for (size_t i = 0; i < v->list->f.n; i++) {
        float f;
        memcpy(&f, (const char *)v->list->f.data + i * sizeof f, sizeof f);
        all[i] = (double)f;
    }
    *out = all;
    *n_out = (int64_t)v->list->f.n;
    return true;
}

bool tf_attr_shape(const tf_node *n, ty_arena *arena, const char *key, tf_shape *out)
{
    const tf_attr_value *v = tf_find_attr(n, key);
    int64_t *dim = TY_NEW_ARRAY(arena, int64_t, TY_MAX_RANK);
    out->dim = dim;
    return v && v->shape && tf_read_shape(v->shape, &out->rank, dim);
}

const char *tf_attr_function(const tf_node *n, const char *key)
{
    const tf_attr_value *v = tf_find_attr(n, key);
    return v && v->func ? v->func->name : NULL;
}

const char *tf_node_place(const tf_node *n, char *out, size_t n_out)
{
    int at = snprintf(out, n_out, "node \"%.120s\" (%.60s)", n->name, n->op);
    if (n->scope && at > 0 && (size_t)at < n_out)
        snprintf(out + at, n_out - (size_t)at, " in function \"%.80s\" called by \"%.80s\"", n->scope->function,
                 n->scope->call);
    return out;
}
