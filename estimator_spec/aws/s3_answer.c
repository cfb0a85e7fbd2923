/* s3_answer.c - what S3 answers, read from XML and believed only as far as it can be true. */
#define _GNU_SOURCE
#include "estimator_spec/aws/s3_parts.h"
#include "estimator_spec/aws/xml.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKEN_BYTES = 4096 };

static int refuse(ty_error *err, const char *operation, const char *words, const char *text)
{
    return ty_error_set(err, TY_E_SERVICE, "S3 %s: an answer that cannot be: %s%s%.100s%s", operation, words,
                        *text ? " \"" : "", text, *text ? "\"" : "");
}

/* S3 says ...Result; servers that were made from its model say ...Response. */
static bool is_called(const char *found, const char *stem)
{
    size_t n = strlen(stem);
    return strncmp(found, stem, n) == 0 && (strcmp(found + n, "Result") == 0 || strcmp(found + n, "Response") == 0);
}

/* The root, which must have that name. */
static int open_answer(const char *operation, const char *stem, const char *text, size_t len, ty_arena *arena,
                       ty_xml **root, ty_error *err)
{
    if (ty_xml_parse(arena, "answer", text, len, root, err) < 0) {
        if (err)
            err->code = TY_E_SERVICE;
        return ty_error_wrap(err, "S3 %s", operation);
    }
    if (!is_called((*root)->name, stem))
        return refuse(err, operation, "it is called", (*root)->name);
    return 0;
}

/* A number of digits alone, up to `most`. */
static bool read_number(const char *text, uint64_t most, uint64_t *out)
{
    size_t n = strlen(text);
    if (n == 0 || n > 19 || strspn(text, "0123456789") != n)
        return false;
    *out = strtoull(text, NULL, 10);
    return *out <= most;
}

/* Copies an ETag; one in an answer has a dozen to a hundred bytes, and goes back into a header or XML. */
static bool read_etag(const char *text, char out[128])
{
    size_t n = strlen(text);
    for (const char *c = text; *c; c++)
        if (*c < ' ' || *c > '~' || *c == '<' || *c == '&')
            return false;
    if (n >= 128)
        return false;
    memcpy(out, text, n + 1);
    return true;
}

static int hex_digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* A key as encoding-type=url has it: "+" for a space, %XX for most other bytes. NULL: no key can be like this. */
static const char *decode_key(const char *text, ty_arena *arena)
{
    char *key = ty_arena_alloc(arena, strlen(text) + 1), *out = key;
    for (; *text; text++) {
        int high = *text == '%' ? hex_digit(text[1]) : 0, low = *text == '%' && high >= 0 ? hex_digit(text[2]) : 0;
        if (high < 0 || low < 0 || (*text == '%' && high == 0 && low == 0))
            return NULL;
        *out++ = *text == '%' ? (char)(high << 4 | low) : *text == '+' ? ' ' : *text;
        text += *text == '%' ? 2 : 0;
    }
    return key;
}

static int read_object(const ty_xml *x, bool is_encoded, ty_arena *arena, ty_s3_object *o, ty_error *err)
{
    const char *text = ty_xml_text(x, "Key"), *size = ty_xml_text(x, "Size");
    o->key = is_encoded ? decode_key(text, arena) : text;
    if (!o->key || !*o->key || strlen(o->key) > TY_S3_MAX_KEY_BYTES)
        return refuse(err, "ListObjectsV2", "a key", text);
    if (!read_number(size, INT64_MAX, &o->n_bytes))
        return refuse(err, "ListObjectsV2", "a size", size);
    if (!read_etag(ty_xml_text(x, "ETag"), o->etag))
        return refuse(err, "ListObjectsV2", "an ETag", ty_xml_text(x, "ETag"));
    o->modified_ms = ty_time_parse(ty_xml_text(x, "LastModified"));
    return 0;
}

static size_t count(const ty_xml *x)
{
    size_t n = 0;
    for (; x; x = ty_xml_again(x))
        n++;
    return n;
}

