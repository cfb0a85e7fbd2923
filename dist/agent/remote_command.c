/* remote_command.c - the words of a command that came from elsewhere. */
#include "dist/agent/remote.h"

#include <string.h>

enum { MAX_COMMAND_BYTES = 60000 };

static int refuse(ty_error *err, const char *text, const char *why)
{
    ty_error_set(err, TY_E_PERMISSION, "refused to run \"%.200s\": %s", text, why);
    return ty_error_help(err, "start mpirun by its bare name and without --prefix");
}

/* What a shell would not take for a letter of a word. '^', '=' and others are letters. */
static bool means_something(char c)
{
    return strchr(";&|<>()$`*?[]{}!#\n\r", c) != NULL; /* "~" only leads a word, and orted takes no such path */
}

/* One word: reads from *at, appends to the room at *out. False: a character that is not allowed, or an open quote. */
static bool take_word(const char **at, char **out)
{
    char quote = 0;
    for (; **at && (quote || (**at != ' ' && **at != '\t')); (*at)++) {
        char c = **at;
        if (quote && c == quote) {
            quote = 0;
        } else if (!quote && (c == '"' || c == '\'')) {
            quote = c;
        } else if (c == '\\' && quote != '\'') {
            if (!*++*at)
                return false;
            *(*out)++ = **at;
        } else if ((!quote && means_something(c)) || (quote == '"' && (c == '$' || c == '`'))) {
            return false;
        } else {
            *(*out)++ = c;
        }
    }
    *(*out)++ = 0;
    return !quote;
}

int ty_remote_command(const char *text, ty_arena *a, char ***words, ty_error *err)
{
    size_t len = strlen(text), n = 0;
    if (len > MAX_COMMAND_BYTES)
        return refuse(err, text, "too long");
    char *room = ty_arena_alloc(a, len + 2); /* never longer than the text */
    *words = TY_NEW_ARRAY(a, char *, len / 2 + 2);
    for (const char *at = text;;) {
        at += strspn(at, " \t");
        if (!*at)
            break;
        char *word = room;
        if (!take_word(&at, &room))
            return refuse(err, text, "it needs a shell");
        if (n == 0 && strcmp(word, "orted") != 0)
            return refuse(err, text, "only orted is started for mpirun");
        if (strcmp(word, "--daemonize") != 0)
            (*words)[n++] = word;
    }
    return n ? 0 : refuse(err, text, "it is empty");
}
