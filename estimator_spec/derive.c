/* derive.c - what follows from what a job file says: names and places as SageMaker's Python SDK 2 makes them, without
 * asking a service. */
#include "estimator_spec/aws/profile.h"
#include "estimator_spec/job_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAME_CHARS = 63, STAMP_CHARS = 23 };

/* Regions without Debugger and profiler, as the SDK lists them (fw_utils.py). */
static const char *const without_debugger[] = {
    "us-iso-east-1", "us-isob-east-1", "ap-southeast-3", "ap-southeast-4", "eu-south-2",
    "me-central-1",  "ap-south-2",     "eu-central-2",   "us-gov-east-1",
};

static void set_derived(job_reader *rd, ty_field_id id, const char *text, const char *origin)
{
    ty_field_value *v = &rd->job->value[id];
    v->text = text;
    v->origin = origin;
}

/* ---- small questions ---- */

int ty_version_compare(const char *a, const char *b)
{
    while (*a || *b) {
        char *a_end, *b_end;
        bool a_ends = !*a, b_ends = !*b;
        long x = strtol(a, &a_end, 10), y = strtol(b, &b_end, 10);
        if (a_ends != b_ends && (a_ends ? y : x) == 0)
            return a_ends ? -1 : 1;
        if (x != y)
            return x < y ? -1 : 1;
        a = *a_end == '.' ? a_end + 1 : "";
        b = *b_end == '.' ? b_end + 1 : "";
    }
    return 0;
}

bool ty_s3_split(const char *uri, ty_arena *a, const char **bucket, const char **key)
{
    if (!uri || strncmp(uri, "s3://", 5) != 0)
        return false;
    size_t n = strcspn(uri + 5, "/");
    *bucket = ty_arena_strndup(a, uri + 5, n);
    *key = uri + 5 + n + strspn(uri + 5 + n, "/");
    return n > 0;
}

const char *ty_path_within(const char *folder, const char *path, ty_arena *a)
{
    return path[0] == '/' ? path : ty_arena_printf(a, "%s/%s", folder, path);
}

/* Parts joined by single slashes, those at the ends taken away; empty parts leave no trace. The SDK's s3_path_join. */
static const char *join(job_reader *rd, const char *scheme, const char *const *parts, int n)
{
    size_t room = strlen(scheme) + 1;
    for (int i = 0; i < n; i++)
        room += strlen(parts[i]) + 1;
    char *out = ty_arena_alloc(rd->a, room), *at = stpcpy(out, scheme), *start = at;
    for (int i = 0; i < n; i++) {
        for (const char *p = parts[i]; *p; p++)
            if (*p != '/' || (at > start && at[-1] != '/'))
                *at++ = *p;
        if (at > start && at[-1] != '/')
            *at++ = '/';
    }
    if (at > start)
        at--;
    *at = 0;
    return out;
}

/* ---- who and where ---- */

/* 111122223333.dkr.ecr.eu-west-1.amazonaws.com/... */
static const char *region_of_image(job_reader *rd)
{
    const char *image = job_text(rd, TY_FIELD_IMAGE), *mark = image ? strstr(image, ".dkr.ecr.") : NULL;
    if (!mark || mark != image + 12)
        return NULL;
    const char *region = ty_arena_strndup(rd->a, mark + 9, strcspn(mark + 9, ".:/"));
    return ty_form_fits("region", region) ? region : NULL;
}

static int derive_region(job_reader *rd)
{
    static const char *const names[] = {"AWS_REGION", "AWS_DEFAULT_REGION"};
    if (job_given(rd, TY_FIELD_REGION))
        return 0;
    for (int i = 0; i < 2 && rd->world->variable; i++) {
        const char *value = rd->world->variable(names[i]);
        if (!value || !*value)
            continue;
        if (!ty_form_fits("region", value))
            return ty_error_set(rd->err, TY_E_RANGE,
                                "variable %s: expected a region such as eu-west-1, found \"%.80s\"", names[i], value);
        set_derived(rd, TY_FIELD_REGION, ty_arena_strdup(rd->a, value),
                    ty_arena_printf(rd->a, "environment %s", names[i]));
        return 0;
    }
    const char *region = region_of_image(rd);
    if (region) {
        set_derived(rd, TY_FIELD_REGION, region, "derived from image");
        return 0;
    }
    if (rd->world->is_local) {
        set_derived(rd, TY_FIELD_REGION, "us-east-1", "default");
        return 0;
    }
    ty_job_refuse(rd, TY_FIELD_REGION, TY_E_MISSING_KEY, "the region is not known");
    return ty_error_help(rd->err, "write region: eu-west-1, or set AWS_REGION");
}

