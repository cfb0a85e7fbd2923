/* keras_layers_lookup.c - IntegerLookup: whole numbers become their places in a vocabulary.
 *
 * Source: keras/src/layers/preprocessing/index_lookup.py. Places: of the number that stands for nothing, if there is
 * one; of numbers that are not in the vocabulary; of those that are.
 */
#include "compiler/import/keras/keras_encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKUP_MOST = 1 << 22, LOOKUP_COMPARED = 1 << 12 };

typedef struct lookup {
    int64_t *number;          /* [n] of the vocabulary */
    int64_t n, first;         /* place of the first */
    int64_t n_others, others; /* how many places those have that are not in it, and the first of them */
    bool has_mask;
    int64_t mask;
} lookup;

static bool lookup_is_head(const lookup *l, int64_t at, int64_t number, int64_t other)
{
    return number == (l->has_mask && at == 0 ? l->mask : other);
}

/* What the layer was made with; the places in front may be there, too. */
static bool lookup_listed(keras_call *c, const ty_doc *list, lookup *l)
{
    int64_t n = (int64_t)ty_doc_len(list), other = keras_int(c, "oov_token", -1), skipped = l->first;
    if (list->kind != TY_DOC_LIST || n > LOOKUP_MOST) {
        keras_fail_key(c, "vocabulary", "expected a list of up to %d whole numbers", LOOKUP_MOST);
        return false;
    }
    l->number = keras_alloc(c, (size_t)n + 1, sizeof *l->number);
    for (int64_t i = 0; i < n; i++) {
        const ty_doc *d = ty_doc_at(list, (size_t)i);
        if (d->kind != TY_DOC_INT) {
            keras_fail_key(c, "vocabulary", "expected whole numbers");
            return false;
        }
        l->number[i] = d->integer;
    }
    for (int64_t i = 0; i < skipped; i++)
        if (i >= n || !lookup_is_head(l, i, l->number[i], other))
            skipped = 0;
    l->number += skipped;
    l->n = n - skipped;
    return true;
}

/* What it has learned: a number a line, the places in front first. */
static bool lookup_learned(keras_call *c, const char *text, lookup *l)
{
    int64_t n = 1, skipped = l->first;
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        n++;
    if (n > LOOKUP_MOST || n < skipped) {
        keras_fail(c, TY_E_MODEL_FILE, "vocabulary.txt has %lld numbers, expected %lld to %d", (long long)n,
                   (long long)skipped, LOOKUP_MOST);
        return false;
    }
    l->number = keras_alloc(c, (size_t)n + 1, sizeof *l->number);
    for (int64_t i = 0; i < n; i++) {
        char *end;
        errno = 0;
        l->number[i] = strtoll(text, &end, 10);
        if (end == text || errno || (*end && *end != '\n')) {
            keras_fail(c, TY_E_MODEL_FILE, "line %lld of vocabulary.txt is no whole number", (long long)i + 1);
            return false;
        }
        text = end + 1;
    }
    l->number += skipped;
    l->n = n - skipped;
    return true;
}

static bool lookup_settings(keras_call *c, lookup *l)
{
    const ty_doc *mask = keras_config(c, "mask_token");
    *l = (lookup){.has_mask = mask != NULL, .n_others = keras_int(c, "num_oov_indices", 1)};
    l->mask = l->has_mask ? keras_int(c, "mask_token", 0) : 0;
    l->others = l->has_mask;
    l->first = l->others + l->n_others;
    if (keras_flag(c, "invert", false))
        keras_fail_key(c, "invert", "must be false");
    if (keras_flag(c, "pad_to_max_tokens", false))
        keras_fail_key(c, "pad_to_max_tokens", "must be false");
    if (strcmp(keras_text(c, "oov_method", "floormod"), "floormod") != 0)
        keras_fail_key(c, "oov_method", "must be floormod");
    if (!c->failed && (l->n_others < 0 || l->n_others > 1 << 20))
        keras_fail_key(c, "num_oov_indices", "expected 0 or more");
    return !c->failed;
}

static bool lookup_read(keras_call *c, lookup *l)
{
    const ty_doc *list = keras_config(c, "vocabulary");
    if (!lookup_settings(c, l))
        return false;
    if (list)
        return lookup_listed(c, list, l);
    const char *text = keras_asset(c, "vocabulary.txt");
    if (text)
        return lookup_learned(c, text, l);
    if (!c->failed) {
        keras_fail(c, TY_E_ATTRIBUTE, "it has no vocabulary");
        keras_help(c, "adapt the layer before the model is saved, as NAME.keras");
    }
    return false;
}

