/* check_cluster.c - machines, strategies and the Training Compiler: what fits together, as the service and the SDK's
 * estimators say it. */
#include "estimator_spec/job_parts.h"

#include <stdio.h>
#include <string.h>

/* Families that the service accepted in 2026: others are sent with a warning, since the list ages. */
static const char *const families[] = {
    "m4",   "m5",       "m6i",  "m7i",      "m7i-flex", "m8i", "m8i-flex", "c4",    "c5",      "c5n",      "c6i",
    "c7i",  "c7i-flex", "c8i",  "c8i-flex", "r5",       "r5d", "r6i",      "r7i",   "r8i",     "r8i-flex", "t3",
    "p2",   "p3",       "p3dn", "p4d",      "p4de",     "p5",  "p5e",      "p5en",  "p6-b200", "p6-b300",  "p6e-gb200",
    "g4dn", "g5",       "g6",   "g6e",      "g7",       "g7e", "trn1",     "trn1n", "trn2",
};
static const char *const compiler_families[] = {"p3", "p3dn", "g4dn", "p4d", "g5"};

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}
#define IS_ONE_OF(word, list) is_one_of(word, list, sizeof(list) / sizeof(list)[0])

static bool is_on(const job_reader *rd, ty_field_id section, ty_field_id enabled)
{
    return ty_jobspec_has(rd->job, section) && rd->job->value[enabled].boolean;
}

static const char *family_of(job_reader *rd, const char *type)
{
    const char *dot = strchr(type, '.');
    return dot ? ty_arena_strndup(rd->a, dot + 1, strcspn(dot + 1, ".")) : type;
}

static bool is_framework(const job_reader *rd, const char *name)
{
    return strcmp(job_text(rd, TY_FIELD_FRAMEWORK_NAME), name) == 0;
}

/* ---- machines ---- */

static int check_type(job_reader *rd, const char *type)
{
    const char *family = family_of(rd, type);
    if (!IS_ONE_OF(family, families))
        ty_job_warn(rd, "instance family \"%s\" of %s is not known here; it is sent as it is", family, type);
    return 0;
}

static int check_groups(job_reader *rd)
{
    for (int i = 0; i < rd->job->n_groups; i++) {
        const ty_jobspec_item *g = &rd->job->groups[i];
        for (int f = TY_FIELD_GROUP_NAME; f <= TY_FIELD_GROUP_COUNT; f++)
            if (!g->value[f].at)
                return ty_job_refuse_item(rd, g, TY_FIELD_GROUP_NAME, "instance group %d: key \"%s\" is missing", i + 1,
                                          ty_fields[f].key);
        for (int k = 0; k < i; k++)
            if (strcmp(rd->job->groups[k].name, g->name) == 0)
                return ty_job_refuse_item(rd, g, TY_FIELD_GROUP_NAME, "two instance groups are called \"%s\"", g->name);
        check_type(rd, g->value[TY_FIELD_GROUP_TYPE].text);
    }
    return 0;
}

static int check_resources(job_reader *rd)
{
    bool type = job_given(rd, TY_FIELD_INSTANCE_TYPE), count = job_given(rd, TY_FIELD_INSTANCE_COUNT);
    bool groups = rd->job->n_groups > 0;
    if (groups && (type || count))
        return ty_job_refuse(rd, type ? TY_FIELD_INSTANCE_TYPE : TY_FIELD_INSTANCE_COUNT, TY_E_CONFIG,
                             "\"%s\" and \"instance_groups\" are both given",
                             type ? "instance_type" : "instance_count");
    if (!groups && !(type && count) && !rd->world->is_local) {
        ty_job_refuse(rd, TY_FIELD_RESOURCES, TY_E_MISSING_KEY, "key \"%s\" is missing in \"resources\"",
                      type ? "instance_count" : "instance_type");
        return ty_error_help(rd->err, "write resources: {instance_type: ml.g5.xlarge, instance_count: 1}, or "
                                      "instance_groups");
    }
    bool warm = job_given(rd, TY_FIELD_KEEP_ALIVE) && rd->job->value[TY_FIELD_KEEP_ALIVE].integer > 0;
    if (warm && (groups || rd->job->value[TY_FIELD_SPOT].boolean))
        return ty_job_refuse(rd, TY_FIELD_KEEP_ALIVE, TY_E_CONFIG, "warm pools (keep_alive_seconds) do not go with %s",
                             groups ? "instance groups" : "spot");
    if (groups)
        return check_groups(rd);
    return type ? check_type(rd, job_text(rd, TY_FIELD_INSTANCE_TYPE)) : 0;
}

