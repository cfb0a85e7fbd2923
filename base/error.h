/* error.h - how anything in this project fails.
 *
 * Layer: the bottom. Includes libc only and knows nothing of what fails.
 *
 * The convention, in full:
 *   - A function that can fail returns int: 0 is success, -1 is failure. Its last parameter is `ty_error *err`.
 *   - On failure it has filled *err exactly once with ty_error_set(), or passed on what a callee filled.
 *   - A caller that knows more adds to the front with ty_error_wrap() while the error rises:
 *         "step graph: loss \"mse\": output \"y\" has shape [4, 3], target has [4]"
 *   - Nobody below entrypoint/ ends the process, and nobody logs an error that is also returned.
 *   - `err` may be NULL where the caller does not care; all functions here accept that.
 *
 * An error is a plain value of fixed size: it owns nothing, is copied by assignment and needs no free.
 *
 *     ty_error err = {0};
 *     if (file_read(path, &buf, MAX_BYTES, &err) < 0)
 *         return ty_error_wrap(&err, "hyperparameters");
 */
#ifndef TY_BASE_ERROR_H
#define TY_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Codes, one row each in error_codes.def: TY_E_<NAME>, the printed number, the exit status, a sentence. */
typedef enum ty_code {
    TY_E_NONE = 0,
#define ERROR_CODE(name, number, exit_status, meaning) TY_E_##name = number,
#include "error_codes.def"
#undef ERROR_CODE
} ty_code;

#define TY_ERROR_MESSAGE_BYTES 1536
#define TY_ERROR_PLACE_BYTES   320
#define TY_ERROR_HELP_BYTES    384
#define TY_ERROR_DETAIL_BYTES  1536

typedef struct ty_error {
    ty_code code;                         /* TY_E_NONE: no error */
    uint64_t which;                       /* a bit for each thing it is about, where the caller can do without; or 0 */
    char message[TY_ERROR_MESSAGE_BYTES]; /* what happened, expected and found; grows at the front as it rises */
    char place[TY_ERROR_PLACE_BYTES];     /* "train.yaml:14:5", "model.onnx: graph \"main\", node #87 ...", or "" */
    char detail[TY_ERROR_DETAIL_BYTES];   /* lines shown under the place (an excerpt, inputs of a node), or "" */
    char help[TY_ERROR_HELP_BYTES];       /* one thing to do about it, or "" */
} ty_error;

#define TY_PRINTF(fmt_at, args_at) __attribute__((format(printf, fmt_at, args_at)))

/* Fills *err, replacing whatever was there. Control characters in the result are escaped. Returns -1, always, so that
 * `return ty_error_set(...)` reads well. */
int ty_error_set(ty_error *err, ty_code code, const char *fmt, ...) TY_PRINTF(3, 4);
/* As ty_error_set, with ": <strerror(errno_value)>" added and the code chosen by errno (ENOSPC, EACCES, ENOENT ...)
 * unless `code` is not TY_E_NONE. */
int ty_error_errno(ty_error *err, ty_code code, int errno_value, const char *fmt, ...) TY_PRINTF(4, 5);
/* Puts "<context>: " before the message. Returns -1. */
int ty_error_wrap(ty_error *err, const char *fmt, ...) TY_PRINTF(2, 3);
/* Sets the place (only if none is set yet: the innermost place is the exact one). Returns -1. */
int ty_error_at(ty_error *err, const char *fmt, ...) TY_PRINTF(2, 3);
/* Sets the help line (only if none is set yet). Returns -1. */
int ty_error_help(ty_error *err, const char *fmt, ...) TY_PRINTF(2, 3);
/* Appends one line to the detail block. Returns -1. */
int ty_error_detail(ty_error *err, const char *fmt, ...) TY_PRINTF(2, 3);

/* Exit status of a code, by error_codes.def; 70 (internal) for an unknown one. */
int ty_error_exit_status(ty_code code);
/* One sentence on a code for `trainyard explain`; NULL if unknown. */
const char *ty_error_meaning(ty_code code);
/* Renders as for a person. A place of the form file:line[:col] goes before the message, detail lines follow as they
 * are: error[E0107]: train.yaml:14:5: unknown key "epoch" 14 |     epoch: 3 |     ^^^^^ did you mean "epochs"? Any
 * other place gets its own line, and a frame is drawn around the detail lines: error[E0312]: unsupported attribute
 * value in ConvTranspose
 *       --> model.onnx: graph "main", node #87 "decoder/up2" (ConvTranspose, opset 11)
 *        |
 *        |   input  0  "x.41"   float32 [N, 128, 28, 28]
 *        |
 *        = help: set strides to [2, 2]
 * Writes at most n bytes with the final NUL and returns the length that would have been written, like snprintf. */
size_t ty_error_format(const ty_error *err, char *out, size_t n);

#endif
