/* cuda_join.c - small calls of a tape that become one launch (compiler/target/cuda/join.h): what may move where, and
 * what the joined kernel looks like. That it computes the same is seen by all that runs on stand-ins
 * (tests/cuda_run.sh). */
#include "base/rng.h"
#include "compiler/target/cuda/join.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WORD = 4, WORDS = 64, MOST = 60 };

typedef struct one {
    ty_place at[2]; /* to, from */
    ty_cuda_touch touch[2];
} one;

static ty_place slab(int64_t offset)
{
    return (ty_place){TY_PLACE_SLAB, 0, offset};
}

static ty_cuda_item copy(one *o, ty_place to, ty_place from, int64_t bytes)
{
    *o = (one){{to, from}, {{to, bytes, true}, {from, bytes, false}}};
    return (ty_cuda_item){.call = {.kind = TY_CUDA_COPY, .bytes = (size_t)bytes, .at = o->at, .n_at = 2},
                          .touch = o->touch,
                          .n_touch = 2};
}

static ty_cuda_item launch(one *o, ty_place to, ty_place from, const char *text, int64_t blocks)
{
    ty_cuda_item item = copy(o, to, from, WORD);
    item.call.kind = TY_CUDA_LAUNCH;
    item.call.launch = (ty_cuda_launch){.form = "flat", .threads = TY_CUDA_THREADS, .blocks = blocks};
    item.call.launch.has_barriers = strstr(text, "TY_BARRIER") != NULL;
    item.text = text;
    item.may_join = true;
    return item;
}

/* ---- what may move ---- */

/* Calls in an order in which they may run: parts of a launch run at once, which is tried from the last to the first. */
static void run_joined(const ty_cuda_item *item, const size_t *bytes, int n, unsigned *memory)
{
    for (int i = 0; i < n; i++) {
        const ty_cuda_call *call = &item[i].call;
        if (item[i].is_gone)
            continue;
        for (int k = call->n_at - 2; k >= 0; k -= 2) {
            int which = k == 0 ? call->unit : -1;
            for (int a = 0; a < call->n_also && which < 0; a++)
                which = item[call->also[a]].touch[0].at.offset == call->at[k].offset &&
                                item[call->also[a]].touch[1].at.offset == call->at[k + 1].offset
                            ? call->also[a]
                            : -1;
            assert_true(which >= 0);
            memmove((char *)memory + call->at[k].offset, (char *)memory + call->at[k + 1].offset, bytes[which]);
        }
    }
}

/* Copies and library calls of some words each, in little memory, with fences: the same memory in the end. */
static void test_random_calls(void **state)
{
    (void)state;
    int n_gone = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        ty_arena arena;
        ty_arena_init(&arena);
        one o[MOST];
        ty_cuda_item item[MOST];
        size_t bytes[MOST];
        unsigned expected[WORDS], found[WORDS];
        for (unsigned i = 0; i < WORDS; i++)
            expected[i] = found[i] = i;
        for (int i = 0; i < MOST; i++) {
            const uint32_t r = ty_rng_u32(5, 0, seed, (uint64_t)i);
            int64_t words = 1 + r % 3, half = WORDS / 2;
            int64_t to = r >> 4 & 1 ? half : 0, from = half - to; /* the halves do not overlap */
            to += (r >> 8) % (half - words + 1), from += (r >> 16) % (half - words + 1);
            bytes[i] = (size_t)(words * WORD);
            item[i] = copy(&o[i], slab(to * WORD), slab(from * WORD), words * WORD);
            item[i].call.unit = i;
            if (r >> 5 & 1)
                item[i].call.kind = r >> 6 & 1 ? TY_CUDA_LIBRARY : TY_CUDA_COPY;
            memmove(&expected[to], &expected[from], bytes[i]);
        }
        assert_true(ty_cuda_join(item, MOST, &arena));
        run_joined(item, bytes, MOST, found);
        assert_memory_equal(expected, found, sizeof found);
        for (int i = 0; i < MOST; i++)
            n_gone += item[i].is_gone;
        ty_arena_fini(&arena);
    }
    assert_true(n_gone > 300 * MOST / 10);
}

/* Which of three calls becomes part of another: 2 goes up, 0 down; -1: none. */
static int gone(ty_cuda_item first, ty_cuda_item between, ty_cuda_item last)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_cuda_item item[] = {first, between, last};
    assert_true(ty_cuda_join(item, 3, &arena));
    int which = item[2].is_gone ? 2 : item[0].is_gone ? 0 : -1;
    ty_arena_fini(&arena);
    return which;
}

static bool joins(ty_cuda_item first, ty_cuda_item between, ty_cuda_item last)
{
    return gone(first, between, last) >= 0;
}