static int check_stopping(job_reader *rd)
{
    const ty_field_value *v = rd->job->value;
    bool spot = v[TY_FIELD_SPOT].boolean, wait = job_given(rd, TY_FIELD_MAX_WAIT);
    if (spot && !wait) {
        ty_job_refuse(rd, TY_FIELD_SPOT, TY_E_CONFIG, "spot needs stopping.max_wait_seconds");
        return ty_error_help(rd->err, "it counts work and waiting: write at least %lld",
                             (long long)v[TY_FIELD_MAX_RUN].integer);
    }
    if (wait && !spot)
        return ty_job_refuse(rd, TY_FIELD_MAX_WAIT, TY_E_CONFIG, "\"max_wait_seconds\" goes with spot: true");
    if (wait && v[TY_FIELD_MAX_WAIT].integer < v[TY_FIELD_MAX_RUN].integer)
        return ty_job_refuse(rd, TY_FIELD_MAX_WAIT, TY_E_CONFIG,
                             "\"max_wait_seconds\" (%lld) is less than max_run_seconds (%lld), which it contains",
                             (long long)v[TY_FIELD_MAX_WAIT].integer, (long long)v[TY_FIELD_MAX_RUN].integer);
    if (spot && !job_given(rd, TY_FIELD_CHECKPOINT_URI))
        ty_job_warn(rd, "spot without checkpoints: after an interruption the job begins anew");
    return 0;
}

/* ---- strategies ---- */

static int check_smddp(job_reader *rd)
{
    /* Machines and TensorFlow versions of the library, as the SDK lists them. */
    static const char *const types[] = {"ml.p3.16xlarge", "ml.p3dn.24xlarge", "ml.p4d.24xlarge", "ml.p4de.24xlarge"};
    const char *type = job_text(rd, TY_FIELD_INSTANCE_TYPE), *version = job_text(rd, TY_FIELD_FRAMEWORK_VERSION);
    if (!is_on(rd, TY_FIELD_SMDDP, TY_FIELD_SMDDP_ENABLED))
        return 0;
    for (int i = 0; i < (type ? 1 : rd->job->n_groups); i++) {
        const char *t = type ? type : rd->job->groups[i].value[TY_FIELD_GROUP_TYPE].text;
        if (strstr(t, "p5.48xlarge"))
            return ty_job_refuse(rd, TY_FIELD_SMDDP, TY_E_CONFIG, "the data parallel library does not support %s", t);
        if (!IS_ONE_OF(t, types))
            ty_job_warn(rd,
                        "the data parallel library is made for ml.p3.16xlarge, ml.p3dn.24xlarge, ml.p4d.24xlarge and "
                        "ml.p4de.24xlarge, not for %s",
                        t);
    }
    bool known = version && is_framework(rd, "tensorflow");
    if (known && (ty_version_compare(version, "2.3") < 0 || ty_version_compare(version, "2.12") >= 0))
        return ty_job_refuse(rd, TY_FIELD_FRAMEWORK_VERSION, TY_E_RANGE,
                             "the data parallel library goes with TensorFlow 2.3 to 2.11, found %s", version);
    return 0;
}

