/* partition.c - see partition.h. */
#include "dist/server/partition.h"

#include <stdlib.h>

enum { PARTITION_DEFAULT_BYTES = 256 << 10 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* tf.compat.v1.min_max_variable_partitioner. */
static int64_t partition_min_size(int64_t rows, int64_t row_bytes, int64_t min_bytes, int64_t max_shards)
{
    int64_t parts = least(rows * row_bytes / min_bytes, least(rows, max_shards));
    return parts < 1 ? 1 : parts;
}

/* tf.compat.v1.variable_axis_size_partitioner. */
static int64_t partition_max_size(int64_t rows, int64_t row_bytes, int64_t max_bytes, int64_t max_shards)
{
    int64_t rows_a_part = row_bytes > 0 ? max_bytes / row_bytes : rows;
    if (rows_a_part < 1)
        rows_a_part = 1;
    int64_t parts = (rows + rows_a_part - 1) / rows_a_part;
    return max_shards > 0 ? least(parts, max_shards) : parts;
}

int ty_partition_count(const ty_partitioner *p, int64_t rows, int64_t row_bytes)
{
    if (rows < 1)
        return 1;
    int64_t bytes = p->bytes > 0 ? p->bytes : PARTITION_DEFAULT_BYTES, parts = 1;
    switch (p->kind) {
    case TY_PARTITION_FIXED:
        parts = least(p->max_shards < 1 ? 1 : p->max_shards, rows);
        break;
    case TY_PARTITION_MIN_SIZE:
        parts = partition_min_size(rows, row_bytes, bytes, p->max_shards < 1 ? 1 : p->max_shards);
        break;
    case TY_PARTITION_MAX_SIZE:
        parts = partition_max_size(rows, row_bytes, bytes, p->max_shards);
        break;
    }
    return (int)least(parts, INT32_MAX);
}

int64_t ty_partition_rows(int64_t rows, int parts, int part, bool mod)
{
    (void)mod; /* both rules give the first rows % parts one more */
    return rows / parts + (part < rows % parts);
}

void ty_partition_find(int64_t rows, int parts, bool mod, int64_t r, int *part, int64_t *place)
{
    if (mod) {
        *part = (int)(r % parts);
        *place = r / parts;
        return;
    }
    int64_t each = rows / parts, longer = rows % parts, in_longer = longer * (each + 1);
    if (r < in_longer) {
        *part = (int)(r / (each + 1));
        *place = r % (each + 1);
    } else {
        *part = (int)(longer + (r - in_longer) / each);
        *place = (r - in_longer) % each;
    }
}

int64_t ty_partition_row(int64_t rows, int parts, bool mod, int part, int64_t place)
{
    if (mod)
        return place * parts + part;
    int64_t each = rows / parts, longer = rows % parts;
    return part * each + least(part, longer) + place;
}

void ty_partition_balance(const int64_t *bytes, int n, int n_shards, int *shard)
{
    int64_t *load = calloc((size_t)n_shards, sizeof *load);
    for (int i = 0; i < n; i++)
        shard[i] = -1;
    for (int given = 0; given < n; given++) {
        int largest = -1, free = 0;
        for (int i = 0; i < n; i++)
            if (shard[i] < 0 && (largest < 0 || bytes[i] > bytes[largest]))
                largest = i;
        for (int s = 1; load && s < n_shards; s++)
            if (load[s] < load[free])
                free = s;
        shard[largest] = free;
        if (load)
            load[free] += bytes[largest];
    }
    free(load);
}
