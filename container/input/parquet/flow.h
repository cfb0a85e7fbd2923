/* flow.h - the rows of Parquet files one after the other, packed (packing.h), in memory that does not grow with them.
 *
 * A row group's columns are decoded as a whole, and while its rows go out another thread decodes those of the next,
 * which may be the next file's: two row groups are in memory at a time.
 *
 *     parquet_flow_open(&config, &flow, err)
 *     for each file:  parquet_flow_begin(flow, i, err), then parquet_flow_fill() until *ends
 *     parquet_flow_close(flow)
 */
#ifndef TY_CONTAINER_INPUT_PARQUET_FLOW_H
#define TY_CONTAINER_INPUT_PARQUET_FLOW_H

#include "container/input/files.h"
#include "container/input/parquet/packing.h"

typedef struct parquet_flow_config {
    const parquet_packing *packing;
    const ty_data_file *files; /* read in the order that `which` says; all of it is borrowed */
    const int *which;
    int n_files; /* of which */
} parquet_flow_config;

typedef struct parquet_flow parquet_flow;

int parquet_flow_open(const parquet_flow_config *config, parquet_flow **out, ty_error *err);
void parquet_flow_close(parquet_flow *f); /* NULL is fine */

/* The i-th of which; i rises by 1. Errors name the file. */
int parquet_flow_begin(parquet_flow *f, int i, ty_error *err);
/* Up to n bytes, n unless the file ends; a row may end in the next call's. *ends: nothing of the file follows. */
int parquet_flow_fill(parquet_flow *f, uint8_t *out, size_t n, size_t *got, bool *ends, ty_error *err);

#endif
