/* index.c - normal forms of index expressions. See index.h. */
#include "compiler/kernel/index.h"

#include <string.h>

#define IX_MAX_TERMS 64
#define IX_EMPTY     UINT32_MAX

typedef struct ix_sum {
    int64_t c;
    int n;
    bool overflow;
    ty_term term[IX_MAX_TERMS];
} ix_sum;

void ty_ix_init(ty_ix_pool *p, ty_arena *arena)
{
    *p = (ty_ix_pool){.arena = arena};
}

void ty_ix_copy(const ty_ix_pool *from, ty_arena *arena, ty_ix_pool *to)
{
    *to = *from;
    to->arena = arena;
    to->table = ty_arena_copy(arena, from->table, sizeof *from->table * from->table_cap);
    to->cap_nodes = to->n_nodes; /* full: what is added first moves them (ix_grow) */
    to->cap_atoms = to->n_atoms;
}

static uint64_t ix_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9E3779B97F4A7C15ull;
    return h ^ (h >> 29);
}

static uint64_t ix_hash(int64_t c, const ty_term *term, int n)
{
    uint64_t h = ix_mix(0x51ull, (uint64_t)c);
    for (int i = 0; i < n; i++)
        h = ix_mix(ix_mix(h, (uint64_t)term[i].coef), term[i].atom);
    return h;
}

static bool ix_same(const ty_ix_node *a, int64_t c, const ty_term *term, int n)
{
    if (a->c != c || a->n_terms != n)
        return false;
    for (int i = 0; i < n; i++)
        if (a->term[i].coef != term[i].coef || a->term[i].atom != term[i].atom)
            return false;
    return true;
}

/* Doubles an array; the old one stays in the arena until the kernel is done. */
static void *ix_grow(ty_ix_pool *p, const void *old, uint32_t *cap, size_t size)
{
    uint32_t had = *cap;
    *cap = had ? had * 2 : 64;
    void *grown = ty_arena_alloc(p->arena, *cap * size);
    if (had)
        memcpy(grown, old, had * size);
    return grown;
}

static void ix_rehash(ty_ix_pool *p)
{
    uint32_t cap = p->table_cap ? p->table_cap * 2 : 256;
    p->table = TY_NEW_ARRAY(p->arena, uint32_t, cap);
    memset(p->table, 0xFF, cap * sizeof *p->table);
    p->table_cap = cap;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const ty_ix_node *node = &p->node[i];
        uint32_t at = (uint32_t)ix_hash(node->c, node->term, node->n_terms) & (cap - 1);
        while (p->table[at] != IX_EMPTY)
            at = (at + 1) & (cap - 1);
        p->table[at] = i;
    }
}

/* Range and dependencies follow from the terms. */
static void ix_facts(const ty_ix_pool *p, ty_ix_node *node)
{
    node->lo = node->hi = node->c;
    for (int i = 0; i < node->n_terms; i++) {
        const ty_atom *atom = &p->atom[node->term[i].atom];
        int64_t coef = node->term[i].coef;
        node->lo += coef * (coef > 0 ? atom->lo : atom->hi);
        node->hi += coef * (coef > 0 ? atom->hi : atom->lo);
        node->vars |= atom->vars;
        node->data |= atom->data;
    }
}

static ty_ix ix_intern(ty_ix_pool *p, const ix_sum *s)
{
    p->overflow |= s->overflow;
    if (p->n_nodes * 2 >= p->table_cap)
        ix_rehash(p);
    uint32_t at = (uint32_t)ix_hash(s->c, s->term, s->n) & (p->table_cap - 1);
    for (; p->table[at] != IX_EMPTY; at = (at + 1) & (p->table_cap - 1))
        if (ix_same(&p->node[p->table[at]], s->c, s->term, s->n))
            return p->table[at];
    if (p->n_nodes == p->cap_nodes)
        p->node = ix_grow(p, p->node, &p->cap_nodes, sizeof *p->node);
    ty_ix_node *node = &p->node[p->n_nodes];
    *node = (ty_ix_node){.c = s->c, .n_terms = s->n};
    node->term = ty_arena_copy(p->arena, s->term, sizeof(ty_term) * (size_t)s->n);
    ix_facts(p, node);
    p->table[at] = p->n_nodes;
    return p->n_nodes++;
}

