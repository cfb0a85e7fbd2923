/* join.c - see join.h.
 *
 * Calls go up: one is tried from its place to the first, past all that touch other memory, and joins the first one on
 * the tape that has room. So the casts of a network's weights meet at its beginning, the copies of gradients where the
 * first of them is. Then they go down likewise: what is computed from one product for the end of the step waits for
 * others of its kind. What the joined kernel looks like:
 *
 *     TY_KERNEL(256) TY_NAME(const float *__restrict__ a0, float *__restrict__ a1, const float *__restrict__ a2, ...)
 *     {
 *      for (long block = TY_BLOCK; block < 12; block += TY_BLOCKS) {
 *       if (block < 8) {                                         two parts with the same text, four blocks each
 *        const long part = (block - 0) / 4, part_block = (block - 0) % 4, part_blocks = 4;
 *        const float *__restrict__ b0 = part == 0 ? a0 : a2;
 *        ... as it was, with part_block for TY_BLOCK
 *       } else { ... }
 *       TY_BARRIER();                                           where a part has one
 *      }
 *     }
 */
#include "compiler/target/cuda/join.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    JOIN_BLOCKS = 2048,     /* of a part: larger ones gain nothing */
    JOIN_POINTERS = 64,     /* of a kernel */
    JOIN_PARTS = 32,        /* of a kernel */
    JOIN_SHARED = 48 << 10, /* bytes of a block's memory */
    JOIN_COPY = 1 << 20,    /* bytes of a copy */
    JOIN_TEXT = 16 << 20,   /* bytes of a kernel */
    JOIN_COPY_ELEMENT = 4,  /* bytes that a thread copies */
};

/* ---- what depends on what ---- */

bool ty_cuda_touches(const ty_cuda_touch *a, const ty_cuda_touch *b)
{
    if (a->at.kind != b->at.kind || a->at.index != b->at.index || a->at.kind == TY_PLACE_NONE ||
        !(a->written || b->written))
        return false;
    return a->at.kind == TY_PLACE_SCRATCH ||
           (a->at.offset < b->at.offset + b->bytes && b->at.offset < a->at.offset + a->bytes);
}

static bool join_meets(const ty_cuda_item *a, const ty_cuda_item *b)
{
    for (int i = 0; i < a->n_touch; i++)
        for (int k = 0; k < b->n_touch; k++)
            if (ty_cuda_touches(&a->touch[i], &b->touch[k]))
                return true;
    return false;
}

static bool join_is_fence(const ty_cuda_call *call)
{
    return call->kind == TY_CUDA_EXCHANGE || call->kind == TY_CUDA_WAIT;
}

/* ---- parts ---- */

/* What becomes one launch, in the order in which they came. */
typedef struct join_group {
    int part[JOIN_PARTS]; /* numbers of items; the first one stays */
    int n_parts, n_pointers;
    int64_t shared_bytes;
} join_group;

static bool join_may(const ty_cuda_item *item)
{
    const ty_cuda_call *call = &item->call;
    if (call->kind == TY_CUDA_COPY)
        return call->bytes > 0 && call->bytes <= JOIN_COPY && call->bytes % JOIN_COPY_ELEMENT == 0 &&
               call->at[0].offset % JOIN_COPY_ELEMENT == 0 && call->at[1].offset % JOIN_COPY_ELEMENT == 0;
    return call->kind == TY_CUDA_LAUNCH && item->may_join && call->launch.threads == TY_CUDA_THREADS &&
           call->launch.blocks <= JOIN_BLOCKS;
}

/* Bytes of a block's memory that the text declares. Numbers have at most eight; a length that is no number leaves no
 * room for others. */
