/* file_copy.c - a file's content under another name. */
#define _GNU_SOURCE
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int ty_file_copy(const char *from, const char *to, ty_error *err)
{
    ty_file_view view;
    ty_file_writer w;
    if (ty_file_map(from, &view, err) < 0)
        return -1;
    int rc = ty_file_writer_open(&w, to, 0644, err);
    if (rc == 0) {
        rc = ty_file_writer_add(&w, view.bytes, view.n_bytes, err);
        if (rc == 0)
            rc = ty_file_writer_commit(&w, err);
        ty_file_writer_abandon(&w);
    }
    ty_file_unmap(&view);
    return rc;
}

int ty_file_share(const char *from, const char *to, ty_error *err)
{
    if (linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    return ty_file_copy(from, to, err);
}
