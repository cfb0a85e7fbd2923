/* hf_rotary.c - see hf_rotary.h. Tables are computed in float32, in PyTorch's order, so that they are its numbers. */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_rotary.h"

#include "compiler/import/huggingface/hf_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FULL_TURN 6.283185307179586

/* What the configuration says. */
typedef struct rotary_plan {
    const ty_doc *section; /* rope_parameters or rope_scaling; NULL: none */
    const char *kind;
    double theta, share; /* share: of a head that is turned */
} rotary_plan;

static double section_number(hf_net *n, const rotary_plan *p, const char *key, double absent)
{
    ty_error err;
    double v = absent;
    if (p->section && hf_config_number(p->section, key, absent, &v, &err) < 0)
        hf_fail(n, &err);
    return v;
}

static const char *section_text(hf_net *n, const rotary_plan *p, const char *key, const char *absent)
{
    ty_error err;
    const char *v = absent;
    if (p->section && hf_config_text(p->section, key, absent, &v, &err) < 0)
        hf_fail(n, &err);
    return v;
}

static rotary_plan read_plan(hf_net *n, const ty_doc *section, double theta)
{
    rotary_plan p = {.section = section};
    p.kind = section_text(n, &p, "rope_type", section_text(n, &p, "type", "default"));
    p.theta = section_number(n, &p, "rope_theta", theta);
    p.share = section_number(n, &p, "partial_rotary_factor", hf_number(n, "partial_rotary_factor", 1));
    return p;
}

/* Llama 3.1: long waves become `factor` times longer, short ones stay, those between are mixed. */
static void lengthen(hf_net *n, const rotary_plan *p, float *frequency, int64_t count)
{
    double factor = section_number(n, p, "factor", 1), low = section_number(n, p, "low_freq_factor", 1);
    double high = section_number(n, p, "high_freq_factor", 4);
    double old = section_number(n, p, "original_max_position_embeddings", hf_number(n, "max_position_embeddings", 1));
    for (int64_t i = 0; i < count; i++) {
        double f = frequency[i], wave = FULL_TURN / f, smooth = (old / wave - low) / (high - low);
        if (wave > old / low)
            frequency[i] = (float)(f / factor);
        else if (wave >= old / high)
            frequency[i] = (float)((1 - smooth) * (f / factor) + smooth * f);
    }
}

static void read_frequencies(hf_net *n, const rotary_plan *p, float *frequency, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        frequency[i] = 1 / powf((float)p->theta, (float)(2 * i) / (float)(2 * count));
    if (strcmp(p->kind, "linear") == 0) {
        float factor = (float)section_number(n, p, "factor", 1);
        for (int64_t i = 0; i < count; i++)
            frequency[i] /= factor;
    } else if (strcmp(p->kind, "llama3") == 0) {
        lengthen(n, p, frequency, count);
    } else if (strcmp(p->kind, "default") != 0) {
        hf_refuse(n, hf_find(n, "rope_parameters") ? "rope_parameters" : "rope_scaling",
                  "of the kinds of rotary positions default, linear and llama3 are built");
    }
}

/* Both halves of a row are the same. */
static ty_var table(hf_net *n, float (*of)(float), const float *frequency, int64_t length, int64_t turned)
{
    int64_t half = turned / 2;
    float *rows = malloc((size_t)(length * turned) * sizeof *rows + 1);
    if (!rows) {
        ty_fail(n->net, "no memory for a table of %lld positions", (long long)length);
        return (ty_var){0};
    }
    for (int64_t s = 0; s < length; s++)
        for (int64_t i = 0; i < turned; i++)
            rows[s * turned + i] = of((float)s * frequency[i % half]);
    ty_var v = ty_constant(n->net, "f32", ty_dims(length, turned), rows);
    free(rows);
    return v;
}

hf_rotary hf_rotary_of(hf_net *n, int64_t length, int64_t size, double theta)
{
    const ty_doc *now = hf_find(n, "rope_parameters");
    return hf_rotary_by(n, now ? now : hf_find(n, "rope_scaling"), length, size, hf_number(n, "rope_theta", theta));
}

hf_rotary hf_rotary_by(hf_net *n, const ty_doc *section, int64_t length, int64_t size, double theta)
{
    ty_error err;
    if (section && section->kind != TY_DOC_NULL && ty_doc_expect(section, TY_DOC_MAP, &err) < 0)
        hf_fail(n, &err);
    rotary_plan p = read_plan(n, section, theta);
    hf_rotary r = {.turned = (int64_t)((double)size * p.share)};
    if (r.turned < 2 || r.turned % 2 || r.turned > size)
        ty_fail(n->net, "rotary positions turn pairs, and %lld numbers of a head's %lld are to be turned",
                (long long)r.turned, (long long)size);
    if (hf_failed(n))
        return r;
    float *frequency = malloc((size_t)(r.turned / 2) * sizeof *frequency);
    if (!frequency) {
        ty_fail(n->net, "no memory for %lld frequencies", (long long)r.turned / 2);
        return r;
    }
    read_frequencies(n, &p, frequency, r.turned / 2);
    r.cos = table(n, cosf, frequency, length, r.turned);
    r.sin = table(n, sinf, frequency, length, r.turned);
    free(frequency);
    return r;
}

ty_var hf_rotate(hf_net *n, ty_var x, const hf_rotary *r)
{
    ty_net *net = n->net;
    int64_t size = ty_dim(net, x, 3), half = r->turned / 2;
    ty_var first = r->turned < size ? ty_slice(net, x, 3, 0, r->turned) : x;
    ty_var left = ty_slice(net, first, 3, 0, half), right = ty_slice(net, first, 3, half, r->turned);
    ty_var across = ty_concat(net, 3, ty_neg(net, right), left);
    ty_var y = ty_add(net, ty_mul(net, first, r->cos), ty_mul(net, across, r->sin));
    return r->turned < size ? ty_concat(net, 3, y, ty_slice(net, x, 3, r->turned, size)) : y;
}
