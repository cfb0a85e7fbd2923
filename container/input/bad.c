/* bad.c - see bad.h. */
#include "container/input/bad.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool bad_is_told(int64_t n)
{
    int64_t step = 1;
    while (step <= n / 10)
        step *= 10;
    return n % step == 0;
}

void ty_bad_tell(ty_buf *told, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    ty_log_warning("data", "%s", line);
    if (told)
        ty_buf_add(told, line, strlen(line) + 1);
}

int ty_bad_leave_out(ty_bad *bad, ty_error *err)
{
    int64_t max = bad->max > 0 ? bad->max : TY_BAD_MAX;
    if (!bad->skip || (err->code != TY_E_DATA && err->code != TY_E_DATA_VALUE))
        return -1;
    if (bad->n - bad->n_before >= max) {
        ty_error_wrap(err, "one bad record more than the %lld that may be left out", (long long)max);
        ty_error_detail(err, "the first was %s", bad->first);
        return ty_error_help(err, "mend the data, or allow more with max_bad:");
    }
    char text[sizeof bad->first];
    snprintf(text, sizeof text, "%.150s%s%.100s", err->place, err->place[0] ? ": " : "", err->message);
    if (bad->n++ == 0)
        memcpy(bad->first, text, sizeof text);
    if (!bad->quiet && bad_is_told(bad->n))
        ty_bad_tell(bad->told, "bad record left out (number %lld): %s", (long long)bad->n, text);
    *err = (ty_error){0};
    return 0;
}

void ty_bad_begin_pass(ty_bad *bad, int64_t pass)
{
    if (pass > bad->pass)
        ty_bad_begin_again(bad, pass);
}

void ty_bad_begin_again(ty_bad *bad, int64_t pass)
{
    bad->pass = pass;
    bad->n_before = bad->n;
}
