/* ahead_stream.c - streams that a kernel asks for before their turn. See ahead.h.
 *
 *     for (long j = 0; j < 1536l; j += 64) {
 *       { const long i2 = j + 512l; TY_ASK4(1, &b3[1536l * i1 + i2]); }
 *       ...
 *       #pragma omp simd
 *       for (long k = 0; k < 64; k++) { const long i2 = j + k; ...
 *
 * What lies behind the end of a row is as a rule the next row's begin; asking for what is no memory cannot fail. A run
 * of columns ends before its row does, and what lies behind is another thread's, or another piece's turn: there the
 * place is taken into the next row.
 *
 * On two cores of an Emerald Rapids the kernels of a ResNet-50's step take 0.84 of the time without, those that sum
 * over rows 0.5 to 0.7; a small network's 0.85. Sums of columns that go on with the next row take 0.68 of the time of
 * those that ask for what lies behind (BERT, GPT-2).
 */
#include "compiler/target/cpu/ahead.h"

#include "compiler/ops/op.h"

#define STREAM_LINE   64
#define STREAM_BUFFER (INT64_C(256) << 10) /* bytes of a buffer: smaller ones stay in a cache */
#define STREAM_KERNEL ((size_t)512 << 10)  /* bytes that a kernel moves: a smaller one's lie in a cache as a rule */

/* How far ahead, in bytes. Where each element costs arithmetic, a GELU's gradient, memory need not be asked for as
 * early, and takes a tenth longer with the larger distance; other kernels take a twentieth less. */
#define STREAM_FAR    4096
#define STREAM_NEAR   2048
#define STREAM_WEIGHT 12 /* of an element's arithmetic, an addition being 1 (ops.def) */

typedef struct stream {
    uint32_t buffer;
    ty_ix addr;
    bool written;
} stream;

enum { STREAM_MAX = 16, STREAM_MOST = 8 /* bytes of an element */ };

typedef struct streams {
    stream s[STREAM_MAX];
    int n;
} streams;

static long stream_distance(const ty_kernel *k, int stage, int var)
{
    int weight = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (k->instr[i].kop == TY_K_OP && k->instr[i].stage == stage && k->instr[i].vars >> var & 1)
            weight += ty_op_row_of(k->instr[i].op)->weight;
    return weight >= STREAM_WEIGHT ? STREAM_NEAR : STREAM_FAR;
}

/* Behind a short row lies the next one. */
static bool stream_goes_on(const ty_kernel *k, ty_ix addr, int var, long each, long distance)
{
    const ty_ix_node *node = ty_ix_at(&k->ix, addr);
    bool next = k->n_order == 1 || k->extent[var] * each > distance;
    for (int i = 0; i < node->n_terms; i++)
        next |= node->term[i].coef == k->extent[var];
    return next;
}

/* Neighbours along `var` are neighbours in memory, and memory names no place. */
static bool stream_is(const ty_kernel *k, uint32_t buffer, ty_ix addr, int var, long distance)
{
    bool inside = false;
    long each = (long)ty_dtype_bytes(k->buffer[buffer].dtype);
    return k->buffer[buffer].span_elems * each >= STREAM_BUFFER && !ty_ix_at(&k->ix, addr)->data &&
           ty_ix_coef(&k->ix, addr, (uint32_t)var, &inside) == 1 && !inside &&
           stream_goes_on(k, addr, var, each, distance);
}

/* The element is not read or written in the piece that is being written. */
static bool stream_is_out(const ty_ktext *t, uint32_t guard)
{
    return guard != TY_NONE && t->cut >= 0 && t->k->instr[guard].kop == TY_K_INSIDE &&
           ty_kernel_guard(t->k, &t->k->instr[guard], t->cut, t->cut_lo, t->cut_hi) == 0;
}

/* An earlier stage read it, so that it lies in a cache. */
static bool stream_is_seen(const ty_ktext *t, int stage, uint32_t buffer, ty_ix addr)
{
    for (uint32_t i = 0; i < t->k->n_instrs; i++) {
        const ty_kinstr *load = &t->k->instr[i];
        if (load->kop == TY_K_LOAD && load->stage < stage && t->alias[load->buffer] == t->alias[buffer] &&
            load->addr == addr)
            return true;
    }
    return false;
}

static void stream_add(const ty_ktext *t, streams *all, uint32_t buffer, ty_ix addr, bool written)
{
    for (int i = 0; i < all->n; i++)
        if (t->alias[all->s[i].buffer] == t->alias[buffer] && all->s[i].addr == addr) {
            all->s[i].written |= written;
            return;
        }
    if (all->n < STREAM_MAX)
        all->s[all->n++] = (stream){buffer, addr, written};
}

