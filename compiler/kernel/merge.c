/* merge.c - longer loops: neighbouring variables that every address walks through as one become one; plain loops get
 * their fastest variable as inner loop; and how much work and traffic a kernel is. */
#include "compiler/kernel/kernel.h"

#include <string.h>

typedef void merge_visit(ty_kernel *k, ty_ix *addr, void *ctx);

/* Calls fn on every address and, inside addresses, on nothing: atoms keep their own expressions. */
static void merge_each(ty_kernel *k, merge_visit *fn, void *ctx)
{
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (k->instr[i].kop == TY_K_LOAD || k->instr[i].kop == TY_K_INDEX || k->instr[i].kop == TY_K_INSIDE)
            fn(k, &k->instr[i].addr, ctx);
    for (int i = 0; i < k->n_stores; i++)
        fn(k, &k->store[i].addr, ctx);
}

typedef struct merge_pair {
    int slow, fast; /* variables */
    int64_t fast_extent;
    bool possible;
    uint32_t fresh; /* the variable that takes the place of both */
    int64_t extent;
} merge_pair;

static void merge_test(ty_kernel *k, ty_ix *addr, void *ctx)
{
    merge_pair *pair = ctx;
    bool inside = false;
    int64_t slow = ty_ix_coef(&k->ix, *addr, (uint32_t)pair->slow, &inside);
    int64_t fast = ty_ix_coef(&k->ix, *addr, (uint32_t)pair->fast, &inside);
    pair->possible &= !inside && slow == fast * pair->fast_extent;
}

static void merge_rewrite(ty_kernel *k, ty_ix *addr, void *ctx)
{
    const merge_pair *pair = ctx;
    bool inside = false;
    int64_t slow = ty_ix_coef(&k->ix, *addr, (uint32_t)pair->slow, &inside);
    int64_t fast = ty_ix_coef(&k->ix, *addr, (uint32_t)pair->fast, &inside);
    if (fast == 0)
        return;
    ty_ix out = *addr;
    out = ty_ix_add(&k->ix, out, ty_ix_mul(&k->ix, ty_ix_var(&k->ix, (uint32_t)pair->slow, 2), -slow));
    out = ty_ix_add(&k->ix, out, ty_ix_mul(&k->ix, ty_ix_var(&k->ix, (uint32_t)pair->fast, 2), -fast));
    *addr = ty_ix_add(&k->ix, out, ty_ix_mul(&k->ix, ty_ix_var(&k->ix, pair->fresh, pair->extent), fast));
}

static void merge_vars_mask(ty_kernel *k, const merge_pair *pair)
{
    uint64_t both = 1ull << pair->slow | 1ull << pair->fast, fresh = 1ull << pair->fresh;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (k->instr[i].vars & both)
            k->instr[i].vars = (k->instr[i].vars & ~both) | fresh;
    if (k->outer & both)
        k->outer = (k->outer & ~both) | fresh;
}

static bool merge_at(ty_kernel *k, int at)
{
    int slow = k->order[at], fast = k->order[at + 1];
    bool same_side = (k->outer >> slow & 1) == (k->outer >> fast & 1);
    bool column = k->form == TY_FORM_COLUMNS && at + 2 == k->n_order; /* the column variable stays itself */
    if (!same_side || column || k->n_vars == TY_K_MAX_VARS)
        return false;
    merge_pair pair = {slow, fast, k->extent[fast], true, (uint32_t)k->n_vars, k->extent[slow] * k->extent[fast]};
    merge_each(k, merge_test, &pair);
    if (!pair.possible)
        return false;
    merge_each(k, merge_rewrite, &pair);
    merge_vars_mask(k, &pair);
    k->extent[k->n_vars] = pair.extent;
    k->order[at] = k->n_vars++;
    memmove(&k->order[at + 1], &k->order[at + 2], sizeof(int) * (size_t)(k->n_order - at - 2));
    k->n_order--;
    return true;
}

static void merge_drop_ones(ty_kernel *k)
{
    int n = 0;
    for (int i = 0; i < k->n_order; i++) {
        bool column = k->form == TY_FORM_COLUMNS && i == k->n_order - 1;
        if (k->extent[k->order[i]] != 1 || column)
            k->order[n++] = k->order[i];
    }
    k->n_order = n;
}

