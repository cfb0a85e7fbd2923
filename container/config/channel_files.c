/* channel_files.c - walks a channel's folder.
 *
 * The walk is by hand and not by nftw(3), because links to folders are followed (mounted data sets are full of them)
 * while a link back to a folder that is being walked must not trap us: the chain of open folders is the memory for
 * that.
 */
#include "container/config/channels.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WALK_DEPTH_MAX 64
#define WALK_FILES_MAX ((size_t)10 << 20)

typedef struct walk_folder {
    const struct walk_folder *parent;
    dev_t device;
    ino_t inode;
    int depth;
} walk_folder;

typedef struct walk {
    const ty_channel *channel;
    ty_arena *arena;
    ty_channel_file *files; /* [n_files], malloc: grows */
    size_t n_files, cap;
    uint64_t n_bytes;
} walk;

static bool walk_skips(const walk *w, const char *name)
{
    size_t channel_len = strlen(w->channel->name);

    if (name[0] == '.' || strcmp(name, "_SUCCESS") == 0 || strcmp(name, "lost+found") == 0)
        return true;
    if (strncmp(name, "_started_", 9) == 0 || strncmp(name, "_committed_", 11) == 0)
        return true;
    return strncmp(name, w->channel->name, channel_len) == 0 && strcmp(name + channel_len, "-manifest") == 0;
}

static int walk_add(walk *w, const char *name, uint64_t n_bytes, ty_error *err)
{
    if (w->n_files == WALK_FILES_MAX)
        return ty_error_set(err, TY_E_LIMIT, "channel \"%s\" has more than %zu files", w->channel->name,
                            WALK_FILES_MAX);
    if (w->n_files == w->cap) {
        size_t cap = w->cap == 0 ? 64 : 2 * w->cap;
        ty_channel_file *grown = realloc(w->files, cap * sizeof *grown);
        if (grown == NULL)
            return ty_error_set(err, TY_E_LIMIT, "out of memory listing channel \"%s\"", w->channel->name);
        w->files = grown;
        w->cap = cap;
    }
    w->files[w->n_files++] = (ty_channel_file){
        .path = ty_arena_printf(w->arena, "%s/%s", w->channel->path, name), .name = name, .n_bytes = n_bytes};
    w->n_bytes += n_bytes;
    return 0;
}

static bool walk_is_open(const walk_folder *folder, const struct stat *st)
{
    for (; folder != NULL; folder = folder->parent)
        if (folder->device == st->st_dev && folder->inode == st->st_ino)
            return true;
    return false;
}

static int walk_folder_at(walk *w, const walk_folder *parent, const char *name, const struct stat *st, ty_error *err);

/* name: below the channel's folder. */
static int walk_entry(walk *w, const walk_folder *folder, const char *name, ty_error *err)
{
    const char *path = ty_arena_printf(w->arena, "%s/%s", w->channel->path, name);
    struct stat st;

    if (stat(path, &st) < 0) {
        ty_error_errno(err, TY_E_NONE, errno, "channel \"%s\": cannot look at %s", w->channel->name, path);
        return -1;
    }
    if (S_ISREG(st.st_mode))
        return walk_add(w, name, (uint64_t)st.st_size, err);
    if (S_ISDIR(st.st_mode) && !walk_is_open(folder, &st))
        return walk_folder_at(w, folder, name, &st, err);
    return 0; /* devices, sockets and FIFOs are no data */
}

static int walk_read(walk *w, const walk_folder *folder, const char *name, DIR *dir, ty_error *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL)
            break;
        if (walk_skips(w, entry->d_name))
            continue;
        const char *below = name[0] == '\0' ? ty_arena_strdup(w->arena, entry->d_name)
                                            : ty_arena_printf(w->arena, "%s/%s", name, entry->d_name);
        if (walk_entry(w, folder, below, err) < 0)
            return -1;
    }
    if (errno != 0)
        return ty_error_errno(err, TY_E_IO, errno, "channel \"%s\": cannot list %s/%s", w->channel->name,
                              w->channel->path, name);
    return 0;
}

static int walk_folder_at(walk *w, const walk_folder *parent, const char *name, const struct stat *st, ty_error *err)
{
    walk_folder folder = {parent, st->st_dev, st->st_ino, parent == NULL ? 0 : parent->depth + 1};
    const char *path = ty_arena_printf(w->arena, "%s%s%s", w->channel->path, name[0] == '\0' ? "" : "/", name);

    if (folder.depth == WALK_DEPTH_MAX)
        return ty_error_set(err, TY_E_LIMIT, "channel \"%s\": folders nest deeper than %d at %s", w->channel->name,
                            WALK_DEPTH_MAX, path);

    DIR *dir = opendir(path);

    if (dir == NULL)
        return ty_error_errno(err, TY_E_NONE, errno, "channel \"%s\": cannot open %s", w->channel->name, path);
    int rc = walk_read(w, &folder, name, dir, err);
    closedir(dir);
    return rc;
}

static int walk_compare(const void *a, const void *b)
{
    return strcmp(((const ty_channel_file *)a)->name, ((const ty_channel_file *)b)->name);
}

/* The channel's own folder must be there. */
static int walk_start(walk *w, ty_error *err)
{
    const ty_channel *c = w->channel;
    struct stat st;

    if (stat(c->path, &st) < 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return ty_error_errno(err, TY_E_NONE, errno, "channel \"%s\": cannot open %s", c->name, c->path);
        ty_error_set(err, TY_E_CHANNEL, "channel \"%s\" is declared in inputdataconfig.json but %s is not there",
                     c->name, c->path);
        return ty_error_help(err, "mount the data at %s, or remove the channel from the job", c->path);
    }
    if (!S_ISDIR(st.st_mode))
        return ty_error_set(err, TY_E_CHANNEL, "channel \"%s\": expected a folder at %s, found something else", c->name,
                            c->path);
    return walk_folder_at(w, NULL, "", &st, err);
}

static int walk_finish(walk *w, ty_channel_files *out, ty_error *err)
{
    if (w->n_files == 0 && !w->channel->sharded) {
        ty_error_set(err, TY_E_CHANNEL, "channel \"%s\": no data files in %s", w->channel->name, w->channel->path);
        return ty_error_help(err, "hidden files, manifests and _SUCCESS markers do not count; check the channel's S3 "
                                  "prefix or mount");
    }
    if (w->n_files > 1)
        qsort(w->files, w->n_files, sizeof *w->files, walk_compare);
    *out = (ty_channel_files){.items = ty_arena_copy(w->arena, w->files, w->n_files * sizeof *w->files),
                              .n_items = w->n_files,
                              .n_bytes = w->n_bytes};
    return 0;
}

int ty_channel_list(const ty_channel *channel, ty_arena *a, ty_channel_files *out, ty_error *err)
{
    walk w = {.channel = channel, .arena = a};

    *out = (ty_channel_files){0};
    if (channel->mode == TY_INPUT_PIPE) {
        ty_error_set(err, TY_E_CONFIG, "channel \"%s\" is in Pipe mode, which has no files to list", channel->name);
        return ty_error_help(err, "use File or FastFile mode for this channel");
    }
    int rc = walk_start(&w, err) < 0 || walk_finish(&w, out, err) < 0 ? -1 : 0;
    free(w.files);
    return rc;
}