/* A name alone: whoever can be asked knows its ARN. */
static int ask_for_role(job_reader *rd, const char *name)
{
    const char *arn;
    if (!rd->world->find_role) {
        ty_job_refuse(rd, TY_FIELD_ROLE, TY_E_RANGE, "key \"role\": \"%s\" is a name, and no account is given", name);
        return ty_error_help(rd->err, "write the role's ARN (arn:aws:iam::ACCOUNT:role/NAME), or add account: DIGITS");
    }
    if (rd->world->find_role(rd->world->ctx, job_text(rd, TY_FIELD_REGION), name, rd->a, &arn, rd->err) < 0)
        return ty_error_wrap(rd->err, "role \"%s\"", name);
    if (strncmp(arn, "arn:", 4) != 0 || !ty_form_fits("role", arn))
        return ty_error_set(rd->err, TY_E_SERVICE, "role \"%s\": IAM's answer is no ARN of a role", name);
    rd->job->value[TY_FIELD_ROLE].text = arn;
    return 0;
}

static int derive_role(job_reader *rd)
{
    const char *role = job_text(rd, TY_FIELD_ROLE), *account = job_text(rd, TY_FIELD_ACCOUNT);
    bool is_known = role && (account || strncmp(role, "arn:", 4) == 0);
    if (!is_known && rd->world->is_local) { /* nobody runs as it */
        role = "arn:aws:iam::000000000000:role/local";
        set_derived(rd, TY_FIELD_ROLE, role, "default");
    }
    if (!role) {
        ty_job_refuse(rd, TY_FIELD_ROLE, TY_E_MISSING_KEY, "key \"role\" is missing");
        return ty_error_help(rd->err, "write role: arn:aws:iam::ACCOUNT:role/NAME");
    }
    if (strncmp(role, "arn:", 4) != 0 && !account && ask_for_role(rd, role) < 0)
        return -1;
    role = job_text(rd, TY_FIELD_ROLE);
    bool is_arn = strncmp(role, "arn:", 4) == 0;
    if (is_arn && !account)
        set_derived(rd, TY_FIELD_ACCOUNT, ty_arena_strndup(rd->a, strstr(role, ":iam::") + 6, 12), "derived from role");
    if (!is_arn) {
        const char *partition = ty_region_partition(job_text(rd, TY_FIELD_REGION));
        rd->job->value[TY_FIELD_ROLE].text = ty_arena_printf(rd->a, "arn:%s:iam::%s:role/%s", partition, account, role);
    }
    return 0;
}

/* Here a host is a host, whatever the service calls its kind. */
static void derive_machines(job_reader *rd)
{
    ty_jobspec *job = rd->job;
    if (!rd->world->is_local || job->n_groups > 0)
        return;
    if (!job_given(rd, TY_FIELD_INSTANCE_TYPE))
        set_derived(rd, TY_FIELD_INSTANCE_TYPE, "local", "derived from this machine");
    if (!job_given(rd, TY_FIELD_INSTANCE_COUNT)) {
        job->value[TY_FIELD_INSTANCE_COUNT].integer = 1;
        job->value[TY_FIELD_INSTANCE_COUNT].origin = "derived from this machine";
    }
}

static void derive_places(job_reader *rd)
{
    if (!job_given(rd, TY_FIELD_BUCKET))
        set_derived(
            rd, TY_FIELD_BUCKET,
            ty_arena_printf(rd->a, "sagemaker-%s-%s", job_text(rd, TY_FIELD_REGION), job_text(rd, TY_FIELD_ACCOUNT)),
            "derived from region and account");
    if (job_given(rd, TY_FIELD_OUTPUT_PATH))
        return;
    const char *prefix = job_text(rd, TY_FIELD_PREFIX);
    const char *parts[] = {job_text(rd, TY_FIELD_BUCKET), prefix ? prefix : ""};
    set_derived(rd, TY_FIELD_OUTPUT_PATH, ty_arena_printf(rd->a, "%s/", join(rd, "s3://", parts, 2)),
                prefix ? "derived from bucket and prefix" : "derived from bucket");
}

/* ---- name ---- */

