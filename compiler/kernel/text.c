/* text.c - addresses and instructions as text. See text.h. */
#include "compiler/kernel/text.h"

#include "compiler/ops/op.h"

#include <math.h>
#include <stdio.h>

/* Forms of ops that are not the function of their name: %a %b %c operands, %t suffix of the result's functions. Index
 * 0: floats, 1: integers, 2: bool; NULL: as for floats, and for floats ty_<name>_<type>(%a, ...). */
static const char *const text_ops[TY_N_OPS][3] = {
    [TY_OP_NEG] = {"-%a", "-%a", NULL},
    [TY_OP_ABS] = {NULL, "(%a < 0 ? -%a : %a)", NULL},
    [TY_OP_RSQRT] = {"1 / ty_sqrt_%t(%a)", NULL, NULL},
    [TY_OP_NOT] = {"~%a", "~%a", "!%a"},
    [TY_OP_ADD] = {"%a + %b", NULL, "%a | %b"},
    [TY_OP_SUB] = {"%a - %b", NULL, NULL},
    [TY_OP_MUL] = {"%a * %b", NULL, "%a & %b"},
    [TY_OP_DIV] = {"%a / %b", "(%b == 0 ? 0 : ty_divides(%b) ? %a / %b : -%a)", NULL},
    [TY_OP_REM] = {NULL, "(%b == 0 || !ty_divides(%b) ? 0 : %a % %b)", NULL},
    [TY_OP_POW] = {NULL, "ty_pow_int(%a, %b)", NULL},
    [TY_OP_MAX] = {"(%a > %b || %a != %a ? %a : %b)", "(%a > %b ? %a : %b)", NULL},
    [TY_OP_MIN] = {"(%a < %b || %a != %a ? %a : %b)", "(%a < %b ? %a : %b)", NULL},
    [TY_OP_AND] = {"%a & %b", NULL, NULL},
    [TY_OP_OR] = {"%a | %b", NULL, NULL},
    [TY_OP_XOR] = {"%a ^ %b", NULL, NULL},
    [TY_OP_SHL] = {"ty_shl(%a, %b)", NULL, NULL},
    [TY_OP_SHR] = {"ty_shr(%a, %b)", NULL, NULL},
    [TY_OP_EQ] = {"%a == %b", NULL, NULL},
    [TY_OP_LT] = {"%a < %b", NULL, NULL},
    [TY_OP_LE] = {"%a <= %b", NULL, NULL},
    [TY_OP_SELECT] = {"%a ? %b : %c", NULL, NULL},
    [TY_OP_RNG] = {"ty_rng(%a, %b, %c, %i)", NULL, NULL},
};

/* Quick forms, where they are not the function ty_<name>_near. */
static const char *const text_near[TY_N_OPS] = {[TY_OP_DIV] = "%a * ty_reciprocal(%b)"};

void ty_ktext_line(ty_ktext *t)
{
    for (int i = 0; i < t->indent; i++)
        ty_buf_adds(t->out, " ");
}

void ty_ktext_linef(ty_ktext *t, const char *fmt, ...)
{
    va_list args;
    ty_ktext_line(t);
    va_start(args, fmt);
    ty_buf_vaddf(t->out, fmt, args);
    va_end(args);
}

/* ---- index expressions ---- */

static void text_ix_less(ty_ktext *t, ty_ix ix, int64_t less);

/* Behind a number in an address. */
static const char *text_long(const ty_ktext *t)
{
    return t->narrow ? "" : "l";
}

static void text_ix(ty_ktext *t, ty_ix ix)
{
    text_ix_less(t, ix, 0);
}

