/* prepare.c - the library calls of all tapes, ready to run. See inside.h.
 *
 * Among algorithms the library's first proposal is taken for good once the time for choosing is over (tune.h). So those
 * calls come first which most of a step is spent in. Calls of one description are timed once and share the choice, so
 * what counts is the arithmetic of all of them together. */
#include "compiler/apart.h"
#include "compiler/ops/work.h"
#include "compiler/target/cuda/inside.h"

#include <stdlib.h>
#include <string.h>

typedef struct prepared_call {
    cuda_program *program;
    int call;         /* of its tape */
    int place;        /* among all */
    const char *text; /* what the library is told */
    double flop;      /* of all calls of this text */
} prepared_call;

static int by_text(const void *a, const void *b)
{
    const prepared_call *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : x->place - y->place;
}

/* Most arithmetic first; else as they are run. */
static int by_flop(const void *a, const void *b)
{
    const prepared_call *x = a, *y = b;
    return x->flop != y->flop ? (x->flop < y->flop) - (x->flop > y->flop) : x->place - y->place;
}

static const char *text_of(ty_cuda *c, uint32_t node)
{
    ty_buf text;
    ty_buf_init(&text, 4096);
    ty_cuda_library_print(c->g, node, &text);
    const char *copy = ty_arena_strdup(&c->arena, text.data);
    ty_buf_fini(&text);
    return copy;
}

/* All library calls, as they are run. */
static int list_calls(ty_cuda *c, prepared_call *list)
{
    int n = 0;
    for (int p = 0; p < c->n_plans; p++)
        for (int i = 0; i < c->program[p].tape.n_calls; i++) {
            uint32_t node = c->program[p].tape.call[i].node;
            if (c->program[p].tape.call[i].kind == TY_CUDA_LIBRARY)
                list[n] = (prepared_call){&c->program[p], i, n, text_of(c, node), ty_node_flop(c->g, node)}, n++;
        }
    return n;
}

static void order_calls(prepared_call *list, int n)
{
    qsort(list, (size_t)n, sizeof *list, by_text);
    for (int from = 0, to; from < n; from = to) {
        double flop = 0;
        for (to = from; to < n && strcmp(list[to].text, list[from].text) == 0; to++)
            flop += list[to].flop;
        for (int i = from; i < to; i++)
            list[i].flop = flop;
    }
    qsort(list, (size_t)n, sizeof *list, by_flop);
}

static int prepare_call(ty_cuda *c, const prepared_call *one, ty_error *err)
{
    const ty_cuda_call *call = &one->program->tape.call[one->call];
    CUdeviceptr *at = TY_NEW_ARRAY(&c->arena, CUdeviceptr, call->n_at);
    for (int i = 0; i < call->n_at; i++)
        at[i] = ty_cuda_memory_at(&c->memory, &call->at[i]);
    if (ty_cuda_library_prepare(&c->libraries, c->g, call->node, at, &one->program->library[one->call], err) == 0)
        return 0;
    ty_apart_refused(c->g, call->node, err);
    return ty_error_wrap(err, "%s", call->origin);
}

/* All calls that are refused with what follows them are found at once: the first one's error has the kinds of all. */
static int prepare_all(ty_cuda *c, const prepared_call *list, int n, ty_error *err)
{
    uint64_t refused = 0;
    for (int i = 0; i < n; i++) {
        ty_error why = {0};
        if (prepare_call(c, &list[i], &why) == 0)
            continue;
        if (err && (refused == 0 || why.which == 0))
            *err = why;
        if (why.which == 0)
            return -1;
        refused |= why.which;
    }
    if (refused && err)
        err->which = refused;
    return refused ? -1 : 0;
}

int ty_cuda_prepare(ty_cuda *c, ty_error *err)
{
    int most = 0;
    for (int p = 0; p < c->n_plans; p++) {
        c->program[p].library = TY_NEW_ARRAY(&c->arena, ty_cuda_library_call, c->program[p].tape.n_calls);
        most += c->program[p].tape.n_calls;
    }
    prepared_call *list = TY_NEW_ARRAY(&c->arena, prepared_call, most);
    int n = list_calls(c, list);
    order_calls(list, n);
    return prepare_all(c, list, n, err);
}
