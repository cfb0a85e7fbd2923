/* onednn_dot.c - products of float32 matrices that native_dot.c leaves, and of bfloat16 where the processor multiplies
 * these.
 *
 * One float32 matrix: oneDNN's sgemm, which takes both transpositions as they are. Many, or bfloat16, or a turned right
 * side for which sgemm is slow (dot_packs): a matmul primitive with the transposition in the strides. What the product
 * is added to lies where the result will, or is copied there first. A format of oneDNN's own for float32 weights gains
 * nothing (measured: within 3 %) and would cost a reorder each step.
 */
#include "compiler/target/cpu/onednn.h"
#include "compiler/target/cpu/product.h"

#include <stdlib.h>
#include <string.h>

typedef struct dot_call {
    const ty_onednn *lib;
    ty_product of;
    size_t c_bytes; /* of the result */
    int threads;
    dnnl_primitive_t primitive; /* of a matmul */
    dnnl_memory_t a, b, c, scratch;
    char text[80];
} dot_call;

/* Rows of a result up to which a turned right side is packed. */
#define DOT_FEW_ROWS 512
/* Of the other rules of dot_packs. */
#define DOT_HIGH        4 /* rows for a column */
#define DOT_LONG        1024
#define DOT_FEW_COLUMNS 64
#define DOT_MANY_ROWS   4096
#define DOT_COPY_BYTES  ((size_t)1 << 20) /* piece of the copy of what is added to */

/* The third operand, where the result will be. */
static void dot_start(const dot_call *d, const void *const *in, void *out)
{
    size_t bytes = d->c_bytes;
    if (!d->of.adds || in[2] == out)
        return;
#pragma omp parallel for schedule(static) num_threads(d->threads)
    for (size_t at = 0; at < bytes; at += DOT_COPY_BYTES)
        memcpy((char *)out + at, (const char *)in[2] + at, bytes - at < DOT_COPY_BYTES ? bytes - at : DOT_COPY_BYTES);
}

static void dot_run_one(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    (void)scratch;
    const dot_call *d = prepared;
    dot_start(d, in, out[0]);
    int before = ty_onednn_use_threads(d->threads);
    d->lib->sgemm(d->of.trans_a ? 'T' : 'N', d->of.trans_b ? 'T' : 'N', d->of.m, d->of.n, d->of.k, 1.0f, in[0],
                  d->of.trans_a ? d->of.m : d->of.k, in[1], d->of.trans_b ? d->of.k : d->of.n, d->of.adds ? 1.0f : 0.0f,
                  out[0], d->of.n);
    ty_onednn_use_threads(before);
}

static void dot_run_matmul(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const dot_call *d = prepared;
    const ty_onednn *lib = d->lib;
    dot_start(d, in, out[0]);
    lib->memory_set_data_handle_v2(d->a, (void *)(uintptr_t)in[0], lib->stream);
    lib->memory_set_data_handle_v2(d->b, (void *)(uintptr_t)in[1], lib->stream);
    lib->memory_set_data_handle_v2(d->c, out[0], lib->stream);
    lib->memory_set_data_handle_v2(d->scratch, scratch, lib->stream);
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, d->a}, {DNNL_ARG_WEIGHTS, d->b}, {DNNL_ARG_DST, d->c}, {DNNL_ARG_SCRATCHPAD, d->scratch}};
    int before = ty_onednn_use_threads(d->threads);
    lib->primitive_execute(d->primitive, lib->stream, 4, args);
    ty_onednn_use_threads(before);
}

/* A sum over nothing is zero; no rows or columns is nothing to do. */
static void dot_run_empty(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    (void)scratch;
    const dot_call *d = prepared;
    float *c = out[0];
    dot_start(d, in, c);
    for (int64_t i = 0; i < d->of.batch * d->of.m * d->of.n && !d->of.adds; i++)
        c[i] = 0.0f;
}

