/* session_transforms.c - transforms of fields in a session: taken from a file, learnt together, kept with the model. */
#include "base/log.h"
#include "base/file.h"
#include "container/input/image/plan.h"
#include "container/input/tokenizer/tokenizer.h"
#include "entrypoint/preprocessing.h"
#include "entrypoint/session.h"

#include <stdlib.h>
#include <string.h>

#define SEEN_MAX_BYTES ((size_t)4 << 30)

/* ---- learning together ---- */

/* What every host has seen, one after the other: the same order on all ranks, and so the same bits. */
static int join_all(ty_company *c, ty_map *map, const ty_buf *mine, const int64_t *sizes, ty_error *err)
{
    int rc = 0;
    for (int rank = 0; rc == 0 && rank < ty_company_size(c); rank++) {
        if (sizes[rank] == 0)
            continue;
        char *bytes = malloc((size_t)sizes[rank]);
        if (!bytes)
            return ty_error_set(err, TY_E_LIMIT, "no memory for what rank %d has learnt", rank);
        if (rank == ty_company_rank(c))
            memcpy(bytes, mine->data, (size_t)sizes[rank]);
        rc = ty_company_share_of(c, rank, "what transforms have learnt", bytes, (size_t)sizes[rank], err);
        if (rc == 0)
            rc = ty_map_join(map, bytes, (size_t)sizes[rank], err);
        free(bytes);
    }
    return rc;
}

/* Workers of parameter servers know nothing of each other. */
static int refuse_to_learn(ty_error *err)
{
    ty_error_set(err, TY_E_CONFIG, "transforms would learn other things on each worker: the channel is sharded");
    return ty_error_help(err,
                         "replicate the channel, or let one host learn before, with max_steps: 1; then preprocessing: "
                         "FILE in data.train takes that run's preprocessing.json");
}

/* Ranks of one host have seen the same files: one of them speaks for it. */
static int agree_on_map(void *ctx, ty_map *map, ty_error *err)
{
    ty_company *c = ((const ty_session *)ctx)->job->company;
    ty_buf seen;
    if (!c)
        return refuse_to_learn(err);
    int64_t *sizes = calloc((size_t)ty_company_size(c), sizeof *sizes);
    if (!sizes)
        return ty_error_set(err, TY_E_LIMIT, "no memory to learn transforms together");
    ty_buf_init(&seen, SEEN_MAX_BYTES);
    int rc = ty_company_local_rank(c) == 0 ? ty_map_write_seen(map, &seen) : 0;
    if (rc < 0)
        ty_error_set(err, TY_E_LIMIT, "field \"%s\" has learnt too much to share it", ty_map_declared(map)->field);
    int64_t mine = (int64_t)seen.len;
    if (rc == 0)
        rc = ty_company_gather(c, "sizes of what transforms have learnt", &mine, sizeof mine, sizes, err);
    ty_map_forget(map);
    if (rc == 0)
        rc = join_all(c, map, &seen, sizes, err);
    ty_buf_fini(&seen);
    free(sizes);
    return rc;
}

static int agree_on_numbers(void *ctx, const char *what, ty_agree_how how, int64_t *v, int n, ty_error *err)
{
    static int (*const ask[])(ty_company *, const char *, int64_t *, ty_error *) = {
        [TY_AGREE_LEAST] = ty_company_least, [TY_AGREE_MOST] = ty_company_most, [TY_AGREE_SUM] = ty_company_total};
    ty_company *c = ((const ty_session *)ctx)->job->company;
    if (!c) {
        ty_error_set(err, TY_E_CONFIG, "%s would be others on each worker: the channel is sharded", what);
        return ty_error_help(
            err, "replicate the channel, or declare what follows from them: shape, index_base, dtype, mean, std");
    }
    for (int i = 0; i < n; i++) {
        if (how == TY_AGREE_SUM && ty_company_local_rank(c) > 0)
            v[i] = 0;
        if (ask[how](c, what, &v[i], err) < 0)
            return -1;
    }
    return 0;
}

