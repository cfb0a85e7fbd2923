#include "dist/api/fault.h"

#include <stdarg.h>
#include <stdio.h>

/* The nearest of the codes that error.h knows. */
static ty_code code_of(int code)
{
    static const ty_code codes[] = {
        [-TRAINYARD_E_STATE] = TY_E_USAGE,     [-TRAINYARD_E_ARGUMENT] = TY_E_RANGE,
        [-TRAINYARD_E_MISMATCH] = TY_E_CONFIG, [-TRAINYARD_E_NOT_MEMBER] = TY_E_RANGE,
        [-TRAINYARD_E_LOST] = TY_E_IO,         [-TRAINYARD_E_START] = TY_E_CONFIG,
        [-TRAINYARD_E_MEMORY] = TY_E_LIMIT,    [-TRAINYARD_E_FILE] = TY_E_IO,
    };
    size_t i = (size_t)-code;
    return code < 0 && i < sizeof codes / sizeof *codes ? codes[i] : TY_E_INTERNAL;
}

int ty_fault(ty_error *err, int code, const char *fmt, ...)
{
    char text[TY_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ty_error_set(err, code_of(code), "%s", text);
    return code;
}
