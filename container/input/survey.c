/* survey.c - see survey.h. A format's own way of looking is a function in its row of format.c. */
#include "container/input/survey.h"

#include "base/doc_builder.h"
#include "base/json.h"
#include "base/zip.h"
#include "container/input/audio/audio.h"
#include "container/input/bytes.h"
#include "container/input/example.h"
#include "container/input/format.h"
#include "container/input/frame.h"
#include "container/input/header.h"
#include "container/input/image/image.h"
#include "container/input/number.h"
#include "container/input/record.h"

#include <stdio.h>
#include <string.h>

enum {
    SURVEY_MAX_ARRAYS = 4096,
    SURVEY_LOOK = 100, /* records whose columns are looked at */
    SURVEY_MAX_LINE = 1024
};

static int survey_too_many(ty_error *err)
{
    ty_error_set(err, TY_E_LIMIT, "more than %d arrays", SURVEY_MAX_ARRAYS);
    return ty_error_help(err, "declare the fields that are meant: data.train.fields");
}

/* Which columns of the next records hold text. */
static int survey_columns(ty_csv *c, const ty_csv_missing *missing, ty_data_survey *out, ty_error *err)
{
    ty_csv_field f;
    double v;
    for (int records = 0; records < SURVEY_LOOK && ty_csv_more(c); records++) {
        int64_t i = 0;
        do {
            if (ty_csv_next(c, &f, err) < 0)
                return -1;
            bool is_number = ty_number_scan(f.text, f.text + f.n, &v) == f.text + f.n && f.n > 0;
            if (i < out->n_parts && !is_number && !ty_csv_is_missing(missing, f.text, f.n))
                out->part[i].is_text = true;
            i++;
        } while (!f.last);
    }
    return 0;
}

static int survey_table(const ty_data_source *src, ty_csv c, ty_arena *a, ty_data_survey *out, ty_error *err)
{
    ty_csv start = c;
    ty_csv_first first = {0};
    if (ty_csv_more(&c) && ty_csv_first_record(&c, &src->csv_missing, a, &first, err) < 0)
        return -1;
    bool is_header = src->csv_header == TY_CSV_HEADER_YES || (src->csv_header == TY_CSV_HEADER_AUTO && !first.is_data);
    out->is_table = true;
    out->n_parts = (int)first.n;
    out->part = TY_NEW_ARRAY(a, ty_data_part, first.n + 1);
    for (int64_t i = 0; i < first.n && is_header; i++)
        out->part[i].name = *first.text[i] ? first.text[i] /* pandas writes its index so, and reads it so */
                                           : ty_arena_printf(a, "Unnamed: %lld", (long long)i);
    return survey_columns(is_header ? &c : &start, &src->csv_missing, out, err);
}

int ty_survey_csv(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a, ty_data_survey *out,
                  ty_error *err)
{
    ty_bytes bytes;
    ty_csv c;
    (void)n_files;
    if (ty_bytes_open(files[0].path, &(ty_bytes_options){.no_map = src->no_map}, &bytes, err) < 0)
        return -1;
    const char *text = (const char *)bytes.data;
    int rc = ty_csv_init(&c, files[0].path, text, bytes.n, ty_csv_delimiter(src, files[0].name, text, bytes.n), err);
    if (rc == 0)
        rc = survey_table(src, c, a, out, err);
    ty_bytes_close(&bytes);
    return rc;
}

static const ty_data_part *survey_find(const ty_data_survey *s, const char *name)
{
    for (int i = 0; i < s->n_parts; i++)
        if (strcmp(s->part[i].name, name) == 0)
            return &s->part[i];
    return NULL;
}

/* The members of the first archive: the others must have them too. */
static int survey_members(const ty_bytes *bytes, ty_arena *a, ty_data_survey *out, ty_error *err)
{
    ty_zip z;
    ty_zip_walk walk = {0};
    ty_zip_entry e;
    int more = ty_zip_open(bytes->data, bytes->n, &z, err);
    while (more >= 0 && (more = ty_zip_next(&z, &walk, &e, err)) == 1) {
        bool is_array = e.name_bytes > 4 && memcmp(e.name + e.name_bytes - 4, ".npy", 4) == 0;
        if (!is_array)
            continue;
        if (out->n_parts == SURVEY_MAX_ARRAYS)
            return survey_too_many(err);
        out->part[out->n_parts++].name = ty_arena_strndup(a, e.name, e.name_bytes - 4);
    }
    return more;
}