static void text_atom(ty_ktext *t, const ty_atom *atom)
{
    switch (atom->kind) {
    case TY_ATOM_VAR:
        if (t->at_first && (int)atom->arg == t->lanes->var)
            ty_buf_adds(t->out, t->first);
        else
            ty_buf_addf(t->out, "i%u", atom->arg);
        break;
    case TY_ATOM_DATA:
        ty_buf_addf(t->out, "(long)v%u", atom->arg);
        break;
    default:
        ty_buf_adds(t->out, t->narrow ? "(int)((unsigned)(" : "(long)((unsigned long)(");
        text_ix(t, atom->arg);
        ty_buf_addf(t->out, ") %c %ldu%s)", atom->kind == TY_ATOM_DIV ? '/' : '%', (long)atom->d, text_long(t));
    }
}

static void text_ix_less(ty_ktext *t, ty_ix ix, int64_t less)
{
    const ty_ix_node *node = ty_ix_at(&t->k->ix, ix);
    for (int i = 0; i < node->n_terms; i++) {
        if (i)
            ty_buf_adds(t->out, " + ");
        if (node->term[i].coef != 1)
            ty_buf_addf(t->out, "%ld%s * ", (long)node->term[i].coef, text_long(t));
        text_atom(t, &t->k->ix.atom[node->term[i].atom]);
    }
    if (node->c != less || node->n_terms == 0)
        ty_buf_addf(t->out, "%s%ld%s", node->n_terms ? " + " : "", (long)(node->c - less), text_long(t));
}

/* ---- instructions ---- */

static void text_const(ty_ktext *t, const ty_kinstr *instr)
{
    if (!ty_dtype_is_float(instr->dtype)) {
        if (instr->dtype == TY_U64)
            ty_buf_addf(t->out, "%luul", (unsigned long)instr->imm_int);
        else if (instr->imm_int == INT64_MIN)
            ty_buf_adds(t->out, "(-9223372036854775807L - 1)");
        else
            ty_buf_addf(t->out, "%ldl", (long)instr->imm_int);
    } else if (isnan(instr->imm)) {
        ty_buf_adds(t->out, "__builtin_nanf(\"\")");
    } else if (isinf(instr->imm)) {
        ty_buf_adds(t->out, instr->imm > 0 ? "__builtin_inff()" : "-__builtin_inff()");
    } else {
        ty_buf_addf(t->out, "%a%s", instr->imm, instr->dtype == TY_F64 ? "" : "f");
    }
}

void ty_ktext_element(ty_ktext *t, uint32_t buffer, ty_ix addr)
{
    int64_t step;
    ty_buf_addf(t->out, "b%u[", t->alias[buffer]);
    t->at_first = t->lanes && ty_lanes_step(t->lanes, addr, t->base[buffer], &step);
    text_ix_less(t, addr, t->base[buffer]);
    if (t->at_first && step == 1)
        ty_buf_adds(t->out, " + k");
    else if (t->at_first && step)
        ty_buf_addf(t->out, " + %ld%s * k", (long)step, text_long(t));
    t->at_first = false;
    ty_buf_adds(t->out, "]");
}

const char *ty_ktext_widening(ty_dtype dtype)
{
    return dtype == TY_F16 ? "ty_load_f16" : dtype == TY_BF16 ? "ty_load_bf16" : "";
}

static void text_load(ty_ktext *t, uint32_t id)
{
    const ty_kinstr *instr = &t->k->instr[id];
    const char *convert = ty_ktext_widening(instr->dtype);
    if (t->vector && t->vector[id]) {
        ty_buf_addf(t->out, "%s(x%u[w])", convert, id);
        return;
    }
    if (instr->guard != TY_NONE)
        ty_buf_addf(t->out, "v%u ? ", instr->guard);
    ty_buf_addf(t->out, "%s(", convert);
    ty_ktext_element(t, instr->buffer, instr->addr);
    ty_buf_adds(t->out, ")");
    if (instr->guard != TY_NONE)
        ty_buf_adds(t->out, " : 0");
}

static void text_result(ty_ktext *t, const ty_kinstr *instr)
{
    if (t->columns)
        ty_buf_addf(t->out, "r%u[c]", instr->reduction);
    else
        ty_buf_addf(t->out, "r%u", instr->reduction);
}

