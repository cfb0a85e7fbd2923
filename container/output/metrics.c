/* metrics.c - metric lines, metrics.jsonl and SageMaker's metric definitions.
 *
 * Both forms are written by hand: names are checked to be plain words first, so that nothing needs escaping but the
 * texts of the header.
 */
#include "container/output/metrics.h"

#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REGEX_NUMBER "([-+0-9.eE]+)"

static const struct split {
    const char *json;       /* the split's name in JSON and in definitions */
    const char *line_start; /* what its lines begin with */
    const char *prefix;     /* before a metric's name in a line */
} splits[] = {
    [TY_SPLIT_TRAIN] = {"train", "", ""},
    [TY_SPLIT_VALIDATION] = {"validation", "val ", "val_"},
};

/* Keys that every line has already. */
static const char *const reserved[] = {"step", "epoch", "ts", "split", "nonfinite", "run"};

const char *ty_metrics_split_text(ty_split split)
{
    return splits[split].json;
}

bool ty_metric_name_ok(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(name, reserved[i]) == 0)
            return false;
    if (n == 0 || n > TY_METRIC_NAME_BYTES || name[0] < 'a' || name[0] > 'z')
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

char *ty_metric_number(double v, char out[32])
{
    if (isnan(v))
        return strcpy(out, "nan");
    snprintf(out, 32, "%.9g", v);
    /* A user's library may have set a locale; the readers of these lines have not. */
    char *comma = strchr(out, ',');
    if (comma)
        *comma = '.';
    return out;
}

static int check_name(const char *name, ty_error *err)
{
    if (ty_metric_name_ok(name))
        return 0;
    ty_error_set(err, TY_E_CONFIG,
                 "metric name \"%s\": expected a lower-case letter, then letters, digits and '_', "
                 "at most %d bytes, and none of step, epoch, ts, split, nonfinite, run",
                 name, TY_METRIC_NAME_BYTES);
    return ty_error_help(err, "CloudWatch finds metrics by a regular expression; plain names keep it exact.");
}

static int check_row(const ty_metrics_row *row, ty_error *err)
{
    for (size_t i = 0; i < row->n_metrics; i++)
        if (check_name(row->metrics[i].name, err) < 0)
            return -1;
    return 0;
}

static int check_length(const ty_buf *out, size_t start, ty_error *err)
{
    if (out->failed || out->len - start > TY_METRIC_LINE_BYTES)
        return ty_error_set(err, TY_E_LIMIT, "metric line: expected at most %d bytes, found more",
                            TY_METRIC_LINE_BYTES);
    return 0;
}

int ty_metrics_line(ty_buf *out, const ty_metrics_row *row, ty_error *err)
{
    if (check_row(row, err) < 0)
        return -1;
    const struct split *split = &splits[row->split];
    size_t start = out->len;
    char number[32];
    ty_buf_addf(out, "%sstep=%" PRId64 " epoch=%" PRId64, split->line_start, row->step, row->epoch);
    for (size_t i = 0; i < row->n_metrics; i++)
        ty_buf_addf(out, " %s%s=%s", split->prefix, row->metrics[i].name,
                    ty_metric_number(row->metrics[i].value, number));
    ty_buf_addc(out, '\n');
    return check_length(out, start, err);
}

static void json_nonfinite(ty_buf *out, const ty_metrics_row *row)
{
    char number[32];
    const char *before = ",\"nonfinite\":{";
    for (size_t i = 0; i < row->n_metrics; i++) {
        if (isfinite(row->metrics[i].value))
            continue;
        ty_buf_addf(out, "%s\"%s\":\"%s\"", before, row->metrics[i].name,
                    ty_metric_number(row->metrics[i].value, number));
        before = ",";
    }
    if (before[1] == 0)
        ty_buf_addc(out, '}');
}

