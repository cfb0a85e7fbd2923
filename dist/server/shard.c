/* shard.c - messages in, answers out. See shard.h; what happens to values is in values.c, saves are in keep.c. */
#include "dist/server/shard.h"

#include "base/json.h"
#include "base/log.h"
#include "dist/server/keep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int ty_shard_init(ty_shard *s, const ty_shard_options *options, ty_error *err)
{
    *s = (ty_shard){.options = *options};
    ty_arena_init(&s->arena);
    if (options->number < 0 || options->number >= TY_CATALOGUE_MAX_SHARDS)
        return ty_error_set(err, TY_E_RANGE, "shard %d: there are at most %d", options->number,
                            TY_CATALOGUE_MAX_SHARDS);
    return 0;
}

static void shard_forget(ty_shard *s)
{
    for (int i = 0; i < s->n_rows; i++) {
        ty_rows_fini(&s->rows[i]);
        free(s->pending[i].id);
        free(s->pending[i].gradient);
    }
    free(s->rows);
    free(s->at);
    free(s->first);
    free(s->pending);
    ty_roll_fini(&s->roll);
    s->rows = NULL;
    s->at = NULL;
    s->first = NULL;
    s->pending = NULL;
    s->n_rows = 0;
    ty_arena_fini(&s->arena);
    ty_arena_init(&s->arena);
    s->known = false;
}

void ty_shard_fini(ty_shard *s)
{
    shard_forget(s);
    for (int i = 0; i < s->n_waiting; i++)
        free(s->waiting[i].bytes);
    free(s->waiting);
    ty_arena_fini(&s->arena);
    *s = (ty_shard){0};
}

ty_rows *ty_shard_part(const ty_shard *s, uint32_t variable, uint32_t part)
{
    if (variable >= (uint32_t)s->catalogue.n_variables || part >= (uint32_t)s->catalogue.variable[variable].parts)
        return NULL;
    return s->at[s->first[variable] + (int)part];
}

/* ---- answers ---- */

static ty_parcel answer_head(const ty_shard *s, const ty_parcel *to, uint32_t flags)
{
    return (ty_parcel){.kind = TY_PARCEL_ANSWER,
                       .job = s->options.job,
                       .shard = (uint32_t)s->options.number,
                       .worker = to->worker,
                       .incarnation = s->options.incarnation,
                       .sequence = to->sequence,
                       .oldest = to->oldest,
                       .step = to->step,
                       .seen = s->version,
                       .flags = flags | (s->ready ? TY_PARCEL_IS_READY : 0)};
}

/* `to`: the incarnation of the worker's process that asked. */
static void answer_send(ty_shard *s, int64_t peer, uint64_t to, ty_buf *b)
{
    size_t n;
    ty_error err;
    if (ty_parcel_end(b, &err) < 0 || ty_seal(b->data, b->len, s->options.key, to, &err) < 0) {
        ty_log_error("server", "%s", err.message);
        ty_buf_fini(b);
        return;
    }
    char *bytes = ty_buf_detach(b, &n);
    s->options.answer(s->options.ctx, peer, bytes, n);
}

static void answer_text(ty_shard *s, const ty_parcel *to, int64_t peer, uint32_t flags, uint32_t status,
                        const char *text)
{
    ty_buf b;
    ty_buf_init(&b, TY_PARCEL_MAX_BYTES);
    ty_parcel head = answer_head(s, to, flags);
    head.status = status;
    ty_parcel_begin(&b, &head);
    if (text)
        ty_parcel_add(&b, &(ty_part){.kind = TY_PART_TEXT, .n_bytes = strlen(text), .bytes = text});
    answer_send(s, peer, to->incarnation, &b);
}

static void answer_error(ty_shard *s, const ty_parcel *to, int64_t peer, uint32_t flags, const ty_error *err)
{
    answer_text(s, to, peer, flags, (uint32_t)err->code, err->message);
}

/* ---- the catalogue ---- */

