/* keras_layers_noise.c - what acts in training alone: noise and dropouts of other kinds than Dropout.
 *
 * Random numbers are of our generator: their distribution is Keras', not their values.
 */
#include "compiler/import/keras/keras.h"

#include <math.h>
#include <string.h>

/* A rate in [0, most); false (and failed) if it is outside, or has nothing to do: then x is the result. */
static bool noise_acts(keras_call *c, const char *key, double most, bool with_most, double *rate)
{
    *rate = keras_number(c, key, 0);
    if (c->failed)
        return false;
    if (!(*rate >= 0 && (*rate < most || (with_most && *rate == most)))) {
        keras_fail_key(c, key, with_most ? "expected 0 to %g" : "expected 0 to less than %g", most);
        return false;
    }
    if (c->n_in != 1) {
        keras_fail(c, TY_E_SHAPE, "expected one input, found %d", c->n_in);
        return false;
    }
    if (c->training && *rate > 0)
        return true;
    keras_set(c, 0, c->in[0]);
    return false;
}

/* x + stddev z */
void keras_call_gaussian_noise(keras_call *c)
{
    double stddev;
    if (!noise_acts(c, "stddev", 1, true, &stddev))
        return;
    ty_val x = keras_float(c, c->in[0]);
    if (x == TY_NONE)
        return;
    const ty_type t = *ty_graph_type(c->g, x);
    ty_val z = ty_b_mul_s(c->g, keras_normal(c, t.rank, t.dim), stddev);
    keras_set(c, 0, ty_b_add(c->g, x, ty_b_cast(c->g, z, (ty_dtype)t.dtype)));
}

/* x (1 + sqrt(rate / (1 - rate)) z) */
void keras_call_gaussian_dropout(keras_call *c)
{
    double rate;
    if (!noise_acts(c, "rate", 1, false, &rate))
        return;
    ty_val x = keras_float(c, c->in[0]);
    if (x == TY_NONE)
        return;
    const ty_type t = *ty_graph_type(c->g, x);
    ty_val z = ty_b_add_s(c->g, ty_b_mul_s(c->g, keras_normal(c, t.rank, t.dim), sqrt(rate / (1 - rate))), 1);
    keras_set(c, 0, ty_b_mul(c->g, x, ty_b_cast(c->g, z, (ty_dtype)t.dtype)));
}

/* True where numbers that are drawn anew are at least rate, of a shape that may have 1s. */
static ty_val noise_kept(keras_call *c, double rate, int rank, const int64_t *dim)
{
    return ty_b_le(c->g, ty_b_full(c->g, TY_F32, rank, dim, rate), keras_uniform(c, rank, dim));
}

/* Numbers of `dim` decide what of x is 0; the rest is divided by what share is kept. */
static void noise_drop(keras_call *c, ty_val x, double rate, int rank, const int64_t *dim)
{
    ty_val kept = noise_kept(c, rate, rank, dim), scaled = ty_b_mul_s(c->g, x, 1 / (1 - rate));
    keras_set(c, 0, ty_b_select(c->g, kept, scaled, ty_b_full_like(c->g, x, 0)));
}

/* Whole channels of [N, spatial.., C]; arg: axes of space. */
void keras_call_spatial_dropout(keras_call *c)
{
    int n = c->layer->row->arg;
    double rate;
    bool first = n > 1 && keras_channels_first(c);
    if (c->failed || !noise_acts(c, "rate", 1, false, &rate))
        return;
    ty_val x = keras_float(c, c->in[0]);
    if (x == TY_NONE)
        return;
    const ty_type t = *ty_graph_type(c->g, x);
    if (t.rank != n + 2) {
        keras_fail(c, TY_E_SHAPE, "expected an input of %d dimensions, found %d", n + 2, t.rank);
        return;
    }
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        dim[i] = i == 0 || i == (first ? 1 : t.rank - 1) ? t.dim[i] : 1;
    noise_drop(c, x, rate, t.rank, dim);
}

/* Whole samples, as keras.applications' ConvNeXt has it: x / keep times floor(keep + u). */
void keras_call_stochastic_depth(keras_call *c)
{
    double rate;
    int64_t dim[TY_MAX_RANK];
    if (!noise_acts(c, "drop_path_rate", 1, false, &rate))
        return;
    ty_val x = keras_float(c, c->in[0]);
    int rank = ty_b_rank(c->g, x);
    for (int i = 0; i < rank; i++)
        dim[i] = i == 0 ? ty_b_dim(c->g, x, 0) : 1;
    noise_drop(c, x, rate, rank, dim);
}

/* Dims of noise_shape: null stands for the input's. */
static bool noise_shape(keras_call *c, const ty_type *t, int64_t *dim)
{
    const ty_doc *given = keras_config(c, "noise_shape");
    memcpy(dim, t->dim, sizeof t->dim);
    for (int i = 0; i < t->rank && given; i++) {
        const ty_doc *d = ty_doc_len(given) == (size_t)t->rank ? ty_doc_at(given, (size_t)i) : NULL;
        bool is_number = d && d->kind == TY_DOC_INT && (d->integer == 1 || d->integer == t->dim[i]);
        if (!is_number && !(d && d->kind == TY_DOC_NULL)) {
            keras_fail_key(c, "noise_shape", "expected %d numbers, each 1, null or the input's", t->rank);
            return false;
        }
        dim[i] = is_number ? d->integer : t->dim[i];
    }
    return true;
}

/* What is dropped takes SELU's lowest value; then mean and variance are brought back. */
void keras_call_alpha_dropout(keras_call *c)
{
    static const double alpha_p = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
    ty_graph *g = c->g;
    double rate;
    int64_t dim[TY_MAX_RANK];
    if (!noise_acts(c, "rate", 1, false, &rate))
        return;
    ty_val x = keras_float(c, c->in[0]);
    if (x == TY_NONE || !noise_shape(c, ty_graph_type(g, x), dim))
        return;
    double a = 1 / sqrt((1 - rate) * (1 + rate * alpha_p * alpha_p)), b = -a * alpha_p * rate;
    ty_val kept = noise_kept(c, rate, ty_b_rank(g, x), dim);
    ty_val y = ty_b_select(g, kept, x, ty_b_full_like(g, x, alpha_p));
    keras_set(c, 0, ty_b_add_s(g, ty_b_mul_s(g, y, a), b));
}
