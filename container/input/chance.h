/* chance.h - what everything random of one sample is a function of: the same on any number of threads and processes,
 * and after a resume.
 */
#ifndef TY_CONTAINER_INPUT_CHANCE_H
#define TY_CONTAINER_INPUT_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ty_chance {
    uint64_t seed;
    int64_t epoch, sample;
    bool augment; /* false: the one plain way */
} ty_chance;

#endif
