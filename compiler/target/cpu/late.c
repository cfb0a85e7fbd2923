/* late.c - see late.h. */
#include "compiler/target/cpu/late.h"

#include <string.h>

static bool late_reads_input(const ty_cpu_step *step)
{
    for (int i = 0; i < step->n_reach; i++)
        if (!step->reach[i].at)
            return true;
    return false;
}

int ty_late_cut(const ty_cpu_step *step, int n)
{
    int first = n;
    bool waits = false;
    while (first > 0 && step[first - 1].kind != TY_CPU_BEGIN && !late_reads_input(&step[first - 1]))
        waits = step[--first].kind == TY_CPU_WAIT || waits;
    return waits ? first : n;
}

/* Must these two stay in their order? */
static bool late_meet(const ty_cpu_step *a, const ty_cpu_step *b)
{
    for (int i = 0; i < a->n_reach; i++)
        for (int k = 0; k < b->n_reach; k++) {
            const ty_cpu_reach *x = &a->reach[i], *y = &b->reach[k];
            if ((x->written || y->written) && x->at && y->at && x->at < y->at + y->bytes && y->at < x->at + x->bytes)
                return true;
        }
    return false;
}

/* By late call: the first of the tape's calls that needs it, itself or by another late one; n: none does. */
static int *late_first_needs(const ty_cpu_step *late, int n_late, const ty_cpu_step *step, int n, ty_arena *scratch)
{
    int *first = TY_NEW_ARRAY(scratch, int, n_late + 1);
    for (int j = n_late - 1; j >= 0; j--) {
        first[j] = 0;
        while (first[j] < n && !late_meet(&late[j], &step[first[j]]))
            first[j]++;
        for (int k = j + 1; k < n_late; k++)
            if (first[k] < first[j] && late_meet(&late[j], &late[k]))
                first[j] = first[k];
    }
    return first;
}

void ty_late_sort(ty_cpu_step *step, int first_late, int n, ty_arena *scratch)
{
    int n_late = n - first_late, at = 0;
    ty_cpu_step *sorted = TY_NEW_ARRAY(scratch, ty_cpu_step, n_late + 1);
    const int *first = late_first_needs(step + first_late, n_late, step, first_late, scratch);
    for (int need = 0; need <= first_late; need++)
        for (int j = 0; j < n_late; j++)
            if (first[j] == need)
                sorted[at++] = step[first_late + j];
    memcpy(step + first_late, sorted, sizeof *sorted * (size_t)n_late);
}

int *ty_late_needs(const ty_cpu_step *late, int n_late, const ty_cpu_step *step, int n, ty_arena *a)
{
    int *need = TY_NEW_ARRAY(a, int, n + 1), most = 0;
    const int *first = late_first_needs(late, n_late, step, n, a);
    for (int i = 0; i < n; i++) {
        for (int j = most; j < n_late; j++)
            most = first[j] <= i ? j + 1 : most;
        need[i] = most;
    }
    need[n] = n_late;
    return need;
}
