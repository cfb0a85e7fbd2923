/* keras_layers_encode.c - CategoryEncoding and Discretization: whole numbers as rows of zeros and ones, numbers as
 * those of the bins in which they lie. */
#include "compiler/import/keras/keras_encode.h"

enum { ENCODE_MOST = 1 << 24, ENCODE_BOUNDARIES = 4096 };

encode_mode keras_encode_read(keras_call *c, bool can_be_int)
{
    static const char *const modes[] = {"multi_hot", "one_hot", "count", "int", NULL};
    static const char *const rows[] = {"multi_hot", "one_hot", "count", NULL};
    if (keras_flag(c, "sparse", false))
        keras_fail_key(c, "sparse", "must be false");
    return (encode_mode)keras_choice(c, "output_mode", can_be_int ? "int" : "multi_hot", can_be_int ? modes : rows);
}

void keras_encode_set(keras_call *c, ty_val x, encode_mode mode, int64_t depth, ty_val weights)
{
    ty_graph *g = c->g;
    int rank = ty_b_rank(g, x);
    if (rank < 1 || rank + 1 > TY_MAX_RANK) {
        keras_fail(c, TY_E_SHAPE, "expected an input of 1 to %d dimensions, found %d", TY_MAX_RANK - 1, rank);
        return;
    }
    if (mode == ENCODE_ONE_HOT) {
        if (rank > 1 && ty_b_dim(g, x, rank - 1) == 1)
            x = ty_b_squeeze(g, x, --rank);
        keras_set(c, 0, ty_b_cast(g, keras_one_hot(g, x, depth, rank), TY_F32));
        return;
    }
    ty_val y = ty_b_cast(g, keras_one_hot(g, x, depth, rank), TY_F32);
    if (weights != TY_NONE)
        y = ty_b_mul(g, y, ty_b_unsqueeze(g, keras_float(c, weights), rank));
    keras_set(c, 0, ty_b_reduce(g, y, mode == ENCODE_COUNT ? TY_SUM : TY_MAX, 1u << (rank > 1 ? 1 : 0), false));
}

void keras_call_category_encoding(keras_call *c)
{
    encode_mode mode = keras_encode_read(c, false);
    int64_t depth = keras_int(c, "num_tokens", 0);
    ty_val weights = keras_argument_tensor(c, 1, "count_weights");
    if (!c->failed && (depth < 1 || depth > ENCODE_MOST))
        keras_fail_key(c, "num_tokens", "expected a number from 1 to %d", ENCODE_MOST);
    if (!c->failed && weights != TY_NONE && mode != ENCODE_COUNT)
        keras_fail_key(c, "output_mode", "must be count where there are count_weights");
    if (!c->failed)
        keras_encode_set(c, c->in[0], mode, depth, weights);
}

/* The bins' boundaries, [n]; TY_NONE after failing. */
static ty_val encode_boundaries(keras_call *c, int64_t *n)
{
    const ty_doc *d = keras_config(c, "bin_boundaries");
    float v[ENCODE_BOUNDARIES];
    *n = d && d->kind == TY_DOC_LIST ? (int64_t)ty_doc_len(d) : 0;
    bool ok = *n >= 1 && *n <= ENCODE_BOUNDARIES;
    for (int64_t i = 0; i < *n && ok; i++) {
        double number = 0;
        ok = ty_doc_float(ty_doc_at(d, (size_t)i), &number, NULL) == 0;
        v[i] = (float)number;
    }
    if (!ok) {
        keras_fail(c, TY_E_ATTRIBUTE, "expected bin_boundaries, 1 to %d numbers", ENCODE_BOUNDARIES);
        keras_help(c, "adapt the layer before the model is saved");
        return TY_NONE;
    }
    return ty_b_const_copy(c->g, ty_type_make(TY_F32, 1, n), v);
}

/* How many boundaries are at most x. */
void keras_call_discretization(keras_call *c)
{
    ty_graph *g = c->g;
    int64_t n;
    encode_mode mode = keras_encode_read(c, true);
    ty_val bounds = c->failed ? TY_NONE : encode_boundaries(c, &n), x = keras_float(c, c->in[0]);
    if (bounds == TY_NONE || x == TY_NONE)
        return;
    int rank = ty_b_rank(g, x);
    if (rank + 1 > TY_MAX_RANK) {
        keras_fail(c, TY_E_SHAPE, "expected an input of at most %d dimensions, found %d", TY_MAX_RANK - 1, rank);
        return;
    }
    ty_val below = ty_b_cast(g, ty_b_le(g, bounds, ty_b_unsqueeze(g, x, rank)), TY_I32);
    ty_val bin = ty_b_reduce(g, below, TY_SUM, 1u << rank, false);
    if (mode == ENCODE_INT)
        keras_set(c, 0, bin);
    else
        keras_encode_set(c, bin, mode, n + 1, TY_NONE);
}
