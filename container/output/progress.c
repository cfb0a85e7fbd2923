/* progress.c - see progress.h. A line is made as text first, the same for all modes; only showing it differs. */
#include "container/output/progress.h"

#include "base/buf.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_S        0.1
#define PLAIN_S         30.0
#define PLAIN_SHARE     0.05
#define SMOOTHING       0.3 /* weight of the newest step time, as tqdm has it */
#define DEFAULT_COLUMNS 80
#define LINE_BYTES      512

static const struct mode {
    const char *name;
    ty_progress_mode mode;
} modes[] = {
    {"auto", TY_PROGRESS_AUTO}, {"plain", TY_PROGRESS_PLAIN}, {"bar", TY_PROGRESS_BAR},
    {"none", TY_PROGRESS_NONE}, {"json", TY_PROGRESS_JSON},
};

int ty_progress_mode_parse(const char *text, ty_progress_mode *out, ty_error *err)
{
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(text, modes[i].name) == 0) {
            *out = modes[i].mode;
            return 0;
        }
    }
    return ty_error_set(err, TY_E_USAGE, "progress: expected auto, plain, bar, none or json, found \"%s\"", text);
}

char *ty_progress_duration(double s, char out[16])
{
    if (!(s >= 0 && s < 86400.0 * 9999))
        return strcpy(out, "?");
    int64_t t = (int64_t)(s + 0.5);
    if (t < 60)
        snprintf(out, 16, "%ds", (int)t);
    else if (t < 3600)
        snprintf(out, 16, "%dm%02ds", (int)(t / 60), (int)(t % 60));
    else if (t < 86400)
        snprintf(out, 16, "%dh%02dm", (int)(t / 3600), (int)(t % 3600 / 60));
    else
        snprintf(out, 16, "%dd%02dh", (int)(t / 86400), (int)(t % 86400 / 3600));
    return out;
}

static bool can_redraw(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

void ty_progress_init(ty_progress *p, int fd, ty_progress_mode mode, int64_t first_step, int64_t total_steps,
                      double now_s)
{
    if (mode == TY_PROGRESS_AUTO)
        mode = can_redraw(fd) ? TY_PROGRESS_BAR : TY_PROGRESS_PLAIN;
    *p = (ty_progress){.fd = fd,
                       .mode = mode,
                       .first_step = first_step,
                       .total_steps = total_steps,
                       .start_s = now_s,
                       .last_s = -INFINITY,
                       .last_step = first_step,
                       .seen_s = now_s,
                       .seen_step = first_step};
}

static void show(const ty_progress *p, const ty_buf *line)
{
    struct pollfd ready = {.fd = p->fd, .events = POLLOUT};
    if (poll(&ready, 1, 0) == 1 && !(ready.revents & (POLLERR | POLLNVAL))) {
        ssize_t ignored = write(p->fd, line->data, line->len);
        (void)ignored; /* nobody reads: the run goes on */
    }
}

/* Follows the pace of the run: exponential smoothing over the reports, at least a redraw apart so that a burst of quick
 * steps does not make it jump. */
static void pace(ty_progress *p, int64_t step, double now_s)
{
    double passed_s = now_s - p->seen_s;
    if (step <= p->seen_step || passed_s < REDRAW_S)
        return;
    double latest_s = passed_s / (double)(step - p->seen_step);
    p->step_s = p->step_s > 0 ? SMOOTHING * latest_s + (1 - SMOOTHING) * p->step_s : latest_s;
    p->seen_s = now_s;
    p->seen_step = step;
}

static double eta_s(const ty_progress *p, int64_t step)
{
    if (p->step_s <= 0 || p->total_steps <= step)
        return -1;
    return p->step_s * (double)(p->total_steps - step);
}

struct share {
    const char *name;
    double share, step_ms; /* step_ms 0: not shown */
};

static void add_shares(ty_buf *out, const ty_progress_state *s)
{
    const struct share shares[] = {
        {"data", s->data_share, 0}, {"comm", s->comm_share, s->comm_ms}, {"compute", s->compute_share, 0}};
    const char *before = " | ";
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        if (!(shares[i].share >= 0))
            continue;
        ty_buf_addf(out, "%s%s %.0f%%", before, shares[i].name, 100 * shares[i].share);
        before = " ";
        if (i == 0 && s->data_cause != NULL)
            ty_buf_addf(out, " (%s)", s->data_cause);
        if (shares[i].step_ms > 0)
            ty_buf_addf(out, " (%.3g ms a step)", shares[i].step_ms);
    }
}

