/* s3 - objects from the command line, for tests: s3 COMMAND ARGUMENT...
 *
 *     head URI | get URI FILE | cat URI | list URI | remove URI | abort URI | make BUCKET
 *     put FILE URI | bytes FILE URI (the same from memory) | get-folder URI FOLDER | put-folder FOLDER URI
 *
 * TY_S3_OWNER, TY_S3_NOTES, TY_S3_KMS, TY_S3_ABORT=1: the options of those names. TY_S3_SHARD=RANK/N: get-folder takes
 * every Nth object. TY_S3_STOP=BYTES: as Ctrl-C, after so many. TY_S3_PROGRESS=1: the bytes of progress on stderr.
 */
#define _GNU_SOURCE
#include "base/file.h"
#include "estimator_spec/aws/s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t stop;
static uint64_t stop_bytes = UINT64_MAX;
static unsigned shard, n_shards;

static void progress(void *ctx, uint64_t done_bytes, uint64_t total_bytes)
{
    (void)ctx;
    if (getenv("TY_S3_PROGRESS"))
        fprintf(stderr, "%llu/%llu\n", (unsigned long long)done_bytes, (unsigned long long)total_bytes);
    if (done_bytes >= stop_bytes)
        stop = 1;
}

static bool wants(void *ctx, const ty_s3_object *o, uint64_t index)
{
    (void)ctx, (void)o;
    return index % n_shards == shard;
}

static int print_object(void *ctx, const ty_s3_object *o, ty_error *err)
{
    (void)ctx, (void)err;
    printf("%llu %s %lld %s\n", (unsigned long long)o->n_bytes, o->etag, (long long)o->modified_ms, o->key);
    return 0;
}

static int put_bytes(ty_s3 *s3, const ty_s3_place *at, const char *path, const ty_s3_put_options *o, ty_error *err)
{
    ty_file_view view;
    if (ty_file_map(path, &view, err) < 0)
        return -1;
    int rc = ty_s3_put_bytes(s3, at, view.bytes, view.n_bytes, o, err);
    ty_file_unmap(&view);
    return rc;
}

static int run(ty_s3 *s3, char **argv, ty_arena *arena, ty_error *err)
{
    const char *command = argv[1], *a = argv[2], *b = argv[3];
    bool goes = strncmp(command, "put", 3) == 0 || strcmp(command, "bytes") == 0;
    ty_s3_place at = {0};
    ty_s3_object o = {0};
    ty_s3_put_options put = {.kms_key = getenv("TY_S3_KMS"), .abort_on_failure = getenv("TY_S3_ABORT") != NULL};
    ty_s3_folder how = {.wants = n_shards ? wants : NULL, .put = put};
    if (strcmp(command, "make") == 0)
        return ty_s3_make_bucket(s3, a, err);
    if (ty_s3_parse(goes ? b : a, arena, &at, err) < 0)
        return -1;
    if (strcmp(command, "head") == 0)
        return ty_s3_head(s3, &at, &o, err) < 0 ? -1 : print_object(NULL, &o, err);
    if (strcmp(command, "get") == 0)
        return ty_s3_get(s3, &at, b, NULL, err);
    if (strcmp(command, "cat") == 0)
        return ty_s3_get_fd(s3, &at, 1, NULL, err);
    if (strcmp(command, "list") == 0)
        return ty_s3_list(s3, &at, print_object, NULL, err);
    if (strcmp(command, "remove") == 0)
        return ty_s3_remove(s3, &at, err);
    if (strcmp(command, "abort") == 0)
        return ty_s3_abort(s3, &at, err);
    if (strcmp(command, "put") == 0)
        return ty_s3_put_file(s3, &at, a, &put, err);
    if (strcmp(command, "bytes") == 0)
        return put_bytes(s3, &at, a, &put, err);
    int rc = goes ? ty_s3_put_folder(s3, &at, a, &how, err) : ty_s3_get_folder(s3, &at, b, &how, err);
    printf("%llu files, %llu bytes\n", (unsigned long long)how.n_files, (unsigned long long)how.n_bytes);
    return rc;
}

int main(int argc, char **argv)
{
    ty_aws *aws = NULL;
    ty_s3 *s3 = NULL;
    ty_error err = {0};
    ty_arena arena;
    char text[8192];
    ty_s3_options options = {.owner = getenv("TY_S3_OWNER"), .notes = getenv("TY_S3_NOTES"), .progress = progress};
    if (argc < 3)
        return 64;
    if (getenv("TY_S3_STOP"))
        stop_bytes = strtoull(getenv("TY_S3_STOP"), NULL, 10);
    if (getenv("TY_S3_SHARD"))
        sscanf(getenv("TY_S3_SHARD"), "%u/%u", &shard, &n_shards);
    ty_arena_init(&arena);
    int rc = ty_aws_open(&(ty_aws_options){.stop = &stop}, &aws, &err);
    if (rc == 0)
        rc = ty_s3_open(aws, &options, &s3, &err);
    if (rc == 0)
        rc = run(s3, argv, &arena, &err);
    ty_s3_close(s3);
    ty_aws_close(aws);
    ty_arena_fini(&arena);
    if (rc == 0)
        return 0;
    ty_error_format(&err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return ty_error_exit_status(err.code);
}