/* May it have another range than its argument says? */
static bool ix_is_limited(const ty_atom *atom)
{
    return (atom->kind == TY_ATOM_VAR && atom->d != 0) || atom->kind == TY_ATOM_MOD;
}

static uint32_t ix_atom(ty_ix_pool *p, ty_atom atom)
{
    for (uint32_t i = 0; i < p->n_atoms; i++)
        if (p->atom[i].kind == atom.kind && p->atom[i].arg == atom.arg && p->atom[i].d == atom.d &&
            (!ix_is_limited(&atom) || (p->atom[i].lo == atom.lo && p->atom[i].hi == atom.hi)))
            return i;
    if (p->n_atoms == p->cap_atoms)
        p->atom = ix_grow(p, p->atom, &p->cap_atoms, sizeof *p->atom);
    p->atom[p->n_atoms] = atom;
    return p->n_atoms++;
}

static ty_ix ix_of_atom(ty_ix_pool *p, ty_atom atom)
{
    ix_sum s = {.n = 1, .term = {{1, ix_atom(p, atom)}}};
    return ix_intern(p, &s);
}

ty_ix ty_ix_const(ty_ix_pool *p, int64_t c)
{
    ix_sum s = {.c = c};
    return ix_intern(p, &s);
}

ty_ix ty_ix_var(ty_ix_pool *p, uint32_t var, int64_t extent)
{
    if (extent <= 1)
        return ty_ix_const(p, 0);
    return ix_of_atom(p, (ty_atom){TY_ATOM_VAR, var, 0, 0, extent - 1, 1ull << var, false});
}

ty_ix ty_ix_limit(ty_ix_pool *p, ty_ix a, int64_t extent)
{
    const ty_ix_node node = p->node[a];
    const ty_atom *atom = node.n_terms == 1 ? &p->atom[node.term[0].atom] : NULL;
    if (!atom || (atom->kind != TY_ATOM_VAR && atom->kind != TY_ATOM_MOD) || node.term[0].coef != 1)
        return a;
    int64_t lo = atom->lo < -node.c ? -node.c : atom->lo, above = extent - node.c;
    above = above > atom->hi ? atom->hi + 1 : above;
    if ((lo == atom->lo && above > atom->hi) || above - lo < 2)
        return a;
    ty_atom limited = *atom;
    limited.lo = lo;
    limited.hi = above - 1;
    limited.d = atom->kind == TY_ATOM_VAR ? above : atom->d;
    return ty_ix_add_const(p, ix_of_atom(p, limited), node.c);
}

bool ty_ix_unlimited(ty_ix_pool *p, ty_ix a, const int64_t *extent, ty_ix *plain, int64_t *hi)
{
    const ty_ix_node node = p->node[a];
    *plain = ty_ix_const(p, node.c);
    for (int i = 0; i < node.n_terms; i++) {
        const ty_atom atom = p->atom[node.term[i].atom];
        if (atom.kind != TY_ATOM_VAR || node.term[i].coef < 0)
            return false;
        *plain = ty_ix_add(p, *plain, ty_ix_mul(p, ty_ix_var(p, atom.arg, extent[atom.arg]), node.term[i].coef));
    }
    *hi = p->node[*plain].hi;
    return node.c >= 0;
}

ty_ix ty_ix_data(ty_ix_pool *p, uint32_t instr, int64_t lo, int64_t hi, uint64_t vars)
{
    return ix_of_atom(p, (ty_atom){TY_ATOM_DATA, instr, 0, lo, hi, vars, true});
}

