/* dl.c - dlopen with a table. */
#include "base/dl.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static void *open_first(const char *const *names, ty_error *err)
{
    for (const char *const *name = names; *name; name++) {
        void *handle = dlopen(*name, RTLD_LAZY | RTLD_LOCAL);
        if (handle)
            return handle;
        const char *reason = dlerror();
        /* The first name is the preferred one; its failure is worth reading, and more so that of a file which is there.
         */
        if (name == names || (strchr(*name, '/') && access(*name, F_OK) == 0))
            ty_error_set(err, TY_E_NOT_FOUND, "cannot open library %s", reason ? reason : *name); /* has the name */
    }
    return NULL;
}

int ty_dl_open(const char *const *names, const ty_dl_symbol *symbols, size_t n_symbols, void *table, void **handle,
               ty_error *err)
{
    *handle = NULL;
    void *library = open_first(names, err);
    if (!library)
        return -1;
    for (size_t i = 0; i < n_symbols; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address && !symbols[i].optional) {
            dlclose(library);
            return ty_error_set(err, TY_E_LIBRARY, "library %s has no function %s: too old, or another library",
                                names[0], symbols[i].name);
        }
        /* ISO C has no cast from object to function pointer; POSIX promises that the bytes are the same. */
        memcpy((char *)table + symbols[i].offset, &address, sizeof address);
    }
    *handle = library;
    return 0;
}

void ty_dl_close(void *handle)
{
    if (handle)
        dlclose(handle);
}
