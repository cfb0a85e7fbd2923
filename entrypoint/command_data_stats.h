/* command_data_stats.h - what `trainyard data stats` found out, for those who print it. Private to
 * command_data_stats*.c.
 */
#ifndef TY_ENTRYPOINT_COMMAND_DATA_STATS_H
#define TY_ENTRYPOINT_COMMAND_DATA_STATS_H

#include "base/buf.h"
#include "container/input/profile.h"
#include "entrypoint/command_data.h"

/* A distribution: of a field's numbers, or of the sizes of its pictures or sounds. */
typedef struct ty_stats_row {
    const char *name;
    ty_field_profile p;
    int64_t n_missing;
    const char *odd; /* what a reader should know; "" if nothing */
} ty_stats_row;

/* How many samples are of a kind. */
typedef struct ty_stats_count {
    const char *name;
    int64_t n;
} ty_stats_count;

typedef struct ty_stats_counts {
    const char *title; /* "classes of label" */
    ty_stats_count *count;
    int n;
} ty_stats_counts;

typedef struct ty_stats {
    const ty_data_opened *d;
    ty_stats_row *row;
    int n_rows;
    ty_stats_counts counts[8]; /* classes, formats, channels */
    int n_counts;
    int picture, sound; /* fields; -1: there are none */
    ty_arena *a;
} ty_stats;

/* target: field that others are compared with, or -1. All lies in the arena. */
int ty_stats_collect(const ty_data_opened *d, int target, ty_arena *a, ty_stats *out, ty_error *err);
/* The distributions as one SVG element. */
void ty_stats_svg(const ty_stats *s, ty_buf *out);
/* A page of it all, with some pictures and sounds inside. */
int ty_stats_write_html(const ty_stats *s, const char *path, ty_error *err);

#endif
