/* session_check.c - what a checked step has found, as text. */
#include "base/quantity.h"
#include "entrypoint/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *value_text(double v)
{
    return isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}

static void add_index(const ty_bad_value *bad, ty_buf *out)
{
    ty_buf_addc(out, '[');
    for (int k = 0; k < bad->type.rank; k++)
        ty_buf_addf(out, "%s%lld", k ? ", " : "", (long long)bad->index[k]);
    ty_buf_addc(out, ']');
}

static void add_numbers(const ty_numbers *n, ty_buf *out)
{
    char a[32];
    ty_buf_addf(out, "%s number%s", ty_count_text(n->n, a, sizeof a), n->n == 1 ? "" : "s");
    if (n->n_nan > 0)
        ty_buf_addf(out, ", %s nan", ty_count_text(n->n_nan, a, sizeof a));
    if (n->n_inf > 0)
        ty_buf_addf(out, ", %s inf", ty_count_text(n->n_inf, a, sizeof a));
    if (n->lo <= n->hi)
        ty_buf_addf(out, n->lo == n->hi ? ", %s%g" : ", %s%g to %g", n->n_nan + n->n_inf > 0 ? "else " : "", n->lo,
                    n->hi);
}

static void add_bad(const ty_bad_value *bad, const char *sample, ty_buf *out)
{
    static const char *const phase[TY_N_PHASES] = {"forward", "gradient", "update"};
    char type[160];
    bool outside = strcmp(bad->op, "input") == 0 || strcmp(bad->op, "state") == 0;
    ty_buf_addf(out, "first %-5s %s %s", value_text(bad->value), outside ? bad->op : "layer", bad->layer);
    if (!outside)
        ty_buf_addf(out, ", %s: %s", phase[bad->phase], bad->op);
    ty_buf_addf(out, ", %s at ", ty_type_text(&bad->type, type, sizeof type));
    add_index(bad, out);
    ty_buf_addf(out, "%s%s\n", sample ? ", " : "", sample ? sample : "");
    ty_buf_adds(out, "  holds     ");
    add_numbers(&bad->result, out);
    ty_buf_addc(out, '\n');
    for (int i = 0; i < bad->n_operands; i++) {
        ty_buf_adds(out, i ? "            " : "  made of   ");
        ty_buf_addf(out, "%s: ", bad->operand[i].text);
        add_numbers(&bad->operand[i], out);
        ty_buf_addc(out, '\n');
    }
}

void ty_session_explain(const ty_session *s, ty_buf *out)
{
    for (int i = 0; i < s->check.n_bad; i++)
        add_bad(&s->check.bad[i], s->bad_sample[i], out);
}
