/* ask.c - what a run of columns asks for ahead of its turn (compiler/target/cpu/ahead.h) is what it comes to, and
 * nothing of what belongs to the thread beside it. The kernel is compiled with words that note what is asked for. */
#include "compiler/ir/build.h"
#include "compiler/kernel/text.h"
#include "compiler/passes/fuse.h"
#include "compiler/target/cpu/cc.h"
#include "compiler/target/cpu/render.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { PARTS = 3, MAX_BUFFERS = 8, LINE = 64, LINE_FLOATS = LINE / (int)sizeof(float) };

static const char head[] = "#define SEEN __attribute__((visibility(\"default\")))\n"
                           "SEEN void (*ask)(const void *at, int lines);\n"
                           "#define TY_ASK1(own, p) ask((p), 1)\n"
                           "#define TY_ASK2(own, p) ask((p), 2)\n"
                           "#define TY_ASK4(own, p) ask((p), 4)\n"
                           "SEEN void kernel";

/* A buffer and which of its lines were asked for. */
typedef struct stream {
    float *memory;
    uint8_t *asked;
    int64_t n_lines;
    ty_val val;
} stream;

static stream streams[MAX_BUFFERS];
static int n_streams;

static void note(const void *at, int lines)
{
    for (int s = 0; s < n_streams; s++) {
        const char *first = (const char *)streams[s].memory;
        int64_t offset = (const char *)at - first;
        for (int i = 0; i < lines; i++)
            if (offset >= 0 && offset / LINE + i < streams[s].n_lines)
                streams[s].asked[offset / LINE + i] = 1;
    }
}

/* Rows side by side, and the sum of each of their columns. */
static ty_graph *make_parts(int64_t rows, int64_t columns)
{
    ty_graph *g = ty_graph_new();
    ty_val part[PARTS];
    for (int i = 0; i < PARTS; i++) {
        const char name[] = {'x', (char)('a' + i), 0};
        part[i] = ty_b_input(g, ty_graph_add_input(g, name, ty_type_make(TY_F32, 2, (const int64_t[]){rows, columns})));
    }
    ty_val whole = ty_b_concat(g, part, PARTS, 1);
    ty_graph_add_output(g, "whole", whole, TY_TAPE_EVAL);
    ty_graph_add_output(g, "sum", ty_b_sum(g, whole, 1, false), TY_TAPE_EVAL);
    return g;
}

static const ty_kernel *kernel_of(const ty_fusion *f)
{
    for (uint32_t u = 0; u < f->n_units; u++)
        if (f->unit[u].kind == TY_UNIT_KERNEL && f->unit[u].kernel->form == TY_FORM_COLUMNS)
            return f->unit[u].kernel;
    fail_msg("no kernel sums columns");
    return NULL;
}

/* Runs units [lo, hi) of the kernel. */
static void run(const ty_kernel *k, long lo, long hi)
{
    ty_error err = {0};
    ty_cc_job *job = NULL;
    ty_buf text;
    uint32_t alias[MAX_BUFFERS];
    const int64_t base[MAX_BUFFERS] = {0};
    char *memory[MAX_BUFFERS], path[512];
    for (int i = 0; i < k->n_buffers; i++)
        alias[i] = (uint32_t)i, memory[i] = (char *)streams[i].memory;
    ty_buf_init(&text, 1 << 20);
    ty_buf_adds(&text, head);
    ty_render_kernel(k, alias, base, &text);
    const char *texts[] = {text.data};
    const ty_cc_options options = {"cc", "/tmp"};
    if (ty_cc_start(texts, 1, &options, &job, &err) < 0 || ty_cc_wait(job, &err) < 0)
        fail_msg("%s", err.message);
    snprintf(path, sizeof path, "%s/k0.so", ty_cc_folder(job));
    void *object = dlopen(path, RTLD_NOW);
    assert_non_null(object);
    void (*kernel)(char *const *b, long first, long end), (**ask)(const void *, int) = dlsym(object, "ask");
    *(void **)&kernel = dlsym(object, "kernel");
    assert_non_null(kernel);
    *ask = note;
    kernel(memory, lo, hi);
    dlclose(object);
    ty_cc_abandon(job);
    ty_buf_fini(&text);
}

/* Columns [first, end) of a buffer with rows of n: nearly all of their lines were asked for, and hardly any other. */
static void expect_asked(const stream *s, const char *what, int64_t n, int64_t first, int64_t end)
{
    int64_t touched = 0, asked = 0, strange = 0;
    for (int64_t line = 0; line < s->n_lines; line++) {
        int64_t column = line * LINE_FLOATS % n;
        bool mine = column >= first && column < end;
        touched += mine;
        asked += mine && s->asked[line];
        strange += !mine && s->asked[line];
    }
    if (asked * 100 < touched * 97 || strange * 100 > s->n_lines)
        fail_msg("%s: of %lld lines %lld are asked for, and %lld others", what, (long long)touched, (long long)asked,
                 (long long)strange);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Columns of a part that lie in [first, end) of the whole. */
static void check_part(const ty_graph *g, const stream *s, int64_t columns, int64_t first, int64_t end)
{
    const char *name = ty_graph_input(g, (int)ty_graph_attr(g, ty_val_node(s->val))->index)->name;
    int64_t at = (name[1] - 'a') * columns;
    int64_t from = first > at ? first - at : 0, to = least(end - at, columns);
    expect_asked(s, name, columns, from, to > from ? to : from);
}

static void make_streams(const ty_kernel *k)
{
    n_streams = k->n_buffers;
    assert_in_range(n_streams, 1, MAX_BUFFERS);
    for (int i = 0; i < n_streams; i++) {
        size_t bytes = (size_t)k->buffer[i].span_elems * sizeof(float);
        streams[i] = (stream){aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE), calloc(bytes / LINE + 1, 1),
                              (int64_t)bytes / LINE, k->buffer[i].val};
        memset(streams[i].memory, 0, bytes);
    }
}

static void check(int64_t rows, int64_t columns, long lo, long hi)
{
    ty_graph *g = make_parts(rows, columns);
    ty_fusion *f = NULL;
    ty_error err = {0};
    assert_int_equal(ty_pass_fuse(g, TY_TAPE_EVAL, 2, &f, &err), 0);
    const ty_kernel *k = kernel_of(f);
    int64_t first = lo * TY_COLUMN_BLOCK, end = least(hi * TY_COLUMN_BLOCK, PARTS * columns);
    make_streams(k);
    assert_int_equal(n_streams, PARTS + 2);
    run(k, lo, hi);
    for (int i = 0; i < n_streams; i++) {
        if (ty_graph_op(g, ty_val_node(streams[i].val)) == TY_OP_INPUT)
            check_part(g, &streams[i], columns, first, end);
        else if (k->buffer[i].span_elems == rows * PARTS * columns)
            expect_asked(&streams[i], "the whole", PARTS * columns, first, end);
        free(streams[i].memory);
        free(streams[i].asked);
    }
    ty_fusion_free(f);
    ty_graph_free(g);
}

/* Runs that end within a part and runs of several, longer than what is looked ahead and shorter, to a few columns. */
static void a_run_of_columns_asks_for_its_own(void **state)
{
    (void)state;
    check(512, 768, 0, 18);
    check(512, 768, 18, 36);
    check(256, 3072, 72, 144);
    check(4096, 128, 0, 1);
    check(4096, 128, 1, 5);
    check(2048, 192, 3, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_run_of_columns_asks_for_its_own)};
    return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
