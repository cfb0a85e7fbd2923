/* command_doctor.c - `trainyard doctor`: what this machine has, and what the lack of each thing costs. */
#include "base/json.h"
#include "base/quantity.h"
#include "base/version.h"
#include "compiler/machine.h"
#include "dist/plugin.h"
#include "entrypoint/command.h"
#include "entrypoint/memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

enum { JSON, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [JSON] = {"--json", NULL, "one JSON object on stdout", false},
};

/* Folders that a training needs room in. */
static const char *const folders[] = {"/dev/shm", "/tmp", "/opt/ml"};
enum { N_FOLDERS = sizeof folders / sizeof *folders };

/* What plug-ins bring (dist/plugin.h). None is needed to train in one process. */
static const struct {
    const char *title, *plugin, *without;
} libraries[] = {
    {"Open MPI", "mpi", "no training in several processes or on several hosts"},
    {"PMIx", "pmix", "no training in several processes or on several hosts"},
    {"UCX", "ucx", "no parameter servers"},
};
enum { N_LIBRARIES = sizeof libraries / sizeof *libraries };

typedef struct doctor {
    ty_machine_facts machine;
    uint64_t memory_bytes;
    const char *memory_why;
    uint64_t free_bytes[N_FOLDERS];
    bool has[N_FOLDERS];
    ty_machine_gpu gpu;       /* that training takes */
    const char *no_training;  /* why there is none; NULL */
    ty_machine_gpu *together; /* that strategy: mirrored takes */
    int n_together;
    const char *not_together; /* why not; NULL */
    int n_ranks;              /* of this host that can have a GPU each */
    const char *not_as_ranks; /* why not; NULL */
} doctor;

/* A library's version is the first number in what it says: "Open MPI v4.1.4, package: ..." is 4.1.4. */
static const char *number_in(const char *text, ty_arena *a)
{
    const char *from = text + strcspn(text, "0123456789");
    return ty_arena_printf(a, "%.*s", (int)strcspn(from, " ,"), from);
}

static ty_machine_part look_at_library(int i, ty_arena *a)
{
    ty_machine_part part = {.title = libraries[i].title, .where = "", .without = libraries[i].without};
    ty_error err = {0};
    const char *path, *version;
    if (ty_plugin_look(libraries[i].plugin, &path, &version, &err) == 0) {
        part.version = number_in(version, a);
        part.where = ty_arena_strdup(a, path);
    } else {
        part.why_not = ty_arena_printf(a, "%s; %s", err.message, err.help);
    }
    return part;
}

/* The compiler's parts and, behind them, what many hosts need. */
static void add_libraries(ty_machine_facts *m, ty_arena *a)
{
    ty_machine_part *all = TY_NEW_ARRAY(a, ty_machine_part, (size_t)m->n_parts + N_LIBRARIES);
    memcpy(all, m->part, (size_t)m->n_parts * sizeof *all);
    for (int i = 0; i < N_LIBRARIES; i++)
        all[m->n_parts++] = look_at_library(i, a);
    m->part = all;
}

static void examine(doctor *d, ty_arena *a)
{
    ty_error err = {0};
    ty_machine_look(NULL, a, &d->machine);
    add_libraries(&d->machine, a);
    d->no_training = ty_machine_find_gpu(-1, a, &d->gpu, &err) < 0 ? ty_arena_strdup(a, err.message) : NULL;
    if (ty_machine_find_gpus(NULL, 0, TY_CROSS_NCCL, a, &d->together, &d->n_together, &err) < 0)
        d->not_together = ty_arena_strdup(a, err.message);
    d->n_ranks = d->n_together > 0 ? d->n_together : 1;
    if (ty_machine_find_gpu_at(NULL, 0, 0, d->n_ranks, a, &(ty_machine_gpu){0}, &err) < 0)
        d->not_as_ranks = ty_arena_strdup(a, err.message);
    d->memory_bytes = ty_memory_limit(&d->memory_why);
    for (int i = 0; i < N_FOLDERS; i++) {
        struct statvfs fs;
        d->has[i] = statvfs(folders[i], &fs) == 0;
        d->free_bytes[i] = d->has[i] ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
    }
}

static bool is_fit(const doctor *d)
{
    for (int i = 0; i < d->machine.n_parts; i++)
        if (d->machine.part[i].is_needed && !d->machine.part[i].version)
            return false;
    return true;
}

/* ---- for people ---- */

static void print_parts(const ty_machine_facts *m)
{
    for (int i = 0; i < m->n_parts; i++) {
        const ty_machine_part *part = &m->part[i];
        if (part->version)
            printf("%-11s %-10s %s\n", part->title, part->version, part->where);
        else
            printf("%-11s %-10s without it: %s\n%-22s (%s)\n", part->title, part->is_needed ? "MISSING" : "none",
                   part->without, "", part->why_not);
    }
}

static void print_gpus(const ty_machine_facts *m)
{
    char memory[32];
    if (m->n_gpus == 0)
        printf("%-11s none: %s\n", "GPUs", m->no_gpu);
    for (int i = 0; i < m->n_gpus; i++) {
        const ty_machine_gpu *g = &m->gpu[i];
        printf("GPU %-7d ", g->number);
        if (g->capability)
            printf("%s, compute capability %d.%d, %d multiprocessors, %s, %s\n", g->name, g->capability / 10,
                   g->capability % 10, g->n_multiprocessors, ty_bytes_text((uint64_t)g->bytes, memory, sizeof memory),
                   g->uuid);
        if (g->remark)
            printf("%s%s\n", g->capability ? "            " : "", g->remark);
    }
}

