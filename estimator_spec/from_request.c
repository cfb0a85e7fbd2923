/* from_request.c - a body under each framework's rules, and the shortest of the job files that come to it. */
#include "estimator_spec/from_request.h"

#include "base/json.h"
#include "base/yaml.h"
#include "estimator_spec/described.h"
#include "estimator_spec/recognise.h"
#include "estimator_spec/request.h"
#include "estimator_spec/tree.h"

#include <string.h>

typedef struct converter {
    const ty_jobspec_world *world;
    ty_arena *a;
    ty_doc body;          /* as a request */
    const char *left_out; /* of an answer; NULL: it was a request */
    const char *region;
    ty_error *err;
} converter;

/* A job file and what it costs to read. */
typedef struct attempt {
    ty_doc job; /* with the section `request` */
    int cost;
} attempt;

/* ---- what is no request ---- */

static const char what_it_is[] = "expected is what create_training_job takes, or what describe_training_job answers";

/* Members without which there is no job: each in the form that the service takes. */
static int check_member(const converter *c, const ty_doc *root, ty_field_id id, bool needed)
{
    const ty_field_row *f = &ty_fields[id];
    const ty_doc *d = ty_tree_find(&c->body, f->body);
    const char *what = ty_arena_printf(c->a, "member \"%s\"", f->body);
    char found[160];
    if (!d && !needed)
        return 0;
    if (!d) {
        ty_doc_error(root, c->err, TY_E_MISSING_KEY, NULL, "%s is missing", what);
        return ty_error_help(c->err, "%s", what_it_is);
    }
    if (d->kind != TY_DOC_STRING)
        return ty_doc_error(d, c->err, TY_E_TYPE, NULL, "%s: expected a string, found %s", what,
                            ty_doc_describe(d, found, sizeof found));
    return ty_form_check(f->form, d->string, f->min, f->max, d, what, c->err);
}

static int check_members(const converter *c, const ty_doc *root)
{
    if (ty_doc_expect(root, TY_DOC_MAP, c->err) < 0)
        return ty_error_help(c->err, "%s", what_it_is);
    bool by_name = ty_tree_find(&c->body, ty_fields[TY_FIELD_ALGORITHM].body) != NULL;
    if (check_member(c, root, TY_FIELD_NAME, true) < 0 || check_member(c, root, TY_FIELD_ROLE, true) < 0 ||
        check_member(c, root, TY_FIELD_IMAGE, !by_name) < 0)
        return -1;
    return check_member(c, root, TY_FIELD_ALGORITHM, false);
}

/* Keys that YAML cannot spell. */
static int check_keys(const converter *c, const ty_doc *d)
{
    for (size_t i = 0; i < ty_doc_len(d); i++) {
        const ty_doc *item = &d->items[i];
        ty_buf spelled;
        ty_buf_init(&spelled, TY_YAML_MAX_KEY);
        if (item->key)
            ty_yaml_add_string(&spelled, item->key);
        bool fits = !spelled.failed;
        ty_buf_fini(&spelled);
        if (!fits)
            return ty_doc_error_key(item, c->err, TY_E_LIMIT, NULL,
                                    "a name of %zu bytes: a job file takes at most %d, as they are spelled there",
                                    strlen(item->key), TY_YAML_MAX_KEY);
        if (check_keys(c, item) < 0)
            return -1;
    }
    return 0;
}

static const char *variable_region(const converter *c)
{
    static const char *const names[] = {"AWS_REGION", "AWS_DEFAULT_REGION"};
    for (int i = 0; i < 2 && c->world->variable; i++) {
        const char *value = c->world->variable(names[i]);
        if (value && ty_form_fits("region", value))
            return value;
    }
    return NULL;
}

/* ---- as text ---- */

static int compare_rows(const char *key)
{
    int id = 0;
    while (id < TY_N_FIELDS && !(ty_fields[id].section[0] == 0 && strcmp(ty_fields[id].key, key) == 0))
        id++;
    return id;
}

/* Keys in the order of fields.def. */
static ty_doc ordered(ty_arena *a, const ty_doc *job)
{
    ty_doc out = ty_tree_map();
    for (int id = 0; id < TY_N_FIELDS; id++)
        for (uint32_t i = 0; i < job->n_items; i++)
            if (compare_rows(job->items[i].key) == id)
                ty_tree_put_key(a, &out, job->items[i].key, job->items[i]);
    return out;
}

