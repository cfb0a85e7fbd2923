/* Kill sweep of saving: a process that saves checkpoints without pause is killed at random moments. After every kill
 * the newest checkpoint that it acknowledged, or a later one, must load and be whole: all tensors of one step.
 */
#include "output_scratch.h"

#include "base/rng.h"
#include "container/output/checkpoint.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_KILLS = 100, N_TENSORS = 3, N_ELEMS = 3000 };

static int64_t values[N_TENSORS][N_ELEMS];

static void describe(ty_named_tensor *tensors)
{
    static const char *const names[N_TENSORS] = {"a", "b", "c"};
    for (int i = 0; i < N_TENSORS; i++)
        tensors[i] = (ty_named_tensor){names[i], ty_type_make(TY_I64, 1, (int64_t[]){N_ELEMS}), values[i]};
}

static void fill(int64_t step)
{
    for (int i = 0; i < N_TENSORS; i++)
        for (int k = 0; k < N_ELEMS; k++)
            values[i][k] = step * 1000003 + i * N_ELEMS + k;
}

static bool is_filled(int64_t step)
{
    for (int i = 0; i < N_TENSORS; i++)
        for (int k = 0; k < N_ELEMS; k++)
            if (values[i][k] != step * 1000003 + i * N_ELEMS + k)
                return false;
    return true;
}

/* What a training does: restore, tidy, go on from there. `acknowledged` is shared with the judge. */
static void saver(const char *dir, volatile int64_t *acknowledged)
{
    ty_checkpoints c = {.dir = dir, .keep = 2};
    ty_named_tensor tensors[N_TENSORS];
    ty_arena arena;
    ty_checkpoint_restored r;
    ty_checkpoint_notes notes;
    ty_error err = {0};
    describe(tensors);
    ty_arena_init(&arena);
    if (ty_checkpoints_open(&c, &err) < 0 || ty_checkpoint_restore(&c, tensors, N_TENSORS, &arena, &r, &err) < 0 ||
        ty_checkpoints_tidy(&c, &arena, &notes, &err) < 0) {
        fprintf(stderr, "saver: %s\n", err.message);
        _exit(1);
    }
    for (int64_t step = r.found ? r.state.step : 0;;) {
        fill(++step);
        const ty_train_state s = {.step = step, .seed = (uint64_t)step};
        if (ty_checkpoint_save(&c, &s, tensors, N_TENSORS, &err) < 0) {
            fprintf(stderr, "saver: %s\n", err.message);
            _exit(1);
        }
        *acknowledged = step;
    }
}

static void judge(const char *dir, int64_t acknowledged, int kill)
{
    ty_checkpoints c = {.dir = dir, .keep = 2};
    ty_named_tensor tensors[N_TENSORS];
    ty_arena arena;
    ty_checkpoint_restored r;
    ty_error err;
    describe(tensors);
    ty_arena_init(&arena);
    assert_ok(ty_checkpoint_restore(&c, tensors, N_TENSORS, &arena, &r, &err));
    if (r.found ? r.state.step < acknowledged || !is_filled(r.state.step) : acknowledged != 0)
        fail_msg("kill %d: step %" PRId64 " was acknowledged, step %" PRId64 " came back", kill, acknowledged,
                 r.found ? r.state.step : -1);
    ty_arena_fini(&arena);
}

/* On a busy machine, or under a slow tool, moments counted from the start would all lie before the first save: every
 * fourth child is let live until it has saved once, and only then is the moment drawn. */
static void await_save(const volatile int64_t *acknowledged)
{
    const int64_t before = *acknowledged;
    for (int ms = 0; *acknowledged == before && ms < 300000; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void test_kill_sweep(void **state)
{
    const char *dir = in(state, "checkpoints");
    volatile int64_t *acknowledged =
        mmap(NULL, sizeof *acknowledged, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(acknowledged != MAP_FAILED);
    *acknowledged = 0;
    for (int kill_no = 0; kill_no < N_KILLS; kill_no++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            saver(dir, acknowledged);
        if (kill_no % 4 == 0)
            await_save(acknowledged);
        uint64_t wait_us = ty_rng_below(1, 0, 0, (uint64_t)kill_no, 40000);
        nanosleep(&(struct timespec){.tv_nsec = (long)wait_us * 1000}, NULL);
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status)); /* it never gives up by itself */
        judge(dir, *acknowledged, kill_no);
    }
    print_message("%d kills, %" PRId64 " checkpoints acknowledged, none lost\n", N_KILLS, *acknowledged);
    assert_true(*acknowledged >= N_KILLS / 4);
    munmap((void *)acknowledged, sizeof *acknowledged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {SCRATCH_TEST(test_kill_sweep)};
    return cmocka_run_group_tests_name("output: kill sweep", tests, NULL, NULL);
}
