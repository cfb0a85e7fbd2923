/* stream.c - opens a stream: files or a channel, format, and types from the first records. */
#include "container/input/stream/stream.h"

#include "base/hash.h"
#include "base/log.h"
#include "container/input/format.h"
#include "container/input/header.h"
#include "container/input/mixing.h"
#include "container/input/records_parquet.h"
#include "container/input/stream/opened.h"
#include "container/input/transform.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_LOOK = 100 }; /* records at most that decide types */

/* ---- bytes ---- */

int stream_begin(stream_opened *s, const int *which, int n_files, ty_error *err)
{
    char path[TY_PIPE_PATH_BYTES];
    ty_source *source = NULL;
    ty_source_config config = {.files = s->files,
                               .which = which,
                               .n_files = n_files,
                               .timeout_ms = s->timeout_ms,
                               .head_bytes = s->records.kind ? 0 : TY_FORMAT_HEAD_BYTES,
                               .packing = s->records.packing,
                               .block_bytes = s->block_bytes};
    if (s->is_pipe) {
        if (ty_pipe_next(&s->pipe, &s->fifo, err) < 0)
            return -1;
        config.fifo = ty_pipe_path(&s->pipe, s->fifo, path);
    }
    pthread_mutex_lock(&s->lock);
    int rc = s->stopping ? 0 : ty_source_open(&config, &source, err) < 0 ? -1 : 1;
    if (rc > 0)
        ty_cursor_start(&s->cursor, source);
    pthread_mutex_unlock(&s->lock);
    if (rc <= 0 && s->is_pipe)
        ty_pipe_give_back(&s->pipe, s->fifo, NULL);
    return rc;
}

void stream_end(stream_opened *s)
{
    pthread_mutex_lock(&s->lock);
    ty_source *source = s->cursor.source;
    s->cursor.source = NULL;
    pthread_mutex_unlock(&s->lock);
    bool was_used = ty_source_close(source);
    if (s->is_pipe && source && !was_used)
        ty_pipe_give_back(&s->pipe, s->fifo, NULL);
    s->is_fresh = false;
}

const char *stream_place(const stream_opened *s, const stream_record *r, char *out, size_t n)
{
    char fifo[TY_PIPE_PATH_BYTES];
    const char *path = s->is_pipe ? ty_pipe_path(&s->pipe, r->file, fifo) : s->files[r->file].path;
    if (ty_frames_are_lines(s->cursor.how) && !s->cursor.wrapped && s->cursor.n_attributes == 0)
        snprintf(out, n, "%s:%lld", path, (long long)r->record + 1);
    else if (s->cursor.how == TY_FRAMES_PACKED)
        snprintf(out, n, "%s: row %lld", path, (long long)r->record);
    else
        snprintf(out, n, "%s: record %lld at byte %lld", path, (long long)r->record, (long long)r->at);
    return out;
}

/* ---- opening ---- */

static const struct {
    const char *format;
    const records_kind *kind;
} stream_kinds[] = {{"tfrecord", &records_example},
                    {"recordio", &records_tensor},
                    {"libsvm", &records_libsvm},
                    {"jsonlines", &records_json},
                    {"csv", &records_csv},
                    {"mxnet", &records_mxnet},
                    {"lines", &records_lines},
                    {"parquet", &records_parquet_stream},
                    {"arrow", &records_parquet_stream}};

/* The FIFO that comes next is opened, and its first bytes are looked at; they stay to be read. */
static int stream_guess_format(stream_opened *s, const ty_stream_config *c, const ty_format **out, ty_error *err)
{
    static const uint8_t wrapper[4] = {0x0a, 0x23, 0xd7, 0xce};
    char path[TY_PIPE_PATH_BYTES];
    ty_block block = {0};
    if (stream_begin(s, NULL, 1, err) < 0 || ty_source_peek(s->cursor.source, &block, err) < 0)
        return -1;
    const uint8_t *head = block.data;
    size_t n = block.n;
    if (c->wrapped && n >= 8 && memcmp(head, wrapper, sizeof wrapper) == 0) {
        uint32_t length;
        memcpy(&length, head + 4, sizeof length);
        length = le32toh(length) & 0x1fffffff;
        head += 8;
        n = n - 8 < length ? n - 8 : length;
    }
    n = n < TY_FORMAT_HEAD_BYTES ? n : TY_FORMAT_HEAD_BYTES;
    *out = ty_format_of_head(head, n);
    if (*out) {
        ty_log_info("input", "channel \"%s\": its first bytes are those of %s", c->channel, (*out)->name);
        return 0;
    }
    ty_error_set(err, TY_E_CONFIG, "nothing tells the format of the channel \"%s\", nor do its first bytes",
                 c->channel);
    ty_error_at(err, "%s", ty_pipe_path(&s->pipe, s->fifo, path));
    return ty_error_help(err, "say format: in the recipe, or the channel's ContentType");
}

