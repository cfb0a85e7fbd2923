/* einsum.c - see einsum.h.
 *
 * A term is a value and the letter of each of its axes. Operands are joined from left to right: letters that nobody
 * needs any more are summed, letters of both sides that are needed later are batch axes, the rest is rows and columns.
 * The axes behind "..." get capital letters of their own, counted from the right.
 */
#include "compiler/import/einsum.h"

#include "compiler/ir/build.h"

#include <ctype.h>
#include <string.h>

enum { MAX_TERMS = TY_EINSUM_MAX_INPUTS, N_LETTERS = 26, FIRST_DOTS = 26, N_SYMBOLS = FIRST_DOTS + 26 + TY_MAX_RANK };

/* Symbols: a-z 0..25, A-Z 26..51, axes of the ellipsis 52 and on. */
typedef struct term {
    ty_val v;
    int n;
    uint8_t symbol[TY_MAX_RANK + 1];
} term;

typedef struct einsum {
    ty_graph *g;
    const char *why; /* not NULL: refused */
    term in[MAX_TERMS], out;
    int n_in;
    int64_t size[N_SYMBOLS]; /* 0: unknown */
    int dots_rank;           /* most axes behind an ellipsis */
} einsum;

static bool einsum_fail(einsum *e, const char *why)
{
    e->why = why;
    return false;
}

/* Letters of one operand. rank -1: of the result, whose ellipsis has dots_rank axes. */
static bool read_term(einsum *e, const char *text, size_t len, int rank, term *t)
{
    int letters = 0;
    for (size_t i = 0; i < len; i++)
        letters += isalpha((unsigned char)text[i]) != 0;
    int dots = rank < 0 ? e->dots_rank : rank - letters;
    t->n = 0;
    for (size_t i = 0; i < len; i++) {
        int n_new = 1, first = 0;
        if (islower((unsigned char)text[i]))
            first = text[i] - 'a';
        else if (isupper((unsigned char)text[i]))
            first = FIRST_DOTS + text[i] - 'A';
        else if (i + 2 < len && memcmp(text + i, "...", 3) == 0) {
            n_new = dots;
            first = N_SYMBOLS - TY_MAX_RANK + (TY_MAX_RANK - dots);
            i += 2;
        } else
            return einsum_fail(e, "has a character that is no letter");
        if (n_new < 0 || t->n + n_new > TY_MAX_RANK)
            return einsum_fail(e, "does not fit the ranks of the inputs");
        for (int k = 0; k < n_new; k++)
            t->symbol[t->n++] = (uint8_t)(first + k);
    }
    if (rank >= 0 && t->n != rank)
        return einsum_fail(e, "does not fit the ranks of the inputs");
    return true;
}

static bool note_sizes(einsum *e, const term *t)
{
    for (int i = 0; i < t->n; i++) {
        int64_t n = ty_b_dim(e->g, t->v, i), *size = &e->size[t->symbol[i]];
        if (*size != 0 && *size != n && n != 1 && *size != 1)
            return einsum_fail(e, "gives one letter to axes of different sizes");
        *size = n > *size ? n : *size;
    }
    return true;
}

/* The result if the equation has no arrow: letters that stand once, in order, behind the ellipsis. */
static bool implicit_result(einsum *e, term *out)
{
    int count[N_SYMBOLS] = {0};
    for (int k = 0; k < e->n_in; k++)
        for (int i = 0; i < e->in[k].n; i++)
            count[e->in[k].symbol[i]]++;
    out->n = 0;
    for (int i = 0; i < e->dots_rank; i++)
        out->symbol[out->n++] = (uint8_t)(N_SYMBOLS - e->dots_rank + i);
    for (int s = FIRST_DOTS; s < 52; s++)
        if (count[s] == 1 && out->n < TY_MAX_RANK)
            out->symbol[out->n++] = (uint8_t)s;
    for (int s = 0; s < N_LETTERS; s++)
        if (count[s] == 1 && out->n < TY_MAX_RANK)
            out->symbol[out->n++] = (uint8_t)s;
    return true;
}

