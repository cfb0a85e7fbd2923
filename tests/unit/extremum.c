/* extremum.c - the gradient of a maximum goes to the element that made it, also where the compiler could compute the
 * elements a second time with other roundings: an equality that crosses a rounding boundary finds nobody.
 *
 * x = a b + c d has several roundings (contracted or not), of which each kernel must get the same one.
 */
#include "tests/unit/workloads.h"

#include <math.h>

enum { ROWS = 64, COLUMNS = 331 };

static const char *const model_text_of = "#include <trainyard/model.h>\n"
                                         "void model(ty_net *net)\n"
                                         "{\n"
                                         "    ty_var a = ty_input(net, \"a\", \"f32[64,331]\");\n"
                                         "    ty_var b = ty_input(net, \"b\", \"f32[64,331]\");\n"
                                         "    ty_var d = ty_input(net, \"d\", \"f32[64,331]\");\n"
                                         "    ty_var c = ty_parameter(net, \"c\", ty_dims(64, 331), ty_normal(0, 1));\n"
                                         "    ty_var x = ty_add(net, ty_mul(net, a, b), ty_mul(net, c, d));\n"
                                         "    %s\n"
                                         "    ty_output(net, \"y\", ty_reduce_sum(net, y, ty_dims(0), true));\n"
                                         "}\n";

static const float *c_of(const ty_program *p)
{
    ty_tensor t = ty_program_tensor(p, 0, NULL, NULL);
    return t.data;
}

/* How many elements of each row's gradient are not zero, and how much of dy arrives. */
static void expect_one_a_row(const char *line, ty_backend backend)
{
    char text[1200];
    static float in[3][ROWS * COLUMNS], before[ROWS * COLUMNS];
    snprintf(text, sizeof text, model_text_of, line);
    ty_model *m = workload_c(text);
    const int64_t dim[] = {ROWS, COLUMNS};
    ty_type type = ty_type_make(TY_F32, 2, dim);
    const ty_binding inputs[] = {{"a", type}, {"b", type}, {"d", type}};
    const ty_loss_term loss = {.kind = TY_LOSS_MEAN, .output = "y", .weight = 1};
    const ty_train_spec spec = {.inputs = inputs,
                                .n_inputs = 3,
                                .loss = &loss,
                                .n_loss = 1,
                                .optimizer = {.kind = TY_OPT_SGD, .lr = 1},
                                .accumulate = 1,
                                .no_eval = true};
    ty_compile_options opt = {.backend = backend, .threads = 2};
    ty_program *p;
    ty_error err = {0};
    if (ty_compile_train(m, &spec, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    for (int i = 0; i < 3; i++)
        for (int e = 0; e < ROWS * COLUMNS; e++)
            in[i][e] = ty_rng_uniform(ty_rng_u32(9, (uint32_t)i, 0, (uint64_t)e)) * 2 - 1;
    memcpy(before, c_of(p), sizeof before);
    if (ty_program_run(p, TY_RUN_LAST, (const void *[]){in[0], in[1], in[2]}, &err) < 0)
        fail_msg("%s", err.message);
    for (int r = 0; r < ROWS; r++) {
        int hits = 0;
        for (int k = 0; k < COLUMNS; k++) {
            float moved = c_of(p)[r * COLUMNS + k] - before[r * COLUMNS + k];
            hits += moved != 0 || isnan(moved);
            if (isnan(moved))
                fail_msg("%s: row %d, element %d: no number (back end %d)", line, r, k, (int)backend);
        }
        if (hits != 1)
            fail_msg("%s: row %d: the gradient reaches %d elements", line, r, hits);
    }
    ty_program_free(p);
    ty_model_free(m);
}

static void maxima_find_their_element(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "ty_var y = ty_reduce_max(net, x, ty_dims(1), true);",
        "ty_var y = ty_reduce_min(net, x, ty_dims(1), true);",
        "ty_var y = ty_reduce_max(net, ty_exp(net, x), ty_dims(1), true);",
        "ty_var p = ty_mul(net, c, d), q = ty_reduce_sum(net, ty_square(net, p), ty_dims(1), true);"
        "ty_var y = ty_sub(net, ty_reduce_max(net, ty_add(net, p, a), ty_dims(1), true), ty_scale(net, q, 0));",
        "ty_var p = ty_mul(net, c, d), q = ty_reduce_sum(net, ty_square(net, p), ty_dims(1), true);"
        "ty_var y = ty_sub(net, ty_reduce_max(net, ty_add(net, p, a), ty_dims(1), true), ty_scale(net, q, 1e-30));",
        "ty_var y = ty_max(net, ty_reduce_max(net, x, ty_dims(1), true), ty_number(net, \"f32\", -9));",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        expect_one_a_row(lines[i], TY_BACKEND_INTERPRETER);
        expect_one_a_row(lines[i], TY_BACKEND_CPU);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(maxima_find_their_element)};
    return cmocka_run_group_tests_name("extremum", tests, workload_cache, workload_cache_remove);
}
