#include "dist/api/agree.h"

#include "dist/api/carry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS_BYTES (64u << 20) /* of all ranks together */

/* What words say together. First of each kind: an index, or -1. */
typedef struct verdict {
    int n_joined, n_leaving;
    int calling, other, fault, leaving; /* other: the first that calls something else than `calling` */
} verdict;

static int lose(ty_channel *c, ty_error *err)
{
    c->lost = *err;
    return TRAINYARD_E_LOST;
}

/* What whoever looks at a rank that waits here is told: the first line of what it calls. */
static int exchange_words(ty_channel *c, const ty_word *mine, const ty_call *call, const ty_buf *text, ty_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text->data, "\n"), text->data);
    ty_collective gather = {.kind = TY_ALL_GATHER,
                            .name = name[0] ? name : ty_carry_text(call->kind),
                            .dtype = TY_U8,
                            .in = mine,
                            .out = c->words,
                            .n = sizeof *mine};
    return ty_comm_run(c->comm, &gather, err) < 0 ? lose(c, err) : TRAINYARD_OK;
}

/* Who joined last: of several in one round the highest number. */
static void note_joined(ty_channel *c)
{
    for (int r = 0; r < c->size; r++) {
        bool joined = c->words[r].state == TY_WORD_JOINED;
        if (joined && !c->joined[r])
            c->last_joined = r;
        c->joined[r] = joined;
    }
}

static verdict judge(const ty_channel *c)
{
    verdict v = {.calling = -1, .other = -1, .fault = -1, .leaving = -1};
    for (int r = 0; r < c->size; r++) {
        const ty_word *w = &c->words[r];
        v.n_joined += w->state == TY_WORD_JOINED;
        v.n_leaving += w->state == TY_WORD_LEAVES;
        if (w->state == TY_WORD_LEAVES && v.leaving < 0)
            v.leaving = r;
        if (w->state == TY_WORD_FAULT && v.fault < 0)
            v.fault = r;
        if (w->state == TY_WORD_CALLS && v.calling < 0)
            v.calling = r;
        else if (w->state == TY_WORD_CALLS && v.other < 0 && w->form != c->words[v.calling].form)
            v.other = r;
    }
    return v;
}

static bool told_to_stop(const ty_channel *c)
{
    for (int r = 0; r < c->size; r++)
        if (c->words[r].stop)
            return true;
    return false;
}

/* ---- texts ---- */

/* All texts, one after the other, in *all (free it); counts[r] bytes each. */
static int exchange_texts(ty_channel *c, const ty_buf *mine, char **all, ty_error *err)
{
    int64_t total = 0;
    for (int r = 0; r < c->size; r++) {
        c->counts[r] = c->words[r].text_bytes;
        if (c->counts[r] < 0 || c->counts[r] > TY_CALL_TEXT_BYTES)
            c->counts[r] = 0;
        total += c->counts[r];
    }
    *all = malloc((size_t)total + 1);
    if (!*all || total > TEXTS_BYTES) {
        ty_fault(err, TRAINYARD_E_MEMORY, "no memory for %lld bytes of texts of calls", (long long)total);
        return lose(c, err);
    }
    ty_collective gather = {.kind = TY_ALL_GATHER,
                            .name = "texts of calls",
                            .dtype = TY_U8,
                            .in = mine->data,
                            .out = *all,
                            .n = (int64_t)mine->len,
                            .counts = c->counts};
    return ty_comm_run(c->comm, &gather, err) < 0 ? lose(c, err) : TRAINYARD_OK;
}

static void find_text(const ty_channel *c, const char *all, int rank, const char **text, int64_t *n)
{
    for (int r = 0; r < rank; r++)
        all += c->counts[r];
    *text = all;
    *n = c->counts[rank];
}

/* The line that begins at *text; moves behind it. */
static int64_t take_line(const char **text, int64_t *n)
{
    const char *end = *n > 0 ? memchr(*text, '\n', (size_t)*n) : NULL;
    int64_t length = end ? end - *text : *n;
    *text += end ? length + 1 : length;
    *n -= end ? length + 1 : length;
    return length;
}

/* Names both ranks and the first line in which their texts differ; behind it the call's own first line. */
static void tell_difference(const ty_channel *c, const char *all, int a, int b, ty_error *err)
{
    const char *text_a, *text_b, *head;
    int64_t left_a, left_b, n_head, n_a = 0, n_b = 0;
    find_text(c, all, a, &text_a, &left_a);
    find_text(c, all, b, &text_b, &left_b);
    head = text_a;
    n_head = -1;
    const char *line_a = text_a, *line_b = text_b;
    while (left_a > 0 || left_b > 0) {
        line_a = text_a, line_b = text_b;
        n_a = take_line(&text_a, &left_a);
        n_b = take_line(&text_b, &left_b);
        if (n_a != n_b || memcmp(line_a, line_b, (size_t)n_a) != 0)
            break;
        if (n_head < 0)
            n_head = n_a;
    }
    if (n_head >= 0)
        ty_fault(err, TRAINYARD_E_MISMATCH, "ranks ask for different things in %.*s: rank %d: %.*s; rank %d: %.*s",
                 (int)n_head, head, c->ranks[a], (int)n_a, line_a, c->ranks[b], (int)n_b, line_b);
    else
        ty_fault(err, TRAINYARD_E_MISMATCH, "ranks ask for different things: rank %d: %.*s; rank %d: %.*s", c->ranks[a],
                 (int)n_a, line_a, c->ranks[b], (int)n_b, line_b);
    ty_error_help(err, "all ranks make the same calls in the same order, with the same names, shapes, types and roots");
}

