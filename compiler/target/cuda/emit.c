/* emit.c - instructions, loads and stores of the elements that a thread takes at a time. See emit.h. */
#include "compiler/target/cuda/emit.h"

#include <stdio.h>
#include <string.h>

/* ---- loops ---- */

void ty_emit_close(ty_cuda_emit *c)
{
    c->t.indent--;
    ty_ktext_linef(&c->t, "}\n");
}

/* The type of loop variables; without a sign, as they are divided: by shifts and high words of products. */
const char *ty_emit_index(const ty_cuda_emit *c)
{
    return c->t.narrow ? "int" : "long";
}

static const char *emit_number(const ty_cuda_emit *c)
{
    return c->t.narrow ? "unsigned" : "unsigned long";
}

/* Variables from the number of a point; the first one needs no remainder. `from` is used up. */
void ty_emit_decode(ty_cuda_emit *c, const int *var, int n, const char *from)
{
    for (int i = n - 1; i >= 0; i--) {
        long extent = (long)c->t.k->extent[var[i]];
        if (i > 0)
            ty_ktext_linef(&c->t, "const %s i%d = (%s)%s %% %ldu; %s = (%s)%s / %ldu;\n", ty_emit_index(c), var[i],
                           emit_number(c), from, extent, from, emit_number(c), from, extent);
        else
            ty_ktext_linef(&c->t, "const %s i%d = %s;\n", ty_emit_index(c), var[i], from);
    }
}

/* A thread's number in its row. */
void ty_emit_lane(const ty_cuda_emit *c, char *out, size_t n)
{
    if (c->l.lanes == TY_CUDA_THREADS)
        snprintf(out, n, "TY_THREAD");
    else if (c->l.lanes == 1)
        snprintf(out, n, "0");
    else if (c->l.form == TY_CUDA_ROWS_ACROSS)
        snprintf(out, n, "TY_THREAD / %d", c->l.points_per_block);
    else
        snprintf(out, n, "TY_THREAD %% %d", c->l.lanes);
}

/* ---- which instructions where ---- */

/* Of columns and of elements all is inside the loop: what depends on a column that is none must not be read. */
static bool emit_in_loop(const ty_cuda_emit *c, const ty_kinstr *instr)
{
    for (int i = 0; i < c->l.n_inner; i++)
        if (instr->vars >> c->l.inner[i] & 1)
            return true;
    return ty_emit_is_columns(c) || c->l.form == TY_CUDA_FLAT || c->l.form == TY_CUDA_TILES;
}

static bool emit_is_printed(const ty_cuda_emit *c, uint32_t i)
{
    return !c->before[i] && (c->l.groups == 0 || c->l.hold.needed[i]);
}

/* ---- accesses ---- */

enum { EMIT_NAME = 24 }; /* bytes that an array's name has */

const char *ty_emit_memory(ty_dtype dtype)
{
    return ty_ctypes[dtype].memory;
}

/* Moves of `bytes` each between an array of the thread and memory. */
static void emit_move(ty_cuda_emit *c, const char *word, const char *array, uint32_t buffer, ty_ix addr, int bytes)
{
    int each = bytes / (int)ty_dtype_bytes(c->t.k->buffer[buffer].dtype);
    for (int at = 0; at < c->l.width; at += each) {
        ty_ktext_line(&c->t);
        ty_buf_addf(c->t.out, "%s%d(%s + %d, &", word, bytes, array, at);
        ty_ktext_element(&c->t, buffer, addr);
        ty_buf_addf(c->t.out, " + %d);\n", at);
    }
}

