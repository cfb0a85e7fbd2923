/* session_lengths.c - batches of short samples in programs that are as long (data.train.length_buckets).
 *
 * A step is compiled once for each length, and all programs have the same weights, moments and temporaries
 * (ty_compile_options.beside). The sampler brings samples together that are nearly as long, the same ones on all ranks;
 * of a batch the columns are left out in which every row is filled up, down to the next length; and the program of that
 * length runs. What a sample's length is, is looked up once, before the first batch; where lengths are chosen, some
 * samples are looked at before the programs are compiled.
 *
 * One program has runs under way. Before another one starts any, what is under way is finished, and results that nobody
 * has taken yet wait in a row.
 */
#include "base/log.h"
#include "base/pages.h"
#include "base/quantity.h"
#include "container/input/lengths.h"
#include "container/input/map/map.h"
#include "entrypoint/choose_lengths.h"
#include "entrypoint/session.h"

#include <stdlib.h>
#include <string.h>

/* Lengths are chosen by those of so many samples. */
enum { LENGTHS_GROUP = 50, LENGTHS_LEAST_GROUPS = 4, LENGTHS_LOOKED_AT = 16384 };

/* ---- which fields, which lengths ---- */

static const ty_field *declared(const ty_session *s, const char *name)
{
    const ty_recipe_data *d = &s->recipe.train;
    for (int i = 0; i < d->n_fields; i++)
        if (strcmp(d->fields[i].name, name) == 0)
            return &d->fields[i];
    return NULL;
}

static bool is_filled_up(const ty_field *f)
{
    return f && (f->max_length > 0 || (f->map && ty_map_declared(f->map)->max_length > 0));
}

static int64_t row_length(const ty_session *s, int feed)
{
    const ty_type *t = &s->train->field[s->train_field[feed]].type;
    return t->rank > 0 ? t->dim[0] : 0;
}

/* The rows of that field that is longest: of those that are filled up, and of those as long as the last length. */
static int64_t find_longest(const ty_session *s, int64_t last)
{
    int64_t longest = 0;
    for (int i = 0; i < s->plan.n_feeds; i++) {
        int64_t n = row_length(s, i);
        if ((n == last || is_filled_up(declared(s, s->plan.feeds[i].field))) && n > longest)
            longest = n;
    }
    return longest;
}

static int refuse(const ty_session *s, ty_error *err, const char *why, const char *help)
{
    ty_doc_error(s->recipe.train.at, err, TY_E_CONFIG, NULL, "data.train.length_buckets: %s", why);
    return help ? ty_error_help(err, "%s", help) : -1;
}

