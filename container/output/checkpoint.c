/* checkpoint.c - save, keep, tidy and restore. The protocol is in checkpoint.h; files are made by rankfile.c and
 * manifest.c.
 */
#include "container/output/checkpoint.h"

#include "base/file.h"
#include "container/output/rankfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_PREFIX "step-"

enum { STEP_DIGITS = 8, STEP_DIGITS_MAX = 18 };

static int world_size(const ty_checkpoints *c)
{
    return c->world_size > 0 ? c->world_size : 1;
}

static const char *step_path(ty_arena *arena, const char *dir, int64_t step)
{
    return ty_arena_printf(arena, "%s/" STEP_PREFIX "%0*" PRId64, dir, STEP_DIGITS, step);
}

static const char *step_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The step of a folder's name, or -1. Exactly the names that step_path makes. */
static int64_t step_parse(const char *name)
{
    if (strncmp(name, STEP_PREFIX, strlen(STEP_PREFIX)) != 0)
        return -1;
    const char *digits = name + strlen(STEP_PREFIX);
    size_t n = strspn(digits, "0123456789");
    if (digits[n] != 0 || n < STEP_DIGITS || n > STEP_DIGITS_MAX || (n > STEP_DIGITS && digits[0] == '0'))
        return -1;
    return strtoll(digits, NULL, 10);
}

static void notes_add(ty_checkpoint_notes *notes, ty_arena *arena, const char *line)
{
    const char **lines = TY_NEW_ARRAY(arena, const char *, notes->n_lines + 1);
    if (notes->n_lines)
        memcpy(lines, notes->lines, notes->n_lines * sizeof *lines);
    lines[notes->n_lines++] = line;
    notes->lines = lines;
}

int ty_checkpoints_open(ty_checkpoints *c, ty_error *err)
{
    c->n_failed = 0;
    if (ty_file_mkdirs(c->dir, 0755, err) < 0)
        return ty_error_wrap(err, "checkpoints");
    ty_arena arena;
    ty_file_writer probe;
    ty_arena_init(&arena);
    int rc = ty_file_writer_open(&probe, ty_arena_printf(&arena, "%s/probe", c->dir), 0644, err);
    if (rc == 0)
        ty_file_writer_abandon(&probe);
    ty_arena_fini(&arena);
    return rc < 0 ? ty_error_wrap(err, "checkpoints") : 0;
}

/* Saving. */

static int64_t part_begin(int64_t elems, int rank, int world_size)
{
    return (int64_t)((__int128)elems * rank / world_size);
}

size_t ty_checkpoint_parts(const ty_named_tensor *tensors, size_t n_tensors, int rank, int world_size,
                           ty_named_tensor *parts)
{
    size_t n = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        const ty_named_tensor *t = &tensors[i];
        int64_t elems = ty_type_elems(&t->type), from = part_begin(elems, rank, world_size);
        int64_t part = part_begin(elems, rank + 1, world_size) - from;
        if (world_size == 1)
            parts[n++] = *t;
        else if (part > 0)
            parts[n++] = (ty_named_tensor){t->name, ty_type_make(t->type.dtype, 1, &part),
                                           (char *)t->data + (size_t)from * ty_dtype_bytes(t->type.dtype)};
    }
    return n;
}

int ty_checkpoint_write_rank(const ty_checkpoints *c, int64_t step, const ty_named_tensor *tensors, size_t n_tensors,
                             ty_manifest_file *out, ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena);
    const char *path = step_path(&arena, c->dir, step);
    const ty_rankfile_id id = {.rank = c->rank, .world_size = world_size(c), .step = step};
    int rc = ty_file_mkdirs(path, 0755, err);
    if (rc == 0)
        rc = ty_file_sync_folder(c->dir, err);
    if (rc == 0)
        rc = ty_rankfile_write(path, &id, tensors, n_tensors, out, NULL, err);
    ty_arena_fini(&arena);
    return rc;
}

