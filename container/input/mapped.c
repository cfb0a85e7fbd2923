/* mapped.c - see mapped.h. */
#include "container/input/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Entries are only ever added to the list, and used again once forgotten, so that the handler may walk it at any time.
 */
struct ty_mapped {
    _Atomic(uintptr_t) start; /* 0: in nobody's use */
    _Atomic(size_t) n;
    atomic_bool is_cut;
    char *path;
    ty_mapped *next, *next_unused;
};

static _Atomic(ty_mapped *) mapped_list;
static atomic_bool mapped_any_cut;
static ty_mapped *mapped_unused;
static pthread_mutex_t mapped_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t mapped_once = PTHREAD_ONCE_INIT;
static struct sigaction mapped_before;
static size_t mapped_page;

static bool mapped_fill(ty_mapped *m, uintptr_t at)
{
    uintptr_t start = atomic_load(&m->start), end = start + atomic_load(&m->n), page = at / mapped_page * mapped_page;
    if (start == 0 || at < start || at >= end)
        return false;
    if (mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    atomic_store(&m->is_cut, true);
    atomic_store(&mapped_any_cut, true);
    return true;
}

static void mapped_on_fault(int signal, siginfo_t *info, void *context)
{
    int kept = errno;
    (void)context;
    for (ty_mapped *m = atomic_load(&mapped_list); m; m = m->next)
        if (mapped_fill(m, (uintptr_t)info->si_addr)) {
            errno = kept;
            return;
        }
    sigaction(signal, &mapped_before, NULL); /* the same fault again, and it is theirs */
}

static void mapped_install(void)
{
    struct sigaction ours = {.sa_sigaction = mapped_on_fault, .sa_flags = SA_SIGINFO};
    mapped_page = (size_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&ours.sa_mask);
    sigaction(SIGBUS, &ours, &mapped_before);
}

static ty_mapped *mapped_take_entry(void)
{
    ty_mapped *m = mapped_unused;
    if (m) {
        mapped_unused = m->next_unused;
        return m;
    }
    m = calloc(1, sizeof *m);
    if (m) {
        m->next = atomic_load(&mapped_list);
        atomic_store(&mapped_list, m);
    }
    return m;
}

ty_mapped *ty_mapped_watch(const void *p, size_t n, const char *path)
{
    pthread_once(&mapped_once, mapped_install);
    char *copy = strdup(path);
    pthread_mutex_lock(&mapped_lock);
    ty_mapped *m = copy ? mapped_take_entry() : NULL;
    if (m) {
        m->path = copy;
        atomic_store(&m->is_cut, false);
        atomic_store(&m->n, n);
        atomic_store(&m->start, (uintptr_t)p);
    }
    pthread_mutex_unlock(&mapped_lock);
    if (!m)
        free(copy);
    return m;
}

void ty_mapped_forget(ty_mapped *m)
{
    if (!m)
        return;
    pthread_mutex_lock(&mapped_lock);
    atomic_store(&m->start, 0);
    atomic_store(&m->is_cut, false);
    free(m->path);
    m->path = NULL;
    m->next_unused = mapped_unused;
    mapped_unused = m;
    pthread_mutex_unlock(&mapped_lock);
}

static int mapped_refuse(const ty_mapped *m, ty_error *err)
{
    struct stat st;
    if (stat(m->path, &st) < 0)
        ty_error_set(err, TY_E_DATA, "the file was made shorter while it was read, and is gone");
    else
        ty_error_set(err, TY_E_DATA,
                     "the file was made shorter while it was read: expected %zu bytes, as when it was "
                     "opened, found %lld",
                     atomic_load(&m->n), (long long)st.st_size);
    ty_error_at(err, "%s", m->path);
    return ty_error_help(err, "nothing may write to data while a job reads them: write beside them, then rename");
}

int ty_mapped_check(ty_error *err)
{
    if (!atomic_load_explicit(&mapped_any_cut, memory_order_relaxed))
        return 0;
    int rc = 0;
    pthread_mutex_lock(&mapped_lock);
    for (ty_mapped *m = atomic_load(&mapped_list); m && rc == 0; m = m->next)
        if (atomic_load(&m->is_cut))
            rc = mapped_refuse(m, err);
    if (rc == 0)
        atomic_store(&mapped_any_cut, false); /* it was forgotten */
    pthread_mutex_unlock(&mapped_lock);
    return rc;
}
