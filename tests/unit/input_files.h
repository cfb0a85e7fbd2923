/* input_files.h - small files for the tests of container/input, in a folder that goes away. */
#ifndef TY_TESTS_UNIT_INPUT_FILES_H
#define TY_TESTS_UNIT_INPUT_FILES_H

#include "base/file.h"
#include "container/input/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char files_folder[256];
static char files_text[8192];

static inline int files_setup(void **state)
{
    (void)state;
    snprintf(files_folder, sizeof files_folder, "/tmp/ty-input-XXXXXX");
    return mkdtemp(files_folder) != NULL ? 0 : -1;
}

static inline int files_teardown(void **state)
{
    (void)state;
    return ty_file_remove_tree(files_folder, NULL);
}

/* Path of a file in the folder; four may be in use at once. */
static inline const char *files_path(const char *name)
{
    static char path[4][512];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", files_folder, name);
    return p;
}

static inline void files_put(const char *name, const void *bytes, size_t n)
{
    const char *path = files_path(name);
    for (const char *slash = strchr(path + strlen(files_folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        char folder[512];
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        mkdir(folder, 0755);
    }
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        abort();
}

static inline void files_puts(const char *name, const char *text)
{
    files_put(name, text, strlen(text));
}

/* Opens everything in the folder, or one file of it. */
static inline int files_open(const char *name, ty_field *fields, int n_fields, ty_data_source extra, ty_dataset **ds,
                             ty_error *err)
{
    const char *paths[1] = {name != NULL ? files_path(name) : files_folder};
    extra.paths = paths;
    extra.n_paths = 1;
    extra.fields = fields;
    extra.n_fields = n_fields;
    return ty_dataset_open(&extra, ds, err);
}

/* The error as a person would see it, without the folder's name. */
static inline const char *files_error(const ty_error *err)
{
    char raw[8192];
    ty_error_format(err, raw, sizeof raw);
    size_t n = 0, skip = strlen(files_folder);
    for (const char *p = raw; *p != 0 && n + 1 < sizeof files_text;)
        if (strncmp(p, files_folder, skip) == 0)
            p += skip + (p[skip] == '/');
        else
            files_text[n++] = *p++;
    files_text[n] = 0;
    return files_text;
}

/* Path below the shared data, or NULL where there are none. */
static inline const char *files_shared(const char *name)
{
    static char path[4][1024];
    static int next;
    char *p = path[next++ % 4];
    const char *root = getenv("TY_SHARED");
    snprintf(p, sizeof path[0], "%s/data/%s", root != NULL && root[0] != 0 ? root : "../shared", name);
    return access(p, R_OK) == 0 ? p : NULL;
}

/* A file of format-vectors: of tests/golden, or of the shared data, NULL where there are none. */
static bool files_take_shared_vectors;

static inline const char *files_vector(const char *name)
{
    static char path[4][1024];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", files_take_shared_vectors ? "format-vectors" : "tests/golden/format-vectors",
             name);
    return files_take_shared_vectors ? files_shared(p) : p;
}

/* Setup of a test that is run on both. */
static inline int files_golden_vectors(void **state)
{
    (void)state;
    files_take_shared_vectors = false;
    return 0;
}

static inline int files_shared_vectors(void **state)
{
    (void)state;
    files_take_shared_vectors = true;
    return 0;
}

#define assert_says(err, text)                                                \
    do {                                                                      \
        if (strstr(files_error(err), (text)) == NULL) {                       \
            print_error("expected \"%s\" in:\n%s", (text), files_error(err)); \
            fail();                                                           \
        }                                                                     \
    } while (0)

#define assert_ok(call, err)                     \
    do {                                         \
        if ((call) < 0) {                        \
            print_error("%s", files_error(err)); \
            fail();                              \
        }                                        \
    } while (0)

#endif
