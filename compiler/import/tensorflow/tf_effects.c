/* tf_effects.c - which operators read variables, assign to them, or only watch. */
#include "compiler/import/tensorflow/tf_file.h"

#include <string.h>

static const char *const variables[] = {"VarHandleOp", "VariableV2", "Variable", NULL};

static const char *const reads[] = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", NULL};

/* A name stands for all that begin so. */
static const char *const assigns[] = {"Assign",
                                      "ResourceApply",
                                      "ResourceSparseApply",
                                      "ResourceScatter",
                                      "ResourceStridedSliceAssign",
                                      "StridedSliceAssign",
                                      "SparseApply",
                                      "Apply",
                                      "ScatterUpdate",
                                      "ScatterAdd",
                                      "ScatterSub",
                                      "ScatterMul",
                                      "ScatterDiv",
                                      "ScatterMin",
                                      "ScatterMax",
                                      "ScatterNdUpdate",
                                      "ScatterNdAdd",
                                      "ScatterNdSub",
                                      NULL};

static const char *const stripped[] = {"Assert",
                                       "Print",
                                       "StringFormat",
                                       "CheckNumerics",
                                       "WriteSummary",
                                       "WriteScalarSummary",
                                       "WriteHistogramSummary",
                                       "WriteImageSummary",
                                       "WriteAudioSummary",
                                       "WriteRawProtoSummary",
                                       "WriteGraphSummary",
                                       "ScalarSummary",
                                       "HistogramSummary",
                                       "ImageSummary",
                                       "AudioSummary",
                                       "MergeSummary",
                                       "TensorSummary",
                                       "SaveV2",
                                       "SaveSlices",
                                       "Save",
                                       "RestoreV2",
                                       "Restore",
                                       "MergeV2Checkpoints",
                                       "Timestamp",
                                       "Abort",
                                       NULL};

static const char *const flow[] = {"If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase", NULL};

static bool is_one_of(const char *op, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(op, *list) == 0)
            return true;
    return false;
}

static bool begins_as_one_of(const char *op, const char *const *list)
{
    for (; *list; list++)
        if (strncmp(op, *list, strlen(*list)) == 0)
            return true;
    return false;
}

bool tf_op_is_variable(const char *op)
{
    return is_one_of(op, variables);
}

bool tf_op_assigns(const char *op)
{
    return begins_as_one_of(op, assigns);
}

bool tf_op_reads(const char *op)
{
    return is_one_of(op, reads);
}

bool tf_op_is_stripped(const char *op)
{
    return begins_as_one_of(op, stripped);
}

bool tf_op_is_control_flow(const char *op)
{
    return is_one_of(op, flow);
}

static bool function_has_effects(tf_file *f, const char *name)
{
    const tf_function *fn;
    int i = name ? tf_find_function(f, name) : -1;
    return i >= 0 && tf_load_function(f, i, &fn, NULL) == 0 && tf_body_has_effects(f, fn->body);
}

/* Any function in its attributes counts: branches, bodies, calls. */
bool tf_raw_has_effects(tf_file *f, const tf_body *b, tf_raw *raw)
{
    const char *op = raw->node.op;
    if (tf_op_assigns(op))
        return true;
    bool is_call = tf_find_function(f, op) >= 0;
    if (is_call)
        return function_has_effects(f, op);
    if (strcmp(op, "PartitionedCall") != 0 && strcmp(op, "StatefulPartitionedCall") != 0 && !tf_op_is_control_flow(op))
        return false;
    if (tf_body_attrs(f, b, raw, NULL) < 0)
        return false;
    for (int i = 0; i < raw->n_attrs; i++) {
        const tf_attr_value *v = raw->attr[i].value;
        if (v->func && function_has_effects(f, v->func->name))
            return true;
        for (size_t k = 0; v->list && k < v->list->func.n; k++)
            if (function_has_effects(f, TF_AT(v->list->func, tf_func, k)->name))
                return true;
    }
    return false;
}

bool tf_body_has_effects(tf_file *f, const tf_body *body)
{
    tf_body *b = (tf_body *)(uintptr_t)body; /* belongs to the file, which is ours */
    if (b->has_effects >= 0 || b->is_open || f->depth >= TF_MAX_CALL_DEPTH)
        return b->has_effects > 0;
    b->is_open = true;
    f->depth++;
    bool found = false;
    for (int i = 0; i < b->n && !found; i++)
        found = tf_raw_has_effects(f, b, &b->raw[i]);
    b->is_open = false;
    f->depth--;
    b->has_effects = found;
    return found;
}
