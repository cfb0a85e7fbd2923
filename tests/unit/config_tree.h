/* config_tree.h - for the tests of container/config: an arena a test, parsed texts, and a throw-away /opt/ml tree. */
#ifndef TY_TESTS_CONFIG_TREE_H
#define TY_TESTS_CONFIG_TREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct tree {
    ty_arena arena;
    char base[64]; /* an empty folder, removed after the test */
} tree;

static inline int tree_setup(void **state)
{
    tree *t = calloc(1, sizeof *t);

    ty_arena_init(&t->arena);
    strcpy(t->base, "/tmp/ty_config_XXXXXX");
    if (mkdtemp(t->base) == NULL)
        return -1;
    *state = t;
    return 0;
}

static inline int tree_teardown(void **state)
{
    tree *t = *state;

    ty_file_remove_tree(t->base, NULL);
    ty_arena_fini(&t->arena);
    free(t);
    return 0;
}

#define TREE_TEST(function) cmocka_unit_test_setup_teardown(function, tree_setup, tree_teardown)

static inline const char *tree_path(tree *t, const char *below)
{
    return ty_arena_printf(&t->arena, "%s/%s", t->base, below);
}

/* Writes a file below the base, making its folders. */
static inline const char *tree_write(tree *t, const char *below, const char *text)
{
    const char *path = tree_path(t, below);
    char *folder = ty_arena_strdup(&t->arena, path);

    *strrchr(folder, '/') = '\0';
    assert_int_equal(ty_file_mkdirs(folder, 0777, NULL), 0);
    assert_int_equal(ty_file_write(path, text, strlen(text), 0644, NULL), 0);
    return path;
}

static inline const char *tree_read(tree *t, const char *path)
{
    ty_error err = {0};
    ty_buf bytes;

    ty_buf_init(&bytes, 1 << 20);
    if (ty_file_read(path, &bytes, &err) < 0)
        fail_msg("%s: %s", path, err.message);
    const char *copy = ty_arena_strndup(&t->arena, bytes.data, bytes.len);
    ty_buf_fini(&bytes);
    return copy;
}

static inline ty_doc *tree_parse(tree *t, const char *text)
{
    ty_error err = {0};
    ty_doc *doc = NULL;

    if (ty_json_parse(&t->arena, "test.json", text, strlen(text), NULL, &doc, &err) < 0)
        fail_msg("%s: %s %s", text, err.place, err.message);
    return doc;
}

static inline void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("<%s> is not in <%s>", part, text);
}

#endif