static int shard_lay_out(ty_shard *s, ty_error *err)
{
    const ty_catalogue *c = &s->catalogue;
    int parts = 0, ours = 0;
    s->first = calloc((size_t)c->n_variables, sizeof *s->first);
    for (int v = 0; v < c->n_variables; v++) {
        s->first[v] = parts;
        parts += c->variable[v].parts;
        for (int p = 0; p < c->variable[v].parts; p++)
            ours += c->variable[v].shard[p] == s->options.number;
    }
    s->at = calloc((size_t)parts, sizeof *s->at);
    s->rows = calloc((size_t)ours + 1, sizeof *s->rows);
    s->pending = calloc((size_t)ours + 1, sizeof *s->pending);
    if (!s->at || !s->rows || !s->pending)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %d parts", parts);
    for (int v = 0; v < c->n_variables; v++)
        for (int p = 0; p < c->variable[v].parts; p++) {
            if (c->variable[v].shard[p] != s->options.number)
                continue;
            ty_rows *rows = &s->rows[s->n_rows];
            if (ty_rows_init(rows, c, v, p, err) < 0)
                return -1;
            rows->version = s->options.incarnation << 16; /* never one that an earlier process has shown */
            s->at[s->first[v] + p] = rows;
            s->pending[s->n_rows++].rows = rows;
        }
    return ty_roll_init(&s->roll, c->workers, err);
}

/* The newest save, if it was asked for and there is one. */
static int shard_resume(ty_shard *s, ty_error *err)
{
    char tag[TY_KEEP_TAG_BYTES];
    if (!s->options.resume || s->options.folder == NULL)
        return 0;
    int found = ty_keep_newest(s->options.folder, tag, err);
    if (found <= 0)
        return found;
    if (ty_keep_load(s, tag, err) < 0)
        return -1;
    ty_log_info("server", "shard %d goes on from save %s, at version %" PRIu64, s->options.number, tag, s->version);
    return 0;
}

int ty_shard_define(ty_shard *s, const char *text, size_t n_bytes, ty_error *err)
{
    ty_arena arena;
    ty_catalogue given;
    ty_arena_init(&arena);
    int rc = ty_catalogue_read(text, n_bytes, &arena, &given, err);
    if (rc == 0 && s->options.number >= given.shards)
        rc = ty_error_set(err, TY_E_CONFIG, "this is shard %d, the catalogue has %d", s->options.number, given.shards);
    if (rc == 0 && s->known)
        rc = ty_catalogue_compare(&s->catalogue, &given, true, err);
    if (rc < 0 || s->known) {
        ty_arena_fini(&arena);
        return rc;
    }
    ty_arena_fini(&s->arena);
    s->arena = arena;
    s->catalogue = given;
    s->known = true;
    if (shard_lay_out(s, err) < 0 || shard_resume(s, err) < 0) {
        shard_forget(s);
        return -1;
    }
    return 0;
}

/* ---- waiting ---- */

static bool shard_may_answer(const ty_shard *s, const ty_parcel *m)
{
    uint32_t least, most;
    if (m->kind == TY_PARCEL_PULL)
        return s->ready && (s->catalogue.mode != TY_SERVER_SYNC || s->version >= m->step);
    if (m->kind == TY_PARCEL_ALONE)
        return ty_roll_alone(&s->roll, m->worker, m->step == 1);
    if (m->kind == TY_PARCEL_WORD)
        return ty_roll_words(&s->roll, m->step, &least, &most);
    uint64_t behind = (uint64_t)s->catalogue.staleness;
    return s->catalogue.mode != TY_SERVER_BOUNDED || m->step <= behind || ty_roll_slowest(&s->roll) >= m->step - behind;
}

