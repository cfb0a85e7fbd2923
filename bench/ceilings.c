/* ceilings.c - how many vector instructions on 32-bit floats this machine does a second: ceilings [THREADS]
 *
 * Multiply-adds, divisions and square roots, each on numbers that stay in registers, by all threads at once; of many
 * short rounds the best of each thread, so that other work on the machine hardly counts. One JSON line, in elements a
 * second: {"threads": 2, "fma": 1.0e11, "div": ..., "sqrt": ...}. It is compiled for the machine it is built on, as
 * generated kernels are.
 */
#include "base/clock.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

/* As many chains as hide the latency of an instruction and fit into registers; as many elements as one has. */
#ifdef __AVX512F__
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif
enum { CHAINS = 10, ROUNDS = 200, STEPS = 1 << 14 };

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

/* Keeps the compiler from computing it beforehand or not at all. */
#define HIDE(x)    __asm__ volatile("" : "+v"(x))
#define EACH(what) what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8) what(9)

static vector root(vector x)
{
    vector y;
    for (int i = 0; i < LANES; i++)
        y[i] = __builtin_sqrtf(x[i]);
    return y;
}

/* Variables of their own: an array of vectors stays in memory. */
#define DECLARE(i) vector x##i = a + (float)(i);
#define FMA(i)           \
    x##i = x##i * a + b; \
    HIDE(x##i);
#define DIV(i)       \
    x##i = a / x##i; \
    HIDE(x##i);
#define SQRT(i)        \
    x##i = root(x##i); \
    HIDE(x##i);
#define LOOP(name, steps, what)                            \
    __attribute__((optimize("O3"))) static void name(void) \
    {                                                      \
        vector a = {0}, b = {0};                           \
        a += 0.999f;                                       \
        b += 0.001f;                                       \
        HIDE(a);                                           \
        HIDE(b);                                           \
        EACH(DECLARE)                                      \
        for (int step = 0; step < (steps); step++) {       \
            EACH(what)                                     \
        }                                                  \
    }

LOOP(run_fma, STEPS, FMA)
LOOP(run_div, STEPS / 8, DIV)
LOOP(run_sqrt, STEPS / 8, SQRT)

/* Elements a second. */
static double speed(void (*run)(void), int steps, int threads)
{
    double sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
        int64_t best = INT64_MAX;
        for (int round = 0; round < ROUNDS; round++) {
            int64_t start = ty_clock_ns();
            run();
            int64_t ns = ty_clock_ns() - start;
            best = ns < best ? ns : best;
        }
        sum += 1e9 * steps * CHAINS * LANES / (double)best;
    }
    return sum;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : omp_get_num_procs();
    if (argc > 2 || threads < 1) {
        fprintf(stderr, "usage: ceilings [THREADS]\n");
        return 64;
    }
    printf("{\"threads\": %d, \"fma\": %.4g, \"div\": %.4g, \"sqrt\": %.4g}\n", threads, speed(run_fma, STEPS, threads),
           speed(run_div, STEPS / 8, threads), speed(run_sqrt, STEPS / 8, threads));
    return 0;
}
