/* quantity.c - the forms of user-facing amounts. Rounding happens once, on the smaller unit, before units are chosen,
 * so that 59.96 s prints as 1m00s and never as 60.0s. */
#include "base/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string.h>

const char *ty_duration_text(int64_t us, char *out, size_t n)
{
    if (us < 0)
        us = 0;
    int64_t seconds = us / 1000000 + (us % 1000000 >= 500000);
    if (us < 1000)
        snprintf(out, n, "%lldus", (long long)us);
    else if (us < 999500)
        snprintf(out, n, "%lldms", (long long)((us + 500) / 1000));
    else if (us < 59950000)
        snprintf(out, n, "%.1fs", (double)us / 1e6);
    else if (seconds < 3600)
        snprintf(out, n, "%lldm%02llds", (long long)(seconds / 60), (long long)(seconds % 60));
    else if (seconds < 86400)
        snprintf(out, n, "%lldh%02lldm", (long long)(seconds / 3600), (long long)(seconds % 3600 / 60));
    else
        snprintf(out, n, "%lldd%02lldh", (long long)(seconds / 86400), (long long)(seconds % 86400 / 3600));
    return out;
}

const char *ty_bytes_text(uint64_t n_bytes, char *out, size_t n)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (n_bytes < 1024) {
        snprintf(out, n, "%llu B", (unsigned long long)n_bytes);
        return out;
    }
    double amount = (double)n_bytes / 1024;
    size_t unit = 0;
    while (amount >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]) {
        amount /= 1024;
        unit++;
    }
    snprintf(out, n, "%.1f %s", amount, units[unit]);
    return out;
}

const char *ty_count_text(int64_t count, char *out, size_t n)
{
    char digits[24];
    uint64_t magnitude = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
    int n_digits = snprintf(digits, sizeof digits, "%llu", (unsigned long long)magnitude);
    char text[40];
    size_t len = 0;
    if (count < 0)
        text[len++] = '-';
    for (int i = 0; i < n_digits; i++) {
        if (i > 0 && (n_digits - i) % 3 == 0)
            text[len++] = ',';
        text[len++] = digits[i];
    }
    text[len] = 0;
    snprintf(out, n, "%s", text);
    return out;
}

const char *ty_si_text(double amount, const char *unit, char *out, size_t n)
{
    static const char prefix[] = " kMGTPE";
    size_t i = 0;
    for (; amount >= 999.5 && i + 2 < sizeof prefix; i++)
        amount /= 1000;
    int digits = i == 0 || amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2;
    snprintf(out, n, "%.*f %.*s%s", digits, amount, i > 0, &prefix[i], unit);
    return out;
}

bool ty_bytes_parse(const char *text, uint64_t *out)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"", 1},      {"B", 1},          {"kB", 1e3},       {"MB", 1e6},       {"GB", 1e9},
                 {"TB", 1e12}, {"KiB", 1u << 10}, {"MiB", 1u << 20}, {"GiB", 1u << 30}, {"TiB", 1099511627776.0}};
    char *end, unit[8] = "", rest[2] = "";
    double n = strtod(text, &end);
    if (end == text || sscanf(end, " %7[A-Za-z]%1s", unit, rest) > 1)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].unit) == 0 && n * units[i].bytes >= 1 && n * units[i].bytes <= 1e18) {
            *out = (uint64_t)(n * units[i].bytes);
            return true;
        }
    return false;
}
