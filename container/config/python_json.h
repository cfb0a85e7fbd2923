/* python_json.h - reads a JSON text by the rules of Python's json.loads.
 *
 * Files are read with base/json.h, which is strict. Hyperparameter values are not: whether "NaN" or {"a":1,"a":2} is
 * JSON or a plain string decides what the user's script receives, and Python scripts have been told by json.loads. It
 * differs from RFC 8259 in taking NaN, Infinity and -Infinity, numbers beyond double (infinity), integers of any size
 * (exact), lone surrogates, \u0000, and repeated keys, of which the last counts.
 */
#ifndef TY_CONTAINER_CONFIG_PYTHON_JSON_H
#define TY_CONTAINER_CONFIG_PYTHON_JSON_H

#include "container/config/value.h"

#define TY_PYTHON_JSON_MAX_DEPTH 64

/* True and *out filled if text[0..n) is one JSON text with nothing but whitespace around it. False says only that it is
 * not: there is no error to report, the caller keeps the text as a string. Nested deeper than TY_PYTHON_JSON_MAX_DEPTH
 * counts as not. */
bool ty_python_json_read(ty_arena *a, const char *text, size_t n, ty_value *out);

#endif
