/* failure.c - composes the failure text and publishes it exactly once.
 *
 * Publishing is write to a temporary name, fsync, link(2) to the final one: link fails if the name is taken, so of
 * several writers one wins, and a reader never sees half a file.
 */
#define _GNU_SOURCE 1 /* memrchr */

#include "container/config/failure.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "container/config/exit_status.h"
#include "container/config/redact.h"
#include "container/config/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FAILURE_CAUSE_BYTES 200
#define FAILURE_WHERE_BYTES 200
#define FAILURE_HELP_BYTES  200
#define FAILURE_TAIL_BYTES  8192 /* of stderr are looked at, and kept in the twin */

ty_failure ty_failure_none(void)
{
    return (ty_failure){.rank = -1, .step = -1, .exit_status = -1, .time_ms = -1};
}

/* ---- cleaning text of unknown origin ---- */

/* After ESC: how many bytes the terminal sequence "ESC [ parameters final" takes in all. */
static size_t failure_escape_bytes(const char *s, size_t n)
{
    size_t at = 1;

    if (at >= n || s[at] != '[')
        return 1;
    for (at++; at < n; at++)
        if (s[at] >= 0x40 && s[at] <= 0x7e)
            return at + 1;
    return n;
}

/* Appends s[0..n) without control characters. A lone carriage return starts its line anew, as on a terminal: of a
 * progress bar the last state stays. Invalid bytes become U+FFFD. Newlines stay if `lines`, else become blanks. */
static void failure_clean(ty_buf *out, const char *s, size_t n, bool lines)
{
    size_t from = out->len, line_start = out->len;

    for (size_t at = 0; at < n;) {
        uint32_t cp;
        size_t len = ty_utf8_next(s + at, n - at, &cp);
        bool crlf = cp == '\r' && at + 1 < n && s[at + 1] == '\n';

        if (cp == 0x1b) {
            at += failure_escape_bytes(s + at, n - at);
            continue;
        }
        if (cp == '\n' && lines) {
            ty_buf_addc(out, '\n');
            line_start = out->len;
        } else if (cp == '\n' || cp == '\t') {
            ty_buf_addc(out, ' ');
        } else if (cp == '\r' && !crlf && at + 1 < n) {
            out->len = line_start;
            out->data[out->len] = '\0';
        } else if (cp >= 0xd800 && cp < 0xe000) {
            ty_buf_adds(out, "\xef\xbf\xbd");
        } else if (cp >= 0x20 && (cp < 0x7f || cp >= 0xa0)) {
            ty_buf_add(out, s + at, len);
        }
        at += len;
    }
    ty_redact(out->data + from, out->len - from);
}

static void failure_cleans(ty_buf *out, const char *s)
{
    failure_clean(out, s, strlen(s), false);
}

/* The last FAILURE_TAIL_BYTES of stderr, cleaned, without newlines at the end. */
static void failure_clean_tail(ty_buf *out, const char *tail)
{
    size_t n = strlen(tail), skip = n > FAILURE_TAIL_BYTES ? n - FAILURE_TAIL_BYTES : 0;

    if (skip > 0) { /* go on at a line start, so that no half line is shown */
        const char *newline = strchr(tail + skip, '\n');
        if (newline != NULL && newline[1] != '\0')
            skip = (size_t)(newline + 1 - tail);
    }
    failure_clean(out, tail + skip, n - skip, true);
    while (out->len > 0 && (out->data[out->len - 1] == '\n' || out->data[out->len - 1] == ' '))
        out->data[--out->len] = '\0';
}

/* ---- the text ---- */

/* Appends at most max_bytes of `line` and a newline; a longer one ends in "...". */
static void failure_add_line(ty_buf *out, const ty_buf *line, size_t max_bytes)
{
    size_t keep = line->len;

    if (keep > max_bytes - 1)
        keep = ty_utf8_cut(line->data, line->len, max_bytes - 4);
    ty_buf_add(out, line->data, keep);
    if (keep < line->len)
        ty_buf_adds(out, "...");
    ty_buf_addc(out, '\n');
}

/* "E0520 rank 3 (algo-2): " */
static void failure_culprit(ty_buf *line, const ty_failure *f)
{
    if (f->error != NULL && f->error->code != TY_E_NONE)
        ty_buf_addf(line, "E%04d ", (int)f->error->code);
    if (f->names_culprit)
        return;
    if (f->rank >= 0)
        ty_buf_addf(line, "rank %d", f->rank);
    if (f->host != NULL) {
        ty_buf_adds(line, f->rank >= 0 ? " (" : "host ");
        failure_cleans(line, f->host);
        ty_buf_adds(line, f->rank >= 0 ? ")" : "");
    }
    if (f->rank >= 0 || f->host != NULL)
        ty_buf_adds(line, ": ");
}

