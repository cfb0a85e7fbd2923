/* channel_blocks.c - copies to and from blocks of channels are those of oneDNN's reorder, byte by byte. */
#include "compiler/target/cpu/channel_blocks.h"
#include "compiler/target/cpu/onednn.h"
#include "tests/unit/evaluate.h"

/* Into blocks if `split`, else out of them. */
static void reordered(const dnnl_memory_desc_t *last, const dnnl_memory_desc_t *blocked, bool split, void *from,
                      void *to)
{
    const ty_onednn *lib;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t reorder;
    dnnl_memory_t memory[2];
    const dnnl_memory_desc_t *desc[2] = {split ? last : blocked, split ? blocked : last};
    assert_int_equal(ty_onednn_get(&lib, NULL), 0);
    assert_int_equal(lib->memory_create(&memory[0], desc[0], lib->engine, from), dnnl_success);
    assert_int_equal(lib->memory_create(&memory[1], desc[1], lib->engine, to), dnnl_success);
    assert_int_equal(lib->reorder_primitive_desc_create(&pd, desc[0], lib->engine, desc[1], lib->engine, NULL),
                     dnnl_success);
    assert_int_equal(lib->primitive_create(&reorder, pd), dnnl_success);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, memory[0]}, {DNNL_ARG_TO, memory[1]}};
    assert_int_equal(lib->primitive_execute(reorder, lib->stream, 2, args), dnnl_success);
    lib->primitive_destroy(reorder);
    lib->primitive_desc_destroy(pd);
    lib->memory_destroy(memory[0]);
    lib->memory_destroy(memory[1]);
}

typedef struct form {
    dnnl_data_type_t type;
    dnnl_format_tag_t tag;
    int64_t channels, bytes;
} form;

static void check(const form *f, const dnnl_dims_t dims)
{
    const ty_onednn *lib;
    const ty_channel_blocks b = {dims[0], dims[2] * dims[3], dims[1] / f->channels, f->channels * f->bytes};
    int64_t n = b.images * b.positions * b.blocks * b.block_bytes;
    dnnl_memory_desc_t last, blocked;
    char *from = malloc((size_t)n), *want = malloc((size_t)n), *found = malloc((size_t)n);
    assert_int_equal(ty_onednn_get(&lib, NULL), 0);
    lib->memory_desc_init_by_tag(&last, 4, dims, f->type, dnnl_acdb);
    lib->memory_desc_init_by_tag(&blocked, 4, dims, f->type, f->tag);
    for (int64_t i = 0; i < n; i++) /* ordinary numbers, none of which is a NaN */
        from[i] = (char)(i % f->bytes == f->bytes - 1 ? 0x3f : i * 7 % 127);
    for (int threads = 1; threads <= 3; threads += 2)
        for (int split = 0; split < 2; split++) {
            memset(found, 0xff, (size_t)n);
            reordered(&last, &blocked, split, from, want);
            (split ? ty_channel_blocks_split : ty_channel_blocks_join)(&b, found, from, threads);
            assert_memory_equal(want, found, (size_t)n);
        }
    free(from);
    free(want);
    free(found);
}

static void copies_are_those_of_onednn(void **state)
{
    (void)state;
    static const form forms[] = {
        {dnnl_f32, dnnl_aBcd16b, 16, 4}, {dnnl_f32, dnnl_aBcd8b, 8, 4}, {dnnl_bf16, dnnl_aBcd16b, 16, 2}};
    static const dnnl_dims_t dims[] = {{1, 16, 1, 1}, {3, 64, 7, 5}, {2, 32, 16, 8}, {2, 48, 19, 17}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (size_t k = 0; k < sizeof dims / sizeof *dims; k++)
            check(&forms[i], dims[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_are_those_of_onednn)};
    return cmocka_run_group_tests_name("channel_blocks", tests, NULL, NULL);
}
