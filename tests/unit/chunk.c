/* chunk.c - logits a few rows at a time: what the pass takes, its numbers, and the memory it saves. */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ops/ref.h"
#include "compiler/passes/chunk.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/precision.h"
#include "compiler/program.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* h = tanh(x U), logits = h W' (+ b), their cross-entropy with labels, and its gradients. The last chunk is smaller. */
enum { ROWS = 600, WIDTH = 16, WORDS = 200, CHUNK = 128 };
enum { U = WIDTH * WIDTH, W = WORDS * WIDTH, ALL = U + W + WORDS };

typedef enum form {
    PLAIN,
    BIAS,
    SMOOTH,
    IGNORED,
    WEIGHTS,
    SPREAD,  /* sums over the log softmax with weights, and per row weights that are data */
    TIED,    /* x is read from W by number */
    SHORT,   /* the products have 16-bit operands */
    TURNED,  /* W is stored [WIDTH, WORDS] */
    COUNTED, /* evaluation counts hits, per class too, and the loss */
    WEIGHED, /* the gradient is scaled by a number known before */
    TAKEN,   /* here the pass ends what it takes: from here on something wide is needed whole */
    SHOWN = TAKEN,
    SQUARED,      /* the gradient depends on the loss */
    SELECTED,     /* by another axis */
    LAYERED,      /* another layer as wide reads the root */
    SUMMED_SHORT, /* the gradient of W is added up in 16 bits */
    N_FORMS
} form;

typedef struct batch {
    float x[ROWS * WIDTH], weight[ROWS];
    int64_t label[ROWS], id[ROWS];
    const void *in[4];
} batch;

#define DIMS(...)                                                                \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) \
    {                                                                            \
        __VA_ARGS__                                                              \
    }

static float noise(uint32_t stream, int i)
{
    return ty_rng_uniform(ty_rng_u32(3, stream, 0, (uint64_t)i)) - 0.5f;
}

static batch *data(form what)
{
    batch *d = calloc(1, sizeof *d);
    assert_non_null(d);
    for (int i = 0; i < ROWS * WIDTH; i++)
        d->x[i] = noise(0, i);
    for (int i = 0; i < ROWS; i++) {
        d->weight[i] = 1 + noise(1, i);
        d->id[i] = (int64_t)ty_rng_below(4, 0, 0, (uint64_t)(64 * i), WORDS);
        d->label[i] = (int64_t)ty_rng_below(4, 1, 0, (uint64_t)(64 * i), WORDS);
        if (what == IGNORED && i % 3 == 0)
            d->label[i] = -100;
    }
    d->in[0] = d->x, d->in[1] = d->weight, d->in[2] = d->label, d->in[3] = d->id;
    return d;
}

static ty_val weights(ty_graph *g)
{
    static float start[ALL];
    static const int64_t n = ALL;
    for (int i = 0; i < ALL; i++)
        start[i] = noise(2, i);
    const void *init[] = {start};
    ty_segment whole = {"p", ty_type_make(TY_F32, 1, &n), 0};
    ty_state p = {"p", whole.type, TY_STATE_PARAM, &whole, 1, init};
    return ty_b_state(g, ty_graph_add_state(g, &p));
}

static ty_val part(ty_graph *g, ty_val flat, int64_t at, int64_t rows, int64_t columns)
{
    ty_val v = ty_b_slice_axis(g, flat, 0, at, at + rows * columns);
    return ty_b_reshape(g, v, 2, (const int64_t[]){rows, columns});
}

static ty_val given(ty_graph *g, const char *name, ty_dtype dtype, int rank, const int64_t *dim)
{
    return ty_b_input(g, ty_graph_add_input(g, name, ty_type_make(dtype, rank, dim)));
}

static ty_val logits_of(ty_graph *g, form what, ty_val h, const ty_val *leaf)
{
    if (what == SHORT || what == SUMMED_SHORT)
        return ty_b_cast(g, ty_b_dot(g, ty_b_cast(g, h, TY_BF16), ty_b_cast(g, leaf[1], TY_BF16), false, true), TY_F32);
    ty_val y = ty_b_dot(g, h, leaf[1], false, what != TURNED);
    if (what == LAYERED) {
        ty_val again = ty_b_slice_axis(g, ty_b_broadcast(g, leaf[2], DIMS(WORDS, WORDS)), 0, 0, WORDS);
        y = ty_b_dot(g, ty_b_unary(g, TY_OP_TANH, y), again, false, false);
    }
    return what == BIAS ? ty_b_add(g, y, leaf[2]) : y;
}

