/* dist/server/rule.h beside what Keras, TensorFlow and PyTorch got: tests/golden/numbers. A shard's update is applied
 * to the gradients of the problem there, dense and by rows with duplicates, through messages. */
#include "base/json.h"
#include "base/rng.h"
#include "dist/server/shard.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct course { /* a shard with one variable, and who asks it */
    ty_shard shard;
    uint64_t sequence;
    void *answer;
    size_t n_bytes;
} course;

static void keep_answer(void *ctx, int64_t peer, void *bytes, size_t n_bytes)
{
    course *c = ctx;
    (void)peer;
    free(c->answer);
    c->answer = bytes;
    c->n_bytes = n_bytes;
}

/* Takes the message over; returns the answer's head. */
static const ty_parcel *ask(course *c, ty_buf *b)
{
    ty_error err = {0};
    size_t n;
    assert_int_equal(ty_parcel_end(b, &err), 0);
    void *bytes = ty_buf_detach(b, &n);
    ty_shard_take(&c->shard, bytes, n, 0, 0);
    assert_non_null(c->answer);
    assert_int_equal(((const ty_parcel *)c->answer)->status, 0);
    return c->answer;
}

static ty_buf message(course *c, ty_parcel head, bool sequenced)
{
    ty_buf b;
    head.incarnation = 1;
    head.sequence = sequenced ? ++c->sequence : 0;
    ty_buf_init(&b, 1 << 20);
    ty_parcel_begin(&b, &head);
    return b;
}

static void course_begin(course *c, const ty_rule *rule, int64_t rows, int64_t width, const float *start)
{
    ty_error err = {0};
    ty_arena arena;
    ty_buf text;
    ty_shard_variable v = {.name = "w", .table = true, .rows = rows, .width = width, .parts = 1, .rule = *rule};
    ty_catalogue cat = {.workers = 1, .shards = 1, .variable = &v, .n_variables = 1};
    ty_arena_init(&arena);
    *c = (course){0};
    assert_int_equal(ty_shard_init(&c->shard, &(ty_shard_options){.answer = keep_answer, .ctx = c}, &err), 0);
    assert_int_equal(ty_catalogue_place(&cat, &arena, &err), 0);
    ty_buf_init(&text, 1 << 16);
    assert_int_equal(ty_catalogue_write(&cat, &text), 0);
    ty_buf b = message(c, (ty_parcel){.kind = TY_PARCEL_HELLO}, false);
    ty_parcel_add(&b, &(ty_part){.kind = TY_PART_TEXT, .n_bytes = text.len, .bytes = text.data});
    ask(c, &b);
    b = message(c, (ty_parcel){.kind = TY_PARCEL_SET}, true);
    ty_parcel_add(&b, &(ty_part){.kind = TY_PART_DENSE, .n_values = (uint64_t)(rows * width), .values = start});
    ask(c, &b);
    b = message(c, (ty_parcel){.kind = TY_PARCEL_READY}, false);
    ask(c, &b);
    ty_buf_fini(&text);
    ty_arena_fini(&arena);
}

static void course_end(course *c)
{
    ty_shard_fini(&c->shard);
    free(c->answer);
}

static const ty_doc *golden(ty_arena *arena, const char *name)
{
    ty_doc *doc;
    ty_error err = {0};
    if (ty_json_read(arena, ty_arena_printf(arena, "tests/golden/numbers/%s", name), NULL, &doc, &err) < 0)
        fail_msg("%s", err.message);
    return doc;
}

static double number(const ty_doc *d)
{
    double x = 0;
    ty_error err = {0};
    assert_int_equal(ty_doc_float(d, &x, &err), 0);
    return x;
}

static const ty_doc *golden_case(const ty_doc *doc, const char *recipe)
{
    const ty_doc *cases = ty_doc_find(doc, "cases");
    for (size_t i = 0; i < ty_doc_len(cases); i++)
        if (strcmp(ty_doc_find(ty_doc_at(cases, i), "recipe")->string, recipe) == 0)
            return ty_doc_find(ty_doc_at(cases, i), "weights");
    fail_msg("no case %s", recipe);
    return NULL;
}

static void near_values(const float *got, const ty_doc *expected, int64_t first, int64_t n, const char *recipe,
                        size_t step)
{
    for (int64_t i = 0; i < n; i++) {
        double want = number(ty_doc_at(expected, (size_t)(first + i)));
        if (fabs(got[i] - want) > 1e-6 * fmax(1, fabs(want)))
            fail_msg("%s, step %zu, weight %d: expected %.9g, found %.9g", recipe, step + 1, (int)i, want,
                     (double)got[i]);
    }
}

