/* attend.c - tiled attention: when the pass takes it, and its numbers against the composite's reference in double. */
#include "compiler/ir/build.h"
#include "compiler/ir/text.h"
#include "compiler/ops/attend.h"
#include "compiler/ops/families.h"
#include "compiler/ops/op.h"
#include "compiler/ops/ref.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"
#include "compiler/target/cpu/library.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/attend_case.h"

static int count(const ty_graph *g, ty_op op)
{
    int n = 0;
    uint8_t *live = calloc(ty_graph_n_nodes(g) + 1, 1);
    assert_non_null(live);
    ty_graph_mark_live(g, TY_TAPE_ALL, live);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        n += live[id] && ty_graph_op(g, id) == op;
    free(live);
    return n;
}

static const attend_case cases[] = {
    {TY_F32, 2, 3, 3, 64, 64, 32, 32, false, true, true, false, NO_MASK, false},
    {TY_F32, 2, 3, 3, 64, 64, 32, 32, true, true, true, false, NO_MASK, false},
    {TY_F32, 1, 4, 2, 70, 70, 24, 20, true, true, true, false, NO_MASK, false},
    {TY_F32, 3, 2, 1, 77, 150, 16, 48, true, false, true, false, NO_MASK, false},
    {TY_F32, 2, 2, 2, 129, 65, 17, 19, false, false, true, false, NO_MASK, false},
    {TY_F32, 1, 6, 2, 200, 200, 16, 16, true, false, true, false, NO_MASK, false},
    {TY_F32, 2, 3, 3, 16, 64, 32, 32, false, true, false, false, NO_MASK, false},
    {TY_F32, 2, 3, 3, 64, 33, 32, 32, true, true, false, false, NO_MASK, false},
    {TY_F32, 2, 3, 3, 64, 64, 8, 32, false, true, false, false, NO_MASK, false},
    {TY_F32, 1, 1, 1, 64, 64, 32, 32, false, true, false, false, NO_MASK, false},
    /* masks */
    {TY_F32, 2, 3, 3, 64, 64, 32, 32, false, true, true, false, KEYS, false},
    {TY_F32, 3, 2, 1, 77, 150, 16, 48, false, false, true, false, KEYS_ADDED, false},
    {TY_F32, 1, 4, 2, 130, 130, 24, 20, false, true, true, false, BAND, false},
    {TY_F32, 2, 3, 3, 70, 75, 17, 19, false, false, true, false, BIAS, false},
    {TY_F32, 2, 4, 4, 66, 64, 16, 16, false, true, true, false, QUERIES, false},
    {TY_F32, 1, 2, 2, 64, 90, 16, 32, false, true, true, false, HEADS_ADDED, false},
    {TY_F32, 1, 2, 2, 64, 64, 16, 16, false, true, true, false, NAN_QUERIES, false},
    {TY_F32, 1, 4, 2, 130, 130, 24, 20, false, true, true, false, BAND_ADDED, false},
    {TY_F32, 3, 2, 2, 64, 64, 16, 16, false, false, true, false, KEYS_GUARDED, false},
    {TY_F32, 2, 2, 2, 64, 64, 16, 16, true, true, false, false, KEYS, false},
    /* learned */
    {TY_F32, 5, 2, 2, 70, 70, 16, 24, false, true, true, false, LEARNED_PLANES, false},
    {TY_F32, 3, 4, 2, 130, 65, 24, 16, false, false, true, false, LEARNED_PLANES, false},
    {TY_F32, 2, 3, 3, 66, 130, 16, 16, false, true, true, false, LEARNED_ALL, false},
    {TY_F32, 40, 2, 2, 64, 64, 16, 16, false, false, true, false, LEARNED_PLANE, false},
    {TY_F32, 3, 4, 2, 77, 90, 16, 16, false, true, true, false, LEARNED_KEYS, false},
    {TY_F32, 7, 4, 4, 64, 70, 16, 16, false, true, true, false, LEARNED_ROWS, false},
    {TY_F32, 3, 2, 2, 64, 75, 16, 16, false, false, true, false, LEARNED_PADDED, false},
    {TY_F32, 3, 2, 2, 32, 75, 16, 16, false, false, false, false, LEARNED_PADDED, false},
    /* dropped */
    {TY_F32, 2, 3, 3, 64, 64, 32, 32, false, true, true, false, NO_MASK, true},
    {TY_F32, 1, 4, 2, 70, 70, 24, 20, true, true, true, false, NO_MASK, true},
    {TY_F32, 2, 2, 2, 67, 301, 16, 19, true, false, true, false, NO_MASK, true},
    {TY_F32, 3, 2, 1, 77, 150, 16, 48, false, false, true, false, KEYS_ADDED, true},
    {TY_F32, 1, 4, 2, 130, 130, 24, 20, false, true, true, false, BAND, true},
    {TY_F32, 2, 4, 4, 66, 64, 16, 16, false, true, true, false, QUERIES, true},
    {TY_F32, 5, 2, 2, 70, 70, 16, 24, false, true, true, false, LEARNED_PLANES, true},
    {TY_F32, 7, 4, 4, 64, 70, 16, 16, false, true, true, false, LEARNED_ROWS, true},
    {TY_F32, 2, 3, 3, 16, 64, 32, 32, false, true, false, false, KEYS, true},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void the_pass_chooses(void **state)
{
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        ty_graph *g = make(&cases[i]), *after = NULL;
        ty_error err = {0};
        assert_int_equal(ty_pass_attend(g, &after, &err), 0);
        assert_int_equal(count(after, TY_OP_ATTEND), cases[i].tiled);
        ty_op back = mask_is_learned(&cases[i]) ? TY_OP_ATTEND_BIAS_GRAD : TY_OP_ATTEND_GRAD;
        assert_int_equal(count(after, back), cases[i].tiled);
        assert_int_equal(count(after, TY_OP_ATTENTION) + count(after, TY_OP_ATTENTION_GRAD), cases[i].tiled ? 0 : 2);
        if (cases[i].tiled)
            assert_int_equal(count(after, TY_OP_TRANSPOSE), 0); /* as they lie */
        ty_graph_free(g);
        ty_graph_free(after);
    }
}

