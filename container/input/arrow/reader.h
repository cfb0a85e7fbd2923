/* reader.h - how values come out of the buffers of a batch. Private to this folder. All fail with what is wrong; who
 * called names the column. */
#ifndef TY_CONTAINER_INPUT_ARROW_READER_H
#define TY_CONTAINER_INPUT_ARROW_READER_H

#include "container/input/arrow/schema.h"

/* What is read of a column, in the order in which it is read. */
typedef struct arrow_reader {
    const arrow_schema *schema;
    const arrow_batch *batch;
    const arrow_column *column;
    arrow_bytes bytes;
    parquet_values *out;
    ty_error *err;
} arrow_reader;

/* A buffer, inflated. */
typedef struct arrow_buffer {
    uint8_t *data; /* of malloc */
    size_t n;
} arrow_buffer;

/* -1, with TY_E_DATA. */
int arrow_damaged(const arrow_reader *r, const char *what);

/* The buffer that lies at place: behind the batch's body, and its bytes. On failure out->data is NULL. */
int arrow_buffer_read(const arrow_reader *r, const int64_t place[2], arrow_buffer *out);

/* Sets null[i] for those of the n rows of a place that are. A buffer that is left out says that none is. */
int arrow_nulls_add(const arrow_reader *r, arrow_place p, int64_t from, int64_t n, uint8_t *null);

/* Little-endian, of 1, 2, 4 or 8 bytes. */
int64_t arrow_whole(const uint8_t *p, int bytes, bool is_signed);

/* The n + 1 offsets from `from` on, which rise and do not go beyond `most`; *out: of malloc. */
int arrow_offsets_read(const arrow_reader *r, int number, int bytes, int64_t from, int64_t n, int64_t most,
                       int64_t **out);

/* Values [from, from + n) of a column of such a kind, to elements [0, n) of r->out, which has room and knows nulls. */
int arrow_numbers_read(const arrow_reader *r, int64_t from, int64_t n);
int arrow_texts_read(const arrow_reader *r, int64_t from, int64_t n);
int arrow_coded_read(const arrow_reader *r, int64_t from, int64_t n);

/* Of any kind, and their nulls; null: of rows around them, or NULL. */
int arrow_values_read(const arrow_reader *r, int64_t from, int64_t n, const uint8_t *null);

static inline bool arrow_bit(const uint8_t *bits, int64_t i)
{
    return bits[i / 8] >> (i % 8) & 1;
}

#endif
