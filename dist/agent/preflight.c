/* preflight.c - threads and their sockets: four answer whoever proves to be of the job, one asks its neighbours.
 *
 * On a connection, after the handshake:
 *
 *     8 times    1024 bytes there; the same back, the first 8 of them replaced by the answering host's clock
 *     once       up to 16 MB there, ended by a shutdown; back, how many bytes arrived, as 8 bytes
 *
 * Everything has a deadline; what is not reached in time stays unknown. */
#define _GNU_SOURCE
#include "dist/agent/preflight.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    ROUNDS = 8,
    ROUND_BYTES = 1024,
    BULK_BYTES = 16 << 20,
    BULK_CHUNK = 256 << 10,
    STRANGER_MS = 500,
    SPARE_MS = 50,
    ANSWERING = 4
};

struct ty_preflight {
    uint8_t key[TY_LINK_KEY_BYTES];
    int self, listen_fd, stop_fd, done_fd;
    char address[TY_ADDRESS_TEXT_BYTES];
    pthread_t answering[ANSWERING], asking;
    int n_answering;
    bool is_asking;
    ty_map_host *hosts;
    int n_hosts;
    ty_look look; /* the asking thread's, until done_fd is written */
};

/* ---- bytes with a deadline ---- */

static int wait_for(int fd, short events, int64_t until_ms)
{
    for (;;) {
        int64_t left = until_ms - ty_clock_ms();
        struct pollfd p = {fd, events, 0};
        if (left <= 0)
            errno = ETIMEDOUT;
        if (left <= 0)
            return -1;
        int n = poll(&p, 1, (int)left);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -1;
    }
}

/* All n bytes, or -1 with errno. */
static int send_all(int fd, const void *bytes, size_t n_bytes, int64_t until_ms)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = send(fd, (const char *)bytes + done, n_bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        else if (wait_for(fd, POLLOUT, until_ms) < 0)
            return -1;
    }
    return 0;
}

static int receive_all(int fd, void *bytes, size_t n_bytes, int64_t until_ms)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = recv(fd, (char *)bytes + done, n_bytes - done, MSG_DONTWAIT);
        if (n == 0)
            errno = ECONNRESET;
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return -1;
        else if (wait_for(fd, POLLIN, until_ms) < 0)
            return -1;
    }
    return 0;
}

static int no_frame(void *ctx, int kind, const uint8_t *payload, size_t n_bytes, ty_error *err)
{
    (void)ctx, (void)kind, (void)payload, (void)n_bytes;
    return ty_error_set(err, TY_E_DATA, "frames are not for this port");
}

/* The handshake of link.h, whose parts have known sizes: not a byte more is read. */
static int shake(int fd, const uint8_t *key, bool listening, int64_t until_ms)
{
    static const size_t parts[] = {8 + TY_LINK_NONCE_BYTES, TY_LINK_MAC_BYTES};
    ty_link link;
    uint8_t bytes[64];
    errno = EPROTO;
    int rc = ty_link_init(&link, key, listening, NULL, NULL);
    for (int i = 0; i < 2 && rc == 0; i++) {
        rc = send_all(fd, link.out.data, link.out.len, until_ms);
        ty_buf_clear(&link.out);
        if (rc == 0)
            rc = receive_all(fd, bytes, parts[i], until_ms);
        if (rc == 0 && (rc = ty_link_take(&link, bytes, parts[i], no_frame, NULL, NULL)) < 0)
            errno = EACCES;
    }
    if (rc == 0)
        rc = send_all(fd, link.out.data, link.out.len, until_ms);
    if (rc == 0 && link.state != TY_LINK_OPEN)
        rc = -1;
    ty_link_fini(&link);
    return rc;
}

/* ---- answering ---- */

static void answer(ty_preflight *p, int fd)
{
    int64_t until_ms = ty_clock_ms() + TY_LOOK_MS;
    uint8_t bytes[ROUND_BYTES];
    char *chunk = malloc(BULK_CHUNK);
    int rc = chunk ? shake(fd, p->key, true, ty_clock_ms() + STRANGER_MS) : -1;
    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        rc = receive_all(fd, bytes, sizeof bytes, until_ms);
        int64_t now = ty_clock_utc_ms();
        memcpy(bytes, &now, sizeof now);
        if (rc == 0)
            rc = send_all(fd, bytes, sizeof bytes, until_ms);
    }
    uint64_t total = 0;
    while (rc == 0) {
        ssize_t n = recv(fd, chunk, BULK_CHUNK, MSG_DONTWAIT);
        if (n == 0)
            break;
        if (n > 0)
            total += (uint64_t)n;
        else if (errno != EAGAIN && errno != EINTR)
            rc = -1;
        else
            rc = wait_for(fd, POLLIN, until_ms);
    }
    if (rc == 0)
        send_all(fd, &total, sizeof total, until_ms);
    free(chunk);
}

