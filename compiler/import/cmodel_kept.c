/* cmodel_kept.c - see cmodel_kept.h. */
#include "compiler/import/cmodel_kept.h"

#include "base/file.h"
#include "base/hash.h"
#include "compiler/import/cmodel_load.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KEPT_TEXT_BYTES = 4096, KEPT_PATH_BYTES = 4096 };

/* ---- what the text says ---- */

static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Backslashes in front of the end of a line, with it: words may go on behind it. */
static int text_join_lines(const ty_buf *source, ty_buf *text)
{
    for (size_t i = 0; i < source->len; i++) {
        const char *at = source->data + i;
        size_t blanks = at[0] == '\\' ? strspn(at + 1, " \t\r") : 0;
        if (at[0] == '\\' && at[1 + blanks] == '\n')
            i += 1 + blanks;
        else
            ty_buf_addc(text, at[0]);
    }
    return text->failed ? -1 : 0;
}

/* Assembly; or the word embed where # or a comment stands before it. */
static bool text_reads_at(const char *text, const char *word, size_t n)
{
    static const char *const assembly[] = {"asm", "__asm", "__asm__"};
    for (size_t i = 0; i < sizeof assembly / sizeof *assembly; i++)
        if (n == strlen(assembly[i]) && memcmp(word, assembly[i], n) == 0)
            return true;
    if (n != 5 || memcmp(word, "embed", 5) != 0)
        return false;
    while (word > text && strchr(" \t", word[-1]))
        word--;
    return word > text && strchr("#:/", word[-1]);
}

bool cmodel_may_read_files(const ty_buf *source)
{
    ty_buf text;
    ty_buf_init(&text, source->len + 1);
    bool reads = memchr(source->data, 0, source->len) || text_join_lines(source, &text) < 0 ||
                 strstr(text.data, "<../") || strstr(text.data, "/../");
    for (size_t i = 0, n = 1; i < text.len && !reads; i += n) {
        for (n = 0; i + n < text.len && is_of_word(text.data[i + n]);)
            n++;
        reads = n > 0 && text_reads_at(text.data, text.data + i, n);
        n += n == 0;
    }
    ty_buf_fini(&text);
    return reads;
}

/* ---- files ---- */

static int kept_path(const char *folder, const char *name, char *path, size_t n, ty_error *err)
{
    if (snprintf(path, n, "%s/%s", folder, name) < (int)n)
        return 0;
    return ty_error_set(err, TY_E_LIMIT, "the path of a model's compiled code is too long: %s", folder);
}

/* What model.txt says before it comes to the object. */
static int describe_source(const ty_buf *source, ty_buf *text, ty_error *err)
{
    ty_sha256 h;
    char hex[TY_SHA256_HEX_BYTES];
    uint8_t digest[TY_SHA256_BYTES];
    if (ty_sha256_init(&h, err) < 0)
        return -1;
    ty_sha256_add(&h, source->data, source->len);
    ty_sha256_add(&h, "", 1);
    ty_sha256_add(&h, ty_cmodel_header, strlen(ty_cmodel_header));
    ty_sha256_final(&h, digest);
    ty_buf_addf(text, "trainyard model 1\nsource\t%s\n", ty_sha256_hex(digest, hex));
    return 0;
}

static void describe_object(const uint8_t digest[TY_SHA256_BYTES], ty_buf *text)
{
    char hex[TY_SHA256_HEX_BYTES];
    ty_buf_addf(text, "object\t%s\n", ty_sha256_hex(digest, hex));
}