/* Blocks of a GPU run at once, in no order in which a learned mask's gradient could be added up. */
static void a_gpu_leaves_what_is_learned(void **state)
{
    (void)state;
    static const attend_hidden masks[] = {LEARNED_PLANES, HEADS_ADDED};
    for (int i = 0; i < 2; i++) {
        const attend_case c = {TY_BF16, 2, 2, 2, 64, 64, 16, 16, false, false, true, false, masks[i], false};
        ty_graph *g = make(&c), *after = NULL;
        ty_error err = {0};
        assert_int_equal(ty_pass_attend_gpu(g, &after, &err), 0);
        assert_int_equal(count(after, TY_OP_ATTENTION_GRAD), i == 0);
        assert_int_equal(count(after, TY_OP_ATTEND_GRAD), i == 1);
        ty_graph_free(g);
        ty_graph_free(after);
    }
}

static const char before_text[] =
    "graph\n"
    "input 0 \"q\" f32[2,64,2,16]\n"
    "%0 = input() {type=f32[2,64,2,16] index=0} : f32[2,64,2,16]\n"
    "%1 = transpose(%0) {n=4 lo=[0 2 1 3]} : f32[2,2,64,16]\n"
    "%2 = attention(%1, %1, %1) {flags=1 value=0x1p-2 value2=0x0p+0 index=0 dropped=0} : f32[2,2,64,16]\n"
    "%3 = transpose(%2) {n=4 lo=[0 2 1 3]} : f32[2,64,2,16]\n"
    "output \"y\" %3 eval\n";
static const char after_text[] =
    "graph\n"
    "input 0 \"q\" f32[2,64,2,16]\n"
    "%0 = input() {type=f32[2,64,2,16] index=0} : f32[2,64,2,16]\n"
    "%2 = attend(%0, %0, %0) {flags=3 value=0x1p-2 index=0 dropped=0} : f32[2,64,2,16], f32[2,2,64]\n"
    "output \"y\" %2:0 eval\n";

