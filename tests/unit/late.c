/* late.c - updates that a step leaves to the next one: the bits of steps that end with their updates, whatever comes in
 * between, and the order in which replicas exchange their gradients. Whole trainings: tests/dist/overlap_train.sh.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "tests/unit/exchange_threads.h"
#include "tests/unit/step_case.h"

#include <sys/mman.h>

enum { REPLICAS = 2, WIDE = 544, MOST = 64 };

static const int64_t labels[] = {0, -100, 1, 2};
static float batches[MOST][BATCH * 4]; /* of each step its own */

static char cache[96];

static int make_cache(void **state)
{
    make_path(state);
    snprintf(cache, sizeof cache, "%s.cache", model_path);
    for (int t = 0; t < MOST; t++)
        for (int i = 0; i < BATCH * 4; i++)
            batches[t][i] = ty_rng_uniform(ty_rng_u32(7, (uint64_t)t, 0, (uint64_t)i)) - 0.5f;
    return 0;
}

static int remove_cache(void **state)
{
    ty_file_remove_tree(cache, NULL);
    return remove_path(state);
}

static void weights(model_text *t, const char *name, int64_t rows, int64_t columns)
{
    static float v[WIDE * WIDE];
    for (int64_t i = 0; i < rows * columns; i++)
        v[i] = 0.2f * (ty_rng_uniform(ty_rng_u32((uint64_t)name[1], 0, 0, (uint64_t)i)) - 0.5f);
    model_floats(t, name, SHAPE(rows, columns), v);
}

/* Each wide weight has more than a megabyte: its gradient begins in two halves. */
static ty_model *deep(void)
{
    model_text t;
    model_begin(&t, 18);
    model_input(&t, "x", 1, SHAPE(-1, 4));
    weights(&t, "w0", 4, WIDE);
    weights(&t, "w1", WIDE, WIDE);
    weights(&t, "w2", WIDE, WIDE);
    weights(&t, "w3", WIDE, WIDE);
    weights(&t, "w4", WIDE, 3);
    model_node(&t, "MatMul", "x,w0", "a0", "l0");
    model_node(&t, "Relu", "a0", "b0", "");
    model_node(&t, "MatMul", "b0,w1", "a1", "l1");
    model_node(&t, "Relu", "a1", "b1", "");
    model_node(&t, "MatMul", "b1,w2", "a2", "l2");
    model_node(&t, "Relu", "a2", "b2", "");
    model_node(&t, "MatMul", "b2,w3", "a3", "l3");
    model_node(&t, "Relu", "a3", "b3", "");
    model_node(&t, "MatMul", "b3,w4", "y", "l4");
    model_output(&t, "y", 1);
    return open_text(&t);
}

static plan *deep_plan(plan *p)
{
    plan_of(p);
    p->spec.inputs = p->input;
    p->spec.loss = p->term;
    p->spec.optimizer = (ty_optimizer){.kind = TY_OPT_ADAM, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3};
    p->spec.bucket_bytes = 1 << 20;
    p->spec.replicas = REPLICAS;
    p->spec.no_outputs = true;
    for (int i = 0; i < p->spec.n_inputs; i++)
        p->input[i].type.dim[0] = BATCH / REPLICAS;
    return p;
}

typedef struct trained {
    exchange_group group;
    exchange_member member[REPLICAS];
    ty_program *program[REPLICAS];
} trained;

static void compile(trained *s, const ty_model *m, const plan *p)
{
    exchange_group_init(&s->group, REPLICAS);
    for (int r = 0; r < REPLICAS; r++) {
        ty_error err = {0};
        s->member[r] = (exchange_member){&s->group, r};
        const ty_exchange x = exchange_of(&s->member[r]);
        const ty_compile_options opt = {.threads = 1, .exchange = &x, .cache_dir = cache};
        if (ty_compile_train(m, &p->spec, &opt, &s->program[r], &err) < 0)
            fail_msg("%s", err.message);
    }
    exchange_group_start(&s->group, s->program[0]);
}

static void release(trained *s)
{
    for (int r = 0; r < REPLICAS; r++)
        ty_program_free(s->program[r]);
    exchange_group_fini(&s->group);
}

/* ---- what replicas do, a letter each ---- */

