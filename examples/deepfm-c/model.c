/* DeepFM in C: a factorization machine and a deep network on the same embeddings (Guo et al., IJCAI 2017).
 *
 * ids and values [batch, 39]: 13 counts, 26 categories; logit [batch]. B batch, F fields, K embedding size, N ids.
 */
#include <trainyard/model.h>

enum { F = 39, K = 16, N = 8192 };

/* Pairwise products of embeddings: (sum^2 - sum of squares) / 2, summed over K. */
static ty_var pairs(ty_net *net, ty_var e) /* [B,F,K] */
{
    ty_var square_of_sum = ty_square(net, ty_reduce_sum(net, e, ty_dims(1), false));
    ty_var sum_of_squares = ty_reduce_sum(net, ty_square(net, e), ty_dims(1), false);
    ty_var twice = ty_reduce_sum(net, ty_sub(net, square_of_sum, sum_of_squares), ty_dims(1), false);
    return ty_mul(net, twice, ty_number(net, "f32", 0.5));
}

void model(ty_net *net)
{
    ty_var ids = ty_input(net, "ids", "i64[batch,39]"), values = ty_input(net, "values", "f32[batch,39]");
    ty_var weight = ty_embedding(net, "first", ids, N, 1, .weight = ty_normal(0, 0.01)); /* [B,F,1] */
    ty_var e = ty_embedding(net, "second", ids, N, K, .weight = ty_normal(0, 0.01));     /* [B,F,K] */
    ty_var scale = ty_unsqueeze(net, values, 2);
    e = ty_mul(net, e, scale);
    ty_var logit = ty_add(net, ty_reduce_sum(net, ty_mul(net, weight, scale), ty_dims(1, 2), false), pairs(net, e));
    ty_var deep = ty_flatten(net, e, 1);
    deep = ty_relu(net, ty_linear(net, "deep.0", deep, 64));
    deep = ty_relu(net, ty_linear(net, "deep.1", deep, 32));
    ty_output(net, "logit", ty_add(net, logit, ty_squeeze(net, ty_linear(net, "deep.2", deep, 1), 1)));
}
