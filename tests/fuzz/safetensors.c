/* The safetensors reader. Inputs are whole files; a second try gives the first 8 bytes the length that the header needs
 * to end at its last '}', because a fuzzer rarely finds that number. Every byte that an accepted file names is read. */
#include "base/safetensors.h"

#include <stdlib.h>
#include <string.h>

static volatile unsigned sum;

static void parse(const uint8_t *data, size_t size)
{
    ty_safetensors s;
    ty_error err = {0};
    if (ty_safetensors_parse(data, size, "fuzz.safetensors", &s, &err) < 0) {
        if (err.code == TY_E_NONE || !err.message[0])
            abort();
        return;
    }
    size_t total = 0;
    for (size_t i = 0; i < s.n_entries; i++) {
        const ty_safetensors_entry *e = &s.entries[i];
        for (size_t k = 0; k < e->n_bytes; k++)
            sum += ((const uint8_t *)e->data)[k];
        total += e->n_bytes;
        if (e->type.dtype != TY_N_DTYPES && ty_type_bytes(&e->type) != e->n_bytes)
            abort();
        if (ty_safetensors_find(&s, e->name) != e)
            abort();
    }
    if (total > size)
        abort();
    ty_safetensors_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(data, size);
    if (size < 10)
        return 0;
    uint8_t *copy = malloc(size);
    memcpy(copy, data, size);
    uint64_t length = size - 8;
    while (length > 1 && copy[8 + length - 1] != '}')
        length--;
    memcpy(copy, &length, sizeof length);
    parse(copy, size);
    free(copy);
    return 0;
}