typedef struct script {
    ty_program *program;
    int replica;
    const char *todo;
    int n_steps, n_results, n_evals;
    float result[MOST][3], eval[MOST];
    ty_error err;
    int rc;
} script;

static float number(const ty_program *p, ty_run run, const char *name)
{
    return *(const float *)ty_program_output(p, run, name)->data;
}

static void note_result(script *s)
{
    static const char *const names[] = {"loss", "grad_norm", "lr"};
    for (int i = 0; i < 3; i++)
        s->result[s->n_results][i] = number(s->program, TY_RUN_LAST, names[i]);
    s->n_results++;
}

static int do_letter(script *s, char what)
{
    const void *inputs[] = {batches[s->n_steps] + s->replica * BATCH / REPLICAS * 4,
                            labels + s->replica * BATCH / REPLICAS};
    ty_arena a;
    ty_check check = {0};
    int rc = 0;
    switch (what) {
    case 's': /* starts a step */
        s->n_steps++;
        return ty_program_start(s->program, TY_RUN_LAST, inputs, &s->err);
    case 'm': /* starts a micro-batch */
        return ty_program_start(s->program, TY_RUN_MICRO, inputs, &s->err);
    case 'f': /* takes a step's result */
        rc = ty_program_finish(s->program, TY_RUN_LAST, &s->err);
        break;
    case 'r': /* a whole step */
        s->n_steps++;
        rc = ty_program_run(s->program, TY_RUN_LAST, inputs, &s->err);
        break;
    case 'c': /* likewise, looking at every value */
        ty_arena_init(&a);
        s->n_steps++;
        rc = ty_program_run_checked(s->program, TY_RUN_LAST, inputs, &a, &check, &s->err);
        ty_arena_fini(&a);
        break;
    case 'e': /* evaluates */
        rc = ty_program_run(s->program, TY_RUN_EVAL, inputs, &s->err);
        s->eval[s->n_evals++] = number(s->program, TY_RUN_EVAL, "loss.sum");
        return rc;
    default:
        return ty_program_fetch_states(s->program, &s->err);
    }
    note_result(s);
    return rc;
}

static void *do_script(void *arg)
{
    script *s = arg;
    for (const char *c = s->todo; *c && s->rc == 0; c++)
        s->rc = do_letter(s, *c);
    return NULL;
}

static void run(trained *t, const char *todo, script *scripts)
{
    pthread_t thread[REPLICAS];
    for (int r = 0; r < REPLICAS; r++) {
        scripts[r] = (script){.program = t->program[r], .replica = r, .todo = todo};
        if (pthread_create(&thread[r], NULL, do_script, &scripts[r]))
            abort();
    }
    for (int r = 0; r < REPLICAS; r++)
        pthread_join(thread[r], NULL);
    for (int r = 0; r < REPLICAS; r++)
        if (scripts[r].rc < 0)
            fail_msg("%s: %s", todo, scripts[r].err.message);
}

static void expect_same_states(const char *todo, const ty_program *a, const ty_program *b)
{
    for (int i = 0; i < ty_program_n_states(a); i++) {
        const char *name;
        ty_tensor x = ty_program_state(a, i, &name), y = ty_program_state(b, i, NULL);
        if (memcmp(x.data, y.data, ty_type_bytes(&x.type)))
            fail_msg("%s: other bits in %s", todo, name);
    }
}

/* The same results and the same bits as steps that end with their updates. */
static void expect_same(const ty_model *m, const plan *p, const char *todo, const char *whole)
{
    trained a, b;
    script sa[REPLICAS], sb[REPLICAS];
    compile(&a, m, p);
    compile(&b, m, p);
    run(&a, todo, sa);
    run(&b, whole, sb);
    assert_int_equal(sa[0].n_results, sb[0].n_results);
    for (int r = 0; r < REPLICAS; r++) {
        for (int i = 0; i < sa[r].n_results; i++)
            if (memcmp(sa[r].result[i], sb[r].result[i], sizeof sa[r].result[i]))
                fail_msg("%s: result %d is %g %g %g, expected %g %g %g", todo, i, (double)sa[r].result[i][0],
                         (double)sa[r].result[i][1], (double)sa[r].result[i][2], (double)sb[r].result[i][0],
                         (double)sb[r].result[i][1], (double)sb[r].result[i][2]);
        assert_int_equal(sa[r].n_evals, sb[r].n_evals);
        assert_memory_equal(sa[r].eval, sb[r].eval, sizeof sa[r].eval);
        expect_same_states(todo, a.program[r], b.program[r]);
    }
    release(&a);
    release(&b);
}

