/* served.c - see served.h. */
#include "entrypoint/served.h"

#include "base/log.h"
#include "entrypoint/launch.h"
#include "entrypoint/served_tables.h"
#include "entrypoint/stop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVED_PATIENCE_MS = 600000, SERVED_JOIN_MS = 60000, SERVED_LEAVE_MS = 10000 };

enum { SERVED_POSITIONS = 3 };

struct ty_served {
    ty_served_options options;
    ty_arena arena;
    ty_catalogue catalogue;
    ty_client *client;
    ty_client_dense *weight, *gradient; /* [n], in the program's states; the last ones are tables that travel by rows */
    ty_served_tables tables;
    ty_client_dense *slot; /* [n_slots]: worker 0 of a job; what a checkpoint has of the rules' memory */
    ty_tensor *memory;     /* [n_memory]: states that gradients are read from, but for tables' */
    int n, n_slots, n_memory;
    int64_t version;                      /* of the servers' values, in a checkpoint */
    float position[2 * SERVED_POSITIONS]; /* of worker 0 at the start, for the others: of steps, epoch and batch each
                                             the number / 2^20, and what is over */
    ty_rule rule;
    int64_t step;               /* pushed last */
    uint64_t asked;             /* questions to all workers */
    int64_t pushes, step_bytes; /* steps of this worker, and what they pulled and pushed */
    int64_t other_bytes;        /* what was pulled and pushed for anything else */
    ty_client_ticket *pulling;  /* the weights that travel whole are on their way */
    bool whole;                 /* with tables: all rows are the servers' */
    int saves;                  /* so far */
    bool unsaved;               /* they have no folder */
    bool joined;
};

bool ty_served_is_job(const ty_served_options *o)
{
    return o && o->is_job;
}

/* ---- what servers can do ---- */

static int served_refuse(const char *what, ty_error *err)
{
    ty_error_set(err, TY_E_CONFIG, "parameter servers: %s", what);
    return ty_error_help(err, "leave it out, or train without parameter servers");
}

/* What gathers gradients of several steps before weights change. */
static int served_refuse_waiting(const char *key, int times, ty_error *err)
{
    ty_error_set(err, TY_E_CONFIG,
                 "parameter servers: %s is not for them, since a gradient changes the weights when it comes", key);
    return ty_error_help(err,
                         "leave it out and take a batch_size that is %d times larger; a schedule then has as many "
                         "times fewer steps",
                         times);
}

static const struct {
    ty_optimizer_kind kind;
    ty_rule_kind rule;
} served_rules[] = {
    {TY_OPT_SGD, TY_RULE_SGD},         {TY_OPT_KERAS_SGD, TY_RULE_SGD},
    {TY_OPT_ADAM, TY_RULE_ADAM},       {TY_OPT_KERAS_ADAM, TY_RULE_KERAS_ADAM},
    {TY_OPT_ADAGRAD, TY_RULE_ADAGRAD}, {TY_OPT_KERAS_ADAGRAD, TY_RULE_KERAS_ADAGRAD},
    {TY_OPT_FTRL, TY_RULE_FTRL},
};

