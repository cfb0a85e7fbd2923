/* client.c - batches as messages, and back. See client.h; what sends them is post.c. */
#include "dist/server/client.h"

#include "base/json.h"
#include "dist/server/keep.h"
#include "dist/server/post.h"
#include "dist/server/split.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENT_LEAVE_MS = 3000, CLIENT_TURN_MS = 200 };

struct ty_client {
    ty_post *post;
    const ty_catalogue *catalogue;
    bool (*stopping)(void);
    uint64_t *seen;    /* [shards] version of what was taken last */
    uint64_t *version; /* [all parts] of what the caller has of dense parts */
    int *first;        /* [variables] */
    int64_t bytes;
};

struct ty_client_ticket {
    ty_client_batch batch;
    ty_split *split;        /* [n_rows] */
    ty_question **question; /* [shards], NULL: nothing was asked there */
};

/* ---- one question to each shard ---- */

static int ask_free(ty_client *c, ty_question **q, int rc)
{
    for (int k = 0; k < c->catalogue->shards; k++)
        ty_post_free(c->post, q[k]);
    free(q);
    return rc;
}

/* Of questions that were given up, the server may wait for ever before it answers some. */
static int ask_drop(ty_client *c, ty_question **q)
{
    for (int k = 0; k < c->catalogue->shards; k++)
        ty_post_drop(c->post, q[k]);
    free(q);
    return -1;
}

/* Sends messages[k] to shard k, if it has a head; all are taken over. */
static ty_question **ask_each(ty_client *c, ty_buf *messages, bool sequenced, ty_error *err)
{
    int n = c->catalogue->shards, failed = 0;
    ty_question **q = calloc((size_t)n, sizeof(ty_question *));
    for (int k = 0; k < n; k++) {
        if (q == NULL || failed || messages[k].len == 0)
            ty_buf_fini(&messages[k]);
        else {
            c->bytes += (int64_t)messages[k].len;
            failed = (q[k] = ty_post_ask(c->post, k, &messages[k], sequenced, err)) == NULL;
        }
    }
    free(messages);
    if (q && failed) {
        ask_free(c, q, -1);
        return NULL;
    }
    if (q == NULL)
        ty_error_set(err, TY_E_LIMIT, "no memory for questions");
    return q;
}

static ty_buf *messages_new(const ty_client *c, const ty_parcel *head, ty_error *err)
{
    ty_buf *m = calloc((size_t)c->catalogue->shards, sizeof *m);
    if (m == NULL)
        ty_error_set(err, TY_E_LIMIT, "no memory for messages");
    for (int k = 0; m && k < c->catalogue->shards; k++) {
        ty_buf_init(&m[k], TY_PARCEL_MAX_BYTES);
        ty_parcel_begin(&m[k], head);
        ty_parcel_head(&m[k])->seen = c->seen[k];
    }
    return m;
}

static void messages_drop(const ty_client *c, ty_buf *m)
{
    for (int k = 0; k < c->catalogue->shards; k++)
        ty_buf_fini(&m[k]);
    free(m);
}

/* Those without parts are not sent. */
static void messages_prune(const ty_client *c, ty_buf *m)
{
    for (int k = 0; k < c->catalogue->shards; k++)
        if (ty_parcel_head(&m[k])->n_parts == 0)
            ty_buf_fini(&m[k]);
}

/* For all of them: what one says is not to come out of a later call. The first failure counts. */
static int ask_wait(ty_client *c, ty_question **q, int64_t timeout_ms, ty_error *err)
{
    int rc = 0;
    ty_error other;
    for (int k = 0; k < c->catalogue->shards; k++)
        if (q[k] && ty_post_wait(c->post, q[k], timeout_ms, rc < 0 ? &other : err) < 0)
            rc = -1;
    return rc;
}