static int64_t join_shared(const ty_cuda_item *item)
{
    static const char word[] = "TY_SHARED ";
    int64_t bytes = 0;
    for (const char *at = item->text; at && (at = strstr(at, word)); at += sizeof word - 1) {
        int64_t n = 8;
        for (const char *p = at + strcspn(at, "[;"); *p == '['; p += strcspn(p, "]") + 1) {
            int64_t length = strtoll(p + 1, NULL, 10);
            n *= length > 0 ? length : JOIN_SHARED;
        }
        bytes += n;
    }
    return bytes;
}

static bool join_has_room(const join_group *g, const join_group *more)
{
    return g->n_parts + more->n_parts <= JOIN_PARTS && g->n_pointers + more->n_pointers <= JOIN_POINTERS &&
           g->shared_bytes + more->shared_bytes <= JOIN_SHARED;
}

static void join_add(join_group *g, const join_group *more)
{
    for (int i = 0; i < more->n_parts; i++)
        g->part[g->n_parts++] = more->part[i];
    g->n_pointers += more->n_pointers;
    g->shared_bytes += more->shared_bytes;
}

static const ty_cuda_touch *join_touches(const ty_cuda_item *a, const ty_cuda_item *b, ty_arena *arena)
{
    ty_cuda_touch *all = TY_NEW_ARRAY(arena, ty_cuda_touch, a->n_touch + b->n_touch);
    memcpy(all, a->touch, sizeof *all * (size_t)a->n_touch);
    memcpy(all + a->n_touch, b->touch, sizeof *all * (size_t)b->n_touch);
    return all;
}

/* The item that this one may become part of, as far away as one can be (step 1: down the tape, -1: up), or -1. */
static int join_where(const ty_cuda_item *item, int n, const join_group *group, int number, int step)
{
    int best = -1;
    for (int i = number + step; i >= 0 && i < n && !join_is_fence(&item[i].call); i += step) {
        if (item[i].is_gone)
            continue;
        if (join_meets(&item[i], &item[number]))
            break;
        if (join_may(&item[i]) && join_has_room(&group[i], &group[number]))
            best = i;
    }
    return best;
}

/* ---- text ---- */

static const char join_copy_text[] =
    "TY_KERNEL(%d) TY_NAME(unsigned *__restrict__ b0, const unsigned *__restrict__ b1)\n{\n"
    " for (int p = TY_BLOCK * %d + TY_THREAD; p < %zu; p += TY_BLOCKS * %d)\n  b0[p] = b1[p];\n}\n";

/* A copy as a kernel. */
static void join_copy(ty_cuda_item *item, ty_arena *a)
{
    ty_cuda_call *call = &item->call;
    size_t n = call->bytes / JOIN_COPY_ELEMENT;
    item->text = ty_arena_printf(a, join_copy_text, TY_CUDA_THREADS, TY_CUDA_THREADS, n, TY_CUDA_THREADS);
    call->kind = TY_CUDA_LAUNCH;
    call->bytes *= 2;
    call->launch = (ty_cuda_launch){
        .form = "flat", .threads = TY_CUDA_THREADS, .blocks = (int64_t)(n + TY_CUDA_THREADS - 1) / TY_CUDA_THREADS};
}

static const char *join_parameters(const char *text)
{
    return strstr(text, "TY_NAME(") + strlen("TY_NAME(");
}

/* From one parameter to the next one; NULL behind the last. */
static const char *join_next(const char *at)
{
    at += strcspn(at, ",)");
    return *at == ',' ? at + 2 : NULL;
}

/* `const float *__restrict__ `, of `const float *__restrict__ b0`. */
static int join_type_length(const char *at)
{
    int n = (int)strcspn(at, ",)");
    while (n > 0 && at[n - 1] != ' ')
        n--;
    return n;
}

static void join_print_parameters(const ty_cuda_item *item, const join_group *g, ty_buf *out)
{
    int n = 0;
    for (int i = 0; i < g->n_parts; i++)
        for (const char *at = join_parameters(item[g->part[i]].text); at; at = join_next(at), n++)
            ty_buf_addf(out, "%s%.*sa%d", n ? ", " : "", join_type_length(at), at, n);
}