static int served_rule(const ty_optimizer *o, ty_rule *rule, ty_error *err)
{
    size_t k = 0, n = sizeof served_rules / sizeof *served_rules;
    while (k < n && served_rules[k].kind != o->kind)
        k++;
    if (k == n) {
        ty_error_set(err, TY_E_CONFIG,
                     "parameter servers: expected an optimizer of sgd, adam, adagrad, keras_sgd, keras_adam, "
                     "keras_adagrad and ftrl, found another one");
        return ty_error_help(err,
                             "write for example optimizer: {adam: {lr: 1e-3}}, or train without parameter servers");
    }
    if (o->amsgrad || o->dampening != 0 || o->lr_decay != 0 || o->l2_shrinkage != 0 ||
        (o->kind == TY_OPT_FTRL && o->lr_power != -0.5))
        return served_refuse("amsgrad, dampening, lr_decay, l2_shrinkage and other lr_power are not for them", err);
    *rule = (ty_rule){.kind = served_rules[k].rule, .rate = o->lr};
    bool averages = o->kind == TY_OPT_ADAM || o->kind == TY_OPT_KERAS_ADAM;
    if (rule->kind == TY_RULE_SGD) {
        rule->momentum = o->momentum;
        rule->nesterov = o->nesterov;
    } else if (averages) {
        rule->beta1 = o->beta1;
        rule->beta2 = o->beta2;
        rule->eps = o->eps;
    } else {
        rule->initial = o->initial_accumulator;
        rule->eps = o->kind == TY_OPT_FTRL ? 0 : o->eps;
    }
    if (o->kind == TY_OPT_FTRL) {
        rule->l1 = o->l1;
        rule->l2 = o->l2;
        rule->beta = o->beta;
    }
    return ty_rule_check(rule, err);
}

int ty_served_prepare(ty_train_spec *spec, ty_rule *rule, ty_error *err)
{
    if (served_rule(&spec->optimizer, rule, err) < 0)
        return -1;
    if (spec->optimizer.weight_decay != 0)
        return served_refuse("weight decay is not for them", err);
    if (spec->accumulate > 1)
        return served_refuse_waiting("accumulate", spec->accumulate, err);
    if (spec->update_every > 1)
        return served_refuse_waiting("update_every", spec->update_every, err);
    if (spec->unmerged_rows)
        return served_refuse("they add the rows of a table up: set unmerged_rows: false", err);
    if (spec->ema_decay != 0)
        return served_refuse("averages of weights (ema) are not for them", err);
    if (spec->n_lr_scale > 0)
        return served_refuse("lr_scale is not for them", err);
    spec->row_lists = spec->sparse_all || spec->n_sparse_rows > 0;
    if (spec->row_lists && rule->kind == TY_RULE_SGD && rule->momentum != 0)
        return served_refuse("with sparse_rows, momentum would move every row that was ever touched at every step",
                             err);
    spec->optimizer = (ty_optimizer){.kind = TY_OPT_SGD, .lr = spec->optimizer.lr, .momentum = 0.5};
    return 0;
}

int ty_served_check_model(const ty_model *m, ty_error *err)
{
    for (int i = 0; i < ty_model_n_weights(m); i++)
        if (ty_model_weight(m, i)->constraint.kind != TY_CONSTRAINT_NONE) {
            served_refuse("they hold no weights to constraints", err);
            return ty_error_wrap(err, "weight \"%s\"", ty_model_weight(m, i)->name);
        }
    return 0;
}

/* ---- weights and gradients in the program ---- */

/* The state called PREFIX.NUMBER whose other part (param.NUMBER) has the weight at `offset`; NULL: there is none. */
static void *served_find(const ty_program *p, const void *weight, const char *prefix)
{
    for (int i = 0; i < ty_program_n_states(p); i++) {
        const char *name, *other;
        ty_tensor t = ty_program_state(p, i, &name);
        ptrdiff_t offset = (const char *)weight - (const char *)t.data;
        char wanted[64];
        if (strncmp(name, "param.", 6) != 0 || offset < 0 || offset >= (ptrdiff_t)ty_type_bytes(&t.type))
            continue;
        snprintf(wanted, sizeof wanted, "%s.%s", prefix, name + 6);
        for (int k = 0; k < ty_program_n_states(p); k++) {
            ty_tensor m = ty_program_state(p, k, &other);
            if (strcmp(other, wanted) == 0)
                return (char *)m.data + offset;
        }
    }
    return NULL;
}

/* Tied weights are one variable, under the first of their names. */
static bool served_has(const ty_served *r, const void *weight)
{
    for (int i = 0; i < r->n; i++)
        if (r->weight[i].values == weight)
            return true;
    return false;
}

