/* command_local.c - `trainyard local FILE`: a managed job, on this machine. */
#include "dist/mishap.h"
#include "entrypoint/command.h"
#include "entrypoint/local.h"

#include <stdlib.h>
#include <string.h>

enum { NODES, DOCKER, NO_DOCKER, IMAGE, DOCKER_OPTIONS, INPUT, OUTPUT, FAULT, KEEP, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [NODES] = {"--nodes", "N", "so many hosts, whatever the job says", false},
    [DOCKER] = {"--docker", NULL, "hosts are containers", false},
    [NO_DOCKER] = {"--no-docker", NULL, "hosts are processes", false},
    [IMAGE] = {"--image", "IMAGE", "in place of the job's", false},
    [DOCKER_OPTIONS] = {"--docker-options", "WORDS", "for `docker run`, such as \"--gpus all --shm-size 1g\"", false},
    [INPUT] = {"--input", "NAME=PATH", "folder or file here as the channel's content", true},
    [OUTPUT] = {"--output", "DIR", "for model, output, checkpoints and logs (default: the job's name)", false},
    [FAULT] = {"--fault", "FAULT",
               "kill:rank=1,step=50: that rank is killed in that step; stop: hangs, term: is told to "
               "stop",
               false},
    [KEEP] = {"--keep", NULL, "leave the hosts' /opt/ml in DIR/hosts", false},
};

static int read_nodes(const char *text, int *nodes, ty_error *err)
{
    char *end;
    long n = text ? strtol(text, &end, 10) : 0;
    if (text && (*end || end == text || n < 1 || n > TY_STAGE_MAX_HOSTS))
        return ty_error_set(err, TY_E_USAGE, "--nodes takes a number from 1 to %d, not \"%s\"", TY_STAGE_MAX_HOSTS,
                            text);
    *nodes = (int)n;
    return 0;
}

static int read_inputs(const ty_arguments_given *g, ty_local_options *o, ty_arena *a, ty_error *err)
{
    ty_stage_input *list = TY_NEW_ARRAY(a, ty_stage_input, g->n_repeated + 1);
    for (int i = 0; i < g->n_repeated; i++) {
        const char *equals = strchr(g->repeated[i], '=');
        if (!equals || equals == g->repeated[i] || !equals[1])
            return ty_error_set(err, TY_E_USAGE, "--input takes CHANNEL=PATH, not \"%s\"", g->repeated[i]);
        list[i] = (ty_stage_input){ty_arena_strndup(a, g->repeated[i], (size_t)(equals - g->repeated[i])), equals + 1};
    }
    o->inputs = list;
    o->n_inputs = g->n_repeated;
    return 0;
}

static int run(const ty_arguments_given *g, ty_arena *a, ty_error *err)
{
    ty_mishap mishap;
    ty_local_options o = {.image = g->value[IMAGE],
                          .into = g->value[OUTPUT],
                          .engine_options = g->value[DOCKER_OPTIONS],
                          .fault = g->value[FAULT],
                          .words = g->rest,
                          .keep = g->value[KEEP] != NULL};
    if (g->value[DOCKER] && g->value[NO_DOCKER])
        return ty_error_set(err, TY_E_USAGE, "--docker and --no-docker are both given");
    o.way = g->value[DOCKER] ? TY_LOCAL_DOCKER : g->value[NO_DOCKER] ? TY_LOCAL_PROCESSES : TY_LOCAL_EITHER;
    if (o.fault && ty_mishap_parse(o.fault, &mishap, err) < 0)
        return -1;
    if (read_nodes(g->value[NODES], &o.nodes, err) < 0 || read_inputs(g, &o, a, err) < 0)
        return -1;
    return ty_local(g->words[0], &o, a, err);
}

const ty_command_row ty_command_local = {
    "local",
    "FILE [--key=value ...]",
    "run a job file's job on this machine",
    "Each host of the job gets an /opt/ml of its own, as on the platform, and is a container where docker has the\n"
    "job's image, else a process of yours. Channels are folders of this machine (inputs.NAME.local in the job file,\n"
    "file://, --input), or fetched from S3. Settings go on to the hosts. Ctrl-C is the platform's stop.\n\n"
    "    trainyard local job.yaml --nodes 2 --epochs=1\n"
    "    trainyard local job.yaml --nodes 3 --fault kill:rank=1,step=50\n\n"
    "exit status\n"
    "  0 completed, 3 stopped, 4 failed, 5 stopped because its time was up\n",
    options,
    N_OPTIONS,
    1,
    1,
    true,
    false,
    run};
