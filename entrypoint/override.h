/* override.h - a value for a recipe that comes from outside its file. */
#ifndef TY_ENTRYPOINT_OVERRIDE_H
#define TY_ENTRYPOINT_OVERRIDE_H

/* key: a dotted name or an alias. from: the origin as messages show it, `hyperparameter "lr"`, "argument --lr". */
typedef struct ty_recipe_override {
    const char *key, *text, *from;
} ty_recipe_override;

#endif
