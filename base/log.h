/* log.h - log lines for people and for collectors.
 *
 *     2026-01-05T10:11:12.345Z W algo-1/3 data: retry 2 of 5 for s3://bucket/key (503 SlowDown)
 *     {"time":"2026-01-05T10:11:12.345Z","level":"warning","label":"algo-1/3","area":"data","message":"retry 2 of 5
 * ..."}
 *
 * Time (UTC), level letter (D I W E), label (host/rank; left out if unset), area, message. One write() a line, at most
 * 4,096 bytes, which pipes take whole; longer messages are split into lines that end and begin with "...". Control
 * characters are escaped: no message can forge a line. Safe from any thread. The settings belong to the program's
 * start, before other threads run.
 */
#ifndef TY_BASE_LOG_H
#define TY_BASE_LOG_H

#include "base/error.h"

typedef enum ty_log_level {
    TY_LOG_DEBUG,
    TY_LOG_INFO,
    TY_LOG_WARNING,
    TY_LOG_ERROR,
    TY_LOG_QUIET, /* as a threshold: nothing at all */
} ty_log_level;

typedef enum ty_log_format { TY_LOG_TEXT, TY_LOG_JSON } ty_log_format;

/* Threshold and format from the environment: TY_LOG=debug|info|warning|error|quiet, TY_LOG_FORMAT=text|json. Unset
 * keeps what is (info, text); an unknown word is a failure that leaves all as it was. */
int ty_log_from_environment(ty_error *err);
void ty_log_set_level(ty_log_level threshold);
void ty_log_set_format(ty_log_format format);
void ty_log_set_label(const char *label); /* "algo-1/3"; copied, cut at 63 bytes */
void ty_log_set_fd(int fd);               /* default 2 */
bool ty_log_level_parse(const char *text, ty_log_level *out);
bool ty_log_enabled(ty_log_level level);

void ty_log(ty_log_level level, const char *area, const char *fmt, ...) TY_PRINTF(3, 4);
#define ty_log_debug(area, ...)   ty_log(TY_LOG_DEBUG, area, __VA_ARGS__)
#define ty_log_info(area, ...)    ty_log(TY_LOG_INFO, area, __VA_ARGS__)
#define ty_log_warning(area, ...) ty_log(TY_LOG_WARNING, area, __VA_ARGS__)
#define ty_log_error(area, ...)   ty_log(TY_LOG_ERROR, area, __VA_ARGS__)

#endif
