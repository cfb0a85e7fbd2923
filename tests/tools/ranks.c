/* ranks - a rank of a job that mpirun or the agent has started: carries out every collective and checks the results.
 *
 *     mpirun -np 3 build/release/tools/ranks all [--piece BYTES] [--rank-order] ...
 *
 * Ends with 0 if all is right; what is not is printed.
 */
#include "dist/comm/comm.h"
#include "dist/page.h"

#include "tests/unit/comm_case.h"

#include <time.h>
#include <unistd.h>

/* --- what a rank can be asked to do --- */

/* Rank 1 is gone when the others take their leave. */
static int lose_one(ty_comm *c)
{
    if (ty_comm_rank(c) == 1)
        _exit(0);
    return 0;
}

/* Adds up 1 MB again and again, 10 ms after each other, until somebody ends it, or `rounds` times; what it does is on
 * its page. */
static int rounds;
static ty_page *page;

static int add_up_for_ever(ty_comm *c)
{
    enum { N = 1 << 18 };
    static float x[N];
    ty_error err = {0};
    ty_page_phase(page, TY_PHASE_STEP);
    for (int i = 1; rounds == 0 || i <= rounds; i++) {
        ty_page_step(page, i);
        for (int k = 0; k < N; k++)
            x[k] = (float)i;
        ty_collective sum = {.kind = TY_ALL_REDUCE, .name = "weights", .dtype = TY_F32, .in = x, .out = x, .n = N};
        if (ty_comm_run(c, &sum, &err) < 0)
            return fprintf(stderr, "%s\n", err.message), 1;
        if (x[N - 1] != (float)(i * ty_comm_size(c)))
            return fprintf(stderr, "sum %d is %g\n", i, (double)x[N - 1]), 1;
        if (i == 20 && ty_comm_rank(c) == 0) {
            puts("loop: 20 sums");
            fflush(stdout);
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return 0;
}

static const struct {
    const char *name;
    int (*run)(ty_comm *c);
} tasks[] = {{"all", case_everything},
             {"some", case_something},
             {"order", case_rank_order},
             {"lose", lose_one},
             {"loop", add_up_for_ever}};

int main(int argc, char **argv)
{
    page = ty_page_from_environment();
    ty_comm_options o = {.page = page};
    ty_error err = {0};
    ty_comm *c;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--piece") == 0 && i + 1 < argc)
            o.piece_bytes = atoll(argv[++i]);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--rank-order") == 0)
            o.rank_order = true;
        else if (strcmp(argv[i], "--hierarchical") == 0)
            o.hierarchical = true;
        else if (strcmp(argv[i], "--per-host") == 0 && i + 1 < argc)
            o.ranks_per_host = atoi(argv[++i]);
        else if (strcmp(argv[i], "--cores") == 0 && i + 1 < argc)
            o.cores = atoi(argv[++i]);
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            o.threads = atoi(argv[++i]);
    }
    if (ty_comm_open(&o, &c, &err) < 0) {
        fprintf(stderr, "%s\n%s\n", err.message, err.help);
        return 1;
    }
    int faults = 1;
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        if (argc > 1 && strcmp(argv[1], tasks[i].name) == 0)
            faults = tasks[i].run(c);
    if (ty_comm_rank(c) == 0)
        printf("%d ranks, %d on this host: %d faults on rank 0\n", ty_comm_size(c), ty_comm_local_size(c), faults);
    ty_comm_close(c, true);
    return faults != 0;
}
