/* recurrence.h - what the ops of recurrent layers share: sizes, gates, and where a step finds its states.
 *
 *     T steps, B batch, H hidden size, G gates
 *
 * The number of gates is the kind of layer. Gates have a number and a block: the weights [G H, ..] have G blocks of H
 * rows, and gate k is in block `block[k]`, so that every framework's order is read where it lies.
 *
 *     kind     gates        a step, from h and c to h' and c'; a gate before its activation: W x + b + R h of its block
 *     vanilla  h            h' = tanh(h) or relu(h)
 *     GRU      z, r, n      h' = (1 - z) n + z h   with  n = tanh(W x + b + R (r h)), or with `reset_after`
 *                                                        n = tanh(W x + b + r (R h + b'))
 *     LSTM     i, f, g, o   c' = f c + i g,  h' = o tanh(c')      (g by tanh; i, f, o, z and r by the logistic
 * function)
 *
 * r may have 16 bits where states have 32: what a step multiplies by it is then rounded to its type (h, or r h;
 * backward the gradient of a gate's product), and sums have 32 bits. What a step leaves behind is not rounded.
 *
 * States are kept with the first one: [T + 1, B, H], in the order of time. What a step reads and what it leaves behind
 * are then two views of one tensor, moved by one step.
 */
#ifndef TY_COMPILER_OPS_RECURRENCE_H
#define TY_COMPILER_OPS_RECURRENCE_H

#include "compiler/ir/graph.h"

#define TY_RNN_BACKWARD    1u /* from the last step to the first */
#define TY_RNN_RESET_AFTER 2u /* GRU: the reset gate is put on the product, which has a bias of its own */
#define TY_RNN_RELU        4u /* vanilla: relu in place of tanh */
#define TY_RNN_MAX_GATES   4

enum { TY_RNN_VANILLA = 1, TY_RNN_GRU = 3, TY_RNN_LSTM = 4 }; /* gates */
enum { TY_RNN_Z, TY_RNN_R, TY_RNN_N };
enum { TY_RNN_I, TY_RNN_F, TY_RNN_G, TY_RNN_O };

/* Inputs and results; the last input is for LSTM alone. See ops.def. */
enum { TY_RNN_X, TY_RNN_W, TY_RNN_WEIGHT, TY_RNN_BIAS, TY_RNN_H0, TY_RNN_C0 };
enum { TY_STEPS_XW, TY_STEPS_WEIGHT, TY_STEPS_BIAS, TY_STEPS_H0, TY_STEPS_C0 };
enum { TY_STEPS_H, TY_STEPS_GATES, TY_STEPS_KEPT, TY_STEPS_N_RES };
enum { TY_RGRAD_DY, TY_RGRAD_WEIGHT, TY_RGRAD_H, TY_RGRAD_GATES, TY_RGRAD_KEPT, TY_RGRAD_DC };
enum { TY_RGRAD_DPRE, TY_RGRAD_DREC, TY_RGRAD_DH0, TY_RGRAD_DC0, TY_RGRAD_N_RES };

typedef struct ty_recurrence {
    int64_t steps, batch, hidden;
    int gates;
    int64_t width; /* G H */
    bool backward, reset_after, relu;
    bool rounds;     /* what a step multiplies by r is rounded to r's type, which has fewer bits than the states' */
    ty_dtype weight; /* type of r */
    int64_t block[TY_RNN_MAX_GATES];
} ty_recurrence;

/* series: [T, B, ..]; weight: r, [G H, H]. The attributes of a node that infer has accepted. */
static inline ty_recurrence ty_recurrence_of(const ty_attr *attr, const ty_type *series, const ty_type *weight)
{
    ty_recurrence r = {.steps = series->dim[0],
                       .batch = series->dim[1],
                       .hidden = weight->dim[1],
                       .gates = (int)attr->n,
                       .width = attr->n * weight->dim[1],
                       .backward = attr->flags & TY_RNN_BACKWARD,
                       .reset_after = attr->flags & TY_RNN_RESET_AFTER,
                       .relu = attr->flags & TY_RNN_RELU,
                       .rounds = weight->dtype != series->dtype,
                       .weight = (ty_dtype)weight->dtype};
    for (int k = 0; k < r.gates; k++)
        r.block[k] = attr->lo[k];
    return r;
}

/* Time of the k-th step that is made, and where [T + 1, ..] has the state before and after it. */
static inline int64_t ty_recurrence_time(const ty_recurrence *r, int64_t k)
{
    return r->backward ? r->steps - 1 - k : k;
}
static inline int64_t ty_recurrence_before(const ty_recurrence *r, int64_t k)
{
    return r->backward ? r->steps - k : k;
}
static inline int64_t ty_recurrence_after(const ty_recurrence *r, int64_t k)
{
    return ty_recurrence_before(r, k + 1);
}

/* Width of the bias: G H, and H more for the product that the reset gate is put on. */
static inline int64_t ty_recurrence_bias(const ty_recurrence *r)
{
    return r->width + (r->reset_after ? r->hidden : 0);
}

#endif