static void *answer_all(void *ctx)
{
    ty_preflight *p = ctx;
    struct pollfd fds[2] = {{p->listen_fd, POLLIN, 0}, {p->stop_fd, POLLIN, 0}};
    while ((poll(fds, 2, -1) > 0 || errno == EINTR) && !fds[1].revents) {
        int fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        answer(p, fd);
        close(fd);
    }
    return NULL;
}

/* ---- asking ---- */

static int connect_to(const ty_preflight *p, const ty_map_host *host, int64_t until_ms)
{
    struct sockaddr_storage there, own;
    socklen_t n_there, n_own;
    int number = 0;
    socklen_t n = sizeof number;
    if (ty_address_parse(host->address, host->look_port, &there, &n_there) < 0)
        return -1;
    int fd = socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (ty_address_parse(p->address, 0, &own, &n_own) == 0 && own.ss_family == there.ss_family)
        number = bind(fd, (const struct sockaddr *)&own, n_own) < 0 ? errno : 0;
    if (number == 0 && connect(fd, (const struct sockaddr *)&there, n_there) < 0 && errno != EINPROGRESS)
        number = errno;
    if (number == 0 && wait_for(fd, POLLOUT, until_ms) < 0)
        number = errno;
    if (number == 0)
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &n);
    if (number == 0)
        return fd;
    close(fd);
    errno = number;
    return -1;
}

static int ask_rounds(int fd, ty_look_pair *pair, int64_t until_ms)
{
    uint8_t bytes[ROUND_BYTES] = {0};
    pair->round_us = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start_us = ty_clock_us(), theirs_ms;
        if (send_all(fd, bytes, sizeof bytes, until_ms) < 0 || receive_all(fd, bytes, sizeof bytes, until_ms) < 0)
            return -1;
        int64_t took_us = ty_clock_us() - start_us;
        if (took_us >= pair->round_us)
            continue;
        memcpy(&theirs_ms, bytes, sizeof theirs_ms);
        pair->round_us = took_us;
        pair->clock_us = (theirs_ms - ty_clock_utc_ms()) * 1000 + took_us / 2;
    }
    return 0;
}

/* As much as goes until the deadline, 16 MB at most. */
static void ask_bulk(int fd, ty_look_pair *pair, int64_t until_ms)
{
    static const char zeros[BULK_CHUNK];
    int64_t start_us = ty_clock_us();
    uint64_t arrived = 0;
    for (int sent = 0; sent < BULK_BYTES && ty_clock_ms() < until_ms - SPARE_MS; sent += BULK_CHUNK)
        if (send_all(fd, zeros, sizeof zeros, until_ms) < 0)
            return;
    shutdown(fd, SHUT_WR);
    if (receive_all(fd, &arrived, sizeof arrived, until_ms + SPARE_MS) < 0)
        return;
    int64_t took_us = ty_clock_us() - start_us;
    pair->mbyte_s = (int64_t)(arrived / (uint64_t)(took_us > 0 ? took_us : 1));
}

static void ask(ty_preflight *p, ty_look_pair *pair, int64_t until_ms)
{
    const ty_map_host *host = &p->hosts[pair->host];
    socklen_t n = sizeof pair->path_mtu;
    if (host->look_port == 0) {
        snprintf(pair->failure, sizeof pair->failure, "it does not answer such questions");
        return;
    }
    int fd = connect_to(p, host, until_ms);
    if (fd < 0 || shake(fd, p->key, false, until_ms) < 0 || ask_rounds(fd, pair, until_ms) < 0) {
        snprintf(pair->failure, sizeof pair->failure, "%s", errno == ETIMEDOUT ? "no answer in time" : strerror(errno));
    } else {
        ask_bulk(fd, pair, until_ms);
        if (getsockopt(fd, IPPROTO_IP, IP_MTU, &pair->path_mtu, &n) < 0)
            pair->path_mtu = 0;
    }
    if (fd >= 0)
        close(fd);
}