static void json_seconds(ty_buf *out, double s)
{
    /* Whole milliseconds as integers: no locale, no exponent. A time that is not finite or absurd becomes 0. */
    int64_t ms = isfinite(s) && s >= 0 && s < 1e12 ? (int64_t)llround(s * 1e3) : 0;
    ty_buf_addf(out, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
}

int ty_metrics_json(ty_buf *out, const ty_metrics_row *row, ty_error *err)
{
    if (check_row(row, err) < 0)
        return -1;
    size_t start = out->len;
    char number[32];
    ty_buf_adds(out, "{\"ts\":");
    json_seconds(out, row->ts_s);
    ty_buf_addf(out, ",\"step\":%" PRId64 ",\"epoch\":%" PRId64 ",\"split\":\"%s\"", row->step, row->epoch,
                splits[row->split].json);
    for (size_t i = 0; i < row->n_metrics; i++) {
        double v = row->metrics[i].value;
        ty_buf_addf(out, ",\"%s\":%s", row->metrics[i].name, isfinite(v) ? ty_metric_number(v, number) : "null");
    }
    json_nonfinite(out, row);
    ty_buf_adds(out, "}\n");
    return check_length(out, start, err);
}

/* Integers past 2^53 stand as text: most JSON readers would round them. */
int ty_metrics_json_header(ty_buf *out, const ty_metrics_header *h, ty_error *err)
{
    ty_buf_adds(out, "{\"ts\":");
    json_seconds(out, h->ts_s);
    ty_buf_adds(out, ",\"run\":{\"version\":");
    ty_json_add_string(out, h->version, TY_JSON_COMPACT);
    ty_buf_adds(out, ",\"config_digest\":");
    ty_json_add_string(out, h->config_digest, TY_JSON_COMPACT);
    ty_buf_addf(out, ",\"world_size\":%d,\"seed\":", h->world_size);
    ty_buf_addf(out, h->seed >> 53 ? "\"%" PRIu64 "\"" : "%" PRIu64, h->seed);
    ty_buf_adds(out, ",\"model_digest\":");
    ty_json_add_string(out, h->model_digest, TY_JSON_COMPACT);
    if (h->resumed_step >= 0)
        ty_buf_addf(out, ",\"resumed_step\":%" PRId64, h->resumed_step);
    ty_buf_adds(out, "}}\n");
    return out->failed ? ty_error_set(err, TY_E_LIMIT, "run header does not fit %zu bytes", out->max_bytes) : 0;
}

int ty_metrics_print(int fd, const ty_metrics_row *row, ty_error *err)
{
    ty_buf line;
    ty_buf_init(&line, TY_METRIC_LINE_BYTES + 1);
    int rc = ty_metrics_line(&line, row, err);
    ssize_t done = -1;
    if (rc == 0) {
        do
            done = write(fd, line.data, line.len);
        while (done < 0 && errno == EINTR);
        if (done < 0)
            rc = ty_error_errno(err, TY_E_NONE, errno, "cannot print a metric line");
        else if ((size_t)done != line.len)
            rc = ty_error_set(err, TY_E_IO, "metric line: wrote %zd of %zu bytes", done, line.len);
    }
    ty_buf_fini(&line);
    return rc;
}

int ty_metrics_regex(ty_buf *out, const ty_metric_definition *d, ty_error *err)
{
    if (check_name(d->name, err) < 0)
        return -1;
    return ty_buf_addf(out, " %s%s=" REGEX_NUMBER, splits[d->split].prefix, d->name) < 0
               ? ty_error_set(err, TY_E_LIMIT, "metric definitions do not fit %zu bytes", out->max_bytes)
               : 0;
}

int ty_metrics_definitions(ty_buf *out, const ty_metric_definition *list, size_t n, ty_error *err)
{
    if (n > TY_METRIC_DEFINITIONS_MAX) {
        ty_error_set(err, TY_E_LIMIT, "metric definitions: expected at most %d, found %zu", TY_METRIC_DEFINITIONS_MAX,
                     n);
        return ty_error_help(err, "SageMaker takes no more for one training job; leave some metrics out.");
    }
    ty_buf_addc(out, '[');
    for (size_t i = 0; i < n; i++) {
        ty_buf_addf(out, "%s{\"Name\":\"%s:%s\",\"Regex\":\"", i ? "," : "", splits[list[i].split].json, list[i].name);
        if (ty_metrics_regex(out, &list[i], err) < 0)
            return -1;
        ty_buf_adds(out, "\"}");
    }
    ty_buf_adds(out, "]\n");
    return out->failed ? ty_error_set(err, TY_E_LIMIT, "metric definitions do not fit %zu bytes", out->max_bytes) : 0;
}
