/* precision.c - mixed precision: which products have 16 bits, that weights and their gradients have 32, compiled code
 * against the interpreter, and the scale of the loss. Whole trainings are judged by tests/train/precision.sh. */
#include "tests/unit/step_case.h"

#include "compiler/passes/precision.h"
#include "compiler/passes/loss_scale.h"

/* Products of the step by the types of operands and result. */
typedef struct products {
    int shorts;    /* 16 bits in, 16 out */
    int widened;   /* 16 in, 32 out */
    int full;      /* 32 in, 32 out */
    int roundings; /* casts to 16 bits */
} products;

static products count_products(const ty_graph *g, ty_dtype dtype)
{
    products p = {0};
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        ty_dtype out = (ty_dtype)ty_graph_type(g, ty_val_make(id, 0))->dtype;
        if (ty_graph_op(g, id) == TY_OP_CAST)
            p.roundings += out == dtype;
        if (ty_graph_op(g, id) != TY_OP_DOT)
            continue;
        bool narrow = ty_graph_type(g, ty_graph_in(g, id, 0))->dtype == dtype;
        p.shorts += narrow && out == dtype;
        p.widened += narrow && out == TY_F32;
        p.full += !narrow && out == TY_F32;
    }
    return p;
}

/* A weight [1, gates, n] of a layer; turned: it lies as Keras has it, [1, n, gates]. */
static void recurrent_weight(model_text *t, const char *name, int gates, int n, float first, bool turned)
{
    char given[16];
    snprintf(given, sizeof given, "%s_turned", name);
    if (!turned) {
        model_floats(t, name, SHAPE(1, gates, n), numbers(gates * n, first));
        return;
    }
    model_floats(t, given, SHAPE(1, n, gates), numbers(gates * n, first));
    attr_ints(t, "perm", 3, (const int64_t[]){0, 2, 1});
    model_node(t, "Transpose", given, name, "");
}

/* x [N, 4] as two steps of 2 -> LSTM or GRU of 4 units -> Relu of its last state -> MatMul w2 [4, 3] = y. */
static ty_model *recurrent(const char *layer, bool turned)
{
    model_text t;
    int gates = strcmp(layer, "LSTM") == 0 ? 16 : 12;
    model_begin(&t, 18);
    model_input(&t, "x", 1, SHAPE(-1, 4));
    recurrent_weight(&t, "w", gates, 2, 0.1f, turned);
    recurrent_weight(&t, "r", gates, 4, -0.1f, turned);
    model_floats(&t, "w2", SHAPE(4, 3), numbers(12, -0.05f));
    model_ints(&t, "apart", 3, (const int64_t[]){-1, 2, 2});
    model_ints(&t, "first", 1, (const int64_t[]){0});
    model_node(&t, "Reshape", "x,apart", "h0", "");
    attr_ints(&t, "perm", 3, (const int64_t[]){1, 0, 2});
    model_node(&t, "Transpose", "h0", "h1", "");
    attr_int(&t, "hidden_size", 4);
    model_node(&t, layer, "h1,w,r", "all,last", "first");
    model_node(&t, "Squeeze", "last,first", "h2", "");
    model_node(&t, "Relu", "h2", "h3", "");
    model_node(&t, "MatMul", "h3,w2", "y", "second");
    model_output(&t, "y", 1);
    return open_text(&t);
}

typedef struct products_row {
    const char *what;
    ty_precision precision;
    const char *keep;
    products expected; /* roundings: not looked at */
} products_row;

static void check_products(const ty_model *m, const products_row *row)
{
    plan p;
    plan_of(&p)->spec.precision = row->precision;
    p.spec.keep_float32 = &row->keep;
    p.spec.n_keep_float32 = row->keep != NULL;
    ty_step s = build(m, &p);
    products found = count_products(s.g, row->precision == TY_PRECISION_FLOAT16 ? TY_F16 : TY_BF16);
    const products *e = &row->expected;
    if (found.shorts != e->shorts || found.widened != e->widened || found.full != e->full)
        fail_msg("%s: expected %d, %d, %d products, found %d, %d, %d", row->what, e->shorts, e->widened, e->full,
                 found.shorts, found.widened, found.full);
    for (int w = 0; w < s.n_weights; w++)
        assert_true(s.weights[w].type.dtype == TY_F32 || !ty_dtype_is_float((ty_dtype)s.weights[w].type.dtype));
    ty_step_fini(&s);
}