static int64_t limit_of(int what)
{
    struct rlimit limit;
    return getrlimit(what, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ? -1 : (int64_t)limit.rlim_cur;
}

static void look_at_machine(ty_look *look)
{
    struct statvfs shm;
    look->shm_bytes = statvfs("/dev/shm", &shm) == 0 ? (int64_t)(shm.f_bavail * shm.f_frsize) : -1;
    look->files = limit_of(RLIMIT_NOFILE);
    look->memlock_bytes = limit_of(RLIMIT_MEMLOCK);
    look->stack_bytes = limit_of(RLIMIT_STACK);
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (!file || fscanf(file, "%d", &look->ptrace_scope) != 1)
        look->ptrace_scope = -1;
    if (file)
        fclose(file);
}

static void *ask_all(void *ctx)
{
    ty_preflight *p = ctx;
    int64_t end_ms = ty_clock_ms() + TY_LOOK_MS;
    look_at_machine(&p->look);
    int n = 0;
    for (int step = 1; step < p->n_hosts && n < TY_LOOK_PAIRS; step *= 2)
        p->look.pairs[n++].host = (p->self + step) % p->n_hosts;
    p->look.n_pairs = n;
    for (int i = 0; i < n; i++) /* each has its share of what time is left */
        ask(p, &p->look.pairs[i], ty_clock_ms() + (end_ms - ty_clock_ms()) / (n - i));
    uint64_t one = 1;
    ssize_t written = write(p->done_fd, &one, sizeof one);
    (void)written; /* an eventfd takes it */
    return NULL;
}

/* ---- life ---- */

static int start_thread(pthread_t *thread, void *(*run)(void *), ty_preflight *p)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, run, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static int listen_on(ty_preflight *p, int *port, ty_error *err)
{
    struct sockaddr_storage address;
    socklen_t n;
    if (ty_address_parse(p->address, 0, &address, &n) < 0)
        return ty_error_set(err, TY_E_CONFIG, "\"%s\" is not an address", p->address);
    p->listen_fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->listen_fd < 0 || bind(p->listen_fd, (struct sockaddr *)&address, n) < 0 || listen(p->listen_fd, 64) < 0 ||
        getsockname(p->listen_fd, (struct sockaddr *)&address, &n) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot listen on %s", p->address);
    *port = ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                               : ((struct sockaddr_in6 *)&address)->sin6_port);
    return 0;
}

int ty_preflight_start(const uint8_t key[TY_LINK_KEY_BYTES], const char *address, int self, ty_preflight **out,
                       int *port, ty_error *err)
{
    ty_preflight *p = calloc(1, sizeof *p);
    if (!p)
        return ty_error_set(err, TY_E_LIMIT, "no memory");
    memcpy(p->key, key, sizeof p->key);
    p->self = self;
    p->listen_fd = -1;
    snprintf(p->address, sizeof p->address, "%s", address);
    p->stop_fd = eventfd(0, EFD_CLOEXEC);
    p->done_fd = eventfd(0, EFD_CLOEXEC);
    int rc =
        p->stop_fd < 0 || p->done_fd < 0 ? ty_error_errno(err, TY_E_LIMIT, errno, "eventfd") : listen_on(p, port, err);
    while (rc == 0 && p->n_answering < ANSWERING)
        if ((rc = start_thread(&p->answering[p->n_answering], answer_all, p)) == 0)
            p->n_answering++;
        else
            rc = ty_error_errno(err, TY_E_LIMIT, rc, "cannot start a thread");
    if (rc < 0)
        ty_preflight_free(p);
    else
        *out = p;
    return rc;
}

int ty_preflight_go(ty_preflight *p, const ty_map_host *hosts, int n, ty_error *err)
{
    p->hosts = calloc((size_t)n, sizeof *hosts);
    if (!p->hosts || p->is_asking)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %d hosts", n);
    memcpy(p->hosts, hosts, (size_t)n * sizeof *hosts);
    p->n_hosts = n;
    int rc = start_thread(&p->asking, ask_all, p);
    p->is_asking = rc == 0;
    return rc == 0 ? 0 : ty_error_errno(err, TY_E_LIMIT, rc, "cannot start a thread");
}

int ty_preflight_fd(const ty_preflight *p)
{
    return p->done_fd;
}

void ty_preflight_take(ty_preflight *p, ty_look *out)
{
    if (p->is_asking)
        pthread_join(p->asking, NULL);
    p->is_asking = false;
    *out = p->look;
}

void ty_preflight_free(ty_preflight *p)
{
    if (!p)
        return;
    uint64_t one = 1;
    ssize_t written = write(p->stop_fd, &one, sizeof one);
    (void)written;
    if (p->is_asking)
        pthread_join(p->asking, NULL);
    for (int i = 0; i < p->n_answering; i++)
        pthread_join(p->answering[i], NULL);
    int fds[] = {p->listen_fd, p->stop_fd, p->done_fd};
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(p->hosts);
    free(p);
}
