/* format.c - the table of formats and detection. */
#include "container/input/format.h"

#include "base/hash.h"
#include "container/input/arrow/arrow.h"
#include "container/input/audio/audio.h"
#include "container/input/bytes.h"
#include "container/input/foreign.h"
#include "container/input/image/image.h"
#include "container/input/number.h"
#include "container/input/parquet/parquet.h"

#include <endian.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool format_npy_magic(const uint8_t *p, size_t n)
{
    return n >= 6 && memcmp(p, "\x93NUMPY", 6) == 0;
}

static bool format_npz_magic(const uint8_t *p, size_t n)
{
    return n >= 4 && (memcmp(p, "PK\x03\x04", 4) == 0 || memcmp(p, "PK\x05\x06", 4) == 0);
}

static bool format_idx_magic(const uint8_t *p, size_t n)
{
    return n >= 4 && p[0] == 0 && p[1] == 0 && p[2] >= 8 && p[2] <= 14 && p[2] != 10 && p[3] >= 1 && p[3] <= 8;
}

/* A length whose checksum follows it. */
static bool format_tfrecord_magic(const uint8_t *p, size_t n)
{
    uint32_t found;
    if (n < 12)
        return false;
    memcpy(&found, p + 8, sizeof found);
    return ty_crc32c_mask(ty_crc32c(0, p, 8)) == le32toh(found);
}

/* A RecordIO record with MXNet's header of 24 bytes, its labels and a picture. */
static bool format_mxnet_magic(const uint8_t *p, size_t n)
{
    uint32_t flag;
    if (n < 32 || memcmp(p, "\x0a\x23\xd7\xce", 4) != 0)
        return false;
    memcpy(&flag, p + 8, sizeof flag);
    size_t at = 32 + 4 * (size_t)le32toh(flag);
    return at < n && ty_image_has_magic(p + at, n - at);
}

static bool format_recordio_magic(const uint8_t *p, size_t n)
{
    return n >= 8 && memcmp(p, "\x0a\x23\xd7\xce", 4) == 0 && !format_mxnet_magic(p, n);
}

static bool format_image_magic(const uint8_t *p, size_t n)
{
    return ty_image_has_magic(p, n);
}

static bool format_audio_magic(const uint8_t *p, size_t n)
{
    return ty_audio_has_magic(p, n);
}

static bool format_parquet_magic(const uint8_t *p, size_t n)
{
    return parquet_has_magic(p, n);
}

static bool format_arrow_magic(const uint8_t *p, size_t n)
{
    return arrow_has_magic(p, n);
}

/* Extensions and content types are words parted by single spaces, with one in front and one behind. */
static const ty_format format_rows[] = {
    {"csv", " csv tsv ", " text/csv text/tab-separated-values ", NULL, ty_dataset_open_csv, ty_survey_csv, true, false,
     false, true},
    {"npy", " npy ", " application/x-npy ", format_npy_magic, ty_dataset_open_npy, ty_survey_files, false, false, false,
     false},
    {"npz", " npz ", " application/x-npz ", format_npz_magic, ty_dataset_open_npz, ty_survey_npz, false, false, false,
     false},
    {"idx", " idx idx1 idx2 idx3 idx4 idx1-ubyte idx3-ubyte ", " application/x-idx ", format_idx_magic,
     ty_dataset_open_idx, ty_survey_files, false, false, false, false},
    {"tfrecord", " tfrecord tfrecords ", " application/x-tfrecord ", format_tfrecord_magic, ty_dataset_open_tfrecord,
     ty_survey_tfrecord, true, true, true, true},
    {"recordio", " pbr recordio ", " application/x-recordio-protobuf application/x-recordio ", format_recordio_magic,
     ty_dataset_open_recordio, ty_survey_recordio, true, true, true, false},
    {"mxnet", " ", " application/x-mxnet ", format_mxnet_magic, ty_dataset_open_mxnet, ty_survey_mxnet, true, true,
     false, false},
    {"libsvm", " libsvm svm svmlight ", " text/libsvm text/x-libsvm ", NULL, ty_dataset_open_libsvm, ty_survey_libsvm,
     true, false, false, false},
    {"jsonlines", " jsonl ndjson ", " application/jsonlines application/x-ndjson ", NULL, ty_dataset_open_json,
     ty_survey_json, true, false, false, true},
    {"text", " ", " text/plain ", NULL, ty_dataset_open_text, ty_survey_windows, false, false, false, false},
    {"lines", " ", " ", NULL, ty_dataset_open_lines, ty_survey_lines, true, false, false, false},
    {"tokens", " tokens ", " application/x-tokens ", NULL, ty_dataset_open_tokens, ty_survey_windows, false, false,
     false, false},
    {"images", " jpg jpeg png bmp pgm ppm pnm lst ", " application/x-image image/jpeg image/png ", format_image_magic,
     ty_dataset_open_images, ty_survey_images, true, true, false, false},
    {"parquet", " parquet parq ", " application/x-parquet application/vnd.apache.parquet ", format_parquet_magic,
     ty_dataset_open_parquet, ty_survey_parquet, true, true, true, true},
    {"arrow", " arrow feather ", " application/vnd.apache.arrow.file application/vnd.apache.arrow.stream ",
     format_arrow_magic, ty_dataset_open_parquet, ty_survey_parquet, true, true, true, true},
    {"audio", " wav flac ogg oga opus mp3 aif aiff aifc au ",
     " application/x-audio audio/wav audio/x-wav audio/flac audio/mpeg audio/ogg ", format_audio_magic,
     ty_dataset_open_audio, ty_survey_audio, true, false, true, false},
};
#define FORMAT_N_ROWS ((int)(sizeof format_rows / sizeof format_rows[0]))

