/* recipe_reader.h - what the files that read a recipe share. Private to recipe*.c. */
#ifndef TY_ENTRYPOINT_RECIPE_READER_H
#define TY_ENTRYPOINT_RECIPE_READER_H

#include "entrypoint/recipe_keys.h"

typedef struct recipe_reader {
    ty_arena *a;
    ty_recipe *r;
    ty_setting *settings; /* room for all */
    int n_settings;
    ty_error *err;
} recipe_reader;

/* ty_bind(), and notes value and origin of each key. path: of the section, "data.train". */
int ty_recipe_bind(recipe_reader *rd, const char *path, const ty_bind_row *rows, size_t n_rows, const ty_doc *map,
                   void *out);
/* A path against the recipe's folder; NULL stays NULL. */
const char *ty_recipe_path(recipe_reader *rd, const char *path);
/* `data` into rd->r->train and validation. */
int ty_recipe_read_data(recipe_reader *rd, const ty_doc *node);
/* `distributed` into rd->r->distributed. */
int ty_recipe_read_distributed(recipe_reader *rd, const ty_doc *node);
/* `device` into rd->r->device and gpu, against rd->r->strategy; node: where it stands, or NULL. */
int ty_recipe_read_device(recipe_reader *rd, const char *text, const ty_doc *node);

#endif
