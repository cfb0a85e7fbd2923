/* hf_bind.c - weights of a Hugging Face folder by their names, with the liberties that files take: of the bare network
 * or of one with a head, under names of old, or not there at all, as those of a new head.
 */
#include "base/crew.h"
#include "base/log.h"
#include "compiler/import/huggingface/hf_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMED = 4 }; /* weights that a message names */

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* Old files call the numbers of a layer norm gamma and beta. */
static int find_old(const ty_hf *h, const char *name)
{
    static const char *const pairs[][2] = {{"LayerNorm.weight", "LayerNorm.gamma"},
                                           {"LayerNorm.bias", "LayerNorm.beta"}};
    size_t n = strlen(name);
    char old[CMODEL_NAME_BYTES + 32];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        size_t tail = strlen(pairs[i][0]);
        if (n >= tail && n < CMODEL_NAME_BYTES && strcmp(name + n - tail, pairs[i][0]) == 0) {
            snprintf(old, sizeof old, "%.*s%s", (int)(n - tail), name, pairs[i][1]);
            return hf_weights_find(h->weights, old);
        }
    }
    return -1;
}

static int find_as(const ty_hf *h, const char *name)
{
    int i = hf_weights_find(h->weights, name);
    return i >= 0 ? i : find_old(h, name);
}

/* The name without the module that heads stand on; NULL: it is not in there. */
static const char *inside_base(const ty_hf *h, const char *name)
{
    size_t n = strlen(h->net.family->base);
    return strncmp(name, h->net.family->base, n) == 0 && name[n] == '.' ? name + n + 1 : NULL;
}

/* The file may be of the bare network, or of one with a head where the bare one is meant. */
static int find_weight(const ty_hf *h, const char *name)
{
    char within[CMODEL_NAME_BYTES + 80];
    int i = find_as(h, name);
    const char *inside = inside_base(h, name);
    if (i >= 0)
        return i;
    if (inside)
        return find_as(h, inside);
    snprintf(within, sizeof within, "%.64s.%.*s", h->net.family->base, CMODEL_NAME_BYTES, name);
    return h->net.head->task == HF_NO_TASK ? find_as(h, within) : -1;
}

/* What a file may lack: all that is no part of the network that heads stand on, and its pooler. */
static bool may_start(const ty_hf *h, const char *name)
{
    bool has_base = h->net.family->base[0] != '\0';
    return hf_weights_n(h->weights) == 0 || strstr(name, "pooler.") ||
           (h->net.head->task != HF_NO_TASK && has_base && !inside_base(h, name));
}

bool hf_holds(const hf_net *n, const char *name)
{
    return find_weight(n->model, name) >= 0;
}

bool hf_holds_apart(const hf_net *n, const char *name, const char *other)
{
    int a = find_weight(n->model, name), b = find_weight(n->model, other);
    return a >= 0 && b >= 0 && !hf_weights_same(n->model->weights, a, b);
}

static int refuse_shape(const ty_hf *h, const char *name, const ty_type *wants, const ty_type *has, ty_error *err)
{
    char a[160], b[160];
    ty_error_set(err, TY_E_SHAPE, "weight \"%s\" is %s by config.json and %s in the file", name,
                 ty_type_text(wants, a, sizeof a), ty_type_text(has, b, sizeof b));
    ty_error_at(err, "%s", h->folder);
    return may_start(h, name) && hf_has_classes(h)
               ? ty_error_help(err, "to train it for other classes say how many: labels: N")
               : -1;
}

/* 1: found, 0: it starts anew. */
static int take_weight(ty_hf *h, int i, ty_error *err)
{
    ty_model_value *w = &h->lists.weight[i];
    int k = find_weight(h, w->name);
    if (k < 0 && may_start(h, w->name))
        return 0;
    if (k < 0) {
        ty_error_set(err, TY_E_MODEL_FILE, "weight \"%s\" is not in the files", w->name);
        ty_error_at(err, "%s", h->folder);
        return ty_error_help(err, "config.json and the weights may be of different networks");
    }
    ty_type wants = ty_type_make(w->dtype, w->rank, w->dim), has = hf_weights_at(h->weights, (size_t)k)->type;
    if (!ty_type_same_shape(&wants, &has))
        return h->labels_given && may_start(h, w->name) ? 0 : refuse_shape(h, w->name, &wants, &has, err);
    return hf_weights_data(h->weights, k, &w->data, err) < 0 ? -1 : 1;
}

