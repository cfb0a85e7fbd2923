/* command_cache.c - `trainyard cache list`, `clear`, `why-miss RECIPE`. */
#include "base/entries.h"
#include "base/quantity.h"
#include "compiler/compiler.h"
#include "container/input/keep.h"
#include "entrypoint/cache_folder.h"
#include "entrypoint/command.h"
#include "entrypoint/job.h"
#include "entrypoint/overrides.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DIR, DATA_DIR, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [DIR] = {"--dir", "DIR", "the cache; left out: $TRAINYARD_CACHE_DIR, or .cache/trainyard in the home folder",
             false},
    [DATA_DIR] = {"--data-dir", "DIR", "why-miss: folder that has the channels as folders or files", false},
};

typedef struct cache_request {
    const ty_arguments_given *given;
    const char *dir;
    ty_arena *a;
} cache_request;

static void print_row(const char *name, int64_t used_s, int64_t bytes, const char *what, const char *of)
{
    char used[32] = "", size[32];
    time_t at = (time_t)used_s;
    struct tm utc;
    if (gmtime_r(&at, &utc))
        strftime(used, sizeof used, "%Y-%m-%d %H:%M", &utc);
    printf("%.12s  used %s  %9s  %s  %s\n", name, used, ty_bytes_text((uint64_t)bytes, size, sizeof size), what, of);
}

/* Kernels, then indexes of data. */
static int list(const cache_request *r, ty_error *err)
{
    ty_cache_listed *row;
    ty_entry *entry;
    char size[32];
    int n;
    int64_t all = 0;
    if (ty_cache_list(r->dir, r->a, &row, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        print_row(row[i].name, row[i].used_utc_s, row[i].bytes, row[i].model, row[i].inputs);
        all += row[i].bytes;
    }
    int n_all = ty_entries_list(r->dir, r->a, &entry);
    for (int i = n_all - 1; i >= 0; i--) {
        if (!entry[i].is_index)
            continue;
        print_row(entry[i].name, entry[i].used_s, entry[i].bytes, "index of data",
                  ty_keep_describe(entry[i].path, r->a));
        all += entry[i].bytes;
        n++;
    }
    printf("%s: %d %s, %s\n", r->dir, n, n == 1 ? "entry" : "entries", ty_bytes_text((uint64_t)all, size, sizeof size));
    return 0;
}

static int clear(const cache_request *r, ty_error *err)
{
    int n;
    if (ty_entries_clear(r->dir, &n, err) < 0)
        return -1;
    printf("%s: %d %s removed\n", r->dir, n, n == 1 ? "entry" : "entries");
    return 0;
}

static int why_miss(const cache_request *r, ty_error *err)
{
    ty_buf note, data;
    ty_job_cache cache = {.kernels = &note, .data = &data};
    ty_job job = {.recipe_path = r->given->words[1], .data_folder = r->given->value[DATA_DIR], .cache_folder = r->dir};
    if (!job.recipe_path) {
        ty_error_set(err, TY_E_USAGE, "why-miss needs a recipe");
        return ty_error_help(err, "trainyard cache why-miss train.yaml");
    }
    if (ty_overrides_take(r->given, r->a, &job, err) < 0)
        return -1;
    ty_buf_init(&note, 1 << 16);
    ty_buf_init(&data, 1 << 16);
    int rc = ty_job_compile(&job, NULL, &cache, err);
    if (rc == 0)
        printf("%s\n%s",
               cache.has_kernels ? "no miss: the cache has these kernels"
               : note.len        ? note.data
                                 : "there is no cache",
               data.data);
    ty_buf_fini(&note);
    ty_buf_fini(&data);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(const cache_request *r, ty_error *err);
} verbs[] = {{"list", list}, {"clear", clear}, {"why-miss", why_miss}};

static int dispatch(const cache_request *r, ty_error *err)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(r->given->words[0], verbs[i].name) == 0)
            return verbs[i].run(r, err);
    ty_error_set(err, TY_E_USAGE, "cache: expected list, clear or why-miss, found \"%.100s\"", r->given->words[0]);
    return ty_error_help(err, "`trainyard cache --help` says what they do");
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    cache_request r = {given, given->value[DIR] ? given->value[DIR] : ty_cache_folder(a), a};
    if (r.dir)
        return dispatch(&r, err);
    ty_error_set(err, TY_E_CONFIG, "there is no cache: TRAINYARD_CACHE_DIR is \"none\" or empty, or HOME is not set");
    return ty_error_help(err, "name the folder: --dir=DIR");
}

const ty_command_row ty_command_cache = {
    "cache",
    "list | clear | why-miss RECIPE",
    "look into the cache of compiled kernels and indexes of data",
    "    trainyard cache list                   entries, the one used last first\n"
    "    trainyard cache clear                  removes all of them\n"
    "    trainyard cache why-miss train.yaml    whether it has what a recipe needs, or what differs\n",
    options,
    N_OPTIONS,
    1,
    2,
    true,
    false,
    run};
