/* replicas.c - a step that replicas on threads of this process share: the numbers of one program with the whole batch,
 * the same bits on all, exchanges that go on beside the tape, and what happens where one fails. Whole trainings:
 * tests/train/ranks.sh.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/exchange_threads.h"
#include "tests/unit/step_case.h"

enum { REPLICAS = 2, STEPS = 4 };

/* One label does not count, so that replicas see different numbers of them. */
static const int64_t labels[] = {0, -100, 1, 2};

static char cache[96]; /* what replicas compile alike, one of them compiles */

static int make_cache(void **state)
{
    make_path(state);
    snprintf(cache, sizeof cache, "%s.cache", model_path);
    return 0;
}

static int remove_cache(void **state)
{
    ty_file_remove_tree(cache, NULL);
    return remove_path(state);
}

static ty_program *compile_for(const ty_model *m, const plan *p, const ty_exchange *x)
{
    ty_program *program;
    ty_error err = {0};
    const ty_compile_options opt = {.threads = 1, .exchange = x, .cache_dir = cache};
    if (ty_compile_train(m, &p->spec, &opt, &program, &err) < 0)
        fail_msg("%s", err.message);
    return program;
}

typedef struct shared {
    exchange_group group;
    exchange_member member[REPLICAS];
    ty_program *program[REPLICAS];
    const void *inputs[REPLICAS][2];
} shared;

/* The plan's batch is divided. */
static void share(shared *s, const ty_model *m, plan *p)
{
    exchange_group_init(&s->group, REPLICAS);
    p->spec.replicas = REPLICAS;
    p->spec.no_outputs = true;
    for (int i = 0; i < p->spec.n_inputs; i++)
        p->input[i].type.dim[0] = BATCH / REPLICAS;
    for (int r = 0; r < REPLICAS; r++) {
        s->member[r] = (exchange_member){&s->group, r};
        ty_exchange x = exchange_of(&s->member[r]);
        s->program[r] = compile_for(m, p, &x);
    }
    exchange_group_start(&s->group, s->program[0]);
}

static void unshare(shared *s)
{
    for (int r = 0; r < REPLICAS; r++)
        ty_program_free(s->program[r]);
    exchange_group_fini(&s->group);
}

static const exchange_run *run_shared_on(shared *s, ty_run run, const void *const *whole, exchange_run *runs)
{
    for (int r = 0; r < REPLICAS; r++) {
        for (int i = 0; i < 2; i++)
            s->inputs[r][i] =
                (const char *)whole[i] + (size_t)r * ty_type_bytes(&ty_program_input(s->program[r], i)->type);
        runs[r] = (exchange_run){.program = s->program[r], .run = run, .inputs = s->inputs[r]};
    }
    return exchange_run_all(runs, REPLICAS);
}

static const exchange_run *run_shared(shared *s, ty_run run, exchange_run *runs)
{
    return run_shared_on(s, run, (const void *[]){batch_x, labels}, runs);
}

static double number_of(const ty_program *p, ty_run run, const char *name)
{
    return (double)*(const float *)ty_program_output(p, run, name)->data;
}

static void expect_same_weights(const ty_program *whole, const ty_program *part)
{
    for (int i = 0; i < ty_program_n_tensors(whole); i++) {
        const char *name;
        bool trained;
        ty_tensor a = ty_program_tensor(whole, i, &name, &trained), b = ty_program_tensor(part, i, NULL, NULL);
        for (int64_t k = 0; k < ty_type_elems(&a.type); k++)
            expect_near(name, (double)((const float *)b.data)[k], (double)((const float *)a.data)[k]);
    }
}

static void expect_same_numbers(const ty_program *whole, const shared *s, ty_run run)
{
    static const char *const names[] = {"loss", "grad_norm", "loss.sum", "loss.count", "hits.sum", "hits.count"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int r = 0; r < REPLICAS && ty_program_output(whole, run, names[i]); r++)
            expect_near(names[i], number_of(s->program[r], run, names[i]), number_of(whole, run, names[i]));
}

/* Trains both ways. Frees the model. */
static void expect_one_training_of(ty_model *m, const void *x, const plan *given)
{
    plan p = *given;
    p.spec.inputs = p.input;
    p.spec.loss = p.term;
    ty_program *whole = compile_for(m, &p, NULL);
    shared s;
    share(&s, m, &p);
    ty_error err = {0};
    exchange_run runs[REPLICAS];
    const void *inputs[] = {x, labels};
    for (int t = 0; t < STEPS; t++) {
        for (int micro = 0; micro < p.spec.accumulate; micro++) {
            ty_run run = micro + 1 < p.spec.accumulate ? TY_RUN_MICRO : TY_RUN_LAST;
            assert_int_equal(ty_program_run(whole, run, inputs, &err), 0);
            assert_null(run_shared_on(&s, run, inputs, runs));
        }
        expect_same_numbers(whole, &s, TY_RUN_LAST);
    }
    assert_int_equal(ty_program_run(whole, TY_RUN_EVAL, inputs, &err), 0);
    assert_null(run_shared_on(&s, TY_RUN_EVAL, inputs, runs));
    expect_same_numbers(whole, &s, TY_RUN_EVAL);
    expect_same_weights(whole, s.program[0]);
    assert_null(exchange_differing_state(s.program[0], s.program[1]));
    ty_program_free(whole);
    unshare(&s);
    ty_model_free(m);
}