/* most: of its rows in a batch; 0: it travels whole. */
static int served_add(ty_served *r, ty_program *p, const char *name, const ty_tensor *t, int64_t most, ty_error *err)
{
    float *gradient = served_find(p, t->data, "sgd.m");
    if (t->type.dtype != TY_F32 || gradient == NULL)
        return ty_error_set(err, TY_E_UNSUPPORTED, "parameter servers: weight \"%s\" is not float32 in an arena", name);
    ty_partitioner parts = r->options.partitioner;
    if (parts.kind != TY_PARTITION_MAX_SIZE)
        parts.max_shards = r->catalogue.shards;
    int64_t rows = t->type.rank ? t->type.dim[0] : 1, elems = ty_type_elems(&t->type);
    ty_shard_variable *v = &r->catalogue.variable[r->n];
    *v = (ty_shard_variable){
        .name = name, .rows = rows, .width = elems / rows, .table = most > 0, .mod = most > 0, .rule = r->rule};
    v->parts = ty_partition_count(&parts, rows, v->width * (int64_t)sizeof(float));
    if (most > 0)
        ty_served_tables_add(&r->tables, r->n, v, most, t->data, gradient, &r->arena);
    r->weight[r->n] = (ty_client_dense){r->n, t->data, 0, false};
    r->gradient[r->n] = (ty_client_dense){r->n, gradient, 0, false};
    r->n++;
    return 0;
}

static int served_list(ty_served *r, ty_program *p, ty_error *err)
{
    int n = ty_program_n_tensors(p);
    r->catalogue.variable = TY_NEW_ARRAY(&r->arena, ty_shard_variable, n + 1);
    r->weight = TY_NEW_ARRAY(&r->arena, ty_client_dense, n);
    r->gradient = TY_NEW_ARRAY(&r->arena, ty_client_dense, n);
    ty_served_tables_init(&r->tables, p, n, &r->arena);
    for (int k = 0; k < 2 * n; k++) { /* twice: tables in the end */
        const char *name;
        bool trained;
        ty_tensor t = ty_program_tensor(p, k % n, &name, &trained);
        int64_t most = ty_served_tables_find(&r->tables, name);
        if (trained && (most > 0) == (k >= n) && !served_has(r, t.data) && served_add(r, p, name, &t, most, err) < 0)
            return -1;
    }
    r->catalogue.n_variables = r->n;
    if (r->options.is_job) /* its rule is never applied */
        r->catalogue.variable[r->catalogue.n_variables++] =
            (ty_shard_variable){.name = "trainyard.position",
                                .rows = 1,
                                .width = 2 * SERVED_POSITIONS,
                                .parts = 1,
                                .rule = {.kind = TY_RULE_SGD, .rate = 1}};
    return ty_catalogue_place(&r->catalogue, &r->arena, err);
}

/* The states of gradients, which begin each step at zero. A table has one of its own. */
static void served_memory(ty_served *r, ty_program *p)
{
    r->memory = TY_NEW_ARRAY(&r->arena, ty_tensor, ty_program_n_states(p));
    for (int i = 0; i < ty_program_n_states(p); i++) {
        const char *name;
        ty_tensor t = ty_program_state(p, i, &name);
        bool table = false;
        for (int k = 0; k < r->tables.n; k++)
            table |= t.data == r->tables.table[k].gradient;
        if (strncmp(name, "sgd.m.", 6) == 0 && !table)
            r->memory[r->n_memory++] = t;
    }
}

static void served_clear(ty_served *r)
{
    for (int i = 0; i < r->n_memory; i++)
        memset(r->memory[i].data, 0, ty_type_bytes(&r->memory[i].type));
}

/* ---- what a checkpoint has of servers ---- */

static bool served_leads(const ty_served *r)
{
    return r->options.is_job && r->options.worker == 0;
}

static int served_slots(ty_served *r, ty_error *err)
{
    int each = ty_rule_slots(&r->rule);
    r->slot = TY_NEW_ARRAY(&r->arena, ty_client_dense, r->n * each);
    for (int i = 0; i < r->n * each; i++) {
        const ty_shard_variable *v = &r->catalogue.variable[i / each];
        float *values = calloc((size_t)(v->rows * v->width) + 1, sizeof *values);
        if (values == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for what servers keep of \"%s\"", v->name);
        r->slot[r->n_slots++] = (ty_client_dense){i / each, values, i % each + 1, false};
    }
    return 0;
}

