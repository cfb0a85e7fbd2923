/* ranks - a rank of a job that mpirun or the agent has started: carries out every collective and checks the results.
 *
 *     mpirun -np 3 build/release/tools/ranks all [--piece BYTES] [--rank-order] ...
 *
 * Ends with 0 if all is right; what is not is printed.
 */
#include "dist/comm/comm.h"

#include "tests/unit/comm_case.h"

/* --- what a rank can be asked to do --- */

static const struct {
    const char *name;
    int (*run)(ty_comm *c);
} tasks[] = {{"all", case_everything}, {"some", case_something}, {"order", case_rank_order}};

int main(int argc, char **argv)
{
    ty_comm_options o = {0};
    ty_error err = {0};
    ty_comm *c;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--piece") == 0 && i + 1 < argc)
            o.piece_bytes = atoll(argv[++i]);
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
