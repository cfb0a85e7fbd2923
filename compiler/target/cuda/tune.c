/* tune.c - see tune.h. */
#include "compiler/target/cuda/tune.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/version.h"
#include "compiler/target/cached.h"

#include <string.h>

#define TUNE_MAX_BYTES ((int64_t)8 << 20) /* of choices in one folder */
#define TUNE_FOLDER    "algorithms"
#define TUNE_GAIN      0.97 /* of the first one's time: below that it is no error of timing */

struct ty_cuda_tuned {
    const char *what;
    const void *identity;
    const ty_cuda_tuned *next;
};

static int tune_number(const ty_cuda_candidates *c, const void *identity)
{
    for (int i = 0; identity && i < c->n; i++)
        if (memcmp((const char *)c->identity + (size_t)i * c->bytes, identity, c->bytes) == 0)
            return i;
    return -1;
}

static int tune_remember(ty_cuda_tuner *t, const char *what, const ty_cuda_candidates *c, int choice)
{
    ty_cuda_tuned *known = TY_NEW(t->arena, ty_cuda_tuned);
    *known = (ty_cuda_tuned){ty_arena_strdup(t->arena, what),
                             ty_arena_copy(t->arena, (const char *)c->identity + (size_t)choice * c->bytes, c->bytes),
                             t->tuned};
    t->tuned = known;
    return choice;
}

/* ---- the cache ---- */

/* The same list of folders, each with our folder behind it. */
static const char *tune_folders(const ty_cuda_tuner *t)
{
    const char *all = "";
    const ty_cached c = {.arena = t->arena, .dirs = t->dirs};
    for (int i = 0; ty_cached_folder(&c, i); i++) {
        const char *dir = ty_cached_folder(&c, i);
        all = ty_arena_printf(t->arena, "%s%s%s%s", all, i ? ":" : "", dir, *dir ? "/" TUNE_FOLDER : "");
    }
    return all;
}

typedef struct tune_found {
    ty_arena *arena;
    const ty_cuda_candidates *candidates;
    int number;
} tune_found;

/* What is none of the candidates was not made for this GPU, or not by this code: it is refused as damage is, and the
 * choice made anew. */
static int tune_load(void *to, const char *folder, const ty_cache_entry *entry, ty_error *err)
{
    tune_found *found = to;
    const ty_cuda_candidates *c = found->candidates;
    ty_buf bytes;
    ty_buf_init(&bytes, 4096);
    int rc = entry->n_files == 1
                 ? ty_file_read(ty_arena_printf(found->arena, "%s/%s", folder, entry->file[0]), &bytes, err)
                 : ty_error_set(err, TY_E_IO, "%s: expected one file, found %d", folder, entry->n_files);
    found->number = rc == 0 && bytes.len == c->bytes ? tune_number(c, bytes.data) : -1;
    ty_buf_fini(&bytes);
    if (rc == 0 && found->number < 0)
        rc = ty_error_set(err, TY_E_IO, "%s: none of the %d algorithms that there are", folder, c->n);
    return rc;
}

static void tune_keep(ty_cached *cached, const ty_cuda_candidates *c, int choice)
{
    ty_cache_objects one = {.suffix = ".algorithm", .n = 1};
    one.bytes[0] = (const char *)c->identity + (size_t)choice * c->bytes;
    one.n_bytes[0] = c->bytes;
    ty_cached_keep(cached, &one);
}

/* ---- timing ---- */

static int tune_time(ty_cuda_tuner *t, const ty_cuda_candidates *c)
{
    int best = 0;
    double best_ms = 0;
    int64_t start = ty_clock_ns();
    for (int i = 0; i < c->n; i++) {
        double ms = 0, spent = (double)(ty_clock_ns() - start) * 1e-6;
        if (spent >= t->left_ms || c->time(c->ctx, i, &ms, NULL) < 0)
            continue;
        if (best_ms == 0 || ms < best_ms * (best == 0 ? TUNE_GAIN : 1))
            best = i, best_ms = ms;
    }
    t->left_ms -= (double)(ty_clock_ns() - start) * 1e-6;
    return best;
}

static int tune_cached(ty_cuda_tuner *t, const char *what, const ty_cuda_candidates *c)
{
    ty_buf why; /* nobody asks why a choice was not known */
    tune_found found = {.arena = t->arena, .candidates = c};
    ty_buf_init(&why, 1 << 16);
    ty_cached cached = {
        .arena = t->arena, .dirs = tune_folders(t), .max_bytes = TUNE_MAX_BYTES, .note = &why, .lock = -1};
    ty_cache_key_add(&cached.key, t->arena, true, "version of trainyard", TY_VERSION);
    ty_cache_key_add(&cached.key, t->arena, true, "device", t->device);
    ty_cache_key_add(&cached.key, t->arena, true, "call", what);
    int choice = 0;
    if (ty_cache_key_hex(&cached.key, cached.hex, NULL) == 0) {
        if (ty_cached_find(&cached, tune_load, &found))
            choice = found.number;
        else if (ty_cached_is_open(&cached))
            tune_keep(&cached, c, choice = tune_time(t, c));
        ty_cached_end(&cached);
    }
    ty_buf_fini(&why);
    return choice;
}

int ty_cuda_tune(ty_cuda_tuner *t, const char *what, const ty_cuda_candidates *c)
{
    if (c->n < 2 || !t->dirs || !t->dirs[strspn(t->dirs, ":")])
        return 0;
    for (const ty_cuda_tuned *known = t->tuned; known; known = known->next) {
        int number = strcmp(known->what, what) == 0 ? tune_number(c, known->identity) : -1;
        if (number >= 0)
            return number;
    }
    return tune_remember(t, what, c, tune_cached(t, what, c));
}
