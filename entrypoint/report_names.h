/* report_names.h - what a metric line of training says, in its order. Who prints it and who tells the service how to
 * find it take the names from here. */
#ifndef TY_ENTRYPOINT_REPORT_NAMES_H
#define TY_ENTRYPOINT_REPORT_NAMES_H

typedef enum ty_report {
    TY_REPORT_LOSS,
    TY_REPORT_LR,
    TY_REPORT_GRAD_NORM,
    TY_REPORT_LOSS_SCALE, /* of float16 alone */
    TY_REPORT_SAMPLES_PER_S,
    TY_REPORT_DATA_MS, /* of a step, that it waited for data */
    TY_REPORT_COMM_MS, /* of several ranks, on CPUs */
    TY_REPORT_BAD,     /* records left out, with on_bad: skip */
    TY_N_REPORTS
} ty_report;

static inline const char *ty_report_name(ty_report r)
{
    static const char *const names[TY_N_REPORTS] = {
        [TY_REPORT_LOSS] = "loss",
        [TY_REPORT_LR] = "lr",
        [TY_REPORT_GRAD_NORM] = "grad_norm",
        [TY_REPORT_LOSS_SCALE] = "loss_scale",
        [TY_REPORT_SAMPLES_PER_S] = "samples_per_s",
        [TY_REPORT_DATA_MS] = "data_ms",
        [TY_REPORT_COMM_MS] = "comm_ms",
        [TY_REPORT_BAD] = "bad_records",
    };
    return names[r];
}

#endif