const ty_format *ty_format_row(int i)
{
    return i >= 0 && i < FORMAT_N_ROWS ? &format_rows[i] : NULL;
}

const char *ty_format_names(char *out, size_t n)
{
    size_t used = 0;
    for (int i = 0; i < FORMAT_N_ROWS && used < n; i++)
        used += (size_t)snprintf(out + used, n - used, "%s%s", i ? ", " : "", format_rows[i].name);
    return out;
}

/* Whether the word [p, p + n) stands in a list of words, without regard to case. */
static bool format_has_word(const char *list, const char *p, size_t n)
{
    for (const char *at = list; n > 0 && at[1] != 0; at = strchr(at + 1, ' '))
        if (strncasecmp(at + 1, p, n) == 0 && at[n + 1] == ' ')
            return true;
    return false;
}

static const ty_format *format_by_name(const char *name)
{
    for (int i = 0; i < FORMAT_N_ROWS; i++)
        if (strcasecmp(format_rows[i].name, name) == 0)
            return &format_rows[i];
    return NULL;
}

/* "text/csv; label_size=0" counts as text/csv. */
static const ty_format *format_by_content_type(const char *type)
{
    size_t n = type != NULL ? strcspn(type, "; \t") : 0;
    for (int i = 0; i < FORMAT_N_ROWS; i++)
        if (format_has_word(format_rows[i].content_types, type, n))
            return &format_rows[i];
    return NULL;
}

int ty_content_label_size(const char *type, int64_t *out, ty_error *err)
{
    static const char key[] = "label_size=";
    *out = -1;
    for (const char *p = type ? strchr(type, ';') : NULL; p; p = strchr(p, ';')) {
        p += 1 + strspn(p + 1, " \t");
        if (strncasecmp(p, key, sizeof key - 1) != 0)
            continue;
        p += sizeof key - 1;
        p += *p == '"';
        size_t digits = strspn(p, "0123456789");
        const char *rest = p + digits + (p[digits] == '"');
        if (digits == 0 || digits > 7 || !strchr("; \t", *rest))
            return ty_error_set(err, TY_E_CONFIG, "content type \"%.100s\": label_size: expected a number of columns",
                                type);
        *out = strtoll(p, NULL, 10);
        return 0;
    }
    return 0;
}

/* application/x-recordio is what MXNet's records of pictures are called too: the first file tells. */
static const ty_format *format_of_recordio(const ty_format *named, const char *type, const ty_data_file *files, int n)
{
    static const char both[] = "application/x-recordio";
    if (named == NULL || strncasecmp(type, both, sizeof both - 1) != 0 || type[sizeof both - 1] == '-' || n == 0)
        return named;
    uint8_t head[TY_FORMAT_HEAD_BYTES];
    return format_mxnet_magic(head, ty_bytes_head(files[0].path, head, sizeof head)) ? format_by_name("mxnet") : named;
}