/* [ROWS] terms and what weighs them. */
static void terms_of(ty_graph *g, form what, ty_val logits, ty_val labels, ty_val weight, ty_val *term, ty_val *count)
{
    ty_val each = ty_b_cast(g, ty_b_iota(g, ty_type_make(TY_I64, DIMS(WORDS)), 0), TY_F32);
    each = ty_b_add_s(g, ty_b_mul_s(g, each, 0.01), 0.5);
    ty_attr attr = {.index = -100, .value = what == SMOOTH ? 0.1 : 0};
    ty_val in[3] = {logits, labels, each};
    *term = ty_graph_emit(g, TY_OP_XENT, &attr, in, what == WEIGHTS ? 3 : 2);
    *count = ty_val_make(ty_val_node(*term), 1);
    if (what == SPREAD) {
        ty_val all = ty_b_sum(g, ty_b_mul(g, ty_b_softmax(g, logits, 1, true), each), 2, false);
        *term = ty_b_sub(g, *term, ty_b_mul_s(g, all, 0.001));
        *count = ty_b_mul(g, *count, weight);
    }
}

static void count_hits(ty_graph *g, ty_val logits, ty_val labels)
{
    ty_val best = ty_b_argreduce(g, logits, TY_MAX, 1, false);
    ty_val hit = ty_b_cast(g, ty_b_eq(g, best, labels), TY_F32);
    ty_graph_add_output(g, "hits", ty_b_sum(g, hit, 1, false), TY_TAPE_EVAL);
    ty_val number = ty_b_iota(g, ty_type_make(TY_I64, DIMS(ROWS, WORDS)), 1);
    ty_val says = ty_b_cast(g, ty_b_eq(g, number, ty_b_unsqueeze(g, best, 1)), TY_F32);
    ty_graph_add_output(g, "by class", ty_b_sum(g, says, 1, false), TY_TAPE_EVAL);
}

static ty_graph *make(form what)
{
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_val flat = weights(g), grad[3], term, count;
    ty_val x = given(g, "x", TY_F32, DIMS(ROWS, WIDTH)), weight = given(g, "weight", TY_F32, DIMS(ROWS));
    ty_val labels = given(g, "label", TY_I64, DIMS(ROWS)), ids = given(g, "id", TY_I64, DIMS(ROWS));
    ty_val leaf[3] = {part(g, flat, 0, WIDTH, WIDTH), part(g, flat, U, WORDS, WIDTH), part(g, flat, U + W, 1, WORDS)};
    if (what == TURNED)
        leaf[1] = part(g, flat, U, WIDTH, WORDS);
    if (what == TIED)
        x = ty_b_gather(g, leaf[1], ids, 0);
    ty_val h = ty_b_unary(g, TY_OP_TANH, ty_b_dot(g, x, leaf[0], false, false));
    ty_val logits = logits_of(g, what, h, leaf);
    terms_of(g, what, logits, labels, weight, &term, &count);
    ty_val sum = ty_b_sum(g, ty_b_mul(g, term, count), 1, false);
    ty_val loss = ty_b_div(g, sum, ty_b_sum(g, count, 1, false));
    if (what == SQUARED)
        loss = ty_b_square(g, loss);
    if (what == SELECTED)
        loss = ty_b_add(g, loss, ty_b_sum(g, ty_b_reduce(g, logits, TY_MAX, 1, false), 1, false));
    if (what == WEIGHED)
        loss = ty_b_mul(g, loss, ty_b_sum(g, weight, 1, false));
    ty_graph_add_output(g, "loss", loss, TY_TAPE_LAST);
    if (what == COUNTED)
        count_hits(g, logits, labels);
    if (what == SHOWN)
        ty_graph_add_output(g, "logits", logits, TY_TAPE_EVAL);
    ty_graph_add_output(g, "eval loss", loss, TY_TAPE_EVAL);
    if (ty_pass_autodiff(g, loss, leaf, 3, grad, &err) < 0)
        fail_msg("%s", err.message);
    for (int i = 0; i < 3; i++)
        grad[i] = ty_b_flatten(g, what == SHORT ? ty_precision_widen(g, grad[i]) : grad[i]);
    ty_graph_add_output(g, "gradient", ty_b_concat(g, grad, 3, 0), TY_TAPE_LAST);
    ty_graph *low = NULL;
    if (ty_pass_lower(g, &low, &err) < 0)
        fail_msg("form %d: %s", what, err.message);
    ty_graph_free(g);
    return low;
}