static int check_data(const ty_session *s, ty_error *err)
{
    if (s->train_stream.is_on || s->validation_stream.is_on)
        return refuse(s, err, "data that are read as a stream have no lengths beforehand",
                      "access: random, for files in the modes File or FastFile");
    if (s->train_sharded || s->validation_sharded)
        return refuse(s, err, "each host has files of its own, and does not know how long the others' samples are",
                      "give the channel the distribution FullyReplicated");
    if (s->job->served)
        return refuse(s, err, "not with parameter servers", NULL);
    return 0;
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether both are made of one text, or of one pair. */
static bool is_same_text(const ty_field *f, const ty_field *g)
{
    const char *a = f->columns ? f->columns : f->member, *b = g->columns ? g->columns : g->member;
    return a && b && is_same(a, b) && is_same(f->part[TY_PART_SECOND], g->part[TY_PART_SECOND]);
}

static bool has_tokens(const ty_field *f, bool is_mask)
{
    const ty_map_spec *d = f->map ? ty_map_declared(f->map) : NULL;
    if (!d || d->way != TY_MAP_TOKENIZER || d->token_part == TY_TOKENS_PREVIOUS) /* which has one more */
        return false;
    return (d->token_part == TY_TOKENS_MASK) == is_mask;
}

/* Of the tokens of one text the mask tells all: to count them once is enough. */
static bool is_told_by_another(const ty_session *s, int feed)
{
    const ty_field *f = declared(s, s->plan.feeds[feed].field);
    for (int i = 0; has_tokens(f, false) && i < s->plan.n_feeds; i++) {
        const ty_field *g = s->lengths.is_long[i] ? declared(s, s->plan.feeds[i].field) : NULL;
        if (i != feed && g && has_tokens(g, true) && is_same_text(f, g))
            return true;
    }
    return false;
}

/* Lengths of n samples, which lie evenly among all. */
static int measure(ty_session *s, const ty_dataset *ds, const int *fields, int64_t n, uint32_t *out, ty_error *err)
{
    ty_session_lengths *l = &s->lengths;
    ty_filled *list = TY_NEW_ARRAY(&s->arena, ty_filled, s->plan.n_feeds);
    int n_list = 0;
    for (int i = 0; i < s->plan.n_feeds; i++)
        if (l->is_long[i] && !is_told_by_another(s, i)) {
            list[n_list] = l->filled[i];
            list[n_list++].field = fields[i];
        }
    return ty_lengths_measure(ds, list, n_list, ty_session_max_workers(s), n, out, err);
}

/* The lengths that are declared, up to the longest. */
static void take_lengths(ty_session *s)
{
    ty_session_lengths *l = &s->lengths;
    const ty_recipe_data *d = &s->recipe.train;
    l->length = TY_NEW_ARRAY(&s->arena, int64_t, d->n_lengths + 1);
    for (int i = 0; i < d->n_lengths && d->length[i] < l->longest; i++)
        l->length[l->n++] = d->length[i];
    l->length[l->n++] = l->longest;
}

/* Those that fit the training data, of which all hosts have the same: a look at some of them tells. */
static int choose_lengths(ty_session *s, ty_error *err)
{
    ty_session_lengths *l = &s->lengths;
    int64_t n = s->train->n_samples < LENGTHS_LOOKED_AT ? s->train->n_samples : LENGTHS_LOOKED_AT;
    uint32_t *count = calloc((size_t)l->longest + 1, sizeof *count), *length = ty_pages_new((size_t)n * sizeof *length);
    int rc = count && length ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory to choose lengths");
    if (rc == 0)
        rc = measure(s, s->train, s->train_field, n, length, err);
    for (int64_t i = 0; rc == 0 && i < n; i++)
        count[length[i]]++;
    l->length = TY_NEW_ARRAY(&s->arena, int64_t, TY_CHOSEN_LENGTHS);
    if (rc == 0)
        l->n = ty_choose_lengths(count, l->longest, l->length);
    free(count);
    if (rc == 0 && n == s->train->n_samples) { /* all of them: they need not be looked up again */
        l->of_train = length;
        l->n_train = (size_t)n;
    } else {
        ty_pages_free(length, (size_t)n * sizeof *length);
    }
    return rc == 0 ? 0 : ty_error_wrap(err, "data.train");
}

int ty_session_find_lengths(ty_session *s, ty_error *err)
{
    ty_session_lengths *l = &s->lengths;
    const ty_recipe_data *d = &s->recipe.train;
    int64_t last = d->n_lengths > 0 ? d->length[d->n_lengths - 1] : 0;
    if (!d->length_auto && d->n_lengths == 0)
        return 0;
    if (check_data(s, err) < 0)
        return -1;
    l->longest = find_longest(s, last);
    if (l->longest == 0)
        return refuse(s, err, "no field that the model takes is filled up to a length",
                      "say max_length: N for lists and tokens of any length");
    if (last > l->longest)
        return ty_doc_error(d->at, err, TY_E_RANGE, NULL,
                            "data.train.length_buckets: %lld is longer than the longest row, %lld", (long long)last,
                            (long long)l->longest);
    l->filled = TY_NEW_ARRAY(&s->arena, ty_filled, s->plan.n_feeds);
    l->is_long = TY_NEW_ARRAY(&s->arena, bool, s->plan.n_feeds);
    l->cut = TY_NEW_ARRAY(&s->arena, void *, s->plan.n_feeds);
    for (int i = 0; i < s->plan.n_feeds; i++) {
        const ty_field *f = declared(s, s->plan.feeds[i].field);
        l->is_long[i] = f && row_length(s, i) == l->longest;
        if (l->is_long[i])
            l->filled[i] = ty_filled_of(f, s->train_field[i]);
    }
    if (!d->length_auto)
        take_lengths(s);
    else if (choose_lengths(s, err) < 0)
        return -1;
    l->program = TY_NEW_ARRAY(&s->arena, ty_program *, l->n);
    l->n_batches = TY_NEW_ARRAY(&s->arena, int64_t, l->n);
    return 0;
}

/* ---- programs ---- */

static int compile_for(ty_session *s, const ty_compile_options *whole, int which, int first_exchange, ty_error *err)
{
    ty_session_lengths *l = &s->lengths;
    long long length = l->length[which];
    ty_train_spec spec = s->spec;
    ty_compile_options opt = *whole;
    ty_binding *inputs = ty_arena_copy(&s->arena, s->spec.inputs, sizeof *inputs * (size_t)s->spec.n_inputs);
    for (int i = 0; i < s->plan.n_feeds; i++) {
        if (!l->is_long[i])
            continue;
        if (inputs[i].type.rank < 2 || inputs[i].type.dim[1] != l->longest)
            return ty_error_set(err, TY_E_SHAPE,
                                "data.train.length_buckets: input \"%s\" has another shape than its rows",
                                inputs[i].name);
        inputs[i].type.dim[1] = length;
    }
    spec.inputs = inputs;
    opt.beside = s->program;
    opt.first_exchange = first_exchange;
    if (opt.output_dir)
        opt.output_dir = ty_arena_printf(&s->arena, "%s/length-%lld", opt.output_dir, length);
    if (opt.compiled_dir)
        opt.compiled_dir = ty_arena_printf(&s->arena, "%s/length-%lld", opt.compiled_dir, length);
    if (opt.dump_dir)
        opt.dump_dir = ty_arena_printf(&s->arena, "%s/length-%lld", opt.dump_dir, length);
    if (ty_compile_train(s->model, &spec, &opt, &l->program[which], err) == 0)
        return 0;
    ty_error_wrap(err, "data.train.length_buckets: rows of %lld", length);
    return err->help[0] ? -1
                        : ty_error_help(err, "the model's dimension of these rows must be free (dynamic), not %lld",
                                        (long long)l->longest);
}

/* All but the whole one. */
static void free_programs(ty_session *s)
{
    for (int i = 0; i + 1 < s->lengths.n; i++) {
        ty_program_free(s->lengths.program[i]);
        s->lengths.program[i] = NULL;
    }
}

int ty_session_compile_lengths(ty_session *s, const ty_compile_options *whole, ty_error *err)
{
    ty_session_lengths *l = &s->lengths;
    int n_exchanges = 0, n = 0;
    s->started = s->program;
    if (l->n == 0 || whole->plan_only)
        return 0;
    l->program[l->n - 1] = s->program;
    ty_program_exchanges(s->program, &n_exchanges);
    for (int i = l->n - 2; i >= 0; i--, n_exchanges += n) {
        if (compile_for(s, whole, i, n_exchanges, err) < 0) {
            free_programs(s);
            ty_program_free(s->program);
            s->program = NULL;
            return -1;
        }
        ty_program_exchanges(l->program[i], &n);
    }
    return 0;
}

const ty_program *ty_session_program(const ty_session *s, int i)
{
    return i == 0 ? s->program : i < s->lengths.n ? s->lengths.program[s->lengths.n - 1 - i] : NULL;
}

void ty_session_close_lengths(ty_session *s)
{
    free_programs(s);
    ty_pages_free(s->lengths.of_train, s->lengths.n_train * sizeof(uint32_t));
    ty_pages_free(s->lengths.of_validation, s->lengths.n_validation * sizeof(uint32_t));
}

/* ---- how long samples are ---- */

static int measure_all(ty_session *s, const ty_dataset *ds, const int *fields, uint32_t **out, size_t *n_out,
                       ty_error *err)
{
    *n_out = (size_t)ds->n_samples;
    *out = ty_pages_new(*n_out * sizeof **out);
    if (!*out)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the lengths of %lld samples", (long long)ds->n_samples);
    return measure(s, ds, fields, ds->n_samples, *out, err);
}

static int which_length(const ty_session_lengths *l, int64_t wanted)
{
    int i = 0;
    while (i + 1 < l->n && l->length[i] < wanted)
        i++;
    return i;
}

static void tell_lengths(const ty_session *s, double seconds)
{
    const ty_session_lengths *l = &s->lengths;
    double sum = 0, next = 0;
    for (size_t i = 0; i < l->n_train; i++) {
        sum += l->of_train[i];
        next += (double)l->length[which_length(l, l->of_train[i])];
    }
    double n = l->n_train ? (double)l->n_train : 1;
    ty_log_info("data", "samples are %.0f of %lld long on average, %.0f up to the next bucket: looked up in %.2f s",
                sum / n, (long long)l->longest, next / n, seconds);
}

int ty_session_measure_lengths(ty_session *s, ty_error *err)
{
    ty_session_lengths *l = &s->lengths;
    double start = ty_session_now_s();
    if (l->n == 0)
        return 0;
    if (!l->of_train && measure_all(s, s->train, s->train_field, &l->of_train, &l->n_train, err) < 0)
        return ty_error_wrap(err, "data.train");
    if (s->validation &&
        measure_all(s, s->validation, s->validation_field, &l->of_validation, &l->n_validation, err) < 0)
        return ty_error_wrap(err, "data.validation");
    double seconds = ty_session_now_s() - start;
    s->times.data_s += seconds;
    if (ty_session_leads(s))
        tell_lengths(s, seconds);
    return 0;
}

/* Evaluations are sorted as a whole: their order changes nothing. Training data in a given order stay in it. */
void ty_session_order_lengths(const ty_session *s, bool validation, ty_sampler_config *c)
{
    const ty_session_lengths *l = &s->lengths;
    int64_t rows = c->batch_size * (c->n_shards > 0 ? c->n_shards : 1);
    int64_t batches = rows > 0 ? c->n_samples / rows : 0, some = batches / LENGTHS_LEAST_GROUPS;
    c->length = validation ? l->of_validation : l->of_train;
    if (!c->length)
        return;
    if (validation)
        c->sorted_batches = INT64_MAX;
    else if (c->shuffle)
        c->sorted_batches = some < 1 ? 1 : some < LENGTHS_GROUP ? some : LENGTHS_GROUP;
}

/* ---- runs ---- */

static void *room_to_cut(ty_session *s, int feed, int64_t rows)
{
    ty_session_lengths *l = &s->lengths;
    size_t row = s->train->field[s->train_field[feed]].row_bytes;
    if (!l->cut[feed])
        l->cut[feed] = ty_arena_alloc(&s->arena, (size_t)rows * row);
    return l->cut[feed];
}

ty_program *ty_session_cut_inputs(ty_session *s, const ty_batch *batch, bool trains)
{
    ty_session_lengths *l = &s->lengths;
    int which = l->n == 0 || batch->longest == 0 ? l->n - 1 : which_length(l, batch->longest);
    if (which >= 0)
        l->n_batches[which] += trains;
    if (which < 0 || which == l->n - 1)
        return s->program;
    for (int i = 0; i < s->plan.n_feeds; i++) {
        if (!l->is_long[i])
            continue;
        void *to = room_to_cut(s, i, batch->n_rows);
        size_t row = s->train->field[s->train_field[i]].row_bytes;
        ty_filled_cut(&l->filled[i], s->inputs[i], batch->n_rows, l->longest, l->length[which],
                      row / (size_t)l->longest, to);
        s->inputs[i] = to;
    }
    return l->program[which];
}

/* ---- in words ---- */

void ty_session_add_lengths(const ty_session *s, ty_buf *out)
{
    const ty_session_lengths *l = &s->lengths;
    char count[32];
    for (int i = 0; i < l->n; i++)
        ty_buf_addf(out, "%s%lld: %s batches", i ? ", " : "", (long long)l->length[i],
                    ty_count_text(l->n_batches[i], count, sizeof count));
}

const char *ty_session_lengths_text(ty_session *s)
{
    const ty_session_lengths *l = &s->lengths;
    const char *others = "";
    for (int i = 0; i + 1 < l->n; i++)
        others = ty_arena_printf(&s->arena, "%s%s%lld", others, i ? ", " : "", (long long)l->length[i]);
    return l->n < 2 ? NULL
                    : ty_arena_printf(&s->arena, "rows of %lld; steps for %s are compiled beside this one",
                                      (long long)l->longest, others);
}
