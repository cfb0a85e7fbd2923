/* model_print.c - see model_print.h. */
#include "entrypoint/model_print.h"

#include "base/quantity.h"

#include <stdio.h>
#include <string.h>

/* ---- text ---- */

const char *ty_model_value_text(const ty_model_value *v, char *out, size_t n)
{
    int len = snprintf(out, n, "%s[", v->dtype < TY_N_DTYPES ? ty_dtype_text(v->dtype) : "?");
    for (int i = 0; i < v->rank && (size_t)len < n; i++) {
        const char *comma = i ? "," : "";
        if (v->dim[i] >= 0)
            len += snprintf(out + len, n - (size_t)len, "%s%lld", comma, (long long)v->dim[i]);
        else
            len += snprintf(out + len, n - (size_t)len, "%s%.40s", comma, v->dim_name[i] ? v->dim_name[i] : "?");
    }
    if ((size_t)len < n)
        snprintf(out + len, n - (size_t)len, "%s", v->rank < 0 ? "?]" : "]");
    return out;
}

void ty_model_print_values(const char *what, int n, const ty_model *m,
                           const ty_model_value *(*at)(const ty_model *m, int i))
{
    char text[320];
    for (int i = 0; i < n; i++)
        printf("  %-7s %-24s %s\n", what, at(m, i)->name, ty_model_value_text(at(m, i), text, sizeof text));
}

/* Names that are too long lose their middle. */
static const char *cut_text(const char *text, size_t max, char *out)
{
    size_t len = strlen(text);
    if (len <= max)
        return text;
    size_t tail = max - max / 3 - 2;
    sprintf(out, "%.*s..%s", (int)(max / 3), text, text + len - tail);
    return out;
}

double ty_model_total_flop(const double *flop)
{
    double sum = 0;
    for (int i = 0; i < TY_N_WORKS; i++)
        sum += flop[i];
    return sum;
}

/* Weights, or half a percent of the arithmetic. */
static bool is_listed(const ty_layer_facts *l, const ty_model_summary *s, bool all)
{
    double flop = ty_model_total_flop(s->forward_flop) + ty_model_total_flop(s->backward_flop);
    return all || l->n_numbers > 0 || l->forward_flop + l->backward_flop > 0.005 * flop;
}

static void print_layer(const ty_layer_facts *l)
{
    char name[64], shape[64], count[32], forward[32], backward[32];
    printf("  %-36s %-20.20s %-24s %14s %12s %12s\n", cut_text(l->name, 36, name), l->op, cut_text(l->shape, 24, shape),
           ty_count_text(l->n_numbers, count, sizeof count), ty_si_text(l->forward_flop, "", forward, sizeof forward),
           ty_si_text(l->backward_flop, "", backward, sizeof backward));
}

void ty_model_print_layers(const ty_model_summary *s, bool all)
{
    ty_layer_facts rest = {.name = "", .op = "", .shape = ""};
    int n_rest = 0;
    printf("\n  %-36s %-20s %-24s %14s %12s %12s\n", "layer", "operator", "output", "numbers", "FLOP", "in gradient");
    for (int i = 0; i < s->n_layers; i++) {
        if (is_listed(&s->layer[i], s, all)) {
            print_layer(&s->layer[i]);
            continue;
        }
        n_rest++;
        rest.forward_flop += s->layer[i].forward_flop;
        rest.backward_flop += s->layer[i].backward_flop;
    }
    char name[48];
    snprintf(name, sizeof name, "%d more, without weights (--all)", n_rest);
    rest.name = name;
    if (n_rest > 0)
        print_layer(&rest);
    puts("");
}

/* ---- JSON ---- */

/* Opens a map, which the caller closes. */
static void begin_value(ty_json_writer *w, const ty_model_value *v)
{
    ty_json_open_map(w, NULL);
    ty_json_put_string(w, "name", v->name);
    ty_json_put_string(w, "dtype", v->dtype < TY_N_DTYPES ? ty_dtype_text(v->dtype) : NULL);
    ty_json_open_list(w, "shape");
    for (int k = 0; k < v->rank; k++)
        if (v->dim[k] >= 0)
            ty_json_put_int(w, NULL, v->dim[k]);
        else
            ty_json_put_string(w, NULL, v->dim_name[k] ? v->dim_name[k] : "?");
    ty_json_close(w);
}

void ty_model_put_values(ty_json_writer *w, const ty_model *m, const char *key, int n,
                         const ty_model_value *(*at)(const ty_model *m, int i))
{
    ty_json_open_list(w, key);
    for (int i = 0; i < n; i++) {
        begin_value(w, at(m, i));
        ty_json_close(w);
    }
    ty_json_close(w);
}

void ty_model_put_layers(ty_json_writer *w, const ty_model_summary *s)
{
    ty_json_open_list(w, "layers");
    for (int i = 0; i < s->n_layers; i++) {
        const ty_layer_facts *l = &s->layer[i];
        ty_json_open_map(w, NULL);
        ty_json_put_string(w, "name", l->name);
        ty_json_put_string(w, "operator", l->op);
        ty_json_put_string(w, "output", l->shape);
        ty_json_put_int(w, "numbers", l->n_numbers);
        ty_json_put_float(w, "forward_flop", l->forward_flop);
        ty_json_put_float(w, "backward_flop", l->backward_flop);
        ty_json_close(w);
    }
    ty_json_close(w);
}

void ty_model_put_weight(ty_json_writer *w, const ty_model_value *v, size_t n_bytes, const char *role)
{
    begin_value(w, v);
    ty_json_put_int(w, "bytes", (int64_t)n_bytes);
    ty_json_put_string(w, "role", role);
    ty_json_put_bool(w, "has_values", v->data != NULL);
    ty_json_close(w);
}