static ty_graph *chunked(const ty_graph *g, int *n)
{
    static const ty_chunk_rule rule = {CHUNK, false};
    ty_graph *after = NULL;
    ty_error err = {0};
    if (ty_chunk(g, &rule, &after, n, &err) < 0)
        fail_msg("%s", err.message);
    return after;
}

/* Nodes of at least so many elements, in any tape. */
static int count(const ty_graph *g, ty_op op, int64_t elems)
{
    int n = 0;
    uint8_t *live = calloc(ty_graph_n_nodes(g) + 1, 1);
    assert_non_null(live);
    ty_graph_mark_live(g, TY_TAPE_ALL, live);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        n += live[id] && ty_graph_op(g, id) == op && ty_type_elems(ty_graph_type(g, ty_val_make(id, 0))) >= elems;
    free(live);
    return n;
}

static int whole_logits(const ty_graph *g)
{
    return count(g, TY_OP_DOT, ROWS * WORDS);
}

static void what_is_taken(void **state)
{
    (void)state;
    for (form what = PLAIN; what < N_FORMS; what++) {
        int n = 0;
        ty_graph *g = make(what), *after = chunked(g, &n);
        if (whole_logits(g) < 1 || n != (what < TAKEN) || (after != NULL) != (n > 0))
            fail_msg("form %d: %d products in chunks", what, n);
        if (after)
            assert_int_equal(whole_logits(after), 0);
        ty_graph_free(after);
        ty_graph_free(g);
    }
}

/* Too few rows for two chunks, or logits that are not much wider than what they are made of: nothing to gain. */
static void what_is_left(void **state)
{
    (void)state;
    static const ty_chunk_rule rules[] = {{ROWS / 2 + 1, false}, {CHUNK, true}};
    ty_graph *g = make(PLAIN), *after = NULL;
    ty_error err = {0};
    int n;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ty_chunk(g, &rules[i], &after, &n, &err), 0);
        assert_null(after);
        assert_int_equal(n, 0);
    }
    assert_int_equal(ty_pass_chunk(g, &after, &err), 0);
    assert_null(after);
    ty_graph_free(g);
}

/* What is always in chunks: at least 32 MiB, twice the weight, four times as wide as what it is made of. */
static void bounds(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, width, words;
        int products; /* afterwards */
    } cases[] = {{1024, 64, 8192, 2},   {1023, 64, 9000, 1},   {1024, 64, 8191, 1},
                 {4096, 64, 8192, 8},   {1200, 600, 9000, 3},  {1200, 601, 9000, 1},
                 {4096, 2048, 8192, 8}, {4096, 2048, 8191, 1}, {1 << 20, 64, 512, 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_graph *g = ty_graph_new(), *after = NULL;
        ty_error err = {0};
        ty_val x = given(g, "x", TY_F32, DIMS(cases[i].rows, cases[i].width));
        ty_val w = given(g, "w", TY_F32, DIMS(cases[i].words, cases[i].width));
        ty_graph_add_output(g, "best", ty_b_argreduce(g, ty_b_dot(g, x, w, false, true), TY_MAX, 1, false),
                            TY_TAPE_EVAL);
        assert_int_equal(ty_pass_chunk(g, &after, &err), 0);
        assert_int_equal(!after, cases[i].products == 1);
        if (after && count(after, TY_OP_DOT, 1) != cases[i].products)
            fail_msg("case %zu: %d products", i, count(after, TY_OP_DOT, 1));
        ty_graph_free(g);
        ty_graph_free(after);
    }
}