/* "digits" of digits-2026-03-14-09-26-53-589; NULL: the name does not end with a time. */
static const char *base_of_name(ty_arena *a, const char *name)
{
    static const char stamp[] = "-0000-00-00-00-00-00-000";
    size_t n = strlen(name), k = sizeof stamp - 1;
    if (n <= k)
        return NULL;
    for (size_t i = 0; i < k; i++) {
        char is = name[n - k + i];
        if (stamp[i] == '-' ? is != '-' : is < '0' || is > '9')
            return NULL;
    }
    return ty_arena_strndup(a, name, n - k);
}

static const char *comment_of(const converter *c, const ty_doc *d)
{
    const char *base = strcmp(d->key, "name") == 0 && d->kind == TY_DOC_STRING ? base_of_name(c->a, d->string) : NULL;
    if (base)
        return ty_arena_printf(c->a, "a name is taken once: `base_name: %s` in its place makes one each time", base);
    if (strcmp(d->key, "name") == 0)
        return "a name is taken once: base_name in its place makes one each time";
    if (strcmp(d->key, "source") == 0)
        return "lies in S3 already: `folder` in place of `uri` packs and uploads one of yours";
    if (strcmp(d->key, "raw_hyperparameters") == 0)
        return "sent as they are: JSON would spell them in another way";
    return NULL;
}

/* Whether a key of a job file has to do with a member. */
static bool has_key(const char *member)
{
    size_t n = strlen(member);
    for (int id = 0; id < TY_N_FIELDS; id++)
        if (ty_fields[id].body && strncmp(ty_fields[id].body, member, n) == 0 &&
            (ty_fields[id].body[n] == 0 || ty_fields[id].body[n] == '.'))
            return true;
    return false;
}

static void add_patch(ty_buf *out, const ty_doc *patch)
{
    ty_buf_adds(out, "# laid over what the keys above come to\nrequest:\n");
    for (uint32_t i = 0; i < patch->n_items && !out->failed; i++) {
        const ty_doc *d = &patch->items[i];
        const char *why = !has_key(d->key)         ? "has no key"
                          : d->kind == TY_DOC_NULL ? "was not sent; the keys above come to it"
                          : d->kind == TY_DOC_LIST ? "keys cannot say this; a list is replaced whole"
                                                   : "keys cannot say this";
        ty_buf_addf(out, "  # %s\n", why);
        ty_yaml_add_entry(out, d, 2);
    }
}

/* Names in it are the service's or our own; a foreign one could not end the line. */
static void add_head(const converter *c, ty_buf *out)
{
    ty_buf_adds(out, "# `trainyard submit FILE --dry-run` of this file makes the request that it was made of");
    if (c->left_out)
        ty_buf_adds(out, " (an answer of DescribeTrainingJob, which has no tags)");
    if (c->left_out && *c->left_out)
        ty_buf_addf(out, ".\n# Left out, since the service adds them: %s", c->left_out);
    ty_buf_adds(out, ".\n");
}

static void add_file(const converter *c, const ty_doc *job, ty_buf *out)
{
    add_head(c, out);
    for (uint32_t i = 0; i < job->n_items && !out->failed; i++) {
        const ty_doc *d = &job->items[i];
        const char *comment = comment_of(c, d);
        if (strcmp(d->key, "request") == 0) {
            add_patch(out, d);
            continue;
        }
        if (comment)
            ty_buf_addf(out, "# %s\n", comment);
        ty_yaml_add_entry(out, d, 0);
    }
}

/* ---- attempts ---- */

/* The request of a job file, by the way that any job file goes. */
static int request_of(const converter *c, const ty_doc *job, ty_doc *out)
{
    ty_buf text;
    ty_jobspec *spec = TY_NEW(c->a, ty_jobspec);
    ty_buf_init(&text, TY_JOBSPEC_MAX_BYTES);
    add_file(c, job, &text);
    int rc = text.failed ? ty_error_set(c->err, TY_E_LIMIT, "the job file does not fit %zu bytes", TY_JOBSPEC_MAX_BYTES)
                         : ty_jobspec_parse("job.yaml", text.data, text.len, NULL, c->world, c->a, spec, c->err);
    ty_buf_fini(&text);
    return rc < 0 ? -1 : ty_jobspec_request(spec, c->a, out, c->err);
}

static int count_leaves(const ty_doc *d)
{
    int n = ty_doc_len(d) == 0;
    for (size_t i = 0; i < ty_doc_len(d); i++)
        n += count_leaves(&d->items[i]);
    return n;
}

