/* command_data_serve.c - `trainyard data serve-pipe`: a channel in Pipe mode, from files of this machine. */
#include "container/input/serve/serve.h"
#include "entrypoint/command_data.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t serve_stop;

/* Again and again, since a signal between a look at the flag and a call that waits would be lost. */
static void serve_on_signal(int number)
{
    (void)number;
    serve_stop = 1;
    alarm(1);
}

static void serve_listen(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGALRM};
    struct sigaction how = {.sa_handler = serve_on_signal}; /* without SA_RESTART */
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &how, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int serve_number(const ty_arguments_given *given, int option, const char *name, int64_t *out, ty_error *err)
{
    const char *text = given->value[option];
    char *end;
    if (text == NULL)
        return 0;
    long long n = strtoll(text, &end, 10);
    if (end == text || *end != 0 || n < 0)
        return ty_error_set(err, TY_E_USAGE, "%s needs a number, found \"%.100s\"", name, text);
    *out = n;
    return 0;
}

static int serve_shard(const char *text, ty_serve_config *c, ty_error *err)
{
    long long shard, n;
    char more;
    if (text == NULL)
        return 0;
    if (sscanf(text, "%lld/%lld%c", &shard, &n, &more) != 2 || shard < 0 || n < 1 || shard >= n)
        return ty_error_set(err, TY_E_USAGE, "--shard needs I/N with 0 <= I < N, found \"%.100s\"", text);
    c->shard = shard;
    c->n_shards = n;
    return 0;
}

/* "image-ref,label" as a list. */
static void serve_attributes(const char *text, ty_serve_config *c, ty_arena *a)
{
    if (text == NULL)
        return;
    char *words = ty_arena_strdup(a, text), *rest;
    const char **list = TY_NEW_ARRAY(a, const char *, strlen(text) / 2 + 1);
    for (char *word = strtok_r(words, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest))
        list[c->n_attributes++] = word;
    c->attributes = list;
}

static int serve_config(const ty_arguments_given *given, ty_serve_config *c, ty_arena *a, ty_error *err)
{
    int64_t seed = 0;
    *c = (ty_serve_config){.paths = &given->words[1],
                           .n_paths = given->n_words - 1,
                           .into = given->value[TY_DATA_INTO],
                           .channel = given->value[TY_DATA_CHANNEL],
                           .wrap = given->value[TY_DATA_WRAP] != NULL,
                           .is_verbatim = given->value[TY_DATA_COMPRESSED] != NULL,
                           .shuffle = given->value[TY_DATA_SHUFFLE] != NULL,
                           .stop = &serve_stop};
    if (c->into == NULL)
        return ty_error_set(err, TY_E_USAGE, "`data serve-pipe` needs --into=FOLDER, where the FIFOs will be");
    if (c->channel == NULL)
        c->channel = "training";
    if (strchr(c->channel, '/') != NULL || c->channel[0] == 0)
        return ty_error_set(err, TY_E_USAGE, "--channel needs a name, found \"%.100s\"", c->channel);
    if (serve_number(given, TY_DATA_EPOCHS, "--epochs", &c->epochs, err) < 0 ||
        serve_number(given, TY_DATA_SHUFFLE, "--shuffle", &seed, err) < 0 ||
        serve_shard(given->value[TY_DATA_SHARD], c, err) < 0)
        return -1;
    c->seed = (uint64_t)seed;
    serve_attributes(given->value[TY_DATA_ATTRIBUTES], c, a);
    return 0;
}

int ty_command_data_serve(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_serve_config config;
    ty_serve_told told;
    if (serve_config(given, &config, a, err) < 0)
        return -1;
    serve_listen();
    if (ty_serve_channel(&config, &told, err) < 0)
        return -1;
    printf("%lld epochs of %lld objects", (long long)told.n_epochs, (long long)told.n_objects);
    if (told.n_left > 0)
        printf(", %lld left before the end", (long long)told.n_left);
    printf(", %.1f MB in %.2f s", (double)told.n_bytes / 1e6, told.written_s);
    printf(told.written_s > 0 ? ", %.0f MB/s\n" : "\n", (double)told.n_bytes / 1e6 / told.written_s);
    return 0;
}