static void expect_one_training(const plan *given)
{
    expect_one_training_of(two_layers(), batch_x, given);
}

static void plain(void **state)
{
    (void)state;
    plan p;
    expect_one_training(plan_of(&p));
}

static void buckets_of_any_size(void **state)
{
    (void)state;
    plan p;
    plan_of(&p)->spec.optimizer =
        (ty_optimizer){.kind = TY_OPT_ADAMW, .lr = 0.05, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3};
    for (int64_t bytes = 1; bytes < 200; bytes *= 40) {
        p.spec.bucket_bytes = bytes;
        expect_one_training(&p);
    }
}

static void clipped_by_the_norm_of_all(void **state)
{
    (void)state;
    plan p;
    plan_of(&p)->spec.clip = TY_CLIP_GLOBAL_NORM;
    p.spec.clip_max = 0.1;
    p.spec.bucket_bytes = 1;
    expect_one_training(&p);
}

static void micro_batches(void **state)
{
    (void)state;
    plan p;
    plan_of(&p)->spec.accumulate = 3;
    p.spec.optimizer.momentum = 0.9;
    p.spec.bucket_bytes = 1;
    expect_one_training(&p);
}

/* Rows that both name, rows that one names twice, and a table of which most rows are named by nobody. */
static ty_model *lookups(int64_t n_rows)
{
    model_text t;
    model_begin(&t, 18);
    model_input(&t, "x", 7, SHAPE(-1));
    model_floats(&t, "table", SHAPE(n_rows, 4), numbers(60, 0.1f));
    model_floats(&t, "w", SHAPE(4, 3), numbers(12, -0.05f));
    model_node(&t, "Gather", "table,x", "e", "embed");
    model_node(&t, "MatMul", "e,w", "y", "head");
    model_output(&t, "y", 1);
    return open_text(&t);
}

static void tables_by_rows(void **state)
{
    (void)state;
    static const int64_t rows[BATCH] = {7, 2, 7, 7}, none[BATCH] = {0};
    const ty_optimizer_kind kinds[] = {TY_OPT_SGD, TY_OPT_ADAM};
    for (size_t i = 0; i < 2; i++) {
        plan p;
        plan_of(&p)->spec.optimizer =
            (ty_optimizer){.kind = kinds[i], .lr = 0.05, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3};
        p.input[0].type = ty_type_make(TY_I64, SHAPE(BATCH));
        p.spec.sparse_all = true;
        p.spec.clip = TY_CLIP_GLOBAL_NORM;
        p.spec.clip_max = 0.1;
        expect_one_training_of(lookups(15), rows, &p);
        p.spec.optimizer_sharding = true;
        expect_one_training_of(lookups(15), rows, &p);
        expect_one_training_of(lookups(1), none, &p); /* the table's gradient is smaller than the rows' */
    }
}

static void metrics(void **state)
{
    (void)state;
    const ty_metric hits = {.kind = TY_METRIC_ACCURACY, .name = "hits", .output = "y", .target = "t"};
    plan p;
    plan_of(&p)->spec.metrics = &hits;
    p.spec.n_metrics = 1;
    expect_one_training(&p);
}

static void scaled_loss(void **state)
{
    (void)state;
    plan p;
    plan_of(&p)->spec.precision = TY_PRECISION_FLOAT16;
    p.spec.keep_float32 = (const char *const[]){"*"}; /* what is rounded would depend on the batch */
    p.spec.n_keep_float32 = 1;
    expect_one_training(&p);
    p.spec.optimizer_sharding = true;
    expect_one_training(&p);
}

static void averages(void **state)
{
    (void)state;
    plan p;
    plan_of(&p)->spec.ema_decay = 0.9;
    p.spec.use_ema = true;
    expect_one_training(&p);
}

