/* convolution.c - see convolution.h. */
#include "compiler/target/cpu/convolution.h"

#include "base/buf.h"
#include "compiler/ops/sliding.h"

#include <stdio.h>

static void text_each(ty_buf *out, char what, const int64_t *number, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ty_buf_addf(out, "%c%lld", i ? 'x' : what, (long long)number[i]);
}

void ty_convolution_text(const char *how, const ty_attr *attr, const ty_type *x, const ty_type *w, char *out,
                         size_t n_bytes)
{
    ty_buf text;
    ty_type first = ty_sliding_first(attr, x);
    ty_buf_init(&text, n_bytes);
    ty_buf_adds(&text, how);
    text_each(&text, ' ', first.dim, first.rank);
    ty_buf_adds(&text, " by");
    text_each(&text, ' ', w->dim, w->rank);
    ty_buf_adds(&text, " ");
    text_each(&text, 's', attr->step, attr->n);
    ty_buf_adds(&text, " ");
    text_each(&text, 'p', attr->lo, attr->n);
    text_each(&text, '+', attr->hi, attr->n);
    ty_buf_adds(&text, " ");
    text_each(&text, 'd', attr->dil, attr->n);
    ty_buf_addf(&text, " g%lld%s", (long long)attr->groups, attr->flags & TY_SLIDING_LAST ? " last" : "");
    snprintf(out, n_bytes, "%s", text.data ? text.data : how);
    ty_buf_fini(&text);
}