static int check_mirrored(job_reader *rd)
{
    const char *version = job_text(rd, TY_FIELD_FRAMEWORK_VERSION);
    if (!is_on(rd, TY_FIELD_MWMS, TY_FIELD_MWMS_ENABLED))
        return 0;
    if (!is_framework(rd, "tensorflow") && !is_framework(rd, "trainyard"))
        return ty_job_refuse(rd, TY_FIELD_MWMS, TY_E_CONFIG,
                             "\"multi_worker_mirrored_strategy\" is TensorFlow's, and "
                             "the framework is %s",
                             job_text(rd, TY_FIELD_FRAMEWORK_NAME));
    if (version && is_framework(rd, "tensorflow") && ty_version_compare(version, "2.9") < 0)
        return ty_job_refuse(rd, TY_FIELD_FRAMEWORK_VERSION, TY_E_RANGE,
                             "\"multi_worker_mirrored_strategy\" needs TensorFlow 2.9 or later, found %s", version);
    if (ty_jobspec_has(rd->job, TY_FIELD_SMD) || ty_jobspec_has(rd->job, TY_FIELD_PS))
        return ty_job_refuse(rd, TY_FIELD_MWMS, TY_E_CONFIG,
                             "\"multi_worker_mirrored_strategy\" does not go with \"%s\"",
                             ty_jobspec_has(rd->job, TY_FIELD_SMD) ? "smdistributed" : "parameter_server");
    return 0;
}

static int check_distribution_groups(job_reader *rd)
{
    const ty_doc *named = rd->job->value[TY_FIELD_DIST_GROUPS].node;
    bool strategy = is_on(rd, TY_FIELD_MPI, TY_FIELD_MPI_ENABLED) || is_on(rd, TY_FIELD_SMDDP, TY_FIELD_SMDDP_ENABLED);
    if (named && !strategy)
        return ty_job_refuse(rd, TY_FIELD_DIST_GROUPS, TY_E_CONFIG,
                             "\"instance_groups\" of a distribution goes with mpi or smdistributed");
    for (size_t i = 0; i < ty_doc_len(named); i++) {
        bool found = false;
        for (int g = 0; g < rd->job->n_groups; g++)
            found = found || strcmp(rd->job->groups[g].name, named->items[i].string) == 0;
        if (!found)
            return ty_doc_error(&named->items[i], rd->err, TY_E_CONFIG, NULL, "there is no instance group \"%s\"",
                                named->items[i].string);
    }
    if (strategy && rd->job->n_groups > 1 && ty_doc_len(named) != 1)
        return ty_job_refuse(rd, TY_FIELD_DISTRIBUTION, TY_E_CONFIG,
                             "with %d instance groups, "
                             "distribution.instance_groups must name the one that takes part",
                             rd->job->n_groups);
    return 0;
}

static int check_distribution(job_reader *rd)
{
    if (ty_jobspec_has(rd->job, TY_FIELD_SMD) && !ty_jobspec_has(rd->job, TY_FIELD_SMDDP))
        return ty_job_refuse(rd, TY_FIELD_SMD, TY_E_MISSING_KEY,
                             "key \"dataparallel\" is missing in \"smdistributed\"");
    if (ty_jobspec_has(rd->job, TY_FIELD_SMD) && ty_jobspec_has(rd->job, TY_FIELD_DDP))
        return ty_job_refuse(rd, TY_FIELD_DDP, TY_E_CONFIG, "\"pytorchddp\" and \"smdistributed\" are both given");
    if (ty_jobspec_has(rd->job, TY_FIELD_XLA) && !ty_jobspec_has(rd->job, TY_FIELD_COMPILER))
        return ty_job_refuse(rd, TY_FIELD_XLA, TY_E_CONFIG, "\"pytorchxla\" goes with the section compiler");
    return check_smddp(rd) < 0 || check_mirrored(rd) < 0 ? -1 : check_distribution_groups(rd);
}

/* ---- the Training Compiler ---- */

