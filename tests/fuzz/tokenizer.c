/* A tokenizer.json, a NUL byte, and a text: what is accepted encodes any text within its bounds, the same each time;
 * and its halves as a pair, cut into words. */
#include "container/input/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

/* Of halves of the text the first is cut at blanks. */
static void encode_pair(const ty_tokenizer *t, const char *text, size_t n)
{
    enum { LENGTH = 16, MAX_WORDS = 8 };
    int32_t ids[LENGTH], word[LENGTH];
    uint8_t types[LENGTH];
    ty_text words[MAX_WORDS] = {{text, 0}}, second = {text + n / 2, n - n / 2};
    ty_token_texts texts = {.word = words, .n_words = 1, .second = &second, .n_second = 1};
    ty_error err = {0};
    for (size_t i = 0; i < n / 2; i++) {
        if (text[i] == ' ' && texts.n_words < MAX_WORDS)
            words[texts.n_words++] = (ty_text){text + i + 1, 0};
        else
            words[texts.n_words - 1].n++;
    }
    int64_t count = ty_tokenizer_encode_texts(t, &texts, LENGTH, ids, types, word, &err);
    if (count > LENGTH)
        abort();
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= ty_tokenizer_size(t) || word[i] < -1 || word[i] >= texts.n_words ||
            types[i] >= ty_tokenizer_n_types(t, true))
            abort();
}

/* A piece of the second half is in the row that both halves make, or nowhere. */
static void locate(const ty_tokenizer *t, const char *text, size_t n)
{
    enum { LENGTH = 24 };
    ty_text first = {text, n / 2}, second = {text + n / 2, n - n / 2};
    ty_token_texts texts = {.word = &first, .n_words = 1, .second = &second, .n_second = 1};
    int32_t ids[LENGTH];
    int64_t from, to;
    ty_error err = {0};
    for (size_t at = 0; at < second.n && at < 8; at++) {
        if (ty_tokenizer_locate(t, &texts, at, at + 1 + (second.n - at) / 2, LENGTH, &from, &to, &err) < 0)
            return;
        int64_t count = ty_tokenizer_encode_texts(t, &texts, LENGTH, ids, NULL, NULL, &err);
        if (from < -1 || to < from || to >= count || (from < 0) != (to < 0))
            abort();
    }
}

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
    encode_pair(t, text, n_text);
    locate(t, text, n_text);
    ty_tokenizer_free(t);
    return 0;
}
