/* complain.c - errors on their way out. */
#include "entrypoint/complain.h"

#include "base/json.h"
#include "entrypoint/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool wants_colour(int fd)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM"), *force = getenv("CLICOLOR_FORCE");
    if (no_colour && *no_colour)
        return false;
    if (force && *force && strcmp(force, "0") != 0)
        return true;
    return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

int ty_complain(const ty_error *err)
{
    char text[TY_ERROR_MESSAGE_BYTES + TY_ERROR_PLACE_BYTES + TY_ERROR_DETAIL_BYTES * 2 + TY_ERROR_HELP_BYTES + 128];
    ty_error_format(err, text, sizeof text);
    size_t head = strcspn(text, ":");
    fflush(stdout);
    if (wants_colour(STDERR_FILENO))
        fprintf(stderr, "\033[1;31m%.*s\033[0m%s", (int)head, text, text + head);
    else
        fputs(text, stderr);
    return ty_error_exit_status(err->code);
}

int ty_complain_json(const ty_error *err)
{
    ty_buf text;
    ty_json_writer w;
    char code[16];
    snprintf(code, sizeof code, "E%04d", (int)err->code);
    ty_buf_init(&text, 1 << 16);
    ty_json_writer_init(&w, &text, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_open_map(&w, "error");
    ty_json_put_string(&w, "code", code);
    ty_json_put_string(&w, "message", err->message);
    ty_json_put_string(&w, "place", err->place[0] ? err->place : NULL);
    ty_json_put_string(&w, "detail", err->detail[0] ? err->detail : NULL);
    ty_json_put_string(&w, "help", err->help[0] ? err->help : NULL);
    ty_json_close(&w);
    ty_json_close(&w);
    puts(text.data);
    ty_buf_fini(&text);
    return ty_error_exit_status(err->code);
}

int ty_complain_of_command(const ty_error *err, bool as_json)
{
    if (err->code != TY_E_USAGE)
        return as_json ? ty_complain_json(err) : ty_complain(err);
    ty_complain(err);
    return TY_EXIT_USAGE_ERROR;
}