static void dot_release(void *prepared)
{
    dot_call *d = prepared;
    if (d->primitive)
        d->lib->primitive_destroy(d->primitive);
    dnnl_memory_t memory[] = {d->a, d->b, d->c, d->scratch};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        if (memory[i])
            d->lib->memory_destroy(memory[i]);
    free(d);
}

/* One matrix is described as one: oneDNN has more kernels for that. */
static int dot_memory(const dot_call *d, int64_t rows, int64_t columns, bool transposed, uint8_t dtype,
                      dnnl_memory_t *out, dnnl_memory_desc_t *desc, ty_error *err)
{
    const dnnl_dims_t dims = {d->of.batch, rows, columns};
    const dnnl_dims_t strides = {rows * columns, transposed ? 1 : columns, transposed ? rows : 1};
    int skip = d->of.batch == 1;
    if (ty_onednn_status(d->lib->memory_desc_init_by_strides(desc, 3 - skip, dims + skip,
                                                             dtype == TY_BF16 ? dnnl_bf16 : dnnl_f32, strides + skip),
                         "describing a matrix", err) < 0)
        return -1;
    return ty_onednn_status(d->lib->memory_create(out, desc, d->lib->engine, DNNL_MEMORY_NONE), "making a memory", err);
}

/* The result is added to what lies there. */
static int dot_adding(const dot_call *d, dnnl_primitive_attr_t attr, ty_error *err)
{
    dnnl_post_ops_t ops = NULL;
    int rc = ty_onednn_status(d->lib->post_ops_create(&ops), "making post-ops", err);
    if (rc == 0)
        rc = ty_onednn_status(d->lib->post_ops_append_sum(ops, 1.0f), "adding to a matrix", err);
    if (rc == 0)
        rc = ty_onednn_status(d->lib->primitive_attr_set_post_ops(attr, ops), "setting post-ops", err);
    if (ops)
        d->lib->post_ops_destroy(ops);
    return rc;
}

static int dot_primitive(dot_call *d, const dnnl_memory_desc_t *desc, ty_library_call *out, ty_error *err)
{
    const ty_onednn *lib = d->lib;
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    int rc = ty_onednn_status(lib->matmul_desc_init(&matmul, &desc[0], &desc[1], NULL, &desc[2]), "describing a matmul",
                              err);
    if (rc == 0)
        rc = ty_onednn_status(lib->primitive_attr_create(&attr), "making attributes", err);
    if (rc == 0 && d->of.adds)
        rc = dot_adding(d, attr, err);
    if (rc == 0) {
        lib->primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
        rc = ty_onednn_status(lib->primitive_desc_create(&pd, &matmul, attr, lib->engine, NULL), "choosing a matmul",
                              err);
    }
    if (rc == 0) {
        const dnnl_memory_desc_t *scratch = lib->primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
        out->scratch_bytes = lib->memory_desc_get_size(scratch);
        rc = ty_onednn_status(lib->memory_create(&d->scratch, scratch, lib->engine, DNNL_MEMORY_NONE),
                              "making a memory", err);
    }
    if (rc == 0)
        rc = ty_onednn_status(lib->primitive_create(&d->primitive, pd), "making a matmul", err);
    if (pd)
        lib->primitive_desc_destroy(pd);
    if (attr)
        lib->primitive_attr_destroy(attr);
    return rc;
}

static int dot_matmul(dot_call *d, const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    dnnl_memory_desc_t desc[3];
    int before = ty_onednn_use_threads(d->threads), rc = 0; /* oneDNN plans for the threads it finds */
    if (dot_memory(d, d->of.m, d->of.k, d->of.trans_a, shape->in[0].dtype, &d->a, &desc[0], err) < 0 ||
        dot_memory(d, d->of.k, d->of.n, d->of.trans_b, shape->in[1].dtype, &d->b, &desc[1], err) < 0 ||
        dot_memory(d, d->of.m, d->of.n, false, shape->res[0].dtype, &d->c, &desc[2], err) < 0 ||
        dot_primitive(d, desc, out, err) < 0)
        rc = -1;
    ty_onednn_use_threads(before);
    return rc;
}

