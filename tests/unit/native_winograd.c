/* native_winograd.c - our own convolutions by Winograd's algorithm and their gradients: against sums in double, for
 * each width of vectors that this machine has, and the same bits for any number of threads. */
#include "base/rng.h"
#include "compiler/ops/sliding.h"
#include "compiler/target/cpu/onednn.h"
#include "compiler/target/cpu/winograd_grid.h"
#include "tests/unit/evaluate.h"

#include <math.h>

enum { FORWARD, DATA, WEIGHTS, KINDS };

typedef struct wino_case {
    int64_t images, h, w, in, out, lo_h, hi_h, lo_w, hi_w;
} wino_case;

/* Sizes that fill no tile, no vector, no panel; one image and one tile; many tiles and few channels (weights first),
 * few tiles and many channels (tiles first); several chunks of the weights' gradient, which take 12 MB: dealt out in
 * parts, and shared by all threads where the sums of more channels do not stay in a cache. */
static const wino_case cases[] = {
    {1, 3, 3, 1, 1, 0, 0, 0, 0},      {1, 1, 1, 2, 3, 1, 1, 1, 1},     {2, 5, 7, 3, 5, 1, 1, 1, 1},
    {3, 9, 6, 16, 33, 1, 0, 0, 1},    {2, 13, 12, 40, 24, 0, 0, 0, 0}, {2, 7, 7, 130, 70, 1, 1, 1, 1},
    {1, 10, 11, 17, 9, 0, 1, 1, 0},   {4, 30, 30, 36, 20, 1, 1, 1, 1}, {1, 4, 4, 72, 96, 1, 1, 1, 1},
    {10, 46, 46, 33, 64, 1, 1, 1, 1}, {2, 6, 6, 320, 64, 1, 1, 1, 1},  {3, 50, 50, 65, 66, 1, 1, 1, 1},
};

/* x, w and y as they lie: y's numbers are the gradient where it is an operand. */
typedef struct wino_data {
    ty_attr attr;
    ty_type type[3];
    float *data[3];
} wino_data;

enum { X, W, Y };

static wino_data make_data(const wino_case *c)
{
    const int64_t y_h = c->h + c->lo_h + c->hi_h - 2, y_w = c->w + c->lo_w + c->hi_w - 2;
    wino_data d = {
        .attr = {.n = 2,
                 .groups = 1,
                 .flags = TY_SLIDING_LAST | TY_SLIDING_WINOGRAD,
                 .step = {1, 1},
                 .dil = {1, 1},
                 .lo = {c->lo_h, c->lo_w},
                 .hi = {c->hi_h, c->hi_w}},
        .type = {ty_type_make(TY_F32, SHAPE(c->images, c->h, c->w, c->in)),
                 ty_type_make(TY_F32, SHAPE(c->out, c->in, 3, 3)),
                 ty_type_make(TY_F32, SHAPE(c->images, y_h, y_w, c->out))},
    };
    for (int k = 0; k < 3; k++) {
        int64_t n = ty_type_elems(&d.type[k]);
        d.data[k] = malloc((size_t)n * sizeof(float));
        assert_non_null(d.data[k]);
        for (int64_t i = 0; i < n; i++)
            d.data[k][i] = (float)(2.0 * ty_rng_u32(7, (uint32_t)k, 0, (uint64_t)i) * 0x1p-32 - 1);
    }
    return d;
}

static void free_data(wino_data *d)
{
    for (int k = 0; k < 3; k++)
        free(d->data[k]);
}

/* ---- the definition, in double ---- */

/* Adds what one pair of positions contributes to the result of `kind`. */
static void add_tap(const wino_case *c, const wino_data *d, int kind, int64_t x_at, int64_t y_at, int64_t tap,
                    double *to)
{
    for (int64_t o = 0; o < c->out; o++)
        for (int64_t i = 0; i < c->in; i++) {
            int64_t w_at = (o * c->in + i) * 9 + tap;
            double x = d->data[X][x_at * c->in + i], w = d->data[W][w_at], y = d->data[Y][y_at * c->out + o];
            if (kind == FORWARD)
                to[y_at * c->out + o] += x * w;
            else if (kind == DATA)
                to[x_at * c->in + i] += y * w;
            else
                to[w_at] += x * y;
        }
}

static double *definition(const wino_case *c, const wino_data *d, int kind, int64_t n)
{
    const int64_t *y = d->type[Y].dim;
    double *to = calloc((size_t)n, sizeof *to);
    assert_non_null(to);
    for (int64_t at = 0; at < y[0] * y[1] * y[2]; at++)
        for (int64_t tap = 0; tap < 9; tap++) {
            int64_t row = at / y[2] % y[1] + tap / 3 - c->lo_h, column = at % y[2] + tap % 3 - c->lo_w;
            if (row >= 0 && row < c->h && column >= 0 && column < c->w)
                add_tap(c, d, kind, (at / (y[1] * y[2]) * c->h + row) * c->w + column, at, tap, to);
        }
    return to;
}

/* ---- the calls ---- */

static const int result_of[KINDS] = {[FORWARD] = Y, [DATA] = X, [WEIGHTS] = W};
static const int operands_of[KINDS][2] = {[FORWARD] = {X, W}, [DATA] = {Y, W}, [WEIGHTS] = {X, Y}};

