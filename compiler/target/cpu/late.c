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

/* By call: how many late ones must have run in front of it, where late call j is needed by call first[j]. */
static int *late_counts(const int *first, int n_late, int n, ty_arena *a)
{
    int *need = TY_NEW_ARRAY(a, int, n + 1), most = 0;
    for (int i = 0; i < n; i++) {
        for (int j = most; j < n_late; j++)
            most = first[j] <= i ? j + 1 : most;
        need[i] = most;
    }
    return need;
}

/* Late calls that meet stay in their order: the earlier one is needed no later. So `first` moves with them. */
int *ty_late_sort(ty_cpu_step *step, int first_late, int n, ty_arena *a)
{
    int n_late = n - first_late, at = 0;
    ty_arena scratch;
    ty_arena_init(&scratch);
    ty_cpu_step *sorted = TY_NEW_ARRAY(&scratch, ty_cpu_step, n_late + 1);
    int *first = late_first_needs(step + first_late, n_late, step, first_late, &scratch);
    int *sorted_first = TY_NEW_ARRAY(&scratch, int, n_late + 1);
    for (int need = 0; need <= first_late; need++)
        for (int j = 0; j < n_late; j++)
            if (first[j] == need) {
                sorted_first[at] = need;
                sorted[at++] = step[first_late + j];
            }
    memcpy(step + first_late, sorted, sizeof *sorted * (size_t)n_late);
    int *need = late_counts(sorted_first, n_late, first_late, a);
    ty_arena_fini(&scratch);
    return need;
}

int *ty_late_needs(const ty_cpu_step *late, int n_late, const ty_cpu_step *step, int n, ty_arena *a)
{
    ty_arena scratch;
    ty_arena_init(&scratch);
    int *need = late_counts(late_first_needs(late, n_late, step, n, &scratch), n_late, n, a);
    ty_arena_fini(&scratch);
    return need;
}