/* The variables of a plain loop are all outer: the fastest one runs inside, unless it is the only one. */
static void merge_inner_loop(ty_kernel *k)
{
    uint64_t all = 0;
    for (int i = 0; i < k->n_order; i++)
        all |= 1ull << k->order[i];
    if (k->form == TY_FORM_ROWS && k->n_reductions == 0 && k->n_order > 1 && (k->outer & all) == all)
        k->outer &= ~(1ull << k->order[k->n_order - 1]);
}

void ty_kernel_merge_vars(ty_kernel *k)
{
    merge_drop_ones(k);
    for (int at = 0; at + 1 < k->n_order;)
        if (!merge_at(k, at))
            at++;
    merge_inner_loop(k);
}

uint32_t ty_kernel_row_guard(const ty_kernel *k)
{
    uint32_t guard = k->n_stores && k->n_reductions == 0 ? k->store[0].guard : TY_NONE;
    for (int i = 1; i < k->n_stores; i++)
        guard = k->store[i].guard == guard ? guard : TY_NONE;
    return guard != TY_NONE && (k->instr[guard].vars & ~k->outer) == 0 ? guard : TY_NONE;
}

static int64_t merge_extent_of(const ty_kernel *k, bool outer)
{
    int64_t n = 1;
    for (int i = 0; i < k->n_order; i++)
        if ((k->outer >> k->order[i] & 1) == outer)
            n *= k->extent[k->order[i]];
    return n;
}

int64_t ty_kernel_n_units(const ty_kernel *k)
{
    int64_t rows = merge_extent_of(k, true);
    if (k->form == TY_FORM_ROWS)
        return rows;
    if (k->form == TY_FORM_BANDS)
        return k->extent[k->order[0]];
    int64_t columns = k->extent[k->order[k->n_order - 1]];
    return columns ? rows / columns * ((columns + TY_COLUMN_BLOCK - 1) / TY_COLUMN_BLOCK) : 0;
}

double ty_kernel_unit_cost(const ty_kernel *k)
{
    double inner = (double)merge_extent_of(k, false) * (double)k->n_instrs;
    int64_t columns = k->n_order ? k->extent[k->order[k->n_order - 1]] : 1;
    if (k->form == TY_FORM_ROWS)
        return inner;
    if (k->form == TY_FORM_BANDS)
        return inner * (double)k->extent[k->order[1]];
    return inner * (double)(columns < TY_COLUMN_BLOCK ? columns : TY_COLUMN_BLOCK);
}

/* Elements behind an address: one for each combination of the variables in it. */
static double merge_touched(const ty_kernel *k, uint64_t vars)
{
    double n = 1;
    for (int i = 0; i < k->n_order; i++)
        if (vars >> k->order[i] & 1)
            n *= (double)k->extent[k->order[i]];
    return n;
}

/* Elements of buffer b that loads touch: each address counts once, however often it is loaded. */
static double merge_loaded(const ty_kernel *k, uint32_t b)
{
    double n = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *load = &k->instr[i];
        bool known = load->kop != TY_K_LOAD || load->buffer != b;
        for (uint32_t e = 0; e < i && !known; e++)
            known = k->instr[e].kop == TY_K_LOAD && k->instr[e].buffer == b && k->instr[e].addr == load->addr;
        if (!known)
            n += merge_touched(k, ty_ix_at(&k->ix, load->addr)->vars);
    }
    return n;
}

void ty_kernel_traffic(const ty_kernel *k, size_t *read_bytes, size_t *written_bytes)
{
    *read_bytes = *written_bytes = 0;
    for (int b = 0; b < k->n_buffers; b++) {
        double most = merge_loaded(k, (uint32_t)b), span = (double)k->buffer[b].span_elems;
        for (int s = 0; s < k->n_stores; s++)
            if (k->store[s].buffer == (uint32_t)b)
                most = merge_touched(k, ty_ix_at(&k->ix, k->store[s].addr)->vars);
        most = most < span ? most : span;
        *(k->buffer[b].written ? written_bytes : read_bytes) += (size_t)most * ty_dtype_bytes(k->buffer[b].dtype);
    }
}