static float *computed(const wino_data *d, int kind, const ty_panel_kernels *panels, int threads)
{
    const int *from = operands_of[kind];
    const ty_type *res = &d->type[result_of[kind]], in[2] = {d->type[from[0]], d->type[from[1]]};
    const ty_library_shape shape = {.attr = &d->attr, .in = in, .n_in = 2, .res = res, .n_res = 1, .threads = threads};
    const void *operands[2] = {d->data[from[0]], d->data[from[1]]};
    ty_library_call call = {0};
    ty_error err = {0};
    int rc = kind == WEIGHTS ? ty_winograd_prepare_dw(panels, &shape, &call, &err)
                             : ty_winograd_prepare(panels, &shape, kind == DATA, &call, &err);
    if (rc < 0)
        fail_msg("%s", err.message);
    size_t n = (size_t)ty_type_elems(res);
    float *out = malloc(n * sizeof *out);
    void *scratch = aligned_alloc(64, (call.scratch_bytes + 63) / 64 * 64);
    assert_non_null(out);
    assert_non_null(scratch);
    memset(out, 0xff, n * sizeof *out);
    memset(scratch, 0xff, call.scratch_bytes); /* NaN: what is read must have been written */
    call.run(call.prepared, operands, (void *[]){out}, scratch);
    free(scratch);
    ty_library_release(&call);
    return out;
}

/* The largest difference, in units of the root mean square of what is right. */
static double error_of(const float *found, const double *want, int64_t n)
{
    double most = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double off = fabs(found[i] - want[i]);
        most = off > most || isnan(off) ? off : most;
        squares += want[i] * want[i];
    }
    return most / sqrt(squares / (double)n);
}

/* Many roundings of like size, which add up as a random walk does: sums are as long as a row of channels and taps, or
 * as all positions are. */
static double bound(const wino_case *c, const wino_data *d, int kind)
{
    const int64_t *y = d->type[Y].dim;
    double terms = kind == WEIGHTS ? (double)(y[0] * y[1] * y[2]) : 9.0 * (double)(kind == DATA ? c->out : c->in);
    return fmax(2e-5, 4 * sqrt(terms) * 0x1p-24);
}

static void check_kind(const wino_case *c, const wino_data *d, int kind)
{
    const ty_panel_kernels *all[TY_PANEL_KINDS];
    int64_t n = ty_type_elems(&d->type[result_of[kind]]);
    double *want = definition(c, d, kind, n);
    for (int i = 0, usable = ty_panel_usable(all); i < usable; i++) {
        float *found = computed(d, kind, all[i], 1), *shared = computed(d, kind, all[i], 3);
        double off = error_of(found, want, n);
        if (!(off < bound(c, d, kind)))
            fail_msg("case %td, kind %d, %s: off by %g", c - cases, kind, all[i]->name, off);
        assert_memory_equal(found, shared, (size_t)n * sizeof *found);
        free(found);
        free(shared);
    }
    free(want);
}

static void numbers_are_those_of_the_definition(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wino_data d = make_data(&cases[i]);
        for (int kind = 0; kind < KINDS; kind++)
            check_kind(&cases[i], &d, kind);
        free_data(&d);
    }
}

/* What is no number stays where its windows are: in the tiles that read it. */
static void no_numbers_stay_near(void **state)
{
    (void)state;
    static const wino_case c = {1, 24, 24, 20, 20, 1, 1, 1, 1};
    wino_data d = make_data(&c);
    d.data[X][(2 * 24 + 2) * 20] = NAN; /* row 2, column 2: below the first tile alone */
    float *y = computed(&d, FORWARD, ty_panel_best(), 1);
    for (int64_t i = 0; i < 24 * 24; i++)
        for (int64_t k = 0; k < 20; k++)
            assert_true(isnan(y[i * 20 + k]) ? i / 24 < 4 && i % 24 < 4
                                             : i / 24 < 1 || i % 24 < 1 || i / 24 > 3 || i % 24 > 3);
    free(y);
    free_data(&d);
}

static void other_convolutions_are_refused(void **state)
{
    (void)state;
    static const wino_case c = {1, 8, 8, 4, 4, 1, 1, 1, 1};
    wino_data d = make_data(&c);
    const ty_type in[2] = {d.type[X], d.type[W]};
    for (int what = 0; what < 5; what++) {
        ty_attr attr = d.attr;
        attr.step[0] = what == 0 ? 2 : 1;
        attr.dil[1] = what == 1 ? 2 : 1;
        attr.flags &= what == 2 ? ~TY_SLIDING_WINOGRAD : what == 3 ? ~TY_SLIDING_LAST : ~0u;
        const ty_library_shape shape = {
            .attr = &attr, .in = in, .n_in = 2, .res = &d.type[Y], .n_res = 1, .threads = 1, .strict = what == 4};
        ty_library_call call = {0};
        ty_error err = {0};
        assert_int_equal(ty_winograd_prepare(ty_panel_best(), &shape, false, &call, &err), -1);
        assert_int_equal(err.code, TY_E_UNSUPPORTED);
    }
    free_data(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_definition),
        cmocka_unit_test(no_numbers_stay_near),
        cmocka_unit_test(other_convolutions_are_refused),
    };
    return cmocka_run_group_tests_name("native_winograd", tests, NULL, NULL);
}