/* A value under `request` is read harder than one with a key; the image's own framework may have its versions besides.
 */
enum { PATCH_COST = 3, OWN_BONUS = 4 };

static int try_framework(const converter *c, const char *framework, bool plain, attempt *out)
{
    ty_recognise_as as = {.framework = framework, .region = c->region, .plain = plain};
    ty_doc made, job = ordered(c->a, (ty_doc[]){ty_recognise(&c->body, &as, c->a)});
    if (request_of(c, &job, &made) < 0)
        return -1;
    ty_recognise_rest(&c->body, &made, &as, &job, c->a);
    job = ordered(c->a, &job);
    if (request_of(c, &job, &made) < 0)
        return -1;
    ty_doc patch = ty_tree_difference(c->a, &made, &c->body);
    out->cost = count_leaves(&job) + (patch.n_items ? PATCH_COST * count_leaves(&patch) : 0);
    if (patch.n_items)
        ty_tree_put_key(c->a, &job, "request", patch);
    out->job = job;
    return 0;
}

/* The framework in an image's name, the platform's own naming; "" if there is none. */
static const char *framework_of_image(const converter *c)
{
    static const char *const names[] = {"huggingface", "tensorflow", "pytorch", "trainyard"};
    const ty_doc *image = ty_tree_find(&c->body, "AlgorithmSpecification.TrainingImage");
    for (size_t i = 0; image && i < sizeof names / sizeof names[0]; i++)
        if (strstr(image->raw, names[i]))
            return names[i];
    return "";
}

/* Of equal costs the first is taken. The last one takes hyperparameters of the platform as they are, for bodies whose
 * strategies a job file would refuse. */
static int try_all(const converter *c, attempt *best)
{
    static const char *const frameworks[] = {"trainyard", "generic",     "tensorflow",
                                             "pytorch",   "huggingface", "trainyard"};
    enum { N = sizeof frameworks / sizeof frameworks[0] };
    const char *own = framework_of_image(c);
    ty_error first = {0}, refusal;
    converter mine = *c;
    bool found = false;
    mine.err = &refusal;
    for (int i = 0; i < N; i++) {
        attempt one;
        refusal = (ty_error){0};
        if (try_framework(&mine, frameworks[i], i == N - 1, &one) < 0) {
            first = first.code == TY_E_NONE ? refusal : first;
            continue;
        }
        one.cost -= strcmp(frameworks[i], own) == 0 ? OWN_BONUS : 0;
        if (!found || one.cost < best->cost)
            *best = one;
        found = true;
    }
    if (!found && c->err)
        *c->err = first;
    return found ? 0 : -1;
}

static int convert(const converter *c, ty_buf *out)
{
    attempt best;
    ty_doc made;
    if (try_all(c, &best) < 0)
        return ty_error_wrap(c->err, "as a job file the request would be refused");
    if (request_of(c, &best.job, &made) < 0)
        return -1;
    if (!ty_tree_equal(&made, &c->body))
        return ty_error_set(c->err, TY_E_INTERNAL, "the job file does not come to the same request");
    add_file(c, &best.job, out);
    return out->failed ? ty_error_set(c->err, TY_E_LIMIT, "the job file does not fit %zu bytes", out->max_bytes) : 0;
}

int ty_jobspec_from_request(const char *name, const char *text, size_t len, const ty_jobspec_world *world, ty_arena *a,
                            ty_buf *out, ty_error *err)
{
    ty_doc *root;
    ty_doc_limits limits = {
        .max_bytes = TY_REQUEST_MAX_BYTES, .max_depth = TY_REQUEST_MAX_DEPTH, .max_nodes = TY_REQUEST_MAX_NODES};
    converter c = {.world = world, .a = a, .err = err};
    if (ty_json_parse(a, name, text, len, &limits, &root, err) < 0)
        return -1;
    c.body = ty_described_without_nulls(root, a);
    if (ty_described(&c.body))
        c.body = ty_described_request(&c.body, a, &c.left_out);
    if (check_members(&c, root) < 0 || check_keys(&c, &c.body) < 0)
        return -1;
    const ty_doc *arn = ty_doc_find(root, "TrainingJobArn");
    c.region = ty_recognise_region(&c.body, arn && arn->kind == TY_DOC_STRING ? arn->string : NULL, a);
    if (!c.region)
        c.region = variable_region(&c);
    return convert(&c, out);
}
