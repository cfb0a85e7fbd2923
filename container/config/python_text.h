/* python_text.h - values in the spelling that Python scripts were given by the SageMaker toolkit.
 *
 * The same value has three texts, and users rely on all of them:
 *
 *     decoded value     environment (SM_HP_*)   argument          json.dumps
 *     true              true                    True              true
 *     null              (empty)                 (empty)           null
 *     [64, "x"]         [64,"x"]                [64, 'x']         [64, "x"]
 *     {"b":1,"a":null}  {"a":null,"b":1}        a=None,b=1        {"b": 1, "a": null}
 *     1e16              1e+16                   1e+16             1e+16
 *
 * Spellings follow CPython: float.__repr__ (shortest digits that round-trip), str.__repr__ and json.dumps.
 * All return 0, or -1 when `out` reached its limit. Nesting is bounded by whoever built the value.
 */
#ifndef TY_CONTAINER_CONFIG_PYTHON_TEXT_H
#define TY_CONTAINER_CONFIG_PYTHON_TEXT_H

#include "base/buf.h"
#include "container/config/value.h"

/* float.__repr__: "0.1", "1000.0", "1e-05", "1e+16", "-0.0", "inf", "nan". */
int ty_python_float(ty_buf *out, double d);
/* repr(v): strings quoted, nested values too. */
int ty_python_repr(ty_buf *out, const ty_value *v);
/* str(v): as repr, but a string stands as it is. */
int ty_python_str(ty_buf *out, const ty_value *v);
/* The text of a command-line argument (contract, section 6). */
int ty_python_argument(ty_buf *out, const ty_value *v);
/* The text of an SM_* variable (contract, section 5.1). */
int ty_python_environment(ty_buf *out, const ty_value *v);
/* json.dumps(v, sort_keys=True, separators=(",", ":")): ASCII only. */
int ty_python_json_compact(ty_buf *out, const ty_value *v);
/* json.dumps(v): the file's order, comma-space and colon-space. */
int ty_python_json(ty_buf *out, const ty_value *v);

#endif
