/* clock.c - the two clocks. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

int64_t ty_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t ty_clock_utc_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

const char *ty_clock_utc_text(int64_t utc_ms, char out[32])
{
    int64_t ms = (utc_ms % 1000 + 1000) % 1000;
    time_t seconds = (time_t)((utc_ms - ms) / 1000);
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900) {
        snprintf(out, 32, "0000-00-00T00:00:00.000Z");
        return out;
    }
    size_t len = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + len, 32 - len, ".%03dZ", (int)ms);
    return out;
}
