/* The checkpoint manifest: any bytes, as they are and with a hash that fits, so that the fuzzer gets past it. What is
 * accepted must read back as itself from what we write. */
#include "container/output/manifest.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static void check_round_trip(ty_arena *arena, const ty_manifest *m)
{
    ty_buf text;
    ty_manifest again;
    ty_error err = {0};
    ty_buf_init(&text, 8 << 20);
    if (ty_manifest_format(m, &text, &err) < 0 ||
        ty_manifest_parse(text.data, text.len, "again", arena, &again, &err) < 0 || again.world_size != m->world_size ||
        memcmp(again.files, m->files, sizeof *m->files * (size_t)m->world_size) != 0 ||
        memcmp(&again.state.best_metric, &m->state.best_metric, sizeof(double)) != 0 ||
        again.state.step != m->state.step || again.state.seed != m->state.seed || again.state.rng != m->state.rng ||
        again.state.batch != m->state.batch || strcmp(again.state.plan_hash, m->state.plan_hash) != 0 ||
        strcmp(again.state.run, m->state.run) != 0)
        abort();
    ty_buf_fini(&text);
}

static void parse(const char *text, size_t n_bytes)
{
    ty_arena arena;
    ty_manifest m;
    ty_error err = {0};
    ty_arena_init(&arena);
    if (ty_manifest_parse(text, n_bytes, "MANIFEST.json", &arena, &m, &err) == 0)
        check_round_trip(&arena, &m);
    else if (err.code == TY_E_NONE || !err.message[0])
        abort();
    ty_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse((const char *)data, size);
    uint8_t digest[TY_SHA256_BYTES];
    char hex[TY_SHA256_HEX_BYTES];
    ty_buf text;
    ty_buf_init(&text, 8 << 20);
    if (ty_buf_add(&text, data, size) == 0 && ty_sha256_bytes(data, size, digest, NULL) == 0 &&
        ty_buf_addf(&text, "  \"sha256\": \"%s\"\n}\n", ty_sha256_hex(digest, hex)) == 0)
        parse(text.data, text.len);
    ty_buf_fini(&text);
    return 0;
}