static ty_graph *parsed(const char *text)
{
    ty_graph *g = NULL;
    ty_error err = {0};
    if (ty_graph_parse(text, strlen(text), &g, &err) < 0)
        fail_msg("%s", err.message);
    return g;
}

/* What the pass leaves behind unread goes with the next one; what is read is as expected. */
static void the_text_before_and_after(void **state)
{
    (void)state;
    ty_graph *before = parsed(before_text), *expected = parsed(after_text), *after = NULL;
    ty_error err = {0};
    assert_int_equal(ty_pass_attend(before, &after, &err), 0);
    ty_val y = ty_graph_output(after, 0)->val, z = ty_graph_output(expected, 0)->val;
    assert_int_equal(ty_graph_op(after, ty_val_node(y)), TY_OP_ATTEND);
    assert_memory_equal(ty_graph_attr(after, ty_val_node(y)), ty_graph_attr(expected, ty_val_node(z)), sizeof(ty_attr));
    for (int i = 0; i < 3; i++)
        assert_int_equal(ty_graph_op(after, ty_val_node(ty_graph_in(after, ty_val_node(y), i))), TY_OP_INPUT);
    ty_graph_free(before);
    ty_graph_free(expected);
    ty_graph_free(after);
}

static const char rounded_text[] =
    "graph\n"
    "input 0 \"q\" f32[2,64,2,16]\n"
    "%0 = input() {type=f32[2,64,2,16] index=0} : f32[2,64,2,16]\n"
    "%1 = transpose(%0) {n=4 lo=[0 2 1 3]} : f32[2,2,64,16]\n"
    "%2 = cast(%1) {type=bf16[]} : bf16[2,2,64,16]\n"
    "%3 = attention(%2, %2, %2) {flags=1 value=0x1p-2 value2=0x0p+0 index=0 dropped=0} : bf16[2,2,64,16]\n"
    "%4 = transpose(%3) {n=4 lo=[0 2 1 3]} : bf16[2,64,2,16]\n"
    "output \"y\" %4 eval\n";

/* What was rounded after it was turned is rounded and not turned. */
static void rounded_in_between(void **state)
{
    (void)state;
    ty_graph *before = parsed(rounded_text), *after = NULL;
    ty_error err = {0};
    assert_int_equal(ty_pass_attend_gpu(before, &after, &err), 0);
    uint32_t y = ty_val_node(ty_graph_output(after, 0)->val), cast = ty_val_node(ty_graph_in(after, y, 0));
    assert_int_equal(ty_graph_op(after, y), TY_OP_ATTEND);
    assert_int_equal(ty_graph_op(after, cast), TY_OP_CAST);
    assert_int_equal(ty_graph_op(after, ty_val_node(ty_graph_in(after, cast, 0))), TY_OP_INPUT);
    ty_graph_free(before);
    ty_graph_free(after);
}

/* ---- numbers ---- */

