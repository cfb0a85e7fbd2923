/* cmodel_file.h - models in C that a test writes into a folder of its own and opens. Include after cmocka.h. */
#ifndef TY_TESTS_UNIT_CMODEL_FILE_H
#define TY_TESTS_UNIT_CMODEL_FILE_H

#include "base/file.h"
#include "compiler/compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD "#include <trainyard/model.h>\n"

static char folder[300];

static int make_folder(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/trainyard-test-XXXXXX", base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return ty_file_remove_tree(folder, NULL);
}

static const char *in_folder(const char *name)
{
    static char path[4][400];
    static int turn;
    char *out = path[turn++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

static const char *write_text(const char *name, const char *text)
{
    const char *path = in_folder(name);
    assert_int_equal(ty_file_write(path, text, strlen(text), 0644, NULL), 0);
    return path;
}

static ty_model *open_model(const char *path)
{
    ty_model *m;
    ty_error err = {0};
    if (ty_model_open(path, &m, &err) < 0)
        fail_msg("%s: %s: %s\n%s", path, err.place, err.message, err.detail);
    return m;
}

static ty_model *open_text(const char *text)
{
    return open_model(write_text("model.c", text));
}

/* A program that infers with all inputs as they are declared. */
static __attribute__((unused)) ty_program *infer_as_declared(const ty_model *m, ty_backend backend)
{
    ty_binding in[8];
    ty_program *p;
    ty_error err = {0};
    int n = ty_model_n_inputs(m);
    assert_true(n <= 8);
    for (int i = 0; i < n; i++) {
        const ty_model_value *d = ty_model_input(m, i);
        in[i] = (ty_binding){d->name, ty_type_make(d->dtype, d->rank, d->dim)};
    }
    if (ty_compile_infer(m, in, n, &(ty_compile_options){.backend = backend, .threads = 1}, &p, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    return p;
}

#endif
