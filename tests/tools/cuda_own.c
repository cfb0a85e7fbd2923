/* cuda_own.c - kernels written by hand for a GPU (compiler/target/cuda/own.h) against the interpreter, at sizes where
 * more than one tile, block and pass take part. Needs a GPU, or libraries that stand in for one (tests/fakes).
 *
 *     cuda_own [--cuda DIR]
 *
 * With --cuda nothing runs: the kernels are left in a folder for who compiles them, which needs no GPU.
 *
 * Numbers are small integers or multiples of one, so that sums are exact and order shows in places alone; but sums of a
 * scatter, which are to be made in an order that depends on the index alone, are of numbers that do not commute with
 * rounding.
 */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct own_case {
    const char *what;
    ty_val (*make)(ty_graph *g, const struct own_case *c, ty_val x, ty_val i, ty_val *also);
    int64_t rows, n; /* x [rows, n] */
    int64_t table;   /* numbers in i [rows] are below */
    int axis;
    bool flag;
    int hot; /* of 100 numbers, so many are 7 */
} own_case;

static ty_val make_sort(ty_graph *g, const own_case *c, ty_val x, ty_val i, ty_val *also)
{
    (void)i;
    return ty_b_sort(g, x, c->axis, c->flag, also);
}

static ty_val make_places(ty_graph *g, const own_case *c, ty_val x, ty_val i, ty_val *also)
{
    (void)x;
    ty_val start;
    ty_val rows = ty_b_find_rows(g, i, c->table, also, &start);
    *also = ty_b_concat(g, (ty_val[]){*also, start}, 2, 0);
    return rows;
}

static ty_val make_sums(ty_graph *g, const own_case *c, ty_val x, ty_val i, ty_val *also)
{
    ty_val order, start;
    *also = ty_b_find_rows(g, i, c->table, &order, &start);
    return ty_b_sum_rows(g, x, order, start);
}

static ty_val make_scatter(ty_graph *g, const own_case *c, ty_val x, ty_val i, ty_val *also)
{
    const int64_t dim[] = {c->table, c->n};
    *also = ty_b_scatter(g, ty_b_full(g, TY_F32, 2, dim, 1), i, x, 0, TY_MAX);
    return ty_b_scatter(g, ty_b_full(g, TY_F32, 2, dim, 0), i, x, 0, TY_SUM);
}

/* Rows of several tables by the same numbers, which need be sorted once, and of one by others. */
static ty_val make_tables(ty_graph *g, const own_case *c, ty_val x, ty_val i, ty_val *also)
{
    const int64_t wide[] = {c->table, c->n}, narrow[] = {c->table, 1};
    ty_val first = ty_b_slice_axis(g, x, 1, 0, 1), other = ty_b_add_s(g, ty_b_neg(g, i), (double)c->table - 1);
    ty_val y = ty_b_scatter(g, ty_b_full(g, TY_F32, 2, wide, 0), i, x, 0, TY_SUM);
    ty_val by_same = ty_b_scatter(g, ty_b_full(g, TY_F32, 2, narrow, 0), i, first, 0, TY_SUM);
    ty_val by_other = ty_b_scatter(g, ty_b_full(g, TY_F32, 2, narrow, 0), other, first, 0, TY_SUM);
    ty_val again = ty_b_scatter(g, ty_b_full(g, TY_F32, 2, narrow, 1), i, first, 0, TY_SUM);
    *also = ty_b_concat(g, (ty_val[]){by_same, by_other, again}, 3, 1);
    return y;
}

/* By numbers of which there are as many, and which lie in other memory: nothing is computed between the two. */
static ty_val make_halves(ty_graph *g, const own_case *c, ty_val x, ty_val i, ty_val *also)
{
    const int64_t dim[] = {c->table, c->n}, half = c->rows / 2;
    ty_val found[2];
    for (int k = 0; k < 2; k++)
        found[k] = ty_b_scatter(g, ty_b_full(g, TY_F32, 2, dim, 0), ty_b_slice_axis(g, i, 0, k * half, (k + 1) * half),
                                ty_b_slice_axis(g, x, 0, k * half, (k + 1) * half), 0, TY_SUM);
    *also = found[1];
    return found[0];
}

/* Not written by hand, but here wide accesses are seen to be aligned: long rows of an odd length, and columns. */
static ty_val make_rows(ty_graph *g, const own_case *c, ty_val x, ty_val i, ty_val *also)
{
    (void)c, (void)i;
    *also = ty_b_sum(g, x, 1, false);
    return ty_b_sub(g, x, ty_b_reduce(g, x, TY_MAX, 2, true));
}