static void ix_insert(ix_sum *s, int64_t coef, uint32_t atom)
{
    int i = 0;
    while (i < s->n && s->term[i].atom < atom)
        i++;
    if (i < s->n && s->term[i].atom == atom) {
        s->term[i].coef += coef;
        if (s->term[i].coef == 0) {
            memmove(&s->term[i], &s->term[i + 1], sizeof(ty_term) * (size_t)(s->n - i - 1));
            s->n--;
        }
        return;
    }
    if (s->n == IX_MAX_TERMS) {
        s->overflow = true;
        return;
    }
    memmove(&s->term[i + 1], &s->term[i], sizeof(ty_term) * (size_t)(s->n - i));
    s->term[i] = (ty_term){coef, atom};
    s->n++;
}

static void ix_accumulate(const ty_ix_pool *p, ix_sum *s, ty_ix a, int64_t factor)
{
    const ty_ix_node *node = &p->node[a];
    s->c += factor * node->c;
    for (int i = 0; i < node->n_terms; i++)
        ix_insert(s, factor * node->term[i].coef, node->term[i].atom);
}

/* c (x mod d) + c d (x / d) -> c x. One rewrite; true if one was made. */
static bool ix_recombine(ty_ix_pool *p, ix_sum *s)
{
    for (int i = 0; i < s->n; i++) {
        const ty_atom mod = p->atom[s->term[i].atom];
        int64_t coef = s->term[i].coef;
        if (mod.kind != TY_ATOM_MOD)
            continue;
        ix_sum rest = *s;
        ix_insert(&rest, -coef, s->term[i].atom);
        const ty_ix divided = ty_ix_div(p, mod.arg, mod.d); /* which may move p->node */
        const ty_ix_node quotient = p->node[divided];
        if (quotient.n_terms != 1 || quotient.c != 0 || quotient.term[0].coef != 1)
            continue;
        bool found = false;
        for (int k = 0; k < rest.n; k++)
            found |= rest.term[k].atom == quotient.term[0].atom && rest.term[k].coef == coef * mod.d;
        if (!found)
            continue;
        ix_insert(&rest, -coef * mod.d, quotient.term[0].atom);
        ix_accumulate(p, &rest, mod.arg, coef);
        *s = rest;
        return true;
    }
    return false;
}

ty_ix ty_ix_add(ty_ix_pool *p, ty_ix a, ty_ix b)
{
    ix_sum s = {0};
    ix_accumulate(p, &s, a, 1);
    ix_accumulate(p, &s, b, 1);
    while (ix_recombine(p, &s))
        ;
    return ix_intern(p, &s);
}

ty_ix ty_ix_add_const(ty_ix_pool *p, ty_ix a, int64_t c)
{
    ix_sum s = {.c = c};
    ix_accumulate(p, &s, a, 1);
    return ix_intern(p, &s);
}

ty_ix ty_ix_mul(ty_ix_pool *p, ty_ix a, int64_t c)
{
    ix_sum s = {0};
    if (c != 0)
        ix_accumulate(p, &s, a, c);
    return ix_intern(p, &s);
}

/* a = d * whole + rest, where whole takes the terms and the part of the constant that d divides. */
static void ix_split(ty_ix_pool *p, ty_ix a, int64_t d, ty_ix *whole, ty_ix *rest)
{
    const ty_ix_node node = p->node[a];
    int64_t low = ((node.c % d) + d) % d;
    ix_sum w = {.c = (node.c - low) / d}, r = {.c = low};
    for (int i = 0; i < node.n_terms; i++) {
        if (node.term[i].coef % d == 0)
            ix_insert(&w, node.term[i].coef / d, node.term[i].atom);
        else
            ix_insert(&r, node.term[i].coef, node.term[i].atom);
    }
    *whole = ix_intern(p, &w);
    *rest = ix_intern(p, &r);
}