static void dense(void **state)
{
    (void)state;
    static const struct {
        const char *file, *recipe;
        ty_rule rule;
    } cases[] = {
        {"optimizers.keras.json", "optimizer: {keras_sgd: {lr: 0.1}}", {.kind = TY_RULE_SGD, .rate = 0.1}},
        {"optimizers.keras.json",
         "optimizer: {keras_sgd: {lr: 0.1, momentum: 0.9}}",
         {.kind = TY_RULE_SGD, .rate = 0.1, .momentum = 0.9}},
        {"optimizers.keras.json",
         "optimizer: {keras_sgd: {lr: 0.1, momentum: 0.8, nesterov: true}}",
         {.kind = TY_RULE_SGD, .rate = 0.1, .momentum = 0.8, .nesterov = true}},
        {"optimizers.keras.json",
         "optimizer: {keras_adagrad: {}}",
         {.kind = TY_RULE_KERAS_ADAGRAD, .rate = 0.001, .initial = 0.1, .eps = 1e-7}},
        {"optimizers.keras.json",
         "optimizer: {keras_adam: {}}",
         {.kind = TY_RULE_KERAS_ADAM, .rate = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7}},
        {"optimizers.keras.json",
         "optimizer: {keras_adam: {lr: 0.1, beta1: 0.8, beta2: 0.9, eps: 1e-3}}",
         {.kind = TY_RULE_KERAS_ADAM, .rate = 0.1, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3}},
        {"optimizers.torch.json",
         "optimizer: {adam: {}}",
         {.kind = TY_RULE_ADAM, .rate = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
        {"optimizers.torch.json",
         "optimizer: {sgd: {lr: 0.1, momentum: 0.9}}",
         {.kind = TY_RULE_SGD, .rate = 0.1, .momentum = 0.9}},
        {"optimizers.torch.json", "optimizer: {adagrad: {}}", {.kind = TY_RULE_ADAGRAD, .rate = 0.01, .eps = 1e-10}},
        {"optimizers.keras.json", "optimizer: {ftrl: {}}", {.kind = TY_RULE_FTRL, .rate = 0.001, .initial = 0.1}},
    };
    ty_arena arena;
    ty_arena_init(&arena);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        course c;
        float values[32];
        const ty_doc *doc = golden(&arena, cases[k].file), *weights = golden_case(doc, cases[k].recipe);
        const ty_doc *start = ty_doc_find(doc, "start"), *gradients = ty_doc_find(doc, "gradients");
        int64_t n = (int64_t)ty_doc_len(start);
        for (int64_t i = 0; i < n; i++)
            values[i] = (float)number(ty_doc_at(start, (size_t)i));
        course_begin(&c, &cases[k].rule, n, 1, values);
        for (size_t step = 0; step < ty_doc_len(weights); step++) {
            for (int64_t i = 0; i < n; i++)
                values[i] = (float)number(ty_doc_at(ty_doc_at(gradients, step), (size_t)i));
            ty_buf b = message(&c, (ty_parcel){.kind = TY_PARCEL_PUSH, .step = step + 1, .scale = 1}, true);
            ty_parcel_add(&b, &(ty_part){.kind = TY_PART_DENSE, .n_values = (uint64_t)n, .values = values});
            ask(&c, &b);
            near_values(c.shard.rows[0].weight, ty_doc_at(weights, step), 0, n, cases[k].recipe, step);
        }
        course_end(&c);
    }
    ty_arena_fini(&arena);
}

/* Two lookups of one table a step: 4 rows of the first of gradients [6][3] ... all with their duplicates, in one push.
 */
static void rows(void **state)
{
    (void)state;
    static const struct {
        const char *file, *recipe;
        ty_rule rule;
    } cases[] = {
        {"tables.tensorflow.json",
         "optimizer: {ftrl: {lr: 0.5, l1: 0.05, l2: 0.1, beta: 0.2}}\nsparse_rows: true",
         {.kind = TY_RULE_FTRL, .rate = 0.5, .l1 = 0.05, .l2 = 0.1, .beta = 0.2, .initial = 0.1}},
        {"tables.tensorflow.json",
         "optimizer: {keras_adagrad: {lr: 0.5}}\nsparse_rows: true",
         {.kind = TY_RULE_KERAS_ADAGRAD, .rate = 0.5, .initial = 0.1, .eps = 1e-7}},
        {"tables.tensorflow.json",
         "optimizer: {keras_adam: {lr: 0.1, eps: 1e-3}}\nsparse_rows: true",
         {.kind = TY_RULE_KERAS_ADAM, .rate = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-3}},
        {"tables.tensorflow.json",
         "optimizer: {keras_sgd: {lr: 0.1}}\nsparse_rows: true",
         {.kind = TY_RULE_SGD, .rate = 0.1}},
        {"tables.torch.json",
         "optimizer: {adam: {lr: 0.1}}\nsparse_rows: true",
         {.kind = TY_RULE_KERAS_ADAM, .rate = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
        {"tables.torch.json",
         "optimizer: {adam: {lr: 0.1, betas: [0.8, 0.9], eps: 1e-3}}\nsparse_rows: [table]",
         {.kind = TY_RULE_KERAS_ADAM, .rate = 0.1, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ty_arena arena;
        ty_arena_init(&arena);
        const ty_doc *doc = golden(&arena, cases[k].file), *table = ty_doc_find(doc, "table");
        const ty_doc *weights = golden_case(doc, cases[k].recipe),
                     *list[2] = {ty_doc_find(doc, "first"), ty_doc_find(doc, "second")};
        const ty_doc *gradients = ty_doc_find(doc, "gradients");
        course c;
        float values[64];
        int64_t ids[16];
        for (size_t i = 0; i < 21; i++)
            values[i] = (float)number(ty_doc_at(ty_doc_at(table, i / 3), i % 3));
        course_begin(&c, &cases[k].rule, 7, 3, values);
        for (size_t step = 0; step < ty_doc_len(weights); step++) {
            uint64_t n = 0;
            for (int l = 0; l < 2; l++)
                for (size_t i = 0; i < ty_doc_len(ty_doc_at(list[l], step)); i++)
                    ids[n++] = (int64_t)number(ty_doc_at(ty_doc_at(list[l], step), i));
            for (size_t i = 0; i < n * 3; i++)
                values[i] = (float)number(ty_doc_at(ty_doc_at(ty_doc_at(gradients, step), i / 3), i % 3));
            ty_buf b = message(&c, (ty_parcel){.kind = TY_PARCEL_PUSH, .step = step + 1, .scale = 1}, true);
            ty_parcel_add(
                &b, &(ty_part){.kind = TY_PART_ROWS, .n_ids = n, .n_values = n * 3, .ids = ids, .values = values});
            ask(&c, &b);
            near_values(c.shard.rows[0].weight, ty_doc_at(weights, step), 0, 21, cases[k].recipe, step);
        }
        course_end(&c);
        ty_arena_fini(&arena);
    }
}

/* A schedule's factor multiplies the rate, and torch's Adagrad has its epsilon outside of the root. */
static void closed_forms(void **state)
{
    (void)state;
    float w[2] = {1, 1}, n[2] = {0.5f, 0}, g[2] = {0.25f, 0};
    float *slot[TY_RULE_MAX_SLOTS] = {n, NULL};
    ty_rule_apply(&(ty_rule){.kind = TY_RULE_ADAGRAD, .rate = 0.5, .eps = 0.01}, 0.5f, 1, w, slot, g, 2);
    assert_true(fabs(w[0] - (1 - 0.25 * 0.25 / (sqrt(0.5 + 0.0625) + 0.01))) < 1e-7);
    assert_true(w[1] == 1 && n[1] == 0);
    ty_error err = {0};
    assert_int_equal(ty_rule_check(&(ty_rule){.kind = TY_RULE_ADAM, .rate = 1, .beta1 = 1}, &err), -1);
    assert_non_null(strstr(err.message, "beta1"));
    assert_int_equal(ty_rule_check(&(ty_rule){.kind = TY_RULE_SGD, .rate = NAN}, &err), -1);
    assert_int_equal(ty_rule_check(&(ty_rule){.kind = TY_RULE_FTRL}, &err), -1);
}

/* A row of a hashed table is f(seed, id) wherever it is made, within the scale, and different for each id. */
static void hashed(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_arena arena;
    ty_arena_init(&arena);
    ty_shard_variable v = {.name = "h",
                           .table = true,
                           .hashed = true,
                           .mod = true,
                           .width = 4,
                           .parts = 3,
                           .seed = 7,
                           .scale = 0.5f,
                           .rule = {.kind = TY_RULE_ADAGRAD, .initial = 0.25}};
    ty_catalogue cat = {.workers = 1, .shards = 2, .variable = &v, .n_variables = 1};
    assert_int_equal(ty_catalogue_place(&cat, &arena, &err), 0);
    ty_rows a, b;
    assert_int_equal(ty_rows_init(&a, &cat, 0, 1, &err), 0);
    assert_int_equal(ty_rows_init(&b, &cat, 0, 1, &err), 0);
    assert_int_equal(ty_rows_find(&a, 1, false), -1);
    enum { N = 5000 };
    double sum = 0;
    for (int64_t i = 0; i < N; i++)
        assert_int_equal(ty_rows_find(&a, 3 * i * 977 + 1, true), i);
    for (int64_t i = N - 1; i >= 0; i--)
        ty_rows_find(&b, 3 * i * 977 + 1, true);
    for (int64_t i = 0; i < N; i++) {
        int64_t id = 3 * i * 977 + 1, at = ty_rows_find(&a, id, false), other = ty_rows_find(&b, id, false);
        assert_int_equal(at, i);
        assert_int_equal(ty_rows_id(&a, at), id);
        assert_memory_equal(a.weight + at * 4, b.weight + other * 4, 4 * sizeof(float));
        assert_true(a.slot[0][at * 4 + 3] == 0.25f);
        for (int k = 0; k < 4; k++) {
            assert_true(fabsf(a.weight[at * 4 + k]) <= 0.5f);
            sum += a.weight[at * 4 + k];
        }
    }
    assert_true(fabs(sum / (4 * N)) < 0.01);
    ty_rows_fini(&a);
    ty_rows_fini(&b);
    ty_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dense), cmocka_unit_test(rows), cmocka_unit_test(closed_forms),
                                       cmocka_unit_test(hashed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
