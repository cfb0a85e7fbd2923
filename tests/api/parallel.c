/* One rank of a job of processes: all checks, or one situation that ends the process. parallel [FOLDER [SITUATION]] */
#include "checks.h"

#include <signal.h>

/* One rank is told to stop between two steps; all stop after the same one. */
static int stop(void)
{
    trainyard_parameter one = {"w", TRAINYARD_F32, 1, {1000}};
    trainyard_gradients *g = NULL;
    CHECK_OK(trainyard_gradients_new(&one, 1, NULL, &g));
    int step = 0;
    for (; step < 100 && !trainyard_stop_requested(); step++) {
        if (step == 7 && trainyard_rank() == trainyard_size() - 1)
            raise(SIGTERM);
        CHECK_OK(trainyard_gradients_ready(g, 0, NULL));
        CHECK_OK(trainyard_gradients_wait(g));
    }
    printf("stopped after step %d\n", step);
    return 0;
}

/* Rank 0 leaves; the others learn it. */
static int leave(void)
{
    float x = 1;
    if (trainyard_rank() == 0)
        return 0;
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(&x, 1), NULL, NULL), TRAINYARD_E_LOST);
    printf("told: %s\n", trainyard_error());
    return 0;
}

/* What a program does that never looks at a code: it must end, and say why. */
static int twice(void)
{
    int code = trainyard_init(NULL);
    printf("code %d: %s\n", code, trainyard_error());
    return code != TRAINYARD_E_STATE;
}

static int all_checks(void)
{
    for (int i = 0; i < N_CHECKS; i++) {
        int before = atomic_load(&failures);
        double failed = 0;
        checks[i].run();
        failed = atomic_load(&failures) - before;
        trainyard_allreduce(trainyard_f64(&failed, 1), NULL, trainyard_with(.op = TRAINYARD_SUM));
        if (trainyard_rank() == 0)
            printf("%s %s\n", failed > 0 ? "not ok" : "ok", checks[i].name);
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } situations[] = {{"checks", all_checks}, {"stop", stop}, {"leave", leave}, {"twice", twice}};
    const char *name = argc > 2 ? argv[2] : "checks";
    folder = argc > 1 ? argv[1] : getenv("SM_OUTPUT_DATA_DIR"); /* of a job */
    if (trainyard_init(NULL) != TRAINYARD_OK) {
        fprintf(stderr, "%s\n", trainyard_error());
        return 1;
    }
    int status = 2;
    for (size_t i = 0; i < sizeof situations / sizeof *situations; i++)
        if (strcmp(situations[i].name, name) == 0)
            status = situations[i].run();
    CHECK_OK(trainyard_shutdown());
    return status || atomic_load(&failures) > 0;
}