static void same_bits(void **state)
{
    (void)state;
    ty_model *m = deep();
    plan p;
    deep_plan(&p);
    expect_same(m, &p, "ssfsfsfsfsff", "rrrrrr");
    expect_same(m, &p, "sfsfsfsf", "rrrr");
    expect_same(m, &p, "ssfesfFsfef", "rrerre"); /* an evaluation and a checkpoint while updates are left */
    expect_same(m, &p, "ssffrsfcssff", "rrrrcrr");
    p.spec.optimizer = (ty_optimizer){.kind = TY_OPT_SGD, .lr = 0.05, .momentum = 0.9};
    p.spec.ema_decay = 0.9;
    expect_same(m, &p, "ssfsfsff", "rrrr");
    p.spec.clip = TY_CLIP_GLOBAL_NORM;
    p.spec.clip_max = 0.1;
    expect_same(m, &p, "ssfsfsff", "rrrr");
    ty_model_free(m);
}

static void micro_batches(void **state)
{
    (void)state;
    ty_model *m = deep();
    plan p;
    deep_plan(&p)->spec.accumulate = 2;
    expect_same(m, &p, "msmsfmsff", "mrmrmr");
    ty_model_free(m);
}

static void moments_in_parts(void **state)
{
    (void)state;
    ty_model *m = deep();
    plan p;
    deep_plan(&p)->spec.optimizer_sharding = true;
    expect_same(m, &p, "ssfsfesff", "rrrer");
    ty_model_free(m);
}

/* What is fetched between two steps is all there is: others go on from it. */
static void resumed(void **state)
{
    (void)state;
    ty_model *m = deep();
    plan p;
    deep_plan(&p);
    trained a, b, whole;
    script s[REPLICAS];
    compile(&a, m, &p);
    compile(&b, m, &p);
    compile(&whole, m, &p);
    run(&a, "ssfsF", s);
    for (int r = 0; r < REPLICAS; r++)
        for (int i = 0; i < ty_program_n_states(a.program[r]); i++) {
            ty_tensor x = ty_program_state(a.program[r], i, NULL), y = ty_program_state(b.program[r], i, NULL);
            memcpy(y.data, x.data, ty_type_bytes(&x.type));
        }
    run(&b, "ssff", s);
    run(&whole, "rrr", s);
    run(&whole, "rr", s);
    for (int r = 0; r < REPLICAS; r++)
        expect_same_states("resumed", b.program[r], whole.program[r]);
    release(&a);
    release(&b);
    release(&whole);
    ty_model_free(m);
}

/* ---- what goes before its exchanges are over ---- */

typedef struct operand {
    void *at;
    size_t bytes;
} operand;

/* All large sums that the group has heard of. */
static int operands_of(const exchange_group *g, operand *out)
{
    int n = 0;
    for (int call = 0; call < g->n_calls; call++)
        for (int r = 0; r < REPLICAS && n < MOST; r++) {
            size_t bytes = (size_t)g->call[call].elems * sizeof(float);
            if (g->call[call].gradients && bytes >= 1 << 18 && g->slot[call].out[r])
                out[n++] = (operand){g->slot[call].out[r], bytes};
        }
    return n;
}

/* Whoever carries out sums writes them into memory of a program that is gone. */
static void expect_memory_left(trained *s)
{
    operand operands[MOST];
    unsigned char resident[4096];
    int n = operands_of(&s->group, operands);
    assert_true(n > 0);
    release(s);
    for (int i = 0; i < n; i++) {
        uintptr_t first = ((uintptr_t)operands[i].at + 4095) / 4096 * 4096;
        assert_int_equal(mincore((void *)first, operands[i].bytes - 4096, resident), 0);
        memset(operands[i].at, 0, operands[i].bytes);
    }
}

