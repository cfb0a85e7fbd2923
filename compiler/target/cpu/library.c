/* library.c - which implementation an op gets. The first row that takes the shapes wins; what no row
 * takes runs by the op's reference function. */
#include "compiler/target/cpu/library.h"

#include "compiler/target/cpu/native.h"
#include "compiler/target/cpu/onednn.h"

typedef struct library_row {
    ty_op op;
    bool float32_only; /* all operands and results are f32 */
    bool any_address;  /* operands may lie at any address; else at a multiple of 4 */
    ty_library_prepare_fn *prepare;
} library_row;

static const library_row library_rows[] = {
    {TY_OP_DOT, true, true, ty_onednn_prepare_dot},
    {TY_OP_ATTEND, true, false, ty_onednn_prepare_attend},
    {TY_OP_ATTEND_GRAD, true, false, ty_onednn_prepare_attend_grad},
    {TY_OP_CONV, true, true, ty_onednn_prepare_conv},
    {TY_OP_CONV_DX, true, true, ty_onednn_prepare_conv_dx},
    {TY_OP_CONV_DW, true, true, ty_onednn_prepare_conv_dw},
    {TY_OP_POOL_MAX, false, false, ty_native_prepare_pool_max},
    {TY_OP_POOL_MAX_GRAD, false, false, ty_native_prepare_pool_max_grad},
    {TY_OP_POOL_SUM, false, false, ty_native_prepare_pool_sum},
    {TY_OP_POOL_SUM_GRAD, false, false, ty_native_prepare_pool_sum_grad},
    {TY_OP_SCATTER, false, false, ty_native_prepare_scatter},
    {TY_OP_PUT, false, false, ty_native_prepare_put},
    {TY_OP_ARGREDUCE, false, false, ty_native_prepare_argreduce},
    {TY_OP_SCAN, false, false, ty_native_prepare_scan},
    {TY_OP_SORT, false, false, ty_native_prepare_sort},
    {TY_OP_RNN_STEPS, true, false, ty_native_prepare_rnn_steps},
    {TY_OP_RNN_GRAD, true, false, ty_native_prepare_rnn_grad},
};

bool ty_library_takes_any_address(ty_op op)
{
    for (size_t i = 0; i < sizeof library_rows / sizeof *library_rows; i++)
        if (library_rows[i].op == op)
            return library_rows[i].any_address;
    return false;
}

static bool library_all_float32(const ty_library_shape *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i].dtype != TY_F32)
            return false;
    return s->res[0].dtype == TY_F32;
}

static bool library_is_empty(const ty_library_shape *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (ty_type_elems(&s->in[i]) == 0)
            return true;
    return ty_type_elems(&s->res[0]) == 0;
}

int ty_library_prepare(ty_op op, const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    if (library_is_empty(shape)) /* edge cases are the reference's */
        return ty_native_prepare_reference_of(op, shape, out, err);
    for (size_t i = 0; i < sizeof library_rows / sizeof *library_rows; i++) {
        const library_row *row = &library_rows[i];
        ty_error refused = {0};
        if (row->op != op || (row->float32_only && !library_all_float32(shape)))
            continue;
        if (row->prepare(shape, out, &refused) == 0)
            return 0;
        if (refused.code != TY_E_UNSUPPORTED) { /* that is a fault, not a "not these shapes" */
            if (err)
                *err = refused;
            return -1;
        }
    }
    return ty_native_prepare_reference_of(op, shape, out, err);
}

void ty_library_release(ty_library_call *call)
{
    if (call->release)
        call->release(call->prepared);
    *call = (ty_library_call){.run = NULL};
}
