/* machine.c - what the machine can do at most: one product by oneDNN, one copy by all threads, the best of a few. */
#include "base/clock.h"
#include "compiler/compiler.h"
#include "compiler/machine.h"
#include "compiler/target/cpu/onednn.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINE_N = 768, MACHINE_ROUNDS = 6, MACHINE_COPY_BYTES = 64 << 20 };

static int machine_product(ty_machine_ceilings *out, ty_error *err)
{
    const ty_onednn *lib;
    size_t bytes = sizeof(float) * MACHINE_N * MACHINE_N;
    if (ty_onednn_get(&lib, err) < 0)
        return -1;
    float *a = aligned_alloc(64, bytes), *b = aligned_alloc(64, bytes), *c = aligned_alloc(64, bytes);
    int rc = a && b && c ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory to measure products");
    for (int i = 0; rc == 0 && i < MACHINE_N * MACHINE_N; i++)
        a[i] = b[i] = 1.0f / (float)(1 + i % 7);
    int before = ty_onednn_use_threads(out->threads);
    for (int round = 0; round < MACHINE_ROUNDS && rc == 0; round++) {
        int64_t start = ty_clock_ns();
        rc = ty_onednn_status(
            lib->sgemm('N', 'N', MACHINE_N, MACHINE_N, MACHINE_N, 1, a, MACHINE_N, b, MACHINE_N, 0, c, MACHINE_N),
            "sgemm", err);
        double speed = 2e9 * MACHINE_N * MACHINE_N * MACHINE_N / (double)(ty_clock_ns() - start);
        out->flop_per_s = speed > out->flop_per_s ? speed : out->flop_per_s;
    }
    ty_onednn_use_threads(before);
    free(a);
    free(b);
    free(c);
    return rc;
}

static void machine_copy_once(char *to, const char *from, int threads)
{
    size_t part = MACHINE_COPY_BYTES / (size_t)threads;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; t++)
        memcpy(to + part * (size_t)t, from + part * (size_t)t, part);
}

static int machine_copy(ty_machine_ceilings *out, ty_error *err)
{
    char *from = aligned_alloc(4096, MACHINE_COPY_BYTES), *to = aligned_alloc(4096, MACHINE_COPY_BYTES);
    int rc = from && to ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory to measure copies");
    if (rc == 0)
        memset(from, 1, MACHINE_COPY_BYTES);
    for (int round = 0; round < MACHINE_ROUNDS && rc == 0; round++) {
        int64_t start = ty_clock_ns();
        machine_copy_once(to, from, out->threads);
        double speed = 2e9 * MACHINE_COPY_BYTES / (double)(ty_clock_ns() - start);
        out->bytes_per_s = speed > out->bytes_per_s ? speed : out->bytes_per_s;
    }
    free(from);
    free(to);
    return rc;
}

int ty_machine_measure(int threads, ty_machine_ceilings *out, ty_error *err)
{
    *out = (ty_machine_ceilings){.threads = threads > 0 ? threads : omp_get_num_procs()};
    return machine_product(out, err) < 0 ? -1 : machine_copy(out, err);
}
