/* work.c - kinds of work and counts of arithmetic, a row an op. See work.h. */
#include "compiler/ops/work.h"

#include "compiler/ops/attend.h"
#include "compiler/ops/op.h"

typedef double work_count(const ty_graph *g, uint32_t node);

static double work_elems(const ty_graph *g, ty_val v)
{
    return (double)ty_type_elems(ty_graph_type(g, v));
}

static double work_result(const ty_graph *g, uint32_t node)
{
    return work_elems(g, ty_val_make(node, 0));
}

static double work_operand(const ty_graph *g, uint32_t node)
{
    return work_elems(g, ty_graph_in(g, node, 0));
}

/* scatter, put: one addition for each number that comes in. */
static double work_combined(const ty_graph *g, uint32_t node)
{
    return ty_graph_attr(g, node)->mode == TY_SET ? 0 : work_elems(g, ty_graph_in(g, node, 2));
}

/* 2 [batch] M N K. */
static double work_dot(const ty_graph *g, uint32_t node)
{
    const ty_type *a = ty_graph_type(g, ty_graph_in(g, node, 0));
    bool transposed = ty_graph_attr(g, node)->flags & TY_DOT_TRANS_A;
    return 2 * work_result(g, node) * (double)a->dim[a->rank - (transposed ? 2 : 1)];
}

/* Pairs of a query and a key that it sees. */
static double work_attended(const ty_attend_sizes *a)
{
    double rows = (double)(a->outer * a->heads * a->t), keys = (double)a->s;
    return rows * (a->causal ? keys - ((double)a->t - 1) / 2 : keys);
}

static ty_attend_sizes work_attend_sizes(const ty_graph *g, uint32_t node)
{
    return ty_attend_sizes_of(ty_graph_attr(g, node)->flags, ty_graph_type(g, ty_graph_in(g, node, 0)),
                              ty_graph_type(g, ty_graph_in(g, node, 1)), ty_graph_type(g, ty_graph_in(g, node, 2)));
}

/* q k' and p v. */
static double work_attend(const ty_graph *g, uint32_t node)
{
    ty_attend_sizes a = work_attend_sizes(g, node);
    return 2 * work_attended(&a) * (double)(a.d + a.e);
}

/* q k' once more, p' dy, dy v', ds k, ds' q. */
static double work_attend_grad(const ty_graph *g, uint32_t node)
{
    ty_attend_sizes a = work_attend_sizes(g, node);
    return 2 * work_attended(&a) * (double)(3 * a.d + 2 * a.e);
}

/* 2 N O spatial (C/groups) window: each element of y is a sum over one output channel's weights. */
static double work_conv_of(const ty_graph *g, ty_val y, ty_val w)
{
    int64_t channels = ty_graph_type(g, w)->dim[0];
    return channels ? 2 * work_elems(g, y) * work_elems(g, w) / (double)channels : 0;
}

static double work_conv(const ty_graph *g, uint32_t node)
{
    return work_conv_of(g, ty_val_make(node, 0), ty_graph_in(g, node, 1));
}

static double work_conv_dx(const ty_graph *g, uint32_t node)
{
    return work_conv_of(g, ty_graph_in(g, node, 0), ty_graph_in(g, node, 1));
}

static double work_conv_dw(const ty_graph *g, uint32_t node)
{
    return work_conv_of(g, ty_graph_in(g, node, 1), ty_val_make(node, 0));
}

static double work_window(const ty_graph *g, uint32_t node)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    double n = 1;
    for (uint32_t i = 0; i < attr->n; i++)
        n *= (double)attr->size[i];
    return n;
}

static double work_pool(const ty_graph *g, uint32_t node)
{
    return work_result(g, node) * work_window(g, node);
}

static double work_pool_sum_grad(const ty_graph *g, uint32_t node)
{
    return work_operand(g, node) * work_window(g, node);
}

/* The product of each step: 2 T B (G H) H, forward as back. The weights are operand 1. */
static double work_recurrent(const ty_graph *g, uint32_t node)
{
    const ty_type *series = ty_graph_type(g, ty_graph_in(g, node, 0));
    return 2 * (double)(series->dim[0] * series->dim[1]) * work_elems(g, ty_graph_in(g, node, 1));
}

typedef struct work_row {
    bool known;
    ty_work work;
    work_count *count; /* NULL: none */
} work_row;

#define SELECTS(op) [TY_OP_##op] = {true, TY_WORK_ELEMENTWISE, NULL}

/* What is not here goes by its class: ELEMENTWISE ops do one operation an element of the result, movement, composites
 * and leaves none. */