static void memory_of_exchanges_stays(void **state)
{
    (void)state;
    ty_model *m = deep();
    plan p;
    trained s;
    script scripts[REPLICAS];
    compile(&s, m, deep_plan(&p));
    run(&s, "s", scripts); /* updates that nobody asks for */
    expect_memory_left(&s);
    compile(&s, m, &p);
    for (int call = 0; call < s.group.n_calls; call++) /* a whole step fails at the last sum that begins whole */
        if (s.group.call[call].run == TY_RUN_LAST && s.group.call[call].gradients && s.group.call[call].first == 0)
            s.group.fail_at = call;
    exchange_run runs[REPLICAS];
    const void *inputs[REPLICAS][2];
    for (int r = 0; r < REPLICAS; r++) {
        inputs[r][0] = batches[0] + r * BATCH / REPLICAS * 4;
        inputs[r][1] = labels + r * BATCH / REPLICAS;
        runs[r] = (exchange_run){.program = s.program[r], .run = TY_RUN_LAST, .inputs = inputs[r]};
    }
    assert_non_null(exchange_run_all(runs, REPLICAS));
    expect_memory_left(&s);
    ty_model_free(m);
}

/* ---- the order ---- */

static void first_layers_overtake(void **state)
{
    (void)state;
    ty_model *m = deep();
    plan p;
    trained s;
    compile(&s, m, deep_plan(&p));
    int n, n_first = 0, n_second = 0, last = -1;
    const ty_exchange_call *call = ty_program_exchanges(s.program[0], &n);
    for (int i = 0; i < n; i++) {
        if (call[i].run != TY_RUN_LAST || !call[i].gradients)
            continue;
        n_first += call[i].first == 0;
        n_second += call[i].first > 0;
        assert_true(call[i].first > 0 || n_second == 0); /* second halves behind all others */
        if (call[i].first > 0) {
            int k = i;
            while (strcmp(call[--k].name, call[i].name)) {
            }
            assert_true(last < 0 || k < last); /* those of the last bucket first */
            assert_true(call[k].elems == call[i].first);
            last = k;
        }
    }
    assert_int_equal(n_second, 3);
    assert_true(n_first >= 4);
    assert_int_equal(ty_program_in_flight(s.program[0], TY_RUN_LAST), 2);
    assert_int_equal(ty_program_in_flight(s.program[0], TY_RUN_EVAL), 1);
    release(&s);
    ty_model_free(m);
}

/* A weight's gradient travels while that of the layer before is computed; the count of labels all through forward. */
static void gradients_of_weights_first(void **state)
{
    (void)state;
    ty_model *m = deep();
    plan p;
    trained s;
    compile(&s, m, deep_plan(&p));
    int n = ty_program_n_calls(s.program[0], TY_RUN_LAST), beside = 0;
    ty_call_info now, next;
    for (int i = 0; i + 1 < n; i++) {
        ty_program_call(s.program[0], TY_RUN_LAST, i, &now);
        ty_program_call(s.program[0], TY_RUN_LAST, i + 1, &next);
        beside += strcmp(now.how, "begin") == 0 && now.read_bytes > 1 << 19 && strcmp(next.name, "dot") == 0;
    }
    assert_int_equal(beside, 3);
    ty_program_call(s.program[0], TY_RUN_LAST, 1, &now);
    assert_string_equal(now.how, "begin");
    release(&s);
    ty_model_free(m);
}

static void alone_nothing_is_late(void **state)
{
    (void)state;
    ty_model *m = deep();
    plan p;
    ty_program *program;
    ty_error err = {0};
    const ty_compile_options opt = {.threads = 1, .cache_dir = cache};
    deep_plan(&p)->spec.replicas = 1;
    assert_int_equal(ty_compile_train(m, &p.spec, &opt, &program, &err), 0);
    assert_int_equal(ty_program_in_flight(program, TY_RUN_LAST), 1);
    ty_program_free(program);
    ty_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(micro_batches),
        cmocka_unit_test(moments_in_parts),
        cmocka_unit_test(resumed),
        cmocka_unit_test(memory_of_exchanges_stays),
        cmocka_unit_test(first_layers_overtake),
        cmocka_unit_test(gradients_of_weights_first),
        cmocka_unit_test(alone_nothing_is_late),
    };
    return cmocka_run_group_tests_name("late", tests, make_cache, remove_cache);
}