/* The image's last part without tag and digest, with what a name may not hold made dashes. */
static const char *base_of_image(job_reader *rd)
{
    const char *image = job_text(rd, TY_FIELD_IMAGE);
    if (!image)
        image = job_text(rd, TY_FIELD_ALGORITHM);
    const char *slash = image ? strrchr(image, '/') : NULL;
    const char *last = slash ? slash + 1 : image ? image : "";
    char *base = ty_arena_strndup(rd->a, last, strcspn(last, ":@"));
    for (char *p = base; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '-';
    base += strspn(base, "-");
    for (size_t n = strlen(base); n > 0 && base[n - 1] == '-'; n--)
        base[n - 1] = 0;
    return *base ? base : "job";
}

/* BASE-2026-03-14-09-26-53-589 in UTC, the base cut so that the whole has at most 63 characters. */
static void derive_name(job_reader *rd)
{
    if (!job_given(rd, TY_FIELD_BASE_NAME))
        set_derived(rd, TY_FIELD_BASE_NAME, base_of_image(rd),
                    job_given(rd, TY_FIELD_IMAGE) ? "derived from image" : "derived from algorithm");
    if (job_given(rd, TY_FIELD_NAME))
        return;
    char stamp[STAMP_CHARS + 8];
    time_t seconds = (time_t)(rd->world->now_ms / 1000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    size_t n = strftime(stamp, sizeof stamp, "%Y-%m-%d-%H-%M-%S", &utc);
    snprintf(stamp + n, sizeof stamp - n, "-%03d", (int)(rd->world->now_ms % 1000));
    set_derived(
        rd, TY_FIELD_NAME,
        ty_arena_printf(rd->a, "%.*s-%s", NAME_CHARS - STAMP_CHARS - 1, job_text(rd, TY_FIELD_BASE_NAME), stamp),
        "derived from base_name and the time");
}

/* ---- source ---- */

/* As the SDK: in code_location, else in the output's bucket; below the prefix only where the output is the default. */
static void place_archive(job_reader *rd, ty_jobspec_source *s)
{
    const char *location = job_text(rd, TY_FIELD_CODE_LOCATION), *key = "", *output_bucket = "", *output_key;
    const char *prefix = job_text(rd, TY_FIELD_PREFIX);
    bool in_s3 = ty_s3_split(job_text(rd, TY_FIELD_OUTPUT_PATH), rd->a, &output_bucket, &output_key);
    s->bucket = in_s3 ? output_bucket : job_text(rd, TY_FIELD_BUCKET);
    if (location)
        ty_s3_split(location, rd->a, &s->bucket, &key);
    else if (!job_given(rd, TY_FIELD_OUTPUT_PATH) && prefix)
        key = prefix;
    if (strcmp(s->bucket, output_bucket) == 0)
        s->kms_key = job_text(rd, TY_FIELD_OUTPUT_KEY);
    const char *parts[] = {key, job_text(rd, TY_FIELD_NAME), "source", "sourcedir.tar.gz"};
    s->key = join(rd, "", parts, 4);
    s->uri = ty_arena_printf(rd->a, "s3://%s/%s", s->bucket, s->key);
}

static ty_jobspec_item *add_channel(job_reader *rd, const char *name, const char *uri, const char *origin)
{
    ty_jobspec_item *c = &rd->job->channels[rd->job->n_channels++];
    c->name = name;
    c->value[TY_FIELD_CHANNEL_S3] = (ty_field_value){.text = uri, .origin = origin};
    c->value[TY_FIELD_CHANNEL_TYPE] = (ty_field_value){.text = "S3Prefix", .origin = "default"};
    c->value[TY_FIELD_CHANNEL_DISTRIBUTION] = (ty_field_value){.text = "FullyReplicated", .origin = "default"};
    return c;
}

static void derive_source(job_reader *rd)
{
    ty_jobspec_source *s = &rd->job->source;
    const char *program = job_text(rd, TY_FIELD_PROGRAM), *uri = job_text(rd, TY_FIELD_SOURCE_URI);
    if (!program)
        program = job_text(rd, TY_FIELD_RECIPE);
    if (!program)
        return;
    const char *slash = strrchr(program, '/');
    s->is_given = true;
    s->is_packed = !uri;
    s->program = job_given(rd, TY_FIELD_SOURCE_FOLDER) || uri || !slash ? program : slash + 1;
    if (uri) {
        ty_s3_split(uri, rd->a, &s->bucket, &s->key);
        s->uri = uri;
    } else {
        place_archive(rd, s);
    }
    s->told = s->uri;
    /* A container without a network gets its program as a channel, and so does Trainyard's, which asks no service. */
    bool is_ours = strcmp(job_text(rd, TY_FIELD_FRAMEWORK_NAME), "trainyard") == 0;
    if (is_ours || rd->world->is_local || rd->job->value[TY_FIELD_ISOLATION].boolean) {
        s->told = "/opt/ml/input/data/code/sourcedir.tar.gz";
        bool is_isolated = !is_ours && !rd->world->is_local;
        add_channel(rd, "code", s->uri,
                    is_isolated ? "derived from source and network.isolation" : "derived from source");
    }
}

static void derive_model(job_reader *rd)
{
    const char *uri = job_text(rd, TY_FIELD_MODEL_URI);
    if (!uri)
        return;
    const char *origin = rd->job->value[TY_FIELD_MODEL_URI].origin;
    ty_jobspec_item *c = add_channel(rd, job_text(rd, TY_FIELD_MODEL_CHANNEL), uri, origin);
    c->value[TY_FIELD_CHANNEL_CONTENT] =
        (ty_field_value){.text = "application/x-sagemaker-model", .origin = "derived from model"};
    c->value[TY_FIELD_CHANNEL_MODE] = (ty_field_value){.text = "File", .origin = "derived from model"};
}

/* ---- what the SDK's estimators add ---- */

static bool is_on(const job_reader *rd, ty_field_id section, ty_field_id enabled)
{
    return ty_jobspec_has(rd->job, section) && rd->job->value[enabled].boolean;
}

/* TensorFlow's estimator tells the program where to save. */
static void derive_model_dir(job_reader *rd)
{
    if (strcmp(job_text(rd, TY_FIELD_FRAMEWORK_NAME), "tensorflow") != 0 || job_given(rd, TY_FIELD_MODEL_DIR))
        return;
    const char *parts[] = {"", job_text(rd, TY_FIELD_NAME), "model"};
    const char *output = job_text(rd, TY_FIELD_OUTPUT_PATH);
    if (is_on(rd, TY_FIELD_MPI, TY_FIELD_MPI_ENABLED)) {
        set_derived(rd, TY_FIELD_MODEL_DIR, "/opt/ml/model", "derived from distribution.mpi");
        return;
    }
    parts[0] = strncmp(output, "s3://", 5) == 0 ? output + 5 : output;
    set_derived(rd, TY_FIELD_MODEL_DIR, join(rd, parts[0] == output ? "" : "s3://", parts, 3),
                "derived from output.path and name");
}

static void derive_time_series(job_reader *rd)
{
    static const struct {
        const char *framework, *since;
    } rules[] = {{"tensorflow", "1.15"}, {"pytorch", "1.3"}, {"huggingface", NULL}};
    const char *framework = job_text(rd, TY_FIELD_FRAMEWORK_NAME), *version = job_text(rd, TY_FIELD_FRAMEWORK_VERSION);
    ty_field_value *v = &rd->job->value[TY_FIELD_METRICS_TIME_SERIES];
    for (size_t i = 0; !v->origin && i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].framework, framework) == 0 &&
            (!rules[i].since || (version && ty_version_compare(version, rules[i].since) >= 0))) {
            v->boolean = true;
            v->origin = "derived from framework";
        }
}