static void text_cast(ty_ktext *t, const ty_kinstr *instr)
{
    const ty_kinstr *from = &t->k->instr[instr->a];
    if (instr->op == TY_OP_BITCAST)
        ty_buf_addf(t->out, "TY_BITCAST(%s, %s, v%u)", ty_ctypes[instr->dtype].value, ty_ctypes[from->dtype].value,
                    instr->a);
    else if (instr->dtype == TY_BOOL)
        ty_buf_addf(t->out, "v%u != 0", instr->a);
    else if (ty_dtype_is_float(from->dtype) && !ty_dtype_is_float(instr->dtype))
        ty_buf_addf(t->out, "ty_cast_%s_%s(v%u)", ty_ctypes[from->dtype].suffix, ty_ctypes[instr->dtype].suffix,
                    instr->a);
    else
        ty_buf_addf(t->out, "(%s)v%u", ty_ctypes[instr->dtype].value, instr->a);
}

static bool text_is_near(const ty_ktext *t, const ty_kinstr *instr)
{
    return t->near && t->near[instr - t->k->instr];
}

/* The class of operands decides the form: a comparison of floats yields bool but compares floats. NULL: a function. */
static const char *text_form(const ty_ktext *t, const ty_kinstr *instr)
{
    if (text_is_near(t, instr))
        return text_near[instr->op];
    ty_dtype dtype = instr->op == TY_OP_SELECT || instr->op == TY_OP_RNG ? TY_F32 : t->k->instr[instr->a].dtype;
    int class_ = ty_dtype_is_float(dtype) ? 0 : dtype == TY_BOOL ? 2 : 1;
    const char *form = text_ops[instr->op][class_];
    return form ? form : text_ops[instr->op][0];
}

/* The function of the prelude that has the op's name. */
static void text_call(ty_ktext *t, const ty_kinstr *instr)
{
    const ty_op_row *row = ty_op_row_of(instr->op);
    const uint32_t operand[3] = {instr->a, instr->b, instr->c};
    ty_buf_addf(t->out, "ty_%s_%s(", row->text, text_is_near(t, instr) ? "near" : ty_ctypes[instr->dtype].suffix);
    for (int i = 0; i < row->min_in; i++)
        ty_buf_addf(t->out, "%sv%u", i ? ", " : "", operand[i]);
    ty_buf_addc(t->out, ')');
}

static bool text_is_place(const ty_ktext *t, uint32_t id)
{
    return t->k->instr[id].kop == TY_K_INDEX && t->k->instr[id].dtype == TY_I64;
}

/* Where loop variables are int, a number is compared with one as an int. */
static bool text_equals_place(ty_ktext *t, const ty_kinstr *instr)
{
    if (!t->narrow || instr->op != TY_OP_EQ || text_is_place(t, instr->a) == text_is_place(t, instr->b))
        return false;
    bool first = text_is_place(t, instr->a);
    ty_buf_addf(t->out, "(int)v%u == ty_place(v%u)", first ? instr->a : instr->b, first ? instr->b : instr->a);
    return true;
}

static void text_op(ty_ktext *t, const ty_kinstr *instr)
{
    if (instr->op == TY_OP_CAST || instr->op == TY_OP_BITCAST) {
        text_cast(t, instr);
        return;
    }
    if (t->drawn && t->drawn[instr - t->k->instr]) {
        ty_buf_addf(t->out, "w%u%s", (uint32_t)(instr - t->k->instr), t->drawn_at);
        return;
    }
    if (text_equals_place(t, instr))
        return;
    const char *form = text_form(t, instr);
    if (!form) {
        text_call(t, instr);
        return;
    }
    const uint32_t operand[3] = {instr->a, instr->b, instr->c};
    for (const char *p = form; *p; p++) {
        if (*p != '%' || p[1] == ' ') {
            ty_buf_addc(t->out, *p);
            continue;
        }
        p++;
        if (*p == 't')
            ty_buf_adds(t->out, ty_ctypes[instr->dtype].suffix);
        else if (*p == 'i')
            ty_buf_addf(t->out, "%ldu", (long)instr->imm_int);
        else
            ty_buf_addf(t->out, "v%u", operand[*p - 'a']);
    }
}