/* The last extension, or the one before it if the last says how the file is compressed. MNIST's own names end in
 * "-idx3-ubyte". */
static const ty_format *format_by_extension(const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash != NULL ? slash + 1 : name;
    size_t n = strlen(base) - ty_packing_suffix(base);
    size_t start = n;
    while (start > 0 && base[start - 1] != '.')
        start--;
    for (int i = 0; start > 0 && i < FORMAT_N_ROWS; i++)
        if (format_has_word(format_rows[i].extensions, base + start, n - start))
            return &format_rows[i];
    return NULL;
}

static const ty_format *format_by_magic(const uint8_t *head, size_t n)
{
    for (int i = 0; i < FORMAT_N_ROWS; i++)
        if (format_rows[i].has_magic != NULL && format_rows[i].has_magic(head, n))
            return &format_rows[i];
    return NULL;
}

/* Whether the first line that is no comment goes on with index:value behind its label (and its qid). */
static bool format_is_libsvm(const char *p, const char *end)
{
    const char *word = p;
    for (int i = 0; word < end && *word != '\n'; i++) {
        const char *after = word;
        while (after < end && !strchr(" \t\r\n", *after))
            after++;
        size_t digits = 0;
        while (word + digits < after && word[digits] >= '0' && word[digits] <= '9')
            digits++;
        bool is_qid = i == 1 && after - word > 4 && memcmp(word, "qid:", 4) == 0;
        if (i > 0 && !is_qid)
            return digits > 0 && word + digits < after && word[digits] == ':';
        for (word = after; word < end && (*word == ' ' || *word == '\t' || *word == '\r');)
            word++;
    }
    return false;
}

/* What text without a telling name is. */
static const char *format_of_text(const char *p, size_t n)
{
    const char *end = p + n;
    for (;;) {
        while (p < end && strchr(" \t\r\n", *p))
            p++;
        const char *line = p < end && *p == '#' ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        if (!line)
            break;
        p = line;
    }
    return p < end && *p == '{' ? "jsonlines" : format_is_libsvm(p, end) ? "libsvm" : "csv";
}

/* A first line with a separator in it, and a number that is all of a cell. */
static bool format_is_table(const char *p, const char *end)
{
    bool has_number = false;
    int64_t n_cells = 0;
    const char *line_end = memchr(p, '\n', (size_t)(end - p));
    for (end = line_end ? line_end : end; p <= end; n_cells++) {
        const char *after = p;
        double v;
        while (after < end && !strchr(",;\t\r", *after))
            after++;
        has_number |= after > p && ty_number_scan(p, after, &v) == after;
        p = after + 1;
    }
    return has_number && n_cells > 1;
}

const ty_format *ty_format_of_head(const uint8_t *head, size_t n)
{
    const ty_format *found = NULL;
    for (int i = 0; i < FORMAT_N_ROWS; i++) {
        if (!format_rows[i].has_magic || !format_rows[i].has_magic(head, n))
            continue;
        if (found)
            return NULL;
        found = &format_rows[i];
    }
    if (found || n == 0 || memchr(head, 0, n))
        return found;
    const char *text = format_of_text((const char *)head, n);
    if (strcmp(text, "csv") == 0 && !format_is_table((const char *)head, (const char *)head + n))
        return NULL;
    return format_by_name(text);
}

static int format_of_file(const ty_data_file *file, bool look_inside, const ty_format **out, ty_error *err)
{
    const ty_format *named = format_by_extension(file->name);
    *out = named;
    if (named != NULL && !look_inside)
        return 0;
    uint8_t head[TY_FORMAT_HEAD_BYTES];
    size_t n = ty_bytes_head(file->path, head, sizeof head);
    const ty_format *seen = format_by_magic(head, n);
    if (named != NULL && seen != NULL && seen != named) {
        ty_error_set(err, TY_E_DATA, "the file is called %s, but its first bytes are those of %s", named->name,
                     seen->name);
        ty_error_at(err, "%s", file->path);
        return ty_error_help(err, "rename the file, or say format: %s in the recipe", seen->name);
    }
    if (named == NULL && seen == NULL && n > 0 && memchr(head, 0, n) == NULL)
        seen = format_by_name(format_of_text((const char *)head, n));
    *out = named != NULL ? named : seen;
    if (*out != NULL)
        return 0;
    const ty_foreign *foreign = ty_foreign_find(head, n);
    if (foreign) {
        ty_error_set(err, TY_E_DATA, "the file is %s, which is not read", foreign->what);
        ty_error_at(err, "%s", file->path);
        return ty_error_help(err, "%s, or leave the file out with files:", foreign->instead);
    }
    ty_error_set(err, TY_E_DATA, "neither the name nor the first bytes tell the file's format");
    ty_error_at(err, "%s", file->path);
    char names[128];
    return ty_error_help(
        err, "say format: in the recipe (%s), or leave the file out with files:", ty_format_names(names, sizeof names));
}

