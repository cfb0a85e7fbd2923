/* redact.c - masks values behind known markers; lengths stay, so that it can be done in place. */
#define _GNU_SOURCE 1 /* strcasestr */

#include "container/config/redact.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

bool ty_name_is_secret(const char *name)
{
    static const char *const parts[] = {"secret", "password", "key", "token", "private", "cred"};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcasestr(name, parts[i]) != NULL)
            return true;
    return false;
}

/* A marker after which a value starts. Separators (= : " ' and blanks) may stand between. */
static const struct {
    const char *marker;
    bool whole_line; /* the value goes on to the end of the line */
} redact_markers[] = {
    {"x-amz-signature", false},
    {"x-amz-credential", false},
    {"x-amz-security-token", false},
    {"authorization", true},
    {"aws_secret_access_key", false},
    {"aws_session_token", false},
    {"secretaccesskey", false},
    {"sessiontoken", false},
    {"aws_access_key_id", false},
    {"password", false},
    {"passwd", false},
    {"api_key", false},
    {"apikey", false},
    {"secret_key", false},
    {"access_token", false},
};

static bool redact_is_separator(char c)
{
    return c == '=' || c == ':' || c == '"' || c == '\'' || c == ' ';
}

static bool redact_ends_value(char c, bool whole_line)
{
    if (c == '\n' || c == '\r' || c == '\0')
        return true;
    return !whole_line && (c == '&' || c == '"' || c == '\'' || c == ' ' || c == ',' || c == '}' || c == ';');
}

/* Masks the value after a marker that ended at `at`; returns where to go on. "password is wrong" has no = or : and
 * stays. */
static size_t redact_value(char *text, size_t n, size_t at, bool whole_line)
{
    bool assigned = false;

    for (; at < n && redact_is_separator(text[at]); at++)
        assigned |= text[at] == '=' || text[at] == ':';
    if (!assigned)
        return at;
    for (; at < n && !redact_ends_value(text[at], whole_line); at++)
        text[at] = 'x';
    return at;
}

/* AKIA or ASIA and 16 capitals or digits: an access key id. */
static size_t redact_key_id(char *text, size_t n, size_t at)
{
    if (n - at < 20 || (strncmp(text + at, "AKIA", 4) != 0 && strncmp(text + at, "ASIA", 4) != 0))
        return at + 1;
    for (size_t i = at + 4; i < at + 20; i++)
        if (!isupper((unsigned char)text[i]) && !isdigit((unsigned char)text[i]))
            return at + 1;
    memset(text + at + 4, 'x', 16);
    return at + 20;
}

void ty_redact(char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t next = 0;
        for (size_t i = 0; next == 0 && i < sizeof redact_markers / sizeof redact_markers[0]; i++) {
            size_t len = strlen(redact_markers[i].marker);
            if (n - at >= len && strncasecmp(text + at, redact_markers[i].marker, len) == 0)
                next = redact_value(text, n, at + len, redact_markers[i].whole_line);
        }
        at = next != 0 ? next : redact_key_id(text, n, at);
    }
}