static void test_what_joins(void **state)
{
    (void)state;
    one a, b, c;
    const ty_place state0 = {TY_PLACE_STATE, 0, 0}, state1 = {TY_PLACE_STATE, 1, 0};
    const ty_cuda_item first = copy(&a, slab(0), state0, 64), library = {.call = {.kind = TY_CUDA_LIBRARY}};
    ty_cuda_item between = copy(&b, slab(128), slab(0), 64);
    between.call.kind = TY_CUDA_LIBRARY; /* the first one must stay */
    assert_int_equal(gone(first, between, copy(&c, slab(256), state1, 64)), 2);
    assert_int_equal(gone(first, between, copy(&c, slab(192), state0, 64)), 2);
    assert_false(joins(first, between, copy(&c, slab(256), slab(188), 64))); /* reads what was written */
    assert_false(joins(first, between, copy(&c, slab(60), state1, 64)));     /* writes what was read */
    assert_false(joins(first, between, copy(&c, slab(188), state1, 8)));     /* writes what was written */
    assert_false(joins(first, library, copy(&c, slab(256), slab(60), 8)));   /* of the first one itself */
    between = copy(&b, slab(128), slab(64), 64);
    between.call.kind = TY_CUDA_LIBRARY; /* the first one may go down */
    assert_int_equal(gone(first, between, copy(&c, slab(256), slab(188), 64)), 0);
    assert_int_equal(gone(first, between, copy(&c, slab(68), state1, 64)), 0);
    const ty_cuda_item exchange = {.call = {.kind = TY_CUDA_EXCHANGE}}, wait = {.call = {.kind = TY_CUDA_WAIT}};
    assert_false(joins(first, exchange, copy(&c, slab(256), state1, 64)));
    assert_false(joins(first, wait, copy(&c, slab(256), state1, 64)));
    assert_true(joins(first, library, copy(&c, slab(256), state1, 1 << 20)));
    assert_false(joins(first, library, copy(&c, slab(256), state1, (1 << 20) + 4))); /* large */
    assert_false(joins(first, library, copy(&c, slab(256), state1, 6)));             /* no whole words */
    ty_cuda_item own = launch(&c, slab(256), state1, "", 1);
    own.may_join = false;
    assert_false(joins(first, library, own));
}

/* ---- what it looks like ---- */

static const char twice[] = "TY_KERNEL(256) TY_NAME(float *__restrict__ b0, const float *__restrict__ b1)\n{\n"
                            " for (int p0 = TY_BLOCK * 256 + TY_THREAD; p0 < 700; p0 += TY_BLOCKS * 256)\n"
                            "  b0[p0] = 2 * b1[p0];\n}\n";
static const char summed[] = "TY_WIDE_KERNEL(256) TY_NAME(float *__restrict__ b0, const float *__restrict__ b2)\n{\n"
                             " TY_SHARED float s0[256];\n s0[TY_THREAD] = b2[TY_THREAD];\n TY_BARRIER();\n"
                             " b0[TY_THREAD] = s0[255 - TY_THREAD];\n}\n";

static void test_text(void **state)
{
    (void)state;
    ty_arena arena;
    ty_arena_init(&arena);
    one o[3];
    ty_cuda_item item[] = {launch(&o[0], slab(0), slab(4096), twice, 3), launch(&o[1], slab(16), slab(4096), summed, 1),
                           launch(&o[2], slab(32), slab(4096), twice, 3)};
    assert_true(ty_cuda_join(item, 3, &arena));
    assert_true(item[1].is_gone && item[2].is_gone);
    assert_int_equal(item[0].call.launch.blocks, 7);
    assert_true(item[0].call.launch.has_barriers);
    assert_int_equal(item[0].call.n_at, 6);
    assert_int_equal(item[0].call.at[2].offset, 32); /* equal texts side by side */
    assert_string_equal(item[0].text,
                        "TY_LONE_KERNEL(256) TY_NAME(float *__restrict__ a0, const float *__restrict__ a1, "
                        "float *__restrict__ a2, const float *__restrict__ a3, "
                        "float *__restrict__ a4, const float *__restrict__ a5)\n{\n"
                        " for (long block = TY_BLOCK; block < 7; block += TY_BLOCKS) {\n"
                        "  if (block < 6) {\n"
                        "  const long part = (block - 0) / 3, part_block = (block - 0) % 3, part_blocks = 3;\n"
                        "  (void)part, (void)part_block, (void)part_blocks;\n"
                        "  float *__restrict__ b0 = part == 0 ? a0 : a2;\n"
                        "  const float *__restrict__ b1 = part == 0 ? a1 : a3;\n"
                        " for (int p0 = part_block * 256 + TY_THREAD; p0 < 700; p0 += part_blocks * 256)\n"
                        "  b0[p0] = 2 * b1[p0];\n"
                        "  } else if (block < 7) {\n"
                        "  const long part = (block - 6) / 1, part_block = (block - 6) % 1, part_blocks = 1;\n"
                        "  (void)part, (void)part_block, (void)part_blocks;\n"
                        "  float *__restrict__ b0 = a4;\n"
                        "  const float *__restrict__ b2 = a5;\n"
                        " TY_SHARED float s0[256];\n s0[TY_THREAD] = b2[TY_THREAD];\n TY_BARRIER();\n"
                        " b0[TY_THREAD] = s0[255 - TY_THREAD];\n"
                        "  }\n"
                        "  TY_BARRIER();\n"
                        " }\n}\n");
    ty_arena_fini(&arena);
}

/* A block's memory is 48 KB, also of what is joined. */
static void test_shared_memory(void **state)
{
    (void)state;
    static const char large[] = "TY_KERNEL(256) TY_NAME(float *__restrict__ b0, const float *__restrict__ b1)\n{\n"
                                " TY_SHARED double s0[12][256];\n}\n";
    const ty_cuda_item library = {.call = {.kind = TY_CUDA_LIBRARY}};
    one a, c;
    assert_true(joins(launch(&a, slab(0), slab(64), large, 1), library, launch(&c, slab(4), slab(68), large, 1)));
    static const char larger[] = "TY_KERNEL(256) TY_NAME(float *__restrict__ b0, const float *__restrict__ b1)\n{\n"
                                 " TY_SHARED double s0[12][256], s1;\n TY_SHARED float s2[1];\n}\n";
    assert_false(joins(launch(&a, slab(0), slab(64), large, 1), library, launch(&c, slab(4), slab(68), larger, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_calls), cmocka_unit_test(test_what_joins),
                                       cmocka_unit_test(test_text), cmocka_unit_test(test_shared_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
