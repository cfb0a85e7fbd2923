/* metrics_file.c - metrics.jsonl as a file: appended in whole lines, cut back to whole lines. */
#include "base/file.h"
#include "container/output/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct ty_metrics_file {
    int fd;
    char *path;
    off_t whole_bytes; /* length up to the last whole line */
};

/* Where the last whole line ends. Only the tail is looked at: a line is no longer than TY_METRIC_LINE_BYTES. */
static int find_whole_bytes(ty_metrics_file *f, ty_error *err)
{
    struct stat st;
    char tail[2 * TY_METRIC_LINE_BYTES];
    if (fstat(f->fd, &st) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot look at %s", f->path);
    if (!S_ISREG(st.st_mode))
        return ty_error_set(err, TY_E_CREATE, "%s: expected a regular file", f->path);
    off_t from = st.st_size > (off_t)sizeof tail ? st.st_size - (off_t)sizeof tail : 0;
    ssize_t n = pread(f->fd, tail, (size_t)(st.st_size - from), from);
    if (n < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot read %s", f->path);
    while (n > 0 && tail[n - 1] != '\n')
        n--;
    /* No line end in all that length: not a file of ours, and nothing is cut from it. */
    f->whole_bytes = n > 0 || from == 0 ? from + n : st.st_size;
    if (f->whole_bytes < st.st_size && ftruncate(f->fd, f->whole_bytes) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot cut the torn last line of %s", f->path);
    return 0;
}

static int append_line(ty_metrics_file *f, const ty_buf *line, ty_error *err)
{
    size_t at = 0;
    int failed = 0;
    while (at < line->len && !failed) {
        ssize_t done = write(f->fd, line->data + at, line->len - at);
        if (done > 0)
            at += (size_t)done;
        else if (done == 0 || errno != EINTR)
            failed = done < 0 ? errno : EIO;
    }
    if (!failed) {
        f->whole_bytes += (off_t)line->len;
        return 0;
    }
    if (at > 0 && ftruncate(f->fd, f->whole_bytes) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot cut %s back to its last whole line", f->path);
    return ty_error_errno(err, TY_E_NONE, failed, "cannot write %s", f->path);
}

static int file_begin(ty_metrics_file *f, const ty_metrics_header *header, ty_error *err)
{
    ty_buf line;
    ty_buf_init(&line, TY_METRIC_LINE_BYTES);
    int rc = find_whole_bytes(f, err);
    if (rc == 0)
        rc = ty_metrics_json_header(&line, header, err);
    if (rc == 0)
        rc = append_line(f, &line, err);
    ty_buf_fini(&line);
    return rc;
}

static void file_free(ty_metrics_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f);
}

static int make_folder(const char *path, ty_error *err)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return 0;
    char *folder = strndup(path, (size_t)(slash - path));
    if (!folder)
        return ty_error_set(err, TY_E_LIMIT, "out of memory for %s", path);
    int rc = ty_file_mkdirs(folder, 0755, err);
    free(folder);
    return rc;
}

int ty_metrics_file_open(const char *path, const ty_metrics_header *header, ty_metrics_file **out, ty_error *err)
{
    *out = NULL;
    if (make_folder(path, err) < 0)
        return ty_error_wrap(err, "metrics file");
    ty_metrics_file *f = calloc(1, sizeof *f);
    char *copy = strdup(path);
    if (!f || !copy) {
        free(f);
        free(copy);
        return ty_error_set(err, TY_E_LIMIT, "out of memory for %s", path);
    }
    *f = (ty_metrics_file){.fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644), .path = copy};
    int rc = f->fd < 0 ? ty_error_errno(err, TY_E_NONE, errno, "cannot open %s", path) : file_begin(f, header, err);
    if (rc < 0) {
        file_free(f);
        return ty_error_wrap(err, "metrics file");
    }
    *out = f;
    return 0;
}

int ty_metrics_file_add(ty_metrics_file *f, const ty_metrics_row *row, ty_error *err)
{
    ty_buf line;
    ty_buf_init(&line, TY_METRIC_LINE_BYTES + 1);
    int rc = ty_metrics_json(&line, row, err);
    if (rc == 0)
        rc = append_line(f, &line, err);
    ty_buf_fini(&line);
    return rc;
}

int ty_metrics_file_close(ty_metrics_file *f, ty_error *err)
{
    if (!f)
        return 0;
    int rc = fsync(f->fd) < 0 ? ty_error_errno(err, TY_E_NONE, errno, "cannot sync %s", f->path) : 0;
    file_free(f);
    return rc;
}
