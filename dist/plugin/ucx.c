/* ucx.c - blocks of bytes as active messages of UCX over TCP. See dist/server/transport.h.
 *
 * One context and one worker a transport, used by one thread. Who listens gets an endpoint for each connection request;
 * who calls opens one by address when there is something to send, and anew after it broke (not at once, but when
 * UCX_PAUSE_MS have gone by). Messages are sent eagerly, in fragments that UCX puts together: whole on arrival, no
 * rendezvous that a dying peer could leave half done.
 *
 * Waiting is an epoll on the worker's descriptor and on an eventfd, by which other threads wake it; nobody spins.
 * UCX_TLS is tcp alone: shared memory would be quicker between processes of one host, but only TCP tells of a peer that
 * was killed.
 */
#include "base/clock.h"
#include "dist/plugin.h"
#include "dist/server/transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { UCX_ID = 1, UCX_PAUSE_MS = 200, UCX_CLOSE_MS = 2000 };

typedef struct ucx_peer {
    struct ucx_self *self;
    ucp_ep_h ep;       /* NULL: none */
    bool broken;       /* its endpoint is to be given up */
    bool called;       /* we called: address is there, and it may be called again */
    int64_t called_ms; /* when */
    struct sockaddr_storage address;
    socklen_t address_bytes;
} ucx_peer;

typedef struct ucx_self {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_listener_h listener;
    int epoll_fd, event_fd;
    ucx_peer **peer;
    int64_t n_peers, room;
    ty_queue arrived;
    int64_t n_arrived;
    int64_t sending; /* blocks whose memory UCX still reads */
    bool woken;
} ucx_self;

typedef struct ucx_block { /* goes with a send until it is done */
    ucx_self *self;
    void *bytes;
} ucx_block;

static const char *ucx_version(void)
{
    static char text[64];
    snprintf(text, sizeof text, "UCX %s", ucp_get_version_string());
    return text;
}

static int ucx_fail(ty_error *err, ucs_status_t status, const char *what)
{
    return ty_error_set(err, TY_E_LIBRARY, "UCX: %s: %s", what, ucs_status_string(status));
}

/* ---- peers ---- */

static int64_t peer_add(ucx_self *self)
{
    if (self->n_peers == self->room) {
        int64_t room = self->room ? 2 * self->room : 16;
        ucx_peer **grown = realloc(self->peer, (size_t)room * sizeof *grown);
        if (grown == NULL)
            return -1;
        self->peer = grown;
        self->room = room;
    }
    ucx_peer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -1;
    p->self = self;
    self->peer[self->n_peers] = p;
    return self->n_peers++;
}

static void peer_broke(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ucx_peer *p = arg;
    (void)status;
    if (p->ep == ep)
        p->broken = true;
}

static void ep_close(ucx_self *self, ucp_ep_h ep, bool force)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0};
    void *request = ucp_ep_close_nbx(ep, &param);
    if (!UCS_PTR_IS_PTR(request))
        return;
    int64_t until = ty_clock_ms() + UCX_CLOSE_MS;
    while (ucp_request_check_status(request) == UCS_INPROGRESS && ty_clock_ms() < until)
        ucp_worker_progress(self->worker);
    ucp_request_free(request);
}

static void peer_drop(ucx_peer *p, bool force)
{
    ucp_ep_h ep = p->ep;
    p->ep = NULL;
    p->broken = false;
    if (ep)
        ep_close(p->self, ep, force);
}

static ucp_ep_params_t peer_params(ucx_peer *p)
{
    return (ucp_ep_params_t){.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                             .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                             .err_handler = {.cb = peer_broke, .arg = p}};
}

static void peer_call(ucx_peer *p)
{
    if (p->broken)
        peer_drop(p, true);
    if (p->ep || !p->called || ty_clock_ms() - p->called_ms < UCX_PAUSE_MS)
        return;
    ucp_ep_params_t params = peer_params(p);
    params.field_mask |= UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr = (ucs_sock_addr_t){(const struct sockaddr *)&p->address, p->address_bytes};
    p->called_ms = ty_clock_ms();
    if (ucp_ep_create(p->self->worker, &params, &p->ep) != UCS_OK)
        p->ep = NULL;
}

/* Somebody calls. */
static void ucx_called(ucp_conn_request_h request, void *arg)
{
    ucx_self *self = arg;
    int64_t number = peer_add(self);
    if (number < 0) {
        ucp_listener_reject(self->listener, request);
        return;
    }
    ucp_ep_params_t params = peer_params(self->peer[number]);
    params.field_mask |= UCP_EP_PARAM_FIELD_CONN_REQUEST;
    params.conn_request = request;
    if (ucp_ep_create(self->worker, &params, &self->peer[number]->ep) != UCS_OK)
        self->peer[number]->ep = NULL;
}

/* ---- blocks ---- */