static void emit_load(ty_cuda_emit *c, uint32_t id)
{
    const ty_kinstr *instr = &c->t.k->instr[id];
    char array[EMIT_NAME];
    ty_ktext_linef(&c->t, "TY_ALIGNED %s x%u[%d]%s;\n", ty_emit_memory(instr->dtype), id, c->l.width,
                   instr->guard == TY_NONE ? "" : " = {0}");
    if (c->ahead[id]) {
        ty_ktext_linef(&c->t, "TY_UNROLL for (int w = 0; w < %d; w++) x%u[w] = a%u[j][w];\n", c->l.width, id, id);
        return;
    }
    if (instr->guard != TY_NONE) {
        ty_ktext_linef(&c->t, "if (v%u) {\n", instr->guard);
        c->t.indent++;
    }
    snprintf(array, sizeof array, "x%u", id);
    emit_move(c, "TY_GET", array, instr->buffer, instr->addr, c->l.load[id]);
    if (instr->guard != TY_NONE)
        ty_emit_close(c);
}

static void emit_store(ty_cuda_emit *c, int number)
{
    const ty_kstore *store = &c->t.k->store[number];
    char array[EMIT_NAME];
    bool guarded = store->guard != TY_NONE;
    if (guarded) {
        ty_ktext_linef(&c->t, "if (v%u) {\n", store->guard);
        c->t.indent++;
    }
    snprintf(array, sizeof array, "y%d", number);
    emit_move(c, "TY_PUT", array, store->buffer, store->addr, c->l.store[number]);
    if (guarded)
        ty_emit_close(c);
}

/* ---- the elements that a thread takes at a time ---- */

static bool emit_is_held(const ty_cuda_emit *c, uint32_t i)
{
    return c->l.groups && c->l.hold.from[i] != TY_NONE;
}

/* Row kernels compute outside the loop what does not depend on it. */
static bool emit_is_of(const ty_cuda_emit *c, uint32_t i, int stage, bool in_loop)
{
    const ty_kinstr *instr = &c->t.k->instr[i];
    return instr->stage == stage && emit_is_printed(c, i) && emit_in_loop(c, instr) == in_loop;
}

bool ty_emit_is_wide_load(const ty_cuda_emit *c, uint32_t i, int stage)
{
    return c->t.k->instr[i].kop == TY_K_LOAD && c->l.load && c->l.load[i] && emit_is_of(c, i, stage, true) &&
           !c->l.at.same[i] && !emit_is_held(c, i);
}

void ty_emit_load_ahead(ty_cuda_emit *c, uint32_t i)
{
    const ty_kinstr *instr = &c->t.k->instr[i];
    char array[EMIT_NAME];
    snprintf(array, sizeof array, "a%u[j]", i);
    emit_move(c, "TY_GET", array, instr->buffer, instr->addr, c->l.load[i]);
}

void ty_emit_instrs(ty_cuda_emit *c, int stage, bool in_loop)
{
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++)
        if (emit_is_of(c, i, stage, in_loop))
            ty_ktext_instr(&c->t, i);
}

void ty_emit_stores(ty_cuda_emit *c, int stage)
{
    for (int i = 0; i < c->t.k->n_stores; i++)
        if (c->t.k->store[i].stage == stage)
            ty_ktext_store(&c->t, &c->t.k->store[i]);
}

/* From here on later stages may have it. */
static void emit_hold(ty_cuda_emit *c, int stage)
{
    for (uint32_t i = 0; c->l.groups && i < c->t.k->n_instrs; i++)
        if (c->l.hold.held[i] && c->t.k->instr[i].stage == stage)
            ty_ktext_linef(&c->t, "%s%u[j][w]%s = v%u;\n", c->t.held, i, c->t.held_at, i);
}

/* Random words of neighbours, which are made four at a time: where they begin with such a four. */
static bool emit_draws(const ty_cuda_emit *c, const ty_kinstr *instr)
{
    const ty_kinstr *word = &c->t.k->instr[instr->c];
    if (instr->kop != TY_K_OP || instr->op != TY_OP_RNG || word->kop != TY_K_INDEX || c->l.width % 4 != 0)
        return false;
    ty_lane_ix at = ty_lanes_ix(&c->l.at, word->addr, 0);
    return at.known && at.step == 1 && at.unit % 4 == 0 && c->l.at.same[instr->a] && c->l.at.same[instr->b];
}

