/* local_fetch.c - a client that is opened when it is needed. */
#include "entrypoint/local_fetch.h"

#include "base/quantity.h"

#include <stdio.h>

static int open_client(ty_local_fetch *f, ty_error *err)
{
    ty_aws_options options = {.region = f->region, .stop = f->stop};
    if (f->s3)
        return 0;
    if (!f->aws && ty_aws_open(&options, &f->aws, err) < 0)
        return -1;
    return ty_s3_open(f->aws, &(ty_s3_options){0}, &f->s3, err);
}

int ty_local_fetch_folder(void *ctx, const char *uri, const char *folder, ty_error *err)
{
    ty_local_fetch *f = ctx;
    ty_s3_place at;
    ty_s3_folder how = {0};
    char size[32];
    ty_arena a;
    ty_arena_init(&a);
    int rc = open_client(f, err) < 0 || ty_s3_parse(uri, &a, &at, err) < 0 ||
                     ty_s3_get_folder(f->s3, &at, folder, &how, err) < 0
                 ? -1
                 : 0;
    if (rc == 0)
        fprintf(stderr, "local: fetched %s: %llu files, %s\n", uri, (unsigned long long)how.n_files,
                ty_bytes_text(how.n_bytes, size, sizeof size));
    else
        ty_error_wrap(err, "%s", uri);
    ty_arena_fini(&a);
    return rc;
}

void ty_local_fetch_close(ty_local_fetch *f)
{
    if (f->s3)
        ty_s3_close(f->s3);
    if (f->aws)
        ty_aws_close(f->aws);
    f->s3 = NULL;
    f->aws = NULL;
}
