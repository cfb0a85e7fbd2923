/* listed.h - which pictures or sounds there are, and what they are labelled: folders of classes, or a list of files.
 *
 *     pictures/cat/1.jpg, pictures/dog/a/2.png       the label is the text "cat", "dog/a": the folder's path below the
 *                                                    channel's
 *     train.lst: 17 TAB 3 [TAB more labels] TAB dog/a/2.png      MXNet's im2rec: number, labels, path
 *
 * A channel with a .lst file is what that file says, in its order; paths begin at the folder that holds it and may not
 * leave it. Else every file of the channel is one.
 */
#ifndef TY_CONTAINER_INPUT_LISTED_H
#define TY_CONTAINER_INPUT_LISTED_H

#include "base/arena.h"
#include "container/input/files.h"

typedef struct ty_listed {
    int64_t n;
    const char **path;  /* [n] to open */
    const char **label; /* [n]: the folder, "" for none; NULL: a .lst file */
    double *number;     /* [n * n_numbers] of a .lst file */
    int n_numbers;
    bool is_whole;       /* numbers: all are integers */
    const char *lst;     /* the .lst file; NULL: folders */
    const int64_t *line; /* [n] of it, from 1 */
} ty_listed;

/* Everything lies in the arena, or is the files' own. */
int ty_listed_make(const ty_data_file *files, int n_files, ty_arena *a, ty_listed *out, ty_error *err);

#endif
