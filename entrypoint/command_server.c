/* command_server.c - `trainyard server`: a parameter server, for workers that `trainyard train --servers` starts. */
#include "base/file.h"
#include "dist/server/server.h"
#include "entrypoint/command.h"
#include "entrypoint/served.h"
#include "entrypoint/stop.h"

#include <stdio.h>
#include <stdlib.h>

enum { LISTEN, NUMBER, SAVES, RESUME, INTERFACE, SILENCE, N_OPTIONS, SERVER_TURN_MS = 200, SERVER_SILENCE_MS = 60000 };

static const ty_option options[N_OPTIONS] = {
    [LISTEN] = {"--listen", "ADDRESS", "host:port to listen on (default 0.0.0.0:8891); port 0 takes a free one", false},
    [NUMBER] = {"--number", "N", "which of the servers this is, in the order of --servers (default 0)", false},
    [SAVES] = {"--saves", "DIR", "folder of saves", false},
    [RESUME] = {"--resume", NULL, "go on from the newest complete save there", false},
    [INTERFACE] = {"--interface", "NAME", "network interface, as eth0", false},
    [SILENCE] = {"--silence", "SECONDS", "a worker that says nothing for so long is waited for no more (default 60)",
                 false},
};

static int serve(const ty_server_options *o, ty_error *err)
{
    ty_server *server;
    if (ty_stop_install(err) < 0 || ty_server_start(o, &server, err) < 0)
        return -1;
    printf("serving shard %d at %s\n", o->first_shard, ty_server_address(server));
    fflush(stdout);
    while (!ty_server_wait(server, SERVER_TURN_MS) && ty_stop_count() == 0)
        ;
    int stopped = ty_stop_count();
    if (ty_server_stop(server, err) < 0)
        return -1;
    return stopped ? 128 + ty_stop_signal() : 0;
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    (void)a;
    uint8_t key[TY_SEAL_KEY_BYTES];
    const char *number = given->value[NUMBER], *silence = given->value[SILENCE], *saves = given->value[SAVES];
    ty_server_options o = {.transport = {.name = "ucx",
                                         .listen = given->value[LISTEN] ? given->value[LISTEN] : "0.0.0.0:8891",
                                         .interface = given->value[INTERFACE]},
                           .first_shard = number ? atoi(number) : 0,
                           .n_shards = 1,
                           .job = TY_SERVED_JOB,
                           .key = key,
                           .folder = saves,
                           .resume = given->value[RESUME] != NULL,
                           .silence_ms = silence ? (int64_t)(atof(silence) * 1000) : SERVER_SILENCE_MS};
    if (ty_served_key(key, err) < 0 || (saves && ty_file_mkdirs(saves, 0755, err) < 0))
        return -1;
    return serve(&o, err);
}

const ty_command_row ty_command_server = {
    "server",
    "",
    "serve weights to workers of an asynchronous training",
    "It needs no recipe: the first worker brings names, shapes and rules. It ends when all workers have left.\n\n"
    "    trainyard server --listen=10.0.1.7:8891 &\n"
    "    trainyard train train.yaml --data-dir=data --servers=10.0.1.7:8891 --worker=0/2 --server-mode=async\n",
    options,
    N_OPTIONS,
    0,
    0,
    false,
    false,
    run};
