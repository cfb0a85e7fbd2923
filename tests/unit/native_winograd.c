/* native_winograd.c - our own convolutions by Winograd's algorithm and their gradients: against sums in double, for
 * each width of vectors that this machine has, and the same bits for any number of threads; those of bfloat16 are those
 * of float32, rounded. */
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
 * few tiles and many channels (tiles first); several chunks of the weights' gradient, since they take more than 12 MB:
 * dealt out in parts, and shared by all threads where the sums of more channels do not stay in a cache. */
static const wino_case cases[] = {
    {1, 3, 3, 1, 1, 0, 0, 0, 0},      {1, 1, 1, 2, 3, 1, 1, 1, 1},     {2, 5, 7, 3, 5, 1, 1, 1, 1},
    {3, 9, 6, 16, 33, 1, 0, 0, 1},    {2, 13, 12, 40, 24, 0, 0, 0, 0}, {2, 7, 7, 130, 70, 1, 1, 1, 1},
    {1, 10, 11, 17, 9, 0, 1, 1, 0},   {4, 30, 30, 36, 20, 1, 1, 1, 1}, {1, 4, 4, 72, 96, 1, 1, 1, 1},
    {10, 46, 46, 33, 64, 1, 1, 1, 1}, {2, 6, 6, 320, 64, 1, 1, 1, 1},  {3, 42, 42, 100, 130, 1, 1, 1, 1},
};

/* x, w and y as they lie: y's numbers are the gradient where it is an operand. */
typedef struct wino_data {
    ty_attr attr;
    ty_type type[3];
    void *data[3]; /* floats, or bfloat16 */
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
            ((float *)d.data[k])[i] = (float)(2.0 * ty_rng_u32(7, (uint32_t)k, 0, (uint64_t)i) * 0x1p-32 - 1);
    }
    return d;
}

/* As bfloat16, in d's place: d's numbers are rounded to them. Shares no memory. */
static wino_data make_short(wino_data *d)
{
    wino_data h = *d;
    for (int k = 0; k < 3; k++) {
        size_t n = (size_t)ty_type_elems(&d->type[k]);
        uint16_t *to = malloc(n * sizeof *to);
        assert_non_null(to);
        for (size_t i = 0; i < n; i++) {
            to[i] = ty_f32_to_bf16(((float *)d->data[k])[i]);
            ((float *)d->data[k])[i] = ty_bf16_to_f32(to[i]);
        }
        h.data[k] = to;
        h.type[k].dtype = TY_BF16;
    }
    return h;
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
    const float *data[3] = {d->data[X], d->data[W], d->data[Y]};
    for (int64_t o = 0; o < c->out; o++)
        for (int64_t i = 0; i < c->in; i++) {
            int64_t w_at = (o * c->in + i) * 9 + tap;
            double x = data[X][x_at * c->in + i], w = data[W][w_at], y = data[Y][y_at * c->out + o];
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

/* The gradient of the weights is float32 always. */
static void *computed(const wino_data *d, int kind, const ty_panel_kernels *panels, int threads)
{
    const int *from = operands_of[kind];
    const ty_type in[2] = {d->type[from[0]], d->type[from[1]]};
    ty_type res = d->type[result_of[kind]];
    res.dtype = kind == WEIGHTS ? TY_F32 : res.dtype;
    const ty_library_shape shape = {.attr = &d->attr, .in = in, .n_in = 2, .res = &res, .n_res = 1, .threads = threads};
    const void *operands[2] = {d->data[from[0]], d->data[from[1]]};
    ty_library_call call = {0};
    ty_error err = {0};
    int rc = kind == WEIGHTS ? ty_winograd_prepare_dw(panels, &shape, &call, &err)
                             : ty_winograd_prepare(panels, &shape, kind == DATA, &call, &err);
    if (rc < 0)
        fail_msg("%s", err.message);
    size_t n = (size_t)ty_type_bytes(&res);
    void *out = malloc(n);
    void *scratch = aligned_alloc(64, (call.scratch_bytes + 63) / 64 * 64);
    assert_non_null(out);
    assert_non_null(scratch);
    memset(out, 0xff, n);
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

static void check_short(const wino_case *c, const wino_data *d, const wino_data *h, int kind)
{
    const ty_panel_kernels *all[TY_PANEL_KINDS];
    int64_t n = ty_type_elems(&d->type[result_of[kind]]);
    for (int i = 0, usable = ty_panel_usable(all); i < usable; i++) {
        float *want = computed(d, kind, all[i], 1);
        void *found = computed(h, kind, all[i], 3);
        for (int64_t e = 0; e < n; e++)
            if (kind == WEIGHTS ? ((float *)found)[e] != want[e] : ((uint16_t *)found)[e] != ty_f32_to_bf16(want[e]))
                fail_msg("case %td, kind %d, %s: number %jd of %g", c - cases, kind, all[i]->name, (intmax_t)e,
                         (double)want[e]);
        free(want);
        free(found);
    }
}

static void bfloat16_is_float32_rounded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wino_data d = make_data(&cases[i]), h = make_short(&d);
        for (int kind = 0; kind < KINDS; kind++)
            check_short(&cases[i], &d, &h, kind);
        free_data(&d);
        free_data(&h);
    }
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
    ((float *)d.data[X])[(2 * 24 + 2) * 20] = NAN; /* row 2, column 2: below the first tile alone */
    wino_data h = make_short(&d);
    float *y = computed(&d, FORWARD, ty_panel_best(), 1);
    uint16_t *y_short = computed(&h, FORWARD, ty_panel_best(), 1);
    for (int64_t i = 0; i < 24 * 24; i++)
        for (int64_t k = 0; k < 20; k++) {
            assert_true(isnan(y[i * 20 + k]) ? i / 24 < 4 && i % 24 < 4
                                             : i / 24 < 1 || i % 24 < 1 || i / 24 > 3 || i % 24 > 3);
            assert_int_equal(isnan(y[i * 20 + k]), isnan(ty_bf16_to_f32(y_short[i * 20 + k])));
        }
    free(y);
    free(y_short);
    free_data(&d);
    free_data(&h);
}

static void other_convolutions_are_refused(void **state)
{
    (void)state;
    static const wino_case c = {1, 8, 8, 4, 4, 1, 1, 1, 1};
    wino_data d = make_data(&c);
    const ty_type in[2] = {d.type[X], d.type[W]};
    for (int what = 0; what < 6; what++) {
        ty_type y = d.type[Y];
        ty_attr attr = d.attr;
        y.dtype = what == 5 ? TY_F16 : TY_F32;
        attr.step[0] = what == 0 ? 2 : 1;
        attr.dil[1] = what == 1 ? 2 : 1;
        attr.flags &= what == 2 ? ~TY_SLIDING_WINOGRAD : what == 3 ? ~TY_SLIDING_LAST : ~0u;
        const ty_library_shape shape = {
            .attr = &attr, .in = in, .n_in = 2, .res = &y, .n_res = 1, .threads = 1, .strict = what == 4};
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
        cmocka_unit_test(bfloat16_is_float32_rounded),
        cmocka_unit_test(no_numbers_stay_near),
        cmocka_unit_test(other_convolutions_are_refused),
    };
    return cmocka_run_group_tests_name("native_winograd", tests, NULL, NULL);
}