/* A bucket is not waited for before the next one has begun. */
static void buckets_travel_together(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p;
    shared s;
    exchange_run runs[REPLICAS];
    plan_of(&p)->spec.bucket_bytes = 1;
    share(&s, m, &p);
    assert_null(run_shared(&s, TY_RUN_LAST, runs));
    assert_true(s.group.most_open >= 3);
    int n_begun = 0, n_waits = 0;
    ty_tape_facts facts;
    ty_arena a;
    ty_error err;
    ty_arena_init(&a);
    assert_int_equal(ty_program_describe(s.program[0], TY_RUN_LAST, &a, &facts, &err), 0);
    for (int i = 0; i < ty_program_n_calls(s.program[0], TY_RUN_LAST); i++) {
        ty_call_info info;
        ty_program_call(s.program[0], TY_RUN_LAST, i, &info);
        bool begins = strcmp(info.how, "begin") == 0, waits = strcmp(info.how, "wait") == 0;
        if (begins || waits)
            assert_int_equal(facts.unit[info.unit].work, TY_WORK_EXCHANGE);
        n_begun += begins;
        n_waits += waits;
    }
    assert_int_equal(n_begun, 6); /* labels, loss, four buckets */
    assert_int_equal(n_waits, n_begun);
    ty_arena_fini(&a);
    unshare(&s);
    ty_model_free(m);
}

static void one_fails(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p;
    shared s;
    exchange_run runs[REPLICAS];
    share(&s, m, plan_of(&p));
    s.group.fail_at = 2;
    const exchange_run *bad = run_shared(&s, TY_RUN_LAST, runs);
    assert_non_null(bad);
    assert_string_equal(bad->err.message, "exchange 2 failed");
    unshare(&s);
    ty_model_free(m);
}

typedef struct checked {
    ty_program *program;
    const void *inputs[2];
    ty_arena arena;
    ty_check check;
    int rc;
} checked;

static void *run_checked(void *arg)
{
    checked *c = arg;
    ty_error err;
    c->rc = ty_program_run_checked(c->program, TY_RUN_LAST, c->inputs, &c->arena, &c->check, &err);
    return NULL;
}

/* A run that is looked at has exchanges too, each over before its numbers are judged. */
static void looked_at(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p;
    shared s[2];
    exchange_run runs[REPLICAS];
    checked c[REPLICAS] = {0};
    pthread_t thread[REPLICAS];
    plan_of(&p)->spec.bucket_bytes = 1;
    share(&s[0], m, &p);
    share(&s[1], m, &p);
    assert_null(run_shared(&s[0], TY_RUN_LAST, runs));
    for (int r = 0; r < REPLICAS; r++) {
        c[r] = (checked){.program = s[1].program[r],
                         .inputs = {batch_x + r * 4 * BATCH / REPLICAS, labels + r * BATCH / REPLICAS}};
        ty_arena_init(&c[r].arena);
        assert_int_equal(pthread_create(&thread[r], NULL, run_checked, &c[r]), 0);
    }
    for (int r = 0; r < REPLICAS; r++) {
        pthread_join(thread[r], NULL);
        assert_int_equal(c[r].rc, 0);
        assert_int_equal(c[r].check.n_bad, 0);
        ty_arena_fini(&c[r].arena);
        assert_null(exchange_differing_state(s[0].program[r], s[1].program[r]));
    }
    unshare(&s[0]);
    unshare(&s[1]);
    ty_model_free(m);
}

/* ---- the update divided ---- */

static plan *divided(plan *p)
{
    plan_of(p)->spec.optimizer =
        (ty_optimizer){.kind = TY_OPT_ADAMW, .lr = 0.05, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3};
    p->spec.optimizer_sharding = true;
    return p;
}

static void parts_of_moments(void **state)
{
    (void)state;
    plan p;
    expect_one_training(divided(&p));
    p.spec.bucket_bytes = 1;
    expect_one_training(&p);
    p.spec.clip = TY_CLIP_GLOBAL_NORM;
    p.spec.clip_max = 0.1;
    p.spec.accumulate = 2;
    expect_one_training(&p);
    p.spec.ema_decay = 0.9;
    p.spec.use_ema = true;
    expect_one_training(&p);
}

/* Who updates a weight does not show in it. */
static void same_bits_divided(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p;
    shared s[2];
    exchange_run runs[REPLICAS];
    for (int i = 0; i < 2; i++) {
        divided(&p)->spec.optimizer_sharding = i;
        share(&s[i], m, &p);
        for (int t = 0; t < STEPS; t++)
            assert_null(run_shared(&s[i], TY_RUN_LAST, runs));
    }
    ty_tensor a = ty_program_state(s[0].program[0], 0, NULL), b = ty_program_state(s[1].program[1], 0, NULL);
    assert_int_equal(ty_type_elems(&a.type), 67);
    assert_memory_equal(a.data, b.data, ty_type_bytes(&a.type));
    unshare(&s[0]);
    unshare(&s[1]);
    ty_model_free(m);
}

