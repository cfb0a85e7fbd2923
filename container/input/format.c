/* format.c - the table of formats and detection. */
#include "container/input/format.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define FORMAT_HEAD_BYTES 512

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

/* Extensions and content types are words parted by single spaces, with one in front and one behind. */
static const ty_format format_rows[] = {
    {"csv", " csv tsv ", " text/csv text/tab-separated-values ", NULL, ty_dataset_open_csv},
    {"npy", " npy ", " application/x-npy ", format_npy_magic, ty_dataset_open_npy},
    {"npz", " npz ", " application/x-npz ", format_npz_magic, ty_dataset_open_npz},
    {"idx", " idx idx1 idx2 idx3 idx4 idx1-ubyte idx3-ubyte ", " application/x-idx ", format_idx_magic,
     ty_dataset_open_idx},
};
#define FORMAT_N_ROWS ((int)(sizeof format_rows / sizeof format_rows[0]))

const ty_format *ty_format_row(int i)
{
    return i >= 0 && i < FORMAT_N_ROWS ? &format_rows[i] : NULL;
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

/* The last extension, or the one before it if the last is gz. MNIST's own names end in "-idx3-ubyte". */
static const ty_format *format_by_extension(const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash != NULL ? slash + 1 : name;
    size_t n = strlen(base);
    if (n > 3 && strcasecmp(base + n - 3, ".gz") == 0)
        n -= 3;
    size_t start = n;
    while (start > 0 && base[start - 1] != '.')
        start--;
    for (int i = 0; start > 0 && i < FORMAT_N_ROWS; i++)
        if (format_has_word(format_rows[i].extensions, base + start, n - start))
            return &format_rows[i];
    return NULL;
}

/* The first bytes, behind gzip if there is any; a file that cannot be read has none, and fails where it is opened. */
static size_t format_head(const char *path, uint8_t *head)
{
    gzFile f = gzopen(path, "rbe");
    if (f == NULL)
        return 0;
    int n = gzread(f, head, FORMAT_HEAD_BYTES);
    gzclose(f);
    return n > 0 ? (size_t)n : 0;
}

static const ty_format *format_by_magic(const uint8_t *head, size_t n)
{
    for (int i = 0; i < FORMAT_N_ROWS; i++)
        if (format_rows[i].has_magic != NULL && format_rows[i].has_magic(head, n))
            return &format_rows[i];
    return NULL;
}

static int format_of_file(const ty_data_file *file, bool look_inside, const ty_format **out, ty_error *err)
{
    const ty_format *named = format_by_extension(file->name);
    *out = named;
    if (named != NULL && !look_inside)
        return 0;
    uint8_t head[FORMAT_HEAD_BYTES];
    size_t n = format_head(file->path, head);
    const ty_format *seen = format_by_magic(head, n);
    if (named != NULL && seen != NULL && seen != named) {
        ty_error_set(err, TY_E_DATA, "the file is called %s, but its first bytes are those of %s", named->name,
                     seen->name);
        ty_error_at(err, "%s", file->path);
        return ty_error_help(err, "rename the file, or say format: %s in the recipe", seen->name);
    }
    if (named == NULL && seen == NULL && n > 0 && memchr(head, 0, n) == NULL)
        seen = format_by_name("csv");
    *out = named != NULL ? named : seen;
    if (*out != NULL)
        return 0;
    ty_error_set(err, TY_E_DATA, "neither the name nor the first bytes tell the file's format");
    ty_error_at(err, "%s", file->path);
    return ty_error_help(err, "say format: csv, npy, npz or idx in the recipe, or leave the file out with files:");
}

int ty_format_detect(const ty_data_source *src, const ty_data_file *files, int n_files, const ty_format **out,
                     ty_error *err)
{
    if (src->format != NULL && src->format[0] != 0) {
        *out = format_by_name(src->format);
        if (*out == NULL) {
            ty_error_set(err, TY_E_CONFIG, "unknown data format \"%s\"", src->format);
            return ty_error_help(err, "known formats: csv, npy, npz, idx");
        }
        return 0;
    }
    *out = format_by_content_type(src->content_type);
    if (*out != NULL)
        return 0;
    for (int i = 0; i < n_files; i++) {
        const ty_format *one;
        if (format_of_file(&files[i], i == 0, &one, err) < 0)
            return -1;
        if (*out != NULL && one != *out) {
            ty_error_set(err, TY_E_DATA, "files of two formats: \"%s\" is %s, \"%s\" is %s", files[0].name,
                         (*out)->name, files[i].name, one->name);
            return ty_error_help(err, "choose with a pattern, files: \"*.%s\", or say format:", (*out)->name);
        }
        *out = one;
    }
    return 0;
}
