/* recipe_reader.h - what the files that read a recipe share. Private to recipe*.c. */
#ifndef TY_ENTRYPOINT_RECIPE_READER_H
#define TY_ENTRYPOINT_RECIPE_READER_H

#include "entrypoint/recipe_keys.h"

typedef struct recipe_reader {
    ty_arena *a;
    ty_recipe *r;
    ty_setting *settings; /* room for all */
    int n_settings;
    const ty_doc_source *base; /* of what a model file says of its own training; NULL: nothing */
    ty_error *err;
} recipe_reader;

/* ty_bind(), and notes value and origin of each key. path: of the section, "data.train". */
int ty_recipe_bind(recipe_reader *rd, const char *path, const ty_bind_row *rows, size_t n_rows, const ty_doc *map,
                   void *out);
/* A list of strings, or one string, as a NULL-terminated list; `what` is its key. */
int ty_recipe_read_names(recipe_reader *rd, const ty_doc *node, const char *what, ty_names *out, int *n_out);
/* Texts and numbers as they are written, what says that there is no value: -999 and NA need no quotes. */
int ty_recipe_read_markers(ty_arena *a, const ty_doc *node, ty_csv_missing *out, ty_error *err);
/* "500 steps", "2 epochs" or 500; `fallback` where there is no node, which may be NULL: n is 0. `what` is its key. */
int ty_recipe_read_span(recipe_reader *rd, const ty_doc *node, const char *what, const char *fallback, ty_span *out);
/* recipe_watch.c, once metrics and data are read: what depends on evaluations. What a plateau watches must be there,
 * and has a better direction; early_stopping, and with it which value is the best; export, which it has to do with. */
int ty_recipe_check_plateau(recipe_reader *rd);
int ty_recipe_read_early_stopping(recipe_reader *rd, const ty_doc *node);
int ty_recipe_read_export(recipe_reader *rd, const ty_doc *node);
/* A path against the recipe's folder; NULL stays NULL. */
const char *ty_recipe_path(recipe_reader *rd, const char *path);
/* `data` into rd->r->train and validation. */
int ty_recipe_read_data(recipe_reader *rd, const ty_doc *node);
/* The transforms of a field that is bound already: f->map, NULL where none are declared. */
int ty_recipe_read_transforms(recipe_reader *rd, const ty_doc *node, const recipe_field *from, ty_field *f);
/* One field, without a recipe around it. */
int ty_recipe_read_field(ty_arena *a, const char *folder, const char *name, const ty_doc *node, ty_field *out,
                         ty_error *err);
/* Crosses stand behind all fields that the data hold. */
int ty_recipe_order_crosses(recipe_reader *rd, const ty_doc *node, ty_field *fields, int n);
/* Fields of the validation data get the transforms of the training data's, which alone learn. */
int ty_recipe_share_transforms(recipe_reader *rd, const ty_recipe_data *train, ty_recipe_data *validation);
/* `audio` of a field, which may be NULL, into f->audio. */
int ty_recipe_read_audio(recipe_reader *rd, const char *path, const ty_doc *node, ty_field *out);
/* `image` of a field, which may be NULL, into f->image. */
int ty_recipe_read_image(recipe_reader *rd, const char *path, const ty_doc *node, ty_field *f);
/* `distributed` into rd->r->distributed. */
int ty_recipe_read_distributed(recipe_reader *rd, const ty_doc *node);
/* `device` into rd->r->device and gpu, against rd->r->strategy; node: where it stands, or NULL. */
int ty_recipe_read_device(recipe_reader *rd, const char *text, const ty_doc *node);
/* Before overrides come in: adds the sections that the model file has of its own (ty_model_recipe) and the user's
 * recipe has not. *source: what those have as their source; NULL: there are none. */
int ty_recipe_add_base(ty_arena *a, ty_doc *root, const char *folder, const ty_recipe_override *overrides, int n,
                       const ty_doc_source **source, ty_error *err);
/* Whether the path is that of a model: it stands for a recipe that names it and nothing else, and the file's own
 * settings and arguments say the rest. */
bool ty_recipe_is_model(const char *path);
/* That recipe. */
int ty_recipe_of_model(const char *path, ty_arena *a, ty_doc **root, ty_error *err);

/* Refuses keys of training that a model's own step (train_signature) takes the place of. */
int ty_recipe_check_own_step(recipe_reader *rd, const ty_doc *root);

/* recipe_data.c: an amount of memory as text, and data_threads. Absent nodes leave what is. */
int ty_recipe_read_memory(recipe_reader *rd, const ty_doc *node, uint64_t *out);
int ty_recipe_read_data_threads(recipe_reader *rd, const ty_doc *node);

#endif
