/* The JSON reader and writer: whatever is accepted must read back, as itself, from what we write. */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

static void round_trip(ty_arena *arena, const ty_doc *d, int style)
{
    ty_buf first, second;
    ty_buf_init(&first, (size_t)64 << 20);
    ty_buf_init(&second, (size_t)64 << 20);
    ty_doc *again;
    ty_error err = {0};
    if (ty_json_add_doc(&first, d, style) < 0 ||
        ty_json_parse(arena, "again", first.data, first.len, NULL, &again, &err) < 0 ||
        ty_json_add_doc(&second, again, style) < 0)
        abort();
    if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)
        abort();
    ty_buf_fini(&first);
    ty_buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_doc *d;
    ty_error err = {0};
    if (ty_json_parse(&arena, "fuzz.json", (const char *)data, size, NULL, &d, &err) == 0) {
        round_trip(&arena, d, TY_JSON_COMPACT);
        round_trip(&arena, d, TY_JSON_PYTHON | TY_JSON_SORTED);
    } else if (err.code == TY_E_NONE || !err.message[0]) {
        abort();
    }
    ty_arena_fini(&arena);
    return 0;
}
