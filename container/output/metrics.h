/* metrics.h - numbers about the run, in the two forms that other tools read.
 *
 *   metric line   for CloudWatch: one line on stdout for each report, written whole, never coloured:
 *                     step=1200 epoch=3 loss=0.23417 lr=0.0009 samples_per_s=18211.4
 *                     val step=1200 epoch=3 val_loss=0.2711 val_accuracy=0.9182
 *                 Keys are [a-z][a-z0-9_]*, values plain numbers with a '.', `nan` and `inf` as such.
 *   metrics.jsonl one JSON object a line; the first one of each process start is the run's header:
 *                     {"ts":1767600672.345,"step":1200,"epoch":3,"split":"train","loss":0.23417}
 *                 A number that is not finite is null there, with its text under "nonfinite".
 *
 * For SageMaker to keep a metric it needs a definition, a name with a regular expression: ty_metrics_definitions writes
 * the list that fits these lines, so that nobody has to write it.
 *
 * Numbers are doubles in the interface and printed with %.9g, which brings every float32 back exactly.
 */
#ifndef TY_CONTAINER_OUTPUT_METRICS_H
#define TY_CONTAINER_OUTPUT_METRICS_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TY_METRIC_NAME_BYTES      64
#define TY_METRIC_LINE_BYTES      4096 /* a pipe takes that much in one piece */
#define TY_METRIC_DEFINITIONS_MAX 40   /* SageMaker's limits: definitions, bytes of a regex */
#define TY_METRIC_REGEX_BYTES     500

typedef enum ty_split { TY_SPLIT_TRAIN, TY_SPLIT_VALIDATION } ty_split;

typedef struct ty_metric {
    const char *name; /* as the recipe says, without split: "loss", "accuracy" */
    double value;
} ty_metric;

/* One report. */
typedef struct ty_metrics_row {
    double ts_s; /* seconds since 1970 */
    int64_t step, epoch;
    ty_split split;
    const ty_metric *metrics; /* in the order to print */
    size_t n_metrics;
} ty_metrics_row;

/* What the first line of metrics.jsonl says. Digests are text and may be "". */
typedef struct ty_metrics_header {
    double ts_s;
    const char *version; /* of this program */
    const char *config_digest, *model_digest;
    int world_size;
    uint64_t seed;
    int64_t resumed_step; /* -1: a new run. Rows of an earlier process at later steps are void */
} ty_metrics_header;

/* "train", "validation": in JSON, and in names of definitions. */
const char *ty_metrics_split_text(ty_split split);
/* Whether a name can stand in a metric line: [a-z][a-z0-9_]*, at most TY_METRIC_NAME_BYTES, and not one of
 * the keys that every line has: step, epoch, ts, split, nonfinite, run. */
bool ty_metric_name_ok(const char *name);
/* "%.9g" with a '.', or "nan", "inf", "-inf". `out` holds 32 bytes. Returns out. */
char *ty_metric_number(double v, char out[32]);

/* Append the row's metric line, or its JSON line, with the newline. Fails on a name that is not ok and on a line past
 * TY_METRIC_LINE_BYTES. Metrics keep their names in JSON; lines of the validation split have them with `val_`. */
int ty_metrics_line(ty_buf *out, const ty_metrics_row *row, ty_error *err);
int ty_metrics_json(ty_buf *out, const ty_metrics_row *row, ty_error *err);
int ty_metrics_json_header(ty_buf *out, const ty_metrics_header *header, ty_error *err);
/* The metric line to a descriptor (stdout) with one write(). */
int ty_metrics_print(int fd, const ty_metrics_row *row, ty_error *err);

/* What to tell SageMaker about. */
typedef struct ty_metric_definition {
    ty_split split;
    const char *name;
} ty_metric_definition;

/* The regex that captures this metric: " val_loss=([-+0-9.eE]+)". The leading space keeps `loss` out of `val_loss`. */
int ty_metrics_regex(ty_buf *out, const ty_metric_definition *d, ty_error *err);
/* The JSON array for CreateTrainingJob: [{"Name":"train:loss","Regex":" loss=([-+0-9.eE]+)"},...] and a newline. */
int ty_metrics_definitions(ty_buf *out, const ty_metric_definition *list, size_t n, ty_error *err);

/* metrics.jsonl. A torn last line of a killed process is cut off on opening. Not thread-safe. */
typedef struct ty_metrics_file ty_metrics_file;

/* Opens for appending (the directory and its parents are made) and writes the header line. */
int ty_metrics_file_open(const char *path, const ty_metrics_header *header, ty_metrics_file **out, ty_error *err);
/* One line, one write(). After a failed write the file is cut back to whole lines. */
int ty_metrics_file_add(ty_metrics_file *file, const ty_metrics_row *row, ty_error *err);
/* Syncs, closes, frees in any case. NULL is allowed. */
int ty_metrics_file_close(ty_metrics_file *file, ty_error *err);

#endif
