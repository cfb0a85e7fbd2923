/* catalogue.c - see catalogue.h. */
#include "dist/server/catalogue.h"

#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { CATALOGUE_FORMAT = 1, CATALOGUE_MAX_NAME = 512 };
#define CATALOGUE_MAX_ROWS   ((int64_t)1 << 40)
#define CATALOGUE_MAX_WIDTH  ((int64_t)1 << 32)
#define CATALOGUE_MAX_VALUES ((int64_t)1 << 42)

static const char *const modes[] = {"async", "bounded", "sync"};

/* ---- checks ---- */

static int catalogue_check_int(const char *what, int64_t value, int64_t lowest, int64_t highest, ty_error *err)
{
    if (value >= lowest && value <= highest)
        return 0;
    return ty_error_set(err, TY_E_RANGE, "%s is to be from %" PRId64 " to %" PRId64 ", found %" PRId64, what, lowest,
                        highest, value);
}

static int variable_check(const ty_shard_variable *v, ty_error *err)
{
    if (v->name[0] == '\0' || strlen(v->name) > CATALOGUE_MAX_NAME)
        return ty_error_set(err, TY_E_RANGE, "a variable's name is to have 1 to %d bytes", CATALOGUE_MAX_NAME);
    if (v->hashed && (!v->table || v->rows != 0 || !v->mod))
        return ty_error_set(err, TY_E_CONFIG, "a hashed variable is a table without rows, spread by remainder");
    if (!(v->scale >= 0 && isfinite(v->scale)))
        return ty_error_set(err, TY_E_RANGE, "scale is to be at least 0, found %g", (double)v->scale);
    if (catalogue_check_int("rows", v->rows, v->hashed ? 0 : 1, CATALOGUE_MAX_ROWS, err) < 0 ||
        catalogue_check_int("width", v->width, 1, CATALOGUE_MAX_WIDTH, err) < 0 ||
        catalogue_check_int("parts", v->parts, 1,
                            v->hashed || v->rows > TY_CATALOGUE_MAX_SHARDS ? TY_CATALOGUE_MAX_SHARDS : v->rows,
                            err) < 0)
        return -1;
    if (v->rows > CATALOGUE_MAX_VALUES / v->width)
        return ty_error_set(err, TY_E_LIMIT, "%" PRId64 " rows of %" PRId64 " are too many", v->rows, v->width);
    return ty_rule_check(&v->rule, err);
}

static int catalogue_check(const ty_catalogue *c, ty_error *err)
{
    if (catalogue_check_int("shards", c->shards, 1, TY_CATALOGUE_MAX_SHARDS, err) < 0 ||
        catalogue_check_int("workers", c->workers, 1, TY_CATALOGUE_MAX_WORKERS, err) < 0 ||
        catalogue_check_int("staleness", c->staleness, 0, INT32_MAX, err) < 0 ||
        catalogue_check_int("backup", c->backup, 0, c->workers - 1, err) < 0 ||
        catalogue_check_int("number of variables", c->n_variables, 1, TY_CATALOGUE_MAX_VARIABLES, err) < 0)
        return -1;
    for (int i = 0; i < c->n_variables; i++)
        if (variable_check(&c->variable[i], err) < 0)
            return ty_error_wrap(err, "variable \"%s\"", c->variable[i].name);
    return 0;
}

int ty_catalogue_place(ty_catalogue *c, ty_arena *arena, ty_error *err)
{
    if (catalogue_check(c, err) < 0)
        return ty_error_wrap(err, "catalogue");
    int n = 0, at = 0;
    for (int i = 0; i < c->n_variables; i++)
        n += c->variable[i].parts;
    int64_t *bytes = TY_NEW_ARRAY(arena, int64_t, n);
    int *shard = TY_NEW_ARRAY(arena, int, n);
    for (int i = 0; i < c->n_variables; i++) {
        ty_shard_variable *v = &c->variable[i];
        v->shard = shard + at;
        for (int p = 0; p < v->parts; p++)
            bytes[at++] = (v->hashed ? 1 : ty_shard_variable_rows(v, p)) * v->width * (int64_t)sizeof(float);
    }
    ty_partition_balance(bytes, n, c->shards, shard);
    return 0;
}

/* ---- JSON ---- */

static void rule_write(ty_json_writer *w, const ty_rule *r)
{
    ty_json_open_map(w, "rule");
    ty_json_put_string(w, "kind", ty_rule_text(r->kind));
    ty_json_put_bool(w, "nesterov", r->nesterov);
    ty_json_put_float(w, "rate", r->rate);
    ty_json_put_float(w, "momentum", r->momentum);
    ty_json_put_float(w, "beta1", r->beta1);
    ty_json_put_float(w, "beta2", r->beta2);
    ty_json_put_float(w, "eps", r->eps);
    ty_json_put_float(w, "initial", r->initial);
    ty_json_put_float(w, "l1", r->l1);
    ty_json_put_float(w, "l2", r->l2);
    ty_json_put_float(w, "beta", r->beta);
    ty_json_close(w);
}