static bool read_equation(einsum *e, const char *text, const ty_val *in)
{
    char clean[256];
    size_t n = 0;
    for (; *text; text++)
        if (*text != ' ' && n + 1 < sizeof clean)
            clean[n++] = *text;
    clean[n] = 0;
    char *arrow = strstr(clean, "->"), *at = clean;
    if (arrow)
        *arrow = 0;
    for (int k = 0; k < e->n_in; k++) {
        size_t len = strcspn(at, ",");
        int rank = ty_b_rank(e->g, in[k]), letters = 0;
        bool dots = memchr(at, '.', len) != NULL;
        for (size_t i = 0; i < len; i++)
            letters += isalpha((unsigned char)at[i]) != 0;
        if (dots && rank - letters > e->dots_rank)
            e->dots_rank = rank - letters;
        e->in[k].v = in[k];
        if (!read_term(e, at, len, rank, &e->in[k]) || !note_sizes(e, &e->in[k]))
            return false;
        if (at[len] == 0 && k + 1 < e->n_in)
            return einsum_fail(e, "has fewer terms than the node has inputs");
        at += len + (at[len] == ',');
    }
    return arrow ? read_term(e, arrow + 2, strlen(arrow + 2), -1, &e->out) : implicit_result(e, &e->out);
}

static int find_symbol(const term *t, int symbol)
{
    for (int i = 0; i < t->n; i++)
        if (t->symbol[i] == symbol)
            return i;
    return -1;
}

/* Takes the diagonal of axes i < j: the entries where both positions are equal, summed. */
static void take_diagonal(einsum *e, term *t, int i, int j)
{
    ty_graph *g = e->g;
    ty_type type = *ty_graph_type(e->g, t->v);
    type.dtype = TY_I64;
    ty_val same = ty_b_eq(g, ty_b_iota(g, type, i), ty_b_iota(g, type, j));
    t->v = ty_b_select(g, same, t->v, ty_b_full_like(g, t->v, 0));
    t->v = ty_b_sum(g, t->v, 1u << j, false);
    memmove(&t->symbol[j], &t->symbol[j + 1], (size_t)(t->n - j - 1));
    t->n--;
}

/* Sums axes whose letter is neither in the result nor in later operands, stretches axes of 1, removes repeated letters.
 */
static bool tidy(einsum *e, term *t, const bool *needed)
{
    ty_graph *g = e->g;
    for (int i = 0; i < t->n; i++)
        for (int j = t->n - 1; j > i; j--)
            if (t->symbol[i] == t->symbol[j]) {
                if (ty_b_dim(e->g, t->v, i) != ty_b_dim(e->g, t->v, j))
                    return einsum_fail(e, "gives one letter to axes of different sizes");
                take_diagonal(e, t, i, j);
            }
    for (int i = t->n - 1; i >= 0; i--) {
        if (needed[t->symbol[i]])
            continue;
        t->v = ty_b_sum(g, t->v, 1u << i, false);
        memmove(&t->symbol[i], &t->symbol[i + 1], (size_t)(t->n - i - 1));
        t->n--;
    }
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i < t->n; i++)
        dim[i] = e->size[t->symbol[i]];
    t->v = ty_b_broadcast(g, t->v, t->n, dim);
    return t->v != TY_NONE;
}

typedef struct axis_group {
    int n;
    uint8_t symbol[TY_MAX_RANK];
    int64_t size;
} axis_group;

static void group_add(einsum *e, axis_group *group, int symbol)
{
    group->symbol[group->n++] = (uint8_t)symbol;
    group->size *= e->size[symbol];
}