static void shard_wait(ty_shard *s, const ty_parcel *m, void *bytes, size_t n_bytes, int64_t peer)
{
    ty_shard_waiting w = {m->worker, m->incarnation, m->sequence, peer, bytes, n_bytes};
    for (int i = 0; i < s->n_waiting; i++)
        if (s->waiting[i].worker == m->worker && s->waiting[i].sequence == m->sequence) {
            free(s->waiting[i].bytes);
            s->waiting[i] = w;
            return;
        }
    if (s->n_waiting == s->waiting_room) {
        int room = s->waiting_room ? 2 * s->waiting_room : 16;
        ty_shard_waiting *grown = realloc(s->waiting, (size_t)room * sizeof *grown);
        if (grown == NULL || room > 4 * TY_CATALOGUE_MAX_WORKERS) { /* it will ask again */
            s->waiting = grown ? grown : s->waiting;
            free(bytes);
            return;
        }
        s->waiting = grown;
        s->waiting_room = room;
    }
    s->waiting[s->n_waiting++] = w;
}

static void answer_words(ty_shard *s, const ty_parcel *m, int64_t peer)
{
    uint32_t least, most;
    ty_buf b;
    ty_buf_init(&b, TY_PARCEL_MAX_BYTES);
    ty_roll_words(&s->roll, m->step, &least, &most);
    ty_parcel head = answer_head(s, m, 0);
    head.step = (uint64_t)most << 32 | least;
    ty_parcel_begin(&b, &head);
    answer_send(s, peer, m->incarnation, &b);
}

static void shard_answer_values(ty_shard *s, const ty_parcel *m, const void *bytes, int64_t peer)
{
    ty_error err = {0};
    ty_buf b;
    if (m->kind == TY_PARCEL_WORD) {
        answer_words(s, m, peer);
        return;
    }
    if (m->kind != TY_PARCEL_PULL) {
        answer_text(s, m, peer, 0, 0, NULL);
        return;
    }
    ty_buf_init(&b, TY_PARCEL_MAX_BYTES);
    ty_parcel head = answer_head(s, m, 0);
    ty_parcel_begin(&b, &head);
    if (ty_shard_pull(s, bytes, &b, &err) < 0) {
        ty_buf_fini(&b);
        answer_error(s, m, peer, 0, &err);
        return;
    }
    answer_send(s, peer, m->incarnation, &b);
}

/* Answers what need not wait any more. */
static void shard_wake(ty_shard *s)
{
    for (int i = 0; i < s->n_waiting;) {
        ty_shard_waiting w = s->waiting[i];
        const ty_parcel *m = w.bytes;
        bool gone = s->roll.worker[w.worker].incarnation != w.incarnation;
        if (!gone && !shard_may_answer(s, m)) {
            i++;
            continue;
        }
        s->waiting[i] = s->waiting[--s->n_waiting];
        if (!gone)
            shard_answer_values(s, m, w.bytes, w.peer);
        free(w.bytes);
    }
}

/* ---- questions ---- */

/* PULL, CLOCK, ALONE and WORD. True if the bytes are kept. */
static bool shard_ask(ty_shard *s, const ty_parcel *m, void *bytes, size_t n_bytes, int64_t peer)
{
    ty_worker *w = &s->roll.worker[m->worker];
    if (m->kind == TY_PARCEL_WORD && ty_roll_word(w, m->step, m->status))
        shard_wake(s);
    if (m->kind == TY_PARCEL_CLOCK && m->step > w->clock) {
        w->clock = m->step;
        shard_wake(s);
    }
    if (shard_may_answer(s, m)) {
        shard_answer_values(s, m, bytes, peer);
        return false;
    }
    answer_text(s, m, peer, TY_PARCEL_IS_WAITING | (s->ready ? 0 : TY_PARCEL_WANTS_VALUES), 0, NULL);
    shard_wait(s, m, bytes, n_bytes, peer);
    return true;
}

static void part_text(const ty_part *p, char *out, size_t room)
{
    size_t n = p->n_bytes < room - 1 ? p->n_bytes : room - 1;
    memcpy(out, p->bytes, n);
    out[n] = '\0';
}