bool ty_served_state(ty_served *r, int i, const char **name, ty_tensor *out)
{
    if (r == NULL || !served_leads(r) || i > r->n_slots)
        return false;
    if (i == r->n_slots) {
        *name = "servers.version";
        *out = (ty_tensor){.type = ty_type_make(TY_I64, 0, NULL), .data = &r->version};
        return true;
    }
    const ty_client_dense *d = &r->slot[i];
    const ty_shard_variable *v = &r->catalogue.variable[d->variable];
    const int64_t dims[2] = {v->rows, v->width};
    *name = ty_arena_printf(&r->arena, "servers.%d.%s", d->slot, v->name);
    *out = (ty_tensor){.type = ty_type_make(TY_F32, 2, dims), .data = d->values};
    return true;
}

/* Asks, and waits. */
static int served_get(ty_served *r, const ty_client_batch *b, int64_t step, ty_error *err)
{
    ty_client_ticket *t;
    int64_t before = ty_client_bytes(r->client);
    int rc = ty_client_pull(r->client, b, (uint64_t)step, &t, err) < 0 ? -1 : ty_client_take(r->client, t, err);
    r->other_bytes += ty_client_bytes(r->client) - before;
    return rc;
}

int ty_served_fetch(ty_served *r, ty_error *err)
{
    ty_client_batch all = {.dense = r->slot, .n_dense = r->n_slots};
    if (!served_leads(r))
        return 0;
    if (ty_client_flush(r->client, err) < 0 || served_get(r, &all, r->step, err) < 0)
        return -1;
    r->version = (int64_t)ty_client_version(r->client, true);
    return 0;
}

/* ---- a step ---- */

/* Asks for the weights that travel whole. Which rows of tables follow is not known before the batch is. */
static int served_pull(ty_served *r, ty_error *err)
{
    ty_client_batch dense = {.dense = r->weight, .n_dense = r->n - r->tables.n};
    r->whole = false;
    return ty_client_pull(r->client, &dense, (uint64_t)r->step, &r->pulling, err);
}

/* What was asked for has come. */
static int served_take(ty_served *r, ty_error *err)
{
    ty_client_ticket *t = r->pulling;
    r->pulling = NULL;
    return t ? ty_client_take(r->client, t, err) : 0;
}

/* In sync mode a worker that was too slow goes on with the step that the others are at: what it computes of steps that
 * are over would never count. */
static void served_catch_up(ty_served *r)
{
    int64_t version = (int64_t)ty_client_version(r->client, false);
    if (r->options.is_job && r->options.mode == TY_SERVER_SYNC && version > r->step)
        r->step = version;
}

int ty_served_settle(ty_served *r, ty_error *err)
{
    ty_client_batch all = {.dense = r->weight, .n_dense = r->n};
    if (served_take(r, err) < 0 || (r->tables.n && !r->whole && served_get(r, &all, r->step, err) < 0))
        return -1;
    r->whole = true;
    served_catch_up(r);
    return 0;
}

/* Rows, and what is on its way. In sync mode servers may have gone on between the two, if they did not wait for this
 * worker: what a step reads is of one version. */
static int served_get_rows(ty_served *r, ty_error *err)
{
    ty_client_batch rows = {.rows = r->tables.rows, .n_rows = r->tables.n};
    ty_client_batch both = {
        .dense = r->weight, .n_dense = r->n - r->tables.n, .rows = rows.rows, .n_rows = rows.n_rows};
    ty_client_ticket *t;
    if (ty_client_pull(r->client, &rows, (uint64_t)r->step, &t, err) < 0 || ty_client_take(r->client, t, err) < 0)
        return -1;
    uint64_t version = ty_client_version(r->client, false);
    if (served_take(r, err) < 0)
        return -1;
    if (r->options.mode == TY_SERVER_SYNC && version != ty_client_version(r->client, false) &&
        served_get(r, &both, r->step, err) < 0)
        return -1;
    ty_served_tables_put(&r->tables);
    served_catch_up(r);
    return 0;
}

