/* clock.h - time to measure with, time to print.
 *
 * Two kinds that must not be mixed: monotonic (for durations; its zero means nothing) and UTC (for people and files).
 */
#ifndef TY_BASE_CLOCK_H
#define TY_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t ty_clock_ns(void); /* monotonic */
static inline int64_t ty_clock_us(void)
{
    return ty_clock_ns() / 1000;
}
static inline int64_t ty_clock_ms(void)
{
    return ty_clock_ns() / 1000000;
}

int64_t ty_clock_utc_ms(void); /* since 1970 */
/* "2026-01-05T10:11:12.345Z" (24 characters) into out; returns out. Years 0 to 9999. */
const char *ty_clock_utc_text(int64_t utc_ms, char out[32]);

#endif
