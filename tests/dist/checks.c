/* checks.c - a dozen checks of MPI, in the manner of the suites that come with its libraries. They show that the ranks
 * were launched well; that the library is right is its own affair. Built with mpicc by ranks.sh.
 *
 *     checks                 all of them; rank 0 prints "ok NAME" for each
 *     checks hello           every rank prints "rank R of N"
 *     checks abort           rank 1 calls MPI_Abort(42), the others wait for it
 *     checks die             rank 1 kills itself, the others wait for it
 *     checks wait            all ranks sleep in a barrier that rank 0 does not enter
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static int check_all_reduce(void)
{
    double in[1000], out[1000];
    for (int i = 0; i < 1000; i++)
        in[i] = rank * 1000 + i;
    MPI_Allreduce(in, out, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 1000; i++)
        if (out[i] != 1000.0 * size * (size - 1) / 2 + (double)i * size)
            return 1;
    return 0;
}

static int check_all_reduce_in_place(void)
{
    int v[3] = {rank, -rank, 1 << (rank % 30)};
    MPI_Allreduce(MPI_IN_PLACE, v, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, v + 1, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, v + 2, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
    return v[0] != size - 1 || v[1] != 1 - size || v[2] != (1 << size) - 1;
}

static int check_large_all_reduce(void)
{
    int n = 1 << 20, wrong = 0;
    float *v = malloc(sizeof *v * (size_t)n);
    for (int i = 0; i < n; i++)
        v[i] = (float)(i % 100 + rank);
    MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        wrong += v[i] != (float)(i % 100 * size + size * (size - 1) / 2);
    free(v);
    return wrong;
}

/* Rank r sends i elements to rank i: none to rank 0, and rank 0 gets nothing. */
static int check_all_to_all_zero_counts(void)
{
    int *counts = malloc(sizeof(int) * (size_t)size * 4), *places = counts + size, *from = places + size;
    int *from_places = from + size, out[4096], in[4096], wrong = 0;
    for (int i = 0, at = 0; i < size; i++) {
        counts[i] = i;
        places[i] = at;
        for (int k = 0; k < i; k++)
            out[at++] = rank * 100 + i;
        from[i] = rank;
        from_places[i] = i * rank;
    }
    MPI_Alltoallv(out, counts, places, MPI_INT, in, from, from_places, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        for (int k = 0; k < rank; k++)
            wrong += in[i * rank + k] != i * 100 + rank;
    free(counts);
    return wrong;
}

static int check_reduce_scatter(void)
{
    int counts[64], in[64 * 64], out[64], n = 0, wrong = 0;
    for (int i = 0; i < size; i++) {
        counts[i] = i + 1;
        n += i + 1;
    }
    for (int i = 0; i < n; i++)
        in[i] = i + rank;
    MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i <= rank; i++)
        wrong += out[i] != (rank * (rank + 1) / 2 + i) * size + size * (size - 1) / 2;
    return wrong;
}