static int stream_choose_kind(stream_opened *s, const ty_stream_config *c, ty_error *err)
{
    const ty_format *format = NULL;
    ty_data_source src = {.format = c->format, .content_type = c->content_type};
    if (c->n_attributes > 0) {
        s->stream.format = "attributes";
        s->records.kind = &records_attributes;
        return 0;
    }
    if (ty_format_detect(&src, s->files, s->n_files, &format, err) < 0)
        return -1;
    if (!format && stream_guess_format(s, c, &format, err) < 0)
        return -1;
    s->stream.format = format->name;
    for (size_t i = 0; i < sizeof stream_kinds / sizeof stream_kinds[0]; i++)
        if (strcmp(stream_kinds[i].format, format->name) == 0)
            s->records.kind = stream_kinds[i].kind;
    if (s->records.kind == &records_parquet_stream && s->is_pipe) {
        ty_error_set(err, TY_E_CONFIG, "channel \"%s\" is in Pipe mode, and a file of %s is read by columns",
                     c->channel, format->name);
        return ty_error_help(err, "give the channel the mode File or FastFile");
    }
    if (s->records.kind)
        return 0;
    ty_error_set(err, TY_E_CONFIG,
                 "%s cannot be read as a stream: what its files begin or end with would be lost between them",
                 format->name);
    return ty_error_help(err, "take File or FastFile mode with access: random, or convert the data to TFRecord");
}

static int stream_find_bytes(stream_opened *s, const ty_stream_config *c, ty_error *err)
{
    ty_data_file *files;
    int n_all;
    s->is_pipe = c->channel != NULL;
    if (s->is_pipe)
        return ty_pipe_open(&s->pipe, c->channel, c->input_folder, c->state_folder, err);
    if (ty_files_list(c->paths, c->n_paths, &s->arena, &files, &n_all, err) < 0)
        return -1;
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < n_all; i++) {
        if (c->pattern && !ty_file_matches(&files[i], c->pattern))
            continue;
        least = files[i].n_bytes < least ? files[i].n_bytes : least;
        most = files[i].n_bytes > most ? files[i].n_bytes : most;
        s->stream.file_bytes += files[i].n_bytes;
        files[s->n_files++] = files[i];
    }
    s->files = files;
    s->stream.n_files = s->n_files;
    s->stream.even_files = (double)most <= 1.2 * (double)least;
    if (s->n_files > 0)
        return 0;
    ty_error_set(err, TY_E_CHANNEL, "none of the %d files matches the pattern \"%s\"", n_all, c->pattern);
    return ty_error_at(err, "%s", c->paths[0]);
}

static int stream_declare(stream_opened *s, const ty_stream_config *c, ty_error *err)
{
    records_impl *r = &s->records;
    if (c->n_fields < 1)
        return ty_error_set(err, TY_E_CONFIG, "no fields are declared");
    s->stream.n_fields = c->n_fields;
    s->cross = ty_arena_copy(&s->arena, c->fields, (size_t)c->n_fields * sizeof *c->fields);
    while (r->n_fields < c->n_fields && !ty_field_is_cross(s->cross))
        r->n_fields++, s->cross++;
    r->field = TY_NEW_ARRAY(&s->arena, records_field, c->n_fields);
    r->names = TY_NEW_ARRAY(&s->arena, const char *, c->n_fields);
    r->arena = &s->arena;
    r->lenient = c->lenient;
    r->skips_bad = c->skip_bad;
    r->missing = ty_csv_missing_copy(&c->csv_missing, &s->arena);
    r->blank_lines = c->blank_lines;
    r->delimiter = c->csv_delimiter ? c->csv_delimiter : ',';
    r->attribute = TY_NEW_ARRAY(&s->arena, const char *, c->n_attributes);
    r->n_attributes = c->n_attributes;
    s->field = TY_NEW_ARRAY(&s->arena, ty_field_info, c->n_fields);
    s->stream.field = s->field;
    for (int i = 0; i < c->n_attributes; i++)
        r->attribute[i] = ty_arena_strdup(&s->arena, c->attributes[i]);
    for (int i = 0; i < c->n_fields; i++) {
        const ty_field *d = &c->fields[i];
        if (ty_field_check(d, err) < 0)
            return -1;
        s->field[i] = (ty_field_info){.name = ty_arena_strdup(&s->arena, d->name)};
        r->field[i] = (records_field){.declared = *d};
        r->field[i].declared.name = s->field[i].name;
        r->field[i].declared.columns = d->columns ? ty_arena_strdup(&s->arena, d->columns) : NULL;
        for (int k = 0; k < TY_N_TEXT_PARTS; k++)
            r->field[i].declared.part[k] = d->part[k] ? ty_arena_strdup(&s->arena, d->part[k]) : NULL;
        if (ty_field_has_parts(d) && !r->kind->finds_parts && !r->kind->has_parts)
            return ty_error_set(err, TY_E_CONFIG, "field \"%s\": such a stream holds no two texts of a sample",
                                d->name);
    }
    records_name_fields(r, c->n_fields, &s->arena);
    if (records_take_media(r, s->field, &s->arena, NULL, err) < 0)
        return -1;
    if (r->kind == &records_parquet_stream) {
        if (parquet_stream_begin(r, s->files, s->n_files, err) < 0)
            return -1;
        s->stream.n_records = r->rows->n_rows;
    }
    return r->kind->begin_stream ? r->kind->begin_stream(r, c->index_base, &c->index, err) : 0;
}

