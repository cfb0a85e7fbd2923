/* dl.h - libraries that are opened while the program runs, because they cost start time or may be absent.
 *
 * A struct of function pointers, filled by name; an absent library is a normal answer.
 *
 *     struct vendor { int (*version)(void); int (*extra)(int); };
 *     static const ty_dl_symbol symbols[] = {
 *         {"vendor_version", offsetof(struct vendor, version)},
 *         {"vendor_extra", offsetof(struct vendor, extra), .optional = true},    // NULL where the library has none
 *     };
 *     static const char *const names[] = {"libvendor.so.2", "libvendor.so", NULL};
 *     struct vendor v;
 *     void *handle;
 *     if (ty_dl_open(names, symbols, 2, &v, &handle, err) < 0) ...
 */
#ifndef TY_BASE_DL_H
#define TY_BASE_DL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct ty_dl_symbol {
    const char *name;
    size_t offset; /* of a pointer in the table */
    bool optional;
} ty_dl_symbol;

/* Opens the first of the names that is there and fills the table. TY_E_NOT_FOUND if none is, with the loader's words
 * about the first name, or about the last path that leads to a file; TY_E_LIBRARY, naming the symbol, if one is missing
 * (the library is closed again). names is NULL-terminated. */
int ty_dl_open(const char *const *names, const ty_dl_symbol *symbols, size_t n_symbols, void *table, void **handle,
               ty_error *err);
/* NULL is fine. */
void ty_dl_close(void *handle);

#endif