static bool stream_pays(const ty_kernel *k)
{
    size_t read_bytes, written_bytes;
    ty_kernel_traffic(k, &read_bytes, &written_bytes);
    return read_bytes + written_bytes >= STREAM_KERNEL;
}

/* in_rows: what lies behind a row's end is not asked for, but the next row. */
static void stream_collect(const ty_ktext *t, int stage, int var, bool in_rows, streams *all)
{
    const ty_kernel *k = t->k;
    long distance = in_rows ? 0 : stream_distance(k, stage, var);
    all->n = 0;
    if (!stream_pays(k))
        return;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *load = &k->instr[i];
        if (load->kop == TY_K_LOAD && load->stage == stage && stream_is(k, load->buffer, load->addr, var, distance) &&
            !stream_is_out(t, load->guard) && !stream_is_seen(t, stage, load->buffer, load->addr))
            stream_add(t, all, load->buffer, load->addr, false);
    }
    for (int i = 0; i < k->n_stores; i++) {
        const ty_kstore *store = &k->store[i];
        if (store->stage == stage && stream_is(k, store->buffer, store->addr, var, distance) &&
            !stream_is_out(t, store->guard) && !stream_is_seen(t, stage, store->buffer, store->addr))
            stream_add(t, all, store->buffer, store->addr, true);
    }
}

bool ty_ahead_streams(const ty_ahead *a, int stage, int var)
{
    streams all;
    stream_collect(a->t, stage, var, var == a->column, &all);
    return all.n > 0;
}

/* Asks for `lines` lines, a power of two, from `at` elements behind the expression `first` on. */
static void stream_ask(const ty_ahead *a, const stream *s, int var, const char *first, long at, int lines)
{
    ty_ktext_linef(a->t, "{ const long i%d = %s + %ldl; TY_ASK%d(%d, &", var, first, at, lines, s->written);
    ty_ktext_element(a->t, s->buffer, s->addr);
    ty_buf_adds(a->t->out, "); }\n");
}

static void stream_ask_for(const ty_ahead *a, const stream *s, int var, const char *first, long distance, long n)
{
    long line = STREAM_LINE / (long)ty_dtype_bytes(a->t->k->buffer[s->buffer].dtype);
    for (long at = 0, lines; at < n; at += lines * line) {
        lines = n - at > 2 * line ? 4 : n - at > line ? 2 : 1;
        stream_ask(a, s, var, first, distance / STREAM_LINE * line + at, (int)lines);
    }
}

void ty_ahead_stretch(const ty_ahead *a, int stage, int var, const char *first, long n)
{
    streams all;
    stream_collect(a->t, stage, var, false, &all);
    long distance = stream_distance(a->t->k, stage, var);
    for (int i = 0; i < all.n; i++)
        stream_ask_for(a, &all.s[i], var, first, distance, n);
}

/* Rows and columns that the distance is, for elements of so many bytes. */
void ty_ahead_begin_columns(const ty_ahead *a, int stage, const char *from, const char *to)
{
    streams all;
    stream_collect(a->t, stage, a->column, true, &all);
    long distance = stream_distance(a->t->k, stage, a->column);
    for (long each = 1; each <= STREAM_MOST; each *= 2)
        for (int i = 0; i < all.n; i++)
            if ((long)ty_dtype_bytes(a->t->k->buffer[all.s[i].buffer].dtype) == each) {
                ty_ktext_linef(a->t, "const long up%ld = %ldl / (%s - %s), on%ld = %ldl %% (%s - %s);\n", each,
                               distance / each, to, from, each, distance / each, to, from);
                break;
            }
}

void ty_ahead_columns(const ty_ahead *a, int stage, const char *from, const char *to, long n)
{
    streams all;
    stream_collect(a->t, stage, a->column, true, &all);
    int row = a->inner[a->n_inner - 1];
    for (int i = 0; i < all.n; i++) {
        int each = (int)ty_dtype_bytes(a->t->k->buffer[all.s[i].buffer].dtype);
        ty_ktext_linef(a->t,
                       "{ const long m = j + on%d, o = m >= %s, f = c0 + m - (o ? %s - %s : 0), r = i%d + up%d + o;\n",
                       each, to, to, from, row, each);
        ty_ktext_linef(a->t, "{ const long i%d = r; (void)i%d;\n", row, row);
        stream_ask_for(a, &all.s[i], a->column, "f", 0, n);
        ty_ktext_linef(a->t, "} }\n");
    }
}