/* Returns whether the error's place found room here. */
static bool failure_cause(ty_buf *line, const ty_failure *f)
{
    char ending[96] = "";
    const char *message = f->error != NULL && f->error->message[0] != '\0' ? f->error->message : NULL;
    const char *place = f->error != NULL ? f->error->place : "";

    failure_culprit(line, f);
    if (f->exit_status >= 0 && !f->names_culprit)
        ty_exit_status_text(f->exit_status, ending, sizeof ending);

    bool place_fits = message != NULL && place[0] != '\0' &&
                      line->len + strlen(place) + strlen(message) + strlen(ending) + 5 < FAILURE_CAUSE_BYTES;

    if (place_fits) {
        failure_cleans(line, place);
        ty_buf_adds(line, ": ");
    }
    if (message != NULL)
        failure_cleans(line, message);
    if (ending[0] != '\0')
        ty_buf_addf(line, "%s%s", message != NULL ? ": " : "", ending);
    else if (message == NULL)
        ty_buf_adds(line, "failed for a reason that was not recorded");
    return place_fits;
}

static void failure_time(char out[40], int64_t time_ms)
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm utc;
    char date[32];

    gmtime_r(&seconds, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out, 40, "%s.%03dZ", date, (int)(time_ms % 1000));
}

static void failure_where(ty_buf *line, const ty_failure *f, bool with_place)
{
    size_t start;

    ty_buf_adds(line, "at: ");
    start = line->len;
    if (with_place && f->error != NULL && f->error->place[0] != '\0') {
        failure_cleans(line, f->error->place);
        ty_buf_adds(line, ", ");
    }
    if (f->host != NULL) {
        ty_buf_adds(line, "host ");
        failure_cleans(line, f->host);
        ty_buf_adds(line, ", ");
    }
    if (f->rank >= 0)
        ty_buf_addf(line, "rank %d, ", f->rank);
    if (f->phase != NULL)
        ty_buf_addf(line, "phase %s, ", f->phase);
    if (f->step >= 0)
        ty_buf_addf(line, "step %" PRId64 ", ", f->step);
    if (f->time_ms >= 0) {
        char text[40];
        failure_time(text, f->time_ms);
        ty_buf_addf(line, "%s, ", text);
    }
    line->len -= line->len > start ? 2 : start;
    line->data[line->len] = '\0';
}

/* The last whole lines of `tail` that fit into max_bytes with a newline at the end; if even the last does not, its
 * beginning. */
static void failure_add_tail(ty_buf *out, const ty_buf *tail, size_t max_bytes)
{
    size_t from = tail->len;

    if (tail->len == 0 || max_bytes < 16)
        return;
    for (size_t at = tail->len; at-- > 0;) {
        if (tail->len - at + 1 > max_bytes)
            break;
        if (at == 0 || tail->data[at - 1] == '\n')
            from = at;
    }
    if (from < tail->len) {
        ty_buf_add(out, tail->data + from, tail->len - from);
        ty_buf_addc(out, '\n');
        return;
    }

    const char *newline = memrchr(tail->data, '\n', tail->len);
    ty_buf last = *tail; /* a view: read only */
    if (newline != NULL) {
        last.len -= (size_t)(newline + 1 - last.data);
        last.data = (char *)newline + 1;
    }
    failure_add_line(out, &last, max_bytes);
}

/* What the middle shows: stderr's end; without it, the message in full when line 1 had to cut it. */
static void failure_middle(ty_buf *middle, const ty_failure *f, size_t cause_len)
{
    if (f->stderr_tail != NULL)
        failure_clean_tail(middle, f->stderr_tail);
    if (middle->len == 0 && cause_len > FAILURE_CAUSE_BYTES - 1 && f->error != NULL)
        failure_cleans(middle, f->error->message);
}

size_t ty_failure_text(const ty_failure *f, char out[TY_FAILURE_MAX_BYTES + 1])
{
    ty_buf cause, where, middle, help, text;
    ty_buf *const all[] = {&cause, &where, &middle, &help, &text};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        ty_buf_init(all[i], 4 * FAILURE_TAIL_BYTES);

    bool place_shown = failure_cause(&cause, f);
    failure_add_line(&text, &cause, FAILURE_CAUSE_BYTES);
    failure_where(&where, f, !place_shown);
    if (where.len > 0)
        failure_add_line(&text, &where, FAILURE_WHERE_BYTES);
    if (f->error != NULL && f->error->help[0] != '\0') {
        ty_buf_adds(&help, "help: ");
        failure_cleans(&help, f->error->help);
    }
    failure_middle(&middle, f, cause.len);

    size_t help_bytes = help.len == 0 ? 0 : help.len < FAILURE_HELP_BYTES ? help.len + 1 : FAILURE_HELP_BYTES;
    failure_add_tail(&text, &middle, TY_FAILURE_MAX_BYTES - text.len - help_bytes);
    if (help.len > 0)
        failure_add_line(&text, &help, FAILURE_HELP_BYTES);

    size_t len = ty_utf8_cut(text.data, text.len, TY_FAILURE_MAX_BYTES);
    memcpy(out, text.data, len);
    out[len] = '\0';
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        ty_buf_fini(all[i]);
    return len;
}

