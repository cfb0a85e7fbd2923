/* data_look.c - see data_look.h. */
#include "entrypoint/data_look.h"

#include "entrypoint/channel.h"
#include "entrypoint/found.h"

#include <string.h>
#include <unistd.h>

/* What is inflated for a look: some hundredths of a second. */
#define LOOK_INFLATED_BYTES ((size_t)16 << 20)

static void look_passes(ty_data_look *look, const char *why, const char *help)
{
    look->why = why;
    look->help = help;
}

/* False: look->why says why not. */
static bool look_finds(const ty_recipe_data *d, const char *data_folder, ty_arena *a, ty_data_look *look)
{
    look->path = d->path ? d->path : data_folder ? ty_arena_printf(a, "%s/%s", data_folder, d->channel) : NULL;
    if (!look->path)
        look_passes(look, ty_arena_printf(a, "where channel \"%s\" lies is not known here", d->channel),
                    "--data-dir DIR names the folder that has the channels");
    else if (access(look->path, R_OK) != 0 && ty_channel_has_fifo(look->path))
        look_passes(look, "it is a channel in Pipe mode, and to look into a FIFO takes an epoch from the training",
                    ty_arena_printf(a, "--%s.path=FILE looks at a file of the same records", look->name));
    else if (access(look->path, R_OK) != 0)
        look_passes(look, ty_arena_printf(a, "%s is not there", look->path), NULL);
    return look->why == NULL;
}

static int look_fits(const ty_recipe *r, const ty_spec_plan *plan, const ty_dataset *ds, ty_error *err)
{
    for (int i = 0; i < plan->n_feeds; i++)
        if (ty_dataset_find(ds, plan->feeds[i].field) < 0)
            return ty_error_set(err, TY_E_CONFIG, "no field \"%s\" is declared", plan->feeds[i].field);
    return ty_spec_check_data(r, plan, ds, err);
}

static ty_data_source look_source(const ty_recipe_data *d, const ty_data_look *look)
{
    return (ty_data_source){.paths = &look->path,
                            .n_paths = 1,
                            .pattern = d->pattern,
                            .windows = d->windows,
                            .format = d->format,
                            .csv_header = (ty_csv_header)d->header,
                            .index_base = (ty_index_base)d->index_base,
                            .csv_delimiter = d->delimiter ? d->delimiter[0] : 0,
                            .lenient = d->lenient,
                            .csv_missing = d->missing_values,
                            .blank_lines = d->blank_lines,
                            .skip_bad = d->skip_bad,
                            .max_bad = d->max_bad,
                            .max_inflated_bytes = LOOK_INFLATED_BYTES,
                            .types_only = true};
}

static int look_at(const ty_recipe *r, const ty_spec_plan *plan, const ty_recipe_data *d, const char *data_folder,
                   ty_arena *a, ty_data_look *look, ty_error *err)
{
    if (!look_finds(d, data_folder, a, look))
        return 0;
    ty_data_source source = look_source(d, look);
    source.fields = ty_spec_fields(r, plan, d, a);
    source.n_fields = d->n_fields;
    ty_dataset *ds;
    if (ty_dataset_open(&source, &ds, err) < 0) {
        if (err->code != TY_E_LIMIT)
            return ty_error_wrap(err, "%s", look->name);
        look_passes(look, ty_arena_printf(a, "that takes longer than a look: %s", err->message), NULL);
        *err = (ty_error){0};
        return 0;
    }
    look->format = ty_arena_strdup(a, ds->format);
    look->n_samples = ds->is_partial ? -1 : ds->n_samples;
    int rc = look_fits(r, plan, ds, err);
    ty_dataset_close(ds);
    return rc < 0 ? ty_error_wrap(err, "%s", look->name) : 0;
}

int ty_data_look_at(const ty_recipe *r, const ty_spec_plan *plan, const char *data_folder, ty_arena *a,
                    ty_data_look out[2], ty_error *err)
{
    int n = r->validation.given && r->validation.split == 0 ? 2 : 1; /* what is split off is looked at already */
    out[0] = (ty_data_look){.name = "data.train", .n_samples = -1};
    out[1] = (ty_data_look){.name = "data.validation", .n_samples = -1};
    for (int i = 0; i < n; i++)
        if (look_at(r, plan, i ? &r->validation : &r->train, data_folder, a, &out[i], err) < 0)
            return -1;
    return n;
}

int ty_data_look_for_fields(ty_recipe *r, const ty_model *m, const char *data_folder, ty_arena *a, ty_error *err)
{
    ty_data_look look = {.name = "data.train"};
    if (r->train.n_fields > 0)
        return 0;
    if (!look_finds(&r->train, data_folder, a, &look)) {
        ty_error_set(err, TY_E_CONFIG, "data.train declares no fields, and %s", look.why);
        return ty_error_help(err, "%s", look.help ? look.help : "declare them: data.train.fields");
    }
    ty_data_source source = look_source(&r->train, &look);
    return ty_found_fields(r, m, &source, a, err) < 0 ? ty_error_wrap(err, "data.train") : 0;
}