static void emit_draw(ty_cuda_emit *c, uint32_t id)
{
    const ty_kinstr *instr = &c->t.k->instr[id];
    c->drawn[id] = 1;
    ty_ktext_linef(&c->t, "ty_words w%u[%d];\n", id, c->l.width / 4);
    ty_ktext_linef(&c->t, "{\n");
    c->t.indent++;
    ty_ktext_instr(&c->t, instr->c);
    for (int i = 0; i < c->l.width / 4; i++)
        ty_ktext_linef(&c->t, "w%u[%d] = ty_rng_block(v%u, v%u, (unsigned long)v%u / 4 + %d, %ldu);\n", id, i, instr->a,
                       instr->b, instr->c, i, (long)instr->imm_int);
    ty_emit_close(c);
}

/* What is the same for all lanes, and wide loads. What is held of the same, and taken up again, is the first lane's. */
static void emit_group_begin(ty_cuda_emit *c, int stage)
{
    bool has_lane = false;
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++) {
        if (!emit_is_of(c, i, stage, true))
            continue;
        if (c->l.at.same[i] && emit_is_held(c, i) && !has_lane) {
            ty_ktext_linef(&c->t, "const int w = 0;\n");
            has_lane = true;
        }
        if (c->l.at.same[i])
            ty_ktext_instr(&c->t, i);
        else if (c->l.load[i] && !emit_is_held(c, i))
            emit_load(c, i);
        else if (!emit_is_held(c, i) && emit_draws(c, &c->t.k->instr[i]))
            emit_draw(c, i);
    }
    for (int i = 0; i < c->t.k->n_stores; i++)
        if (c->t.k->store[i].stage == stage && c->l.store[i])
            ty_ktext_linef(&c->t, "TY_ALIGNED %s y%d[%d];\n",
                           ty_emit_memory(c->t.k->buffer[c->t.k->store[i].buffer].dtype), i, c->l.width);
}

static void emit_lane_stores(ty_cuda_emit *c, int stage)
{
    for (int i = 0; i < c->t.k->n_stores; i++) {
        const ty_kstore *store = &c->t.k->store[i];
        if (store->stage != stage)
            continue;
        if (!c->l.store[i]) {
            ty_ktext_store(&c->t, store);
            continue;
        }
        ty_ktext_line(&c->t);
        ty_buf_addf(c->t.out, "y%d[w] = ", i);
        ty_ktext_stored(&c->t, store);
        ty_buf_adds(c->t.out, ";\n");
    }
}

static void emit_lanes(ty_cuda_emit *c, int stage)
{
    ty_ktext_linef(&c->t, "TY_UNROLL for (int w = 0; w < %d; w++) {\n", c->l.width);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s l = i%d + w;\n", ty_emit_index(c), c->l.fast);
    ty_ktext_linef(&c->t, "{\n");
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s i%d = l; (void)i%d;\n", ty_emit_index(c), c->l.fast, c->l.fast);
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++)
        if (emit_is_of(c, i, stage, true) && !c->l.at.same[i])
            ty_ktext_instr(&c->t, i);
    emit_hold(c, stage);
    ty_emit_add_sums(c, stage);
    emit_lane_stores(c, stage);
    ty_emit_close(c);
    ty_emit_close(c);
}

void ty_emit_group(ty_cuda_emit *c, int stage)
{
    if (c->l.width > 1) {
        memset(c->drawn, 0, c->t.k->n_instrs);
        emit_group_begin(c, stage);
        c->t.drawn = c->drawn;
        emit_lanes(c, stage);
        c->t.drawn = NULL;
        for (int i = 0; i < c->t.k->n_stores; i++)
            if (c->t.k->store[i].stage == stage && c->l.store[i])
                emit_store(c, i);
        return;
    }
    if (c->l.groups || ty_emit_is_columns(c))
        ty_ktext_linef(&c->t, "const int w = 0;\n");
    ty_emit_instrs(c, stage, true);
    emit_hold(c, stage);
    ty_emit_add_sums(c, stage);
    ty_emit_stores(c, stage);
}