static void ucx_sent(void *request, ucs_status_t status, void *user_data)
{
    ucx_block *block = user_data;
    (void)status;
    block->self->sending--;
    free(block->bytes);
    free(block);
    if (request)
        ucp_request_free(request);
}

static void ucx_send(void *arg, int64_t peer, void *bytes, size_t n_bytes)
{
    ucx_self *self = arg;
    ucx_block *block = malloc(sizeof *block);
    ucx_peer *p = peer >= 0 && peer < self->n_peers ? self->peer[peer] : NULL;
    if (p)
        peer_call(p);
    if (p == NULL || p->ep == NULL || block == NULL) {
        free(block);
        free(bytes);
        return;
    }
    *block = (ucx_block){self, bytes};
    self->sending++;
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY,
                                 .cb = {.send = ucx_sent},
                                 .user_data = block};
    void *request = ucp_am_send_nbx(p->ep, UCX_ID, NULL, 0, bytes, n_bytes, &param);
    if (!UCS_PTR_IS_PTR(request))
        ucx_sent(NULL, UCS_PTR_STATUS(request), block);
}

static int64_t peer_of(ucx_self *self, ucp_ep_h ep)
{
    for (int64_t i = self->n_peers - 1; i >= 0; i--)
        if (self->peer[i]->ep == ep)
            return i;
    return -1;
}

static ucs_status_t ucx_arrived(void *arg, const void *header, size_t header_bytes, void *data, size_t n_bytes,
                                const ucp_am_recv_param_t *param)
{
    ucx_self *self = arg;
    (void)header;
    (void)header_bytes;
    int64_t peer = param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP ? peer_of(self, param->reply_ep) : -1;
    void *bytes = malloc(n_bytes ? n_bytes : 1);
    if (bytes == NULL || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        free(bytes);
        return UCS_OK;
    }
    memcpy(bytes, data, n_bytes);
    self->n_arrived += ty_queue_put(&self->arrived, (ty_delivery){bytes, n_bytes, peer});
    return UCS_OK;
}

/* Endpoints that broke are given up outside of callbacks; their memory stays, for numbers are never used twice. */
static void ucx_sweep(ucx_self *self)
{
    for (int64_t i = 0; i < self->n_peers; i++)
        if (self->peer[i]->broken)
            peer_drop(self->peer[i], true);
}

static bool ucx_take(ucx_self *self, ty_delivery *d)
{
    while (self->n_arrived == 0 && ucp_worker_progress(self->worker))
        ;
    if (self->n_arrived == 0 || !ty_queue_get(&self->arrived, 0, d))
        return false;
    self->n_arrived--;
    return true;
}

static int ucx_receive(void *arg, int timeout_ms, ty_delivery *d, ty_error *err)
{
    ucx_self *self = arg;
    int64_t until = ty_clock_ms() + timeout_ms;
    for (;;) {
        uint64_t count;
        if (ucx_take(self, d))
            return 1;
        ucx_sweep(self);
        bool woken = read(self->event_fd, &count, sizeof count) == sizeof count;
        int64_t left = until - ty_clock_ms();
        if (woken || left <= 0)
            return 0;
        ucs_status_t status = ucp_worker_arm(self->worker);
        if (status == UCS_ERR_BUSY)
            continue;
        if (status != UCS_OK)
            return ucx_fail(err, status, "arming a worker");
        struct epoll_event event;
        if (epoll_wait(self->epoll_fd, &event, 1, (int)left) < 0 && errno != EINTR)
            return ty_error_errno(err, TY_E_IO, errno, "epoll");
    }
}

static void ucx_wake(void *arg)
{
    uint64_t one = 1;
    ssize_t n = write(((ucx_self *)arg)->event_fd, &one, sizeof one);
    (void)n; /* full: it is awake */
}

/* ---- opening ---- */