static int64_t ix_common(int64_t a, int64_t b)
{
    for (a = a < 0 ? -a : a; b;) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* rest = g * big + small with 0 <= small < g, for a g > 1 that divides d; 0 if there is none. */
static int64_t ix_factor(ty_ix_pool *p, ty_ix rest, int64_t d, ty_ix *big, ty_ix *small)
{
    const ty_ix_node node = p->node[rest];
    for (int i = 0; i < node.n_terms; i++) {
        int64_t g = ix_common(node.term[i].coef, d);
        if (g == 1)
            continue;
        ix_split(p, rest, g, big, small);
        if (p->node[*small].lo >= 0 && p->node[*small].hi < g)
            return g;
    }
    return 0;
}

static ty_ix ix_divmod_atom(ty_ix_pool *p, ty_atom_kind kind, ty_ix arg, int64_t d)
{
    const ty_ix_node node = p->node[arg];
    ty_atom atom = {kind, arg, d, 0, d - 1, node.vars, node.data};
    if (kind == TY_ATOM_DIV) {
        atom.lo = node.lo / d;
        atom.hi = node.hi / d;
    } else if (node.hi < d) {
        atom.hi = node.hi;
    }
    return ix_of_atom(p, atom);
}

ty_ix ty_ix_div(ty_ix_pool *p, ty_ix a, int64_t d)
{
    if (d == 1)
        return a;
    ty_ix whole, rest;
    ix_split(p, a, d, &whole, &rest);
    const ty_ix_node r = p->node[rest];
    if (r.lo >= 0 && r.lo / d == r.hi / d)
        return ty_ix_add_const(p, whole, r.lo / d);
    ty_ix big, small;
    int64_t g = r.lo >= 0 ? ix_factor(p, rest, d, &big, &small) : 0;
    if (g) /* (g x + y) / (g e) = x / e */
        return ty_ix_add(p, whole, ty_ix_div(p, big, d / g));
    if (r.n_terms == 1 && r.c == 0 && r.term[0].coef == 1 && p->atom[r.term[0].atom].kind == TY_ATOM_DIV) {
        const ty_atom inner = p->atom[r.term[0].atom]; /* (x / e) / d = x / (e d) */
        return ty_ix_add(p, whole, ty_ix_div(p, inner.arg, inner.d * d));
    }
    if (r.lo < 0)
        return ix_divmod_atom(p, TY_ATOM_DIV, a, d);
    return ty_ix_add(p, whole, ix_divmod_atom(p, TY_ATOM_DIV, rest, d));
}

ty_ix ty_ix_mod(ty_ix_pool *p, ty_ix a, int64_t d)
{
    if (d == 1)
        return ty_ix_const(p, 0);
    ty_ix whole, rest;
    ix_split(p, a, d, &whole, &rest);
    const ty_ix_node r = p->node[rest];
    if (r.lo >= 0 && r.lo / d == r.hi / d)
        return ty_ix_add_const(p, rest, -(r.lo / d * d));
    ty_ix big, small;
    int64_t g = r.lo >= 0 ? ix_factor(p, rest, d, &big, &small) : 0;
    if (g) /* (g x + y) mod (g e) = g (x mod e) + y */
        return ty_ix_add(p, ty_ix_mul(p, ty_ix_mod(p, big, d / g), g), small);
    return ix_divmod_atom(p, TY_ATOM_MOD, r.lo < 0 ? a : rest, d);
}

int64_t ty_ix_coef(const ty_ix_pool *p, ty_ix a, uint32_t var, bool *inside)
{
    const ty_ix_node *node = &p->node[a];
    int64_t coef = 0;
    for (int i = 0; i < node->n_terms; i++) {
        const ty_atom *atom = &p->atom[node->term[i].atom];
        if (atom->kind == TY_ATOM_VAR && atom->arg == var)
            coef += node->term[i].coef;
        else if (atom->vars >> var & 1)
            *inside = true;
    }
    return coef;
}