/* The same to all shards (only: that one; -1: all), with up to two texts, and waits. */
static int ask_all(ty_client *c, const ty_parcel *head, const char *const text[2], int only, bool sequenced,
                   int64_t timeout_ms, ty_question ***out, ty_error *err)
{
    ty_buf *m = messages_new(c, head, err);
    if (m == NULL)
        return -1;
    for (int k = 0; k < c->catalogue->shards; k++) {
        for (int i = 0; i < 2 && text[i]; i++)
            ty_parcel_add(&m[k], &(ty_part){.kind = TY_PART_TEXT, .n_bytes = strlen(text[i]), .bytes = text[i]});
        if (only >= 0 && k != only)
            ty_buf_fini(&m[k]);
    }
    ty_question **q = ask_each(c, m, sequenced, err);
    if (q == NULL)
        return -1;
    int rc = ask_wait(c, q, timeout_ms, err);
    if (rc == 0 && out) {
        *out = q;
        return 0;
    }
    return rc < 0 ? ask_drop(c, q) : ask_free(c, q, rc);
}

/* ---- batches ---- */

static int batch_check(const ty_client *c, const ty_client_batch *b, ty_error *err)
{
    for (int i = 0; i < b->n_dense + b->n_rows; i++) {
        int v = i < b->n_dense ? b->dense[i].variable : b->rows[i - b->n_dense].variable;
        if (v < 0 || v >= c->catalogue->n_variables)
            return ty_error_set(err, TY_E_RANGE, "variable %d of %d", v, c->catalogue->n_variables);
        if (i < b->n_dense && c->catalogue->variable[v].hashed)
            return ty_error_set(err, TY_E_CONFIG, "variable \"%s\" is a hashed table: it has no whole",
                                c->catalogue->variable[v].name);
    }
    return 0;
}

/* Copies the rows of a part out of the whole variable, or back into it. */
static void dense_copy(const ty_shard_variable *v, int part, float *whole, float *rows, bool out)
{
    int64_t n = ty_shard_variable_rows(v, part);
    size_t width = (size_t)v->width;
    int64_t run = v->mod && v->parts > 1 ? 1 : n;
    for (int64_t i = 0; i < n; i += run) {
        float *at = whole + (size_t)ty_partition_row(v->rows, v->parts, v->mod, part, i) * width;
        float *row = rows + (size_t)i * width;
        memcpy(out ? row : at, out ? at : row, (size_t)run * width * sizeof(float));
    }
}

static void add_dense(ty_client *c, ty_buf *m, const ty_client_dense *d, bool with_values)
{
    const ty_shard_variable *v = &c->catalogue->variable[d->variable];
    for (int p = 0; p < v->parts; p++) {
        ty_part part = {
            .kind = TY_PART_DENSE, .variable = (uint32_t)d->variable, .part = (uint32_t)p, .slot = (uint32_t)d->slot};
        if (with_values)
            part.n_values = (uint64_t)(ty_shard_variable_rows(v, p) * v->width);
        else
            part.version = d->keep ? c->version[c->first[d->variable] + p] : 0;
        float *to = ty_parcel_add(&m[v->shard[p]], &part);
        if (with_values && to)
            dense_copy(v, p, d->values, to, true);
    }
}

