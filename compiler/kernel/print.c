/* print.c - kernels as text for people: one line an instruction, addresses as sums. */
#include "compiler/kernel/kernel.h"
#include "compiler/ops/op.h"

static void print_ix(const ty_kernel *k, ty_ix ix, ty_buf *out)
{
    const ty_ix_node *node = ty_ix_at(&k->ix, ix);
    for (int i = 0; i < node->n_terms; i++) {
        const ty_atom *atom = &k->ix.atom[node->term[i].atom];
        ty_buf_addf(out, "%s%lld*", i ? " + " : "", (long long)node->term[i].coef);
        if (atom->kind == TY_ATOM_VAR)
            ty_buf_addf(out, "i%u", atom->arg);
        else if (atom->kind == TY_ATOM_DATA)
            ty_buf_addf(out, "v%u", atom->arg);
        else {
            ty_buf_adds(out, "(");
            print_ix(k, atom->arg, out);
            ty_buf_addf(out, ")%c%lld", atom->kind == TY_ATOM_DIV ? '/' : '%', (long long)atom->d);
        }
    }
    if (node->c || !node->n_terms)
        ty_buf_addf(out, "%s%lld", node->n_terms ? " + " : "", (long long)node->c);
}

static void print_instr(const ty_kernel *k, uint32_t id, ty_buf *out)
{
    const ty_kinstr *instr = &k->instr[id];
    ty_buf_addf(out, "  s%d v%u %s = ", instr->stage, id, ty_dtype_text(instr->dtype));
    switch (instr->kop) {
    case TY_K_CONST:
        ty_buf_addf(out, "%.9g", ty_dtype_is_float(instr->dtype) ? instr->imm : (double)instr->imm_int);
        break;
    case TY_K_LOAD:
        ty_buf_addf(out, "b%u[", instr->buffer);
        print_ix(k, instr->addr, out);
        ty_buf_adds(out, "]");
        if (instr->guard != TY_NONE)
            ty_buf_addf(out, " if v%u", instr->guard);
        break;
    case TY_K_INDEX:
        print_ix(k, instr->addr, out);
        break;
    case TY_K_INSIDE:
        ty_buf_addf(out, "%lld <= ", (long long)instr->lo);
        print_ix(k, instr->addr, out);
        ty_buf_addf(out, " < %lld", (long long)instr->hi);
        break;
    case TY_K_RESULT:
        ty_buf_addf(out, "r%u", instr->reduction);
        break;
    case TY_K_OP:
        ty_buf_adds(out, ty_op_row_of(instr->op)->text);
        for (int i = 0; i < 3; i++) {
            uint32_t operand = i == 0 ? instr->a : i == 1 ? instr->b : instr->c;
            if (operand != TY_NONE)
                ty_buf_addf(out, " v%u", operand);
        }
        break;
    }
    ty_buf_adds(out, "\n");
}

void ty_kernel_print(const ty_kernel *k, ty_buf *out)
{
    static const char *const form[] = {
        [TY_FORM_ROWS] = "rows", [TY_FORM_COLUMNS] = "columns", [TY_FORM_BANDS] = "bands"};
    static const char *const how[] = {[TY_SUM] = "sum", [TY_MAX] = "max", [TY_MIN] = "min", [TY_PROD] = "prod"};
    ty_buf_addf(out, "kernel %s", form[k->form]);
    for (int i = 0; i < k->n_order; i++)
        ty_buf_addf(out, " i%d<%lld%s", k->order[i], (long long)k->extent[k->order[i]],
                    k->outer >> k->order[i] & 1 ? "" : " (inner)");
    ty_buf_adds(out, "\n");
    for (int i = 0; i < k->n_buffers; i++)
        ty_buf_addf(out, "  b%d %s %%%u:%u%s\n", i, ty_dtype_text(k->buffer[i].dtype), ty_val_node(k->buffer[i].val),
                    ty_val_result(k->buffer[i].val), k->buffer[i].written ? " written" : "");
    for (uint32_t i = 0; i < k->n_instrs; i++)
        print_instr(k, i, out);
    for (int i = 0; i < k->n_reductions; i++)
        ty_buf_addf(out, "  s%d r%d = %s v%u%s\n", k->reduction[i].stage, i, how[k->reduction[i].how],
                    k->reduction[i].value, k->reduction[i].columns ? " of a column" : "");
    for (int i = 0; i < k->n_stores; i++) {
        ty_buf_addf(out, "  s%d b%u[", k->store[i].stage, k->store[i].buffer);
        print_ix(k, k->store[i].addr, out);
        ty_buf_addf(out, "] = v%u", k->store[i].value);
        if (k->store[i].guard != TY_NONE)
            ty_buf_addf(out, " if v%u", k->store[i].guard);
        ty_buf_adds(out, "\n");
    }
}
