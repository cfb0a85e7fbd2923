/* values.c - what SET, PULL and PUSH do to the rows of a shard.
 *
 * A message is looked at as a whole before anything changes: every part must be ours, have the length its rows need,
 * and name rows that belong to it. Rows of a hashed table come to be while that is done; it changes no value.
 */
#include "dist/server/shard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX_ROWS ((int64_t)1 << 31)

static int values_check_part(const ty_shard *s, const ty_part *p, bool has_values, ty_rows **out, ty_error *err)
{
    ty_rows *r = ty_shard_part(s, p->variable, p->part);
    if (r == NULL)
        return ty_error_set(err, TY_E_DATA, "shard %d has no part %u of variable %u", s->options.number, p->part,
                            p->variable);
    const char *name = r->variable->name;
    uint64_t width = (uint64_t)r->variable->width, rows = p->kind == TY_PART_ROWS ? p->n_ids : (uint64_t)r->n;
    if (p->kind == TY_PART_TEXT || (p->kind == TY_PART_DENSE && (r->variable->hashed || p->n_ids)))
        return ty_error_set(err, TY_E_DATA, "variable \"%s\": a part of kind %u is not for it", name, p->kind);
    if (p->slot > (uint32_t)ty_rule_slots(&r->variable->rule))
        return ty_error_set(err, TY_E_DATA, "variable \"%s\": slot %u of %d", name, p->slot,
                            ty_rule_slots(&r->variable->rule));
    if (p->n_values != (has_values ? rows * width : 0))
        return ty_error_set(err, TY_E_SHAPE, "variable \"%s\": expected %" PRIu64 " values, found %" PRIu64, name,
                            has_values ? rows * width : 0, p->n_values);
    *out = r;
    return 0;
}

static int64_t values_hashed_rows(const ty_shard *s)
{
    int64_t n = 0;
    for (int i = 0; i < s->n_rows; i++)
        n += s->rows[i].variable->hashed ? s->rows[i].n : 0;
    return n;
}

/* Places of the ids of a part, in place[]. */
static int values_places(const ty_shard *s, ty_rows *r, const ty_part *p, int64_t *place, ty_error *err)
{
    int64_t limit = s->options.max_rows ? s->options.max_rows : VALUES_MAX_ROWS;
    if (r->variable->hashed && values_hashed_rows(s) + (int64_t)p->n_ids > limit) {
        ty_error_set(err, TY_E_LIMIT, "variable \"%s\": hashed tables of this shard may have %" PRId64 " rows",
                     r->variable->name, limit);
        return ty_error_help(err, "use more servers");
    }
    for (uint64_t k = 0; k < p->n_ids; k++) {
        int part;
        int64_t unused;
        if (ty_shard_variable_find(r->variable, p->ids[k], &part, &unused) < 0 || part != r->part)
            return ty_error_set(err, TY_E_DATA_VALUE, "variable \"%s\": row %" PRId64 " is not in part %d",
                                r->variable->name, p->ids[k], r->part);
        place[k] = ty_rows_find(r, p->ids[k], true);
        if (place[k] < 0)
            return ty_error_set(err, TY_E_LIMIT, "variable \"%s\": no memory for another row", r->variable->name);
    }
    return 0;
}

