/* base/ahead.h: what is asked for comes into memory, though nobody touches it. */
#define _GNU_SOURCE
#include "base/ahead.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { FILE_BYTES = 4 << 20, PAGE_BYTES = 4096, N_PAGES = FILE_BYTES / PAGE_BYTES };

typedef struct file {
    int fd;
    void *bytes;        /* mapped, never touched */
    bool seen[N_PAGES]; /* in memory, at one time or another: the system may take a page back */
} file;

/* Pages in memory now; notes them. */
static int resident(file *f, int *n_seen)
{
    unsigned char in_memory[N_PAGES];
    int n = 0;
    assert_return_code(mincore(f->bytes, FILE_BYTES, in_memory), 0);
    *n_seen = 0;
    for (int i = 0; i < N_PAGES; i++) {
        f->seen[i] |= in_memory[i] & 1;
        n += in_memory[i] & 1;
        *n_seen += f->seen[i];
    }
    return n;
}

static int make(void **state)
{
    static file f;
    static char zeros[FILE_BYTES];
    char path[] = "ahead-XXXXXX"; /* not in /tmp, which may be memory */
    f.fd = mkstemp(path);
    if (f.fd < 0)
        return -1;
    unlink(path);
    for (int i = 0; i < N_PAGES; i++)
        zeros[i * PAGE_BYTES] = (char)i;
    if (write(f.fd, zeros, FILE_BYTES) != FILE_BYTES || fsync(f.fd) < 0)
        return -1;
    f.bytes = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, f.fd, 0);
    *state = &f;
    return f.bytes == MAP_FAILED ? -1 : 0;
}

static void comes_into_memory(void **state)
{
    file *f = *state;
    int n_seen;
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    if (resident(f, &n_seen) > N_PAGES / 2) {
        print_message("skip: the file system of this folder keeps its files in memory\n");
        skip();
    }
    ty_ahead_read(f->fd, FILE_BYTES);
    close(f->fd);
    for (n_seen = 0; n_seen < N_PAGES; resident(f, &n_seen))
        sched_yield();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(comes_into_memory)};
    return cmocka_run_group_tests(tests, make, NULL);
}