/* Likewise; but at 10, in the middle of a group, they stop lying side by side. */
static ty_val make_parts(ty_graph *g, const own_case *c, ty_val x, ty_val i, ty_val *also)
{
    (void)i;
    const ty_val part[] = {ty_b_slice_axis(g, x, 1, 0, 10), ty_b_slice_axis(g, x, 1, 2, c->n)};
    *also = ty_b_reduce(g, x, TY_MAX, 1, false);
    return ty_b_mul_s(g, ty_b_concat(g, part, 2, 1), 2);
}

static const own_case cases[] = {
    {"sort, one tile", make_sort, 3, 700, 1, 1, false, 0},
    {"sort, five tiles, falling", make_sort, 2, 5000, 1, 1, true, 0},
    {"sort, along the first axis", make_sort, 2100, 3, 1, 0, false, 0},
    {"find_rows, few numbers", make_places, 40, 1, 100, 0, false, 0},
    {"find_rows, many tiles", make_places, 9000, 1, 70000, 0, false, 0},
    {"find_rows, fewer rows than numbers", make_places, 5000, 1, 300, 0, false, 30},
    {"sum_rows, narrow", make_sums, 4500, 5, 2000, 0, false, 10},
    {"sum_rows, wide and one row of many", make_sums, 900, 300, 50, 0, false, 60},
    {"rows of an odd length", make_rows, 5, 9001, 1, 0, false, 0},
    {"rows and columns", make_rows, 1100, 768, 1, 0, false, 0},
    {"parts of rows", make_parts, 1100, 768, 1, 0, false, 0},
    {"scatter", make_scatter, 5000, 3, 40, 0, false, 20},
    {"scatter, wide", make_scatter, 2100, 130, 700, 0, false, 5},
    {"scatter, by a short index", make_scatter, 900, 70, 300, 0, false, 40},
    {"scatter, wider than a block", make_scatter, 1100, 300, 90, 0, false, 0},
    {"scatter, by a long index, half of it one row", make_scatter, 140000, 2, 3000, 0, false, 50},
    {"scatter, counts of more tiles than are added up at a time", make_tables, 560000, 2, 300, 0, false, 20},
    {"scatter, several tables", make_tables, 5000, 6, 900, 0, false, 10},
    {"scatter, two of a kind", make_halves, 6000, 6, 900, 0, false, 10},
};

static uint32_t draw(int64_t at, uint64_t stream, uint32_t below)
{
    return ty_rng_u32(11, stream, 0, (uint64_t)at) % below;
}

/* Equal ones among them, both zeros, and NaN at the end of a thousand. */
static float *make_x(const own_case *c)
{
    int64_t n = c->rows * c->n;
    float *x = malloc(sizeof *x * (size_t)n);
    for (int64_t e = 0; x && e < n; e++)
        x[e] = (float)draw(e, 1, 400) - 200;
    for (int64_t e = 0; x && c->make == make_sort && e < n; e += 1000)
        x[e] = e % 2000 ? NAN : -0.0f;
    for (int64_t e = 0; x && c->make == make_scatter && e < n; e++) /* in float: (1e8 + 1) - 1e8 is 0 */
        x[e] = (float)(draw(e, 3, 3) * 1e8 - 1e8) + x[e];
    return x;
}

static int64_t *make_i(const own_case *c)
{
    int64_t *i = malloc(sizeof *i * (size_t)c->rows);
    for (int64_t e = 0; i && e < c->rows; e++)
        i[e] = (int)draw(e, 2, 100) < c->hot ? 7 : draw(e, 4, (uint32_t)c->table);
    return i;
}

static ty_program *make(const own_case *c, ty_backend backend, const char *cuda_dir, ty_error *err)
{
    ty_graph *g = ty_graph_new();
    const int64_t dim[] = {c->rows, c->n};
    ty_val also = TY_NONE;
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 2, dim)));
    ty_val i = ty_b_input(g, ty_graph_add_input(g, "i", ty_type_make(TY_I64, 1, dim)));
    ty_val found = c->make(g, c, x, i, &also);
    ty_program *p = NULL;
    ty_graph_add_output(g, "found", found, TY_TAPE_EVAL);
    ty_graph_add_output(g, "also", also, TY_TAPE_EVAL);
    ty_graph_add_output(g, "inputs",
                        ty_b_add(g, ty_b_sum(g, x, 3, false), ty_b_cast(g, ty_b_sum(g, i, 1, false), TY_F32)),
                        TY_TAPE_EVAL); /* so that both are */
    const ty_compile_options opt = {
        .backend = backend, .threads = 2, .cuda_dir = cuda_dir, .plan_only = cuda_dir != NULL};
    ty_program_of_graph(g, TY_TAPE_EVAL, &opt, &p, err);
    return p;
}