/* Copies the object, whatever its size; digest: of its bytes. */
static int keep_object(const char *path, int object, uint8_t digest[TY_SHA256_BYTES], ty_error *err)
{
    static const size_t room = 1 << 15;
    char part[1 << 15];
    ssize_t n = 0;
    int rc = 0;
    ty_sha256 h;
    ty_file_writer w;
    if (ty_sha256_init(&h, err) < 0)
        return -1;
    if (ty_file_writer_open(&w, path, 0644, err) < 0) {
        ty_sha256_drop(&h);
        return -1;
    }
    for (off_t at = 0; rc == 0 && (n = pread(object, part, room, at)) > 0; at += n) {
        ty_sha256_add(&h, part, (size_t)n);
        rc = ty_file_writer_add(&w, part, (size_t)n, err);
    }
    if (rc == 0 && n < 0)
        rc = ty_error_errno(err, TY_E_NONE, errno, "reading a model's compiled code");
    if (rc == 0)
        rc = ty_file_writer_commit(&w, err);
    ty_file_writer_abandon(&w);
    ty_sha256_final(&h, digest);
    return rc;
}

int cmodel_keep_none(const char *folder, ty_error *err)
{
    char object[KEPT_PATH_BYTES], text[KEPT_PATH_BYTES];
    if (kept_path(folder, "model.txt", text, sizeof text, err) < 0 ||
        kept_path(folder, "model.so", object, sizeof object, err) < 0)
        return -1;
    return ty_file_remove(text, err) < 0 ? -1 : ty_file_remove(object, err);
}

int cmodel_keep(const char *folder, const ty_buf *source, int object, ty_error *err)
{
    char path[KEPT_PATH_BYTES];
    uint8_t digest[TY_SHA256_BYTES];
    ty_buf text;
    ty_buf_init(&text, KEPT_TEXT_BYTES);
    int rc = cmodel_keep_none(folder, err);
    if (rc == 0)
        rc = describe_source(source, &text, err);
    if (rc == 0)
        rc = kept_path(folder, "model.so", path, sizeof path, err);
    if (rc == 0)
        rc = keep_object(path, object, digest, err);
    if (rc == 0) {
        describe_object(digest, &text);
        snprintf(path, sizeof path, "%s/model.txt", folder); /* as long as that of model.so, and one more */
        rc = ty_file_write(path, text.data, text.len, 0644, err);
    }
    ty_buf_fini(&text);
    return rc;
}

static int kept_refuse(const char *folder, const char *why, ty_error *err)
{
    ty_error_set(err, TY_E_COMPILED, "%s", why);
    ty_error_at(err, "%s", folder);
    return ty_error_help(err, "compile it again, with this model: trainyard compile");
}

/* 0 if `found`, the text of model.txt, is what it must be. */
static int kept_check(const char *folder, const char *object, const ty_buf *source, const ty_buf *found, ty_error *err)
{
    uint8_t digest[TY_SHA256_BYTES];
    ty_buf wanted;
    ty_buf_init(&wanted, KEPT_TEXT_BYTES);
    int rc = describe_source(source, &wanted, err);
    if (rc == 0 && (found->len < wanted.len || memcmp(found->data, wanted.data, wanted.len) != 0))
        rc = kept_refuse(folder,
                         "the model in C was compiled from another source: its text or trainyard/model.h differ", err);
    if (rc == 0)
        rc = ty_sha256_file(object, digest, err);
    if (rc == 0) {
        describe_object(digest, &wanted);
        if (found->len != wanted.len || memcmp(found->data, wanted.data, wanted.len) != 0)
            rc = kept_refuse(folder, "model.so is not what was written: its SHA-256 differs", err);
    }
    ty_buf_fini(&wanted);
    return rc;
}

int cmodel_find_kept(const char *folder, const ty_buf *source, char *object, size_t n, ty_error *err)
{
    char path[KEPT_PATH_BYTES];
    ty_buf found;
    if (kept_path(folder, "model.txt", path, sizeof path, err) < 0 || kept_path(folder, "model.so", object, n, err) < 0)
        return -1;
    if (!ty_file_exists(path))
        return 0;
    ty_buf_init(&found, KEPT_TEXT_BYTES);
    int rc = ty_file_read(path, &found, err);
    if (rc == 0)
        rc = kept_check(folder, object, source, &found, err);
    ty_buf_fini(&found);
    return rc < 0 ? -1 : 1;
}