static void products_have_16_bits(void **state)
{
    (void)state;
    static const products_row rows[] = {
        /* forward twice (equal in training and evaluation), the gradient to the hidden layer, two to weights */
        {"float32", TY_PRECISION_FLOAT32, NULL, {0, 0, 5, 0}},
        {"bfloat16", TY_PRECISION_BFLOAT16, NULL, {3, 2, 0, 0}},
        {"float16", TY_PRECISION_FLOAT16, NULL, {3, 2, 0, 0}},
        {"second layer kept", TY_PRECISION_BFLOAT16, "sec*", {1, 1, 3, 0}},
        {"products kept", TY_PRECISION_FLOAT16, "op:d?t", {0, 0, 5, 0}},
        {"others kept", TY_PRECISION_BFLOAT16, "op:conv*", {3, 2, 0, 0}},
    };
    ty_model *m = two_layers();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_products(m, &rows[i]);
    ty_model_free(m);
}

/* What a recurrent layer multiplies for all steps at once, of which the step's graph has the gradient's part: w x, and
 * the gradients of w and r. */
static void recurrences_have_16_bits(void **state)
{
    (void)state;
    static const products_row rows[] = {
        {"float32", TY_PRECISION_FLOAT32, NULL, {0, 0, 6, 0}},
        {"bfloat16", TY_PRECISION_BFLOAT16, NULL, {2, 4, 0, 0}},
        {"float16", TY_PRECISION_FLOAT16, NULL, {2, 4, 0, 0}},
        {"layer kept", TY_PRECISION_BFLOAT16, "first*", {2, 1, 3, 0}},
        {"recurrences kept", TY_PRECISION_BFLOAT16, "op:rnn", {2, 1, 3, 0}},
    };
    ty_model *m = recurrent("LSTM", false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_products(m, &rows[i]);
    ty_model_free(m);
}

/* As autocast, match_eager rounds a recurrent layer's results, so that what follows is rounded too. */
static void match_eager_rounds_states(void **state)
{
    (void)state;
    int roundings[2];
    ty_model *m = recurrent("LSTM", false);
    for (int eager = 0; eager < 2; eager++) {
        plan p;
        plan_of(&p)->spec.precision = TY_PRECISION_BFLOAT16;
        p.spec.match_eager = eager;
        ty_step s = build(m, &p);
        roundings[eager] = count_products(s.g, TY_BF16).roundings;
        ty_step_fini(&s);
    }
    assert_true(roundings[1] > roundings[0]);
    ty_model_free(m);
}

/* The gradients of a GRU's three gates are products apart, and none is rounded. */
static void gates_apart_have_wide_gradients(void **state)
{
    (void)state;
    static const products_row row = {"GRU", TY_PRECISION_BFLOAT16, NULL, {2, 6, 0, 0}};
    ty_model *m = recurrent("GRU", false);
    check_products(m, &row);
    ty_model_free(m);
}

/* A spectrum and its gradient stay in float32: what is quiet beside the loudest would be lost. */
static void spectra_have_32_bits(void **state)
{
    (void)state;
    static const products_row rows[] = {
        {"float32", TY_PRECISION_FLOAT32, NULL, {0, 0, 7, 0}},
        {"bfloat16", TY_PRECISION_BFLOAT16, NULL, {3, 2, 2, 0}},
    };
    model_text t;
    model_begin(&t, 20);
    model_input(&t, "x", 1, SHAPE(-1, 4));
    model_floats(&t, "w1", SHAPE(4, 8), numbers(32, 0.1f));
    model_floats(&t, "w2", SHAPE(10, 3), numbers(30, -0.05f));
    model_ints(&t, "apart", 3, (const int64_t[]){-1, 8, 1});
    model_ints(&t, "flat", 2, (const int64_t[]){-1, 10});
    model_node(&t, "MatMul", "x,w1", "h0", "first");
    model_node(&t, "Reshape", "h0,apart", "h1", "");
    attr_int(&t, "onesided", 1);
    model_node(&t, "DFT", "h1", "h2", "spectrum");
    model_node(&t, "Reshape", "h2,flat", "h3", "");
    model_node(&t, "MatMul", "h3,w2", "y", "second");
    model_output(&t, "y", 1);
    ty_model *m = open_text(&t);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_products(m, &rows[i]);
    ty_model_free(m);
}

/* A recurrent layer's weights that are turned are rounded as they lie, so that no kernel turns them. */
static void turned_weights_are_rounded_before(void **state)
{
    (void)state;
    int roundings = 0;
    plan p;
    ty_model *m = recurrent("LSTM", true);
    plan_of(&p)->spec.precision = TY_PRECISION_BFLOAT16;
    ty_step s = build(m, &p);
    for (uint32_t id = 0; id < ty_graph_n_nodes(s.g); id++) {
        const ty_type *t = ty_graph_type(s.g, ty_val_make(id, 0));
        int64_t elems = ty_type_elems(t);
        if (ty_graph_op(s.g, id) != TY_OP_CAST || t->dtype != TY_BF16 || t->rank < 2 ||
            (elems != 2 * 16 && elems != 4 * 16))
            continue;
        assert_int_not_equal(t->dim[t->rank - 2], 16);
        roundings += t->dim[t->rank - 1] == 16;
    }
    assert_int_equal(roundings, 2);
    ty_step_fini(&s);
    ty_model_free(m);
}

/* What is reshaped for a product is rounded before, so that no kernel sees axes that were joined. */
static void reshapes_are_rounded_before(void **state)
{
    (void)state;
    int roundings = 0, torn = 0;
    plan p;
    model_text t;
    model_begin(&t, 20);
    model_input(&t, "x", 1, SHAPE(-1, 4));
    model_floats(&t, "w1", SHAPE(4, 8), numbers(32, 0.1f));
    model_floats(&t, "w2", SHAPE(2, 3), numbers(6, -0.05f));
    model_ints(&t, "apart", 3, (const int64_t[]){-1, 4, 2});
    model_ints(&t, "flat", 2, (const int64_t[]){-1, 3});
    model_ints(&t, "middle", 1, (const int64_t[]){1});
    model_node(&t, "MatMul", "x,w1", "h0", "first");
    model_node(&t, "Relu", "h0", "h1", "");
    model_node(&t, "Reshape", "h1,apart", "h2", "");
    model_node(&t, "MatMul", "h2,w2", "h3", "second");
    model_node(&t, "ReduceSum", "h3,middle", "h4", "");
    model_node(&t, "Reshape", "h4,flat", "y", "");
    model_output(&t, "y", 1);
    ty_model *m = open_text(&t);
    plan_of(&p)->spec.precision = TY_PRECISION_BFLOAT16;
    ty_step s = build(m, &p);
    for (uint32_t id = 0; id < ty_graph_n_nodes(s.g); id++) {
        if (ty_graph_op(s.g, id) != TY_OP_CAST || ty_graph_type(s.g, ty_val_make(id, 0))->dtype != TY_BF16)
            continue;
        const ty_type *x = ty_graph_type(s.g, ty_graph_in(s.g, id, 0));
        roundings += x->rank == 2 && x->dim[1] == 8;
        torn += x->dim[x->rank - 1] == 2 && ty_graph_op(s.g, ty_val_node(ty_graph_in(s.g, id, 0))) == TY_OP_RESHAPE;
    }
    assert_int_equal(torn, 0);
    assert_true(roundings > 0);
    ty_step_fini(&s);
    ty_model_free(m);
}

/* What lies between two products is rounded once, or after each operation. */
static void match_eager_rounds_more(void **state)
{
    (void)state;
    static const char *const keep[] = {"op:neg"};
    int roundings[3];
    model_text t;
    model_begin(&t, 20);
    model_input(&t, "x", 1, SHAPE(-1, 4));
    model_floats(&t, "w1", SHAPE(4, 8), numbers(32, 0.1f));
    model_floats(&t, "w2", SHAPE(8, 3), numbers(24, -0.05f));
    model_node(&t, "MatMul", "x,w1", "h0", "first");
    model_node(&t, "Relu", "h0", "h1", "");
    model_node(&t, "Sigmoid", "h1", "h2", "");
    model_node(&t, "MatMul", "h2,w2", "y", "second");
    model_output(&t, "y", 1);
    ty_model *m = open_text(&t);
    for (int eager = 0; eager < 3; eager++) { /* the third time but for one operation */
        plan p;
        plan_of(&p)->spec.precision = TY_PRECISION_BFLOAT16;
        p.spec.match_eager = eager > 0;
        p.spec.keep_float32 = keep;
        p.spec.n_keep_float32 = eager == 2;
        ty_step s = build(m, &p);
        roundings[eager] = count_products(s.g, TY_BF16).roundings;
        ty_step_fini(&s);
    }
    if (roundings[2] <= roundings[0] || roundings[1] <= roundings[2])
        fail_msg("%d roundings, with match_eager %d, but for one %d", roundings[0], roundings[1], roundings[2]);
    ty_model_free(m);
}

/* A residual network's first two joints, behind batch norms, of which the first is read by a product and by the second.
 * entry: the first joint adds the network's input, which has 32 bits, in place of a product; turned: its product reads
 * it transposed. */
static int joints_rounded(bool entry, bool keep, bool turned)
{
    static const char *const kept = "op:batchnorm", *const names[] = {"x", "w", "gain", "bias"};
    const ty_precision_rules rules = {.dtype = TY_BF16, .keep = &kept, .n_keep = keep};
    ty_graph *in = ty_graph_new(), *to = ty_graph_new();
    ty_error err = {0};
    ty_val x[4], bound[4];
    for (int i = 0; i < 4; i++) {
        ty_type type = i < 2 ? ty_type_make(TY_F32, SHAPE(8, 8)) : ty_type_make(TY_F32, SHAPE(8));
        x[i] = ty_b_input(in, ty_graph_add_input(in, names[i], type));
        bound[i] = ty_b_input(to, ty_graph_add_input(to, names[i], type));
    }
    const ty_attr eps = {.value = 1e-5};
    ty_val dot = ty_b_dot(in, x[0], x[1], false, false);
    ty_val norm = ty_graph_emit(in, TY_OP_BATCHNORM, &eps, (ty_val[]){dot, x[2], x[3]}, 3);
    ty_val first = ty_b_relu(in, ty_b_add(in, norm, entry ? x[0] : dot));
    ty_val read = turned ? ty_b_transpose(in, first, (const int64_t[]){1, 0}) : first;
    ty_val held = ty_b_relu(in, ty_b_add(in, ty_b_dot(in, read, x[1], turned, false), first));
    if (ty_pass_precision(in, to, bound, &rules, &held, 1, &err) < 0)
        fail_msg("%s", err.message);
    int n = 0;
    for (uint32_t id = 0; id < ty_graph_n_nodes(to); id++) {
        ty_val v = ty_graph_op(to, id) == TY_OP_CAST ? ty_graph_in(to, id, 0) : TY_NONE;
        n += v != TY_NONE && ty_graph_op(to, ty_val_node(v)) == TY_OP_CAST && ty_graph_type(to, v)->dtype == TY_BF16;
    }
    ty_graph_free(in);
    ty_graph_free(to);
    return n; /* read again as float32 */
}

static void joints_are_rounded_as_autocast_has_them(void **state)
{
    (void)state;
    assert_int_equal(joints_rounded(false, false, false), 1);
    assert_int_equal(joints_rounded(false, false, true), 1);
    assert_int_equal(joints_rounded(true, false, false), 0);
    assert_int_equal(joints_rounded(false, true, false), 0);
}

static void unknown_operations_are_refused(void **state)
{
    (void)state;
    static const char *const keep[] = {"first", "op:attentoin"};
    ty_model *m = two_layers();
    ty_error err = {0};
    ty_step s;
    plan p;
    plan_of(&p)->spec.precision = TY_PRECISION_BFLOAT16;
    p.spec.keep_float32 = keep;
    p.spec.n_keep_float32 = 2;
    assert_int_equal(ty_step_build(m, &p.spec, &s, &err), -1);
    assert_string_equal(err.message, "keep_float32: there is no operation \"attentoin\"");
    assert_non_null(strstr(err.help, "did you mean \"op:attention\"?"));
    ty_model_free(m);
}

static void patterns_that_meet_no_layer_are_refused(void **state)
{
    (void)state;
    static const char *const keep[] = {"fir*", "op:conv", "*thrid*"};
    ty_model *m = two_layers();
    ty_error err = {0};
    ty_step s;
    plan p;
    plan_of(&p)->spec.precision = TY_PRECISION_BFLOAT16;
    p.spec.keep_float32 = keep;
    p.spec.n_keep_float32 = 3;
    s = build(m, &p); /* as a model file's own list */
    ty_step_fini(&s);
    p.spec.keep_float32_must_meet = true;
    assert_int_equal(ty_step_build(m, &p.spec, &s, &err), -1);
    assert_string_equal(err.message, "keep_float32: no layer of the model matches \"*thrid*\"");
    assert_non_null(strstr(err.help, "first"));
    p.spec.n_keep_float32 = 2;
    s = build(m, &p);
    ty_step_fini(&s);
    ty_model_free(m);
}

static ty_program *compile(const ty_model *m, const plan *p, ty_backend backend)
{
    ty_error err = {0};
    ty_program *program;
    ty_compile_options opt = {.backend = backend, .threads = 2, .dump_dir = getenv("DUMP")};
    if (ty_compile_train(m, &p->spec, &opt, &program, &err) < 0)
        fail_msg("%s", err.message);
    return program;
}

static double step_loss(ty_program *p)
{
    ty_error err = {0};
    const void *inputs[] = {batch_x, batch_t};
    if (ty_program_run(p, TY_RUN_LAST, inputs, &err) < 0)
        fail_msg("%s", err.message);
    return (double)*(const float *)ty_program_output(p, TY_RUN_LAST, "loss")->data;
}

/* Both round at the same places, so they agree to float32, not to 16 bits; and full precision is near. */
static void check_compiled(const ty_model *m, ty_precision precision)
{
    plan p, full;
    plan_of(&full);
    plan_of(&p)->spec.precision = precision;
    ty_program *cpu = compile(m, &p, TY_BACKEND_CPU), *judge = compile(m, &p, TY_BACKEND_INTERPRETER);
    ty_program *wide = compile(m, &full, TY_BACKEND_INTERPRETER);
    for (int i = 0; i < 6; i++) {
        double a = step_loss(cpu), b = step_loss(judge), c = step_loss(wide);
        if (fabs(a - b) > 1e-4 * fabs(b) || fabs(b - c) > 2e-2 * fabs(c) || b == c)
            fail_msg("step %d: compiled %.7g, interpreter %.7g, in float32 %.7g", i, a, b, c);
    }
    ty_program_free(cpu);
    ty_program_free(judge);
    ty_program_free(wide);
}

static void compiled_agrees_with_the_interpreter(void **state)
{
    (void)state;
    ty_model *models[] = {two_layers(), recurrent("LSTM", false)};
    for (int i = 0; i < 2; i++) {
        check_compiled(models[i], TY_PRECISION_BFLOAT16);
        check_compiled(models[i], TY_PRECISION_FLOAT16);
        ty_model_free(models[i]);
    }
}

static ty_tensor state_of(const ty_program *p, const char *wanted)
{
    const char *name;
    for (int i = 0; i < ty_program_n_states(p); i++) {
        ty_tensor t = ty_program_state(p, i, &name);
        if (strcmp(name, wanted) == 0)
            return t;
    }
    fail_msg("no state \"%s\"", wanted);
    return (ty_tensor){0};
}

/* The scale before and after one step from `before`, and whether the weights moved. */
static void expect_scale(ty_program *p, float before, int64_t good, bool moves, float after, int64_t updates)
{
    float *scale = state_of(p, "loss_scale").data;
    int64_t *count = state_of(p, "loss_scale.good").data;
    ty_tensor weights = state_of(p, "param.0");
    char old[512];
    size_t bytes = ty_type_bytes(&weights.type);
    assert_true(bytes <= sizeof old);
    memcpy(old, weights.data, bytes);
    *scale = before;
    *count = good;
    step_loss(p);
    if (*scale != after || (memcmp(weights.data, old, bytes) != 0) != moves)
        fail_msg("scale %g: expected %g, found %g; weights %s", (double)before, (double)after, (double)*scale,
                 moves ? "should move" : "should stay");
    assert_int_equal(*(const int64_t *)state_of(p, "loss_scale.updates").data, updates);
}

static void the_scale_adapts_itself(void **state)
{
    (void)state;
    plan p;
    plan_of(&p)->spec.precision = TY_PRECISION_FLOAT16;
    ty_model *m = two_layers();
    for (int backend = TY_BACKEND_CPU; backend <= TY_BACKEND_INTERPRETER; backend++) {
        ty_program *program = compile(m, &p, (ty_backend)backend);
        assert_true(*(float *)state_of(program, "loss_scale").data == (float)TY_LOSS_SCALE_START);
        expect_scale(program, 1024, 0, true, 1024, 1);
        expect_scale(program, 0x1p40f, 5, false, 0x1p39f, 1); /* overflows */
        assert_int_equal(*(int64_t *)state_of(program, "loss_scale.good").data, 0);
        expect_scale(program, 1024, TY_LOSS_SCALE_INTERVAL - 1, true, 2048, 2);
        expect_scale(program, (float)(TY_LOSS_SCALE_MOST / 4096), 7, true, (float)(TY_LOSS_SCALE_MOST / 4096), 3);
        ty_program_free(program);
    }
    ty_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_have_16_bits),
        cmocka_unit_test(recurrences_have_16_bits),
        cmocka_unit_test(gates_apart_have_wide_gradients),
        cmocka_unit_test(spectra_have_32_bits),
        cmocka_unit_test(turned_weights_are_rounded_before),
        cmocka_unit_test(match_eager_rounds_states),
        cmocka_unit_test(reshapes_are_rounded_before),
        cmocka_unit_test(match_eager_rounds_more),
        cmocka_unit_test(joints_are_rounded_as_autocast_has_them),
        cmocka_unit_test(compiled_agrees_with_the_interpreter),
        cmocka_unit_test(the_scale_adapts_itself),
        cmocka_unit_test(unknown_operations_are_refused),
        cmocka_unit_test(patterns_that_meet_no_layer_are_refused),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
