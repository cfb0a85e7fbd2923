/* golden_file.h - files of tests/golden. */
#ifndef TY_TESTS_UNIT_GOLDEN_FILE_H
#define TY_TESTS_UNIT_GOLDEN_FILE_H

#include "base/file.h"

#include <stdio.h>

/* All of it, up to 4 MiB; the caller's (ty_buf_fini). */
static inline void golden_read(const char *folder, const char *name, ty_buf *out)
{
    char path[256];
    ty_error err = {0};
    snprintf(path, sizeof path, "tests/golden/%s/%s", folder, name);
    ty_buf_init(out, (size_t)4 << 20);
    if (ty_file_read(path, out, &err) < 0)
        fail_msg("%s: %s", path, err.message);
}

#endif
