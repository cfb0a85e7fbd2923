/* error.c - filling, growing and printing of ty_error.
 *
 * Every text is first formatted into a local buffer and then copied, so that arguments may point into the error itself
 * (`ty_error_set(err, code, "%s, again", err->message)`). Names that come from foreign files pass through here on their
 * way to terminals and logs: put_escaped is the one place that takes the teeth out of control characters.
 */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Writes printable text: control characters (C0, DEL and the two-byte UTF-8 form of C1) as \n, \t, \xNN. A text that
 * does not fit ends in "...". Returns the length written. */
static size_t put_escaped(char *out, size_t n, const char *text)
{
    size_t len = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        char piece[8];
        bool is_c1 = p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f;
        if (*p == '\n')
            memcpy(piece, "\\n", 3);
        else if (*p == '\t')
            memcpy(piece, "\\t", 3);
        else if (*p < 0x20 || *p == 0x7f || is_c1)
            snprintf(piece, sizeof piece, "\\x%02x", is_c1 ? p[1] : p[0]);
        else
            memcpy(piece, (char[]){(char)*p, 0}, 2);
        size_t piece_len = strlen(piece);
        if (len + piece_len + 1 > n) {
            for (size_t back = 0; back < 3 && len >= 3 && n > 3; back++)
                out[len - 1 - back] = '.';
            break;
        }
        memcpy(out + len, piece, piece_len);
        len += piece_len;
        p += is_c1;
    }
    out[len] = 0;
    return len;
}

static void put_formatted(char *out, size_t n, const char *fmt, va_list args)
{
    char raw[TY_ERROR_MESSAGE_BYTES];
    vsnprintf(raw, sizeof raw, fmt, args);
    put_escaped(out, n, raw);
}