/* SAVE, LOAD, COMMIT: a tag, and for COMMIT the manifest. */
static int shard_keep(ty_shard *s, const ty_parcel *m, const void *bytes, char *row, size_t room, ty_error *err)
{
    char tag[TY_KEEP_TAG_BYTES];
    size_t at = 0;
    ty_part p, text = {0};
    if (!ty_parcel_next(bytes, &at, &p) || p.kind != TY_PART_TEXT)
        return ty_error_set(err, TY_E_DATA, "%s: expected a tag", ty_parcel_text(m->kind));
    part_text(&p, tag, sizeof tag);
    if (m->kind == TY_PARCEL_COMMIT && (!ty_parcel_next(bytes, &at, &text) || text.kind != TY_PART_TEXT))
        return ty_error_set(err, TY_E_DATA, "COMMIT: expected a manifest");
    if (s->options.folder == NULL)
        return ty_error_set(err, TY_E_CONFIG, "this server has no folder for saves");
    if (m->kind == TY_PARCEL_SAVE)
        return ty_keep_save(s, tag, row, room, err);
    if (m->kind == TY_PARCEL_LOAD)
        return ty_keep_load(s, tag, err);
    return ty_keep_commit(s->options.folder, tag, text.bytes, text.n_bytes, err);
}

static uint64_t staleness_p99(const ty_shard_counts *c)
{
    uint64_t n = 0, seen = 0;
    for (int i = 0; i <= TY_SHARD_STALENESS_STEPS; i++)
        n += c->staleness[i];
    for (int i = 0; i < TY_SHARD_STALENESS_STEPS; i++) {
        seen += c->staleness[i];
        if (n && seen * 100 >= n * 99)
            return (uint64_t)i;
    }
    return c->staleness_max;
}

static void shard_stat(ty_shard *s, const ty_parcel *m, int64_t peer)
{
    const ty_shard_counts *c = &s->counts;
    int64_t rows = 0;
    uint64_t staled = 0;
    for (int i = 0; i < s->n_rows; i++)
        rows += s->rows[i].n;
    for (int i = 0; i <= TY_SHARD_STALENESS_STEPS; i++)
        staled += c->staleness[i];
    ty_buf text;
    ty_json_writer w;
    ty_buf_init(&text, 1 << 16);
    ty_json_writer_init(&w, &text, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "shard", s->options.number);
    ty_json_put_int(&w, "version", (int64_t)s->version);
    ty_json_put_int(&w, "rows", rows);
    ty_json_put_int(&w, "active", ty_roll_active(&s->roll));
    ty_json_put_int(&w, "pushes", (int64_t)c->pushes);
    ty_json_put_int(&w, "late", (int64_t)c->late);
    ty_json_put_int(&w, "again", (int64_t)c->again);
    ty_json_put_int(&w, "bad", (int64_t)c->bad);
    ty_json_put_int(&w, "repeated", (int64_t)s->roll.repeated);
    ty_json_put_int(&w, "early", (int64_t)s->roll.early);
    ty_json_put_int(&w, "refused", (int64_t)s->roll.refused);
    ty_json_put_int(&w, "strange", (int64_t)c->strange);
    ty_json_put_int(&w, "replayed", (int64_t)c->replayed);
    ty_json_put_int(&w, "staled", (int64_t)staled);
    ty_json_put_float(&w, "staleness_mean", staled ? (double)c->staleness_sum / (double)staled : 0);
    ty_json_put_int(&w, "staleness_p99", (int64_t)staleness_p99(c));
    ty_json_put_int(&w, "staleness_max", (int64_t)c->staleness_max);
    ty_json_close(&w);
    answer_text(s, m, peer, 0, 0, text.data);
    ty_buf_fini(&text);
}

static void shard_leave(ty_shard *s, const ty_parcel *m, int64_t peer)
{
    uint64_t who = m->step ? m->step - 1 : m->worker;
    if (who < (uint64_t)s->roll.n) {
        s->roll.worker[who].left = true;
        s->roll.worker[m->worker].incarnation = m->incarnation;
    }
    answer_text(s, m, peer, 0, 0, NULL);
    ty_shard_close_step(s);
    shard_wake(s);
}