/* Each of a part's pointers, for the m parts that have this text; the first one's are a<first> and the next ones. */
static void join_print_pointers(const ty_cuda_item *part, int first, int m, ty_buf *out)
{
    int i = 0;
    for (const char *at = join_parameters(part->text); at; at = join_next(at), i++) {
        ty_buf_addf(out, "  %.*s = ", (int)strcspn(at, ",)"), at);
        for (int k = 0; k < m; k++)
            if (k + 1 < m)
                ty_buf_addf(out, "part == %d ? a%d : ", k, first + k * part->call.n_at + i);
            else
                ty_buf_addf(out, "a%d;\n", first + k * part->call.n_at + i);
    }
}

/* What is between the braces, with other words for the numbers of blocks. */
static void join_print_body(const char *text, ty_buf *out)
{
    static const char word[] = "TY_BLOCK", opening[] = ")\n{\n";
    const char *at = strstr(text, opening) + sizeof opening - 1, *end = text + strlen(text) - strlen("}\n");
    for (const char *next; (next = strstr(at, word)) && next < end; at = next + sizeof word - 1) {
        ty_buf_add(out, at, (size_t)(next - at));
        ty_buf_adds(out, next[sizeof word - 1] == 'S' ? "part_blocks" : "part_block");
        next += next[sizeof word - 1] == 'S';
    }
    ty_buf_add(out, at, (size_t)(end - at));
}

/* m parts with the same text. */
static void join_print_parts(const ty_cuda_item *part, int64_t first_block, int first_pointer, int m, ty_buf *out)
{
    int64_t each = part->call.launch.blocks;
    ty_buf_addf(out, "  %sif (block < %" PRId64 ") {\n", first_block ? "} else " : "", first_block + m * each);
    ty_buf_addf(out,
                "  const long part = (block - %" PRId64 ") / %" PRId64 ", part_block = (block - %" PRId64
                ") %% %" PRId64 ", part_blocks = %" PRId64 ";\n  (void)part, (void)part_block, (void)part_blocks;\n",
                first_block, each, first_block, each, each);
    join_print_pointers(part, first_pointer, m, out);
    join_print_body(part->text, out);
}

/* Its blocks have a multiprocessor to themselves, or for two, only if those of all parts together are few: where some
 * parts have many, the others must not make them fewer at a time. */
static void join_find_room(const ty_cuda_item *item, const join_group *g, ty_cuda_launch *launch)
{
    launch->is_lone = 2 * launch->blocks * TY_CUDA_THREADS <= TY_CUDA_FILL;
    launch->room = launch->blocks * TY_CUDA_THREADS <= TY_CUDA_FILL ? TY_CUDA_TWO : TY_CUDA_THREE;
    for (int i = 0; i < g->n_parts; i++)
        if (item[g->part[i]].call.launch.room == TY_CUDA_TWO)
            launch->room = TY_CUDA_TWO;
}

/* How many parts from the i-th on have the same text. */
static int join_equal(const ty_cuda_item *item, const join_group *g, int i)
{
    int m = 1;
    while (i + m < g->n_parts && strcmp(item[g->part[i]].text, item[g->part[i + m]].text) == 0)
        m++;
    return m;
}