static void add_text(ty_buf *out, const ty_progress *p, const ty_progress_state *s)
{
    char eta[16];
    ty_buf_addf(out, "step %" PRId64, s->step);
    if (p->total_steps > 0)
        ty_buf_addf(out, "/%" PRId64 " %d%%", p->total_steps, (int)(100.0 * (double)s->step / (double)p->total_steps));
    ty_buf_addf(out, " | epoch %" PRId64 " | loss %.5g", s->epoch, s->loss);
    if (s->samples_per_s > 0)
        ty_buf_addf(out, " | %.1f samples/s", s->samples_per_s);
    if (eta_s(p, s->step) >= 0)
        ty_buf_addf(out, " | eta %s", ty_progress_duration(eta_s(p, s->step), eta));
    add_shares(out, s);
}

static void add_json_number(ty_buf *out, const char *key, double v, bool shown)
{
    if (shown)
        ty_buf_addf(out, isfinite(v) ? ",\"%s\":%.9g" : ",\"%s\":null", key, v);
}

static void add_json(ty_buf *out, const ty_progress *p, const ty_progress_state *s)
{
    ty_buf_addf(out, "{\"step\":%" PRId64 ",\"epoch\":%" PRId64, s->step, s->epoch);
    if (p->total_steps > 0)
        ty_buf_addf(out, ",\"total_steps\":%" PRId64, p->total_steps);
    add_json_number(out, "loss", s->loss, true);
    add_json_number(out, "samples_per_s", s->samples_per_s, s->samples_per_s > 0);
    add_json_number(out, "eta_s", eta_s(p, s->step), eta_s(p, s->step) >= 0);
    add_json_number(out, "data_share", s->data_share, s->data_share >= 0);
    if (s->data_cause != NULL)
        ty_buf_addf(out, ",\"data_cause\":\"%s\"", s->data_cause);
    add_json_number(out, "comm_share", s->comm_share, s->comm_share >= 0);
    add_json_number(out, "comm_ms", s->comm_ms, s->comm_share >= 0);
    add_json_number(out, "compute_share", s->compute_share, s->compute_share >= 0);
    ty_buf_addc(out, '}');
}

static int columns(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *set = getenv("COLUMNS");
    long n = set ? strtol(set, NULL, 10) : 0;
    return n > 0 && n < 10000 ? (int)n : DEFAULT_COLUMNS;
}

/* The line is ASCII, so bytes are columns. One column stays free: writing the last one makes some terminals wrap. The
 * width is asked for at every redraw, which spares a handler for SIGWINCH. */
static void draw(ty_progress *p, const ty_buf *text, bool last)
{
    ty_buf line;
    ty_buf_init(&line, LINE_BYTES + 16);
    size_t room = (size_t)columns(p->fd) - 1;
    ty_buf_addc(&line, '\r');
    ty_buf_add(&line, text->data, last || text->len < room ? text->len : room);
    ty_buf_adds(&line, last ? "\x1b[K\n" : "\x1b[K");
    show(p, &line);
    p->drawn = !last;
    ty_buf_fini(&line);
}

static void report(ty_progress *p, const ty_progress_state *s, double now_s, bool last)
{
    ty_buf line;
    ty_buf_init(&line, LINE_BYTES);
    if (p->mode == TY_PROGRESS_JSON)
        add_json(&line, p, s);
    else
        add_text(&line, p, s);
    if (p->mode == TY_PROGRESS_BAR) {
        draw(p, &line, last);
    } else {
        ty_buf_addc(&line, '\n');
        show(p, &line);
    }
    ty_buf_fini(&line);
    p->last_s = now_s;
    p->last_step = s->step;
}

static bool is_due(const ty_progress *p, const ty_progress_state *s, double now_s)
{
    double waited_s = now_s - p->last_s;
    if (p->mode == TY_PROGRESS_BAR)
        return waited_s >= REDRAW_S;
    double share = p->total_steps > 0 ? (double)(s->step - p->last_step) / (double)p->total_steps : 1;
    return isinf(waited_s) || (waited_s >= PLAIN_S && share >= PLAIN_SHARE);
}

void ty_progress_update(ty_progress *p, ty_progress_event event, const ty_progress_state *s, double now_s)
{
    if (p->mode == TY_PROGRESS_NONE)
        return;
    pace(p, s->step, now_s);
    /* A bar is redrawn by time alone: an epoch's end needs no line of its own there. */
    bool forced = event != TY_PROGRESS_STEP && p->mode != TY_PROGRESS_BAR;
    if (forced || is_due(p, s, now_s))
        report(p, s, now_s, false);
}

void ty_progress_clear(ty_progress *p)
{
    if (!p->drawn)
        return;
    ty_buf line;
    ty_buf_init(&line, 16);
    ty_buf_adds(&line, "\r\x1b[K");
    show(p, &line);
    ty_buf_fini(&line);
    p->drawn = false;
    p->last_s = -INFINITY;
}

void ty_progress_finish(ty_progress *p, const ty_progress_state *s, double now_s)
{
    if (p->mode == TY_PROGRESS_NONE)
        return;
    pace(p, s->step, now_s);
    if (p->mode == TY_PROGRESS_BAR || p->last_step != s->step || isinf(p->last_s))
        report(p, s, now_s, true);
}