static int check_compiler_versions(job_reader *rd)
{
    static const struct {
        const char *framework;
        ty_field_id version;
        const char *noun, *min, *below, *range;
    } rules[] = {
        {"tensorflow", TY_FIELD_FRAMEWORK_VERSION, "TensorFlow", "2.9", "2.12", "2.9 to 2.11"},
        {"huggingface", TY_FIELD_PYTORCH_VERSION, "Hugging Face with PyTorch", "1.9", "1.12", "1.9 to 1.11"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const char *version = job_text(rd, rules[i].version);
        if (is_framework(rd, rules[i].framework) && version &&
            (ty_version_compare(version, rules[i].min) < 0 || ty_version_compare(version, rules[i].below) >= 0))
            return ty_job_refuse(rd, rules[i].version, TY_E_RANGE, "the Training Compiler supports %s %s, found %s",
                                 rules[i].noun, rules[i].range, version);
    }
    return 0;
}

/* From PyTorch 1.12, and Hugging Face's with PyTorch 1.11, pytorchxla is the only strategy. */
static int check_compiler_strategy(job_reader *rd)
{
    bool hugging_face = is_framework(rd, "huggingface");
    const char *version = job_text(rd, hugging_face ? TY_FIELD_PYTORCH_VERSION : TY_FIELD_FRAMEWORK_VERSION);
    const char *since = hugging_face ? "1.11" : "1.12";
    bool xla = ty_jobspec_has(rd->job, TY_FIELD_XLA);
    if (xla && hugging_face && job_given(rd, TY_FIELD_TENSORFLOW_VERSION))
        return ty_job_refuse(rd, TY_FIELD_XLA, TY_E_CONFIG,
                             "\"pytorchxla\" does not go with Hugging Face's TensorFlow");
    if (!version || !(hugging_face || is_framework(rd, "pytorch")))
        return 0;
    bool is_new = ty_version_compare(version, since) >= 0;
    if (xla && !is_new)
        return ty_job_refuse(rd, TY_FIELD_XLA, TY_E_CONFIG, "\"pytorchxla\" needs PyTorch %s or later, found %s", since,
                             version);
    if (is_new && !xla && ty_jobspec_has(rd->job, TY_FIELD_DISTRIBUTION))
        return ty_job_refuse(rd, TY_FIELD_DISTRIBUTION, TY_E_CONFIG,
                             "with the Training Compiler and PyTorch %s the only distribution is pytorchxla", version);
    return 0;
}

static int check_compiler(job_reader *rd)
{
    const char *type = job_text(rd, TY_FIELD_INSTANCE_TYPE);
    if (!ty_jobspec_has(rd->job, TY_FIELD_COMPILER))
        return 0;
    if (rd->job->n_groups > 0)
        return ty_job_refuse(rd, TY_FIELD_COMPILER, TY_E_CONFIG,
                             "the Training Compiler needs machines of one kind: instance_type, not instance_groups");
    if (!IS_ONE_OF(family_of(rd, type), compiler_families)) {
        ty_job_refuse(rd, TY_FIELD_INSTANCE_TYPE, TY_E_CONFIG,
                      "the Training Compiler supports the families p3, p3dn, g4dn, p4d and g5, found \"%s\"",
                      family_of(rd, type));
        return ty_error_help(rd->err, "Trainyard compiles on any machine, without this section");
    }
    if (ty_jobspec_has(rd->job, TY_FIELD_SMD))
        return ty_job_refuse(rd, TY_FIELD_COMPILER, TY_E_CONFIG,
                             "the Training Compiler does not go with distribution.smdistributed");
    if (is_framework(rd, "tensorflow") && is_on(rd, TY_FIELD_MWMS, TY_FIELD_MWMS_ENABLED))
        return ty_job_refuse(rd, TY_FIELD_COMPILER, TY_E_CONFIG,
                             "the Training Compiler does not go with distribution.multi_worker_mirrored_strategy");
    if (rd->job->has_debugger || rd->job->has_profiler)
        ty_job_warn(rd, "debugger and profiler make the Training Compiler compile more often: debugger: false, "
                        "profiler: false");
    if (rd->job->value[TY_FIELD_COMPILER_ENABLED].boolean && rd->job->value[TY_FIELD_COMPILER_DEBUG].boolean)
        ty_job_warn(rd, "compiler.debug writes to /opt/ml/output/data/compiler and makes training slower");
    return check_compiler_versions(rd) < 0 ? -1 : check_compiler_strategy(rd);
}

int ty_job_check_cluster(job_reader *rd)
{
    if (check_resources(rd) < 0 || check_stopping(rd) < 0 || check_distribution(rd) < 0)
        return -1;
    return check_compiler(rd);
}
