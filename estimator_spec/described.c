/* described.c - members of answers that no request has. */
#include "estimator_spec/described.h"

#include "estimator_spec/tree.h"

#include <string.h>

/* Members of the answer alone (botocore, DescribeTrainingJobResponse), and what boto3 puts beside them. */
static const char *const added[] = {
    "TrainingJobArn",
    "TuningJobArn",
    "LabelingJobArn",
    "AutoMLJobArn",
    "ModelArtifacts",
    "TrainingJobStatus",
    "SecondaryStatus",
    "FailureReason",
    "CreationTime",
    "TrainingStartTime",
    "TrainingEndTime",
    "LastModifiedTime",
    "SecondaryStatusTransitions",
    "FinalMetricDataList",
    "TrainingTimeInSeconds",
    "BillableTimeInSeconds",
    "DebugRuleEvaluationStatuses",
    "ProfilerRuleEvaluationStatuses",
    "ProfilingStatus",
    "WarmPoolStatus",
    "ResourceTags",
    "OutputModelPackageArn",
    "ModelPackageConfigDetails",
    "MlflowDetails",
    "ProgressInfo",
    "ResponseMetadata",
};

/* Defaults that the service spells out whether or not they were sent; "*" stands for any item of a list. */
static const struct {
    const char *path, *raw;
} defaults[] = {
    {"EnableNetworkIsolation", "false"},
    {"EnableInterContainerTrafficEncryption", "false"},
    {"EnableManagedSpotTraining", "false"},
    {"OutputDataConfig.KmsKeyId", ""},
    {"OutputDataConfig.CompressionType", "GZIP"},
    {"InputDataConfig.*.CompressionType", "None"},
    {"InputDataConfig.*.RecordWrapperType", "None"},
};

static void note(ty_arena *a, const char **list, const char *name)
{
    if (!strstr(*list, name))
        *list = **list ? ty_arena_printf(a, "%s, %s", *list, name) : name;
}

bool ty_described(const ty_doc *body)
{
    return ty_doc_find(body, "TrainingJobArn") || ty_doc_find(body, "TrainingJobStatus");
}

/* d without the default at path, if it is there. */
static ty_doc without(ty_arena *a, const ty_doc *d, const char *path, const char *raw, bool *found)
{
    const char *dot = strchr(path, '.');
    const char *key = dot ? ty_arena_strndup(a, path, (size_t)(dot - path)) : path;
    ty_doc out = *d;
    if (strcmp(key, "*") == 0 ? d->kind != TY_DOC_LIST : d->kind != TY_DOC_MAP)
        return out;
    out.items = NULL;
    out.n_items = 0;
    for (uint32_t i = 0; i < d->n_items; i++) {
        const ty_doc *item = &d->items[i];
        bool on_path = strcmp(key, "*") == 0 || strcmp(item->key, key) == 0;
        bool is_scalar = item->kind != TY_DOC_MAP && item->kind != TY_DOC_LIST;
        if (on_path && !dot && is_scalar && strcmp(item->raw, raw) == 0) {
            *found = true;
            continue;
        }
        ty_tree_add(a, &out, on_path && dot ? without(a, item, dot + 1, raw, found) : *item);
    }
    return out;
}

ty_doc ty_described_request(const ty_doc *body, ty_arena *a, const char **left_out)
{
    ty_doc out = ty_tree_map();
    *left_out = "";
    for (uint32_t i = 0; i < body->n_items; i++) {
        bool is_added = false;
        for (size_t k = 0; k < sizeof added / sizeof added[0]; k++)
            is_added = is_added || strcmp(body->items[i].key, added[k]) == 0;
        if (is_added)
            note(a, left_out, body->items[i].key);
        else
            ty_tree_put_key(a, &out, body->items[i].key, body->items[i]);
    }
    for (size_t k = 0; k < sizeof defaults / sizeof defaults[0]; k++) {
        bool found = false;
        out = without(a, &out, defaults[k].path, defaults[k].raw, &found);
        if (found)
            note(a, left_out,
                 ty_arena_printf(a, "%s (%s)", defaults[k].path, *defaults[k].raw ? defaults[k].raw : "empty"));
    }
    return out;
}

ty_doc ty_described_without_nulls(const ty_doc *d, ty_arena *a)
{
    ty_doc out = *d;
    if (d->kind != TY_DOC_MAP)
        return out;
    out.items = NULL;
    out.n_items = 0;
    for (uint32_t i = 0; i < d->n_items; i++)
        if (d->items[i].kind != TY_DOC_NULL)
            ty_tree_add(a, &out, ty_described_without_nulls(&d->items[i], a));
    return out;
}
