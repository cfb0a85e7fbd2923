/* native_reference.c - an op by its reference function: operands are widened, computed, and rounded back. */
#include "compiler/target/cpu/native.h"

#include "compiler/ops/op.h"
#include "compiler/ops/ref.h"

#include <stdlib.h>
#include <string.h>

typedef struct reference_call {
    ty_op op;
    ty_attr attr;
    int n_in, n_res;
    ty_ref in[TY_LIBRARY_MAX_IN], res[TY_MAX_RESULTS]; /* memory kept between runs */
} reference_call;

static void reference_clear(ty_ref *r)
{
    size_t n = (size_t)ty_type_elems(&r->type) * 8;
    memset(r->f ? (void *)r->f : (void *)r->i, 0, n);
}

/* Preparing ran the same shapes' inference, so that ref can only fail for want of memory; results are then zeros. */
static void reference_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    (void)scratch;
    reference_call *c = prepared;
    for (int i = 0; i < c->n_in; i++) {
        if (in[i])
            ty_ref_load(&c->in[i], in[i]);
        else
            reference_clear(&c->in[i]);
    }
    for (int i = 0; i < c->n_res; i++)
        reference_clear(&c->res[i]);
    ty_op_row_of(c->op)->ref(&c->attr, c->in, c->n_in, c->res, NULL);
    for (int i = 0; i < c->n_res; i++)
        ty_ref_store(&c->res[i], out[i]);
}

static void reference_release(void *prepared)
{
    reference_call *c = prepared;
    for (int i = 0; i < c->n_in; i++)
        ty_ref_fini(&c->in[i]);
    for (int i = 0; i < c->n_res; i++)
        ty_ref_fini(&c->res[i]);
    free(c);
}

int ty_native_prepare_reference_of(ty_op op, const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    const ty_op_row *row = ty_op_row_of(op);
    if (!row->ref || shape->n_in > TY_LIBRARY_MAX_IN)
        return ty_error_set(err, TY_E_UNSUPPORTED, "no implementation of \"%s\" for these types on a CPU", row->text);
    reference_call *c = calloc(1, sizeof *c);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared call of \"%s\"", row->text);
    c->op = op;
    c->attr = *shape->attr;
    int rc = 0;
    for (; c->n_in < shape->n_in && rc == 0; c->n_in++)
        rc = ty_ref_init(&c->in[c->n_in], &shape->in[c->n_in], err);
    for (; c->n_res < shape->n_res && rc == 0; c->n_res++)
        rc = ty_ref_init(&c->res[c->n_res], &shape->res[c->n_res], err);
    if (rc < 0) {
        reference_release(c);
        return -1;
    }
    *out = (ty_library_call){.run = reference_run, .release = reference_release, .prepared = c, .text = "reference"};
    return 0;
}