static int check_reduce_scatter_block(void)
{
    int in[64 * 2], out[2];
    for (int i = 0; i < 2 * size; i++)
        in[i] = i;
    MPI_Reduce_scatter_block(in, out, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return out[0] != 2 * rank * size || out[1] != (2 * rank + 1) * size;
}

static int check_nonblocking(void)
{
    MPI_Request requests[3];
    int a = rank, b = 0, c = rank == 1 % size ? 77 : 0, flag = 0;
    MPI_Iallreduce(&a, &b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(&c, 1, MPI_INT, 1 % size, MPI_COMM_WORLD, &requests[1]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
    while (!flag)
        MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
    return b != size * (size - 1) / 2 || c != 77;
}

/* An operator that does not commute: 2 x 2 matrices, whose product shows the order of ranks. */
static void multiply(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++) {
        long long *a = (long long *)in + 4 * i, *b = (long long *)inout + 4 * i;
        long long c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                          a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

static int check_operator_order(void)
{
    MPI_Datatype matrix;
    MPI_Op op;
    long long mine[4] = {1, rank + 1, rank, 1}, product[4], expected[4] = {1, 0, 0, 1};
    MPI_Type_contiguous(4, MPI_LONG_LONG, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(multiply, 0, &op);
    MPI_Allreduce(mine, product, 1, matrix, op, MPI_COMM_WORLD);
    for (int r = size - 1; r >= 0; r--) {
        long long m[4] = {1, r + 1, r, 1};
        int one = 1;
        multiply(m, expected, &one, NULL);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&matrix);
    return memcmp(product, expected, sizeof expected) != 0;
}

static int check_split(void)
{
    MPI_Comm part;
    int r, n, sum, expected = 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
    MPI_Comm_rank(part, &r);
    MPI_Comm_size(part, &n);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part);
    for (int i = rank % 2; i < size; i += 2)
        expected += i;
    MPI_Comm_free(&part);
    return sum != expected || n != (size - rank % 2 + 1) / 2 || r != (size - 1 - rank) / 2;
}

/* Ranks that share memory are those of a host: the map says so, not the machine. */
static int check_hosts(void)
{
    MPI_Comm local;
    int r, n;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &r);
    MPI_Comm_size(local, &n);
    MPI_Comm_free(&local);
    return r != atoi(getenv("OMPI_COMM_WORLD_LOCAL_RANK")) || n != atoi(getenv("OMPI_COMM_WORLD_LOCAL_SIZE"));
}

static int check_gather(void)
{
    int counts[64], places[64], in[64], out[64 * 64], wrong = 0, n = 0;
    for (int i = 0; i < size; i++) {
        counts[i] = i;
        places[i] = n;
        n += i;
        in[i] = rank;
    }
    MPI_Allgatherv(in, rank, MPI_INT, out, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        for (int k = 0; k < i; k++)
            wrong += out[places[i] + k] != i;
    return wrong;
}

static int check_ring(void)
{
    int got[2000], sent[2000];
    for (int i = 0; i < 2000; i++)
        sent[i] = rank + i;
    int from = (rank + size - 1) % size;
    MPI_Sendrecv(sent, 2000, MPI_INT, (rank + 1) % size, 7, got, 2000, MPI_INT, from, 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return got[0] != from || got[1999] != from + 1999;
}

static int check_scan(void)
{
    int sum, before = -1;
    MPI_Scan(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(&rank, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum != rank * (rank + 1) / 2 || (rank > 0 && before != rank * (rank - 1) / 2);
}

static int check_dup(void)
{
    MPI_Comm copy;
    int result, v = rank == 0 ? 5 : 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_compare(MPI_COMM_WORLD, copy, &result);
    MPI_Bcast(&v, 1, MPI_INT, 0, copy);
    MPI_Comm_free(&copy);
    return result != MPI_CONGRUENT || v != 5;
}

static const struct {
    const char *name;
    int (*run)(void);
} checks[] = {
    {"all-reduce", check_all_reduce},
    {"all-reduce in place", check_all_reduce_in_place},
    {"all-reduce of 4 MB", check_large_all_reduce},
    {"all-to-all with counts of zero", check_all_to_all_zero_counts},
    {"reduce-scatter", check_reduce_scatter},
    {"reduce-scatter of equal blocks", check_reduce_scatter_block},
    {"nonblocking", check_nonblocking},
    {"operator in order of ranks", check_operator_order},
    {"split", check_split},
    {"ranks of a host", check_hosts},
    {"gather of uneven parts", check_gather},
    {"ring", check_ring},
    {"scan", check_scan},
    {"copy of the communicator", check_dup},
};

static int run_checks(void)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        int wrong = checks[i].run(), all;
        MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%s %s\n", all ? "WRONG" : "ok", checks[i].name);
        failed += all != 0;
    }
    return failed != 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int status = 0, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!*what)
        status = run_checks();
    else if (strcmp(what, "hello") == 0)
        printf("rank %d of %d\n", rank, size);
    else if (strcmp(what, "abort") == 0 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 42);
    else if (strcmp(what, "die") == 0 && rank == 1)
        raise(SIGKILL);
    else if (strcmp(what, "wait") == 0 && rank == 0) {
        printf("waiting\n");
        fflush(stdout);
        pause();
    } else
        MPI_Barrier(MPI_COMM_WORLD);
    fflush(stdout);
    MPI_Finalize();
    return status;
}