static int ucx_resolve(const char *address, struct sockaddr_storage *out, socklen_t *n_bytes, ty_error *err)
{
    char host[TY_TRANSPORT_ADDRESS_BYTES];
    const char *colon = strrchr(address, ':');
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    if (colon == NULL || colon - address >= (long)sizeof host)
        return ty_error_set(err, TY_E_CONFIG, "address \"%s\": expected host:port", address);
    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    int rc = getaddrinfo(host, colon + 1, &hints, &found);
    if (rc != 0)
        return ty_error_set(err, TY_E_CONFIG, "address \"%s\": %s", address, gai_strerror(rc));
    memcpy(out, found->ai_addr, found->ai_addrlen);
    *n_bytes = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int ucx_context(ucx_self *self, const char *interface, ty_error *err)
{
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return ucx_fail(err, status, "reading its settings");
    status = ucp_config_modify(config, "TLS", "tcp");
    if (status == UCS_OK && interface)
        status = ucp_config_modify(config, "NET_DEVICES", interface);
    if (status == UCS_OK) /* a server that is started again listens where the one before it did */
        status = ucp_config_modify(config, "CM_REUSEADDR", "y");
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
    if (status == UCS_OK)
        status = ucp_init(&params, config, &self->context);
    ucp_config_release(config);
    if (status != UCS_OK) {
        ucx_fail(err, status, "no TCP transport");
        return interface ? ty_error_wrap(err, "interface \"%s\"", interface) : -1;
    }
    return 0;
}

static int ucx_worker(ucx_self *self, ty_error *err)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucs_status_t status = ucp_worker_create(self->context, &params, &self->worker);
    if (status != UCS_OK)
        return ucx_fail(err, status, "no worker");
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                                                    UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                      .id = UCX_ID,
                                      .flags = UCP_AM_FLAG_WHOLE_MSG,
                                      .cb = ucx_arrived,
                                      .arg = self};
    status = ucp_worker_set_am_recv_handler(self->worker, &handler);
    int fd = -1;
    if (status == UCS_OK)
        status = ucp_worker_get_efd(self->worker, &fd);
    if (status != UCS_OK)
        return ucx_fail(err, status, "no descriptor to wait on");
    struct epoll_event event = {.events = EPOLLIN};
    if (self->epoll_fd < 0 || self->event_fd < 0 || epoll_ctl(self->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ||
        epoll_ctl(self->epoll_fd, EPOLL_CTL_ADD, self->event_fd, &event) < 0)
        return ty_error_errno(err, TY_E_IO, errno, "epoll");
    return 0;
}

static int ucx_listen(ucx_self *self, const char *listen, char address[TY_TRANSPORT_ADDRESS_BYTES], ty_error *err)
{
    struct sockaddr_storage at = {0};
    socklen_t n_bytes = 0;
    char host[INET6_ADDRSTRLEN] = "", port[16] = "";
    if (ucx_resolve(listen, &at, &n_bytes, err) < 0)
        return -1;
    ucp_listener_params_t params = {.field_mask =
                                        UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
                                    .sockaddr = {(const struct sockaddr *)&at, n_bytes},
                                    .conn_handler = {.cb = ucx_called, .arg = self}};
    ucs_status_t status = ucp_listener_create(self->worker, &params, &self->listener);
    if (status != UCS_OK) {
        ucx_fail(err, status, listen);
        return ty_error_help(err, "is another server listening there?");
    }
    ucp_listener_attr_t attr = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
    status = ucp_listener_query(self->listener, &attr);
    if (status != UCS_OK || getnameinfo((const struct sockaddr *)&attr.sockaddr, n_bytes, host, sizeof host, port,
                                        sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return ucx_fail(err, status, "no address");
    snprintf(address, TY_TRANSPORT_ADDRESS_BYTES, "%s:%s", host, port);
    return 0;
}

static void ucx_close(void *arg)
{
    ucx_self *self = arg;
    int64_t until = ty_clock_ms() + UCX_CLOSE_MS;
    while (self->sending > 0 && ty_clock_ms() < until)
        ucp_worker_progress(self->worker);
    for (int64_t i = 0; i < self->n_peers; i++)
        peer_drop(self->peer[i], self->peer[i]->broken || self->sending > 0);
    if (self->listener)
        ucp_listener_destroy(self->listener);
    if (self->worker)
        ucp_worker_destroy(self->worker);
    if (self->context)
        ucp_cleanup(self->context);
    for (int64_t i = 0; i < self->n_peers; i++)
        free(self->peer[i]);
    free(self->peer);
    ty_queue_fini(&self->arrived);
    if (self->epoll_fd >= 0)
        close(self->epoll_fd);
    if (self->event_fd >= 0)
        close(self->event_fd);
    free(self);
}

static int ucx_open(const char *listen, const char *interface, void **out, char address[TY_TRANSPORT_ADDRESS_BYTES],
                    ty_error *err)
{
    ucx_self *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a transport");
    ty_queue_init(&self->arrived);
    self->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    self->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    address[0] = '\0';
    if (ucx_context(self, interface, err) < 0 || ucx_worker(self, err) < 0 ||
        (listen && ucx_listen(self, listen, address, err) < 0)) {
        ucx_close(self);
        return -1;
    }
    *out = self;
    return 0;
}

static int ucx_connect(void *arg, const char *address, int64_t *peer, ty_error *err)
{
    ucx_self *self = arg;
    struct sockaddr_storage at = {0};
    socklen_t n_bytes = 0;
    if (ucx_resolve(address, &at, &n_bytes, err) < 0)
        return -1;
    *peer = peer_add(self);
    if (*peer < 0)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a peer");
    ucx_peer *p = self->peer[*peer];
    p->called = true;
    p->called_ms = -UCX_PAUSE_MS;
    p->address = at;
    p->address_bytes = n_bytes;
    return 0;
}

static const ty_transport_table ucx_transport = {"ucx",       ucx_open, ucx_connect, ucx_send,
                                                 ucx_receive, ucx_wake, ucx_close};

TY_PLUGIN = {"ucx", TY_TRANSPORT_VERSION, NULL, ucx_version, &ucx_transport};