int ty_s3_read_page(const char *text, size_t len, ty_arena *arena, ty_s3_page *out, ty_error *err)
{
    ty_xml *root;
    *out = (ty_s3_page){0};
    if (open_answer("ListObjectsV2", "ListBucket", text, len, arena, &root, err) < 0)
        return -1;
    const ty_xml *first = ty_xml_find(root, "Contents");
    bool is_encoded = strcmp(ty_xml_text(root, "EncodingType"), "url") == 0;
    out->objects = TY_NEW_ARRAY(arena, ty_s3_object, count(first) + 1);
    for (const ty_xml *x = first; x; x = ty_xml_again(x))
        if (read_object(x, is_encoded, arena, &out->objects[out->n++], err) < 0)
            return -1;
    if (strcmp(ty_xml_text(root, "IsTruncated"), "true") != 0)
        return 0;
    out->next = ty_xml_text(root, "NextContinuationToken");
    if (!*out->next || strlen(out->next) > MAX_TOKEN_BYTES)
        return refuse(err, "ListObjectsV2", "there is more, but no token for it", "");
    return 0;
}

int ty_s3_read_parts(const char *text, size_t len, ty_arena *arena, ty_s3_part_page *out, ty_error *err)
{
    ty_xml *root;
    uint64_t number;
    *out = (ty_s3_part_page){0};
    if (open_answer("ListParts", "ListParts", text, len, arena, &root, err) < 0)
        return -1;
    const ty_xml *first = ty_xml_find(root, "Part");
    out->parts = TY_NEW_ARRAY(arena, ty_s3_part, count(first) + 1);
    for (const ty_xml *x = first; x; x = ty_xml_again(x)) {
        ty_s3_part *p = &out->parts[out->n++];
        if (!read_number(ty_xml_text(x, "PartNumber"), TY_S3_MAX_PARTS, &number) || number == 0)
            return refuse(err, "ListParts", "a part's number", ty_xml_text(x, "PartNumber"));
        p->number = (uint32_t)number;
        if (!read_number(ty_xml_text(x, "Size"), INT64_MAX, &p->n_bytes))
            return refuse(err, "ListParts", "a size", ty_xml_text(x, "Size"));
        if (!read_etag(ty_xml_text(x, "ETag"), p->etag) || !p->etag[0])
            return refuse(err, "ListParts", "an ETag", ty_xml_text(x, "ETag"));
    }
    if (strcmp(ty_xml_text(root, "IsTruncated"), "true") != 0)
        return 0;
    const char *next = ty_xml_text(root, "NextPartNumberMarker");
    if (!read_number(next, TY_S3_MAX_PARTS, &number) || number == 0)
        return refuse(err, "ListParts", "where the next page begins", next);
    out->next = (uint32_t)number;
    return 0;
}

int ty_s3_read_upload(const char *text, size_t len, ty_arena *arena, const char **upload_id, ty_error *err)
{
    ty_xml *root;
    if (open_answer("CreateMultipartUpload", "InitiateMultipartUpload", text, len, arena, &root, err) < 0)
        return -1;
    *upload_id = ty_xml_text(root, "UploadId");
    if (!**upload_id || strlen(*upload_id) > TY_S3_MAX_KEY_BYTES || strpbrk(*upload_id, " \t\r\n"))
        return refuse(err, "CreateMultipartUpload", "an upload's id", *upload_id);
    return 0;
}

bool ty_s3_is_error(const char *text, size_t len)
{
    ty_arena arena;
    ty_xml *root;
    ty_arena_init(&arena);
    bool is_error = ty_xml_parse(&arena, "answer", text, len, &root, NULL) < 0 || strcmp(root->name, "Error") == 0;
    ty_arena_fini(&arena);
    return is_error;
}

/* "bucket.s3.eu-west-1.amazonaws.com", "bucket.s3-eu-west-1.amazonaws.com": what stands between. */
static const char *region_of_host(const char *host, ty_arena *arena)
{
    const char *at = strstr(host, "s3.");
    at = at ? at : strstr(host, "s3-");
    if (!at || !strstr(at, ".amazonaws.com"))
        return NULL;
    return ty_arena_strndup(arena, at + 3, strcspn(at + 3, "."));
}

const char *ty_s3_read_region(const char *text, size_t len, ty_arena *arena)
{
    ty_xml *root;
    if (len == 0 || ty_xml_parse(arena, "answer", text, len, &root, NULL) < 0 || strcmp(root->name, "Error") != 0)
        return NULL;
    const char *region = ty_xml_text(root, "Region");
    if (!*region)
        region = region_of_host(ty_xml_text(root, "Endpoint"), arena);
    return region && strcmp(region, "amazonaws") != 0 && ty_region_is_valid(region) ? region : NULL;
}