static dot_call *dot_new(const ty_library_shape *shape, ty_error *err)
{
    const ty_onednn *lib;
    if (ty_onednn_get(&lib, err) < 0)
        return NULL;
    dot_call *d = calloc(1, sizeof *d);
    if (!d) {
        ty_error_set(err, TY_E_LIMIT, "no memory for a prepared product");
        return NULL;
    }
    *d = (dot_call){.lib = lib, .of = ty_product_of(shape), .c_bytes = ty_type_bytes(&shape->res[0])};
    d->threads = ty_onednn_threads(shape, ty_product_flops(&d->of));
    return d;
}

static const char *dot_text(dot_call *d, const char *how)
{
    ty_product_text(&d->of, how, d->text, sizeof d->text);
    return d->text;
}

/* Whether a matmul primitive, which packs its operands, is quicker than sgemm, which does not always: with AVX-512,
 * where
 * - the right side is turned and few rows or a long sum let it. Measured on a Zen 4, matmul / sgemm: 0.39
 *   (64 x 128 x 9216) to 0.83 (2048 x 384 x 1536), but 1.1 for 2048 x 1536 x 384;
 * - the left side is turned, the result is high and the sum long. On a Sapphire Rapids 0.83 (256 x 64 x 25088), 0.82
 *   (512 x 128 x 6272), 0.91 (1024 x 256 x 1568), but 1.17 for 64 x 256 x 25088 and 1.05 for 2048 x 512 x 392;
 * - nothing is turned and many rows have few columns: 0.84 (25088 x 64 x 256), 0.72 (25088 x 64 x 64), but 1.05 for
 *   6272 x 128 x 512 and 1.5 for 6272 x 512 x 128. */
static bool dot_packs(const ty_product *p)
{
    if (!ty_onednn_is_wide() || (p->trans_a && p->trans_b))
        return false;
    if (p->trans_b)
        return p->k > p->n || p->m <= DOT_FEW_ROWS;
    if (p->trans_a)
        return p->m >= DOT_HIGH * p->n && p->n >= DOT_FEW_COLUMNS && p->k >= DOT_LONG;
    return p->n == DOT_FEW_COLUMNS && p->m >= DOT_MANY_ROWS;
}

int ty_onednn_prepare_dot(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    dot_call *d = dot_new(shape, err);
    if (!d)
        return -1;
    *out = (ty_library_call){.run = dot_run_one, .release = dot_release, .prepared = d};
    if (ty_product_flops(&d->of) == 0)
        out->run = dot_run_empty, out->text = "nothing to multiply";
    else if (d->of.batch == 1 && !dot_packs(&d->of))
        out->text = dot_text(d, "onednn sgemm");
    else {
        out->run = dot_run_matmul;
        out->text = dot_text(d, "onednn matmul");
        if (dot_matmul(d, shape, out, err) < 0) {
            dot_release(d);
            return -1;
        }
    }
    return 0;
}

/* Else bfloat16 is left to native_widen.c. */
int ty_onednn_prepare_dot_bf16(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    if (shape->in[0].dtype != TY_BF16 || shape->strict || !ty_onednn_bf16_pays())
        return ty_error_set(err, TY_E_UNSUPPORTED, "no product of these types");
    dot_call *d = dot_new(shape, err);
    if (!d)
        return -1;
    *out = (ty_library_call){
        .run = dot_run_matmul, .release = dot_release, .prepared = d, .text = dot_text(d, "onednn bfloat16")};
    ty_error refused;
    if (ty_product_flops(&d->of) > 0 && dot_matmul(d, shape, out, &refused) == 0)
        return 0;
    dot_release(d);
    return ty_error_set(err, TY_E_UNSUPPORTED, "no product of these shapes");
}
