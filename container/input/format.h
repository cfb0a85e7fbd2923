/* format.h - the table of data formats, and how a file's format is found.
 *
 * A declared format wins. Without one the channel's content type decides, then the extension (behind .gz or .zst), then
 * the first bytes. Where extension and first bytes contradict each other the file is refused instead of guessed at.
 */
#ifndef TY_CONTAINER_INPUT_FORMAT_H
#define TY_CONTAINER_INPUT_FORMAT_H

#include "container/input/dataset.h"
#include "container/input/survey.h"

typedef int ty_survey_fn(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a,
                         ty_data_survey *out, ty_error *err);

typedef struct ty_format {
    const char *name;
    const char *extensions;                           /* " .csv .tsv " */
    const char *content_types;                        /* " text/csv " */
    bool (*has_magic)(const uint8_t *head, size_t n); /* NULL: no signature */
    /* Fills ds->ops, impl, fields and counts; ds->files is set. On failure ty_dataset_open closes what was made. */
    int (*open)(ty_dataset *ds, const ty_data_source *src, ty_error *err);
    ty_survey_fn *survey; /* fills the parts */
    bool maps;            /* open and read apply the maps of fields themselves */
    bool pictures;        /* fields may be encoded pictures */
    bool sounds;          /* fields may be encoded sounds */
    bool pairs;           /* fields may have several texts (ty_field.part) */
} ty_format;

/* "csv, npy ...", for messages. */
const char *ty_format_names(char *out, size_t n);
/* Rows by number until NULL. */
const ty_format *ty_format_row(int i);
/* The format of all files, which must agree. */
int ty_format_detect(const ty_data_source *src, const ty_data_file *files, int n_files, const ty_format **out,
                     ty_error *err);
/* What bytes without a name are by their beginning, of those formats that have frames of their own; NULL: that does not
 * tell, or not which of two. A table must show a number, and a separator within its first line. */
const ty_format *ty_format_of_head(const uint8_t *head, size_t n);
#define TY_FORMAT_HEAD_BYTES 512 /* as many as are looked at */

/* The formats' own openers. */
int ty_dataset_open_csv(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_npy(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_npz(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_idx(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_tfrecord(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_libsvm(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_json(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_lines(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_images(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_parquet(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_audio(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_mxnet(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_text(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_tokens(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_recordio(ty_dataset *ds, const ty_data_source *src, ty_error *err);

/* What their files hold (survey.c). */
ty_survey_fn ty_survey_csv, ty_survey_npz, ty_survey_files, ty_survey_tfrecord, ty_survey_recordio, ty_survey_libsvm,
    ty_survey_json, ty_survey_lines, ty_survey_windows, ty_survey_images, ty_survey_audio, ty_survey_parquet,
    ty_survey_mxnet;

/* parquet, arrow: tables that are read by columns. */
bool ty_format_is_columns(const char *name);

/* The format that a file's name tells; NULL: none. */
const ty_format *ty_format_of_name(const char *name);
/* Of what is wrong with data whose format nothing but their bytes told, and which is CSV only because they are text:
 * adds that. Returns -1. */
int ty_format_doubt(const ty_data_source *src, const ty_data_file *files, int n_files, ty_error *err);

/* "text/csv; label_size=2": how many columns in front are the labels; *out -1: it does not say. Refuses what is no
 * number. */
int ty_content_label_size(const char *content_type, int64_t *out, ty_error *err);

#endif
