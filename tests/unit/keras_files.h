/* keras_files.h - the files of tests/golden/keras, unpacked into a folder that goes away. */
#ifndef TY_TESTS_UNIT_KERAS_FILES_H
#define TY_TESTS_UNIT_KERAS_FILES_H

#include "base/file.h"
#include "compiler/import/keras/keras.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64];
static ty_arena arena;

static inline int setup(void **state)
{
    char command[256];
    (void)state;
    ty_arena_init(&arena);
    snprintf(folder, sizeof folder, "/tmp/ty-keras-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(command, sizeof command, "tar -xJf tests/golden/keras/files.tar.xz -C %s", folder);
    return system(command) == 0 ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    ty_arena_fini(&arena);
    return ty_file_remove_tree(folder, NULL);
}

static inline const char *path_of(const char *name)
{
    return ty_arena_printf(&arena, "%s/%s", folder, name);
}

static inline keras_file open_file(const char *name)
{
    keras_file f;
    ty_error err = {0};
    if (keras_file_open(path_of(name), &arena, &f, &err) < 0)
        fail_msg("%s", err.message);
    return f;
}

static inline const keras_tensor *tensor_of(const keras_file *f, const char *path)
{
    for (int i = 0; i < f->n_tensors; i++)
        if (strcmp(f->tensor[i].path, path) == 0)
            return &f->tensor[i];
    fail_msg("no tensor %s", path);
    return NULL;
}

static inline void assert_type(const keras_tensor *t, const char *type)
{
    char text[160];
    assert_string_equal(ty_type_text(&t->type, text, sizeof text), type);
    assert_int_equal((uintptr_t)t->data % ty_dtype_bytes((ty_dtype)t->type.dtype), 0);
}

#endif