int ty_survey_npz(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a, ty_data_survey *out,
                  ty_error *err)
{
    ty_bytes bytes;
    (void)n_files;
    if (ty_bytes_open(files[0].path, &(ty_bytes_options){.no_map = src->no_map}, &bytes, err) < 0)
        return -1;
    out->part = TY_NEW_ARRAY(a, ty_data_part, SURVEY_MAX_ARRAYS);
    int rc = survey_members(&bytes, a, out, err);
    ty_bytes_close(&bytes);
    return rc < 0 ? ty_error_at(err, "%s", files[0].path) : 0;
}

/* A shell pattern that matches this name alone. */
static const char *survey_pattern(const char *name, ty_arena *a)
{
    char *out = ty_arena_alloc(a, 2 * strlen(name) + 1), *p = out;
    for (; *name; name++) {
        if (strchr("*?[]\\", *name))
            *p++ = '\\';
        *p++ = *name;
    }
    *p = 0;
    return out;
}

int ty_survey_files(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a, ty_data_survey *out,
                    ty_error *err)
{
    (void)src;
    if (n_files > SURVEY_MAX_ARRAYS)
        return survey_too_many(err);
    out->part = TY_NEW_ARRAY(a, ty_data_part, n_files + 1);
    for (int i = 0; i < n_files; i++) {
        const char *slash = strrchr(files[i].name, '/'), *base = slash ? slash + 1 : files[i].name;
        const char *name = ty_arena_strndup(a, base, strcspn(base, "."));
        const ty_data_part *same = survey_find(out, name);
        if (same) {
            ty_error_set(err, TY_E_DATA, "two files are called \"%s\": \"%s\" and \"%s\"", name, same->file,
                         files[i].name);
            return ty_error_help(err, "say which files hold which field: data.train.fields.%s.file", name);
        }
        out->part[out->n_parts++] = (ty_data_part){.name = name, .file = survey_pattern(files[i].name, a)};
    }
    return 0;
}

/* Pictures or sounds and their classes, or the labels of a list. */
static int survey_media(ty_data_part media, const ty_data_file *files, int n_files, ty_arena *a, ty_data_survey *out)
{
    bool has_folders = false, has_list = false;
    for (int i = 0; i < n_files; i++) {
        size_t n = strlen(files[i].name);
        has_folders = has_folders || strchr(files[i].name, '/');
        has_list = has_list || (n > 4 && strcmp(files[i].name + n - 4, ".lst") == 0);
    }
    out->part = TY_NEW_ARRAY(a, ty_data_part, 2);
    out->part[out->n_parts++] = media;
    if (has_list || has_folders)
        out->part[out->n_parts++] = (ty_data_part){.name = "label", .is_text = !has_list};
    return 0;
}

int ty_survey_images(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a,
                     ty_data_survey *out, ty_error *err)
{
    (void)src, (void)err;
    return survey_media((ty_data_part){.name = "image", .is_picture = true}, files, n_files, a, out);
}

int ty_survey_audio(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a, ty_data_survey *out,
                    ty_error *err)
{
    (void)src, (void)err;
    return survey_media((ty_data_part){.name = "audio", .is_sound = true}, files, n_files, a, out);
}

int ty_survey_mxnet(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a, ty_data_survey *out,
                    ty_error *err)
{
    (void)src, (void)files, (void)n_files, (void)err;
    out->part = TY_NEW_ARRAY(a, ty_data_part, 2);
    out->part[out->n_parts++] = (ty_data_part){.name = "image", .is_picture = true};
    out->part[out->n_parts++] = (ty_data_part){.name = "label"};
    return 0;
}

/* ---- records: what the first one has ---- */

typedef struct survey_names {
    ty_data_survey *out;
    ty_arena *a;
    const uint8_t *record; /* that is walked */
    size_t n_record;
} survey_names;

static int survey_add(survey_names *names, const char *name, size_t n, ty_error *err)
{
    const char *copy = ty_arena_strndup(names->a, name, n);
    if (names->out->n_parts == SURVEY_MAX_ARRAYS)
        return survey_too_many(err);
    if (!survey_find(names->out, copy))
        names->out->part[names->out->n_parts++].name = copy;
    return 0;
}

/* One line, as names of classes are. */
static bool survey_is_line(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] < ' ' || p[i] == 0x7f)
            return false;
    return n > 0 && n <= SURVEY_MAX_LINE && ty_utf8_fault((const char *)p, n) == NULL;
}

