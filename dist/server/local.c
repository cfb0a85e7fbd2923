/* local.c - a transport between threads of this process. See transport.h.
 *
 * Each transport has a box with a number; those that listen also have a name. One lock for all of it: this is for tests
 * and small jobs. Peers: the number of a box (who sent something), or -1 - i for the i-th name that was connected to,
 * which is looked up at every send, so that a server that was started again is found.
 */
#include "dist/server/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCAL_MAX_NAMES = 1024 };

typedef struct local_box {
    int64_t number;
    char name[TY_TRANSPORT_ADDRESS_BYTES];
    ty_queue queue;
    char *known[LOCAL_MAX_NAMES]; /* names that were connected to */
    int n_known;
    struct local_box *next;
} local_box;

static pthread_mutex_t boxes_lock = PTHREAD_MUTEX_INITIALIZER;
static local_box *boxes;
static int64_t boxes_made;

static int local_open(const char *listen, const char *interface, void **self, char address[TY_TRANSPORT_ADDRESS_BYTES],
                      ty_error *err)
{
    (void)interface;
    local_box *box = calloc(1, sizeof *box);
    if (box == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a transport");
    snprintf(box->name, sizeof box->name, "%s", listen ? listen : "");
    snprintf(address, TY_TRANSPORT_ADDRESS_BYTES, "%s", box->name);
    ty_queue_init(&box->queue);
    pthread_mutex_lock(&boxes_lock);
    box->number = ++boxes_made;
    box->next = boxes;
    boxes = box;
    pthread_mutex_unlock(&boxes_lock);
    *self = box;
    return 0;
}

static int local_connect(void *self, const char *address, int64_t *peer, ty_error *err)
{
    local_box *box = self;
    if (box->n_known == LOCAL_MAX_NAMES)
        return ty_error_set(err, TY_E_LIMIT, "a transport can be connected to %d others", LOCAL_MAX_NAMES);
    box->known[box->n_known] = strdup(address);
    *peer = -1 - box->n_known++;
    return 0;
}

static void local_send(void *self, int64_t peer, void *bytes, size_t n_bytes)
{
    local_box *box = self, *to;
    pthread_mutex_lock(&boxes_lock);
    for (to = boxes; to; to = to->next)
        if (peer >= 0 ? to->number == peer : to->name[0] && strcmp(to->name, box->known[-1 - peer]) == 0)
            break;
    if (to)
        ty_queue_put(&to->queue, (ty_delivery){bytes, n_bytes, box->number});
    pthread_mutex_unlock(&boxes_lock);
    if (to == NULL)
        free(bytes);
}

static int local_receive(void *self, int timeout_ms, ty_delivery *d, ty_error *err)
{
    (void)err;
    return ty_queue_get(&((local_box *)self)->queue, timeout_ms, d);
}

static void local_wake(void *self)
{
    ty_queue_wake(&((local_box *)self)->queue);
}

static void local_close(void *self)
{
    local_box *box = self;
    pthread_mutex_lock(&boxes_lock);
    for (local_box **at = &boxes; *at; at = &(*at)->next)
        if (*at == box) {
            *at = box->next;
            break;
        }
    pthread_mutex_unlock(&boxes_lock);
    ty_queue_fini(&box->queue);
    for (int i = 0; i < box->n_known; i++)
        free(box->known[i]);
    free(box);
}

const ty_transport_table ty_transport_local = {"local",       local_open, local_connect, local_send,
                                               local_receive, local_wake, local_close};
