/* doing.h - what this process tells whoever watches it: its progress page (dist/page.h), of which a rank has one.
 *
 * A process that is no rank has none, and telling costs nothing. All calls come from the thread that trains.
 */
#ifndef TY_ENTRYPOINT_DOING_H
#define TY_ENTRYPOINT_DOING_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ty_doing {
    TY_DOING_START,
    TY_DOING_COMPILE,
    TY_DOING_DATA,
    TY_DOING_STEP,
    TY_DOING_EVALUATE,
    TY_DOING_SAVE,
    TY_DOING_FINISHED,
    TY_DOING_SERVE,
    TY_N_DOINGS
} ty_doing;

/* Finds the page, if there is one. */
void ty_doing_open(void);
void ty_doing_now(ty_doing what);
void ty_doing_step(int64_t step); /* the step in progress, from 1 */
/* Where ranks wait for each other on their GPUs, which no comm sees: from waits("...") to waits(NULL). All ranks wait
 * for the same, in the same order. */
void ty_doing_waits(const char *what);
void ty_doing_failed(const char *text);
/* Whether the job has failed elsewhere, and nothing is under way here that is worth being finished. Any thread. */
bool ty_doing_is_over(void);
/* Where comms write what they carry out; NULL: nobody watches. */
struct ty_page *ty_doing_page(void);
void ty_doing_close(void);

#endif
