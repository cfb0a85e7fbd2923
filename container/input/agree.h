/* agree.h - what has to be known of all training data, while each host has only a part of them.
 *
 * Whoever opens such a part says how to ask the others, in the source that it opens (ty_data_source, ty_stream_config):
 *
 *     source.agree = (ty_agree){.ctx = s, .map = ..., .numbers = ...};
 *
 * Everything that is learnt of data goes through one of the two calls before it is settled: transforms, LibSVM's first
 * index and width, means of pictures. All who have parts make the same calls in the same order, whatever their parts
 * hold. Zeroed: there are no others, and what was seen is all there is.
 */
#ifndef TY_CONTAINER_INPUT_AGREE_H
#define TY_CONTAINER_INPUT_AGREE_H

#include "base/error.h"

#include <stdint.h>

struct ty_map;

typedef enum ty_agree_how { TY_AGREE_LEAST, TY_AGREE_MOST, TY_AGREE_SUM } ty_agree_how;

typedef struct ty_agree {
    void *ctx;
    /* A map that has seen this part's samples, before it is settled: adds what others have seen. In the order of the
     * fields. */
    int (*map)(void *ctx, struct ty_map *map, ty_error *err);
    /* Each of v[n] becomes the least, the most or the sum of all parts'. `what` they are is for messages. */
    int (*numbers)(void *ctx, const char *what, ty_agree_how how, int64_t *v, int n, ty_error *err);
} ty_agree;

static inline int ty_agree_map(const ty_agree *a, struct ty_map *map, ty_error *err)
{
    return a->map ? a->map(a->ctx, map, err) : 0;
}

static inline int ty_agree_numbers(const ty_agree *a, const char *what, ty_agree_how how, int64_t *v, int n,
                                   ty_error *err)
{
    return a->numbers ? a->numbers(a->ctx, what, how, v, n, err) : 0;
}

#endif
