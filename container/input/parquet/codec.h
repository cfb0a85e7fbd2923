/* codec.h - compressed pages. Private to this folder. */
#ifndef TY_CONTAINER_INPUT_PARQUET_CODEC_H
#define TY_CONTAINER_INPUT_PARQUET_CODEC_H

#include "container/input/parquet/parquet.h"

/* A page of n_out bytes into room->page, which grows. codec: as parquet.thrift numbers them. *out: where it is; what is
 * not compressed stays where it was. */
int parquet_unpack(int codec, const uint8_t *in, size_t n, size_t n_out, parquet_room *room, const uint8_t **out,
                   ty_error *err);

/* A frame of LZ4 (lz4_Frame_format.md), or of Zstandard, of n_out bytes; *out: of malloc. */
int parquet_unpack_lz4(const uint8_t *in, size_t n, size_t n_out, uint8_t **out, ty_error *err);
int parquet_unpack_zstd(const uint8_t *in, size_t n, size_t n_out, uint8_t **out, ty_error *err);

#endif
