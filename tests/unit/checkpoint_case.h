/* checkpoint_case.h - a small model, its checkpoints in a test's folder, and what comes back of it. For tests of
 * container/output/checkpoint alone. */
#ifndef TY_TESTS_CHECKPOINT_CASE_H
#define TY_TESTS_CHECKPOINT_CASE_H

#include "output_scratch.h"

#include "container/output/checkpoint.h"

enum { W_ELEMS = 12, B_ELEMS = 5 };

/* A model of four tensors, all values made from one number. */
struct model {
    float w[W_ELEMS];
    uint16_t b[B_ELEMS];
    int64_t n;
    ty_named_tensor tensors[4];
};

static inline struct model *model_new(int value)
{
    struct model *m = calloc(1, sizeof *m);
    for (int i = 0; i < W_ELEMS; i++)
        m->w[i] = (float)value + (float)i / 16;
    for (int i = 0; i < B_ELEMS; i++)
        m->b[i] = (uint16_t)(value * 7 + i);
    m->n = value;
    m->tensors[0] = (ty_named_tensor){"layer/w", ty_type_make(TY_F32, 2, (int64_t[]){4, 3}), m->w};
    m->tensors[1] = (ty_named_tensor){"layer/b\"\n\xc3\xa9", ty_type_make(TY_BF16, 1, (int64_t[]){B_ELEMS}), m->b};
    m->tensors[2] = (ty_named_tensor){"none", ty_type_make(TY_F64, 2, (int64_t[]){0, 3}), NULL};
    m->tensors[3] = (ty_named_tensor){"n", ty_type_scalar(TY_I64), &m->n};
    return m;
}

static inline ty_train_state state_at(int64_t step)
{
    return (ty_train_state){.step = step,
                            .epoch = step / 10,
                            .batch = step % 10,
                            .seed = UINT64_MAX - 1,
                            .rng = 77,
                            .has_best = true,
                            .best_metric = 0.1 + 0.2,
                            .best_step = step - 1,
                            .n_worse = step % 3,
                            .plan_hash = "abc:1",
                            .recipe_hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                            .run = "seed 1, batch_size 64"};
}

static inline void save(ty_checkpoints *c, int64_t step)
{
    ty_error err;
    struct model *m = model_new((int)step);
    const ty_train_state s = state_at(step);
    assert_ok(ty_checkpoint_save(c, &s, m->tensors, 4, &err));
    free(m);
}

/* Restores, and asserts that step's content: -1 expects that nothing was ever saved. */
static inline void restore(const ty_checkpoints *c, int64_t step, size_t n_skipped)
{
    ty_error err;
    ty_arena arena;
    ty_arena_init(&arena);
    ty_checkpoint_restored r;
    struct model *m = model_new(0), *expected = model_new((int)step);
    assert_ok(ty_checkpoint_restore(c, m->tensors, 4, &arena, &r, &err));
    assert_int_equal(r.found, step >= 0);
    assert_int_equal(r.skipped.n_lines, n_skipped);
    if (r.found) {
        const ty_train_state s = state_at(step);
        assert_int_equal(r.state.step, step);
        assert_int_equal(r.state.epoch, s.epoch);
        assert_int_equal(r.state.batch, s.batch);
        assert_true(r.state.seed == s.seed && r.state.rng == s.rng && r.state.has_best);
        assert_true(r.state.best_metric == s.best_metric && r.state.best_step == s.best_step);
        assert_int_equal(r.state.n_worse, s.n_worse);
        assert_string_equal(r.state.plan_hash, s.plan_hash);
        assert_string_equal(r.state.recipe_hash, s.recipe_hash);
        assert_string_equal(r.state.run, s.run);
        assert_memory_equal(m->w, expected->w, sizeof m->w);
        assert_memory_equal(m->b, expected->b, sizeof m->b);
        assert_int_equal(m->n, expected->n);
    }
    free(m);
    free(expected);
    ty_arena_fini(&arena);
}

static inline ty_checkpoints checkpoints(void **state)
{
    ty_error err;
    static char dir[1024];
    snprintf(dir, sizeof dir, "%s", in(state, "checkpoints"));
    ty_checkpoints c = {.dir = dir, .keep = 3};
    assert_ok(ty_checkpoints_open(&c, &err));
    return c;
}

#endif