static ty_program *compile(const attend_case *c, int threads)
{
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.threads = threads};
    if (ty_program_of_graph(make(c), TY_TAPE_EVAL, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

/* A query that sees nothing is NaN, and so is all that comes of it, in tiles and in products; the reference's gradients
 * of what was set are 0. */
static void expect_close(const char *what, const ty_tensor *found, const ty_ref *expected, int i)
{
    const float *x = found->data;
    double most = 0;
    for (int64_t k = 0; k < ty_type_elems(&found->type); k++)
        most = fmax(most, fabs(expected->f[k]));
    for (int64_t k = 0; k < ty_type_elems(&found->type); k++)
        if (!(fabs(x[k] - expected->f[k]) <= 2e-6 * (1 + most) ||
              (isnan(x[k]) && (isnan(expected->f[k]) || cases[i].mask == NAN_QUERIES))))
            fail_msg("case %d, %s[%lld]: expected %.9g, found %.9g", i, what, (long long)k, expected->f[k], x[k]);
}

/* Tiles are what the pass has taken them for: no call runs by its reference. */
static void calls_are_prepared(void **state)
{
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        ty_graph *g = make(&cases[i]), *after = NULL;
        ty_error err = {0};
        assert_int_equal(ty_pass_attend(g, &after, &err), 0);
        for (uint32_t id = 0; id < ty_graph_n_nodes(after); id++) {
            ty_op op = ty_graph_op(after, id);
            ty_type in[TY_ATTEND_GRAD_MASK_AT + 1 + TY_ATTEND_N_DRAWN];
            ty_library_call call = {0};
            if (op != TY_OP_ATTEND && op != TY_OP_ATTEND_GRAD && op != TY_OP_ATTEND_BIAS_GRAD)
                continue;
            int n = (int)ty_graph_node(after, id)->n_in;
            for (int k = 0; k < n; k++)
                in[k] = *ty_graph_type(after, ty_graph_in(after, id, (uint32_t)k));
            const ty_library_shape shape = {.attr = ty_graph_attr(after, id),
                                            .in = in,
                                            .n_in = n,
                                            .res = ty_graph_type(after, ty_val_make(id, 0)),
                                            .n_res = 1,
                                            .threads = 1};
            assert_int_equal(ty_library_prepare(op, &shape, &call, &err), 0);
            assert_non_null(strstr(call.text, "in tiles"));
            ty_library_release(&call);
        }
        ty_graph_free(g);
        ty_graph_free(after);
    }
}

/* What is packed for a GPU is not read as if it lay apart. */
static void packed_operands_are_left_to_the_reference(void **state)
{
    (void)state;
    const ty_attr attr = {.flags = TY_ATTEND_INSIDE | TY_ATTEND_PACKED, .value = 0.3};
    const ty_type qkv = ty_type_make(TY_F32, 4, (int64_t[]){2, 64, 6, 16});
    const ty_type in[] = {qkv, qkv, qkv}, *of[] = {&qkv, &qkv, &qkv};
    ty_type res[2];
    ty_error err = {0};
    ty_library_call call = {0};
    assert_int_equal(ty_op_infer_attend(&attr, of, 3, res, &err), 0);
    const ty_library_shape shape = {.attr = &attr, .in = in, .n_in = 3, .res = res, .n_res = 2, .threads = 1};
    assert_int_equal(ty_library_prepare(TY_OP_ATTEND, &shape, &call, &err), 0);
    assert_null(strstr(call.text, "in tiles"));
    ty_library_release(&call);
}

/* The interpreter runs the composites as they stand; compiled code runs tiles, with one thread and with three. */
static void numbers_and_threads(void **state)
{
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        ty_graph *g = make(&cases[i]);
        ty_program *one = compile(&cases[i], 1), *three = compile(&cases[i], 3);
        ty_interp *judge = NULL;
        ty_error err = {0};
        void *in[MAX_INPUTS];
        float_noise(g, in);
        assert_int_equal(ty_interp_new(g, &judge, &err), 0);
        assert_int_equal(ty_interp_run(judge, TY_TAPE_EVAL, (const void *const *)in, false, &err), 0);
        assert_int_equal(ty_program_run(one, TY_RUN_EVAL, (const void *const *)in, &err), 0);
        assert_int_equal(ty_program_run(three, TY_RUN_EVAL, (const void *const *)in, &err), 0);
        for (int k = 0; k < ty_graph_n_outputs(g); k++) {
            const char *name = ty_graph_output(g, k)->name;
            const ty_tensor *x = ty_program_output(one, TY_RUN_EVAL, name);
            expect_close(name, x, ty_interp_output(judge, k), i);
            if (cases[i].tiled)
                assert_memory_equal(x->data, ty_program_output(three, TY_RUN_EVAL, name)->data,
                                    ty_type_bytes(&x->type));
        }
        for (int k = 0; k < ty_graph_n_inputs(g); k++)
            free(in[k]);
        ty_interp_free(judge);
        ty_program_free(one);
        ty_program_free(three);
        ty_graph_free(g);
    }
}