static void print_fitness(const doctor *d)
{
    if (!is_fit(d)) {
        puts("\nNOT fit to train: see MISSING above.");
        return;
    }
    if (d->no_training) {
        printf("\nFit to train on the CPU. Not on a GPU: %s\n", d->no_training);
        return;
    }
    printf("\nFit to train on the CPU and on GPU %d, which device: auto takes.\n", d->gpu.number);
    if (d->not_as_ranks)
        printf("Not as ranks with a GPU each: %s\n", d->not_as_ranks);
    else
        printf("Fit for %d rank%s on this host with a GPU each, which strategy: data_parallel starts.\n", d->n_ranks,
               d->n_ranks == 1 ? "" : "s");
    if (d->not_together)
        printf("Not on several GPUs: %s\n", d->not_together);
    if (d->not_together || d->n_together < 2)
        return;
    printf("Fit to train on %d GPUs together, which strategy: mirrored takes:", d->n_together);
    for (int i = 0; i < d->n_together; i++)
        printf("%s %d", i ? "," : "", d->together[i].number);
    puts(".");
}

static void print_text(const doctor *d)
{
    char text[32];
    const ty_machine_facts *m = &d->machine;
    puts(TY_VERSION_LINE);
    printf("\n%-11s %s; %d %s; %s\n", "processor", m->processor, m->threads, m->threads == 1 ? "thread" : "threads",
           *m->extensions ? m->extensions : "no vector extensions that are used");
    printf("%-11s %s (%s)\n", "memory", ty_bytes_text(d->memory_bytes, text, sizeof text), d->memory_why);
    for (int i = 0; i < N_FOLDERS; i++)
        if (d->has[i])
            printf("%-11s %s free\n", folders[i], ty_bytes_text(d->free_bytes[i], text, sizeof text));
    puts("");
    print_parts(m);
    puts("");
    print_gpus(m);
    print_fitness(d);
}

/* ---- for programs ---- */

static void put_parts(ty_json_writer *w, const ty_machine_facts *m)
{
    ty_json_open_list(w, "parts");
    for (int i = 0; i < m->n_parts; i++) {
        const ty_machine_part *part = &m->part[i];
        ty_json_open_map(w, NULL);
        ty_json_put_string(w, "name", part->title);
        ty_json_put_bool(w, "found", part->version != NULL);
        if (part->version) {
            ty_json_put_string(w, "version", part->version);
            ty_json_put_string(w, "where", part->where);
        } else {
            ty_json_put_string(w, "reason", part->why_not);
            ty_json_put_string(w, "without", part->without);
        }
        ty_json_close(w);
    }
    ty_json_close(w);
}

static void put_gpus(ty_json_writer *w, const ty_machine_facts *m)
{
    ty_json_open_list(w, "gpus");
    for (int i = 0; i < m->n_gpus; i++) {
        const ty_machine_gpu *g = &m->gpu[i];
        ty_json_open_map(w, NULL);
        ty_json_put_int(w, "number", g->number);
        ty_json_put_string(w, "name", g->name);
        ty_json_put_string(w, "uuid", g->uuid);
        ty_json_put_int(w, "compute_capability", g->capability);
        ty_json_put_int(w, "multiprocessors", g->n_multiprocessors);
        ty_json_put_int(w, "memory_bytes", g->bytes);
        if (g->remark)
            ty_json_put_string(w, "remark", g->remark);
        ty_json_close(w);
    }
    ty_json_close(w);
    if (m->no_gpu)
        ty_json_put_string(w, "no_gpu", m->no_gpu);
}

static void print_json(const doctor *d)
{
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, 1 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "version", TY_VERSION);
    ty_json_put_bool(&w, "fit", is_fit(d));
    ty_json_put_string(&w, "processor", d->machine.processor);
    ty_json_put_string(&w, "extensions", d->machine.extensions);
    ty_json_put_int(&w, "threads", d->machine.threads);
    ty_json_put_int(&w, "memory_bytes", (int64_t)d->memory_bytes);
    ty_json_open_map(&w, "free_bytes");
    for (int i = 0; i < N_FOLDERS; i++)
        if (d->has[i])
            ty_json_put_int(&w, folders[i], (int64_t)d->free_bytes[i]);
    ty_json_close(&w);
    put_parts(&w, &d->machine);
    put_gpus(&w, &d->machine);
    if (d->no_training)
        ty_json_put_string(&w, "not_on_gpu", d->no_training);
    else
        ty_json_put_int(&w, "trains_on_gpu", d->gpu.number);
    ty_json_put_int(&w, "gpu_ranks", d->no_training || d->not_as_ranks ? 0 : d->n_ranks);
    ty_json_open_list(&w, "trains_mirrored");
    for (int i = 0; !d->not_together && d->n_together > 1 && i < d->n_together; i++)
        ty_json_put_int(&w, NULL, d->together[i].number);
    ty_json_close(&w);
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

static int run_doctor(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    (void)err;
    doctor d = {0};
    examine(&d, a);
    if (given->value[JSON])
        print_json(&d);
    else
        print_text(&d);
    return is_fit(&d) ? 0 : 1;
}

const ty_command_row ty_command_doctor = {"doctor",
                                          "",
                                          "say what this machine has and what is missing",
                                          "The C compiler is tried, libraries are opened, the GPU driver is asked. "
                                          "Exit status 1 if something is missing that\n"
                                          "training on the CPU needs; a missing GPU is not.\n",
                                          options,
                                          N_OPTIONS,
                                          0,
                                          0,
                                          false,
                                          false,
                                          run_doctor};