int ty_served_read(ty_served *r, const void *const *inputs, ty_error *err)
{
    if (r->tables.n == 0)
        return ty_served_settle(r, err);
    if (ty_served_tables_name(&r->tables, inputs, err) < 0 || (!r->whole && served_get_rows(r, err) < 0))
        return -1;
    r->whole = false;
    return 0;
}

bool ty_served_in_step(const ty_served_options *o)
{
    return ty_served_is_job(o) && o->mode == TY_SERVER_SYNC && o->backup == 0 && o->workers > 1;
}

int ty_served_agree(ty_served *r, bool most, int64_t *v, ty_error *err)
{
    uint32_t all[2];
    if (!ty_served_in_step(&r->options))
        return 0;
    if (*v < 0 || *v > UINT32_MAX)
        return ty_error_set(err, TY_E_LIMIT, "parameter servers: %" PRId64 " cannot be agreed on", *v);
    if (ty_client_agree(r->client, ++r->asked, (uint32_t)*v, &all[0], &all[1], err) < 0)
        return -1;
    *v = all[most];
    return 0;
}

int ty_served_push(ty_served *r, double rate, int64_t rows, ty_error *err)
{
    ty_client_batch all = {
        .dense = r->gradient, .n_dense = r->n - r->tables.n, .rows = r->tables.rows, .n_rows = r->tables.n};
    float scale = r->rule.rate > 0 ? (float)(rate / r->rule.rate) : 1;
    ty_served_tables_take(&r->tables);
    if (ty_client_push_rows(r->client, &all, (uint32_t)rows, (uint64_t)++r->step, scale, err) < 0)
        return -1;
    r->step_bytes = ty_client_bytes(r->client) - r->other_bytes;
    r->pushes++;
    served_clear(r);
    if (r->options.mode == TY_SERVER_BOUNDED && ty_client_clock(r->client, (uint64_t)r->step, err) < 0)
        return -1;
    return served_pull(r, err);
}

/* ---- opening and closing ---- */

static bool served_is_stopping(void)
{
    return ty_stop_count() > 0;
}

/* The first values: the program's weights, and of a job that goes on what its checkpoint had beside them. */
static int served_begin(ty_served *r, bool resumed, ty_error *err)
{
    ty_client_batch all = {.dense = r->weight, .n_dense = r->n};
    ty_client_batch slots = {.dense = r->slot, .n_dense = r->n_slots};
    ty_client_dense position = {r->n, r->position, 0, false};
    if (ty_client_set(r->client, &all, err) < 0)
        return -1;
    if (r->options.is_job && ty_client_set(r->client, &(ty_client_batch){.dense = &position, .n_dense = 1}, err) < 0)
        return -1;
    if (resumed && r->n_slots > 0 && ty_client_set(r->client, &slots, err) < 0)
        return -1;
    return ty_client_start(r->client, resumed ? (uint64_t)r->version : 0, err);
}

/* Where worker 0 begins, so do the others. */
static int served_follow(ty_served *r, ty_served_start *start, ty_error *err)
{
    ty_client_dense position = {r->n, r->position, 0, false};
    ty_client_batch all = {.dense = &position, .n_dense = 1};
    if (!r->options.is_job)
        return 0;
    if (served_get(r, &all, 0, err) < 0)
        return -1;
    int64_t *const numbers[SERVED_POSITIONS] = {&start->step, &start->epoch, &start->batch};
    for (int i = 0; i < SERVED_POSITIONS; i++)
        *numbers[i] = ((int64_t)r->position[2 * i] << 20) + (int64_t)r->position[2 * i + 1];
    return 0;
}