/* What is known of values after a look at some is nothing. */
static void stream_forget_values(stream_opened *s)
{
    for (int i = 0; i < s->stream.n_fields; i++) {
        ty_field_info *f = &s->field[i];
        const ty_image_plan *image = f->image;
        const ty_audio_plan *audio = f->audio;
        *f = (ty_field_info){.name = f->name, .type = f->type, .row_bytes = f->row_bytes, .is_integer = f->is_integer};
        f->image = image;
        f->audio = audio;
        f->min_sample = f->max_sample = f->first_missing = f->first_not_finite = -1;
    }
}

int stream_first(stream_opened *s, const ty_frame *record, const ty_agree *agree, ty_error *err)
{
    if (s->has_first || !s->records.kind->first)
        return 0;
    int rc = s->records.kind->first(&s->records, record, agree, err);
    s->has_first = rc > 0;
    return rc < 0 ? -1 : 0;
}

static int stream_look_at(stream_opened *s, const ty_stream_config *c, records_look *look, const ty_cursor_record *r,
                          ty_error *err)
{
    char place[TY_ERROR_PLACE_BYTES];
    ty_frame frame = {.data = r->data, .n = r->n, .at = (size_t)r->at, .record = r->record};
    if (stream_first(s, &frame, &c->agree, err) < 0)
        return -1;
    int rc = s->records.kind->find(look, &frame, err);
    for (int i = 0; rc == 0 && i < s->records.n_fields; i++)
        rc = records_see(look, i, &s->field[i], 0, err);
    if (rc == 0)
        return 0;
    stream_record where = {.record = r->record, .at = r->at, .file = s->is_pipe ? s->fifo : r->file};
    return ty_error_at(err, "%s", stream_place(s, &where, place, sizeof place));
}

static int stream_look(stream_opened *s, const ty_stream_config *c, ty_error *err)
{
    records_look look;
    ty_cursor_record record;
    int rc = records_look_init(&look, &s->records, -1, err), n = 0;
    ty_cursor_hold(&s->cursor);
    for (int more = 1; rc == 0 && n < STREAM_LOOK; n++) {
        more = ty_cursor_next(&s->cursor, &record, err);
        if (more < 0) {
            stream_record where = {.file = s->is_pipe ? s->fifo : record.file};
            char fifo[TY_PIPE_PATH_BYTES];
            ty_error_at(err, "%s", s->is_pipe ? ty_pipe_path(&s->pipe, s->fifo, fifo) : s->files[where.file].path);
            rc = -1;
        }
        if (more <= 0)
            break;
        if (n == 0)
            s->stream.first_hash = ty_fnv1a(TY_FNV_START, record.data, record.n);
        rc = stream_look_at(s, c, &look, &record, err);
        if (rc < 0 && c->skip_bad && err && err->code == TY_E_DATA_VALUE) {
            *err = (ty_error){0};
            rc = 0;
        }
    }
    records_look_fini(&look);
    ty_cursor_rewind(&s->cursor);
    if (rc < 0 || stream_first(s, NULL, &c->agree, err) < 0 ||
        records_settle_rest(&s->records, s->field, n > 0, err) < 0)
        return -1;
    if (stream_settle_crosses(s, err) < 0)
        return -1;
    return ty_mixing_find(s->field, s->stream.n_fields, &s->mixed, err);
}