int ty_checkpoint_commit(const ty_checkpoints *c, const ty_train_state *state, const ty_manifest_file *files,
                         ty_error *err)
{
    const ty_manifest m = {.state = *state, .world_size = world_size(c), .files = files};
    ty_arena arena;
    ty_buf text;
    ty_arena_init(&arena);
    ty_buf_init(&text, TY_MANIFEST_MAX_BYTES);
    int rc = ty_manifest_format(&m, &text, err);
    if (rc == 0) {
        const char *path = ty_arena_printf(&arena, "%s/" TY_MANIFEST_NAME, step_path(&arena, c->dir, state->step));
        rc = ty_file_write(path, text.data, text.len, 0644, err);
    }
    ty_buf_fini(&text);
    ty_arena_fini(&arena);
    return rc;
}

static bool has_manifest(ty_arena *arena, const char *path)
{
    return ty_file_exists(ty_arena_printf(arena, "%s/" TY_MANIFEST_NAME, path));
}

void ty_checkpoint_abandon(const ty_checkpoints *c, int64_t step)
{
    ty_arena arena;
    ty_arena_init(&arena);
    const char *path = step_path(&arena, c->dir, step);
    /* With a manifest there is an older save of the same step; whether it is whole, its hashes tell. */
    if (ty_file_is_folder(path) && !has_manifest(&arena, path))
        ty_file_remove_tree(path, NULL);
    ty_arena_fini(&arena);
}

int ty_checkpoint_save(ty_checkpoints *c, const ty_train_state *state, const ty_named_tensor *tensors, size_t n_tensors,
                       ty_error *err)
{
    ty_manifest_file file;
    if (world_size(c) != 1)
        return ty_error_set(err, TY_E_INTERNAL, "a save by %d ranks needs both halves", world_size(c));
    if (ty_checkpoint_write_rank(c, state->step, tensors, n_tensors, &file, err) < 0 ||
        ty_checkpoint_commit(c, state, &file, err) < 0) {
        ty_checkpoint_abandon(c, state->step);
        c->n_failed++;
        return ty_error_wrap(err, "checkpoint at step %" PRId64, state->step);
    }
    c->n_failed = 0;
    if (ty_checkpoints_retain(c, state->step, err) < 0)
        return ty_error_wrap(err, "checkpoint at step %" PRId64 " is saved, but an older one could not be deleted",
                             state->step);
    return 0;
}

bool ty_checkpoints_must_stop(const ty_checkpoints *c)
{
    return c->n_failed >= (c->on_error == TY_CHECKPOINT_STOP ? 1 : 2);
}

/* Listing, keeping, tidying. */

static int by_step_newest_first(const void *a, const void *b)
{
    const ty_checkpoint_entry *x = a, *y = b;
    return x->step > y->step ? -1 : x->step < y->step;
}

int ty_checkpoints_list(const char *dir, ty_arena *arena, ty_checkpoint_entry **list, size_t *n, ty_error *err)
{
    ty_file_entry *files = NULL;
    size_t n_files = 0;
    *n = 0;
    *list = NULL;
    if (!ty_file_exists(dir))
        return 0;
    if (ty_file_list(dir, arena, &files, &n_files, err) < 0)
        return ty_error_wrap(err, "checkpoints");
    *list = TY_NEW_ARRAY(arena, ty_checkpoint_entry, n_files + 1);
    for (size_t i = 0; i < n_files; i++) {
        int64_t step = step_parse(files[i].name);
        if (step < 0 || files[i].kind != 'd')
            continue;
        const char *path = step_path(arena, dir, step);
        (*list)[(*n)++] = (ty_checkpoint_entry){step, path, has_manifest(arena, path)};
    }
    if (*n)
        qsort(*list, *n, sizeof **list, by_step_newest_first);
    return 0;
}

static int delete_manifest_first(ty_arena *arena, const char *path, ty_error *err)
{
    if (ty_file_remove(ty_arena_printf(arena, "%s/" TY_MANIFEST_NAME, path), err) < 0 ||
        ty_file_sync_folder(path, err) < 0)
        return -1;
    return ty_file_remove_tree(path, err);
}