int ty_error_set(ty_error *err, ty_code code, const char *fmt, ...)
{
    if (!err)
        return -1;
    char text[TY_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    put_formatted(text, sizeof text, fmt, args);
    va_end(args);
    err->code = code;
    err->which = 0;
    err->place[0] = err->detail[0] = err->help[0] = 0;
    memcpy(err->message, text, sizeof err->message);
    return -1;
}

static ty_code code_of_errno(int errno_value)
{
    static const struct {
        int errno_value;
        ty_code code;
    } table[] = {
        {ENOENT, TY_E_NOT_FOUND}, {ENOTDIR, TY_E_NOT_FOUND},  {EACCES, TY_E_PERMISSION}, {EPERM, TY_E_PERMISSION},
        {EROFS, TY_E_PERMISSION}, {ENOSPC, TY_E_NO_SPACE},    {EDQUOT, TY_E_NO_SPACE},   {ENOMEM, TY_E_LIMIT},
        {EMFILE, TY_E_LIMIT},     {ENFILE, TY_E_LIMIT},       {EFBIG, TY_E_LIMIT},       {EAGAIN, TY_E_LIMIT},
        {E2BIG, TY_E_LIMIT},      {ENAMETOOLONG, TY_E_LIMIT}, {ELOOP, TY_E_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].errno_value == errno_value)
            return table[i].code;
    return TY_E_IO;
}

int ty_error_errno(ty_error *err, ty_code code, int errno_value, const char *fmt, ...)
{
    if (!err)
        return -1;
    char text[TY_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    put_formatted(text, sizeof text, fmt, args);
    va_end(args);
    char reason[128];
    if (strerror_r(errno_value, reason, sizeof reason) != 0)
        snprintf(reason, sizeof reason, "errno %d", errno_value);
    return ty_error_set(err, code == TY_E_NONE ? code_of_errno(errno_value) : code, "%s: %s", text, reason);
}

int ty_error_wrap(ty_error *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char text[TY_ERROR_MESSAGE_BYTES * 2];
    va_list args;
    va_start(args, fmt);
    put_formatted(text, TY_ERROR_MESSAGE_BYTES / 2, fmt, args);
    va_end(args);
    strcat(text, ": ");
    strcat(text, err->message);
    put_escaped(err->message, sizeof err->message, text);
    return -1;
}

int ty_error_at(ty_error *err, const char *fmt, ...)
{
    if (!err || err->place[0])
        return -1;
    va_list args;
    va_start(args, fmt);
    put_formatted(err->place, sizeof err->place, fmt, args);
    va_end(args);
    return -1;
}

int ty_error_help(ty_error *err, const char *fmt, ...)
{
    if (!err || err->help[0])
        return -1;
    va_list args;
    va_start(args, fmt);
    put_formatted(err->help, sizeof err->help, fmt, args);
    va_end(args);
    return -1;
}

int ty_error_detail(ty_error *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    size_t len = strlen(err->detail);
    size_t room = sizeof err->detail - len;
    if (room < 16)
        return -1;
    va_list args;
    va_start(args, fmt);
    put_formatted(err->detail + len, room - 1, fmt, args);
    va_end(args);
    strcat(err->detail + len, "\n");
    return -1;
}

static const struct {
    ty_code code;
    int exit_status;
    const char *meaning;
} codes[] = {
#define ERROR_CODE(name, number, exit_status, meaning) {TY_E_##name, exit_status, meaning},
#include "error_codes.def"
#undef ERROR_CODE
};
enum { N_CODES = sizeof codes / sizeof codes[0], EXIT_INTERNAL = 70 };

int ty_error_exit_status(ty_code code)
{
    if (code == TY_E_NONE)
        return 0;
    for (size_t i = 0; i < N_CODES; i++)
        if (codes[i].code == code)
            return codes[i].exit_status;
    return EXIT_INTERNAL;
}

const char *ty_error_meaning(ty_code code)
{
    for (size_t i = 0; i < N_CODES; i++)
        if (codes[i].code == code)
            return codes[i].meaning;
    return NULL;
}

/* A printer with snprintf's bargain: counts everything, writes what fits. */
struct printer {
    char *out;
    size_t n;
    size_t len;
};

static void TY_PRINTF(2, 3) printer_add(struct printer *p, const char *fmt, ...)
{
    size_t room = p->len < p->n ? p->n - p->len : 0;
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(room ? p->out + p->len : NULL, room, fmt, args);
    va_end(args);
    p->len += len > 0 ? (size_t)len : 0;
}

/* "train.yaml:14:5" goes before the message, as compilers do; "model.onnx: node #3" gets a line of its own. */
static bool place_is_line(const char *place)
{
    size_t at = strlen(place);
    size_t n_digits = 0;
    while (at > 0 && place[at - 1] >= '0' && place[at - 1] <= '9') {
        at--;
        n_digits++;
    }
    return n_digits > 0 && at > 1 && place[at - 1] == ':';
}

static void print_detail(struct printer *p, const char *detail, bool framed)
{
    if (framed)
        printer_add(p, "   |\n");
    for (const char *line = detail; *line;) {
        int len = (int)strcspn(line, "\n");
        printer_add(p, "%s%.*s\n", framed ? "   |   " : "", len, line);
        line += len + (line[len] == '\n');
    }
    if (framed)
        printer_add(p, "   |\n");
}

size_t ty_error_format(const ty_error *err, char *out, size_t n)
{
    struct printer p = {out, n, 0};
    if (n > 0)
        out[0] = 0;
    bool inline_place = place_is_line(err->place);
    printer_add(&p, "error[E%04d]: ", (int)err->code);
    if (inline_place)
        printer_add(&p, "%s: ", err->place);
    printer_add(&p, "%s\n", err->message);
    if (err->place[0] && !inline_place)
        printer_add(&p, "  --> %s\n", err->place);
    if (err->detail[0])
        print_detail(&p, err->detail, !inline_place);
    if (err->help[0])
        printer_add(&p, "   = help: %s\n", err->help);
    return p.len;
}
