/* command_perf.c - `trainyard perf`: collectives over the engine in use, with the options and columns of nccl-tests.
 * Runs on every rank; rank 0 prints. */
#define _GNU_SOURCE /* environ */
#include "base/file.h"
#include "base/home.h"
#include "base/json.h"
#include "dist/agent/agent.h"
#include "dist/comm/perf.h"
#include "dist/page.h"
#include "entrypoint/command.h"
#include "entrypoint/perf_gpu.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    RANKS,
    MIN,
    MAX,
    FACTOR,
    STEP,
    OPERATION,
    TYPE,
    CHECK,
    WARMUPS,
    ITERATIONS,
    WIRE,
    PIECE,
    JSON_FILE,
    DEVICE,
    RANK_ORDER,
    LEVELS
};

static const ty_option options[] = {
    [RANKS] = {"--ranks", "N", "start N ranks on this machine and measure them", false},
    [MIN] = {"-b", "SIZE", "smallest size, as 8, 64K or 1M (default 8)", false},
    [MAX] = {"-e", "SIZE", "largest size (default 64M)", false},
    [FACTOR] = {"-f", "N", "each size is N times the one before (default 2)", false},
    [STEP] = {"-i", "SIZE", "or: SIZE more than the one before", false},
    [OPERATION] = {"-o", "OP", "sum, average, min, max, product or all (default sum)", false},
    [TYPE] = {"-d", "TYPE", "f32, bf16, i8 ... or all (default f32)", false},
    [CHECK] = {"-c", "0|1", "check results (default 1)", false},
    [WARMUPS] = {"-w", "N", "calls before the clock runs (default 5)", false},
    [ITERATIONS] = {"-n", "N", "calls measured (default 20)", false},
    [WIRE] = {"-z", "f16|bf16", "what f32 travels as", false},
    [PIECE] = {"-p", "SIZE", "bytes of a piece (default 1M)", false},
    [JSON_FILE] = {"-J", "FILE", "results as JSON too", false},
    [DEVICE] = {"--device", "auto|cpu|gpu", "gpu: by NCCL, a GPU each (default: if all have one)", false},
    [RANK_ORDER] = {"--rank-order", NULL, "sums in the order of the ranks", false},
    [LEVELS] = {"--hierarchical", NULL, "sums within hosts first", false},
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

/* What is measured, and what has come of it (rank 0's memory of it is the JSON text). */
typedef struct request {
    const ty_arguments_given *given;
    ty_perf_options perf;
    ty_comm_options comm;
    ty_perf_gpu *gpu; /* NULL: the comm carries */
    bool may_gpu, must_gpu;
    int reduce, dtype; /* -1: all */
    bool speaks;       /* rank 0 */
    ty_buf json;
    ty_json_writer w;
    int64_t wrong;
    double busbw; /* sum over rows and ways */
    int n_busbw;
} request;

/* --- words into numbers --- */

static int wrong_value(int option, const char *value, ty_error *err)
{
    ty_error_set(err, TY_E_USAGE, "perf: %s %.60s: expected %s", options[option].name, value, options[option].value);
    return ty_error_help(err, "%s: %s", options[option].name, options[option].help);
}

/* A number with an optional K, M or G (powers of 1024). */
static int take_number(const request *r, int option, int64_t otherwise, int64_t *out, ty_error *err)
{
    static const char units[] = "KMG";
    const char *text = r->given->value[option];
    char *end;
    *out = otherwise;
    if (!text)
        return 0;
    long long n = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (end == text || n < 0 || n > INT64_MAX >> 31 || (*end && (!unit || end[1])))
        return wrong_value(option, text, err);
    *out = (int64_t)n << shift;
    return 0;
}

static int take_int(const request *r, int option, int otherwise, int *out, ty_error *err)
{
    int64_t n;
    if (take_number(r, option, otherwise, &n, err) < 0)
        return -1;
    if (n > 1000000000)
        return wrong_value(option, r->given->value[option], err);
    *out = (int)n;
    return 0;
}

static int take_reduce(request *r, ty_error *err)
{
    const char *text = r->given->value[OPERATION];
    r->reduce = !text || strcmp(text, "avg") == 0 ? !!text : strcmp(text, "prod") == 0 ? TY_REDUCE_PRODUCT : -2;
    for (int k = 0; text && k < TY_N_REDUCES; k++)
        if (strcmp(text, ty_reduce_text((ty_reduce)k)) == 0)
            r->reduce = k;
    if (text && strcmp(text, "all") == 0)
        r->reduce = -1;
    return r->reduce == -2 ? wrong_value(OPERATION, text, err) : 0;
}

static int take_types(request *r, ty_error *err)
{
    const char *type = r->given->value[TYPE], *wire = r->given->value[WIRE];
    ty_dtype dtype = TY_F32;
    if (type && strcmp(type, "all") != 0 && !ty_dtype_parse(type, &dtype))
        return wrong_value(TYPE, type, err);
    r->dtype = type && strcmp(type, "all") == 0 ? -1 : (int)dtype;
    if (wire && strcmp(wire, "f16") != 0 && strcmp(wire, "bf16") != 0)
        return wrong_value(WIRE, wire, err);
    r->perf.wire = !wire ? TY_WIRE_AS_IS : strcmp(wire, "f16") == 0 ? TY_WIRE_F16 : TY_WIRE_BF16;
    return 0;
}

static int take_kind(request *r, ty_error *err)
{
    const char *word = r->given->n_words ? r->given->words[0] : "all_reduce";
    for (int k = 0; k < TY_BARRIER; k++)
        if (strcmp(word, ty_collective_text((ty_collective_kind)k)) == 0) {
            r->perf.kind = (ty_collective_kind)k;
            return 0;
        }
    ty_error_set(err, TY_E_USAGE, "perf: there is no collective \"%.60s\"", word);
    return ty_error_help(err, "all_reduce, reduce_scatter, all_gather, broadcast or all_to_all");
}

/* What only the comm has. */
static const int of_comm[] = {WIRE, PIECE, RANK_ORDER, LEVELS};

static int take_device(request *r, ty_error *err)
{
    const char *device = r->given->value[DEVICE];
    r->must_gpu = device && strcmp(device, "gpu") == 0;
    r->may_gpu = !device || r->must_gpu || strcmp(device, "auto") == 0;
    if (!r->may_gpu && strcmp(device, "cpu") != 0)
        return wrong_value(DEVICE, device, err);
    for (size_t i = 0; i < sizeof of_comm / sizeof *of_comm; i++) {
        if (!r->given->value[of_comm[i]])
            continue;
        r->may_gpu = false;
        if (r->must_gpu)
            return ty_error_set(err, TY_E_USAGE, "perf: %s is not for GPUs: NCCL decides that",
                                options[of_comm[i]].name);
    }
    return 0;
}

static int take_options(request *r, ty_error *err)
{
    int check = 1;
    if (take_kind(r, err) < 0 || take_reduce(r, err) < 0 || take_types(r, err) < 0 ||
        take_number(r, MIN, 8, &r->perf.min_bytes, err) < 0 ||
        take_number(r, MAX, INT64_C(64) << 20, &r->perf.max_bytes, err) < 0 ||
        take_number(r, STEP, 0, &r->perf.step_bytes, err) < 0 || take_int(r, FACTOR, 2, &r->perf.factor, err) < 0 ||
        take_int(r, WARMUPS, 5, &r->perf.warmups, err) < 0 ||
        take_int(r, ITERATIONS, 20, &r->perf.iterations, err) < 0 || take_int(r, CHECK, 1, &check, err) < 0 ||
        take_number(r, PIECE, 0, &r->comm.piece_bytes, err) < 0 || take_device(r, err) < 0)
        return -1;
    r->perf.check = check != 0;
    r->comm.rank_order = r->given->value[RANK_ORDER] != NULL;
    r->comm.hierarchical = r->given->value[LEVELS] != NULL;
    return 0;
}

/* --- output --- */

static void print_way(const ty_perf_way *w)
{
    if (w->us < 0) {
        printf("  %9s %7s %7s %6s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    printf("  %9.*f %7.2f %7.2f ", w->us < 100 ? 2 : 0, w->us, w->algbw, w->busbw);
    if (w->wrong < 0)
        printf("%6s", "N/A");
    else
        printf("%6lld", (long long)w->wrong);
}

static void put_way(request *r, const char *key, const ty_perf_way *w)
{
    if (w->us < 0) {
        ty_json_put_null(&r->w, key);
        return;
    }
    ty_json_open_map(&r->w, key);
    ty_json_put_float(&r->w, "time_us", w->us);
    ty_json_put_float(&r->w, "algbw_gbs", w->algbw);
    ty_json_put_float(&r->w, "busbw_gbs", w->busbw);
    if (w->wrong < 0)
        ty_json_put_null(&r->w, "wrong");
    else
        ty_json_put_int(&r->w, "wrong", w->wrong);
    ty_json_close(&r->w);
    r->wrong += w->wrong > 0 ? w->wrong : 0;
    r->busbw += w->busbw;
    r->n_busbw++;
}

static void tell(void *ctx, const ty_perf_row *row)
{
    request *r = ctx;
    const char *reduce = row->reduce < TY_N_REDUCES ? ty_reduce_text(row->reduce) : "none";
    ty_json_open_map(&r->w, NULL);
    ty_json_put_int(&r->w, "size", row->n_bytes);
    ty_json_put_int(&r->w, "count", row->count);
    ty_json_put_string(&r->w, "type", ty_dtype_text(row->dtype));
    ty_json_put_string(&r->w, "redop", reduce);
    ty_json_put_int(&r->w, "root", row->root);
    put_way(r, "out_of_place", &row->out_of_place);
    put_way(r, "in_place", &row->in_place);
    ty_json_close(&r->w);
    if (!r->speaks)
        return;
    printf("%12lld %13lld %8s %8s %6d", (long long)row->n_bytes, (long long)row->count, ty_dtype_text(row->dtype),
           reduce, row->root);
    print_way(&row->out_of_place);
    print_way(&row->in_place);
    putchar('\n');
    fflush(stdout);
}

static void begin(request *r, ty_comm *c)
{
    const ty_perf_options *p = &r->perf;
    ty_buf_init(&r->json, 64 << 20);
    ty_json_writer_init(&r->w, &r->json, TY_JSON_SPACED);
    ty_json_open_map(&r->w, NULL);
    ty_json_put_string(&r->w, "collective", ty_collective_text(p->kind));
    ty_json_put_string(&r->w, "carried_by", r->gpu ? ty_perf_gpu_text(r->gpu) : "cpu");
    ty_json_put_int(&r->w, "ranks", ty_comm_size(c));
    ty_json_put_int(&r->w, "ranks_per_host", ty_comm_local_size(c));
    ty_json_put_int(&r->w, "warmups", p->warmups);
    ty_json_put_int(&r->w, "iterations", p->iterations);
    ty_json_open_list(&r->w, "results");
    r->speaks = ty_comm_rank(c) == 0;
    if (!r->speaks)
        return;
    printf("# %s, %d ranks, %d on this host; %d warm-ups, %d calls, results %s\n", ty_collective_text(p->kind),
           ty_comm_size(c), ty_comm_local_size(c), p->warmups, p->iterations, p->check ? "checked" : "not checked");
    if (r->gpu)
        printf("# by %s\n", ty_perf_gpu_text(r->gpu));
    printf("#\n");
    printf("# %56s %33s\n", "out-of-place", "in-place");
    printf("#%11s %13s %8s %8s %6s  %9s %7s %7s %6s  %9s %7s %7s %6s\n", "size", "count", "type", "redop", "root",
           "time", "algbw", "busbw", "wrong", "time", "algbw", "busbw", "wrong");
    printf("#%11s %13s %8s %8s %6s  %9s %7s %7s %6s  %9s %7s %7s %6s\n", "(B)", "(elements)", "", "", "", "(us)",
           "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

static int end(request *r, ty_error *err)
{
    const char *path = r->given->value[JSON_FILE];
    double mean = r->n_busbw ? r->busbw / r->n_busbw : 0;
    ty_json_close(&r->w);
    ty_json_put_float(&r->w, "mean_busbw_gbs", mean);
    ty_json_put_int(&r->w, "wrong", r->wrong);
    ty_json_close(&r->w);
    ty_buf_addc(&r->json, '\n');
    if (!r->speaks)
        return 0;
    if (r->perf.check)
        printf("# Wrong results        : %lld%s\n", (long long)r->wrong, r->wrong ? "" : " OK");
    printf("# Mean bus bandwidth   : %.4f GB/s\n#\n", mean);
    return path ? ty_file_write(path, r->json.data, r->json.len, 0644, err) : 0;
}

/* --- running --- */

/* All types and ways to reduce that were asked for, one after the other. */
static int measure(request *r, ty_comm *c, ty_error *err)
{
    bool reduces = r->perf.kind == TY_ALL_REDUCE || r->perf.kind == TY_REDUCE_SCATTER;
    for (int dtype = 0; dtype < TY_N_DTYPES; dtype++)
        for (int reduce = 0; reduce < (reduces ? TY_N_REDUCES : 1); reduce++) {
            bool possible = r->dtype >= 0 || dtype != TY_BOOL || reduce != TY_REDUCE_AVERAGE;
            if (r->gpu && reduces && r->dtype < 0)
                possible = ty_perf_gpu_reduces((ty_dtype)dtype);
            bool wanted = (r->dtype < 0 || r->dtype == dtype) && (!reduces || r->reduce < 0 || r->reduce == reduce);
            r->perf.dtype = (ty_dtype)dtype;
            r->perf.reduce = (ty_reduce)reduce;
            if (possible && wanted && ty_perf_run(c, ty_perf_gpu_carrier(r->gpu), &r->perf, tell, r, err) < 0)
                return -1;
        }
    return 0;
}

static int run_open(request *r, ty_comm *c, ty_error *err)
{
    if (r->may_gpu && ty_perf_gpu_open(c, r->must_gpu, &r->gpu, err) < 0)
        return -1;
    begin(r, c);
    int rc = measure(r, c, err);
    if (rc == 0)
        rc = end(r, err);
    ty_buf_fini(&r->json);
    ty_perf_gpu_close(r->gpu, rc == 0);
    return rc;
}

static int run_rank(const ty_arguments_given *given, ty_error *err)
{
    request r = {.given = given};
    ty_comm *c;
    if (take_options(&r, err) < 0)
        return -1;
    r.comm.page = ty_page_from_environment();
    if (ty_comm_open(&r.comm, &c, err) < 0) {
        ty_page_close(r.comm.page);
        return -1;
    }
    int rc = run_open(&r, c, err);
    ty_comm_close(c, rc == 0);
    ty_page_close(r.comm.page);
    return rc < 0 ? rc : r.wrong > 0;
}

/* --- ranks of this machine --- */

enum { MAX_LOCAL_RANKS = 256 };

/* Of a port that nobody listens on; 0 if that cannot be found out. */
static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool found =
        fd >= 0 && bind(fd, (struct sockaddr *)&at, n) == 0 && getsockname(fd, (struct sockaddr *)&at, &n) == 0;
    if (fd >= 0)
        close(fd);
    return found ? ntohs(at.sin_port) : 0;
}

/* The command of a rank: ours, without --ranks. */
static void command_of_rank(const ty_arguments_given *given, const char *self, const char **argv)
{
    int n = 0;
    argv[n++] = self;
    argv[n++] = "perf";
    for (int i = 0; i < given->n_words; i++)
        argv[n++] = given->words[i];
    for (int i = 0; i < N_OPTIONS; i++) {
        if (i == RANKS || !given->value[i])
            continue;
        argv[n++] = options[i].name;
        if (options[i].value)
            argv[n++] = given->value[i];
    }
    argv[n] = NULL;
}

static int run_agent(const ty_arguments_given *given, int n_ranks, ty_error *err)
{
    const char *self = ty_home_program();
    unsigned char secret[32];
    const char *argv[TY_MAX_WORDS + 2 * N_OPTIONS + 3];
    ty_agent_host host = {.name = "localhost", .ranks = n_ranks, .address = "127.0.0.1", .port = free_port()};
    if (!*self || getrandom(secret, sizeof secret, 0) < (ssize_t)sizeof secret)
        return ty_error_set(err, TY_E_LIMIT,
                            "perf: the system does not say where this program is, or has no random numbers");
    command_of_rank(given, self, argv);
    ty_agent_options o = {.job = "perf",
                          .secret = secret,
                          .secret_bytes = sizeof secret,
                          .hosts = &host,
                          .n_hosts = 1,
                          .interface = "lo",
                          .argv = argv,
                          .envp = (const char *const *)environ,
                          .stall_warn_ms = 60000,
                          .stall_end_ms = 600000};
    ty_agent_end end;
    if (ty_agent_run(&o, &end, err) < 0)
        return -1;
    return end.failed ? ty_error_set(err, TY_E_USER_PROGRAM, "perf: %s", end.first.text) : end.status;
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    (void)a;
    request r = {.given = given};
    int n_ranks = 0;
    if (take_options(&r, err) < 0 || take_int(&r, RANKS, 0, &n_ranks, err) < 0)
        return -1;
    if (n_ranks > MAX_LOCAL_RANKS)
        return wrong_value(RANKS, given->value[RANKS], err);
    return n_ranks ? run_agent(given, n_ranks, err) : run_rank(given, err);
}

const ty_command_row ty_command_perf = {
    "perf",
    "[COLLECTIVE]",
    "measure what ranks do together",
    "COLLECTIVE is all_reduce (default), reduce_scatter, all_gather, broadcast or all_to_all. Columns are those of\n"
    "nccl-tests: algbw is bytes by time, busbw what a link carries, in 10^9 bytes a second. Every rank of a job runs "
    "the\n"
    "command; alone it measures one rank. Where every rank has a GPU of its own, NCCL is measured, as in training.\n"
    "Exit status 1 if a result was wrong.\n\n"
    "    trainyard perf --ranks 4 -b 1K -e 64M -f 4\n"
    "    mpirun -np 2 trainyard perf all_gather -d bf16 -J gather.json\n",
    options,
    N_OPTIONS,
    0,
    1,
    false,
    false,
    run};