static const work_row work_rows[TY_N_OPS] = {
    SELECTS(NOT),
    SELECTS(CAST),
    SELECTS(BITCAST),
    SELECTS(AND),
    SELECTS(OR),
    SELECTS(XOR),
    SELECTS(SHL),
    SELECTS(SHR),
    SELECTS(EQ),
    SELECTS(LT),
    SELECTS(LE),
    SELECTS(SELECT),
    [TY_OP_GATHER] = {true, TY_WORK_INDEXING, NULL},
    [TY_OP_TAKE] = {true, TY_WORK_INDEXING, NULL},
    [TY_OP_SCATTER] = {true, TY_WORK_INDEXING, work_combined},
    [TY_OP_PUT] = {true, TY_WORK_INDEXING, work_combined},
    [TY_OP_FIND_ROWS] = {true, TY_WORK_INDEXING, NULL},
    [TY_OP_SUM_ROWS] = {true, TY_WORK_INDEXING, work_operand},
    [TY_OP_GET_ROWS] = {true, TY_WORK_INDEXING, NULL},
    [TY_OP_SET_ROWS] = {true, TY_WORK_INDEXING, NULL},
    [TY_OP_SORT] = {true, TY_WORK_INDEXING, NULL},
    [TY_OP_REDUCE] = {true, TY_WORK_REDUCTION, work_operand},
    [TY_OP_ARGREDUCE] = {true, TY_WORK_REDUCTION, NULL},
    [TY_OP_SCAN] = {true, TY_WORK_REDUCTION, work_operand},
    [TY_OP_DOT] = {true, TY_WORK_PRODUCT, work_dot},
    [TY_OP_LINEAR] = {true, TY_WORK_PRODUCT, work_dot},
    [TY_OP_ATTEND] = {true, TY_WORK_PRODUCT, work_attend},
    [TY_OP_ATTEND_GRAD] = {true, TY_WORK_PRODUCT, work_attend_grad},
    [TY_OP_ATTEND_BIAS_GRAD] = {true, TY_WORK_PRODUCT, work_attend_grad},
    [TY_OP_CONV] = {true, TY_WORK_CONVOLUTION, work_conv},
    [TY_OP_CONV_BIAS] = {true, TY_WORK_CONVOLUTION, work_conv},
    [TY_OP_CONV_DX] = {true, TY_WORK_CONVOLUTION, work_conv_dx},
    [TY_OP_CONV_DW] = {true, TY_WORK_CONVOLUTION, work_conv_dw},
    [TY_OP_POOL_MAX] = {true, TY_WORK_POOLING, work_pool},
    [TY_OP_POOL_MAX_GRAD] = {true, TY_WORK_POOLING, work_operand},
    [TY_OP_POOL_SUM] = {true, TY_WORK_POOLING, work_pool},
    [TY_OP_POOL_SUM_GRAD] = {true, TY_WORK_POOLING, work_pool_sum_grad},
    [TY_OP_ALL_REDUCE] = {true, TY_WORK_EXCHANGE, NULL},
    [TY_OP_ALL_GATHER] = {true, TY_WORK_EXCHANGE, NULL},
    [TY_OP_REDUCE_SCATTER] = {true, TY_WORK_EXCHANGE, NULL},
    [TY_OP_RNN_STEPS] = {true, TY_WORK_RECURRENT, work_recurrent},
    [TY_OP_RNN_GRAD] = {true, TY_WORK_RECURRENT, work_recurrent},
};

static work_row work_of(ty_op op)
{
    ty_op_class class_ = ty_op_row_of(op)->class_;
    if (work_rows[op].known)
        return work_rows[op];
    if (class_ == TY_CLASS_ELEMENTWISE)
        return (work_row){true, TY_WORK_ELEMENTWISE, work_result};
    return (work_row){class_ != TY_CLASS_REDUCE && class_ != TY_CLASS_LIBRARY, TY_WORK_ELEMENTWISE, NULL};
}

ty_work ty_op_work(ty_op op)
{
    work_row row = work_of(op);
    return row.known ? row.work : TY_N_WORKS;
}

double ty_node_flop(const ty_graph *g, uint32_t node)
{
    work_row row = work_of(ty_graph_op(g, node));
    return row.count ? row.count(g, node) : 0;
}

int ty_op_element_flop(ty_op op)
{
    return work_of(op).count == work_result;
}

const char *ty_work_text(ty_work w)
{
    static const char *const text[TY_N_WORKS + 1] = {[TY_WORK_PRODUCT] = "products",
                                                     [TY_WORK_CONVOLUTION] = "convolutions",
                                                     [TY_WORK_RECURRENT] = "recurrent",
                                                     [TY_WORK_ELEMENTWISE] = "elementwise",
                                                     [TY_WORK_REDUCTION] = "reductions",
                                                     [TY_WORK_POOLING] = "pooling",
                                                     [TY_WORK_INDEXING] = "indexing",
                                                     [TY_WORK_OPTIMIZER] = "optimizer",
                                                     [TY_WORK_COPY] = "copies",
                                                     [TY_WORK_EXCHANGE] = "exchange",
                                                     [TY_N_WORKS] = "unknown"};
    return text[w];
}