/* The hook is left out where a parameter server or, with checkpoints in a place of their own, the framework's own
 * estimator excludes it. */
static void derive_debugger(job_reader *rd)
{
    const char *framework = job_text(rd, TY_FIELD_FRAMEWORK_NAME), *region = job_text(rd, TY_FIELD_REGION);
    bool is_tensorflow = strcmp(framework, "tensorflow") == 0, supported = true;
    bool excludes = is_tensorflow || strcmp(framework, "pytorch") == 0;
    for (size_t i = 0; i < sizeof without_debugger / sizeof without_debugger[0]; i++)
        supported = supported && strcmp(region, without_debugger[i]) != 0;
    ty_jobspec *job = rd->job;
    job->has_debugger = job->value[TY_FIELD_DEBUGGER].boolean && supported;
    job->has_profiler = job->value[TY_FIELD_PROFILER].boolean && supported;
    if (is_tensorflow && is_on(rd, TY_FIELD_PS, TY_FIELD_PS_ENABLED))
        job->has_debugger = false;
    if (excludes && job_given(rd, TY_FIELD_CHECKPOINT_URI) && job_given(rd, TY_FIELD_CHECKPOINT_PATH))
        job->has_debugger = false;
}

int ty_job_derive(job_reader *rd)
{
    if (derive_region(rd) < 0 || derive_role(rd) < 0)
        return -1;
    derive_machines(rd);
    derive_places(rd);
    derive_name(rd);
    derive_model(rd);
    derive_source(rd);
    derive_model_dir(rd);
    derive_time_series(rd);
    derive_debugger(rd);
    return 0;
}
