/* plugin.c - plug-ins that the test compiles: found, refused, and told apart when something is missing. */
#define _GNU_SOURCE
#include "tests/unit/config_tree.h"

#include "base/toolchain.h"
#include "dist/plugin.h"

#include <dlfcn.h>

/* A plug-in as its author writes it: a table with one function. */
static const char source[] = "#include \"dist/plugin.h\"\n"
                             "static int seven(void) { return 7; }\n"
                             "static const struct { int (*f)(void); } table = {seven};\n"
                             "static const char *library(void) { return \"Seven 1.2\"; }\n"
                             "TY_PLUGIN = {NAME, 3, GLOBAL, library, &table};\n";

static void compile(tree *t, const char *file, const char *flags, const char *text)
{
    const char *c = tree_write(t, "source.c", text);
    const char *line =
        ty_arena_printf(&t->arena, "%s -std=gnu17 -I. -shared -fPIC -fvisibility=hidden -o %s %s %s 2>%s/log",
                        ty_toolchain_cc(), tree_path(t, file), c, flags, t->base);
    assert_int_equal(system(line), 0);
}

static void test_opens(void **state)
{
    tree *t = *state;
    const struct {
        int (*f)(void);
    } *table = NULL, *again = NULL;
    const char *path, *library;
    ty_error err = {0};
    setenv("TRAINYARD_PLUGINS", t->base, 1);
    compile(t, "libtrainyard-seven.so", "'-DNAME=\"seven\"' -DGLOBAL=0", source);
    assert_int_equal(ty_plugin_open("seven", 3, (const void **)&table, &err), 0);
    assert_int_equal(table->f(), 7);
    assert_int_equal(ty_plugin_open("seven", 3, (const void **)&again, &err), 0);
    assert_ptr_equal(table, again);
    assert_int_equal(ty_plugin_look("seven", &path, &library, &err), 0);
    assert_string_equal(path, tree_path(t, "libtrainyard-seven.so"));
    assert_string_equal(library, "Seven 1.2");
    assert_int_equal(ty_plugin_open("seven", 4, (const void **)&again, &err), -1);
    assert_int_equal(err.code, TY_E_LIBRARY);
    assert_non_null(strstr(err.message, "has version 3 of its table, this program expects 4"));
}

/* What is missing is told apart: the plug-in, its library, the symbol, the name. */
static void test_missing(void **state)
{
    tree *t = *state;
    const void *table;
    ty_error err = {0};
    setenv("TRAINYARD_PLUGINS", t->base, 1);
    assert_int_equal(ty_plugin_open("mpi", 1, &table, &err), -1);
    assert_int_equal(err.code, TY_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "no plug-in libtrainyard-mpi.so; looked in /tmp/"));

    compile(t, "libgone.so.1", "", "int gone(void); int gone(void) { return 1; }");
    compile(t, "libtrainyard-mpi.so",
            ty_arena_printf(&t->arena, "'-DNAME=\"mpi\"' -DGLOBAL=0 -Wl,--no-as-needed %s/libgone.so.1", t->base),
            source);
    assert_int_equal(unlink(tree_path(t, "libgone.so.1")), 0);
    err = (ty_error){0};
    assert_int_equal(ty_plugin_open("mpi", 3, &table, &err), -1);
    assert_int_equal(err.code, TY_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "Open MPI is needed and cannot be loaded: "));
    assert_non_null(strstr(err.message, "libgone.so.1"));
    assert_non_null(strstr(err.help, "apt-get install libopenmpi3"));

    compile(t, "libtrainyard-plain.so", "", "int plain;");
    assert_int_equal(ty_plugin_open("plain", 1, &table, &err), -1);
    assert_int_equal(err.code, TY_E_LIBRARY);
    assert_non_null(strstr(err.message, "has no ty_plugin_entry"));

    compile(t, "libtrainyard-other.so", "'-DNAME=\"seven\"' -DGLOBAL=0", source);
    assert_int_equal(ty_plugin_open("other", 3, &table, &err), -1);
    assert_non_null(strstr(err.message, "is no plug-in \"other\" of Trainyard: it says it is seven"));
}

/* A plug-in's library is seen by nobody else, unless the plug-in says that everybody should. */
static void test_global(void **state)
{
    tree *t = *state;
    const void *table;
    ty_error err = {0};
    setenv("TRAINYARD_PLUGINS", t->base, 1);
    compile(t, "libshown.so.5", "-Wl,-soname,libshown.so.5", "__attribute__((visibility(\"default\"))) int shown = 5;");
    const char *link =
        ty_arena_printf(&t->arena, "-Wl,--no-as-needed %s/libshown.so.5 -Wl,-rpath,%s", t->base, t->base);
    compile(t, "libtrainyard-a.so", ty_arena_printf(&t->arena, "'-DNAME=\"a\"' -DGLOBAL=0 %s", link), source);
    compile(t, "libtrainyard-b.so", ty_arena_printf(&t->arena, "'-DNAME=\"b\"' '-DGLOBAL=\"libshown.so.5\"' %s", link),
            source);
    compile(t, "libtrainyard-c.so", "'-DNAME=\"c\"' '-DGLOBAL=\"libhidden.so.5\"'", source);
    assert_int_equal(ty_plugin_open("a", 3, &table, &err), 0);
    assert_null(dlsym(RTLD_DEFAULT, "shown"));
    assert_int_equal(ty_plugin_open("b", 3, &table, &err), 0);
    assert_non_null(dlsym(RTLD_DEFAULT, "shown"));
    assert_int_equal(ty_plugin_open("c", 3, &table, &err), -1);
    assert_non_null(strstr(err.message, "not linked with libhidden.so.5"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {TREE_TEST(test_opens), TREE_TEST(test_missing), TREE_TEST(test_global)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