static void same(form what, const char *name, const ty_ref *expected, double found(const void *, int64_t),
                 const void *at, double tolerance)
{
    for (int64_t i = 0; i < ty_type_elems(&expected->type); i++)
        if (!(fabs(found(at, i) - expected->f[i]) <= tolerance * (1 + fabs(expected->f[i]))))
            fail_msg("form %d, %s %lld: expected %.9g, found %.9g", what, name, (long long)i, expected->f[i],
                     found(at, i));
}

static double of_double(const void *at, int64_t i)
{
    return ((const double *)at)[i];
}

static double of_float(const void *at, int64_t i)
{
    return ((const float *)at)[i];
}

static ty_interp *judge_of(const ty_graph *g)
{
    ty_interp *judge = NULL;
    ty_error err = {0};
    assert_int_equal(ty_interp_new(g, &judge, &err), 0);
    return judge;
}

/* In double, the same sums in another order. */
static void the_same_by_the_interpreter(void **state)
{
    (void)state;
    static const ty_tape tapes[] = {TY_TAPE_LAST, TY_TAPE_EVAL};
    for (form what = PLAIN; what < TAKEN; what++) {
        batch *d = data(what);
        int n;
        ty_graph *g = make(what), *after = chunked(g, &n);
        ty_interp *a = judge_of(g), *b = judge_of(after);
        ty_error err = {0};
        for (int t = 0; t < 2; t++) {
            assert_int_equal(ty_interp_run(a, tapes[t], d->in, false, &err), 0);
            assert_int_equal(ty_interp_run(b, tapes[t], d->in, false, &err), 0);
            for (int i = 0; i < ty_graph_n_outputs(g); i++)
                if (ty_graph_output(g, i)->tapes & tapes[t])
                    same(what, ty_graph_output(g, i)->name, ty_interp_output(a, i), of_double,
                         ty_interp_output(b, i)->f, 1e-12);
        }
        ty_interp_free(a);
        ty_interp_free(b);
        ty_graph_free(g);
        ty_graph_free(after);
        free(d);
    }
}