/* Whether the value has 16 bits only: an op's result is rounded, what was read was stored so. */
static bool text_is_rounded(const ty_ktext *t, uint32_t id, ty_dtype dtype)
{
    const ty_kinstr *instr = &t->k->instr[id];
    bool zero = instr->kop == TY_K_CONST && instr->imm == 0;
    return instr->dtype == dtype && (instr->kop == TY_K_OP || instr->kop == TY_K_LOAD || zero);
}

/* Whether the result is to be rounded to 16 bits: not if it is one of the operands, which are. */
static bool text_rounds(const ty_ktext *t, const ty_kinstr *instr)
{
    if (instr->kop != TY_K_OP || (instr->dtype != TY_F16 && instr->dtype != TY_BF16))
        return false;
    switch (instr->op) {
    case TY_OP_NEG:
        return !text_is_rounded(t, instr->a, instr->dtype);
    case TY_OP_MAX:
    case TY_OP_MIN:
        return !text_is_rounded(t, instr->a, instr->dtype) || !text_is_rounded(t, instr->b, instr->dtype);
    case TY_OP_SELECT:
        return !text_is_rounded(t, instr->b, instr->dtype) || !text_is_rounded(t, instr->c, instr->dtype);
    default:
        return true;
    }
}

void ty_ktext_instr(ty_ktext *t, uint32_t id)
{
    const ty_kinstr *instr = &t->k->instr[id];
    bool small = text_rounds(t, instr);
    ty_ktext_line(t);
    ty_buf_addf(t->out, "const %s v%u = ", ty_ctypes[instr->dtype].value, id);
    if (t->from && t->from[id] != TY_NONE) {
        ty_buf_addf(t->out, "%s%u[j][w]%s;\n", t->held, t->from[id], t->held_at);
        return;
    }
    if (small)
        ty_buf_addf(t->out, "ty_round_%s(", instr->dtype == TY_F16 ? "f16" : "bf16");
    switch (instr->kop) {
    case TY_K_CONST:
        text_const(t, instr);
        break;
    case TY_K_LOAD:
        text_load(t, id);
        break;
    case TY_K_INDEX:
        text_ix(t, instr->addr);
        break;
    case TY_K_RESULT:
        text_result(t, instr);
        break;
    case TY_K_OP:
        text_op(t, instr);
        break;
    case TY_K_INSIDE:
        if (t->cut >= 0 && ty_kernel_guard(t->k, instr, t->cut, t->cut_lo, t->cut_hi) >= 0) {
            ty_buf_adds(t->out, ty_kernel_guard(t->k, instr, t->cut, t->cut_lo, t->cut_hi) ? "1" : "0");
            break;
        }
        ty_buf_adds(t->out, t->narrow ? "(unsigned)(" : "(unsigned long)(");
        t->at_first = t->lanes && t->lanes->same[id]; /* what is the same throughout leaves the loop */
        text_ix(t, instr->addr);
        t->at_first = false;
        ty_buf_addf(t->out, " - %ld%s) < %ldu%s", (long)instr->lo, text_long(t), (long)(instr->hi - instr->lo),
                    text_long(t));
        break;
    }
    ty_buf_adds(t->out, small ? ");\n" : ";\n");
}

/* What was computed or read as bfloat16 is rounded already: its upper half is what is stored. */
static const char *text_short(const ty_ktext *t, uint32_t value)
{
    return text_is_rounded(t, value, TY_BF16) ? "ty_keep_bf16" : "ty_store_bf16";
}

void ty_ktext_stored(ty_ktext *t, const ty_kstore *store)
{
    ty_dtype dtype = t->k->buffer[store->buffer].dtype;
    const char *convert = dtype == TY_F16 ? "ty_store_f16" : dtype == TY_BF16 ? text_short(t, store->value) : "";
    ty_buf_addf(t->out, "%s(v%u)", convert, store->value);
}

