/* data_mutants.c - damaged data files: npy, npz, csv, IDX and safetensors are opened and read whole, as training and
 * loading of weights do it, and must be taken or refused in good order (mutants.h).
 *
 *     data_mutants [-n COUNT] [-s SEED] FILE...
 *
 * The extension says what a file is. CSV files of tests/fuzz/corpus have a byte in front that is not part of them.
 * Closes with "N passed, N failed, N skipped".
 */
#define _GNU_SOURCE /* memmem */
#include "tests/tools/mutants.h"

#include "base/file.h"
#include "container/input/dataset.h"
#include "base/safetensors.h"

#include <ctype.h>

enum { MAX_SAMPLES = 1000, MAX_ROW_BYTES = 1 << 20 };

static char folder[] = "/tmp/ty-mutants-XXXXXX";

/* ---- mutations of lengths -----------------------------------------------------------------------------------------
 */

/* A number of 1, 2, 4 or 8 bytes, either end first, becomes another: header lengths, dims, counts and offsets of binary
 * formats are such. */
static size_t change_number(const mutants_file *f, uint8_t *b, int64_t id)
{
    size_t at = mutants_place(f, id, 1), width = (size_t)1 << mutants_draw(id, 3, 4);
    bool big = mutants_draw(id, 4, 2);
    uint64_t now = 0;
    if (at + width > f->n)
        return f->n;
    for (size_t i = 0; i < width; i++)
        now |= (uint64_t)b[at + (big ? width - 1 - i : i)] << 8 * i;
    const uint64_t others[] = {0,          1,         now + 1,    now - 1,   now * 2,    f->n,
                               f->n + 1,   INT8_MAX,  UINT8_MAX,  INT16_MAX, UINT16_MAX, INT32_MAX,
                               UINT32_MAX, INT64_MAX, UINT64_MAX, 1 << 20,   1ull << 40, 1ull << 62};
    now = others[mutants_draw(id, 5, sizeof others / sizeof *others)];
    for (size_t i = 0; i < width; i++)
        b[at + (big ? width - 1 - i : i)] = (uint8_t)(now >> 8 * i);
    return f->n;
}

/* The next number in text becomes another of as many digits: shapes of npy, offsets of safetensors, values of CSV. */
static size_t change_digits(const mutants_file *f, uint8_t *b, int64_t id)
{
    static const char digits[] = "0123456789-.e";
    size_t at = mutants_place(f, id, 1);
    while (at < f->n && !isdigit(b[at]))
        at++;
    for (uint32_t i = 0; at < f->n && isdigit(b[at]); at++, i++)
        b[at] = (uint8_t)digits[mutants_draw(id, 10 + i, mutants_draw(id, 4, 4) ? 10 : sizeof digits - 1)];
    return f->n;
}

/* ---- readers ------------------------------------------------------------------------------------------------------
 */

static const char *extension(const mutants_file *f)
{
    const char *dot = strrchr(f->path, '.'), *slash = strrchr(f->path, '/');
    return dot && dot > slash && strncmp(dot, ".idx", 4) != 0 ? dot + 1 : dot && dot > slash ? "idx" : "safetensors";
}

static void read_dataset(const ty_dataset *ds, mutants_report *r)
{
    char place[400];
    ty_error err = {0};
    for (int f = 0; f < ds->n_fields; f++) {
        void *row = ds->field[f].row_bytes <= MAX_ROW_BYTES ? malloc(ds->field[f].row_bytes + 1) : NULL;
        for (int64_t i = 0; row && i < ds->n_samples && i < MAX_SAMPLES; i++)
            if (ty_dataset_read(ds, f, &i, 1, row, &err) < 0)
                mutants_judge(r, &err, "mutant.");
            else if (!strstr(ty_dataset_place(ds, f, i, place, sizeof place), "mutant."))
                r->is_bad = true, snprintf(r->reason, sizeof r->reason, "a sample without place: \"%.100s\"", place);
        free(row);
    }
}

/* What is declared varies: columns, types, what stands for a missing value. */
static void open_dataset(const mutants_file *f, const char *path, const char *format, int64_t id, mutants_report *r)
{
    static const char *const columns[] = {"0--1", "0", "-1,0", "1-2"};
    bool csv = strcmp(format, "csv") == 0;
    ty_field field[2] = {ty_field_make("x"), ty_field_make("y")};
    field[0].columns = csv ? columns[mutants_draw(id, 100, 4)] : NULL;
    field[1].columns = csv ? "0" : NULL;
    field[1].dtype_given = csv;
    field[1].dtype = (ty_dtype)mutants_draw(id, 101, TY_N_DTYPES);
    field[1].missing_given = csv && mutants_draw(id, 102, 2);
    bool two = csv || memmem(f->bytes, f->n, "y.npy", 5);
    ty_data_source src = {.paths = &path, .n_paths = 1, .format = format, .fields = field, .n_fields = two ? 2 : 1};
    src.no_map = mutants_draw(id, 103, 2);
    ty_dataset *ds;
    ty_error err = {0};
    if (ty_dataset_open(&src, &ds, &err) < 0) {
        mutants_judge(r, &err, "mutant.");
        return;
    }
    read_dataset(ds, r);
    ty_dataset_close(ds);
}

static void open_safetensors(const char *path, mutants_report *r)
{
    ty_safetensors s;
    ty_error err = {0};
    volatile unsigned sum = 0;
    if (ty_safetensors_open(path, &s, &err) < 0) {
        mutants_judge(r, &err, "mutant.");
        return;
    }
    for (size_t i = 0; i < s.n_entries; i++)
        for (size_t k = 0; k < s.entries[i].n_bytes; k++)
            sum += ((const uint8_t *)s.entries[i].data)[k];
    ty_safetensors_close(&s);
}

static void try(const mutants_file *f, const uint8_t *bytes, size_t n, mutants_report *r)
{
    char path[64];
    const char *format = extension(f);
    size_t skip = strcmp(format, "csv") == 0 && strstr(f->path, "fuzz/corpus") && n > 0;
    snprintf(path, sizeof path, "%s/mutant.%s", folder, format);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(bytes + skip, 1, n - skip, out) != n - skip || fclose(out) != 0)
        abort();
    if (strcmp(format, "safetensors") == 0)
        open_safetensors(path, r);
    else
        open_dataset(f, path, format, r->mutant, r);
}

int main(int argc, char **argv)
{
    static mutants_change *const kinds[] = {mutants_flip_bits, mutants_cut_off, mutants_copy_over, change_number,
                                            change_digits};
    if (!mkdtemp(folder))
        return 73;
    int rc = mutants_main(argc, argv, &(mutants_job){"data_mutants", kinds, 5, try});
    ty_file_remove_tree(folder, NULL);
    return rc;
}