static int state_of(const ty_program *p, const char *wanted)
{
    for (int i = 0; i < ty_program_n_states(p); i++) {
        const char *name;
        ty_program_state(p, i, &name);
        if (strcmp(name, wanted) == 0)
            return i;
    }
    fail_msg("no state %s", wanted);
    return -1;
}

typedef struct gathered {
    ty_program *program;
    int state;
    float whole[67];
    int rc;
} gathered;

static void *gather(void *arg)
{
    gathered *g = arg;
    ty_error err;
    g->rc = ty_program_gather_state(g->program, g->state, g->whole, &err);
    return NULL;
}

/* The 67 moments of two replicas: 32 of each, and 3 that both have. Brought together they are those of one device, and
 * a replica that takes its part of the whole has its own again. */
static void whole_moments(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p, alone;
    shared s;
    exchange_run runs[REPLICAS];
    gathered all[REPLICAS];
    pthread_t thread[REPLICAS];
    ty_error err = {0};
    divided(&alone);
    alone.spec.inputs = alone.input;
    alone.spec.loss = alone.term;
    ty_program *whole = compile_for(m, &alone, NULL);
    share(&s, m, divided(&p));
    assert_int_equal(ty_program_run(whole, TY_RUN_LAST, (const void *[]){batch_x, labels}, &err), 0);
    assert_null(run_shared(&s, TY_RUN_LAST, runs));
    for (int r = 0; r < REPLICAS; r++) {
        all[r] = (gathered){.program = s.program[r], .state = state_of(s.program[r], "adamw.v.0")};
        assert_int_equal(ty_program_whole_elems(s.program[r], all[r].state), 67);
        assert_int_equal(pthread_create(&thread[r], NULL, gather, &all[r]), 0);
    }
    for (int r = 0; r < REPLICAS; r++) {
        pthread_join(thread[r], NULL);
        assert_int_equal(all[r].rc, 0);
        const float *want = ty_program_state(whole, state_of(whole, "adamw.v.0"), NULL).data;
        for (int i = 0; i < 67; i++)
            expect_near("moment", (double)all[r].whole[i], (double)want[i]);
        ty_tensor own = ty_program_state(s.program[r], all[r].state, NULL);
        float before[35];
        assert_int_equal(ty_type_elems(&own.type), 35);
        memcpy(before, own.data, sizeof before);
        memset(own.data, 0, sizeof before);
        ty_program_take_part(s.program[r], all[r].state, all[r].whole);
        assert_memory_equal(before, own.data, sizeof before);
        assert_int_equal(ty_program_whole_elems(s.program[r], state_of(s.program[r], "param.0")), 0);
    }
    ty_program_free(whole);
    unshare(&s);
    ty_model_free(m);
}

static void refused(const ty_compile_options *opt, const char *words)
{
    ty_model *m = two_layers();
    plan p;
    ty_program *program;
    ty_error err = {0};
    plan_of(&p)->spec.replicas = 2;
    p.spec.no_outputs = true;
    assert_int_equal(ty_compile_train(m, &p.spec, opt, &program, &err), -1);
    if (!strstr(err.message, words))
        fail_msg("expected \"%s\", found \"%s\"", words, err.message);
    ty_model_free(m);
}

static void refusals(void **state)
{
    (void)state;
    exchange_member me = {0};
    ty_exchange x = exchange_of(&me);
    refused(NULL, "replicas: 2 on the CPU, and nothing that they exchange by");
    refused(&(ty_compile_options){.exchange = &x, .backend = TY_BACKEND_INTERPRETER}, "2 in the interpreter");
    x.replica = 2;
    refused(&(ty_compile_options){.exchange = &x}, "replicas: number 2 of 2");
    ty_error err;
    plan p;
    divided(&p)->spec.replicas = 2;
    p.spec.clip = TY_CLIP_NORM;
    assert_int_equal(ty_shard_check(&p.spec, &err), -1);
    p.spec.clip = TY_CLIP_NONE;
    p.spec.optimizer.kind = TY_OPT_LAMB;
    assert_int_equal(ty_shard_check(&p.spec, &err), -1);
    p.spec.replicas = 1;
    assert_int_equal(ty_shard_check(&p.spec, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(buckets_of_any_size),
        cmocka_unit_test(clipped_by_the_norm_of_all),
        cmocka_unit_test(micro_batches),
        cmocka_unit_test(averages),
        cmocka_unit_test(tables_by_rows),
        cmocka_unit_test(metrics),
        cmocka_unit_test(scaled_loss),
        cmocka_unit_test(parts_of_moments),
        cmocka_unit_test(same_bits_divided),
        cmocka_unit_test(whole_moments),
        cmocka_unit_test(buckets_travel_together),
        cmocka_unit_test(one_fails),
        cmocka_unit_test(looked_at),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("replicas", tests, make_cache, remove_cache);
}
