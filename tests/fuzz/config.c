/* Fuzzes the readers of input/config. The first byte says which file the rest is; whatever is accepted is also written
 * out in every spelling, so that the writers see what the readers let through. */
#include "base/json.h"
#include "container/config/arguments.h"
#include "container/config/channels.h"
#include "container/config/distribution.h"
#include "container/config/environment.h"
#include "container/config/hyperparameters.h"
#include "container/config/program.h"
#include "container/config/python_json.h"
#include "container/config/python_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void fuzz_resources(ty_arena *a, const ty_doc *doc, const ty_hyperparameters *h, ty_resources *r, ty_error *err)
{
    ty_distribution d;

    if (ty_resources_init(r, a, doc, err) < 0) {
        check(err->code != TY_E_NONE && err->message[0] != '\0');
        check(ty_resources_init(r, a, NULL, err) == 0);
    }
    check(strcmp(r->hosts[r->host_index], r->current_host) == 0);
    if (ty_distribution_init(&d, a, r, &h->framework, err) == 0)
        check(d.master != NULL);
}

static void fuzz_channels(ty_arena *a, const ty_doc *doc, ty_channels *c, ty_error *err)
{
    if (ty_channels_init(c, a, doc, "/d", err) < 0) {
        check(err->code != TY_E_NONE);
        check(ty_channels_init(c, a, NULL, "/d", err) == 0);
    }
    for (size_t i = 0; i < c->n_items; i++)
        check(strchr(c->items[i].name, '/') == NULL);
}

static void fuzz_hyperparameters(ty_arena *a, const ty_doc *doc, ty_hyperparameters *h, ty_error *err)
{
    if (ty_hyperparameters_init(h, a, doc, err) < 0) {
        check(err->code != TY_E_NONE);
        check(ty_hyperparameters_init(h, a, NULL, err) == 0);
    }
}

/* A file in its place among three, and the whole environment that follows. */
static void fuzz_file(ty_arena *a, char kind, const char *text, size_t n)
{
    static const char resources_default[] = "{\"current_host\": \"a\", \"hosts\": [\"a\", \"b\"]}";
    const char *const envp[] = {NULL};
    ty_error err = {0};
    ty_doc *doc, *other;
    ty_hyperparameters h;
    ty_resources r;
    ty_channels c;
    ty_arguments arguments;
    ty_distribution d;
    ty_program p;
    ty_paths paths;
    ty_inherited inherited;
    ty_environment e;
    const ty_hardware hardware = {.num_cpus = 1};

    if (ty_json_parse(a, "fuzz", text, n, NULL, &doc, &err) < 0)
        return;
    check(ty_json_parse(a, "default", resources_default, strlen(resources_default), NULL, &other, NULL) == 0);
    fuzz_hyperparameters(a, kind == 0 ? doc : NULL, &h, &err);
    fuzz_resources(a, kind == 1 ? doc : other, &h, &r, &err);
    fuzz_channels(a, kind == 2 ? doc : NULL, &c, &err);
    ty_arguments_init(&arguments, a, &h.user);
    ty_inherited_init(&inherited, envp);
    ty_paths_init(&paths, a, NULL);
    if (ty_program_init(&p, a, &h.known, &inherited, paths.code, &err) < 0 ||
        ty_distribution_init(&d, a, &r, &h.framework, &err) < 0)
        return;
    ty_environment_init(&e, a,
                        &(ty_environment_sources){&paths, &h, &arguments, &r, &d, &c, &p, &hardware, &inherited});
    check(ty_environment_get(&e, "SM_MODEL_DIR") != NULL);
}

/* The text of one hyperparameter: what is read must come out of json.dumps as something that reads as the same. */
static void fuzz_value(ty_arena *a, const char *text, size_t n)
{
    ty_value v, again;
    ty_buf first, second;

    if (!ty_python_json_read(a, text, n, &v))
        return;
    ty_buf_init(&first, 16 << 20);
    ty_buf_init(&second, 16 << 20);
    ty_python_argument(&first, &v);
    ty_buf_clear(&first);
    if (ty_python_json_compact(&first, &v) == 0) {
        check(ty_python_json_read(a, first.data, first.len, &again));
        check(ty_python_json_compact(&second, &again) == 0);
        check(strcmp(first.data, second.data) == 0);
    }
    ty_buf_fini(&first);
    ty_buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_arena a;

    if (size == 0)
        return 0;
    ty_arena_init(&a);
    if (data[0] % 4 == 3)
        fuzz_value(&a, (const char *)data + 1, size - 1);
    else
        fuzz_file(&a, (char)(data[0] % 4), (const char *)data + 1, size - 1);
    ty_arena_fini(&a);
    return 0;
}
