#include "dist/api/record.h"

#include "base/file.h"
#include "dist/api/carry.h"
#include "dist/api/carry_kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- files ---- */

static int make_folder(const char *path, ty_error *err)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return 0;
    char *folder = strndup(path, (size_t)(slash - path));
    int rc = folder ? ty_file_mkdirs(folder, 0755, err) : ty_error_set(err, TY_E_LIMIT, "no memory for a path");
    free(folder);
    return rc;
}

int ty_record_write(const ty_record *r, ty_error *err)
{
    if (make_folder(r->path, err) < 0 || ty_file_write(r->path, r->bytes, r->n_bytes, 0644, err) < 0)
        return TRAINYARD_E_FILE;
    return TRAINYARD_OK;
}

int ty_record_read(ty_record *r, bool *is_there, ty_error *err)
{
    ty_buf bytes;
    *is_there = ty_file_exists(r->path);
    if (!*is_there)
        return TRAINYARD_OK;
    ty_buf_init(&bytes, TY_RECORD_READ_BYTES);
    int rc = ty_file_read(r->path, &bytes, err);
    if (rc == 0)
        r->got = ty_buf_detach(&bytes, &r->n_bytes);
    ty_buf_fini(&bytes);
    return rc == 0 ? TRAINYARD_OK : TRAINYARD_E_FILE;
}

int ty_record_share(ty_channel *c, ty_call *call, ty_error *err)
{
    ty_record *r = call->with;
    int64_t n = c->words[0].n_bytes;
    if (n < 0)
        return TRAINYARD_OK;
    if (c->rank != 0) {
        r->n_bytes = (size_t)n;
        r->got = malloc((size_t)n + 1);
    }
    if (!r->got)
        return ty_carry_no_memory(c, n, err);
    ty_collective what = {.kind = TY_BROADCAST, .name = "a file", .dtype = TY_U8, .in = r->got, .out = r->got, .n = n};
    return n > 0 ? ty_carry_collective(c, &what, err) : TRAINYARD_OK;
}

/* ---- metrics ---- */

static bool name_ok(const char *name)
{
    static const char *const taken[] = {"step", "epoch", "ts", "split"};
    size_t n = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (name && strcmp(name, taken[i]) == 0)
            return false;
    return n > 0 && n <= 64 && name[n] == '\0' && name[0] >= 'a' && name[0] <= 'z';
}

int ty_record_check_metrics(const char *const *names, const double *values, int n, ty_error *err)
{
    if (n < 1 || n > TY_RECORD_METRICS || !names || !values)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "%d metrics: expected 1 to %d", n, TY_RECORD_METRICS);
    for (int i = 0; i < n; i++)
        if (!name_ok(names[i]))
            return ty_fault(err, TRAINYARD_E_ARGUMENT,
                            "metric %d is called \"%s\": expected [a-z][a-z0-9_]*, and not step, epoch, ts or split", i,
                            names[i] ? names[i] : "");
    return TRAINYARD_OK;
}

int ty_record_metrics_line(ty_buf *line, int64_t step, int64_t epoch, const char *const *names, const double *values,
                           int n, ty_error *err)
{
    ty_buf_addf(line, "step=%lld", (long long)step);
    if (epoch >= 0)
        ty_buf_addf(line, " epoch=%lld", (long long)epoch);
    for (int i = 0; i < n; i++)
        if (isnan(values[i])) /* printf has -nan too */
            ty_buf_addf(line, " %s=nan", names[i]);
        else
            ty_buf_addf(line, " %s=%.9g", names[i], values[i]);
    ty_buf_addc(line, '\n');
    return line->failed ? ty_fault(err, TRAINYARD_E_ARGUMENT, "a metric line beyond %d bytes", TY_RECORD_LINE_BYTES)
                        : TRAINYARD_OK;
}