int ty_catalogue_write(const ty_catalogue *c, ty_buf *out)
{
    ty_json_writer w;
    ty_json_writer_init(&w, out, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "format", CATALOGUE_FORMAT);
    ty_json_put_int(&w, "shards", c->shards);
    ty_json_put_int(&w, "workers", c->workers);
    ty_json_put_string(&w, "mode", modes[c->mode]);
    ty_json_put_int(&w, "staleness", c->staleness);
    ty_json_put_int(&w, "backup", c->backup);
    ty_json_open_list(&w, "variables");
    for (int i = 0; i < c->n_variables; i++) {
        const ty_shard_variable *v = &c->variable[i];
        ty_json_open_map(&w, NULL);
        ty_json_put_string(&w, "name", v->name);
        ty_json_put_bool(&w, "table", v->table);
        ty_json_put_bool(&w, "hashed", v->hashed);
        ty_json_put_bool(&w, "mod", v->mod);
        ty_json_put_int(&w, "rows", v->rows);
        ty_json_put_int(&w, "width", v->width);
        ty_json_put_int(&w, "parts", v->parts);
        ty_json_put_int(&w, "seed", (int64_t)v->seed);
        ty_json_put_float32(&w, "scale", v->scale);
        rule_write(&w, &v->rule);
        ty_json_close(&w);
    }
    ty_json_close(&w);
    ty_json_close(&w);
    return out->failed ? -1 : 0;
}

typedef struct catalogue_reader {
    const ty_doc *map;
    ty_error *err;
    bool failed;
} catalogue_reader;

static const ty_doc *read_key(catalogue_reader *r, const char *key)
{
    const ty_doc *value = ty_doc_find(r->map, key);
    if (value == NULL && !r->failed) {
        ty_error_set(r->err, TY_E_MISSING_KEY, "expected a key \"%s\"", key);
        r->failed = true;
    }
    return r->failed ? NULL : value;
}

static int64_t read_int(catalogue_reader *r, const char *key, int64_t lowest, int64_t highest)
{
    const ty_doc *d = read_key(r, key);
    int64_t value = lowest;
    if (d && (ty_doc_int(d, &value, r->err) < 0 || catalogue_check_int(key, value, lowest, highest, r->err) < 0))
        r->failed = true;
    return r->failed ? lowest : value;
}

static double read_float(catalogue_reader *r, const char *key)
{
    const ty_doc *d = read_key(r, key);
    double value = 0;
    r->failed |= d && ty_doc_float(d, &value, r->err) < 0;
    return value;
}

static bool read_bool(catalogue_reader *r, const char *key)
{
    const ty_doc *d = read_key(r, key);
    bool value = false;
    r->failed |= d && ty_doc_bool(d, &value, r->err) < 0;
    return value;
}

static const char *read_string(catalogue_reader *r, const char *key)
{
    const ty_doc *d = read_key(r, key);
    const char *value = "";
    r->failed |= d && ty_doc_string(d, &value, r->err) < 0;
    return r->failed ? "" : value;
}

static void rule_read(catalogue_reader *outer, ty_rule *rule)
{
    catalogue_reader r = {read_key(outer, "rule"), outer->err, outer->failed};
    const char *kind = read_string(&r, "kind");
    if (!r.failed && !ty_rule_parse(kind, &rule->kind)) {
        ty_error_set(r.err, TY_E_UNSUPPORTED, "unknown rule \"%s\"", kind);
        r.failed = true;
    }
    rule->nesterov = read_bool(&r, "nesterov");
    rule->rate = read_float(&r, "rate");
    rule->momentum = read_float(&r, "momentum");
    rule->beta1 = read_float(&r, "beta1");
    rule->beta2 = read_float(&r, "beta2");
    rule->eps = read_float(&r, "eps");
    rule->initial = read_float(&r, "initial");
    rule->l1 = read_float(&r, "l1");
    rule->l2 = read_float(&r, "l2");
    rule->beta = read_float(&r, "beta");
    outer->failed = r.failed;
}

static int variable_read(const ty_doc *map, ty_arena *arena, ty_shard_variable *v, ty_error *err)
{
    catalogue_reader r = {map, err, false};
    v->name = ty_arena_strdup(arena, read_string(&r, "name"));
    v->table = read_bool(&r, "table");
    v->hashed = read_bool(&r, "hashed");
    v->mod = read_bool(&r, "mod");
    v->rows = read_int(&r, "rows", 0, CATALOGUE_MAX_ROWS);
    v->width = read_int(&r, "width", 1, CATALOGUE_MAX_WIDTH);
    v->parts = (int)read_int(&r, "parts", 1, TY_CATALOGUE_MAX_SHARDS);
    v->seed = (uint64_t)read_int(&r, "seed", INT64_MIN, INT64_MAX);
    v->scale = (float)read_float(&r, "scale");
    rule_read(&r, &v->rule);
    return r.failed ? ty_error_wrap(err, "variable \"%s\"", v->name) : 0;
}