/* The references of the tiled forms say the same as those of the composites. */
static void references_agree(void **state)
{
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        if (!cases[i].tiled)
            continue;
        ty_graph *g = make(&cases[i]), *tiled = NULL;
        ty_interp *a = NULL, *b = NULL;
        ty_error err = {0};
        void *in[MAX_INPUTS];
        float_noise(g, in);
        assert_int_equal(ty_pass_attend(g, &tiled, &err), 0);
        assert_int_equal(ty_interp_new(g, &a, &err), 0);
        assert_int_equal(ty_interp_new(tiled, &b, &err), 0);
        assert_int_equal(ty_interp_run(a, TY_TAPE_EVAL, (const void *const *)in, false, &err), 0);
        assert_int_equal(ty_interp_run(b, TY_TAPE_EVAL, (const void *const *)in, false, &err), 0);
        for (int k = 0; k < ty_graph_n_outputs(g); k++)
            for (int64_t e = 0; e < ty_type_elems(&ty_interp_output(a, k)->type); e++) {
                double x = ty_interp_output(a, k)->f[e], y = ty_interp_output(b, k)->f[e];
                if (!(fabs(x - y) < 1e-12) && !(isnan(x) && isnan(y)))
                    fail_msg("case %d, %s[%lld]: composites %.17g, tiles %.17g", i, ty_graph_output(g, k)->name,
                             (long long)e, x, y);
            }
        for (int k = 0; k < ty_graph_n_inputs(g); k++)
            free(in[k]);
        ty_interp_free(a);
        ty_interp_free(b);
        ty_graph_free(g);
        ty_graph_free(tiled);
    }
}

