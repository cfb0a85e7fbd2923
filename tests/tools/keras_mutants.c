/* keras_mutants.c - damaged files of Keras: each is opened as a model, and some of those that are taken are written
 * again; all must be taken or refused in good order (mutants.h), whatever becomes of libhdf5 in its jail.
 *
 *     keras_mutants [-n COUNT] [-s SEED] FILE...
 *
 * Three of four archives get checksums that are right again, since nothing would be read of them otherwise. Closes with
 * "N passed, N failed, N skipped".
 */
#include "tests/tools/mutants.h"

#include "base/file.h"
#include "base/zip.h"
#include "compiler/compiler.h"

#include <zlib.h>

static char folder[] = "/tmp/ty-mutants-XXXXXX";

static void put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++, v >>= 8)
        p[i] = (uint8_t)v;
}

/* A member's checksum stands in its local header and in its directory record, whose name lies 46 bytes behind its
 * start. */
static void sign(uint8_t *b, size_t n)
{
    ty_zip z;
    ty_zip_walk walk = {0};
    ty_zip_entry e;
    uint64_t at;
    if (ty_zip_open(b, n, &z, NULL) < 0)
        return;
    while (ty_zip_next(&z, &walk, &e, NULL) == 1) {
        if (ty_zip_locate(&z, &e, &at, NULL) < 0 || e.method != 0 || e.packed_bytes != e.plain_bytes)
            continue;
        uint32_t crc = (uint32_t)crc32_z(0, b + at, (size_t)e.plain_bytes);
        put_u32(b + e.header_at + 14, crc);
        put_u32(b + ((const uint8_t *)e.name - b) - 46 + 16, crc);
    }
}

/* HDF5 is made of small numbers in 8 bytes: lengths, counts, addresses. One of them becomes another. */
static size_t change_number(const mutants_file *f, uint8_t *b, int64_t id)
{
    static const uint64_t numbers[] = {0, 1, 0xff, 0xffff, 0xffffffff, UINT64_MAX, (uint64_t)1 << 40, 0x7fffffff};
    size_t at = mutants_place(f, id, 1);
    uint64_t v = 0;
    for (size_t tries = 0; tries < 4096 && at + 8 <= f->n; tries++, at++) {
        memcpy(&v, b + at, 8);
        if (v > 0 && v < f->n)
            break;
    }
    if (at + 8 > f->n)
        return f->n;
    v = mutants_draw(id, 4, 2) ? numbers[mutants_draw(id, 5, 8)] : v + mutants_draw(id, 6, 65) - 32;
    memcpy(b + at, &v, 8);
    return f->n;
}

/* Text of a configuration: a digit or a word's letter becomes another. */
static size_t change_text(const mutants_file *f, uint8_t *b, int64_t id)
{
    static const char letters[] = "0123456789-.eE\"[]{},:xN";
    size_t at = mutants_place(f, id, 1);
    for (size_t i = 0; i < f->n && (b[at] < 0x20 || b[at] > 0x7e); i++)
        at = at + 1 < f->n ? at + 1 : 0;
    uint32_t n = 1 + mutants_draw(id, 4, 3);
    for (uint32_t i = 0; i < n && at + i < f->n; i++)
        b[at + i] = (uint8_t)letters[mutants_draw(id, 5 + i, sizeof letters - 1)];
    return f->n;
}

static const void *keep(void *ctx, const char *name, const ty_type *type)
{
    (void)ctx, (void)name, (void)type;
    return NULL;
}

static void judge(mutants_report *r, ty_error *err, const char *name)
{
    if (strstr(err->message, name)) /* where the message begins with it, it is the place */
        snprintf(err->place, sizeof err->place, "%s", name);
    mutants_judge(r, err, name);
}

static void try(const mutants_file *f, const uint8_t *bytes, size_t n, mutants_report *r)
{
    char path[128], again[128], name[32];
    ty_error err = {0};
    ty_model *m = NULL;
    bool is_zip = f->n > 4 && memcmp(f->bytes, "PK\3\4", 4) == 0;
    snprintf(name, sizeof name, "mutant%s", strrchr(f->path, '.') ? strrchr(f->path, '.') : "");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(again, sizeof again, "%s/again", folder);
    if (is_zip && r->mutant % 4)
        sign((uint8_t *)(uintptr_t)bytes, n);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(bytes, 1, n, out) != n || fclose(out) != 0)
        abort();
    if (ty_model_open(path, &m, &err) < 0)
        judge(r, &err, name);
    else if (r->mutant % 8 == 0 && ty_model_write(m, again, keep, NULL, &err) < 0)
        judge(r, &err, name);
    ty_model_free(m);
}

int main(int argc, char **argv)
{
    static mutants_change *const kinds[] = {mutants_flip_bits, mutants_cut_off,   change_number, change_number,
                                            change_text,       mutants_copy_over, change_number};
    if (!mkdtemp(folder))
        return 70;
    int rc = mutants_main(argc, argv, &(mutants_job){"keras_mutants", kinds, 7, try});
    ty_file_remove_tree(folder, NULL);
    return rc;
}
