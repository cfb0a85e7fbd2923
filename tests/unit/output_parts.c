/* Checkpoints in parts: written by any number of ranks, read back by any other, wherever the parts lie. */
#include "checkpoint_case.h"

#include "container/output/rankfile.h"

#include <unistd.h>

/* Saves step 4 of a model by n ranks, a part each. */
static void save_parts(void **state, const struct model *m, int n)
{
    ty_error err;
    ty_manifest_file files[8];
    ty_named_tensor parts[4];
    ty_checkpoints c = checkpoints(state);
    const ty_train_state s = state_at(4);
    c.world_size = n;
    for (c.rank = 0; c.rank < n; c.rank++)
        assert_ok(ty_checkpoint_write_rank(&c, 4, parts, ty_checkpoint_parts(m->tensors, 4, c.rank, n, parts),
                                           &files[c.rank], &err));
    c.rank = 0;
    if (n > 1)
        assert_error(ty_checkpoint_save(&c, &s, m->tensors, 4, &err), TY_E_INTERNAL, "both halves");
    restore(&c, -1, 1);
    assert_ok(ty_checkpoint_commit(&c, &s, files, &err));
}

/* However many ranks have saved it, each with its part, also with more ranks than a tensor has elements. */
static void test_many_ranks(void **state)
{
    ty_error err;
    ty_arena arena;
    ty_arena_init(&arena);
    for (int n = 1; n <= 8; n++) {
        ty_checkpoints c = checkpoints(state);
        ty_checkpoint_restored r;
        ty_manifest manifest;
        struct model *m = model_new(4), *back = model_new(9);
        save_parts(state, m, n);
        assert_ok(ty_checkpoint_restore(&c, back->tensors, 4, &arena, &r, &err));
        for (int i = 0; i < 4; i++)
            assert_memory_equal(m->tensors[i].data, back->tensors[i].data, ty_type_bytes(&m->tensors[i].type));
        assert_ok(ty_checkpoint_verify(r.path, &arena, &manifest, &err));
        assert_int_equal(manifest.world_size, n);
        assert_ok(ty_file_remove_tree(r.path, &err));
        free(m);
        free(back);
    }
    ty_arena_fini(&arena);
}

/* One file gone: the checkpoint is none, unless somebody else has it. */
static int fetch_or_make(void *ctx, const char *path, const ty_manifest *m, int file, const ty_named_tensor *parts,
                         size_t n_parts, ty_rankfile_fault *fault, ty_error *err)
{
    const ty_rankfile_id id = {.rank = file, .world_size = m->world_size, .step = m->state.step};
    int *n_made = ctx;
    struct model *same = model_new(4);
    ty_named_tensor from[4];
    if (file != 1) {
        free(same);
        return ty_rankfile_read(path, &id, &m->files[file], parts, n_parts, fault, err);
    }
    assert_int_equal(ty_checkpoint_parts(same->tensors, 4, 1, 2, from), n_parts);
    for (size_t i = 0; i < n_parts; i++)
        memcpy(parts[i].data, from[i].data, ty_type_bytes(&parts[i].type));
    free(same);
    ++*n_made;
    return 0;
}

static void test_parts_elsewhere(void **state)
{
    ty_error err;
    ty_arena arena;
    ty_checkpoint_restored r;
    ty_manifest manifest;
    int n_made = 0;
    ty_checkpoints c = checkpoints(state);
    struct model *m = model_new(4), *back = model_new(9);
    ty_arena_init(&arena);
    save_parts(state, m, 2);
    assert_int_equal(unlink(in(state, "checkpoints/step-00000004/rank-00001.bin")), 0);
    assert_error(ty_checkpoint_restore(&c, back->tensors, 4, &arena, &r, &err), TY_E_CHECKPOINT, "none of the 1");
    assert_non_null(strstr(err.detail, "rank-00001.bin: it is missing"));
    assert_error(ty_checkpoint_verify(in(state, "checkpoints/step-00000004"), &arena, &manifest, &err), err.code,
                 "rank-00001.bin");
    c.fetch = fetch_or_make;
    c.fetch_ctx = &n_made;
    assert_ok(ty_checkpoint_restore(&c, back->tensors, 4, &arena, &r, &err));
    assert_int_equal(n_made, 1);
    for (int i = 0; i < 4; i++)
        assert_memory_equal(m->tensors[i].data, back->tensors[i].data, ty_type_bytes(&m->tensors[i].type));
    ty_arena_fini(&arena);
    free(m);
    free(back);
}

static int fetch_from_nobody(void *ctx, const char *path, const ty_manifest *m, int file, const ty_named_tensor *parts,
                             size_t n_parts, ty_rankfile_fault *fault, ty_error *err)
{
    (void)path, (void)m, (void)file, (void)parts, (void)n_parts;
    ++*(int *)ctx;
    *fault = TY_RANKFILE_FINE;
    return ty_error_set(err, TY_E_IO, "rank 1 is gone");
}

/* Who does not answer says nothing of the checkpoint: no older one is tried, and nobody is told to empty the folder. */
static void test_no_answer(void **state)
{
    ty_error err = {0};
    ty_arena arena;
    ty_checkpoint_restored r;
    int n_asked = 0;
    ty_checkpoints c = checkpoints(state);
    struct model *m = model_new(4);
    ty_arena_init(&arena);
    save_parts(state, m, 2);
    save(&c, 3);
    c.fetch = fetch_from_nobody;
    c.fetch_ctx = &n_asked;
    assert_error(ty_checkpoint_restore(&c, m->tensors, 4, &arena, &r, &err), TY_E_IO, "rank 1 is gone");
    assert_false(r.found);
    assert_int_equal(n_asked, 1);
    assert_string_equal(err.help, "");
    ty_arena_fini(&arena);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_many_ranks),
        SCRATCH_TEST(test_parts_elsewhere),
        SCRATCH_TEST(test_no_answer),
    };
    return cmocka_run_group_tests_name("output: checkpoints in parts", tests, NULL, NULL);
}