const ty_format *ty_format_of_name(const char *name)
{
    return format_by_extension(name);
}

/* A file beside others that nothing but being text tells, such as a README: the pattern that the others match. */
static int format_refuse_two(const ty_data_file *a, const ty_format *first, const ty_data_file *b,
                             const ty_format *second, ty_error *err)
{
    const ty_data_file *kept = strcmp(first->name, "csv") == 0 && !format_by_extension(a->name) ? b : a;
    const char *dot = strrchr(kept->name, '.'), *slash = strrchr(kept->name, '/');
    ty_error_set(err, TY_E_DATA, "files of two formats: \"%s\" is %s, \"%s\" is %s", a->name, first->name, b->name,
                 second->name);
    if (dot && (!slash || dot > slash))
        return ty_error_help(err, "choose with a pattern, files: \"*%s\" (on a command line --files)", dot);
    return ty_error_help(err, "choose with a pattern, files: \"*.%s\" (on a command line --files)", first->name);
}

/* Windows are of text or of tokens, whatever text looks like. */
static const ty_format *format_of_windows(const ty_data_file *files, int n_files)
{
    static const char *const endings[] = {".bin", ".tokens", ".npy"};
    bool all = true;
    for (int i = 0; i < n_files; i++) {
        bool one = false;
        for (size_t k = 0; k < sizeof endings / sizeof endings[0]; k++) {
            size_t n = strlen(files[i].name), m = strlen(endings[k]);
            one |= n > m && strcasecmp(files[i].name + n - m, endings[k]) == 0;
        }
        all &= one;
    }
    return format_by_name(all ? "tokens" : "text");
}

int ty_format_detect(const ty_data_source *src, const ty_data_file *files, int n_files, const ty_format **out,
                     ty_error *err)
{
    if (src->format != NULL && src->format[0] != 0) {
        *out = format_by_name(src->format);
        if (*out == NULL) {
            ty_error_set(err, TY_E_CONFIG, "unknown data format \"%s\"", src->format);
            char names[128];
            return ty_error_help(err, "known formats: %s", ty_format_names(names, sizeof names));
        }
        return 0;
    }
    *out = src->windows.length > 0 ? format_of_windows(files, n_files) : format_by_content_type(src->content_type);
    if (src->windows.length <= 0)
        *out = format_of_recordio(*out, src->content_type, files, n_files);
    if (*out != NULL)
        return 0;
    for (int i = 0; i < n_files; i++) {
        const ty_format *one;
        if (format_of_file(&files[i], i == 0, &one, err) < 0)
            return -1;
        if (*out != NULL && one != *out)
            return format_refuse_two(&files[0], *out, &files[i], one, err);
        *out = one;
    }
    return 0;
}

int ty_format_doubt(const ty_data_source *src, const ty_data_file *files, int n_files, ty_error *err)
{
    bool is_named = (src->format && src->format[0]) || src->windows.length > 0 ||
                    format_by_content_type(src->content_type) || n_files == 0 || format_by_extension(files[0].name);
    uint8_t head[TY_FORMAT_HEAD_BYTES];
    size_t n = is_named || !err || err->code != TY_E_DATA ? 0 : ty_bytes_head(files[0].path, head, sizeof head);
    if (n == 0 || format_by_magic(head, n) || memchr(head, 0, n) ||
        strcmp(format_of_text((const char *)head, n), "csv") != 0)
        return -1;
    return ty_error_detail(err, "it was taken for csv, as any text that nothing says more of: if it is no table, say "
                                "format: lines or text");
}

bool ty_format_is_columns(const char *name)
{
    return strcmp(name, "parquet") == 0 || strcmp(name, "arrow") == 0;
}