static void tell_fault(const ty_channel *c, const char *all, int rank, ty_error *err)
{
    const char *text;
    int64_t n;
    find_text(c, all, rank, &text, &n);
    ty_fault(err, TRAINYARD_E_ARGUMENT, "rank %d: %.*s", c->ranks[rank], (int)n, text);
}

/* Texts tell it: why the call failed. */
static int explain(ty_channel *c, const verdict *v, const ty_buf *mine, ty_error *err)
{
    char *all = NULL;
    int code = exchange_texts(c, mine, &all, err);
    if (code == TRAINYARD_OK && v->fault >= 0) {
        tell_fault(c, all, v->fault, err);
        code = TRAINYARD_E_ARGUMENT;
    } else if (code == TRAINYARD_OK) {
        tell_difference(c, all, v->calling, v->other, err);
        code = TRAINYARD_E_MISMATCH;
    }
    free(all);
    return code;
}

/* ---- one round ---- */

enum { ROUND_OVER = 1 }; /* all have joined, or all leave */

static int tell_left(const ty_channel *c, const ty_call *call, const verdict *v, ty_error *err)
{
    if (call->kind == TY_CALL_LEAVE)
        return v->n_leaving == c->size ? ROUND_OVER : TRAINYARD_OK;
    return ty_fault(err, TRAINYARD_E_LOST, "rank %d has shut down while this rank calls %s%s%s", c->ranks[v->leaving],
                    ty_carry_text(call->kind), call->name[0] ? " " : "", call->name);
}

/* A call that joined ranks cannot take part in. */
static int check_joined(const ty_channel *c, const verdict *v, ty_error *err)
{
    const ty_word *plan = &c->words[v->calling];
    if (v->n_joined == 0)
        return TRAINYARD_OK;
    bool lost_root = plan->kind == TY_CALL_BROADCAST && c->joined[plan->root];
    if (!lost_root && ty_carry_may_lack((ty_call_kind)plan->kind))
        return TRAINYARD_OK;
    int who = lost_root ? plan->root : c->last_joined;
    return ty_fault(err, TRAINYARD_E_MISMATCH, "%s%s: rank %d has joined", ty_carry_text((ty_call_kind)plan->kind),
                    lost_root ? " from a root that has no more data" : " needs all ranks", c->ranks[who]);
}

static int carry_round(ty_channel *c, ty_call *call, const ty_buf *text, ty_error *err)
{
    verdict v = judge(c);
    bool calls = call->kind != TY_CALL_JOIN && call->kind != TY_CALL_LEAVE;
    if (v.n_leaving > 0)
        return tell_left(c, call, &v, err);
    if (v.n_joined == c->size)
        return ROUND_OVER;
    ty_error ignored;
    ty_error *told = calls ? err : &ignored; /* failures of a call are not those of a rank that has joined */
    int code = v.fault >= 0 || v.other >= 0 ? explain(c, &v, text, told) : check_joined(c, &v, told);
    if (code == TRAINYARD_OK)
        code = ty_carry(c, &c->words[v.calling], calls ? call : NULL, told);
    if (c->lost.code != TY_E_NONE) {
        *err = c->lost;
        return TRAINYARD_E_LOST;
    }
    return calls ? code : TRAINYARD_OK;
}

static int run_rounds(ty_channel *c, ty_call *call, ty_buf *text)
{
    bool calls = call->kind != TY_CALL_JOIN && call->kind != TY_CALL_LEAVE;
    int code;
    do {
        ty_word mine;
        ty_buf_clear(text);
        ty_call_word(call, c->told && atomic_load(c->told) != 0, text, &mine);
        code = exchange_words(c, &mine, call, text, &call->err);
        if (code != TRAINYARD_OK)
            return code;
        note_joined(c);
        call->stop |= told_to_stop(c);
        code = carry_round(c, call, text, &call->err);
    } while (!calls && code == TRAINYARD_OK);
    if (code == ROUND_OVER) {
        call->answer = c->ranks[c->last_joined];
        memset(c->joined, 0, (size_t)c->size * sizeof *c->joined);
    }
    return code == ROUND_OVER ? TRAINYARD_OK : code;
}

int ty_agree_and_carry(ty_channel *c, ty_call *call)
{
    if (c->lost.code != TY_E_NONE) {
        call->err = c->lost;
        return TRAINYARD_E_LOST;
    }
    if (call->kind == TY_CALL_BUCKET)
        return ty_carry(c, NULL, call, &call->err);
    ty_buf text;
    ty_buf_init(&text, TY_CALL_TEXT_BYTES);
    int code = run_rounds(c, call, &text);
    ty_buf_fini(&text);
    return code;
}
