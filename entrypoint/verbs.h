/* verbs.h - commands with a verb in front of their files: `trainyard model info FILE`.
 *
 * Each verb is a row: which of the command's options it takes, how many files it needs. What does not fit is refused
 * here, in the same words for all commands.
 */
#ifndef TY_ENTRYPOINT_VERBS_H
#define TY_ENTRYPOINT_VERBS_H

#include "entrypoint/command.h"

#include <stdint.h>

#define TY_VERB_TAKES(option) (UINT64_C(1) << (option))

typedef struct ty_verb {
    const char *name;
    const char *needs; /* its files, in messages: "two files" */
    int n_files;       /* negative: that many, or more */
    uint64_t takes;    /* TY_VERB_TAKES of its options */
    int (*run)(const ty_arguments_given *given, ty_arena *a, ty_error *err);
} ty_verb;

/* command: its row, for name and options. hint: help where a word is like no verb. */
int ty_verbs_run(const ty_command_row *command, const ty_verb *verbs, int n, const char *hint,
                 const ty_arguments_given *given, ty_arena *a, ty_error *err);

#endif
