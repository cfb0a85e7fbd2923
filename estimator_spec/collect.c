/* collect.c - trees laid over one another. */
#define _GNU_SOURCE
#include "estimator_spec/collect.h"

#include "base/file.h"
#include "estimator_spec/pack.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 64 };

typedef struct collector {
    ty_arena *a;
    int n_clashes;
    bool takes_newer; /* of two files of one name; else the first one stays */
    bool copies;      /* what is taken will be written to, so that a second name would not do */
    ty_error *err;
} collector;

static bool is_newer(const struct stat *x, const struct stat *y)
{
    return x->st_mtim.tv_sec != y->st_mtim.tv_sec ? x->st_mtim.tv_sec > y->st_mtim.tv_sec
                                                  : x->st_mtim.tv_nsec > y->st_mtim.tv_nsec;
}

static int take_file(collector *c, const char *from, const char *to)
{
    struct stat there, new;
    if (lstat(to, &there) == 0) {
        if (!c->takes_newer)
            c->n_clashes++;
        if (!c->takes_newer || stat(from, &new) < 0 || !is_newer(&new, &there))
            return 0;
        if (ty_file_remove(to, c->err) < 0)
            return -1;
    }
    return c->copies ? ty_file_copy(from, to, c->err) : ty_file_share(from, to, c->err);
}

/* Only files and folders: sockets and pipes of a program mean nothing here. */
static int take(collector *c, const char *from, const char *to, int depth)
{
    ty_file_entry *entries;
    size_t n;
    if (depth == MAX_DEPTH)
        return ty_error_set(c->err, TY_E_LIMIT, "folders lie more than %d deep at \"%.200s\"", MAX_DEPTH, from);
    if (ty_file_mkdirs(to, 0755, c->err) < 0 || ty_file_list(from, c->a, &entries, &n, c->err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const char *path = ty_arena_printf(c->a, "%s/%s", from, entries[i].name);
        const char *target = ty_arena_printf(c->a, "%s/%s", to, entries[i].name);
        if (ty_file_is_temporary(entries[i].name))
            continue;
        int rc = entries[i].kind == 'd'    ? take(c, path, target, depth + 1)
                 : ty_file_size(path) >= 0 ? take_file(c, path, target)
                                           : 0;
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int take_folder(collector *c, const char *from, const char *to)
{
    return ty_file_is_folder(from) ? take(c, from, to, 0) : 0;
}

/* ---- the three ---- */

static bool has_files(const char *folder, ty_arena *a)
{
    ty_file_entry *entries;
    size_t n = 0;
    return ty_file_list(folder, a, &entries, &n, NULL) == 0 && n > 0;
}

static int pack_model(ty_collect *c, const char *folder, ty_arena *a, ty_error *err)
{
    ty_packed_file *files;
    int n;
    c->model = NULL;
    if (has_files(folder, a))
        c->model = c->as_files ? folder : ty_arena_printf(a, "%s/model.tar.gz", c->into);
    if (c->as_files && c->model)
        return 0;
    if (c->model && (ty_pack_list_folder(folder, a, &files, &n, err) < 0 || ty_pack_save(files, n, c->model, err) < 0))
        return -1;
    return ty_file_remove_tree(folder, err);
}

/* What belongs to the job as a whole, such as the failure file, is not lost if only one host's is kept. */
static int take_output(collector *c, const ty_collect_host *h, const char *into)
{
    int clashes = c->n_clashes;
    const char *data = ty_arena_printf(c->a, "%s/output/data", into);
    if (take_folder(c, ty_arena_printf(c->a, "%s/output/data", h->tree), data) < 0)
        return -1;
    int of_data = c->n_clashes - clashes;
    if (take_folder(c, ty_arena_printf(c->a, "%s/output", h->tree), ty_arena_printf(c->a, "%s/output", into)) < 0)
        return -1;
    c->n_clashes = clashes + of_data;
    return 0;
}

/* What a host has removed is gone here as well, so the old folder is replaced. */
static int take_checkpoints(const ty_collect *c, ty_arena *a, ty_error *err)
{
    collector saver = {.a = a, .takes_newer = true, .err = err};
    const char *old = ty_arena_printf(a, "%s/checkpoints", c->into), *new = ty_arena_printf(a, "%s.new", old);
    if (ty_file_remove_tree(new, err) < 0)
        return -1;
    for (int i = 0; i < c->n_hosts; i++)
        if (c->hosts[i].checkpoints && take_folder(&saver, c->hosts[i].checkpoints, new) < 0)
            return -1;
    if (!ty_file_is_folder(new))
        return 0;
    if (ty_file_remove_tree(old, err) < 0)
        return -1;
    return rename(new, old) == 0 ? 0 : ty_error_errno(err, TY_E_CREATE, errno, "\"%s\"", old);
}

int ty_collect_all(ty_collect *c, ty_arena *a, ty_error *err)
{
    collector taker = {.a = a, .err = err};
    const char *model = ty_arena_printf(a, "%s/model", c->into);
    for (int i = 0; i < c->n_hosts; i++) {
        const ty_collect_host *h = &c->hosts[i];
        if (take_folder(&taker, ty_arena_printf(a, "%s/model", h->tree), model) < 0 ||
            take_output(&taker, h, c->into) < 0)
            return -1;
    }
    c->n_clashes = taker.n_clashes;
    return pack_model(c, model, a, err) < 0 ? -1 : take_checkpoints(c, a, err);
}

int ty_collect_check(const char *into, ty_arena *a, ty_error *err)
{
    static const char *const names[] = {"model.tar.gz", "model", "output", "hosts", "logs"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (ty_file_exists(ty_arena_printf(a, "%s/%s", into, names[i]))) {
            ty_error_set(err, TY_E_CREATE, "\"%s\" has the results of another run: %s", into, names[i]);
            return ty_error_help(err, "name another folder (--output), or remove what lies there");
        }
    return 0;
}

int ty_collect_restore(const char *into, const char *checkpoints, ty_arena *a, ty_error *err)
{
    collector c = {.a = a, .copies = true, .err = err};
    return take_folder(&c, ty_arena_printf(a, "%s/checkpoints", into), checkpoints);
}
