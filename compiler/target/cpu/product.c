/* product.c - see product.h. */
#include "compiler/target/cpu/product.h"

#include <inttypes.h>
#include <stdio.h>

ty_product ty_product_of(const ty_library_shape *shape)
{
    const ty_type *a = &shape->in[0], *c = &shape->res[0];
    ty_product p = {.batch = 1, .adds = shape->n_in > 2};
    p.trans_a = shape->attr->flags & TY_DOT_TRANS_A;
    p.trans_b = shape->attr->flags & TY_DOT_TRANS_B;
    for (int i = 0; i < c->rank - 2; i++)
        p.batch *= c->dim[i];
    p.m = c->dim[c->rank - 2];
    p.n = c->dim[c->rank - 1];
    p.k = a->dim[a->rank - (p.trans_a ? 2 : 1)];
    return p;
}

double ty_product_flops(const ty_product *p)
{
    return 2.0 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k;
}

void ty_product_text(const ty_product *p, const char *how, char *out, size_t n_bytes)
{
    snprintf(out, n_bytes, "%s %c%c%s %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64, how, p->trans_a ? 'T' : 'N',
             p->trans_b ? 'T' : 'N', p->adds ? "+" : "", p->batch, p->m, p->n, p->k);
}
