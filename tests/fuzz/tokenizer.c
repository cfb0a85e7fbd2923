/* A tokenizer.json, a NUL byte, and a text: what is accepted encodes any text within its bounds, the same each time. */
#include "container/input/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MAX_IDS = 4096 };
    static int32_t ids[MAX_IDS], again[MAX_IDS];
    static uint8_t mask[64], types[64];
    const uint8_t *end = memchr(data, 0, size);
    size_t n = end != NULL ? (size_t)(end - data) : size;
    const char *text = end != NULL ? (const char *)end + 1 : "Hello world";
    size_t n_text = end != NULL ? size - n - 1 : 11;
    ty_tokenizer *t;
    ty_error err = {0};
    if (ty_tokenizer_parse("fuzz", (const char *)data, n, &t, &err) < 0) {
        if (err.code == TY_E_NONE || !err.message[0])
            abort();
        return 0;
    }
    int64_t count = ty_tokenizer_encode(t, text, n_text, true, ids, MAX_IDS, &err);
    if (count != ty_tokenizer_encode(t, text, n_text, true, again, MAX_IDS, &err))
        abort();
    for (int64_t i = 0; i < count && i < MAX_IDS; i++)
        if (ids[i] != again[i] || ids[i] < 0 || ids[i] >= ty_tokenizer_size(t))
            abort();
    int64_t row = ty_tokenizer_row(t, text, n_text, 64, 0, ids, mask, types, &err);
    for (int64_t i = 0, n_real = 0; row >= 0 && i < 64; i++) {
        n_real += mask[i];
        if (i == 63 && n_real != row)
            abort();
    }
    ty_tokenizer_free(t);
    return 0;
}
