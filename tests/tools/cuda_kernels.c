/* cuda_kernels.c - compiles by NVRTC what programs left as CUDA C (ty_compile_options.cuda_dir). Needs no GPU.
 *
 *     cuda_kernels [--sm 75,80,90,100] [--threads N] [--units N] [--rows] [--no-spill] [--within SECONDS] DIR...
 *
 * A folder is compiled as one program: each kernel once, for each of the architectures. A line says how many kernels of
 * how many, the most registers of a thread, the bytes that threads spill (registers that did not fit, stored and
 * loaded) and in how many kernels, the most shared memory of a block, and what NVRTC took: seconds on the clock, and of
 * processors over the number of threads, which is what the clock shows where nothing else runs. With --rows every
 * kernel follows in a line of a table, the one that moves most first. With --no-spill a kernel that spills is a
 * failure, with --within a folder that takes longer for one of the architectures, by the second of the two. The last
 * line is "N passed, N failed, N skipped": one for each folder and architecture.
 */
#include "base/clock.h"
#include "base/file.h"
#include "compiler/target/cuda/build.h"
#include "compiler/target/cuda/libraries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_CAPABILITIES = 8 };

/* A kernel, and what its launches say: a line of facts. */
typedef struct kernel {
    const char *name, *form, *origin;
    int threads, launches;
    long blocks;
    size_t bytes; /* of all its launches in all programs */
    const ty_cuda_kernel_facts *facts[MAX_CAPABILITIES];
} kernel;

typedef struct folder {
    ty_arena arena;
    const char *path;
    ty_ktexts texts;
    kernel *kernel;
    int n;
} folder;

typedef struct settings {
    int capability[MAX_CAPABILITIES], n_capabilities;
    ty_cuda_build_options build;
    bool rows, no_spill;
    double within_s; /* 0: no limit */
    int passed, failed;
} settings;

static int fail(settings *set, const char *where, const ty_error *err)
{
    char text[4096];
    ty_error_format(err, text, sizeof text);
    printf("FAILED %s: %s\n", where, text);
    set->failed++;
    return -1;
}

/* ---- reading ---- */

static kernel *find_kernel(const folder *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->kernel[i].name, name) == 0)
            return &f->kernel[i];
    return NULL;
}

/* Texts lie one behind the other, each behind the words that name it. */
static void read_texts(folder *f, char *all)
{
    const char *lead = ty_cuda_words.lead;
    for (char *at = strstr(all, lead), *next; at; at = next) {
        next = strstr(at + 1, lead);
        char *text = strchr(at + strlen(lead), '\n') + 1;
        ty_ktexts_add(&f->texts, text, next ? (size_t)(next - text) : strlen(text));
    }
}

static void read_fact(folder *f, char *line)
{
    char *field[6];
    for (int i = 0; i < 6; i++)
        field[i] = strsep(&line, "\t");
    kernel *k = find_kernel(f, field[0]);
    if (!k) {
        k = &f->kernel[f->n++];
        *k = (kernel){.name = field[0], .form = field[1], .origin = field[5], .threads = atoi(field[2])};
    }
    k->launches++;
    k->blocks = atol(field[3]) > k->blocks ? atol(field[3]) : k->blocks;
    k->bytes += strtoull(field[4], NULL, 10);
}

static char *read_file(folder *f, const char *name, ty_error *err)
{
    ty_buf bytes;
    ty_buf_init(&bytes, 1u << 30);
    char *text = NULL;
    if (ty_file_read(ty_arena_printf(&f->arena, "%s/%s", f->path, name), &bytes, err) == 0)
        text = ty_arena_strndup(&f->arena, bytes.data, bytes.len);
    ty_buf_fini(&bytes);
    return text;
}

static int count_lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* The .cu files into texts, or the .txt files into facts. */
static int read_all(folder *f, const char *suffix, ty_error *err)
{
    ty_file_entry *file;
    size_t n = 0;
    bool facts = strcmp(suffix, ".txt") == 0;
    if (ty_file_list(f->path, &f->arena, &file, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const char *dot = strrchr(file[i].name, '.');
        char *text = dot && strcmp(dot, suffix) == 0 ? read_file(f, file[i].name, err) : NULL;
        if (!dot || strcmp(dot, suffix) != 0)
            continue;
        if (!text)
            return -1;
        if (!facts) {
            read_texts(f, text);
            continue;
        }
        kernel *grown = TY_NEW_ARRAY(&f->arena, kernel, f->n + count_lines(text));
        if (f->n)
            memcpy(grown, f->kernel, sizeof *grown * (size_t)f->n);
        f->kernel = grown;
        for (char *line; (line = strsep(&text, "\n")) && *line;)
            read_fact(f, line);
    }
    return 0;
}

/* ---- telling ---- */

static int by_bytes(const void *a, const void *b)
{
    const kernel *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->name, y->name);
}

/* "90: 32" where all architectures agree but for their names would be four columns of nothing: registers and spills are
 * told for each, separated by '/'. */
static void print_each(const settings *set, const kernel *k, size_t offset)
{
    printf(" ");
    for (int i = 0; i < set->n_capabilities; i++)
        printf("%s%d", i ? "/" : "", k->facts[i] ? *(const int *)((const char *)k->facts[i] + offset) : -1);
    printf(" |");
}

