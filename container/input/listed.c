/* listed.c - see listed.h. */
#include "container/input/listed.h"

#include "container/input/bytes.h"
#include "container/input/number.h"

#include <math.h>
#include <string.h>

enum { LIST_MAX_NUMBERS = 4096 };

static bool list_is_lst(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".lst") == 0;
}

static const char *list_folder(const char *name, ty_arena *a)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? ty_arena_strndup(a, name, (size_t)(slash - name)) : "";
}

/* Neighbours share their folder's name. */
static void list_of_folders(const ty_data_file *files, int n_files, ty_arena *a, ty_listed *out)
{
    const char *folder = NULL;
    *out = (ty_listed){.n = n_files};
    out->path = TY_NEW_ARRAY(a, const char *, n_files + 1);
    out->label = TY_NEW_ARRAY(a, const char *, n_files + 1);
    for (int i = 0; i < n_files; i++) {
        const char *slash = strrchr(files[i].name, '/');
        size_t n = slash != NULL ? (size_t)(slash - files[i].name) : 0;
        if (folder == NULL || strlen(folder) != n || memcmp(folder, files[i].name, n) != 0)
            folder = list_folder(files[i].name, a);
        out->path[i] = files[i].path;
        out->label[i] = folder;
    }
}

/* ---- .lst ---- */

/* A path that goes up, or begins at the top, would read files that are no data of this channel. */
static bool list_leaves(const char *p, size_t n)
{
    if (n == 0 || p[0] == '/' || memchr(p, 0, n) != NULL)
        return true;
    for (size_t at = 0; at < n;) {
        const char *slash = memchr(p + at, '/', n - at);
        size_t part = slash != NULL ? (size_t)(slash - p) - at : n - at;
        if (part == 2 && p[at] == '.' && p[at + 1] == '.')
            return true;
        at += part + 1;
    }
    return false;
}

static int list_number(const char *p, const char *end, double *out)
{
    return ty_number_scan(p, end, out) == end && end > p && isfinite(*out) ? 0 : -1;
}

/* One line: a number, one label or more, a path, parted by tabs. */
static int list_line(const char *p, const char *end, const char *root, ty_arena *a, ty_listed *out, ty_error *err)
{
    double *number = out->number + out->n * out->n_numbers, index;
    const char *tab = memchr(p, '\t', (size_t)(end - p));
    if (tab == NULL || list_number(p, tab, &index) < 0)
        return ty_error_set(err, TY_E_DATA_VALUE, "expected a number, labels and a path, parted by tabs");
    for (int i = 0; i < out->n_numbers; i++) {
        p = tab + 1;
        tab = memchr(p, '\t', (size_t)(end - p));
        if (tab == NULL || list_number(p, tab, &number[i]) < 0)
            return ty_error_set(err, TY_E_DATA_VALUE, "expected %d label%s in front of the path, as in the first line",
                                out->n_numbers, out->n_numbers == 1 ? "" : "s");
        out->is_whole = out->is_whole && number[i] == floor(number[i]) && fabs(number[i]) < 0x1p53;
    }
    p = tab + 1;
    if (memchr(p, '\t', (size_t)(end - p)) != NULL)
        return ty_error_set(err, TY_E_DATA_VALUE, "expected %d label%s in front of the path, as in the first line",
                            out->n_numbers, out->n_numbers == 1 ? "" : "s");
    if (list_leaves(p, (size_t)(end - p)))
        return ty_error_set(err, TY_E_DATA_VALUE, "the path \"%.*s\" leaves the folder of the list", (int)(end - p), p);
    out->path[out->n] = ty_arena_printf(a, "%s%.*s", root, (int)(end - p), p);
    return 0;
}

static int64_t list_count(const char *p, const char *end, char what)
{
    int64_t n = 0;
    for (; p < end && (p = memchr(p, what, (size_t)(end - p))) != NULL; p++)
        n++;
    return n;
}

static int list_parse(const char *p, const char *end, const char *root, ty_arena *a, ty_listed *out, ty_error *err)
{
    int64_t lines = list_count(p, end, '\n') + 1, line = 1;
    const char *first = memchr(p, '\n', (size_t)(end - p));
    int64_t tabs = list_count(p, first != NULL ? first : end, '\t');
    if (tabs < 2 || tabs > LIST_MAX_NUMBERS)
        return ty_error_set(err, TY_E_DATA_VALUE,
                            "the first line has %lld tabs, expected a number, one label or more, "
                            "and a path, parted by tabs",
                            (long long)tabs);
    out->n_numbers = (int)tabs - 1;
    if (lines > INT64_MAX / 16 / (tabs + 1))
        return ty_error_set(err, TY_E_LIMIT, "too many lines");
    int64_t *numbers = TY_NEW_ARRAY(a, int64_t, lines);
    out->path = TY_NEW_ARRAY(a, const char *, lines);
    out->number = TY_NEW_ARRAY(a, double, lines * out->n_numbers);
    out->line = numbers;
    for (; p < end; line++) {
        const char *lf = memchr(p, '\n', (size_t)(end - p)), *last = lf != NULL ? lf : end;
        const char *next = lf != NULL ? lf + 1 : end;
        last -= last > p && last[-1] == '\r';
        if (last > p) {
            if (list_line(p, last, root, a, out, err) < 0)
                return ty_error_at(err, "%s:%lld", out->lst, (long long)line);
            numbers[out->n++] = line;
        }
        p = next;
    }
    return 0;
}

static int list_of_lst(const ty_data_file *file, ty_arena *a, ty_listed *out, ty_error *err)
{
    ty_bytes bytes;
    *out = (ty_listed){.lst = file->path, .is_whole = true};
    if (ty_bytes_open(file->path, NULL, &bytes, err) < 0)
        return -1;
    const char *slash = strrchr(file->path, '/'), *text = (const char *)bytes.data;
    const char *root = slash != NULL ? ty_arena_strndup(a, file->path, (size_t)(slash - file->path) + 1) : "";
    int rc = list_parse(text, text + bytes.n, root, a, out, err);
    ty_bytes_close(&bytes);
    return rc < 0 ? ty_error_at(err, "%s", file->path) : 0;
}

int ty_listed_make(const ty_data_file *files, int n_files, ty_arena *a, ty_listed *out, ty_error *err)
{
    const ty_data_file *lst = NULL;
    for (int i = 0; i < n_files; i++) {
        if (!list_is_lst(files[i].name))
            continue;
        if (lst != NULL) {
            ty_error_set(err, TY_E_DATA, "two lists of files: \"%s\" and \"%s\"", lst->name, files[i].name);
            return ty_error_help(err, "say which is meant: files: \"%s\"", lst->name);
        }
        lst = &files[i];
    }
    if (lst != NULL)
        return list_of_lst(lst, a, out, err);
    list_of_folders(files, n_files, a, out);
    return 0;
}
