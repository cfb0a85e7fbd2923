/* The reader of ~/.aws/config and credentials: whatever is accepted is found again under its names. */
#include "estimator_spec/aws/ini.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_arena arena;
    ty_ini ini;
    ty_error err = {0};
    ty_arena_init(&arena);
    if (ty_ini_parse(&arena, "fuzz.ini", (const char *)data, size, &ini, &err) == 0) {
        for (size_t i = 0; i < ini.n && i < 200; i++) {
            const ty_ini_entry *e = &ini.at[i];
            if (!ty_ini_has(&ini, e->section) ||
                (e->key && (!*e->key || strcmp(ty_ini_get(&ini, e->section, e->key), e->value) != 0)))
                abort();
        }
    } else if (err.code == TY_E_NONE || !err.message[0])
        abort();
    ty_arena_fini(&arena);
    return 0;
}
