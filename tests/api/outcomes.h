/* outcomes.h - what one rank does for all: files, metric lines. */
#ifndef TY_TESTS_API_OUTCOMES_H
#define TY_TESTS_API_OUTCOMES_H

#include "elements.h"

/* ---- what one rank does ---- */

static const char *folder; /* for files; of the test */

static void files(void)
{
    char path[300], *bytes = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/new%d/folder/state", folder, trainyard_size());
    CHECK_OK(trainyard_read(path, (void **)&bytes, &n));
    CHECK(bytes == NULL && n == 0);
    CHECK_OK(trainyard_write(path, trainyard_rank() == 0 ? "weights" : NULL, trainyard_rank() == 0 ? 7 : 0));
    CHECK_OK(trainyard_read(path, (void **)&bytes, &n));
    CHECK(n == 7 && bytes && memcmp(bytes, "weights", 7) == 0);
    trainyard_free(bytes);
    CHECK_FAILS(trainyard_write("/proc/no/such/place", "x", 1), TRAINYARD_E_FILE);
    CHECK_TEXT("rank 0: ");
    CHECK_FAILS(trainyard_read("/proc/self/mem", (void **)&bytes, &n), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_write("", "x", 1), TRAINYARD_E_ARGUMENT);
    CHECK_OK(trainyard_barrier(NULL)); /* before who made the folder removes it */
}

static void metrics(void)
{
    const char *const names[] = {"loss", "accuracy"}, *const bad[] = {"Loss"};
    double values[] = {trainyard_rank(), 0.5};
    CHECK_OK(trainyard_metrics(1200, 3, names, values, 2));
    CHECK(fabs(values[0] - (trainyard_size() - 1) / 2.0) < 1e-12 && values[1] == 0.5);
    CHECK_FAILS(trainyard_metrics(0, 0, bad, values, 1), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_metrics(0, 0, names, values, 0), TRAINYARD_E_ARGUMENT);
}

#endif
