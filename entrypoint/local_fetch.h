/* local_fetch.h - channels of a local job that lie in S3. */
#ifndef TY_ENTRYPOINT_LOCAL_FETCH_H
#define TY_ENTRYPOINT_LOCAL_FETCH_H

#include "estimator_spec/aws/s3.h"

#include <signal.h>

/* Zero is a good start but for these two; nothing is asked before something has to be fetched. */
typedef struct ty_local_fetch {
    const char *region; /* NULL: as the environment and the files say */
    const volatile sig_atomic_t *stop;
    ty_aws *aws; /* private */
    ty_s3 *s3;   /* private */
} ty_local_fetch;

/* All objects under an s3:// address into a folder, with the user's own credentials. ctx: a ty_local_fetch. */
int ty_local_fetch_folder(void *ctx, const char *uri, const char *folder, ty_error *err);
void ty_local_fetch_close(ty_local_fetch *f);

#endif
