/* What a shard makes of any messages: it takes them or refuses them, and its dense values stay the size they are. The
 * input is messages, each behind 4 bytes with its length; heads are given what a stranger would know. */
#include "dist/server/shard.h"

#include <stdlib.h>
#include <string.h>

static void drop(void *ctx, int64_t peer, void *bytes, size_t n_bytes)
{
    ty_parcel m;
    ty_error err = {0};
    (void)ctx;
    (void)peer;
    if (ty_parcel_read(bytes, n_bytes, &m, &err) < 0 || m.kind != TY_PARCEL_ANSWER)
        abort();
    free(bytes);
}

static const char catalogue[] =
    "{\"format\":1,\"shards\":2,\"workers\":2,\"mode\":\"bounded\",\"staleness\":1,\"backup\":0,\"variables\":["
    "{\"name\":\"d\",\"table\":false,\"hashed\":false,\"mod\":false,\"rows\":5,\"width\":2,\"parts\":2,\"seed\":0,"
    "\"scale\":0.0,\"rule\":{\"kind\":\"adam\",\"nesterov\":false,\"rate\":0.1,\"momentum\":0.0,\"beta1\":0.9,"
    "\"beta2\":0.99,\"eps\":0.1,\"initial\":0.0,\"l1\":0.0,\"l2\":0.0,\"beta\":0.0}},"
    "{\"name\":\"h\",\"table\":true,\"hashed\":true,\"mod\":true,\"rows\":0,\"width\":3,\"parts\":2,\"seed\":3,"
    "\"scale\":0.5,\"rule\":{\"kind\":\"ftrl\",\"nesterov\":false,\"rate\":0.1,\"momentum\":0.0,\"beta1\":0.0,"
    "\"beta2\":0.0,\"eps\":0.0,\"initial\":0.1,\"l1\":0.0,\"l2\":0.0,\"beta\":0.0}}]}";

static void take(ty_shard *s, const uint8_t *data, size_t n)
{
    void *bytes = malloc(n ? n : 1);
    memcpy(bytes, data, n);
    if (n >= sizeof(ty_parcel)) {
        ty_parcel *m = bytes;
        m->magic = TY_PARCEL_MAGIC;
        m->format = TY_PARCEL_FORMAT;
        m->job = 0;
        m->shard = 0;
    }
    ty_shard_take(s, bytes, n, 0, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_shard s;
    ty_error err = {0};
    if (ty_shard_init(&s, &(ty_shard_options){.answer = drop, .max_rows = 1000, .silence_ms = 10}, &err) < 0)
        abort();
    if (size % 2 && ty_shard_define(&s, catalogue, sizeof catalogue - 1, &err) < 0)
        abort();
    for (size_t at = 0; size - at >= 4;) {
        uint32_t n;
        memcpy(&n, data + at, sizeof n);
        at += 4;
        n = n < size - at ? n : (uint32_t)(size - at);
        take(&s, data + at, n);
        at += n;
    }
    ty_shard_tick(&s, 100);
    ty_shard_fini(&s);
    return 0;
}
