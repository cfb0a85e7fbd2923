/* quantity.h - amounts as people read them. All write into out (32 bytes suffice) and return it. */
#ifndef TY_BASE_QUANTITY_H
#define TY_BASE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Duration, two units at most: "850us", "45ms", "3.2s", "2m05s", "1h02m", "3d04h". */
const char *ty_duration_text(int64_t us, char *out, size_t n);
/* Memory, binary: "512 B", "1.5 KiB", "64.0 MiB", "3.2 GiB". */
const char *ty_bytes_text(uint64_t n_bytes, char *out, size_t n);
/* Counts in prose: "1,797". */
const char *ty_count_text(int64_t count, char *out, size_t n);
/* Amounts by powers of a thousand, three digits: "8.18 GFLOP", "236 MFLOP", "12 FLOP". */
const char *ty_si_text(double amount, const char *unit, char *out, size_t n);

/* The other way: "8 GiB", "500MB", "1024"; units B, kB ... TB, KiB ... TiB. False: no such amount, or none from 1 to
 * 10^18. */
bool ty_bytes_parse(const char *text, uint64_t *out);

#endif