/* Dims of a mask before its heads, beside those of q; `fits`, then what becomes of number `outer`. */
static void masks_of_dims(void **state)
{
    static const struct {
        int64_t q[3], mask[3];
        bool fits;
        int64_t div, mod;
    } rows[] = {
        {{4, 3, 5}, {1, 1, 1}, true, 1, 1},  {{4, 3, 5}, {4, 3, 5}, true, 1, 60}, {{4, 3, 5}, {4, 1, 1}, true, 15, 4},
        {{4, 3, 5}, {1, 3, 1}, true, 5, 3},  {{4, 3, 5}, {1, 1, 5}, true, 1, 5},  {{4, 3, 5}, {4, 1, 5}, false, 0, 0},
        {{4, 1, 5}, {4, 1, 5}, true, 1, 20}, {{1, 3, 5}, {1, 3, 1}, true, 5, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_type q = ty_type_make(TY_F32, 6, (int64_t[]){rows[i].q[0], rows[i].q[1], rows[i].q[2], 2, 7, 8});
        ty_type mask =
            ty_type_make(TY_BOOL, 6, (int64_t[]){rows[i].mask[0], rows[i].mask[1], rows[i].mask[2], 1, 7, 9});
        ty_attend_mask m;
        assert_int_equal(ty_attend_mask_of(0, &q, &mask, &m), rows[i].fits);
        if (!rows[i].fits)
            continue;
        assert_int_equal(m.mod, rows[i].mod);
        assert_true(m.mod == 1 || m.div == rows[i].div);
        assert_int_equal(m.outer_step, m.mod == 1 ? 0 : 63);
        assert_int_equal(m.head_step, 0);
        assert_int_equal(m.query_step, 9);
        assert_int_equal(m.key_step, 1);
    }
}

/* Entries in windows, each with a mask of its own: [2, 3, H, T, D], and as many masks as `dim` says. */
static ty_graph *make_windows(const int64_t *dim)
{
    const int64_t shape[] = {2, 3, 2, 64, 16}, n = dim[0] * dim[1] * 64 * 64;
    ty_graph *g = ty_graph_new();
    ty_val q = ty_b_input(g, ty_graph_add_input(g, "q", ty_type_make(TY_F32, 5, shape)));
    uint8_t *shows = malloc((size_t)n);
    assert_non_null(shows);
    for (int64_t k = 0; k < n; k++)
        shows[k] = ty_rng_u32(5, 0, 0, (uint64_t)k) % 3 > 0;
    ty_val mask = ty_b_const_copy(g, ty_type_make(TY_BOOL, 5, (int64_t[]){dim[0], dim[1], 1, 64, 64}), shows);
    free(shows);
    const ty_attr attr = {.value = 0.3, .value2 = -INFINITY};
    ty_graph_add_output(g, "y", ty_graph_emit(g, TY_OP_ATTENTION, &attr, (ty_val[]){q, q, q, mask}, 4), TY_TAPE_EVAL);
    return g;
}

/* Compiled code says what the interpreter does, also where it finds what its first run has left. */
static void expect_windows(ty_graph *(*make_graph)(const int64_t *dim), const int64_t *dim)
{
    ty_graph *g = make_graph(dim);
    ty_program *p = NULL;
    ty_interp *judge = NULL;
    ty_error err = {0};
    ty_compile_options opt = {.threads = 2};
    void *in[MAX_INPUTS];
    float_noise(g, in);
    assert_int_equal(ty_interp_new(g, &judge, &err), 0);
    assert_int_equal(ty_interp_run(judge, TY_TAPE_EVAL, (const void *const *)in, false, &err), 0);
    assert_int_equal(ty_program_of_graph(make_graph(dim), TY_TAPE_EVAL, &opt, &p, &err), 0);
    for (int run = 0; run < 2; run++) {
        assert_int_equal(ty_program_run(p, TY_RUN_EVAL, (const void *const *)in, &err), 0);
        for (int k = 0; k < ty_graph_n_outputs(g); k++)
            expect_close("windows", ty_program_output(p, TY_RUN_EVAL, ty_graph_output(g, k)->name),
                         ty_interp_output(judge, k), 0);
    }
    for (int k = 0; k < ty_graph_n_inputs(g); k++)
        free(in[k]);
    ty_interp_free(judge);
    ty_program_free(p);
    ty_graph_free(g);
}

static void windows_have_masks_of_their_own(void **state)
{
    (void)state;
    static const int64_t dims[][2] = {{1, 3}, {2, 1}, {2, 3}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        ty_graph *g = make_windows(dims[i]), *after = NULL;
        ty_error err = {0};
        assert_int_equal(ty_pass_attend(g, &after, &err), 0);
        assert_int_equal(count(after, TY_OP_ATTEND), 1);
        ty_graph_free(g);
        ty_graph_free(after);
        expect_windows(make_windows, dims[i]);
    }
}

/* The same where the masks are learned: y, and the gradient of the sum of its squares. */
static ty_graph *make_learned_windows(const int64_t *dim)
{
    ty_graph *g = ty_graph_new();
    ty_val q = ty_b_input(g, ty_graph_add_input(g, "q", ty_type_make(TY_F32, 5, (int64_t[]){2, 3, 2, 64, 16})));
    const ty_type type = ty_type_make(TY_F32, 5, (int64_t[]){dim[0], dim[1], 1, 64, 64});
    ty_val mask = ty_b_input(g, ty_graph_add_input(g, "mask", type)), d;
    const ty_attr attr = {.value = 0.3};
    ty_val y = ty_graph_emit(g, TY_OP_ATTENTION, &attr, (ty_val[]){q, q, q, mask}, 4);
    ty_error err = {0};
    if (ty_pass_autodiff(g, ty_b_sum(g, ty_b_mul(g, y, y), 31, false), &mask, 1, &d, &err) < 0)
        fail_msg("%s", err.message);
    ty_graph_add_output(g, "y", y, TY_TAPE_EVAL);
    ty_graph_add_output(g, "dmask", d, TY_TAPE_EVAL);
    return g;
}

static void windows_learn_masks_of_their_own(void **state)
{
    (void)state;
    static const int64_t dims[][2] = {{1, 3}, {2, 1}, {2, 3}, {1, 1}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        expect_windows(make_learned_windows, dims[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pass_chooses),
        cmocka_unit_test(the_text_before_and_after),
        cmocka_unit_test(a_gpu_leaves_what_is_learned),
        cmocka_unit_test(rounded_in_between),
        cmocka_unit_test(references_agree),
        cmocka_unit_test(calls_are_prepared),
        cmocka_unit_test(packed_operands_are_left_to_the_reference),
        cmocka_unit_test(numbers_and_threads),
        cmocka_unit_test(masks_of_dims),
        cmocka_unit_test(windows_have_masks_of_their_own),
        cmocka_unit_test(windows_learn_masks_of_their_own),
    };
    return cmocka_run_group_tests_name("attend", tests, NULL, NULL);
}