static int retain(const ty_checkpoints *c, int64_t newest_step, ty_arena *arena, ty_error *err)
{
    ty_checkpoint_entry *list;
    size_t n, n_kept = 0;
    if (ty_checkpoints_list(c->dir, arena, &list, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (list[i].step > newest_step || !list[i].has_manifest)
            continue;
        if (n_kept < (size_t)c->keep)
            n_kept++;
        else if (list[i].step != c->also && delete_manifest_first(arena, list[i].path, err) < 0)
            return -1;
    }
    return 0;
}

int ty_checkpoints_retain(const ty_checkpoints *c, int64_t newest_step, ty_error *err)
{
    if (c->keep < 1)
        return 0;
    ty_arena arena;
    ty_arena_init(&arena);
    int rc = retain(c, newest_step, &arena, err);
    ty_arena_fini(&arena);
    return rc;
}

/* Removes what crashed writers left in one folder. */
static int tidy_temporaries(const char *path, ty_arena *arena, ty_checkpoint_notes *notes, ty_error *err)
{
    ty_file_entry *files = NULL;
    size_t n = 0;
    if (ty_file_list(path, arena, &files, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!ty_file_is_temporary(files[i].name) || files[i].kind == 'd')
            continue;
        const char *file = ty_arena_printf(arena, "%s/%s", path, files[i].name);
        if (ty_file_remove(file, err) < 0)
            return -1;
        notes_add(notes, arena, ty_arena_printf(arena, "removed %s: left by a writer that was killed", file));
    }
    return 0;
}

int ty_checkpoints_tidy(const ty_checkpoints *c, ty_arena *arena, ty_checkpoint_notes *notes, ty_error *err)
{
    ty_checkpoint_entry *list;
    size_t n;
    *notes = (ty_checkpoint_notes){0};
    if (!ty_file_exists(c->dir))
        return 0;
    if (ty_checkpoints_list(c->dir, arena, &list, &n, err) < 0 || tidy_temporaries(c->dir, arena, notes, err) < 0)
        return ty_error_wrap(err, "tidy checkpoints");
    for (size_t i = 0; i < n; i++) {
        int rc = list[i].has_manifest ? tidy_temporaries(list[i].path, arena, notes, err)
                                      : ty_file_remove_tree(list[i].path, err);
        if (rc < 0)
            return ty_error_wrap(err, "tidy checkpoints");
        if (!list[i].has_manifest)
            notes_add(notes, arena, ty_arena_printf(arena, "removed %s: never completed", list[i].path));
    }
    return 0;
}

/* Reading. */

static int read_manifest(const char *path, ty_arena *arena, ty_manifest *out, ty_error *err)
{
    const char *file = ty_arena_printf(arena, "%s/" TY_MANIFEST_NAME, path);
    ty_buf text;
    ty_buf_init(&text, TY_MANIFEST_MAX_BYTES);
    int rc = ty_file_read(file, &text, err);
    if (rc == 0)
        rc = ty_manifest_parse(text.data, text.len, file, arena, out, err);
    if (rc == 0 && out->state.step != step_parse(step_name(path)))
        rc = ty_error_set(err, TY_E_CHECKPOINT, TY_MANIFEST_NAME ": it is of step %" PRId64 ", the folder is not",
                          out->state.step);
    ty_buf_fini(&text);
    return rc;
}

int ty_checkpoint_verify(const char *path, ty_arena *arena, ty_manifest *out, ty_error *err)
{
    ty_manifest m;
    int rc = read_manifest(path, arena, &m, err);
    for (int rank = 0; rc == 0 && rank < m.world_size; rank++)
        rc = ty_rankfile_verify(path, &m.files[rank], err);
    if (rc < 0)
        return ty_error_wrap(err, "%s", step_name(path));
    if (out)
        *out = m;
    return 0;
}

/* Before any of a file's content is read: what is not there, or not whole, leaves the tensors as they are. */
static int check_sizes(const char *path, const ty_manifest *m, ty_arena *arena, ty_error *err)
{
    for (int rank = 0; rank < m->world_size; rank++) {
        const char *file = ty_arena_printf(arena, "%s/%s", path, m->files[rank].name);
        int64_t n_bytes = ty_file_size(file);
        if (n_bytes < 0)
            return ty_error_set(err, TY_E_CHECKPOINT, "%s: it is missing", m->files[rank].name);
        if ((uint64_t)n_bytes != m->files[rank].n_bytes)
            return ty_error_set(err, TY_E_CHECKPOINT, "%s: expected %" PRIu64 " bytes, found %" PRId64,
                                m->files[rank].name, m->files[rank].n_bytes, n_bytes);
    }
    return 0;
}

static int restore_one(const ty_checkpoints *c, const ty_checkpoint_entry *entry, const ty_named_tensor *tensors,
                       size_t n_tensors, ty_arena *arena, ty_checkpoint_restored *out, ty_rankfile_fault *fault,
                       ty_error *err)
{
    ty_manifest m;
    *fault = TY_RANKFILE_DAMAGED;
    if (!entry->has_manifest)
        return ty_error_set(err, TY_E_CHECKPOINT, "it has no " TY_MANIFEST_NAME ", so it was never completed");
    if (read_manifest(entry->path, arena, &m, err) < 0)
        return -1;
    bool elsewhere = m.world_size > 1 && c->fetch;
    if (!elsewhere && check_sizes(entry->path, &m, arena, err) < 0)
        return -1;
    ty_named_tensor *parts = TY_NEW_ARRAY(arena, ty_named_tensor, n_tensors + 1);
    for (int file = 0; file < m.world_size; file++) {
        const ty_rankfile_id id = {.rank = file, .world_size = m.world_size, .step = m.state.step};
        size_t n = ty_checkpoint_parts(tensors, n_tensors, file, m.world_size, parts);
        int rc = elsewhere ? c->fetch(c->fetch_ctx, entry->path, &m, file, parts, n, fault, err)
                           : ty_rankfile_read(entry->path, &id, &m.files[file], parts, n, fault, err);
        if (rc < 0)
            return -1;
    }
    out->found = true;
    out->path = entry->path;
    out->state = m.state;
    return 0;
}

static int none_valid(const ty_checkpoints *c, size_t n, const ty_checkpoint_restored *out, ty_error *err)
{
    ty_error_set(err, TY_E_CHECKPOINT, "none of the %zu checkpoints in %s can be used", n, c->dir);
    for (size_t i = 0; i < out->skipped.n_lines && i < 8; i++)
        ty_error_detail(err, "%s", out->skipped.lines[i]);
    return ty_error_help(err, "Bring back an intact copy, or empty the folder to start a new run.");
}

int ty_checkpoint_restore(const ty_checkpoints *c, const ty_named_tensor *tensors, size_t n_tensors, ty_arena *arena,
                          ty_checkpoint_restored *out, ty_error *err)
{
    ty_checkpoint_entry *list;
    size_t n, n_manifests = 0;
    *out = (ty_checkpoint_restored){0};
    if (ty_checkpoints_list(c->dir, arena, &list, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        ty_rankfile_fault fault;
        ty_error reason = {0};
        if ((c->before > 0 && list[i].step >= c->before) || (c->only > 0 && list[i].step != c->only))
            continue;
        n_manifests += list[i].has_manifest;
        if (restore_one(c, &list[i], tensors, n_tensors, arena, out, &fault, &reason) == 0)
            return 0;
        if (fault == TY_RANKFILE_FINE) {
            if (err)
                *err = reason;
            return ty_error_wrap(err, "%s", list[i].path);
        }
        if (fault == TY_RANKFILE_MISMATCH) {
            if (err)
                *err = reason;
            ty_error_help(err,
                          "It belongs to another model or recipe: use another checkpoint folder, or empty this one.");
            return ty_error_wrap(err, "%s", list[i].path);
        }
        notes_add(&out->skipped, arena, ty_arena_printf(arena, "%s: %s", step_name(list[i].path), reason.message));
    }
    return n_manifests ? none_valid(c, n, out, err) : 0;
}