static void print_rows(const settings *set, folder *f)
{
    qsort(f->kernel, (size_t)f->n, sizeof *f->kernel, by_bytes);
    printf("| kernel | form | launches | blocks | MB | registers | spilled | shared | first layer |\n");
    printf("| --- | --- | ---: | ---: | ---: | --- | --- | --- | --- |\n");
    for (int i = 0; i < f->n; i++) {
        const kernel *k = &f->kernel[i];
        printf("| %s | %s | %d | %ld | %.3f |", k->name + strlen("ty_k_"), k->form, k->launches, k->blocks,
               1e-6 * (double)k->bytes);
        print_each(set, k, offsetof(ty_cuda_kernel_facts, registers));
        print_each(set, k, offsetof(ty_cuda_kernel_facts, spill_bytes));
        print_each(set, k, offsetof(ty_cuda_kernel_facts, shared_bytes));
        printf(" %s |\n", k->origin);
    }
}

typedef struct totals {
    int kernels, registers, spilled, spill_bytes, shared;
} totals;

static totals add_up(folder *f, const ty_cuda_code *code, int which)
{
    totals t = {0};
    for (int o = 0; o < code->n; o++)
        for (int i = 0; i < code->object[o].n_kernels; i++) {
            const ty_cuda_kernel_facts *facts = &code->object[o].kernel[i];
            kernel *k = find_kernel(f, facts->name);
            if (k)
                k->facts[which] = facts;
            t.kernels++;
            t.spilled += facts->spill_bytes > 0;
            t.spill_bytes += facts->spill_bytes;
            t.registers = facts->registers > t.registers ? facts->registers : t.registers;
            t.shared = facts->shared_bytes > t.shared ? facts->shared_bytes : t.shared;
        }
    return t;
}

static void print_spills(const folder *f, int which)
{
    for (int i = 0; i < f->n; i++) {
        const kernel *k = &f->kernel[i];
        if (k->facts[which] && k->facts[which]->spill_bytes > 0)
            printf("  %s spills %d bytes at %d registers: %s, %s\n", k->name, k->facts[which]->spill_bytes,
                   k->facts[which]->registers, k->form, k->origin);
    }
}

/* ---- compiling ---- */

static int launches_of(const folder *f)
{
    int n = 0;
    for (int i = 0; i < f->n; i++)
        n += f->kernel[i].launches;
    return n;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compile_for(folder *f, settings *set, int which)
{
    ty_cuda_code code;
    ty_error err = {0};
    ty_cuda_build_options opt = set->build;
    opt.capability = set->capability[which];
    double cpu = cpu_seconds();
    int64_t start = ty_clock_ns();
    if (ty_cuda_build(&f->texts, &opt, &f->arena, &code, &err) < 0) {
        fail(set, ty_arena_printf(&f->arena, "%s, sm_%d", f->path, opt.capability), &err);
        return;
    }
    double wall = 1e-9 * (double)(ty_clock_ns() - start);
    cpu = (cpu_seconds() - cpu) / opt.threads;
    totals t = add_up(f, &code, which);
    printf("%s, sm_%d: %d kernels of %d, registers <= %d, %d bytes spilled in %d kernels, shared memory <= %d bytes, "
           "%.2f s "
           "(%.2f s of processors / %d)\n",
           f->path, opt.capability, t.kernels, launches_of(f), t.registers, t.spill_bytes, t.spilled, t.shared, wall,
           cpu, opt.threads);
    print_spills(f, which);
    bool slow = set->within_s > 0 && cpu > set->within_s;
    if (set->within_s > 0)
        printf("  %.2f s of the %g s that they may take%s\n", cpu, set->within_s, slow ? ": TOO SLOW" : "");
    bool good = t.kernels == f->texts.n && f->texts.n > 0 && !(set->no_spill && t.spilled) && !slow;
    set->passed += good;
    set->failed += !good;
}

static void compile_folder(const char *path, settings *set)
{
    folder f = {.path = path};
    ty_error err = {0};
    ty_arena_init(&f.arena);
    f.texts.arena = &f.arena;
    if (read_all(&f, ".cu", &err) < 0 || read_all(&f, ".txt", &err) < 0) {
        fail(set, path, &err);
    } else {
        for (int i = 0; i < set->n_capabilities; i++)
            compile_for(&f, set, i);
        if (set->rows)
            print_rows(set, &f);
    }
    ty_arena_fini(&f.arena);
}

/* ---- all of it ---- */

static void read_capabilities(settings *set, char *list)
{
    set->n_capabilities = 0;
    for (char *word; (word = strsep(&list, ",")) && set->n_capabilities < MAX_CAPABILITIES;)
        set->capability[set->n_capabilities++] = atoi(word);
}

static int usage(void)
{
    fprintf(stderr, "usage: cuda_kernels [--sm 75,80,90,100] [--threads N] [--units N] [--rows] [--no-spill]\n"
                    "                    [--within SECONDS] DIR...\n");
    return 64;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* minutes pass between lines */
    settings set = {.capability = {75, 80, 90, 100}, .n_capabilities = 4, .build = {.threads = 2}};
    const ty_nvrtc *lib;
    ty_error err = {0};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--sm") == 0 && i + 1 < argc)
            read_capabilities(&set, argv[++i]);
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            set.build.threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--units") == 0 && i + 1 < argc)
            set.build.units = atoi(argv[++i]);
        else if (strcmp(argv[i], "--rows") == 0)
            set.rows = true;
        else if (strcmp(argv[i], "--no-spill") == 0)
            set.no_spill = true;
        else if (strcmp(argv[i], "--within") == 0 && i + 1 < argc)
            set.within_s = atof(argv[++i]);
        else
            return usage();
    }
    if (i >= argc || set.build.threads < 1)
        return usage();
    if (ty_nvrtc_get(&lib, &err) < 0) {
        printf("skip: %s\n0 passed, 0 failed, 1 skipped\n", err.message);
        return 0;
    }
    for (; i < argc; i++)
        compile_folder(argv[i], &set);
    printf("%d passed, %d failed, 0 skipped\n", set.passed, set.failed);
    return set.failed > 0;
}