static ty_program *compile(ty_graph *g, int threads, bool strict, int64_t temporaries)
{
    ty_program *p = NULL;
    ty_error err = {0};
    const ty_compile_options opt = {.threads = threads, .deterministic_strict = strict, .temporary_bytes = temporaries};
    if (ty_program_of_graph(g, TY_TAPE_LAST | TY_TAPE_EVAL, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

/* Twice: memory of the first run must not show in the second. */
static void compiled_is_as_whole(void **state)
{
    (void)state;
    for (form what = PLAIN; what < TAKEN; what++) {
        batch *d = data(what);
        int n;
        ty_graph *g = make(what), *judged = make(what);
        ty_program *p = compile(chunked(g, &n), 2, what % 2, 0);
        ty_interp *judge = judge_of(judged);
        ty_error err = {0};
        for (int run = 0; run < 4; run++) {
            ty_run tape = run % 2 ? TY_RUN_EVAL : TY_RUN_LAST;
            assert_int_equal(ty_interp_run(judge, run % 2 ? TY_TAPE_EVAL : TY_TAPE_LAST, d->in, true, &err), 0);
            assert_int_equal(ty_program_run(p, tape, d->in, &err), 0);
            for (int i = 0; i < ty_graph_n_outputs(judged); i++) {
                const ty_tensor *found = ty_program_output(p, tape, ty_graph_output(judged, i)->name);
                if (found)
                    same(what, ty_graph_output(judged, i)->name, ty_interp_output(judge, i), of_float, found->data,
                         what == SHORT ? 2e-4 : 2e-6);
            }
        }
        ty_interp_free(judge);
        ty_program_free(p);
        ty_graph_free(judged);
        ty_graph_free(g);
        free(d);
    }
}

/* With the sum of a gradient in place, one chunk of logits is all that there is instead of all rows; W's gradient is
 * written where the output lies. */
static void memory(void **state)
{
    (void)state;
    for (form what = PLAIN; what < TAKEN; what++) {
        int n;
        ty_graph *g = make(what);
        ty_program *p = compile(chunked(g, &n), 2, false, 0), *whole = compile(g, 2, false, 0);
        size_t slab = ty_program_report(p)->slab_bytes, slab_whole = ty_program_report(whole)->slab_bytes;
        size_t element = what == SHORT ? sizeof(uint16_t) : sizeof(float);
        size_t logits = element * ROWS * WORDS, chunk = element * CHUNK * WORDS;
        if (slab + logits - chunk - sizeof(float) * 8 * ROWS > slab_whole)
            fail_msg("form %d: %zu bytes, and %zu with whole logits", what, slab, slab_whole);
        ty_program_free(p);
        ty_program_free(whole);
    }
}

/* [a b + a' b' + a" b", x]: the first product is written where the sum will lie, and the others add to it there. */
static ty_graph *sum_of_products(void)
{
    ty_graph *g = ty_graph_new();
    ty_val x = given(g, "x", TY_F32, DIMS(ROWS, WIDTH)), all[2], sum = ty_b_dot(g, x, x, true, false);
    for (int i = 0; i < 2; i++)
        sum = ty_b_dot_add(g, ty_b_slice_axis(g, x, 0, 0, 100 + i), ty_b_slice_axis(g, x, 0, 100, 200 + i), sum, true,
                           false);
    all[0] = ty_b_flatten(g, sum);
    all[1] = ty_b_flatten(g, ty_b_unary(g, TY_OP_TANH, ty_b_slice_axis(g, x, 0, 0, 64)));
    ty_graph_add_output(g, "all", ty_b_concat(g, all, 2, 0), TY_TAPE_EVAL | TY_TAPE_LAST);
    return g;
}

static void sums_lie_in_place(void **state)
{
    (void)state;
    batch *d = data(PLAIN);
    ty_graph *g = sum_of_products();
    ty_interp *judge = judge_of(g);
    ty_error err = {0};
    assert_int_equal(ty_interp_run(judge, TY_TAPE_EVAL, d->in, true, &err), 0);
    for (int strict = 0; strict < 2; strict++) {
        ty_program *p = compile(sum_of_products(), 2, strict, 0);
        size_t bytes = sizeof(float) * (WIDTH * WIDTH + 64 * WIDTH);
        assert_in_range(ty_program_report(p)->slab_bytes, bytes, bytes + 128);
        assert_int_equal(ty_program_run(p, TY_RUN_EVAL, d->in, &err), 0);
        same(PLAIN, "all", ty_interp_output(judge, 0), of_float, ty_program_output(p, TY_RUN_EVAL, "all")->data, 1e-5);
        ty_program_free(p);
    }
    ty_interp_free(judge);
    ty_graph_free(g);
    free(d);
}

/* A limit on temporaries: as few chunks as fit, before anything is computed again. */
static void limits(void **state)
{
    (void)state;
    ty_program *whole = compile(make(PLAIN), 2, false, 0);
    int64_t bytes = (int64_t)ty_program_report(whole)->slab_bytes, saved = (int64_t)sizeof(float) * WORDS;
    const struct {
        int64_t limit, rows;
    } cases[] = {{bytes, 0}, {bytes - 1, 208}, {bytes - saved * (ROWS - 190), 128}, {1, 128}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_program *p = compile(make(PLAIN), 2, false, cases[i].limit);
        const ty_compile_report *r = ty_program_report(p);
        if (r->chunk.rows != cases[i].rows)
            fail_msg("case %zu: %lld rows in a chunk", i, (long long)r->chunk.rows);
        assert_int_equal(r->chunk.of_rows, cases[i].rows ? ROWS : 0);
        assert_int_equal(r->chunk.bytes, sizeof(float) * WORDS * (size_t)cases[i].rows);
        if (cases[i].limit > 1) {
            assert_true((int64_t)r->slab_bytes <= cases[i].limit);
            assert_int_equal(r->remat.n_lines, 0);
        }
        ty_program_free(p);
    }
    ty_program_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken),
        cmocka_unit_test(what_is_left),
        cmocka_unit_test(the_same_by_the_interpreter),
        cmocka_unit_test(compiled_is_as_whole),
        cmocka_unit_test(memory),
        cmocka_unit_test(sums_lie_in_place),
        cmocka_unit_test(limits),
        cmocka_unit_test(bounds),
    };
    return cmocka_run_group_tests_name("chunk", tests, NULL, NULL);
}