/* Bytes are a field if they are a picture, a sound, or a short text. */
static int survey_bytes(survey_names *names, const char *name, size_t n, const uint8_t *bytes, size_t n_bytes,
                        ty_error *err)
{
    int before = names->out->n_parts;
    bool is_picture = ty_image_has_magic(bytes, n_bytes), is_sound = ty_audio_has_magic(bytes, n_bytes);
    if (!is_picture && !is_sound && !survey_is_line(bytes, n_bytes))
        return 0;
    int rc = survey_add(names, name, n, err);
    if (names->out->n_parts > before) {
        names->out->part[before].is_picture = is_picture;
        names->out->part[before].is_sound = is_sound;
        names->out->part[before].is_text = !is_picture && !is_sound;
    }
    return rc;
}

static int survey_feature(void *ctx, const char *name, size_t n, const ty_feature *feature, ty_error *err)
{
    ty_feature_piece piece = {(const uint8_t *)"", 0};
    if (feature->kind == TY_FEATURE_ABSENT)
        return 0;
    if (feature->kind != TY_FEATURE_BYTES)
        return survey_add(ctx, name, n, err);
    return ty_feature_bytes(feature, &piece, 1) == 1 ? survey_bytes(ctx, name, n, piece.bytes, piece.n, err) : 0;
}

static int survey_tensor(void *ctx, const char *name, ty_error *err)
{
    const survey_names *names = ctx;
    ty_record_tensor t;
    if (ty_record_find(names->record, names->n_record, name, &t, NULL) == 0 && t.bytes != NULL)
        return survey_bytes(ctx, name, strlen(name), t.bytes, t.n_bytes, err);
    return survey_add(ctx, name, strlen(name), err);
}

/* The first record that can be read, where bad ones are left out. */
static int survey_frames(const ty_data_source *src, const char *path, ty_frames *frames, survey_names *names,
                         ty_error *err)
{
    ty_bad bad = {.skip = src->skip_bad, .max = src->max_bad, .quiet = true};
    ty_frame record;
    for (;;) {
        int more = ty_frames_next(frames, &record, err);
        if (more == 0 || (more < 0 && err->code != TY_E_DATA_VALUE))
            return more;
        names->out->n_parts = 0;
        names->record = record.data;
        names->n_record = record.n;
        if (more == 1)
            more = frames->how == TY_FRAMES_TFRECORD
                       ? ty_example_walk(record.data, record.n, survey_feature, names, err)
                       : ty_record_walk(record.data, record.n, survey_tensor, names, err);
        if (more >= 0)
            return 0;
        ty_error_at(err, "%s: record %lld at byte %zu", path, (long long)record.record, record.at);
        if (ty_bad_leave_out(&bad, err) < 0)
            return -1;
    }
}

static int survey_record(const ty_data_source *src, const ty_data_file *file, ty_framing framing, survey_names *names,
                         ty_error *err)
{
    ty_bytes bytes;
    if (ty_bytes_open(file->path, &(ty_bytes_options){.no_map = src->no_map}, &bytes, err) < 0)
        return -1;
    ty_frames frames = {.bytes = bytes.data, .n = bytes.n, .how = framing};
    int rc = survey_frames(src, file->path, &frames, names, err);
    ty_frames_fini(&frames);
    ty_bytes_close(&bytes);
    return rc < 0 ? ty_error_at(err, "%s", file->path) : 0;
}

int ty_survey_tfrecord(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a,
                       ty_data_survey *out, ty_error *err)
{
    (void)n_files;
    out->part = TY_NEW_ARRAY(a, ty_data_part, SURVEY_MAX_ARRAYS);
    return survey_record(src, &files[0], TY_FRAMES_TFRECORD, &(survey_names){.out = out, .a = a}, err);
}

int ty_survey_recordio(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a,
                       ty_data_survey *out, ty_error *err)
{
    (void)n_files;
    out->part = TY_NEW_ARRAY(a, ty_data_part, SURVEY_MAX_ARRAYS);
    return survey_record(src, &files[0], TY_FRAMES_RECORDIO, &(survey_names){.out = out, .a = a}, err);
}

/* What training wants of a line; ids and values must be asked for. */
int ty_survey_libsvm(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a,
                     ty_data_survey *out, ty_error *err)
{
    (void)src, (void)files, (void)n_files, (void)err;
    out->part = TY_NEW_ARRAY(a, ty_data_part, 2);
    out->part[out->n_parts++].name = "label";
    out->part[out->n_parts++].name = "features";
    return 0;
}

static int survey_text(survey_names *names, const char *name, ty_error *err)
{
    int before = names->out->n_parts;
    if (survey_add(names, name, strlen(name), err) < 0)
        return -1;
    if (names->out->n_parts > before)
        names->out->part[before].is_text = true;
    return 0;
}