static int catalogue_take(const ty_doc *doc, ty_arena *arena, ty_catalogue *c, ty_error *err)
{
    catalogue_reader r = {doc, err, false};
    read_int(&r, "format", CATALOGUE_FORMAT, CATALOGUE_FORMAT);
    c->shards = (int)read_int(&r, "shards", 1, TY_CATALOGUE_MAX_SHARDS);
    c->workers = (int)read_int(&r, "workers", 1, TY_CATALOGUE_MAX_WORKERS);
    c->staleness = (int)read_int(&r, "staleness", 0, INT32_MAX);
    c->backup = (int)read_int(&r, "backup", 0, TY_CATALOGUE_MAX_WORKERS);
    const char *mode = read_string(&r, "mode");
    const ty_doc *list = read_key(&r, "variables");
    if (r.failed || ty_doc_expect(list, TY_DOC_LIST, err) < 0)
        return -1;
    int m = 0;
    while (m < 3 && strcmp(modes[m], mode) != 0)
        m++;
    if (m == 3)
        return ty_error_set(err, TY_E_UNSUPPORTED, "expected mode async, bounded or sync, found \"%s\"", mode);
    c->mode = (ty_server_mode)m;
    if (catalogue_check_int("number of variables", (int64_t)ty_doc_len(list), 1, TY_CATALOGUE_MAX_VARIABLES, err) < 0)
        return -1;
    c->n_variables = (int)ty_doc_len(list);
    c->variable = TY_NEW_ARRAY(arena, ty_shard_variable, c->n_variables);
    for (int i = 0; i < c->n_variables; i++)
        if (variable_read(ty_doc_at(list, (size_t)i), arena, &c->variable[i], err) < 0)
            return -1;
    return 0;
}

int ty_catalogue_read(const char *text, size_t n_bytes, ty_arena *arena, ty_catalogue *out, ty_error *err)
{
    ty_doc *doc;
    ty_doc_limits limits = {.max_bytes = TY_CATALOGUE_MAX_BYTES};
    *out = (ty_catalogue){0};
    if (ty_json_parse(arena, "catalogue", text, n_bytes, &limits, &doc, err) < 0 ||
        catalogue_take(doc, arena, out, err) < 0)
        return ty_error_wrap(err, "catalogue");
    return ty_catalogue_place(out, arena, err);
}

/* ---- comparing ---- */

static int variable_compare(const ty_shard_variable *a, const ty_shard_variable *b, bool all, ty_error *err)
{
    const ty_rule *r = &a->rule, *s = &b->rule;
    if (strcmp(a->name, b->name) != 0)
        return ty_error_set(err, TY_E_CONFIG, "expected variable \"%s\", found \"%s\"", a->name, b->name);
    if (a->rows != b->rows || a->width != b->width || a->hashed != b->hashed)
        return ty_error_set(
            err, TY_E_SHAPE,
            "variable \"%s\": expected %" PRId64 " rows of %" PRId64 "%s, found %" PRId64 " rows of %" PRId64 "%s",
            a->name, a->rows, a->width, a->hashed ? ", hashed" : "", b->rows, b->width, b->hashed ? ", hashed" : "");
    if (r->kind != s->kind || ty_rule_slots(r) != ty_rule_slots(s))
        return ty_error_set(err, TY_E_CONFIG, "variable \"%s\": expected rule %s, found %s with other slots", a->name,
                            ty_rule_text(r->kind), ty_rule_text(s->kind));
    if (all && (a->parts != b->parts || a->mod != b->mod || a->table != b->table || r->rate != s->rate))
        return ty_error_set(err, TY_E_CONFIG, "variable \"%s\": parts, placement or rate are not the same", a->name);
    return 0;
}

int ty_catalogue_compare(const ty_catalogue *have, const ty_catalogue *given, bool all, ty_error *err)
{
    if (have->n_variables != given->n_variables)
        return ty_error_set(err, TY_E_CONFIG, "catalogue: expected %d variables, found %d", have->n_variables,
                            given->n_variables);
    if (all && (have->shards != given->shards || have->workers != given->workers || have->mode != given->mode ||
                have->staleness != given->staleness || have->backup != given->backup))
        return ty_error_set(err, TY_E_CONFIG, "catalogue: expected %d shards, %d workers, mode %s, found %d, %d, %s",
                            have->shards, have->workers, modes[have->mode], given->shards, given->workers,
                            modes[given->mode]);
    for (int i = 0; i < have->n_variables; i++)
        if (variable_compare(&have->variable[i], &given->variable[i], all, err) < 0)
            return ty_error_wrap(err, "catalogue");
    return 0;
}

/* ---- places ---- */

int ty_shard_variable_find(const ty_shard_variable *v, int64_t id, int *part, int64_t *place)
{
    if (v->hashed) {
        *part = (int)((uint64_t)id % (uint64_t)v->parts);
        *place = -1;
        return 0;
    }
    if (id < 0 || id >= v->rows)
        return -1;
    ty_partition_find(v->rows, v->parts, v->mod, id, part, place);
    return 0;
}

int64_t ty_shard_variable_rows(const ty_shard_variable *v, int part)
{
    return v->hashed ? 0 : ty_partition_rows(v->rows, v->parts, part, v->mod);
}
