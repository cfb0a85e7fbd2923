/* own.c - see own.h. */
#include "compiler/target/cuda/own.h"

#include "compiler/ops/op.h"

enum { OWN_THREADS = 256 };

static const struct {
    ty_op op;
    ty_cuda_own_fn *add;
} own_rows[] = {
    {TY_OP_SCATTER, ty_cuda_own_scatter},
    {TY_OP_PUT, ty_cuda_own_put},
    {TY_OP_SCAN, ty_cuda_own_scan},
    {TY_OP_ARGREDUCE, ty_cuda_own_argreduce},
    {TY_OP_SORT, ty_cuda_own_sort},
    {TY_OP_FIND_ROWS, ty_cuda_own_find_rows},
    {TY_OP_SUM_ROWS, ty_cuda_own_sum_rows},
    {TY_OP_RNN_STEPS, ty_cuda_own_rnn_steps},
    {TY_OP_RNN_GRAD, ty_cuda_own_rnn_grad},
    {TY_OP_ATTEND, ty_cuda_own_attend},
    {TY_OP_ATTEND_GRAD, ty_cuda_own_attend_grad},
    {TY_OP_POOL_MAX, ty_cuda_own_pool_max},
    {TY_OP_POOL_MAX_GRAD, ty_cuda_own_pool_max_grad},
    {TY_OP_POOL_SUM, ty_cuda_own_pool_sum},
    {TY_OP_POOL_SUM_GRAD, ty_cuda_own_pool_sum_grad},
};

int ty_cuda_own_add(const ty_cuda_own *o, ty_error *err)
{
    ty_op op = ty_graph_op(o->g, o->node);
    for (size_t i = 0; i < sizeof own_rows / sizeof *own_rows; i++)
        if (own_rows[i].op == op)
            return own_rows[i].add(o, err);
    return ty_error_set(err, TY_E_UNSUPPORTED, "no kernel for %s on a GPU", ty_op_row_of(op)->text);
}

const ty_type *ty_cuda_own_type(const ty_cuda_own *o, int i)
{
    int n_in = (int)ty_graph_node(o->g, o->node)->n_in;
    return ty_graph_type(o->g, i < n_in ? ty_graph_in(o->g, o->node, i) : ty_val_make(o->node, (uint32_t)(i - n_in)));
}

void ty_cuda_own_words(ty_buf *out, ty_dtype dtype)
{
    const char *suffix = dtype == TY_F16 ? "_f16" : dtype == TY_BF16 ? "_bf16" : "";
    ty_buf_addf(out, "#undef LD\n#undef ST\n#define LD(v) %s%s(v)\n#define ST(v) %s%s(v)\n", *suffix ? "ty_load" : "",
                suffix, *suffix ? "ty_store" : "", suffix);
}

ty_cuda_launch ty_cuda_own_flat(int64_t items)
{
    int64_t blocks = (items + OWN_THREADS - 1) / OWN_THREADS;
    return (ty_cuda_launch){.form = "own", .threads = OWN_THREADS, .blocks = blocks > 0 ? blocks : 1};
}

void ty_cuda_own_combine(ty_buf *out, ty_combine how, ty_dtype dtype, const char *a, const char *b)
{
    const char *wide = dtype == TY_I64 ? "unsigned long" : "unsigned";
    if (how == TY_SET)
        ty_buf_addf(out, "%s", b);
    else if (how == TY_MAX || how == TY_MIN)
        ty_buf_addf(out, "(%s != %s || %s %s %s) ? %s : %s", a, a, a, how == TY_MAX ? ">=" : "<=", b, a, b);
    else if (ty_dtype_is_float(dtype))
        ty_buf_addf(out, "%s %c %s", a, how == TY_SUM ? '+' : '*', b);
    else
        ty_buf_addf(out, "(%s)%s %c (%s)%s", wide, a, how == TY_SUM ? '+' : '*', wide, b);
}