/* A question whose turn it is. True if the bytes are kept. */
static bool shard_do(ty_shard *s, const ty_parcel *m, void *bytes, size_t n_bytes, int64_t peer)
{
    ty_error err = {0};
    char row[TY_KEEP_ROW_BYTES] = "";
    uint32_t flags = 0;
    int rc = 0;
    switch (m->kind) {
    case TY_PARCEL_BEAT:
        return false;
    case TY_PARCEL_HELLO:
        break;
    case TY_PARCEL_STAT:
        shard_stat(s, m, peer);
        return false;
    case TY_PARCEL_LEAVE:
        shard_leave(s, m, peer);
        return false;
    case TY_PARCEL_READY:
        if (!s->ready && m->step > s->version)
            s->version = m->step;
        s->ready = true;
        shard_wake(s);
        break;
    case TY_PARCEL_SET:
        rc = s->ready ? 0 : ty_shard_set(s, bytes, &err);
        break;
    case TY_PARCEL_PUSH:
        rc = ty_shard_push(s, m, bytes, &flags, &err);
        break;
    case TY_PARCEL_PULL:
    case TY_PARCEL_CLOCK:
    case TY_PARCEL_ALONE:
    case TY_PARCEL_WORD:
        ty_roll_done(&s->roll, m->worker, m->sequence, 0);
        return shard_ask(s, m, bytes, n_bytes, peer);
    default:
        rc = shard_keep(s, m, bytes, row, sizeof row, &err);
    }
    if (m->sequence)
        ty_roll_done(&s->roll, m->worker, m->sequence, rc < 0 ? (uint32_t)err.code : 0);
    if (rc < 0)
        answer_error(s, m, peer, flags, &err);
    else
        answer_text(s, m, peer, flags, 0, row[0] ? row : NULL);
    if (m->kind == TY_PARCEL_PUSH || m->kind == TY_PARCEL_LOAD)
        shard_wake(s);
    return false;
}

/* One that was done before and whose answer was lost. */
static bool shard_again(ty_shard *s, const ty_parcel *m, void *bytes, size_t n_bytes, int64_t peer)
{
    if (m->kind == TY_PARCEL_PULL || m->kind == TY_PARCEL_CLOCK || m->kind == TY_PARCEL_ALONE ||
        m->kind == TY_PARCEL_WORD)
        return shard_ask(s, m, bytes, n_bytes, peer);
    uint32_t status = ty_roll_status(&s->roll, m->worker, m->sequence);
    answer_text(s, m, peer, 0, status, status ? ty_error_meaning((ty_code)status) : NULL);
    return false;
}

/* What comes before everything else. False: answered. */
static bool shard_admit(ty_shard *s, const ty_parcel *m, const void *bytes, int64_t peer, ty_error *err)
{
    size_t at = 0;
    ty_part p;
    if (m->job != s->options.job || m->shard != (uint32_t)s->options.number || m->kind == TY_PARCEL_ANSWER) {
        ty_error_set(err, TY_E_CONFIG,
                     "this is shard %d of job %016" PRIx64 ", the message is for shard %u of %016" PRIx64,
                     s->options.number, s->options.job, m->shard, m->job);
        s->counts.bad++;
        answer_error(s, m, peer, 0, err);
        return false;
    }
    if (m->kind == TY_PARCEL_HELLO && (!ty_parcel_next(bytes, &at, &p) || p.kind != TY_PART_TEXT ||
                                       ty_shard_define(s, p.bytes, p.n_bytes, err) < 0)) {
        if (err->code == TY_E_NONE)
            ty_error_set(err, TY_E_DATA, "HELLO without a catalogue");
        answer_error(s, m, peer, 0, err);
        return false;
    }
    if (!s->known) {
        answer_text(s, m, peer, TY_PARCEL_WANTS_HELLO, 0, NULL);
        return false;
    }
    if (m->worker >= (uint32_t)s->roll.n) {
        ty_error_set(err, TY_E_CONFIG, "worker %u: the catalogue has %d", m->worker, s->roll.n);
        answer_error(s, m, peer, 0, err);
        return false;
    }
    return true;
}

