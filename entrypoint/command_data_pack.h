/* command_data_pack.h - what `data convert` and `data pack` share. Private to command_data*.c. */
#ifndef TY_ENTRYPOINT_COMMAND_DATA_PACK_H
#define TY_ENTRYPOINT_COMMAND_DATA_PACK_H

#include "base/quantity.h"
#include "container/output/shards.h"
#include "entrypoint/command_data.h"

/* What the platform's guide recommends for objects of S3. */
#define TY_DATA_SHARD_BYTES 150000000

/* --size, --file-bytes: "150MB"; the default where it is not given. */
int ty_data_file_bytes(const ty_arguments_given *given, int option, const char *name, uint64_t *out, ty_error *err);
/* All samples, as records. */
int ty_data_convert_into(const ty_data_opened *data, ty_shards *shards, ty_error *err);
/* Those of delimited text: a feature a column, also of text. */
int ty_data_convert_table(const ty_data_opened *data, ty_shards *shards, ty_error *err);
/* Those of Parquet: a feature a column. */
int ty_data_convert_parquet(const ty_data_opened *data, ty_shards *shards, ty_error *err);
/* Those that a TFRecord file holds as they are, or nearly: TFRecord, JSON Lines, lines. */
int ty_data_convert_records(const ty_data_opened *data, ty_shards *shards, ty_error *err);
bool ty_data_copies_records(const char *format);
void ty_data_print_shards(const ty_shards *s, const char *what, const char *folder);

#endif