static int served_connect(ty_served *r, bool resumed, ty_served_start *start, ty_error *err)
{
    ty_client_options o = {.transport = {.name = "ucx", .interface = r->options.interface},
                           .servers = r->options.servers,
                           .n_servers = r->options.n_servers,
                           .job = TY_SERVED_JOB,
                           .key = r->options.key,
                           .worker = r->options.worker,
                           .catalogue = &r->catalogue,
                           .stopping = r->options.is_job ? served_is_stopping : NULL,
                           .patience_ms = r->options.patience_ms ? r->options.patience_ms : SERVED_PATIENCE_MS};
    const int64_t numbers[SERVED_POSITIONS] = {start->step, start->epoch, start->batch};
    for (int i = 0; i < SERVED_POSITIONS; i++) {
        r->position[2 * i] = (float)(numbers[i] >> 20);
        r->position[2 * i + 1] = (float)(numbers[i] & 0xfffff);
    }
    if (ty_client_open(&o, &r->client, err) < 0)
        return -1;
    if (r->options.worker == 0 && !ty_client_ready(r->client) && served_begin(r, resumed, err) < 0)
        return -1;
    if (ty_client_wait_ready(r->client, SERVED_PATIENCE_MS, err) < 0 || served_follow(r, start, err) < 0)
        return -1;
    bool counts_steps = r->options.is_job && r->options.mode == TY_SERVER_SYNC;
    r->step = counts_steps ? (int64_t)ty_client_version(r->client, false) : start->step;
    r->other_bytes = ty_client_bytes(r->client);
    return served_pull(r, err);
}

int ty_served_open(ty_served *r, bool resumed, ty_served_start *start, ty_error *err)
{
    if (served_connect(r, resumed, start, err) < 0) {
        ty_client_close(r->client, err->code == TY_E_STOPPED);
        r->client = NULL;
        return -1;
    }
    served_clear(r);
    ty_served_tables_clear(&r->tables);
    return 0;
}

int ty_served_new(const ty_served_options *o, const ty_rule *rule, ty_program *p, ty_served **out, ty_error *err)
{
    ty_served *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a served training");
    ty_arena_init(&r->arena);
    r->options = *o;
    r->rule = *rule;
    r->catalogue = (ty_catalogue){
        .mode = o->mode, .staleness = o->staleness, .backup = o->backup, .workers = o->workers, .shards = o->n_servers};
    if (served_list(r, p, err) < 0 || (served_leads(r) && served_slots(r, err) < 0)) {
        ty_served_close(r, false);
        return -1;
    }
    served_memory(r, p);
    *out = r;
    return 0;
}

int ty_served_join(ty_served *r, bool stopped, ty_error *err)
{
    ty_error late = {0};
    if (!served_leads(r) || r->joined)
        return 0;
    if (served_take(r, err) < 0)
        return -1;
    if (!stopped && ty_client_alone(r->client, false, 0, err) < 0) {
        stopped = err->code == TY_E_STOPPED;
        if (!stopped)
            return -1;
        *err = (ty_error){0};
    }
    if (stopped && ty_client_alone(r->client, true, SERVED_JOIN_MS, &late) < 0)
        ty_log_warning("server", "not all workers have left: %s", late.message);
    r->joined = true;
    return served_pull(r, err) < 0 ? -1 : ty_served_settle(r, err);
}

static void served_tell(ty_served *r)
{
    ty_client_stat s;
    ty_error ignored;
    if (ty_client_flush(r->client, &ignored) == 0 && ty_client_stats(r->client, &s, &ignored) == 0)
        ty_log_info("server",
                    "%" PRId64 " gradients, staleness mean %.2f, p99 %" PRId64 ", max %" PRId64 "; %" PRId64
                    " too late; %.1f kB a step",
                    s.version, s.staleness_mean, s.staleness_p99, s.staleness_max, s.late,
                    r->pushes ? (double)r->step_bytes / (double)r->pushes / 1e3 : 0);
}