static void join_print(const ty_cuda_item *item, const join_group *g, ty_cuda_launch *launch, ty_buf *out)
{
    int64_t block = 0;
    *launch = (ty_cuda_launch){.form = "joined", .threads = TY_CUDA_THREADS};
    for (int i = 0; i < g->n_parts; i++) {
        launch->blocks += item[g->part[i]].call.launch.blocks;
        launch->has_barriers |= item[g->part[i]].call.launch.has_barriers;
    }
    join_find_room(item, g, launch);
    ty_buf_addf(out, "%s(%d) TY_NAME(", ty_cuda_word(launch->room, launch->is_lone), TY_CUDA_THREADS);
    join_print_parameters(item, g, out);
    ty_buf_addf(out, ")\n{\n for (long block = TY_BLOCK; block < %" PRId64 "; block += TY_BLOCKS) {\n", launch->blocks);
    for (int i = 0, m, pointer = 0; i < g->n_parts; i += m) {
        const ty_cuda_item *part = &item[g->part[i]];
        m = join_equal(item, g, i);
        join_print_parts(part, block, pointer, m, out);
        block += m * part->call.launch.blocks;
        pointer += m * part->call.n_at;
    }
    ty_buf_addf(out, "  }\n%s }\n}\n", launch->has_barriers ? "  TY_BARRIER();\n" : "");
}

/* ---- groups ---- */

/* Equal texts side by side, in the order in which they first come. */
static void join_sort(const ty_cuda_item *item, join_group *g)
{
    for (int i = 1; i < g->n_parts; i++)
        for (int k = i; k < g->n_parts; k++) {
            int part = g->part[k];
            if (strcmp(item[part].text, item[g->part[i - 1]].text) != 0)
                continue;
            memmove(&g->part[i + 1], &g->part[i], sizeof *g->part * (size_t)(k - i));
            g->part[i] = part;
            break;
        }
}

static void join_launch(ty_cuda_item *item, join_group *g, ty_buf *text, ty_arena *a)
{
    ty_cuda_call *call = &item[g->part[0]].call, whole = {.kind = TY_CUDA_LAUNCH};
    int number = g->part[0], *also = TY_NEW_ARRAY(a, int, g->n_parts);
    ty_place *at = TY_NEW_ARRAY(a, ty_place, g->n_pointers);
    whole.unit = call->unit;
    whole.origin = call->origin;
    for (int i = 0; i < g->n_parts; i++) {
        if (item[g->part[i]].call.kind == TY_CUDA_COPY)
            join_copy(&item[g->part[i]], a);
        if (i > 0)
            also[whole.n_also++] = item[g->part[i]].call.unit;
    }
    join_sort(item, g);
    for (int i = 0; i < g->n_parts; i++) {
        const ty_cuda_call *part = &item[g->part[i]].call;
        memcpy(at + whole.n_at, part->at, sizeof *at * (size_t)part->n_at);
        whole.n_at += part->n_at;
        whole.bytes += part->bytes;
    }
    ty_buf_clear(text);
    join_print(item, g, &whole.launch, text);
    whole.also = also;
    whole.at = at;
    item[number].call = whole;
    item[number].text = ty_arena_printf(a, "%.*s", (int)text->len, text->data);
}

static void join_one(ty_cuda_item *item, int n, join_group *group, int number, int step, ty_arena *a)
{
    ty_cuda_item *one = &item[number];
    int to = !one->is_gone && join_may(one) ? join_where(item, n, group, number, step) : -1;
    if (to < 0)
        return;
    join_add(&group[to], &group[number]);
    item[to].touch = join_touches(&item[to], one, a);
    item[to].n_touch += one->n_touch;
    one->is_gone = true;
}

bool ty_cuda_join(ty_cuda_item *item, int n, ty_arena *a)
{
    join_group *group = TY_NEW_ARRAY(a, join_group, n + 1);
    ty_buf text;
    for (int i = 0; i < n; i++)
        group[i] = (join_group){{i}, 1, item[i].call.n_at, join_shared(&item[i])};
    for (int i = 0; i < n; i++)
        join_one(item, n, group, i, -1, a);
    for (int i = n - 1; i >= 0; i--)
        join_one(item, n, group, i, 1, a);
    ty_buf_init(&text, JOIN_TEXT);
    for (int i = 0; i < n; i++)
        if (!item[i].is_gone && group[i].n_parts > 1)
            join_launch(item, &group[i], &text, a);
    bool whole = !text.failed;
    ty_buf_fini(&text);
    return whole;
}