/* Keys whose values are numbers or texts, by the first value of each that is not null; the others go to `odd`. */
static int survey_object(const ty_doc *root, survey_names *names, survey_names *odd, ty_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; root->kind == TY_DOC_MAP && i < root->n_items && rc == 0; i++) {
        const char *key = root->items[i].key;
        const ty_doc *v = &root->items[i];
        while (v->kind == TY_DOC_LIST && v->n_items > 0)
            v = &v->items[0];
        if (v->kind == TY_DOC_STRING)
            rc = survey_text(names, key, err);
        else if (v->kind == TY_DOC_INT || v->kind == TY_DOC_FLOAT || v->kind == TY_DOC_BOOL)
            rc = survey_add(names, key, strlen(key), err);
        else
            rc = survey_add(odd, key, strlen(key), err);
    }
    return rc;
}

/* A line that cannot be read is told where all of them are, unless it is the first. */
static int survey_objects(const ty_bytes *bytes, survey_names *names, survey_names *odd, ty_error *err)
{
    ty_frames frames = {.bytes = bytes->data, .n = bytes->n, .how = TY_FRAMES_LINES};
    ty_frame line;
    ty_doc *root;
    for (int records = 0; records < SURVEY_LOOK; records++) {
        ty_error *told = records == 0 ? err : NULL;
        int rc = ty_frames_next(&frames, &line, told);
        if (rc > 0)
            rc = ty_json_parse(names->a, "line 1", (const char *)line.data, line.n, NULL, &root, told) < 0 ? -1 : 1;
        if (rc <= 0)
            return records == 0 ? rc : 0;
        if (survey_object(root, names, odd, err) < 0)
            return -1;
    }
    return 0;
}

static const char *survey_left_out(const ty_data_survey *s, const ty_data_survey *odd, ty_arena *a)
{
    const char *text = NULL;
    for (int i = 0; i < odd->n_parts; i++)
        if (!survey_find(s, odd->part[i].name))
            text = text ? ty_arena_printf(a, "%s, %s", text, odd->part[i].name) : odd->part[i].name;
    return text;
}

int ty_survey_json(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a, ty_data_survey *out,
                   ty_error *err)
{
    ty_bytes bytes;
    (void)n_files;
    out->part = TY_NEW_ARRAY(a, ty_data_part, SURVEY_MAX_ARRAYS);
    if (ty_bytes_open(files[0].path, &(ty_bytes_options){.no_map = src->no_map}, &bytes, err) < 0)
        return -1;
    ty_data_survey odd = {.part = TY_NEW_ARRAY(a, ty_data_part, SURVEY_MAX_ARRAYS)};
    int rc = survey_objects(&bytes, &(survey_names){.out = out, .a = a}, &(survey_names){.out = &odd, .a = a}, err);
    out->left_out = survey_left_out(out, &odd, a);
    ty_bytes_close(&bytes);
    return rc < 0 ? ty_error_at(err, "%s", files[0].path) : 0;
}

/* All that a line has. */
int ty_survey_lines(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a, ty_data_survey *out,
                    ty_error *err)
{
    (void)src, (void)files, (void)n_files, (void)err;
    out->part = TY_NEW(a, ty_data_part);
    out->part[out->n_parts++] = (ty_data_part){.name = "text", .is_text = true};
    return 0;
}

/* Files that match the source's pattern, in order. */
static int survey_list(const ty_data_source *src, ty_arena *a, ty_data_file **files, int *n, ty_error *err)
{
    int n_all;
    if (ty_files_list(src->paths, src->n_paths, a, files, &n_all, err) < 0)
        return -1;
    *n = 0;
    for (int i = 0; i < n_all; i++)
        if (!src->pattern || ty_file_matches(&(*files)[i], src->pattern))
            (*files)[(*n)++] = (*files)[i];
    if (*n > 0)
        return 0;
    ty_error_set(err, TY_E_CHANNEL, "none of the %d files matches the pattern \"%s\"", n_all, src->pattern);
    return ty_error_at(err, "%s", src->paths[0]);
}

int ty_data_survey_make(const ty_data_source *src, ty_arena *a, ty_data_survey *out, ty_error *err)
{
    ty_data_file *files;
    int n_files;
    const ty_format *format = NULL;
    *out = (ty_data_survey){0};
    if (survey_list(src, a, &files, &n_files, err) < 0 || ty_format_detect(src, files, n_files, &format, err) < 0)
        return -1;
    out->format = format->name;
    return format->survey(src, files, n_files, a, out, err) < 0 ? ty_format_doubt(src, files, n_files, err) : 0;
}