static void tell_started(const ty_hf *h, const char *names, int n)
{
    if (hf_weights_n(h->weights) == 0)
        ty_log_info("model", "%s: there are no weights: all %d start anew", h->folder, h->lists.n_weights);
    else if (n > 0)
        ty_log_info("model", "%s: %d weights are not in the files, or of another shape there, and start anew: %s",
                    h->folder, n, names);
}

/* ---- starting anew ----------------------------------------------------------------------------------------------- */

static double memory_bytes(void)
{
    return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

/* Notes that weight i starts anew, in memory of its own. How much all take is what config.json says, so any number. */
static int add_started(ty_hf *h, int i, ty_init init, ty_error *err)
{
    ty_model_value *w = &h->lists.weight[i];
    hf_started s = {.weight = i, .type = ty_type_make(w->dtype, w->rank, w->dim), .init = init};
    h->started_bytes += (double)ty_type_bytes(&s.type);
    s.out = h->started_bytes <= memory_bytes() ? malloc(ty_type_bytes(&s.type) + 1) : NULL;
    if (!s.out) {
        ty_error_set(err, TY_E_LIMIT, "no memory for weight \"%s\", which starts anew: with those before it %.1f GiB",
                     w->name, h->started_bytes / 0x1p30);
        return ty_error_at(err, "%s", h->path);
    }
    w->data = s.out;
    h->started[h->n_started++] = s;
    return 0;
}

static void run_start(const ty_job *job)
{
    const hf_started *s = job->from;
    cmodel_initialize(job->shared, &s->type, s->init, s->seed, s->out);
}

/* Their numbers, by all processors: each weight has a stream of its own. */
static int start_all(ty_hf *h, uint64_t seed, ty_error *err)
{
    ty_job *jobs = TY_NEW_ARRAY(&h->arena, ty_job, h->n_started + 1);
    for (int i = 0; i < h->n_started; i++) {
        h->started[i].seed = seed;
        const char *name = h->lists.weight[h->started[i].weight].name;
        jobs[i] = (ty_job){.run = run_start, .from = &h->started[i], .shared = (void *)(uintptr_t)name};
    }
    ty_crew *crew = ty_crew_start(jobs, h->n_started, ty_crew_processors() - 1);
    if (!crew)
        return ty_error_set(err, TY_E_LIMIT, "no memory to start weights");
    ty_crew_end(crew);
    h->seed = seed;
    return 0;
}

static void add_name(char *names, size_t n, const ty_hf *h, int i)
{
    size_t used = strlen(names);
    if (h->n_started <= NAMED)
        snprintf(names + used, n - used, "%s%.48s", used ? ", " : "", h->lists.weight[i].name);
    else if (h->n_started == NAMED + 1)
        snprintf(names + used, n - used, " ...");
}

int hf_bind(ty_hf *h, const cmodel_net *net, uint64_t seed, ty_error *err)
{
    char names[240] = "";
    h->started = TY_NEW_ARRAY(&h->arena, hf_started, h->lists.n_weights + 1);
    for (int i = 0; i < h->lists.n_weights; i++) {
        int rc = take_weight(h, i, err);
        if (rc < 0 || (rc == 0 && add_started(h, i, net->weight.at[i].init, err) < 0))
            return -1;
        if (rc == 0)
            add_name(names, sizeof names, h, i);
    }
    tell_started(h, names, h->n_started);
    return start_all(h, seed, err);
}

int ty_hf_reseed(ty_hf *h, uint64_t seed, ty_error *err)
{
    return seed == h->seed ? 0 : start_all(h, seed, err);
}