/* ---- the twin ---- */

static void failure_put(ty_json_writer *w, const char *key, const char *text, bool lines)
{
    ty_buf clean;

    if (text == NULL || text[0] == '\0')
        return;
    ty_buf_init(&clean, 4 * FAILURE_TAIL_BYTES);
    if (lines)
        failure_clean_tail(&clean, text);
    else
        failure_cleans(&clean, text);
    ty_json_put_string(w, key, clean.data);
    ty_buf_fini(&clean);
}

static void failure_put_number(ty_json_writer *w, const char *key, int64_t number)
{
    if (number >= 0)
        ty_json_put_int(w, key, number);
}

static void failure_put_error(ty_json_writer *w, const ty_error *error)
{
    char code[16];

    snprintf(code, sizeof code, "E%04d", (int)error->code);
    ty_json_put_string(w, "code", code);
    failure_put(w, "message", error->message, false);
    failure_put(w, "place", error->place, false);
    failure_put(w, "detail", error->detail, true);
    failure_put(w, "help", error->help, false);
}

static void failure_json(const ty_failure *f, ty_buf *out)
{
    ty_json_writer w;
    char time_text[40];

    ty_json_writer_init(&w, out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    if (f->error != NULL)
        failure_put_error(&w, f->error);
    failure_put(&w, "host", f->host, false);
    failure_put_number(&w, "rank", f->rank);
    failure_put(&w, "phase", f->phase, false);
    failure_put_number(&w, "step", f->step);
    failure_put_number(&w, "exit_status", f->exit_status);
    if (f->exit_status > 128)
        failure_put(&w, "signal", ty_signal_name(f->exit_status - 128), false);
    if (f->time_ms >= 0) {
        failure_time(time_text, f->time_ms);
        ty_json_put_string(&w, "time", time_text);
    }
    failure_put(&w, "stderr_tail", f->stderr_tail, true);
    ty_json_close(&w);
    ty_buf_addc(out, '\n');
}

/* ---- publishing ---- */

static int failure_write_temporary(const char *temporary, const char *data, size_t n, ty_error *err)
{
    unlink(temporary); /* of a process with our id in an earlier container */

    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);

    if (fd < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot create %s", temporary);
    int rc = ty_file_write_all(fd, data, n, temporary, err);
    if (rc == 0 && fsync(fd) < 0)
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot flush %s", temporary);
    if (close(fd) < 0 && rc == 0)
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot close %s", temporary);
    return rc;
}

/* Gives `temporary` its final name unless that is taken by a file with content. Some network file systems know no hard
 * links; there RENAME cannot be exclusive either, and the small race that is left is accepted. */
static int failure_link(const char *temporary, const char *path, ty_failure_outcome *outcome)
{
    struct stat st;

    *outcome = TY_FAILURE_WRITTEN;
    if (link(temporary, path) == 0)
        return 0;
    bool taken = errno == EEXIST,
         no_links = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK;
    if (!taken && !no_links)
        return -1;
    if (lstat(path, &st) == 0 && (st.st_size > 0 || !S_ISREG(st.st_mode))) {
        *outcome = TY_FAILURE_KEPT;
        return 0;
    }
    return rename(temporary, path);
}

static int failure_sync_folder(const char *path, ty_error *err)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');

    snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - path + 1), slash == NULL ? "." : path);
    return ty_file_sync_folder(folder, err);
}

static int failure_publish(const char *path, const char *data, size_t n, ty_failure_outcome *outcome, ty_error *err)
{
    char temporary[4096];
    int rc;

    if (snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof temporary)
        return ty_error_errno(err, TY_E_CREATE, ENAMETOOLONG, "cannot write %s", path);
    rc = failure_write_temporary(temporary, data, n, err);
    if (rc == 0 && failure_link(temporary, path, outcome) < 0)
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot write %s", path);
    unlink(temporary); /* gone already if it was renamed */
    return rc == 0 ? failure_sync_folder(path, err) : -1;
}

int ty_failure_write(const ty_failure *f, const char *path, const char *json_path, ty_failure_outcome *outcome,
                     ty_error *err)
{
    char text[TY_FAILURE_MAX_BYTES + 1];
    size_t len = ty_failure_text(f, text);
    ty_failure_outcome text_outcome, twin_outcome;

    if (failure_publish(path, text, len, &text_outcome, err) < 0)
        return -1;
    if (outcome != NULL)
        *outcome = text_outcome;
    if (json_path == NULL)
        return 0;

    ty_buf json;
    ty_buf_init(&json, 1 << 20);
    failure_json(f, &json);
    int rc = failure_publish(json_path, json.data, json.len, &twin_outcome, err);
    ty_buf_fini(&json);
    return rc;
}
