/* DeepFM in C: a factorization machine and a deep network on the same embeddings (Guo et al., IJCAI 2017).
 *
 * ids and values [batch, F]: numbers of features and what they are worth in this row; logit [batch]. Sizes are those of
 * Criteo's clicks as they are widely prepared: 13 counts and 26 categories, N features in all.
 *
 *     logit = b + sum w x + 1/2 sum_k ((sum v x)^2 - sum (v x)^2) + network(v x)
 */
#include <trainyard/model.h>

enum { F = 39, N = 117581, K = 32 };

static ty_var pairs(ty_net *net, ty_var e) /* [batch, F, K] */
{
    ty_var square_of_sum = ty_square(net, ty_reduce_sum(net, e, ty_dims(1), false));
    ty_var sum_of_squares = ty_reduce_sum(net, ty_square(net, e), ty_dims(1), false);
    ty_var twice = ty_reduce_sum(net, ty_sub(net, square_of_sum, sum_of_squares), ty_dims(1), false);
    return ty_mul(net, twice, ty_number(net, "f32", 0.5));
}

static ty_var hidden(ty_net *net, const char *name, ty_var x, int size)
{
    return ty_dropout(net, ty_relu(net, ty_linear(net, name, x, size)), 0.5);
}

void model(ty_net *net)
{
    ty_var ids = ty_input(net, "ids", "i64[batch,39]"), values = ty_input(net, "values", "f32[batch,39]");
    ty_var w = ty_embedding(net, "fm_w", ids, N, 1, .weight = ty_normal(0, 0.01)); /* [batch, F, 1] */
    ty_var v = ty_embedding(net, "fm_v", ids, N, K, .weight = ty_normal(0, 0.01)); /* [batch, F, K] */
    ty_var x = ty_unsqueeze(net, values, 2);
    ty_var e = ty_mul(net, v, x);
    ty_var linear = ty_reduce_sum(net, ty_mul(net, w, x), ty_dims(1, 2), false);
    ty_var deep = ty_flatten(net, e, 1);
    deep = hidden(net, "deep.0", deep, 128);
    deep = hidden(net, "deep.1", deep, 64);
    deep = hidden(net, "deep.2", deep, 32);
    deep = ty_squeeze(net, ty_linear(net, "deep.out", deep, 1), 1);
    ty_output(net, "logit", ty_add(net, ty_add(net, linear, pairs(net, e)), deep));
}
