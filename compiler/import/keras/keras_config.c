/* keras_config.c - how a layer's functions read its configuration, and how they refuse. */
#include "compiler/import/keras/keras_walk.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- refusing -----------------------------------------------------------------------------------------------------
 */

void keras_fail(keras_call *c, ty_code code, const char *fmt, ...)
{
    if (c->failed)
        return;
    char text[TY_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    c->failed = true;
    ty_error_set(&c->err, code, "%s: %s", c->layer->class_name, text);
}

void keras_fail_key(keras_call *c, const char *key, const char *expected, ...)
{
    if (c->failed)
        return;
    char text[300], value[100];
    va_list args;
    va_start(args, expected);
    vsnprintf(text, sizeof text, expected, args);
    va_end(args);
    const ty_doc *d = ty_doc_find(c->config, key);
    c->blamed = d;
    keras_fail(c, TY_E_ATTRIBUTE, "%s: expected %s, found %s", key, text,
               d ? ty_doc_describe(d, value, sizeof value) : "nothing");
}

void keras_help(keras_call *c, const char *fmt, ...)
{
    char text[TY_ERROR_HELP_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (c->failed)
        ty_error_help(&c->err, "%s", text);
}

/* ---- reading ------------------------------------------------------------------------------------------------------
 */

const ty_doc *keras_config(const keras_call *c, const char *key)
{
    const ty_doc *d = ty_doc_find(c->config, key);
    return d && d->kind != TY_DOC_NULL ? d : NULL;
}

/* Integers may be spelt 3.0. */
static bool config_int(const ty_doc *d, int64_t *out)
{
    if (d->kind == TY_DOC_INT)
        *out = d->integer;
    else if (d->kind == TY_DOC_FLOAT && fabs(d->number) < 0x1p53 && floor(d->number) == d->number)
        *out = (int64_t)d->number;
    else
        return false;
    return true;
}

int64_t keras_int(keras_call *c, const char *key, int64_t absent)
{
    const ty_doc *d = keras_config(c, key);
    if (d && d->kind == TY_DOC_LIST && d->n_items == 1) /* as Keras 2 has an axis */
        d = ty_doc_at(d, 0);
    if (d && !config_int(d, &absent))
        keras_fail_key(c, key, "an integer");
    return absent;
}

double keras_number(keras_call *c, const char *key, double absent)
{
    const ty_doc *d = keras_config(c, key);
    /* initial values and thresholds of Keras may be arrays of one number */
    const ty_doc *value = ty_doc_find(ty_doc_find(d, "config"), "value");
    if (value)
        d = value;
    if (d && (ty_doc_float(d, &absent, NULL) < 0 || !isfinite(absent))) {
        keras_fail_key(c, key, "a number");
        return 0;
    }
    return absent;
}

bool keras_flag(keras_call *c, const char *key, bool absent)
{
    const ty_doc *d = keras_config(c, key);
    if (d && d->kind == TY_DOC_INT)
        return d->integer != 0;
    if (d && ty_doc_bool(d, &absent, NULL) < 0)
        keras_fail_key(c, key, "true or false");
    return absent;
}

const char *keras_text(keras_call *c, const char *key, const char *absent)
{
    const ty_doc *d = keras_config(c, key);
    if (d && d->kind != TY_DOC_STRING)
        keras_fail_key(c, key, "a string");
    return d && d->kind == TY_DOC_STRING ? d->string : absent;
}

int keras_choice(keras_call *c, const char *key, const char *absent, const char *const *choices)
{
    const char *text = keras_text(c, key, absent);
    char list[200] = "";
    size_t len = 0;
    for (int i = 0; choices[i]; i++) {
        if (text && strcmp(text, choices[i]) == 0)
            return i;
        if (len < sizeof list)
            len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", i ? ", " : "", choices[i]);
    }
    keras_fail_key(c, key, "one of %s", list);
    return 0;
}

int keras_list(keras_call *c, const char *key, int max, int64_t *out)
{
    const ty_doc *d = keras_config(c, key);
    if (!d)
        return -1;
    if (config_int(d, out) && max > 0)
        return 1;
    bool sound = d->kind == TY_DOC_LIST && d->n_items <= (uint32_t)max;
    for (uint32_t i = 0; sound && i < d->n_items; i++)
        sound = config_int(ty_doc_at(d, i), &out[i]);
    if (!sound)
        keras_fail_key(c, key, "at most %d integers", max);
    return sound ? (int)d->n_items : -1;
}

bool keras_ints(keras_call *c, const char *key, int n, int64_t fill, int64_t *out)
{
    int64_t list[16];
    for (int i = 0; i < n; i++)
        out[i] = fill;
    int found = n <= 16 ? keras_list(c, key, 16, list) : 0;
    if (found < 0)
        return !c->failed;
    if (found != 1 && found != n) {
        keras_fail_key(c, key, "%d integers, or one", n);
        return false;
    }
    for (int i = 0; i < n; i++)
        out[i] = list[found == 1 ? 0 : i];
    return true;
}

bool keras_channels_first(keras_call *c)
{
    static const char *const choices[] = {"channels_last", "channels_first", NULL};
    return keras_choice(c, "data_format", "channels_last", choices) == 1;
}

bool keras_axis(keras_call *c, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank) {
        keras_fail(c, TY_E_SHAPE, "axis %lld of a tensor with %d axes", (long long)axis, rank);
        return false;
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

/* ---- values -------------------------------------------------------------------------------------------------------
 */

ty_val keras_float(keras_call *c, ty_val x)
{
    if (x == TY_NONE || ty_dtype_is_float(ty_b_dtype(c->g, x)))
        return x;
    return ty_b_cast(c->g, x, TY_F32);
}

ty_val keras_mask_to(keras_call *c, ty_val mask, int rank)
{
    if (mask == TY_NONE)
        return TY_NONE;
    int64_t dim[TY_MAX_RANK];
    const ty_type *t = ty_graph_type(c->g, mask);
    for (int i = 0; i < rank; i++)
        dim[i] = i < t->rank ? t->dim[i] : 1;
    return ty_b_reshape(c->g, mask, rank, dim);
}

/* ---- random numbers -----------------------------------------------------------------------------------------------
 * Word i of a stream is a pure function of seed, step and i (base/rng.h): nothing is kept between steps.
 */

static ty_val config_words(keras_call *c, int rank, const int64_t *dim)
{
    keras_walk *w = c->walk;
    if (w->seed == TY_NONE || w->step == TY_NONE) {
        keras_fail(c, TY_E_UNSUPPORTED, "needs random numbers, and there is no seed");
        return TY_NONE;
    }
    return ty_b_rng(c->g, w->seed, w->step, w->n_random++, rank, dim);
}

ty_val keras_uniform(keras_call *c, int rank, const int64_t *dim)
{
    ty_val words = config_words(c, rank, dim);
    if (words == TY_NONE)
        return TY_NONE;
    ty_val bits = ty_b_binary(c->g, TY_OP_SHR, words, ty_b_full(c->g, TY_U32, rank, dim, 8));
    return ty_b_mul_s(c->g, ty_b_cast(c->g, bits, TY_F32), 0x1p-24);
}

/* Box and Muller; 1 - u is never 0. */
ty_val keras_normal(keras_call *c, int rank, const int64_t *dim)
{
    ty_val u = keras_uniform(c, rank, dim), v = keras_uniform(c, rank, dim);
    if (u == TY_NONE || v == TY_NONE)
        return TY_NONE;
    ty_val radius =
        ty_b_unary(c->g, TY_OP_SQRT, ty_b_mul_s(c->g, ty_b_log(c->g, ty_b_add_s(c->g, ty_b_neg(c->g, u), 1)), -2));
    return ty_b_mul(c->g, radius, ty_b_unary(c->g, TY_OP_COS, ty_b_mul_s(c->g, v, 2 * M_PI)));
}

int keras_replicas(const keras_call *c)
{
    return c->walk->replicas > 1 ? c->walk->replicas : 1;
}
