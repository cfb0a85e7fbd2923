/* remote_frame.h - what agents, and agent and client, say to each other in remote.c. Internal to it. */
#ifndef TY_DIST_AGENT_REMOTE_FRAME_H
#define TY_DIST_AGENT_REMOTE_FRAME_H

#include <stdint.h>

/* Who may send it; what follows the head. */
typedef enum remote_kind {
    REMOTE_START = 1, /* leader: the command, text */
    REMOTE_KILL,      /* leader: its client is gone; nothing */
    REMOTE_OUTPUT,    /* host: what the command wrote; value: 1 or 2 */
    REMOTE_END,       /* host: value is the wait status; nothing */
    REMOTE_REFUSED,   /* host: why, text; value 2 */
} remote_kind;

/* Fixed width, little-endian, as all hosts of a job are. */
typedef struct remote_head {
    uint32_t kind;
    uint32_t session; /* numbered by the leader; each client is one */
    int32_t value;
} remote_head;

#endif