int ty_served_leave(ty_served *r, ty_error *err)
{
    ty_error late = {0};
    if (r == NULL || !r->options.is_job)
        return 0;
    if (served_take(r, err) < 0 || ty_client_flush(r->client, err) < 0)
        return -1;
    if (r->options.worker == 0)
        served_tell(r);
    /* Nobody waits for the first worker but servers, which end when they have heard it. */
    if (ty_client_leave(r->client, SERVED_LEAVE_MS, r->options.worker ? err : &late) < 0 && r->options.worker)
        return -1;
    return 0;
}

void ty_served_save(ty_served *r)
{
    ty_error err = {0};
    char tag[16];
    if (r->options.worker != 0 || r->unsaved || r->options.is_job)
        return;
    snprintf(tag, sizeof tag, "save-%d", r->saves++ % 2);
    int64_t before = ty_client_bytes(r->client);
    int rc = ty_client_save(r->client, tag, &err);
    r->other_bytes += ty_client_bytes(r->client) - before;
    if (rc == 0)
        return;
    r->unsaved = err.code == TY_E_CONFIG;
    if (!r->unsaved)
        ty_log_warning("server", "%s; training goes on", err.message);
}

void ty_served_close(ty_served *r, bool finished)
{
    ty_error ignored;
    if (r == NULL)
        return;
    if (r->client && !r->options.is_job)
        served_take(r, &ignored);
    if (r->client && finished && !r->options.is_job)
        served_tell(r);
    ty_client_close(r->client, finished && !r->options.is_job);
    for (int i = 0; i < r->n_slots; i++)
        free(r->slot[i].values);
    ty_arena_fini(&r->arena);
    free(r);
}

/* ---- words ---- */

static int served_mode(const char *text, ty_served_options *out, ty_error *err)
{
    char end;
    if (strcmp(text, "async") == 0 || strcmp(text, "sync") == 0) {
        out->mode = text[0] == 'a' ? TY_SERVER_ASYNC : TY_SERVER_SYNC;
        return 0;
    }
    if (sscanf(text, "bounded:%d%c", &out->staleness, &end) == 1 && out->staleness >= 0) {
        out->mode = TY_SERVER_BOUNDED;
        return 0;
    }
    if (sscanf(text, "sync:%d%c", &out->backup, &end) == 1 && out->backup >= 0) {
        out->mode = TY_SERVER_SYNC;
        return 0;
    }
    return ty_error_set(err, TY_E_USAGE, "expected async, bounded:STEPS, sync or sync:BACKUP, found \"%.60s\"", text);
}

int ty_served_key(uint8_t key[TY_SEAL_KEY_BYTES], ty_error *err)
{
    const char *secret = getenv(TY_SECRET_VARIABLE);
    if (secret == NULL || *secret == '\0')
        secret = "trainyard";
    return ty_seal_key(secret, strlen(secret), "", key, err);
}

int ty_served_parse(const char *servers, const char *worker, const char *mode, ty_arena *a, ty_served_options *out,
                    ty_error *err)
{
    char end;
    *out = (ty_served_options){.workers = 1, .partitioner = {TY_PARTITION_MIN_SIZE, 0, 0}};
    if (worker && (sscanf(worker, "%d/%d%c", &out->worker, &out->workers, &end) != 2 || out->worker < 0 ||
                   out->worker >= out->workers))
        return ty_error_set(err, TY_E_USAGE, "expected a worker as 0/2, the first of two; found \"%.60s\"", worker);
    if (served_mode(mode ? mode : "async", out, err) < 0)
        return -1;
    char *text = ty_arena_strdup(a, servers), *rest = NULL;
    const char **list = TY_NEW_ARRAY(a, const char *, strlen(servers) + 1);
    for (char *s = strtok_r(text, ",", &rest); s; s = strtok_r(NULL, ",", &rest))
        list[out->n_servers++] = s;
    out->servers = list;
    return out->n_servers ? 0 : ty_error_set(err, TY_E_USAGE, "expected addresses of servers, found none");
}