/* Means of the training data, for data with fields of their own. */
static void take_means(const ty_dataset *train, const ty_field *fields, int n)
{
    for (int i = 0; i < n; i++) {
        int k = fields[i].image && fields[i].image->mean_of_data ? ty_dataset_find(train, fields[i].name) : -1;
        if (k >= 0 && train->field[k].image)
            ty_image_plan_keep(fields[i].image, train->field[k].image);
    }
}

static bool any_learns(const ty_field *fields, int n)
{
    for (int i = 0; i < n; i++)
        if ((fields[i].map && !ty_map_is_settled(fields[i].map)) || (fields[i].image && fields[i].image->mean_of_data))
            return true;
    return false;
}

/* The tokenizer.json of fields; NULL: none. Next to a model there is room for one. */
static int find_tokenizer(const ty_field *fields, int n, const char **out, ty_error *err)
{
    *out = NULL;
    for (int i = 0; i < n; i++) {
        const char *path = fields[i].map ? ty_map_declared(fields[i].map)->tokenizer : NULL;
        if (path && *out && strcmp(path, *out) != 0)
            return ty_error_set(err, TY_E_CONFIG, "two tokenizers, %s and %s: a model is kept with one", *out, path);
        *out = path ? path : *out;
    }
    return 0;
}

int ty_session_tokenizer(ty_session *s, ty_buf *out, ty_error *err)
{
    const char *path;
    const ty_field *fields = ty_spec_fields(&s->recipe, &s->plan, &s->recipe.train, &s->arena);
    if (s->train && s->train->tokenizer)
        return ty_buf_add(out, s->train->tokenizer, s->train->tokenizer_bytes);
    if (find_tokenizer(fields, s->recipe.train.n_fields, &path, err) < 0)
        return -1;
    return path ? ty_file_read(path, out, err) : 0;
}

int ty_session_prepare_transforms(ty_session *s, const ty_field *fields, int n, bool sharded, ty_data_source *source,
                                  ty_error *err)
{
    const char *path = s->recipe.train.preprocessing, *tokenizer;
    if (find_tokenizer(fields, n, &tokenizer, err) < 0)
        return -1;
    if (s->recipe.export_preprocessing && strcmp(ty_model_artifact(s->model), "model.onnx") != 0) {
        ty_error_set(err, TY_E_CONFIG, "export.preprocessing is for ONNX models, and the model is %s",
                     ty_model_artifact(s->model));
        return ty_error_help(err, "trainyard model convert MODEL model.onnx makes one of it, which trains the same");
    }
    if (s->recipe.export_adapter && !ty_model_preparation_of(s->model)) {
        ty_error_set(err, TY_E_CONFIG, "export.adapter is for Hugging Face folders, and the model is %s",
                     ty_model_format(s->model));
        return ty_error_help(err, "leave it out: what was learned is merged into the model that is written");
    }
    if (path && ty_preprocessing_settle(path, &s->arena, fields, n, err) < 0)
        return -1;
    if (s->train)
        take_means(s->train, fields, n);
    if (sharded)
        source->agree = (ty_agree){s, agree_on_map, agree_on_numbers};
    if (!any_learns(fields, n))
        return 0;
    if (s->train) /* of fields that only the validation data declare */
        return ty_error_set(err, TY_E_CONFIG,
                            "transforms learn of data.train alone, and it has not all of these fields");
    return sharded && !s->job->company ? refuse_to_learn(err) : 0;
}

/* ---- what is kept ---- */

void ty_session_describe_transforms(const ty_field *fields, int n)
{
    ty_buf text;
    for (int i = 0; i < n; i++) {
        if (!fields[i].map || !ty_map_is_settled(fields[i].map))
            continue;
        ty_buf_init(&text, 1 << 16);
        ty_map_describe(fields[i].map, &text);
        ty_log_info("data", "field \"%s\": %s", fields[i].name, text.data);
        ty_buf_fini(&text);
    }
}

int ty_session_preprocessing(ty_session *s, ty_buf *out, ty_error *err)
{
    const ty_recipe_data *d = &s->recipe.train;
    const ty_field *fields = ty_spec_fields(&s->recipe, &s->plan, d, &s->arena);
    if (!ty_preprocessing_is_needed(fields, d->n_fields, s->train))
        return 0;
    return ty_preprocessing_write(d, fields, s->train, &s->plan, out, err);
}