/* t with its axes in the order of three groups, each made one axis; none of a first group without letters. */
static ty_val arrange(einsum *e, const term *t, const axis_group *a, const axis_group *b, const axis_group *c)
{
    int64_t perm[TY_MAX_RANK], dim[] = {a->size, b->size, c->size};
    int n = 0, skip = a->n == 0;
    const axis_group *groups[] = {a, b, c};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < groups[k]->n; i++)
            perm[n++] = find_symbol(t, groups[k]->symbol[i]);
    return ty_b_reshape(e->g, ty_b_transpose(e->g, t->v, perm), 3 - skip, dim + skip);
}

/* One operand less: needed[] says which letters the result and later operands use. */
static bool join(einsum *e, term *left, const term *right, const bool *needed)
{
    axis_group batch = {.size = 1}, rows = {.size = 1}, cols = {.size = 1}, inner = {.size = 1};
    for (int i = 0; i < left->n; i++) {
        int s = left->symbol[i];
        bool both = find_symbol(right, s) >= 0;
        group_add(e, both ? (needed[s] ? &batch : &inner) : &rows, s);
    }
    for (int i = 0; i < right->n; i++)
        if (find_symbol(left, right->symbol[i]) < 0)
            group_add(e, &cols, right->symbol[i]);
    if (batch.n + rows.n + cols.n > TY_MAX_RANK)
        return einsum_fail(e, "needs an intermediate result of too many axes");
    ty_val a = arrange(e, left, &batch, &rows, &inner), b = arrange(e, right, &batch, &inner, &cols);
    ty_val y = inner.n ? ty_b_dot(e->g, a, b, false, false) : ty_b_mul(e->g, a, b);
    int64_t dim[TY_MAX_RANK];
    left->n = 0;
    const axis_group *groups[] = {&batch, &rows, &cols};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < groups[k]->n; i++) {
            dim[left->n] = e->size[groups[k]->symbol[i]];
            left->symbol[left->n++] = groups[k]->symbol[i];
        }
    left->v = ty_b_reshape(e->g, y, left->n, dim);
    return left->v != TY_NONE;
}

static ty_val result(einsum *e, const term *t)
{
    int64_t perm[TY_MAX_RANK];
    for (int i = 0; i < e->out.n; i++) {
        int at = find_symbol(t, e->out.symbol[i]);
        for (int k = 0; k < i; k++)
            at = perm[k] == at ? -1 : at;
        if (at < 0) {
            einsum_fail(e, "names a letter in the result that no input has, or names it twice");
            return TY_NONE;
        }
        perm[i] = at;
    }
    return ty_b_transpose(e->g, t->v, perm);
}

/* Letters that the result and operands from k + 1 on use; with those of the product so far, too. */
static void mark_needed(const einsum *e, int k, bool *needed, bool *later)
{
    for (int i = 0; i < e->out.n; i++)
        needed[e->out.symbol[i]] = later[e->out.symbol[i]] = true;
    for (int m = k + 1; m < e->n_in; m++)
        for (int i = 0; i < e->in[m].n; i++)
            needed[e->in[m].symbol[i]] = later[e->in[m].symbol[i]] = true;
    for (int i = 0; i < e->in[0].n && k > 0; i++)
        needed[e->in[0].symbol[i]] = true;
}

ty_val ty_einsum(ty_graph *g, const char *equation, const ty_val *in, int n_in, const char **why)
{
    einsum e = {.g = g, .n_in = n_in};
    ty_val y = TY_NONE;
    bool good =
        n_in >= 1 && n_in <= MAX_TERMS ? read_equation(&e, equation, in) : einsum_fail(&e, "needs 1 to 8 inputs");
    for (int k = 0; good && k < n_in; k++) {
        bool needed[N_SYMBOLS] = {false}, later[N_SYMBOLS] = {false};
        mark_needed(&e, k, needed, later);
        good = tidy(&e, &e.in[k], needed) && (k == 0 || join(&e, &e.in[0], &e.in[k], later));
    }
    if (good)
        y = result(&e, &e.in[0]);
    *why = e.why;
    return y;
}