/* Checks all parts of a message; places of all ROWS parts one after the other, to be freed. */
static int values_check(const ty_shard *s, const void *bytes, bool has_values, int64_t **places, ty_error *err)
{
    size_t at = 0;
    ty_part p;
    ty_rows *r = NULL;
    uint64_t n = 0, done = 0;
    while (ty_parcel_next(bytes, &at, &p)) {
        if (values_check_part(s, &p, has_values, &r, err) < 0)
            return -1;
        n += p.n_ids;
    }
    *places = malloc((n + 1) * sizeof **places);
    if (*places == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %" PRIu64 " rows", n);
    at = 0;
    while (ty_parcel_next(bytes, &at, &p)) {
        r = ty_shard_part(s, p.variable, p.part);
        if (p.kind == TY_PART_ROWS && values_places(s, r, &p, *places + done, err) < 0) {
            free(*places);
            *places = NULL;
            return -1;
        }
        done += p.n_ids;
    }
    return 0;
}

/* ---- SET and PULL ---- */

int ty_shard_set(ty_shard *s, const void *bytes, ty_error *err)
{
    int64_t *places;
    size_t at = 0, done = 0;
    ty_part p;
    if (values_check(s, bytes, true, &places, err) < 0)
        return -1;
    while (ty_parcel_next(bytes, &at, &p)) {
        ty_rows *r = ty_shard_part(s, p.variable, p.part);
        size_t width = (size_t)r->variable->width;
        if (p.kind == TY_PART_DENSE)
            memcpy(p.slot ? r->slot[p.slot - 1] : r->weight, p.values, p.n_values * sizeof(float));
        for (size_t k = 0; k < p.n_ids; k++)
            memcpy(r->weight + (size_t)places[done + k] * width, p.values + k * width, width * sizeof(float));
        done += p.n_ids;
        r->version++;
    }
    free(places);
    return 0;
}

int ty_shard_pull(ty_shard *s, const void *bytes, ty_buf *answer, ty_error *err)
{
    int64_t *places;
    size_t at = 0, done = 0;
    ty_part p;
    if (values_check(s, bytes, false, &places, err) < 0)
        return -1;
    while (ty_parcel_next(bytes, &at, &p)) {
        ty_rows *r = ty_shard_part(s, p.variable, p.part);
        size_t width = (size_t)r->variable->width;
        ty_part a = {.kind = p.kind, .variable = p.variable, .part = p.part, .slot = p.slot, .version = r->version};
        if (p.kind == TY_PART_DENSE && (p.slot || p.version != r->version)) {
            a.n_values = (uint64_t)r->n * width;
            a.values = p.slot ? r->slot[p.slot - 1] : r->weight;
        }
        if (p.kind == TY_PART_ROWS)
            a.n_values = p.n_ids * width;
        float *to = ty_parcel_add(answer, &a);
        for (size_t k = 0; to && k < p.n_ids; k++)
            memcpy(to + k * width, r->weight + (size_t)places[done + k] * width, width * sizeof(float));
        done += p.n_ids;
    }
    free(places);
    return answer->failed ? ty_error_set(err, TY_E_LIMIT, "the answer would have more than %zu bytes; use more parts",
                                         TY_PARCEL_MAX_BYTES)
                          : 0;
}

/* ---- rows with duplicates ---- */

typedef struct named_row {
    int64_t place, k; /* row k of the gradient is of this place */
} named_row;

static int named_order(const void *a, const void *b)
{
    const named_row *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->k < y->k ? -1 : x->k > y->k;
}

static bool places_rise(const int64_t *place, int64_t n)
{
    for (int64_t k = 1; k < n; k++)
        if (place[k] <= place[k - 1])
            return false;
    return true;
}

/* Gradients of the same row are added up, in the order in which they came; then each row gets one step of the rule. */
static int rows_apply(ty_rows *r, const int64_t *place, const float *gradient, int64_t n, float scale, uint64_t t,
                      ty_error *err)
{
    int64_t width = r->variable->width;
    if (places_rise(place, n)) {
        for (int64_t k = 0; k < n; k++)
            ty_rows_apply(r, place[k], 1, scale, t, gradient + k * width);
        return 0;
    }
    named_row *named = malloc((size_t)n * sizeof *named);
    float *sum = malloc((size_t)width * sizeof *sum);
    if (named == NULL || sum == NULL) {
        free(named);
        free(sum);
        return ty_error_set(err, TY_E_LIMIT, "no memory for %" PRId64 " rows", n);
    }
    for (int64_t k = 0; k < n; k++)
        named[k] = (named_row){place[k], k};
    qsort(named, (size_t)n, sizeof *named, named_order);
    for (int64_t k = 0, end; k < n; k = end) {
        memcpy(sum, gradient + named[k].k * width, (size_t)width * sizeof *sum);
        for (end = k + 1; end < n && named[end].place == named[k].place; end++)
            for (int64_t i = 0; i < width; i++)
                sum[i] += gradient[named[end].k * width + i];
        ty_rows_apply(r, named[k].place, 1, scale, t, sum);
    }
    free(named);
    free(sum);
    return 0;
}

/* ---- PUSH ---- */

static void push_staleness(ty_shard *s, const ty_parcel *m)
{
    if (m->step == 0 || m->seen > s->version)
        return;
    uint64_t stale = s->version - m->seen;
    s->counts.staleness[stale < TY_SHARD_STALENESS_STEPS ? stale : TY_SHARD_STALENESS_STEPS]++;
    s->counts.staleness_sum += stale;
    if (stale > s->counts.staleness_max)
        s->counts.staleness_max = stale;
}

static int push_apply(ty_shard *s, const ty_parcel *m, const void *bytes, const int64_t *places, ty_error *err)
{
    size_t at = 0, done = 0;
    ty_part p;
    int rc = 0;
    s->version++;
    while (ty_parcel_next(bytes, &at, &p)) {
        ty_rows *r = ty_shard_part(s, p.variable, p.part);
        if (p.kind == TY_PART_DENSE)
            ty_rows_apply(r, 0, r->n, m->scale, s->version, p.values);
        else if (rows_apply(r, places + done, p.values, (int64_t)p.n_ids, m->scale, s->version, err) < 0)
            rc = -1;
        done += p.n_ids;
        r->version++;
    }
    return rc;
}

/* ---- sync: gradients are added up first ---- */

static int pending_rows(ty_shard_pending *a, const int64_t *place, const float *gradient, int64_t n, double share,
                        ty_error *err)
{
    int64_t width = a->rows->variable->width;
    if (a->n + n > a->room) {
        int64_t room = 2 * (a->n + n);
        int64_t *id = realloc(a->id, (size_t)room * sizeof *id);
        a->id = id ? id : a->id;
        float *grown = id ? realloc(a->gradient, (size_t)(room * width) * sizeof *grown) : NULL;
        if (grown == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for the gradients of %" PRId64 " rows", a->n + n);
        a->gradient = grown;
        a->room = room;
    }
    memcpy(a->id + a->n, place, (size_t)n * sizeof *a->id);
    for (int64_t i = 0; i < n * width; i++)
        a->gradient[a->n * width + i] = (float)(share * gradient[i]);
    a->n += n;
    return 0;
}

static int pending_dense(ty_rows *r, const float *gradient, double share, ty_error *err)
{
    int64_t n = r->n * r->variable->width;
    if (r->sum == NULL && (r->sum = calloc((size_t)n + 1, sizeof *r->sum)) == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a gradient of %" PRId64 " numbers", n);
    for (int64_t i = 0; i < n; i++)
        r->sum[i] += share * gradient[i];
    r->touched = true;
    return 0;
}

/* How much a push weighs: by its rows, as in the mean over the rows of all. Pushes of as many weigh 1 each. */
static double push_share(ty_shard *s, const ty_parcel *m)
{
    uint32_t rows = m->status ? m->status - 1 : 1;
    if (s->added_unit == 0)
        s->added_unit = rows;
    return rows ? (double)rows / s->added_unit : 0;
}

static int push_add(ty_shard *s, const ty_parcel *m, const void *bytes, const int64_t *places, ty_error *err)
{
    size_t at = 0, done = 0;
    ty_part p;
    double share = push_share(s, m);
    while (share > 0 && ty_parcel_next(bytes, &at, &p)) {
        ty_rows *r = ty_shard_part(s, p.variable, p.part);
        int rc = p.kind == TY_PART_DENSE
                     ? pending_dense(r, p.values, share, err)
                     : pending_rows(&s->pending[r - s->rows], places + done, p.values, (int64_t)p.n_ids, share, err);
        if (rc < 0)
            return -1;
        done += p.n_ids;
    }
    s->n_added++;
    s->added += share;
    s->added_scale = m->scale;
    return 0;
}

/* The mean is taken of sums in double, then rounded once. */
static void close_rows(ty_shard *s, ty_shard_pending *a)
{
    ty_rows *r = a->rows;
    int64_t n = r->n * r->variable->width;
    ty_error err;
    if (r->touched) {
        float *mean = malloc((size_t)n * sizeof *mean);
        for (int64_t i = 0; mean && i < n; i++)
            mean[i] = (float)(r->sum[i] / s->added);
        if (mean)
            ty_rows_apply(r, 0, r->n, s->added_scale, s->version, mean);
        free(mean);
        memset(r->sum, 0, (size_t)n * sizeof *r->sum);
    }
    for (int64_t i = 0; i < a->n * r->variable->width; i++)
        a->gradient[i] /= (float)s->added;
    if (a->n)
        rows_apply(r, a->id, a->gradient, a->n, s->added_scale, s->version, &err);
    r->version += r->touched || a->n;
    r->touched = false;
    a->n = 0;
}

void ty_shard_close_step(ty_shard *s)
{
    /* Who has left may have given this step its gradient before: it is not how many are there that counts. */
    if (s->catalogue.mode != TY_SERVER_SYNC || s->n_added == 0 ||
        ty_roll_awaited(&s->roll, s->version + 1) > s->catalogue.backup)
        return;
    s->version++;
    for (int i = 0; i < s->n_rows; i++)
        close_rows(s, &s->pending[i]);
    s->n_added = 0;
    s->added = 0;
    s->added_unit = 0;
}

static int push_sync(ty_shard *s, const ty_parcel *m, const void *bytes, const int64_t *places, uint32_t *flags,
                     ty_error *err)
{
    if (m->step <= s->version) {
        s->counts.late++;
        *flags |= TY_PARCEL_IS_LATE;
        return 0;
    }
    if (m->step != s->version + 1)
        return ty_error_set(err, TY_E_CONFIG, "a gradient of step %" PRIu64 ", while step %" PRIu64 " is not complete",
                            m->step, s->version + 1);
    if (push_add(s, m, bytes, places, err) < 0)
        return -1;
    s->counts.pushes++;
    return 0;
}

static int push_check_slots(const void *bytes, ty_error *err)
{
    size_t at = 0;
    ty_part p;
    while (ty_parcel_next(bytes, &at, &p))
        if (p.slot)
            return ty_error_set(err, TY_E_DATA, "a gradient of variable %u for a rule's slot", p.variable);
    return 0;
}

int ty_shard_push(ty_shard *s, const ty_parcel *m, const void *bytes, uint32_t *flags, ty_error *err)
{
    ty_worker *w = &s->roll.worker[m->worker];
    int64_t *places;
    if (!s->ready)
        return ty_error_set(err, TY_E_CONFIG, "a gradient for values that nobody has set so far");
    if (m->step && ty_roll_counted(w, m->step)) {
        s->counts.again++;
        *flags |= TY_PARCEL_IS_LATE;
        return 0;
    }
    if (push_check_slots(bytes, err) < 0 || values_check(s, bytes, true, &places, err) < 0)
        return -1;
    push_staleness(s, m);
    int rc;
    if (s->catalogue.mode == TY_SERVER_SYNC) {
        rc = push_sync(s, m, bytes, places, flags, err);
    } else {
        rc = push_apply(s, m, bytes, places, err);
        s->counts.pushes++;
    }
    free(places);
    if (rc < 0)
        return -1;
    if (m->step)
        ty_roll_count(w, m->step);
    ty_shard_close_step(s);
    return 0;
}
