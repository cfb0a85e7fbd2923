/* cmodel_kept.c - see cmodel_kept.h. */
#include "compiler/import/cmodel_kept.h"

#include "base/file.h"
#include "base/hash.h"
#include "compiler/import/cmodel_load.h"

#include <stdio.h>
#include <string.h>

enum { KEPT_TEXT_BYTES = 4096, KEPT_PATH_BYTES = 4096 };

static const char *after_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

bool cmodel_stands_alone(const char *source)
{
    for (const char *line = source; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *at = after_blanks(line);
        if (*at != '#')
            continue;
        at = after_blanks(at + 1);
        if (strncmp(at, "include", 7) == 0 && *after_blanks(at + 7) != '<')
            return false;
    }
    return true;
}

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

int cmodel_keep(const char *folder, const ty_buf *source, const ty_buf *object, ty_error *err)
{
    char path[KEPT_PATH_BYTES];
    uint8_t digest[TY_SHA256_BYTES];
    ty_buf text;
    ty_buf_init(&text, KEPT_TEXT_BYTES);
    int rc = describe_source(source, &text, err);
    if (rc == 0)
        rc = ty_sha256_bytes(object->data, object->len, digest, err);
    if (rc == 0)
        rc = kept_path(folder, "model.so", path, sizeof path, err);
    if (rc == 0)
        rc = ty_file_write(path, object->data, object->len, 0644, err);
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