/* Gradients of equal ids are added up, in the order of the batch. */
static int rows_sum(const ty_client_rows *r, const ty_split *s, int64_t width, float **out, ty_error *err)
{
    float *sum = calloc((size_t)(s->n * width) + 1, sizeof *sum);
    if (sum == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %" PRId64 " rows", s->n);
    for (int64_t k = 0; k < r->n; k++)
        for (int64_t i = 0; i < width; i++)
            sum[s->where[k] * width + i] += r->rows[k * width + i];
    *out = sum;
    return 0;
}

static void add_rows(ty_client *c, ty_buf *m, int variable, const ty_split *s, const float *values)
{
    const ty_shard_variable *v = &c->catalogue->variable[variable];
    for (int p = 0; p < v->parts; p++) {
        int64_t n = s->begin[p + 1] - s->begin[p];
        ty_part part = {.kind = TY_PART_ROWS,
                        .variable = (uint32_t)variable,
                        .part = (uint32_t)p,
                        .n_ids = (uint64_t)n,
                        .ids = s->id + s->begin[p],
                        .n_values = values ? (uint64_t)(n * v->width) : 0,
                        .values = values ? values + s->begin[p] * v->width : NULL};
        if (n)
            ty_parcel_add(&m[v->shard[p]], &part);
    }
}

static int add_batch_values(ty_client *c, ty_buf *m, const ty_client_batch *b, ty_error *err)
{
    for (int i = 0; i < b->n_dense; i++)
        add_dense(c, m, &b->dense[i], true);
    for (int i = 0; i < b->n_rows; i++) {
        const ty_client_rows *r = &b->rows[i];
        const ty_shard_variable *v = &c->catalogue->variable[r->variable];
        ty_split split;
        float *sum = NULL;
        if (ty_split_init(&split, v, r->ids, r->n, err) < 0)
            return -1;
        int rc = rows_sum(r, &split, v->width, &sum, err);
        if (rc == 0)
            add_rows(c, m, r->variable, &split, sum);
        free(sum);
        ty_split_fini(&split);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* ---- pull ---- */

static void ticket_free(ty_client *c, ty_client_ticket *t)
{
    for (int i = 0; t->split && i < t->batch.n_rows; i++)
        ty_split_fini(&t->split[i]);
    free(t->split);
    if (t->question)
        ask_free(c, t->question, 0);
    free(t);
}

int ty_client_pull(ty_client *c, const ty_client_batch *b, uint64_t step, ty_client_ticket **out, ty_error *err)
{
    if (batch_check(c, b, err) < 0)
        return -1;
    ty_client_ticket *t = calloc(1, sizeof *t);
    ty_buf *m = t ? messages_new(c, &(ty_parcel){.kind = TY_PARCEL_PULL, .step = step}, err) : NULL;
    if (m == NULL) {
        free(t);
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pull");
    }
    t->batch = *b;
    t->split = calloc((size_t)b->n_rows + 1, sizeof *t->split);
    for (int i = 0; i < b->n_dense; i++)
        add_dense(c, m, &b->dense[i], false);
    int rc = t->split ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for a pull");
    for (int i = 0; i < b->n_rows && rc == 0; i++) {
        const ty_client_rows *r = &b->rows[i];
        rc = ty_split_init(&t->split[i], &c->catalogue->variable[r->variable], r->ids, r->n, err);
        if (rc == 0)
            add_rows(c, m, r->variable, &t->split[i], NULL);
    }
    if (rc < 0) {
        messages_drop(c, m);
    } else {
        if (c->catalogue->mode != TY_SERVER_SYNC) /* there each shard says which step it is at */
            messages_prune(c, m);
        t->question = ask_each(c, m, true, err);
    }
    if (t->question == NULL) {
        ticket_free(c, t);
        return -1;
    }
    *out = t;
    return 0;
}

typedef struct taker { /* where the next part of each shard's answer is */
    ty_client *c;
    const ty_client_ticket *t;
    size_t *at; /* [shards] */
} taker;

static int take_part(taker *k, int variable, int p, int kind, uint64_t rows, ty_part *out, ty_error *err)
{
    const ty_shard_variable *v = &k->c->catalogue->variable[variable];
    const ty_question *q = k->t->question[v->shard[p]];
    bool right = ty_parcel_next(q->answer, &k->at[v->shard[p]], out) && out->kind == (uint32_t)kind &&
                 out->variable == (uint32_t)variable && out->part == (uint32_t)p &&
                 (out->n_values == rows * (uint64_t)v->width || (kind == TY_PART_DENSE && out->n_values == 0));
    return right ? 0
                 : ty_error_set(err, TY_E_DATA, "shard %d answered something else than part %d of \"%s\"", v->shard[p],
                                p, v->name);
}

static int take_dense(taker *k, const ty_client_dense *d, ty_error *err)
{
    const ty_shard_variable *v = &k->c->catalogue->variable[d->variable];
    for (int p = 0; p < v->parts; p++) {
        ty_part part;
        if (take_part(k, d->variable, p, TY_PART_DENSE, (uint64_t)ty_shard_variable_rows(v, p), &part, err) < 0)
            return -1;
        uint64_t *have = &k->c->version[k->c->first[d->variable] + p];
        if (part.n_values == 0 && (!d->keep || part.version != *have))
            return ty_error_set(err, TY_E_DATA, "shard %d sent nothing of \"%s\"", v->shard[p], v->name);
        if (part.n_values)
            dense_copy(v, p, d->values, (float *)(uintptr_t)part.values, false);
        if (d->slot == 0)
            *have = part.version;
    }
    return 0;
}

static int take_rows(taker *k, const ty_client_rows *r, const ty_split *s, ty_error *err)
{
    const ty_shard_variable *v = &k->c->catalogue->variable[r->variable];
    size_t width = (size_t)v->width;
    const float **values = calloc((size_t)s->n + 1, sizeof *values);
    if (values == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %" PRId64 " rows", s->n);
    for (int p = 0; p < v->parts; p++) {
        ty_part part;
        int64_t n = s->begin[p + 1] - s->begin[p];
        if (n == 0)
            continue;
        if (take_part(k, r->variable, p, TY_PART_ROWS, (uint64_t)n, &part, err) < 0) {
            free(values);
            return -1;
        }
        for (int64_t i = 0; i < n; i++)
            values[s->begin[p] + i] = part.values + (size_t)i * width;
    }
    for (int64_t i = 0; i < r->n; i++)
        memcpy(r->rows + (size_t)i * width, values[s->where[i]], width * sizeof(float));
    free(values);
    return 0;
}

int ty_client_take(ty_client *c, ty_client_ticket *t, ty_error *err)
{
    taker k = {c, t, calloc((size_t)c->catalogue->shards, sizeof(size_t))};
    int rc = k.at ? ask_wait(c, t->question, 0, err) : ty_error_set(err, TY_E_LIMIT, "no memory for a pull");
    for (int i = 0; i < t->batch.n_dense && rc == 0; i++)
        rc = take_dense(&k, &t->batch.dense[i], err);
    for (int i = 0; i < t->batch.n_rows && rc == 0; i++)
        rc = take_rows(&k, &t->batch.rows[i], &t->split[i], err);
    for (int s = 0; s < c->catalogue->shards && rc == 0; s++)
        if (t->question[s]) {
            c->seen[s] = ((const ty_parcel *)t->question[s]->answer)->seen;
            c->bytes += (int64_t)t->question[s]->n_bytes;
        }
    free(k.at);
    ticket_free(c, t);
    return rc;
}

/* ---- set, push, clock ---- */

/* In sync mode a shard counts pushes, so that each gets one, be it empty. */
static int client_send(ty_client *c, const ty_parcel *head, const ty_client_batch *b, bool to_all, bool wait,
                       ty_error *err)
{
    ty_buf *m = batch_check(c, b, err) < 0 ? NULL : messages_new(c, head, err);
    if (m == NULL)
        return -1;
    if (add_batch_values(c, m, b, err) < 0) {
        messages_drop(c, m);
        return -1;
    }
    if (!to_all)
        messages_prune(c, m);
    ty_question **q = ask_each(c, m, true, err);
    if (q == NULL)
        return -1;
    return ask_free(c, q, wait ? ask_wait(c, q, 0, err) : 0);
}

int ty_client_set(ty_client *c, const ty_client_batch *values, ty_error *err)
{
    return client_send(c, &(ty_parcel){.kind = TY_PARCEL_SET}, values, false, true, err);
}

int ty_client_push_rows(ty_client *c, const ty_client_batch *gradients, uint32_t rows, uint64_t step, float scale,
                        ty_error *err)
{
    if (ty_post_settle(c->post, false, err) < 0)
        return -1;
    ty_parcel head = {.kind = TY_PARCEL_PUSH, .step = step, .scale = scale, .status = rows + 1};
    return client_send(c, &head, gradients, c->catalogue->mode == TY_SERVER_SYNC, false, err);
}

int ty_client_push(ty_client *c, const ty_client_batch *gradients, uint64_t step, float scale, ty_error *err)
{
    return ty_client_push_rows(c, gradients, 1, step, scale, err);
}

int ty_client_flush(ty_client *c, ty_error *err)
{
    return ty_post_settle(c->post, true, err);
}

int ty_client_clock(ty_client *c, uint64_t step, ty_error *err)
{
    static const char *const no_text[2];
    if (ty_client_flush(c, err) < 0)
        return -1;
    return ask_all(c, &(ty_parcel){.kind = TY_PARCEL_CLOCK, .step = step}, no_text, 0, true, 0, NULL, err);
}

/* ---- readiness ---- */

static int client_hello(ty_client *c, ty_error *err)
{
    ty_buf text;
    ty_buf_init(&text, TY_CATALOGUE_MAX_BYTES);
    ty_catalogue_write(c->catalogue, &text);
    const char *const texts[2] = {text.data, NULL};
    int rc = ask_all(c, &(ty_parcel){.kind = TY_PARCEL_HELLO}, texts, -1, false, 0, NULL, err);
    ty_buf_fini(&text);
    return rc;
}

bool ty_client_ready(ty_client *c)
{
    return ty_post_ready(c->post);
}

int ty_client_start(ty_client *c, uint64_t version, ty_error *err)
{
    static const char *const no_text[2];
    return ask_all(c, &(ty_parcel){.kind = TY_PARCEL_READY, .step = version}, no_text, -1, false, 0, NULL, err);
}

/* A pull of nothing is answered when values are there. */
int ty_client_wait_ready(ty_client *c, int64_t timeout_ms, ty_error *err)
{
    static const char *const no_text[2];
    if (ask_all(c, &(ty_parcel){.kind = TY_PARCEL_PULL}, no_text, -1, true, timeout_ms, NULL, err) < 0)
        return ty_error_wrap(err, "waiting for first values");
    return 0;
}

/* ---- saves and numbers ---- */

static void answer_text(const ty_question *q, char *out, size_t room)
{
    size_t at = 0, n = 0;
    ty_part p;
    if (ty_parcel_next(q->answer, &at, &p) && p.kind == TY_PART_TEXT) {
        n = p.n_bytes < room - 1 ? p.n_bytes : room - 1;
        memcpy(out, p.bytes, n);
    }
    out[n] = '\0';
}

int ty_client_save(ty_client *c, const char *tag, ty_error *err)
{
    int n = c->catalogue->shards;
    const char *texts[2] = {tag, NULL};
    ty_question **q;
    if (ty_client_flush(c, err) < 0 ||
        ask_all(c, &(ty_parcel){.kind = TY_PARCEL_SAVE}, texts, -1, true, 0, &q, err) < 0)
        return ty_error_wrap(err, "save %s", tag);
    char(*row)[TY_KEEP_ROW_BYTES] = calloc((size_t)n, sizeof *row);
    const char **rows = calloc((size_t)n, sizeof(char *));
    ty_buf manifest;
    ty_buf_init(&manifest, (size_t)n * TY_KEEP_ROW_BYTES + 4096);
    for (int k = 0; row && rows && k < n; k++) {
        answer_text(q[k], row[k], sizeof row[k]);
        rows[k] = row[k];
    }
    ask_free(c, q, 0);
    int rc = row && rows ? ty_keep_manifest(tag, rows, n, &manifest) : -1;
    texts[1] = manifest.data;
    rc = rc < 0 ? ty_error_set(err, TY_E_LIMIT, "no memory for a manifest")
                : ask_all(c, &(ty_parcel){.kind = TY_PARCEL_COMMIT}, texts, 0, true, 0, NULL, err);
    ty_buf_fini(&manifest);
    free(row);
    free(rows);
    return rc < 0 ? ty_error_wrap(err, "save %s", tag) : 0;
}

int ty_client_load(ty_client *c, const char *tag, ty_error *err)
{
    const char *const texts[2] = {tag, NULL};
    return ask_all(c, &(ty_parcel){.kind = TY_PARCEL_LOAD}, texts, -1, true, 0, NULL, err);
}

static int64_t stat_number(const ty_doc *d, const char *key)
{
    const ty_doc *value = ty_doc_find(d, key);
    int64_t number = 0;
    ty_error ignored;
    return value && ty_doc_int(value, &number, &ignored) == 0 ? number : 0;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int stat_add(ty_client_stat *s, const char *text, double *staled, ty_error *err)
{
    ty_arena arena;
    ty_doc *d;
    double mean = 0;
    ty_error ignored;
    ty_arena_init(&arena);
    int rc = ty_json_parse(&arena, "STAT", text, strlen(text), NULL, &d, err);
    if (rc == 0) {
        double n = (double)stat_number(d, "staled");
        const ty_doc *m = ty_doc_find(d, "staleness_mean");
        if (m && ty_doc_float(m, &mean, &ignored) == 0)
            s->staleness_mean += mean * n;
        *staled += n;
        s->version = larger(s->version, stat_number(d, "version"));
        s->rows += stat_number(d, "rows");
        s->pushes += stat_number(d, "pushes");
        s->late += stat_number(d, "late");
        s->again += stat_number(d, "again");
        s->bad += stat_number(d, "bad");
        s->repeated += stat_number(d, "repeated");
        s->early += stat_number(d, "early");
        s->strange += stat_number(d, "strange");
        s->replayed += stat_number(d, "replayed");
        s->active = (int)larger(s->active, stat_number(d, "active"));
        s->staleness_p99 = larger(s->staleness_p99, stat_number(d, "staleness_p99"));
        s->staleness_max = larger(s->staleness_max, stat_number(d, "staleness_max"));
    }
    ty_arena_fini(&arena);
    return rc;
}

int ty_client_stats(ty_client *c, ty_client_stat *out, ty_error *err)
{
    static const char *const no_text[2];
    ty_question **q;
    double staled = 0;
    char text[4096];
    int rc = ask_all(c, &(ty_parcel){.kind = TY_PARCEL_STAT}, no_text, -1, false, 0, &q, err);
    if (rc < 0)
        return -1;
    *out = (ty_client_stat){0};
    for (int k = 0; k < c->catalogue->shards && rc == 0; k++) {
        answer_text(q[k], text, sizeof text);
        rc = stat_add(out, text, &staled, err);
    }
    out->staleness_mean = staled > 0 ? out->staleness_mean / staled : 0;
    return ask_free(c, q, rc);
}

int ty_client_leave_for(ty_client *c, int who, ty_error *err)
{
    static const char *const no_text[2];
    ty_parcel head = {.kind = TY_PARCEL_LEAVE, .step = (uint64_t)who + 1};
    return ask_all(c, &head, no_text, -1, false, 0, NULL, err);
}

uint64_t ty_client_version(ty_client *c, bool furthest)
{
    uint64_t version = c->seen[0];
    for (int k = 1; k < c->catalogue->shards; k++)
        if (furthest ? c->seen[k] > version : c->seen[k] < version)
            version = c->seen[k];
    return version;
}

/* Looks now and then whether it shall stop. */
static int alone_wait(ty_client *c, ty_question *q, ty_error *err)
{
    while (ty_post_wait(c->post, q, CLIENT_TURN_MS, err) < 0) {
        if (q->told)
            return -1;
        if (c->stopping && c->stopping())
            return ty_error_set(err, TY_E_STOPPED, "stopped while other workers were waited for");
        *err = (ty_error){0};
    }
    return 0;
}

int ty_client_agree(ty_client *c, uint64_t question, uint32_t mine, uint32_t *least, uint32_t *most, ty_error *err)
{
    ty_parcel head = {.kind = TY_PARCEL_WORD, .step = question, .status = mine};
    ty_buf *m = messages_new(c, &head, err);
    for (int k = 1; m && k < c->catalogue->shards; k++)
        ty_buf_fini(&m[k]);
    ty_question **q = m ? ask_each(c, m, true, err) : NULL;
    if (q == NULL)
        return -1;
    if (alone_wait(c, q[0], err) < 0)
        return ask_drop(c, q);
    uint64_t words = ((const ty_parcel *)q[0]->answer)->step;
    *least = (uint32_t)words;
    *most = (uint32_t)(words >> 32);
    return ask_free(c, q, 0);
}

int ty_client_alone(ty_client *c, bool came, int64_t timeout_ms, ty_error *err)
{
    static const char *const no_text[2];
    ty_parcel head = {.kind = TY_PARCEL_ALONE, .step = came};
    if (ty_client_flush(c, err) < 0)
        return -1;
    if (timeout_ms > 0)
        return ask_all(c, &head, no_text, -1, true, timeout_ms, NULL, err);
    ty_buf *m = messages_new(c, &head, err);
    ty_question **q = m ? ask_each(c, m, true, err) : NULL;
    int rc = q ? 0 : -1;
    for (int k = 0; rc == 0 && k < c->catalogue->shards; k++)
        rc = alone_wait(c, q[k], err);
    if (q == NULL)
        return -1;
    return rc < 0 ? ask_drop(c, q) : ask_free(c, q, rc);
}

int ty_client_leave(ty_client *c, int64_t timeout_ms, ty_error *err)
{
    static const char *const no_text[2];
    if (ty_client_flush(c, err) < 0)
        return -1;
    return ask_all(c, &(ty_parcel){.kind = TY_PARCEL_LEAVE}, no_text, -1, false, timeout_ms, NULL, err);
}

int64_t ty_client_bytes(const ty_client *c)
{
    return c->bytes;
}

int ty_client_restarts(ty_client *c)
{
    return ty_post_restarts(c->post);
}

/* ---- opening and closing ---- */

int ty_client_open(const ty_client_options *o, ty_client **out, ty_error *err)
{
    const ty_catalogue *cat = o->catalogue;
    int parts = 0;
    ty_client *c = calloc(1, sizeof *c);
    if (c == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a client");
    c->catalogue = cat;
    c->stopping = o->stopping;
    c->first = calloc((size_t)cat->n_variables, sizeof *c->first);
    for (int v = 0; c->first && v < cat->n_variables; v++) {
        c->first[v] = parts;
        parts += cat->variable[v].parts;
    }
    c->seen = calloc((size_t)cat->shards, sizeof *c->seen);
    c->version = calloc((size_t)parts + 1, sizeof *c->version);
    int rc = c->first && c->seen && c->version ? ty_post_open(o, &c->post, err)
                                               : ty_error_set(err, TY_E_LIMIT, "no memory for a client");
    if (rc < 0 || client_hello(c, err) < 0) {
        ty_client_close(c, err->code == TY_E_STOPPED);
        return ty_error_wrap(err, "parameter servers");
    }
    *out = c;
    return 0;
}

void ty_client_close(ty_client *c, bool leave)
{
    ty_error ignored;
    if (c == NULL)
        return;
    if (c->post && leave)
        ty_client_leave(c, CLIENT_LEAVE_MS, &ignored);
    if (c->post)
        ty_post_close(c->post);
    free(c->first);
    free(c->seen);
    free(c->version);
    free(c);
}
