/* verbs.c - see verbs.h. */
#include "entrypoint/verbs.h"

#include "base/suggest.h"

#include <string.h>

static int refuse_verb(const ty_command_row *command, const ty_verb *verbs, int n, const char *hint, const char *word,
                       ty_error *err)
{
    ty_suggestion near = {.word = word};
    for (int i = 0; i < n; i++)
        ty_suggest_offer(&near, verbs[i].name);
    ty_error_set(err, TY_E_USAGE, "`%s` has no \"%.100s\"", command->name, word);
    return near.best ? ty_error_help(err, "did you mean `trainyard %s %s`?", command->name, near.best)
                     : ty_error_help(err, "%s", hint);
}

int ty_verbs_run(const ty_command_row *command, const ty_verb *verbs, int n, const char *hint,
                 const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    const char *word = given->words[0] ? given->words[0] : "";
    int verb = 0;
    while (verb < n && strcmp(verbs[verb].name, word) != 0)
        verb++;
    if (verb == n)
        return refuse_verb(command, verbs, n, hint, word, err);
    for (size_t i = 0; i < command->n_options; i++)
        if (given->value[i] && !(verbs[verb].takes & TY_VERB_TAKES(i)))
            return ty_error_set(err, TY_E_USAGE, "`%s %s` takes no %s", command->name, word, command->options[i].name);
    int n_files = verbs[verb].n_files, least = n_files < 0 ? -n_files : n_files;
    if (given->n_words < 1 + least || (n_files > 0 && given->n_words > 1 + least))
        return ty_error_set(err, TY_E_USAGE, "`%s %s` needs %s", command->name, word, verbs[verb].needs);
    return verbs[verb].run(given, a, err);
}
