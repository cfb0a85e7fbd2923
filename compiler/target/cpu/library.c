/* library.c - which implementation an op gets. The first row that takes the shapes wins; 16-bit floats that no row
 * takes are computed as float32 by one that takes those; what is left runs by the op's reference function. */
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
    {TY_OP_DOT, true, true, ty_native_prepare_dot},
    {TY_OP_DOT, true, true, ty_onednn_prepare_dot},
    {TY_OP_DOT, false, true, ty_native_prepare_dot_bf16},
    {TY_OP_DOT, false, true, ty_onednn_prepare_dot_bf16},
    {TY_OP_ATTEND, false, false, ty_native_prepare_attend},
    {TY_OP_ATTEND_GRAD, false, false, ty_native_prepare_attend_grad},
    {TY_OP_ATTEND_BIAS_GRAD, false, false, ty_native_prepare_attend_bias_grad},
    {TY_OP_CONV, false, true, ty_native_prepare_winograd},
    {TY_OP_CONV, true, true, ty_native_prepare_thin},
    {TY_OP_CONV, true, true, ty_native_prepare_slim},
    {TY_OP_CONV, false, true, ty_onednn_prepare_conv},
    {TY_OP_CONV, true, true, ty_native_prepare_taps},
    {TY_OP_CONV, true, true, ty_onednn_prepare_any_conv},
    {TY_OP_CONV_DX, false, true, ty_native_prepare_winograd_dx},
    {TY_OP_CONV_DX, false, true, ty_onednn_prepare_conv_dx},
    {TY_OP_CONV_DX, true, true, ty_native_prepare_taps_dx},
    {TY_OP_CONV_DX, true, true, ty_onednn_prepare_any_conv_dx},
    {TY_OP_CONV_DW, false, true, ty_native_prepare_winograd_dw},
    {TY_OP_CONV_DW, true, true, ty_native_prepare_thin_dw},
    {TY_OP_CONV_DW, true, true, ty_native_prepare_slim_dw},
    {TY_OP_CONV_DW, false, true, ty_native_prepare_depth_dw},
    {TY_OP_CONV_DW, false, true, ty_onednn_prepare_conv_dw},
    {TY_OP_CONV_DW, true, true, ty_native_prepare_taps_dw},
    {TY_OP_CONV_DW, true, true, ty_onednn_prepare_any_conv_dw},
    {TY_OP_POOL_MAX, false, false, ty_native_prepare_pool_max},
    {TY_OP_POOL_MAX_GRAD, false, false, ty_native_prepare_pool_max_grad},
    {TY_OP_POOL_SUM, false, false, ty_native_prepare_pool_sum},
    {TY_OP_POOL_SUM_GRAD, false, false, ty_native_prepare_pool_sum_grad},
    {TY_OP_POOL_MAX, false, false, ty_native_prepare_last_max},
    {TY_OP_POOL_MAX_GRAD, false, false, ty_native_prepare_last_max_grad},
    {TY_OP_POOL_SUM, false, false, ty_native_prepare_last_sum},
    {TY_OP_POOL_SUM_GRAD, false, false, ty_native_prepare_last_sum_grad},
    {TY_OP_SCATTER, false, false, ty_native_prepare_scatter},
    {TY_OP_PUT, false, false, ty_native_prepare_put},
    {TY_OP_FIND_ROWS, false, false, ty_native_prepare_find_rows},
    {TY_OP_SUM_ROWS, false, false, ty_native_prepare_sum_rows},
    {TY_OP_ARGREDUCE, false, false, ty_native_prepare_argreduce},
    {TY_OP_SCAN, false, false, ty_native_prepare_scan},
    {TY_OP_SORT, false, false, ty_native_prepare_sort},
    {TY_OP_RNN_STEPS, false, false, ty_native_prepare_rnn_steps},
    {TY_OP_RNN_GRAD, false, false, ty_native_prepare_rnn_grad},
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

static bool library_has_short_floats(const ty_library_shape *s)
{
    bool has = s->res[0].dtype == TY_F16 || s->res[0].dtype == TY_BF16;
    for (int i = 0; i < s->n_in; i++)
        has |= s->in[i].dtype == TY_F16 || s->in[i].dtype == TY_BF16;
    return has;
}

/* One row: 1 if it took the shapes, 0 if they are not for it, -1 on a fault. */
static int library_try(const library_row *row, const ty_library_shape *shape, bool widened, ty_library_call *out,
                       ty_error *err)
{
    ty_error refused = {0};
    int rc = widened ? ty_native_prepare_widened(row->op, shape, row->prepare, out, &refused)
                     : row->prepare(shape, out, &refused);
    if (rc == 0)
        return 1;
    if (refused.code == TY_E_UNSUPPORTED)
        return 0;
    if (err)
        *err = refused;
    return -1;
}

int ty_library_prepare(ty_op op, const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    if (library_is_empty(shape)) /* edge cases are the reference's */
        return ty_native_prepare_reference_of(op, shape, out, err);
    for (int widened = 0; widened <= library_has_short_floats(shape); widened++)
        for (size_t i = 0; i < sizeof library_rows / sizeof *library_rows; i++) {
            const library_row *row = &library_rows[i];
            if (row->op != op || (!widened && row->float32_only && !library_all_float32(shape)))
                continue;
            int taken = library_try(row, shape, widened, out, err);
            if (taken)
                return taken < 0 ? -1 : 0;
        }
    return ty_native_prepare_reference_of(op, shape, out, err);
}

void ty_library_release(ty_library_call *call)
{
    if (call->release)
        call->release(call->prepared);
    *call = (ty_library_call){.run = NULL};
}
