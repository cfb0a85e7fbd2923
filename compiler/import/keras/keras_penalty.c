/* keras_penalty.c - regularizers and constraints of configurations. Sources: keras/src/regularizers/regularizers.py,
 * keras/src/constraints/constraints.py. */
#include "compiler/import/keras/keras_walk.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* {"class_name": "L2", "config": {...}}, or a name with all defaults. */
static const char *penalty_class(const ty_doc *d)
{
    const char *name = keras_string(d);
    return name ? name : keras_string(ty_doc_find(d, "class_name"));
}

static bool penalty_is(const char *name, const char *class_name, const char *small)
{
    return name && (strcmp(name, class_name) == 0 || strcmp(name, small) == 0);
}

static double penalty_number(const ty_doc *d, const char *key, double absent)
{
    const ty_doc *v = ty_doc_find(ty_doc_find(d, "config"), key),
                 *inner = ty_doc_find(ty_doc_find(v, "config"), "value");
    if (v)
        ty_doc_float(inner ? inner : v, &absent, NULL);
    return absent;
}

/* ---- regularizers -------------------------------------------------------------------------------------------------
 */

static ty_val penalty_sum(ty_graph *g, ty_val x, double l1, double l2)
{
    ty_val out = TY_NONE;
    if (l1 != 0)
        out = ty_b_mul_s(g, ty_b_sum(g, ty_b_unary(g, TY_OP_ABS, x), ty_b_all_axes(g, x), false), l1);
    if (l2 != 0) {
        ty_val squares = ty_b_mul_s(g, ty_b_sum(g, ty_b_square(g, x), ty_b_all_axes(g, x), false), l2);
        out = out == TY_NONE ? squares : ty_b_add(g, out, squares);
    }
    return out;
}

/* factor / 2 * the mean over pairs of rows (columns) of |cosine of their angle|; norms are at least 1e-7. */
static int penalty_orthogonal(ty_graph *g, const ty_doc *d, ty_val x, ty_val *out, ty_error *err)
{
    const char *mode = keras_string(ty_doc_find(ty_doc_find(d, "config"), "mode"));
    bool columns = mode && strcmp(mode, "columns") == 0;
    if (ty_b_rank(g, x) != 2)
        return ty_error_set(err, TY_E_SHAPE, "OrthogonalRegularizer takes tensors of two axes, found %d",
                            ty_b_rank(g, x));
    int64_t n = ty_b_dim(g, x, columns ? 1 : 0);
    ty_val squares = ty_b_sum(g, ty_b_square(g, x), columns ? 1 : 2, true);
    ty_val least = ty_b_full_like(g, squares, 1e-14);
    ty_val unit = ty_b_mul(g, x, ty_b_unary(g, TY_OP_RSQRT, ty_b_max(g, squares, least)));
    ty_val product = ty_b_unary(g, TY_OP_ABS, ty_b_dot(g, unit, unit, columns, !columns));
    ty_type t = *ty_graph_type(g, product);
    t.dtype = TY_I64;
    ty_val other = ty_b_cast(g, ty_b_ne(g, ty_b_iota(g, t, 0), ty_b_iota(g, t, 1)), ty_b_dtype(g, product));
    ty_val sum = ty_b_sum(g, ty_b_mul(g, product, other), 3, false);
    double pairs = (double)n * ((double)n - 1) / 2;
    *out = ty_b_mul_s(g, sum, penalty_number(d, "factor", 0.01) * 0.5 / pairs);
    return 0;
}

int keras_regularize(ty_graph *g, const ty_doc *d, ty_val x, ty_val *out, ty_error *err)
{
    const char *name = penalty_class(d);
    *out = TY_NONE;
    if (!d || d->kind == TY_DOC_NULL || x == TY_NONE)
        return 0;
    if (!ty_dtype_is_float(ty_b_dtype(g, x)))
        x = ty_b_cast(g, x, TY_F32);
    bool is_named = name && strcmp(name, "l1_l2") == 0 && d->kind == TY_DOC_STRING; /* Keras 2 */
    if (penalty_is(name, "L1", "l1"))
        *out = penalty_sum(g, x, penalty_number(d, "l1", 0.01), 0);
    else if (penalty_is(name, "L2", "l2"))
        *out = penalty_sum(g, x, 0, penalty_number(d, "l2", 0.01));
    else if (penalty_is(name, "L1L2", "l1_l2"))
        *out = penalty_sum(g, x, penalty_number(d, "l1", is_named ? 0.01 : 0),
                           penalty_number(d, "l2", is_named ? 0.01 : 0));
    else if (penalty_is(name, "OrthogonalRegularizer", "orthogonal_regularizer"))
        return penalty_orthogonal(g, d, x, out, err);
    else {
        ty_error_set(err, TY_E_UNSUPPORTED, "unknown regularizer %.100s", name ? name : "?");
        return ty_error_help(err, "use L1, L2, L1L2 or OrthogonalRegularizer, or remove it from the model");
    }
    return 0;
}

/* ---- constraints --------------------------------------------------------------------------------------------------
 */

static int penalty_axes(const ty_doc *d, const ty_type *type, uint32_t *out, ty_error *err)
{
    const ty_doc *axis = ty_doc_find(ty_doc_find(d, "config"), "axis");
    int n = axis && axis->kind == TY_DOC_LIST ? (int)axis->n_items : 1;
    *out = 0;
    for (int i = 0; i < n; i++) {
        const ty_doc *one = axis && axis->kind == TY_DOC_LIST ? ty_doc_at(axis, (size_t)i) : axis;
        int64_t at = one && one->kind == TY_DOC_INT ? one->integer : 0;
        at += at < 0 ? type->rank : 0;
        if (at < 0 || at >= type->rank)
            return ty_error_set(err, TY_E_SHAPE, "a constraint along axis %lld of a weight with %d axes", (long long)at,
                                type->rank);
        *out |= 1u << at;
    }
    return 0;
}

int keras_constrain(const ty_doc *d, const ty_type *type, ty_constraint *out, ty_error *err)
{
    const char *name = penalty_class(d);
    *out = (ty_constraint){.kind = TY_CONSTRAINT_NONE};
    if (!d || d->kind == TY_DOC_NULL)
        return 0;
    if (penalty_is(name, "NonNeg", "non_neg"))
        out->kind = TY_CONSTRAINT_NON_NEG;
    else if (penalty_is(name, "MaxNorm", "max_norm"))
        *out = (ty_constraint){.kind = TY_CONSTRAINT_MAX_NORM, .max = penalty_number(d, "max_value", 2)};
    else if (penalty_is(name, "UnitNorm", "unit_norm"))
        out->kind = TY_CONSTRAINT_UNIT_NORM;
    else if (penalty_is(name, "MinMaxNorm", "min_max_norm"))
        *out = (ty_constraint){.kind = TY_CONSTRAINT_MIN_MAX_NORM,
                               .min = penalty_number(d, "min_value", 0),
                               .max = penalty_number(d, "max_value", 1),
                               .rate = penalty_number(d, "rate", 1)};
    else {
        ty_error_set(err, TY_E_UNSUPPORTED, "unknown constraint %.100s", name ? name : "?");
        return ty_error_help(err, "use MaxNorm, MinMaxNorm, UnitNorm or NonNeg, or remove it from the model");
    }
    return out->kind == TY_CONSTRAINT_NON_NEG ? 0 : penalty_axes(d, type, &out->axes, err);
}
