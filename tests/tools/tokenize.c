/* tokenize - ids of texts, for tests/tokenizer/judge.py.
 *
 *     tokenize TOKENIZER TEXTS [all|raw|row N|pair N|words N|locate N] [THREADS ROUNDS]
 *
 * TEXTS: for each text its length as uint32, then its bytes. One line of ids each on stdout (raw: without special
 * tokens; row: ids, then the mask; pair: each text but the last with the one behind it, ids, then types; words: the
 * text cut at single blanks, ids, then the number of the word that each is of; locate: of a pair whose second text is
 * three: what stands before a piece, it, and what stands behind, the places of its first and last id); with THREADS and
 * ROUNDS only the bytes and seconds of so many threads.
 */
#include "base/clock.h"
#include "base/file.h"
#include "container/input/tokenizer/tokenizer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ty_tokenizer *tokenizer;
static ty_buf texts;
static long rounds;

static void fail(const ty_error *err)
{
    char text[4096];
    ty_error_format(err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static const char *next(size_t *at, size_t *n)
{
    uint32_t length;
    if (texts.len - *at < sizeof length)
        return NULL;
    memcpy(&length, texts.data + *at, sizeof length);
    *at += sizeof length + length;
    if (*at > texts.len)
        exit(2);
    *n = length;
    return texts.data + *at - length;
}

static void *work(void *arg)
{
    (void)arg;
    static const int64_t room = 1 << 20;
    int32_t *ids = malloc((size_t)room * sizeof *ids);
    for (long r = 0; r < rounds; r++) {
        size_t n;
        const char *text;
        ty_error err = {0};
        for (size_t at = 0; (text = next(&at, &n)) != NULL;)
            if (ty_tokenizer_encode(tokenizer, text, n, true, ids, room, &err) < 0)
                fail(&err);
    }
    free(ids);
    return NULL;
}

static void measure(int n_threads)
{
    pthread_t thread[64];
    int64_t start = ty_clock_ns();
    for (int i = 0; i < n_threads; i++)
        if (pthread_create(&thread[i], NULL, work, NULL) != 0)
            exit(2);
    for (int i = 0; i < n_threads; i++)
        pthread_join(thread[i], NULL);
    printf("%zu %.6f\n", texts.len * (size_t)rounds * (size_t)n_threads, (double)(ty_clock_ns() - start) / 1e9);
}

static void print(const char *text, size_t n, const char *how, int64_t length)
{
    ty_error err = {0};
    static int32_t ids[1 << 20];
    static uint8_t mask[1 << 20];
    int64_t count = length > 0 ? length : 0;
    if (length > 0 && ty_tokenizer_row(tokenizer, text, n, length, -1, ids, mask, NULL, &err) < 0)
        fail(&err);
    if (length == 0)
        count = ty_tokenizer_encode(tokenizer, text, n, strcmp(how, "all") == 0, ids, 1 << 20, &err);
    if (count < 0)
        fail(&err);
    for (int64_t i = 0; i < count; i++)
        printf(i ? " %d" : "%d", ids[i]);
    for (int64_t i = 0; i < count && length > 0; i++)
        printf(" %d", mask[i]);
    printf("\n");
}

static void print_texts(const ty_token_texts *texts, bool is_pair, int64_t length)
{
    ty_error err = {0};
    static int32_t ids[1 << 20], word[1 << 20];
    static uint8_t types[1 << 20];
    int64_t count = ty_tokenizer_encode_texts(tokenizer, texts, length, ids, types, word, &err);
    if (count < 0)
        fail(&err);
    for (int64_t i = 0; i < count; i++)
        printf(i ? " %d" : "%d", ids[i]);
    for (int64_t i = 0; i < count; i++)
        printf(" %d", is_pair ? types[i] : word[i]);
    printf("\n");
}

static void print_pairs(int64_t length)
{
    ty_text last = {0}, text;
    for (size_t at = 0; (text.p = next(&at, &text.n)) != NULL; last = text)
        if (last.p)
            print_texts(&(ty_token_texts){.word = &last, .n_words = 1, .second = &text, .n_second = 1}, true, length);
}

static void print_words(int64_t length)
{
    static ty_text word[1 << 16];
    ty_text text;
    for (size_t at = 0; (text.p = next(&at, &text.n)) != NULL;) {
        int64_t n = 0;
        for (size_t from = 0, i = 0; i <= text.n && n < 1 << 16; i++)
            if (i == text.n || text.p[i] == ' ') {
                word[n++] = (ty_text){text.p + from, i - from};
                from = i + 1;
            }
        print_texts(&(ty_token_texts){.word = word, .n_words = n}, false, length);
    }
}

/* Texts by fours: the first of a pair, and the second in three pieces. */
static void print_places(int64_t length)
{
    static char joined[1 << 20];
    ty_error err = {0};
    ty_text one, piece[3];
    for (size_t at = 0; (one.p = next(&at, &one.n)) != NULL;) {
        size_t n = 0, end[3];
        for (int i = 0; i < 3; i++) {
            piece[i].p = next(&at, &piece[i].n);
            memcpy(joined + n, piece[i].p, piece[i].n);
            end[i] = n += piece[i].n;
        }
        const ty_text two = {joined, n};
        int64_t first, last;
        ty_token_texts texts = {.word = &one, .n_words = 1, .second = &two, .n_second = 1};
        if (ty_tokenizer_locate(tokenizer, &texts, end[0], end[1], length, &first, &last, &err) < 0)
            fail(&err);
        printf("%lld %lld\n", (long long)first, (long long)last);
    }
}

int main(int argc, char **argv)
{
    ty_error err = {0};
    ty_buf_init(&texts, (size_t)1 << 30);
    if (argc < 3)
        return 2;
    if (ty_tokenizer_load(argv[1], &tokenizer, &err) < 0 || ty_file_read(argv[2], &texts, &err) < 0)
        fail(&err);
    const char *how = argc > 3 ? argv[3] : "all", *text;
    int64_t length = strcmp(how, "row") == 0 && argc > 4 ? atoll(argv[4]) : 0;
    size_t n;
    if (strcmp(how, "pair") == 0 && argc > 4) {
        print_pairs(atoll(argv[4]));
    } else if (strcmp(how, "locate") == 0 && argc > 4) {
        print_places(atoll(argv[4]));
    } else if (strcmp(how, "words") == 0 && argc > 4) {
        print_words(atoll(argv[4]));
    } else if (length == 0 && argc > 5) {
        rounds = atol(argv[5]);
        measure(atoi(argv[4]));
    } else {
        for (size_t at = 0; (text = next(&at, &n)) != NULL;)
            print(text, n, how, length);
    }
    ty_tokenizer_free(tokenizer);
    ty_buf_fini(&texts);
    return 0;
}
