/* onnx_mutants.c - damaged ONNX files: each is opened, checked and imported, and must be taken or refused in good
 * order (mutants.h).
 *
 *     onnx_mutants [-n COUNT] [-s SEED] FILE...
 *
 * A refusal in the graph must name its node. Closes with "N passed, N failed, N skipped".
 */
#include "tests/tools/mutants.h"

#include "compiler/import/onnx.h"
#include "compiler/ir/build.h"

/* A byte behind the key of a counted field (wire type 2) becomes another length. */
static size_t change_length(const mutants_file *f, uint8_t *b, int64_t id)
{
    static const uint8_t lengths[] = {0, 1, 0x7f, 0x80, 0xff, 2, 64};
    size_t at = mutants_place(f, id, 1);
    for (size_t i = 0; i + 1 < f->n; i++, at = at + 2 < f->n ? at + 1 : 0)
        if ((b[at] & 7) == 2 && b[at] >> 3 > 0 && b[at] < 0x80)
            break;
    if (at + 1 < f->n)
        b[at + 1] = mutants_draw(id, 4, 2) ? lengths[mutants_draw(id, 5, sizeof lengths)]
                                           : (uint8_t)(b[at + 1] + mutants_draw(id, 6, 9) - 4);
    return f->n;
}

/* What fails in the graph must name its node, or the graph; what fails before, its place. */
static void judge_refusal(mutants_report *r, const ty_error *err, bool in_graph)
{
    mutants_judge(r, err, !in_graph ? "mutant.onnx" : strstr(err->place, "node #") ? "node #" : "graph \"");
}

/* Free dims are 2; inputs of no known type keep the model from being imported, as they would in training. */
static bool bind_inputs(const ty_onnx *m, ty_graph *g, ty_val *in)
{
    for (int i = 0; i < ty_onnx_n_inputs(m); i++) {
        const ty_onnx_value *v = ty_onnx_input(m, i);
        int64_t dim[TY_MAX_RANK];
        int64_t elems = 1;
        if (v->rank < 0 || v->dtype >= TY_N_DTYPES)
            return false;
        for (int k = 0; k < v->rank; k++) {
            dim[k] = v->dim[k] < 0 ? 2 : v->dim[k];
            if (dim[k] > 1 << 20 || (elems *= dim[k] ? dim[k] : 1) > 1 << 24)
                return false;
        }
        in[i] = ty_b_input(g, ty_graph_add_input(g, v->name, ty_type_make(v->dtype, v->rank, dim)));
    }
    return !ty_graph_failed(g, NULL);
}

static void import(const ty_onnx *m, mutants_report *r)
{
    ty_graph *g = ty_graph_new();
    ty_val *in = calloc((size_t)ty_onnx_n_inputs(m) + 1, sizeof *in);
    ty_error err = {0};
    ty_onnx_values values;
    if (in && bind_inputs(m, g, in)) {
        ty_onnx_binding b = {
            .mode = TY_ONNX_TRAIN, .inputs = in, .seed = ty_b_scalar(g, TY_I64, 1), .step = ty_b_scalar(g, TY_I64, 1)};
        if (ty_onnx_import(m, g, &b, &values, &err) < 0)
            judge_refusal(r, &err, true);
    }
    free(in);
    ty_graph_free(g);
}

static void try(const mutants_file *f, const uint8_t *bytes, size_t n, mutants_report *r)
{
    (void)f;
    ty_onnx *m = NULL;
    ty_error err = {0};
    static ty_error faults[TY_ONNX_MAX_FAULTS];
    if (ty_onnx_open_memory("mutant.onnx", bytes, n, &m, &err) < 0)
        judge_refusal(r, &err, false);
    else {
        int found = ty_onnx_check(m, faults, TY_ONNX_MAX_FAULTS);
        for (int i = 0; i < found && i < TY_ONNX_MAX_FAULTS; i++)
            judge_refusal(r, &faults[i], true);
        import(m, r);
    }
    ty_onnx_free(m);
}

int main(int argc, char **argv)
{
    static mutants_change *const kinds[] = {mutants_flip_bits, mutants_cut_off, change_length, mutants_copy_over};
    return mutants_main(argc, argv, &(mutants_job){"onnx_mutants", kinds, 4, try});
}