static void stream_take_fingerprint(stream_opened *s, const ty_stream_config *c)
{
    uint64_t h = ty_fnv1a(TY_FNV_START, s->stream.format, strlen(s->stream.format));
    if (s->is_pipe)
        h = ty_fnv1a(h, c->channel, strlen(c->channel));
    for (int i = 0; i < s->n_files; i++) {
        h = ty_fnv1a(h, s->files[i].name, strlen(s->files[i].name) + 1);
        h = ty_fnv1a(h, &s->files[i].n_bytes, sizeof s->files[i].n_bytes);
    }
    for (int i = 0; i < c->n_fields; i++) {
        const ty_field *f = &c->fields[i];
        double numbers[4] = {f->scale, f->offset, f->missing_given ? f->missing : 0.0, (double)f->max_length};
        h = ty_fnv1a(h, s->records.names[i], strlen(s->records.names[i]) + 1);
        h = f->columns ? ty_fnv1a(h, f->columns, strlen(f->columns)) : h;
        for (int k = 0; k < TY_N_TEXT_PARTS; k++)
            h = f->part[k] ? ty_fnv1a(h, f->part[k], strlen(f->part[k]) + 1) : h;
        h = ty_fnv1a(h, &s->field[i].type, sizeof s->field[i].type);
        h = ty_fnv1a(h, numbers, sizeof numbers);
        h = ty_media_fingerprint(h, s->field[i].image, s->field[i].audio);
        if (f->map) {
            uint64_t learnt = ty_map_fingerprint(f->map);
            h = ty_fnv1a(h, &learnt, sizeof learnt);
        }
    }
    for (int i = 0; c->csv_missing.text && i < c->csv_missing.n; i++)
        h = ty_fnv1a(h, c->csv_missing.text[i], strlen(c->csv_missing.text[i]) + 1);
    s->stream.fingerprint = h;
}

static int stream_open(stream_opened *s, const ty_stream_config *c, ty_error *err)
{
    s->timeout_ms = c->timeout_ms > 0 ? c->timeout_ms : TY_STREAM_TIMEOUT_MS;
    s->memory_bytes = s->stream.memory_bytes = c->memory_bytes ? c->memory_bytes : TY_STREAM_MEMORY_BYTES;
    s->block_bytes = c->block_bytes ? c->block_bytes : c->fast_file ? TY_BLOCK_FAST_BYTES : TY_BLOCK_BYTES;
    s->stream.bad = (ty_bad){.skip = c->skip_bad, .max = c->max_bad};
    static const int first = 0;
    if (stream_find_bytes(s, c, err) < 0 || stream_choose_kind(s, c, err) < 0 || stream_declare(s, c, err) < 0)
        return -1;
    size_t groups = s->records.packing ? 2 * (size_t)s->records.packing->group_bytes : 0;
    s->stream.read_bytes = ty_source_bytes(s->block_bytes) + groups;
    ty_source *begun = s->cursor.source; /* of a channel whose format it told itself */
    s->cursor = (ty_cursor){.source = begun,
                            .how = s->records.kind->framing,
                            .wrapped = c->wrapped && c->n_attributes == 0,
                            .n_attributes = c->n_attributes,
                            .is_none = s->records.kind->is_none};
    if (stream_learn(s, c, err) < 0 || (!begun && stream_begin(s, &first, 1, err) < 0))
        return -1;
    if (begun)
        ty_cursor_start(&s->cursor, begun);
    if (stream_look(s, c, err) < 0)
        return -1;
    if (s->records.n_columns == 0)
        s->records.n_columns = -1; /* nothing will be settled by a worker */
    stream_forget_values(s);
    if (s->records.kind == &records_libsvm)
        s->stream.index = (ty_index_kept){s->records.width > 0, s->records.index_base, s->records.width};
    stream_take_fingerprint(s, c);
    s->is_fresh = s->is_pipe;
    if (!s->is_pipe)
        stream_end(s);
    return 0;
}

int ty_stream_open(const ty_stream_config *config, ty_stream **out, ty_error *err)
{
    stream_opened *s = calloc(1, sizeof *s);
    if (!s)
        return ty_error_set(err, TY_E_LIMIT, "no memory to open data");
    ty_arena_init(&s->arena);
    pthread_mutex_init(&s->lock, NULL);
    s->pipe.reader_fd = -1;
    if (stream_open(s, config, err) < 0) {
        ty_stream_close(&s->stream);
        return -1;
    }
    *out = &s->stream;
    return 0;
}

void ty_stream_close(ty_stream *stream)
{
    stream_opened *s = (stream_opened *)stream;
    if (!s)
        return;
    stream_end(s);
    ty_cursor_end(&s->cursor);
    ty_pipe_close(&s->pipe);
    pthread_mutex_destroy(&s->lock);
    ty_arena_fini(&s->arena);
    free(s);
}