/* True if the bytes are kept. */
static bool shard_turn(ty_shard *s, const ty_parcel *m, void *bytes, size_t n_bytes, int64_t peer)
{
    ty_error err = {0};
    switch (ty_roll_take(&s->roll, m, bytes, n_bytes, peer, s->now_ms)) {
    case TY_TURN_NOW:
        return shard_do(s, m, bytes, n_bytes, peer);
    case TY_TURN_AGAIN:
        return shard_again(s, m, bytes, n_bytes, peer);
    case TY_TURN_HELD:
        return true;
    case TY_TURN_REPLACED:
        ty_error_set(&err, TY_E_STOPPED, "worker %u was started again since: this process is not it any more",
                     m->worker);
        answer_error(s, m, peer, 0, &err);
        return false;
    case TY_TURN_DROP:
        break;
    }
    return false;
}

/* Who cannot prove the key gets no answer; who has it and does not know this process gets its number. */
static bool shard_trusts(ty_shard *s, void *bytes, size_t n_bytes, int64_t peer)
{
    ty_parcel m = {0};
    memcpy(&m, bytes, n_bytes < sizeof m ? n_bytes : sizeof m);
    if (!ty_seal_holds(bytes, n_bytes, s->options.key, s->options.incarnation)) {
        if (n_bytes >= sizeof m && m.kind != TY_PARCEL_ANSWER && ty_seal_holds(bytes, n_bytes, s->options.key, 0))
            answer_text(s, &(ty_parcel){.worker = m.worker, .incarnation = m.incarnation}, peer, TY_PARCEL_IS_NUMBER, 0,
                        NULL);
        else if (s->counts.strange++ == 0)
            ty_log_warning("server", "shard %d: dropped a message that does not prove the job's secret",
                           s->options.number);
        return false;
    }
    if (s->options.key == NULL || !s->known || m.worker >= (uint32_t)s->roll.n ||
        m.incarnation < s->roll.worker[m.worker].incarnation ||
        ty_seal_is_new(&s->roll.worker[m.worker].window, m.incarnation, m.counter))
        return true;
    if (s->counts.replayed++ == 0)
        ty_log_warning("server", "shard %d: dropped a message of worker %u that had come before", s->options.number,
                       m.worker);
    return false;
}

void ty_shard_take(ty_shard *s, void *bytes, size_t n_bytes, int64_t peer, int64_t now_ms)
{
    ty_parcel m;
    ty_error err = {0};
    s->now_ms = now_ms;
    if (!shard_trusts(s, bytes, n_bytes, peer)) {
        free(bytes);
        return;
    }
    if (ty_parcel_read(bytes, n_bytes, &m, &err) < 0) {
        if (s->counts.bad++ == 0)
            ty_log_warning("server", "dropped what is no message: %s", err.message);
        free(bytes);
        return;
    }
    if (!shard_admit(s, &m, bytes, peer, &err)) {
        free(bytes);
        return;
    }
    if (!shard_turn(s, &m, bytes, n_bytes, peer))
        free(bytes);
    ty_held held;
    while (ty_roll_next(&s->roll, m.worker, &held)) {
        ty_parcel next = *(const ty_parcel *)held.bytes;
        if (!shard_do(s, &next, held.bytes, held.n_bytes, held.peer))
            free(held.bytes);
    }
}

void ty_shard_tick(ty_shard *s, int64_t now_ms)
{
    s->now_ms = now_ms;
    if (!s->known)
        return;
    int gone = ty_roll_silence(&s->roll, now_ms, s->options.silence_ms);
    if (gone == 0)
        return;
    ty_log_warning("server", "shard %d: %d worker%s said nothing for %.1f s and %s waited for no more",
                   s->options.number, gone, gone == 1 ? "" : "s", (double)s->options.silence_ms / 1000,
                   gone == 1 ? "is" : "are");
    ty_shard_close_step(s);
    shard_wake(s);
}

bool ty_shard_deserted(const ty_shard *s)
{
    return !s->known || ty_roll_active(&s->roll) == 0;
}

bool ty_shard_finished(const ty_shard *s)
{
    return s->known && ty_roll_left(&s->roll) == s->catalogue.workers;
}