/* The place of each of x by a table of all numbers from the least to the largest; -1: it is in none. */
static ty_val lookup_by_table(keras_call *c, const lookup *l, ty_val x, int64_t least, int64_t range)
{
    ty_graph *g = c->g;
    int64_t *place = keras_alloc(c, (size_t)range + 1, sizeof *place);
    for (int64_t i = 0; i < range; i++)
        place[i] = -1;
    for (int64_t i = l->n - 1; i >= 0; i--)
        place[l->number[i] - least] = l->first + i;
    ty_val table = ty_b_const_copy(g, ty_type_make(TY_I64, 1, &range), place), at = ty_b_add_s(g, x, -(double)least);
    ty_val zero = ty_b_full_like(g, at, 0), last = ty_b_full_like(g, at, (double)(range - 1));
    ty_val inside = ty_b_binary(g, TY_OP_AND, ty_b_le(g, zero, at), ty_b_le(g, at, last));
    ty_val found = ty_b_gather(g, table, ty_b_min(g, ty_b_max(g, at, zero), last), 0);
    return ty_b_select(g, inside, found, ty_b_full_like(g, at, -1));
}

/* The same by comparing with each. */
static ty_val lookup_by_each(keras_call *c, const lookup *l, ty_val x)
{
    ty_graph *g = c->g;
    int rank = ty_b_rank(g, x);
    ty_val numbers = ty_b_const_copy(g, ty_type_make(TY_I64, 1, &l->n), l->number);
    ty_val is = ty_b_eq(g, ty_b_unsqueeze(g, x, rank), numbers);
    ty_val place = ty_b_add_s(g, ty_b_iota(g, ty_type_make(TY_I64, 1, &l->n), 0), (double)l->first);
    ty_val none = ty_b_full(g, TY_I64, 0, NULL, -1);
    return ty_b_reduce(g, ty_b_select(g, is, place, none), TY_MAX, 1u << rank, false);
}

static ty_val lookup_place(keras_call *c, const lookup *l, ty_val x)
{
    int64_t least = l->n > 0 ? l->number[0] : 0, most = least, range;
    for (int64_t i = 1; i < l->n; i++) {
        least = l->number[i] < least ? l->number[i] : least;
        most = l->number[i] > most ? l->number[i] : most;
    }
    bool is_short = !__builtin_sub_overflow(most, least, &range) && range < LOOKUP_MOST && least > -(1LL << 52) &&
                    most < 1LL << 52; /* what a graph's constants are exact for */
    if (l->n == 0)
        return ty_b_full_like(c->g, x, -1);
    if (is_short)
        return lookup_by_table(c, l, x, least, range + 1);
    if (l->n <= LOOKUP_COMPARED && ty_b_rank(c->g, x) < TY_MAX_RANK)
        return lookup_by_each(c, l, x);
    keras_fail(c, TY_E_UNSUPPORTED, "its %lld numbers are spread over more than %d", (long long)l->n, LOOKUP_MOST);
    return TY_NONE;
}

/* Numbers that are not in the vocabulary share their places by the remainder. */
static ty_val lookup_other(ty_graph *g, const lookup *l, ty_val x)
{
    if (l->n_others < 2)
        return ty_b_full_like(g, x, (double)l->others);
    ty_val n = ty_b_full_like(g, x, (double)l->n_others), rest = ty_b_binary(g, TY_OP_REM, x, n);
    ty_val is_below = ty_b_lt(g, rest, ty_b_full_like(g, x, 0));
    return ty_b_add_s(g, ty_b_select(g, is_below, ty_b_add(g, rest, n), rest), (double)l->others);
}

void keras_call_integer_lookup(keras_call *c)
{
    ty_graph *g = c->g;
    lookup l;
    encode_mode mode = keras_encode_read(c, true);
    if (c->failed || !lookup_read(c, &l))
        return;
    ty_val x = ty_b_cast(g, c->in[0], TY_I64), place = lookup_place(c, &l, x);
    if (place == TY_NONE)
        return;
    ty_val is_none = ty_b_lt(g, place, ty_b_full_like(g, place, 0));
    ty_val y = ty_b_select(g, is_none, lookup_other(g, &l, x), place);
    if (l.has_mask) {
        ty_val is_mask = ty_b_eq(g, x, ty_b_full_like(g, x, (double)l.mask));
        y = ty_b_select(g, is_mask, ty_b_full_like(g, y, 0), y);
    }
    if (mode == ENCODE_INT)
        keras_set(c, 0, y);
    else
        keras_encode_set(c, y, mode, l.first + l.n, TY_NONE);
}
