/* ranks_folder.c - mkdtemp, flock, and a sweep. */
#define _GNU_SOURCE
#include "dist/agent/ranks_folder.h"

#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_PREFIX "trainyard-ranks-"

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void remove_if_stale(const char *path)
{
    struct stat st;
    int fd = open_folder(path);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        rmdir(path) < 0) { /* an empty one is not worth a word; perhaps it was made just now */
        ty_log_info("launch", "removing %s, which a process that was killed left behind", path);
        ty_file_remove_tree(path, NULL);
    }
    if (fd >= 0)
        close(fd);
}

static void sweep(const char *parent)
{
    DIR *dir = opendir(parent);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[TY_RANKS_FOLDER_BYTES];
        int n = snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);
        if (strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) == 0 && n < (int)sizeof path)
            remove_if_stale(path);
    }
    closedir(dir);
}

/* Takes the lock. False: a sweep was quicker, since a folder is without a lock for a moment after it was made. */
static bool lock_folder(int fd)
{
    struct stat st;
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0;
}

int ty_ranks_folder_make(ty_ranks_folder *f, const char *parent, ty_error *err)
{
    *f = (ty_ranks_folder){.fd = -1};
    sweep(parent);
    for (int attempt = 0; attempt < 100; attempt++) {
        char path[TY_RANKS_FOLDER_BYTES];
        if (snprintf(path, sizeof path, "%s/" FOLDER_PREFIX "XXXXXX", parent) >= (int)sizeof path)
            return ty_error_set(err, TY_E_LIMIT, "\"%s\" is too long for a folder of temporary files", parent);
        if (!mkdtemp(path))
            return ty_error_errno(err, TY_E_NONE, errno, "cannot make a folder in \"%s\"", parent);
        f->fd = open_folder(path);
        if (lock_folder(f->fd)) {
            strcpy(f->path, path);
            return 0;
        }
        if (f->fd >= 0)
            close(f->fd);
        rmdir(path);
    }
    return ty_error_set(err, TY_E_LIMIT, "cannot lock a folder in \"%s\"", parent);
}

void ty_ranks_folder_remove(ty_ranks_folder *f)
{
    if (!f->path[0])
        return;
    ty_file_remove_tree(f->path, NULL);
    close(f->fd);
    *f = (ty_ranks_folder){.fd = -1};
}
