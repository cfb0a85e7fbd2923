/* recipe_device.c - where to train, alone or with others: `device`, whether that fits `strategy`, `distributed`. */
#include "entrypoint/recipe_reader.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* "0,1": numbers, each once. */
static bool device_numbers(ty_recipe *r, const char *text)
{
    char *end;
    for (r->n_gpus = 0; r->n_gpus < TY_MAX_GPUS && isdigit((unsigned char)*text); text = end + 1) {
        long number = strtol(text, &end, 10);
        for (int i = 0; i < r->n_gpus; i++)
            if (r->gpu[i] == number)
                return false;
        r->gpu[r->n_gpus++] = (int)number;
        if (number > 9999 || *end != ',')
            return number <= 9999 && *end == 0;
    }
    return false;
}

static int device_check_strategy(recipe_reader *rd, const ty_doc *node)
{
    const ty_recipe *r = rd->r;
    bool has_ranks = r->strategy == TY_STRATEGY_DATA_PARALLEL || r->strategy == TY_STRATEGY_MULTI_WORKER_MIRRORED;
    if (!r->mirrored && !has_ranks && r->n_gpus > 1) {
        ty_doc_error(node, rd->err, TY_E_CONFIG, NULL, "key \"device\": strategy %s trains on one GPU, found %d",
                     ty_strategy_name(r->strategy), r->n_gpus);
        return ty_error_help(rd->err, "strategy: mirrored trains on all of them");
    }
    if (r->mirrored && r->device == TY_DEVICE_CPU && r->processes_per_host < 2) {
        ty_doc_error(node, rd->err, TY_E_CONFIG, NULL, "key \"device\": strategy mirrored is for GPUs, found cpu");
        return ty_error_help(rd->err,
                             "device: auto takes the CPU where there is no GPU; processes_per_host: 2 makes two "
                             "replicas of a CPU; or strategy: one_device");
    }
    return 0;
}

const char *ty_strategy_name(ty_strategy strategy)
{
    static const char *const names[TY_N_STRATEGIES] = {
        "auto", "one_device", "mirrored", "multi_worker_mirrored", "data_parallel", "tower", "parameter_server"};
    return names[strategy];
}

int ty_recipe_read_distributed(recipe_reader *rd, const ty_doc *node)
{
    recipe_distributed d = {0};
    const recipe_section *s = &ty_recipe_distributed_section;
    if (ty_recipe_bind(rd, "distributed", s->rows, s->n_rows, node, &d) < 0)
        return -1;
    rd->r->distributed = (ty_recipe_distributed){.bucket_bytes = d.bucket_bytes,
                                                 .wire = (ty_recipe_wire)d.wire,
                                                 .hierarchical = d.hierarchical,
                                                 .optimizer_sharding = d.optimizer_sharding,
                                                 .sync_batch_norm = d.sync_batch_norm,
                                                 .timeline = d.timeline,
                                                 .stall_seconds = d.stall_seconds,
                                                 .restarts = d.restarts,
                                                 .meet_seconds = d.meet_seconds,
                                                 .port = d.port,
                                                 .interface = d.interface,
                                                 .servers = {.mode = (ty_server_mode)d.server_mode,
                                                             .partitioner = (ty_recipe_partitioner)d.partitioner,
                                                             .staleness = d.staleness,
                                                             .backup_workers = d.backup_workers,
                                                             .part_bytes = d.part_bytes,
                                                             .port = d.server_port}};
    return 0;
}

/* "auto", "cpu", "gpu", "gpu:1" or "gpu:0,1". */
int ty_recipe_read_device(recipe_reader *rd, const char *text, const ty_doc *node)
{
    if (strcmp(text, "auto") == 0 || strcmp(text, "cpu") == 0) {
        rd->r->device = text[0] == 'a' ? TY_DEVICE_AUTO : TY_DEVICE_CPU;
        return device_check_strategy(rd, node);
    }
    rd->r->device = TY_DEVICE_GPU;
    if (strcmp(text, "gpu") == 0 || (strncmp(text, "gpu:", 4) == 0 && device_numbers(rd->r, text + 4)))
        return device_check_strategy(rd, node);
    ty_doc_error(node, rd->err, TY_E_RANGE, NULL,
                 "key \"device\": expected auto, cpu, gpu, gpu:NUMBER or gpu:NUMBER,NUMBER (each once), found \"%s\"",
                 text);
    return ty_error_help(rd->err, "`trainyard doctor` lists the GPUs with their numbers");
}