void ty_ktext_store(ty_ktext *t, const ty_kstore *store)
{
    ty_ktext_line(t);
    if (store->guard != t->row_guard)
        ty_buf_addf(t->out, "if (v%u) ", store->guard);
    ty_ktext_element(t, store->buffer, store->addr);
    ty_buf_adds(t->out, " = ");
    ty_ktext_stored(t, store);
    ty_buf_adds(t->out, ";\n");
}

/* ---- the width of indices ---- */

#define TEXT_INT ((double)(1 << 30)) /* half of what an int holds: a sum may be one step beyond */

static double text_largest(int64_t lo, int64_t hi)
{
    return fmax(fabs((double)lo), fabs((double)hi));
}

static bool text_node_fits(const ty_kernel *k, ty_ix ix, double more)
{
    const ty_ix_node *node = ty_ix_at(&k->ix, ix);
    double sum = fabs((double)node->c) + more;
    for (int i = 0; i < node->n_terms; i++) {
        const ty_atom *atom = &k->ix.atom[node->term[i].atom];
        bool divides = atom->kind == TY_ATOM_DIV || atom->kind == TY_ATOM_MOD;
        sum += fabs((double)node->term[i].coef) * text_largest(atom->lo, atom->hi);
        if (atom->data || (divides && ((double)atom->d > TEXT_INT || ty_ix_at(&k->ix, atom->arg)->lo < 0 ||
                                       !text_node_fits(k, atom->arg, 0))))
            return false;
    }
    return sum < TEXT_INT;
}

bool ty_ktext_fits_int(const ty_kernel *k, const int64_t *base)
{
    double points = 1;
    bool fits = true;
    for (int i = 0; i < k->n_order; i++)
        points *= (double)k->extent[k->order[i]];
    for (uint32_t i = 0; i < k->n_instrs && fits; i++) {
        const ty_kinstr *instr = &k->instr[i];
        if (instr->kop == TY_K_LOAD)
            fits = text_node_fits(k, instr->addr, fabs((double)base[instr->buffer]));
        else if (instr->kop == TY_K_INDEX || instr->kop == TY_K_INSIDE)
            fits = text_node_fits(k, instr->addr, instr->kop == TY_K_INSIDE ? text_largest(instr->lo, instr->hi) : 0);
    }
    for (int i = 0; i < k->n_stores && fits; i++)
        fits = text_node_fits(k, k->store[i].addr, fabs((double)base[k->store[i].buffer]));
    return fits && points < TEXT_INT;
}

/* ---- loops ---- */

void ty_ktext_outer(ty_ktext *t, const int *var, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        long extent = (long)t->k->extent[var[i]];
        if (i)
            ty_buf_addf(t->out, "  const long i%d = q %% %ldl; q /= %ldl;\n", var[i], extent, extent);
        else
            ty_buf_addf(t->out, "  const long i%d = q;\n", var[i]);
    }
}

/* ---- reductions ---- */

void ty_ktext_combine(ty_ktext *t, const ty_kreduction *red, const char *acc)
{
    uint32_t v = red->value;
    if (red->how == TY_SUM || red->how == TY_PROD)
        ty_ktext_linef(t, "%s %s= v%u;\n", acc, red->how == TY_SUM ? "+" : "*", v);
    else
        ty_ktext_linef(t, "%s = v%u %c %s || v%u != v%u ? v%u : %s;\n", acc, v, red->how == TY_MAX ? '>' : '<', acc, v,
                       v, v, acc);
}

const char *ty_ktext_identity(const ty_kreduction *red)
{
    const ty_ctype *type = &ty_ctypes[red->dtype];
    return red->how == TY_MAX ? type->lowest : red->how == TY_MIN ? type->highest : red->how == TY_PROD ? "1" : "0";
}
