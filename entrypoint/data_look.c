/* data_look.c - see data_look.h. */
#include "entrypoint/data_look.h"

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

static int look_at(const ty_recipe *r, const ty_spec_plan *plan, const ty_recipe_data *d, const char *data_folder,
                   ty_arena *a, ty_data_look *look, ty_error *err)
{
    if (!look_finds(d, data_folder, a, look))
        return 0;
    ty_data_source source = {.paths = &look->path,
                             .n_paths = 1,
                             .pattern = d->pattern,
                             .format = d->format,
                             .fields = ty_spec_fields(r, plan, d, a),
                             .n_fields = d->n_fields,
                             .csv_header = (ty_csv_header)d->header,
                             .csv_delimiter = d->delimiter ? d->delimiter[0] : 0,
                             .max_inflated_bytes = LOOK_INFLATED_BYTES,
                             .types_only = true};
    ty_dataset *ds;
    if (ty_dataset_open(&source, &ds, err) < 0) {
        if (err->code != TY_E_LIMIT)
            return ty_error_wrap(err, "%s", look->name);
        look_passes(look, ty_arena_printf(a, "that takes longer than a look: %s", err->message), NULL);
        *err = (ty_error){0};
        return 0;
    }
    look->format = ty_arena_strdup(a, ds->format);
    look->n_samples = strcmp(ds->format, "csv") == 0 ? -1 : ds->n_samples;
    int rc = look_fits(r, plan, ds, err);
    ty_dataset_close(ds);
    return rc < 0 ? ty_error_wrap(err, "%s", look->name) : 0;
}

int ty_data_look_at(const ty_recipe *r, const ty_spec_plan *plan, const char *data_folder, ty_arena *a,
                    ty_data_look out[2], ty_error *err)
{
    int n = r->validation.given ? 2 : 1;
    out[0] = (ty_data_look){.name = "data.train", .n_samples = -1};
    out[1] = (ty_data_look){.name = "data.validation", .n_samples = -1};
    for (int i = 0; i < n; i++)
        if (look_at(r, plan, i ? &r->validation : &r->train, data_folder, a, &out[i], err) < 0)
            return -1;
    return n;
}
