/* bad.h - records that cannot be used: an error each, or left out, counted and named.
 *
 * A record is bad where its frame is whole but what is in it is not what was declared: a checksum, a list of another
 * length, text for a number, a row with another number of fields. What follows it can still be read. Where the frames
 * themselves are lost (a wrong length, a file that ends within a record, a quote that is never closed) nothing behind
 * can be trusted, and no policy leaves that out.
 *
 *     rc = read_record(..., err);          // has set the error's place
 *     if (rc < 0)
 *         rc = ty_bad_leave_out(&bad, err);
 *
 * Nobody here locks: where several threads read, each has one of its own, or the caller holds a lock.
 */
#ifndef TY_CONTAINER_INPUT_BAD_H
#define TY_CONTAINER_INPUT_BAD_H

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

#define TY_BAD_MAX 100 /* where the user names no limit */

typedef struct ty_bad {
    bool skip;    /* zeroed: each is an error */
    int64_t max;  /* how many of one pass over the data may be left out, in all and so in a row; 0: TY_BAD_MAX */
    bool quiet;   /* no warnings: the same records are read again, by who gives them */
    ty_buf *told; /* NULL, or gets the warnings too, each with a NUL behind it */
    int64_t n;    /* left out so far, in all passes */
    int64_t pass, n_before; /* private: the latest pass, and what was left out before it */
    char first[256];        /* place and message of the first of them */
} ty_bad;

/* The record that err speaks of. 0: it is left out and counted, a warning names it (the first ten do, and then every
 * tenth, every hundredth ...), and err is empty again. -1: err stands: none may be left out, one too many was, or it
 * is no fault of the data. err must not be NULL. */
int ty_bad_leave_out(ty_bad *bad, ty_error *err);

/* A warning of the data: to the log, and as ty_bad.told says. */
void ty_bad_tell(ty_buf *told, const char *fmt, ...) TY_PRINTF(2, 3);

/* Data that are read again and again: the limit is that of one pass. Passes count up; an earlier one changes nothing.
 */
void ty_bad_begin_pass(ty_bad *bad, int64_t pass);
/* Reading begins anew with this pass, whichever was the latest: an evaluation begins with the first each time. */
void ty_bad_begin_again(ty_bad *bad, int64_t pass);

#endif
