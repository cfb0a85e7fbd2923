/* A shard's file of a save: any bytes are taken or refused with words. The checksum is made right first, so that what
 * is behind it is reached too. */
#include "base/hash.h"
#include "dist/server/keep.h"

#include <stdlib.h>
#include <string.h>

static const char catalogue[] =
    "{\"format\":1,\"shards\":1,\"workers\":1,\"mode\":\"async\",\"staleness\":0,\"backup\":0,\"variables\":["
    "{\"name\":\"d\",\"table\":false,\"hashed\":false,\"mod\":false,\"rows\":5,\"width\":2,\"parts\":2,\"seed\":0,"
    "\"scale\":0.0,\"rule\":{\"kind\":\"adam\",\"nesterov\":false,\"rate\":0.1,\"momentum\":0.0,\"beta1\":0.9,"
    "\"beta2\":0.99,\"eps\":0.1,\"initial\":0.0,\"l1\":0.0,\"l2\":0.0,\"beta\":0.0}},"
    "{\"name\":\"h\",\"table\":true,\"hashed\":true,\"mod\":true,\"rows\":0,\"width\":3,\"parts\":2,\"seed\":3,"
    "\"scale\":0.5,\"rule\":{\"kind\":\"ftrl\",\"nesterov\":false,\"rate\":0.1,\"momentum\":0.0,\"beta1\":0.0,"
    "\"beta2\":0.0,\"eps\":0.0,\"initial\":0.1,\"l1\":0.0,\"l2\":0.0,\"beta\":0.0}}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_shard s;
    ty_error err = {0};
    if (ty_shard_init(&s, &(ty_shard_options){.max_rows = 1000}, &err) < 0 ||
        ty_shard_define(&s, catalogue, sizeof catalogue - 1, &err) < 0)
        abort();
    uint8_t *bytes = malloc(size + 1);
    memcpy(bytes, data, size);
    if (size >= 4) {
        uint32_t crc = ty_crc32c(0, bytes, size - 4);
        memcpy(bytes + size - 4, &crc, sizeof crc);
    }
    if (ty_keep_take(&s, "file", bytes, size, &err) < 0 && (err.code == TY_E_NONE || !err.message[0]))
        abort();
    free(bytes);
    ty_shard_fini(&s);
    return 0;
}
