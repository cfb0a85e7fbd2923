/* log.c - one line, one write. */
#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 4096, MESSAGE_BYTES = 32 << 10, LABEL_BYTES = 64 };

static const struct {
    const char *text;
    char letter;
} levels[] = {
    [TY_LOG_DEBUG] = {"debug", 'D'}, [TY_LOG_INFO] = {"info", 'I'},   [TY_LOG_WARNING] = {"warning", 'W'},
    [TY_LOG_ERROR] = {"error", 'E'}, [TY_LOG_QUIET] = {"quiet", ' '},
};

static struct {
    atomic_int threshold;
    ty_log_format format;
    int fd;
    char label[LABEL_BYTES];
} settings = {.threshold = TY_LOG_INFO, .fd = STDERR_FILENO};

bool ty_log_level_parse(const char *text, ty_log_level *out)
{
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (strcmp(text, levels[i].text) == 0) {
            *out = (ty_log_level)i;
            return true;
        }
    return false;
}

int ty_log_from_environment(ty_error *err)
{
    const char *level_text = getenv("TY_LOG"), *format_text = getenv("TY_LOG_FORMAT");
    ty_log_level level = (ty_log_level)settings.threshold;
    if (level_text && *level_text && !ty_log_level_parse(level_text, &level)) {
        ty_error_set(err, TY_E_USAGE, "TY_LOG=%s: expected debug, info, warning, error or quiet", level_text);
        return ty_error_at(err, "environment variable TY_LOG");
    }
    bool is_json = format_text && strcmp(format_text, "json") == 0;
    if (format_text && *format_text && !is_json && strcmp(format_text, "text") != 0) {
        ty_error_set(err, TY_E_USAGE, "TY_LOG_FORMAT=%s: expected text or json", format_text);
        return ty_error_at(err, "environment variable TY_LOG_FORMAT");
    }
    settings.threshold = level;
    if (format_text && *format_text)
        settings.format = is_json ? TY_LOG_JSON : TY_LOG_TEXT;
    return 0;
}

void ty_log_set_level(ty_log_level threshold)
{
    settings.threshold = threshold;
}

void ty_log_set_format(ty_log_format format)
{
    settings.format = format;
}

void ty_log_set_label(const char *label)
{
    snprintf(settings.label, sizeof settings.label, "%s", label);
}

void ty_log_set_fd(int fd)
{
    settings.fd = fd;
}

bool ty_log_enabled(ty_log_level level)
{
    return (int)level >= settings.threshold && settings.threshold != TY_LOG_QUIET;
}

/* Control characters become \n, \t, \xNN: C0, DEL, and C1 in its UTF-8 form. */
static void add_printable(ty_buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_c1 =
            c == 0xc2 && i + 1 < len && (unsigned char)text[i + 1] >= 0x80 && (unsigned char)text[i + 1] < 0xa0;
        if (c == '\n')
            ty_buf_adds(out, "\\n");
        else if (c == '\t')
            ty_buf_adds(out, "\\t");
        else if (is_c1)
            ty_buf_addf(out, "\\x%02x", (unsigned char)text[++i]);
        else if (c < 0x20 || c == 0x7f)
            ty_buf_addf(out, "\\x%02x", c);
        else
            ty_buf_addc(out, (char)c);
    }
}

/* The head is made once a call, so that all lines of one message carry one time. */
struct head {
    char time[32];
    ty_log_level level;
    const char *area;
};

static void add_text_line(ty_buf *out, const struct head *head, const char *piece)
{
    ty_buf_addf(out, "%s %c ", head->time, levels[head->level].letter);
    if (settings.label[0]) {
        add_printable(out, settings.label, strlen(settings.label));
        ty_buf_addc(out, ' ');
    }
    ty_buf_addf(out, "%s: ", head->area);
    add_printable(out, piece, strlen(piece));
}

static void add_json_line(ty_buf *out, const struct head *head, const char *piece)
{
    ty_json_writer w;
    ty_json_writer_init(&w, out, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "time", head->time);
    ty_json_put_string(&w, "level", levels[head->level].text);
    if (settings.label[0])
        ty_json_put_string(&w, "label", settings.label);
    ty_json_put_string(&w, "area", head->area);
    ty_json_put_string(&w, "message", piece);
    ty_json_close(&w);
}

static void write_line(const char *line, size_t len)
{
    while (write(settings.fd, line, len) < 0 && errno == EINTR)
        ;
}

/* Writes as much of the message as fits one line; returns how much that was. Escapes make the length hard to foretell,
 * so try, and try with less. */
static size_t log_piece(const struct head *head, const char *message, size_t len, bool is_first)
{
    size_t take = len < LINE_BYTES - 256 ? len : LINE_BYTES - 256;
    ty_buf line, piece;
    ty_buf_init(&line, LINE_BYTES);
    ty_buf_init(&piece, LINE_BYTES);
    for (;;) {
        while (take < len && take > 1 && ((unsigned char)message[take] & 0xc0) == 0x80)
            take--;
        ty_buf_clear(&line);
        ty_buf_clear(&piece);
        ty_buf_addf(&piece, "%s%.*s%s", is_first ? "" : "...", (int)take, message, take < len ? "..." : "");
        if (settings.format == TY_LOG_JSON)
            add_json_line(&line, head, piece.data);
        else
            add_text_line(&line, head, piece.data);
        ty_buf_addc(&line, '\n');
        if (!line.failed || take <= 1)
            break;
        take = take * 3 / 4;
    }
    write_line(line.data, line.len);
    ty_buf_fini(&line);
    ty_buf_fini(&piece);
    return take;
}

void ty_log(ty_log_level level, const char *area, const char *fmt, ...)
{
    if (!ty_log_enabled(level) || level >= TY_LOG_QUIET)
        return;
    int saved = errno; /* a log line between a call and the look at its errno must not matter */
    char message[MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    struct head head = {.level = level, .area = area};
    ty_clock_utc_text(ty_clock_utc_ms(), head.time);
    size_t len = strlen(message), done = 0;
    do
        done += log_piece(&head, message + done, len - done, done == 0);
    while (done < len);
    errno = saved;
}