static bool same_float(float a, float b)
{
    return a == b || (a != a && b != b);
}

/* What scatter is to give: sums in float, in the order of the index; by a longer one as own_scatter.c has it. */
static void scatter_sums(const own_case *c, const float *x, const int64_t *i, float *to)
{
    int64_t chunk = c->rows < 1024 ? c->rows : c->rows < 1 << 17 ? 32 : 128, at = 0;
    float *part = malloc(sizeof *part * (size_t)c->n);
    memset(to, 0, sizeof *to * (size_t)(c->table * c->n));
    for (int64_t row = 0; part && row < c->table; row++) {
        int64_t begun = at / chunk;
        memset(part, 0, sizeof *part * (size_t)c->n);
        for (int64_t k = 0; k < c->rows; k++) { /* at: its place among the sorted */
            if (i[k] != row)
                continue;
            for (int64_t e = 0; e < c->n && at / chunk != begun; e++)
                to[row * c->n + e] += part[e], part[e] = 0;
            begun = at++ / chunk;
            for (int64_t e = 0; e < c->n; e++)
                part[e] += x[k * c->n + e];
        }
        for (int64_t e = 0; e < c->n; e++)
            to[row * c->n + e] += part[e];
    }
    free(part);
}

static int64_t differs(const ty_tensor *a, const void *b)
{
    for (int64_t e = 0; e < ty_type_elems(&a->type); e++)
        if (a->type.dtype == TY_F32 ? !same_float(((const float *)a->data)[e], ((const float *)b)[e])
                                    : ((const int64_t *)a->data)[e] != ((const int64_t *)b)[e])
            return e;
    return -1;
}

static bool agree(const own_case *c, ty_program *p, ty_program *q, const float *x, const int64_t *i)
{
    static const char *const names[] = {"found", "also"};
    for (int k = 0; k < 2; k++) {
        const ty_tensor *a = ty_program_output(p, TY_RUN_EVAL, names[k]);
        const ty_tensor *b = ty_program_output(q, TY_RUN_EVAL, names[k]);
        void *expected = malloc(ty_type_bytes(&b->type));
        if (!expected)
            return false;
        memcpy(expected, b->data, ty_type_bytes(&b->type));
        if (c->make == make_scatter && k == 0)
            scatter_sums(c, x, i, expected);
        int64_t at = differs(a, expected);
        free(expected);
        if (at >= 0) {
            printf("FAILED: %s: \"%s\" differs from the interpreter at element %lld\n", c->what, names[k],
                   (long long)at);
            return false;
        }
    }
    return true;
}

static bool judge(const own_case *c)
{
    ty_error err = {0};
    ty_program *p = make(c, TY_BACKEND_CUDA, NULL, &err), *q = p ? make(c, TY_BACKEND_INTERPRETER, NULL, &err) : NULL;
    float *x = make_x(c);
    int64_t *i = make_i(c);
    const void *inputs[] = {x, i};
    bool ran = q && x && i && ty_program_run(p, TY_RUN_EVAL, inputs, &err) == 0 &&
               ty_program_run(q, TY_RUN_EVAL, inputs, &err) == 0;
    if (!ran)
        printf("FAILED: %s: %s\n", c->what, err.message);
    bool good = ran && agree(c, p, q, x, i);
    ty_program_free(p);
    ty_program_free(q);
    free(x);
    free(i);
    return good;
}

static bool leave(const own_case *c, const char *dir)
{
    ty_error err = {0};
    ty_program *p = make(c, TY_BACKEND_CUDA, dir, &err);
    if (!p)
        printf("FAILED: %s: %s\n", c->what, err.message);
    ty_program_free(p);
    return p != NULL;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;
    const char *dir = argc == 3 && strcmp(argv[1], "--cuda") == 0 ? argv[2] : NULL;
    if (argc > 1 && !dir) {
        fprintf(stderr, "usage: cuda_own [--cuda DIR]\n");
        return 64;
    }
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        if (dir ? leave(&cases[k], dir) : judge(&cases[k]))
            passed++;
        else
            failed++;
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed > 0;
}
